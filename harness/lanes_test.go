package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// drawn answers rightly but on some rows, those of the A/A lane apart.
func drawn(t *testing.T, first, again []string) Candidate {
	return candidate(t, "old", says(func(s pipeline.Site) string {
		if strings.HasSuffix(s.Candidate, "old (again)") {
			return rightBut(again...)(s)
		}
		return rightBut(first...)(s)
	}))
}

// The A/A lane asks the baseline again, and what asking again changes is the
// noise that other differences are held against.
func TestAALane(t *testing.T) {
	plan := Plan{
		Name: "quiz", Rows: quiz(16), Metrics: []Metric{match{}}, AA: true,
		Candidates: []Candidate{
			drawn(t, []string{"r0", "r1"}, []string{"r1", "r2"}),
			candidate(t, "close", says(rightBut("r0"))),
			candidate(t, "far", says(rightBut("r0", "r1", "r2", "r3", "r4", "r5"))),
		},
	}
	e := mustEvaluate(t, plan, Options{})
	if e.Reference() != "old" || len(e.Candidates) != 4 || e.Candidates[3].Name != "old (again)" || !e.Candidates[3].AA || e.Candidates[0].AA {
		t.Fatalf("candidates %+v against %s", e.Candidates, e.Reference())
	}
	if len(e.Noise) != 1 {
		t.Fatalf("noise %+v", e.Noise)
	}
	n := e.Noise[0]
	diff, _ := n.Diff.Get()
	floor, _ := n.Floor.Get()
	// One row rose and one fell: a mean of 0, and z·√2/16 for the floor.
	if n.Metric != "match" || n.N != 16 || n.Changed != 2 || diff != 0 || math.Abs(floor-1.959963984540054*math.Sqrt2/16) > 1e-12 {
		t.Errorf("noise %+v", n)
	}
	within := map[string]bool{}
	for _, c := range e.Comparisons {
		within[c.Candidate] = c.WithinNoise
	}
	// One row of 16 is 0.06, less than the floor of 0.17; four are 0.25.
	if want := map[string]bool{"close": true, "far": false, "old (again)": false}; !maps.Equal(within, want) {
		t.Errorf("within the noise: %v, want %v", within, want)
	}
}

func TestCompareWith(t *testing.T) {
	rows := quiz(8)
	rows[0].Recorded["result"] = datasets.Text("wrong")
	base := func(compare string) Plan {
		return Plan{
			Rows: rows, Metrics: []Metric{match{}}, AA: true, Compare: compare, Baseline: "old",
			Candidates: []Candidate{
				{Name: "rated", Recorded: true},
				drawn(t, []string{"r1"}, []string{"r2", "r3"}),
				candidate(t, "new", says(right)),
			},
		}
	}
	for _, tt := range []struct {
		compare, reference string
		diff               float64 // of new, in rows
	}{{"", "old", 1}, {"baseline", "old", 1}, {"aa", "old (again)", 2}, {"recorded", "rated", 1}} {
		e := mustEvaluate(t, base(tt.compare), Options{})
		if e.Reference() != tt.reference || len(e.Comparisons) != 3 || e.Baseline != "old" {
			t.Fatalf("%q: against %s, %d comparisons", tt.compare, e.Reference(), len(e.Comparisons))
		}
		for _, c := range e.Comparisons {
			diff, _ := c.Diff.Get()
			if c.Baseline != tt.reference || c.Candidate == "new" && diff != tt.diff/8 {
				t.Errorf("%q: %s against %s by %v", tt.compare, c.Candidate, c.Baseline, diff)
			}
		}
		// The noise is that of the baseline, whatever it is compared with.
		if len(e.Noise) != 1 || e.Noise[0].Changed != 3 {
			t.Errorf("%q: noise %+v", tt.compare, e.Noise)
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*Plan)
		want   string
	}{
		{"no lane", func(p *Plan) { p.AA, p.Compare = false, "aa" }, "say aa: true"},
		{"nothing recorded", func(p *Plan) { p.Candidates, p.Compare = p.Candidates[1:], "recorded" }, "there are 0"},
		{"two recorded", func(p *Plan) {
			p.Candidates, p.Compare = append(p.Candidates, Candidate{Name: "too", Recorded: true}), "recorded"
		}, "there are 2"},
		{"no such word", func(p *Plan) { p.Compare = "baselin" }, "did you mean baseline?"},
		{"the name is taken", func(p *Plan) { p.Candidates[2].Name = "old (again)" }, "has the name of the A/A lane"},
		{"never asked", func(p *Plan) { p.Baseline = "rated" }, "name another baseline"},
	} {
		p := base("")
		tt.change(&p)
		_, err := Check(p)
		if !errors.Is(err, ErrPlan) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v; want a refusal that says %q", tt.name, err, tt.want)
		}
	}
}

// A model that answers the same request the same shows no noise, which is said.
func TestAAOfFixedAnswers(t *testing.T) {
	c := candidate(t, "old", says(right))
	c.Caller.LM.Deterministic = true
	checked := mustCheck(t, Plan{Rows: quiz(1), Metrics: []Metric{match{}}, AA: true, Candidates: []Candidate{c}})
	if w := checked.Warnings(); len(w) != 1 || !strings.Contains(w[0], "shows no noise") {
		t.Errorf("warnings %q", w)
	}
}

func TestTransfer(t *testing.T) {
	row := func(verdict, recorded string) *datasets.Row {
		r := &datasets.Row{Verdict: datasets.Verdict{Verdict: verdict}}
		if recorded != "" {
			r.Recorded = datasets.Values{"result": datasets.RawValue(recorded)}
		}
		return r
	}
	for _, tt := range []struct{ verdict, recorded, answer, want string }{
		{"right", `"Straße 1"`, `"Straße 1"`, TransferExact},
		{"wrong", `"Straße  1"`, `" STRASSE 1\n"`, TransferNormalized},
		{"wrong", `"a\u001cb"`, `"A B"`, TransferNormalized}, // the contract's white space
		{"right", `"a"`, `"b"`, TransferNone},
		{"right", `"7"`, `7`, TransferNone},
		{"right", `{"a":1,"b":2}`, `{"b":2,"a":1}`, TransferExact},
		{"right", `["A"]`, `["a"]`, TransferNone},
		{"right", "", `"a"`, TransferNone},
		{"right", `"a"`, "", TransferNone},
		{"", `"a"`, `"a"`, ""},
	} {
		var answer datasets.Value
		if tt.answer != "" {
			answer = datasets.RawValue(tt.answer)
		}
		if got := transfer(row(tt.verdict, tt.recorded), answer, "result"); got != tt.want {
			t.Errorf("rated %s %q, answered %s: %q, want %q", tt.recorded, tt.verdict, tt.answer, got, tt.want)
		}
	}
}

// What was counted of verdicts and of who served is in the outcome, in a run's
// results, and in what is computed from these.
func TestServedAndTransferred(t *testing.T) {
	rows := quiz(8)
	for i := range rows {
		rows[i].Verdict.Verdict = "right"
	}
	rows[7].Verdict.Verdict = ""
	model := modelFunc(func(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
		out := reply(rightBut("r1")(r.Site))
		if r.Site.Row == "r2" {
			out = reply("A2")
		}
		out.Model, out.System = "m-1", "fp-1"
		if r.Site.Row == "r3" || r.Site.Row == "r4" {
			out.Model = "m-2"
		}
		if r.Site.Row == "r5" {
			out.Model, out.System = "", ""
		}
		return out, nil
	})
	run := mustCreate(t, mustCheck(t, Plan{
		Rows: rows, Metrics: []Metric{match{}},
		Candidates: []Candidate{candidate(t, "old", model), {Name: "rated", Recorded: true}},
	}))
	evals, err := run.Evaluate(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := run.Evaluations()
	if err != nil {
		t.Fatal(err)
	}
	if a, b := asJSON(t, evals), asJSON(t, stored); a != b {
		t.Errorf("carried out %s\nread back   %s", a, b)
	}
	out := evals[0].Outcome("old")
	if want := (Transfers{Exact: 5, Normalized: 1, None: 1}); out.Transferred == nil || *out.Transferred != want {
		t.Errorf("transferred %+v, want %+v", out.Transferred, want)
	}
	if !maps.Equal(out.Served, map[string]int{"m-1": 5, "m-2": 2}) || !maps.Equal(out.Systems, map[string]int{"fp-1": 7}) {
		t.Errorf("served by %v, systems %v", out.Served, out.Systems)
	}
	if rated := evals[0].Outcome("rated"); rated.Transferred != nil || rated.Served != nil {
		t.Errorf("the recorded lane has %+v, %v", rated.Transferred, rated.Served)
	}
	if !slices.ContainsFunc(evals[0].Warnings, func(w string) bool { return strings.Contains(w, "2 models: m-1 5, m-2 2") }) || len(evals[0].Warnings) != 1 {
		t.Errorf("warnings %q", evals[0].Warnings)
	}
	for res, err := range run.Results() {
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"r1": "none", "r2": "normalized", "r7": ""}
		transfer, special := want[res.Row]
		if !special {
			transfer = "exact"
		}
		if res.Candidate == "rated" {
			transfer = ""
		}
		if res.Transfer != transfer {
			t.Errorf("row %s of %s: transfer %q, want %q", res.Row, res.Candidate, res.Transfer, transfer)
		}
		if res.Row == "r3" && res.Candidate == "old" && (res.Model != "m-2" || res.System != "fp-1") {
			t.Errorf("row r3 was served by %q, %q", res.Model, res.System)
		}
	}
}

// A run that is carried out again asks outages again and nothing else, and with a
// class, what failed under it.
func TestRetryFailed(t *testing.T) {
	asked := map[string]*atomic.Int64{}
	for i := range 6 {
		asked[fmt.Sprintf("r%d", i)] = new(atomic.Int64)
	}
	model := modelFunc(func(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
		if n := asked[r.Site.Row].Add(1); n == 1 {
			switch r.Site.Row {
			case "r1":
				return nil, pipeline.Failf(pipeline.TypeServer, "", "down")
			case "r2":
				return nil, pipeline.Failf(pipeline.TypeRefusal, "", "no")
			case "r3":
				return &pipeline.Reply{Text: "?", Finish: "stop"}, nil
			}
		}
		return reply(right(r.Site)), nil
	})
	root := t.TempDir()
	carryOut := func(classes ...string) (again int, failed map[string]int, counts string) {
		t.Helper()
		r, err := StartRun(root, RunInfo{Name: "x", Started: started}, mustCheck(t, Plan{
			Name: "quiz", Rows: quiz(6), Metrics: []Metric{match{}}, Candidates: []Candidate{candidate(t, "a", model)},
		}))
		if err != nil {
			t.Fatal(err)
		}
		if classes != nil {
			if again, err = r.RetryFailed(classes...); err != nil {
				t.Fatal(err)
			}
		}
		evals, err := r.Evaluate(t.Context(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 6 {
			counts += fmt.Sprint(asked[fmt.Sprintf("r%d", i)].Load())
		}
		return again, evals[0].Candidates[0].Failures, counts
	}
	for _, step := range []struct {
		classes []string
		again   int
		failed  map[string]int
		counts  string // how often each row was asked by then
	}{
		{nil, 0, map[string]int{"server": 1, "refused": 1, "unreadable": 1}, "111111"},
		{nil, 0, map[string]int{"refused": 1, "unreadable": 1}, "121111"},
		{[]string{"timeout", "metric"}, 0, map[string]int{"refused": 1, "unreadable": 1}, "121111"},
		{[]string{"unreadable"}, 1, map[string]int{"refused": 1}, "121211"},
		{[]string{RetryAll}, 1, map[string]int{}, "122211"},
		{[]string{RetryAll}, 0, map[string]int{}, "122211"},
	} {
		again, failed, counts := carryOut(step.classes...)
		if again != step.again || !maps.Equal(failed, step.failed) || counts != step.counts {
			t.Errorf("retrying %v: %d answers, failures %v, asked %s; want %d, %v, %s", step.classes, again, failed, counts, step.again, step.failed, step.counts)
		}
	}
	err := CheckClasses("unreadble")
	wantError(t, err, err, `"unreadble" is no class of failures`, "did you mean unreadable?", "refused", "metric", "all")
}
