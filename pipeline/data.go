package pipeline

import (
	"context"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"evalrun/datasets"
	"evalrun/internal/conf"
)

// Event is what a handler is told, as data: for plugins whose handlers are not
// written in Go.
type Event interface {
	Hook() Hook
	Fields() []string                 // the names of its fields, in the manual's order
	Field(name string) datasets.Value // copies nothing until it is asked; null where there is none; no value for a name it does not have
}

// NoteEvent is an Event whose plugin may read entries and, where the hook allows
// it, keep them.
type NoteEvent interface {
	Event
	Entries(kind string) []Entry
	Remember(kind string, data datasets.Value) error
}

// DataHandler is told an event as data and returns its change as data: an object
// of the fields of a [Change], or for request {"request": …}; no value, or null,
// is no change. Unknown fields refuse plugin-change.
type DataHandler func(context.Context, Event) (datasets.Value, error)

// onData registers a DataHandler; nil when there is no such hook.
func onData(hook Hook, h DataHandler) Option {
	change := func(ctx context.Context, e Event) (*Change, error) {
		v, err := h(ctx, e)
		if err != nil || v.IsZero() || v.IsNull() {
			return nil, err
		}
		return ParseChange(v)
	}
	switch hook {
	case HookTurnStart:
		return OnTurnStart(func(ctx context.Context, e *TurnStartEvent) (*Change, error) { return change(ctx, e) })
	case HookContext:
		return OnContext(func(ctx context.Context, e *ContextEvent) (*Change, error) { return change(ctx, e) })
	case HookBeforeCall:
		return OnBeforeCall(func(ctx context.Context, e *CallEvent) (*Change, error) { return change(ctx, e) })
	case HookToolCall:
		return OnToolCall(func(ctx context.Context, e *ToolCallEvent) (*Change, error) { return change(ctx, e) })
	case HookToolResult:
		return OnToolResult(func(ctx context.Context, e *ToolResultEvent) (*Change, error) { return change(ctx, e) })
	case HookRequest:
		return OnRequest(func(ctx context.Context, e *RequestEvent) (*Request, error) {
			v, err := h(ctx, e)
			if err != nil || v.IsZero() || v.IsNull() {
				return nil, err
			}
			members := datasets.ValuesOf(v)
			if len(members) != 1 || members["request"].IsZero() {
				return nil, Failf(TypePlugin, "plugin-change", `a request handler returns {"request": …} or nothing, not %s`, v.JSON())
			}
			r, err := ParseRequest(members["request"])
			if err != nil {
				return nil, Failf(TypePlugin, "plugin-change", "%v", err)
			}
			return r, nil
		})
	case HookTurnEnd:
		return OnTurnEnd(func(ctx context.Context, e *TurnEndEvent) error {
			v, err := h(ctx, e)
			if err == nil && !v.IsZero() && !v.IsNull() {
				err = Failf(TypePlugin, "plugin-change", "turn_end only hears: it takes no change")
			}
			return err
		})
	}
	return nil
}

// ParseChange reads a change from data, as a [DataHandler] returns it. What is no
// change, and a field that is unknown or of another kind, is plugin-change.
func ParseChange(v datasets.Value) (*Change, error) {
	c := &Change{}
	if err := json.Unmarshal([]byte(v.JSON()), c, json.RejectUnknownMembers(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return nil, Failf(TypePlugin, "plugin-change", "not a change: %s", conf.ExplainJSON(err, c))
	}
	if c.Without.IsNull() { // as null is for every field: it is not asked for
		c.Without = datasets.Value{}
	}
	return c, nil
}

// eventField is the name of an event's field and what gives its value.
type eventField struct {
	name  string
	value func() datasets.Value
}

func fieldNames(fields []eventField) []string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = f.name
	}
	return list
}

func fieldIn(fields []eventField, name string) datasets.Value {
	i := slices.IndexFunc(fields, func(f eventField) bool { return f.name == name })
	if i < 0 {
		return datasets.Value{}
	}
	return fields[i].value()
}

func textOf(s string) func() datasets.Value { return func() datasets.Value { return datasets.Text(s) } }

// textOrNullOf is null for "".
func textOrNullOf(s string) func() datasets.Value {
	return func() datasets.Value {
		if s == "" {
			return datasets.Null
		}
		return datasets.Text(s)
	}
}

func textsOf(list []string) func() datasets.Value {
	return func() datasets.Value {
		if list == nil {
			list = []string{}
		}
		return mustValue(list)
	}
}

func objectOf(vs datasets.Values) func() datasets.Value {
	return func() datasets.Value {
		if vs == nil {
			return datasets.Null
		}
		return vs.Object()
	}
}

func numberOf(n int) func() datasets.Value {
	return func() datasets.Value { return datasets.Int(int64(n)) }
}

func turnsOf(turns []ShownTurn) func() datasets.Value {
	return func() datasets.Value {
		type turn struct {
			ID      string          `json:"id"`
			Inputs  datasets.Values `json:"inputs"`
			Outputs datasets.Values `json:"outputs"`
			Without []string        `json:"without"`
		}
		list := []turn{}
		for _, t := range turns {
			list = append(list, turn{t.ID, t.Inputs, t.Outputs, append([]string{}, t.Without...)})
		}
		return mustValue(list)
	}
}

func mustValue(v any) datasets.Value {
	b, err := marshal(v)
	if err != nil { // texts, numbers and values that were JSON already
		panic("pipeline: an event has no JSON form: " + err.Error())
	}
	return datasets.RawValue(string(b))
}

// marshal writes what holds values that a model or a file gave: a member named
// twice, or text that is no UTF-8, is no reason to fail.
func marshal(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// JSON is an entry as data: {turn, data, at}.
func (e Entry) JSON() datasets.Value {
	return datasets.Values{
		"turn": textOrNullOf(e.Turn)(), "data": e.Data, "at": datasets.Text(e.At.UTC().Format(time.RFC3339Nano)),
	}.Object()
}

// Hook says which hook the event is of.
func (e *TurnStartEvent) Hook() Hook { return HookTurnStart }

// Fields names the event's fields.
func (e *TurnStartEvent) Fields() []string { return fieldNames(e.fields()) }

// Field is a field as data.
func (e *TurnStartEvent) Field(name string) datasets.Value { return fieldIn(e.fields(), name) }

func (e *TurnStartEvent) fields() []eventField {
	return []eventField{
		{"inputs", objectOf(e.inputs)}, {"conversation", textOf(e.Conversation)}, {"parent", textOrNullOf(e.Parent)}, {"program", textOf(e.Program)},
	}
}

// Hook says which hook the event is of.
func (e *ContextEvent) Hook() Hook { return HookContext }

// Fields names the event's fields.
func (e *ContextEvent) Fields() []string { return fieldNames(e.fields()) }

// Field is a field as data.
func (e *ContextEvent) Field(name string) datasets.Value { return fieldIn(e.fields(), name) }

func (e *ContextEvent) fields() []eventField {
	return []eventField{
		{"turns", turnsOf(e.turns)},
		{"sections", textsOf(e.sections)},
		{"conversation", textOf(e.Conversation)},
		{"parent", textOrNullOf(e.Parent)},
		{"program", textOf(e.Program)},
	}
}

// Hook says which hook the event is of.
func (e *CallEvent) Hook() Hook { return HookBeforeCall }

// Fields names the event's fields.
func (e *CallEvent) Fields() []string { return fieldNames(e.fields()) }

// Field is a field as data.
func (e *CallEvent) Field(name string) datasets.Value { return fieldIn(e.fields(), name) }

func (e *CallEvent) fields() []eventField {
	return []eventField{
		{"instruction", textOf(e.Instruction)},
		{"function", textOf(e.Function)},
		{"program", textOf(e.Program)},
		{"inputs", objectOf(e.shape.inputs)},
		{"lm", textOf(e.LM)},
		{"settings", objectOf(e.settings())},
		{"tools", textsOf(e.shape.tools)},
		{"all_tools", textsOf(e.shape.program.toolNames())},
		{"sections", textsOf(e.shape.sections)},
		{"path", textOf(e.Path)},
		{"conversation", textOrNullOf(e.Conversation)},
		{"turn", textOrNullOf(e.Turn)},
	}
}

func (e *CallEvent) settings() datasets.Values {
	if e.shape.settings == nil {
		return datasets.Values{}
	}
	return e.shape.settings
}

// Hook says which hook the event is of.
func (e *RequestEvent) Hook() Hook { return HookRequest }

// Fields names the event's fields.
func (e *RequestEvent) Fields() []string { return fieldNames(e.fields()) }

// Field is a field as data.
func (e *RequestEvent) Field(name string) datasets.Value { return fieldIn(e.fields(), name) }

func (e *RequestEvent) fields() []eventField {
	return []eventField{{"request", e.Request.JSON}, {"function", textOf(e.Function)}, {"path", textOf(e.Path)}}
}

// Hook says which hook the event is of.
func (e *ToolCallEvent) Hook() Hook { return HookToolCall }

// Fields names the event's fields.
func (e *ToolCallEvent) Fields() []string { return fieldNames(e.fields()) }

// Field is a field as data.
func (e *ToolCallEvent) Field(name string) datasets.Value { return fieldIn(e.fields(), name) }

func (e *ToolCallEvent) fields() []eventField {
	return []eventField{
		{"name", textOf(e.Name)},
		{"input", func() datasets.Value { return e.Input }},
		{"effects", textOrNullOf(string(e.Effects))},
		{"path", textOf(e.Path)},
		{"invocation", numberOf(e.Invocation)},
		{"id", textOf(e.ID)},
		{"function", textOf(e.Function)},
	}
}

// Hook says which hook the event is of.
func (e *ToolResultEvent) Hook() Hook { return HookToolResult }

// Fields names the event's fields.
func (e *ToolResultEvent) Fields() []string { return fieldNames(e.fields()) }

// Field is a field as data.
func (e *ToolResultEvent) Field(name string) datasets.Value { return fieldIn(e.fields(), name) }

func (e *ToolResultEvent) fields() []eventField {
	return []eventField{
		{"name", textOf(e.Name)},
		{"input", func() datasets.Value { return e.Input }},
		{"output", textOf(e.Output)},
		{"path", textOf(e.Path)},
		{"invocation", numberOf(e.Invocation)},
		{"function", textOf(e.Function)},
	}
}

// Hook says which hook the event is of.
func (e *TurnEndEvent) Hook() Hook { return HookTurnEnd }

// Fields names the event's fields.
func (e *TurnEndEvent) Fields() []string { return fieldNames(e.fields()) }

// Field is a field as data.
func (e *TurnEndEvent) Field(name string) datasets.Value { return fieldIn(e.fields(), name) }

func (e *TurnEndEvent) fields() []eventField {
	return []eventField{
		{"turn", textOf(e.Turn)},
		{"state", textOf(string(e.State))},
		{"inputs", objectOf(e.inputs)},
		{"outputs", objectOf(e.outputs)},
		{"conversation", textOf(e.Conversation)},
		{"parent", textOrNullOf(e.Parent)},
		{"turns", turnsOf(e.turns)},
	}
}
