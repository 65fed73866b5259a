package provider_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"evalrun/pipeline"
	"evalrun/pipeline/provider"
	"evalrun/pipeline/provider/providertest"
)

func TestScript(t *testing.T) {
	overloaded := pipeline.Failf(pipeline.TypeRateLimit, "", "slow down")
	s := provider.NewScript(
		provider.Line{Nth: 2, Err: overloaded},
		provider.Line{Has: "hinge", Text: "repair"},
		provider.Line{Has: "customer wants", Nth: 4, Reply: &pipeline.Reply{Text: "refund", Provider: "test", Usage: pipeline.Usage{Input: new(int64(3))}}},
	)
	say := func(ticket string) (*pipeline.Reply, error) { return s.Generate(t.Context(), route(ticket)) }

	if reply, err := say("A bent hinge"); err != nil || reply.Text != "repair" || reply.Provider != "script" {
		t.Errorf("the first request: %+v, %v", reply, err)
	}
	if reply, err := say("A bent hinge"); !errors.Is(err, overloaded) {
		t.Errorf("the second request: %+v, %v", reply, err)
	}
	if reply, err := say("Money"); err == nil || !strings.Contains(err.Error(), "none of the script's 3 lines fits request 3") {
		t.Errorf("a request that no line fits: %+v, %v", reply, err)
	}
	if reply, err := say("Money"); err != nil || reply.Text != "refund" || *reply.Usage.Input != 3 || reply.Provider != "test" {
		t.Errorf("the fourth request: %+v, %v", reply, err)
	}
	if s.Calls() != 4 {
		t.Errorf("Calls() = %d, want 4", s.Calls())
	}
}

// TestScriptWaits: a test can hold a request, let it go, or make the wait fail.
func TestScriptWaits(t *testing.T) {
	release := make(chan struct{})
	broken := errors.New("the line broke")
	s := provider.NewScript(
		provider.Line{Has: "hold", Text: "done", Wait: func(ctx context.Context) error {
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}},
		provider.Line{Has: "break", Wait: func(context.Context) error { return broken }},
	)
	held := make(chan string)
	go func() {
		reply, err := s.Generate(t.Context(), route("hold"))
		if err != nil {
			held <- err.Error()
			return
		}
		held <- reply.Text
	}()
	select {
	case got := <-held:
		t.Errorf("not held, but %q", got)
	default:
	}
	close(release)
	if got := <-held; got != "done" {
		t.Errorf("let go: %q", got)
	}
	if _, err := s.Generate(t.Context(), route("break")); !errors.Is(err, broken) {
		t.Errorf("the wait failed: %v", err)
	}
}

func TestScriptKeepsPromises(t *testing.T) {
	reply := &pipeline.Reply{Text: "refund"}
	if err := providertest.Check(provider.NewScript(
		provider.Line{Has: "\none\n", Text: "repair"},
		provider.Line{Has: "\ntwo\n", Reply: reply},
		provider.Line{Has: "\nwait\n", Wait: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
	), providertest.Case{
		Answers: []*pipeline.Request{route("one"), route("two")},
		Fails:   []*pipeline.Request{route("three")},
		Waits:   route("wait"),
	}); err != nil {
		t.Error(err)
	}
	if reply.Provider != "" {
		t.Error("the line's reply was written to")
	}
}

func BenchmarkScript(b *testing.B) {
	s := provider.NewScript(provider.Line{Text: "<result>\nrefund\n</result>"})
	r := route("one")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Generate(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}
