package harness

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// Eight rows; the baseline has r0, r1 and r2 wrong, the other r2 and r3.
func TestEvaluate(t *testing.T) {
	e := mustEvaluate(t, Plan{
		Name:   "quiz",
		Rows:   quiz(8),
		Intake: Intake{Input: 13, Rated: 12, LeftOut: map[string]int{"no_answer": 4, "other_signature": 1}},
		Candidates: []Candidate{
			candidate(t, "old", says(rightBut("r0", "r1", "r2"))),
			candidate(t, "new", says(rightBut("r2", "r3"))),
		},
		Metrics: []Metric{match{}},
	}, Options{})

	if e.Baseline != "old" || e.Repeats != 1 || !cmp.Equal(e.Metrics, []string{"match"}) {
		t.Errorf("baseline %s, repeats %d, metrics %v", e.Baseline, e.Repeats, e.Metrics)
	}
	if r := e.Rows; r.Input != 13 || r.Rated != 12 || r.Asked != 8 || r.LeftOut["no_answer"] != 4 || !strings.HasPrefix(r.Fingerprint, "sha256:") {
		t.Errorf("rows %+v", r)
	}
	old, young := e.Outcome("old"), e.Outcome("new")
	if old == nil || young == nil || e.Outcome("none") != nil {
		t.Fatal("outcomes are not found by name")
	}
	if old.Program != "quiz:answer" || old.ProgramVersion != program(t, answerProgram).Version() || old.Model.Name != "fake" {
		t.Errorf("facts %+v", old.CandidateFacts)
	}
	if old.N != 8 || old.Failed != 0 || old.Unfinished != 0 {
		t.Errorf("old: n %d, failed %d, unfinished %d; want 8, 0, 0", old.N, old.Failed, old.Unfinished)
	}
	m := old.Metrics["match"]
	// Wilson's range of 5 of 8 with the contract's constant, by its formula.
	z := 1.959964
	d := 1 + z*z/8
	center, half := (0.625+z*z/16)/d, z/d*math.Sqrt(0.625*0.375/8+z*z/256)
	wantOpt(t, "mean", m.Mean, 0.625)
	wantOpt(t, "low", m.Low, center-half)
	wantOpt(t, "high", m.High, center+half)
	if m.N != 8 || m.Failed != 0 || m.Method != "wilson" {
		t.Errorf("summary %+v", m)
	}
	wantOpt(t, "mean of new", young.Metrics["match"].Mean, 0.75)
	if u := old.Usage; *u.InputTokens != 80 || *u.OutputTokens != 16 || *u.TotalTokens != 96 || u.CachedInputTokens != nil || u.Unknown != 0 {
		t.Errorf("usage %+v; want 80 in, 16 out, 96 in all, the rest unknown", u)
	}
	if got := old.Measured; got.Answers != 8 || got.Asked != 8 || got.Cached != 0 || got.Latency.N != 8 {
		t.Errorf("measured %+v", got)
	}

	if len(e.Comparisons) != 1 {
		t.Fatalf("%d comparisons; want 1", len(e.Comparisons))
	}
	c := e.Comparisons[0]
	if c.Metric != "match" || c.Baseline != "old" || c.Candidate != "new" || c.N != 8 || c.Better != 2 || c.Worse != 1 || c.Same != 5 {
		t.Errorf("comparison %+v", c)
	}
	wantOpt(t, "before", c.Before, 0.625)
	wantOpt(t, "after", c.After, 0.75)
	wantOpt(t, "diff", c.Diff, 0.125)
	// d = +1, +1, 0, −1, 0, 0, 0, 0: mean 1/8, variance (3 − 8/64)/7, t(7) = 2.365.
	half = 2.365 * math.Sqrt((3-8.0/64)/7/8)
	wantOpt(t, "low", c.Low, 0.125-half)
	wantOpt(t, "high", c.High, 0.125+half)
	// Two of three disagreements: p = 2·P(X ≤ 1) − P(X = 1) of 3 tosses = 1 − 3/8.
	wantOpt(t, "p", c.P, 0.625)
	if c.Method != "mcnemar-midp" || c.Decision != "too-few-rows" || c.Added.Method != "tango" {
		t.Errorf("method %s, decision %s, range %s", c.Method, c.Decision, c.Added.Method)
	}
	want := []Change{{Row: "r0", Before: 0, After: 1}, {Row: "r1", Before: 0, After: 1}, {Row: "r3", Before: 1, After: 0}}
	if diff := cmp.Diff(want, c.Changed); diff != "" {
		t.Errorf("changed rows (-want +got):\n%s", diff)
	}

	wantLedger := Ledger{Input: 13, LeftOut: map[string]int{"no_answer": 4, "other_signature": 1}, Asked: 8, Candidates: []CandidateLedger{
		{Candidate: "old", Scored: 8, Failed: map[string]int{}}, {Candidate: "new", Scored: 8, Failed: map[string]int{}},
	}}
	if diff := cmp.Diff(wantLedger, e.Ledger); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
}

func wantOpt(t testing.TB, name string, got interface{ Get() (float64, bool) }, want float64) {
	t.Helper()
	if v, ok := got.Get(); !ok || math.Abs(v-want) > 1e-12 {
		t.Errorf("%s is %v, %v; want %v", name, v, ok, want)
	}
}

// All candidates are asked about a row, answer by answer, before the next row,
// and results come in that order however long each takes.
func TestOrder(t *testing.T) {
	var want []string
	for row := range 3 {
		for repeat := range 2 {
			for _, c := range []string{"a", "b"} {
				want = append(want, fmt.Sprintf("r%d %d %s", row, repeat, c))
			}
		}
	}
	for _, workers := range []int{1, 5} {
		synctest.Test(t, func(t *testing.T) {
			var asked, observed []string
			var mu sync.Mutex
			model := modelFunc(func(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
				mu.Lock()
				asked = append(asked, fmt.Sprintf("%s %d %s", r.Site.Row, r.Site.Repeat, strings.TrimPrefix(r.Site.Candidate, "quiz/")))
				wait := time.Duration(13-len(asked)) * time.Second
				mu.Unlock()
				time.Sleep(wait)
				return reply("x"), nil
			})
			mustEvaluate(t, Plan{
				Name: "quiz", Rows: quiz(3), Repeats: 2, Metrics: []Metric{match{}},
				Candidates: []Candidate{candidate(t, "a", model), candidate(t, "b", model)},
			}, Options{Executor: Local{Workers: workers}, Observe: func(r Result, call *pipeline.Call) error {
				if r.Evaluation != "quiz" || call == nil || call.ID != r.Call || call.Site.Row != r.Row {
					t.Errorf("result %+v with call %+v", r, call)
				}
				observed = append(observed, fmt.Sprintf("%s %d %s", r.Row, r.Repeat, r.Candidate))
				return nil
			}})
			if workers == 1 && !slices.Equal(asked, want) {
				t.Errorf("asked %v; want %v", asked, want)
			}
			if !slices.Equal(observed, want) {
				t.Errorf("%d workers: observed %v; want %v", workers, observed, want)
			}
		})
	}
}

// What a call is made of: the program's own inputs, the row's context, and who
// calls; nothing of the labels, the recorded output or the other inputs.
func TestAsk(t *testing.T) {
	rows := quiz(2)
	rows[0].Labels["result"] = datasets.Text("THE-LABEL")
	rows[0].Recorded["result"] = datasets.Text("THE-RECORDED")
	rows[0].Meta = datasets.Values{"version": datasets.Text("THE-META")}
	rows[0].Context = datasets.Context{
		Of: "r0", Conversation: "talk", Sections: []string{"A section."},
		Earlier: []datasets.Turn{{
			Inputs:  datasets.Values{"question": datasets.Text("an earlier question")},
			Outputs: datasets.Values{"result": datasets.Text("an earlier answer")},
		}},
	}
	var sent string
	model := modelFunc(func(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
		if r.Site.Row == "r0" {
			sent = string(r.Canonical(r.Model))
		}
		return reply("x"), nil
	})
	var calls []*pipeline.Call
	mustEvaluate(t, Plan{Name: "quiz", Rows: rows, Metrics: []Metric{match{}}, Candidates: []Candidate{candidate(t, "a", model)}},
		Options{
			Run: "run-1", Tags: datasets.Values{"user": datasets.Text("ann")},
			Observe: func(r Result, call *pipeline.Call) error {
				calls = append(calls, call)
				if r.Row == "r0" && r.Conversation != "talk" {
					t.Errorf("conversation %q", r.Conversation)
				}
				return nil
			},
		})
	for _, part := range []string{"q0", "A section.", "an earlier question", "an earlier answer"} {
		if !strings.Contains(sent, part) {
			t.Errorf("the request lacks %q: %s", part, sent)
		}
	}
	for _, part := range []string{"THE-LABEL", "THE-RECORDED", "THE-META", "not for the program", "talk"} {
		if strings.Contains(sent, part) {
			t.Errorf("the request has %q: %s", part, sent)
		}
	}
	call := calls[0]
	if want := (pipeline.Site{Candidate: "quiz/a", Row: "r0", Path: call.Site.Path, Purpose: "candidate"}); call.Site != want {
		t.Errorf("site %+v; want %+v", call.Site, want)
	}
	if call.SawOf != "r0" {
		t.Errorf("the call saw what %q saw; want r0", call.SawOf)
	}
	want := `{"evaluation":"run-1","kind":"evaluation","user":"ann"}`
	if got := call.Tags.Object().JSON(); got != want {
		t.Errorf("tags %s; want %s", got, want)
	}
}

// Failures are data: they count 0, are counted apart and say why.
func TestFailedRows(t *testing.T) {
	model := modelFunc(func(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
		switch r.Site.Row {
		case "r0":
			return &pipeline.Reply{Text: "no marks here"}, nil
		case "r1":
			return nil, pipeline.Failf(pipeline.TypeRateLimit, "throttled", "too many requests")
		case "r2":
			return nil, errors.New("connection reset")
		case "r3":
			return nil, pipeline.Failf(pipeline.TypeNotRecorded, "", "never recorded")
		}
		return reply(right(r.Site)), nil
	})
	failed := map[string]Failed{}
	e := mustEvaluate(t, Plan{Rows: quiz(10), Metrics: []Metric{match{}}, Candidates: []Candidate{
		candidate(t, "good", says(right)), candidate(t, "bad", model),
	}}, Options{Observe: func(r Result, _ *pipeline.Call) error {
		if r.Failed != nil {
			failed[r.Row] = *r.Failed
			if r.Scores != nil {
				t.Errorf("row %s failed and has scores %v", r.Row, r.Scores)
			}
		}
		return nil
	}})
	out := e.Outcome("bad")
	if out.N != 10 || out.Failed != 4 {
		t.Errorf("n %d, failed %d; want 10 and 4", out.N, out.Failed)
	}
	if want := map[string]int{"unreadable": 1, "rate_limited": 1, "server": 1, "never_recorded": 1}; !cmp.Equal(out.Failures, want) {
		t.Errorf("failures %v; want %v", out.Failures, want)
	}
	m := out.Metrics["match"]
	wantOpt(t, "mean", m.Mean, 0.6)
	if m.N != 10 || m.Failed != 4 {
		t.Errorf("summary %+v; want 10 rows, 4 without a score", m)
	}
	if want := (CandidateLedger{Candidate: "bad", Scored: 6, Failed: out.Failures}); !cmp.Equal(e.Ledger.Candidates[1], want) {
		t.Errorf("ledger %+v", e.Ledger)
	}
	if f := failed["r1"]; f.Class != "rate_limited" || f.Type != "RateLimitError" || f.Code != "throttled" || f.Message != "too many requests" {
		t.Errorf("failure %+v", f)
	}
	if f := failed["r2"]; f.Class != "server" || !strings.Contains(f.Message, "connection reset") {
		t.Errorf("failure %+v", f)
	}

	// The contract counts failed rows 0. The added layer leaves out what was
	// lost to the world, and keeps what the candidate itself did wrong.
	c := e.Comparisons[0]
	wantOpt(t, "diff", c.Diff, -0.4)
	if c.N != 10 || c.Worse != 4 || c.Added.Units != 7 || c.Added.Worse != 1 {
		t.Errorf("comparison of %d rows, %d worse, added of %d rows, %d worse; want 10, 4, 7, 1", c.N, c.Worse, c.Added.Units, c.Added.Worse)
	}
	// Of ten rows one is certainly worse, and three may be.
	if want := (&Lost{Rows: 3, Worst: -0.4, Best: -0.1}); c.Lost == nil || c.Lost.Rows != 3 || math.Abs(c.Lost.Worst-want.Worst) > 1e-12 || math.Abs(c.Lost.Best-want.Best) > 1e-12 {
		t.Errorf("lost %+v; want %+v", c.Lost, want)
	}
}

// A metric that gives no number keeps the answer, says why, and counts 0.
func TestMetricErrors(t *testing.T) {
	odd := metricFunc{"odd", func(_ context.Context, row datasets.Row, _ *pipeline.Call) (Score, error) {
		switch row.ID {
		case "r0":
			return Score{}, errors.New("judge is away")
		case "r1":
			return Score{Missing: "nothing to judge", Feedback: "see the guide"}, nil
		case "r2":
			return Score{Value: math.NaN()}, nil
		case "r3":
			return Score{Value: math.Inf(1)}, nil
		}
		return Score{Value: 0.5, Feedback: "half right"}, nil
	}}
	results := map[string]Result{}
	e := mustEvaluate(t, Plan{Rows: quiz(5), Metrics: []Metric{match{}, odd}, Candidates: []Candidate{candidate(t, "a", says(right))}},
		Options{Observe: func(r Result, _ *pipeline.Call) error { results[r.Row] = r; return nil }})
	for row, want := range map[string]string{
		"r0": "metric odd: judge is away", "r1": "metric odd: nothing to judge",
		"r2": "metric odd: its score NaN is no number between -1e100 and 1e100",
		"r3": "metric odd: its score +Inf is no number between -1e100 and 1e100",
	} {
		r := results[row]
		if r.Failed == nil || r.Failed.Message != want || r.Failed.Class != "metric" || r.Answer.IsZero() || *r.Scores[0].Value != 1 || r.Scores[1].Value != nil {
			t.Errorf("%s: %+v, failed %+v; want %q, the answer and the other score", row, r, r.Failed, want)
		}
	}
	if r := results["r4"]; r.Failed != nil || *r.Scores[1].Value != 0.5 || r.Scores[1].Feedback != "half right" {
		t.Errorf("r4: %+v", r)
	}
	out := e.Outcome("a")
	wantOpt(t, "mean", out.Metrics["match"].Mean, 1)
	wantOpt(t, "mean", out.Metrics["odd"].Mean, 0.1)
	if out.Failed != 4 || out.Failures["metric"] != 4 || out.Metrics["odd"].Failed != 4 || out.Metrics["match"].Failed != 0 {
		t.Errorf("outcome %+v", out)
	}
}

// The recorded lane asks nothing, and is measured like any other candidate.
func TestRecorded(t *testing.T) {
	rows := quiz(4)
	rows[1].Recorded["result"] = datasets.Text("wrong")
	rows[2].Recorded = nil
	rows[3].Recorded["reasoning"] = datasets.Text("because")
	for _, withProgram := range []bool{true, false} {
		lane := Candidate{Name: "then", Recorded: true}
		if withProgram {
			lane.Program = program(t, answerProgram)
		}
		results := map[string]Result{}
		e := mustEvaluate(t, Plan{Rows: rows, Metrics: []Metric{match{}}, Candidates: []Candidate{lane}},
			Options{Observe: func(r Result, call *pipeline.Call) error {
				if call != nil {
					t.Errorf("a call was made: %+v", call)
				}
				results[r.Row] = r
				return nil
			}})
		out := e.Outcome("then")
		if out.N != 4 || out.Failed != 1 || out.Failures["never_recorded"] != 1 || out.Measured.Asked != 0 || out.Measured.Answers != 4 || out.Model != nil {
			t.Errorf("outcome %+v", out)
		}
		wantOpt(t, "mean", out.Metrics["match"].Mean, 0.5)
		if r := results["r0"]; r.Answer.String() != "a0" || !r.Outputs.IsZero() || r.Call != "" {
			t.Errorf("r0: %+v", r)
		}
		if f := results["r2"].Failed; f == nil || f.Code != "no-recorded-output" {
			t.Errorf("r2 failed with %+v; want no-recorded-output", f)
		}
		if r := results["r3"]; r.Outputs.JSON() != `{"reasoning":"because","result":"a3"}` || withProgram && r.Answer.String() != "a3" {
			t.Errorf("r3: answer %s of %s", r.Answer, r.Outputs)
		}
	}
}

// The recorded lane next to a candidate, with the recorded one as the baseline.
func TestRecordedBaseline(t *testing.T) {
	rows := quiz(3)
	rows[0].Recorded["result"] = datasets.Text("wrong")
	e := mustEvaluate(t, Plan{Rows: rows, Metrics: []Metric{match{}}, Baseline: "then", Candidates: []Candidate{
		candidate(t, "now", says(right)), {Name: "then", Recorded: true},
	}}, Options{})
	c := e.Comparisons[0]
	if len(e.Comparisons) != 1 || c.Baseline != "then" || c.Candidate != "now" || c.Better != 1 || c.Worse != 0 || c.Same != 2 {
		t.Errorf("comparisons %+v", e.Comparisons)
	}
}

// The answers to a row are averaged first: the row is what counts. A failed
// answer is a 0 among them.
func TestRepeats(t *testing.T) {
	model := modelFunc(func(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
		switch {
		case r.Site.Row == "r0" && r.Site.Repeat == 1:
			return reply("wrong"), nil
		case r.Site.Row == "r1" && r.Site.Repeat > 0:
			return nil, pipeline.Failf(pipeline.TypeRefusal, "", "no")
		}
		return reply(right(r.Site)), nil
	})
	e := mustEvaluate(t, Plan{Rows: quiz(3), Repeats: 4, Metrics: []Metric{match{}}, Candidates: []Candidate{
		candidate(t, "a", says(right)), candidate(t, "b", model),
	}}, Options{})
	b := e.Outcome("b")
	// Row means 3/4, 1/4, 1.
	wantOpt(t, "mean", b.Metrics["match"].Mean, 2.0/3)
	if b.N != 3 || b.Failed != 1 || b.Failures["refused"] != 1 || b.Metrics["match"].Failed != 1 || b.Measured.Answers != 12 || b.Metrics["match"].Method != "student-t" {
		t.Errorf("outcome %+v, %+v", b, b.Metrics["match"])
	}
	want := []Change{{Row: "r0", Before: 1, After: 0.75}, {Row: "r1", Before: 1, After: 0.25}}
	if c := e.Comparisons[0]; c.N != 3 || c.Worse != 2 || c.Same != 1 || !cmp.Equal(c.Changed, want) {
		t.Errorf("comparison %+v", c)
	}
}

// slow answers after a second.
func slow(say func(pipeline.Site) string) pipeline.Model {
	return modelFunc(func(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
		select {
		case <-time.After(time.Second):
			return reply(say(r.Site)), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
}

// A run that is canceled gives what was finished; the rest is unfinished, which
// is neither failed nor counted anywhere.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(4500*time.Millisecond, func() { cancel(why) })
		observed := 0
		e, err := Evaluate(ctx, Plan{Rows: quiz(100), Metrics: []Metric{match{}}, Candidates: []Candidate{
			candidate(t, "a", slow(rightBut("r0"))), candidate(t, "b", slow(right)),
		}}, Options{Executor: Local{Workers: 5}, Observe: func(Result, *pipeline.Call) error { observed++; return nil }})
		if !errors.Is(err, why) {
			t.Fatalf("error %v; want the cause", err)
		}
		// Twenty of 200 answers: ten rows of each.
		a := e.Outcome("a")
		if observed != 20 || a.N != 10 || a.Failed != 0 || a.Unfinished != 90 || e.Outcome("b").N != 10 {
			t.Errorf("%d observed, outcome %+v; want 20, and 10 rows of each", observed, a)
		}
		wantOpt(t, "mean", a.Metrics["match"].Mean, 0.9)
		if got := e.Ledger.Candidates[0]; got.Scored != 10 || got.Unfinished != 90 || len(got.Failed) != 0 || e.Ledger.Check() != nil {
			t.Errorf("ledger %+v", e.Ledger)
		}
		if c := e.Comparisons; len(c) != 1 || c[0].N != 10 || c[0].Better != 1 {
			t.Errorf("comparisons %+v", c)
		}
	})
}

// A run that is stopped finishes what it has begun.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		time.AfterFunc(4500*time.Millisecond, func() { close(stop) })
		e, err := Evaluate(t.Context(), Plan{Rows: quiz(100), Metrics: []Metric{match{}}, Candidates: []Candidate{
			candidate(t, "a", slow(right)), candidate(t, "b", slow(right)),
		}}, Options{Executor: Local{Workers: 5}, Stop: stop})
		if !errors.Is(err, ErrStopped) {
			t.Fatalf("error %v; want ErrStopped", err)
		}
		// 25 answers: row 12 has one of a and none of b.
		a, b := e.Outcome("a"), e.Outcome("b")
		if a.N != 13 || a.Unfinished != 87 || b.N != 12 || b.Unfinished != 88 {
			t.Errorf("finished %d and %d, unfinished %d and %d; want 13, 12, 87, 88", a.N, b.N, a.Unfinished, b.Unfinished)
		}
		if c := e.Comparisons[0]; c.N != 12 || c.BaselineOnly != 1 || c.CandidateOnly != 0 {
			t.Errorf("compared %d rows, %d only the baseline's", c.N, c.BaselineOnly)
		}
	})
}

// A metric that is cut short leaves its row unfinished, not failed.
func TestCancelInMetric(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		judge := metricFunc{"judge", func(ctx context.Context, _ datasets.Row, _ *pipeline.Call) (Score, error) {
			select {
			case <-time.After(time.Second):
				return Score{Value: 1}, nil
			case <-ctx.Done():
				return Score{}, ctx.Err()
			}
		}}
		e, err := Evaluate(ctx, Plan{Rows: quiz(10), Metrics: []Metric{judge}, Candidates: []Candidate{candidate(t, "a", says(right))}},
			Options{Executor: Local{Workers: 1}})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error %v; want the deadline", err)
		}
		if a := e.Outcome("a"); a.N != 2 || a.Failed != 0 || a.Unfinished != 8 {
			t.Errorf("outcome %+v; want two rows finished and none failed", a)
		}
	})
}

func TestObserveError(t *testing.T) {
	full := errors.New("disk full")
	n := 0
	e, err := Evaluate(t.Context(), Plan{Rows: quiz(100), Metrics: []Metric{match{}}, Candidates: []Candidate{candidate(t, "a", says(right))}},
		Options{Observe: func(Result, *pipeline.Call) error {
			if n++; n > 3 {
				return full
			}
			return nil
		}})
	if !errors.Is(err, full) {
		t.Fatalf("error %v; want the observer's", err)
	}
	if a := e.Outcome("a"); a.N != 3 || n != 4 {
		t.Errorf("%d rows counted, %d observed; want those that were written, 3, and no more after the error", a.N, n)
	}
}

// A run in which nothing could be scored has found nothing out.
func TestNothingEvaluated(t *testing.T) {
	broken := modelFunc(func(context.Context, *pipeline.Request) (*pipeline.Reply, error) {
		return nil, pipeline.Failf(pipeline.TypeNotRecorded, "", "this request was never recorded")
	})
	p := Plan{Rows: quiz(5), Metrics: []Metric{match{}}, Candidates: []Candidate{candidate(t, "a", broken)}}
	e, err := Evaluate(t.Context(), p, Options{})
	wantError(t, err, ErrNoRows, "5 never_recorded", "r0", "this request was never recorded")
	if e == nil || e.Outcome("a").Failed != 5 {
		t.Errorf("the evaluation %+v does not say what failed", e)
	}
	p.Candidates = append(p.Candidates, candidate(t, "b", says(right)))
	if _, err := Evaluate(t.Context(), p, Options{}); err != nil {
		t.Errorf("one candidate of two was evaluated, and the error is %v", err)
	}
}

func TestUsageAndCost(t *testing.T) {
	model := modelFunc(func(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
		re := reply(right(r.Site))
		switch r.Site.Row {
		case "r0":
			re.Usage = pipeline.Usage{}
		case "r1":
			re.Cached = true
		case "r2":
			return nil, pipeline.Failf(pipeline.TypeServer, "", "down")
		}
		return re, nil
	})
	c := candidate(t, "a", model)
	c.Caller.LM.Price = &pipeline.Price{Input: 100_000, Output: 1_000_000}
	e := mustEvaluate(t, Plan{Rows: quiz(5), Metrics: []Metric{match{}}, Candidates: []Candidate{c}}, Options{})
	out := e.Outcome("a")
	// r1, r3 and r4 took 10 and 2 tokens: 1 + 2 each.
	if u := out.Usage; *u.InputTokens != 30 || *u.OutputTokens != 6 || *u.Cost != 9 || u.Unknown != 1 {
		t.Errorf("usage %+v, cost %v; want 30, 6, 9 and one unknown", u, *u.Cost)
	}
	m := out.Measured
	if m.Asked != 5 || m.Cached != 1 || *m.Spent != 6 || m.Latency.N != 4 {
		t.Errorf("measured %+v, spent %v; want 5 asked, 1 cached, 6 spent", m, *m.Spent)
	}
}

func TestLatency(t *testing.T) {
	seconds := make([]float64, 100)
	for i := range seconds {
		seconds[i] = float64(100 - i)
	}
	if got, want := latency(OfCall, seconds), (Latency{Of: "call", N: 100, Median: 50, P95: 95, Max: 100, Total: 5050}); got != want {
		t.Errorf("latency %+v; want %+v", got, want)
	}
	if got, want := latency(OfWire, []float64{3}), (Latency{Of: "wire", N: 1, Median: 3, P95: 3, Max: 3, Total: 3}); got != want {
		t.Errorf("latency %+v; want %+v", got, want)
	}
	if got := latency(OfCall, nil); got != (Latency{}) {
		t.Errorf("latency %+v of nothing", got)
	}
}

func TestProgress(t *testing.T) {
	var p Progress
	plan := Plan{Rows: quiz(5), Metrics: []Metric{match{}}, Repeats: 2, Candidates: []Candidate{candidate(t, "a", modelFunc(
		func(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
			if r.Site.Row == "r1" {
				return nil, errors.New("down")
			}
			return reply("x"), nil
		}))}}
	for range 2 {
		mustEvaluate(t, plan, Options{Progress: &p})
	}
	if done, failed, total := p.Counts(); done != 20 || failed != 4 || total != 20 {
		t.Errorf("%d done, %d failed, of %d; want 20, 4, 20", done, failed, total)
	}
}

// An executor that loses, doubles or invents results is found out.
type executorFunc func(context.Context, Job, func(Result, error) bool)

func (f executorFunc) Execute(ctx context.Context, job Job, _ iter.Seq[Task]) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) { f(ctx, job, yield) }
}

func TestLedgerFindsExecutorsOut(t *testing.T) {
	do := func(ctx context.Context, job Job, task Task) Result {
		r, err := job.Do(ctx, task)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for name, c := range map[string]struct {
		run  executorFunc
		want string
	}{
		"twice": {func(ctx context.Context, job Job, yield func(Result, error) bool) {
			r := do(ctx, job, Task{})
			if yield(r, nil) {
				yield(r, nil)
			}
		}, "row r0 has answer 0 of a twice"},
		"unknown candidate": {func(ctx context.Context, job Job, yield func(Result, error) bool) {
			r := do(ctx, job, Task{})
			r.Candidate = "z"
			yield(r, nil)
		}, "z, which is no candidate"},
		"another row": {func(ctx context.Context, job Job, yield func(Result, error) bool) {
			for i := range 3 {
				r := do(ctx, job, Task{Row: i % 2})
				r.Row = fmt.Sprintf("x%d", i)
				if !yield(r, nil) {
					return
				}
			}
		}, "row x2 is one more than the 2"},
		"other metrics": {func(ctx context.Context, job Job, yield func(Result, error) bool) {
			r := do(ctx, job, Task{})
			r.Scores[0].Metric = "other"
			yield(r, nil)
		}, "other metrics"},
		"lost": {func(ctx context.Context, job Job, yield func(Result, error) bool) {
			yield(do(ctx, job, Task{}), nil)
		}, "1 of 2 answers did not come"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Evaluate(t.Context(), Plan{Rows: quiz(2), Metrics: []Metric{match{}}, Candidates: []Candidate{candidate(t, "a", says(right))}},
				Options{Executor: c.run})
			wantError(t, err, ErrLedger, c.want)
			if e == nil {
				t.Error("no evaluation comes with the error")
			}
		})
	}
}
