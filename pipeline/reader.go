package pipeline

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"evalrun/datasets"
)

// patternReader reads a reply by a regular expression (RE2 syntax): the first
// match's only group, trimmed, is the answer.
type patternReader struct {
	pattern *regexp.Regexp
	given   datasets.Value // as the definition has it: it is code of the program's own, and counts in its version
}

func newPatternReader(pattern string, given datasets.Value) (*patternReader, *Failure) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, Failf(TypeProgram, "reader-pattern", "%s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if n := re.NumSubexp(); n != 1 {
		return nil, Failf(TypeProgram, "reader-pattern", "the pattern has %d groups; it needs exactly one, around the answer: write (?:…) for the others", n)
	}
	return &patternReader{re, given}, nil
}

// finishLength is why a provider stops a reply at the limit of tokens.
const finishLength = "length"

func unread(code, format string, args ...any) *Failure {
	return Failf(TypeReply, code, format, args...)
}

func cutOff(where string) *Failure {
	return unread("parse-truncated", "the reply was cut off at the limit of tokens%s", where)
}

// Read reads a reply: the program's outputs by name, the reasoning among them
// when the model was to write it. finish is why the model stopped and facts
// what it can do, as in the rendering of its request. A reply that cannot be
// read gives no output at all, and a *[Failure] of type [TypeReply].
func (p *Program) Read(text, finish string, facts Facts) (datasets.Values, error) {
	f := p.form(p.capable(facts))
	raw, failure := p.split(f, text, finish == finishLength)
	if failure != nil {
		return nil, failure
	}
	outputs := make(datasets.Values, len(f.outputs))
	for i := range f.outputs {
		o := &f.outputs[i]
		v, failure := o.read(raw[i])
		if failure != nil {
			return nil, failure
		}
		outputs[o.name] = v
	}
	return outputs, nil
}

// found is the text of an output in a reply. A value in a JSON object that is
// not a text is its JSON.
type found struct {
	text string
	null bool // JSON's null, which is not the text "null"
}

// split finds the text of each output.
func (p *Program) split(f *form, text string, cut bool) ([]found, *Failure) {
	switch {
	case p.reader != nil:
		return p.reader.split(text, cut)
	case f.layout.object:
		return f.splitObject(text, cut)
	case f.marks:
		return f.splitMarks(text, cut)
	case cut:
		return nil, cutOff("")
	}
	return []found{{text: trim(text)}}, nil
}

func (r *patternReader) split(text string, cut bool) ([]found, *Failure) {
	m := r.pattern.FindStringSubmatchIndex(text)
	if cut && (m == nil || m[1] == len(text)) {
		return nil, cutOff("")
	}
	if m == nil || m[2] < 0 {
		return nil, unread("parse-pattern", "nothing in the reply matches the pattern %s", r.pattern)
	}
	return []found{{text: trim(text[m[2]:m[3]])}}, nil
}

// splitObject reads one strict JSON object.
func (f *form) splitObject(text string, cut bool) ([]found, *Failure) {
	doc := jsontext.Value(unfence(trim(text)))
	if !doc.IsValid() || doc.Kind() != '{' {
		if cut {
			return nil, cutOff("")
		}
		return nil, unread("parse-json", "the reply is not one JSON object: %s", whyNotJSON(doc, "an object"))
	}
	members := datasets.ValuesOf(datasets.RawValue(string(doc)))
	raw := make([]found, len(f.outputs))
	for i, o := range f.outputs {
		v, ok := members[o.name]
		if !ok {
			return nil, unread("parse-missing", "the reply's object has no member %q", o.name)
		}
		raw[i] = found{text: v.String(), null: v.IsNull()}
	}
	return raw, nil
}

// whyNotJSON says why text is not the JSON it should be.
func whyNotJSON(text []byte, want string) string {
	dec := jsontext.NewDecoder(strings.NewReader(string(text)))
	v, err := dec.ReadValue()
	switch {
	case len(text) == 0:
		return "it is empty"
	case err != nil && strings.Contains(err.Error(), "duplicate object member"):
		return "it has a member twice"
	case err != nil:
		return "it does not read as JSON"
	case strings.TrimSpace(string(text[dec.InputOffset():])) != "":
		return "text follows the JSON"
	}
	return "it must be " + want + ", found " + describe(datasets.RawValue(string(v)))
}

// unfence takes a text out of the one fenced block it is.
func unfence(text string) string {
	if !strings.HasPrefix(text, "```") || !strings.HasSuffix(text, "```") {
		return text
	}
	first, rest, ok := strings.Cut(text, "\n")
	if !ok || strings.Contains(first[3:], "`") {
		return text
	}
	body := strings.TrimSuffix(rest, "```")
	if strings.Contains(body, "```") {
		return text
	}
	return trim(body)
}

// splitMarks reads a reply by its marks. An output begins at its opening mark
// and ends at its closing mark; without one, at the next opening mark or the end
// mark. The last output may end with the reply, whose closing mark the provider
// stops at. A mark that occurs twice is refused, never guessed about; a mark
// inside an output that has a closing mark is part of its text.
func (f *form) splitMarks(text string, cut bool) ([]found, *Failure) {
	raw := make([]found, len(f.outputs))
	read := make([]bool, len(f.outputs))
	current, start := -1, 0 // the output that is open, and where its text begins
	last := -1              // the output that was closed by its mark
	end := func(at int) {
		raw[current] = found{text: trim(text[start:at])}
		read[current] = true
		last, current = current, -1
	}
	scan := newScanner(text, f.allMarks())
	over := false
	for !over && scan.next() {
		opened := slices.IndexFunc(f.outputs, func(o outField) bool { return o.open == scan.mark })
		if current >= 0 {
			o := &f.outputs[current]
			switch {
			case o.close != "" && scan.mark == o.close:
				end(scan.at)
				continue
			case opened == current:
				return nil, twice(o.open)
			case o.close != "":
				continue
			case opened >= 0:
				end(scan.at)
			case scan.mark == f.end:
				end(scan.at)
				over = true
				continue
			}
		}
		switch {
		case opened >= 0 && read[opened]:
			return nil, twice(f.outputs[opened].open)
		case opened >= 0:
			current, start = opened, scan.after
		case last >= 0 && f.outputs[last].close == scan.mark:
			return nil, twice(scan.mark)
		case scan.mark == f.end:
			over = !slices.Contains(read, false)
		}
	}
	toEnd := current
	if current >= 0 {
		if o := &f.outputs[current]; o.close != "" && current != len(f.outputs)-1 {
			if cut {
				return nil, cutOff(" in " + o.name)
			}
			return nil, unread("parse-missing", "the reply has no %s after %s", o.close, o.open)
		}
		end(len(text))
	}
	for i, o := range f.outputs {
		if read[i] {
			continue
		}
		if cut {
			return nil, cutOff(" before " + o.name)
		}
		return nil, unread("parse-missing", "the reply has no %s", o.open)
	}
	if cut && toEnd >= 0 {
		return nil, cutOff(" in " + f.outputs[toEnd].name)
	}
	return raw, nil
}

func twice(mark string) *Failure {
	return unread("parse-ambiguous", "the reply has %s twice", mark)
}

// allMarks are the marks to look for, the longest first: where one begins inside
// another, the longer was meant.
func (f *form) allMarks() []string {
	var marks []string
	add := func(mark string) {
		if mark != "" && !slices.Contains(marks, mark) {
			marks = append(marks, mark)
		}
	}
	for _, o := range f.outputs {
		add(o.open)
		add(o.close)
	}
	add(f.end)
	slices.SortStableFunc(marks, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return marks
}

// scanner finds marks in a text, from left to right, without overlap.
type scanner struct {
	text  string
	marks []string
	ahead []int // where each mark is next; -1 when there is none any more

	mark      string // the one found
	at, after int    // where it begins, and where the text after it does
}

func newScanner(text string, marks []string) *scanner {
	s := &scanner{text: text, marks: marks, ahead: make([]int, len(marks))}
	for i, m := range marks {
		s.ahead[i] = strings.Index(text, m)
	}
	return s
}

func (s *scanner) next() bool {
	best := -1
	for i, at := range s.ahead {
		if at >= 0 && at < s.after {
			at = strings.Index(s.text[s.after:], s.marks[i])
			if at >= 0 {
				at += s.after
			}
			s.ahead[i] = at
		}
		if at >= 0 && (best < 0 || at < s.ahead[best]) {
			best = i
		}
	}
	if best < 0 {
		return false
	}
	s.mark, s.at = s.marks[best], s.ahead[best]
	s.after = s.at + len(s.mark)
	return true
}

// read reads one output's text by its shape.
func (o *outField) read(raw found) (datasets.Value, *Failure) {
	v, failure := o.parse(raw)
	if failure != nil {
		return v, failure
	}
	if m := o.shape.check(v); m != nil {
		return v, unread("parse-shape", "%s %s", o.name, m)
	}
	return v, nil
}

func (o *outField) parse(raw found) (datasets.Value, *Failure) {
	s := o.spelling
	if raw.null && (s.kind != asJSON && !s.nullable) {
		return datasets.Value{}, unread("parse-shape", "%s must not be null", o.name)
	}
	if raw.null || s.nullable && raw.text == "null" {
		return datasets.Null, nil
	}
	switch s.kind {
	case asText:
		return datasets.Text(raw.text), nil
	case asChoice:
		text := trim(raw.text)
		for _, c := range s.choices {
			if trim(c.String()) == text {
				return c, nil
			}
		}
		if v, err := datasets.ParseValue(text); err == nil && v.Kind() != '"' {
			for _, c := range s.choices {
				if c.Equal(v) {
					return c, nil
				}
			}
		}
		return datasets.Value{}, unread("parse-choice", "%s must be one of %s, found %q", o.name, choices(s.choices), shorten(text))
	}
	text := unfence(trim(raw.text))
	if jsontext.Value(text).IsValid() {
		if v, err := datasets.ParseValue(text); err == nil {
			return v, nil
		}
	}
	if s.kind == asLiteral {
		return datasets.Value{}, unread("parse-json", "%s must be %s, found %q", o.name, typeList([]string{s.literal}), shorten(text))
	}
	return datasets.Value{}, unread("format-read-error", "%s must be JSON: %s", o.name, whyNotJSON([]byte(text), "JSON"))
}
