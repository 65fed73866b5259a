package pipeline_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// A handler has so much time, of its own, and a context that says when it is over.
func TestHandlerTime(t *testing.T) {
	m := &model{answer: func(int, *pipeline.Request) (*pipeline.Reply, error) {
		return &pipeline.Reply{Text: "<result>\nrepair\n</result>"}, nil
	}}
	waits := func(ctx context.Context) error {
		inner, cancel := context.WithCancel(ctx) // made of it, as a client does
		defer cancel()
		<-inner.Done()
		return inner.Err()
	}
	for _, c := range []struct {
		name   string
		limit  time.Duration
		call   time.Duration // the call's own limit
		handle func(context.Context) error
		fails  string // code, or type where there is none
		took   time.Duration
	}{
		{"30 s unless told", 0, 0, waits, "plugin-failed", 30 * time.Second},
		{"as told", time.Second, 0, waits, "plugin-failed", time.Second},
		{"each handler its own", 3 * time.Second, 0, func(ctx context.Context) error {
			if err := ctx.Err(); err != nil { // it begins now
				return err
			}
			time.Sleep(2 * time.Second)
			return ctx.Err()
		}, "", 4 * time.Second},
		{"the call's is over first", time.Minute, time.Second, waits, "plugin-failed", time.Second},
		{"one that does not look takes its time", time.Second, 0, func(context.Context) error { time.Sleep(time.Minute); return nil }, "", 2 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var kept context.Context
				p, err := pipeline.NewPlugin("slow", pipeline.OnBeforeCall(func(ctx context.Context, _ *pipeline.CallEvent) (*pipeline.Change, error) {
					kept = ctx
					return nil, c.handle(ctx)
				}), pipeline.OnRequest(func(ctx context.Context, _ *pipeline.RequestEvent) (*pipeline.Request, error) {
					return nil, c.handle(ctx)
				}))
				if err != nil {
					t.Fatal(err)
				}
				asks := caller(m)
				asks.Now, asks.HandlerTime, asks.Timeout = time.Now, c.limit, c.call
				began := time.Now()
				call, err := asks.Ask(t.Context(), program(t, routeYAML).WithPlugins(p), pipeline.Ask{Inputs: ticket("x")})
				if err != nil {
					t.Fatal(err)
				}
				got := ""
				if f := call.Failure; f != nil {
					if got = f.Code; got == "" {
						got = f.Type
					}
					if f.Code == "plugin-failed" && !strings.Contains(f.Message, "longer than") && !strings.Contains(f.Message, "still at work") {
						t.Errorf("the message is %q", f.Message)
					}
				}
				if took := time.Since(began); got != c.fails || took != c.took {
					t.Errorf("failed with %q after %s, want %q after %s", got, took, c.fails, c.took)
				}
				if c.limit == 3*time.Second && kept.Err() == nil {
					t.Error("the handler has returned, and its context goes on")
				}
			})
		})
	}
}

// A time that a handler gives itself is its own: when it is over the handler has
// failed, and a tool it was to check is blocked. Only the end of the call's context
// ends the call.
func TestHandlersOwnTime(t *testing.T) {
	looks := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		<-ctx.Done()
		return fmt.Errorf("looking it up: %w", ctx.Err())
	}
	for hook, opt := range map[pipeline.Hook]pipeline.Option{
		pipeline.HookBeforeCall: pipeline.OnBeforeCall(func(context.Context, *pipeline.CallEvent) (*pipeline.Change, error) { return nil, looks() }),
		pipeline.HookRequest:    pipeline.OnRequest(func(context.Context, *pipeline.RequestEvent) (*pipeline.Request, error) { return nil, looks() }),
		pipeline.HookToolCall:   onTool(func(*pipeline.ToolCallEvent) (*pipeline.Change, error) { return nil, looks() }),
		pipeline.HookToolResult: onResult(func(*pipeline.ToolResultEvent) (*pipeline.Change, error) { return nil, looks() }),
	} {
		m := calling([]pipeline.ToolCall{wants("a", "book", `{}`)})
		c, b := withTools(m)
		c.Process.Plugins = []*pipeline.Plugin{plugin(t, "looks", opt)}
		f := ask(t, c, program(t, deskYAML), question("x")).Failure
		if hook == pipeline.HookToolCall {
			if told := results(m.sent[len(m.sent)-1]); f != nil || len(b.ran) > 0 || !strings.Contains(told[0], "a check on this tool call failed (looks)") {
				t.Errorf("tool_call: %v, ran %q, told %q", f, b.ran, told)
			}
			continue
		}
		if f == nil || f.Code != "plugin-failed" || f.Type != pipeline.TypePlugin || f.Plugin != "looks" || f.Hook != hook {
			t.Errorf("%s: %+v", hook, f)
		}
	}
}

// A value that is none, or no JSON, is refused where a change or a request has it.
func TestChangeWithoutValue(t *testing.T) {
	for _, v := range []datasets.Value{{}, datasets.RawValue("{"), datasets.RawValue("1e400")} {
		vs := datasets.Values{"temperature": v}
		for name, opt := range map[string]pipeline.Option{
			"setting": pipeline.OnBeforeCall(func(context.Context, *pipeline.CallEvent) (*pipeline.Change, error) {
				return &pipeline.Change{Settings: vs}, nil
			}),
			"input": onTool(func(*pipeline.ToolCallEvent) (*pipeline.Change, error) { return &pipeline.Change{Inputs: vs}, nil }),
			"config": pipeline.OnRequest(func(_ context.Context, e *pipeline.RequestEvent) (*pipeline.Request, error) {
				e.Request.Config = vs
				return e.Request, nil
			}),
		} {
			c, b := withTools(calling([]pipeline.ToolCall{wants("a", "book", `{}`)}))
			c.Process.Plugins = []*pipeline.Plugin{plugin(t, "wrong", opt)}
			f := ask(t, c, program(t, deskYAML), question("x")).Failure
			if f == nil || f.Code != "plugin-change" || f.Plugin != "wrong" || f.Hook == "" || !strings.Contains(f.Message, "temperature") || len(b.ran) > 0 {
				t.Errorf("%s %q: %v, ran %q", name, v.JSON(), f, b.ran)
			}
		}
		if v.IsZero() {
			continue // nothing is left out
		}
		wrong := plugin(t, "wrong", pipeline.OnContext(func(context.Context, *pipeline.ContextEvent) (*pipeline.Change, error) {
			return &pipeline.Change{Without: v}, nil
		}))
		_, err := converse(t, talker("a", &model{answer: echo}), pipeline.NewMemoryStore(), pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{wrong}}).
			Send(t.Context(), message("x"), pipeline.SendOptions{})
		failsWith(t, err, "plugin-change", "without")
	}
}
