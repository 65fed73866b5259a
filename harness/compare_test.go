package harness

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// outcome evaluates one candidate that answers rows as say has it.
func outcome(t testing.TB, name string, rows datasets.Source, pair string, say func(pipeline.Site) string, metrics ...Metric) *Outcome {
	t.Helper()
	if metrics == nil {
		metrics = []Metric{match{}}
	}
	e := mustEvaluate(t, Plan{Rows: rows, Pair: pair, Metrics: metrics, Candidates: []Candidate{candidate(t, name, says(say))}}, Options{})
	return e.Outcome(name)
}

func mustCompare(t testing.TB, base, cand *Outcome, o CompareOptions) []Comparison {
	t.Helper()
	c, err := Compare(base, cand, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The contract's worked example: of 40 rows four rise and none falls.
func TestCompareContract(t *testing.T) {
	rows := quiz(40)
	before := outcome(t, "before", rows, "", rightBut("r0", "r1", "r2", "r3"))
	after := outcome(t, "after", rows, "", right)
	c := mustCompare(t, before, after, CompareOptions{Strict: true})[0]
	if low, _ := c.Low.Get(); math.Abs(low-0.0028352) > 5e-8 {
		t.Errorf("low %v; want 0.0028352", low)
	}
	if high, _ := c.High.Get(); math.Abs(high-0.1971648) > 5e-8 {
		t.Errorf("high %v; want 0.1971648", high)
	}
	wantOpt(t, "diff", c.Diff, 0.1)
	if c.Better != 4 || c.Worse != 0 || c.Same != 36 || c.N != 40 || c.Clusters != 0 || c.Lost != nil {
		t.Errorf("comparison %+v", c)
	}
}

// Two runs over rows of which some are common.
func TestCompareRuns(t *testing.T) {
	rows := quiz(10)
	before := outcome(t, "before", rows[:8], "", rightBut("r2", "r3"))
	after := outcome(t, "after", rows[2:], "", rightBut("r4"))
	p, err := Pair(before, after)
	if err != nil {
		t.Fatal(err)
	}
	if p.Common != 6 || !cmp.Equal(p.BaselineOnly, []string{"r0", "r1"}) || !cmp.Equal(p.CandidateOnly, []string{"r8", "r9"}) {
		t.Errorf("pairing %+v", p)
	}
	c := mustCompare(t, before, after, CompareOptions{})[0]
	if c.N != 6 || c.Better != 2 || c.Worse != 1 || c.BaselineOnly != 2 || c.CandidateOnly != 2 || len(c.Warnings) != 1 {
		t.Errorf("comparison %+v", c)
	}
	wantOpt(t, "before", c.Before, 4.0/6)
	wantOpt(t, "after", c.After, 5.0/6)

	_, err = Compare(before, after, CompareOptions{Strict: true})
	wantError(t, err, ErrRows, "6 are common", "2 only the baseline's (r0, r1)", "2 only the candidate's (r8, r9)")
	_, err = Compare(outcome(t, "x", rows[:2], "", right), outcome(t, "y", rows[2:], "", right), CompareOptions{})
	wantError(t, err, ErrNoRows, "x and y have no row in common")
}

// The order of rows does not matter: they are paired by id.
func TestCompareOrder(t *testing.T) {
	rows := quiz(5)
	turned := datasets.Rows{rows[4], rows[2], rows[0], rows[1], rows[3]}
	c := mustCompare(t, outcome(t, "before", rows, "", rightBut("r0")), outcome(t, "after", turned, "", rightBut("r3")), CompareOptions{})[0]
	want := []Change{{Row: "r0", Before: 0, After: 1}, {Row: "r3", Before: 1, After: 0}}
	if !cmp.Equal(c.Changed, want) {
		t.Errorf("changed %+v; want %+v", c.Changed, want)
	}
}

// Rows of the same ids that are not the same are told, and refused when strict.
func TestCompareOtherRows(t *testing.T) {
	rows, other := quiz(5), quiz(5)
	other[2].Labels["result"] = datasets.Text("another answer")
	before, after := outcome(t, "before", rows, "", right), outcome(t, "after", other, "", right)
	if c := mustCompare(t, before, after, CompareOptions{})[0]; c.N != 5 || len(c.Warnings) == 0 {
		t.Errorf("comparison %+v; want a warning", c)
	}
	_, err := Compare(before, after, CompareOptions{Strict: true})
	wantError(t, err, ErrRows, "not the same")
}

func TestCompareMetrics(t *testing.T) {
	half := metricFunc{"half", match{}.Score}
	rows := quiz(3)
	before := outcome(t, "before", rows, "", right, half, match{}, metricFunc{"old", match{}.Score})
	after := outcome(t, "after", rows, "", right, match{}, metricFunc{"new", match{}.Score}, half)
	c := mustCompare(t, before, after, CompareOptions{})
	if len(c) != 2 || c[0].Metric != "half" || c[1].Metric != "match" {
		t.Errorf("compared %+v; want half and match, in the baseline's order", c)
	}
	_, err := Compare(before, outcome(t, "none", rows, "", right, metricFunc{"new", match{}.Score}), CompareOptions{})
	wantError(t, err, ErrPlan, "no metric in common", "half, match, old", "new")
}

// Recorded lanes of two programs have ids of their own, and are paired by what
// was asked.
func TestComparePaired(t *testing.T) {
	recorded := func(prefix string, wrong ...int) *Outcome {
		rows := quiz(6)
		for i := range rows {
			rows[i].ID = fmt.Sprintf("%s%d", prefix, i)
		}
		for _, i := range wrong {
			rows[i].Recorded["result"] = datasets.Text("wrong")
		}
		e := mustEvaluate(t, Plan{Rows: rows, Pair: "question", Metrics: []Metric{match{}}, Candidates: []Candidate{{Name: prefix, Recorded: true}}}, Options{})
		return e.Candidates[0]
	}
	c := mustCompare(t, recorded("x", 1, 2), recorded("y", 2, 5), CompareOptions{Strict: true})[0]
	want := []Change{{Row: "x1", CandidateRow: "y1", Before: 0, After: 1}, {Row: "x5", CandidateRow: "y5", Before: 1, After: 0}}
	if c.N != 6 || c.Same != 4 || !cmp.Equal(c.Changed, want) {
		t.Errorf("comparison %+v", c)
	}
	_, err := Compare(recorded("x"), outcome(t, "z", quiz(6), "", right), CompareOptions{})
	wantError(t, err, ErrPlan, "paired by question", "by their ids")
}

// Recorded lanes of several programs in one plan: each has outputs of its own.
func TestOutputs(t *testing.T) {
	plan := func(other datasets.Values) Plan {
		return Plan{Rows: quiz(4), Pair: "question", Metrics: []Metric{match{}}, Candidates: []Candidate{
			{Name: "own", Recorded: true},
			{Name: "other", Recorded: true, Outputs: func(row datasets.Row) datasets.Values {
				key, err := PairKey(&row, "question")
				if v, ok := other[key]; ok && err == nil {
					return datasets.Values{"result": v}
				}
				return nil
			}},
		}}
	}
	p := plan(datasets.Values{"q0": datasets.Text("a0"), "q1": datasets.Text("wrong"), "q2": datasets.Text("a2")})
	e := mustEvaluate(t, p, Options{})
	out := e.Outcome("other")
	wantOpt(t, "mean", out.Metrics["match"].Mean, 0.5)
	if out.N != 4 || out.Failures["never_recorded"] != 1 || e.Comparisons[0].Worse != 2 {
		t.Errorf("outcome %+v, comparison %+v", out, e.Comparisons[0])
	}
	// What was recorded elsewhere is part of what is asked.
	if e.Outcome("own").Outputs != "" || !strings.HasPrefix(out.Outputs, "sha256:") {
		t.Errorf("outputs %q and %q; want a hash of the other's", e.Outcome("own").Outputs, out.Outputs)
	}
	again := mustEvaluate(t, plan(datasets.Values{"q0": datasets.Text("a0")}), Options{})
	if again.Outcome("other").Outputs == out.Outputs || again.Rows.Fingerprint != e.Rows.Fingerprint {
		t.Error("other outputs on the same rows do not have another hash, and the same fingerprint of rows")
	}
}

// A key that occurs twice cannot be paired, wherever the outcome comes from.
func TestPairTwice(t *testing.T) {
	a, b := outcome(t, "a", quiz(3), "", right), outcome(t, "b", quiz(3), "", right)
	b.scores.rows[2].pair = "r0"
	for _, pair := range [][2]*Outcome{{a, b}, {b, a}} {
		_, err := Pair(pair[0], pair[1])
		wantError(t, err, ErrRows, "rows r0 and r2 of b have the same key r0")
	}
}

// Rows of one conversation depend on each other; readers are told.
func TestClusters(t *testing.T) {
	rows := quiz(5)
	for i := range 3 {
		rows[i].Context.Conversation = "talk"
	}
	rows[3].Context.Conversation = "other"
	e := mustEvaluate(t, Plan{Rows: rows, Metrics: []Metric{match{}}, Candidates: []Candidate{
		candidate(t, "a", says(right)), candidate(t, "b", says(right)),
	}}, Options{})
	if c := e.Comparisons[0]; c.Clusters != 3 || len(c.Warnings) != 1 {
		t.Errorf("%d clusters, warnings %q; want 3 and a warning", c.Clusters, c.Warnings)
	}
	if len(e.Warnings) != 1 {
		t.Errorf("warnings %q; want one about conversations", e.Warnings)
	}
}

// Partial credit takes the methods for scores of any kind, and lost rows take
// the scale that was seen into their bounds.
func TestComparePartial(t *testing.T) {
	credit := metricFunc{"credit", match{}.Score}
	credit.score = func(_ context.Context, row datasets.Row, call *pipeline.Call) (Score, error) {
		f, _ := datasets.RawValue(call.Outputs["result"].String()).AsFloat()
		return Score{Value: f}, nil
	}
	lost := modelFunc(func(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
		if r.Site.Row == "r1" {
			return nil, pipeline.Failf(pipeline.TypeTimeout, "", "late")
		}
		return reply("3"), nil
	})
	e := mustEvaluate(t, Plan{Rows: quiz(4), Metrics: []Metric{credit}, Candidates: []Candidate{
		candidate(t, "a", says(func(pipeline.Site) string { return "2" })), candidate(t, "b", lost),
	}}, Options{})
	c := e.Comparisons[0]
	// Contract: 1, −2, 1, 1. Added: 1, 1, 1. The lost score lay between 0 and 3.
	wantOpt(t, "diff", c.Diff, 0.25)
	wantOpt(t, "added diff", c.Added.Diff, 1)
	if c.Added.PMethod != "sign-flip" || c.Added.Units != 3 || *c.Lost != (Lost{Rows: 1, Worst: 0.25, Best: 1}) {
		t.Errorf("added %+v, lost %+v", c.Added, c.Lost)
	}
}
