package pipeline

import (
	"slices"
	"strings"

	"evalrun/internal/conf"
)

// Layout is a template of messages: how a call is written, and, read backwards,
// how its reply is. It knows no fields; a program binds it to its own.
//
// The reader is found in the template. The loop over outputs that shows their
// values is the pattern of the reply: before a value stands its opening mark,
// after it its closing mark, and what follows the loop on its last line is the
// end mark. A template without such a loop is read by the whole reply.
type Layout struct {
	name     string // xml, chat, json or template
	messages []layoutMessage
	turns    int  // the message before which examples and earlier turns go
	object   bool // the reply is one JSON object, which the provider enforces
}

type layoutMessage struct {
	role   string
	pieces []piece
	number int       // its place in the definition's list, from 1
	at     conf.Node // its text in the definition; none in a built-in layout
}

// fault is why a layout cannot be used for a program.
type fault struct {
	why *Failure
	at  conf.Node // the text it lies in; none when it is about the whole
}

func (m layoutMessage) fault(why *Failure) *fault {
	why.Message = "message " + itoa(m.number) + ", " + why.Message
	return &fault{why, m.at}
}

const (
	inputTags = "{% for f in inputs %}<{f.name}>\n{f.value}\n</{f.name}>\n{% endfor %}"

	xmlSystem = "{instruction}\n\nReply in exactly this form:\n" +
		"{% for f in outputs %}<{f.name}>\n{f.value}\n</{f.name}>\n{% endfor %}"

	chatSystem = "{instruction}\n\nRespond with the corresponding output fields, each under its header, " +
		"then end with [[ ## completed ## ]]:\n\n" +
		"{% for f in outputs %}[[ ## {f.name} ## ]]\n{f.value}\n\n{% endfor %}[[ ## completed ## ]]"
	chatUser = "{% for f in inputs %}[[ ## {f.name} ## ]]\n{f.value}\n\n{% endfor %}"
)

// layouts are those a definition names.
var layouts = map[string]*Layout{
	"xml":  builtin("xml", xmlSystem, inputTags),
	"chat": builtin("chat", chatSystem, chatUser),
	"json": builtin("json", "{instruction}", inputTags),
}

func builtin(name, system, user string) *Layout {
	l := &Layout{name: name, turns: 1, object: name == "json"}
	for i, m := range []struct{ role, text string }{{"system", system}, {"user", user}} {
		pieces, f := parseTemplate(m.text)
		if f != nil {
			panic("pipeline: layout " + name + ": " + f.Message)
		}
		l.messages = append(l.messages, layoutMessage{role: m.role, pieces: pieces, number: i + 1})
	}
	return l
}

// layoutNamed finds a layout by a name such as XML, default or chat-adapter.
func layoutNamed(name string) (*Layout, *Failure) {
	folded := strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
	switch folded {
	case "default", "tags":
		folded = "xml"
	case "chatadapter", "jsonadapter", "xmladapter":
		folded = strings.TrimSuffix(folded, "adapter")
	}
	if l := layouts[folded]; l != nil {
		return l, nil
	}
	return nil, Failf(TypeProgram, "adapter-unknown", "there is no adapter %q; those are xml, chat and json, or give a template", shorten(name))
}

// writesInstruction reports whether {instruction} is written anywhere.
func (l *Layout) writesInstruction() bool {
	return slices.ContainsFunc(l.messages, func(m layoutMessage) bool { return has(m.pieces, isInstruction) })
}

// writesInput reports whether an input is written anywhere.
func (l *Layout) writesInput(name string) bool {
	written := func(p piece) bool {
		return p.kind == pieceSlot && p.text == name && name != instructionSlot ||
			p.kind == pieceInputs && has(p.body, func(q piece) bool { return q.kind == pieceValue })
	}
	return slices.ContainsFunc(l.messages, func(m layoutMessage) bool { return has(m.pieces, written) })
}

// form is a layout bound to a program's fields: templates unrolled into plain
// steps, and the marks of the reply.
type form struct {
	layout   *Layout
	system   []step
	messages []formMessage
	turns    int        // the message before which examples and earlier turns go
	outputs  []outField // what the reply holds, in order
	marks    bool       // it is read by the marks of its outputs
	after    string     // what follows the outputs
	end      string     // the end mark: that, trimmed
	stop     string     // where the provider is to stop; "" for nowhere
	tell     string     // said after the system text
	native   bool       // the model is asked to reason in its own channel
	examples []Message  // the worked examples, under the program's own instruction
	broken   *Failure   // why they cannot be shown; nil when they can
}

type formMessage struct {
	role  string
	steps []step
}

// outField is an output as the reply holds it.
type outField struct {
	name        string
	spelling    spelling
	shape       *shape
	field       *Field
	before      string // the text before its value, and after it
	after       string
	open, close string // the marks: those, trimmed
}

// step writes one thing.
type step struct {
	kind  stepKind
	text  string
	input int // of writeInput
	only  int // an input without which the step is left out, in a loop; -1 for none
}

type stepKind int

const (
	writeText stepKind = iota
	writeInstruction
	writeInput
)

// bind binds a layout to a program's inputs and to the outputs the reply is to
// hold.
func (l *Layout) bind(inputs []Field, outputs []outField) (*form, *fault) {
	f := &form{layout: l, outputs: outputs}
	if err := f.findMarks(); err != nil {
		return nil, err
	}
	for i, m := range l.messages {
		if i == l.turns {
			f.turns = len(f.messages)
		}
		b := binder{inputs: inputs, outputs: outputs}
		if err := b.bind(m.pieces, nil, -1); err != nil {
			return nil, m.fault(err)
		}
		if m.role == "system" {
			f.system = append(f.system, b.steps...)
		} else {
			f.messages = append(f.messages, formMessage{m.role, b.steps})
		}
	}
	if l.turns == len(l.messages) {
		f.turns = len(f.messages)
	}
	return f, nil
}

// binder unrolls the pieces of a message.
type binder struct {
	inputs  []Field
	outputs []outField
	steps   []step
}

// loopField is the field a loop is at.
type loopField struct {
	name, desc, hint string
	input            int // -1 for an output
}

func (b *binder) add(s step) {
	if n := len(b.steps); n > 0 && s.kind == writeText && b.steps[n-1].kind == writeText && b.steps[n-1].only == s.only {
		b.steps[n-1].text += s.text
		return
	}
	b.steps = append(b.steps, s)
}

func (b *binder) bind(pieces []piece, at *loopField, only int) *Failure {
	for _, p := range pieces {
		s := step{kind: writeText, only: only}
		switch p.kind {
		case pieceText:
			s.text = p.text
		case pieceName:
			s.text = at.name
		case pieceDesc:
			s.text = at.desc
		case pieceValue:
			s.text = at.hint
			if at.input >= 0 {
				s.kind, s.input = writeInput, at.input
			}
		case pieceSlot:
			s.kind = writeInstruction
			if p.text != instructionSlot {
				s.kind = writeInput
				s.input = slices.IndexFunc(b.inputs, func(f Field) bool { return f.Name == p.text })
				if s.input < 0 {
					return b.unknown(p)
				}
			}
		case pieceInputs:
			for i, f := range b.inputs {
				if err := b.bind(p.body, &loopField{f.Name, f.Desc, "", i}, i); err != nil {
					return err
				}
			}
			continue
		case pieceOutputs:
			for _, o := range b.outputs {
				at := &loopField{o.name, o.field.Desc, o.spelling.hint(o.field.Shape), -1}
				if err := b.bind(p.body, at, -1); err != nil {
					return err
				}
			}
			continue
		}
		b.add(s)
	}
	return nil
}

func (b *binder) unknown(p piece) *Failure {
	known := []string{instructionSlot}
	for _, f := range b.inputs {
		known = append(known, f.Name)
	}
	for _, o := range b.outputs {
		if o.name == p.text {
			return p.place.failf("template-syntax", "{%s} is an output; show outputs in a loop: {%% for f in outputs %%}", p.text)
		}
	}
	if near := conf.Suggest(p.text, known); near != "" {
		return p.place.failf("template-syntax", "{%s} is no input; did you mean {%s}?", shorten(p.text), near)
	}
	return p.place.failf("template-syntax", "{%s} is no input; there are {%s}; write {{ and }} for the characters themselves", shorten(p.text), strings.Join(known, "}, {"))
}

// findMarks finds how the reply is read.
func (f *form) findMarks() *fault {
	if f.layout.object {
		return nil
	}
	shows := func(p piece) bool {
		return p.kind == pieceOutputs && has(p.body, func(q piece) bool { return q.kind == pieceValue })
	}
	found := false
	for _, m := range f.layout.messages {
		for i, p := range m.pieces {
			if !shows(p) {
				continue
			}
			if found {
				return m.fault(p.place.failf("not-readable", "a second loop shows the outputs' values, so there is no telling which is the form of the reply; leave {f.value} out of one"))
			}
			found = true
			if err := f.marksOf(p); err != nil {
				return m.fault(err)
			}
			if i+1 < len(m.pieces) && m.pieces[i+1].kind == pieceText {
				f.after, _, _ = strings.Cut(m.pieces[i+1].text, "\n")
			}
		}
	}
	f.marks = found && !slices.ContainsFunc(f.outputs, func(o outField) bool { return o.open == "" })
	if !f.marks {
		f.after = ""
		return nil
	}
	f.end = trim(f.after)
	f.stop = f.end
	if f.stop == "" {
		f.stop = f.outputs[len(f.outputs)-1].close
	}
	return nil
}

// marksOf takes the marks from the loop that shows the outputs' values.
func (f *form) marksOf(loop piece) *Failure {
	for i := range f.outputs {
		o := &f.outputs[i]
		values := 0
		for _, p := range loop.body {
			text := ""
			switch p.kind {
			case pieceText:
				text = p.text
			case pieceName:
				text = o.name
			case pieceDesc:
				text = o.field.Desc
			case pieceValue:
				values++
				if values == 2 {
					return p.place.failf("not-readable", "the loop shows an output's value twice, so there is no telling where it ends")
				}
				continue
			default:
				return p.place.failf("not-readable", "{%s} in the loop that shows the outputs' values: what stands around a value must be known before the call", p.text)
			}
			if values == 0 {
				o.before += text
			} else {
				o.after += text
			}
		}
		o.open, o.close = trim(o.before), trim(o.after)
		for _, other := range f.outputs[:i] {
			if other.open == o.open && o.open != "" {
				return loop.place.failf("not-readable", "the outputs %s and %s have the same opening mark %q; write {f.name} into it", other.name, o.name, o.open)
			}
		}
	}
	return nil
}
