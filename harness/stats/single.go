package stats

import (
	"fmt"
	"math"
)

// fewRows is the number of rows under which every range is called rough.
const fewRows = 20

// Estimate is the added layer's view of one candidate, in the units of the
// score.
type Estimate struct {
	Method   string   `json:"method"` // "wilson", "student-t", or "none" without a range
	Mean     Opt      `json:"mean"`   // absent without rows
	Low      Opt      `json:"low"`    // absent under two rows
	High     Opt      `json:"high"`   // absent under two rows
	Units    int      `json:"units"`  // independent units: rows
	DF       Opt      `json:"df,omitzero"`
	Warnings []string `json:"warnings,omitempty"`
}

// Single returns the range of one candidate's mean score, covering 1-Alpha
// with exact quantiles: Wilson's (1927) if Binary is stated, else Student's
// (1908). scores holds one score a row, 0 for a row that failed.
//
// Scores that are not finite or beyond ±1e100, Binary stated of other scores,
// and options without meaning are errors. Too few rows are not: they give
// what is known, and a warning.
func Single(scores []float64, o Options) (Estimate, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Estimate{}, err
	}
	if err := checkScores("candidate", scores); err != nil {
		return Estimate{}, err
	}
	if err := checkBinary("candidate", scores, o); err != nil {
		return Estimate{}, err
	}
	n := len(scores)
	e := Estimate{Method: none, Units: n}
	warnRows(&e.Warnings, n)
	if n == 0 {
		return e, nil
	}
	if !o.Binary && n > 1 && AllBinary(scores) {
		warn(&e.Warnings, "every score is 0 or 1: state that the metric is binary to get a range that does not collapse")
	}
	if o.Binary {
		k := ones(scores)
		e.Mean = some(float64(k) / float64(n))
		if n > 1 {
			low, high := wilson(k, n, o.zAlpha())
			e.Method, e.Low, e.High = "wilson", some(low), some(high)
		}
		return e, nil
	}
	round := rounder(largest(scores))
	rounded := make([]float64, n)
	for i, x := range scores {
		rounded[i] = round(x)
	}
	m := meanOf(rounded)
	e.Mean = some(m.mean)
	if n > 1 {
		low, high := m.interval(1 - o.Alpha)
		e.Method, e.Low, e.High, e.DF = "student-t", some(low), some(high), some(m.df)
		if m.sd == 0 {
			warn(&e.Warnings, "all %d scores are equal: the range has no width and says nothing about other rows; add rows that vary", n)
		}
	}
	return e, nil
}

func warn(to *[]string, format string, args ...any) {
	*to = append(*to, fmt.Sprintf(format, args...))
}

// warnRows says what a small number of rows means for any result.
func warnRows(to *[]string, n int) {
	switch {
	case n == 0:
		warn(to, "no rows: check the filter and the source of the rows")
	case n == 1:
		warn(to, "one row has no range: add rows")
	case n < fewRows:
		warn(to, "only %d rows: take the range as a rough guide, or add rows (%d or more)", n, fewRows)
	}
}

// checkBinary refuses a statement that the scores contradict.
func checkBinary(whose string, scores []float64, o Options) error {
	if !o.Binary {
		return nil
	}
	for i, x := range scores {
		if x != 0 && x != 1 {
			return fmt.Errorf("reading %s scores: row %d has %v, but the metric was stated to be binary: leave Binary unset for scores other than 0 and 1", whose, i, x)
		}
	}
	return nil
}

// wilson returns the score range of k right of n rows, n > 0 (Wilson 1927):
// the rates that a normal test at z does not reject. Unlike mean ± z·se it
// keeps a width at 0 and n.
func wilson(k, n int, z float64) (low, high float64) {
	center, half := wilsonParts(k, n, z)
	low, high = max(0, center-half), min(1, center+half)
	// In exact arithmetic the ends are 0 and 1 here; make them so.
	if k == 0 {
		low = 0
	}
	if k == n {
		high = 1
	}
	return low, high
}

func wilsonParts(k, n int, z float64) (center, half float64) {
	rows := float64(n)
	p := float64(k) / rows
	d := 1 + z*z/rows
	center = (p + z*z/(2*rows)) / d
	half = z / d * math.Sqrt(p*(1-p)/rows+z*z/(4*rows*rows))
	return center, half
}

// meanT is a mean with what Student's method (1908) needs, exact quantiles.
type meanT struct {
	mean, sd, se float64
	df           float64
}

// meanOf needs at least one value; one alone has no spread.
func meanOf(xs []float64) meanT {
	mean, sd := moments(xs)
	n := float64(len(xs))
	return meanT{mean: mean, sd: sd, se: sd / math.Sqrt(n), df: n - 1}
}

// interval covers the given share of samples, two-sided; df must be positive.
func (m meanT) interval(confidence float64) (low, high float64) {
	half := studentQuantile((1+confidence)/2, m.df) * m.se
	return m.mean - half, m.mean + half
}

// test returns the t statistic and two-sided p of a true mean of 0. Without
// spread there is no t: values that are all 0 have p = 1, others none.
func (m meanT) test() (t, p Opt) {
	switch {
	case m.se > 0:
		t := m.mean / m.se
		return some(t), some(studentTwoSided(t, m.df))
	case m.mean == 0:
		return Opt{}, some(1)
	}
	return Opt{}, Opt{}
}

// ZeroEventsUpper returns the upper limit, one-sided at 1-Alpha, of the rate
// of something that was seen on none of so many rows: 1 - Alpha^(1/rows),
// about 3/rows at 95 % (Clopper and Pearson 1934; the "rule of three" of
// Hanley and Lippman-Hand 1983). No range of a mean can know of disasters that
// have not happened yet; this can.
//
// Fewer than one row, and options without meaning, are errors.
func ZeroEventsUpper(rows int, o Options) (float64, error) {
	o, err := o.withDefaults()
	if err != nil {
		return 0, err
	}
	if rows < 1 {
		return 0, fmt.Errorf("bounding the rate of an unseen event: %d rows: give at least 1", rows)
	}
	return zeroEventsUpper(rows, o.Alpha), nil
}

func zeroEventsUpper(rows int, alpha float64) float64 {
	return -math.Expm1(math.Log(alpha) / float64(rows))
}
