package star

import (
	"context"
	"errors"
	"fmt"

	"go.starlark.net/starlark"
)

// Event is what a handler is told. The functions are called only while the
// handler runs, from its goroutine.
type Event struct {
	Fields func() []string          // the names of its fields
	Field  func(name string) string // a field as JSON text; "" when there is none of that name

	// What the handler may do besides returning; nil where its hook does not have it.
	Entries  func(kind string) ([]string, error) // what the plugin kept, as JSON, oldest first
	Remember func(kind, data string) error       // keeps something, given as JSON
	Ask      func(reason string) (bool, error)   // asks a person

	// Fresh, when not nil, gives the context that the run goes on with after a
	// person was asked: waiting for one is not the handler's own time.
	Fresh func() context.Context
}

// Call gives the handler an event. It returns what the handler returned: a
// Change, or for a hook that returns something else a dict or list, as JSON; ""
// for None. isChange tells which. The errors are *Error.
func (h *Handler) Call(ctx context.Context, e *Event) (returned string, isChange bool, err error) {
	r := newRun(ctx, h.path, h.opts)
	r.event = e
	t, stop := r.thread(h.Hook)
	defer stop()
	v, err := starlark.Call(t, h.fn, starlark.Tuple{&told{r, h.Hook}}, nil)
	if err != nil {
		return "", false, r.failed(err)
	}
	switch v := v.(type) {
	case starlark.NoneType:
		return "", false, nil
	case *change:
		return v.json, true, nil
	case *starlark.Dict:
		text, err := encode(v, r.opts.Limits.Bytes)
		if err != nil {
			return "", false, &Error{Code: "plugin-change", At: h.At, In: h.fn.Name(), Err: err}
		}
		return text, false, nil
	}
	return "", false, &Error{Code: "plugin-change", At: h.At, In: h.fn.Name(), Err: fmt.Errorf("it returned %s, not a Change or None", a(v))}
}

// told is an event as a handler has it. Each reading of a field is a new copy of
// it, which the handler may change without changing anything else.
type told struct {
	run  *run
	hook string
}

func (e *told) String() string        { return "event of " + e.hook }
func (e *told) Type() string          { return e.hook + " event" }
func (e *told) Truth() starlark.Bool  { return true }
func (e *told) Hash() (uint32, error) { return 0, errors.New("an event cannot be a key") }
func (e *told) Freeze()               {}
func (e *told) AttrNames() []string   { return e.run.event.Fields() }

func (e *told) Attr(name string) (starlark.Value, error) {
	text := e.run.event.Field(name)
	if text == "" {
		return nil, nil // Starlark then says so, and which one may have been meant
	}
	v, err := decode(text, e.run.opts.Limits.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

// eventArg is the event that a builtin was given: it must be the running one, so
// that a handler cannot act on one it kept.
func eventArg(t *starlark.Thread, name string, v starlark.Value) (*told, error) {
	e, ok := v.(*told)
	if !ok {
		return nil, fmt.Errorf("%s: the first argument is the event, not %s", name, a(v))
	}
	if e.run != runOf(t) {
		return nil, fmt.Errorf("%s: the event is another one's", name)
	}
	return e, nil
}

// entries is entries(event, kind): a list of {"turn", "data", "at"}.
func entries(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var v starlark.Value
	var kind string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "event", &v, "kind", &kind); err != nil {
		return nil, err
	}
	e, err := eventArg(t, "entries", v)
	if err != nil {
		return nil, err
	}
	if e.run.event.Entries == nil {
		return nil, fmt.Errorf("entries: a %s handler has none to read", e.hook)
	}
	kept, err := e.run.event.Entries(kind)
	if err != nil {
		return nil, err
	}
	list := make([]starlark.Value, len(kept))
	room := e.run.opts.Limits.Bytes
	for i, text := range kept {
		if list[i], err = decode(text, room); err != nil {
			return nil, fmt.Errorf("entries: %w", err)
		}
		room -= len(text)
	}
	return starlark.NewList(list), nil
}

// remember is remember(event, kind, data).
func remember(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var v, data starlark.Value
	var kind string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "event", &v, "kind", &kind, "data", &data); err != nil {
		return nil, err
	}
	e, err := eventArg(t, "remember", v)
	if err != nil {
		return nil, err
	}
	if e.run.event.Remember == nil {
		return nil, fmt.Errorf("remember: a %s handler keeps nothing", e.hook)
	}
	text, err := encode(data, e.run.opts.Limits.Bytes)
	if err != nil {
		return nil, fmt.Errorf("remember: %w", err)
	}
	return starlark.None, e.run.event.Remember(kind, text)
}

// ask is ask(event, reason): whether a person allows it.
func ask(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var v starlark.Value
	var reason string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "event", &v, "reason", &reason); err != nil {
		return nil, err
	}
	e, err := eventArg(t, "ask", v)
	if err != nil {
		return nil, err
	}
	if e.run.event.Ask == nil {
		return nil, fmt.Errorf("ask: a %s handler asks nobody; tool_call does", e.hook)
	}
	back := e.run.scale.leave()
	defer back()
	allowed, err := e.run.event.Ask(reason)
	if err != nil {
		return nil, err
	}
	if fresh := e.run.event.Fresh; fresh != nil {
		e.run.ctx = fresh()
	}
	return starlark.Bool(allowed), nil
}
