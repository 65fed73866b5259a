package harness

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"evalrun/datasets"
	"evalrun/internal/normal"
	"evalrun/pipeline"
)

// What candidates are compared with.
const (
	CompareBaseline = "baseline" // the baseline
	CompareAA       = "aa"       // the A/A lane: the baseline, asked again
	CompareRecorded = "recorded" // the recorded lane: what was rated
)

var compareWords = []string{CompareBaseline, CompareAA, CompareRecorded}

// AgainName is the name of the A/A lane of a baseline.
func AgainName(baseline string) string { return baseline + " (again)" }

// addAA adds the A/A lane to the plan: the baseline once more, as a candidate of
// its own, whose answers are other draws.
func (c *Checked) addAA() error {
	p := &c.plan
	if !p.AA {
		return nil
	}
	i := slices.IndexFunc(p.Candidates, func(cand Candidate) bool { return cand.Name == p.baseline() })
	if i < 0 {
		return nil // said by whoever checks the baseline
	}
	again := p.Candidates[i]
	if again.Recorded {
		return fmt.Errorf("aa asks the baseline again, and the baseline %s is the recorded lane, which is never asked: name another baseline", again.Name)
	}
	again.Name, again.aa = AgainName(again.Name), true
	if slices.ContainsFunc(p.Candidates, func(cand Candidate) bool { return cand.Name == again.Name }) {
		return fmt.Errorf("the candidate %q has the name of the A/A lane: rename it, or leave aa out", again.Name)
	}
	if again.Caller != nil && again.Caller.LM.Deterministic {
		c.warnings = append(c.warnings, fmt.Sprintf("the A/A lane asks %s, which answers the same request the same: it shows no noise", again.Caller.LM.Name))
	}
	p.Candidates = append(slices.Clone(p.Candidates), again)
	return nil
}

// checkCompare refuses a comparison with a lane that is not there.
func (c *Checked) checkCompare() error {
	p := &c.plan
	switch p.Compare {
	case "", CompareBaseline:
		p.Compare = ""
		return nil
	case CompareAA:
		if !p.AA {
			return fmt.Errorf("compare: aa needs the A/A lane: say aa: true")
		}
		return nil
	case CompareRecorded:
		n := 0
		for i := range p.Candidates {
			n += one(p.Candidates[i].Recorded)
		}
		if n != 1 {
			return fmt.Errorf("compare: recorded needs one candidate with recorded: true, and there are %d", n)
		}
		return nil
	}
	return fmt.Errorf("compare: %q is none of %s%s", p.Compare, strings.Join(compareWords, ", "), didYouMean(p.Compare, compareWords))
}

// Reference is the name of the candidate that the others are compared with: the
// baseline, unless the plan says otherwise.
func (e *Evaluation) Reference() string {
	for _, out := range e.Candidates {
		if e.Compare == CompareAA && out.AA || e.Compare == CompareRecorded && out.Recorded {
			return out.Name
		}
	}
	return e.Baseline
}

// The ways in which an answer equals the one that was rated.
const (
	TransferExact      = "exact"      // the same value
	TransferNormalized = "normalized" // the same text but for white space and case
	TransferNone       = "none"       // another one: what people said of the rated one says nothing of it
)

// Transfers counts a candidate's answers to rows with a verdict by whether the
// verdict holds of them too.
type Transfers struct {
	Exact      int `json:"exact"`
	Normalized int `json:"normalized"`
	None       int `json:"none"`
}

func (t *Transfers) count(how string) {
	switch how {
	case TransferExact:
		t.Exact++
	case TransferNormalized:
		t.Normalized++
	case TransferNone:
		t.None++
	}
}

// transfer says how the answer of a call equals the rated one; "" when the row
// has no verdict.
func transfer(row *datasets.Row, answer datasets.Value, name string) string {
	if row.Verdict.Verdict == "" {
		return ""
	}
	rated := row.Recorded[name]
	switch {
	case rated.IsZero() || answer.IsZero():
		return TransferNone
	case rated.Equal(answer):
		return TransferExact
	}
	a, isText := rated.AsText()
	b, alike := answer.AsText()
	if isText && alike && normal.Text(a) == normal.Text(b) {
		return TransferNormalized
	}
	return TransferNone
}

// servedBy are the model and the system that served a call's last reply.
func servedBy(call *pipeline.Call) (model, system string) {
	for _, x := range call.Exchanges {
		if x.Reply != nil {
			model, system = x.Reply.Model, x.Reply.System
		}
	}
	return model, system
}

// trace counts who served an answer, and whether a verdict was transferred.
func (l *lane) trace(r *Result) {
	if r.Transfer != "" {
		if l.out.Transferred == nil {
			l.out.Transferred = new(Transfers)
		}
		l.out.Transferred.count(r.Transfer)
	}
	countIn(&l.out.Served, r.Model)
	countIn(&l.out.Systems, r.System)
}

func countIn(counts *map[string]int, name string) {
	if name == "" {
		return
	}
	if *counts == nil {
		*counts = map[string]int{}
	}
	(*counts)[name]++
}

// servedDoubts warns of candidates that several models, or systems, answered
// under one name.
func (t *tally) servedDoubts() []string {
	var doubts []string
	for _, l := range t.lanes {
		for _, by := range []struct {
			what   string
			counts map[string]int
		}{{"models", l.out.Served}, {"system fingerprints", l.out.Systems}} {
			if len(by.counts) > 1 && l.out.Model != nil {
				doubts = append(doubts, fmt.Sprintf("behind the model %s of %s there were %d %s: %s; what is compared may be these, and results.parquet says which answered which row",
					l.out.Model.Name, l.out.Name, len(by.counts), by.what, servedText(by.counts)))
			}
		}
	}
	return doubts
}

// servedText lists who answered how often, the most frequent first.
func servedText(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}
