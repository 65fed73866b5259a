package reports

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"evalrun/harness/stats"
)

// Plots are drawn a row at a time, in percent of the width, so that they fit any
// screen and their text is as large as the page's. All rows of a plot share an
// axis.

// forest is a plot of differences: a bar for the range, a mark for the
// difference, a line at 0.
type forest struct {
	Metric string // when there are several
	Unit   string // of the axis; "" for none
	Level  string // of the ranges
	Versus string // what the differences are to
	Side   string // of the line at 0 that is better
	Ticks  []tick
	Zero   string
	Rows   []forestRow
}

type tick struct{ X, Text string }

type forestRow struct {
	Evaluation, Candidate string
	Text, Range           string // with the unit
	Decision              stats.Decision
	Sign, Words           string
	X, Width, Mark        string // of the bar and the mark
	OffLow, OffHigh       bool   // the range goes on beyond the axis
	HasRange, HasMark     bool
}

// plotMargin is left free at both ends, in percent: for arrows, and for half a
// tick's label.
const plotMargin = 4.0

// axis maps values to percent of the width.
type axis struct{ low, high float64 }

// at is where a value lies; one beyond an end lies at that end.
func (a axis) at(v float64) float64 {
	return plotMargin + a.wide(min(max(v, a.low), a.high)-a.low)
}

// wide is how wide a difference of two values is.
func (a axis) wide(v float64) float64 { return (100 - 2*plotMargin) * v / (a.high - a.low) }

func percent(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) + "%" }

// forests draws the compared ones among lines, those with a unit and a better side
// in common on an axis of their own.
func forests(lines []line, o stats.Options, several bool) []forest {
	type kind struct {
		Scale scale
		lower bool
	}
	var kinds []kind
	of := map[kind][]line{}
	for _, l := range lines {
		if _, ok := l.diff(); !ok {
			continue
		}
		k := kind{l.Scale, l.lower}
		if of[k] == nil {
			kinds = append(kinds, k)
		}
		of[k] = append(of[k], l)
	}
	slices.SortStableFunc(kinds, func(a, b kind) int { // rates first, and what should rise
		return cmp.Or(cmp.Compare(one(b.Scale.rate), one(a.Scale.rate)), cmp.Compare(one(a.lower), one(b.lower)))
	})
	var plots []forest
	for _, k := range kinds {
		plots = append(plots, newForest(of[k], o, several))
	}
	return plots
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// diff is the line's difference in the unit it is shown in.
func (l *line) diff() (float64, bool) {
	if l.Versus == nil {
		return 0, false
	}
	v, ok := l.Versus.Added.Diff.Get()
	return l.Scale.shown(v), ok
}

func (l *line) ends() (low, high float64, ok bool) {
	low, ok = l.Versus.Added.Low.Get()
	high, _ = l.Versus.Added.High.Get()
	return l.Scale.shown(low), l.Scale.shown(high), ok
}

func newForest(lines []line, o stats.Options, several bool) forest {
	a, step := axisFor(lines)
	s := lines[0].Scale
	f := forest{Unit: strings.TrimSpace(s.unit()), Level: level(o), Versus: theBaseline, Side: "Right", Zero: percent(a.at(0))}
	if lines[0].lower {
		f.Side = "Left"
	}
	place := int(math.Floor(math.Log10(step) + 1e-9))
	for v := math.Ceil(a.low/step-1e-9) * step; v <= a.high+step*1e-9; v += step {
		f.Ticks = append(f.Ticks, tick{percent(a.at(v)), signed(v, place)})
	}
	for i := range lines {
		l := &lines[i]
		v := l.Versus
		d, _ := l.diff()
		r := forestRow{
			Candidate: l.Candidate, Text: strings.TrimSuffix(v.Marked(), v.Unit) + s.unit(), Range: v.Range, Decision: v.Decision, Sign: v.Sign(), Words: v.Words(),
			HasMark: d >= a.low && d <= a.high, Mark: percent(a.at(d)),
		}
		if several {
			r.Evaluation = l.Evaluation
		}
		if low, high, ok := l.ends(); ok {
			r.HasRange = true
			r.OffLow, r.OffHigh = low < a.low, high > a.high
			r.X = percent(a.at(low))
			r.Width = percent(max(0.2, a.at(high)-a.at(low)))
		}
		f.Rows = append(f.Rows, r)
	}
	return f
}

// axisFor chooses an axis that shows 0 and every difference, and every range
// unless a few are much wider than the rest: those are cut off, so that the
// others can still be read. step is the distance of its ticks.
func axisFor(lines []line) (axis, float64) {
	var reach []float64
	low, high := 0.0, 0.0
	for i := range lines {
		d, _ := lines[i].diff()
		low, high = min(low, d), max(high, d)
		if l, h, ok := lines[i].ends(); ok {
			reach = append(reach, max(math.Abs(l), math.Abs(h)))
		}
	}
	if len(reach) > 0 {
		slices.Sort(reach)
		most := 2.5 * reach[len(reach)/2]
		for i := range lines {
			if l, h, ok := lines[i].ends(); ok {
				low, high = min(low, max(l, -most)), max(high, min(h, most))
			}
		}
	}
	if low == high { // nothing but zeros
		low, high = -1, 1
	}
	span := high - low
	low, high = min(low, -span/20), max(high, span/20)
	step := niceStep((high - low) / 7)
	return axis{low, high}, step
}

// niceStep is the smallest of 1, 2 or 5 times a power of ten that is no less.
func niceStep(v float64) float64 {
	unit := math.Pow10(int(math.Floor(math.Log10(v))))
	for _, m := range []float64{1, 2, 5} {
		if m*unit >= v*(1-1e-9) {
			return m * unit
		}
	}
	return 10 * unit
}

// bars show how many rows got better and worse: worse to the left, better to the
// right, and the rows that stayed the same between them, centered.
type bars struct{ Rows []barRow }

type barRow struct {
	Evaluation, Candidate string
	Better, Worse, Same   string // counts
	Rows                  string // of all
	WorseX, WorseW        string
	SameX, SameW          string
	BetterX, BetterW      string
	HasWorse, HasSame     bool
	HasBetter             bool
}

func newBars(lines []line, several bool) bars {
	// Half of the axis, in shares of the rows: the widest side of any row.
	half := 0.0
	share := func(n, of int) float64 {
		if of == 0 {
			return 0
		}
		return float64(n) / float64(of)
	}
	for _, l := range lines {
		if v := l.Versus; v != nil {
			half = max(half, share(v.Same, v.Rows)/2+max(share(v.Better, v.Rows), share(v.Worse, v.Rows)))
		}
	}
	if half == 0 {
		return bars{}
	}
	a := axis{-half, half}
	var b bars
	for _, l := range lines {
		v := l.Versus
		if v == nil || v.Rows == 0 {
			continue
		}
		same, better, worse := share(v.Same, v.Rows), share(v.Better, v.Rows), share(v.Worse, v.Rows)
		r := barRow{
			Candidate: l.Candidate, Better: count(v.Better), Worse: count(v.Worse), Same: count(v.Same), Rows: count(v.Rows),
			HasWorse: v.Worse > 0, HasSame: v.Same > 0, HasBetter: v.Better > 0,
		}
		width := func(share float64) string { return percent(a.wide(share)) }
		r.WorseX, r.WorseW = percent(a.at(-same/2-worse)), width(worse)
		r.SameX, r.SameW = percent(a.at(-same/2)), width(same)
		r.BetterX, r.BetterW = percent(a.at(same/2)), width(better)
		if several {
			r.Evaluation = l.Evaluation
		}
		b.Rows = append(b.Rows, r)
	}
	return b
}
