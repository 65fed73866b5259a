package conf

import (
	"strings"
)

// Expand returns the node with ${NAME} replaced in its texts (not in its keys)
// by what lookup says NAME is. $${ stands for a literal ${. A name that lookup
// does not know, and a ${ that is no reference, are errors that name the place.
//
// Only what a person runs on purpose may be expanded: never a program, a row, a
// record or a reply.
func Expand(n Node, lookup func(name string) (string, bool)) (Node, error) {
	switch n.Kind() {
	case Text:
		if !strings.Contains(n.n.text, "${") {
			return n, nil
		}
		c := *n.n
		var err error
		if c.text, err = n.expand(lookup); err != nil {
			return Node{}, err
		}
		c.expanded = true
		return Node{&c}, nil
	case List:
		c := *n.n
		c.items = make([]Node, len(n.n.items))
		for i, item := range n.n.items {
			var err error
			if c.items[i], err = Expand(item, lookup); err != nil {
				return Node{}, err
			}
		}
		return Node{&c}, nil
	case Map:
		c := *n.n
		c.members = make([]Member, len(n.n.members))
		for i, m := range n.n.members {
			var err error
			if m.Value, err = Expand(m.Value, lookup); err != nil {
				return Node{}, err
			}
			c.members[i] = m
		}
		return Node{&c}, nil
	}
	return n, nil
}

func (n Node) expand(lookup func(string) (string, bool)) (string, error) {
	var b strings.Builder
	rest := n.n.text
	for {
		i := strings.Index(rest, "${")
		if i < 0 {
			b.WriteString(rest)
			return b.String(), nil
		}
		if i > 0 && rest[i-1] == '$' {
			b.WriteString(rest[:i-1])
			b.WriteString("${")
			rest = rest[i+2:]
			continue
		}
		b.WriteString(rest[:i])
		name, after, closed := strings.Cut(rest[i+2:], "}")
		if !closed || !isName(name) {
			return "", n.Errorf("%q is no reference: write ${NAME}, or $${ for the characters themselves", shorten(rest[i:]))
		}
		value, ok := lookup(name)
		if !ok {
			return "", n.Errorf("the environment variable %s is not set", name)
		}
		b.WriteString(value)
		rest = after
	}
}

// isName reports whether s is a variable's name.
func isName(s string) bool {
	for i, c := range s {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
