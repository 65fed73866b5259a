package stats

import (
	"fmt"
	"math"
)

// Outcome is the score of one row, or that it has none.
type Outcome struct {
	Score   float64
	Missing bool
}

// Scale is the range that scores can have. The zero value is 0 to 1.
type Scale struct{ Min, Max float64 }

func (s Scale) withDefaults() (Scale, error) {
	if s == (Scale{}) {
		s.Max = 1
	}
	if !(s.Min < s.Max && s.Min >= -maxScore && s.Max <= maxScore) {
		return s, fmt.Errorf("reading the scale of scores: it goes from %v to %v: give a smaller and a larger number", s.Min, s.Max)
	}
	return s, nil
}

// Bounds says what a mean, or a difference of means, could be if nothing is
// assumed of the rows without a score.
type Bounds struct {
	Rows     int `json:"rows"`
	Missing  int `json:"missing"`  // rows without a score; of a pair, those where either has none
	Observed Opt `json:"observed"` // mean of the other rows: biased if what is missing is not like them
	AsZero   Opt `json:"as_zero"`  // mean with 0 for what is missing: the headline
	Low      Opt `json:"low"`      // the mean if everything missing were as bad as can be
	High     Opt `json:"high"`     // and as good

	// RangeLow and RangeHigh allow for both what is missing and which rows
	// were drawn: they cover the mean with 1-Alpha. Absent under two rows.
	RangeLow  Opt `json:"range_low"`
	RangeHigh Opt `json:"range_high"`
}

// MissingBounds returns how low and how high a candidate's mean could be with
// the rows that have no score (Manski 1989), and a range that covers it (Imbens
// and Manski 2004): the one to show beside a headline that counts failures as
// 0, when so many failed that it matters what they would have been. It assumes
// nothing. When Low and High lead to the same decision, the failures do not
// matter.
//
// Scores outside the scale, and options without meaning are errors.
func MissingBounds(rows []Outcome, scale Scale, o Options) (Bounds, error) {
	o, scale, err := checkOutcomes("candidate", rows, scale, o)
	if err != nil {
		return Bounds{}, err
	}
	f := filling{}
	for _, row := range rows {
		f.add(row.fill(0), row.fill(scale.Min), row.fill(scale.Max), !row.Missing)
	}
	return f.bounds(o), nil
}

// MissingBoundsPaired is [MissingBounds] for the mean of candidate minus
// baseline, row by row: at worst a missing candidate has the lowest score and a
// missing baseline the highest. It is the answer to dropping the rows where
// either failed, which favours the candidate that fails on hard rows. Observed
// is the mean of the complete rows.
//
// Samples of different length are an error too.
func MissingBoundsPaired(base, cand []Outcome, scale Scale, o Options) (Bounds, error) {
	if len(base) != len(cand) {
		return Bounds{}, fmt.Errorf("pairing scores: %d baseline rows and %d candidate rows: give both the same rows in the same order", len(base), len(cand))
	}
	o, full, err := checkOutcomes("baseline", base, scale, o)
	if err != nil {
		return Bounds{}, err
	}
	if _, _, err := checkOutcomes("candidate", cand, scale, o); err != nil {
		return Bounds{}, err
	}
	f := filling{}
	for i, b := range base {
		c := cand[i]
		f.add(c.fill(0)-b.fill(0), c.fill(full.Min)-b.fill(full.Max), c.fill(full.Max)-b.fill(full.Min), !b.Missing && !c.Missing)
	}
	return f.bounds(o), nil
}

func checkOutcomes(whose string, rows []Outcome, scale Scale, o Options) (Options, Scale, error) {
	o, err := o.withDefaults()
	if err != nil {
		return o, scale, err
	}
	if scale, err = scale.withDefaults(); err != nil {
		return o, scale, err
	}
	for i, row := range rows {
		if !row.Missing && !(row.Score >= scale.Min && row.Score <= scale.Max) {
			return o, scale, fmt.Errorf("reading %s scores: row %d has %v, outside the scale from %v to %v: state the scale that the metric has", whose, i, row.Score, scale.Min, scale.Max)
		}
	}
	return o, scale, nil
}

// fill is the score, or x in its place.
func (r Outcome) fill(x float64) float64 {
	if r.Missing {
		return x
	}
	return r.Score
}

// A filling holds the values of all rows, with what is missing filled in.
type filling struct{ zero, low, high, complete []float64 }

func (f *filling) add(zero, low, high float64, complete bool) {
	f.zero, f.low, f.high = append(f.zero, zero), append(f.low, low), append(f.high, high)
	if complete {
		f.complete = append(f.complete, zero)
	}
}

func (f filling) bounds(o Options) Bounds {
	n := len(f.zero)
	b := Bounds{Rows: n, Missing: n - len(f.complete)}
	if n == 0 {
		return b
	}
	if len(f.complete) > 0 {
		b.Observed = some(meanOf(rounded(f.complete)).mean)
	}
	low, high := meanOf(rounded(f.low)), meanOf(rounded(f.high))
	b.AsZero, b.Low, b.High = some(meanOf(rounded(f.zero)).mean), some(low.mean), some(high.mean)
	if n > 1 {
		_, rangeLow, rangeHigh := imbensManski(low.mean, high.mean, low.se, high.se, 1-o.Alpha)
		b.RangeLow, b.RangeHigh = some(rangeLow), some(rangeHigh)
	}
	return b
}

// imbensManski returns how many standard errors to go beyond each bound so that
// the true value, which lies anywhere between them, is covered: the c with Φ(c
// + (high-low)/max(se)) - Φ(-c) = confidence. c lies between the one-sided
// quantile, for bounds far apart, and the two-sided one, for bounds that meet.
func imbensManski(low, high, seLow, seHigh, confidence float64) (c, rangeLow, rangeHigh float64) {
	apart := math.Inf(1)
	if se := max(seLow, seHigh); se > 0 {
		apart = max(0, high-low) / se
	}
	below, above := normalQuantile(confidence), normalQuantile((1+confidence)/2)
	for {
		c = below + (above-below)/2
		if c <= below || c >= above {
			return c, low - c*seLow, high + c*seHigh
		}
		if normalBelow(c+apart)-normalBelow(-c) < confidence {
			below = c
		} else {
			above = c
		}
	}
}
