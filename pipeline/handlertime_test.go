package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"evalrun/pipeline"
)

// The time in which a handler waits for its turn, or for what a person says, is not
// its own; the time in which it works is, before and after.
func TestHandlerTimeStandsStill(t *testing.T) {
	const limit = 10 * time.Second
	waits := func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer pipeline.Waiting(ctx)()
		time.Sleep(time.Minute)
		return ctx.Err()
	}
	works := func(d time.Duration) func(context.Context) error {
		return func(ctx context.Context) error {
			if err := ctx.Err(); err != nil { // it looks
				return err
			}
			time.Sleep(d)
			return ctx.Err()
		}
	}
	both := func(list ...func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			for _, do := range list {
				if err := do(ctx); err != nil {
					return err
				}
			}
			return nil
		}
	}
	for _, c := range []struct {
		name  string
		do    func(context.Context) error
		fails bool
	}{
		{"waits", waits, false},
		{"works, waits, works", both(works(6*time.Second), waits, works(3*time.Second)), false},
		{"works too long in all", both(works(6*time.Second), waits, works(6*time.Second)), true},
	} {
		for _, hook := range []string{"before_call", "tool_call"} {
			synctest.Test(t, func(t *testing.T) {
				opt := pipeline.OnBeforeCall(func(ctx context.Context, _ *pipeline.CallEvent) (*pipeline.Change, error) { return nil, c.do(ctx) })
				if hook == "tool_call" {
					opt = pipeline.OnToolCall(func(ctx context.Context, _ *pipeline.ToolCallEvent) (*pipeline.Change, error) { return nil, c.do(ctx) })
				}
				asks, b := withTools(calling([]pipeline.ToolCall{wants("a", "book", `{}`)}))
				asks.Now, asks.HandlerTime, asks.Timeout = time.Now, limit, 30*time.Second
				asks.Process.Plugins = []*pipeline.Plugin{plugin(t, "a", opt)}
				call, err := asks.Ask(t.Context(), program(t, deskYAML), question("x"))
				if err != nil {
					t.Fatal(err)
				}
				if failed := call.Failure != nil || len(b.ran) == 0; failed != c.fails {
					t.Errorf("%s, %s: %v, ran %q", hook, c.name, call.Failure, b.ran)
				}
			})
		}
	}
	// A person, and a function that decides.
	for _, decides := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			slow := func(context.Context, *pipeline.ToolCallEvent) (pipeline.Answer, error) {
				time.Sleep(time.Hour)
				return pipeline.Answer{Allowed: true}, nil
			}
			asks, b := withTools(calling([]pipeline.ToolCall{wants("a", "book", `{}`)}))
			var own pipeline.Decide
			if asks.Approve = slow; decides {
				asks.Approve, own = nil, slow
			}
			asks.Now, asks.HandlerTime = time.Now, limit
			asks.Process.Plugins = []*pipeline.Plugin{plugin(t, "a", pipeline.OnToolCall(func(ctx context.Context, e *pipeline.ToolCallEvent) (*pipeline.Change, error) {
				if err := works(6 * time.Second)(ctx); err != nil {
					return nil, err
				}
				_, err := e.Ask(ctx, "sure?", own)
				return nil, errors.Join(err, works(3*time.Second)(ctx))
			}))}
			if f := ask(t, asks, program(t, deskYAML), question("x")).Failure; f != nil || len(b.ran) != 1 {
				t.Errorf("decides %v: %v, ran %q", decides, f, b.ran)
			}
		})
	}
}

// Of failed checks each Caller is told once for each plugin and kind of error,
// whatever the details.
func TestFailedCheckWarnedOnce(t *testing.T) {
	n := 0
	fails := func(name string) *pipeline.Plugin {
		return plugin(t, name, onTool(func(e *pipeline.ToolCallEvent) (*pipeline.Change, error) {
			n++
			if e.Invocation == 2 {
				return nil, fmt.Errorf("no luck %d: %w", n, context.DeadlineExceeded)
			}
			return nil, errors.New(strings.Repeat("no ", n))
		}))
	}
	p := fails("a")
	for range 2 {
		var told []string
		c, _ := withTools(nil)
		c.Warn = func(text string) { told = append(told, text) }
		for range 2 {
			c.LM.Model = calling([]pipeline.ToolCall{wants("a", "book", `{}`), wants("b", "book", `{}`), wants("c", "book", `{}`)})
			c.Process.Plugins = []*pipeline.Plugin{p}
			asked := question("x")
			asked.Tools = c.Tools // a Caller of its own inside
			ask(t, c, program(t, deskYAML), asked)
		}
		if len(told) != 2 {
			t.Errorf("told %q", told)
		}
		c.LM.Model = calling([]pipeline.ToolCall{wants("a", "book", `{}`)})
		c.Process.Plugins = []*pipeline.Plugin{fails("b")}
		if ask(t, c, program(t, deskYAML), question("x")); len(told) != 3 || !strings.Contains(told[2], "plugin b") {
			t.Errorf("of another plugin: told %q", told)
		}
	}
}

// A handler that sends a turn to the conversation whose turn it handles is refused,
// and does not wait for itself.
func TestSendFromHandler(t *testing.T) {
	for _, o := range []pipeline.SendOptions{{}, {Nested: true}} {
		for _, hook := range []pipeline.Hook{pipeline.HookTurnStart, pipeline.HookContext, pipeline.HookTurnEnd} {
			if o.Nested && hook == pipeline.HookTurnEnd {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				var chat *pipeline.Conversation
				var err error
				inner := func(ctx context.Context) {
					began := time.Now()
					if _, err = chat.Send(ctx, message("inner"), o); time.Since(began) > 0 {
						t.Errorf("%s: it waited", hook)
					}
				}
				opt := pipeline.OnTurnEnd(func(ctx context.Context, _ *pipeline.TurnEndEvent) error { inner(ctx); return nil })
				switch hook {
				case pipeline.HookTurnStart:
					opt = pipeline.OnTurnStart(func(ctx context.Context, _ *pipeline.TurnStartEvent) (*pipeline.Change, error) {
						inner(ctx)
						return nil, nil
					})
				case pipeline.HookContext:
					opt = pipeline.OnContext(func(ctx context.Context, _ *pipeline.ContextEvent) (*pipeline.Change, error) {
						inner(ctx)
						return nil, nil
					})
				}
				chat = converse(t, talker("a", &model{answer: echo}), pipeline.NewMemoryStore(), pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{plugin(t, "a", opt)}})
				turn := send(t, chat, "outer", pipeline.SendOptions{})
				if turn.State != pipeline.TurnDone {
					t.Errorf("%s: %+v", hook, turn)
				}
				failsWith(t, err, "conversation-nested", "ada")
			})
		}
	}
}

// The record of a resumed call has nothing of what today's plugins would change
// about a tool that ran without any change.
func TestNothingOfResumed(t *testing.T) {
	store := pipeline.NewMemoryStore()
	m, b := &model{answer: clerk}, &tools{}
	turn, err := clerkChat(t, "a", m, b, store, pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{asker(t, "money")}}).Send(t.Context(), message("go"), pipeline.SendOptions{})
	if err != nil || turn.State != pipeline.TurnWaiting {
		t.Fatal(turn, err)
	}
	today := plugin(t, "today", onTool(func(e *pipeline.ToolCallEvent) (*pipeline.Change, error) {
		return &pipeline.Change{Inputs: message("today")}, nil
	}))
	chat := clerkChat(t, "b", m, b, store, pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{today, asker(t, "money")}})
	if err := chat.Answer(t.Context(), turn.ID, 1, "money", pipeline.Answer{Allowed: true}); err != nil {
		t.Fatal(err)
	}
	if turn, err = chat.Resume(t.Context(), turn.ID, pipeline.TurnOptions{}); err != nil || turn.State != pipeline.TurnDone {
		t.Fatal(turn, err)
	}
	if got := kept(turn.Record); len(got) != 1 || len(b.ran) != 2 {
		t.Errorf("two tools ran, the second with a change: ran %q, changes %q", b.ran, got)
	}
}

// A call without plugins pays nothing for there being plugins: the environment's
// layers may be there and be empty, and one that is never reached costs nothing.
func TestNoPluginsNoCost(t *testing.T) {
	m := &model{answer: func(int, *pipeline.Request) (*pipeline.Reply, error) {
		return &pipeline.Reply{Text: "<result>\nrepair\n</result>"}, nil
	}}
	p := program(t, routeYAML)
	cost := func(c *pipeline.Caller) float64 {
		return testing.AllocsPerRun(200, func() {
			m.mu.Lock()
			m.sent = m.sent[:0]
			m.mu.Unlock()
			ask(t, c, p, pipeline.Ask{Inputs: ticket("x")})
		})
	}
	bare, layered, idle := caller(m), caller(m), caller(m)
	layered.Conversation.Plugins, layered.Process.Plugins = []*pipeline.Plugin{}, []*pipeline.Plugin{}
	idle.Process.Plugins = []*pipeline.Plugin{plugin(t, "idle", onTool(func(*pipeline.ToolCallEvent) (*pipeline.Change, error) { return nil, nil }))}
	base := cost(bare)
	if got := cost(layered); got > base {
		t.Errorf("%v allocations, and %v with empty layers", base, got)
	}
	// The list of layers, and the list of plugins.
	if got := cost(idle); got > base+2 {
		t.Errorf("%v allocations, and %v with a plugin of which nothing is called", base, got)
	}
}
