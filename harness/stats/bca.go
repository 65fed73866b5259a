package stats

import (
	"fmt"
	"math"
	"slices"
)

// BCa returns the bias-corrected and accelerated bootstrap range (Efron 1987)
// of a statistic of the caller's, method "bca": the right one, from about 20
// units, for what is no mean, such as a median, an F-measure or a ratio. value
// is the statistic of all rows, replicates that of resamples of the rows with
// replacement (9,999 are enough), and leaveOneOut that of all rows but one, for
// each row in turn. When rows come in clusters, both draw and leave out whole
// clusters.
//
// With z0 the normal quantile of the share of replicates below value, half the
// ties counted, and a = Σ(m-x)³/(6·(Σ(m-x)²)^(3/2)) of leaveOneOut x about its
// mean m, the limits are the type 6 quantiles of the replicates at Φ(z0 +
// (z0±z)/(1 - a(z0±z))). Where value lies beyond all replicates or a is so
// large that the formula turns over, there is no range, and a warning.
//
// Fewer than two replicates or rows, values that are not finite or beyond
// ±1e100, and options without meaning are errors.
func BCa(value float64, replicates, leaveOneOut []float64, o Options) (Statistic, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Statistic{}, err
	}
	for _, list := range []struct {
		what    string
		numbers []float64
		atLeast int
	}{{"value", []float64{value}, 1}, {"replicate", replicates, 2}, {"value without one unit", leaveOneOut, 2}} {
		if err := checkNumbers("bootstrapping", list.what, list.numbers); err != nil {
			return Statistic{}, err
		}
		if len(list.numbers) < list.atLeast {
			return Statistic{}, fmt.Errorf("bootstrapping: there is no second %s: give at least %d", list.what, list.atLeast)
		}
	}
	s := Statistic{Method: none, Value: some(value), Rows: len(leaveOneOut), Units: len(leaveOneOut)}
	warnRows(&s.Warnings, s.Units)
	b, ok := newBCa(value, replicates, leaveOneOut, o.zAlpha())
	if !ok {
		warn(&s.Warnings, "the replicates lie to one side of the value: there is no bootstrap range; add rows that vary")
		return s, nil
	}
	s.Method, s.Low, s.High = "bca", some(b.low), some(b.high)
	return s, nil
}

// BCaMean returns the bootstrap range of a mean, method "bca" if the units had
// so few resamples that all were taken, "bca-sampled" if 9,999 were drawn from
// Seed. It is the option beside [Single] for scores that are skewed, from 20
// rows on; it is not for 0/1 scores, where it gains nothing and collapses.
// clusters names the cluster of each row, and whole clusters are drawn; nil
// says that every row stands alone. Where there is no such range it is that of
// [ClusterMean], method "cr2", with a warning.
//
// What is an error for [ClusterMean] is one here, but that clusters may be nil.
func BCaMean(scores []float64, clusters []string, o Options) (Statistic, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Statistic{}, err
	}
	if err := checkScores("candidate", scores); err != nil {
		return Statistic{}, err
	}
	g, err := group(clusters, len(scores))
	if err != nil {
		return Statistic{}, err
	}
	s := Statistic{Method: none, Rows: g.rows, Units: g.count()}
	warnRows(&s.Warnings, s.Rows)
	if g.rows == 0 {
		return s, nil
	}
	scores = rounded(scores)
	m := g.mean(scores)
	s.Value = some(m.mean)
	if g.count() < 2 {
		return s, nil
	}
	if AllBinary(scores) {
		warn(&s.Warnings, "every score is 0 or 1: the bootstrap gains nothing here and collapses near 0 and 1")
	}
	if b, ok := g.bcaMean(scores, m.mean, o); ok {
		s.Method, s.Low, s.High = resampled("bca", g.count()), some(b.low), some(b.high)
		return s, nil
	}
	warn(&s.Warnings, "the resamples lie to one side of the mean: the range is that of cr2")
	s.Method = "cr2"
	s.student(m.mean, math.Sqrt(m.cr2()), g.df(), o)
	return s, nil
}

func (g grouped) bcaMean(scores []float64, mean float64, o Options) (bca, bool) {
	sums := g.sums(scores)
	var replicates []float64
	eachResample(g.count(), o.Seed, func(times []float64) {
		replicates = append(replicates, weightedMean(times, sums, g.sizes))
	})
	var total sum
	for _, t := range sums {
		total.add(t)
	}
	without := make([]float64, g.count())
	for k, t := range sums {
		without[k] = (total.value() - t) / (float64(g.rows) - g.sizes[k])
	}
	return newBCa(mean, replicates, without, o.zAlpha())
}

// bca holds the steps of the method.
type bca struct {
	below        float64 // share of replicates below the value, half the ties
	bias         float64 // z0
	acceleration float64
	pLow, pHigh  float64 // where the limits lie among the replicates
	low, high    float64
}

// newBCa is false where there is no range.
func newBCa(value float64, replicates, leaveOneOut []float64, z float64) (bca, bool) {
	round := rounder(largest(replicates, []float64{value}))
	below := 0.0
	for _, x := range replicates { // rounded, else ties hang on the order of adding up
		switch d := round(x) - round(value); {
		case d < 0:
			below++
		case d == 0:
			below += 0.5
		}
	}
	b := bca{below: below / float64(len(replicates)), acceleration: acceleration(leaveOneOut)}
	if b.below == 0 || b.below == 1 {
		return b, false
	}
	b.bias = normalQuantile(b.below)
	var okLow, okHigh bool
	b.pLow, okLow = b.place(-z)
	b.pHigh, okHigh = b.place(z)
	if !okLow || !okHigh {
		return b, false
	}
	sorted := slices.Sorted(slices.Values(replicates))
	b.low, b.high = quantile6(sorted, b.pLow), quantile6(sorted, b.pHigh)
	return b, true
}

func (b bca) place(z float64) (p float64, ok bool) {
	stretch := 1 - b.acceleration*(b.bias+z)
	if stretch <= 0 {
		return 0, false
	}
	return normalBelow(b.bias + (b.bias+z)/stretch), true
}

// acceleration is 0 for values that are all equal.
func acceleration(leaveOneOut []float64) float64 {
	mean, _ := moments(leaveOneOut)
	most := 0.0
	for _, x := range leaveOneOut {
		most = max(most, math.Abs(mean-x))
	}
	if most == 0 {
		return 0
	}
	var squares, cubes sum
	for _, x := range leaveOneOut {
		d := (mean - x) / most // the scale cancels, and powers of it could overflow
		squares.add(d * d)
		cubes.add(d * d * d)
	}
	return cubes.value() / (6 * math.Pow(squares.value(), 1.5))
}

// normalBelow is the probability that a standard normal value lies below z.
func normalBelow(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
