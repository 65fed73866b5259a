package harness

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/harness/stats"
	"evalrun/pipeline"
)

// brittle is match, and fails on the wrong answers to some rows.
func brittle(failsOn ...string) metricFunc {
	return metricFunc{"brittle", func(ctx context.Context, row datasets.Row, call *pipeline.Call) (Score, error) {
		s, err := match{}.Score(ctx, row, call)
		if s.Value == 0 && slices.Contains(failsOn, row.ID) {
			return Score{}, errors.New("it crashed")
		}
		return s, err
	}}
}

// What a metric cannot score is not the candidate's: the contract's numbers count it
// 0, the verdict is without it, and where that is more than one row in ten there is
// no verdict.
func TestFailedMetricDecidesNothing(t *testing.T) {
	wrong := []string{"r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11"}
	for _, c := range []struct {
		fails            int
		rose, units      int
		decision, warned string
	}{
		{0, 12, 40, "better", ""},
		{4, 12, 36, "better", "the metric itself failed on 4 of 40 rows"},
		{5, 12, 35, "too-few-rows", "more than 10 %, so nothing is decided"},
		{12, 12, 28, "too-few-rows", "more than 10 %, so nothing is decided"},
	} {
		e := mustEvaluate(t, Plan{
			Rows: quiz(40), Metrics: []Metric{brittle(wrong[:c.fails]...)},
			Candidates: []Candidate{candidate(t, "old", says(rightBut(wrong...))), candidate(t, "new", says(right))},
		}, Options{})
		got := e.Comparisons[0]
		if got.Better != c.rose || got.N != 40 || got.Unscored != c.fails {
			t.Errorf("%d fail: the contract has %d better of %d, and %d are unscored", c.fails, got.Better, got.N, got.Unscored)
		}
		if got.Added.Units != c.units || string(got.Decision) != c.decision {
			t.Errorf("%d fail: %s of %d rows; want %s of %d", c.fails, got.Decision, got.Added.Units, c.decision, c.units)
		}
		if warned := strings.Join(got.Warnings, "; "); !strings.Contains(warned, c.warned) || c.warned == "" && warned != "" {
			t.Errorf("%d fail: warnings %q; want %q", c.fails, warned, c.warned)
		}
	}
}

// A margin is of scores from 0 to 1: other scores are not found equal by it, and not
// told to state one.
func TestMarginIsOfScoresFrom0To1(t *testing.T) {
	for _, c := range []struct {
		name     string
		metric   Metric
		decision stats.Decision
	}{
		{"0 to 1", match{}, stats.NoDifference},
		{"seconds", amount{match{}}, stats.TooFewRows},
		{"counts", size{}, stats.TooFewRows},
	} {
		e := mustEvaluate(t, Plan{
			Rows: quiz(100), Metrics: []Metric{c.metric}, Stats: stats.Options{Margin: 0.2},
			Candidates: []Candidate{candidate(t, "a", says(right)), candidate(t, "b", says(right))},
		}, Options{})
		got := e.Comparisons[0]
		if got.Decision != c.decision {
			t.Errorf("%s: %s; want %s", c.name, got.Decision, c.decision)
		}
		warned := strings.Join(got.Added.Warnings, "; ")
		if equal := got.Decision == stats.NoDifference; equal && strings.Contains(warned, "too few rows changed") || strings.Contains(warned, "no margin was given") {
			t.Errorf("%s, %s: warnings %q", c.name, got.Decision, warned)
		}
	}
}

// amount is match in seconds.
type amount struct{ match }

func (amount) Unit() string { return "s" }

// When every answer was lost, nobody is told to look at a filter.
func TestAllLostIsNotNoRows(t *testing.T) {
	e, err := Evaluate(t.Context(), Plan{
		Rows: quiz(12), Metrics: []Metric{match{}},
		Candidates: []Candidate{candidate(t, "a", says(right)), candidate(t, "b", modelFunc(func(context.Context, *pipeline.Request) (*pipeline.Reply, error) {
			return nil, pipeline.Failf(pipeline.TypeServer, "", "HTTP status 503")
		}))},
	}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := e.Comparisons[0]
	if c.Decision != stats.Invalid || len(c.Added.Warnings) != 0 {
		t.Errorf("%s, warnings %q", c.Decision, c.Added.Warnings)
	}
	if len(c.Warnings) == 0 || !strings.Contains(c.Warnings[0], "answers to 12 rows were lost") {
		t.Errorf("warnings %q", c.Warnings)
	}
}
