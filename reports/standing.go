package reports

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"evalrun/harness"
	"evalrun/harness/stats"
)

// A line says where one candidate stands by one metric. Every table is made of
// lines; the numbers in them are ready to be read.
type line struct {
	Evaluation string
	Metric     string
	Candidate  string
	Baseline   bool
	Recorded   bool
	Rows       int
	Failed     int    // rows that have no score
	Score      string // the mean
	Range      string // of the mean; "" when there is none
	Method     string // of the range: "W", "t" or ""
	Versus     *versus
	Scale      scale

	lower bool // less is better
	apart bool // rows count 0 in the score that a difference to it is without
	mean  float64
}

// versus is a line's comparison with the baseline, by the added layer: its
// difference, and its counts of rows, which are without those that were lost.
type versus struct {
	*harness.Comparison
	Before                    string // the baseline's mean on the rows that are compared
	After                     string
	Diff                      string // without a unit
	Range                     string
	P                         string
	Rows, Better, Worse, Same int
	Head                      string // of the table's column of differences
	Unit                      string // of Diff, when the table has several
}

// nothing stands where there is no number.
const nothing = "–"

// apart reports whether the means of a comparison count rows 0 that its difference is
// without.
func apart(c *harness.Comparison) bool { return c.Lost != nil || c.Unscored > 0 }

// apartNote explains the * after a score.
const apartNote = "*: over all rows, those whose answer was lost or could not be scored as 0; the difference is without these rows"

// The words and signs of decisions, for people. A sign never stands for a word
// in a place where only color would tell it from another.
var decisions = map[stats.Decision]struct{ Sign, Words string }{
	stats.Better:       {"▲", "better"},
	stats.Worse:        {"▼", "worse"},
	stats.NoDifference: {"=", "equal"},
	stats.TooFewRows:   {"~", "not decided"},
	stats.Invalid:      {"!", "no rows"},
	harness.TrendOnly:  {"?", "trend only"},
}

func (v *versus) Sign() string  { return decisions[v.Decision].Sign }
func (v *versus) Words() string { return decisions[v.Decision].Words }

// Marked is the difference, after a ~ when it was not decided and a = when it is
// within the margin.
func (v *versus) Marked() string {
	switch v.Decision {
	case stats.Better, stats.Worse:
		return v.Diff + v.Unit
	}
	return strings.TrimSpace(v.Sign() + " " + v.Diff + v.Unit)
}

// rangeLetters name a range's method in a table.
var rangeLetters = map[string]string{"wilson": "W", "student-t": "t"}

// standings has a line for every candidate, metric by metric: the baseline
// first, then the others, the best score first.
func (e *Evaluation) standings() []line {
	var all []line
	for _, metric := range e.Metrics {
		s := scaleOf(e.Evaluation, metric)
		var lines []line
		for _, out := range e.Candidates {
			m := out.Metrics[metric]
			if s.amount != "" && m.Method == "wilson" { // amounts that all happen to be 0 or 1 are no rate
				m.Method, m.Low, m.High = "", stats.Opt{}, stats.Opt{}
			}
			l := line{
				Evaluation: e.Name, Metric: metric, Candidate: out.Name, Baseline: out.Name == e.Baseline && len(e.Candidates) > 1,
				Recorded: out.Recorded, Rows: out.N, Failed: m.Failed, Scale: s,
				Score: s.mean(m.Mean, m.Low, m.High), Range: s.between(m.Mean, m.Low, m.High), Method: rangeLetters[m.Method],
			}
			if out.AllLost() || m.Unscored > 0 && m.Failed == out.N {
				l.Score, l.Range, l.Method = nothing, "", ""
			}
			l.lower = slices.Contains(e.Lower, metric)
			l.mean, _ = m.Mean.Get()
			for i := range e.Comparisons {
				c := &e.Comparisons[i]
				if c.Metric != metric {
					continue
				}
				if c.Candidate == out.Name {
					l.Versus = newVersus(c, s)
				}
				l.apart = l.apart || (c.Candidate == out.Name || c.Baseline == out.Name) && apart(c)
			}
			if l.apart && l.Score != nothing {
				l.Score += "*"
			}
			lines = append(lines, l)
		}
		slices.SortStableFunc(lines, func(a, b line) int {
			if a.Baseline != b.Baseline {
				if a.Baseline {
					return -1
				}
				return 1
			}
			if a.lower {
				return cmp.Compare(a.mean, b.mean)
			}
			return cmp.Compare(b.mean, a.mean)
		})
		all = append(all, lines...)
	}
	return withUnits(all)
}

// withUnits gives the lines of one table the heading of their differences, and
// their units when they do not share one.
func withUnits(lines []line) []line {
	head := diffHead(lines)
	for i := range lines {
		if lines[i].Versus == nil {
			continue
		}
		v := *lines[i].Versus
		v.Head, v.Unit = head, ""
		switch s := lines[i].Scale; {
		case head == pointsHead || v.Diff == "":
		case s.rate:
			v.Unit = " pts"
		default:
			v.Unit = s.unit()
		}
		lines[i].Versus = &v
	}
	return lines
}

func newVersus(c *harness.Comparison, s scale) *versus {
	t := &c.Added
	place := s.place(t.Diff, t.Low, t.High)
	at := func(v stats.Opt) string {
		x, ok := v.Get()
		if !ok {
			return ""
		}
		text := rounded(s.shown(x), place) + s.ofMean()
		if apart(c) {
			text += "*"
		}
		return text
	}
	if t.Decision == stats.Invalid && c.N > 0 { // what counts 0 is no score
		at = func(stats.Opt) string { return nothing }
	}
	return &versus{
		Comparison: c, Before: at(c.Before), After: at(c.After), P: probability(c.P),
		Diff: s.diff(t.Diff, t.Low, t.High), Range: s.diffBetween(t.Diff, t.Low, t.High),
		Rows: t.Better + t.Worse + t.Same, Better: t.Better, Worse: t.Worse, Same: t.Same,
	}
}

// suiteLines are the lines of candidates that were compared, by the score alone.
func (r *Report) suiteLines() []line {
	var lines []line
	for _, e := range r.Evaluations {
		for _, l := range e.lines {
			if l.Versus != nil && l.Metric == e.Metrics[0] {
				lines = append(lines, l)
			}
		}
	}
	return withUnits(lines)
}

// diffHead is the heading of a column of differences: with the unit when all
// lines share one.
func diffHead(lines []line) string {
	for _, l := range lines {
		if !l.Scale.rate {
			return "difference"
		}
	}
	return pointsHead
}

const pointsHead = "points"

// noted is a warning, and where it was given. Equal ones are told once.
type noted struct {
	Text  string
	Where []string // candidates, evaluations; empty for the run as a whole
}

// warnings gathers what a reader should know before believing the numbers.
func (r *Report) warnings() []noted {
	var list []noted
	at := map[string]int{}
	note := func(text, where string) {
		i, known := at[text]
		if !known {
			i = len(list)
			at[text] = i
			list = append(list, noted{Text: text})
		}
		if where != "" && !slices.Contains(list[i].Where, where) {
			list[i].Where = append(list[i].Where, where)
		}
	}
	for _, w := range r.Warnings {
		note(w, "")
	}
	for _, e := range r.Evaluations {
		for _, w := range e.Warnings {
			note(w, e.Name)
		}
		for i := range e.Comparisons {
			c := &e.Comparisons[i]
			where := c.Candidate
			if e.Name != "" {
				where = e.Name + ", " + where
			}
			if len(e.Metrics) > 1 {
				where += ", " + c.Metric
			}
			for _, w := range slices.Concat(c.Warnings, c.Added.Warnings) {
				note(w, where)
			}
		}
	}
	return list
}

// place says where a warning was given, naming no more than a few.
func (n noted) place() string {
	const most = 3
	if len(n.Where) > most {
		return strings.Join(n.Where[:most], "; ") + fmt.Sprintf("; and %d more", len(n.Where)-most)
	}
	return strings.Join(n.Where, "; ")
}

// counted lists counts by name: "2 unreadable, 1 timeout", the largest first.
func counted(counts map[string]int) string {
	names := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	var list []string
	for _, name := range names {
		if counts[name] > 0 {
			list = append(list, count(counts[name])+" "+strings.ReplaceAll(name, "_", " "))
		}
	}
	return strings.Join(list, ", ")
}

// account is an evaluation's ledger in a sentence.
func (e *Evaluation) account() string {
	l := &e.Ledger
	text := plural(l.Input, "row") + " read"
	left := 0
	for _, n := range l.LeftOut {
		left += n
	}
	if left > 0 {
		text += fmt.Sprintf(", %s left out (%s)", count(left), counted(l.LeftOut))
	}
	return text + ", " + count(l.Asked) + " asked"
}

// shortcomings lists each candidate's failed and unfinished rows; "" when there
// are none.
func (e *Evaluation) shortcomings(p *phrase) {
	for _, out := range e.Candidates {
		if out.Failed == 0 && out.Unfinished == 0 {
			continue
		}
		if len(*p) > 0 {
			p.say("; ")
		}
		p.name(out.Name)
		if out.Failed > 0 {
			p.say(" failed on %s (%s)", plural(out.Failed, "row"), counted(out.Failures))
		}
		if out.Unfinished > 0 {
			if out.Failed > 0 {
				p.say(" and")
			}
			p.say(" left %s unfinished", plural(out.Unfinished, "row"))
		}
	}
}
