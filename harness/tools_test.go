package harness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
)

const toolProgram = answerProgram + `
tools:
  - {name: look, effects: reads, parameters: {type: object}}
  - {name: buy, effects: changes, parameters: {type: object}}
`

// shopper calls the tool that the row's question names, as often as it says, and
// answers with the last result. A question is "tool times input".
func shopper(asked *atomic.Int64) pipeline.Model {
	return modelFunc(func(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
		asked.Add(1)
		var tool, input string
		var times int
		text := r.Messages[0].Parts[0].Text
		_, text, _ = strings.Cut(text, "Q:")
		if _, err := fmt.Sscanf(text, "%s %d %s", &tool, &times, &input); err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		if r.Site.Step < times {
			return &pipeline.Reply{Finish: "tool_calls", Calls: []pipeline.ToolCall{{Name: tool, Input: datasets.RawValue(input)}}, Usage: tokens(10, 2)}, nil
		}
		_, result, _ := r.Messages[len(r.Messages)-1].Parts[0].ToolResult()
		return reply(result), nil
	})
}

// shop has rows whose recorded calls called tools.
func shop(questions ...string) datasets.Rows {
	rows := quiz(len(questions))
	for i, q := range questions {
		rows[i].Inputs["question"] = datasets.Text("Q:" + q)
		rows[i].Labels["result"] = datasets.Text("then")
		rows[i].Steps = []datasets.Step{
			datasets.RawValue(`{"kind":"model","outputs":{"calls":[{"id":"1","name":"look","input":{"n":1}},{"id":"2","name":"buy","input":{"n":1}}]}}`),
			datasets.RawValue(`{"kind":"tool","id":"1","name":"look","output":"then"}`),
			datasets.RawValue(`{"kind":"tool","id":"2","name":"buy","output":"then"}`),
		}
	}
	return rows
}

// Tool calls are answered from the record; what never was recorded fails the row
// as lost, and no tool runs. The histogram is in the evaluation and can be
// computed again from what is stored.
func TestToolsOnReplay(t *testing.T) {
	var asked, ran atomic.Int64
	cand := Candidate{Name: "a", Program: program(t, toolProgram), Caller: caller(shopper(&asked))}
	run := pipeline.ToolFunc(func(context.Context, pipeline.Invocation, datasets.Value) (string, error) {
		return fmt.Sprint("now ", ran.Add(1)), nil
	})
	cand.Caller.Tools = toolbox{"look": run, "buy": run}
	rows := shop(`look 1 {"n":1}`, `look 2 {"n":1.0}`, `buy 1 {"n":1}`, `buy 1 {"n":2}`)
	rows[0].Meta = datasets.Values{"changes": datasets.RawValue(`[{"plugin":"tidy","version":"1","hook":"tool_result","change":{"output":"then"}}]`)}
	rows[3].Steps = nil
	r := mustCreate(t, mustCheck(t, Plan{Rows: rows, Metrics: []Metric{match{}}, Candidates: []Candidate{cand}}))
	evals, err := r.Evaluate(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.Evaluations()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []*Evaluation{evals[0], again[0]} {
		out := e.Candidates[0]
		if want := map[string]int{"exact": 2, "canonical": 2, "never_recorded": 1}; !maps.Equal(out.Tools, want) {
			t.Errorf("tool calls were answered %v, want %v", out.Tools, want)
		}
		if want := map[string]int{"tool_never_recorded": 1}; !maps.Equal(out.Failures, want) {
			t.Errorf("failures are %v, want %v", out.Failures, want)
		}
		if !slices.ContainsFunc(e.Warnings, func(w string) bool {
			return strings.HasPrefix(w, "tool result shaped by tidy: in 1 of 4 rows")
		}) {
			t.Errorf("warnings are %q; want that a result was shaped by tidy", e.Warnings)
		}
	}
	if ran.Load() != 0 {
		t.Errorf("tools ran %d times; nothing allowed them to", ran.Load())
	}
	res := stored(t, r.Dir)
	if want := []ToolServed{{Tool: "look", Match: "canonical"}, {Tool: "look", Match: "canonical"}}; !slices.Equal(res[1].Tools, want) {
		t.Errorf("the second row's tool calls are stored as %v, want %v", res[1].Tools, want)
	}
}

// Tools whose results are errors are counted, of all their calls, and warned of: in
// the run, in one that goes on, and in what is read back.
func TestToolErrors(t *testing.T) {
	var asked, ran atomic.Int64
	plan := func() *Checked {
		cand := Candidate{Name: "a", Program: program(t, toolProgram), Caller: caller(shopper(&asked))}
		cand.Caller.Tools = toolbox{"buy": pipeline.ToolFunc(func(_ context.Context, in pipeline.Invocation, _ datasets.Value) (string, error) {
			if ran.Add(1); in.Site().Invocation == 0 {
				return "", fmt.Errorf("sold out")
			}
			return "then", nil
		})}
		cand.Tools.Live = []string{"buy"}
		return mustCheck(t, Plan{Rows: shop(`buy 2 {"n":1}`, `look 1 {"n":1}`, `buy 1 {"n":7}`), Metrics: []Metric{match{}}, Candidates: []Candidate{cand}})
	}
	root, info := t.TempDir(), RunInfo{Name: "x", Started: started}
	for range 2 {
		r, err := StartRun(root, info, plan())
		if err != nil {
			t.Fatal(err)
		}
		evals, err := r.Evaluate(t.Context(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		again, err := r.Evaluations()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []*Evaluation{evals[0], again[0]} {
			if want := map[string]ToolErrors{"buy": {Errors: 2, Calls: 3}}; !maps.Equal(e.Candidates[0].ToolErrors, want) {
				t.Errorf("tools failed %v, want %v", e.Candidates[0].ToolErrors, want)
			}
			if want := "the tool buy failed in 2 of 3 calls of a"; !slices.Contains(e.Warnings, want) {
				t.Errorf("warnings are %q, want %q", e.Warnings, want)
			}
		}
		if ran.Load() != 3 {
			t.Errorf("tools ran %d times, want 3", ran.Load())
		}
	}
}

// A tool that runs runs once for a place in the run, whatever the model: a run
// that goes on has its results.
func TestLiveToolsGoOn(t *testing.T) {
	for _, deterministic := range []bool{false, true} {
		var asked, ran atomic.Int64
		plan := func() *Checked {
			cand := Candidate{Name: "a", Program: program(t, toolProgram), Caller: caller(shopper(&asked))}
			cand.Caller.LM.Deterministic = deterministic
			run := pipeline.ToolFunc(func(_ context.Context, in pipeline.Invocation, _ datasets.Value) (string, error) {
				ran.Add(1)
				return fmt.Sprint(in.Site().Row, in.Site().Invocation), nil
			})
			cand.Caller.Tools = toolbox{"look": run, "buy": run}
			cand.Tools.Live = []string{"buy"}
			return mustCheck(t, Plan{Rows: shop(`buy 2 {"n":1}`, `look 1 {"n":1}`, `buy 1 {"n":7}`), Metrics: []Metric{match{}}, Candidates: []Candidate{cand}})
		}
		root, info := t.TempDir(), RunInfo{Name: "x", Started: started}
		var first string
		for i := range 2 {
			r, err := StartRun(root, info, plan())
			if err != nil || r.Again != (i == 1) {
				t.Fatal(r, err)
			}
			evals, err := r.Evaluate(t.Context(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if want := map[string]int{"live": 3, "exact": 1}; !maps.Equal(evals[0].Candidates[0].Tools, want) {
				t.Errorf("tool calls were answered %v, want %v", evals[0].Candidates[0].Tools, want)
			}
			if got := asJSON(t, evals); i == 0 {
				first = got
			} else if got != first {
				t.Errorf("the run that went on came to\n%s\nwant\n%s", got, first)
			}
			if ran.Load() != 3 {
				t.Errorf("after %d times, tools ran %d times, want 3", i+1, ran.Load())
			}
		}
	}
}

// Calls that a tool made are in a run that goes on as they were in the first.
func TestCallsInsideGoOn(t *testing.T) {
	asked := 0
	plan := func() *Checked {
		cand := nested(t, func(string) *pipeline.Reply { asked++; return reply("fine") })
		return mustCheck(t, Plan{Rows: quiz(1), Metrics: []Metric{match{}}, Candidates: []Candidate{cand}})
	}
	root, info := t.TempDir(), RunInfo{Name: "x", Started: started}
	for range 2 {
		r, err := StartRun(root, info, plan())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Evaluate(t.Context(), Options{}); err != nil {
			t.Fatal(err)
		}
		if res := stored(t, r.Dir)[0]; res.Requests != 8 || asked != 8 || len(callIDs(t, r)) != 5 {
			t.Errorf("%d requests, %d of them asked, %d calls; want 8, 8 and 5", res.Requests, asked, len(callIDs(t, r)))
		}
	}
}
