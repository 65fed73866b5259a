package reports

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"evalrun/harness"
	"evalrun/harness/stats"
)

// MinWidth is the narrowest terminal that Text writes for.
const MinWidth = 40

// Text writes the short form for a terminal of that many columns: the verdicts,
// the tables, the rows' account, the warnings. No line is longer, unless one word
// is. Tables that do not fit become lists. Color only repeats what words and
// signs say.
func Text(w io.Writer, r *Report, columns int, color bool) error {
	t := &terminal{columns: max(columns, MinWidth), color: color}
	for _, v := range r.spoken() {
		t.verdict(v)
	}
	if r.Exit.Code != 0 {
		t.say("", "  ", plain("exit code %d: %s", r.Exit.Code, r.Exit.Meaning))
	}
	if lines := r.suiteLines(); len(r.Evaluations) > 1 && len(lines) > 0 {
		t.blank()
		t.table(lines, true, level(r.Evaluations[0].Statistics))
	} else {
		for _, e := range r.Evaluations {
			t.blank()
			t.table(e.lines, false, level(e.Statistics))
		}
	}
	t.footnotes(r)
	t.blank()
	for _, e := range r.Evaluations {
		var p phrase
		if e.Name != "" {
			p.say("%s: ", e.Name)
		}
		p.say("%s", e.account())
		var short phrase
		if e.shortcomings(&short); len(short) > 0 {
			p.say("; ")
			p = append(p, short...)
		}
		t.say("", "  ", p)
		for _, f := range e.failures {
			if len(f.Messages) > 0 {
				p := plain("%s: first, on row %s: %s", f.Class, f.Messages[0].Row, shortened(f.Messages[0].Text))
				t.say("  ", "    ", append(phrase{{f.Candidate, true}, {" ", false}}, p...))
			}
		}
		if len(r.Evaluations) == 1 { // a suite's are on its page; what is doubtful is a warning as well
			for _, note := range e.notes() {
				t.say("", "  ", note)
			}
		}
		if tools := e.toolCalls(); tools != nil {
			t.say("", "  ", tools)
		}
	}
	for _, e := range r.Evaluations {
		t.classes(e)
		t.judges(e)
	}
	for _, e := range r.Evaluations {
		for _, p := range e.pluginTrouble() {
			t.say("", "  ", p)
		}
	}
	if r.served() {
		t.say("", "  ", plain("%s", r.effort()))
		if cut := r.cutOff(); cut != nil {
			t.say("", "  ", cut)
		}
	}
	warnings := slices.DeleteFunc(r.warnings(), func(n noted) bool { return r.told[n.Text] })
	if len(warnings) > 0 {
		t.blank()
		for i, n := range warnings {
			if i == maxWarnings {
				t.say("", "  ", plain("! and %d more in %s", len(warnings)-i, JSONFile))
				break
			}
			p := plain("! %s", n.Text)
			if where := n.place(); where != "" {
				p.say(" (%s)", where)
			}
			t.say("", "  ", p)
		}
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

// footnotes explain the tables.
func (t *terminal) footnotes(r *Report) {
	apart := false
	var lower []string
	for _, e := range r.Evaluations {
		for _, l := range e.lines {
			apart = apart || l.apart
			if l.lower && !slices.Contains(lower, l.Metric) {
				lower = append(lower, l.Metric)
			}
		}
	}
	if lower != nil {
		t.say("", "  ", plain("less is better of %s", strings.Join(lower, ", ")))
	}
	if apart {
		t.say("", "   ", plain("%s", apartNote))
	}
}

// shortened is a message on one line, without its middle when it is long: a page has
// all of it. Of a message of several lines the last one is kept, which is where a
// program's standard error and a traceback have the reason.
func shortened(message string) string {
	const most = 160
	message = strings.TrimSpace(message)
	whole := []rune(oneLine(message))
	if len(whole) <= most {
		return string(whole)
	}
	i := strings.LastIndexByte(message, '\n')
	if i < 0 {
		return cut(whole, most)
	}
	before, last := []rune(oneLine(message[:i])), []rune(oneLine(message[i:]))
	head := cut(before, max(most/2, most-1-len(last)))
	return head + " " + cut(last, most-1-utf8.RuneCountInString(head))
}

// cut is the beginning of a text, with a sign when there is more.
func cut(text []rune, most int) string {
	if len(text) <= most {
		return string(text)
	}
	return string(text[:most-1]) + "…"
}

func plain(format string, args ...any) phrase {
	var p phrase
	p.say(format, args...)
	return p
}

// spoken are the sentences a report begins with, each with its decision if it
// has one.
func (r *Report) spoken() []Verdict {
	var list []Verdict
	if len(r.Evaluations) == 1 {
		e := r.Evaluations[0]
		list = append(list, e.leading()...)
		for _, p := range e.uncompared() {
			list = append(list, Verdict{words: p})
		}
		return list
	}
	for _, p := range r.headline() {
		list = append(list, Verdict{words: p})
	}
	return list
}

// A terminal is text in columns.
type terminal struct {
	b       strings.Builder
	columns int
	color   bool
}

func (t *terminal) blank() {
	if t.b.Len() > 0 {
		t.b.WriteByte('\n')
	}
}

// The colors of decisions.
var colors = map[stats.Decision]string{
	stats.Better: "\x1b[32m", stats.Worse: "\x1b[31m", stats.NoDifference: "\x1b[36m", stats.TooFewRows: "\x1b[33m", stats.Invalid: "\x1b[33m",
	harness.TrendOnly: "\x1b[33m",
}

func (t *terminal) paint(s string, d stats.Decision) string {
	if c := colors[d]; t.color && c != "" && s != "" {
		return c + s + "\x1b[0m"
	}
	return s
}

// verdict writes a sentence after its decision's sign.
func (t *terminal) verdict(v Verdict) {
	sign := decisions[v.Decision].Sign
	if sign == "" {
		t.say("", "", v.words)
		return
	}
	text := t.wrapped("", "  ", append(plain("%s ", sign), v.words...))
	t.b.WriteString(t.paint(sign, v.Decision) + strings.TrimPrefix(text, sign))
}

func (t *terminal) say(first, rest string, p phrase) { t.b.WriteString(t.wrapped(first, rest, p)) }

// wrapped is a phrase in lines that fit, the first one and the others each with
// their indentation.
func (t *terminal) wrapped(first, rest string, p phrase) string {
	var text, lines strings.Builder
	for _, w := range p {
		text.WriteString(w.Text)
	}
	lines.WriteString(first)
	at, begun := cells(first), false
	for word := range strings.FieldsSeq(oneLine(text.String())) {
		n := cells(word)
		switch {
		case !begun:
		case at+1+n > t.columns:
			lines.WriteString("\n" + rest)
			at = cells(rest)
		default:
			lines.WriteByte(' ')
			at++
		}
		lines.WriteString(word)
		at += n
		begun = true
	}
	return lines.String() + "\n"
}

// A column of a table is the cells of all lines. Of columns that may be dropped,
// the first to go are those with the highest number.
type column struct {
	head  string
	right bool
	drop  int
	cells []string
}

// table writes lines as a table, without its less important columns when it is
// too wide, and as a list when it still is.
func (t *terminal) table(lines []line, suite bool, level string) {
	if len(lines) == 0 {
		return
	}
	columns := tableColumns(lines, suite, level)
	for tableWidth(columns) > t.columns {
		least := 0
		for _, c := range columns {
			least = max(least, c.drop)
		}
		if least == 0 {
			t.list(lines, suite)
			return
		}
		columns = slices.DeleteFunc(columns, func(c column) bool { return c.drop == least })
	}
	for i := -1; i < len(lines); i++ {
		var b strings.Builder
		for j, c := range columns {
			text := c.head
			if i >= 0 {
				text = c.cells[i]
			}
			fill := strings.Repeat(" ", c.width()-cells(text))
			if i >= 0 && j == len(columns)-1 && lines[i].Versus != nil {
				text = t.paint(text, lines[i].Versus.Decision)
			}
			if c.right {
				text = fill + text
			} else {
				text += fill
			}
			b.WriteString(text + strings.Repeat(" ", columnGap))
		}
		t.b.WriteString(strings.TrimRight(b.String(), " ") + "\n")
	}
}

const columnGap = 2

func (c *column) width() int {
	n := cells(c.head)
	for _, text := range c.cells {
		n = max(n, cells(text))
	}
	return n
}

func tableWidth(columns []column) int {
	total := -columnGap
	for i := range columns {
		total += columns[i].width() + columnGap
	}
	return total
}

func tableColumns(lines []line, suite bool, level string) []column {
	var columns []column
	add := func(head string, right bool, drop int, cell func(l *line) string) {
		c := column{head: head, right: right, drop: drop}
		for i := range lines {
			c.cells = append(c.cells, oneLine(cell(&lines[i])))
		}
		columns = append(columns, c)
	}
	// addVersus adds a column that only lines that are compared have.
	addVersus := func(head string, right bool, drop int, cell func(v *versus) string) {
		add(head, right, drop, func(l *line) string {
			if l.Versus == nil {
				return ""
			}
			return cell(l.Versus)
		})
	}
	several, compared := false, false
	for _, l := range lines {
		several = several || l.Metric != lines[0].Metric
		compared = compared || l.Versus != nil
	}
	if suite {
		add("evaluation", false, 0, func(l *line) string { return l.Evaluation })
	}
	add("candidate", false, 0, func(l *line) string { return l.name() })
	if several && !suite {
		add("metric", false, 0, func(l *line) string { return l.Metric })
	}
	if suite {
		addVersus("baseline", true, 5, func(v *versus) string { return v.Before })
		addVersus("score", true, 5, func(v *versus) string { return v.After })
	} else {
		add("score", true, 0, func(l *line) string { return l.Score })
		add("95% range", false, 7, func(l *line) string { return l.Range })
		add("failed", true, 3, func(l *line) string { return count(l.Failed) })
	}
	if compared {
		rangeDrop := 0
		if several && !suite { // rather a table than a list as long as metrics are many
			rangeDrop = 1
		}
		addVersus(diffHead(lines), true, 0, func(v *versus) string { return v.Marked() })
		addVersus(level+" range", false, rangeDrop, func(v *versus) string { return v.Range })
		addVersus("▲", true, 2, func(v *versus) string { return count(v.Better) })
		addVersus("▼", true, 2, func(v *versus) string { return count(v.Worse) })
		addVersus("same", true, 4, func(v *versus) string { return count(v.Same) })
		addVersus("p", true, 6, func(v *versus) string { return v.P })
		addVersus("verdict", false, 0, func(v *versus) string { return v.Sign() + " " + v.Words() })
	}
	return columns
}

// name is the candidate's, and that it is the baseline.
func (l *line) name() string {
	if l.Baseline {
		return l.Candidate + " (baseline)"
	}
	return l.Candidate
}

// list writes lines one below the other, for narrow terminals.
func (t *terminal) list(lines []line, suite bool) {
	metric := ""
	for i, l := range lines {
		if i > 0 {
			t.blank()
		}
		if l.Metric != lines[0].Metric {
			metric = " by " + l.Metric
		}
		name := l.name() + metric
		if suite {
			name = l.Evaluation + ": " + l.name()
		}
		t.say("", "  ", plain("%s", name))
		p := plain("score %s", cmp.Or(l.Score, "none"))
		if l.Range != "" {
			p.say(" (%s)", l.Range)
		}
		p.say(", %s failed", count(l.Failed))
		t.say("  ", "    ", p)
		v := l.Versus
		if v == nil {
			continue
		}
		p = plain("%s %s", v.Sign(), v.Words())
		if v.Diff != "" {
			p.say(": %s%s", v.Diff, l.Scale.unit())
		}
		if v.Range != "" {
			p.say(" (%s)", v.Range)
		}
		text := t.wrapped("  ", "    ", p)
		t.b.WriteString(strings.Replace(text, v.Sign(), t.paint(v.Sign(), v.Decision), 1))
		p = plain("%s better, %s worse, %s same", count(v.Better), count(v.Worse), count(v.Same))
		if v.P != "" {
			p.say(", p %s", v.P)
		}
		t.say("  ", "    ", p)
	}
}

// cells is how many columns of a terminal a text takes.
func cells(s string) int {
	n := 0
	for _, c := range s {
		switch {
		case unicode.In(c, unicode.Mn, unicode.Me, unicode.Cf):
		case width.LookupRune(c).Kind() == width.EastAsianWide, width.LookupRune(c).Kind() == width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}
