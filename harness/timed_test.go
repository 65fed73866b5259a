package harness

import (
	"context"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/harness/stats"
	"evalrun/pipeline"
)

// clocked is a metric of the clock, by which each candidate takes what it takes.
type clocked map[string]float64

func (clocked) Name() string        { return "clocked" }
func (clocked) LowerIsBetter() bool { return true }
func (clocked) Timed() bool         { return true }
func (clocked) Score(context.Context, datasets.Row, *pipeline.Call) (Score, error) {
	return Score{}, nil
}

func (m clocked) ScoreEffort(_ datasets.Row, r *Result) (Score, error) {
	return Score{Value: m[r.Candidate]}, nil
}

// What the clock measured in another run decides nothing against what it measured
// now, and the comparison says so; measured in one run it decides.
func TestTimedAtAnotherTime(t *testing.T) {
	root := t.TempDir()
	run := func(second string) *Evaluation {
		t.Helper()
		b := candidate(t, "b", says(right))
		b.Program = program(t, strings.Replace(answerProgram, "Answer the question.", second, 1))
		p := Plan{Rows: quiz(40), Metrics: []Metric{clocked{"a": 1, "b": 2}}, Candidates: []Candidate{candidate(t, "a", says(right)), b}}
		r, err := StartRun(root, RunInfo{Name: "x", Started: started}, mustCheck(t, p))
		if err != nil {
			t.Fatal(err)
		}
		evals, err := r.Evaluate(t.Context(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		again, err := r.Evaluations()
		if err != nil || asJSON(t, again) != asJSON(t, evals) {
			t.Errorf("read back it is another evaluation (%v)", err)
		}
		return evals[0]
	}
	if c := run("Answer the question.").Comparisons[0]; c.Decision != stats.Worse || len(c.Warnings) != 0 {
		t.Errorf("in one run: %s, warnings %q; want that b is worse", c.Decision, c.Warnings)
	}
	e := run("Answer at length.")
	c := e.Comparisons[0]
	if m := e.Outcome("a").Measured; m.FromRun != 40 {
		t.Fatalf("%d answers of a are from the run before, want 40", m.FromRun)
	}
	if c.Decision == stats.Worse || c.Decision == stats.Better || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "another time") {
		t.Errorf("one side from another run: %s, warnings %q; want no decision, and a warning", c.Decision, c.Warnings)
	}
}
