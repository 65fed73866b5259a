package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Radii say how far the mean of rows is from the true one at most, with chance
// 1-Alpha at this one number of rows, whatever the scores' distribution on
// their scale.
type Radii struct {
	Rows int `json:"rows"`

	// Hoeffding is √(log(2/Alpha)/(2n)) times the scale's width (Hoeffding
	// 1963). It does not know the variance: the shortest when that is as large
	// as can be.
	Hoeffding Opt `json:"hoeffding"`

	// Bernstein is √(2·V·log(3/Alpha)/n) + 3·R·log(3/Alpha)/n with the variance
	// V by n (Audibert, Munos and Szepesvári 2009), what races of that name
	// use.
	Bernstein Opt `json:"bernstein"`

	// Sample is √(2·s²·log(4/Alpha)/n) + 7·R·log(4/Alpha)/(3(n-1)) with the
	// variance s² by n-1 (Maurer and Pontil 2009, both sides). Absent under two
	// rows.
	Sample Opt `json:"sample"`
}

// Deviation returns the radii for races that drop a candidate when its upper
// limit is below the best one's lower: give it differences to the leader, whose
// variance is small, and an Alpha divided by all candidates and looks. It is
// the one where a race has to keep a promise; under some hundreds of rows it
// drops next to nothing. To choose what to run next, without a promise, drop by
// [Paired]; to claim something at a row that was not fixed ahead take
// [HedgedCapital].
//
// Scores outside the scale, and options without meaning are errors.
func Deviation(scores []float64, scale Scale, o Options) (Radii, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Radii{}, err
	}
	scale, err = scale.withDefaults()
	if err != nil {
		return Radii{}, err
	}
	for i, x := range scores {
		if !(x >= scale.Min && x <= scale.Max) {
			return Radii{}, fmt.Errorf("finding how far a mean deviates: row %d has %v: give scores from %v to %v, or state another scale", i, x, scale.Min, scale.Max)
		}
	}
	if len(scores) == 0 {
		return Radii{}, nil
	}
	_, sd := moments(scores)
	return radii(len(scores), sd*sd, scale.Max-scale.Min, o.Alpha), nil
}

// radii takes the variance by n-1.
func radii(rows int, variance, width, alpha float64) Radii {
	n := float64(rows)
	byN := variance * (n - 1) / n
	r := Radii{
		Rows:      rows,
		Hoeffding: some(width * math.Sqrt(math.Log(2/alpha)/(2*n))),
		Bernstein: some(math.Sqrt(2*byN*math.Log(3/alpha)/n) + 3*width*math.Log(3/alpha)/n),
	}
	if rows > 1 {
		r.Sample = some(math.Sqrt(2*variance*math.Log(4/alpha)/n) + 7*width*math.Log(4/alpha)/(3*(n-1)))
	}
	return r
}

// LUCBRadius returns how far LUCB holds the mean of a candidate that has had so
// many rows to be from the true one: √(log(5·m·t⁴/(4·Alpha))/(2·rows)), for
// scores from 0 to 1, with t the number of the round from 1 and m the
// candidates (Kalyanakrishnan, Tewari, Auer and Stone 2012). Each round gives
// one row to the best candidate so far and one to the challenger with the
// highest upper limit; it stops when the lower limit of the one is no more than
// ε below the upper of the other, and then the one is within ε of the best with
// chance 1-Alpha. It is the one where the k best are needed with that promise,
// and calls can be made one by one.
//
// Fewer than one row, round or candidate, and options without meaning are
// errors.
func LUCBRadius(rows, round, candidates int, o Options) (float64, error) {
	o, err := o.withDefaults()
	if err != nil {
		return 0, err
	}
	if rows < 1 || round < 1 || candidates < 1 {
		return 0, fmt.Errorf("finding LUCB's radius: %d rows in round %d with %d candidates: give at least 1 of each", rows, round, candidates)
	}
	log := math.Log(1.25) + math.Log(float64(candidates)) + 4*math.Log(float64(round)) - math.Log(o.Alpha)
	return math.Sqrt(log / (2 * float64(rows))), nil
}

// Beta is what is believed of a rate after some 0/1 scores: A is those right
// and B those wrong, each with what was believed before, 1/2 or 1.
type Beta struct{ A, B float64 }

// maxBeta and minBeta bound what a Beta may have, for its tails to be numbers.
const (
	minBeta = 0.01
	maxBeta = 1e7
)

// ProbGreater returns the probability that the first rate is larger than the
// second. It is the one for deciding whom to give the next rows (Thompson
// sampling does so by drawing), and for saying "probably better" of two
// candidates that were run on different rows. On the same rows it is too
// careful, as it does not know that both fail on the hard ones: take [Paired].
// It is no p-value and keeps no level.
//
// Parameters outside 0.01 to 1e7 are errors.
func ProbGreater(first, second Beta) (float64, error) {
	for i, b := range []Beta{first, second} {
		if !(b.A >= minBeta && b.A <= maxBeta && b.B >= minBeta && b.B <= maxBeta) {
			return 0, fmt.Errorf("comparing rates: number %d is a beta of %v and %v: give numbers from 0.01 to 1e7", i, b.A, b.B)
		}
	}
	if first == second {
		return 0.5, nil
	}
	// The narrower density is followed, so that what it meets is smooth.
	if first.spread() <= second.spread() {
		return first.mean(second.below), nil
	}
	return 1 - second.mean(first.below), nil
}

// spread is about the standard deviation of the log-odds.
func (b Beta) spread() float64 { return math.Sqrt(1/b.A + 1/b.B) }

// below is the chance of a rate less than that with these log-odds.
func (b Beta) below(logOdds float64) float64 {
	if logOdds > 0 { // the smaller tail, which keeps its digits
		return 1 - mathext.RegIncBeta(b.B, b.A, 1/(1+math.Exp(logOdds)))
	}
	return mathext.RegIncBeta(b.A, b.B, 1/(1+math.Exp(-logOdds)))
}

// mean is the mean of f under b by the trapezoidal rule on the log-odds, where
// b's density is e^(A·y)/(1+e^y)^(A+B): smooth and with exponential tails, for
// which the rule is exact to all digits.
func (b Beta) mean(f func(logOdds float64) float64) float64 {
	peak := math.Log(b.A) - math.Log(b.B)
	log := func(y float64) float64 { // A·log(odds share) + B·log(the other share)
		return -b.A*log1pExp(-y) - b.B*log1pExp(y)
	}
	step, top := min(b.spread()/4, 0.25), log(peak)
	var total, weights sum
	follow := func(from int, direction float64) {
		for i := from; ; i++ {
			y := peak + direction*float64(i)*step
			weight := math.Exp(log(y) - top)
			total.add(weight * f(y))
			weights.add(weight)
			if weight < 1e-18 {
				return
			}
		}
	}
	follow(0, 1)
	follow(1, -1)
	return min(1, total.value()/weights.value())
}

// log1pExp is log(1+e^y) without overflow.
func log1pExp(y float64) float64 { return max(0, y) + math.Log1p(math.Exp(-math.Abs(y))) }
