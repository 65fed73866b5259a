package harness

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// kind is a metric of classes: the first letter of the answer, and of the label.
type kind struct{ match }

func (kind) Name() string { return "kind" }

func (kind) Class(row datasets.Row, call *pipeline.Call) (expected, predicted string) {
	if call != nil {
		if call.Outputs["result"].String() == "panic" {
			panic("a bug of the metric's")
		}
		predicted = call.Outputs["result"].String()
	}
	return row.Labels["result"].String(), predicted
}

// By hand: of four rows that are x, two are answered x, one y, one fails; of two
// that are y, one is answered y and one z, which is right nowhere.
func TestClassification(t *testing.T) {
	rows := quiz(6)
	for i, label := range []string{"x", "x", "x", "x", "y", "y"} {
		rows[i].Labels = datasets.Values{"result": datasets.Text(label)}
	}
	answers := map[string]string{"r0": "x", "r1": "x", "r2": "y", "r4": "y", "r5": "z"}
	cand := candidate(t, "a", modelFunc(func(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
		if answers[r.Site.Row] == "" {
			return nil, pipeline.Failf(pipeline.TypeRefusal, "", "no")
		}
		return reply(answers[r.Site.Row]), nil
	}))
	plan := Plan{Rows: rows, Metrics: []Metric{match{}, kind{}}, Candidates: []Candidate{cand}}
	all, half := 1.0, 0.5 // precisions
	want := map[string]*Classification{"kind": {
		N: 6, Accuracy: 0.5, MacroF1: (2.0/3 + 0.5) / 2, Labels: []string{"x", "y"},
		Confusion: [][]int{{2, 1}, {0, 1}}, Other: []int{0, 1}, Failed: []int{1, 0},
		PerClass: []OfClass{
			{Label: "x", N: 4, Predicted: 2, Precision: &all, Recall: 0.5, F1: 2.0 / 3},
			{Label: "y", N: 2, Predicted: 2, Precision: &half, Recall: 0.5, F1: 0.5},
		},
	}}
	near := cmpopts.EquateApprox(0, 1e-12)
	e := mustEvaluate(t, plan, Options{})
	if diff := cmp.Diff(want, e.Candidates[0].Classification, near); diff != "" {
		t.Errorf("classification (-want +got):\n%s", diff)
	}

	// A run that is read back counts the same.
	checked, err := Check(plan)
	if err != nil {
		t.Fatal(err)
	}
	run, err := StartRun(t.TempDir(), RunInfo{Started: time.Unix(0, 0)}, checked)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Evaluate(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	opened, err := OpenRun(run.Dir)
	if err != nil {
		t.Fatal(err)
	}
	read, err := opened.Evaluations()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, read[0].Candidates[0].Classification, near); diff != "" {
		t.Errorf("classification of the run that was read (-want +got):\n%s", diff)
	}
}

// A class that nobody answered has no precision; a classifier that panics names
// nothing, and ends no run.
func TestClassificationOfNothing(t *testing.T) {
	rows := quiz(2)
	e := mustEvaluate(t, Plan{
		Rows: rows, Metrics: []Metric{match{}, kind{}},
		Candidates: []Candidate{candidate(t, "a", says(func(s pipeline.Site) string {
			if s.Row == "r1" {
				return "panic"
			}
			return "a1"
		}))},
	}, Options{})
	c := e.Candidates[0].Classification["kind"]
	if c.N != 1 || c.PerClass[0].Precision != nil || c.PerClass[0].F1 != 0 || c.Other[0] != 1 {
		t.Errorf("%+v", c)
	}
	if e := mustEvaluate(t, Plan{Rows: rows, Metrics: []Metric{match{}}, Candidates: []Candidate{candidate(t, "a", says(right))}}, Options{}); e.Candidates[0].Classification != nil {
		t.Error("a metric without classes has a classification")
	}
}

// size is a metric of which less is better: the answer's length.
type size struct{}

func (size) Name() string        { return "size" }
func (size) LowerIsBetter() bool { return true }

func (size) Score(_ context.Context, _ datasets.Row, call *pipeline.Call) (Score, error) {
	return Score{Value: float64(len(call.Outputs["result"].String()))}, nil
}

// Where less is better the numbers stay and the decision turns round; rows without
// a score do not decide, since their 0 would be the best of all.
func TestLowerIsBetter(t *testing.T) {
	short := func(s pipeline.Site) string { return strings.Repeat("x", 2+len(s.Row)%2) }
	long := func(s pipeline.Site) string { return short(s) + strings.Repeat("x", 3+int(s.Row[1])%2) }
	e := mustEvaluate(t, Plan{
		Rows: quiz(30), Metrics: []Metric{size{}},
		Candidates: []Candidate{candidate(t, "long", says(long)), candidate(t, "short", says(short))},
	}, Options{})
	c := e.Comparisons[0]
	if diff, _ := c.Diff.Get(); !c.Lower || diff >= 0 || c.Worse != 30 || c.Better != 0 {
		t.Errorf("the contract's numbers: diff %v, better %d, worse %d", c.Diff, c.Better, c.Worse)
	}
	if c.Decision != "better" || c.Added.Decision != "better" || c.Added.Better != 30 || c.Added.Worse != 0 {
		t.Errorf("decision %s, added %+v", c.Decision, c.Added)
	}
	if diff := cmp.Diff([]string{"size"}, e.Lower); diff != "" {
		t.Error(diff)
	}

	// The candidate answers a little longer, or not at all.
	e = mustEvaluate(t, Plan{
		Rows: quiz(30), Metrics: []Metric{size{}},
		Candidates: []Candidate{candidate(t, "short", says(short)), candidate(t, "silent", modelFunc(func(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
			if r.Site.Row[1] != '1' {
				return nil, pipeline.Failf(pipeline.TypeRefusal, "", "I would rather not")
			}
			return reply(long(r.Site)), nil
		}))},
	}, Options{})
	c = e.Comparisons[0]
	if diff, _ := c.Diff.Get(); diff >= 0 {
		t.Errorf("the contract counts failed rows 0: diff %v", c.Diff)
	}
	if c.Decision != "worse" || c.Added.Units != 11 {
		t.Errorf("decision %s of %d rows; want worse of the 11 with a score", c.Decision, c.Added.Units)
	}
	if len(c.Warnings) == 0 || !strings.Contains(c.Warnings[0], "19 rows have no score of this metric, of which less is better") {
		t.Errorf("warnings %q", c.Warnings)
	}
}

// spent is a metric of what an answer took.
type spent struct{ match }

func (spent) Name() string { return "spent" }

func (spent) ScoreEffort(_ datasets.Row, r *Result) (Score, error) {
	return Score{Value: float64(*r.Usage.Input)}, nil
}

func TestEffort(t *testing.T) {
	e := mustEvaluate(t, Plan{Rows: quiz(3), Metrics: []Metric{spent{}}, Candidates: []Candidate{candidate(t, "a", says(right))}}, Options{})
	wantOpt(t, "mean", e.Candidates[0].Metrics["spent"].Mean, 10)
}
