package provider

import (
	"slices"
	"strings"

	"evalrun/datasets"
)

// form is how a reply is to be written: its outputs, the last of which is the
// answer, and what goes around them.
type form struct {
	layout layout
	slots  []slot
	ending string // after the last header
}

type layout int

const (
	plain   layout = iota // the answer alone
	marks                 // <name>, value, </name>
	headers               // [[ ## name ## ]], value
	object                // one JSON object
)

// slot is the place of one output.
type slot struct {
	name    string
	choices []string       // what it may be; nil when it is free
	shape   datasets.Value // JSON Schema; no value for free text
}

// readForm finds the form a request asks for: the schema of its response_format;
// else the last run of marks or headers in the instruction around hints such as
// "..." and "one of: a, b"; else plain text, with the choices of the last "one
// of:" in it.
func readForm(instruction string, config datasets.Values) *form {
	if format := config["response_format"]; !format.IsZero() {
		if f := formOfSchema(format); f != nil {
			return f
		}
	}
	tagged, at := markedForm(instruction)
	headed, headedAt := headedForm(instruction)
	switch {
	case headed != nil && headedAt > at:
		return headed
	case tagged != nil:
		return tagged
	}
	answer := slot{}
	if i := strings.LastIndex(instruction, choicesHint); i >= 0 {
		line, _, _ := strings.Cut(instruction[i+len(choicesHint):], "\n")
		answer.choices = splitChoices(strings.TrimSuffix(strings.TrimSpace(line), "."))
	}
	return &form{layout: plain, slots: []slot{answer}}
}

// formOfSchema reads a response_format of type json_schema, whose schema stands in
// it or, as some services want it, one level deeper.
func formOfSchema(format datasets.Value) *form {
	schema := format.Member("schema")
	if schema.IsZero() {
		schema = format.Member("json_schema").Member("schema")
	}
	f := &form{layout: object}
	for name, shape := range schema.Member("properties").Members() {
		f.slots = append(f.slots, slotOf(name, shape))
	}
	if len(f.slots) == 0 {
		return nil
	}
	return f
}

// slotOf makes the slot of an output of a shape.
func slotOf(name string, shape datasets.Value) slot {
	s := slot{name: name, shape: shape}
	for choice := range shape.Member("enum").Elements() {
		s.choices = append(s.choices, choice.String())
	}
	if kind, _ := shape.Member("type").AsText(); kind == "string" {
		s.shape = datasets.Value{}
	}
	return s
}

const (
	textHint    = "..."
	choicesHint = "one of: "
	schemaHint  = "JSON matching this schema: "
)

// slotOfHint makes the slot that a hint describes.
func slotOfHint(name, hint string) (s slot, ok bool) {
	hint = strings.TrimSpace(hint)
	choices, isChoices := strings.CutPrefix(hint, choicesHint)
	schema, isSchema := strings.CutPrefix(hint, schemaHint)
	switch {
	case hint == textHint:
		return slot{name: name}, true
	case hint == "(integer)" || hint == "(number)" || hint == "(boolean)":
		return slot{name: name, shape: datasets.RawValue(`{"type":"` + strings.Trim(hint, "()") + `"}`)}, true
	case isChoices:
		return slot{name: name, choices: splitChoices(choices)}, true
	case isSchema:
		shape, err := datasets.ParseValue(schema)
		return slotOf(name, shape), err == nil
	}
	return slot{}, false
}

func splitChoices(list string) []string {
	choices := strings.Split(list, ",")
	for i := range choices {
		choices[i] = strings.TrimSpace(choices[i])
	}
	return choices
}

// markedForm finds the last run of <name> hint </name> that nothing but white
// space parts, and where it begins.
func markedForm(text string) (*form, int) {
	var f *form
	begins, ended := -1, -1
	for at := 0; at < len(text); {
		i := strings.IndexByte(text[at:], '<')
		if i < 0 {
			break
		}
		start := at + i
		at = start + 1
		name, _, ok := strings.Cut(text[at:min(len(text), at+longestName)], ">")
		if !ok || !isName(name) {
			continue
		}
		body := strings.TrimLeft(text[at+len(name)+1:], " \t\r\n")
		hint, _, _ := strings.Cut(body, "\n")
		closing := "</" + name + ">"
		hint, _, _ = strings.Cut(hint, closing)
		s, ok := slotOfHint(name, hint)
		if !ok {
			continue
		}
		after := strings.TrimLeft(body[len(hint):], " \t\r\n")
		if !strings.HasPrefix(after, closing) {
			continue
		}
		if f == nil || strings.TrimSpace(text[ended:start]) != "" {
			f, begins = &form{layout: marks}, start
		}
		f.slots = append(f.slots, s)
		at = len(text) - len(after) + len(closing)
		ended = at
	}
	return f, begins
}

// longestName bounds the search for the end of a mark.
const longestName = 200

func isName(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return !wordRune(r) && r != '_' && r != '-' && r != '.' }) < 0
}

const (
	headerOpen  = "[[ ## "
	headerClose = " ## ]]"
	lastHeader  = "completed"
)

// headedForm finds the last run of [[ ## name ## ]] headers with hints, and where
// it begins.
func headedForm(text string) (*form, int) {
	var f *form
	begins := -1
	running := false
	for at := 0; ; {
		i := strings.Index(text[at:], headerOpen)
		if i < 0 {
			return f, begins
		}
		start := at + i
		at = start + len(headerOpen)
		name, _, ok := strings.Cut(text[at:min(len(text), at+longestName)], headerClose)
		if !ok {
			continue
		}
		at += len(name) + len(headerClose)
		if running && name == lastHeader {
			f.ending = headerOpen + name + headerClose
			running = false
			continue
		}
		hint, _, _ := strings.Cut(text[at:], headerOpen)
		s, ok := slotOfHint(name, hint)
		if !ok {
			running = false
			continue
		}
		if !running {
			f, begins, running = &form{layout: headers}, start, true
		}
		f.slots = append(f.slots, s)
	}
}

// accepts returns the text as the output has it; ok is false when it is not among
// the choices. Case does not matter.
func (s *slot) accepts(text string) (value string, ok bool) {
	if s.choices == nil {
		return text, true
	}
	i := slices.IndexFunc(s.choices, func(c string) bool { return strings.EqualFold(c, text) })
	if i < 0 {
		return "", false
	}
	return s.choices[i], true
}

// fixed is a value that fits the slot and depends on nothing else: the first
// choice, text for a text, the least that its shape lets be.
func (s *slot) fixed(text string) string {
	switch {
	case s.choices != nil:
		return s.choices[0]
	case s.shape.IsZero():
		return text
	}
	return least(s.shape, 0).String()
}

// least is a small value that fits a shape.
func least(shape datasets.Value, depth int) datasets.Value {
	if c := shape.Member("const"); !c.IsZero() {
		return c
	}
	for choice := range shape.Member("enum").Elements() {
		return choice
	}
	for option := range shape.Member("anyOf").Elements() {
		return least(option, depth+1)
	}
	kind := shape.Member("type")
	for first := range kind.Elements() {
		kind = first
		break
	}
	name, _ := kind.AsText()
	switch name {
	case "integer", "number":
		return datasets.Int(0)
	case "boolean":
		return datasets.Bool(false)
	case "string":
		return datasets.Text("")
	case "array":
		return datasets.RawValue("[]")
	case "object":
		values := datasets.Values{}
		if depth < 20 {
			for name, shape := range shape.Member("properties").Members() {
				values[name] = least(shape, depth+1)
			}
		}
		return values.Object()
	}
	return datasets.Null
}

// write puts values, one a slot, into the form.
func (f *form) write(values []string) string {
	var b strings.Builder
	switch f.layout {
	case plain:
		return values[0]
	case marks:
		for i, s := range f.slots {
			if i > 0 {
				b.WriteByte('\n')
			}
			b.WriteString("<" + s.name + ">\n" + values[i] + "\n</" + s.name + ">")
		}
	case headers:
		for i, s := range f.slots {
			b.WriteString(headerOpen + s.name + headerClose + "\n" + values[i] + "\n\n")
		}
		b.WriteString(f.ending)
	case object:
		b.WriteByte('{')
		for i, s := range f.slots {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(datasets.Text(s.name).JSON() + ": " + s.json(values[i]))
		}
		b.WriteByte('}')
	}
	return b.String()
}

// json is the value as JSON: a text as a string, anything else as it is.
func (s *slot) json(value string) string {
	if !s.shape.IsZero() {
		for choice := range s.shape.Member("enum").Elements() {
			if choice.String() == value {
				return choice.JSON()
			}
		}
		if v, err := datasets.ParseValue(value); err == nil {
			return v.JSON()
		}
	}
	return datasets.Text(value).JSON()
}

// read takes the values of a worked example's reply out of the form, "" for one
// it does not have; ok is false when it has no answer, or one that may not be
// given here.
func (f *form) read(reply string) (values []string, ok bool) {
	values = make([]string, len(f.slots))
	var members datasets.Values
	if f.layout == object {
		v, err := datasets.ParseValue(reply)
		if err != nil {
			return nil, false
		}
		members = datasets.ValuesOf(v)
	}
	for i, s := range f.slots {
		switch f.layout {
		case plain:
			values[i] = strings.TrimSpace(reply)
		case marks:
			values[i] = between(reply, "<"+s.name+">", "</"+s.name+">")
		case headers:
			values[i] = between(reply, headerOpen+s.name+headerClose, headerOpen)
		case object:
			values[i] = members[s.name].String()
		}
		if values[i] != "" {
			if values[i], ok = s.accepts(values[i]); !ok && i == len(f.slots)-1 {
				return nil, false
			}
		}
	}
	return values, values[len(values)-1] != ""
}

// between is the trimmed text after open, up to close or the end; "" when open is
// not there.
func between(text, open, close string) string {
	_, text, ok := strings.Cut(text, open)
	if !ok {
		return ""
	}
	text, _, _ = strings.Cut(text, close)
	return strings.TrimSpace(text)
}

// stopped cuts a reply where a model would have been made to stop.
func stopped(reply string, stop datasets.Value) string {
	cut := func(v datasets.Value) {
		if s, ok := v.AsText(); ok && s != "" {
			reply, _, _ = strings.Cut(reply, s)
		}
	}
	cut(stop)
	for v := range stop.Elements() {
		cut(v)
	}
	return reply
}
