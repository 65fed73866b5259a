package datasets

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"evalrun/internal/canon"
)

// Value is one immutable JSON value. It keeps the text it was read from, with
// the order of its members and the spelling of its numbers, because a request's
// bytes depend on them. The zero Value is no value at all, which is not null.
type Value struct{ text string }

// Null is the JSON value null.
var Null = Value{"null"}

// lenient are the options under which recorded text is read: what another
// program wrote is taken as it is, as long as it is JSON.
var lenient = jsontext.Options(json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)))

// ParseValue checks that text is exactly one JSON value in UTF-8, free of
// numbers no float64 can hold, and keeps it as written, surrounding white space
// apart.
func ParseValue[T string | []byte](text T) (Value, error) {
	if !utf8.ValidString(string(text)) {
		return Value{}, fmt.Errorf("not UTF-8 text")
	}
	b := bytes.TrimSpace([]byte(text))
	if _, err := canon.Append(nil, b); err != nil {
		return Value{}, fmt.Errorf("not a JSON value: %w", err)
	}
	return Value{string(b)}, nil
}

// RawValue keeps text without looking at it: for text that a JSON decoder has
// just delimited. Anything else may make later calls fail or panic.
func RawValue(text string) Value { return Value{text} }

// Text is the JSON string of s.
func Text(s string) Value { return Value{string(canon.AppendString(nil, s))} }

// Int is the JSON number of n.
func Int(n int64) Value { return Value{strconv.FormatInt(n, 10)} }

// Float is the JSON number of a finite f.
func Float(f float64) Value { return Value{string(canon.AppendFloat(nil, f))} }

// Bool is the JSON value of b.
func Bool(b bool) Value {
	if b {
		return Value{"true"}
	}
	return Value{"false"}
}

// ValueOf is the JSON value that encodes v. Map keys are sorted.
func ValueOf(v any) (Value, error) {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return Value{}, err
	}
	return Value{string(b)}, nil
}

// IsZero reports whether there is no value: the zero Value, not null.
func (v Value) IsZero() bool { return v.text == "" }

// IsNull reports whether v is the JSON value null.
func (v Value) IsNull() bool { return v.text == "null" }

// JSON returns the value's text as it was recorded; "" for no value.
func (v Value) JSON() string { return v.text }

// Kind says which of JSON's kinds v is: one of 'n' (null), 't', 'f', '"', '0'
// (number), '{', '['; 0 for no value.
func (v Value) Kind() jsontext.Kind {
	if v.text == "" {
		return 0
	}
	return jsontext.Value(v.text).Kind()
}

// AsText returns the text of a JSON string; ok is false for any other value.
func (v Value) AsText() (s string, ok bool) {
	if v.Kind() != '"' {
		return "", false
	}
	// The common string has nothing escaped: its text is a slice of ours.
	inner := v.text[1 : len(v.text)-1]
	for i := range len(inner) {
		if inner[i] == '\\' {
			b, _ := jsontext.AppendUnquote(nil, v.text)
			return string(b), true
		}
	}
	return inner, true
}

// AsFloat returns a JSON number as a float64; ok is false for any other value.
func (v Value) AsFloat() (f float64, ok bool) {
	if v.Kind() != '0' {
		return 0, false
	}
	f, err := strconv.ParseFloat(v.text, 64)
	return f, err == nil
}

// AsInt returns a JSON number that is a whole number in the range of an int64,
// however it is spelled (5, 5.0, 5e0).
func (v Value) AsInt() (n int64, ok bool) {
	if v.Kind() != '0' {
		return 0, false
	}
	if n, err := strconv.ParseInt(v.text, 10, 64); err == nil {
		return n, true
	}
	n, err := strconv.ParseInt(v.Canonical(), 10, 64)
	return n, err == nil
}

// AsBool returns a JSON boolean; ok is false for any other value.
func (v Value) AsBool() (b, ok bool) {
	switch v.text {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}

// Canonical returns the value's canonical JSON, on which hashes and equality
// rest; "" for no value.
func (v Value) Canonical() string {
	if v.text == "" || v.canonicalText() {
		return v.text
	}
	b, err := canon.Append(nil, []byte(v.text))
	if err != nil {
		// Only a RawValue that is no JSON comes here; its own text is then
		// all there is to compare.
		return v.text
	}
	return string(b)
}

// canonicalText reports whether v is a text that has nothing escaped, which is
// its own canonical form: most texts are, and they are what is long.
func (v Value) canonicalText() bool {
	return v.text[0] == '"' && strings.IndexByte(v.text, '\\') < 0 && utf8.ValidString(v.text)
}

// Hash returns the value's name by content: "sha256:" and the hex SHA-256 of
// its canonical JSON.
func (v Value) Hash() string { return canon.Hash([]byte(v.Canonical())) }

// Equal reports whether v and w are equal as canonical JSON. No value equals
// only no value.
func (v Value) Equal(w Value) bool {
	return v.text == w.text || v.text != "" && w.text != "" && v.Canonical() == w.Canonical()
}

// Size is the number of Unicode code points of the value's canonical JSON.
func (v Value) Size() int { return utf8.RuneCountInString(v.Canonical()) }

// Any decodes v: nil, bool, string, []any, map[string]any; a whole number is an
// int64, or its decimal text as a jsontext.Value beyond that range; every other
// number is a float64.
func (v Value) Any() any {
	switch v.Kind() {
	case 't', 'f':
		return v.text == "true"
	case '"':
		s, _ := v.AsText()
		return s
	case '0':
		if n, err := strconv.ParseInt(v.text, 10, 64); err == nil {
			return n
		}
		for _, c := range v.text {
			if c == '.' || c == 'e' || c == 'E' {
				f, _ := v.AsFloat()
				return f
			}
		}
		return jsontext.Value(v.text)
	case '[':
		list := []any{}
		for e := range v.Elements() {
			list = append(list, e.Any())
		}
		return list
	case '{':
		m := map[string]any{}
		for name, e := range v.Members() {
			m[name] = e.Any()
		}
		return m
	}
	return nil
}

// Members yields an object's members in recorded order; nothing for any other value.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.Kind() != '{' {
			return
		}
		dec := v.decoder()
		for dec.PeekKind() == '"' {
			name, err := dec.ReadToken()
			if err != nil {
				return
			}
			key := name.String()
			text, err := dec.ReadValue()
			if err != nil || !yield(key, Value{string(text)}) {
				return
			}
		}
	}
}

// Elements yields a list's elements; nothing for any other value.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.Kind() != '[' {
			return
		}
		dec := v.decoder()
		for k := dec.PeekKind(); k != ']' && k > 0; k = dec.PeekKind() {
			text, err := dec.ReadValue()
			if err != nil || !yield(Value{string(text)}) {
				return
			}
		}
	}
}

// decoder is at the first member or element of v.
func (v Value) decoder() *jsontext.Decoder {
	dec := jsontext.NewDecoder(bytes.NewBufferString(v.text), lenient)
	_, _ = dec.ReadToken()
	return dec
}

// Member returns the object's last member of that name; no value when there is none.
func (v Value) Member(name string) Value {
	var found Value
	for n, e := range v.Members() {
		if n == name {
			found = e
		}
	}
	return found
}

// String is the text of a JSON string, and the JSON text of any other value: what
// a person is shown.
func (v Value) String() string {
	if s, ok := v.AsText(); ok {
		return s
	}
	return v.text
}

// MarshalJSONTo writes the value's own text.
func (v Value) MarshalJSONTo(enc *jsontext.Encoder) error {
	if v.text == "" {
		return enc.WriteToken(jsontext.Null)
	}
	return enc.WriteValue(jsontext.Value(v.text))
}

// UnmarshalJSONFrom keeps the text of the next value.
func (v *Value) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	text, err := dec.ReadValue()
	if err != nil {
		return err
	}
	v.text = string(text)
	return nil
}

// MarshalJSON lets encoding/json write the value.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.text == "" {
		return []byte("null"), nil
	}
	return []byte(v.text), nil
}

// UnmarshalJSON lets encoding/json read the value.
func (v *Value) UnmarshalJSON(b []byte) error {
	v.text = string(b)
	return nil
}

// Values are JSON values by field name. The values are immutable and shared;
// the map belongs to whoever made it.
type Values map[string]Value

// ValuesOf reads a JSON object's members. Any other value gives nil.
func ValuesOf(object Value) Values {
	if object.Kind() != '{' {
		return nil
	}
	vs := Values{}
	for name, v := range object.Members() {
		vs[name] = v
	}
	return vs
}

// Names returns the field names in code point order.
func (vs Values) Names() []string {
	if len(vs) == 0 {
		return nil
	}
	names := make([]string, 0, len(vs))
	for name := range vs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Object is the JSON object of the values, its members in code point order.
func (vs Values) Object() Value {
	b := []byte{'{'}
	for i, name := range vs.Names() {
		if i > 0 {
			b = append(b, ',')
		}
		b = canon.AppendString(b, name)
		b = append(b, ':')
		if v := vs[name]; v.IsZero() {
			b = append(b, "null"...)
		} else {
			b = append(b, v.text...)
		}
	}
	return Value{string(append(b, '}'))}
}
