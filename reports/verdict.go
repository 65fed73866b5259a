package reports

import (
	"fmt"
	"slices"
	"strings"

	"evalrun/harness"
	"evalrun/harness/stats"
)

// A phrase is text in which names are marked, so that each format sets them
// apart in its own way.
type phrase []word

type word struct {
	Text string
	Name bool
}

func (p *phrase) say(format string, args ...any) {
	*p = append(*p, word{Text: fmt.Sprintf(format, args...)})
}
func (p *phrase) name(name string) { *p = append(*p, word{name, true}) }

// String is the phrase with its names in backquotes.
func (p phrase) String() string {
	var b strings.Builder
	for _, w := range p {
		if w.Name {
			b.WriteString("`" + w.Text + "`")
		} else {
			b.WriteString(w.Text)
		}
	}
	return b.String()
}

// verdict puts a comparison into a sentence. It is the added layer's: its
// decision, its rows, its range.
func (e *Evaluation) verdict(c *harness.Comparison) Verdict {
	var p phrase
	s := scaleOf(e.Evaluation, c.Metric)
	switch c.Decision {
	case stats.Better, stats.Worse:
		p.name(c.Candidate)
		p.say(" is %s than ", c.Decision)
		p.name(c.Baseline)
		e.where(&p, c)
	case stats.NoDifference:
		p.name(c.Candidate)
		p.say(" and ")
		p.name(c.Baseline)
		if words := e.versus(); words != theBaseline {
			p.say(" (the %s)", words)
		}
		p.say(" are equal")
		e.where(&p, c)
		p.say(", but for less than the margin of %s", s.stated(e.Statistics.Margin))
	case stats.Invalid:
		p.say("Nothing can be said of ")
		p.name(c.Candidate)
		p.say(" against ")
		p.name(c.Baseline)
		e.where(&p, c)
		p.say(": %s.", noRows(c))
	case harness.TrendOnly:
		p.say("A trend and no verdict: ")
		p.name(c.Candidate)
		p.say(" against ")
		p.name(c.Baseline)
		e.where(&p, c)
	default:
		p.say("Not decided: ")
		p.name(c.Candidate)
		p.say(" against ")
		p.name(c.Baseline)
		e.where(&p, c)
	}
	if c.Decision != stats.Invalid {
		p.say(": %s.", e.tally(c, s))
	}
	switch {
	case c.Decision == stats.TooFewRows && c.Unsound():
		p.say(" The metric itself failed on %s, too many for a verdict.", plural(c.Unscored+c.Unjudged, "row"))
	case c.Decision == stats.TooFewRows:
		p.say(" %s", outlook(&c.Added, s))
	}
	if c.TrendOnly {
		e.trend(&p, c)
	}
	if c.WithinNoise {
		p.say(" That is within what asking the baseline again changes.")
	}
	e.shortfall(&p, c, s)
	return Verdict{Candidate: c.Candidate, Metric: c.Metric, Decision: c.Decision, Sentence: p.String(), words: p}
}

// noRows says why there is no row to compare.
func noRows(c *harness.Comparison) string {
	switch {
	case c.Lost != nil && c.Lost.Rows >= c.N:
		return "an answer to every row was lost"
	case c.Lost == nil && c.Unscored > 0 && c.Unscored == c.N:
		return "the metric itself failed on every row"
	case c.N > 0:
		return "no row has an answer and a score on both sides"
	}
	return "there are no rows"
}

// where says what the reference is when it is not the baseline, on which rows, and
// by which metric when there are several.
func (e *Evaluation) where(p *phrase, c *harness.Comparison) {
	if words := e.versus(); words != theBaseline && c.Decision != stats.NoDifference {
		p.say(" (the %s)", words)
	}
	if e.Name != "" {
		p.say(" on %s", e.Name)
	}
	if len(e.Metrics) > 1 {
		p.say(" by ")
		p.name(c.Metric)
	}
	if c.Lower {
		p.say(" (less is better)")
	}
}

// tally counts the rows, the side that won first.
func (e *Evaluation) tally(c *harness.Comparison, s scale) string {
	t := &c.Added
	first, second, one, other := t.Better, t.Worse, "better", "worse"
	if c.Decision == stats.Worse {
		first, second, one, other = second, first, other, one
	}
	text := fmt.Sprintf("%s of %s %s, %s %s, %s the same", count(first), plural(t.Better+t.Worse+t.Same, "row"), one, count(second), other, count(t.Same))
	diff := s.diff(t.Diff, t.Low, t.High)
	if diff == "" {
		return text
	}
	text += " (" + diff + s.unit()
	if between := s.diffBetween(t.Diff, t.Low, t.High); between != "" {
		text += ", " + level(e.Statistics) + " range " + between
	}
	return text + ")"
}

// outlook says what an undecided comparison could have seen, and what would
// decide it. It is what keeps "not decided" from being read as "no change".
func outlook(t *stats.Test, s scale) string {
	seen, ok := t.Detectable.Get()
	planned, _ := t.RowsFor.Get()
	switch {
	case ok && t.RowsNeeded > 0:
		return fmt.Sprintf("This run could have seen ±%s; about %s rows would show a difference of %s.", s.size(seen), about(t.RowsNeeded), s.size(planned))
	case ok:
		return fmt.Sprintf("This run could have seen ±%s; how many rows would decide cannot be said.", s.size(seen))
	case t.RowsNeeded > 0:
		return fmt.Sprintf("Too few rows changed to say what this run could have seen; about %s rows would show a difference of %s.", about(t.RowsNeeded), s.size(planned))
	}
	return "Too few rows changed to say what this run could have seen, or how many would decide."
}

// shortfall says what is missing: failed, lost and unfinished rows.
func (e *Evaluation) shortfall(p *phrase, c *harness.Comparison, s scale) {
	var failed []*harness.Outcome
	n := 0
	for _, name := range []string{c.Candidate, c.Baseline} {
		if out := e.Outcome(name); out != nil && countedZero(out, c.Metric) > 0 {
			failed = append(failed, out)
			n += countedZero(out, c.Metric)
		}
	}
	if c.Lost != nil {
		p.say(" Answers to %s were lost, to an outage or because none was recorded, and are left out", plural(c.Lost.Rows, "row"))
		if c.Decision == stats.Invalid {
			p.say(".")
		} else {
			place := s.place(c.Added.Diff, c.Added.Low, c.Added.High)
			p.say("; with them the difference would lie between %s and %s%s.", signed(s.shown(c.Lost.Worst), place), signed(s.shown(c.Lost.Best), place), s.unit())
		}
	}
	for i, out := range failed {
		switch {
		case i == 0:
			p.say(" ")
		default:
			p.say(" and ")
		}
		p.say("%s of ", plural(countedZero(out, c.Metric), "row"))
		p.name(out.Name)
	}
	switch {
	case n == 0:
	case c.Lost != nil:
		p.say(" failed; a failed row counts 0 unless its answer was lost.")
	case n == 1:
		p.say(" failed and counts 0.")
	default:
		p.say(" failed and count 0.")
	}
	if c.Unjudged > 0 && !c.Unsound() {
		p.say(" The judge gave no verdict on an answer to %s, left out here.", plural(c.Unjudged, "row"))
	}
	if c.Unscored > 0 && c.Decision != stats.Invalid && !c.Unsound() {
		p.say(" The metric itself failed on an answer to %s, left out here.", plural(c.Unscored, "row"))
	}
	if missing := e.Rows.Asked - c.N - c.Unjudged; missing > 0 {
		p.say(" %s of %s were not finished by both and are not compared.", count(missing), plural(e.Rows.Asked, "row"))
	}
}

// countedZero is how many of a candidate's rows have no score and count 0 also where
// it is decided.
func countedZero(out *harness.Outcome, metric string) int {
	m := out.Metrics[metric]
	return m.Failed - m.NoVerdict - m.Unscored
}

// leading are the verdicts by the first metric, which is the score. The others are
// in tables.
func (e *Evaluation) leading() []Verdict {
	var list []Verdict
	for _, v := range e.Verdicts {
		if v.Metric == e.Metrics[0] {
			list = append(list, v)
		}
	}
	return list
}

// others are the lines that are compared by the other metrics, each with its unit.
func (e *Evaluation) others() []line {
	var list []line
	for _, l := range e.lines {
		if l.Versus == nil || l.Metric == e.Metrics[0] {
			continue
		}
		v := *l.Versus
		if v.Unit = ""; v.Diff != "" {
			v.Unit = l.Scale.unit()
		}
		l.Versus = &v
		list = append(list, l)
	}
	return list
}

// headline says in a sentence or two what the report comes to.
func (r *Report) headline() []phrase {
	var list []phrase
	if len(r.Evaluations) == 1 {
		e := r.Evaluations[0]
		for _, v := range e.leading() {
			list = append(list, v.words)
		}
		return append(list, e.uncompared()...)
	}
	type pair struct{ candidate, baseline string }
	var order []pair
	found := map[pair]map[stats.Decision][]string{} // evaluations
	for _, l := range r.Suite {
		key := pair{l.Candidate, l.Baseline}
		if found[key] == nil {
			found[key] = map[stats.Decision][]string{}
			order = append(order, key)
		}
		found[key][l.Decision] = append(found[key][l.Decision], l.Evaluation)
	}
	for _, key := range order {
		n := 0
		for _, names := range found[key] {
			n += len(names)
		}
		var p phrase
		p.name(key.candidate)
		p.say(" against ")
		p.name(key.baseline)
		p.say(" on %s: better on %s, worse on %s", plural(n, "evaluation"), among(found[key][stats.Better]), among(found[key][stats.Worse]))
		for _, d := range []struct {
			decision stats.Decision
			words    string
		}{{stats.NoDifference, "equal within the margin"}, {stats.TooFewRows, "not decided"}, {harness.TrendOnly, "trend only"}, {stats.Invalid, "without rows"}} {
			if names := found[key][d.decision]; names != nil {
				p.say(", %s on %s", d.words, among(names))
			}
		}
		p.say(".")
		list = append(list, p)
	}
	for _, e := range r.Evaluations {
		list = append(list, e.uncompared()...)
	}
	return list
}

// among counts evaluations, and names a few.
func among(names []string) string {
	const most = 4
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return fmt.Sprintf("%d (%s, …)", len(names), strings.Join(names[:most], ", "))
	}
	return fmt.Sprintf("%d (%s)", len(names), strings.Join(names, ", "))
}

// uncompared has a sentence on each candidate that is in no comparison.
func (e *Evaluation) uncompared() []phrase {
	var list []phrase
	for _, out := range e.Candidates {
		if slices.ContainsFunc(e.Comparisons, func(c harness.Comparison) bool {
			return c.Candidate == out.Name || c.Baseline == out.Name
		}) {
			continue
		}
		var p phrase
		p.name(out.Name)
		metric := ""
		if len(e.Metrics) > 0 {
			metric = e.Metrics[0]
		}
		m, ok := out.Metrics[metric]
		s := scaleOf(e.Evaluation, metric)
		switch {
		case ok && m.N > 0:
			p.say(" scores %s", s.mean(m.Mean, m.Low, m.High))
			e.on(&p)
			p.say(" by ")
			p.name(metric)
			if between := s.between(m.Mean, m.Low, m.High); between != "" {
				p.say(" (95%% range %s%s, %s)", between, s.ofMean(), plural(m.N, "row"))
			} else {
				p.say(" (%s, too few for a range)", plural(m.N, "row"))
			}
		case out.N > 0:
			p.say(" answered %s", plural(out.N-out.Failed, "row"))
			e.on(&p)
			p.say(", which no metric scored")
		default:
			p.say(" finished no row")
			e.on(&p)
		}
		if out.Failed > 0 {
			p.say("; %s failed", plural(out.Failed, "row"))
		}
		if len(e.Candidates) == 1 {
			p.say(". There is no other candidate to compare it with.")
		} else {
			p.say(". It was compared with no other candidate.")
		}
		list = append(list, p)
	}
	return list
}

func (e *Evaluation) on(p *phrase) {
	if e.Name != "" {
		p.say(" on %s", e.Name)
	}
}
