package stats

import (
	"fmt"
	"math"
)

// LengthBias says how far a judge of pairs prefers the longer answer.
type LengthBias struct {
	Slope     Statistic `json:"slope"`     // of the log-odds of preferring the candidate, by unit of length difference
	Intercept Statistic `json:"intercept"` // log-odds at equal length
	Z         Opt       `json:"z"`         // of the slope by its standard error
	P         Opt       `json:"p"`         // of no such preference (Wald)

	// AtEqualLength is the share of pairs that the candidate would win if both
	// answers were as long, with the range of the intercept. It has no standard
	// error.
	AtEqualLength Statistic `json:"at_equal_length"`

	Warnings []string `json:"warnings,omitempty"`
}

// PreferLonger fits the logistic regression of whether the judge prefers the
// candidate (1, else 0) on how much longer the candidate's answer is (the idea
// of length-controlled win rates, Dubois and others 2024), method "logistic".
// It is the one for verdicts over pairs that no person rated; where people call
// pairs a tie, the share of these that go to the longer answer shows the bias
// without a model. Give the differences in their standard deviations, not
// centered, for slopes that compare. A longer answer may also be better: the
// slope shows what the judge goes with, not that it is wrong. Where a length
// parts the verdicts completely, or all are the same, there is no fit, and a
// warning.
//
// Lists of different length, verdicts other than 0 and 1, differences that are
// not finite or beyond ±1e100, and options without meaning are errors.
func PreferLonger(lengthDifference, preferred []float64, o Options) (LengthBias, error) {
	const doing = "measuring a preference for length"
	o, err := o.withDefaults()
	if err != nil {
		return LengthBias{}, err
	}
	if len(lengthDifference) != len(preferred) {
		return LengthBias{}, fmt.Errorf("%s: %d differences of length and %d verdicts: give both of each pair", doing, len(lengthDifference), len(preferred))
	}
	if err := checkNumbers(doing, "difference", lengthDifference); err != nil {
		return LengthBias{}, err
	}
	for i, y := range preferred {
		if y != 0 && y != 1 {
			return LengthBias{}, fmt.Errorf("%s: verdict %d is %v: give 1 where the candidate is preferred and 0 where not", doing, i, y)
		}
	}
	n := len(preferred)
	without := Statistic{Method: none, Rows: n, Units: n}
	b := LengthBias{Slope: without, Intercept: without, AtEqualLength: without}
	warnRows(&b.Warnings, n)
	if parted(lengthDifference, preferred) {
		warn(&b.Warnings, "no length has both verdicts around it: there is no slope; add pairs")
		return b, nil
	}
	fit, ok := fitLogistic(lengthDifference, preferred)
	if !ok {
		warn(&b.Warnings, "the lengths all but part the verdicts: no slope could be found; add pairs")
		return b, nil
	}
	b.fill(fit, o)
	return b, nil
}

func (b *LengthBias) fill(fit logistic, o Options) {
	b.Slope.normal("logistic", fit.slope, fit.seSlope, o)
	b.Intercept.normal("logistic", fit.intercept, fit.seIntercept, o)
	b.Z, b.P = some(fit.slope/fit.seSlope), some(math.Erfc(math.Abs(fit.slope/fit.seSlope)/math.Sqrt2))
	b.AtEqualLength.Method, b.AtEqualLength.Value = "logistic", some(chanceOf(fit.intercept))
	b.AtEqualLength.Low, b.AtEqualLength.High = some(chanceOf(b.Intercept.Low.v)), some(chanceOf(b.Intercept.High.v))
}

func chanceOf(logOdds float64) float64 { return 1 / (1 + math.Exp(-logOdds)) }

// parted reports whether some x has all 0 on its one side and all 1 on the
// other, itself aside, when the most likely slope is infinite (Albert and
// Anderson 1984).
func parted(x, y []float64) bool {
	low, high := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for i, at := range x {
		k := int(y[i])
		low[k], high[k] = min(low[k], at), max(high[k], at)
	}
	return high[0] <= low[1] || high[1] <= low[0]
}

// logistic is a fitted log-odds intercept + slope·x.
type logistic struct{ intercept, slope, seIntercept, seSlope float64 }

// fitLogistic finds the most likely line by Newton's steps, halved while they
// overshoot, on x with mean 0 and standard deviation 1. ok is false if that
// does not come to rest.
func fitLogistic(x, y []float64) (l logistic, ok bool) {
	mean, sd := moments(x)
	if !(sd > 0) {
		return logistic{}, false
	}
	scaled := make([]float64, len(x))
	for i := range x {
		scaled[i] = (x[i] - mean) / sd
	}
	share, _ := moments(y)
	a, b := math.Log(share/(1-share)), 0.0
	loss := logisticLoss(scaled, y, a, b)
	for range 100 {
		s := logisticSlopes(scaled, y, a, b)
		det := s.aa*s.bb - s.ab*s.ab
		if !(det > 0) {
			return logistic{}, false
		}
		da, db := (s.bb*s.a-s.ab*s.b)/det, (s.aa*s.b-s.ab*s.a)/det
		if da*s.a+db*s.b < 1e-24*float64(len(x)) { // what the step would gain
			off := mean / sd
			variance := (s.bb + 2*s.ab*off + s.aa*off*off) / det
			return logistic{a - b*off, b / sd, math.Sqrt(variance), math.Sqrt(s.aa/det) / sd}, true
		}
		for step := 1.0; ; step /= 2 {
			next := logisticLoss(scaled, y, a+step*da, b+step*db)
			if next <= loss+1e-12*math.Abs(loss) || step < 1e-9 {
				a, b, loss = a+step*da, b+step*db, next
				break
			}
		}
	}
	return logistic{}, false
}

// logisticLoss is the negative log-likelihood.
func logisticLoss(x, y []float64, a, b float64) float64 {
	var loss sum
	for i, at := range x {
		logOdds := a + b*at
		loss.add(log1pExp(logOdds) - y[i]*logOdds)
	}
	return loss.value()
}

// slopes are the derivatives of the log-likelihood by a and b, and the negated
// second ones.
type slopes struct{ a, b, aa, ab, bb float64 }

func logisticSlopes(x, y []float64, a, b float64) slopes {
	var s slopes
	for i, at := range x {
		p := chanceOf(a + b*at)
		s.a += y[i] - p
		s.b += (y[i] - p) * at
		w := p * (1 - p)
		s.aa += w
		s.ab += w * at
		s.bb += w * at * at
	}
	return s
}
