package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Prior is what is known of a rate before looking at a slice: usually the rate
// of all rows, and how many rows that is worth.
type Prior struct {
	Mean float64 // between 0 and 1, neither of them
	Rows float64 // above 0; 10 draws small slices in and leaves large ones alone
}

// ShrinkRates draws the rates of slices towards a prior: (right +
// Rows·Mean)/(rows + Rows), with equal tails of the beta posterior for a range,
// method "beta-binomial". It is the one for 0/1 scores in slices so small that
// three of three would read as perfect. Show it beside the plain rate.
//
// Slices of different number, counts that are negative or more right than rows,
// a prior outside its bounds, and options without meaning are errors.
func ShrinkRates(right, rows []int, prior Prior, o Options) ([]Statistic, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if len(right) != len(rows) {
		return nil, fmt.Errorf("shrinking slices: %d counts of right rows for %d slices: give one for each", len(right), len(rows))
	}
	if !(prior.Mean > 0 && prior.Mean < 1 && prior.Rows > 0 && prior.Rows <= maxScore) {
		return nil, fmt.Errorf("shrinking slices: the prior is %+v: give a mean between 0 and 1 and a positive number of rows", prior)
	}
	slices := make([]Statistic, len(rows))
	for i, n := range rows {
		if right[i] < 0 || right[i] > n {
			return nil, fmt.Errorf("shrinking slices: slice %d has %d right of %d rows: give counts, of which the first is no larger", i, right[i], n)
		}
		a := float64(right[i]) + prior.Rows*prior.Mean
		b := float64(n-right[i]) + prior.Rows*(1-prior.Mean)
		slices[i] = Statistic{
			Method: "beta-binomial", Value: some(a / (a + b)), Rows: n, Units: n,
			Low:  some(mathext.InvRegIncBeta(a, b, o.Alpha/2)),
			High: some(1 - mathext.InvRegIncBeta(b, a, o.Alpha/2)),
		}
	}
	return slices, nil
}

// Shrunk holds the estimates of slices drawn towards what they have in common.
type Shrunk struct {
	Common    Opt         `json:"common"`    // μ; absent without slices
	Variance  Opt         `json:"variance"`  // τ², of the slices' true values
	Different Opt         `json:"different"` // Q: how far the slices differ, about their number less 1 if only by chance
	Weights   []float64   `json:"weights"`   // of each slice's own estimate; the rest is Common's
	Slices    []Statistic `json:"slices"`
}

// ShrinkSlices draws the estimates of slices towards their common mean, as far
// as their differences look like chance (DerSimonian and Laird 1986 for τ²,
// then empirical Bayes), method "dersimonian-laird": with w = 1/se² and Q = Σ
// w(y-ȳ_w)², τ² = max(0, (Q-(k-1))/(Σw - Σw²/Σw)), μ is the mean by weights
// 1/(se²+τ²), and each slice becomes μ + B(y-μ) with B = τ²/(τ²+se²) and
// standard error √B·se. It is the one for slices of scores of any kind and of
// differences to a baseline: sorted by it, the smallest slices do not fill both
// ends of the list. Where chance explains everything all slices become μ with a
// standard error of 0, which is a statement about the model and not certainty.
//
// Lists of different length, estimates that are not finite, and standard errors
// that are not positive are errors.
func ShrinkSlices(estimates, se []float64) (Shrunk, error) {
	if len(estimates) != len(se) {
		return Shrunk{}, fmt.Errorf("shrinking slices: %d standard errors for %d estimates: give one for each", len(se), len(estimates))
	}
	if err := checkNumbers("shrinking slices", "estimate", estimates); err != nil {
		return Shrunk{}, err
	}
	if err := checkSpread("shrinking slices", "standard error", se, estimates); err != nil {
		return Shrunk{}, err
	}
	if len(estimates) == 0 {
		return Shrunk{}, nil
	}
	// In units of the smallest standard error, of which squares stay finite.
	unit := se[0]
	for _, x := range se {
		unit = min(unit, x)
	}
	inverse := func(i int, tau2 float64) float64 { return 1 / (se[i]/unit*(se[i]/unit) + tau2) }
	mean := func(tau2 float64) float64 {
		var total, weights sum
		for i, y := range estimates {
			total.add(inverse(i, tau2) * y)
			weights.add(inverse(i, tau2))
		}
		return total.value() / weights.value()
	}
	var q, weights, others sum
	fixed := mean(0)
	for i, y := range estimates {
		w, off := inverse(i, 0), (y-fixed)/unit
		q.add(w * off * off)
		weights.add(w)
		for j := range estimates { // Σw - Σw²/Σw as Σ w_i·w_j/Σw, which one heavy slice does not cancel
			if j != i {
				others.add(w * inverse(j, 0))
			}
		}
	}
	tau2 := 0.0
	if k := float64(len(estimates)); k > 1 {
		tau2 = max(0, (q.value()-(k-1))*weights.value()/others.value())
	}
	common := mean(tau2)
	s := Shrunk{Common: some(common), Variance: some(tau2 * unit * unit), Different: some(q.value())}
	for i, y := range estimates {
		b := tau2 * inverse(i, tau2)
		s.Weights = append(s.Weights, b)
		s.Slices = append(s.Slices, Statistic{
			Method: "dersimonian-laird", Value: some(common + b*(y-common)), SE: some(math.Sqrt(b) * se[i]),
		})
	}
	return s, nil
}

// JamesStein draws estimates of equal precision towards their mean by one
// factor, max(0, 1 - (k-3)·se²/Σ(y-ȳ)²), and at most 1 (Efron and Morris 1975).
// se is that of a difference from the mean: for candidates on the same rows,
// the root of the mean variance less the mean covariance. It is for ordering
// candidates within a search, where it keeps a lucky one from leading by much;
// never announce its numbers, which are too high for the best of candidates
// that vary together. Three or fewer are left as they are.
//
// Estimates that are not finite and a standard error that is not positive are
// errors.
func JamesStein(estimates []float64, se float64) (shrunk []float64, factor float64, err error) {
	if err := checkNumbers("shrinking estimates", "estimate", estimates); err != nil {
		return nil, 0, err
	}
	if err := checkSpread("shrinking estimates", "standard error", []float64{se}, estimates); err != nil {
		return nil, 0, err
	}
	if len(estimates) == 0 {
		return nil, 1, nil
	}
	mean, _ := moments(estimates)
	var squares sum
	for _, y := range estimates {
		squares.add((y - mean) / se * ((y - mean) / se))
	}
	factor = 1
	if k := len(estimates); k > 3 {
		factor = 0
		if s := squares.value(); s > 0 {
			factor = max(0, 1-float64(k-3)/s)
		}
	}
	for _, y := range estimates {
		shrunk = append(shrunk, mean+factor*(y-mean))
	}
	return shrunk, factor, nil
}

// Normal is one part of a mixture of normal distributions.
type Normal struct{ Weight, Mean, Variance float64 }

// Tweedie returns the expected true value behind an estimate z of that
// variance, if true values are distributed as the prior: z + variance·(log
// f)'(z), f the distribution of estimates (Efron 2011). Like [JamesStein],
// which is the case of one normal part, it is for ordering within a search, and
// right only if estimates are nearly independent: use it where true values come
// in groups, as a few good prompts among many like the baseline. Weights need
// not add to 1.
//
// A prior without parts, weights and variances that are not positive (a part's
// may be 0), and numbers that are not finite are errors.
func Tweedie(z, variance float64, prior []Normal) (float64, error) {
	const doing = "finding an expected true value"
	if len(prior) == 0 {
		return 0, fmt.Errorf("%s: the prior has no parts: give at least one", doing)
	}
	values := []float64{z}
	for i, part := range prior {
		values = append(values, part.Mean)
		if !(part.Weight > 0 && part.Weight <= maxScore && part.Variance >= 0 && part.Variance <= maxScore) {
			return 0, fmt.Errorf("%s: part %d of the prior is %+v: give a positive weight, and a variance of at least 0", doing, i, part)
		}
	}
	if err := checkNumbers(doing, "the estimate and the parts' means, number", values); err != nil {
		return 0, err
	}
	if err := checkSpread(doing, "variance", []float64{variance}, values); err != nil {
		return 0, err
	}
	return z + variance*marginalScore(z, variance, prior), nil
}

// marginalScore is the slope of the log density of estimates at z. Parts are
// weighed by their log densities less the largest, lest all of them be 0 far
// out.
func marginalScore(z, variance float64, prior []Normal) float64 {
	logs := make([]float64, len(prior))
	most := math.Inf(-1)
	for i, part := range prior {
		v, off := part.Variance+variance, z-part.Mean
		logs[i] = math.Log(part.Weight) - math.Log(v)/2 - off/v*off/2
		most = max(most, logs[i])
	}
	var slope, density sum
	for i, part := range prior {
		weight := math.Exp(logs[i] - most)
		density.add(weight)
		slope.add(weight * (part.Mean - z) / (part.Variance + variance))
	}
	return slope.value() / density.value()
}
