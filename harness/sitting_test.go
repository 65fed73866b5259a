package harness

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"evalrun/pipeline"
)

func TestSittings(t *testing.T) {
	r := &Run{Dir: t.TempDir()}
	if list, err := r.Sittings(); list != nil || err != nil {
		t.Errorf("before there are any: %v, %v", list, err)
	}
	began := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	ended := began.Add(time.Minute)
	killed := Sitting{Started: began.Add(-time.Hour), Models: []Limited{}, Bookings: []pipeline.Booking{}, Before: []pipeline.Booking{}}
	open := Sitting{Started: began, Models: []Limited{}, Bookings: []pipeline.Booking{}, Before: []pipeline.Booking{}}
	whole := open
	whole.Ended = &ended
	whole.Models = []Limited{{Name: "m", Tries: 3, Retries: map[string]int64{"server": 1}, Waited: 0.5, History: []LimitEvent{{At: 0, Limit: 8, Why: "start"}, {At: 1.5, Limit: 4, Why: "resumed"}}}}
	whole.Bookings = []pipeline.Booking{{Account: pipeline.Account{Purpose: "candidate", Cause: "first", Model: "m"}, Amount: pipeline.Amount{Requests: 3, Tokens: 12, Money: 0.25, Unknown: 2, Uncounted: 1, Doubtful: 1}}}
	for _, s := range []Sitting{killed, open, whole} { // the last two are one
		if err := r.KeepSitting(s); err != nil {
			t.Fatal(err)
		}
	}
	got, err := r.Sittings()
	if diff := cmp.Diff([]Sitting{killed, whole}, got); diff != "" || err != nil {
		t.Errorf("%v, read back (-kept +read):\n%s", err, diff)
	}
}

// A file that is no sittings of this version is refused and stays as it is.
func TestSittingsRefused(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"torn", `{"schema": {"name": "evalrun.meas`, "take it away"},
		{"another schema", `{"schema": {"name": "evalrun.report", "version": 1}, "sittings": []}`, `its schema is "evalrun.report"`},
		{"later", `{"schema": {"name": "evalrun.measured", "version": 2}, "sittings": []}`, "of a later evalrun"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &Run{Dir: t.TempDir()}
			path := filepath.Join(r.Dir, MeasuredFile)
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Sittings(); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("read: %v, want %q and the path", err, c.want)
			}
			if err := r.KeepSitting(Sitting{}); err == nil {
				t.Error("it was written over")
			}
			if text, err := os.ReadFile(path); string(text) != c.text || err != nil {
				t.Errorf("the file is %q (%v)", text, err)
			}
		})
	}
}

// The wire, the waiting and the tries of a call are kept apart, and survive being
// written down.
func TestResultTries(t *testing.T) {
	failed := func(waited time.Duration) pipeline.Attempt {
		return pipeline.Attempt{Failure: pipeline.Failf(pipeline.TypeServer, "", "down"), Waited: waited, Wire: 9 * time.Second}
	}
	lost := pipeline.Failf(pipeline.TypeRateLimit, "", "slow down")
	lost.Attempts = []pipeline.Attempt{failed(4 * time.Second)}
	call := &pipeline.Call{
		ID: "c", Seconds: 60, Failure: lost,
		Exchanges: []pipeline.Exchange{
			{Reply: &pipeline.Reply{Wire: 2 * time.Second, Waited: time.Second, Attempts: []pipeline.Attempt{failed(time.Second), failed(2 * time.Second)}}},
			{Failure: lost},
		},
		Inside: []*pipeline.Call{{Exchanges: []pipeline.Exchange{{Reply: &pipeline.Reply{Wire: time.Second, Waited: 500 * time.Millisecond}}}}},
	}
	var r Result
	r.take(call, "x")
	line := r.line()
	read, err := line.result()
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]Result{"taken": r, "read back": read} {
		if got.Latency == nil || *got.Latency != 3 || got.Waited != 8.5 || got.Retries != 3 || got.Seconds != 60 {
			t.Errorf("%s: latency %v, waited %v, %d retries, %v s; want 3 s, 8.5 s, 3, 60 s", name, got.Latency, got.Waited, got.Retries, got.Seconds)
		}
	}
}

// Latency is of the wire where it was measured, and never of both.
func TestLatencyIsOfTheWire(t *testing.T) {
	half, two := 0.5, 2.0
	lane := func(results ...Result) Measured {
		eval := &Evaluation{Repeats: 1, Baseline: "a", Rows: RowCounts{Input: len(results), Asked: len(results)}, Candidates: []*Outcome{{CandidateFacts: CandidateFacts{Name: "a"}}}}
		y := newTally(eval, Plan{}.Stats)
		for i, r := range results {
			r.Row, r.Candidate, r.Call = string(rune('p'+i)), "a", "call"
			y.add(&r)
		}
		e, err := y.finish()
		if err != nil && !errors.Is(err, ErrNoRows) {
			t.Fatal(err)
		}
		return e.Candidates[0].Measured
	}
	got := lane(Result{Seconds: 30, Latency: &half, Waited: 20, Retries: 2}, Result{Seconds: 40, Latency: &two, Waited: 5}, Result{Seconds: 90, Waited: 80, Retries: 6})
	if want := (Latency{Of: "wire", N: 2, Median: 0.5, P95: 2, Max: 2, Total: 2.5}); got.Latency != want || got.Waited != 105 || got.Retries != 8 {
		t.Errorf("%+v, want latency %+v, 105 s waited, 8 retries", got, want)
	}
	if got, want := lane(Result{Seconds: 3}, Result{Seconds: 1}).Latency, (Latency{Of: "call", N: 2, Median: 1, P95: 3, Max: 3, Total: 4}); got != want {
		t.Errorf("nobody measured the wire: %+v, want %+v", got, want)
	}
}

// A call counts as asked when a model answered or a request was sent, and not when
// the service was given up before it was its turn. The last try of a request that was
// given up is no retry.
func TestAskedCountsWhatWasSent(t *testing.T) {
	var n atomic.Int64
	tried := pipeline.Attempt{Failure: pipeline.Failf(pipeline.TypeRateLimit, "", "slow down")}
	model := modelFunc(func(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
		n.Add(1)
		given := pipeline.Failf(pipeline.TypeRateLimit, pipeline.CodeOutage, "given up")
		switch r.Site.Row {
		case "r0":
			return reply("a0"), nil
		case "r1": // sent, and refused
			return nil, pipeline.Failf(pipeline.TypeRefusal, "", "no")
		case "r2": // sent three times, then given up
			given.Attempts = []pipeline.Attempt{tried, tried, tried}
		}
		return nil, given // never sent
	})
	e := mustEvaluate(t, Plan{Rows: quiz(40), Metrics: []Metric{match{}}, Candidates: []Candidate{candidate(t, "a", model)}}, Options{})
	if m := e.Candidates[0].Measured; m.Answers != 40 || m.Asked != 3 || m.Retries != 2 {
		t.Errorf("%d answers, %d asked, %d retries; want 40, the 3 that were sent, and 2", m.Answers, m.Asked, m.Retries)
	}
}
