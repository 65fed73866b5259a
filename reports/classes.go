package reports

import (
	"fmt"
	"strconv"
	"strings"

	"evalrun/harness"
)

// maxClasses is how many classes a table for people has at most; report.json has
// all of them.
const maxClasses = 12

// classTable is one candidate's classes by one metric, ready to be read.
type classTable struct {
	Candidate string
	Summary   phrase
	Labels    []string
	Lines     []classLine // none when there are too many
}

type classLine struct {
	Label                               string
	N, Predicted, Precision, Recall, F1 string
	Answered                            []string // as each of the labels
	Other, Failed                       string
}

// classes has a table for each candidate and metric that names classes.
func (e *Evaluation) classes() []classTable {
	var list []classTable
	for _, metric := range e.Metrics {
		for _, out := range e.Candidates {
			if c := out.Classification[metric]; c != nil {
				list = append(list, newClassTable(out.Name, metric, c))
			}
		}
	}
	return list
}

func newClassTable(candidate, metric string, c *harness.Classification) classTable {
	t := classTable{Candidate: candidate}
	t.Summary.name(candidate)
	t.Summary.say(" by ")
	t.Summary.name(metric)
	t.Summary.say(": accuracy %s, macro F1 %s, on %s", share2(c.Accuracy), share2(c.MacroF1), plural(c.N, "answer"))
	if len(c.Labels) > maxClasses {
		t.Summary.say("; its %s classes are in %s", count(len(c.Labels)), JSONFile)
		return t
	}
	t.Labels = c.Labels
	for i, of := range c.PerClass {
		l := classLine{
			Label: of.Label, N: count(of.N), Predicted: count(of.Predicted), Precision: "–", Recall: share2(of.Recall), F1: share2(of.F1),
			Other: count(c.Other[i]), Failed: count(c.Failed[i]),
		}
		if of.Precision != nil {
			l.Precision = share2(*of.Precision)
		}
		for _, n := range c.Confusion[i] {
			l.Answered = append(l.Answered, count(n))
		}
		t.Lines = append(t.Lines, l)
	}
	return t
}

// share2 writes a share to two digits after the point.
func share2(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

// mdClasses writes the tables of classes.
func mdClasses(b *strings.Builder, e *Evaluation) {
	for _, t := range e.classes() {
		fmt.Fprintf(b, "%s.\n\n", mdPhrase(t.Summary))
		if len(t.Lines) == 0 {
			continue
		}
		b.WriteString("| class | precision | recall | F1 | right for | answered |\n|---|--:|--:|--:|--:|--:|\n")
		for _, l := range t.Lines {
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", mdName(l.Label), l.Precision, l.Recall, l.F1, l.N, l.Predicted)
		}
		b.WriteString("\n")
	}
}

// classes writes the tables of classes, a line for each.
func (t *terminal) classes(e *Evaluation) {
	for _, c := range e.classes() {
		t.say("", "  ", c.Summary)
		for _, l := range c.Lines {
			t.say("  ", "    ", plain("%s: precision %s, recall %s, F1 %s; right for %s, answered %s", l.Label, l.Precision, l.Recall, l.F1, l.N, l.Predicted))
		}
	}
}
