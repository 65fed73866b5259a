package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Evidence is what rows say against "no difference", as e-values: on average no
// more than 1 if there is none, whenever one stops. Stop, or claim, at 1/Alpha;
// with m candidates at m/Alpha, or by [EBenjaminiHochberg]. The smaller of 1
// and 1/e is a p-value, though a weak one. E-values of different rows may be
// multiplied, and those of different tests on the same rows averaged.
type Evidence struct {
	Either  float64 `json:"either"`  // of a difference
	Greater float64 `json:"greater"` // of the candidate being better; say before the first row that only this is of interest
}

// SignEvidence returns the evidence in rows of 0/1 scores, of which only the
// candidate has wins right and only the baseline losses: the beta-binomial
// mixture B(W+½, L+½)/B(½,½)·2^(W+L) (Robbins 1970; Ramdas, Grünwald, Vovk and
// Shafer 2023), and that times 2·P(Beta(W+½, L+½) > ½) for one side. It is
// McNemar's question asked after any row instead of after a number fixed ahead:
// the one for stopping early on 0/1 scores. It pays for large gains and costs
// rows for small ones; if nobody looks before the end take [Paired]. Numbers
// that would be too large are the largest there is.
//
// Negative counts are errors.
func SignEvidence(wins, losses int) (Evidence, error) {
	if wins < 0 || losses < 0 {
		return Evidence{}, fmt.Errorf("weighing rows that differ: %d wins and %d losses: give counts", wins, losses)
	}
	w, l := float64(wins)+0.5, float64(losses)+0.5
	either := mathext.Lbeta(w, l) - math.Log(math.Pi) + (w+l-1)*math.Ln2
	greater := either + math.Log(2*mathext.RegIncBeta(l, w, 0.5))
	return Evidence{Either: expFinite(either), Greater: expFinite(greater)}, nil
}

// expFinite is e^x, and the largest number where that is too large.
func expFinite(x float64) float64 { return min(math.Exp(x), math.MaxFloat64) }

// EBenjaminiHochberg returns the places of the candidates, or slices, whose
// e-values show a difference so that no more than a share of Alpha of such
// finds are false in the long run (Wang and Ramdas 2022): the k largest, for
// the largest k whose k-th is at least m/(k·Alpha), m being all that were
// looked at. It is the counterpart of [BenjaminiHochberg] where runs may have
// stopped early; it needs no assumption about how the e-values hang together.
// The places are in ascending order.
//
// An e-value that is negative or not a number, and options without meaning are
// errors.
func EBenjaminiHochberg(e []float64, o Options) ([]int, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	order := make([]int, len(e))
	for i, x := range e {
		if !(x >= 0) {
			return nil, fmt.Errorf("choosing by e-values: number %d is %v: give numbers of 0 or more", i, x)
		}
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(e[b], e[a]) })
	found := 0
	for j, i := range order {
		if k := float64(j + 1); e[i]*k*o.Alpha >= float64(len(e)) {
			found = j + 1
		}
	}
	chosen := order[:found]
	slices.Sort(chosen)
	return chosen, nil
}
