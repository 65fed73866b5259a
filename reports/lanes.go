package reports

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"evalrun/harness"
)

// Fidelity says in a sentence or two whether the baseline sends what was recorded;
// "" when there was nothing to look at.
func Fidelity(f *harness.Fidelity) string {
	if f == nil {
		return ""
	}
	text := ""
	switch compared := f.Same + f.Different; {
	case compared == 0:
		text = "No row's request could be compared with the recorded one"
	case f.Different == 0:
		text = fmt.Sprintf("The baseline sends exactly what was recorded, on %s", all(compared, "row", "that could be compared"))
	default:
		text = fmt.Sprintf("The baseline sends another request than was recorded on %s of %s (%s)", count(f.Different), plural(compared, "row"), counted(f.ByPart))
	}
	if n := f.NotComparable; len(n) > 0 {
		text += "; not compared: " + counted(spelledOut(n))
	}
	text += "."
	if f.First != "" {
		text += " See evalrun run SPEC --row " + f.First + " --show-request."
	}
	return text
}

// all is "the 1 row that …" or "all 12 rows that …".
func all(n int, one, that string) string {
	if n == 1 {
		return "the 1 " + one + " " + that
	}
	return "all " + plural(n, one) + " " + that
}

// incomparable says why rows are not compared.
var incomparable = map[string]string{
	harness.IncomparableNoHash:  "without a recorded hash",
	harness.IncomparableVersion: "of another version",
	harness.IncomparableShaped:  "shaped by their host's plugins",
	harness.IncomparableRender:  "that the program cannot be asked",
}

func spelledOut(counts map[string]int) map[string]int {
	words := map[string]int{}
	for reason, n := range counts {
		if word := incomparable[reason]; word != "" {
			reason = word
		}
		words[reason] += n
	}
	return words
}

const theBaseline = "baseline"

// versus says in a word or three what candidates are compared with.
func (e *Evaluation) versus() string {
	switch e.Compare {
	case harness.CompareAA:
		return "baseline asked again"
	case harness.CompareRecorded:
		return "recorded answers"
	}
	return theBaseline
}

// notes are sentences on what was compared: whether the baseline sends what was
// recorded, how much asking again changes, which models answered, and how many
// verdicts hold of new answers.
func (e *Evaluation) notes() []phrase {
	var list []phrase
	if text := Fidelity(e.Fidelity); text != "" {
		list = append(list, plain("%s", text))
	}
	for i := range e.Noise {
		list = append(list, e.noiseNote(&e.Noise[i]))
	}
	for _, p := range []phrase{e.transferred(), e.served()} {
		if p != nil {
			list = append(list, p)
		}
	}
	return list
}

// transferred says of which answers the verdicts of people hold, which is of those
// that equal the rated one.
func (e *Evaluation) transferred() phrase {
	var p phrase
	for _, out := range e.Candidates {
		t := out.Transferred
		if t == nil {
			continue
		}
		p.next("Answers that equal the rated one, of which alone its verdict holds: ", "; ")
		p.name(out.Name)
		same := t.Exact + t.Normalized
		all := same + t.None
		p.say(" %s of %s (%s", count(same), count(all), share(same, all))
		if t.Normalized > 0 {
			p.say(", %s but for white space and case", count(t.Normalized))
		}
		p.say(")")
	}
	return p.end()
}

// served says which models answered, as they call themselves, where behind one name
// there were several.
func (e *Evaluation) served() phrase {
	if !slices.ContainsFunc(e.Candidates, func(out *harness.Outcome) bool { return len(out.Served) > 1 }) {
		return nil
	}
	var p phrase
	for _, out := range e.Candidates {
		if len(out.Served) == 0 {
			continue
		}
		p.next("Answered by: ", "; ")
		p.name(out.Name)
		for i, model := range slices.Sorted(maps.Keys(out.Served)) {
			if i > 0 {
				p.say(",")
			}
			p.say(" ")
			p.name(model)
			p.say(" (%s)", count(out.Served[model]))
		}
	}
	return p.end()
}

// next begins a list, or goes on with it.
func (p *phrase) next(first, between string) {
	if *p == nil {
		p.say("%s", first)
	} else {
		p.say("%s", between)
	}
}

// end is the list with its full stop; nil when it was never begun.
func (p phrase) end() phrase {
	if p != nil {
		p.say(".")
	}
	return p
}

// noiseNote says how much a score moves when the baseline is asked again, and
// which differences are no larger.
func (e *Evaluation) noiseNote(n *harness.Noise) phrase {
	var p phrase
	s := scaleOf(e.Evaluation, n.Metric)
	floor, ok := n.Floor.Get()
	if !ok {
		p.say("Asked again, ")
		p.name(e.Baseline)
		p.say(" has no row to compare.")
		return p
	}
	diff, _ := n.Diff.Get()
	p.say("Asked again, ")
	p.name(e.Baseline)
	if len(e.Metrics) > 1 {
		p.say(" by ")
		p.name(n.Metric)
	}
	p.say(" changed on %s of %s (%s%s): asking again moves its score by up to ±%s.", count(n.Changed), plural(n.N, "row"),
		signed(s.shown(diff), s.place(n.Diff, n.Diff, n.Diff)), s.unit(), s.size(floor))
	var within phrase
	for i := range e.Comparisons {
		if c := &e.Comparisons[i]; c.Metric == n.Metric && c.WithinNoise {
			within.next(" Within that: ", ", ")
			within.name(c.Candidate)
		}
	}
	return append(p, within.end()...)
}

// share is a part of a whole in percent.
func share(part, whole int) string {
	return strings.TrimSuffix(rounded(100*float64(part)/float64(whole), -1), ".0") + "%"
}
