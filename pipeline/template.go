package pipeline

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The template language. A template's text has
//
//	{instruction}   the instruction
//	{name}          the value of the input of that name
//	{% for f in inputs %}…{% endfor %}    once for each input
//	{% for f in outputs %}…{% endfor %}   once for each output; in a loop:
//	{f.name} {f.desc} {f.value}           its name, its words, its value (of an output: its hint)
//	{{ }}           a brace
//
// and nothing else in braces.

// piece is one part of a template's text.
type piece struct {
	kind  pieceKind
	text  string   // the characters, or the slot's name
	body  []piece  // of a loop
	place position // where it begins
}

type pieceKind int

const (
	pieceText    pieceKind = iota
	pieceSlot              // {name}; {instruction} is the one called instruction
	pieceName              // {f.name}
	pieceDesc              // {f.desc}
	pieceValue             // {f.value}
	pieceInputs            // a loop over the inputs
	pieceOutputs           // a loop over the outputs
)

// position is a place in a template's text, from 1, in characters.
type position struct{ line, col int }

// instructionSlot is the name of the slot that holds the instruction, even where
// an input has that name.
const instructionSlot = "instruction"

type templateParser struct {
	text string
	i    int
	at   position

	loop     bool
	variable string // the loop's
}

// parseTemplate reads a template's text. Its error is template-syntax.
func parseTemplate(text string) ([]piece, *Failure) {
	p := &templateParser{text: text, at: position{1, 1}}
	pieces, f := p.pieces()
	if f == nil && p.i < len(p.text) {
		f = p.failf(p.at, "{%% endfor %%} closes no loop")
	}
	return pieces, f
}

func (p *templateParser) failf(at position, format string, args ...any) *Failure {
	return at.failf("template-syntax", format, args...)
}

// failf is a failure of a program at a place of its template.
func (at position) failf(code, format string, args ...any) *Failure {
	return Failf(TypeProgram, code, "line %d, column %d of the text: %s", at.line, at.col, fmt.Sprintf(format, args...))
}

// take moves over n bytes and returns them.
func (p *templateParser) take(n int) string {
	s := p.text[p.i : p.i+n]
	p.i += n
	if nl := strings.LastIndexByte(s, '\n'); nl >= 0 {
		p.at.line += strings.Count(s, "\n")
		p.at.col = 1 + utf8.RuneCountInString(s[nl+1:])
	} else {
		p.at.col += utf8.RuneCountInString(s)
	}
	return s
}

const endLoop = "endfor"

// pieces reads up to the end of the text, or up to an endfor, which it leaves.
func (p *templateParser) pieces() ([]piece, *Failure) {
	var pieces []piece
	literal := func(s string, at position) {
		if n := len(pieces); n > 0 && pieces[n-1].kind == pieceText {
			pieces[n-1].text += s
			return
		}
		pieces = append(pieces, piece{kind: pieceText, text: s, place: at})
	}
	for p.i < len(p.text) {
		at, rest := p.at, p.text[p.i:]
		n := strings.IndexAny(rest, "{}")
		switch {
		case n < 0:
			literal(p.take(len(rest)), at)
		case n > 0:
			literal(p.take(n), at)
		case strings.HasPrefix(rest, "{{"), strings.HasPrefix(rest, "}}"):
			literal(p.take(2)[:1], at)
		case rest[0] == '}':
			return nil, p.failf(at, "a } alone; write }} for the character itself")
		case strings.HasPrefix(rest, "{%"):
			words, n, f := p.tag(rest)
			if f != nil {
				return nil, f
			}
			if len(words) == 1 && words[0] == endLoop {
				return pieces, nil
			}
			p.take(n)
			loop, f := p.loopOver(words, at)
			if f != nil {
				return nil, f
			}
			pieces = append(pieces, loop)
		default:
			slot, f := p.slot(rest)
			if f != nil {
				return nil, f
			}
			pieces = append(pieces, slot)
		}
	}
	return pieces, nil
}

// tag reads the words of a {% … %} without moving over it.
func (p *templateParser) tag(rest string) (words []string, n int, f *Failure) {
	end := strings.Index(rest, "%}")
	if end < 0 {
		return nil, 0, p.failf(p.at, "{%% is not closed by %%}; write {{%% for the characters themselves")
	}
	return strings.Fields(rest[2:end]), end + 2, nil
}

func (p *templateParser) loopOver(words []string, at position) (piece, *Failure) {
	tag := "{% " + strings.Join(words, " ") + " %}"
	if len(words) != 4 || words[0] != "for" || words[2] != "in" || !identifier.MatchString(words[1]) {
		return piece{}, p.failf(at, "%s is not known; write {%% for f in inputs %%}, {%% for f in outputs %%} or {%% endfor %%}", shorten(tag))
	}
	loop := piece{kind: pieceInputs, place: at}
	switch words[3] {
	case "inputs":
	case "outputs":
		loop.kind = pieceOutputs
	default:
		return piece{}, p.failf(at, "%s: a loop goes over inputs or outputs, not %s", shorten(tag), shorten(words[3]))
	}
	if p.loop {
		return piece{}, p.failf(at, "%s: a loop inside a loop", shorten(tag))
	}
	p.loop, p.variable = true, words[1]
	body, f := p.pieces()
	if f != nil {
		return piece{}, f
	}
	if p.i == len(p.text) {
		return piece{}, p.failf(at, "%s is not closed by {%% endfor %%}", shorten(tag))
	}
	_, n, _ := p.tag(p.text[p.i:])
	p.take(n)
	p.loop = false
	loop.body = body
	return loop, nil
}

// slot reads a {name}.
func (p *templateParser) slot(rest string) (piece, *Failure) {
	at := p.at
	end := strings.IndexAny(rest[1:], "{}\n")
	if end < 0 || rest[1+end] != '}' {
		return piece{}, p.failf(at, "a { that opens no slot; write {{ for the character itself")
	}
	name := rest[1 : 1+end]
	owner, attr, dotted := strings.Cut(name, ".")
	if !dotted && identifier.MatchString(name) {
		p.take(end + 2)
		return piece{kind: pieceSlot, text: name, place: at}, nil
	}
	if !dotted {
		return piece{}, p.failf(at, "{%s} is no slot; write {{ and }} for the characters themselves", shorten(name))
	}
	if !p.loop || owner != p.variable {
		return piece{}, p.failf(at, "{%s} is outside the loop of %s; write {%% for %s in inputs %%} before it", shorten(name), shorten(owner), shorten(owner))
	}
	s := piece{place: at}
	switch attr {
	case "name":
		s.kind = pieceName
	case "desc":
		s.kind = pieceDesc
	case "value":
		s.kind = pieceValue
	default:
		return piece{}, p.failf(at, "{%s}: a field has name, desc and value, not %s", shorten(name), shorten(attr))
	}
	p.take(end + 2)
	return s, nil
}

// has reports whether the pieces hold one of a kind, in loops too.
func has(pieces []piece, is func(piece) bool) bool {
	for _, p := range pieces {
		if is(p) || has(p.body, is) {
			return true
		}
	}
	return false
}

func isInstruction(p piece) bool { return p.kind == pieceSlot && p.text == instructionSlot }
