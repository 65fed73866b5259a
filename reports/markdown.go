package reports

import (
	"fmt"
	"html"
	"io"
	"regexp"
	"strings"
)

// maxWarnings is how many different warnings a comment repeats; report.json has
// all of them.
const maxWarnings = 10

// writeMarkdown writes the short form that fits a pull request's comment.
func writeMarkdown(w io.Writer, r *Report) error {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }

	p("## %s\n\n", mdText(r.title()))
	for _, h := range r.headline() {
		p("%s\n\n", mdPhrase(h))
	}
	if r.Exit.Code != 0 {
		p("**Exit code %d: %s.**\n\n", r.Exit.Code, mdText(r.Exit.Meaning))
	}
	if len(r.Suite) > 0 {
		mdSuite(&b, r)
	}
	for _, e := range r.Evaluations {
		if len(r.Evaluations) > 1 {
			p("<details><summary>%s</summary>\n\n", mdHTML(e.Name))
			for _, v := range e.leading() {
				p("- %s\n", mdPhrase(v.words))
			}
			if len(e.Verdicts) > 0 {
				p("\n")
			}
		}
		mdStandings(&b, e)
		p("%s\n\n", mdText(upper(e.account()))+".")
		var short phrase
		e.shortcomings(&short)
		if len(short) > 0 {
			p("Of these, %s.\n\n", mdPhrase(short))
		}
		for _, note := range e.notes() {
			p("%s\n\n", mdPhrase(note))
		}
		if tools := e.toolCalls(); tools != nil {
			p("%s.\n\n", mdPhrase(tools))
		}
		mdPlugins(&b, e)
		mdClasses(&b, e)
		mdJudges(&b, e)
		if len(r.Evaluations) > 1 {
			p("</details>\n\n")
		}
	}
	mdTook(&b, r)
	p("<sub>%s</sub>\n\n", mdText(legend(r.Evaluations)))
	if warnings := r.warnings(); len(warnings) > 0 {
		p("**Warnings**\n\n")
		for i, n := range warnings {
			if i == maxWarnings {
				p("- and %d more in %s\n", len(warnings)-i, JSONFile)
				break
			}
			p("- %s", mdText(n.Text))
			if where := n.place(); where != "" {
				p(" (%s)", mdText(where))
			}
			p("\n")
		}
		p("\n")
	}
	p("%s\n", mdPhrase(r.origin()))
	_, err := io.WriteString(w, b.String())
	return err
}

// mdStandings writes the candidates' table of an evaluation.
func mdStandings(b *strings.Builder, e *Evaluation) {
	several, compared := len(e.Metrics) > 1, len(e.Comparisons) > 0
	head, rule := "| candidate |", "|---|"
	if several {
		head, rule = "| metric | candidate |", "|---|---|"
	}
	head += " score | 95% range | | failed |"
	rule += "--:|---|---|--:|"
	if compared {
		head += fmt.Sprintf(" %s | %s range | better / worse / same | p | verdict |", diffHead(e.lines), level(e.Statistics))
		rule += "--:|---|--:|--:|---|"
	}
	fmt.Fprintf(b, "%s\n%s\n", head, rule)
	for _, l := range e.lines {
		b.WriteString("|")
		if several {
			fmt.Fprintf(b, " %s |", mdName(l.Metric))
		}
		name := mdName(l.Candidate)
		if l.Baseline {
			name += " (baseline)"
		}
		fmt.Fprintf(b, " %s | %s | %s | %s | %s |", name, l.Score, l.Range, l.Method, count(l.Failed))
		if compared {
			b.WriteString(mdVersus(l.Versus))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

func mdVersus(v *versus) string {
	if v == nil {
		return " | | | | |"
	}
	return fmt.Sprintf(" %s | %s | %s / %s / %s | %s | %s %s |",
		mdText(v.Marked()), v.Range, count(v.Better), count(v.Worse), count(v.Same), mdText(v.P), mdText(v.Sign()), v.Words())
}

// mdPlugins writes the table of what plugins did, when any did something.
func mdPlugins(b *strings.Builder, e *Evaluation) {
	list := e.plugins()
	if len(list) == 0 {
		return
	}
	b.WriteString("What plugins did, in calls:\n\n")
	b.WriteString("| candidate | plugin | hook | changed | instruction replaced | tool blocked | failed | of answers |\n|---|---|---|--:|--:|--:|--:|--:|\n")
	for _, u := range list {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n",
			mdName(u.Candidate), mdText(u.Plugin), mdText(u.Hook), u.Changed, u.Instruction, u.Blocked, u.Failed, u.Answers)
	}
	b.WriteString("\n")
}

// mdTook writes what a run against services took.
func mdTook(b *strings.Builder, r *Report) {
	if !r.served() {
		return
	}
	for _, p := range r.took() {
		fmt.Fprintf(b, "%s\n\n", mdPhrase(p))
	}
	t := r.spendTable()
	if len(t.Lines) == 0 {
		return
	}
	b.WriteString("| purpose | cause | model | requests | tokens | money | unknown | in doubt |\n|---|---|---|--:|--:|--:|--:|--:|\n")
	for _, l := range t.Lines {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", mdText(l.Purpose), mdText(l.Cause), mdName(l.Model), l.Requests, l.Tokens, l.Money, l.Unknown, l.Doubtful)
	}
	fmt.Fprintf(b, "| **%s** | | | %s | %s | %s | %s | %s |\n\n<sub>%s</sub>\n\n", t.Total.Purpose, t.Total.Requests, t.Total.Tokens, t.Total.Money, t.Total.Unknown, t.Total.Doubtful, mdText(t.Caption))
}

// mdSuite writes the table over all evaluations.
func mdSuite(b *strings.Builder, r *Report) {
	lines := r.suiteLines()
	fmt.Fprintf(b, "| evaluation | candidate | baseline | score | %s | range | better / worse / same | p | verdict |\n", diffHead(lines))
	b.WriteString("|---|---|--:|--:|--:|---|--:|--:|---|\n")
	for _, l := range lines {
		fmt.Fprintf(b, "| %s | %s | %s | %s |%s\n", mdText(l.Evaluation), mdName(l.Candidate), l.Versus.Before, l.Versus.After, mdVersus(l.Versus))
	}
	b.WriteString("\n")
}

// mdPhrase writes a phrase on one line, its names as code.
func mdPhrase(p phrase) string {
	var b strings.Builder
	for _, w := range p {
		if w.Name {
			b.WriteString(mdName(w.Text))
		} else {
			b.WriteString(mdText(w.Text))
		}
	}
	return b.String()
}

var backquotes = regexp.MustCompile("`+")

// mdName writes a name as code, in which nothing is markup. A bar would end a
// table's cell even there.
func mdName(s string) string {
	s = strings.ReplaceAll(oneLine(s), "|", `\|`)
	if s == "" {
		return "(no name)"
	}
	fence := 0
	for _, run := range backquotes.FindAllString(s, -1) {
		fence = max(fence, len(run))
	}
	ticks := strings.Repeat("`", fence+1)
	if fence > 0 {
		return ticks + " " + s + " " + ticks
	}
	return ticks + s + ticks
}

// mdSpecial are the characters that may be markup in text.
const mdSpecial = "\\`*_[]<>|#~&"

// mdText writes text without line ends so that it is shown as it is: no markup, no
// link, and nobody is mentioned.
func mdText(s string) string {
	var b strings.Builder
	for _, c := range tame(s) {
		switch {
		case c == '<':
			b.WriteString("&lt;")
		case c == '&':
			b.WriteString("&amp;")
		case c == '@': // a mention would notify a person
			b.WriteString("@\u2060")
		case strings.ContainsRune(mdSpecial, c):
			b.WriteRune('\\')
			b.WriteRune(c)
		default:
			b.WriteRune(c)
		}
	}
	return strings.ReplaceAll(b.String(), "://", ":\u2060//")
}

// mdHTML writes text on one line inside of HTML, where Markdown is not read.
func mdHTML(s string) string {
	return strings.NewReplacer("@", "@\u2060", "://", ":\u2060//").Replace(html.EscapeString(tame(s)))
}
