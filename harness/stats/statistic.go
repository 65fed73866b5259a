package stats

import (
	"fmt"
	"math"
)

// Statistic is a number of the added layer with what is known of its precision,
// in the units of what was measured.
type Statistic struct {
	Method   string   `json:"method"` // of the range, or of the standard error where there is no range
	Value    Opt      `json:"value"`
	SE       Opt      `json:"se,omitzero"`
	Low      Opt      `json:"low"` // covers 1-Alpha
	High     Opt      `json:"high"`
	DF       Opt      `json:"df,omitzero"`
	Rows     int      `json:"rows,omitzero"`  // unless the method saw only estimates
	Units    int      `json:"units,omitzero"` // independent units: clusters, or rows where each stands alone
	Warnings []string `json:"warnings,omitempty"`
}

// student gives the statistic a standard error and, if it is known how many
// degrees of freedom that has, Student's range.
func (s *Statistic) student(value, se, df float64, o Options) {
	s.Value, s.SE = some(value), some(se)
	if df > 0 {
		half := studentQuantile(1-o.Alpha/2, df) * se
		s.DF, s.Low, s.High = some(df), some(value-half), some(value+half)
	}
}

// checkNumbers refuses numbers that are not finite or too large to square.
// doing and what name the task and the list in the message.
func checkNumbers(doing, what string, numbers []float64) error {
	for i, x := range numbers {
		if !(math.Abs(x) <= maxScore) { // true for NaN as well
			return fmt.Errorf("%s: %s %d is %v: give a number between -1e100 and 1e100", doing, what, i, x)
		}
	}
	return nil
}

// checkSpread refuses what is no standard error, or variance, to divide the
// values by.
func checkSpread(doing, what string, spreads, values []float64) error {
	least := largest(values, spreads) * 1e-50 // the square of the largest ratio stays finite
	for i, x := range spreads {
		if !(x >= least && x <= maxScore) {
			return fmt.Errorf("%s: %s %d is %v: give a positive number, not vanishing beside the values; leave out what does not vary", doing, what, i, x)
		}
	}
	return nil
}

// rounded returns the values to twelve decimals, as [rounder] has it.
func rounded(values []float64) []float64 {
	round := rounder(largest(values))
	out := make([]float64, len(values))
	for i, x := range values {
		out[i] = round(x)
	}
	return out
}
