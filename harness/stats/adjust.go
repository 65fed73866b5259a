package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Holm adjusts p-values so that, of all comparisons made, the chance that any
// one smaller than Alpha is a false alarm stays below Alpha, however they hang
// together (Holm 1979): in ascending order, the largest so far of (m-j+1)·p(j).
// It is the one when only p-values are at hand; from the scores,
// [WestfallYoung] finds more. Give the p-values of every comparison made, also
// of candidates that were dropped.
//
// A p outside [0, 1] is an error.
func Holm(p []float64) ([]float64, error) {
	order, err := ascending(p)
	if err != nil {
		return nil, err
	}
	adjusted := make([]float64, len(p))
	most := 0.0
	for j, i := range order {
		most = max(most, min(1, float64(len(p)-j)*p[i]))
		adjusted[i] = most
	}
	return adjusted, nil
}

// Sidak adjusts p-values each by itself, 1-(1-p)^m (Sidak 1967). It is the one
// where comparisons are on different rows and a p must not hang on what the
// others are; on the same rows take [Holm], which needs no independence.
//
// A p outside [0, 1] is an error.
func Sidak(p []float64) ([]float64, error) {
	if _, err := ascending(p); err != nil {
		return nil, err
	}
	adjusted := make([]float64, len(p))
	for i, x := range p {
		adjusted[i] = -math.Expm1(float64(len(p)) * math.Log1p(-x))
	}
	return adjusted, nil
}

// BenjaminiHochberg adjusts p-values so that, of those below a level, no more
// than that share are false alarms in the long run (Benjamini and Hochberg
// 1995): in descending order, the smallest so far of m·p(j)/j. It is for
// looking through slices, and what it finds is called exploratory; it does not
// say of any one that it is no false alarm. Slices that overlap in the same
// direction are fine.
//
// A p outside [0, 1] is an error.
func BenjaminiHochberg(p []float64) ([]float64, error) {
	return discoveries(p, 1)
}

// BenjaminiYekutieli is [BenjaminiHochberg] for comparisons that may hang
// together in any way, such as each candidate with each other: all of it times
// Σ 1/i for i up to m (Benjamini and Yekutieli 2001).
//
// A p outside [0, 1] is an error.
func BenjaminiYekutieli(p []float64) ([]float64, error) {
	factor := 0.0
	for i := range p {
		factor += 1 / float64(i+1)
	}
	return discoveries(p, factor)
}

func discoveries(p []float64, factor float64) ([]float64, error) {
	order, err := ascending(p)
	if err != nil {
		return nil, err
	}
	adjusted := make([]float64, len(p))
	least := 1.0
	for j, i := range slices.Backward(order) {
		least = min(least, factor*(float64(len(p))/float64(j+1))*p[i])
		adjusted[i] = least
	}
	return adjusted, nil
}

// ascending returns the places of the p-values in their order.
func ascending(p []float64) ([]int, error) {
	order := make([]int, len(p))
	for i, x := range p {
		if !(x >= 0 && x <= 1) {
			return nil, fmt.Errorf("adjusting p-values: number %d is %v: give numbers from 0 to 1", i, x)
		}
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	return order, nil
}
