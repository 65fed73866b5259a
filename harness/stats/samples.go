package stats

import (
	"fmt"
	"math"
)

// Stratum is a part of all rows of which some were drawn at random.
type Stratum struct {
	Population int       // how many rows it has in all
	Scores     []float64 // of the rows drawn, 0 for one that failed
}

// StratifiedMean returns the mean over all rows when rows were drawn from each
// of several parts by themselves (Cochran 1977), method "stratified": Σ W_h·ȳ_h
// with W_h the part's share of all rows, variance Σ W_h²·s_h²/n_h, and
// Satterthwaite's degrees of freedom. It is the one where rare rows were drawn
// more often than they occur: the plain mean would count them as often as they
// were drawn.
//
// A stratum of fewer than two scores or of fewer rows than were drawn, scores
// that are not finite or beyond ±1e100, no strata, and options without meaning
// are errors.
func StratifiedMean(strata []Stratum, o Options) (Statistic, error) {
	const doing = "weighting strata"
	o, err := o.withDefaults()
	if err != nil {
		return Statistic{}, err
	}
	if len(strata) == 0 {
		return Statistic{}, fmt.Errorf("%s: there are none: give at least one", doing)
	}
	all, s := 0.0, Statistic{Method: "stratified"}
	for h, stratum := range strata {
		if len(stratum.Scores) < 2 {
			return Statistic{}, fmt.Errorf("%s: stratum %d has %d scores: give at least 2, or put it together with another", doing, h, len(stratum.Scores))
		}
		if stratum.Population < len(stratum.Scores) {
			return Statistic{}, fmt.Errorf("%s: stratum %d has %d scores of %d rows in all: give its size", doing, h, len(stratum.Scores), stratum.Population)
		}
		if err := checkNumbers(doing, fmt.Sprintf("stratum %d, score", h), stratum.Scores); err != nil {
			return Statistic{}, err
		}
		all += float64(stratum.Population)
		s.Rows += len(stratum.Scores)
	}
	s.Units = s.Rows
	var mean, variance sum
	parts, dfs := make([]float64, len(strata)), make([]float64, len(strata))
	for h, stratum := range strata {
		m, share := meanOf(rounded(stratum.Scores)), float64(stratum.Population)/all
		parts[h], dfs[h] = share*m.se*(share*m.se), m.df
		mean.add(share * m.mean)
		variance.add(parts[h])
	}
	v := variance.value()
	s.Value, s.SE = some(mean.value()), some(math.Sqrt(v))
	warnRows(&s.Warnings, s.Rows)
	if v == 0 {
		warn(&s.Warnings, "no stratum varies: there is no range; add rows that vary")
		return s, nil
	}
	var perDF sum
	for h, part := range parts {
		perDF.add(part / v * (part / v) / dfs[h])
	}
	s.student(mean.value(), math.Sqrt(v), 1/perDF.value(), o)
	return s, nil
}

// WeightedEstimate is a mean of rows that had different chances to be drawn.
type WeightedEstimate struct {
	Statistic     // Method "hajek"
	Effective Opt `json:"effective"` // rows of equal weight that tell as much (Kish 1965)
	Largest   Opt `json:"largest"`   // share of all weight that one row has
}

// WeightedMean returns the mean over all rows when each row was drawn with a
// known chance: Σwy/Σw with w = 1/chance (Horvitz and Thompson 1952 in the
// ratio form of Hájek 1971), se √(n/(n-1)·Σw²(y-ȳ)²)/Σw, and Student's range.
// It is the one for rows that were rated because something known picked them
// more often, such as a low confidence. Chances that are only guessed make it a
// guess. Nothing is capped: look at Largest. Where one row has a large share,
// the range is not to be relied upon.
//
// As many chances as scores, between 0 and 1 and not 0, scores that are finite
// and within ±1e100, and options with a meaning are needed.
func WeightedMean(scores, chances []float64, o Options) (WeightedEstimate, error) {
	const doing = "weighting rows"
	o, err := o.withDefaults()
	if err != nil {
		return WeightedEstimate{}, err
	}
	if len(scores) != len(chances) {
		return WeightedEstimate{}, fmt.Errorf("%s: %d chances of being drawn for %d scores: give one for each", doing, len(chances), len(scores))
	}
	if err := checkNumbers(doing, "score", scores); err != nil {
		return WeightedEstimate{}, err
	}
	var total, weights, squares sum
	largestWeight := 0.0
	scores = rounded(scores)
	for i, p := range chances {
		if !(p > 1/maxScore && p <= 1) {
			return WeightedEstimate{}, fmt.Errorf("%s: row %d had a chance of %v to be drawn: give a number above 0 and up to 1", doing, i, p)
		}
		total.add(scores[i] / p)
		weights.add(1 / p)
		squares.add(1 / p / p)
		largestWeight = max(largestWeight, 1/p)
	}
	n := float64(len(scores))
	e := WeightedEstimate{Statistic: Statistic{Method: none, Rows: len(scores), Units: len(scores)}}
	warnRows(&e.Warnings, e.Rows)
	if e.Rows == 0 {
		return e, nil
	}
	all := weights.value()
	mean := total.value() / all
	if constant(scores) {
		mean = scores[0]
	}
	e.Value, e.Effective, e.Largest = some(mean), some(all*all/squares.value()), some(largestWeight/all)
	if e.Rows > 1 {
		var deviations sum
		for i, p := range chances {
			d := (scores[i] - mean) / p / all
			deviations.add(d * d)
		}
		e.Method = "hajek"
		e.student(mean, math.Sqrt(n/(n-1)*deviations.value()), n-1, o)
	}
	return e, nil
}
