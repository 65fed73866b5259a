package stats

import (
	"fmt"
	"math"
)

// Judged is a mean that a judge's scores say with a person's help.
type Judged struct {
	Statistic     // Rows counts all, Units those a person rated
	Lambda    Opt `json:"lambda"` // how much the judge counts: 0 is the person's ratings alone
}

// fewRatings is from where a normal range is taken.
const fewRatings = 30

// PPI returns the mean that people would give, from a few ratings of theirs and
// a judge's scores of many rows: mean of the judge on the rest + mean of (human
// - judge), se √(Var(rest)/N + Var(human-judge)/n), prediction-powered
// inference (Angelopoulos, Bates, Fannjiang, Jordan and Zrnic 2023), method
// "ppi". The range is normal from 30 human ratings on, and below that Student's
// with n-1 degrees of freedom, with a warning. human and judged are of the same
// rows in the same order, rest of the others. The rows with human ratings must
// be a random draw of all; if they were chosen, nothing corrects for that. To
// compare candidates give differences, candidate minus baseline, by the person
// and by the judge: a judge may be kinder to one of them. Take [PPIPlusPlus]
// unless the judge's weight has to be fixed ahead: it is not wider with a poor
// judge.
//
// Fewer than two human ratings or scores of the rest, lists of human ratings
// and judge's scores of different length, scores that are not finite or beyond
// ±1e100, and options without meaning are errors.
func PPI(human, judged, rest []float64, o Options) (Judged, error) {
	return ppi("ppi", human, judged, rest, o, func(predicted) float64 { return 1 })
}

// PPIPlusPlus is [PPI] with the judge's scores weighted by λ = Cov(human,
// judge)/((1+n/N)·Var(judge)), cut to 0 and 1, the weight that makes the range
// shortest (Angelopoulos, Duchi and Zrnic 2023), method "ppi++": the default
// for scores of a judge with a random sample of human ratings. A judge with a
// correlation of 0.7 halves the ratings needed, one with 0.3 saves 9 %, and one
// that goes against people is left out.
func PPIPlusPlus(human, judged, rest []float64, o Options) (Judged, error) {
	return ppi("ppi++", human, judged, rest, o, func(p predicted) float64 { return min(1, max(0, p.lambda())) })
}

func ppi(method string, human, judged, rest []float64, o Options, lambda func(predicted) float64) (Judged, error) {
	const doing = "correcting a judge by human ratings"
	o, err := o.withDefaults()
	if err != nil {
		return Judged{}, err
	}
	n := len(human)
	if len(judged) != n {
		return Judged{}, fmt.Errorf("%s: %d human ratings and %d judge's scores of the same rows: give both of each", doing, n, len(judged))
	}
	if n < 2 || len(rest) < 2 {
		return Judged{}, fmt.Errorf("%s: %d human ratings and %d judge's scores of other rows: give at least 2 of both", doing, n, len(rest))
	}
	lists := []string{"human rating", "judge's score", "judge's score of the rest,"}
	for i, numbers := range [][]float64{human, judged, rest} {
		if err := checkNumbers(doing, lists[i], numbers); err != nil {
			return Judged{}, err
		}
	}
	p := predicted{human, judged, rest, 1}
	weight := lambda(p)
	value, se := p.mean(weight)
	j := Judged{Statistic: Statistic{Method: none, Value: some(value), Rows: n + len(rest), Units: n}, Lambda: some(weight)}
	if n < fewRatings {
		warn(&j.Warnings, "only %d human ratings: take the range as a rough guide, or rate more rows (%d or more)", n, fewRatings)
	}
	if !(se > 0) {
		warn(&j.Warnings, "neither the judge's scores nor its errors vary: there is no range; rate more rows")
		return j, nil
	}
	if n < fewRatings {
		j.Method = method
		j.student(value, se, float64(n-1), o)
	} else {
		j.normal(method, value, se, o)
	}
	return j, nil
}

// normal gives the statistic a standard error and the normal range.
func (s *Statistic) normal(method string, value, se float64, o Options) {
	half := o.zAlpha() * se
	s.Method, s.Value, s.SE = method, some(value), some(se)
	s.Low, s.High = some(value-half), some(value+half)
}

// predicted has a person's ratings, a judge's scores of the same rows and of
// the rest.
type predicted struct {
	human, judged, rest []float64
	less                float64 // variances divide by n-less: 1; the ppi_py package has 0
}

// lambda is the best weight of the judge before it is cut; 0 if the judge does
// not vary.
func (p predicted) lambda() float64 {
	all := append(append([]float64(nil), p.judged...), p.rest...)
	_, sd := moments(all)               // n-1 in that package too
	if !(sd > 1e-50*largest(p.human)) { // keeps the products finite
		return 0
	}
	meanHuman, _ := moments(p.human)
	meanJudged, _ := moments(p.judged)
	var products sum
	for i, y := range p.human {
		products.add((y - meanHuman) / sd * ((p.judged[i] - meanJudged) / sd))
	}
	n := float64(len(p.human))
	return products.value() / (n - p.less) / (1 + n/float64(len(p.rest)))
}

// mean is the estimate with the judge weighted by lambda.
func (p predicted) mean(lambda float64) (value, se float64) {
	errs := make([]float64, len(p.human))
	for i, y := range p.human {
		errs[i] = y - lambda*p.judged[i]
	}
	errs = rounded(errs)
	judge, sdJudge := moments(p.rest)
	miss, sdMiss := moments(errs)
	return lambda*judge + miss, math.Hypot(lambda*p.perRoot(sdJudge, len(p.rest)), p.perRoot(sdMiss, len(errs)))
}

// perRoot is the standard error of a mean of n.
func (p predicted) perRoot(sd float64, n int) float64 {
	return sd * math.Sqrt(float64(n-1)/(float64(n)-p.less)/float64(n))
}

// JudgeCheck counts how a judge did on answers of which it is known whether
// they are right.
type JudgeCheck struct {
	Right    int `json:"right"`    // answers known to be right
	Accepted int `json:"accepted"` // of these, by the judge: its sensitivity
	Wrong    int `json:"wrong"`    // answers known to be wrong
	Rejected int `json:"rejected"` // of these, by the judge: its specificity
}

// CorrectRate returns the share of right answers, from how many a judge
// accepted and how often it errs: (p+q0-1)/(q0+q1-1), cut to 0 and 1, with
// sensitivity q1 and specificity q0 (Rogan and Gladen 1978), and the range of
// Lee and others (2025), method "rogan-gladen", whose center is drawn towards
// the middle and shifted for the errors' uncertainty. It is the one where the
// check was on other rows, with another share of right answers, but the judge
// errs there as often; where people rated a random part of these rows take
// [PPIPlusPlus]. Judges err differently on different candidates: check on each,
// or do not compare candidates by it. A judge that is no better than chance has
// no corrected rate, and a warning.
//
// Counts that are negative or larger than what they are of, no rows, a check
// without right or without wrong answers, and options without meaning are
// errors.
func CorrectRate(accepted, rows int, check JudgeCheck, o Options) (Statistic, error) {
	const doing = "correcting a judge by its errors"
	o, err := o.withDefaults()
	if err != nil {
		return Statistic{}, err
	}
	counts := [][2]int{{accepted, rows}, {check.Accepted, check.Right}, {check.Rejected, check.Wrong}}
	for i, what := range []string{"accepted of rows", "accepted of right answers", "rejected of wrong answers"} {
		if c := counts[i]; c[0] < 0 || c[0] > c[1] || c[1] < 1 {
			return Statistic{}, fmt.Errorf("%s: %s are %d of %d: give counts, of which the first is no larger, and the second 1 or more", doing, what, c[0], c[1])
		}
	}
	s := Statistic{Method: none, Rows: rows, Units: rows}
	warnRows(&s.Warnings, rows)
	sensitivity, specificity := share(check.Accepted, check.Right), share(check.Rejected, check.Wrong)
	if !(sensitivity+specificity > 1+1e-12) {
		warn(&s.Warnings, "the judge accepts %.3g of right and %.3g of wrong answers: it cannot tell them apart; take another judge", sensitivity, 1-specificity)
		return s, nil
	}
	s.Value = some(max(0, min(1, (share(accepted, rows)+specificity-1)/(sensitivity+specificity-1))))
	center, se, ok := check.corrected(share(accepted, rows), float64(rows), o.zAlpha())
	if !ok {
		warn(&s.Warnings, "too few answers were checked to tell the judge from chance: there is no range; check more")
		return s, nil
	}
	half := o.zAlpha() * se
	s.Method, s.SE = "rogan-gladen", some(se)
	s.Low, s.High = some(max(0, min(1, center-half))), some(min(1, max(0, center+half)))
	return s, nil
}

// corrected is the center and the standard error of the range. Rates are drawn
// towards 1/2 by z²/2 of each verdict, and by one of the checks'.
func (c JudgeCheck) corrected(rate, n, z float64) (center, se float64, ok bool) {
	positives, negatives := float64(c.Right)+2, float64(c.Wrong)+2
	q1, q0 := float64(c.Accepted+1)/positives, float64(c.Rejected+1)/negatives
	gain := q0 + q1 - 1
	if !(gain > 1e-12) {
		return 0, 0, false
	}
	p := (n*rate + z*z/2) / (n + z*z)
	theta := (p + q0 - 1) / gain
	v0, v1 := q0*(1-q0)/negatives, q1*(1-q1)/positives
	shift := 2 * z * z * (theta*v1 - (1-theta)*v0)
	variance := p*(1-p)/(n+z*z) + (1-theta)*(1-theta)*v0 + theta*theta*v1
	return theta + shift, math.Sqrt(variance) / gain, true
}

func share(part, of int) float64 { return float64(part) / float64(of) }
