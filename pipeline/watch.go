package pipeline

import (
	"context"
	"time"

	"evalrun/datasets"
)

// Handled is one handler's handling of an event: what it was told, what it asked
// for, and how long it took. What came of it is what the next handler of the hook
// is told.
type Handled struct {
	Plugin, Version string
	Hook            Hook
	Event           datasets.Values // the event's fields, before the handler
	Change          datasets.Value  // what it returned; no value when nothing
	Asked           *Answer         // what a person said of the tool call; nil when nobody answered it
	Err             error
	Took            time.Duration
}

// Watch returns a plugin like p that tells of everything its handlers do. To
// watch a call, put watched plugins in the places of the plugins of every layer:
// one for each, so that a plugin in several layers stays the same one.
func Watch(p *Plugin, now func() time.Time, see func(Handled)) *Plugin {
	w := &watcher{p, now, see}
	c := *p
	c.turnStart = watched(w, p.turnStart, (*Change).data)
	c.context = watched(w, p.context, (*Change).data)
	c.beforeCall = watched(w, p.beforeCall, (*Change).data)
	c.request = watched(w, p.request, func(r *Request) datasets.Value {
		if r == nil {
			return datasets.Value{}
		}
		return datasets.Values{"request": r.JSON()}.Object()
	})
	c.toolCall = watched(w, p.toolCall, (*Change).data)
	c.toolResult = watched(w, p.toolResult, (*Change).data)
	return &c
}

type watcher struct {
	plugin *Plugin
	now    func() time.Time
	see    func(Handled)
}

// data is the change as data; no value when there is none.
func (c *Change) data() datasets.Value {
	if c == nil || len(c.fields()) == 0 {
		return datasets.Value{}
	}
	return c.object()
}

func watched[E Event, R any](w *watcher, handlers []func(context.Context, E) (R, error), data func(R) datasets.Value) []func(context.Context, E) (R, error) {
	var all []func(context.Context, E) (R, error)
	for _, handle := range handlers {
		all = append(all, func(ctx context.Context, e E) (R, error) {
			h := Handled{Plugin: w.plugin.name, Version: w.plugin.version, Hook: e.Hook(), Event: datasets.Values{}}
			for _, name := range e.Fields() {
				h.Event[name] = e.Field(name)
			}
			if call, ok := any(e).(*ToolCallEvent); ok {
				call.asker = &listening{call.asker, &h}
			}
			began := w.now()
			r, err := handle(ctx, e)
			h.Took, h.Err = w.now().Sub(began), err
			if err == nil {
				h.Change = data(r)
			}
			w.see(h)
			return r, err
		})
	}
	return all
}

// listening is an asker that tells what was answered. A no stands, whatever is
// answered after it.
type listening struct {
	asker
	to *Handled
}

func (l *listening) ask(ctx context.Context, e *ToolCallEvent, reason string, decide Decide) (Answer, error) {
	answer, err := l.asker.ask(ctx, e, reason, decide)
	if err == nil && (l.to.Asked == nil || l.to.Asked.Allowed) {
		l.to.Asked = &answer
	}
	return answer, err
}
