package stats

import (
	"math"
	"math/rand/v2"
)

// A signForm holds numbers to be added with signs: of each eight of them the
// sums of all 256 patterns, so that a sum of many takes an addition for eight.
type signForm [][]float64

func newSignForm(numbers []float64) signForm {
	const together = 8
	var f signForm
	for len(numbers) > 0 {
		k := min(together, len(numbers))
		sums := signSums(numbers[:k])
		for len(sums) < 1<<together { // a short rest: what its bits beyond say does not matter
			sums = append(sums, sums...)
		}
		f = append(f, sums)
		numbers = numbers[k:]
	}
	return f
}

// at adds the numbers under a pattern, of which bit i%8 of byte i/8 says that
// number i keeps its sign.
func (f signForm) at(pattern []byte) float64 {
	s := 0.0
	for i, sums := range f {
		s += sums[pattern[i]]
	}
	return s
}

// observedPattern keeps every sign.
func observedPattern(units int) []byte {
	pattern := make([]byte, (units+7)/8)
	for i := range pattern {
		pattern[i] = 0xff
	}
	return pattern
}

// eachSignPattern visits all sign patterns of up to 20 units, else 9,999 drawn
// from the seed, each from a stream of its own.
func eachSignPattern(units int, seed uint64, visit func(pattern []byte)) {
	pattern := make([]byte, (units+7)/8)
	if units <= maxEnumerated {
		for bits := range uint64(1) << units {
			for i := range pattern {
				pattern[i] = byte(bits >> (8 * i))
			}
			visit(pattern)
		}
		return
	}
	var stream rand.PCG
	for draw := range uint64(signDraws) {
		stream.Seed(seed, (draw+1)*0x9e3779b97f4a7c15)
		for i := 0; i < len(pattern); i += 8 {
			bits := stream.Uint64()
			for j := i; j < min(i+8, len(pattern)); j++ {
				pattern[j] = byte(bits)
				bits >>= 8
			}
		}
		visit(pattern)
	}
}

// signShare turns the number of patterns that went at least as far as the
// observed one into a p-value.
func signShare(exceedances, units int) float64 {
	if units <= maxEnumerated {
		return math.Ldexp(float64(exceedances), -units)
	}
	return monteCarloP(exceedances, signDraws)
}

// signMethod names a test by sign patterns.
func signMethod(name string, units int) string {
	if units > maxEnumerated {
		return name + "-sampled"
	}
	return name
}

// A flipT is the squared t statistic of a mean of clusters whose sums get other
// signs. With m the mean under a pattern and u_g the weight of a cluster, its
// variance is proportional to
//
//	Σ u_g·(s_g·T_g - n_g·m)² = Σ u_g·T_g² - 2m·Σ s_g·u_g·n_g·T_g + m²·Σ u_g·n_g²
//
// and only two of these sums change with the pattern.
type flipT struct {
	total, levered        signForm
	squares, sizes, reach float64
	rows                  float64
}

// newFlipT takes the clusters' sums and a weight for each. moved lists the
// clusters that patterns are for, in their order: those left out have sum 0.
func newFlipT(g grouped, sums []float64, moved []int, weight func(k int) float64) flipT {
	f := flipT{rows: float64(g.rows)}
	for k, n := range g.sizes {
		f.squares += weight(k) * sums[k] * sums[k]
		f.sizes += weight(k) * n * n
		f.reach += math.Abs(sums[k])
	}
	var total, levered []float64
	for _, k := range moved {
		total = append(total, sums[k])
		levered = append(levered, weight(k)*g.sizes[k]*sums[k])
	}
	f.total, f.levered = newSignForm(total), newSignForm(levered)
	return f
}

// squared is t² but for a constant factor; infinite where nothing varies about
// a mean that is not 0.
func (f flipT) squared(pattern []byte) float64 {
	const tiny = 1e-12
	total := f.total.at(pattern)
	m := total / f.rows
	variance := f.squares - 2*m*f.levered.at(pattern) + m*m*f.sizes
	switch {
	case math.Abs(total) <= tiny*f.reach:
		return 0
	case variance <= tiny*f.squares:
		return math.Inf(1)
	}
	return total * total / variance
}

// movedClusters lists the clusters in which some sample has a sum other than 0.
// The others have no sign to flip.
func movedClusters(count int, samples ...[]float64) []int {
	var moved []int
	for k := range count {
		for _, sums := range samples {
			if sums[k] != 0 {
				moved = append(moved, k)
				break
			}
		}
	}
	return moved
}

// notBelow reports whether a value ties with the observed one or lies above it,
// past what rounding does.
func notBelow(value, observed float64) bool { return value >= observed*(1-1e-9) }
