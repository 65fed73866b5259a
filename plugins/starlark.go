package plugins

import (
	"context"
	"errors"
	"fmt"

	"evalrun/datasets"
	"evalrun/internal/star"
	"evalrun/pipeline"
)

// loadStarlark makes a plugin of a Starlark file.
func (l *Loader) loadStarlark(ctx context.Context, path string, source []byte) (*pipeline.Plugin, error) {
	made, err := star.Load(ctx, path, source, star.Options{Hooks: hookNames(), Print: l.opts.Stderr, Limits: star.Limits{Memory: l.opts.Memory}})
	if err != nil {
		code := "plugin-load"
		if e, ok := errors.AsType[*star.Error](err); ok && e.Code != "" {
			code = e.Code
		}
		return nil, pipeline.Failf(pipeline.TypePlugin, code, "%v", err)
	}
	opts := []pipeline.Option{pipeline.Description(made.Description)}
	if made.Version != "" {
		opts = append(opts, pipeline.Version(made.Version))
	}
	if made.API != 0 {
		opts = append(opts, pipeline.RequireAPI(made.API))
	}
	for _, h := range made.Handlers {
		opts = append(opts, pipeline.On(h.Hook, l.starlarkHandler(made.Name, h)))
	}
	p, err := pipeline.NewPlugin(made.Name, opts...)
	if err != nil {
		return nil, at(made.At, err)
	}
	return p, nil
}

// starlarkHandler tells a Starlark function events.
func (l *Loader) starlarkHandler(plugin string, h *star.Handler) pipeline.DataHandler {
	what := "its handler at " + h.At
	return func(ctx context.Context, e pipeline.Event) (datasets.Value, error) {
		limited, cancel := l.limited(ctx, what)
		defer func() { cancel() }()
		told := &star.Event{Fields: e.Fields, Field: func(name string) string { return e.Field(name).JSON() }}
		can := abilitiesOf(e)
		if can.entries != nil {
			told.Entries = func(kind string) ([]string, error) {
				var list []string
				for _, entry := range can.entries(kind) {
					list = append(list, entry.JSON().JSON())
				}
				return list, nil
			}
		}
		if can.remember != nil {
			told.Remember = func(kind, data string) error { return can.remember(kind, datasets.RawValue(data)) }
		}
		if can.ask != nil {
			told.Ask = func(reason string) (bool, error) {
				answer, err := can.ask(ctx, reason)
				return answer.Allowed, err
			}
			told.Fresh = func() context.Context {
				cancel()
				limited, cancel = l.limited(ctx, what)
				return limited
			}
		}

		returned, isChange, err := h.Call(limited, told)
		if err != nil {
			if ctx.Err() != nil {
				return datasets.Value{}, context.Cause(ctx)
			}
			if bad, ok := errors.AsType[*star.Error](err); ok && bad.Code != "" {
				return datasets.Value{}, changeFailed(plugin, e.Hook(), bad.Error())
			}
			return datasets.Value{}, err
		}
		switch isRequest := e.Hook() == pipeline.HookRequest; {
		case returned == "":
			return datasets.Value{}, nil
		case isRequest && isChange:
			return datasets.Value{}, changeFailed(plugin, e.Hook(), h.At+": a handler of request returns the whole request, as a dict, or None; not a Change")
		case isRequest:
			return datasets.RawValue(`{"request":` + returned + `}`), nil
		case !isChange:
			return datasets.Value{}, changeFailed(plugin, e.Hook(), h.At+": it returned a dict, not a Change or None")
		}
		return datasets.RawValue(returned), nil
	}
}

func changeFailed(plugin string, hook pipeline.Hook, message string) *pipeline.Failure {
	f := pipeline.Failf(pipeline.TypePlugin, "plugin-change", "%s", message)
	f.Plugin, f.Hook = plugin, hook
	return f
}

// abilities are what a handler of an event may do besides returning; nil where
// its hook does not have it.
type abilities struct {
	entries  func(kind string) []pipeline.Entry
	remember func(kind string, data datasets.Value) error
	ask      func(ctx context.Context, reason string) (pipeline.Answer, error)
}

func abilitiesOf(e pipeline.Event) abilities {
	var can abilities
	switch e := e.(type) {
	case *pipeline.ContextEvent:
		can.entries = e.Entries // it may run again before the turn is recorded: it keeps nothing
	case pipeline.NoteEvent:
		can.entries, can.remember = e.Entries, e.Remember
	case *pipeline.ToolCallEvent:
		can.ask = func(ctx context.Context, reason string) (pipeline.Answer, error) { return e.Ask(ctx, reason, nil) }
	case *pipeline.TurnStartEvent:
		// The turn has no place on the branch yet: nothing is there to read.
		can.entries = func(string) []pipeline.Entry { return nil }
		can.remember = func(string, datasets.Value) error {
			return fmt.Errorf("a turn that is about to start keeps nothing yet")
		}
	}
	return can
}
