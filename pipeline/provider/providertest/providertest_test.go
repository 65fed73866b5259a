package providertest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
)

type model func(context.Context, *pipeline.Request) (*pipeline.Reply, error)

func (m model) Generate(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
	return m(ctx, r)
}

// good answers by the book; each model below breaks one promise.
func good(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
	if ctx.Err() != nil {
		return nil, pipeline.Failf(pipeline.TypeCancelled, "", "canceled")
	}
	switch r.System {
	case "fail":
		return nil, pipeline.Failf(pipeline.TypeServer, "", "no such question")
	case "wait":
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &pipeline.Reply{Text: "yes", Provider: "test"}, nil
}

func request(system string) *pipeline.Request {
	return &pipeline.Request{System: system, Messages: []pipeline.Message{pipeline.TextMessage("user", "?")}}
}

func TestCheck(t *testing.T) {
	shared := &pipeline.Reply{Text: "yes", Provider: "test"}
	var calls atomic.Int64
	for _, c := range []struct {
		name, want string // want "": nothing is broken
		m          model
	}{
		{"good", "", good},
		{"no reply", "neither a reply nor an error", func(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
			return nil, nil
		}},
		{"both", "both a reply and the error", func(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
			return &pipeline.Reply{Text: "yes", Provider: "test"}, pipeline.Failf(pipeline.TypeServer, "", "x")
		}},
		{"never fails", "want an error, got the reply", func(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
			return &pipeline.Reply{Text: "yes", Provider: "test"}, nil
		}},
		{"never answers", `want a reply, got the error "x"`, func(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
			return nil, pipeline.Failf(pipeline.TypeServer, "", "x")
		}},
		{"changes the request", "the request was changed", func(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
			if ctx.Err() == nil && r.System == "answer" && calls.Add(1) == 1 { // once: not a data race of its own
				r.Messages = append(r.Messages, pipeline.TextMessage("user", "!"))
			}
			return good(ctx, r)
		}},
		{"plain error", "not a *pipeline.Failure", func(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
			if r.System == "fail" {
				return nil, errors.New("no such question")
			}
			return good(ctx, r)
		}},
		{"unknown type", `type "Oops" is none of pipeline's`, func(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
			if r.System == "fail" {
				return nil, pipeline.Failf("Oops", "", "no such question")
			}
			return good(ctx, r)
		}},
		{"no message", "no message", func(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
			if r.System == "fail" {
				return nil, pipeline.Failf(pipeline.TypeServer, "", "")
			}
			return good(ctx, r)
		}},
		{"ignores a context that is over", "want an error, since the context was over", func(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
			return good(context.WithoutCancel(ctx), withoutWait(r))
		}},
		{"blames the server", "the context was over, and the failure is a ServerError", func(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
			if ctx.Err() != nil {
				return nil, pipeline.Failf(pipeline.TypeServer, "", "gone")
			}
			return good(ctx, r)
		}},
		{"nobody answered", "Provider is empty", func(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
			reply, err := good(ctx, r)
			if reply != nil {
				reply.Provider = ""
			}
			return reply, err
		}},
		{"negative usage", "the usage has -1 tokens", func(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
			reply, err := good(ctx, r)
			if reply != nil {
				reply.Usage.Input = new(int64(-1))
			}
			return reply, err
		}},
		{"shares replies", "replies are shared", func(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
			if reply, err := good(ctx, r); reply == nil {
				return nil, err
			}
			return shared, nil
		}},
		{"says its key", "the secret is in what came back", func(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
			reply, err := good(ctx, r)
			if reply != nil {
				reply.Response = datasets.Text("key-123")
			}
			return reply, err
		}},
		{"says its key when it fails", "the secret is in what came back", func(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
			if r.System == "fail" {
				return nil, pipeline.Failf(pipeline.TypeRefusal, "", "wrong key key-123")
			}
			return good(ctx, r)
		}},
		{"does not hear that it is canceled", "Waits, canceled: the context was over, and the failure is a ServerError", func(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
			reply, err := good(ctx, r)
			if errors.Is(err, context.Canceled) {
				return nil, pipeline.Failf(pipeline.TypeServer, "", "gone")
			}
			return reply, err
		}},
		{"another answer later", "when asked alone", func(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
			reply, err := good(ctx, r)
			if reply != nil && calls.Add(1) > 4 {
				reply.Text = "no"
			}
			return reply, err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls.Store(0)
			err := Check(c.m, Case{Answers: []*pipeline.Request{request("answer"), request("more")}, Fails: []*pipeline.Request{request("fail")}, Waits: request("wait"), Secret: "key-123"})
			switch {
			case c.want == "" && err != nil:
				t.Errorf("a good model: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if Check(model(good), Case{}) == nil {
		t.Error("a case that asks nothing passes")
	}
}

// withoutWait keeps a model that ignores its context from waiting for ever.
func withoutWait(r *pipeline.Request) *pipeline.Request {
	if r.System == "wait" {
		return request("answer")
	}
	return r
}
