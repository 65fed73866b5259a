package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"evalrun/datasets"
	"evalrun/pipeline"
)

const deskYAML = `
name: desk
description: Answer at the front desk.
inputs: [{name: question, shape: {type: string}}]
outputs: [{name: result, shape: {type: string}}]
tools:
  - {name: room_status, description: Say whether a room is free., effects: reads, parameters: {type: object, properties: {room: {type: integer}}, required: [room]}}
  - {name: book, effects: changes, parameters: {type: object}}
  - {name: note, parameters: {type: object}}
`

func question(text string) pipeline.Ask {
	return pipeline.Ask{Inputs: datasets.Values{"question": datasets.Text(text)}}
}

func wants(id, name, input string) pipeline.ToolCall {
	return pipeline.ToolCall{ID: id, Name: name, Input: datasets.RawValue(input)}
}

// calling is a model that calls tools, one list of calls after the other, and
// then answers.
func calling(calls ...[]pipeline.ToolCall) *model {
	return &model{answer: func(n int, _ *pipeline.Request) (*pipeline.Reply, error) {
		if n < len(calls) {
			return &pipeline.Reply{Calls: calls[n], Finish: "tool_calls"}, nil
		}
		return &pipeline.Reply{Text: "<result>\ndone\n</result>", Finish: "stop"}, nil
	}}
}

// box is a toolbox that keeps what was run.
type box struct {
	ran   []string // name and input
	fails error
	run   map[string]pipeline.ToolFunc
}

func (b *box) Tool(name string) (pipeline.ToolRunner, bool) {
	if !slices.Contains([]string{"room_status", "book", "note"}, name) {
		return nil, false
	}
	return pipeline.ToolFunc(func(ctx context.Context, in pipeline.Invocation, input datasets.Value) (string, error) {
		b.ran = append(b.ran, name+" "+input.JSON())
		if f := b.run[name]; f != nil {
			return f(ctx, in, input)
		}
		return "free", b.fails
	}), true
}

func withTools(m pipeline.Model) (*pipeline.Caller, *box) {
	b := &box{}
	c := caller(m)
	c.Tools = b
	return c, b
}

// results are the texts the model was told in a request.
func results(r *pipeline.Request) []string {
	var list []string
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			if id, text, ok := p.ToolResult(); ok {
				list = append(list, id+": "+text)
			}
		}
	}
	return list
}

func kept(call *pipeline.Call) []string {
	var list []string
	for _, a := range call.Changes {
		list = append(list, fmt.Sprintf("%s %s %s %s", a.Plugin, a.Version, a.Hook, a.Change.Canonical()))
	}
	return list
}

func onTool(h func(e *pipeline.ToolCallEvent) (*pipeline.Change, error)) pipeline.Option {
	return pipeline.OnToolCall(func(_ context.Context, e *pipeline.ToolCallEvent) (*pipeline.Change, error) { return h(e) })
}

func onResult(h func(e *pipeline.ToolResultEvent) (*pipeline.Change, error)) pipeline.Option {
	return pipeline.OnToolResult(func(_ context.Context, e *pipeline.ToolResultEvent) (*pipeline.Change, error) { return h(e) })
}

func TestToolLoop(t *testing.T) {
	m := calling(
		[]pipeline.ToolCall{wants("a", "room_status", `{"room":3}`), wants("", "book", `{"room": 3}`)},
		[]pipeline.ToolCall{wants("c", "note", `{}`)},
	)
	c, b := withTools(m)
	call := ask(t, c, program(t, deskYAML), question("Is 3 free?"))
	if call.Failure != nil || call.Outputs["result"].String() != "done" {
		t.Fatalf("got %v, %v", call.Outputs, call.Failure)
	}
	if want := []string{`room_status {"room":3}`, `book {"room": 3}`, `note {}`}; !slices.Equal(b.ran, want) {
		t.Errorf("ran %q, want %q", b.ran, want)
	}
	// What the next request adds, in the canonical form.
	var added []string
	for _, msg := range m.sent[2].Messages[1:] {
		one := pipeline.Request{Messages: []pipeline.Message{msg}}
		added = append(added, string(one.Canonical("m")))
	}
	shell := func(s string) string { return `{"config":{},"messages":[` + s + `],"model":"m"}` }
	wantAdded := []string{
		shell(`{"parts":[{"id":"a","input":{"room":3},"name":"room_status","type":"tool_call"},{"id":"call-1","input":{"room":3},"name":"book","type":"tool_call"}],"role":"assistant"}`),
		shell(`{"parts":[{"id":"a","text":"free","type":"tool_result"},{"id":"call-1","text":"free","type":"tool_result"}],"role":"tool"}`),
		shell(`{"parts":[{"id":"c","input":{},"name":"note","type":"tool_call"}],"role":"assistant"}`),
		shell(`{"parts":[{"id":"c","text":"free","type":"tool_result"}],"role":"tool"}`),
	}
	if d := cmp.Diff(wantAdded, added); d != "" {
		t.Error(d)
	}
	var steps []string
	for _, s := range call.Steps {
		steps = append(steps, s.Canonical())
	}
	wantSteps := []string{
		`{"kind":"model","message":{"parts":[{"id":"a","input":{"room":3},"name":"room_status","type":"tool_call"},{"id":"call-1","input":{"room":3},"name":"book","type":"tool_call"}],"role":"assistant"},"outputs":{"calls":[{"id":"a","input":{"room":3},"name":"room_status"},{"id":"call-1","input":{"room":3},"name":"book"}]}}`,
		`{"id":"a","kind":"tool","name":"room_status","output":"free"}`,
		`{"id":"call-1","kind":"tool","name":"book","output":"free"}`,
		`{"kind":"model","message":{"parts":[{"id":"c","input":{},"name":"note","type":"tool_call"}],"role":"assistant"},"outputs":{"calls":[{"id":"c","input":{},"name":"note"}]}}`,
		`{"id":"c","kind":"tool","name":"note","output":"free"}`,
		`{"kind":"model","outputs":{"result":"done"}}`,
	}
	if d := cmp.Diff(wantSteps, steps); d != "" {
		t.Error(d)
	}
	for i, r := range m.sent {
		if r.Site.Step != i || r.Site.Try != 0 || len(r.Tools) != 3 {
			t.Errorf("request %d is at step %d, try %d, with %d tools", i, r.Site.Step, r.Site.Try, len(r.Tools))
		}
		read, err := pipeline.ParseRequest(r.JSON())
		if err != nil || read.Hash() != r.Hash() || !slices.Equal(results(read), results(r)) {
			t.Errorf("request %d is read back as another: %v", i, err)
		}
	}
	if tc, ok := m.sent[1].Messages[1].Parts[0].ToolCall(); !ok || tc.ID != "a" || tc.Name != "room_status" || tc.Input.JSON() != `{"room":3}` {
		t.Errorf("the part is the call %v, %v", tc, ok)
	}
}

func TestStepLimit(t *testing.T) {
	for _, tt := range []struct{ set, want int }{{0, 8}, {1, 1}, {3, 3}} {
		m := &model{answer: func(int, *pipeline.Request) (*pipeline.Reply, error) {
			return &pipeline.Reply{Calls: []pipeline.ToolCall{wants("x", "room_status", `{}`)}}, nil
		}}
		c, b := withTools(m)
		c.MaxSteps = tt.set
		call := ask(t, c, program(t, deskYAML), question("?"))
		if f := call.Failure; f == nil || f.Type != pipeline.TypeStepLimit || f.Class() != "steps" || len(m.sent) != tt.want {
			t.Errorf("max_steps %d: %v after %d requests", tt.set, f, len(m.sent))
		}
		if len(b.ran) != tt.want-1 {
			t.Errorf("max_steps %d: %d tools ran; those nobody would hear of must not", tt.set, len(b.ran))
		}
	}
	// An answer at the limit is an answer, and asking again is no step.
	m := &model{answer: func(n int, _ *pipeline.Request) (*pipeline.Reply, error) {
		return []*pipeline.Reply{
			{Text: "hm"}, {Calls: []pipeline.ToolCall{wants("x", "book", `{}`)}}, {Text: "hm"}, {Text: "<result>\nyes\n</result>"},
		}[n], nil
	}}
	c, _ := withTools(m)
	c.MaxSteps, c.Retries = 2, 1
	if call := ask(t, c, program(t, deskYAML), question("?")); call.Failure != nil {
		t.Error(call.Failure)
	}
	var at []string
	for _, r := range m.sent {
		at = append(at, fmt.Sprintf("%d.%d", r.Site.Step, r.Site.Try))
	}
	if want := []string{"0.0", "0.1", "1.0", "1.1"}; !slices.Equal(at, want) {
		t.Errorf("the requests were at %v, want %v", at, want)
	}
}

// TestToolTexts: what the model is told, byte for byte.
func TestToolTexts(t *testing.T) {
	no := pipeline.Answer{Reason: "not on Sundays", By: "ada"}
	decide := func(a pipeline.Answer, err error) pipeline.Decide {
		return func(context.Context, *pipeline.ToolCallEvent) (pipeline.Answer, error) { return a, err }
	}
	asks := func(a pipeline.Answer, err error) pipeline.Option {
		return pipeline.OnToolCall(func(ctx context.Context, e *pipeline.ToolCallEvent) (*pipeline.Change, error) {
			got, err := e.Ask(ctx, "it books", decide(a, err))
			if got.By != "" {
				t.Errorf("a function decided, and the answer is said to be %s's", got.By)
			}
			return nil, err
		})
	}
	blocks := func(reason string) pipeline.Option {
		return onTool(func(*pipeline.ToolCallEvent) (*pipeline.Change, error) { return &pipeline.Change{Block: &reason}, nil })
	}
	for _, tt := range []struct {
		name    string
		tool    string
		opts    []pipeline.Option
		err     error // the tool's
		want    string
		ran     bool
		changes []string
	}{
		{"the result", "book", nil, nil, "free", true, nil},
		{
			"a block", "book",
			[]pipeline.Option{blocks("deleting is not allowed here")},
			nil, "This call was blocked (guard): deleting is not allowed here", false,
			[]string{`guard 1.0.0 tool_call {"block":"deleting is not allowed here"}`},
		},
		{"an empty block still blocks", "book", []pipeline.Option{blocks("")}, nil, "This call was blocked (guard): ", false, []string{`guard 1.0.0 tool_call {"block":""}`}},
		{"a person's no", "book", []pipeline.Option{asks(pipeline.Answer{}, nil)}, nil, "The person did not allow this call.", false, nil},
		{"a person's no, and why", "book", []pipeline.Option{asks(no, nil)}, nil, "The person did not allow this call. Reason: not on Sundays", false, nil},
		{"a person's yes", "book", []pipeline.Option{asks(pipeline.Answer{Allowed: true}, nil)}, nil, "free", true, nil},
		{"a refusal and a block: the block is told", "book", []pipeline.Option{pipeline.OnToolCall(func(ctx context.Context, e *pipeline.ToolCallEvent) (*pipeline.Change, error) {
			_, err := e.Ask(ctx, "", decide(no, nil))
			return &pipeline.Change{Block: new("no")}, err
		})}, nil, "This call was blocked (guard): no", false, []string{`guard 1.0.0 tool_call {"block":"no"}`}},
		{
			"a handler that fails", "book",
			[]pipeline.Option{onTool(func(*pipeline.ToolCallEvent) (*pipeline.Change, error) { return nil, errors.New("boom") })},
			nil,
			"This call was blocked (guard): a check on this tool call failed (guard)", false,
			[]string{`guard  tool_call {"block":"a check on this tool call failed (guard)"}`},
		},
		{
			"a decision that fails", "book",
			[]pipeline.Option{asks(no, errors.New("no database"))},
			nil,
			"This call was blocked (guard): a check on this tool call failed (guard)", false,
			[]string{`guard  tool_call {"block":"a check on this tool call failed (guard)"}`},
		},
		{"a tool's error", "book", nil, errors.New("no such room"), "error: ToolError: no such room", true, nil},
		{"a tool's failure", "book", nil, pipeline.Failf(pipeline.TypeTimeout, "", "too slow"), "error: TimeoutError: too slow", true, nil},
		{"an unknown tool", "fly", nil, nil, "error: ToolError: there is no tool fly; there are room_status, book, note", false, nil},
		{"an unknown tool, blocked", "fly", []pipeline.Option{blocks("no")}, nil, "This call was blocked (guard): no", false, []string{`guard 1.0.0 tool_call {"block":"no"}`}},
		{"a result changed twice", "book", []pipeline.Option{
			onResult(func(e *pipeline.ToolResultEvent) (*pipeline.Change, error) {
				return &pipeline.Change{Output: new(e.Output + "!")}, nil
			}),
			onResult(func(e *pipeline.ToolResultEvent) (*pipeline.Change, error) {
				return &pipeline.Change{Output: new(e.Output + "?")}, nil
			}),
		}, nil, "free!?", true, []string{`guard 1.0.0 tool_result {"output":"free!"}`, `guard 1.0.0 tool_result {"output":"free!?"}`}},
		{"a result that is not UTF-8", "book", []pipeline.Option{onResult(func(*pipeline.ToolResultEvent) (*pipeline.Change, error) { return nil, nil })}, errors.New("\xff"), "error: ToolError: \uFFFD", true, nil},
		{
			"tool_result does not run after a block", "book",
			[]pipeline.Option{blocks("no"), onResult(func(*pipeline.ToolResultEvent) (*pipeline.Change, error) { return nil, errors.New("it ran") })},
			nil,
			"This call was blocked (guard): no", false,
			[]string{`guard 1.0.0 tool_call {"block":"no"}`},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := calling([]pipeline.ToolCall{wants("1", tt.tool, `{"room":3}`)})
			c, b := withTools(m)
			b.fails = tt.err
			var warned []string
			c.Warn = func(text string) { warned = append(warned, text) }
			guard := plugin(t, "guard", append(tt.opts, pipeline.Version("1.0.0"))...)
			call := ask(t, c, program(t, deskYAML).WithPlugins(guard), question("?"))
			if call.Failure != nil {
				t.Fatal(call.Failure)
			}
			if got := results(m.sent[1]); len(got) != 1 || got[0] != "1: "+tt.want {
				t.Errorf("the model was told %q, want %q", got, tt.want)
			}
			if ran := len(b.ran) > 0; ran != tt.ran {
				t.Errorf("the tool ran: %v, want %v", ran, tt.ran)
			}
			if got := kept(call); !slices.Equal(got, tt.changes) {
				t.Errorf("changes are %q, want %q", got, tt.changes)
			}
			if failed := strings.Contains(tt.want, "a check on this tool call failed"); failed != (len(warned) == 1) {
				t.Errorf("warned of %q", warned)
			}
		})
	}
}

// TestToolFailures: what ends the call instead of being told to the model.
func TestToolFailures(t *testing.T) {
	ours := pipeline.Failf(pipeline.TypeApproval, "approval-required", "ask someone")
	asks := pipeline.OnToolCall(func(ctx context.Context, e *pipeline.ToolCallEvent) (*pipeline.Change, error) {
		_, err := e.Ask(ctx, "it books", nil)
		return nil, err
	})
	for _, tt := range []struct {
		name string
		opt  pipeline.Option
		err  error // the tool's
		typ  string
		code string
		ran  bool
	}{
		{"a field tool_call does not take", onTool(func(*pipeline.ToolCallEvent) (*pipeline.Change, error) {
			return &pipeline.Change{Output: new("x")}, nil
		}), nil, pipeline.TypePlugin, "plugin-change", false},
		{"an input without a value", onTool(func(*pipeline.ToolCallEvent) (*pipeline.Change, error) {
			return &pipeline.Change{Inputs: datasets.Values{"a": {}}}, nil
		}), nil, pipeline.TypePlugin, "plugin-change", false},
		{"a map is wanted", pipeline.On("tool_call", pipeline.DataHandler(func(context.Context, pipeline.Event) (datasets.Value, error) {
			return datasets.RawValue(`{"inputs":[1]}`), nil
		})), nil, pipeline.TypePlugin, "plugin-change", false},
		{"our own failure passes unchanged", onTool(func(*pipeline.ToolCallEvent) (*pipeline.Change, error) { return nil, ours }), nil, pipeline.TypeApproval, "approval-required", false},
		{"nobody is asked in a plain call", asks, nil, pipeline.TypeApproval, "approval-required", false},
		{"a handler cannot swallow that", pipeline.OnToolCall(func(ctx context.Context, e *pipeline.ToolCallEvent) (*pipeline.Change, error) {
			_, _ = e.Ask(ctx, "it books", nil)
			return nil, nil
		}), nil, pipeline.TypeApproval, "approval-required", false},
		{"a field tool_result does not take", onResult(func(*pipeline.ToolResultEvent) (*pipeline.Change, error) {
			return &pipeline.Change{Block: new("x")}, nil
		}), nil, pipeline.TypePlugin, "plugin-change", true},
		{"tool_result fails", onResult(func(*pipeline.ToolResultEvent) (*pipeline.Change, error) { return nil, errors.New("boom") }), nil, pipeline.TypePlugin, "plugin-failed", true},
		{"a tool was never recorded", pipeline.Version("1"), pipeline.Failf(pipeline.TypeNotRecorded, "never-recorded", "no"), pipeline.TypeNotRecorded, "never-recorded", true},
		{"a person has to answer inside", pipeline.Version("1"), ours, pipeline.TypeApproval, "approval-required", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := calling([]pipeline.ToolCall{wants("1", "book", `{}`)})
			c, b := withTools(m)
			b.fails = tt.err
			call := ask(t, c, program(t, deskYAML).WithPlugins(plugin(t, "guard", tt.opt)), question("?"))
			if f := call.Failure; f == nil || f.Type != tt.typ || f.Code != tt.code {
				t.Fatalf("got %v, want %s %s", f, tt.typ, tt.code)
			}
			if len(m.sent) != 1 || len(b.ran) > 0 != tt.ran {
				t.Errorf("%d requests, ran %v; want one, %v", len(m.sent), b.ran, tt.ran)
			}
		})
	}
	c, b := withTools(calling([]pipeline.ToolCall{wants("1", "book", `{}`)}))
	b.fails = &pipeline.Fatal{Err: errors.New("disk full")}
	if call, err := c.Ask(t.Context(), program(t, deskYAML), question("?")); err == nil || call != nil {
		t.Errorf("got %v, %v; want the fatal error", call, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c, b = withTools(calling([]pipeline.ToolCall{wants("1", "book", `{}`)}))
	b.run = map[string]pipeline.ToolFunc{"book": func(ctx context.Context, _ pipeline.Invocation, _ datasets.Value) (string, error) {
		cancel()
		return "", ctx.Err()
	}}
	if call, err := c.Ask(ctx, program(t, deskYAML), question("?")); !errors.Is(err, context.Canceled) || call != nil {
		t.Errorf("got %v, %v; want it canceled", call, err)
	}
}

// TestToolHookOrder: each handler is told the input as the ones before it left
// it, the approval plugin's the last; a block ends the hook, also within one
// plugin.
func TestToolHookOrder(t *testing.T) {
	var seen []string
	look := func(who string, change *pipeline.Change) pipeline.Option {
		return onTool(func(e *pipeline.ToolCallEvent) (*pipeline.Change, error) {
			seen = append(seen, who+" "+e.Input.JSON())
			return change, nil
		})
	}
	inputs := func(text string) *pipeline.Change {
		return &pipeline.Change{Inputs: datasets.ValuesOf(datasets.RawValue(text))}
	}
	own := plugin(t, "own", look("own1", inputs(`{"b":2,"a":9}`)), look("own2", nil))
	host := plugin(t, "host", look("host", inputs(`{"c":3}`)))
	approval := plugin(t, "approval", look("approval", inputs(`{"d":4}`)))
	run := func(c *pipeline.Caller, p *pipeline.Program) *pipeline.Call {
		seen = nil
		call := ask(t, c, p, question("?"))
		if call.Failure != nil {
			t.Fatal(call.Failure)
		}
		return call
	}
	m := calling([]pipeline.ToolCall{wants("1", "book", `{"z":1,"a":1}`)})
	c, b := withTools(m)
	c.Process.Plugins, c.Approval = []*pipeline.Plugin{approval, host}, approval
	no := false
	c.Process.ProgramPlugins = nil
	call := run(c, program(t, deskYAML).WithPlugins(own))
	want := []string{`own1 {"z":1,"a":1}`, `own2 {"z":1,"a":9,"b":2}`, `host {"z":1,"a":9,"b":2}`, `approval {"z":1,"a":9,"b":2,"c":3}`}
	if !slices.Equal(seen, want) {
		t.Errorf("the handlers saw\n%q, want\n%q", seen, want)
	}
	if want := []string{`book {"z":1,"a":9,"b":2,"c":3,"d":4}`}; !slices.Equal(b.ran, want) {
		t.Errorf("ran %q, want %q", b.ran, want)
	}
	if got := kept(call); len(got) != 3 || got[0] != `own 0.0.0 tool_call {"inputs":{"a":9,"b":2}}` || !strings.HasPrefix(got[2], "approval ") {
		t.Errorf("changes are %q", got)
	}
	// No layer removes it, and what is no map becomes one.
	m = calling([]pipeline.ToolCall{wants("1", "book", `[1]`)})
	c, b = withTools(m)
	c.Approval, c.Process = approval, pipeline.Layer{ProgramPlugins: &no}
	run(c, program(t, deskYAML).WithPlugins(own))
	if !slices.Equal(seen, []string{"approval [1]"}) || !slices.Equal(b.ran, []string{`book {"d":4}`}) {
		t.Errorf("saw %q, ran %q", seen, b.ran)
	}
	// A block.
	stop := plugin(t, "stop", look("stop1", &pipeline.Change{Block: new("no")}), look("stop2", nil))
	m = calling([]pipeline.ToolCall{wants("1", "book", `{}`)})
	c, b = withTools(m)
	c.Approval, c.Process.Plugins = approval, []*pipeline.Plugin{stop, host}
	run(c, program(t, deskYAML))
	if !slices.Equal(seen, []string{"stop1 {}"}) || b.ran != nil {
		t.Errorf("saw %q, ran %q", seen, b.ran)
	}
}

func TestToolEvents(t *testing.T) {
	m := calling([]pipeline.ToolCall{wants("a", "room_status", `{}`), wants("b", "note", `{}`)}, []pipeline.ToolCall{wants("", "fly", `{}`), wants("d", "book", ``)})
	c, b := withTools(m)
	var seen []string
	vandal := plugin(t, "vandal",
		onTool(func(e *pipeline.ToolCallEvent) (*pipeline.Change, error) {
			seen = append(seen, fmt.Sprintf("%s %s %s %s %d %s %s", e.ID, e.Name, e.Effects, e.Path, e.Invocation, e.Function, e.Input.JSON()))
			*e = pipeline.ToolCallEvent{Name: "room_status", Input: datasets.RawValue(`"spoilt"`), Effects: pipeline.EffectsRead}
			return nil, nil
		}),
		onResult(func(e *pipeline.ToolResultEvent) (*pipeline.Change, error) {
			seen = append(seen, fmt.Sprintf("%s %s %d %s %s", e.Name, e.Path, e.Invocation, e.Function, e.Input.JSON()))
			*e = pipeline.ToolResultEvent{Output: "spoilt"}
			return nil, nil
		}))
	call := ask(t, c, program(t, deskYAML).WithPlugins(vandal), question("?"))
	want := []string{
		"a room_status reads desk/room_status 0 desk {}", "room_status desk/room_status 0 desk {}",
		"b note  desk/note 1 desk {}", "note desk/note 1 desk {}",
		"call-2 fly reads desk/fly 2 desk {}", "fly desk/fly 2 desk {}",
		"d book changes desk/book 3 desk {}", "book desk/book 3 desk {}",
	}
	if d := cmp.Diff(want, seen); d != "" {
		t.Error(d)
	}
	if !slices.Equal(b.ran, []string{"room_status {}", "note {}", "book {}"}) || call.Changes != nil {
		t.Errorf("ran %q, changed %v", b.ran, call.Changes)
	}
	for _, s := range results(m.sent[2]) {
		if strings.Contains(s, "spoilt") {
			t.Errorf("the model was told %q", s)
		}
	}
}

// A tool that before_call took away is one there is not.
func TestToolsTakenAway(t *testing.T) {
	only := before(t, "only", func(*pipeline.CallEvent) *pipeline.Change { return &pipeline.Change{Tools: []string{"note"}} })
	m := calling([]pipeline.ToolCall{wants("1", "book", `{}`)})
	c, b := withTools(m)
	call := ask(t, c, program(t, deskYAML).WithPlugins(only), question("?"))
	if call.Failure != nil || len(m.sent[0].Tools) != 1 || b.ran != nil || results(m.sent[1])[0] != "1: error: ToolError: there is no tool book; there are note" {
		t.Errorf("%v, offered %v, ran %v, told %q", call.Failure, m.sent[0].Tools, b.ran, results(m.sent[1]))
	}
	// A tool without a runner is refused before anything is sent.
	m = &model{}
	c, _ = withTools(m)
	more := strings.Replace(deskYAML, "name: note", "name: letter", 1)
	if call := ask(t, c, program(t, more), question("?")); call.Failure == nil || call.Failure.Code != "tools-unsupported" || len(m.sent) != 0 {
		t.Errorf("got %v after %d requests", call.Failure, len(m.sent))
	}
}

// A program asked by a tool is a call inside the asking one.
func TestCallsInside(t *testing.T) {
	m := calling([]pipeline.ToolCall{wants("1", "note", `{}`), wants("2", "book", `{}`)})
	c, b := withTools(m)
	route := program(t, routeYAML)
	inner := &model{}
	c.Lookup = func(string) (pipeline.LM, error) { return pipeline.LM{Name: "inner", Model: inner}, nil }
	var seen []string
	c.Process.Plugins = []*pipeline.Plugin{before(t, "switch", func(e *pipeline.CallEvent) *pipeline.Change {
		seen = append(seen, fmt.Sprintf("%s %s %s", e.Path, e.Conversation, e.Turn))
		if e.Function == "route" {
			return &pipeline.Change{LM: new("inner")}
		}
		return nil
	})}
	b.run = map[string]pipeline.ToolFunc{"book": func(ctx context.Context, in pipeline.Invocation, _ datasets.Value) (string, error) {
		if s := in.Site(); s.Row != "r1" || s.Invocation != 1 || in.Conversation() != "c" || in.Turn() != "t" {
			t.Errorf("the invocation is at %+v, in %s %s", s, in.Conversation(), in.Turn())
		}
		for range 2 {
			call, err := in.Ask(ctx, route, pipeline.Ask{Inputs: ticket("x")})
			if err != nil || call.Failure != nil {
				t.Fatal(err, call.Failure)
			}
		}
		return "ok", nil
	}}
	in := question("?")
	in.Site.Row, in.Turn = "r1", &pipeline.TurnCall{Conversation: "c", Turn: "t"}
	call := ask(t, c, program(t, deskYAML), in)
	if call.Failure != nil || len(call.Inside) != 2 {
		t.Fatalf("%v, %d calls inside", call.Failure, len(call.Inside))
	}
	for i, one := range call.Inside {
		want := pipeline.Site{Row: "r1", Path: "desk/route", Invocation: 1, Inside: fmt.Sprintf("1.%d", i)}
		if one.Parent != call.ID || one.Root != call.ID || one.Site != want || inner.sent[i].Site != want || one.Turn != nil {
			t.Errorf("call %d inside is %s under %s at %+v", i, one.ID, one.Parent, one.Site)
		}
	}
	if want := []string{"desk c t", "desk/route c t", "desk/route c t"}; !slices.Equal(seen, want) {
		t.Errorf("before_call saw %q, want %q", seen, want)
	}
	if got, want := call.Steps[2].Member("children").JSON(), `["call-2","call-3"]`; got != want {
		t.Errorf("the step's children are %s, want %s", got, want)
	}
}

// Tools that are programs calling each other in a circle come to an end.
func TestToolsInACircle(t *testing.T) {
	m := &model{answer: func(_ int, r *pipeline.Request) (*pipeline.Reply, error) {
		if len(r.Messages) == 1 {
			return &pipeline.Reply{Calls: []pipeline.ToolCall{wants("1", "note", `{}`)}}, nil
		}
		return &pipeline.Reply{Text: "<result>\nok\n</result>"}, nil
	}}
	c, b := withTools(m)
	desk := program(t, deskYAML)
	b.run = map[string]pipeline.ToolFunc{"note": func(ctx context.Context, in pipeline.Invocation, _ datasets.Value) (string, error) {
		call, err := in.Ask(ctx, desk, question("?"))
		if err != nil {
			return "", err
		}
		return call.ToolResult()
	}}
	call := ask(t, c, desk, question("?"))
	if call.Failure != nil || len(m.sent) > 40 {
		t.Errorf("%v after %d requests", call.Failure, len(m.sent))
	}
}

// turnLog is a log in memory.
type turnLog struct {
	said     []string
	replies  map[string][]*pipeline.Reply
	tools    map[int]pipeline.KeptTool
	answers  map[string]pipeline.Answer
	failKeep error
}

func (l *turnLog) Reply(key string) (*pipeline.Reply, bool) {
	list := l.replies[key]
	if len(list) == 0 {
		return nil, false
	}
	l.replies[key] = list[1:]
	return list[0], true
}

func (l *turnLog) KeepReply(key string, r *pipeline.Reply) error {
	l.said = append(l.said, "reply")
	return l.failKeep
}
func (l *turnLog) Tool(n int) pipeline.KeptTool { return l.tools[n] }
func (l *turnLog) ToolStarted(n int, id, name string, input datasets.Value) error {
	l.said = append(l.said, fmt.Sprintf("started %d %s %s %s", n, id, name, input.JSON()))
	return nil
}

func (l *turnLog) ToolDone(n int, output string, _ []pipeline.Applied) error {
	l.said = append(l.said, fmt.Sprintf("done %d %s", n, output))
	return nil
}

func (l *turnLog) ToolAgain(n int) error {
	l.said = append(l.said, fmt.Sprintf("again %d", n))
	return nil
}

func (l *turnLog) Approval(n int, plugin string) (pipeline.Answer, bool) {
	a, ok := l.answers[fmt.Sprintf("%d %s", n, plugin)]
	return a, ok
}

func (l *turnLog) Refused(n int) (pipeline.Answer, bool) { return pipeline.Answer{}, false }

func (l *turnLog) Wait(e *pipeline.ToolCallEvent, plugin, reason string) error {
	l.said = append(l.said, fmt.Sprintf("wait %d %s %s %s", e.Invocation, e.Name, plugin, reason))
	return pipeline.Failf(pipeline.TypeApproval, "turn-waiting", "wait")
}

func TestTurnLog(t *testing.T) {
	exclaim := onResult(func(e *pipeline.ToolResultEvent) (*pipeline.Change, error) {
		return &pipeline.Change{Output: new(e.Output + "!")}, nil
	})
	asks := pipeline.OnToolCall(func(ctx context.Context, e *pipeline.ToolCallEvent) (*pipeline.Change, error) {
		if e.Name != "book" {
			return nil, nil
		}
		_, err := e.Ask(ctx, "it books", nil)
		return nil, err
	})
	calls := []pipeline.ToolCall{wants("a", "room_status", `{}`), wants("b", "book", `{"r":1}`)}
	run := func(log *turnLog, opts ...pipeline.Option) (*pipeline.Call, *model, *box) {
		m := calling(calls)
		c, b := withTools(m)
		in := question("?")
		in.Turn = &pipeline.TurnCall{Conversation: "c", Turn: "t", Log: log, Changes: []pipeline.Applied{{Plugin: "first", Hook: pipeline.HookContext, Change: datasets.RawValue(`{}`)}}}
		call, err := c.Ask(t.Context(), program(t, deskYAML).WithPlugins(plugin(t, "p", opts...)), in)
		if err != nil {
			t.Fatal(err)
		}
		return call, m, b
	}

	log := &turnLog{}
	call, m, _ := run(log, exclaim)
	want := []string{"reply", "done 0 free!", `started 1 b book {"r":1}`, "done 1 free!", "reply"}
	if call.Failure != nil || !slices.Equal(log.said, want) {
		t.Errorf("%v; the log has %q, want %q", call.Failure, log.said, want)
	}
	if got := kept(call); len(got) != 3 || got[0] != "first  context {}" || call.Turn == nil {
		t.Errorf("changes are %q: the turn's come first", got)
	}
	first, second := m.sent[0].Hash(), m.sent[1].Hash()

	// Resumed: what is known is not done again.
	log = &turnLog{
		replies: map[string][]*pipeline.Reply{first: {{Calls: calls}}, second: {{Text: "<result>\nas before\n</result>"}}},
		tools:   map[int]pipeline.KeptTool{0: {Output: new("free!")}, 1: {Output: new("free!"), Started: true}},
	}
	call, m, b := run(log, exclaim)
	if call.Failure != nil || call.Outputs["result"].String() != "as before" || len(m.sent) != 0 || b.ran != nil || log.said != nil || !call.Cached() {
		t.Errorf("%v, %v, %d sent, ran %v, log %q", call.Failure, call.Outputs, len(m.sent), b.ran, log.said)
	}
	// A tool that may have run.
	log = &turnLog{tools: map[int]pipeline.KeptTool{1: {Started: true}}}
	if call, _, b := run(log); call.Failure == nil || call.Failure.Code != "turn-unfinished" || len(b.ran) != 1 {
		t.Errorf("got %v, ran %v", call.Failure, b.ran)
	}
	// A person is waited for, and then answered.
	log = &turnLog{}
	call, _, b = run(log, asks)
	if call.Failure == nil || call.Failure.Code != "turn-waiting" || len(b.ran) != 1 || !slices.Contains(log.said, "wait 1 book p it books") {
		t.Errorf("got %v, ran %v, log %q", call.Failure, b.ran, log.said)
	}
	for _, a := range []pipeline.Answer{{Allowed: true, By: "ada"}, {Reason: "no", By: "ada"}} {
		log = &turnLog{answers: map[string]pipeline.Answer{"1 p": a}}
		if call, _, b := run(log, asks); call.Failure != nil || len(b.ran) == 2 != a.Allowed {
			t.Errorf("%+v: %v, ran %v", a, call.Failure, b.ran)
		}
	}
	// A reply that cannot be kept is not used.
	log = &turnLog{failKeep: pipeline.Failf(pipeline.TypeConversation, "turn-lost", "lost")}
	if call, _, b := run(log); call.Failure == nil || call.Failure.Code != "turn-lost" || b.ran != nil {
		t.Errorf("got %v, ran %v", call.Failure, b.ran)
	}
	// A tool that does not say what it does may do anything.
	calls = []pipeline.ToolCall{wants("a", "note", `{}`)}
	log = &turnLog{}
	if run(log); !slices.Contains(log.said, "started 0 a note {}") {
		t.Errorf("the log has %q", log.said)
	}
	// A turn has its steps, with or without tools.
	m = &model{}
	in := pipeline.Ask{Inputs: ticket("x"), Turn: &pipeline.TurnCall{Conversation: "c", Turn: "t"}}
	if call := ask(t, caller(m), program(t, routeYAML), in); len(call.Steps) != 1 || call.Steps[0].JSON() != `{"kind":"model","outputs":{"result":"repair"}}` {
		t.Errorf("the steps are %v", call.Steps)
	}
	if call := ask(t, caller(m), program(t, routeYAML), pipeline.Ask{Inputs: ticket("x")}); call.Steps != nil {
		t.Errorf("a plain call has the steps %v", call.Steps)
	}
}

func TestFencedTools(t *testing.T) {
	replies := []string{
		"Let me look.\n```tool\n{\"name\": \"room_status\", \"input\": {\"room\": 3}}\n```",
		"```tool\n{\"name\": 3}\n```",
		"```tool\n{\"name\": \"note\", \"input\": {\"text\": \"```\"}}\n```\n",
		"<result>\ndone\n</result>",
	}
	m := &model{answer: func(n int, _ *pipeline.Request) (*pipeline.Reply, error) {
		return &pipeline.Reply{Text: replies[n], Finish: "stop"}, nil
	}}
	c, b := withTools(m)
	c.Facts, c.Retries = &pipeline.Facts{Instruct: true, StopSequences: true}, 1
	call := ask(t, c, program(t, deskYAML), question("?"))
	if call.Failure != nil || call.Outputs["result"].String() != "done" {
		t.Fatal(call.Failure)
	}
	if want := []string{`room_status {"room": 3}`, "note {\"text\": \"```\"}"}; !slices.Equal(b.ran, want) {
		t.Errorf("ran %q, want %q", b.ran, want)
	}
	const offer = "Answer at the front desk.\n\nReply in exactly this form:\n<result>\n...\n</result>\n\n\n" +
		"You may call a tool before you answer. To call one, reply with one fenced block of this form and nothing else:\n\n" +
		"```tool\n{\"name\": \"<the tool's name>\", \"input\": {<what it is given>}}\n```\n\n" +
		"Its result comes in the next message. The tools:\n\n" +
		"- room_status: Say whether a room is free.\n  input: JSON matching this schema: " + `{"type": "object", "properties": {"room": {"type": "integer"}}, "required": ["room"]}` + "\n" +
		"- book\n  input: JSON matching this schema: {\"type\": \"object\"}\n" +
		"- note\n  input: JSON matching this schema: {\"type\": \"object\"}"
	if got := m.sent[0].System; !strings.HasSuffix(got, offer) || m.sent[0].Tools != nil {
		t.Errorf("the system text is %q, want it to end %q", got, offer)
	}
	var told []string
	for _, msg := range m.sent[3].Messages[1:] {
		told = append(told, msg.Role+": "+msg.Parts[0].Text)
	}
	want := []string{
		"assistant: " + replies[0], "user: Result of the tool room_status:\n\nfree",
		"assistant: " + replies[1],
		"user: Your reply could not be read: the tool block names no tool; write {\"name\": …, \"input\": {…}}. Reply again, in exactly the form the instructions give.",
		"assistant: " + replies[2], "user: Result of the tool note:\n\nfree",
	}
	if d := cmp.Diff(want, told); d != "" {
		t.Error(d)
	}
	if call.Steps[1].JSON() != `{"kind":"tool","id":"call-0","name":"room_status","output":"free"}` {
		t.Errorf("the step is %s", call.Steps[1].JSON())
	}
}

// An earlier turn that is shown with its steps shows its tool calls, when they are
// of a program with the same fields; another's are in another form.
func TestEarlierToolSteps(t *testing.T) {
	turn := datasets.Turn{
		Inputs: datasets.Values{"question": datasets.Text("Is 3 free?")}, Outputs: datasets.Values{"result": datasets.Text("Yes.")},
		Steps: []datasets.Step{
			datasets.RawValue(`{"kind":"model","outputs":{"calls":[{"id":"a","name":"room_status","input":{"room":3}}]}}`),
			datasets.RawValue(`{"kind":"tool","id":"a","name":"room_status","output":"free"}`),
			datasets.RawValue(`{"kind":"model","outputs":{"result":"Yes."}}`),
		},
	}
	p := program(t, deskYAML)
	turn.Signature = p.Signature()
	render := func(facts pipeline.Facts) string {
		req, err := p.Render(pipeline.Rendering{Inputs: question("?").Inputs, Earlier: []datasets.Turn{turn}, Model: "m", Facts: facts})
		if err != nil {
			t.Fatal(err)
		}
		return string((&pipeline.Request{Messages: req.Messages[1 : len(req.Messages)-1]}).Canonical("m"))
	}
	want := `{"config":{},"messages":[{"parts":[{"id":"a","input":{"room":3},"name":"room_status","type":"tool_call"}],"role":"assistant"},` +
		`{"parts":[{"id":"a","text":"free","type":"tool_result"}],"role":"tool"},{"parts":[{"text":"<result>\nYes.\n</result>","type":"text"}],"role":"assistant"}],"model":"m"}`
	if d := cmp.Diff(want, render(pipeline.ProbeFacts)); d != "" {
		t.Error(d)
	}
	want = "{\"config\":{},\"messages\":[{\"parts\":[{\"text\":\"```tool\\n{\\\"name\\\": \\\"room_status\\\", \\\"input\\\": {\\\"room\\\": 3}}\\n```\",\"type\":\"text\"}],\"role\":\"assistant\"}," +
		`{"parts":[{"text":"Result of the tool room_status:\n\nfree","type":"text"}],"role":"user"},{"parts":[{"text":"<result>\nYes.\n</result>","type":"text"}],"role":"assistant"}],"model":"m"}`
	if d := cmp.Diff(want, render(pipeline.Facts{})); d != "" {
		t.Error(d)
	}
	turn.Signature = program(t, routeYAML).Signature()
	want = `{"config":{},"messages":[{"parts":[{"text":"<result>\nYes.\n</result>","type":"text"}],"role":"assistant"}],"model":"m"}`
	if d := cmp.Diff(want, render(pipeline.ProbeFacts)); d != "" {
		t.Error(d)
	}
}

func TestToolDefinitions(t *testing.T) {
	p := program(t, deskYAML)
	again := program(t, p.Definition().JSON())
	if again.Version() != p.Version() || len(again.Tools()) != 3 || again.Tools()[0].Effects != pipeline.EffectsRead || again.Tools()[2].Effects != "" {
		t.Errorf("read again it has the tools %v", again.Tools())
	}
	if _, err := pipeline.ParseProgram("p.yaml", []byte(strings.Replace(deskYAML, "effects: reads", "effects: writes", 1))); err == nil || !strings.Contains(err.Error(), "effects is reads or changes") {
		t.Errorf("effects: writes: %v", err)
	}
	schema := datasets.RawValue(`{"type":"object"}`)
	route := program(t, routeYAML)
	with, err := route.WithTools(p.Tools()...)
	if err != nil || len(with.Tools()) != 3 || with.Version() == route.Version() {
		t.Errorf("%v, %v", with, err)
	}
	look := pipeline.ToolDefinition{Tool: pipeline.Tool{Name: "look", Parameters: schema}}
	for want, tools := range map[string][]pipeline.ToolDefinition{
		"two tools are called look":   {look, look},
		"must be a JSON Schema of an": {{Tool: pipeline.Tool{Name: "look", Parameters: datasets.Text("x")}}},
	} {
		if _, err := route.WithTools(tools...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	const calls = "name: f\noutputs: [{name: calls, shape: {type: string}}]\n"
	if _, err := program(t, calls).WithTools(look); err == nil || !strings.Contains(err.Error(), "call the field calls something else") {
		t.Errorf("got %v", err)
	}
}

func TestAsTool(t *testing.T) {
	p := program(t, `
name: lawyer
inputs:
  - {name: question, shape: {type: string}, desc: What to ask.}
  - {name: tone, shape: {type: string, default: kind}, optional: true}
  - {name: who, shape: {$ref: '#/$defs/P', $defs: {P: {type: object, properties: {n: {type: string}}}}}}
  - {name: other, shape: {$ref: '#/$defs/P', $defs: {P: {type: integer}}}}
outputs: [{name: result, shape: {type: string}}]
`)
	want := `{"type":"object","properties":{"question":{"type":"string","description":"What to ask."},"tone":{"type":"string","default":"kind"},` +
		`"who":{"$ref":"#/$defs/P"},"other":{"$ref":"#/$defs/other_P"}},"required":["question","who","other"],` +
		`"$defs":{"P":{"type":"object","properties":{"n":{"type":"string"}}},"other_P":{"type":"integer"}}}`
	d := p.AsTool()
	if d.Name != "lawyer" || d.Description != "Ask lawyer." || d.Effects != pipeline.EffectsRead || d.Parameters.JSON() != want {
		t.Errorf("got %+v\nwant %s", d, want)
	}
	for text, want := range map[string]pipeline.Effects{
		deskYAML: pipeline.EffectsChange,
		strings.Replace(deskYAML, "effects: changes, ", "", 1):                                                                   "",
		strings.Replace(strings.Replace(deskYAML, "effects: changes", "effects: reads", 1), "note,", "note, effects: reads,", 1): pipeline.EffectsRead,
	} {
		if got := program(t, text).AsTool().Effects; got != want {
			t.Errorf("the effects are %q, want %q", got, want)
		}
	}
}

// A tool that panics has failed: the model is told, and the call goes on.
func TestToolPanics(t *testing.T) {
	m := calling([]pipeline.ToolCall{wants("a", "book", `{}`)})
	c, b := withTools(m)
	b.run = map[string]pipeline.ToolFunc{"book": func(context.Context, pipeline.Invocation, datasets.Value) (string, error) {
		panic("no such room")
	}}
	call := ask(t, c, program(t, deskYAML), question("x"))
	if told := results(m.sent[1]); call.Failure != nil || !slices.Equal(told, []string{"a: error: ToolError: it panicked: no such room"}) {
		t.Errorf("%v, told %q", call.Failure, told)
	}
}

// An input that no record can hold is given to the tool as the text that it is,
// which it can refuse.
func TestToolInputOfNoRecord(t *testing.T) {
	for _, input := range []string{`{"a":1e400}`, strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000), `{"a":`} {
		c, b := withTools(calling([]pipeline.ToolCall{wants("a", "book", input), wants("b", "book", `{"a":1}`)}))
		chat, err := c.Converse(program(t, deskYAML), "ada", pipeline.NewMemoryStore(), pipeline.ConversationOptions{})
		if err != nil {
			t.Fatal(err)
		}
		turn, err := chat.Send(t.Context(), question("x").Inputs, pipeline.SendOptions{})
		if want := []string{"book " + datasets.Text(input).JSON(), `book {"a":1}`}; err != nil || turn.State != pipeline.TurnDone || !slices.Equal(b.ran, want) {
			t.Errorf("%.20s: %+v, %v, ran %.100q", input, turn, err, b.ran)
		}
	}
}
