package pipeline

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"evalrun/datasets"
)

// misfit is why a value does not fit a shape, and where in the value. It is put
// into words when it is shown: most are of choices that did not fit where
// another did.
type misfit struct {
	step  string  // .lines or [2]: where inner lies in the value
	inner *misfit // nil for the value itself
	why   string
	first *misfit // of several choices, why the first does not fit
}

// shownChoices is how many choices inside choices a misfit names.
const shownChoices = 3

func (m *misfit) String() string { return m.text(shownChoices) }

func (m *misfit) text(choices int) string {
	var path strings.Builder
	for ; m.inner != nil; m = m.inner {
		path.WriteString(m.step)
	}
	why := m.why
	if m.first != nil {
		first := "…"
		if choices > 0 {
			first = m.first.text(choices - 1)
		}
		why += " (of the first: " + first + ")"
	}
	if path.Len() == 0 {
		return why
	}
	return "at " + path.String() + ", " + why
}

func misfitf(format string, args ...any) *misfit {
	return &misfit{why: fmt.Sprintf(format, args...)}
}

func (m *misfit) in(step string) *misfit { return &misfit{step: step, inner: m} }

// check returns the first reason why v does not fit, nil when it does.
func (s *shape) check(v datasets.Value) *misfit {
	return checker{}.check(s, v)
}

// checker is one check of a value. It remembers what came of a shape that
// references lead to: many references may lead to one shape, by way of each
// other, and following each anew would double the work with every one.
type checker map[checked]*misfit

// checked is a shape and the text of a value.
type checked struct {
	shape *shape
	text  string
}

func (c checker) referred(s *shape, v datasets.Value) *misfit {
	key := checked{s, v.JSON()}
	m, known := c[key]
	if !known {
		m = c.check(s, v)
		c[key] = m
	}
	return m
}

func (c checker) check(s *shape, v datasets.Value) *misfit {
	if s.types != nil && !slices.ContainsFunc(s.types, func(t string) bool { return isType(v, t) }) {
		return misfitf("must be %s, found %s", typeList(s.types), describe(v))
	}
	if s.enum != nil && !slices.ContainsFunc(s.enum, v.Equal) {
		return misfitf("must be one of %s, found %s", choices(s.enum), describe(v))
	}
	if !s.constant.IsZero() && !s.constant.Equal(v) {
		return misfitf("must be %s, found %s", s.constant.JSON(), describe(v))
	}
	if s.ref != nil {
		if m := c.referred(s.ref, v); m != nil {
			return m
		}
	}
	if s.anyOf != nil {
		var first *misfit
		for _, option := range s.anyOf {
			m := c.check(option, v)
			if m == nil {
				first = nil
				break
			}
			if first == nil {
				first = m
			}
		}
		if first != nil {
			m := misfitf("must fit one of %d shapes, found %s", len(s.anyOf), describe(v))
			m.first = first
			return m
		}
	}
	switch v.Kind() {
	case '[':
		return c.list(s, v)
	case '{':
		return c.object(s, v)
	case '"':
		return s.checkText(v)
	case '0':
		return s.checkNumber(v)
	}
	return nil
}

func isType(v datasets.Value, t string) bool {
	switch v.Kind() {
	case 'n':
		return t == "null"
	case 't', 'f':
		return t == "boolean"
	case '"':
		return t == "string"
	case '[':
		return t == "array"
	case '{':
		return t == "object"
	case '0':
		return t == "number" || t == "integer" && isWhole(v.JSON())
	}
	return false
}

// isWhole reports whether a number literal has no fraction: 5.0 has none.
func isWhole(literal string) bool {
	if !strings.ContainsAny(literal, ".eE") {
		return true
	}
	f, err := strconv.ParseFloat(literal, 64)
	return err == nil && f == math.Trunc(f)
}

func (c checker) list(s *shape, v datasets.Value) *misfit {
	n := 0
	var seen map[string]bool
	if s.unique {
		seen = map[string]bool{}
	}
	for e := range v.Elements() {
		inner := s.items
		if n < len(s.prefix) {
			inner = s.prefix[n]
		}
		at := "[" + strconv.Itoa(n) + "]"
		if inner != nil {
			if m := c.check(inner, e); m != nil {
				return m.in(at)
			}
		}
		if seen != nil {
			if seen[e.Canonical()] {
				return misfitf("is listed twice").in(at)
			}
			seen[e.Canonical()] = true
		}
		n++
	}
	if s.minItems >= 0 && n < s.minItems {
		return misfitf("must have at least %d items, found %d", s.minItems, n)
	}
	if s.maxItems >= 0 && n > s.maxItems {
		return misfitf("must have at most %d items, found %d", s.maxItems, n)
	}
	return nil
}

func (c checker) object(s *shape, v datasets.Value) *misfit {
	if s.required == nil && s.properties == nil && s.additional == nil && !s.closed {
		return nil
	}
	members := datasets.ValuesOf(v)
	for _, name := range s.required {
		if members[name].IsZero() {
			return misfitf("must have %q", name)
		}
	}
	for _, p := range s.properties {
		if w := members[p.name]; !w.IsZero() {
			if m := c.check(p.shape, w); m != nil {
				return m.in("." + p.name)
			}
		}
	}
	if s.additional == nil && !s.closed {
		return nil
	}
	for _, name := range members.Names() {
		if slices.ContainsFunc(s.properties, func(p property) bool { return p.name == name }) {
			continue
		}
		if s.closed {
			return misfitf("has a member %q its shape does not name", name)
		}
		if m := c.check(s.additional, members[name]); m != nil {
			return m.in("." + name)
		}
	}
	return nil
}

func (s *shape) checkText(v datasets.Value) *misfit {
	if s.minLength < 0 && s.maxLength < 0 {
		return nil
	}
	text, _ := v.AsText()
	n := utf8.RuneCountInString(text)
	if s.minLength >= 0 && n < s.minLength {
		return misfitf("must have at least %d characters, found %d", s.minLength, n)
	}
	if s.maxLength >= 0 && n > s.maxLength {
		return misfitf("must have at most %d characters, found %d", s.maxLength, n)
	}
	return nil
}

func (s *shape) checkNumber(v datasets.Value) *misfit {
	n := v.JSON()
	switch {
	case s.minimum != "" && compareNumbers(n, s.minimum) < 0:
		return misfitf("must be at least %s, found %s", s.minimum, n)
	case s.maximum != "" && compareNumbers(n, s.maximum) > 0:
		return misfitf("must be at most %s, found %s", s.maximum, n)
	case s.above != "" && compareNumbers(n, s.above) <= 0:
		return misfitf("must be above %s, found %s", s.above, n)
	case s.below != "" && compareNumbers(n, s.below) >= 0:
		return misfitf("must be below %s, found %s", s.below, n)
	}
	return nil
}

// compareNumbers compares number literals: by float64, and integers that round
// to the same float64 by their digits.
func compareNumbers(a, b string) int {
	x, _ := strconv.ParseFloat(a, 64)
	y, _ := strconv.ParseFloat(b, 64)
	if x < y {
		return -1
	}
	if x > y {
		return 1
	}
	i, ok := new(big.Int).SetString(a, 10)
	j, ok2 := new(big.Int).SetString(b, 10)
	if ok && ok2 {
		return i.Cmp(j)
	}
	return 0
}

func typeList(types []string) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = map[string]string{
			"null": "null", "boolean": "true or false", "integer": "a whole number", "number": "a number",
			"string": "text", "array": "a list", "object": "an object",
		}[t]
	}
	return strings.Join(names, " or ")
}

func choices(values []datasets.Value) string {
	var list []string
	for _, v := range values {
		list = append(list, v.String())
	}
	return strings.Join(list, ", ")
}

// describe says in a few words what a value is.
func describe(v datasets.Value) string {
	switch v.Kind() {
	case '"':
		s, _ := v.AsText()
		return "the text " + strconv.Quote(shorten(s))
	case '[':
		return "a list"
	case '{':
		return "an object"
	case 0:
		return "nothing"
	}
	return shorten(v.JSON())
}

func shorten(s string) string {
	if utf8.RuneCountInString(s) <= 80 {
		return s
	}
	return string([]rune(s)[:77]) + "…"
}
