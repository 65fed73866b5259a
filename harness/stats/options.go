package stats

import "fmt"

// Options state what the caller has and wants. They are part of what a result
// means: store them with it. The zero value is the default.
type Options struct {
	// Binary states that every score is 0 or 1, by the nature of the metric
	// or by looking ([AllBinary]). Stating it of other scores is an error.
	Binary bool `json:"binary,omitzero"`

	// Alpha is the accepted chance of a false alarm; ranges cover 1-Alpha.
	// 0 means 0.05. Otherwise 1e-9 <= Alpha < 0.5.
	Alpha float64 `json:"alpha,omitzero"`

	// Power is the wanted chance to see a difference that is there, when
	// planning. 0 means 0.8. Otherwise Alpha < Power <= 1-1e-9.
	Power float64 `json:"power,omitzero"`

	// Margin is the smallest difference that would matter, in the units of
	// the score. Without one (0) nothing can be found equal.
	Margin float64 `json:"margin,omitzero"`

	// Unmargined states that the scores are on no scale that Margin is of, as
	// seconds are not: it is then not applied, and none is asked for.
	Unmargined bool `json:"-"`

	// Seed starts the random numbers of a sampled test.
	Seed uint64 `json:"seed,omitzero"`
}

// extreme is the smallest chance anyone may ask for. Closer to 0 and 1 the
// quantiles run out of digits, and at the ends they are infinite.
const extreme = 1e-9

// withDefaults fills in the defaults and refuses what has no meaning.
func (o Options) withDefaults() (Options, error) {
	if o.Alpha == 0 {
		o.Alpha = 0.05
	}
	if o.Power == 0 {
		o.Power = 0.8
	}
	if o.Unmargined {
		o.Margin = 0
	}
	switch {
	case !(o.Alpha >= extreme && o.Alpha < 0.5):
		return o, fmt.Errorf("reading options: alpha is %v: give a number from 1e-9 to below 0.5, or 0 for 0.05", o.Alpha)
	case !(o.Power > o.Alpha && o.Power <= 1-extreme):
		return o, fmt.Errorf("reading options: power is %v: give a number above alpha (%v) and up to 1-1e-9, or 0 for 0.8", o.Power, o.Alpha)
	case !(o.Margin >= 0 && o.Margin <= maxScore):
		return o, fmt.Errorf("reading options: margin is %v: give a positive difference of scores, or 0 for none", o.Margin)
	}
	return o, nil
}

// zAlpha and zPower are the normal quantiles that planning formulas use.
func (o Options) zAlpha() float64 { return normalQuantile(1 - o.Alpha/2) }
func (o Options) zPower() float64 { return normalQuantile(o.Power) }
