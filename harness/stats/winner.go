package stats

import (
	"fmt"
	"math"
)

// Winner is the best of several candidates with its mean freed of what choosing
// the best adds to it.
type Winner struct {
	Method    string    `json:"method"` // "optimism", "optimism-sampled", or "none" without rows
	Winner    int       `json:"winner"` // the candidate with the highest mean; of several, the first
	Mean      Opt       `json:"mean"`   // its plain mean, too high
	Optimism  Opt       `json:"optimism"`
	Corrected Opt       `json:"corrected"` // Mean less Optimism
	WinShare  []float64 `json:"win_share"` // of resamples, that each candidate wins
}

// WinnerOptimism corrects the mean of the best candidate, chosen on the same
// rows, for its being chosen: optimism is the mean over resamples of rows,
// shared by all candidates, of what the resample's winner scores there above
// what it scores on all rows. It is the estimate to give when no rows can be
// held out; held-out rows are better, and give a range, which this does not.
// scores[j][i] is candidate j on row i; clusters names the cluster of each row,
// nil if every row stands alone. All resamples of up to five clusters are
// taken, else 9,999 drawn from Seed.
//
// No candidates, rows of different number, and what is an error for
// [ClusterMean] are errors.
func WinnerOptimism(scores [][]float64, clusters []string, o Options) (Winner, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Winner{}, err
	}
	g, samples, err := manySamples("correcting the winner", scores, clusters)
	if err != nil {
		return Winner{}, err
	}
	w := Winner{Method: none, WinShare: make([]float64, len(samples))}
	if g.rows == 0 {
		return w, nil
	}
	round := rounder(largest(samples...))
	means, sums := make([]float64, len(samples)), make([][]float64, len(samples))
	for c, sample := range samples {
		mean, _ := moments(sample)
		means[c], sums[c] = mean, g.sums(sample)
	}
	w.Winner = best(means, round)
	var optimism sum
	resamples, drawn := 0.0, make([]float64, len(samples))
	eachResample(g.count(), o.Seed, func(times []float64) {
		for c := range drawn {
			drawn[c] = weightedMean(times, sums[c], g.sizes)
		}
		chosen := best(drawn, round)
		optimism.add(drawn[chosen] - means[chosen])
		w.WinShare[chosen]++
		resamples++
	})
	for c := range w.WinShare {
		w.WinShare[c] /= resamples
	}
	excess := optimism.value() / resamples
	w.Method = resampled("optimism", g.count())
	w.Mean, w.Optimism, w.Corrected = some(means[w.Winner]), some(excess), some(means[w.Winner]-excess)
	return w, nil
}

// best is the first of those with the highest value, past rounding.
func best(values []float64, round func(float64) float64) int {
	at := 0
	for c, v := range values {
		if round(v) > round(values[at]) {
			at = c
		}
	}
	return at
}

// ConditionalWinner is the best of several estimates and what its true value
// is, given that it came out best.
type ConditionalWinner struct {
	Statistic     // Value is the estimate that is right in the median
	Winner    int `json:"winner"`
	Above     Opt `json:"above"` // the winner won as long as its estimate was above this
	Below     Opt `json:"below"` // and below this; absent if there is no limit
}

// WinnerConditional returns the range of the winner's true value given that it
// won, method "conditional" (Andrews, Kitagawa and McCloskey 2024). estimates
// are normal with this covariance; [MaxT]'s candidates on the same rows covary.
// The winner's estimate y is a normal value cut to (Above, Below), where Above
// is the largest of Z_j·Σ_ww/(Σ_ww-Σ_jw) over candidates with Σ_jw < Σ_ww,
// Below the smallest over those with Σ_jw > Σ_ww, and Z_j = y_j - y·Σ_jw/Σ_ww.
// Value and the limits are the true values at which a value as high as y has
// probability 1/2, Alpha/2 and 1-Alpha/2.
//
// It is the one when the winner was chosen on these rows and a range must hold:
// correct for any number of candidates, but in a close race it runs far down,
// and in a tie there is none. Held-out rows do better.
//
// No estimates, estimates that are not finite, and a covariance that is not
// square, not symmetric or without variance for the winner are errors.
func WinnerConditional(estimates []float64, covariance [][]float64, o Options) (ConditionalWinner, error) {
	o, err := o.withDefaults()
	if err != nil {
		return ConditionalWinner{}, err
	}
	if err := checkCovariance(estimates, covariance); err != nil {
		return ConditionalWinner{}, err
	}
	w := best(estimates, func(x float64) float64 { return x })
	variance := covariance[w][w]
	if err := checkSpread("correcting the winner", "variance of the winner,", []float64{variance}, nil); err != nil {
		return ConditionalWinner{}, err
	}
	cut := cutNormal{y: estimates[w], sd: math.Sqrt(variance), above: math.Inf(-1), below: math.Inf(1)}
	for j, x := range estimates {
		shared := covariance[j][w]
		limit := (x*variance - cut.y*shared) / (variance - shared)
		switch {
		case j == w || shared == variance:
		case shared < variance:
			cut.above = max(cut.above, min(limit, cut.y)) // rounding may put a tie past y
		default:
			cut.below = min(cut.below, max(limit, cut.y))
		}
	}
	c := ConditionalWinner{Winner: w, Above: some(cut.above), Below: some(cut.below)}
	c.Method, c.SE = "conditional", some(cut.sd)
	c.Value, c.Low, c.High = cut.mean(0.5), cut.mean(o.Alpha/2), cut.mean(1-o.Alpha/2)
	if c.Low.IsZero() {
		warn(&c.Warnings, "the race is too close: that this one won says nothing about how low it is; choose on some rows and measure on others")
	}
	return c, nil
}

func checkCovariance(estimates []float64, covariance [][]float64) error {
	const doing = "correcting the winner"
	if len(estimates) == 0 {
		return fmt.Errorf("%s: there are no estimates: give at least one", doing)
	}
	if err := checkNumbers(doing, "estimate", estimates); err != nil {
		return err
	}
	if len(covariance) != len(estimates) {
		return fmt.Errorf("%s: a covariance of %d rows for %d estimates: give a square one", doing, len(covariance), len(estimates))
	}
	for j, row := range covariance {
		if len(row) != len(estimates) {
			return fmt.Errorf("%s: row %d of the covariance has %d numbers for %d estimates: give a square one", doing, j, len(row), len(estimates))
		}
		if err := checkNumbers(doing, fmt.Sprintf("row %d of the covariance, number", j), row); err != nil {
			return err
		}
		for k := range j {
			if math.Abs(row[k]-covariance[k][j]) > 1e-9*math.Abs(row[k]) {
				return fmt.Errorf("%s: the covariance of %d and %d is %v one way and %v the other: give a symmetric one", doing, j, k, row[k], covariance[k][j])
			}
			if limit := math.Sqrt(max(0, row[j])) * math.Sqrt(max(0, covariance[k][k])); math.Abs(row[k]) > limit*(1+1e-9) {
				return fmt.Errorf("%s: the covariance of %d and %d is %v, and their variances allow at most %v: give variances and covariances of the same estimates", doing, j, k, row[k], limit)
			}
		}
	}
	return nil
}

// A cutNormal is a normal value y known to lie between two limits.
type cutNormal struct{ y, sd, above, below float64 }

// exceeds is the probability of a value above y if the normal has this mean. It
// grows with the mean.
func (c cutNormal) exceeds(mean float64) float64 {
	at := func(x float64) float64 { return (x - mean) / c.sd }
	if near := at(c.above); near > farOut && math.IsInf(c.below, 1) {
		// As one difference: two logs of so small a probability would leave
		// no digits.
		gap := (c.y - c.above) / c.sd
		return math.Exp(-gap*(near+gap/2) + logMills(near+gap) - logMills(near))
	}
	return math.Exp(logBetween(at(c.y), at(c.below)) - logBetween(at(c.above), at(c.below)))
}

// mean finds the mean at which exceeds is p; absent if none within 10^15
// standard deviations does.
func (c cutNormal) mean(p float64) Opt {
	if c.y == c.above || c.y == c.below { // it exceeds always, or never, whatever the mean
		return Opt{}
	}
	low, high := c.y-c.sd, c.y+c.sd
	for reach := c.sd; c.exceeds(low) > p; low = c.y - reach {
		if reach *= 2; reach > 1e15*c.sd {
			return Opt{}
		}
	}
	for reach := c.sd; c.exceeds(high) < p; high = c.y + reach {
		if reach *= 2; reach > 1e15*c.sd {
			return Opt{}
		}
	}
	for {
		mid := low + (high-low)/2
		if mid <= low || mid >= high {
			return some(mid)
		}
		if c.exceeds(mid) < p {
			low = mid
		} else {
			high = mid
		}
	}
}

// logBetween is the log of the probability that a standard normal value lies
// between a and b, a < b, from the tail on whose side they lie: also far out,
// where the probability itself is 0 to a double.
func logBetween(a, b float64) float64 {
	if a < 0 && b > 0 {
		return math.Log1p(-(math.Exp(logAbove(-a)) + math.Exp(logAbove(b))))
	}
	if b <= 0 {
		a, b = -b, -a
	}
	near, far := logAbove(a), logAbove(b)
	return near + math.Log(-math.Expm1(far-near))
}

// farOut is where the series of [logMills] has all digits of a double.
const farOut = 30

// logAbove is the log of the probability that a standard normal value lies
// above z >= 0.
func logAbove(z float64) float64 {
	switch {
	case math.IsInf(z, 1):
		return math.Inf(-1)
	case z < farOut:
		return math.Log(math.Erfc(z/math.Sqrt2) / 2)
	}
	return logMills(z) - z*z/2
}

// logMills is the log of the probability above z over exp(-z²/2), for z from
// farOut on, by Laplace's series.
func logMills(z float64) float64 {
	i := 1 / (z * z)
	return math.Log1p(-i*(1-3*i*(1-5*i*(1-7*i)))) - math.Log(z*math.Sqrt(2*math.Pi))
}
