package stats

import (
	"fmt"
	"math"
)

// BettingCapital returns what a capital of 1 grows to, row by row, when each
// row's score x is bet upon against a true mean of null: Π (1 + bet·(x -
// null)), Waudby-Smith and Ramdas (2024). If the mean is null, no way of
// betting makes it likely ever to exceed 1/Alpha (Ville 1939), so that one may
// look after each row and stop as soon as it does: the capital is an e-value at
// any time. It is the one for scores with partial credit, such as d mapped to
// (d+1)/2 with null 1/2 for differences of scores from 0 to 1; for 0/1 scores
// of two candidates [SignEvidence] needs no bets. A bet above 0 earns when the
// mean is higher, one below 0 when it is lower. Each has to be fixed before its
// row is seen, from earlier rows at most; a bet chosen afterwards makes the
// capital mean nothing.
//
// Scores outside 0 to 1, a null that is not between 0 and 1, another number of
// bets than of scores, and a bet outside -1/(1-null) to 1/null, which could
// lose more than there is, are errors.
func BettingCapital(scores, bets []float64, null float64) ([]float64, error) {
	const doing = "betting on scores"
	if err := checkUnit(doing, scores); err != nil {
		return nil, err
	}
	if len(bets) != len(scores) {
		return nil, fmt.Errorf("%s: %d bets on %d scores: give one for each", doing, len(bets), len(scores))
	}
	if !(null > 0 && null < 1) {
		return nil, fmt.Errorf("%s: the mean to bet against is %v: give a number above 0 and below 1", doing, null)
	}
	capital, now := make([]float64, len(scores)), 1.0
	for i, x := range scores {
		if !(bets[i] >= -1/(1-null) && bets[i] <= 1/null) {
			return nil, fmt.Errorf("%s: bet %d is %v: give a number from %v to %v, lest the capital can fall below 0", doing, i, bets[i], -1/(1-null), 1/null)
		}
		// Giving up what no number can hold only makes the evidence weaker. A
		// bet at the limit may lose a last digit more than there is.
		now = min(max(0, now*(1+bets[i]*(x-null))), math.MaxFloat64)
		capital[i] = now
	}
	return capital, nil
}

// PredictableBernstein returns a range of the mean that may be looked at after
// any row, and after every one, and still covers it at all looks at once with
// 1-Alpha: the predictable plug-in empirical-Bernstein sequence (Waudby-Smith
// and Ramdas 2024, theorem 2), method "predictable-bernstein". Value is its
// center Σλx/Σλ. It is the one when looks are many, since it is cheap, and rows
// number hundreds; [HedgedCapital] is narrower. Scores must come in a random
// order fixed before the first was seen, and rows of one conversation as one
// score, their mean.
//
//	λ_t = min(1/2, √(2·log(2/Alpha)/(σ̂²_{t-1}·t·log(1+t)))),  ψ(λ) = (-log(1-λ) - λ)/4
//	Σλx/Σλ ± (log(2/Alpha) + Σ 4(x_t-μ̂_{t-1})²·ψ(λ_t))/Σλ,  cut to 0 and 1
//
// Scores outside 0 to 1, and options without meaning are errors. A difference d
// of such scores goes in as (d+1)/2.
func PredictableBernstein(scores []float64, o Options) (Statistic, error) {
	o, s, err := beginAnytime(scores, o)
	if err != nil || s.Rows == 0 {
		return s, err
	}
	var weights, weighted, spent sum
	plugIn := newPlugIn(o.Alpha)
	for _, x := range scores {
		bet, mean := min(maxBernsteinBet, plugIn.bet()), plugIn.mean()
		weights.add(bet)
		weighted.add(bet * x)
		spent.add((x - mean) * (x - mean) * (-math.Log1p(-bet) - bet)) // the 4 and the 1/4 cancel
		plugIn.add(x)
	}
	center := weighted.value() / weights.value()
	half := (math.Log(2/o.Alpha) + spent.value()) / weights.value()
	s.Method, s.Value = "predictable-bernstein", some(center)
	s.Low, s.High = some(max(0, center-half)), some(min(1, center+half))
	return s, nil
}

// maxBernsteinBet keeps ψ finite.
const maxBernsteinBet = 0.5

// HedgedCapital is [PredictableBernstein] by betting on both sides
// (Waudby-Smith and Ramdas 2024, theorem 3), method "hedged-capital": it keeps
// every mean m at which neither half of the capital, put on higher and on
// lower, has reached 1/Alpha. It is the narrower of the two on most scores, and
// the range to show after an early stop; it goes over all rows some fifty times
// at each look. Value is the mean of the rows seen, which is biased once a good
// look was the reason to stop: read the range.
//
//	K₊(m) = Π(1 + min(λ_t, 1/(2m))·(x_t - m)),  K₋(m) = Π(1 - min(λ_t, 1/(2(1-m)))·(x_t - m)),
//	all m with max(K₊, K₋)/2 < 1/Alpha, λ as there but for the 1/2
//
// Rows in an order that is far from random can leave no mean: then there is no
// range, and a warning.
//
// Scores outside 0 to 1, and options without meaning are errors.
func HedgedCapital(scores []float64, o Options) (Statistic, error) {
	o, s, err := beginAnytime(scores, o)
	if err != nil || s.Rows == 0 {
		return s, err
	}
	bets, plugIn := make([]float64, len(scores)), newPlugIn(o.Alpha)
	mirrored := make([]float64, len(scores))
	for i, x := range scores {
		bets[i], mirrored[i] = plugIn.bet(), 1-x
		plugIn.add(x)
	}
	goal := math.Log(2 / o.Alpha)
	low, high := highestBeaten(scores, bets, goal), 1-highestBeaten(mirrored, bets, goal)
	mean, _ := moments(scores)
	s.Value = some(mean)
	if low > high {
		warn(&s.Warnings, "no mean fits rows in this order: bring the rows into a random order before the first call")
		return s, nil
	}
	s.Method, s.Low, s.High = "hedged-capital", some(low), some(high)
	return s, nil
}

// highestBeaten returns the highest mean against which bets on a higher one
// have reached the goal, or 0 if there is none. The capital falls as the mean
// grows.
func highestBeaten(scores, bets []float64, goal float64) float64 {
	beaten := func(mean float64) bool {
		var capital sum
		for i, x := range scores {
			capital.add(math.Log1p(min(bets[i], 0.5/mean) * (x - mean)))
		}
		return capital.value() >= goal
	}
	below, above := 0.0, 1.0
	if !beaten(below) {
		return 0
	}
	for {
		mid := below + (above-below)/2
		if mid <= below || mid >= above {
			return below
		}
		if beaten(mid) {
			below = mid
		} else {
			above = mid
		}
	}
}

// plugIn follows mean and variance of the scores so far, drawn towards 1/2 and
// 1/4 by one score before the first, and says how much to bet on the next.
type plugIn struct {
	log             float64 // of 2/Alpha
	seen            float64
	total, variance sum // the latter of deviations from the mean at their time
}

func newPlugIn(alpha float64) *plugIn {
	p := &plugIn{log: math.Log(2 / alpha)}
	p.total.add(0.5)
	p.variance.add(0.25)
	return p
}

func (p *plugIn) mean() float64 { return p.total.value() / (p.seen + 1) }

func (p *plugIn) bet() float64 {
	next := p.seen + 1
	return math.Sqrt(2 * p.log / (p.variance.value() / next * next * math.Log1p(next)))
}

func (p *plugIn) add(x float64) {
	p.total.add(x)
	p.seen++
	off := x - p.mean()
	p.variance.add(off * off)
}

// InAllLooks returns the range that lies in those of all looks of one method as
// rows came in: ranges that hold at once may be cut with each other. It keeps
// the other fields of the last look. Do it with [PredictableBernstein] and
// [HedgedCapital], never with ranges for a number of rows fixed ahead. Looks
// without a range are passed over; if the rest have nothing in common, there is
// no range, and a warning.
//
// No look, and looks of several methods are errors.
func InAllLooks(looks []Statistic) (Statistic, error) {
	const doing = "cutting ranges with each other"
	if len(looks) == 0 {
		return Statistic{}, fmt.Errorf("%s: there are none: give at least one look", doing)
	}
	all := looks[len(looks)-1]
	all.Warnings = append([]string(nil), all.Warnings...)
	low, high, method := math.Inf(-1), math.Inf(1), ""
	for i, look := range looks {
		if look.Low.IsZero() || look.High.IsZero() {
			continue
		}
		if method == "" {
			method = look.Method
		}
		if look.Method != method {
			return Statistic{}, fmt.Errorf("%s: look %d is by %s and one before by %s: give looks of one method", doing, i, look.Method, method)
		}
		low, high = max(low, look.Low.v), min(high, look.High.v)
	}
	all.Method, all.Low, all.High = none, Opt{}, Opt{}
	switch {
	case method == "":
	case low > high:
		warn(&all.Warnings, "the looks' ranges have nothing in common: the rows did not come in a random order")
	default:
		all.Method, all.Low, all.High = method, some(low), some(high)
	}
	return all, nil
}

func beginAnytime(scores []float64, o Options) (Options, Statistic, error) {
	o, err := o.withDefaults()
	if err != nil {
		return o, Statistic{}, err
	}
	if err := checkUnit("following a mean", scores); err != nil {
		return o, Statistic{}, err
	}
	s := Statistic{Method: none, Rows: len(scores), Units: len(scores)}
	if s.Rows == 0 {
		warnRows(&s.Warnings, 0)
	}
	return o, s, nil
}

// checkUnit refuses scores outside 0 to 1.
func checkUnit(doing string, scores []float64) error {
	for i, x := range scores {
		if !(x >= 0 && x <= 1) {
			return fmt.Errorf("%s: row %d has %v: give scores from 0 to 1, or map them there first", doing, i, x)
		}
	}
	return nil
}
