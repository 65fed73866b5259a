package stats

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

// bootstrapDraws is the number of resamples drawn. With 9,999 the 0.025
// quantile is the 250th of them.
const bootstrapDraws = 9999

// resampled names a method by whether resamples were drawn: few units have so
// few of them that all are taken.
func resampled(name string, units int) string {
	if allResamples(units) {
		return name
	}
	return name + "-sampled"
}

// allResamples reports whether units^units resamples are few enough to take
// all.
func allResamples(units int) bool {
	return math.Pow(float64(units), float64(units)) <= bootstrapDraws
}

// eachResample visits resamples of the units with replacement (Efron 1979), as
// how often each was drawn: all of them where they are few, else 9,999 from the
// seed, each from a stream of its own, so that no resample depends on which
// were drawn before it. times is only lent.
func eachResample(units int, seed uint64, visit func(times []float64)) {
	times := make([]float64, units)
	if allResamples(units) {
		eachTuple(times, 0, visit)
		return
	}
	var stream rand.PCG
	for draw := range uint64(bootstrapDraws) {
		stream.Seed(seed, (draw+1)*0x9e3779b97f4a7c15)
		clear(times)
		for range units {
			k, _ := bits.Mul64(stream.Uint64(), uint64(units))
			times[k]++
		}
		visit(times)
	}
}

// eachTuple visits all ways to go on drawing after so many draws.
func eachTuple(times []float64, drawn int, visit func(times []float64)) {
	if drawn == len(times) {
		visit(times)
		return
	}
	for k := range times {
		times[k]++
		eachTuple(times, drawn+1, visit)
		times[k]--
	}
}

// weightedMean is the mean of a resample: of sums over sizes of the drawn
// units.
func weightedMean(times, sums, sizes []float64) float64 {
	total, rows := 0.0, 0.0
	for k, t := range times {
		total += t * sums[k]
		rows += t * sizes[k]
	}
	return total / rows
}
