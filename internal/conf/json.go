package conf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

func appendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

// parseJSON reads strict JSON.
func parseJSON(file string, data []byte) (Node, error) {
	r := &jsonReader{file: file, data: data, line: 1, col: 1, dec: jsontext.NewDecoder(bytes.NewReader(data))}
	n, err := r.next()
	if err != nil {
		return Node{}, r.failed(err)
	}
	end := r.start()
	if _, err := r.dec.ReadToken(); !errors.Is(err, io.EOF) {
		line, col := place(data, end)
		return Node{}, &Error{file, line, col, "text after the JSON value"}
	}
	return n, nil
}

type jsonReader struct {
	file string
	data []byte
	dec  *jsontext.Decoder

	// Where the last token was, so that finding the next place costs only what
	// lies between.
	offset, line, col int
}

// start is the offset of the next token.
func (r *jsonReader) start() int {
	i := int(r.dec.InputOffset())
	for i < len(r.data) {
		switch r.data[i] {
		case ' ', '\t', '\r', '\n', ',', ':':
			i++
		default:
			return i
		}
	}
	return i
}

func (r *jsonReader) place() (line, col int) {
	for end := r.start(); r.offset < end; r.offset++ {
		switch c := r.data[r.offset]; {
		case c == '\n':
			r.line, r.col = r.line+1, 1
		case utf8.RuneStart(c):
			r.col++
		}
	}
	return r.line, r.col
}

func (r *jsonReader) next() (Node, error) {
	n := &node{file: r.file, size: 1}
	n.line, n.col = r.place()
	tok, err := r.dec.ReadToken()
	if err != nil {
		return Node{}, err
	}
	switch tok.Kind() {
	case 'n':
		n.kind = Null
	case 't', 'f':
		n.kind, n.text = Bool, tok.String()
	case '"':
		n.kind, n.text = Text, tok.String()
	case '0':
		n.kind, n.text = Number, tok.String()
		if !finite(n.text) {
			return Node{}, &Error{r.file, n.line, n.col, tooLarge(n.text)}
		}
	case '[':
		n.kind = List
		for r.dec.PeekKind() != ']' {
			item, err := r.next()
			if err != nil {
				return Node{}, err
			}
			n.items = append(n.items, item)
			n.size += item.n.size
		}
		_, err = r.dec.ReadToken()
	case '{':
		n.kind = Map
		for r.dec.PeekKind() != '}' {
			var m Member
			m.line, m.col = r.place()
			name, err := r.dec.ReadToken()
			if err != nil {
				return Node{}, err
			}
			m.Key = name.String()
			if m.Value, err = r.next(); err != nil {
				return Node{}, err
			}
			n.members = append(n.members, m)
			n.size += m.Value.n.size
		}
		_, err = r.dec.ReadToken()
	}
	return Node{n}, err
}

// failed turns the library's error into one with a place.
func (r *jsonReader) failed(err error) error {
	var placed *Error
	if errors.As(err, &placed) {
		return placed
	}
	var syntactic *jsontext.SyntacticError
	if !errors.As(err, &syntactic) {
		return &Error{File: r.file, Msg: "not JSON: " + err.Error()}
	}
	line, col := place(r.data, int(syntactic.ByteOffset))
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return &Error{r.file, line, col, fmt.Sprintf("the key %q is written twice", syntactic.JSONPointer.LastToken())}
	}
	why := "it ends too early"
	if !errors.Is(err, io.ErrUnexpectedEOF) && syntactic.Err != nil {
		why = syntactic.Err.Error()
	}
	return &Error{r.file, line, col, "not JSON: " + why}
}

func finite(number string) bool {
	_, err := strconv.ParseFloat(number, 64)
	return err == nil
}

func tooLarge(number string) string {
	return fmt.Sprintf("the number %s is too large; write it in quotes to keep it as text", shorten(number))
}
