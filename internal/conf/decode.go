package conf

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Decoder is a type that reads itself from a node. Its errors should come from
// the node's Errorf, so that they name the place.
type Decoder interface{ DecodeConf(Node) error }

// Decode fills dst, a pointer, from a node. It takes:
//
//   - structs, whose fields carry the tag `conf:"name"` or
//     `conf:"name,required"`; a key no field names is refused, with the known
//     key it may have meant; an embedded struct without a tag lends its fields
//   - pointers, slices, maps by text, and [Pairs] where a map's order counts; a
//     key with nothing after it leaves them empty
//   - text, booleans, whole numbers, numbers, and [time.Duration] from text
//     such as 60s
//   - [Node], for a value that is looked at later; a [Decoder]; and any type
//     with an UnmarshalJSON method, which is given the value's JSON
//
// A value of another kind is an error that says what was expected and found:
// the text "10" is not a number, nor is 10 a text.
func Decode(n Node, dst any) error {
	v := reflect.ValueOf(dst)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		panic("conf: Decode needs a pointer")
	}
	return decode(n, v.Elem(), "")
}

var (
	nodeType     = reflect.TypeFor[Node]()
	durationType = reflect.TypeFor[time.Duration]()
)

type pathDecoder interface {
	decodeAt(n Node, path string) error
}

type jsonUnmarshaler interface{ UnmarshalJSON([]byte) error }

// decode fills v; path names it in messages, "" at the top.
func decode(n Node, v reflect.Value, path string) error {
	if v.Type() == nodeType {
		v.Set(reflect.ValueOf(n))
		return nil
	}
	switch d := v.Addr().Interface().(type) {
	case pathDecoder:
		return d.decodeAt(n, path)
	case Decoder:
		return d.DecodeConf(n)
	case jsonUnmarshaler:
		if err := d.UnmarshalJSON(n.JSON()); err != nil {
			return n.Errorf("%s: %v", name(path), err)
		}
		return nil
	}
	if v.Type() == durationType {
		return decodeDuration(n, v, path)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if n.Kind() == Null {
			v.SetZero()
			return nil
		}
		p := reflect.New(v.Type().Elem())
		if err := decode(n, p.Elem(), path); err != nil {
			return err
		}
		v.Set(p)
		return nil
	case reflect.Struct:
		return decodeStruct(n, v, path)
	case reflect.Slice:
		return decodeSlice(n, v, path)
	case reflect.Map:
		return decodeMap(n, v, path)
	}
	return decodeScalar(n, v, path)
}

func wrong(n Node, path, want string) error {
	if n.Kind() == Null {
		return n.Errorf("%s must be %s, found nothing; leave the key out when it is not meant", name(path), want)
	}
	return n.Errorf("%s must be %s, found %s", name(path), want, n.describe())
}

func name(path string) string {
	if path == "" {
		return "the value"
	}
	return path
}

func decodeScalar(n Node, v reflect.Value, path string) error {
	// What a variable held is text; where a number or a boolean is wanted it
	// can only have meant one.
	plain := n.Kind() == Text && n.n.expanded
	switch v.Kind() {
	case reflect.String:
		s, ok := n.Text()
		if !ok {
			if k := n.Kind(); k == Number || k == Bool {
				return n.Errorf("%s must be text, found %s; write it in quotes", name(path), n.describe())
			}
			return wrong(n, path, "text")
		}
		v.SetString(s)
	case reflect.Bool:
		if n.Kind() != Bool && !(plain && (n.n.text == "true" || n.n.text == "false")) {
			return wrong(n, path, "true or false")
		}
		v.SetBool(n.n.text == "true")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if n.Kind() != Number && !plain {
			return wrong(n, path, "a whole number")
		}
		i, err := strconv.ParseInt(n.n.text, 10, v.Type().Bits())
		if err != nil {
			return wrong(n, path, "a whole number"+rangeOf(err, v))
		}
		v.SetInt(i)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if n.Kind() != Number && !plain {
			return wrong(n, path, "a whole number")
		}
		i, err := strconv.ParseUint(n.n.text, 10, v.Type().Bits())
		if err != nil {
			return wrong(n, path, "a whole number of at least 0"+rangeOf(err, v))
		}
		v.SetUint(i)
	case reflect.Float32, reflect.Float64:
		if n.Kind() != Number && !(plain && jsonNumber.MatchString(n.n.text)) {
			return wrong(n, path, "a number")
		}
		f, err := strconv.ParseFloat(n.n.text, v.Type().Bits())
		if err != nil {
			return wrong(n, path, "a number that fits")
		}
		v.SetFloat(f)
	default:
		panic(fmt.Sprintf("conf: cannot decode into a %s", v.Type()))
	}
	return nil
}

func rangeOf(err error, v reflect.Value) string {
	if errors.Is(err, strconv.ErrRange) {
		return fmt.Sprintf(" of %d bits", v.Type().Bits())
	}
	return ""
}

func decodeDuration(n Node, v reflect.Value, path string) error {
	const want = "a time such as 500ms, 60s or 5m"
	s, ok := n.Text()
	if !ok {
		return wrong(n, path, want)
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return wrong(n, path, want)
	}
	v.SetInt(int64(d))
	return nil
}

func decodeSlice(n Node, v reflect.Value, path string) error {
	switch n.Kind() {
	case Null:
		v.SetZero()
		return nil
	case List:
	default:
		return wrong(n, path, "a list")
	}
	s := reflect.MakeSlice(v.Type(), len(n.Items()), len(n.Items()))
	for i, item := range n.Items() {
		if err := decode(item, s.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	v.Set(s)
	return nil
}

func decodeMap(n Node, v reflect.Value, path string) error {
	switch n.Kind() {
	case Null:
		v.SetZero()
		return nil
	case Map:
	default:
		return wrong(n, path, "a map")
	}
	m := reflect.MakeMapWithSize(v.Type(), len(n.Members()))
	for _, member := range n.Members() {
		value := reflect.New(v.Type().Elem()).Elem()
		if err := decode(member.Value, value, join(path, member.Key)); err != nil {
			return err
		}
		m.SetMapIndex(reflect.ValueOf(member.Key).Convert(v.Type().Key()), value)
	}
	v.Set(m)
	return nil
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// field is one key a struct takes.
type field struct {
	name     string
	required bool
	index    []int
}

// fieldsOf lists a struct's keys in the order of its fields.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("conf")
		if f.Anonymous && !tagged && f.Type.Kind() == reflect.Struct {
			for _, inner := range fieldsOf(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				fields = append(fields, inner)
			}
			continue
		}
		if !tagged || tag == "-" {
			continue
		}
		key, opts, _ := strings.Cut(tag, ",")
		fields = append(fields, field{key, opts == "required", []int{i}})
	}
	return fields
}

func decodeStruct(n Node, v reflect.Value, path string) error {
	if n.Kind() != Map {
		return wrong(n, path, "a map")
	}
	fields := fieldsOf(v.Type())
	for _, m := range n.Members() {
		f := find(fields, m.Key)
		if f == nil {
			return unknownKey(m, path, fields)
		}
		if err := decode(m.Value, v.FieldByIndex(f.index), join(path, m.Key)); err != nil {
			return err
		}
	}
	for _, f := range fields {
		if f.required && n.Member(f.name).IsZero() {
			return n.Errorf("%s is missing", join(path, f.name))
		}
	}
	return nil
}

func find(fields []field, key string) *field {
	for i := range fields {
		if fields[i].name == key {
			return &fields[i]
		}
	}
	return nil
}

func unknownKey(m Member, path string, fields []field) error {
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.name
	}
	in := ""
	if path != "" {
		in = " in " + path
	}
	if near := Suggest(m.Key, known); near != "" {
		return m.Errorf("unknown key %q%s; did you mean %q?", m.Key, in, near)
	}
	return m.Errorf("unknown key %q%s; known are %s", m.Key, in, strings.Join(known, ", "))
}

// Pairs is a map that keeps its order.
type Pairs[T any] []Pair[T]

// Pair is one member of a Pairs.
type Pair[T any] struct {
	Key   string
	Value T
	At    Node // the value's place, for messages
}

func (p *Pairs[T]) decodeAt(n Node, path string) error {
	switch n.Kind() {
	case Null:
		*p = nil
		return nil
	case Map:
	default:
		return wrong(n, path, "a map")
	}
	pairs := make(Pairs[T], len(n.Members()))
	for i, m := range n.Members() {
		pairs[i].Key, pairs[i].At = m.Key, m.Value
		if err := decode(m.Value, reflect.ValueOf(&pairs[i].Value).Elem(), join(path, m.Key)); err != nil {
			return err
		}
	}
	*p = pairs
	return nil
}

// Get returns the value of a key.
func (p Pairs[T]) Get(key string) (v T, ok bool) {
	for _, pair := range p {
		if pair.Key == key {
			return pair.Value, true
		}
	}
	return v, false
}
