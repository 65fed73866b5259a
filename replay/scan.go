package replay

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"evalrun/datasets"
	"evalrun/internal/canon"
)

// scanner walks the members of an object or the elements of a list without
// copying anything: what it returns are pieces of the text it was given. It
// trusts the text to be JSON (a JSON library has checked it); on anything else
// it stops early, and never reads out of bounds. Reading a record costs a third
// of what it does with a decoder's tokens.
type scanner struct {
	s string
	i int
}

// enter returns a scanner inside the object or list that text is.
func enter(text string) scanner { return scanner{text, 1} }

func (c *scanner) space() {
	for c.i < len(c.s) {
		switch c.s[c.i] {
		case ' ', '\t', '\n', '\r', ',', ':':
			c.i++
		default:
			return
		}
	}
}

// member returns the next member's name, unescaped, and its value's text.
func (c *scanner) member() (name, value string, ok bool) {
	c.space()
	if c.i >= len(c.s) || c.s[c.i] != '"' {
		return "", "", false
	}
	if name, ok = textOf(c.value()); !ok {
		return "", "", false
	}
	c.space()
	value = c.value()
	return name, value, value != ""
}

// element returns the next element's text.
func (c *scanner) element() (value string, ok bool) {
	c.space()
	if c.i >= len(c.s) || c.s[c.i] == ']' {
		return "", false
	}
	value = c.value()
	return value, value != ""
}

// value takes the value that begins here.
func (c *scanner) value() string {
	start := c.i
	depth := 0
	for c.i < len(c.s) {
		switch c.s[c.i] {
		case '"':
			c.text()
		case '{', '[':
			depth++
			c.i++
			continue
		case '}', ']':
			depth--
			c.i++
		default:
			if depth > 0 {
				c.i++
				continue
			}
			c.scalar()
		}
		if depth <= 0 {
			break
		}
	}
	return c.s[start:c.i]
}

// text passes over the string that begins here. Its end is the first quote with
// an even number of backslashes before it.
func (c *scanner) text() {
	start := c.i + 1
	c.i = start
	for {
		n := strings.IndexByte(c.s[c.i:], '"')
		if n < 0 {
			c.i = len(c.s)
			return
		}
		end := c.i + n
		c.i = end + 1
		escapes := end
		for escapes > start && c.s[escapes-1] == '\\' {
			escapes--
		}
		if (end-escapes)%2 == 0 {
			return
		}
	}
}

// scalar passes over a number or a word.
func (c *scanner) scalar() {
	for ; c.i < len(c.s); c.i++ {
		switch c.s[c.i] {
		case ' ', '\t', '\n', '\r', ',', ':', '}', ']', '{', '[', '"':
			return
		}
	}
}

// textOf returns the content of a JSON string; ok is false for any other value.
func textOf(v string) (s string, ok bool) {
	if len(v) < 2 || v[0] != '"' || v[len(v)-1] != '"' {
		return "", false
	}
	inner := v[1 : len(v)-1]
	if strings.IndexByte(inner, '\\') < 0 {
		return inner, true
	}
	b, _ := jsontext.AppendUnquote(nil, v)
	return string(b), true
}

// The set functions put a value into a field that can hold it without loss, and
// report whether they did. An empty text and a zero are not put anywhere: they
// could not be told from a field that is not set.

func setText(dst *string, v string) bool {
	s, ok := textOf(v)
	if !ok || s == "" {
		return false
	}
	*dst = s
	return true
}

func setValue(dst *datasets.Value, v string) bool {
	*dst = datasets.RawValue(v)
	return true
}

func setInt(dst *int64, v string) bool {
	n, ok := wholeNumber(v)
	if !ok || n == 0 {
		return false
	}
	*dst = n
	return true
}

func setIntPointer(dst **int64, v string) bool {
	n, ok := wholeNumber(v)
	if ok {
		*dst = &n
	}
	return ok
}

func setBool(dst **bool, v string) bool {
	if v != "true" && v != "false" {
		return false
	}
	b := v == "true"
	*dst = &b
	return true
}

// setFloat takes a number whose canonical form is that of the float64: an
// integer of more digits than a float64 holds keeps them elsewhere.
func setFloat(dst **float64, v string) bool {
	if !isNumber(v) {
		return false
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsInf(f, 0) {
		return false
	}
	if math.Abs(f) >= 1<<53 {
		exact, err := canon.AppendNumber(nil, v)
		if err != nil || string(exact) != string(canon.AppendFloat(nil, f)) {
			return false
		}
	}
	*dst = &f
	return true
}

// setTime takes a time of the one form records write, and no other spelling of it.
func setTime(dst *time.Time, v string) bool {
	if len(v) != len(timeForm)+2 || v[0] != '"' {
		return false
	}
	v = v[1 : len(v)-1]
	t, err := time.Parse(time.RFC3339, v)
	if err != nil || t.IsZero() || t.UnixMicro() == 0 {
		return false
	}
	var form [len(timeForm)]byte
	if string(t.AppendFormat(form[:0], timeForm)) != v {
		return false
	}
	*dst = t
	return true
}

func setTexts(dst *[]string, v string) bool {
	if v[0] != '[' {
		return false
	}
	list := []string{}
	c := enter(v)
	for e, ok := c.element(); ok; e, ok = c.element() {
		s, isText := textOf(e)
		if !isText {
			return false
		}
		list = append(list, s)
	}
	*dst = list
	return true
}

// setObjects takes a list of objects, each read by read.
func setObjects[T any](dst *[]T, v string, read func(*T, string)) bool {
	if v[0] != '[' {
		return false
	}
	list := []T{}
	c := enter(v)
	for e, ok := c.element(); ok; e, ok = c.element() {
		if e[0] != '{' {
			return false
		}
		list = append(list, *new(T))
		read(&list[len(list)-1], e)
	}
	*dst = list
	return true
}

// isData reports whether every number in a value is one that a float64 can hold,
// or whole: 1e999 is JSON, and stands for nothing.
func isData(v datasets.Value) bool {
	c := scanner{s: v.JSON()}
	for c.i < len(c.s) {
		switch at := c.i; c.s[at] {
		case '"':
			c.text()
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			c.scalar()
			if _, err := canon.AppendNumber(nil, c.s[at:c.i]); err != nil {
				return false
			}
		default:
			c.i++
		}
	}
	return true
}

func isNumber(v string) bool { return v[0] == '-' || v[0] >= '0' && v[0] <= '9' }

// wholeNumber reads a number that is whole, however it is spelled, and fits an int64.
func wholeNumber(v string) (int64, bool) {
	if !isNumber(v) {
		return 0, false
	}
	if n, err := strconv.ParseInt(v, 10, 64); err == nil {
		return n, true
	}
	exact, err := canon.AppendNumber(nil, v)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(exact), 10, 64)
	return n, err == nil
}

// put keeps a value that no field took. A name written twice counts the last
// time, so an earlier field or entry of it must already be gone.
func put(extra *datasets.Values, name, v string) {
	if *extra == nil {
		*extra = datasets.Values{}
	}
	(*extra)[name] = datasets.RawValue(v)
}
