package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// model is a scripted model that keeps what it was sent.
type model struct {
	mu     sync.Mutex
	sent   []*pipeline.Request
	answer func(n int, r *pipeline.Request) (*pipeline.Reply, error)
}

func (m *model) Generate(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent = append(m.sent, r)
	if m.answer == nil {
		return &pipeline.Reply{Text: "<result>\nrepair\n</result>", Finish: "stop"}, nil
	}
	return m.answer(len(m.sent)-1, r)
}

const routeYAML = `
name: route
description: Say what the customer wants done.
inputs:
  - {name: ticket, shape: {type: string}}
outputs:
  - {name: result, shape: {enum: [refund, repair, question], type: string}}
`

func program(t testing.TB, yaml string) *pipeline.Program {
	t.Helper()
	p, err := pipeline.ParseProgram("route.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func caller(m pipeline.Model) *pipeline.Caller {
	n := 0
	var mu sync.Mutex
	return &pipeline.Caller{
		LM:  pipeline.LM{Name: "probe", Model: m},
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		NewID: func() string {
			mu.Lock()
			defer mu.Unlock()
			n++
			return fmt.Sprintf("call-%d", n)
		},
	}
}

func ticket(text string) datasets.Values { return datasets.Values{"ticket": datasets.Text(text)} }

func ask(t *testing.T, c *pipeline.Caller, p *pipeline.Program, in pipeline.Ask) *pipeline.Call {
	t.Helper()
	call, err := c.Ask(t.Context(), p, in)
	if err != nil {
		t.Fatal(err)
	}
	return call
}

func before(t testing.TB, name string, change func(e *pipeline.CallEvent) *pipeline.Change) *pipeline.Plugin {
	return plugin(t, name, pipeline.Version("1.0.0"), pipeline.OnBeforeCall(
		func(_ context.Context, e *pipeline.CallEvent) (*pipeline.Change, error) { return change(e), nil }))
}

func TestAsk(t *testing.T) {
	m := &model{}
	call := ask(t, caller(m), program(t, routeYAML), pipeline.Ask{Inputs: ticket("The hinge is bent.")})
	if call.Failure != nil {
		t.Fatal(call.Failure)
	}
	if got, _ := call.Outputs["result"].AsText(); got != "repair" {
		t.Errorf("the answer is %q, want repair", got)
	}
	if len(call.Exchanges) != 1 || call.Exchanges[0].Hash != m.sent[0].Hash() {
		t.Errorf("the exchange does not carry the hash of what was sent: %+v", call.Exchanges)
	}
	if call.Changes != nil || call.Sections != nil || call.SawOf != "" {
		t.Errorf("a plain call has changes %v, sections %v, saw %q", call.Changes, call.Sections, call.SawOf)
	}
}

// TestMerge: sections add up, the conversation's first; instruction, lm and
// tools are replaced by a later change; settings merge; each handler sees the
// call as the changes before it left it.
func TestMerge(t *testing.T) {
	m := &model{}
	other := &model{}
	c := caller(m)
	c.Lookup = func(name string) (pipeline.LM, error) {
		if name != "other" {
			return pipeline.LM{}, fmt.Errorf("no model %q", name)
		}
		return pipeline.LM{Name: "other", Model: other}, nil
	}
	var seen []string
	watch := func(e *pipeline.CallEvent) {
		seen = append(seen, fmt.Sprintf("%s|%s|%s|%s", e.Instruction, strings.Join(e.Sections(), "+"), e.LM, e.Settings().Object().JSON()))
	}
	one := before(t, "one", func(e *pipeline.CallEvent) *pipeline.Change {
		watch(e)
		return &pipeline.Change{
			Instruction: new("First."), Sections: []string{"S1", "  ", "S2"},
			Settings: datasets.Values{"temperature": datasets.Float(0.5), "seed": datasets.Int(1)},
		}
	})
	two := before(t, "two", func(e *pipeline.CallEvent) *pipeline.Change {
		watch(e)
		return &pipeline.Change{
			Instruction: new("Second."), Sections: []string{"S3"}, LM: new("other"),
			Settings: datasets.Values{"temperature": datasets.Int(1)},
		}
	})
	c.Process = pipeline.Layer{Plugins: []*pipeline.Plugin{two}}
	p := program(t, routeYAML).WithPlugins(one)
	call := ask(t, c, p, pipeline.Ask{Inputs: ticket("x"), Context: datasets.Context{Sections: []string{"From the conversation."}}})
	if call.Failure != nil {
		t.Fatal(call.Failure)
	}
	if len(m.sent) != 0 || len(other.sent) != 1 {
		t.Fatalf("asked the first model %d times and the other %d times, want 0 and 1", len(m.sent), len(other.sent))
	}
	system := other.sent[0].System
	if want := "Second.\n\nFrom the conversation.\n\nS1\n\nS2\n\nS3\n\nReply in exactly this form:"; !strings.HasPrefix(system, want) {
		t.Errorf("the system text is %q, want it to begin %q", system, want)
	}
	if got, want := other.sent[0].Config["temperature"].JSON()+other.sent[0].Config["seed"].JSON(), "11"; got != want {
		t.Errorf("temperature and seed are %s, want %s", got, want)
	}
	wantSeen := []string{
		p.Instruction() + "|From the conversation.|probe|{}",
		`First.|From the conversation.+S1+S2|probe|{"seed":1,"temperature":0.5}`,
	}
	if !slices.Equal(seen, wantSeen) {
		t.Errorf("the handlers saw %q, want %q", seen, wantSeen)
	}
	// What the conversation gave is apart from what the host shaped.
	if !slices.Equal(call.Sections, []string{"From the conversation."}) {
		t.Errorf("sections are %q", call.Sections)
	}
	var kept []string
	for _, a := range call.Changes {
		kept = append(kept, fmt.Sprintf("%s %s %s %s", a.Plugin, a.Version, a.Hook, a.Change.Canonical()))
	}
	want := []string{
		`one 1.0.0 before_call {"instruction":"First.","sections":["S1","  ","S2"],"settings":{"seed":1,"temperature":0.5}}`,
		`two 1.0.0 before_call {"instruction":"Second.","lm":"other","sections":["S3"],"settings":{"temperature":1}}`,
	}
	if !slices.Equal(kept, want) {
		t.Errorf("changes are\n%s\nwant\n%s", strings.Join(kept, "\n"), strings.Join(want, "\n"))
	}
	if call.LM != "other" {
		t.Errorf("the call says it asked %q, want other", call.LM)
	}
}

// TestRefusedChanges: a change that does not fit stops the call before anything
// is sent.
func TestRefusedChanges(t *testing.T) {
	for _, c := range []struct {
		name   string
		change *pipeline.Change
		say    string // part of the message
	}{
		{"a field the hook does not take", &pipeline.Change{Block: new("no"), Keep: []string{}}, "before_call does not take keep, block"},
		{"another hook's output", &pipeline.Change{Output: new("")}, "does not take output"},
		{"inputs", &pipeline.Change{Inputs: datasets.Values{}}, "does not take inputs"},
		{"a blank instruction", &pipeline.Change{Instruction: new(" \n")}, "instruction is blank"},
		{"a blank model", &pipeline.Change{LM: new("")}, "lm is blank"},
		{"a model there is not", &pipeline.Change{LM: new("nobody")}, "nobody"},
		{"a setting of evalrun's own", &pipeline.Change{Settings: datasets.Values{"adapter": datasets.Text("chat")}}, `"adapter" is not a model's setting`},
		{"a tool the program lacks", &pipeline.Change{Tools: []string{"delete_file"}}, `no tool "delete_file"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &model{}
			call := ask(t, caller(m), program(t, routeYAML).WithPlugins(before(t, "wrong", func(*pipeline.CallEvent) *pipeline.Change { return c.change })), pipeline.Ask{Inputs: ticket("x")})
			f := call.Failure
			if f == nil || f.Type != pipeline.TypePlugin || f.Code != "plugin-change" || f.Plugin != "wrong" || f.Hook != pipeline.HookBeforeCall || !strings.Contains(f.Message, c.say) {
				t.Errorf("got %+v, want plugin-change of before_call in wrong, saying %q", f, c.say)
			}
			if len(m.sent) != 0 || len(call.Exchanges) != 0 || len(call.Changes) != 0 {
				t.Errorf("%d requests were sent and %d changes recorded, want none", len(m.sent), len(call.Changes))
			}
		})
	}
}

// TestNoChange: nothing, and a change with nothing set, leave no trace.
func TestNoChange(t *testing.T) {
	m := &model{}
	p := program(t, routeYAML)
	plain := ask(t, caller(m), p, pipeline.Ask{Inputs: ticket("x")})
	for _, change := range []*pipeline.Change{nil, {}} {
		call := ask(t, caller(m), p.WithPlugins(before(t, "quiet", func(*pipeline.CallEvent) *pipeline.Change { return change })), pipeline.Ask{Inputs: ticket("x")})
		if call.Failure != nil || call.Changes != nil || call.Exchanges[0].Hash != plain.Exchanges[0].Hash {
			t.Errorf("a handler that returned %v changed the call: %v, %v", change, call.Failure, call.Changes)
		}
	}
}

// TestSetButEmpty: an empty list is a change, unlike an unset one.
func TestSetButEmpty(t *testing.T) {
	call := ask(t, caller(&model{}), program(t, routeYAML).WithPlugins(before(t, "empty", func(*pipeline.CallEvent) *pipeline.Change {
		return &pipeline.Change{Tools: []string{}}
	})), pipeline.Ask{Inputs: ticket("x")})
	if call.Failure != nil || len(call.Changes) != 1 || call.Changes[0].Change.JSON() != `{"tools":[]}` {
		t.Errorf("got %v, %v; want one change {\"tools\":[]}", call.Failure, call.Changes)
	}
}

func TestFailingHandlers(t *testing.T) {
	ordinary := errors.New("no such policy")
	own := pipeline.Failf(pipeline.TypeApproval, "approval-required", "ask someone")
	for _, c := range []struct {
		name string
		opt  pipeline.Option
		code string
		hook pipeline.Hook
	}{
		{"before_call, an ordinary error", pipeline.OnBeforeCall(func(context.Context, *pipeline.CallEvent) (*pipeline.Change, error) { return nil, ordinary }), "plugin-failed", pipeline.HookBeforeCall},
		{"before_call, a failure of ours passes unchanged", pipeline.OnBeforeCall(func(context.Context, *pipeline.CallEvent) (*pipeline.Change, error) { return nil, own }), "approval-required", ""},
		{"request, any error", pipeline.OnRequest(func(context.Context, *pipeline.RequestEvent) (*pipeline.Request, error) { return nil, own }), "plugin-failed", pipeline.HookRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &model{}
			call := ask(t, caller(m), program(t, routeYAML).WithPlugins(plugin(t, "guard", c.opt)), pipeline.Ask{Inputs: ticket("x")})
			if f := call.Failure; f == nil || f.Code != c.code || f.Hook != c.hook {
				t.Errorf("got %+v, want %s", f, c.code)
			}
			if len(m.sent) != 0 {
				t.Errorf("%d requests were sent, want none", len(m.sent))
			}
		})
	}
}

func TestRequestHook(t *testing.T) {
	var kept *pipeline.Request
	replace := plugin(t, "rewrite", pipeline.Version("2.1.0"), pipeline.OnRequest(func(_ context.Context, e *pipeline.RequestEvent) (*pipeline.Request, error) {
		kept = e.Request
		kept.System = "Say repair."
		return kept, nil
	}))
	m := &model{answer: func(int, *pipeline.Request) (*pipeline.Reply, error) {
		kept.System = "changed after it was sent"
		return &pipeline.Reply{Text: "<result>repair</result>"}, nil
	}}
	call := ask(t, caller(m), program(t, routeYAML).WithPlugins(replace), pipeline.Ask{Inputs: ticket("x")})
	if call.Failure != nil {
		t.Fatal(call.Failure)
	}
	if m.sent[0].System != "Say repair." {
		t.Errorf("what was sent is %q: a handler reached into it after it returned", m.sent[0].System)
	}
	if call.Replayable() || call.Exchanges[0].Hash != "" {
		t.Errorf("a replaced request is replayable (%v) with hash %q, want neither", call.Replayable(), call.Exchanges[0].Hash)
	}
	want := pipeline.Applied{Plugin: "rewrite", Version: "2.1.0", Hook: pipeline.HookRequest, Change: datasets.RawValue(`{"request":"replaced"}`)}
	if len(call.Changes) != 1 || call.Changes[0] != want {
		t.Errorf("changes are %v, want %v", call.Changes, want)
	}
}

func TestRequestHookRefusesWhatIsNoRequest(t *testing.T) {
	m := &model{}
	empty := plugin(t, "empty", pipeline.OnRequest(func(context.Context, *pipeline.RequestEvent) (*pipeline.Request, error) {
		return &pipeline.Request{}, nil
	}))
	call := ask(t, caller(m), program(t, routeYAML).WithPlugins(empty), pipeline.Ask{Inputs: ticket("x")})
	if f := call.Failure; f == nil || f.Code != "plugin-change" || f.Hook != pipeline.HookRequest || len(m.sent) != 0 {
		t.Errorf("got %+v with %d requests sent, want plugin-change of request and none", f, len(m.sent))
	}
}

// TestRequestHookRunsOnEachTry: once for every request of the loop that asks
// again about a reply that could not be read.
func TestRequestHookRunsOnEachTry(t *testing.T) {
	hooks := 0
	count := plugin(t, "count", pipeline.OnRequest(func(context.Context, *pipeline.RequestEvent) (*pipeline.Request, error) {
		hooks++
		return nil, nil
	}))
	m := &model{answer: func(n int, _ *pipeline.Request) (*pipeline.Reply, error) {
		if n == 0 {
			return &pipeline.Reply{Text: "no form at all", Finish: "stop"}, nil
		}
		return &pipeline.Reply{Text: "<result>\nrefund\n</result>", Finish: "stop"}, nil
	}}
	c := caller(m)
	c.Retries = 1
	call := ask(t, c, program(t, routeYAML).WithPlugins(count), pipeline.Ask{Inputs: ticket("x")})
	if call.Failure != nil || hooks != 2 || len(call.Exchanges) != 2 {
		t.Fatalf("failure %v, %d hook runs, %d exchanges; want none, 2, 2", call.Failure, hooks, len(call.Exchanges))
	}
	last := m.sent[1].Messages
	if got := last[len(last)-1].Parts[0].Text; !strings.HasPrefix(got, "Your reply could not be read: ") {
		t.Errorf("the second request ends with %q", got)
	}
	if m.sent[0].Site.Try != 0 || m.sent[1].Site.Try != 1 {
		t.Errorf("the tries are %d and %d, want 0 and 1", m.sent[0].Site.Try, m.sent[1].Site.Try)
	}
	// A model that gives the same reply again is not asked again.
	c.LM.Deterministic = true
	m.answer = func(int, *pipeline.Request) (*pipeline.Reply, error) { return &pipeline.Reply{Text: "no form"}, nil }
	call = ask(t, c, program(t, routeYAML), pipeline.Ask{Inputs: ticket("x")})
	if f := call.Failure; f == nil || f.Class() != "unreadable" || len(call.Exchanges) != 1 {
		t.Errorf("got %v after %d exchanges, want unreadable after one", f, len(call.Exchanges))
	}
}

// TestHandlersSeeCopies: changing what a handler was given changes nothing.
func TestHandlersSeeCopies(t *testing.T) {
	send := func(plugins ...*pipeline.Plugin) *pipeline.Request {
		m := &model{}
		call := ask(t, caller(m), program(t, routeYAML).WithPlugins(plugins...), pipeline.Ask{
			Inputs: ticket("The hinge is bent."), Context: datasets.Context{Sections: []string{"Earlier: none."}},
		})
		if call.Failure != nil {
			t.Fatal(call.Failure)
		}
		return m.sent[0]
	}
	set := before(t, "set", func(*pipeline.CallEvent) *pipeline.Change {
		return &pipeline.Change{Settings: datasets.Values{"seed": datasets.Int(7)}}
	})
	vandal := plugin(t, "vandal",
		pipeline.OnBeforeCall(func(_ context.Context, e *pipeline.CallEvent) (*pipeline.Change, error) {
			e.Instruction, e.LM = "Lie.", "elsewhere"
			e.Inputs()["ticket"] = datasets.Text("nothing")
			e.Settings()["seed"] = datasets.Int(8)
			e.Sections()[0] = "Lie."
			return nil, nil
		}),
		pipeline.OnRequest(func(_ context.Context, e *pipeline.RequestEvent) (*pipeline.Request, error) {
			e.Request.System, e.Request.Messages[0].Parts[0].Text = "Lie.", "nothing"
			e.Request.Config["seed"] = datasets.Int(9)
			return nil, nil
		}))
	if got, want := send(set, vandal).Hash(), send(set).Hash(); got != want {
		t.Errorf("a handler that returned nothing changed the request")
	}
}

// TestChangeKeepsNothingOfTheHandler: a change is data once it is returned.
func TestChangeKeepsNothingOfTheHandler(t *testing.T) {
	change := &pipeline.Change{Sections: []string{"As returned."}, Settings: datasets.Values{"seed": datasets.Int(1)}}
	first := before(t, "first", func(*pipeline.CallEvent) *pipeline.Change { return change })
	second := before(t, "second", func(*pipeline.CallEvent) *pipeline.Change {
		change.Sections[0] = "Changed later."
		change.Settings["seed"] = datasets.Int(2)
		return nil
	})
	m := &model{}
	call := ask(t, caller(m), program(t, routeYAML).WithPlugins(first, second), pipeline.Ask{Inputs: ticket("x")})
	if call.Failure != nil || !strings.Contains(m.sent[0].System, "As returned.") || m.sent[0].Config["seed"].JSON() != "1" {
		t.Errorf("a change was altered after it was returned: %v, %q", call.Failure, m.sent[0].System)
	}
}

// TestUnreachable: an instruction that cannot reach the model is refused before
// anything is sent, for it would be recorded as sent.
func TestUnreachable(t *testing.T) {
	const fixed = `
name: ask
inputs: [{name: question, shape: {type: string}}]
outputs: [{name: answer, shape: {type: string}}]
settings: {template: [{role: user, text: "Q: {question}\nA:"}]}
`
	section := before(t, "modes", func(*pipeline.CallEvent) *pipeline.Change {
		return &pipeline.Change{Sections: []string{"Answer carefully."}}
	})
	blankSection := before(t, "modes", func(*pipeline.CallEvent) *pipeline.Change {
		return &pipeline.Change{Sections: []string{" "}}
	})
	question := pipeline.Ask{Inputs: datasets.Values{"question": datasets.Text("1+1?")}}
	withSection := question
	withSection.Context.Sections = []string{"From a summary."}
	baked := func(c *pipeline.Caller) { c.LM.Baked = true }
	plain := func(*pipeline.Caller) {}
	for _, c := range []struct {
		name    string
		program string
		in      pipeline.Ask
		plugins []*pipeline.Plugin
		setup   func(*pipeline.Caller)
		refused bool
	}{
		{"a template without {instruction}, a section", fixed, question, []*pipeline.Plugin{section}, plain, true},
		{"the same, nothing changed", fixed, question, nil, plain, false},
		{"the same, only a blank section", fixed, question, []*pipeline.Plugin{blankSection}, plain, false},
		{"the same, a section of the conversation", fixed, withSection, nil, plain, true},
		{"a layout that writes it", routeYAML, pipeline.Ask{Inputs: ticket("x")}, []*pipeline.Plugin{section}, plain, false},
		{"a baked model", routeYAML, pipeline.Ask{Inputs: ticket("x")}, []*pipeline.Plugin{section}, baked, true},
		{"a baked model, nothing changed", routeYAML, pipeline.Ask{Inputs: ticket("x")}, nil, baked, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &model{}
			cl := caller(m)
			c.setup(cl)
			call := ask(t, cl, program(t, c.program).WithPlugins(c.plugins...), c.in)
			if refused := call.Failure != nil && call.Failure.Code == "plugin-change"; refused != c.refused {
				t.Errorf("refused %v (%v), want %v", refused, call.Failure, c.refused)
			}
			if c.refused && len(m.sent) > 0 {
				t.Error("something was sent")
			}
		})
	}
}

func TestEarlierTurns(t *testing.T) {
	m := &model{}
	shown := datasets.Context{
		Of:       "rated-1",
		Earlier:  []datasets.Turn{{Inputs: ticket("It squeaks."), Outputs: datasets.Values{"result": datasets.Text("question")}}},
		Sections: []string{"The customer is Ada."},
	}
	call := ask(t, caller(m), program(t, routeYAML), pipeline.Ask{Inputs: ticket("Now it broke."), Context: shown})
	if call.Failure != nil {
		t.Fatal(call.Failure)
	}
	var got []string
	for _, msg := range m.sent[0].Messages {
		got = append(got, msg.Role+": "+msg.Parts[0].Text)
	}
	want := []string{
		"user: <ticket>\nIt squeaks.\n</ticket>\n",
		"assistant: <result>\nquestion\n</result>",
		"user: <ticket>\nNow it broke.\n</ticket>\n",
	}
	if !slices.Equal(got, want) {
		t.Errorf("messages are %q, want %q", got, want)
	}
	if call.SawOf != "rated-1" {
		t.Errorf("the call saw what %q saw, want rated-1", call.SawOf)
	}
	// Sections without earlier turns: it saw no calls.
	shown.Earlier = nil
	if call := ask(t, caller(m), program(t, routeYAML), pipeline.Ask{Inputs: ticket("x"), Context: shown}); call.SawOf != "" || len(call.Sections) != 1 {
		t.Errorf("saw %q with sections %q, want none with one", call.SawOf, call.Sections)
	}
}

func TestBadInputs(t *testing.T) {
	for _, in := range []datasets.Values{nil, {"ticket": datasets.Int(3)}, {"ticket": datasets.Text("x"), "extra": datasets.Int(1)}} {
		m := &model{}
		call := ask(t, caller(m), program(t, routeYAML), pipeline.Ask{Inputs: in})
		if f := call.Failure; f == nil || f.Code != "interface-input" || len(m.sent) > 0 {
			t.Errorf("inputs %v: %+v with %d requests, want interface-input and none", in, f, len(m.sent))
		}
	}
}

func TestModelFails(t *testing.T) {
	m := &model{answer: func(int, *pipeline.Request) (*pipeline.Reply, error) { return nil, errors.New("boom") }}
	call := ask(t, caller(m), program(t, routeYAML), pipeline.Ask{Inputs: ticket("x")})
	if f := call.Failure; f == nil || f.Type != pipeline.TypeServer || len(call.Exchanges) != 1 || call.Exchanges[0].Failure == nil {
		t.Errorf("got %+v and exchanges %+v", f, call.Exchanges)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := &model{answer: func(int, *pipeline.Request) (*pipeline.Reply, error) { cancel(); return nil, ctx.Err() }}
	call, err := caller(m).Ask(ctx, program(t, routeYAML), pipeline.Ask{Inputs: ticket("x")})
	if call != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v; want no call and the context's error", call, err)
	}
}

// TestNoPluginsCostNothing: a call without plugins allocates what it did before
// there were any.
func TestNoPluginsCostNothing(t *testing.T) {
	m := &model{answer: func(int, *pipeline.Request) (*pipeline.Reply, error) {
		return &pipeline.Reply{Text: "<result>\nrepair\n</result>"}, nil
	}}
	c := caller(m)
	p := program(t, routeYAML)
	quiet := p.WithPlugins(before(t, "quiet", func(*pipeline.CallEvent) *pipeline.Change { return nil }))
	count := func(p *pipeline.Program) float64 {
		return testing.AllocsPerRun(200, func() {
			m.sent = m.sent[:0]
			if call, err := c.Ask(t.Context(), p, pipeline.Ask{Inputs: ticket("x")}); err != nil || call.Failure != nil {
				t.Fatal(err, call.Failure)
			}
		})
	}
	without, with := count(p), count(quiet)
	// One event, the list of layers and the order of plugins.
	if with-without > 4 {
		t.Errorf("a handler that returns nothing costs %v allocations, want at most 4", with-without)
	}
}

func BenchmarkHandler(b *testing.B) {
	m := &model{answer: func(int, *pipeline.Request) (*pipeline.Reply, error) {
		return &pipeline.Reply{Text: "<result>\nrepair\n</result>"}, nil
	}}
	c := caller(m)
	p := program(b, routeYAML)
	for _, n := range []int{0, 1, 10} {
		var ps []*pipeline.Plugin
		for i := range n {
			ps = append(ps, before(b, fmt.Sprintf("p%d", i), func(*pipeline.CallEvent) *pipeline.Change { return nil }))
		}
		with := p.WithPlugins(ps...)
		b.Run(fmt.Sprintf("plugins=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.sent = m.sent[:0]
				if call, err := c.Ask(b.Context(), with, pipeline.Ask{Inputs: ticket("x")}); err != nil || call.Failure != nil {
					b.Fatal(err, call.Failure)
				}
			}
		})
	}
}
