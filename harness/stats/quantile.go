package stats

import (
	"math"

	// For the inverse of the incomplete beta function, and with it Student's
	// exact quantile: writing it well is harder than it looks, and gonum's was
	// found within 1e-13 of 40-digit values. Only mathext, not stat/distuv,
	// which would bring the linear algebra along.
	"gonum.org/v1/gonum/mathext"
)

// normalQuantile returns the z below which a standard normal value lies with
// probability p, 0 < p < 1.
func normalQuantile(p float64) float64 { return mathext.NormalQuantile(p) }

// studentQuantile returns the t below which a Student value with df degrees of
// freedom lies with probability p, 0 < p < 1. df may be fractional.
//
// t² = df(1-y)/y with y the beta quantile (Abramowitz and Stegun 1964, 26.5.27,
// 26.7.1). Past ten thousand degrees of freedom 1-y would lose digits; there,
// two terms of the series in 1/df (Fisher and Cornish 1960) leave less than
// 1e-10, and they do not wait for the inverse to converge.
func studentQuantile(p, df float64) float64 {
	switch {
	case p < 0.5:
		return -studentQuantile(1-p, df)
	case p == 0.5:
		return 0
	case df > 1e4:
		z := normalQuantile(p)
		z2 := z * z
		return z * (1 + (z2+1)/(4*df) + ((5*z2+16)*z2+3)/(96*df*df))
	}
	y := mathext.InvRegIncBeta(df/2, 0.5, 2*(1-p))
	return math.Sqrt(df * (1 - y) / y)
}

// studentTwoSided returns the probability that a Student value is at least as
// far from 0 as t.
func studentTwoSided(t, df float64) float64 {
	return mathext.RegIncBeta(df/2, 0.5, df/(df+t*t))
}
