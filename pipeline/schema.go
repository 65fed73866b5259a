package pipeline

import (
	"slices"

	"evalrun/datasets"
	"evalrun/internal/canon"
)

// member is one member of a JSON object, in its place.
type member struct {
	name  string
	value datasets.Value
}

func object(members []member) datasets.Value {
	b := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = canon.AppendString(b, m.name)
		b = append(b, ':')
		b = append(b, m.value.JSON()...)
	}
	return datasets.RawValue(string(append(b, '}')))
}

func list(values []datasets.Value) datasets.Value {
	b := []byte{'['}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v.JSON()...)
	}
	return datasets.RawValue(string(append(b, ']')))
}

func texts(names []string) datasets.Value {
	values := make([]datasets.Value, len(names))
	for i, name := range names {
		values[i] = datasets.Text(name)
	}
	return list(values)
}

// The keywords of a JSON Schema under which further ones lie: by name, in a
// list, alone.
var (
	schemaMaps  = []string{"properties", "patternProperties", "$defs", "definitions"}
	schemaLists = []string{"prefixItems", "anyOf", "oneOf", "allOf"}
	schemaOnes  = []string{"additionalProperties", "items", "not", "if", "then", "else", "contains"}
)

// eachSchema rewrites a JSON Schema and every one inside it, innermost first.
func eachSchema(v datasets.Value, edit func([]member) []member) datasets.Value {
	if v.Kind() != '{' {
		return v
	}
	var members []member
	for name, w := range v.Members() {
		switch {
		case slices.Contains(schemaMaps, name) && w.Kind() == '{':
			var inner []member
			for key, s := range w.Members() {
				inner = append(inner, member{key, eachSchema(s, edit)})
			}
			w = object(inner)
		case slices.Contains(schemaLists, name) && w.Kind() == '[':
			var inner []datasets.Value
			for s := range w.Elements() {
				inner = append(inner, eachSchema(s, edit))
			}
			w = list(inner)
		case slices.Contains(schemaOnes, name):
			w = eachSchema(w, edit)
		}
		members = append(members, member{name, w})
	}
	return object(edit(members))
}

func find(members []member, name string) int {
	return slices.IndexFunc(members, func(m member) bool { return m.name == name })
}

// closed is a schema in which every record that says nothing of further members
// allows none and requires all it names: providers that enforce a schema
// accept no other.
func closed(schema datasets.Value) datasets.Value {
	return eachSchema(schema, func(members []member) []member {
		i := find(members, "properties")
		if i < 0 || members[i].value.Kind() != '{' || find(members, "additionalProperties") >= 0 {
			return members
		}
		var names []string
		for name := range members[i].value.Members() {
			names = append(names, name)
		}
		if r := find(members, "required"); r >= 0 {
			members[r].value = texts(names)
		} else {
			members = append(members, member{"required", texts(names)})
		}
		return append(members, member{"additionalProperties", datasets.Bool(false)})
	})
}

// withoutDefaults is a schema with every default left out, at any depth: what a
// field's data looks like does not depend on them.
func withoutDefaults(schema datasets.Value) datasets.Value {
	return eachSchema(schema, func(members []member) []member {
		return slices.DeleteFunc(members, func(m member) bool { return m.name == "default" })
	})
}

// withoutDefault is a schema without the default of its own.
func withoutDefault(schema datasets.Value) datasets.Value {
	var members []member
	for name, v := range schema.Members() {
		if name != "default" {
			members = append(members, member{name, v})
		}
	}
	return object(members)
}
