package provider

import (
	"slices"

	"evalrun/datasets"
	"evalrun/internal/canon"
)

// unenforced are the keywords of JSON Schema that the Messages API refuses in a
// schema it is to enforce.
var unenforced = []string{
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"minLength", "maxLength", "maxItems", "uniqueItems", "media",
}

// Where further schemas lie in one: under names, or in place of the value, alone or
// in a list.
var (
	namedSchemas = []string{"properties", "$defs", "definitions"}
	innerSchemas = []string{"items", "prefixItems", "anyOf", "oneOf", "allOf", "additionalProperties"}
)

// enforced is a schema as the service takes it. What it does not enforce is left
// out: whoever reads the reply checks it against the whole schema anyway.
func (m *anthropic) enforced(schema datasets.Value) datasets.Value {
	switch schema.Kind() {
	case '[':
		return rebuilt(schema, m.enforced)
	case '{':
	default:
		return schema
	}
	return rebuiltObject(schema, func(key string, v datasets.Value) datasets.Value {
		n, _ := v.AsInt()
		switch {
		case slices.Contains(unenforced, key), key == "minItems" && n > 1:
			m.untaken.leave("response_format's "+key, "the service does not enforce it; replies are still checked against it")
			return datasets.Value{}
		case slices.Contains(namedSchemas, key):
			return rebuiltObject(v, func(_ string, v datasets.Value) datasets.Value { return m.enforced(v) })
		case slices.Contains(innerSchemas, key):
			return m.enforced(v)
		}
		return v
	})
}

// rebuilt is a list with each element replaced.
func rebuilt(list datasets.Value, by func(datasets.Value) datasets.Value) datasets.Value {
	b := []byte{'['}
	for e := range list.Elements() {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, by(e).JSON()...)
	}
	return datasets.RawValue(string(append(b, ']')))
}

// rebuiltObject is an object with each member replaced, in its order; one that is
// replaced by no value is left out. Anything else stays as it is.
func rebuiltObject(object datasets.Value, by func(string, datasets.Value) datasets.Value) datasets.Value {
	if object.Kind() != '{' {
		return object
	}
	b := []byte{'{'}
	for name, v := range object.Members() {
		v = by(name, v)
		if v.IsZero() {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(canon.AppendString(b, name), ':')
		b = append(b, v.JSON()...)
	}
	return datasets.RawValue(string(append(b, '}')))
}
