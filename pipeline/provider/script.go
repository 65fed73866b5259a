package provider

import (
	"context"
	"strings"
	"sync/atomic"

	"evalrun/pipeline"
)

// Script is a model for tests: it answers as it was told to, and counts. It
// takes no time of its own.
type Script struct {
	answer func(ctx context.Context, n int, req *pipeline.Request) (*pipeline.Reply, error)
	asked  atomic.Int64
}

// Line is one thing a script says. It is for the requests that both Has and Nth
// fit; a zero Line answers every request with an empty text.
type Line struct {
	Has   string                      // a text that the system text or a message must hold; "" is any
	Nth   int                         // the request's place among those the script got, from 1; 0 is any
	Text  string                      // what it says
	Reply *pipeline.Reply             // the whole reply, instead of Text; every request gets a copy
	Err   error                       // what fails, instead of a reply
	Wait  func(context.Context) error // comes first: a test holds the request here; an error ends it
}

// NewScript returns a script of lines: the first that fits a request answers it.
// A request that none fits fails. Where requests are asked at the same time,
// which one is the Nth is chance: tell them apart by Has.
func NewScript(lines ...Line) *Script {
	return ScriptFunc(func(ctx context.Context, n int, req *pipeline.Request) (*pipeline.Reply, error) {
		for i := range lines {
			if lines[i].fits(n, req) {
				return lines[i].say(ctx)
			}
		}
		return nil, pipeline.Failf(pipeline.TypeServer, "script", "none of the script's %d lines fits request %d", len(lines), n)
	})
}

// ScriptFunc returns a script that answers by calling f with the number of the
// request, from 1. f may be called by several goroutines at once.
func ScriptFunc(f func(ctx context.Context, n int, req *pipeline.Request) (*pipeline.Reply, error)) *Script {
	return &Script{answer: f}
}

// Calls is the number of requests the script got.
func (s *Script) Calls() int { return int(s.asked.Load()) }

// Generate answers as the script says.
func (s *Script) Generate(ctx context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
	n := s.asked.Add(1)
	if err := ended(ctx); err != nil {
		return nil, err
	}
	return s.answer(ctx, int(n), req)
}

func (l *Line) fits(n int, req *pipeline.Request) bool {
	return (l.Nth == 0 || l.Nth == n) && (l.Has == "" || holds(req, l.Has))
}

func holds(req *pipeline.Request, text string) bool {
	if strings.Contains(req.System, text) {
		return true
	}
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if strings.Contains(p.Text, text) {
				return true
			}
		}
	}
	return false
}

func (l *Line) say(ctx context.Context) (*pipeline.Reply, error) {
	if l.Wait != nil {
		if err := l.Wait(ctx); err != nil {
			if over := ended(ctx); over != nil {
				return nil, over
			}
			return nil, err
		}
	}
	if l.Err != nil {
		return nil, l.Err
	}
	reply := pipeline.Reply{Text: l.Text, Finish: "stop"}
	if l.Reply != nil {
		reply = *l.Reply
	}
	if reply.Provider == "" {
		reply.Provider = "script"
	}
	return &reply, nil
}
