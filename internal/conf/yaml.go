package conf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseYAML reads one YAML document.
func parseYAML(file string, data []byte) (n Node, err error) {
	// The library panics on input it did not foresee; such a file is refused
	// like any other that cannot be read.
	defer func() {
		if p := recover(); p != nil {
			n, err = Node{}, &Error{File: file, Msg: fmt.Sprintf("not YAML: %v", p)}
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return Node{}, &Error{File: file, Msg: "the file is empty"}
	} else if err != nil {
		return Node{}, yamlFailed(file, err)
	}
	var second yaml.Node
	if err := dec.Decode(&second); err == nil {
		return Node{}, &Error{file, second.Line, second.Column, "a second document; a file holds one"}
	} else if !errors.Is(err, io.EOF) {
		return Node{}, yamlFailed(file, err)
	}
	if len(doc.Content) != 1 {
		return Node{}, &Error{File: file, Msg: "the file is empty"}
	}
	r := &yamlReader{file: file, done: map[*yaml.Node]*node{}}
	n, err = r.read(doc.Content[0])
	if err != nil {
		return Node{}, err
	}
	if n.n.size > maxAliased+len(data) {
		return Node{}, n.Errorf("its aliases make it %d values; write them out, or fewer", n.n.size)
	}
	return n, nil
}

// maxAliased bounds what aliases may add: a file without them has fewer values
// than bytes.
const maxAliased = 100_000

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

func yamlFailed(file string, err error) error {
	msg := err.Error()
	m := yamlLine.FindStringSubmatch(msg)
	if m == nil {
		return &Error{File: file, Msg: "not YAML: " + msg}
	}
	msg = msg[len(m[0]):]
	line, err := strconv.Atoi(m[1])
	if err != nil && !strings.HasPrefix(msg, "unknown anchor") {
		line = 1 // the library leaves the first line out
	}
	if m[1] != "" && strings.HasPrefix(msg, "did not find expected") {
		line++ // the library counts lines from 0 in what its parser says, and from 1 in what its scanner says
	}
	return &Error{File: file, Line: line, Msg: "not YAML: " + msg}
}

type yamlReader struct {
	file string
	done map[*yaml.Node]*node // nil while it is being read: an alias in itself
}

func (r *yamlReader) read(y *yaml.Node) (Node, error) {
	if y.Kind == yaml.AliasNode {
		n, seen := r.done[y.Alias]
		if seen && n == nil {
			return Node{}, r.errorf(y, "the alias *%s lies in what it stands for", y.Value)
		}
		if seen {
			return Node{n}, nil
		}
		return r.read(y.Alias)
	}
	r.done[y] = nil
	n := &node{file: r.file, line: y.Line, col: y.Column, size: 1}
	var err error
	switch y.Kind {
	case yaml.ScalarNode:
		err = r.scalar(y, n)
	case yaml.SequenceNode:
		err = r.list(y, n)
	case yaml.MappingNode:
		err = r.object(y, n)
	default:
		err = r.errorf(y, "not a value")
	}
	if err != nil {
		return Node{}, err
	}
	r.done[y] = n
	return Node{n}, nil
}

func (r *yamlReader) errorf(y *yaml.Node, format string, args ...any) error {
	return &Error{r.file, y.Line, y.Column, fmt.Sprintf(format, args...)}
}

func (r *yamlReader) list(y *yaml.Node, n *node) error {
	if tag := y.ShortTag(); tag != "!!seq" {
		return r.errorf(y, "the tag %s is not read; leave it out", tag)
	}
	n.kind = List
	for _, c := range y.Content {
		item, err := r.read(c)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
		n.grow(item)
	}
	return nil
}

func (r *yamlReader) object(y *yaml.Node, n *node) error {
	if tag := y.ShortTag(); tag != "!!map" {
		return r.errorf(y, "the tag %s is not read; leave it out", tag)
	}
	n.kind = Map
	seen := make(map[string]bool, len(y.Content)/2)
	for i := 0; i+1 < len(y.Content); i += 2 {
		k := y.Content[i]
		for k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		if k.ShortTag() == "!!merge" {
			return r.errorf(k, "merge keys (<<) are not read; write the keys out")
		}
		key, err := r.read(k)
		if err != nil {
			return err
		}
		name, ok := key.Text()
		if !ok {
			return r.errorf(k, "the key is %s; a key is text: write it in quotes", key.describe())
		}
		if seen[name] {
			return r.errorf(k, "the key %q is written twice", name)
		}
		seen[name] = true
		value, err := r.read(y.Content[i+1])
		if err != nil {
			return err
		}
		n.members = append(n.members, Member{Key: name, Value: value, line: y.Content[i].Line, col: y.Content[i].Column})
		n.grow(value)
	}
	return nil
}

// grow counts a value, stopping far above any bound so that sums stay small.
func (n *node) grow(value Node) { n.size = min(n.size+value.n.size, 1<<40) }

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

func (r *yamlReader) scalar(y *yaml.Node, n *node) error {
	plain := y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	tag, tagged := y.ShortTag(), y.Style&yaml.TaggedStyle != 0
	if tagged && tag != "!!str" {
		return r.errorf(y, "the tag %s is not read; leave it out", tag)
	}
	n.kind, n.text = Text, y.Value
	switch tag {
	case "!!str", "!!timestamp":
		// Digits the library gave up on are a number no float64 can hold.
		if plain && !tagged && jsonNumber.MatchString(y.Value) {
			return r.errorf(y, "%s", tooLarge(y.Value))
		}
	case "!!null":
		n.kind, n.text = Null, ""
	case "!!bool":
		n.kind, n.text = Bool, strings.ToLower(y.Value)
	case "!!int", "!!float":
		if !jsonNumber.MatchString(y.Value) {
			return r.errorf(y, "%s could be a number or a text: write a number in plain decimal digits, a text in quotes", shorten(y.Value))
		}
		if !finite(y.Value) {
			return r.errorf(y, "%s", tooLarge(y.Value))
		}
		n.kind = Number
	default:
		return r.errorf(y, "the tag %s is not read; leave it out", tag)
	}
	return nil
}
