package providertest

import (
	"maps"
	"slices"
	"strings"

	"evalrun/datasets"
)

// What dialects have in common.

// Ended is a text that ends before the first of the stop sequences and after that
// many words, 0 for any number; and why it ended: stop or length.
func Ended(text string, stops []string, most int) (ended, finish string) {
	for _, s := range stops {
		if s != "" {
			text, _, _ = strings.Cut(text, s)
		}
	}
	if all := strings.Fields(text); most > 0 && len(all) > most {
		return strings.Join(all[:most], " "), "length"
	}
	return text, "stop"
}

// words counts tokens.
func words(text string) int { return len(strings.Fields(text)) }

// textOf is the text of content: a text, or the texts of a list of parts.
func textOf(content datasets.Value) string {
	if text, ok := content.AsText(); ok {
		return text
	}
	var b strings.Builder
	for part := range content.Elements() {
		text, _ := part.Member("text").AsText()
		b.WriteString(text)
	}
	return b.String()
}

// fitting is a value that fits a schema: text where it may be a text, else the
// first choice, or the least there is.
func fitting(schema datasets.Value, text string) any {
	for first := range schema.Member("enum").Elements() {
		return first
	}
	kind, _ := schema.Member("type").AsText()
	switch kind {
	case "object":
		object := map[string]any{}
		for name, s := range schema.Member("properties").Members() {
			object[name] = fitting(s, text)
		}
		return object
	case "array":
		return []any{}
	case "integer", "number":
		return 0
	case "boolean":
		return false
	}
	return text
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
