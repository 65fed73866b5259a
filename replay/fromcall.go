package replay

import (
	"math"
	"strconv"
	"time"

	"evalrun/datasets"
	"evalrun/internal/canon"
	"evalrun/pipeline"
)

// FromCall is the record of a finished call, in format 2 with its whole content.
// process says where it ran (host, library, …); no value leaves that out. What a
// call was shown is written as its conversation's turn says, or for the replay of
// a rated call as "everything that the rated call saw"; a call that was shown
// nothing is written as having seen nothing.
func FromCall(c *pipeline.Call, process datasets.Value) *Record {
	r := &Record{
		Format: latestCall, ID: c.ID, Parent: c.Parent, Root: c.Root, Started: toMicros(c.Started), Seconds: seconds(c.Seconds),
		Content: new(true), Model: c.Model, Usage: usageOf(c.Usage()), Exchanges: []Exchange{}, Saw: []Saw{},
		Sections: c.Sections, Steps: c.Steps, Process: process,
	}
	if r.Root == "" {
		r.Root = c.ID
	}
	var inputs, outputs []pipeline.Field
	if p := c.Program; p != nil {
		r.Program = Program{
			Name: p.Name(), Kind: "ai", Module: p.Module(), Version: p.Version(), Signature: p.Signature(),
			Interface: p.Interface(), Answer: p.Answer(),
		}
		inputs, outputs = p.Inputs(), p.Outputs()
	}
	r.Inputs = object(c.Inputs, inputs)
	sizes := datasets.Values{"inputs": sizesOf(c.Inputs)}
	if c.Outputs != nil {
		r.Outputs = object(c.Outputs, outputs)
		sizes["outputs"] = sizesOf(c.Outputs)
	}
	r.Sizes = sizes.Object()
	if c.Failure != nil {
		r.Error = errorOf(c.Failure)
	}
	for i := range c.Exchanges {
		r.Exchanges = appendExchange(r.Exchanges, &c.Exchanges[i], c.LM)
	}
	switch t := c.Turn; {
	case t != nil:
		r.place(t)
	case c.SawOf != "":
		r.Saw = append(r.Saw, Saw{SawOf: c.SawOf})
	}
	for _, ch := range c.Changes {
		r.Changes = append(r.Changes, Change{Plugin: ch.Plugin, Version: ch.Version, Hook: string(ch.Hook), Change: ch.Change})
	}
	if !c.Replayable() {
		r.Replayable = new(false)
	}
	if c.Tags != nil {
		r.Caller = new(Caller)
		reader{}.caller(r.Caller, c.Tags.Object().JSON())
	}
	return r
}

// place says of a conversation's turn where it belongs and what it was shown.
func (r *Record) place(t *pipeline.TurnCall) {
	r.Conversation = &Conversation{ID: t.Conversation, Turn: t.Turn, Parent: t.Parent}
	if t.Attempt > 1 { // it was resumed: what was written before is out of date
		r.Writer = int64(t.Attempt)
	}
	for _, s := range t.Saw {
		saw := Saw{Call: s.Call, SawOf: s.SawOf, Without: s.Without}
		if s.Steps {
			saw.Steps = new(true)
		}
		r.Saw = append(r.Saw, saw)
	}
}

// appendExchange appends the tries that failed before the exchange, each of
// which was a request, and the exchange itself.
func appendExchange(list []Exchange, x *pipeline.Exchange, lm string) []Exchange {
	base := Exchange{Model: lm, RequestHash: x.Hash}
	if x.Request != nil {
		base.Model = x.Request.Model
		base.Request = x.Request.JSON()
	}
	reply := x.Reply
	took := x.Seconds
	var tries []pipeline.Attempt
	switch {
	case reply != nil:
		tries = reply.Attempts
		if reply.Wire > 0 {
			took = reply.Wire.Seconds()
		}
	case x.Failure != nil:
		tries = x.Failure.Attempts
	}
	for _, try := range tries {
		failed := base
		failed.Seconds = seconds(try.Wire.Seconds())
		failed.fail(try.Failure)
		list = append(list, failed)
	}
	base.Started, base.Seconds = toMicros(x.Started), seconds(took)
	if reply == nil {
		base.fail(x.Failure)
		return append(list, base)
	}
	if reply.Model != "" {
		base.Model = reply.Model
	}
	base.Provider, base.Finish, base.Cached, base.Usage = reply.Provider, reply.Finish, new(reply.Cached), usageOf(reply.Usage)
	if base.Response = reply.Response; base.Response.IsZero() {
		response := datasets.Values{"text": datasets.Text(reply.Text)}
		if reply.Calls != nil {
			response["calls"] = callsOf(reply.Calls)
		}
		base.Response = response.Object()
	}
	base.nulls()
	return append(list, base)
}

// callsOf is the list of a reply's tool calls. Their inputs are as the model wrote
// them, also where not every reader of JSON takes that, such as a member twice.
func callsOf(calls []pipeline.ToolCall) datasets.Value {
	b := []byte{'['}
	for i, c := range calls {
		if i > 0 {
			b = append(b, ',')
		}
		b = canon.AppendString(append(b, `{"id":`...), c.ID)
		b = canon.AppendString(append(b, `,"name":`...), c.Name)
		input := c.Input.JSON()
		if c.Input.IsZero() {
			input = "null"
		}
		b = append(append(append(b, `,"input":`...), input...), '}')
	}
	return datasets.RawValue(string(append(b, ']')))
}

// fail marks an exchange that got no reply.
func (x *Exchange) fail(f *pipeline.Failure) {
	x.Cached = new(false)
	if f != nil {
		x.Usage = usageOf(f.Usage)
		w := writer{}
		w.err(errorOf(f))
		x.Error = datasets.RawValue(string(w.b))
	}
	x.nulls()
}

// nulls writes null for what is not known of an exchange and yet always written.
func (x *Exchange) nulls() {
	if x.Usage.IsZero() {
		x.Usage = datasets.Null
	}
	if x.Finish == "" {
		put(&x.Extra, "finish", "null")
	}
	if x.Provider == "" {
		put(&x.Extra, "provider", "null")
	}
}

func errorOf(f *pipeline.Failure) *Error {
	plain := *f
	plain.Code = "" // it has a key of its own
	return &Error{Type: f.Type, Message: plain.Error(), Code: f.Code}
}

// object is the object of values: those of fields in their order, then others.
func object(values datasets.Values, fields []pipeline.Field) datasets.Value {
	b := []byte{'{'}
	add := func(name string) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(canon.AppendString(b, name), ':')
		b = append(b, values[name].JSON()...)
	}
	done := map[string]bool{}
	for _, f := range fields {
		if v, ok := values[f.Name]; ok && !v.IsZero() && !done[f.Name] {
			add(f.Name)
			done[f.Name] = true
		}
	}
	for _, name := range values.Names() {
		if !done[name] && !values[name].IsZero() {
			add(name)
		}
	}
	return datasets.RawValue(string(append(b, '}')))
}

func sizesOf(values datasets.Values) datasets.Value {
	b := []byte{'{'}
	for i, name := range values.Names() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(canon.AppendString(b, name), ':')
		b = strconv.AppendInt(b, int64(values[name].Size()), 10)
	}
	return datasets.RawValue(string(append(b, '}')))
}

// usageOf is the counts that are known; no value when none is.
func usageOf(u pipeline.Usage) datasets.Value {
	w := writer{make([]byte, 0, 128)}
	w.open()
	for _, count := range []struct {
		name string
		n    *int64
	}{
		{"input_tokens", u.Input},
		{"output_tokens", u.Output},
		{"total_tokens", u.Total},
		{"cached_input_tokens", u.Cached},
		{"reasoning_tokens", u.Reasoning},
	} {
		if count.n != nil {
			w.int(count.name, *count.n)
		}
	}
	if len(w.b) == 1 {
		return datasets.Value{}
	}
	w.close(nil)
	return datasets.RawValue(string(w.b))
}

func toMicros(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// seconds is a duration to the microsecond.
func seconds(s float64) *float64 { return new(math.Round(s*1e6) / 1e6) }
