// Package conf reads the YAML and JSON files that people write: spec files and
// programs.
//
// [Parse] makes a tree of [Node]s that remembers what matters later: the order
// of members, the spelling of numbers, and the place of everything, so that
// each message names file, line and column. It refuses what would be guessed
// at: a key written twice, a key that is not text, a second document, numbers
// that are not finite, digits that could be a number or a text (007, 1_000),
// tags, merge keys, and aliases that make a small file a large value.
//
// [Decode] fills Go structs from a node and refuses keys they do not have, with
// a suggestion. [Expand] replaces ${NAME}; only who reads a spec calls it, and
// nothing else in the program does.
//
// A file is read as JSON when its name ends in .json or its text is JSON, and
// as YAML 1.2 otherwise.
package conf

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind is what a node is.
type Kind int

// The kinds of nodes.
const (
	Missing Kind = iota // the zero Node
	Null
	Bool
	Number
	Text
	List
	Map
)

// String names the kind as messages do.
func (k Kind) String() string {
	return [...]string{"nothing", "null", "a boolean", "a number", "text", "a list", "a map"}[k]
}

// Node is one value of a file. It is immutable; the zero Node is no value.
type Node struct{ n *node }

type node struct {
	kind      Kind
	file      string
	line, col int
	text      string // a text, a number as it is spelled, "true" or "false"
	expanded  bool   // a text in which ${NAME} was replaced
	items     []Node
	members   []Member
	size      int // values in it, aliases followed
}

// Member is one member of a map.
type Member struct {
	Key   string
	Value Node
	line  int
	col   int
}

// Error is something wrong at a place of a file.
type Error struct {
	File      string
	Line, Col int // from 1; 0 when the place is not known
	Msg       string
}

// Error is "file:line:col: what is wrong".
func (e *Error) Error() string {
	switch {
	case e.Line == 0:
		return e.File + ": " + e.Msg
	case e.Col == 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Msg)
}

// Parse reads the one value that data holds. The file name is for messages. Its
// errors are [*Error]s.
func Parse(file string, data []byte) (Node, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if i := invalidUTF8(data); i >= 0 {
		line, col := place(data, i)
		return Node{}, &Error{file, line, col, "not UTF-8 text"}
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return Node{}, &Error{File: file, Msg: "the file is empty"}
	}
	if strings.HasSuffix(strings.ToLower(file), ".json") {
		return parseJSON(file, data)
	}
	if c := bytes.TrimSpace(data)[0]; c == '{' || c == '[' {
		// YAML reads most JSON, but not its surrogate pairs and tabs.
		if n, err := parseJSON(file, data); err == nil {
			return n, nil
		}
	}
	return parseYAML(file, data)
}

func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// place is the line and column, from 1, of a byte offset; columns count
// characters.
func place(data []byte, offset int) (line, col int) {
	before := data[:min(offset, len(data))]
	line = 1 + bytes.Count(before, []byte{'\n'})
	return line, 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
}

// Kind is what the node is.
func (n Node) Kind() Kind {
	if n.n == nil {
		return Missing
	}
	return n.n.kind
}

// IsZero reports whether there is no node.
func (n Node) IsZero() bool { return n.n == nil }

// File is the name of the node's file.
func (n Node) File() string { return n.at().file }

// Line is the node's line, from 1.
func (n Node) Line() int { return n.at().line }

// Col is the node's column, from 1.
func (n Node) Col() int { return n.at().col }

func (n Node) at() *node {
	if n.n == nil {
		return &node{}
	}
	return n.n
}

// Text is a text's characters; ok is false for any other node.
func (n Node) Text() (s string, ok bool) {
	if n.Kind() != Text {
		return "", false
	}
	return n.n.text, true
}

// Items are a list's items; none for any other node.
func (n Node) Items() []Node { return n.at().items }

// Members are a map's members in order; none for any other node.
func (n Node) Members() []Member { return n.at().members }

// Member is the map's member of that name; the zero Node when there is none.
func (n Node) Member(name string) Node {
	for _, m := range n.Members() {
		if m.Key == name {
			return m.Value
		}
	}
	return Node{}
}

// Errorf is an [*Error] at the node's place.
func (n Node) Errorf(format string, args ...any) error {
	at := n.at()
	return &Error{at.file, at.line, at.col, fmt.Sprintf(format, args...)}
}

// Wrap puts the node's place in front of an error's message.
func (n Node) Wrap(err error) error {
	at := n.at()
	return fmt.Errorf("%s:%d:%d: %w", at.file, at.line, at.col, err)
}

// Errorf is an [*Error] at the place of the member's key.
func (m Member) Errorf(format string, args ...any) error {
	return &Error{m.Value.File(), m.line, m.col, fmt.Sprintf(format, args...)}
}

// JSON is the node as JSON text: members in order, numbers as they are spelled.
// The zero Node is null.
func (n Node) JSON() []byte { return n.appendJSON(nil) }

func (n Node) appendJSON(b []byte) []byte {
	switch n.Kind() {
	case Bool, Number:
		return append(b, n.n.text...)
	case Text:
		return appendString(b, n.n.text)
	case List:
		b = append(b, '[')
		for i, item := range n.n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.appendJSON(b)
		}
		return append(b, ']')
	case Map:
		b = append(b, '{')
		for i, m := range n.n.members {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, m.Key)
			b = append(b, ':')
			b = m.Value.appendJSON(b)
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

// describe says what a node is and, for a scalar, which: text "ten".
func (n Node) describe() string {
	switch n.Kind() {
	case Text:
		return "text " + strconv.Quote(shorten(n.n.text))
	case Number, Bool:
		return n.Kind().String()[2:] + " " + n.n.text
	}
	return n.Kind().String()
}

func shorten(s string) string {
	if utf8.RuneCountInString(s) <= 60 {
		return s
	}
	return string([]rune(s)[:57]) + "…"
}
