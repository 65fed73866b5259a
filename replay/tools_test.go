package replay_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/replay"
)

// asked is a tool call's place, for tools that look at it.
type asked struct {
	pipeline.Invocation
	site pipeline.Site
}

func (a asked) Site() pipeline.Site { return a.site }

func model(calls string) datasets.Step {
	return datasets.RawValue(`{"kind":"model","outputs":{"calls":` + calls + `}}`)
}

func result(id, name, output string) datasets.Step {
	return datasets.Values{"kind": datasets.Text("tool"), "id": datasets.Text(id), "name": datasets.Text(name), "output": datasets.Text(output)}.Object()
}

// told is what a toolbox answers: the text, or the failure's code and message.
func told(t *testing.T, box *replay.RowTools, inside, name, input string) string {
	t.Helper()
	tool, ok := box.Tool(name)
	if !ok {
		t.Fatalf("there is no tool %s", name)
	}
	text, err := tool.Run(t.Context(), asked{site: pipeline.Site{Inside: inside}}, datasets.RawValue(input))
	if err == nil {
		return text
	}
	f, ok := errors.AsType[*pipeline.Failure](err)
	if !ok {
		t.Fatalf("%s: %v is no Failure", name, err)
	}
	if f.Class() != "tool_never_recorded" || pipeline.ToldToModel(err) {
		t.Errorf("%v has class %s; it is to end the call", f, f.Class())
	}
	return f.Error()
}

func TestRecordedTools(t *testing.T) {
	twice := []datasets.Step{
		model(`[{"id":"a","name":"look","input":{"n":1,"m":2}},{"id":"b","name":"look","input":{"n":2}}]`),
		result("b", "look", "two"), // results come in any order; the calls have theirs
		result("a", "look", "one"),
		model(`[{"id":"a","name":"look","input":{"m":2,"n":1}},{"id":"b","name":"find","input":{}}]`), // ids are used again
		result("a", "look", "one again"),
		result("b", "find", "found"),
	}
	type ask struct{ inside, tool, input, want, match string }
	for _, c := range []struct {
		name    string
		steps   []datasets.Step
		changes string
		asks    []ask
	}{
		{"as it was", twice, "", []ask{
			{"", "look", `{"n":1,"m":2}`, "one", "exact"},
			{"", "look", `{"n":2}`, "two", "exact"},
			{"", "look", `{"m":2,"n":1}`, "one again", "exact"},
			{"", "find", `{}`, "found", "exact"},
		}},
		{"written otherwise", twice, "", []ask{
			{"", "look", `{ "n": 2.0 }`, "two", "canonical"},
			{"", "look", `{"m":2, "n":1}`, "one", "canonical"},
			{"", "look", `{"m":2, "n":1}`, "one again", "canonical"},
		}},
		{"the same text before an equal one", twice, "", []ask{
			{"", "look", `{"m":2,"n":1}`, "one again", "exact"},
			{"", "look", `{"m":2,"n":1}`, "one", "canonical"},
			{"", "look", `{"m":2,"n":1}`, "one again", "exact"},
		}},
		{"more often than then", twice, "", []ask{
			{"", "look", `{"n":2}`, "two", "exact"},
			{"", "look", `{"n":2}`, "two", "exact"},
			{"", "look", `{"n":2}`, "two", "exact"},
		}},
		{"never", twice, "", []ask{
			{"", "look", `{"n":3}`, `tool-never-recorded: the tool look was called with {"n":3}, and the rated call called it with {"n":1,"m":2}, with {"n":2}, with {"m":2,"n":1}; let it run`, "never_recorded"},
			{"", "buy", `{}`, "the rated call did not call it: it called look, find", "never_recorded"},
			{"0.0", "look", `{"n":2}`, "in a call made inside another", "never_recorded"},
		}},
		{"nothing recorded", nil, "", []ask{{"", "look", `{}`, "no tool call is in the rated call's record", "never_recorded"}}},
		{"no input", []datasets.Step{model(`[{"id":"a","name":"look"}]`), result("a", "look", "x")}, "", []ask{{"", "look", `{}`, "x", "exact"}}},
		{"another field of calls", []datasets.Step{
			datasets.RawValue(`{"kind":"model","calls_field":"_calls","outputs":{"_calls":[{"id":"a","name":"look","input":{}}]}}`), result("a", "look", "x"),
		}, "", []ask{{"", "look", `{}`, "x", "exact"}}},
		{"a result of nobody's call", []datasets.Step{result("a", "look", "x")}, "", []ask{
			{"", "look", `{}`, "no tool call is in the rated call's record", "never_recorded"},
		}},
		{
			"an input that a plugin replaced then",
			[]datasets.Step{model(`[{"id":"a","name":"look","input":{"n":1}}]`), result("a", "look", "x")},
			`[{"plugin":"p","version":"1","hook":"tool_call","change":{"inputs":{"lang":"de"}}}]`,
			[]ask{{"", "look", `{"n":1,"lang":"de"}`, "x", "canonical"}, {"", "look", `{"n":1}`, "x", "exact"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			row := &datasets.Row{Steps: c.steps}
			if c.changes != "" {
				row.Meta = datasets.Values{"changes": datasets.RawValue(c.changes)}
			}
			box := new(replay.ToolPolicy).For(row, nil)
			var want []replay.ServedTool
			for _, a := range c.asks {
				got := told(t, box, a.inside, a.tool, a.input)
				if never := a.match == replay.MatchNever; got != a.want && !(never && strings.Contains(got, a.want)) {
					t.Errorf("%s(%s) is told %q, want %q", a.tool, a.input, got, a.want)
				}
				want = append(want, replay.ServedTool{Tool: a.tool, Match: a.match})
			}
			if got := box.Served(); !slices.Equal(got, want) {
				t.Errorf("served %v, want %v", got, want)
			}
		})
	}
}

// box is tools that really run.
type box map[string]pipeline.ToolRunner

func (b box) Tool(name string) (pipeline.ToolRunner, bool) { t, ok := b[name]; return t, ok }

// TestToolPolicy: what is allowed runs, then the file answers, then the record;
// what is not allowed never runs.
func TestToolPolicy(t *testing.T) {
	ran := map[string]int{}
	live := box{}
	for _, name := range []string{"look", "find", "buy"} {
		live[name] = pipeline.ToolFunc(func(context.Context, pipeline.Invocation, datasets.Value) (string, error) {
			ran[name]++
			return "live", nil
		})
	}
	stubs, err := replay.ParseStubs("stubs.jsonl", []byte(`{"tool":"look","output":"stub"}
{"tool":"find","input":{"a":1,"b":2},"output":{"n": 1}}`))
	if err != nil {
		t.Fatal(err)
	}
	row := &datasets.Row{Steps: []datasets.Step{
		model(`[{"id":"1","name":"look","input":{}},{"id":"2","name":"find","input":{}},{"id":"3","name":"buy","input":{}}]`),
		result("1", "look", "recorded"), result("2", "find", "recorded"), result("3", "buy", "recorded"),
	}}
	for _, c := range []struct {
		policy replay.ToolPolicy
		asks   []string // tool, input, what is told
	}{
		{replay.ToolPolicy{}, []string{"look", `{}`, "recorded", "find", `{}`, "recorded", "buy", `{}`, "recorded"}},
		{replay.ToolPolicy{Live: []string{"look"}, Stubs: stubs}, []string{"look", `{}`, "live", "find", `{"b":2,"a":1}`, `{"n": 1}`, "find", `{}`, "recorded", "buy", `{}`, "recorded"}},
		{replay.ToolPolicy{Stubs: stubs}, []string{"look", `{"any":true}`, "stub"}},
		{replay.ToolPolicy{Live: []string{"buy"}}, []string{"buy", `{"any":true}`, "live", "look", `{}`, "recorded"}},
	} {
		clear(ran)
		box := c.policy.For(row, live)
		var want []string
		for i := 0; i < len(c.asks); i += 3 {
			if got := told(t, box, "", c.asks[i], c.asks[i+1]); got != c.asks[i+2] {
				t.Errorf("%v: %s(%s) is told %q, want %q", c.policy.Live, c.asks[i], c.asks[i+1], got, c.asks[i+2])
			}
			if c.asks[i+2] == "live" {
				want = append(want, c.asks[i])
			}
		}
		for name := range live {
			if n := ran[name]; (n == 1) != slices.Contains(want, name) || n > 1 {
				t.Errorf("%v: %s ran %d times", c.policy.Live, name, n)
			}
		}
	}
}

func TestStubsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "no stub in it",
		`{"tool":"a","output":"x","inputs":{}}`: `s.jsonl:1: unknown key "inputs"; did you mean "input"?`,
		"\n" + `{"output":"x"}`:                 "s.jsonl:2: tool is missing",
		`{"tool":"a"}`:                          "s.jsonl:1: output is missing",
		`{"tool":1,"output":"x"}`:               "s.jsonl:1: tool is a text",
		`["a"]`:                                 "s.jsonl:1: a stub is a JSON object",
		`{"tool":"a",`:                          "s.jsonl:1: not a JSON object on a line",
		`{"tool":"a","output":1}` + "\n" + `{"tool":"a","output":2}`:                                   "s.jsonl:2: a second answer of a to any input",
		`{"tool":"a","input":{"n":1},"output":1}` + "\n" + `{"tool":"a","input":{"n":1.0},"output":2}`: `s.jsonl:2: a second answer of a to {"n":1.0}`,
	} {
		if _, err := replay.ParseStubs("s.jsonl", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzStubs(f *testing.F) {
	f.Add([]byte(`{"tool":"look","input":{"a":1},"output":"x"}`))
	f.Add([]byte("\uFEFF{\"tool\":\"look\",\"output\":null}\r\n\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := replay.ParseStubs("stubs.jsonl", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "stubs.jsonl:") {
				t.Errorf("the error does not say where: %v", err)
			}
			return
		}
		policy := replay.ToolPolicy{Stubs: s}
		tool, _ := policy.For(&datasets.Row{}, nil).Tool("look")
		_, _ = tool.Run(t.Context(), asked{}, datasets.RawValue(`{}`))
	})
}

// TestApprove: who answers where a person would be asked.
func TestApprove(t *testing.T) {
	row := &datasets.Row{Steps: []datasets.Step{
		model(`[{"id":"1","name":"buy","input":{"n":1}},{"id":"2","name":"buy","input":{"n":2}},{"id":"3","name":"buy","input":{"n":3}},{"id":"4","name":"buy","input":{"n":4}}]`),
		result("1", "buy", "bought"),
		result("2", "buy", "The person did not allow this call. Reason: too dear"),
		result("3", "buy", "The person did not allow this call."),
		result("4", "buy", "This call was blocked (guard): never"),
	}}
	const fails = "approval-required"
	for _, c := range []struct {
		approve []replay.Approval
		want    [5]string // for n = 1 to 4, and one that was never recorded
	}{
		{nil, [5]string{"yes", "no: too dear", "no: ", fails, fails}},
		{[]replay.Approval{"recorded"}, [5]string{"yes", "no: too dear", "no: ", fails, fails}},
		{[]replay.Approval{"recorded", "yes"}, [5]string{"yes", "no: too dear", "no: ", "yes", "yes"}},
		{[]replay.Approval{"recorded", "no"}, [5]string{"yes", "no: too dear", "no: ", "no: ", "no: "}},
		{[]replay.Approval{"yes"}, [5]string{"yes", "yes", "yes", "yes", "yes"}},
		{[]replay.Approval{"no"}, [5]string{"no: ", "no: ", "no: ", "no: ", "no: "}},
		{[]replay.Approval{"fail"}, [5]string{fails, fails, fails, fails, fails}},
	} {
		policy := replay.ToolPolicy{Approve: c.approve}
		box := policy.For(row, nil)
		for i, want := range c.want {
			e := &pipeline.ToolCallEvent{Name: "buy", Function: "shop", Path: "shop/buy", Input: datasets.Values{"n": datasets.Int(int64(i + 1))}.Object()}
			answer, err := box.Approve(t.Context(), e)
			got := "yes"
			if f, ok := errors.AsType[*pipeline.Failure](err); ok {
				got = f.Code
				if f.Class() != "approval" {
					t.Errorf("%v has class %s", f, f.Class())
				}
			} else if !answer.Allowed {
				got = "no: " + answer.Reason
			}
			if got != want {
				t.Errorf("approve %v, call %d: %s (%v), want %s", c.approve, i+1, got, err, want)
			}
		}
	}
}
