package stats

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Opt is a number that may be absent: a range of one row, the degrees of
// freedom of a method that has none. The zero value is absent. A present value
// is always finite. Opts compare with ==.
type Opt struct {
	v  float64
	ok bool
}

// some makes a present Opt. It is the only way to make one, and so the place
// where the promise is kept that no NaN, infinity or negative zero leaves.
func some(v float64) Opt {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Opt{}
	}
	return Opt{v + 0, true} // -0 + 0 is 0
}

// Get returns the number and whether there is one.
func (o Opt) Get() (v float64, ok bool) { return o.v, o.ok }

// IsZero reports whether the number is absent, so that `omitzero` leaves it
// out of JSON. A present 0 is not absent.
func (o Opt) IsZero() bool { return !o.ok }

// String returns the shortest text that reads back as the same number, or
// "none".
func (o Opt) String() string {
	if !o.ok {
		return "none"
	}
	return strconv.FormatFloat(o.v, 'g', -1, 64)
}

// MarshalJSON writes the number, or null when it is absent.
func (o Opt) MarshalJSON() ([]byte, error) {
	if !o.ok {
		return []byte("null"), nil
	}
	return json.Marshal(o.v)
}

// UnmarshalJSON reads a number or null.
func (o *Opt) UnmarshalJSON(text []byte) error {
	var v *float64
	if err := json.Unmarshal(text, &v); err != nil {
		return fmt.Errorf("reading an optional number: %w", err)
	}
	*o = Opt{}
	if v != nil {
		*o = some(*v)
	}
	return nil
}

// none is the method of a result that has no range, or no p-value.
const none = "none"

// maxScore bounds what is accepted, so that squares of differences and their
// sums stay finite without a test at every step.
const maxScore = 1e100

// checkScores refuses what would turn into NaN or infinity further down. whose
// names the sample in the message.
func checkScores(whose string, scores []float64) error {
	for i, x := range scores {
		if !(math.Abs(x) <= maxScore) { // true for NaN as well
			return fmt.Errorf("reading %s scores: row %d has %v: give a number between -1e100 and 1e100, or 0 for a row that failed", whose, i, x)
		}
	}
	return nil
}

// checkPair checks both samples and that they have the same length.
func checkPair(base, cand []float64) error {
	if len(base) != len(cand) {
		return fmt.Errorf("pairing scores: %d baseline rows and %d candidate rows: give both the same rows in the same order, with 0 for a row that failed", len(base), len(cand))
	}
	if err := checkScores("baseline", base); err != nil {
		return err
	}
	return checkScores("candidate", cand)
}

// AllBinary reports whether every score of every sample is 0 or 1. It is true
// when there are none.
func AllBinary(samples ...[]float64) bool {
	for _, scores := range samples {
		for _, x := range scores {
			if x != 0 && x != 1 {
				return false
			}
		}
	}
	return true
}

// ones counts the right answers among 0/1 scores.
func ones(scores []float64) int {
	n := 0
	for _, x := range scores {
		if x == 1 {
			n++
		}
	}
	return n
}

// A sum adds in row order and carries what rounding loses (Neumaier 1974), so
// that ten times 0.1 is 1, and that adding the negated numbers gives exactly
// the negated sum.
type sum struct{ total, lost float64 }

func (s *sum) add(x float64) {
	t := s.total + x
	if math.Abs(s.total) >= math.Abs(x) {
		s.lost += (s.total - t) + x
	} else {
		s.lost += (x - t) + s.total
	}
	s.total = t
}

func (s *sum) value() float64 { return s.total + s.lost }

// moments returns the mean and the standard deviation with n-1; sd is 0 for
// one value. Equal values give exactly that value and exactly 0, which sums
// alone would miss by a last digit.
func moments(xs []float64) (mean, sd float64) {
	n := float64(len(xs))
	if constant(xs) {
		return xs[0], 0
	}
	var s sum
	for _, x := range xs {
		s.add(x)
	}
	mean = s.value() / n
	var squares sum
	for _, x := range xs {
		squares.add((x - mean) * (x - mean))
	}
	return mean, math.Sqrt(squares.value() / (n - 1))
}

func constant(xs []float64) bool {
	for _, x := range xs {
		if x != xs[0] {
			return false
		}
	}
	return true
}

// largest returns the largest absolute value, at least 1.
func largest(samples ...[]float64) float64 {
	m := 1.0
	for _, xs := range samples {
		for _, x := range xs {
			m = max(m, math.Abs(x))
		}
	}
	return m
}

// rounder rounds to 1e-12, so that 0.3-0.1 and 0.2 are the same difference and
// a constant gain has no variance. For scores beyond 1 the step grows with the
// power of ten that holds the largest of them: a double has no twelfth decimal
// of a million.
func rounder(largest float64) func(float64) float64 {
	perUnit := 1e12
	for reach := 1.0; reach < largest; reach *= 10 {
		perUnit /= 10
	}
	return func(x float64) float64 { return math.Round(x*perUnit) / perUnit }
}

// differences returns candidate minus baseline for each row, rounded.
func differences(base, cand []float64) []float64 {
	round := rounder(largest(base, cand))
	d := make([]float64, len(base))
	for i := range base {
		d[i] = round(cand[i] - base[i])
	}
	return d
}

// signs counts the values above, below and at zero.
func signs(d []float64) (above, below, zero int) {
	for _, x := range d {
		switch {
		case x > 0:
			above++
		case x < 0:
			below++
		default:
			zero++
		}
	}
	return above, below, zero
}
