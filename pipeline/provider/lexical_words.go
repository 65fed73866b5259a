package provider

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// field is one input as a message shows it; its name is "" where the message has
// no marks.
type field struct {
	name, value string
	words       []string // of the value
}

func newField(name, value string) field { return field{name, value, words(value)} }

// readFields takes a message apart: into its marks or headers when it consists of
// them, else into one field without a name.
func readFields(message string) []field {
	if fields := markedFields(message); fields != nil {
		return fields
	}
	if rest, ok := strings.CutPrefix(strings.TrimSpace(message), headerOpen); ok {
		var fields []field
		for part := range strings.SplitSeq(rest, headerOpen) {
			name, value, ok := strings.Cut(part, headerClose)
			if !ok {
				return []field{newField("", message)}
			}
			fields = append(fields, newField(name, strings.TrimSpace(value)))
		}
		return fields
	}
	return []field{newField("", message)}
}

func markedFields(message string) []field {
	var fields []field
	rest := strings.TrimSpace(message)
	for rest != "" {
		inner, ok := strings.CutPrefix(rest, "<")
		if !ok {
			return nil
		}
		name, inner, ok := strings.Cut(inner, ">")
		if !ok || !isName(name) {
			return nil
		}
		value, after, ok := strings.Cut(inner, "</"+name+">")
		if !ok {
			return nil
		}
		fields = append(fields, newField(name, strings.TrimSpace(value)))
		rest = strings.TrimSpace(after)
	}
	return fields
}

// hasRun reports whether the words of part stand in all one after the other.
func hasRun(all, part []string) bool {
	if len(part) == 0 {
		return false
	}
	for i := 0; i+len(part) <= len(all); i++ {
		if slices.Equal(all[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

// words returns a text's words in lower case: runs of letters, digits and what
// combines with them.
func words(text string) []string {
	list := strings.FieldsFunc(text, func(r rune) bool { return !wordRune(r) })
	for i, w := range list {
		list[i] = strings.ToLower(w)
	}
	return list
}

func wordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.In(r, unicode.L, unicode.N, unicode.M)
}
