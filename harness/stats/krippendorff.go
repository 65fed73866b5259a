package stats

import (
	"fmt"
	"slices"
)

// Level says what the numbers of ratings mean.
type Level string

// The levels of measurement.
const (
	NominalLevel  Level = "nominal"  // names: ratings are the same or not
	OrdinalLevel  Level = "ordinal"  // an order: how many ratings lie between counts
	IntervalLevel Level = "interval" // quantities: the squared difference counts
)

// KrippendorffAlpha is the agreement of any number of raters.
type KrippendorffAlpha struct {
	Units   int `json:"units"`   // with at least two ratings: others show nothing
	Ratings int `json:"ratings"` // of these units

	// Alpha is 1 - Observed/Expected: 1 is full agreement, 0 no more than
	// chance would give. Absent when all ratings are the same, which shows
	// nothing.
	Alpha    Opt `json:"alpha"`
	Observed Opt `json:"observed"` // disagreement within units
	Expected Opt `json:"expected"` // disagreement of any two ratings
}

// Krippendorff measures the agreement of raters who each rated some of the
// units: units[u] has the ratings that unit got, in any order, those not given
// left out (Krippendorff 2011). Observed is 1/N·Σ_u Σ_{i≠j} δ²/(m_u-1) and
// Expected Σ_{i≠j} δ²/(N(N-1)) over all ratings, with δ² by level: 1 for
// different names, the square of the difference of mid-ranks, or of the
// numbers. It is the one for more than two raters, or with ratings missing; for
// two who rated everything [Agree] says more. Low where nearly all ratings are
// the same, like kappa, it asks for more than guessing.
//
// Ratings that are not finite or beyond ±1e100, and another level are errors.
func Krippendorff(units [][]float64, level Level) (KrippendorffAlpha, error) {
	const doing = "measuring the agreement of raters"
	a := KrippendorffAlpha{}
	var all []float64
	var kept [][]float64
	for u, ratings := range units {
		if err := checkNumbers(doing, fmt.Sprintf("unit %d, rating", u), ratings); err != nil {
			return KrippendorffAlpha{}, err
		}
		if len(ratings) > 1 {
			kept, all = append(kept, ratings), append(all, ratings...)
		}
	}
	disagreement := squaredGap
	switch level {
	case NominalLevel:
		disagreement = differentNames
	case OrdinalLevel:
		kept, all = midRanks(kept, all)
	case IntervalLevel:
	default:
		return KrippendorffAlpha{}, fmt.Errorf("%s: level is %q: give %q, %q or %q", doing, level, NominalLevel, OrdinalLevel, IntervalLevel)
	}
	a.Units, a.Ratings = len(kept), len(all)
	if a.Ratings == 0 {
		return a, nil
	}
	var within sum
	for _, ratings := range kept {
		within.add(float64(len(ratings)) * disagreement(ratings))
	}
	observed, expected := within.value()/float64(a.Ratings), disagreement(all)
	a.Observed, a.Expected = some(observed), some(expected)
	if expected > 0 {
		a.Alpha = some(1 - observed/expected)
	}
	return a, nil
}

// squaredGap is the mean of (a-b)² over the pairs of two or more values, twice
// their variance with n-1.
func squaredGap(values []float64) float64 {
	_, sd := moments(values)
	return 2 * sd * sd
}

// differentNames is the share of pairs of values that differ.
func differentNames(values []float64) float64 {
	counts := map[float64]int{}
	for _, x := range values {
		counts[x]++
	}
	n, alike := float64(len(values)), 0.0
	for _, c := range counts { // whole numbers: their order does not matter
		alike += float64(c) * float64(c-1)
	}
	return 1 - alike/(n*(n-1))
}

// midRanks replaces values by their ranks among all, the mean one where values
// are equal.
func midRanks(units [][]float64, all []float64) (rankedUnits [][]float64, ranked []float64) {
	sorted := slices.Sorted(slices.Values(all))
	rank := map[float64]float64{}
	for from := 0; from < len(sorted); {
		to := from
		for to < len(sorted) && sorted[to] == sorted[from] {
			to++
		}
		rank[sorted[from]] = float64(from+1+to) / 2
		from = to
	}
	for _, ratings := range units {
		ranks := make([]float64, len(ratings))
		for i, x := range ratings {
			ranks[i] = rank[x]
		}
		rankedUnits, ranked = append(rankedUnits, ranks), append(ranked, ranks...)
	}
	return rankedUnits, ranked
}
