package stats

import (
	"fmt"
	"math"
	"slices"
)

// Quantile returns the value below which a share p of values like these lies, 0
// <= p <= 1: h = (n+1)·p, linear between the values at the ranks about h and
// held at the ends (type 6 of Hyndman and Fan 1996). It is the one for latency
// and cost: the share of new values below it is p on average. The 0.99 of fewer
// than 99 values is their largest.
//
// No values, values that are not finite or beyond ±1e100, and p outside [0, 1]
// are errors.
func Quantile(values []float64, p float64) (float64, error) {
	if err := checkNumbers("finding a quantile", "value", values); err != nil {
		return 0, err
	}
	if len(values) == 0 {
		return 0, fmt.Errorf("finding a quantile: no values: give at least one")
	}
	if !(p >= 0 && p <= 1) {
		return 0, fmt.Errorf("finding a quantile: the share is %v: give a number from 0 to 1", p)
	}
	return quantile6(slices.Sorted(slices.Values(values)), p), nil
}

// quantile6 takes sorted values.
func quantile6(sorted []float64, p float64) float64 {
	n := len(sorted)
	h := float64(n+1) * p
	if near := math.Round(h); math.Abs(h-near) < 1e-9 { // 250 of 10,000, not 249.99…
		h = near
	}
	rank := math.Floor(h)
	switch {
	case rank < 1:
		return sorted[0]
	case int(rank) >= n:
		return sorted[n-1]
	}
	below, above := sorted[int(rank)-1], sorted[int(rank)]
	return below + (h-rank)*(above-below)
}

// Median returns the median of values, one a row, and its range between two of
// the values, method "order-statistic": the ranks k and n+1-k with the largest
// k for which 1 - 2·P(X <= k-1) >= 1-Alpha, X the heads of n tosses. It assumes
// nothing about how values are distributed, and so is the one for latency and
// cost, which have long tails. Too few values have no range: fewer than six at
// 95 %.
//
// Values that are not finite or beyond ±1e100, and options without meaning are
// errors.
func Median(values []float64, o Options) (Statistic, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Statistic{}, err
	}
	if err := checkNumbers("finding a median", "value", values); err != nil {
		return Statistic{}, err
	}
	n := len(values)
	s := Statistic{Method: none, Rows: n, Units: n}
	warnRows(&s.Warnings, n)
	if n == 0 {
		return s, nil
	}
	sorted := slices.Sorted(slices.Values(values))
	s.Value = some(quantile6(sorted, 0.5))
	if rank, _ := medianRank(n, o.Alpha); rank > 0 {
		s.Method, s.Low, s.High = "order-statistic", some(sorted[rank-1]), some(sorted[n-rank])
	}
	return s, nil
}

// medianRank returns the rank, counted from 1 at either end, of the values
// between which the median lies with at least 1-alpha, and with how much. 0 if
// even the outermost values are too close.
func medianRank(n int, alpha float64) (rank int, coverage float64) {
	covers := func(k int) float64 {
		tail, _ := coinTail(n, k-1)
		return 1 - 2*tail
	}
	low, high := 0, (n+1)/2+1 // low is enough, high is too much
	for high-low > 1 {
		if mid := (low + high) / 2; mid <= n/2 && covers(mid) >= 1-alpha-1e-12 {
			low = mid
		} else {
			high = mid
		}
	}
	if low == 0 {
		return 0, 0
	}
	return low, covers(low)
}
