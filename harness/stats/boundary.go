package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mathext"
)

// MixtureBoundary returns how far a sum of scores can stray from its
// expectation, on either side and at any time, with chance 1-Alpha:
// √((V+ρ)·(log(1+V/ρ) + 2·log(1/Alpha))) with ρ = best/(2·log(1/Alpha) +
// log(1+2·log(1/Alpha))), the normal mixture (Robbins 1970; Howard, Ramdas,
// McAuliffe and Sekhon 2021). V is the sum of the scores' variance proxies, 1/4
// for each score from 0 to 1 whatever its variance. It is tightest where V is
// near best: the one for a planned number of rows that may be cut short, when
// only sums are at hand. From the scores themselves [HedgedCapital] is
// narrower. Divide by the rows for the mean.
//
// A variance outside 0 to 1e100, a best outside 1e-100 to 1e100, and options
// without meaning are errors.
func MixtureBoundary(variance, best float64, o Options) (float64, error) {
	o, err := o.withDefaults()
	if err != nil {
		return 0, err
	}
	if err := checkBoundary(variance, "best variance", best); err != nil {
		return 0, err
	}
	rho := mixtureRho(best, o.Alpha)
	return math.Sqrt((variance + rho) * (math.Log1p(variance/rho) - 2*math.Log(o.Alpha))), nil
}

func mixtureRho(best, alpha float64) float64 {
	twice := -2 * math.Log(alpha)
	return best / (twice + math.Log1p(twice))
}

// StitchedBoundary returns how far a sum of scores can rise above its
// expectation, at any time, with chance 1-Alpha: the polynomial stitched
// boundary (Howard and others 2021, equation 10; as the confseq package has it)
//
//	√(k1²·V·ℓ + k2²·c²·ℓ²) + k2·c·ℓ,  ℓ = s·log log(η·V/least) + log(ζ(s)/log(η)^s) + log(1/Alpha),
//	k1 = (η^¼ + η^-¼)/√2,  k2 = (√η + 1)/2,  s = 1.4,  η = 2
//
// It grows slowest of all with V, counted as least until it is more. It is the
// one for runs without a planned end, such as watching a score from week to
// week; for a planned end take [MixtureBoundary]. It is one-sided: take half of
// Alpha for each of two sides. scale is c, 0 where V bounds the sums as that of
// a normal would, as with 1/4 a score, and the range of the scores where V is
// their true variance (sub-exponential).
//
// A variance or scale outside 0 to 1e100, a least outside 1e-100 to 1e100, and
// options without meaning are errors.
func StitchedBoundary(variance, least, scale float64, o Options) (float64, error) {
	o, err := o.withDefaults()
	if err != nil {
		return 0, err
	}
	if err := checkBoundary(variance, "least variance", least); err != nil {
		return 0, err
	}
	if !(scale >= 0 && scale <= maxScore) {
		return 0, fmt.Errorf("bounding a sum at any time: scale is %v: give a number from 0 to 1e100", scale)
	}
	const s, eta = 1.4, 2
	v := max(variance, least)
	k1 := (math.Pow(eta, 0.25) + math.Pow(eta, -0.25)) / math.Sqrt2
	k2 := (math.Sqrt(eta) + 1) / 2
	l := s*math.Log(math.Log(eta*(v/least))) + math.Log(mathext.Zeta(s, 1)/math.Pow(math.Ln2, s)) - math.Log(o.Alpha)
	linear := k2 * scale * l
	return math.Hypot(k1*math.Sqrt(v*l), linear) + linear, nil
}

func checkBoundary(variance float64, what string, positive float64) error {
	const doing = "bounding a sum at any time"
	if !(variance >= 0 && variance <= maxScore) {
		return fmt.Errorf("%s: variance is %v: give a number from 0 to 1e100", doing, variance)
	}
	if !(positive >= 1/maxScore && positive <= maxScore) {
		return fmt.Errorf("%s: %s is %v: give a number from 1e-100 to 1e100", doing, what, positive)
	}
	return nil
}
