package stats

import "math"

// contractZ is the contract's normal constant. It is not the 0.975 quantile,
// which has more digits, and must not be replaced by it.
const contractZ = 1.959964

// contractTable is the contract's Student table for 1 to 30 degrees of
// freedom. Three decimals are all there is: a library's quantile differs by up
// to 2.3e-4 and fails the recorded cases.
var contractTable = [...]float64{
	12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
	2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
	2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
}

// contractT is the contract's Student factor: the table, then the first two
// terms of the Cornish-Fisher series (Fisher and Cornish 1960). There is a
// small step between 30 and 31; it belongs to the contract.
func contractT(df int) float64 {
	if df <= len(contractTable) {
		return contractTable[df-1]
	}
	const (
		z  = contractZ
		z3 = z * z * z
		z5 = z3 * z * z
	)
	v := float64(df)
	return z + (z3+z)/(4*v) + (5*z5+16*z3+3*z)/(96*v*v)
}

// Interval is the contract's view of one candidate: the mean score and its
// range of about 95 %, in the units of the score.
type Interval struct {
	N      int    `json:"n"`      // rows
	Mean   Opt    `json:"mean"`   // absent without rows
	Low    Opt    `json:"low"`    // absent under two rows
	High   Opt    `json:"high"`   // absent under two rows
	Method string `json:"method"` // "wilson", "student-t", or "none" without a range
}

// Range returns the contract's range of the mean of scores, one a row, 0 for a
// row that failed.
//
// Without rows nothing is known, with one row only the mean. If every score is
// 0 or 1 the range is Wilson's (1927), within [0, 1] and exactly 0 or 1 at
// the end that was always seen. Otherwise it is Student's (1908), mean ±
// t·sd/√n with n-1 in sd, which may pass the ends of the scale; both with the
// contract's constants.
//
// A score that is not finite, or beyond ±1e100, is an error.
func Range(scores []float64) (Interval, error) {
	if err := checkScores("candidate", scores); err != nil {
		return Interval{}, err
	}
	n := len(scores)
	r := Interval{N: n, Method: none}
	if n == 0 {
		return r, nil
	}
	mean, sd := moments(scores)
	r.Mean = some(mean)
	if n == 1 {
		return r, nil
	}
	if AllBinary(scores) {
		k := ones(scores)
		low, high := wilson(k, n, contractZ)
		r.Method, r.Mean, r.Low, r.High = "wilson", some(float64(k)/float64(n)), some(low), some(high)
		return r, nil
	}
	half := contractT(n-1) * sd / math.Sqrt(float64(n))
	r.Method, r.Low, r.High = "student-t", some(mean-half), some(mean+half)
	return r, nil
}

// Difference is the contract's view of two candidates on the same rows, in the
// units of the score. Diff is the mean of after minus before, Low and High its
// range of about 95 %.
type Difference struct {
	N      int `json:"n"`      // rows
	Diff   Opt `json:"diff"`   // absent without rows
	Low    Opt `json:"low"`    // absent under two rows
	High   Opt `json:"high"`   // absent under two rows
	Better int `json:"better"` // rows with a higher score after
	Worse  int `json:"worse"`  // rows with a lower score after
	Same   int `json:"same"`   // rows with exactly the same score
}

// Compare returns the contract's comparison of two candidates' scores on the
// same rows in the same order, 0 for a row that failed.
//
// The range is Student's on the differences for scores of every kind, with the
// contract's constants. It has no width when all differences are equal, and is
// too narrow for 0/1 scores of which few changed; [Paired] is there for that.
// Better, Worse and Same compare the scores exactly, without rounding.
//
// Samples of different length, and scores that are not finite or beyond
// ±1e100, are errors.
func Compare(before, after []float64) (Difference, error) {
	if err := checkPair(before, after); err != nil {
		return Difference{}, err
	}
	n := len(before)
	c := Difference{N: n}
	if n == 0 {
		return c, nil
	}
	d := make([]float64, n)
	for i := range d {
		d[i] = after[i] - before[i]
	}
	c.Better, c.Worse, c.Same = signs(d)
	mean, sd := moments(d)
	c.Diff = some(mean)
	if n > 1 {
		half := contractT(n-1) * sd / math.Sqrt(float64(n))
		c.Low, c.High = some(mean-half), some(mean+half)
	}
	return c, nil
}
