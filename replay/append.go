package replay

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"evalrun/datasets"
	"evalrun/internal/canon"
)

// MarshalJSON is AppendJSON, so that records are never written in another form.
func (r *Record) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil), nil }

// AppendJSON appends the record as a line of a call log, without the line's end.
// What ParseRecord read is written equal as canonical JSON.
func (r *Record) AppendJSON(dst []byte) []byte {
	w := writer{slices.Grow(dst, r.room())}
	w.open()
	w.int(callKey, int64(r.Format))
	w.text("id", r.ID)
	w.nullableText("parent", r.Parent, r.lacks("parent"))
	w.text("root", r.Root)
	if !r.lacks("program") {
		w.key("program")
		w.program(&r.Program)
	}
	w.time("started", r.Started)
	w.float("seconds", r.Seconds)
	w.bool("content", r.Content)
	w.value("omitted", r.Omitted)
	w.value("inputs", r.Inputs)
	w.nullableValue("outputs", r.Outputs, r.lacks("outputs"))
	w.value("returned", r.Returned)
	w.value("sizes", r.Sizes)
	if r.Error != nil {
		w.key("error")
		w.err(r.Error)
	} else if !r.lacks("error") {
		w.null("error")
	}
	w.nullableText("model", r.Model, r.lacks("model"))
	w.nullableValue("usage", r.Usage, r.lacks("usage"))
	if r.Confidence != nil {
		w.float("confidence", r.Confidence)
	} else if !r.lacks("confidence") {
		w.null("confidence")
	}
	w.value("probabilities", r.Probabilities)
	w.value("escalated", r.Escalated)
	list(&w, "exchanges", r.Exchanges, w.exchange)
	list(&w, "saw", r.Saw, w.saw)
	w.texts("sections", r.Sections)
	list(&w, "changes", r.Changes, w.change)
	w.bool("replayable", r.Replayable)
	list(&w, "steps", r.Steps, func(s *datasets.Step) { w.json(*s) })
	if r.Conversation != nil {
		w.key("conversation")
		w.conversation(r.Conversation, r.lacks("conversation.parent"))
	}
	w.value("described", r.Described)
	w.value("journal", r.Journal)
	if r.Invocation != nil {
		w.int("invocation", *r.Invocation)
	}
	if r.Writer != 0 {
		w.int("writer", r.Writer)
	}
	w.value("truncated", r.Truncated)
	if r.Caller != nil {
		w.key("caller")
		w.caller(r.Caller)
	}
	w.value("process", r.Process)
	w.close(r.Extra)
	return w.b
}

// room is about as much as the record takes.
func (r *Record) room() int {
	n := 1024 + len(r.Inputs.JSON()) + len(r.Outputs.JSON())
	for i := range r.Exchanges {
		n += 512 + len(r.Exchanges[i].Request.JSON()) + len(r.Exchanges[i].Response.JSON())
	}
	return n
}

// MarshalJSON is AppendJSON.
func (r *Rating) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil), nil }

// AppendJSON appends the rating as a line of a call log, without the line's end.
// What ParseRating read is written equal as canonical JSON.
func (r *Rating) AppendJSON(dst []byte) []byte {
	w := writer{dst}
	w.open()
	w.int(ratingKey, int64(r.Format))
	w.text("id", r.ID)
	w.text("call", r.Call)
	w.time("at", r.At)
	w.text("by", r.By)
	w.text("account", r.Account)
	w.nullableText("verdict", r.Verdict, r.lacks("verdict"))
	w.value("answer", r.Answer)
	w.value("outputs", r.Outputs)
	w.value("reasons", r.Reasons)
	w.text("note", r.Note)
	w.text("origin", r.Origin)
	w.text("sample", r.Sample)
	w.close(r.Extra)
	return w.b
}

// writer appends the members of objects. A member whose field is not set is not
// written.
type writer struct{ b []byte }

func (w *writer) open() { w.b = append(w.b, '{') }

// close writes what no field held, by name so that the bytes are always the
// same, and ends the object.
func (w *writer) close(extra datasets.Values) {
	if len(extra) > 0 {
		for _, name := range extra.Names() {
			w.comma()
			w.b = canon.AppendString(w.b, name)
			w.b = append(w.b, ':')
			w.json(extra[name])
		}
	}
	w.b = append(w.b, '}')
}

func (w *writer) comma() {
	if c := w.b[len(w.b)-1]; c != '{' && c != '[' {
		w.b = append(w.b, ',')
	}
}

// key begins a member whose name needs no escapes.
func (w *writer) key(name string) {
	w.comma()
	w.b = append(w.b, '"')
	w.b = append(w.b, name...)
	w.b = append(w.b, '"', ':')
}

// json writes a value as it was recorded, on one line.
func (w *writer) json(v datasets.Value) {
	text := v.JSON()
	switch {
	case text == "":
		w.b = append(w.b, "null"...)
	case strings.IndexByte(text, '\n') >= 0 || strings.IndexByte(text, '\r') >= 0: // white space: inside a text they are escaped
		one := jsontext.Value(text)
		_ = one.Compact(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		w.b = append(w.b, one...)
	default:
		w.b = append(w.b, text...)
	}
}

func (w *writer) null(name string) {
	w.key(name)
	w.b = append(w.b, "null"...)
}

func (w *writer) text(name, s string) {
	if s != "" {
		w.key(name)
		w.b = canon.AppendString(w.b, s)
	}
}

func (w *writer) nullableText(name, s string, absent bool) {
	if s != "" {
		w.text(name, s)
	} else if !absent {
		w.null(name)
	}
}

func (w *writer) value(name string, v datasets.Value) {
	if !v.IsZero() {
		w.key(name)
		w.json(v)
	}
}

func (w *writer) nullableValue(name string, v datasets.Value, absent bool) {
	if !v.IsZero() {
		w.value(name, v)
	} else if !absent {
		w.null(name)
	}
}

func (w *writer) int(name string, n int64) {
	w.key(name)
	w.b = strconv.AppendInt(w.b, n, 10)
}

func (w *writer) float(name string, f *float64) {
	if f != nil {
		w.key(name)
		w.b = canon.AppendFloat(w.b, *f)
	}
}

func (w *writer) bool(name string, v *bool) {
	if v != nil {
		w.key(name)
		w.b = strconv.AppendBool(w.b, *v)
	}
}

func (w *writer) time(name string, t time.Time) {
	if !t.IsZero() {
		w.key(name)
		w.b = append(w.b, '"')
		w.b = t.UTC().AppendFormat(w.b, timeForm)
		w.b = append(w.b, '"')
	}
}

func (w *writer) texts(name string, list []string) {
	if list == nil {
		return
	}
	w.key(name)
	w.b = append(w.b, '[')
	for _, s := range list {
		w.comma()
		w.b = canon.AppendString(w.b, s)
	}
	w.b = append(w.b, ']')
}

// list writes a list that is set, an empty one too.
func list[T any](w *writer, name string, items []T, each func(*T)) {
	if items == nil {
		return
	}
	w.key(name)
	w.b = append(w.b, '[')
	for i := range items {
		w.comma()
		each(&items[i])
	}
	w.b = append(w.b, ']')
}

func (w *writer) program(p *Program) {
	w.open()
	w.text("name", p.Name)
	w.text("kind", p.Kind)
	w.text("module", p.Module)
	w.text("version", p.Version)
	w.text("signature", p.Signature)
	w.text("interface", p.Interface)
	w.text("answer", p.Answer)
	w.text("file", p.File)
	if p.Line != 0 {
		w.int("line", p.Line)
	}
	w.value("saved", p.Saved)
	w.value("remote", p.Remote)
	w.close(p.Extra)
}

func (w *writer) err(e *Error) {
	w.open()
	w.text("type", e.Type)
	w.text("message", e.Message)
	w.text("code", e.Code)
	w.close(e.Extra)
}

func (w *writer) exchange(x *Exchange) {
	w.open()
	w.text("model", x.Model)
	w.text("provider", x.Provider)
	w.time("started", x.Started)
	w.float("seconds", x.Seconds)
	w.bool("cached", x.Cached)
	w.text("finish", x.Finish)
	w.value("usage", x.Usage)
	w.value("request", x.Request)
	w.value("response", x.Response)
	w.text("request_hash", x.RequestHash)
	w.value("error", x.Error)
	w.bool("streamed", x.Streamed)
	w.float("first_delta", x.FirstDelta)
	w.close(x.Extra)
}

func (w *writer) saw(s *Saw) {
	w.open()
	w.text("call", s.Call)
	w.text("saw_of", s.SawOf)
	w.bool("steps", s.Steps)
	w.texts("without", s.Without)
	w.value("slot", s.Slot)
	w.close(s.Extra)
}

func (w *writer) change(c *Change) {
	w.open()
	w.text("plugin", c.Plugin)
	w.text("version", c.Version)
	w.text("hook", c.Hook)
	w.value("change", c.Change)
	w.close(c.Extra)
}

func (w *writer) conversation(c *Conversation, noParent bool) {
	w.open()
	w.text("id", c.ID)
	w.text("turn", c.Turn)
	w.nullableText("parent", c.Parent, noParent)
	w.close(c.Extra)
}

func (w *writer) caller(c *Caller) {
	w.open()
	w.text("kind", c.Kind)
	w.text("user", c.User)
	w.text("notebook", c.Notebook)
	w.text("cell", c.Cell)
	w.text("conversation", c.Conversation)
	w.text("evaluation", c.Evaluation)
	w.text("optimization", c.Optimization)
	w.text("compaction", c.Compaction)
	w.close(c.Extra)
}
