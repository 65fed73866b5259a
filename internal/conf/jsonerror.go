package conf

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ExplainJSON puts an error of unmarshalling JSON into dst, a pointer to a struct
// with json tags, into the words of the format: the key that is unknown and the
// one it may have meant, or what a key must be and was. Any other error's words
// are its own.
func ExplainJSON(err error, dst any) string {
	wrong, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return err.Error()
	}
	path, at := follow(reflect.TypeOf(dst).Elem(), wrong.JSONPointer)
	if errors.Is(wrong.Err, json.ErrUnknownName) {
		where, of := follow(reflect.TypeOf(dst).Elem(), wrong.JSONPointer.Parent())
		return unknownJSONKey(wrong.JSONPointer.LastToken(), where, jsonKeys(of))
	}
	found := kindOfJSON(wrong.JSONKind)
	if len(wrong.JSONValue) > 0 && len(wrong.JSONValue) <= 60 {
		found += " " + string(wrong.JSONValue)
	}
	return fmt.Sprintf("%s must be %s, not %s", name(path), jsonType(at), found)
}

func unknownJSONKey(key, where string, known []string) string {
	s := fmt.Sprintf("unknown key %q", key)
	if where != "" {
		s += " in " + where
	}
	if near := Suggest(key, known); near != "" {
		return s + fmt.Sprintf("; did you mean %q?", near)
	}
	if known == nil {
		return s
	}
	return s + "; known are " + strings.Join(known, ", ")
}

// follow walks a pointer down a type. The path it returns is for messages; the
// type is nil where the pointer leaves what is known.
func follow(t reflect.Type, p jsontext.Pointer) (path string, at reflect.Type) {
	for token := range p.Tokens() {
		t = plainType(t)
		switch {
		case t != nil && t.Kind() == reflect.Slice:
			path, t = path+"["+token+"]", t.Elem()
		case t != nil && t.Kind() == reflect.Map:
			path, t = join(path, token), t.Elem()
		default:
			path, t = join(path, token), jsonField(t, token)
		}
	}
	return path, plainType(t)
}

func plainType(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func jsonField(t reflect.Type, key string) reflect.Type {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	for f := range t.Fields() {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == key {
			return f.Type
		}
	}
	return nil
}

// jsonKeys are the keys of a struct's tags, in their order.
func jsonKeys(t reflect.Type) []string {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	var keys []string
	for f := range t.Fields() {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag != "" && tag != "-" {
			keys = append(keys, tag)
		}
	}
	return keys
}

func jsonType(t reflect.Type) string {
	if t == nil {
		return "something else"
	}
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice:
		if plainType(t.Elem()).Kind() == reflect.String {
			return "a list of texts"
		}
		return "a list"
	}
	return "an object"
}

func kindOfJSON(k jsontext.Kind) string {
	switch k {
	case 'n', 't', 'f':
		return k.String()
	case '"':
		return "text"
	case '0':
		return "the number"
	case '[':
		return "a list"
	}
	return "an object"
}
