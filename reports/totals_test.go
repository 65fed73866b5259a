package reports

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/pipeline"
)

// paid answers as a service behind limits does: some requests after tries that
// failed, some without usage, some not at all.
type paid struct{ seed int }

func (m paid) Generate(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
	i := 0
	if _, err := fmt.Sscanf(r.Site.Row, "r%d", &i); err != nil {
		return nil, err
	}
	var before []pipeline.Attempt
	for n := range (i + m.seed) % 3 {
		before = append(before, pipeline.Attempt{
			Failure: pipeline.Failf(pipeline.TypeServer, "", "HTTP status 503"), Waited: time.Duration(n+1) * time.Second, Wire: time.Second,
		})
	}
	if i%11 == 4 {
		f := pipeline.Failf(pipeline.TypeRateLimit, "", "HTTP status 429")
		f.Attempts = before
		return nil, f
	}
	in, out := int64(100+i), int64(7*i%13)
	reply := &pipeline.Reply{
		Text: "<result>\na\n</result>\n", Finish: "stop", Attempts: before,
		Waited: 250 * time.Millisecond, Wire: time.Duration(40+i*m.seed%17) * time.Millisecond,
	}
	if i%5 == 3 {
		reply.Cached, reply.From = true, pipeline.FromCache
	}
	if i%7 != 2 {
		reply.Usage = pipeline.Usage{Input: &in, Output: &out}
	}
	return reply, nil
}

// Every total of a report is found again in the stored rows and sittings, by sums
// of the test's own.
func TestTotalsAreOfTheStoredRows(t *testing.T) {
	program, err := pipeline.ParseProgram("program.yaml", []byte("name: answer\nmodule: quiz\ndescription: Answer the question.\n"+
		"inputs:\n  - {name: question, shape: {type: string}}\noutputs:\n  - {name: result, shape: {type: string}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var rows datasets.Rows
	for i := range 60 {
		rows = append(rows, datasets.Row{
			ID: fmt.Sprintf("r%d", i), Inputs: datasets.Values{"question": datasets.Text(fmt.Sprint(i))}, Labels: datasets.Values{"result": datasets.Text("a")},
		})
	}
	candidate := func(name string, seed int, price *pipeline.Price) harness.Candidate {
		ids := 0
		return harness.Candidate{Name: name, Program: program, Caller: &pipeline.Caller{
			LM:    pipeline.LM{Name: "m-" + name, Model: paid{seed}, Price: price},
			Now:   func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
			NewID: func() string { ids++; return fmt.Sprintf("%s-%d", name, ids) },
		}}
	}
	plan := func() *harness.Checked {
		plan, err := harness.Check(harness.Plan{
			Rows: rows, Metrics: []harness.Metric{match{}}, Repeats: 2,
			Candidates: []harness.Candidate{candidate("old", 1, &pipeline.Price{Input: 3, Output: 15}), candidate("new", 2, nil)},
		})
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	root, began := t.TempDir(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var run *harness.Run
	for i := range 2 { // the second time what was answered comes from the journal
		if run, err = harness.StartRun(root, harness.RunInfo{Name: "quiz", Started: began}, plan()); err != nil {
			t.Fatal(err)
		}
		started := began.Add(time.Duration(i) * time.Hour)
		ended := started.Add(time.Duration(30*(i+1)) * time.Second)
		sitting := harness.Sitting{
			Started: started, Models: []harness.Limited{{Name: "m-old", Tries: 5, Retries: map[string]int64{"server": int64(2 + i)}, History: []harness.LimitEvent{}}},
			Bookings: []pipeline.Booking{{Account: pipeline.Account{Purpose: "candidate", Cause: "first", Model: "m-old"}, Amount: pipeline.Amount{Requests: int64(10 + i), Tokens: 1000, Money: 0.25, Doubtful: 1}}},
		}
		if err := run.KeepSitting(sitting); err != nil {
			t.Fatal(err)
		}
		if _, err := run.Evaluate(t.Context(), harness.Options{Executor: harness.Local{Workers: 1}}); err != nil {
			t.Fatal(err)
		}
		sitting.Ended = &ended
		if err := run.KeepSitting(sitting); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := harness.OpenRun(run.Dir)
	if err != nil {
		t.Fatal(err)
	}
	evals, err := opened.Evaluations()
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(opened, evals, Facts{})
	if err != nil {
		t.Fatal(err)
	}

	type sums struct {
		Answers, Asked, Cached, Failed, Unknown, Retries int
		In, Out, ReusedRequests, ReusedTokens            int64
		Cost, Spent, Waited                              float64
		wire                                             []float64
	}
	want := map[string]*sums{"old": {}, "new": {}}
	failedRows := map[string]bool{}
	for res, err := range opened.Results() {
		if err != nil {
			t.Fatal(err)
		}
		s := want[res.Candidate]
		s.Answers++
		s.Asked++
		s.Waited += res.Waited
		s.Retries += res.Retries
		if res.Failed != nil && !failedRows[res.Candidate+res.Row] {
			failedRows[res.Candidate+res.Row] = true
			s.Failed++
		}
		if res.Usage.Input != nil {
			s.In, s.Out = s.In+*res.Usage.Input, s.Out+*res.Usage.Output
		} else if res.Requests > 0 {
			s.Unknown++
		}
		cost := 0.0
		if res.Cost != nil {
			cost = *res.Cost
		}
		s.Cost += cost
		switch {
		case res.Cached:
			s.Cached++
			s.ReusedRequests += int64(res.Requests)
			if res.Usage.Input != nil {
				s.ReusedTokens += *res.Usage.Input + *res.Usage.Output
			}
		default:
			s.Spent += cost
			if res.Latency != nil {
				s.wire = append(s.wire, *res.Latency)
			}
		}
	}
	near := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9*math.Max(1, math.Abs(want)) {
			t.Errorf("%s is %v in the report, %v in the rows", name, got, want)
		}
	}
	or0 := func(v *float64) float64 {
		if v == nil {
			return 0
		}
		return *v
	}
	var doc struct {
		Evaluations []struct {
			Candidates []struct {
				Name   string
				Failed int
				Usage  struct {
					Input   int64 `json:"input_tokens"`
					Output  int64 `json:"output_tokens"`
					Cost    *float64
					Unknown int
				}
			}
		}
		Measured struct {
			Evaluations []struct {
				Candidates []struct {
					Name                            string
					Answers, Asked, Cached, Retries int
					Spent                           *float64
					Waited                          float64
					Latency                         struct {
						Of            string
						N             int
						Median, Total float64
					}
					Reused struct{ Requests, Tokens int64 }
				}
			}
			Spending []struct {
				Cause, Model               string
				Requests, Tokens, Doubtful int64
				Money                      float64
			}
		}
	}
	if err := json.Unmarshal(written(t, r, "json"), &doc); err != nil {
		t.Fatal(err)
	}
	for i, c := range doc.Evaluations[0].Candidates {
		w, m := want[c.Name], doc.Measured.Evaluations[0].Candidates[i]
		if w.Retries == 0 && w.Cached == 0 {
			t.Fatalf("%s: the rows show nothing: %+v", c.Name, w)
		}
		if c.Failed != w.Failed || c.Usage.Input != w.In || c.Usage.Output != w.Out || c.Usage.Unknown != w.Unknown {
			t.Errorf("%s: %+v in the report, %+v in the rows", c.Name, c, w)
		}
		if m.Answers != w.Answers || m.Asked != w.Asked || m.Cached != w.Cached || m.Retries != w.Retries || m.Reused.Requests != w.ReusedRequests || m.Reused.Tokens != w.ReusedTokens {
			t.Errorf("%s: %+v in the report, %+v in the rows", c.Name, m, w)
		}
		near(c.Name+": cost", or0(c.Usage.Cost), w.Cost)
		near(c.Name+": spent", or0(m.Spent), w.Spent)
		near(c.Name+": waited", m.Waited, w.Waited)
		if c.Name == "new" && c.Usage.Cost != nil {
			t.Errorf("new has no price and costs %v", *c.Usage.Cost)
		}
		total := 0.0
		for _, v := range w.wire {
			total += v
		}
		near(c.Name+": latency", m.Latency.Total, total)
		if m.Latency.N != len(w.wire) {
			t.Errorf("%s: %d latencies, %d in the rows", c.Name, m.Latency.N, len(w.wire))
		}
		if sort.Float64s(w.wire); len(w.wire) > 0 && (m.Latency.Of != "wire" || m.Latency.Median != w.wire[(len(w.wire)-1)/2]) {
			t.Errorf("%s: latency %+v, the rows have %v", c.Name, m.Latency, w.wire)
		}
	}
	at := slices.IndexFunc(r.Measured.Spending, func(b pipeline.Booking) bool { return b.Cause == "first" })
	if got, want := r.Measured.Spending[at].Amount, (pipeline.Amount{Requests: 21, Tokens: 2000, Money: 0.5, Doubtful: 2}); got != want {
		t.Errorf("spent %+v; the sittings say %+v", got, want)
	}

	// The lines of people are of the same sums.
	old, young := want["old"], want["new"]
	calls := fmt.Sprintf("%d calls (%d from a cache or another run), 21 requests, at least 2,000 tokens, at least 0.500 USD spent (the answers cost at least %s when they were asked), 90 s, 5 retries, 2 in doubt",
		old.Asked+young.Asked, old.Cached+young.Cached, money(old.Cost))
	lost := fmt.Sprintf("%d rows were lost to limits: `old` %d rate limited, `new` %d rate limited.", old.Failed+young.Failed, old.Failed, young.Failed)
	var text bytes.Buffer
	if err := Text(&text, r, 1000, false); err != nil {
		t.Fatal(err)
	}
	page, md := string(written(t, r, "html")), string(written(t, r, "md"))
	for _, c := range []struct{ where, text, want string }{
		{"the terminal", text.String(), calls},
		{"report.md", md, calls},
		{"report.html", page, calls},
		{"report.md", md, lost},
		{"report.md", md, "| candidate | first | `m-old` | 21 | at least 2,000 | at least 0.500 USD | 0 | 2 |"},
		{"report.html", page, strings.NewReplacer("`old`", "<code>old</code>", "`new`", "<code>new</code>").Replace(lost)},
	} {
		if !strings.Contains(c.text, c.want) {
			t.Errorf("%s does not say %q:\n%s", c.where, c.want, c.text)
		}
	}
	if _, err := os.Stat(filepath.Join(run.Dir, harness.MeasuredFile)); errors.Is(err, os.ErrNotExist) {
		t.Error("the run's folder has no " + harness.MeasuredFile)
	}
}
