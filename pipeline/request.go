package pipeline

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"evalrun/datasets"
	"evalrun/internal/canon"
	"evalrun/internal/conf"
)

// Request is one request to a model: all that its answer may depend on. Once it
// is given to a Model nobody changes it.
type Request struct {
	Model    string          // the model's name as the request carries it
	System   string          // the system text; "" is none
	Messages []Message       // in order
	Config   datasets.Values // stop, response_format, temperature, …; by name
	Tools    []Tool          // offered natively; nil for none
	Site     Site            // where in a run it happens; not part of what is hashed

	sealed *sealed // of a request that nobody changes any more; nil before
}

// sealed is the canonical JSON of a request and its hash, made once: journal,
// budget and records all want them.
type sealed struct{ text, hash string }

// seal says that nobody changes the request any more.
func (r *Request) seal() {
	if r.sealed == nil {
		b := r.Canonical(r.Model)
		r.sealed = &sealed{string(b), canon.Hash(b)}
	}
}

// Message is one message: a role and its parts.
type Message struct {
	Role  string `json:"role"` // user, assistant, developer, tool
	Parts []Part `json:"parts"`
}

// Part is a piece of a message: its Text when it is of type "text", else the
// JSON object Raw, kept as it was given. A model's message has a part
// {type: tool_call, id, name, input} for each tool it calls ([Part.ToolCall]), and
// the message of role tool after it a part {type: tool_result, id, text} for each
// result ([Part.ToolResult]).
type Part struct {
	Text string
	Raw  datasets.Value
}

// Tool is a tool as a request offers it.
type Tool struct {
	Name        string
	Description string
	Parameters  datasets.Value // JSON Schema of its input
}

// TextMessage is a message of a single text part.
func TextMessage(role, text string) Message {
	return Message{Role: role, Parts: []Part{{Text: text}}}
}

// Site says where in a run a request happens. Two requests at one site are the
// same step of the same question; equal requests at different sites are
// separate draws.
type Site struct {
	Candidate  string // its name in the run
	Row        string // the row's id
	Repeat     int    // which of the answers to the row, from 0
	Path       string // call names from the outermost, joined by "/"
	Step       int    // which request of the tool loop, from 0
	Try        int    // which attempt to get a readable reply, from 0
	Invocation int    // which tool call inside the asking call
	Inside     string // where inside other calls: for each, outermost first, the tool call's number, "." and which call of that tool, joined by "/"
	Purpose    string // candidate, judge, optimizer, …
}

// Canonical returns the request's canonical JSON with the model's name given,
// since some comparisons want a fixed name in its place. "system" and "tools"
// are absent when there are none; "config" is always there.
func (r *Request) Canonical(model string) []byte {
	b := make([]byte, 0, 256+len(r.System)+r.textSize())
	b = append(b, `{"config":`...)
	b = appendCanonicalValues(b, r.Config)
	b = append(b, `,"messages":[`...)
	for i, m := range r.Messages {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"parts":[`...)
		for j, p := range m.Parts {
			if j > 0 {
				b = append(b, ',')
			}
			if !p.Raw.IsZero() {
				b = append(b, p.Raw.Canonical()...)
				continue
			}
			b = append(b, `{"text":`...)
			b = canon.AppendString(b, p.Text)
			b = append(b, `,"type":"text"}`...)
		}
		b = append(b, `],"role":`...)
		b = canon.AppendString(b, m.Role)
		b = append(b, '}')
	}
	b = append(b, `],"model":`...)
	b = canon.AppendString(b, model)
	if r.System != "" {
		b = append(b, `,"system":`...)
		b = canon.AppendString(b, r.System)
	}
	if len(r.Tools) > 0 {
		b = append(b, `,"tools":[`...)
		for i, t := range r.Tools {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"description":`...)
			b = canon.AppendString(b, t.Description)
			b = append(b, `,"name":`...)
			b = canon.AppendString(b, t.Name)
			if !t.Parameters.IsZero() {
				b = append(b, `,"parameters":`...)
				b = append(b, t.Parameters.Canonical()...)
			}
			b = append(b, `,"type":"function"}`...)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

func appendCanonicalValues(b []byte, vs datasets.Values) []byte {
	b = append(b, '{')
	for i, name := range vs.Names() {
		if i > 0 {
			b = append(b, ',')
		}
		b = canon.AppendString(b, name)
		b = append(b, ':')
		b = append(b, vs[name].Canonical()...)
	}
	return append(b, '}')
}

func (r *Request) textSize() int {
	n := 0
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			n += len(p.Text) + 64
		}
	}
	return n
}

// Hash is the request's hash, which records keep as request_hash.
func (r *Request) Hash() string {
	if r.sealed != nil {
		return r.sealed.hash
	}
	return canon.Hash(r.Canonical(r.Model))
}

// Size is how many bytes the canonical request has.
func (r *Request) Size() int {
	if r.sealed != nil {
		return len(r.sealed.text)
	}
	return len(r.Canonical(r.Model))
}

// ProbeHash is the hash of the request with its model's name replaced by
// "probe": the key under which replies are looked up, so that what a model is
// called does not matter.
func (r *Request) ProbeHash() string { return canon.Hash(r.Canonical(ProbeModel)) }

// MaxTokens is the most output tokens that the request asks for; nil when it does
// not say.
func (r *Request) MaxTokens() *int64 {
	var most *int64
	for _, name := range []string{"max_tokens", "max_completion_tokens"} {
		if n, ok := r.Config[name].AsInt(); ok && n >= 0 {
			most = &n
		}
	}
	return most
}

// ProbeModel is the model name under fixed facts, in a program's version.
const ProbeModel = "probe"

// Clone returns a copy that shares only immutable values with r.
func (r *Request) Clone() *Request {
	c := *r
	c.sealed = nil
	c.Messages = slices.Clone(r.Messages)
	for i := range c.Messages {
		c.Messages[i].Parts = slices.Clone(c.Messages[i].Parts)
	}
	c.Config = cloneValues(r.Config)
	c.Tools = slices.Clone(r.Tools)
	return &c
}

// JSON is the request as records keep it: the members of its canonical form.
func (r *Request) JSON() datasets.Value {
	if r.sealed != nil {
		return datasets.RawValue(r.sealed.text)
	}
	return datasets.RawValue(string(r.Canonical(r.Model)))
}

// ParseRequest reads a request from JSON of the canonical form's members. A
// member it does not know is an error: it would be lost from what is hashed.
func ParseRequest(v datasets.Value) (*Request, error) {
	var wire struct {
		Model    string          `json:"model"`
		System   *string         `json:"system"`
		Messages []Message       `json:"messages"`
		Config   datasets.Values `json:"config"`
		Tools    []Tool          `json:"tools"`
	}
	if err := json.Unmarshal([]byte(v.JSON()), &wire, json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, fmt.Errorf("not a request: %s", conf.ExplainJSON(err, &wire))
	}
	r := &Request{Model: wire.Model, Messages: wire.Messages, Config: wire.Config, Tools: wire.Tools}
	if wire.System != nil {
		r.System = *wire.System
	}
	return r, nil
}

// MarshalJSONTo writes a text part as {"type":"text","text":…} and any other as it is.
func (p Part) MarshalJSONTo(enc *jsontext.Encoder) error {
	if !p.Raw.IsZero() {
		return enc.WriteValue(jsontext.Value(p.Raw.JSON()))
	}
	b := append([]byte(`{"type":"text","text":`), canon.AppendString(nil, p.Text)...)
	return enc.WriteValue(append(b, '}'))
}

// UnmarshalJSONFrom reads a part; one that is not plain text is kept as it is.
func (p *Part) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	text, err := dec.ReadValue()
	if err != nil {
		return err
	}
	v := datasets.RawValue(string(text))
	members := datasets.ValuesOf(v)
	if kind, _ := members["type"].AsText(); kind == "text" && len(members) == 2 {
		if s, ok := members["text"].AsText(); ok {
			*p = Part{Text: s}
			return nil
		}
	}
	*p = Part{Raw: v}
	return nil
}

// MarshalJSONTo writes the tool as requests carry it.
func (t Tool) MarshalJSONTo(enc *jsontext.Encoder) error {
	return json.MarshalEncode(enc, wireTool{"function", t.Name, t.Description, t.Parameters})
}

// UnmarshalJSONFrom reads a tool as requests carry it.
func (t *Tool) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var w wireTool
	if err := json.UnmarshalDecode(dec, &w); err != nil {
		return err
	}
	*t = Tool{w.Name, w.Description, w.Parameters}
	return nil
}

type wireTool struct {
	Type        string         `json:"type"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Parameters  datasets.Value `json:"parameters,omitzero"`
}

func cloneValues(vs datasets.Values) datasets.Values {
	if vs == nil {
		return nil
	}
	c := make(datasets.Values, len(vs))
	for name, v := range vs {
		c[name] = v
	}
	return c
}
