package stats

import (
	"fmt"
	"math"
)

// Noise says how the difference of two candidates varies, in squared units of
// the score, with answers of a row averaged (Miller 2024).
type Noise struct {
	Rows             float64 // variance over rows of the true difference
	Baseline         float64 // variance of one baseline answer about its row's true score
	Candidate        float64 // the same of a candidate answer
	BaselineAnswers  int     // answers averaged for each row; 0 means 1
	CandidateAnswers int
}

// Variance returns the variance of one row's difference: Rows, plus each
// candidate's noise divided by its answers. More answers shrink only their
// part.
func (n Noise) Variance() float64 {
	return n.Rows +
		n.Baseline/float64(max(1, n.BaselineAnswers)) +
		n.Candidate/float64(max(1, n.CandidateAnswers))
}

// DetectableDiff returns the smallest difference of means that so many rows
// show with probability Power, in the units of the score:
// (z(1-Alpha/2) + z(Power))·√(variance/rows) (Miller 2024). variance is that
// of one row's difference, observed or from [Noise].
//
// A variance that is negative or not finite, fewer than one row, and options
// without meaning are errors.
func DetectableDiff(variance float64, rows int, o Options) (float64, error) {
	o, err := o.withDefaults()
	if err != nil {
		return 0, err
	}
	if err := checkVariance(variance); err != nil {
		return 0, err
	}
	if rows < 1 {
		return 0, fmt.Errorf("finding the detectable difference: %d rows: give at least 1", rows)
	}
	return detectableDiff(variance, rows, o), nil
}

func detectableDiff(variance float64, rows int, o Options) float64 {
	return (o.zAlpha() + o.zPower()) * math.Sqrt(variance/float64(rows))
}

// RowsForDiff returns how many rows show a difference of means diff with
// probability Power: [DetectableDiff] solved for the rows, rounded up. The
// sign of diff does not matter.
//
// A variance that is negative or not finite, a diff of 0 or so small that the
// rows cannot be counted, and options without meaning are errors.
func RowsForDiff(variance, diff float64, o Options) (int, error) {
	o, err := o.withDefaults()
	if err != nil {
		return 0, err
	}
	if err := checkVariance(variance); err != nil {
		return 0, err
	}
	return countRows(rowsForDiff(variance, diff, o), diff)
}

func rowsForDiff(variance, diff float64, o Options) float64 {
	z := o.zAlpha() + o.zPower()
	return z * z * variance / (diff * diff)
}

// RowsForBinary returns how many rows of 0/1 scores show a difference of rates
// diff with McNemar's test and probability Power, when the two candidates
// disagree on the given share of rows (Connor 1987), rounded up. The sign of
// diff does not matter.
//
// A share outside [|diff|, 1] (a difference needs that many disagreements), a
// diff of 0 or so small that the rows cannot be counted, and options without
// meaning are errors.
func RowsForBinary(disagree, diff float64, o Options) (int, error) {
	o, err := o.withDefaults()
	if err != nil {
		return 0, err
	}
	if !(disagree >= math.Abs(diff) && disagree <= 1) {
		return 0, fmt.Errorf("planning rows: a difference of %v with %v of the rows in disagreement: give a share between the difference and 1", diff, disagree)
	}
	return countRows(rowsForBinary(disagree, diff, o), diff)
}

func rowsForBinary(disagree, diff float64, o Options) float64 {
	root := o.zAlpha()*math.Sqrt(disagree) + o.zPower()*math.Sqrt(max(0, disagree-diff*diff))
	return root * root / (diff * diff)
}

// detectableBinary is rowsForBinary solved for the difference. A difference
// cannot be larger than the share of disagreements, so past the observed
// share both grow together: also a run without a single disagreement could
// have seen something. ok is false if the rows show not even a difference of 1.
func detectableBinary(disagree float64, rows int, o Options) (diff float64, ok bool) {
	enough := func(diff float64) bool {
		return rowsForBinary(max(disagree, diff), diff, o) <= float64(rows)
	}
	if !enough(1) {
		return 0, false
	}
	low, high := 0.0, 1.0
	for {
		mid := low + (high-low)/2
		if mid <= low || mid >= high {
			return high, true
		}
		if enough(mid) {
			high = mid
		} else {
			low = mid
		}
	}
}

// fewestRows returns how many rows must change, all one way, before a p-value
// can fall below alpha. A run of m alike has probability atOnce/2^m.
func fewestRows(atOnce, alpha float64) int {
	m := 1
	for p := atOnce / 2; p >= alpha; p /= 2 {
		m++
	}
	return m
}

func checkVariance(v float64) error {
	if !(v >= 0 && v <= math.MaxFloat64) {
		return fmt.Errorf("planning rows: the variance is %v: give a finite number, at least 0", v)
	}
	return nil
}

func countRows(n, diff float64) (int, error) {
	if math.IsNaN(diff) || math.IsInf(diff, 0) {
		return 0, fmt.Errorf("planning rows: the difference is %v: give a finite one", diff)
	}
	if !(n < 1<<53) { // true for NaN as well, from a diff of 0
		return 0, fmt.Errorf("planning rows: a difference of %v takes more rows than can be counted: give a larger one", diff)
	}
	return max(1, int(math.Ceil(n))), nil
}
