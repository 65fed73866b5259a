package stats

import (
	"fmt"
	"math"
)

// CostPerPoint returns what a point of score costs, all cost by all score, with
// the standard error of a ratio, √(Σ(c-R·s)²/(n-1)/n)/s̄ (Cochran 1977), method
// "ratio-of-totals". For 0/1 scores it is the cost of a right answer. Mean
// costs by mean scores of rows would leave out that failed rows cost too. Give
// known costs of every row, also of those that failed; rows of unknown cost
// make it unknown. Where scores do not add up to more than 0 there is no ratio,
// and a warning.
//
// Lists of different length, costs below 0, and numbers that are not finite or
// beyond ±1e100 are errors.
func CostPerPoint(costs, scores []float64) (Statistic, error) {
	if err := checkCosts(costs, scores); err != nil {
		return Statistic{}, err
	}
	n := float64(len(costs))
	s := Statistic{Method: none, Rows: len(costs), Units: len(costs)}
	warnRows(&s.Warnings, s.Rows)
	var cost, score sum
	for i, c := range costs {
		cost.add(c)
		score.add(scores[i])
	}
	if !(score.value() > 1/maxScore) {
		warn(&s.Warnings, "the scores do not add up to more than 0: a point has no cost")
		return s, nil
	}
	ratio := cost.value() / score.value()
	s.Method, s.Value = "ratio-of-totals", some(ratio)
	if s.Rows > 1 {
		var squares sum
		for i, c := range costs {
			off := (c - ratio*scores[i]) / score.value() * n
			squares.add(off * off)
		}
		s.SE = some(math.Sqrt(squares.value() / (n - 1) / n))
	}
	return s, nil
}

// ParetoFront returns the places of the candidates that no other beats: none is
// at most as dear and at least as good, and one of them strictly. It is what a
// plot of cost and quality draws a line through. Candidates that are equal in
// both all stay. It looks at the numbers alone: two candidates that differ by
// less than their ranges may both deserve a place.
//
// Lists of different length, costs below 0, and numbers that are not finite or
// beyond ±1e100 are errors.
func ParetoFront(costs, quality []float64) ([]int, error) {
	if err := checkCosts(costs, quality); err != nil {
		return nil, err
	}
	var front []int
	for i := range costs {
		beaten := false
		for j := range costs {
			beaten = beaten || costs[j] <= costs[i] && quality[j] >= quality[i] && (costs[j] < costs[i] || quality[j] > quality[i])
		}
		if !beaten {
			front = append(front, i)
		}
	}
	return front, nil
}

func checkCosts(costs, scores []float64) error {
	const doing = "weighing cost against score"
	if len(costs) != len(scores) {
		return fmt.Errorf("%s: %d costs for %d scores: give one for each", doing, len(costs), len(scores))
	}
	if err := checkNumbers(doing, "score", scores); err != nil {
		return err
	}
	for i, c := range costs {
		if !(c >= 0 && c <= maxScore) {
			return fmt.Errorf("%s: cost %d is %v: give a finite number, at least 0", doing, i, c)
		}
	}
	return nil
}
