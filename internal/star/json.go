package star

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	starjson "go.starlark.net/lib/json"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"evalrun/internal/canon"
)

const (
	maxDepth = 200    // how deep a value that crosses may be nested
	maxBits  = 10_000 // how large a whole number that crosses may be: 3,000 digits
)

var lenient = jsontext.Options(json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)))

// decode makes a Starlark value of JSON text, new and for the handler to change.
// Objects keep the order of their members; whole numbers of any size stay exact;
// a number with a point or an exponent is a float.
func decode(text string, limit int) (starlark.Value, error) {
	switch {
	case text == "null":
		return starlark.None, nil
	case len(text) > limit:
		return nil, fmt.Errorf("%d bytes as JSON are too many; there may be %d", len(text), limit)
	case text[0] == '"' && strings.IndexByte(text, '\\') < 0:
		return starlark.String(text[1 : len(text)-1]), nil
	}
	return decodeNext(jsontext.NewDecoder(strings.NewReader(text), lenient), 0)
}

func decodeNext(dec *jsontext.Decoder, depth int) (starlark.Value, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	if dec.PeekKind() == '0' {
		text, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		return number(string(text))
	}
	token, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case 'n':
		return starlark.None, nil
	case 't', 'f':
		return starlark.Bool(token.Bool()), nil
	case '"':
		return starlark.String(token.String()), nil
	case '[':
		var list []starlark.Value
		for dec.PeekKind() != ']' {
			v, err := decodeNext(dec, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.ReadToken()
		return starlark.NewList(list), err
	}
	dict := new(starlark.Dict)
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		key := starlark.String(name.String())
		v, err := decodeNext(dec, depth+1)
		if err != nil {
			return nil, err
		}
		if err := dict.SetKey(key, v); err != nil {
			return nil, err
		}
	}
	_, err = dec.ReadToken()
	return dict, err
}

func number(text string) (starlark.Value, error) {
	if !strings.ContainsAny(text, ".eE") && text != "-0" {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return starlark.MakeInt64(n), nil
		}
		if n, ok := new(big.Int).SetString(text[:min(len(text), maxBits)], 10); ok && len(text) <= maxBits/3 {
			return starlark.MakeBigInt(n), nil
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("the number %.40s is too large", text)
	}
	return starlark.Float(f), nil
}

// encode is the JSON text of a Starlark value. A value that has none is refused:
// a set, which has no order; a float that is not finite; text that is not UTF-8;
// an object whose keys are not texts; and whatever is too deep or too large.
func encode(v starlark.Value, limit int) (string, error) {
	b, err := appendValue(nil, v, limit, 0)
	return string(b), err
}

func appendValue(b []byte, v starlark.Value, limit, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("it is nested more than %d deep, or within itself", maxDepth)
	}
	var err error
	switch v := v.(type) {
	case starlark.NoneType:
		b = append(b, "null"...)
	case starlark.Bool:
		b = strconv.AppendBool(b, bool(v))
	case starlark.String:
		if b, err = appendText(b, string(v), limit); err != nil {
			return nil, err
		}
	case starlark.Int:
		if n, ok := v.Int64(); ok {
			b = strconv.AppendInt(b, n, 10)
			break
		}
		n := v.BigInt()
		if n.BitLen() > maxBits {
			return nil, fmt.Errorf("a whole number of %d bits is too large; there may be %d", n.BitLen(), maxBits)
		}
		b = n.Append(b, 10)
	case starlark.Float:
		if f := float64(v); f-f != 0 {
			return nil, fmt.Errorf("the float %v has no JSON form", v)
		}
		b = canon.AppendFloat(b, float64(v))
	case *starlark.List:
		return appendList(b, v, limit, depth)
	case starlark.Tuple:
		return appendList(b, v, limit, depth)
	case *starlark.Dict:
		b = append(b, '{')
		for i, item := range v.Items() {
			if i > 0 {
				b = append(b, ',')
			}
			key, ok := item[0].(starlark.String)
			if !ok {
				return nil, fmt.Errorf("%s is a key; in JSON keys are texts", a(item[0]))
			}
			if b, err = appendText(b, string(key), limit); err != nil {
				return nil, err
			}
			b = append(b, ':')
			if b, err = appendValue(b, item[1], limit, depth+1); err != nil {
				return nil, err
			}
		}
		b = append(b, '}')
	default:
		return nil, fmt.Errorf("%s has no JSON form", a(v))
	}
	if len(b) > limit {
		return nil, fmt.Errorf("it is larger than %d bytes as JSON", limit)
	}
	return b, nil
}

func appendList(b []byte, list starlark.Indexable, limit, depth int) ([]byte, error) {
	b = append(b, '[')
	var err error
	for i := range list.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendValue(b, list.Index(i), limit, depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func appendText(b []byte, s string, limit int) ([]byte, error) {
	if len(s) > limit {
		return nil, fmt.Errorf("a text of %d bytes is too long; there may be %d", len(s), limit)
	}
	if !utf8.ValidString(s) {
		return nil, errors.New("a text is not UTF-8: it may have been cut inside a character")
	}
	return canon.AppendString(b, s), nil
}

// jsonModule is Starlark's json, which would go as deep as its value or text does
// and end the process: what a tool answers is decoded with it.
var jsonModule = &starlarkstruct.Module{Name: "json", Members: starlark.StringDict{
	"encode":        shallow(starjson.Module.Members["encode"], maxDepth),
	"encode_indent": shallow(starjson.Module.Members["encode_indent"], maxDepth),
	"decode":        starlark.NewBuiltin("json.decode", decodeText),
	"indent":        starjson.Module.Members["indent"],
}}

// decodeText is json.decode(text, default=), where a text that is nested too deep
// is as one that is no JSON.
func decodeText(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var text string
	var otherwise starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "x", &text, "default?", &otherwise); err != nil {
		return nil, err
	}
	switch {
	case !tooDeep(text):
		return starlark.Call(t, starjson.Module.Members["decode"], args, kwargs)
	case otherwise != nil:
		return otherwise, nil
	}
	return nil, fmt.Errorf("json.decode: it is nested more than %d deep", maxDepth)
}

// tooDeep reports whether the lists and objects of a JSON text lie too deep in
// each other. Of other texts it may say anything but no to one that opens more.
func tooDeep(text string) bool {
	depth, inText := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '[' || c == '{':
			if depth++; depth > maxDepth {
				return true
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return false
}
