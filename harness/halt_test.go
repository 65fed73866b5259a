package harness

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"evalrun/pipeline"
)

// Whatever ends the asking of a run that goes on, all that its journal knows is
// scored: only what is not known is unfinished, and nothing of it is asked.
func TestHaltGivesWhatIsKnown(t *testing.T) {
	spent := errors.New("the budget is spent")
	closed := make(chan struct{})
	close(closed)
	for _, c := range []struct {
		name  string
		model pipeline.Model // the second process's
		o     Options
		want  error
		asked int64 // at most: what is asked at once, and before a row has failed
	}{
		{"a budget", modelFunc(func(context.Context, *pipeline.Request) (*pipeline.Reply, error) {
			return nil, &pipeline.Fatal{Err: spent}
		}), Options{}, spent, 2},
		{"a stop", says(right), Options{Stop: closed}, ErrStopped, 0},
		{"too many failed rows", says(right), Options{TooMany: func(failed, _ int) bool { return failed > 0 }}, ErrTooMany, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			var asked atomic.Int64
			start := func(model pipeline.Model) *Run {
				counted := modelFunc(func(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
					asked.Add(1)
					return model.Generate(ctx, r)
				})
				var plans []*Checked
				for _, name := range []string{"one", "two"} {
					plans = append(plans, mustCheck(t, Plan{
						Name: name, Rows: quiz(60), Metrics: []Metric{match{}},
						Candidates: []Candidate{candidate(t, "a", counted), candidate(t, "b", counted)},
					}))
				}
				r, err := StartRun(root, RunInfo{Name: "x", Started: started}, plans...)
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			_, err := start(modelFunc(func(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
				switch r.Site.Row {
				case "r0", "r40": // not known
					return nil, pipeline.Failf(pipeline.TypeServer, "", "down")
				case "r1": // known, and failed
					return nil, pipeline.Failf(pipeline.TypeRefusal, "", "no")
				}
				return says(right).Generate(ctx, r)
			})).Evaluate(t.Context(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			asked.Store(0)
			c.o.Executor = Local{Workers: 2, Window: 4}
			evals, err := start(c.model).Evaluate(t.Context(), c.o)
			wantError(t, err, c.want)
			if n := asked.Load(); n > c.asked {
				t.Errorf("%d requests were made, want at most %d", n, c.asked)
			}
			known := 0
			for _, e := range evals {
				if err := e.Ledger.Check(); err != nil {
					t.Error(err)
				}
				for _, out := range e.Candidates {
					known += out.N
					if out.N < 58 || out.N == 60 || out.N+out.Unfinished != 60 || out.Failed != 1 {
						t.Errorf("%s of %s: %d rows, %d failed, %d unfinished; want those that are known, 58, and 1", out.Name, e.Name, out.N, out.Failed, out.Unfinished)
					}
				}
			}
			if most := 4*58 + int(asked.Load()); known > most {
				t.Errorf("%d answers, of %d that are known or were asked", known, most)
			}
		})
	}
}
