package stats

import (
	"math"
	"math/rand/v2"
)

const (
	// maxEnumerated is the number of non-zero differences up to which every
	// sign pattern is tried: a million of them.
	maxEnumerated = 20

	// signDraws is the number of patterns drawn beyond that. With 9,999 the
	// p-value is a multiple of 1/10,000.
	signDraws = 9999
)

// signFlip tests whether differences are symmetric about 0 (Fisher 1935,
// Pitman 1937): with no true difference each could as well have had the other
// sign. p is the share of sign patterns whose sum lies at least as far from 0
// as the observed one. Zeros do not matter. method names whether all patterns
// were tried.
func signFlip(d []float64, seed uint64) (method string, p float64) {
	var moved []float64
	for _, x := range d {
		if x != 0 {
			moved = append(moved, x)
		}
	}
	if len(moved) <= maxEnumerated {
		p, _ = signFlipAll(moved)
		return "sign-flip", p
	}
	return "sign-flip-sampled", monteCarloP(signFlipExceedances(moved, signDraws, seed), signDraws)
}

// observedSum returns the sum of d and the slack to compare other sums with
// it. The slack keeps patterns that tie in exact arithmetic from being missed
// by a last digit: 1/3+1/3 against 2/3.
func observedSum(d []float64) (observed, slack float64) {
	var s, reach sum
	for _, x := range d {
		s.add(x)
		reach.add(math.Abs(x))
	}
	return s.value(), 1e-9 * reach.value()
}

// signFlipAll tries all patterns of d. greater is the one-sided p, for a sum
// at least as large.
func signFlipAll(d []float64) (twoSided, greater float64) {
	observed, slack := observedSum(d)
	// The sums of each half, then all pairs of them: two additions a pattern
	// at most, and no error that grows along the way.
	left, right := signSums(d[:len(d)/2]), signSums(d[len(d)/2:])
	far, above := 0, 0
	for _, a := range left {
		for _, b := range right {
			s := a + b
			if math.Abs(s) >= math.Abs(observed)-slack {
				far++
			}
			if s >= observed-slack {
				above++
			}
		}
	}
	all := float64(len(left) * len(right))
	return float64(far) / all, float64(above) / all
}

// signSums returns the sums of d under all 2^len(d) sign patterns; bit i of the
// index says that d[i] keeps its sign.
func signSums(d []float64) []float64 {
	sums := make([]float64, 1, 1<<len(d))
	for _, x := range d {
		n := len(sums)
		for i := range n {
			sums = append(sums, sums[i]+x)
			sums[i] -= x
		}
	}
	return sums
}

// signFlipExceedances draws sign patterns of d and counts those whose sum lies
// at least as far from 0 as the observed one.
//
// Each draw has a stream of its own, made of the seed and its number, so that
// no draw depends on which were made before it. Sums of four differences at a
// time are looked up: one addition in place of four.
func signFlipExceedances(d []float64, draws int, seed uint64) int {
	const together = 4
	observed, slack := observedSum(d)
	var sums []float64 // of each four, its 16 sums
	for len(d) > 0 {
		k := min(together, len(d))
		four := signSums(d[:k])
		for len(four) < 1<<together { // a short rest: repeat, so that every bit pattern is as likely
			four = append(four, four...)
		}
		sums = append(sums, four...)
		d = d[k:]
	}
	far := math.Abs(observed) - slack
	var stream rand.PCG
	exceedances := 0
	for draw := range uint64(draws) {
		// Spread over all bits, since neighbouring seeds give related streams.
		stream.Seed(seed, (draw+1)*0x9e3779b97f4a7c15)
		s, bits, left := 0.0, uint64(0), 0
		for i := 0; i < len(sums); i += 1 << together {
			if left == 0 {
				bits, left = stream.Uint64(), 64
			}
			s += sums[i+int(bits&(1<<together-1))]
			bits >>= together
			left -= together
		}
		if math.Abs(s) >= far {
			exceedances++
		}
	}
	return exceedances
}

// monteCarloP is the p-value of a sampled test (Phipson and Smyth 2010): the
// observed pattern counts as one of the draws, so that p is never 0.
func monteCarloP(exceedances, draws int) float64 {
	return float64(1+exceedances) / float64(draws+1)
}
