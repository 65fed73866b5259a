package harness

import (
	"context"
	"sync/atomic"
	"testing"

	"evalrun/pipeline"
)

// A run that is hopeless stops early: what was asked is there, and the rest is
// unfinished, not failed.
func TestTooMany(t *testing.T) {
	var asked atomic.Int64
	broken := modelFunc(func(context.Context, *pipeline.Request) (*pipeline.Reply, error) {
		asked.Add(1)
		return nil, pipeline.Failf(pipeline.TypeRefusal, "", "no")
	})
	p := Plan{
		Rows: quiz(500), Metrics: []Metric{match{}},
		Candidates: []Candidate{candidate(t, "well", says(right)), candidate(t, "broken", broken)},
	}
	e, err := Evaluate(t.Context(), p, Options{
		Executor: Local{Workers: 2, Window: 4},
		TooMany:  func(failed, rows int) bool { return failed > 5 && rows == 500 },
	})
	wantError(t, err, ErrTooMany)
	out := e.Outcome("broken")
	if n := asked.Load(); n < 6 || n > 20 {
		t.Errorf("%d requests were made, of 500, where 6 failures are too many", n)
	}
	if out.Failed < 6 || out.N+out.Unfinished != 500 || int(asked.Load()) != out.Failed {
		t.Errorf("%d failed of %d, %d unfinished; %d were asked", out.Failed, out.N, out.Unfinished, asked.Load())
	}
	if err := e.Ledger.Check(); err != nil {
		t.Error(err)
	}
}
