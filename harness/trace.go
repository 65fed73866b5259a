package harness

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/replay/journal"
)

// Traced is one handler's handling of an event, and what came of it.
type Traced struct {
	pipeline.Handled

	// After are the event's fields as the next handler would be told them; nil when
	// none would be: this one failed, blocked the tool, or asked for what is refused.
	After datasets.Values
}

// Trace gets one answer of the run again and tells what every handler did on the
// way, in order. Deterministic models are asked. Of others, and of tools that run,
// the run's journal is read: where it knows nothing the call ends with a failure
// of code [journal.NotAnswered]. Nothing else is asked or run, and nothing is
// written. The plan is the run's, as it is checked now.
func (r *Run) Trace(ctx context.Context, c *Checked, t Task) ([]Traced, *pipeline.Call, error) {
	j, err := journal.Read(filepath.Join(r.Dir, JournalDir))
	if err != nil {
		return nil, nil, err
	}
	defer j.Close()
	row, err := c.plan.Rows.At(t.Row)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrRows, err)
	}
	w := &watch{watched: map[*pipeline.Plugin]*pipeline.Plugin{}}
	traced := *c
	traced.plan.Candidates = slices.Clone(c.plan.Candidates)
	cand := &traced.plan.Candidates[t.Candidate]
	cand.Caller = journaled(cand.Caller, j)
	if len(cand.Tools.Live) > 0 {
		cand.Caller.Tools = j.Toolbox(cand.Caller.Tools)
	}
	if err := w.around(cand); err != nil {
		return nil, nil, err
	}
	_, call, err := traced.worker(Options{}).ask(ctx, t, &row)
	return w.traced(), call, err
}

// watch sees what the handlers around one call, and those made inside it, do.
type watch struct {
	watched map[*pipeline.Plugin]*pipeline.Plugin

	mu   sync.Mutex
	seen []sighting
}

// sighting is what a handler did. The last one of a hook is the watch's own, which
// is told what the others left.
type sighting struct {
	pipeline.Handled
	last bool
}

func (w *watch) see(last bool) func(pipeline.Handled) {
	return func(h pipeline.Handled) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.seen = append(w.seen, sighting{h, last})
	}
}

// around puts watched plugins in the places of all that are around a candidate,
// whose caller is its own.
func (w *watch) around(cand *Candidate) error {
	last, err := pipeline.NewPlugin("last",
		pipeline.OnBeforeCall(func(context.Context, *pipeline.CallEvent) (*pipeline.Change, error) { return nil, nil }),
		pipeline.OnRequest(func(context.Context, *pipeline.RequestEvent) (*pipeline.Request, error) { return nil, nil }),
		pipeline.OnToolCall(func(context.Context, *pipeline.ToolCallEvent) (*pipeline.Change, error) { return nil, nil }),
		pipeline.OnToolResult(func(context.Context, *pipeline.ToolResultEvent) (*pipeline.Change, error) { return nil, nil }))
	if err != nil {
		return err
	}
	caller := cand.Caller
	all := func(list []*pipeline.Plugin) []*pipeline.Plugin {
		var out []*pipeline.Plugin
		for _, p := range list {
			if w.watched[p] == nil {
				w.watched[p] = pipeline.Watch(p, caller.Now, w.see(false))
			}
			out = append(out, w.watched[p])
		}
		return out
	}
	cand.Program = cand.Program.WithPlugins(all(cand.Program.Plugins())...)
	caller.Conversation.Plugins = all(caller.Conversation.Plugins)
	caller.Process.Plugins = append(all(caller.Process.Plugins), pipeline.Watch(last, caller.Now, w.see(true)))
	if caller.Approval != nil {
		caller.Approval = all([]*pipeline.Plugin{caller.Approval})[0]
	}
	return nil
}

// traced pairs what was seen with what came of it.
func (w *watch) traced() []Traced {
	var list []Traced
	for i, h := range w.seen {
		if h.last {
			continue
		}
		t := Traced{Handled: h.Handled}
		switch {
		case h.Err != nil || h.Asked != nil && !h.Asked.Allowed:
		case h.Change.IsZero():
			t.After = h.Event
		case i+1 < len(w.seen) && sameEvent(&h, &w.seen[i+1]):
			t.After = w.seen[i+1].Event
		}
		list = append(list, t)
	}
	return list
}

// sameEvent reports whether the second was told what the first left.
func sameEvent(a, b *sighting) bool {
	return a.Hook == b.Hook && a.Event["path"].Equal(b.Event["path"]) && a.Event["invocation"].Equal(b.Event["invocation"])
}
