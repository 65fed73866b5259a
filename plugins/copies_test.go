package plugins_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// meddler has a handler of every hook that changes all it was given, and asks for
// nothing.
func meddler(t *testing.T, met map[pipeline.Hook]bool) *pipeline.Plugin {
	bad := datasets.Text("meddled")
	values := func(vs datasets.Values) {
		for name := range vs {
			vs[name] = bad
		}
		if vs != nil {
			vs["new"] = bad
		}
	}
	texts := func(list []string) {
		for i := range list {
			list[i] = "meddled"
		}
		_ = append(list[:0:cap(list)], "meddled")
	}
	turns := func(list []pipeline.ShownTurn) {
		for i := range list {
			values(list[i].Inputs)
			values(list[i].Outputs)
			texts(list[i].Without)
			list[i] = pipeline.ShownTurn{ID: "meddled"}
		}
	}
	entries := func(list []pipeline.Entry) {
		for i := range list {
			list[i] = pipeline.Entry{Turn: "meddled", Data: bad}
		}
	}
	return must(pipeline.NewPlugin("first", pipeline.Version("1.0.0"),
		pipeline.OnTurnStart(func(_ context.Context, e *pipeline.TurnStartEvent) (*pipeline.Change, error) {
			met[pipeline.HookTurnStart] = true
			values(e.Inputs())
			e.Conversation, e.Parent, e.Program = "meddled", "meddled", "meddled"
			return nil, nil
		}),
		pipeline.OnContext(func(_ context.Context, e *pipeline.ContextEvent) (*pipeline.Change, error) {
			met[pipeline.HookContext] = true
			turns(e.Turns())
			texts(e.Sections())
			texts(e.Branch())
			entries(e.Entries("kind"))
			e.Conversation, e.Parent, e.Program = "meddled", "meddled", "meddled"
			return nil, nil
		}),
		pipeline.OnBeforeCall(func(_ context.Context, e *pipeline.CallEvent) (*pipeline.Change, error) {
			met[pipeline.HookBeforeCall] = true
			values(e.Inputs())
			values(e.Settings())
			texts(e.Tools())
			texts(e.AllTools())
			texts(e.Sections())
			entries(e.Entries("kind"))
			e.Instruction, e.Function, e.Program, e.Path, e.LM, e.Conversation, e.Turn = "meddled", "meddled", "meddled", "meddled", "meddled", "meddled", "meddled"
			return nil, nil
		}),
		pipeline.OnRequest(func(_ context.Context, e *pipeline.RequestEvent) (*pipeline.Request, error) {
			met[pipeline.HookRequest] = true
			r := e.Request
			for i := range r.Messages {
				for j := range r.Messages[i].Parts {
					r.Messages[i].Parts[j] = pipeline.Part{Text: "meddled"}
				}
				r.Messages[i].Role = "meddled"
			}
			values(r.Config)
			for i := range r.Tools {
				r.Tools[i] = pipeline.Tool{Name: "meddled"}
			}
			*r = pipeline.Request{Model: "meddled"}
			e.Request, e.Function, e.Path = nil, "meddled", "meddled"
			return nil, nil
		}),
		pipeline.OnToolCall(func(_ context.Context, e *pipeline.ToolCallEvent) (*pipeline.Change, error) {
			met[pipeline.HookToolCall] = true
			e.ID, e.Name, e.Input, e.Effects, e.Path, e.Function, e.Invocation = "meddled", "meddled", bad, "meddled", "meddled", "meddled", 99
			return nil, nil
		}),
		pipeline.OnToolResult(func(_ context.Context, e *pipeline.ToolResultEvent) (*pipeline.Change, error) {
			met[pipeline.HookToolResult] = true
			e.Name, e.Input, e.Output, e.Path, e.Function, e.Invocation = "meddled", bad, "meddled", "meddled", "meddled", 99
			return nil, nil
		}),
		pipeline.OnTurnEnd(func(_ context.Context, e *pipeline.TurnEndEvent) error {
			met[pipeline.HookTurnEnd] = true
			values(e.Inputs())
			values(e.Outputs())
			turns(e.Turns())
			entries(e.Entries("kind"))
			e.Turn, e.State, e.Conversation, e.Parent = "meddled", "meddled", "meddled", "meddled"
			return nil
		}),
	))(t)
}

// idler has a handler of every hook that does nothing.
func idler(t *testing.T) *pipeline.Plugin { return onEvery(t, "first", func(pipeline.Event) {}) }

// onEvery is a plugin whose handlers of all hooks call f.
func onEvery(t *testing.T, name string, f func(pipeline.Event)) *pipeline.Plugin {
	opts := []pipeline.Option{pipeline.Version("1.0.0")}
	for _, hook := range pipeline.Hooks() {
		opts = append(opts, pipeline.On(string(hook), func(_ context.Context, e pipeline.Event) (datasets.Value, error) {
			f(e)
			return datasets.Value{}, nil
		}))
	}
	return must(pipeline.NewPlugin(name, opts...))(t)
}

// A handler sees copies: whatever it does to what it was given, the next handler
// sees the same, the same is sent, and the same is recorded.
func TestHandlersSeeCopies(t *testing.T) {
	run := func(first *pipeline.Plugin) (seen []string, sent []string, records []string) {
		m := callsOnce(toolCall("send_email", `{"to":["a"]}`))
		observer := onEvery(t, "second", func(e pipeline.Event) {
			for _, name := range e.Fields() {
				seen = append(seen, fmt.Sprintf("%s.%s = %s", e.Hook(), name, e.Field(name).JSON()))
			}
			if e, ok := e.(pipeline.NoteEvent); ok {
				for _, entry := range e.Entries("kind") {
					seen = append(seen, entry.JSON().JSON())
				}
			}
		})
		settings := must(pipeline.NewPlugin("settings",
			pipeline.OnContext(func(_ context.Context, e *pipeline.ContextEvent) (*pipeline.Change, error) {
				return &pipeline.Change{Sections: []string{"S"}, Without: datasets.RawValue(`["photo"]`)}, nil
			}),
			pipeline.OnBeforeCall(func(_ context.Context, e *pipeline.CallEvent) (*pipeline.Change, error) {
				return &pipeline.Change{Sections: []string{"T"}, Settings: datasets.Values{"seed": datasets.Int(1)}}, nil
			})))(t)
		store := pipeline.NewMemoryStore()
		o := pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{settings, first, observer}}
		chat := must(scriptCaller(m).Converse(parseYAML(t, assistantYAML), "alex", store, o))(t)
		for _, text := range []string{"a", "b", "c"} {
			send(t, chat, text, pipeline.SendOptions{})
			for _, plugin := range []string{"first", "second"} {
				if err := chat.Remember(t.Context(), "", plugin, "kind", datasets.Text(text)); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, r := range m.sent {
			sent = append(sent, r.JSON().JSON())
		}
		for _, v := range must(store.Read(t.Context(), "alex", 0))(t) {
			records = append(records, v.JSON())
		}
		return seen, sent, records
	}
	met := map[pipeline.Hook]bool{}
	seen, sent, records := run(meddler(t, met))
	wantSeen, wantSent, wantRecords := run(idler(t))
	for _, c := range []struct {
		what      string
		got, want []string
	}{{"the next handlers saw", seen, wantSeen}, {"the model was sent", sent, wantSent}, {"the store has", records, wantRecords}} {
		if len(c.want) == 0 || len(c.got) != len(c.want) {
			t.Fatalf("%s %d things, without meddling %d", c.what, len(c.got), len(c.want))
		}
		for i := range c.got {
			if c.got[i] != c.want[i] {
				t.Errorf("%s\n%s\nand without meddling\n%s", c.what, c.got[i], c.want[i])
			}
		}
	}
	for _, hook := range pipeline.Hooks() {
		if !met[hook] {
			t.Errorf("no handler of %s was called", hook)
		}
	}
	// There was something to meddle with.
	all := strings.Join(wantSeen, "\n")
	for _, some := range []string{`"outputs":{"result":"done"},"without":["photo"]`, `before_call.settings = {"seed":1}`, `{"to":["a"]}`, `"data":"a"`} {
		if !strings.Contains(all, some) {
			t.Errorf("the second handlers did not see %s", some)
		}
	}
}
