package pipeline

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"evalrun/datasets"
	"evalrun/internal/canon"
)

// kind says how a field's values are written to a model and read from its reply.
type kind int

const (
	asText    kind = iota // the characters themselves
	asChoice              // one of a list
	asLiteral             // a whole number, a number, true or false
	asJSON                // anything else, as JSON
)

// spelling is how one field crosses to the model and back.
type spelling struct {
	kind     kind
	nullable bool             // null is written and read as the word null
	literal  string           // integer, number or boolean
	choices  []datasets.Value // of a choice
}

// spellingOf derives a field's spelling from its shape. A shape that allows null
// beside one plain type is that type, plus null; every other mixture is JSON.
func spellingOf(s *shape) spelling {
	base, nullable := s, false
	types := s.types
	if len(types) == 2 && (types[0] == "null" || types[1] == "null") {
		nullable = true
		types = []string{types[0]}
		if s.types[0] == "null" {
			types[0] = s.types[1]
		}
	}
	if s.only == "anyOf" && len(s.anyOf) == 2 {
		for i, option := range s.anyOf {
			if other := s.anyOf[1-i]; option.only == "type" && len(option.types) == 1 && option.types[0] == "null" && other.plain() {
				base, nullable, types = other, true, other.types
			}
		}
	}
	switch {
	case base.enum != nil:
		nullable = nullable || slices.ContainsFunc(base.enum, datasets.Value.IsNull)
		return spelling{kind: asChoice, nullable: nullable, choices: base.enum}
	case len(types) == 1 && types[0] == "string":
		return spelling{kind: asText, nullable: nullable}
	case len(types) == 1 && (types[0] == "integer" || types[0] == "number" || types[0] == "boolean"):
		return spelling{kind: asLiteral, nullable: nullable, literal: types[0]}
	}
	return spelling{kind: asJSON}
}

// plain reports whether the shape is of one simple type, or a choice.
func (s *shape) plain() bool {
	if s.enum != nil {
		return true
	}
	return len(s.types) == 1 && (s.types[0] == "string" || s.types[0] == "integer" || s.types[0] == "number" || s.types[0] == "boolean")
}

// hint is what the instructions show in the place of an output's value.
func (s spelling) hint(shape datasets.Value) string {
	switch s.kind {
	case asChoice:
		return "one of: " + choices(s.choices)
	case asLiteral:
		return "(" + s.literal + ")"
	case asJSON:
		return "JSON matching this schema: " + string(appendOneLine(nil, shape))
	}
	return "..."
}

// append writes a value as the model is shown it: text as it is, numbers,
// booleans and null as JSON, lists and objects as JSON indented by two. Where
// the reply is read as JSON a text is quoted, so that it can be read back.
func (s spelling) append(b []byte, v datasets.Value) []byte {
	if s.kind != asJSON {
		if text, ok := v.AsText(); ok {
			return append(b, text...)
		}
	}
	return appendIndented(b, v)
}

// appendIndented writes JSON over several lines, indented by two, members in
// their own order, numbers in their canonical spelling.
func appendIndented(b []byte, v datasets.Value) []byte {
	w := jsonWriter{b: b, comma: ",", colon: ": ", indent: "  "}
	return w.value(v)
}

// appendOneLine writes JSON on one line with a space after each comma and colon.
func appendOneLine(b []byte, v datasets.Value) []byte {
	w := jsonWriter{b: b, comma: ", ", colon: ": "}
	return w.value(v)
}

// jsonWriter writes a value in a layout of its own.
type jsonWriter struct {
	b            []byte
	comma, colon string
	indent       string // "" for one line
	depth        int
}

func (w *jsonWriter) value(v datasets.Value) []byte {
	dec := jsontext.NewDecoder(strings.NewReader(v.JSON()), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	before := len(w.b)
	if err := w.next(dec); err != nil {
		// Only text that is no JSON comes here; there is nothing to lay out.
		return append(w.b[:before], v.JSON()...)
	}
	return w.b
}

func (w *jsonWriter) next(dec *jsontext.Decoder) error {
	tok, err := dec.ReadToken()
	if err != nil {
		return err
	}
	switch tok.Kind() {
	case '[':
		return w.nest(dec, '[', ']', func() error { return w.next(dec) })
	case '{':
		return w.nest(dec, '{', '}', func() error {
			name, err := dec.ReadToken()
			if err != nil {
				return err
			}
			w.b = canon.AppendString(w.b, name.String())
			w.b = append(w.b, w.colon...)
			return w.next(dec)
		})
	case '"':
		w.b = canon.AppendString(w.b, tok.String())
	case '0':
		w.b, err = canon.AppendNumber(w.b, tok.String())
	default:
		w.b = append(w.b, tok.String()...)
	}
	return err
}

// nest writes a list or an object, whose opening token was read.
func (w *jsonWriter) nest(dec *jsontext.Decoder, open, end byte, each func() error) error {
	w.b = append(w.b, open)
	w.depth++
	n := 0
	for ; dec.PeekKind() != jsontext.Kind(end); n++ {
		if n > 0 {
			w.b = append(w.b, w.comma...)
		}
		w.line()
		if err := each(); err != nil {
			return err
		}
	}
	w.depth--
	if n > 0 {
		w.line()
	}
	w.b = append(w.b, end)
	_, err := dec.ReadToken()
	return err
}

func (w *jsonWriter) line() {
	if w.indent == "" {
		return
	}
	w.b = append(w.b, '\n')
	for range w.depth {
		w.b = append(w.b, w.indent...)
	}
}
