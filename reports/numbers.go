package reports

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"evalrun/harness"
	"evalrun/harness/stats"
)

// minus is longer than a hyphen, so that a range with a loss at one end can be
// read at a glance.
const minus = "−"

// A scale is how a metric's numbers are written.
type scale struct {
	rate   bool   // scores are 0 or 1: means are percent, differences points
	amount string // what scores are amounts of: s, USD, tokens; "" for nothing
}

// scaleOf looks at how the ranges were made: Wilson's method is for 0/1 scores
// alone. A metric is a rate only when it is one for every candidate.
func scaleOf(e *harness.Evaluation, metric string) scale {
	if amount := e.Units[metric]; amount != "" {
		return scale{amount: amount}
	}
	if slices.Contains(e.Lower, metric) { // seconds that all happen to be 1 are no rate
		return scale{}
	}
	seen := false
	for _, out := range e.Candidates {
		s, ok := out.Metrics[metric]
		if !ok || s.N == 0 {
			continue
		}
		mean, _ := s.Mean.Get()
		if s.Method != "wilson" && !(s.N == 1 && (mean == 0 || mean == 1)) {
			return scale{}
		}
		seen = true
	}
	return scale{rate: seen}
}

// shown is v in the unit it is shown in.
func (s scale) shown(v float64) float64 {
	if s.rate {
		return 100 * v
	}
	return v
}

// unit follows a difference: "points", what scores are amounts of, or nothing.
func (s scale) unit() string {
	if s.rate {
		return " points"
	}
	return s.ofMean()
}

// ofMean follows a mean.
func (s scale) ofMean() string {
	switch {
	case s.rate:
		return "%"
	case s.amount != "":
		return " " + s.amount
	}
	return ""
}

// place is the power of ten of the last digit worth showing of numbers whose
// range is low to high: half its width keeps two digits. Without a range, or one
// without width, rates have one digit after the point and others three in all.
func (s scale) place(v, low, high stats.Opt) int {
	l, ok := low.Get()
	h, _ := high.Get()
	if half := s.shown(h-l) / 2; ok && half > 0 {
		return placeOf(half, 2)
	}
	if s.rate {
		return -1
	}
	x, _ := v.Get()
	return placeOf(x, 3)
}

// placeOf is the power of ten of v's last digit when it has so many.
func placeOf(v float64, digits int) int {
	v = math.Abs(v)
	if v == 0 {
		return 1 - digits
	}
	at := func(v float64) int { return int(math.Floor(math.Log10(v))) + 1 - digits }
	place := at(v)
	// Rounding may carry: 9.96 has two digits as 10.
	unit := math.Pow10(place)
	return max(place, at(math.Round(v/unit)*unit))
}

// rounded writes v to the digit of that place.
func rounded(v float64, place int) string {
	if place > 0 {
		unit := math.Pow10(place)
		v = math.Round(v/unit) * unit
	}
	s := strconv.FormatFloat(v, 'f', max(0, -place), 64)
	bare, negative := strings.CutPrefix(s, "-")
	if strings.Trim(bare, "0.") == "" || !negative {
		return bare
	}
	return minus + bare
}

// signed is rounded with a plus before what is above 0.
func signed(v float64, place int) string {
	s := rounded(v, place)
	if strings.HasPrefix(s, minus) || strings.Trim(s, "0.") == "" {
		return s
	}
	return "+" + s
}

// mean writes a mean in its unit; "" when there is none.
func (s scale) mean(v, low, high stats.Opt) string {
	x, ok := v.Get()
	if !ok {
		return ""
	}
	return rounded(s.shown(x), s.place(v, low, high)) + s.ofMean()
}

// between writes the range of a mean; "" when there is none.
func (s scale) between(v, low, high stats.Opt) string {
	l, ok := low.Get()
	h, _ := high.Get()
	if !ok {
		return ""
	}
	place := s.place(v, low, high)
	return rounded(s.shown(l), place) + " to " + rounded(s.shown(h), place)
}

// diff writes a difference, without its unit.
func (s scale) diff(v, low, high stats.Opt) string {
	x, ok := v.Get()
	if !ok {
		return ""
	}
	return signed(s.shown(x), s.place(v, low, high))
}

// diffBetween writes the range of a difference, without its unit.
func (s scale) diffBetween(v, low, high stats.Opt) string {
	l, ok := low.Get()
	h, _ := high.Get()
	if !ok {
		return ""
	}
	place := s.place(v, low, high)
	return signed(s.shown(l), place) + " to " + signed(s.shown(h), place)
}

// size writes a difference's size to two digits, with its unit.
func (s scale) size(v float64) string {
	v = s.shown(v)
	return rounded(v, placeOf(v, 2)) + s.unit()
}

// stated writes a difference that somebody chose, with its unit, as it was chosen.
func (s scale) stated(v float64) string {
	text := strconv.FormatFloat(math.Round(1e9*s.shown(v))/1e9, 'f', -1, 64)
	if s.rate && text == "1" {
		return "1 point"
	}
	return text + s.unit()
}

// probability writes a p-value.
func probability(p stats.Opt) string {
	v, ok := p.Get()
	switch {
	case !ok:
		return ""
	case v < 0.001:
		return "<0.001"
	case v < 0.1:
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// score writes the score of one row.
func score(v float64) string {
	return strings.Replace(strconv.FormatFloat(v, 'g', 3, 64), "-", minus, 1)
}

// Count writes a number of things, its thousands apart.
func Count(n int64) string { return count(n) }

// count is [Count] of numbers of either kind.
func count[T int | int64](n T) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural is "1 row", "2 rows".
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + one + "s"
}

// about rounds a number of rows up to two digits: what is planned is no more
// exact than that.
func about(n int) string {
	unit := 1
	for n/unit >= 100 {
		unit *= 10
	}
	return count((n + unit - 1) / unit * unit)
}

// money writes a cost to three digits.
func money(v float64) string {
	if v == 0 {
		return "0 USD"
	}
	return rounded(v, min(-2, placeOf(v, 3))) + " USD"
}

// seconds writes a duration to two digits.
func seconds(v float64) string {
	switch {
	case v == 0:
		return "0 s"
	case v < 0.001:
		return "<1 ms"
	case v < 1:
		return rounded(v*1000, placeOf(v*1000, 2)) + " ms"
	case v < 100:
		return rounded(v, placeOf(v, 2)) + " s"
	}
	return rounded(v, 0) + " s"
}

// span writes how long a run was, to two digits or three.
func span(v float64) string {
	switch {
	case v < 100:
		return seconds(v)
	case v < 100*60:
		return rounded(v/60, placeOf(v/60, 2)) + " min"
	}
	return rounded(v/3600, placeOf(v/3600, 2)) + " h"
}

// level is the share of samples a range covers: "95%".
func level(o stats.Options) string {
	return strconv.FormatFloat(math.Round(1e6*(1-o.Alpha))/1e4, 'f', -1, 64) + "%"
}
