package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/replay"
)

var started = time.Date(2026, 3, 4, 5, 6, 7, 89, time.FixedZone("", 3600))

func mustCheck(t testing.TB, p Plan) *Checked {
	t.Helper()
	c, err := Check(p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustCreate(t testing.TB, plans ...*Checked) *Run {
	t.Helper()
	r, err := StartRun(filepath.Join(t.TempDir(), "runs"), RunInfo{Name: "my quiz", Started: started, Seed: 7}, plans...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// mixed is a plan over the rows of quiz that has whatever a run may meet. The
// rows are of four kinds in turn, and what becomes of a row depends on its kind,
// the candidate and the repeat alone; the clock, which goes faster the more often
// it is looked at, and the calls' ids depend on who comes first.
//
//	     plain                  tuned                   then
//	0    right, output unknown  right, request replaced right
//	1    wrong, then right      right, from a cache     wrong, with a reason
//	2    right, then throttled  unreadable, refused     right
//	3    right, no grade        wrong, tokens unknown   nothing recorded
//
// The rows 0 and 1 of each four are of one conversation. A row of kind 3 has no
// grade from the second metric, the first time because there is none and then
// because it fails.
func mixed(t testing.TB, name string, n int) Plan {
	t.Helper()
	rows := quiz(n)
	kinds := map[string]int{}
	for i := range rows {
		row, talk := &rows[i], fmt.Sprintf("talk %d", i/4)
		kinds[row.ID] = i % 4
		switch i % 4 {
		case 0:
			row.Context = datasets.Context{
				Of: "then-" + row.ID, Conversation: talk, Sections: []string{"Be brief."},
				Earlier: []datasets.Turn{{
					Inputs:  datasets.Values{"question": datasets.Text("an earlier question")},
					Outputs: datasets.Values{"result": datasets.Text("an earlier answer")},
				}},
			}
		case 1:
			row.Context.Conversation, row.Weight = talk, 2
			row.Recorded = datasets.Values{"reasoning": datasets.Text("a guess"), "result": datasets.Text("wrong")}
		case 3:
			row.Recorded = nil
		}
	}

	var looks, calls atomic.Int64
	asked := func(cand string, answer func(kind, repeat int, good *pipeline.Reply) (*pipeline.Reply, error)) Candidate {
		c := candidate(t, cand, modelFunc(func(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
			return answer(kinds[r.Site.Row], r.Site.Repeat, reply(right(r.Site)))
		}))
		c.Caller.Now = func() time.Time {
			look := time.Duration(looks.Add(1))
			return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(look * look * time.Millisecond)
		}
		c.Caller.NewID = func() string { return fmt.Sprintf("%s-%06d", name, calls.Add(1)) }
		return c
	}
	plain := asked("plain", func(kind, repeat int, good *pipeline.Reply) (*pipeline.Reply, error) {
		switch {
		case kind == 0:
			good.Usage.Output, good.Usage.Total = nil, nil
		case kind == 1 && repeat == 0:
			return reply("wrong"), nil
		case kind == 2 && repeat == 1:
			return nil, pipeline.Failf(pipeline.TypeRateLimit, "throttled", "too many requests")
		}
		return good, nil
	})
	tuned := asked("tuned", func(kind, repeat int, good *pipeline.Reply) (*pipeline.Reply, error) {
		switch {
		case kind == 1:
			good.Cached = true
		case kind == 2 && repeat == 0:
			good.Text = "no marks here"
		case kind == 2:
			return nil, pipeline.Failf(pipeline.TypeRefusal, "", "not that one")
		case kind == 3:
			return &pipeline.Reply{Text: reply("wrong").Text, Finish: "stop"}, nil
		}
		return good, nil
	})
	hint, err := pipeline.NewPlugin("hint", pipeline.Version("1.0.0"), pipeline.OnRequest(func(_ context.Context, e *pipeline.RequestEvent) (*pipeline.Request, error) {
		if kinds[e.Request.Site.Row] != 0 {
			return nil, nil
		}
		e.Request.System += "\n\nThink twice."
		return e.Request, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	tuned.Caller.Conversation = pipeline.Layer{Plugins: []*pipeline.Plugin{hint}}
	tuned.Plugins = []PluginRef{{Name: "hint", Version: "1.0.0", Content: "sha256:1"}}
	tuned.Model = ModelRef{Name: "fine", Provider: "fake", Settings: datasets.Values{"temperature": datasets.Float(0.5)}, Content: "sha256:1"}
	tuned.Caller.LM.Price = &pipeline.Price{Input: 100_000, Output: 1_000_000} // an answer of 10 and 2 tokens: 1 + 2

	graded := metricFunc{"graded", func(ctx context.Context, row datasets.Row, call *pipeline.Call) (Score, error) {
		if kinds[row.ID] == 3 && call.Site.Repeat == 0 {
			return Score{Missing: "no grade"}, nil
		}
		if kinds[row.ID] == 3 {
			return Score{}, errors.New("judge is away")
		}
		if s, err := (match{}).Score(ctx, row, call); err != nil || s.Value == 1 {
			return s, err
		}
		return Score{Value: 0.25, Feedback: "see the guide"}, nil
	}}
	p := Plan{
		Name: name, Rows: rows, Pair: "question", Repeats: 2,
		Intake:  Intake{Rated: n + 1, LeftOut: map[string]int{"no_answer": 2, "no_context": 1}},
		Metrics: []Metric{match{}, graded},
		Candidates: []Candidate{
			plain, tuned, {Name: "then", Program: program(t, answerProgram), Recorded: true},
		},
	}
	p.Stats.Margin = 0.25
	return p
}

// stored are a run's results as they are read back.
func stored(t testing.TB, dir string) []Result {
	t.Helper()
	r, err := OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	var results []Result
	for res, err := range r.Results() {
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, res)
	}
	return results
}

// wantStored loads a run's folder, which gives the evaluations that carrying it
// out gave.
func wantStored(t testing.TB, dir string, want []*Evaluation) {
	t.Helper()
	r, err := OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Evaluations()
	if err != nil {
		t.Fatal(err)
	}
	if a, b := asJSON(t, got), asJSON(t, want); a != b {
		t.Errorf("the folder says\n%s\nand carrying the run out gave\n%s", a, b)
		return
	}
	for i, e := range want {
		for j, out := range e.Candidates {
			if diff := cmp.Diff(out.Measured, got[i].Candidates[j].Measured); diff != "" {
				t.Errorf("%s/%s: measured (-carried out +loaded):\n%s", e.Name, out.Name, diff)
			}
		}
	}
}

func TestRun(t *testing.T) {
	plans := []Plan{mixed(t, "one", 8), mixed(t, "two", 5)}
	r := mustCreate(t, mustCheck(t, plans[0]), mustCheck(t, plans[1]))
	var observed []Result
	evals, err := r.Evaluate(t.Context(), Options{Observe: func(res Result, call *pipeline.Call) error {
		if (call == nil) != (res.Candidate == "then") {
			t.Errorf("row %s of %s comes with the call %v", res.Row, res.Candidate, call)
		}
		observed = append(observed, res)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}

	checkFolder(t, r)
	wantStored(t, r.Dir, evals)
	results := stored(t, r.Dir)
	if diff := cmp.Diff(observed, results, cmp.AllowUnexported(Result{})); diff != "" {
		t.Errorf("results (-observed +stored):\n%s", diff)
	}
	var want, got []string
	for _, p := range plans {
		for _, row := range p.Rows.(datasets.Rows) {
			for repeat := range 2 {
				for _, c := range p.Candidates {
					want = append(want, fmt.Sprint(p.Name, row.ID, repeat, c.Name))
				}
			}
		}
	}
	for _, res := range results {
		got = append(got, fmt.Sprint(res.Evaluation, res.Row, res.Repeat, res.Candidate))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("lines %v; want %v", got, want)
	}
	checkLines(t, results)
	checkCalls(t, r, results)

	if w := evals[0].Warnings; len(w) != 3 || !strings.Contains(w[0], "2 of 8 rows have a weight") ||
		!strings.Contains(w[1], "the plugin hint changed calls of tuned and none of plain") || !strings.Contains(w[2], "4 of the rows come from 2 conversations") {
		t.Errorf("warnings %q; want one about weights, one about a plugin and one about conversations", w)
	}
	if use := evals[0].Outcome("tuned").PluginUse; len(use) != 1 || use[0].Plugin != "hint" || use[0].Hook != "request" || use[0].Changed == 0 {
		t.Errorf("plugins did %+v; want that hint changed requests", use)
	}
	// What the lines come to: of each four rows plain has 1, ½, ½, 1, tuned
	// 1, 1, 0, 0 and the recorded lane 1, 0, 1, 0.
	for i, c := range []struct {
		mean                       float64
		scored                     int
		failed                     map[string]int
		answers, asked, cached     int
		usageUnknown, input, spent float64
	}{
		{0.75, 4, map[string]int{"rate_limited": 2, "metric": 2}, 16, 16, 0, 4, 140, 0},
		{0.5, 4, map[string]int{"unreadable": 2, "metric": 2}, 16, 16, 4, 4, 100, 18},
		{0.5, 6, map[string]int{"never_recorded": 2}, 16, 0, 0, 0, 0, 0},
	} {
		out, led := evals[0].Candidates[i], evals[0].Ledger.Candidates[i]
		wantOpt(t, out.Name+"'s mean", out.Metrics["match"].Mean, c.mean)
		if led.Scored != c.scored || !cmp.Equal(led.Failed, c.failed) || led.Unfinished != 0 {
			t.Errorf("%s: ledger %+v; want %d scored, %v failed", out.Name, led, c.scored, c.failed)
		}
		m := out.Measured
		if m.Answers != c.answers || m.Asked != c.asked || m.Cached != c.cached || m.Latency.N != c.asked-c.cached {
			t.Errorf("%s: measured %+v; want %d answers, %d asked, %d of them cached", out.Name, m, c.answers, c.asked, c.cached)
		}
		var input, spent float64 // 0 where nothing is known
		if out.Usage.InputTokens != nil {
			input = float64(*out.Usage.InputTokens)
		}
		if m.Spent != nil {
			spent = *m.Spent
		}
		if float64(out.Usage.Unknown) != c.usageUnknown || input != c.input || spent != c.spent {
			t.Errorf("%s: usage %+v, %v spent; want %v tokens in, %v answers unknown, %v spent", out.Name, out.Usage, spent, c.input, c.usageUnknown, c.spent)
		}
	}
}

// checkFolder looks at the folder of mustCreate's run of two plans: its name, its
// files, who may read them, and the manifest.
func checkFolder(t *testing.T, r *Run) {
	t.Helper()
	entries, err := os.ReadDir(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, e := range entries {
		files = append(files, e.Name())
		if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v (%v); want it readable by its owner alone", e.Name(), info, err)
		}
	}
	if want := []string{".lock", "calls.jsonl", "journal", "manifest.json", "results.parquet", "segments.json"}; !slices.Equal(files, want) {
		t.Errorf("the folder has %v; want %v", files, want)
	}

	text, err := os.ReadFile(filepath.Join(r.Dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Schema      int       `json:"schema"`
		ID          string    `json:"id"`
		Identity    string    `json:"identity"`
		Name        string    `json:"name"`
		Started     time.Time `json:"started"`
		Seed        uint64    `json:"seed"`
		Tools       string    `json:"tools"`
		Evaluations []struct {
			Name     string   `json:"name"`
			Baseline string   `json:"baseline"`
			Metrics  []string `json:"metrics"`
			Repeats  int      `json:"repeats"`
		} `json:"evaluations"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	hash, ok := strings.CutPrefix(m.Identity, "sha256:")
	if !ok || len(hash) != 64 {
		t.Fatalf("identity %q; want a hash", m.Identity)
	}
	if want := "20260304T040607Z_my-quiz_" + hash[:8]; m.ID != want || filepath.Base(r.Dir) != want {
		t.Errorf("the run %s is in %s; want %s", m.ID, r.Dir, want)
	}
	if m.Schema != 1 || m.Name != "my quiz" || !m.Started.Equal(started) || m.Seed != 7 || m.Tools != "recorded" {
		t.Errorf("manifest %s", text)
	}
	for i, name := range []string{"one", "two"} {
		if e := m.Evaluations[i]; e.Name != name || e.Baseline != "plain" || e.Repeats != 2 || !slices.Equal(e.Metrics, []string{"match", "graded"}) {
			t.Errorf("evaluation %+v of the manifest; want %s", e, name)
		}
	}
	opened, err := OpenRun(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r.Manifest, opened.Manifest); diff != "" || opened.Dir != r.Dir {
		t.Errorf("opened, %s has another manifest (-want +got):\n%s", opened.Dir, diff)
	}
}

// checkLines looks at some lines of mixed's first evaluation, and at what all of
// them have.
func checkLines(t *testing.T, results []Result) {
	t.Helper()
	one, quarter, three, ten, two := 1.0, 0.25, 3.0, int64(10), int64(2)
	scores := func(match, graded *float64, feedback string) []Scored {
		return []Scored{{"match", match, ""}, {"graded", graded, feedback}}
	}
	zero := new(float64)
	lines := map[string]Result{}
	for _, res := range results {
		if res.Evaluation == "one" {
			lines[fmt.Sprintf("%s %s %d", res.Row, res.Candidate, res.Repeat)] = res
		}
	}
	known := pipeline.Usage{Input: &ten, Output: &two, Total: tokens(10, 2).Total}
	for line, want := range map[string]Result{
		"r0 plain 0": {
			Pair: "q0", Conversation: "talk 0", Answer: datasets.Text("a0"), Scores: scores(&one, &one, ""),
			Requests: 1, Usage: pipeline.Usage{Input: &ten},
		},
		"r5 plain 0": {
			Pair: "q5", Conversation: "talk 1", Answer: datasets.Text("wrong"), Scores: scores(zero, &quarter, "see the guide"),
			Requests: 1, Usage: known,
		},
		"r2 plain 1": {
			Pair: "q2", Failed: &Failed{Class: "rate_limited", Type: "RateLimitError", Code: "throttled", Message: "too many requests"},
		},
		"r3 plain 0": {
			Pair: "q3", Answer: datasets.Text("a3"), Scores: scores(&one, nil, ""), Requests: 1, Usage: known,
			Failed: &Failed{Class: "metric", Type: "MetricError", Message: "metric graded: no grade"},
		},
		"r4 tuned 1": {
			Pair: "q4", Conversation: "talk 1", Answer: datasets.Text("a4"), Scores: scores(&one, &one, ""),
			Requests: 1, Usage: known, Cost: &three, Spent: &three,
			Plugins: []PluginAct{{Plugin: "hint", Version: "1.0.0", Hook: "request", Changed: true}},
		},
		"r1 tuned 1": {
			Pair: "q1", Conversation: "talk 0", Answer: datasets.Text("a1"), Scores: scores(&one, &one, ""),
			Requests: 1, Usage: known, Cost: &three, Cached: true, Resumed: true,
		},
		"r2 tuned 0": {
			Pair: "q2", Requests: 1, Usage: known, Cost: &three, Spent: &three,
			Failed: &Failed{Class: "unreadable", Type: "ReplyError", Code: "parse-missing"}, // in the reader's words
		},
		"r6 tuned 1": {
			Pair: "q6", Failed: &Failed{Class: "refused", Type: "RefusalError", Message: "not that one"},
		},
		"r7 tuned 1": {
			Pair: "q7", Answer: datasets.Text("wrong"), Scores: scores(zero, nil, ""), Requests: 1,
			Failed: &Failed{Class: "metric", Type: "MetricError", Message: "metric graded: judge is away"},
		},
		"r1 then 1": {
			Pair: "q1", Conversation: "talk 0", Answer: datasets.Text("wrong"), Scores: scores(zero, &quarter, "see the guide"),
			Outputs: datasets.RawValue(`{"reasoning": "a guess", "result": "wrong"}`),
		},
		"r7 then 0": {
			Pair: "q7", Failed: &Failed{Class: "never_recorded", Type: "NotRecordedError", Code: "no-recorded-output", Message: "the row has no recorded output"},
		},
	} {
		got := lines[line]
		want.Evaluation, want.Row, want.Candidate, want.Repeat = got.Evaluation, got.Row, got.Candidate, got.Repeat
		want.Call, want.Seconds, want.RequestHash = got.Call, got.Seconds, got.RequestHash // looked at below
		if want.Failed != nil && want.Failed.Message == "" && got.Failed != nil {
			want.Failed.Message = got.Failed.Message
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(Result{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
	for _, res := range results {
		called := res.Candidate != "then"
		if called != (res.Call != "") || called != (res.Seconds > 0) {
			t.Errorf("%s of %s: call %q of %v s; want one where a model was asked alone", res.Row, res.Candidate, res.Call, res.Seconds)
		}
		replaced := res.Candidate == "tuned" && (res.Row == "r0" || res.Row == "r4")
		if hashed := strings.HasPrefix(res.RequestHash, "sha256:"); hashed != (called && !replaced) {
			t.Errorf("%s of %s: request hash %q", res.Row, res.Candidate, res.RequestHash)
		}
		// What is not known is null.
		l := res.line()
		if (l.Seconds != nil) != called || (l.Call != nil) != called || (l.RequestHash != nil) != (called && !replaced) || (l.Error != nil) != (res.Failed != nil) {
			t.Errorf("%s of %s: seconds %v, call %v, request hash %v, error %v; want null for what is not there", res.Row, res.Candidate, l.Seconds, l.Call, l.RequestHash, l.Error)
		}
		if (l.Score != nil) != (len(res.Scores) > 0) || l.Score != nil && *l.Score != *res.Scores[0].Value {
			t.Errorf("%s of %s: score %v of %+v; want the first metric's", res.Row, res.Candidate, l.Score, res.Scores)
		}
	}
}

// checkCalls reads the run's call log, which has a record for each result that a
// model was asked for, in their order.
func checkCalls(t *testing.T, r *Run, results []Result) {
	t.Helper()
	src, err := replay.Open(filepath.Join(r.Dir, CallsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	results = slices.DeleteFunc(slices.Clone(results), func(res Result) bool { return res.Candidate == "then" })
	i := 0
	for rec, err := range src.Calls(replay.Want{All: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if i == len(results) {
			t.Fatalf("more records than the %d calls", i)
		}
		res := results[i]
		i++
		where := fmt.Sprintf("%s, %s, %s, %d", res.Evaluation, res.Row, res.Candidate, res.Repeat)
		if rec.ID != res.Call || rec.Caller.Evaluation != r.Manifest.ID || rec.Caller.Kind != "evaluation" || !rec.Whole() {
			t.Fatalf("%s: record %s of caller %+v; want %s, called by the run", where, rec.ID, rec.Caller, res.Call)
		}
		if d := *rec.Seconds - res.Seconds; d > 1e-6 || d < -1e-6 {
			t.Errorf("%s: %v seconds are recorded; want %v", where, *rec.Seconds, res.Seconds)
		}
		if len(rec.Exchanges) != 1 || rec.Exchanges[0].RequestHash != res.RequestHash {
			t.Errorf("%s: exchanges %+v; want one of the request %s", where, rec.Exchanges, res.RequestHash)
		}
		if got := datasets.ValuesOf(rec.Outputs)["result"]; !got.Equal(res.Answer) {
			t.Errorf("%s: answer %s is recorded; want %s", where, got, res.Answer)
		}
		if question := datasets.ValuesOf(rec.Inputs)["question"]; question.String() != res.Pair {
			t.Errorf("%s: %s was asked; want %s", where, question, res.Pair)
		}
		saw := ""
		if len(rec.Saw) > 0 {
			saw = rec.Saw[0].SawOf
		}
		if want := res.Row == "r0" || res.Row == "r4"; (saw == "then-"+res.Row) != want || !want && rec.Saw == nil {
			t.Errorf("%s: it saw %+v", where, rec.Saw)
		}
		if failed := res.Failed != nil && res.Failed.Class != ClassMetric; failed != (rec.Error != nil) || failed && rec.Error.Type != res.Failed.Type {
			t.Errorf("%s: error %+v is recorded; want that of %+v", where, rec.Error, res.Failed)
		}
	}
	if i != len(results) || len(src.Skipped()) != 0 {
		t.Errorf("%d records of %d calls; skipped %v", i, len(results), src.Skipped())
	}
}

// However many tasks are at work and whichever is done first, the results are
// the same, apart from what the clock says and what calls are called.
func TestDeterminism(t *testing.T) {
	do := func(workers int) (*Run, []Result, []*Evaluation) {
		var plans []*Checked
		for i, name := range []string{"one", "two"} {
			p := mixed(t, name, 30-11*i)
			for j := range p.Candidates[:2] {
				lm := &p.Candidates[j].Caller.LM
				quick := lm.Model
				lm.Model = modelFunc(func(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
					// The later of a few rows answers first.
					time.Sleep(time.Duration(3-len(r.Site.Row)+int('9'-r.Site.Row[len(r.Site.Row)-1])) * 100 * time.Microsecond)
					return quick.Generate(ctx, r)
				})
			}
			plans = append(plans, mustCheck(t, p))
		}
		r := mustCreate(t, plans...)
		evals, err := r.Evaluate(t.Context(), Options{Executor: Local{Workers: workers}})
		if err != nil {
			t.Fatal(err)
		}
		results := stored(t, r.Dir)
		for i := range results {
			results[i].Seconds, results[i].Call = 0, ""
		}
		for _, e := range evals {
			for _, out := range e.Candidates {
				n := out.Measured.Latency.N
				out.Measured.Latency = Latency{N: n}
			}
		}
		return r, results, evals
	}
	slowly, want, wantEvals := do(1)
	at16, got, gotEvals := do(16)
	if len(want) != 2*3*(30+19) {
		t.Fatalf("%d results; want %d", len(want), 2*3*(30+19))
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Result{})); diff != "" {
		t.Errorf("results (-1 worker +16 workers):\n%s", diff)
	}
	if a, b := asJSON(t, wantEvals), asJSON(t, gotEvals); a != b {
		t.Errorf("with 1 worker:\n%s\nwith 16:\n%s", a, b)
	}
	if a, b := slowly.Manifest, at16.Manifest; !cmp.Equal(a, b) {
		t.Errorf("manifests %+v and %+v", a, b)
	}
	for i, e := range wantEvals {
		for j, out := range e.Candidates {
			if other := gotEvals[i].Candidates[j]; !cmp.Equal(out.Measured, other.Measured) {
				t.Errorf("%s/%s: measured %+v with 1 worker, %+v with 16", e.Name, out.Name, out.Measured, other.Measured)
			}
		}
	}
}

// A run that is cut short keeps what was finished. The rest is unfinished, which
// is not failed, even when one of a row's answers came and failed.
func TestRunCutShort(t *testing.T) {
	enough := errors.New("enough")
	for name, want := range map[string]error{"stopped": ErrStopped, "canceled": enough} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			stop := make(chan struct{})
			// Answers come one by one, four to a row. The 25th, the first one to
			// r6, is the last that comes, but for one more that may have been
			// begun when the run is stopped.
			var asked atomic.Int64
			model := modelFunc(func(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
				n := asked.Add(1)
				switch {
				case name == "stopped" && n == 25:
					close(stop)
				case name == "canceled" && n > 25:
					cancel(enough)
					return nil, ctx.Err()
				}
				if r.Site.Row == "r1" || r.Site.Row == "r6" {
					return nil, pipeline.Failf(pipeline.TypeServer, "", "down")
				}
				return reply(rightBut("r3")(r.Site)), nil
			})
			second := false
			next := says(func(pipeline.Site) string { second = true; return "x" })
			r := mustCreate(t,
				mustCheck(t, Plan{Name: "one", Rows: quiz(100), Repeats: 2, Metrics: []Metric{match{}}, Candidates: []Candidate{
					candidate(t, "a", model), candidate(t, "b", model),
				}}),
				mustCheck(t, Plan{Name: "two", Rows: quiz(7), Metrics: []Metric{match{}}, Candidates: []Candidate{candidate(t, "a", next)}}),
			)
			evals, err := r.Evaluate(ctx, Options{Executor: Local{Workers: 1}, Stop: stop})
			if !errors.Is(err, want) {
				t.Fatalf("error %v; want %v", err, want)
			}
			if len(evals) != 2 || evals[0] == nil || evals[1] == nil || second {
				t.Fatalf("evaluations %v, the second was asked: %v; want both, the second not asked", evals, second)
			}
			for i, out := range evals[0].Candidates {
				wantOpt(t, out.Name+"'s mean", out.Metrics["match"].Mean, 4.0/6)
				led := CandidateLedger{Candidate: out.Name, Scored: 5, Failed: map[string]int{"server": 1}, Unfinished: 94}
				if out.N != 6 || out.Failed != 1 || out.Unfinished != 94 || !cmp.Equal(evals[0].Ledger.Candidates[i], led) {
					t.Errorf("%s: n %d, failed %d, unfinished %d, ledger %+v; want 6, 1, 94", out.Name, out.N, out.Failed, out.Unfinished, evals[0].Ledger)
				}
			}
			led := CandidateLedger{Candidate: "a", Failed: map[string]int{}, Unfinished: 7}
			if a := evals[1].Outcome("a"); a.N != 0 || a.Failed != 0 || a.Unfinished != 7 || !cmp.Equal(evals[1].Ledger.Candidates[0], led) {
				t.Errorf("what was not begun: %+v, ledger %+v; want 7 unfinished", a, evals[1].Ledger)
			}

			results := stored(t, r.Dir)
			if n := len(results); n != 25 && (n != 26 || name == "canceled") {
				t.Errorf("%d results are stored; want 25", n)
			}
			log, err := os.ReadFile(filepath.Join(r.Dir, CallsFile))
			if n := bytes.Count(log, []byte("\n")); err != nil || n != len(results) {
				t.Errorf("%d calls are recorded (%v), and %d results", n, err, len(results))
			}
			wantStored(t, r.Dir, evals)
		})
	}
}

// An evaluation in which every answer failed is an error in the end, and keeps no
// other from being carried out.
func TestRunWithAnEmptyEvaluation(t *testing.T) {
	broken := modelFunc(func(context.Context, *pipeline.Request) (*pipeline.Reply, error) {
		return nil, pipeline.Failf(pipeline.TypeNotRecorded, "", "this request was never recorded")
	})
	plan := func(name string, n int, m pipeline.Model) *Checked {
		return mustCheck(t, Plan{Name: name, Rows: quiz(n), Metrics: []Metric{match{}}, Candidates: []Candidate{candidate(t, "a", m)}})
	}
	r := mustCreate(t, plan("first", 5, broken), plan("second", 4, says(right)), plan("third", 3, broken))
	evals, err := r.Evaluate(t.Context(), Options{})
	wantError(t, err, ErrNoRows, "evaluation first", "5 never_recorded", "evaluation third", "3 never_recorded", "this request was never recorded")
	if err != nil && strings.Contains(err.Error(), "second") {
		t.Errorf("error %v; want nothing of the second", err)
	}
	if len(evals) != 3 {
		t.Fatalf("%d evaluations; want 3", len(evals))
	}
	for i, want := range []struct{ n, failed int }{{5, 5}, {4, 0}, {3, 3}} {
		if a := evals[i].Outcome("a"); a.N != want.n || a.Failed != want.failed || a.Unfinished != 0 {
			t.Errorf("%s: n %d, failed %d, unfinished %d; want %d, %d, 0", evals[i].Name, a.N, a.Failed, a.Unfinished, want.n, want.failed)
		}
	}
	wantOpt(t, "second's mean", evals[1].Outcome("a").Metrics["match"].Mean, 1)
	if n := len(stored(t, r.Dir)); n != 12 {
		t.Errorf("%d results are stored; want 12", n)
	}
	wantStored(t, r.Dir, evals)
}

// An observer's error ends the run, evaluations that were not begun included.
func TestRunObserveError(t *testing.T) {
	full := errors.New("disk full")
	asked := false
	next := says(func(pipeline.Site) string { asked = true; return "x" })
	r := mustCreate(t, mustCheck(t, mixed(t, "one", 20)), mustCheck(t, Plan{
		Name: "two", Rows: quiz(3), Metrics: []Metric{match{}}, Candidates: []Candidate{candidate(t, "a", next)},
	}))
	var observed []Result
	evals, err := r.Evaluate(t.Context(), Options{Observe: func(res Result, _ *pipeline.Call) error {
		if observed = append(observed, res); len(observed) >= 30 {
			return full
		}
		return nil
	}})
	if !errors.Is(err, full) {
		t.Fatalf("error %v; want the observer's", err)
	}
	if len(observed) != 30 || asked {
		t.Errorf("%d results were observed, the second evaluation was asked: %v; want 30, and nothing after the error", len(observed), asked)
	}
	if len(evals) != 2 || evals[1].Outcome("a").Unfinished != 3 {
		t.Errorf("evaluations %s; want both, the second unfinished", asJSON(t, evals))
	}
	results := stored(t, r.Dir)
	if diff := cmp.Diff(observed, results, cmp.AllowUnexported(Result{})); diff != "" {
		t.Errorf("results (-observed +stored):\n%s", diff)
	}
	// Thirty answers are six to each of five rows.
	opened, err := OpenRun(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := opened.Evaluations()
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range loaded[0].Candidates {
		if out.N != 5 || out.Unfinished != 15 {
			t.Errorf("%s: n %d, unfinished %d; want 5 and 15", out.Name, out.N, out.Unfinished)
		}
	}
}

func TestRunCannotWrite(t *testing.T) {
	asked := false
	model := says(func(pipeline.Site) string { asked = true; return "x" })
	r := mustCreate(t, mustCheck(t, Plan{Rows: quiz(3), Metrics: []Metric{match{}}, Candidates: []Candidate{candidate(t, "a", model)}}))
	if err := os.RemoveAll(r.Dir); err != nil {
		t.Fatal(err)
	}
	evals, err := r.Evaluate(t.Context(), Options{})
	wantError(t, err, os.ErrNotExist, r.Dir)
	if asked || evals != nil {
		t.Errorf("asked: %v, evaluations %v; want that nothing was asked", asked, evals)
	}
}

// A run's identity is its question: what answers depend on, and not how they are
// scored, what they cost or when they were asked.
func TestIdentity(t *testing.T) {
	identity := func(info RunInfo, change func(*Plan)) string {
		p := mixed(t, "one", 5)
		change(&p)
		r, err := StartRun(t.TempDir(), info, mustCheck(t, p))
		if err != nil {
			t.Fatal(err)
		}
		return r.Manifest.Identity
	}
	info := RunInfo{Name: "x", Started: started}
	base := identity(info, func(*Plan) {})
	for name, change := range map[string]func(*Plan){
		"metrics":  func(p *Plan) { p.Metrics = []Metric{match{}} },
		"price":    func(p *Plan) { p.Candidates[1].Caller.LM.Price = nil },
		"baseline": func(p *Plan) { p.Baseline = "then" },
		"intake":   func(p *Plan) { p.Intake = Intake{} },
		"margin":   func(p *Plan) { p.Stats.Margin = 0.1 },
	} {
		if identity(info, change) != base {
			t.Errorf("another %s is another identity", name)
		}
	}
	later := info
	later.Started, later.Name, later.Versions = started.Add(time.Hour), "y", map[string]string{"evalrun": "2"}
	if identity(later, func(*Plan) {}) != base {
		t.Error("the same question, asked later, has another identity")
	}
	seen := map[string]string{base: "the plan itself"}
	add := func(name, id string) {
		if as, ok := seen[id]; ok {
			t.Errorf("another %s has the identity of %s", name, as)
		}
		seen[id] = name
	}
	for name, change := range map[string]func(*Plan){
		"rows":    func(p *Plan) { p.Rows = p.Rows.(datasets.Rows)[:4] },
		"repeats": func(p *Plan) { p.Repeats = 3 },
		"program": func(p *Plan) {
			p.Candidates[0].Program = program(t, strings.Replace(answerProgram, "Answer the", "Do answer the", 1))
		},
		"model":            func(p *Plan) { p.Candidates[1].Model.Name = "other" },
		"model's settings": func(p *Plan) { p.Candidates[1].Model.Settings = nil },
		"model's content":  func(p *Plan) { p.Candidates[1].Model.Content = "sha256:2" },
		"plugin's version": func(p *Plan) { p.Candidates[1].Plugins[0].Version = "2.0.0" },
		"plugin's content": func(p *Plan) { p.Candidates[1].Plugins[0].Content = "sha256:2" },
		"candidates":       func(p *Plan) { p.Candidates = p.Candidates[:2] },
	} {
		add(name, identity(info, change))
	}
	seeded, live := info, info
	seeded.Seed, live.Tools = 8, "live"
	add("seed", identity(seeded, func(*Plan) {}))
	add("tools policy", identity(live, func(*Plan) {}))
}

func TestOpenRun(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ manifest, want string }{
		{"", "is no run's folder"},
		{"{", "not a run's manifest"},
		{`{"functai_saved": 1}`, "it names no schema"},
		{`{"schema": 99}`, "its schema is 99, of a later evalrun"},
	} {
		if c.manifest != "" {
			if err := os.WriteFile(filepath.Join(dir, manifestFile), []byte(c.manifest), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := OpenRun(dir); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("manifest %q: error %v; want %q and the folder", c.manifest, err, c.want)
		}
	}

	// A run that died before it could write its results.
	r := mustCreate(t, mustCheck(t, mixed(t, "one", 5)))
	if _, err := r.Evaluations(); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("error %v; want it to say that the run was cut off", err)
	}
	// Results that are not the manifest's.
	if _, err := r.Evaluate(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	r.Manifest.Evaluations[0].Name = "other"
	_, err := r.Evaluations()
	wantError(t, err, ErrLedger, `"one"`)
	r.Manifest.Evaluations[0].Name = "one"
	r.Manifest.Evaluations[0].Candidates = r.Manifest.Evaluations[0].Candidates[:1]
	_, err = r.Evaluations()
	wantError(t, err, ErrLedger, "no candidate")
	if err := os.Truncate(filepath.Join(r.Dir, ResultsFile), 100); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Evaluations(); err == nil || !strings.Contains(err.Error(), ResultsFile) {
		t.Errorf("error %v; want it to name the damaged file", err)
	}
}

// A manifest that is not what it should be gives an error, or numbers; never a
// panic.
func FuzzManifest(f *testing.F) {
	checked, err := Check(mixed(f, "one", 4))
	if err != nil {
		f.Fatal(err)
	}
	r, err := StartRun(f.TempDir(), RunInfo{Name: "x", Started: started}, checked)
	if err != nil {
		f.Fatal(err)
	}
	if _, err := r.Evaluate(f.Context(), Options{}); err != nil {
		f.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(r.Dir, manifestFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	for _, change := range [][2]string{
		{`"repeats": 2`, `"repeats": -1`},
		{`"asked": 4`, `"asked": -4`},
		{`"baseline": "plain"`, `"baseline": "x"`},
		{`"metrics": [`, `"metrics": null, "x": [`},
		{`"candidates": [`, `"candidates": [], "x": [`},
		{`"pair": "question"`, `"pair": ""`},
	} {
		f.Add(bytes.Replace(text, []byte(change[0]), []byte(change[1]), 1))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(filepath.Join(r.Dir, manifestFile), text, 0o600); err != nil {
			t.Fatal(err)
		}
		run, err := OpenRun(r.Dir)
		if err != nil {
			return
		}
		evals, err := run.Evaluations()
		if err != nil {
			return
		}
		for _, e := range evals {
			if err := e.Ledger.Check(); err != nil {
				t.Error(err)
			}
		}
		asJSON(t, evals)
	})
}

// Whatever fails and wherever a run is cut, every row ends in one state and the
// sums reconcile.
func TestLedgerReconciles(t *testing.T) {
	for seed := range uint64(50) {
		chance := rand.New(rand.NewPCG(seed, 1))
		rows, repeats, stopAt := 1+chance.IntN(30), 1+chance.IntN(3), chance.IntN(200)
		failing := pipeline.TypeServer
		model := modelFunc(func(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
			if (len(r.Site.Row)*7+int(r.Site.Row[len(r.Site.Row)-1])+r.Site.Repeat+int(seed))%3 == 0 {
				return nil, pipeline.Failf(failing, "", "down")
			}
			return reply(right(r.Site)), nil
		})
		stop := make(chan struct{})
		seen := 0
		e, err := Evaluate(t.Context(), Plan{
			Rows: quiz(rows), Repeats: repeats, Metrics: []Metric{match{}}, Intake: Intake{LeftOut: map[string]int{"filter": int(seed)}},
			Candidates: []Candidate{candidate(t, "a", model), candidate(t, "b", says(right))},
		}, Options{Stop: stop, Executor: Local{Workers: 3, Window: 5}, Observe: func(Result, *pipeline.Call) error {
			if seen++; seen == stopAt {
				close(stop)
			}
			return nil
		}})
		if err != nil && !errors.Is(err, ErrStopped) {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := e.Ledger.Check(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if e.Ledger.Input != rows+int(seed) {
			t.Errorf("seed %d: %d rows went in; want %d", seed, e.Ledger.Input, rows+int(seed))
		}
		for i, c := range e.Ledger.Candidates {
			out := e.Candidates[i]
			if out.N != c.Scored+total(c.Failed) || out.Unfinished != c.Unfinished || out.Failed != total(c.Failed) || out.Failed != total(out.Failures) {
				t.Errorf("seed %d: outcome n %d, failed %d, unfinished %d; ledger %+v", seed, out.N, out.Failed, out.Unfinished, c)
			}
		}
	}
}

func TestLedgerCheck(t *testing.T) {
	good := func() *Ledger {
		return &Ledger{Input: 10, LeftOut: map[string]int{"filter": 3}, Asked: 7, Candidates: []CandidateLedger{
			{Candidate: "a", Scored: 4, Failed: map[string]int{"server": 2}, Unfinished: 1},
		}}
	}
	if err := good().Check(); err != nil {
		t.Errorf("refused: %v", err)
	}
	for name, c := range map[string]struct {
		change func(*Ledger)
		want   string
	}{
		"a row more":       {func(l *Ledger) { l.Input++ }, "11 rows went in, 7 were asked and 3 left out"},
		"a row twice":      {func(l *Ledger) { l.LeftOut["no_answer"] = 1 }, "10 rows went in, 7 were asked and 4 left out"},
		"a row lost":       {func(l *Ledger) { l.Candidates[0].Scored-- }, "candidate a was asked 7 rows, and 3 were scored, 2 failed and 1 are unfinished"},
		"a failure more":   {func(l *Ledger) { l.Candidates[0].Failed["refused"] = 1 }, "3 failed"},
		"unfinished twice": {func(l *Ledger) { l.Candidates[0].Unfinished++ }, "2 are unfinished"},
	} {
		l := good()
		c.change(l)
		if err := l.Check(); !errors.Is(err, ErrLedger) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}
