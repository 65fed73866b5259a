package reports

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"evalrun/harness"
	"evalrun/harness/stats"
)

// The page's parts. Style and script are put into the page as they are; the page
// names their hashes, and a browser runs and applies nothing else.
var (
	//go:embed page.html.tmpl
	pageTemplate string
	//go:embed page.css
	pageStyle string
	//go:embed page.js
	pageScript string
)

var pageForm = template.Must(template.New("page").Funcs(template.FuncMap{"clip": clip, "score": score}).Parse(pageTemplate))

// page is what the template is filled in with.
type page struct {
	Title    string
	When     string // it was started
	Policy   string
	Style    template.CSS
	Script   template.JS
	Exit     Exit
	Headline []pageVerdict
	Others   *pageOthers
	Facts    []fact
	Warnings []pageWarning
	Suite    *pageSuite
	Sections []pageSection
	Took     *pageTook
	Methods  []method
	Origin   phrase
	Ids      []fact
}

type pageVerdict struct {
	Decision    stats.Decision
	Sign, Words string
	Phrase      phrase
}

// pageOthers are the verdicts by all metrics but the first, in short.
type pageOthers struct {
	Several bool // candidates
	Lines   []line
}

type pageWarning struct{ Text, Place string }

type pageSuite struct {
	Head    string
	Lines   []pageLine
	Forests []forest
	Bars    bars
}

type pageLine struct {
	line
	ID string // of the evaluation's section
}

type pageSection struct {
	ID, Title string
	Verdicts  []pageVerdict // when there are several evaluations
	Others    *pageOthers   // likewise
	Caption   string
	Legend    string
	Head      string
	Level     string
	Compared  bool
	Several   bool // metrics
	Groups    []pageGroup
	Forests   []forest
	Bars      bars
	Changes   []pageChanges
	Failures  []failure
	Account   string
	Notes     []phrase // on what was compared
	Tools     phrase
	Classes   []classTable
	Judges    []judgeTable
	Plugins   []pluginLine
	Ledger    pageLedger
	Effort    []pageEffort
	Wire      bool // some times are of the wire
}

type pageGroup struct {
	Metric string
	Lines  []line
}

type pageChanges struct {
	changes
	ID   string
	Open bool
	Left int // rows that are not shown
}

type pageLedger struct {
	Candidates []string
	States     []pageState
	Sums       []string
}

type pageState struct {
	Name   string
	Counts []string
}

type pageEffort struct{ Candidate, Answers, In, Out, Cost, Median, P95, Waited string }

// pageTook is what a run against services took.
type pageTook struct {
	Phrases  []phrase
	Spending spendTable
	Plots    []limitPlot
	Marks    []limitMark // that are in the plots
}

// writeHTML writes one page that needs nothing else and asks nothing of a network.
func writeHTML(w io.Writer, r *Report) error {
	p := page{
		Title: r.title(), Style: template.CSS(pageStyle), Script: template.JS(pageScript), Exit: r.Exit,
		Policy: "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; style-src " + sourceHash(pageStyle) + "; script-src " + sourceHash(pageScript),
		Facts:  r.facts(), Methods: r.methods(), Origin: r.origin(), Ids: r.ids(),
	}
	if t := r.Measured.Started; !t.IsZero() {
		p.When = t.Format("2 January 2006, 15:04:05 UTC")
	}
	several := len(r.Evaluations) > 1
	if several {
		for _, h := range r.headline() {
			p.Headline = append(p.Headline, pageVerdict{Phrase: h})
		}
	}
	for _, n := range r.warnings() {
		p.Warnings = append(p.Warnings, pageWarning{upper(n.Text) + ".", n.place()})
	}
	if lines := r.suiteLines(); several && len(lines) > 0 {
		p.Suite = &pageSuite{Head: diffHead(lines), Forests: forests(lines, r.Evaluations[0].Statistics, true), Bars: newBars(lines, true)}
		for _, l := range lines {
			i := slices.IndexFunc(r.Evaluations, func(e *Evaluation) bool { return e.Name == l.Evaluation })
			p.Suite.Lines = append(p.Suite.Lines, pageLine{l, fmt.Sprintf("e%d", i+1)})
		}
	}
	for i, e := range r.Evaluations {
		s := r.section(e, fmt.Sprintf("e%d", i+1), several)
		var verdicts []pageVerdict
		for _, v := range e.leading() {
			d := decisions[v.Decision]
			verdicts = append(verdicts, pageVerdict{v.Decision, d.Sign, d.Words, v.words})
		}
		for _, words := range e.uncompared() {
			verdicts = append(verdicts, pageVerdict{Phrase: words})
		}
		if several {
			s.Verdicts, s.Others = verdicts, e.shortOthers()
		} else {
			p.Headline, p.Others = verdicts, e.shortOthers()
		}
		p.Sections = append(p.Sections, s)
	}
	if r.served() {
		p.Took = &pageTook{Phrases: r.took(), Spending: r.spendTable()}
		p.Took.Plots, p.Took.Marks = limitPlots(r.Measured.Sittings)
	}
	return pageForm.Execute(w, &p)
}

func (e *Evaluation) shortOthers() *pageOthers {
	o := &pageOthers{Lines: e.others()}
	if o.Lines == nil {
		return nil
	}
	o.Several = slices.ContainsFunc(o.Lines, func(l line) bool { return l.Candidate != o.Lines[0].Candidate })
	return o
}

func (r *Report) section(e *Evaluation, id string, several bool) pageSection {
	s := pageSection{
		ID: id, Title: e.Name, Head: diffHead(e.lines), Level: level(e.Statistics), Compared: len(e.Comparisons) > 0,
		Several: len(e.Metrics) > 1, Legend: legend([]*Evaluation{e}), Failures: e.failures, Account: upper(e.account()), Notes: e.notes(),
		Ledger: e.ledger(), Effort: e.effort(), Tools: e.toolCalls(), Classes: e.classes(), Judges: e.judges(), Plugins: e.plugins(),
	}
	if !several {
		s.Title = "Candidates"
	}
	s.Wire = slices.ContainsFunc(e.Candidates, func(out *harness.Outcome) bool { return out.Measured.Latency.Of == harness.OfWire })
	s.Caption = "Every candidate on " + plural(e.Rows.Asked, "row")
	if len(e.Metrics) == 1 {
		s.Caption += ", by " + e.Metrics[0]
	}
	s.Caption += "."
	for _, metric := range e.Metrics {
		g := pageGroup{Metric: metric}
		for _, l := range e.lines {
			if l.Metric == metric {
				g.Lines = append(g.Lines, l)
			}
		}
		s.Groups = append(s.Groups, g)
	}
	if len(s.Groups) > 0 {
		s.Bars = newBars(s.Groups[0].Lines, false)
	}
	for _, g := range s.Groups {
		for _, f := range forests(g.Lines, e.Statistics, false) {
			if s.Several {
				f.Metric = g.Metric
			}
			f.Versus = e.versus()
			s.Forests = append(s.Forests, f)
		}
	}
	for j, c := range e.changes {
		s.Changes = append(s.Changes, pageChanges{changes: c, ID: fmt.Sprintf("%s-c%d", id, j+1), Open: !several, Left: c.Total() - len(c.Rows)})
	}
	return s
}

// ledger lays the ledger out as a table: a line for each state, a column for each
// candidate.
func (e *Evaluation) ledger() pageLedger {
	var t pageLedger
	classes := map[string]bool{}
	unfinished := false
	for _, c := range e.Ledger.Candidates {
		t.Candidates = append(t.Candidates, c.Candidate)
		for class, n := range c.Failed {
			classes[class] = classes[class] || n > 0
		}
		unfinished = unfinished || c.Unfinished > 0
	}
	state := func(name string, of func(i int) int) {
		s := pageState{Name: name}
		for i := range e.Ledger.Candidates {
			s.Counts = append(s.Counts, count(of(i)))
		}
		t.States = append(t.States, s)
	}
	state("scored", func(i int) int { return e.Ledger.Candidates[i].Scored })
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		state("failed: "+strings.ReplaceAll(class, "_", " "), func(i int) int { return e.Ledger.Candidates[i].Failed[class] })
	}
	if unfinished {
		state("unfinished", func(i int) int { return e.Ledger.Candidates[i].Unfinished })
	}
	for _, c := range e.Ledger.Candidates {
		sum := c.Scored + c.Unfinished
		for _, n := range c.Failed {
			sum += n
		}
		t.Sums = append(t.Sums, count(sum))
	}
	return t
}

// effort is what each candidate's answers took; what is not known is "unknown",
// and what there is nothing of is a dash.
func (e *Evaluation) effort() []pageEffort {
	const unknown = "unknown"
	var list []pageEffort
	for _, out := range e.Candidates {
		m := &out.Measured
		p := pageEffort{Candidate: out.Name, Answers: count(m.Answers), In: unknown, Out: unknown, Cost: unknown, Median: nothing, P95: nothing, Waited: nothing}
		if m.Asked == 0 {
			p.In, p.Out, p.Cost = nothing, nothing, nothing
		}
		if n := out.Usage.InputTokens; n != nil {
			p.In = count(*n)
		}
		if n := out.Usage.OutputTokens; n != nil {
			p.Out = count(*n)
		}
		if c := out.Usage.Cost; c != nil {
			p.Cost = money(*c)
		}
		if m.Latency.Of == harness.OfWire {
			p.Waited = seconds(m.Waited)
		}
		if m.Latency.N > 0 {
			p.Median, p.P95 = seconds(m.Latency.Median), seconds(m.Latency.P95)
		}
		list = append(list, p)
	}
	return list
}

// ids are the names by which a run's parts can be found again.
func (r *Report) ids() []fact {
	var list []fact
	add := func(name, value string) {
		if value != "" {
			list = append(list, fact{name, value})
		}
	}
	if r.Question != nil {
		add("question", r.Question.Identity)
	}
	add("spec", r.Measured.Spec)
	add("records", strings.Join(r.Measured.Records, ", "))
	pairs := func(m map[string]string) string {
		var list []string
		for _, name := range slices.Sorted(maps.Keys(m)) {
			list = append(list, name+" "+m[name])
		}
		return strings.Join(list, ", ")
	}
	add("versions", pairs(r.Measured.Versions))
	add("host", pairs(r.Measured.Host))
	return list
}

// sourceHash names an inline style or script for a content security policy.
func sourceHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// clipped is a text as a page shows it: whole when it is short, else its
// beginning, and the rest on demand.
type clipped struct {
	Head  string
	Whole bool
	Body  string // all of it, up to a limit
	Size  string // in code points
	Cut   bool   // Body is not all
}

func clip(s string) clipped {
	const runes, lines, head = 600, 12, 360
	size := utf8.RuneCountInString(s)
	if size <= runes && strings.Count(s, "\n") < lines {
		return clipped{Head: s, Whole: true}
	}
	c := clipped{Head: firstRunes(s, head), Body: firstRunes(s, maxText), Size: count(size), Cut: size > maxText}
	if parts := strings.SplitAfterN(c.Head, "\n", lines/2+1); len(parts) > lines/2 {
		c.Head = strings.Join(parts[:lines/2], "")
	}
	c.Head = strings.TrimRight(c.Head, " \n")
	return c
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
