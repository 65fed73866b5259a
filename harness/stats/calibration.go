package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Reliability says whether stated confidence can be taken at its word.
type Reliability struct {
	Rows int `json:"rows"`

	// Brier is the mean of (confidence - right)², and Miscalibration -
	// Discrimination + Uncertainty.
	Brier          Opt `json:"brier"`
	Miscalibration Opt `json:"miscalibration"` // what recalibrated confidence would save
	Discrimination Opt `json:"discrimination"` // what it would save beside always saying the share of right rows
	Uncertainty    Opt `json:"uncertainty"`    // Brier of always saying that share

	// Calibrated is the share of right rows that goes with each row's
	// confidence, in the order of the rows: the line of a reliability diagram.
	Calibrated []float64 `json:"calibrated"`
}

// Calibrate compares confidence with whether the rows were right (0 or 1) by
// the CORP method (Dimitriadis, Gneiting and Jordan 2021): the calibrated
// confidence is the isotonic regression of right on confidence, with rows of
// equal confidence taken together first. It is the one for reliability: nothing
// has to be chosen, neither bins nor their number. The line fits these rows, so
// on few of them Miscalibration comes out too large. Without rows the numbers
// are absent.
//
// Lists of different length, confidence outside 0 to 1, and right other than 0
// and 1 are errors.
func Calibrate(confidence, right []float64) (Reliability, error) {
	if err := checkConfidence(confidence, right); err != nil {
		return Reliability{}, err
	}
	r := Reliability{Rows: len(right), Calibrated: isotonic(confidence, right)}
	if r.Rows == 0 {
		return r, nil
	}
	share, _ := moments(right)
	brier, best, uncertainty := brier(confidence, right), brier(r.Calibrated, right), share*(1-share)
	r.Brier, r.Uncertainty = some(brier), some(uncertainty)
	r.Miscalibration, r.Discrimination = some(max(0, brier-best)), some(max(0, uncertainty-best))
	return r, nil
}

func brier(confidence, right []float64) float64 {
	var squares sum
	for i, p := range confidence {
		squares.add((p - right[i]) * (p - right[i]))
	}
	return squares.value() / float64(len(right))
}

// isotonic returns the non-decreasing function of x nearest to the 0/1 values
// y, at each x, by pooling neighbours that are out of order.
func isotonic(x, y []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	type block struct{ right, rows float64 }
	var blocks []block
	for at, i := range order {
		if at > 0 && x[i] == x[order[at-1]] { // joins its equals, before they are compared
			last := &blocks[len(blocks)-1]
			last.right, last.rows = last.right+y[i], last.rows+1
		} else {
			blocks = append(blocks, block{y[i], 1})
		}
		if at+1 < len(order) && x[order[at+1]] == x[i] {
			continue
		}
		for len(blocks) > 1 {
			last, before := blocks[len(blocks)-1], &blocks[len(blocks)-2]
			if before.right*last.rows < last.right*before.rows { // exact: these are counts
				break
			}
			before.right, before.rows = before.right+last.right, before.rows+last.rows
			blocks = blocks[:len(blocks)-1]
		}
	}
	fitted, at := make([]float64, len(x)), 0
	for _, b := range blocks {
		for range int(b.rows) {
			fitted[order[at]] = b.right / b.rows
			at++
		}
	}
	return fitted
}

// CalibrationError returns the expected calibration error, Σ rows_b/n·|mean
// confidence_b - share right_b| over so many bins of equal width, [k/B,
// (k+1)/B) and the last one closed (Naeini, Cooper and Hauskrecht 2015). It is
// for comparing with published numbers, and means nothing without the number of
// bins: [Calibrate] has none. Absent without rows.
//
// Bins outside 1 to 1e6, and what is an error for [Calibrate] are errors.
func CalibrationError(confidence, right []float64, bins int) (Opt, error) {
	if err := checkConfidence(confidence, right); err != nil {
		return Opt{}, err
	}
	if bins < 1 || bins > maxBins {
		return Opt{}, fmt.Errorf("measuring calibration: %d bins: give a number from 1 to 1e6", bins)
	}
	gaps := make([]sum, bins)
	for i, p := range confidence {
		gaps[bin(p, bins)].add(p - right[i])
	}
	var total sum
	for _, gap := range gaps {
		total.add(math.Abs(gap.value()))
	}
	return some(total.value() / float64(len(right))), nil
}

// maxBins is more than rows can fill.
const maxBins = 1_000_000

// bin is the k with k/bins <= p < (k+1)/bins, which p·bins may miss by a last
// digit.
func bin(p float64, bins int) int {
	k := min(int(p*float64(bins)), bins-1)
	if float64(k)/float64(bins) > p {
		return k - 1
	}
	if k+1 < bins && float64(k+1)/float64(bins) <= p {
		return k + 1
	}
	return k
}

func checkConfidence(confidence, right []float64) error {
	const doing = "measuring calibration"
	if len(confidence) != len(right) {
		return fmt.Errorf("%s: confidence of %d rows and %d that are right or wrong: give both of each row", doing, len(confidence), len(right))
	}
	for i, p := range confidence {
		if !(p >= 0 && p <= 1) {
			return fmt.Errorf("%s: row %d has a confidence of %v: give a number from 0 to 1", doing, i, p)
		}
		if right[i] != 0 && right[i] != 1 {
			return fmt.Errorf("%s: row %d is right by %v: give 0 or 1", doing, i, right[i])
		}
	}
	return nil
}
