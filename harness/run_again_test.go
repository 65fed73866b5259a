package harness

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/replay"
)

// asJSON is a value as reports write it.
func asJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The same question is the same run: it goes on in its folder, unless it is to
// start over.
func TestStartRunAgain(t *testing.T) {
	root := t.TempDir()
	plan := mustCheck(t, mixed(t, "one", 5))
	info := RunInfo{Name: "x", Started: started}
	first, err := StartRun(root, info, plan)
	if err != nil || first.Again {
		t.Fatal(first, err)
	}
	// One at a time: another process would ask everything again.
	if _, err := StartRun(root, info, plan); !errors.Is(err, ErrBusy) {
		t.Errorf("error %v; want that the run is being carried out", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	info.Started = started.Add(time.Hour)
	again, err := StartRun(root, info, plan)
	if err != nil || again.Dir != first.Dir || !again.Again || !again.Manifest.Started.Equal(started) {
		t.Errorf("started again, it is %+v (%v), want %s", again, err, first.Dir)
	}
	for what, change := range map[string]func(*RunInfo){
		"fresh":        func(i *RunInfo) { i.Fresh = true },
		"another name": func(i *RunInfo) { i.Name = "y" },
		"another seed": func(i *RunInfo) { i.Seed = 1 },
	} {
		other := info
		other.Started = started.Add(2 * time.Hour)
		change(&other)
		if r, err := StartRun(root, other, plan); err != nil || r.Dir == first.Dir || r.Again {
			t.Errorf("%s: %+v (%v), want a run of its own", what, r, err)
		}
	}
	info.Fresh, info.Started = true, started
	if _, err := StartRun(root, info, plan); err == nil || !strings.Contains(err.Error(), "there already") {
		t.Errorf("error %v; want a refusal to write over a run", err)
	}
	_, err = StartRun(root, info, plan, plan)
	wantError(t, err, ErrPlan, `two evaluations are called "one"`)
}

// A run that was cut short goes on where it was: no answer is asked twice, and
// what comes of it is what an undisturbed run gives.
func TestRunGoesOn(t *testing.T) {
	var asked atomic.Int64
	model := modelFunc(func(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
		asked.Add(1)
		return reply(rightBut("r3", "r7")(r.Site)), nil
	})
	began := 0 // plans made; no two of them give a call the same id
	plan := func() *Checked {
		began++
		candidates := []Candidate{candidate(t, "a", model), candidate(t, "b", model)}
		for i := range candidates {
			count, prefix := candidates[i].Caller.NewID, fmt.Sprintf("%d%s-", began, candidates[i].Name)
			candidates[i].Caller.NewID = func() string { return prefix + count() }
		}
		return mustCheck(t, Plan{Name: "quiz", Rows: quiz(20), Metrics: []Metric{match{}}, Candidates: candidates})
	}
	want, err := mustCreate(t, plan()).Evaluate(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	asked.Store(0)

	root := t.TempDir()
	info := RunInfo{Name: "x", Started: started}
	r, err := StartRun(root, info, plan())
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	n := 0
	_, err = r.Evaluate(t.Context(), Options{Executor: Local{Workers: 2}, Stop: stop, Observe: func(Result, *pipeline.Call) error {
		if n++; n == 9 {
			close(stop)
		}
		return nil
	}})
	if !errors.Is(err, ErrStopped) {
		t.Fatalf("error %v; want that it was stopped", err)
	}
	before := asked.Load()
	if before < 9 || before >= 40 {
		t.Fatalf("%d answers before the stop, want some of 40", before)
	}
	ids := callIDs(t, r)

	if r, err = StartRun(root, info, plan()); err != nil || !r.Again {
		t.Fatal(r, err)
	}
	got, err := r.Evaluate(t.Context(), Options{Executor: Local{Workers: 7}})
	if err != nil {
		t.Fatal(err)
	}
	if asked.Load() != 40 {
		t.Errorf("%d answers were asked for in all, want 40: %d before the stop", asked.Load(), before)
	}
	if a, b := asJSON(t, got), asJSON(t, want); a != b {
		t.Errorf("the evaluation that went on is\n%s\nwant\n%s", a, b)
	}
	if m := got[0].Candidates[0].Measured; m.Cached != 0 || m.Resumed == 0 || m.Resumed >= m.Answers {
		t.Errorf("%d of %d answers of a candidate are known from before, %d cached; want some, and none", m.Resumed, m.Answers, m.Cached)
	}
	if after := callIDs(t, r); len(after) != 40 || !slices.Equal(after[:len(ids)], ids) {
		t.Errorf("calls were %v and are %v: those from before keep their ids", ids, after)
	}

	// Another metric scores the same answers.
	p := plan().Plan()
	p.Metrics = []Metric{metricFunc{"always", func(context.Context, datasets.Row, *pipeline.Call) (Score, error) { return Score{Value: 1}, nil }}}
	if r, err = StartRun(root, info, mustCheck(t, p)); err != nil || !r.Again {
		t.Fatal(r, err)
	}
	got, err = r.Evaluate(t.Context(), Options{})
	if err != nil || asked.Load() != 40 || got[0].Candidates[0].Metrics["always"].N != 20 {
		t.Errorf("scored again: %d answers asked for (%v), metrics %v", asked.Load(), err, got[0].Candidates[0].Metrics)
	}
}

func callIDs(t *testing.T, r *Run) []string {
	t.Helper()
	src, err := replay.Open(filepath.Join(r.Dir, CallsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var ids []string
	for call, err := range src.Calls(replay.Want{All: true}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, call.ID)
	}
	return ids
}
