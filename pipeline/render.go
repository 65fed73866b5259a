package pipeline

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"evalrun/datasets"
)

func itoa(n int) string { return strconv.Itoa(n) }

// form is the program's layout as a model with these abilities meets it: one
// that reasons in a channel of its own does not write its reasoning.
func (p *Program) form(facts Facts) *form {
	if facts.Reasoning && p.native != nil {
		return p.native
	}
	return p.written
}

// Render writes the request of a call: the system text, the worked examples, the
// earlier turns and the call itself. Its errors are *[Failure]s.
//
// What the layout needs (where to stop, which schema to enforce) joins what
// r.Config asks for: stop sequences add up, a response format of the layout's
// wins, since its reply is read by it.
func (p *Program) Render(r Rendering) (*Request, error) {
	r.Facts = p.capable(r.Facts)
	req, f := p.render(r)
	if f != nil {
		return nil, f
	}
	return req, nil
}

func (p *Program) render(r Rendering) (*Request, *Failure) {
	f := p.form(r.Facts)
	if f.layout.object && !r.Facts.StructuredOutput {
		return nil, Failf(TypeProgram, "capability-missing", "the json layout needs a model that enforces a JSON schema (native_structured_output); use another adapter")
	}
	instruction := withSections(r.Instruction, r.Sections)
	req := &Request{Model: r.Model, Messages: make([]Message, 0, len(f.messages)+len(f.examples)+2*len(r.Earlier))}
	var err *Failure
	if req.System, err = p.write(f.system, instruction, r.Inputs); err != nil {
		return nil, err
	}
	if f.tell != "" {
		req.System = withSections(req.System, []string{f.tell})
	}
	for i := 0; i <= len(f.messages); i++ {
		if i == f.turns {
			if err := p.turns(f, req, instruction, r.Earlier, !r.Facts.ToolCalling); err != nil {
				return nil, err
			}
		}
		if i == len(f.messages) {
			break
		}
		text, err := p.write(f.messages[i].steps, instruction, r.Inputs)
		if err != nil {
			return nil, err
		}
		if text != "" {
			req.Messages = append(req.Messages, TextMessage(f.messages[i].role, text))
		}
	}
	offered := p.offered(r.Tools)
	switch {
	case len(offered) == 0:
	case r.Facts.ToolCalling:
		req.Tools = offered
	case f.layout.object:
		return nil, Failf(TypeTool, "capability-missing", "the program %s has tools, its json layout leaves no room for them in the reply, and the model calls none natively (native_function_calling); use another adapter", p.name)
	default:
		req.System = withSections(req.System, []string{fencedOffer(offered)})
	}
	req.Config = f.config(r)
	return req, nil
}

// write writes a message. An input that has no value is an error, except in a
// loop, which leaves it out.
func (p *Program) write(steps []step, instruction string, inputs datasets.Values) (string, *Failure) {
	if len(steps) == 1 && steps[0].kind == writeText && steps[0].only < 0 {
		return steps[0].text, nil
	}
	size := 64
	for _, s := range steps {
		size += len(s.text)
		switch s.kind {
		case writeInstruction:
			size += len(instruction)
		case writeInput:
			size += len(inputs[p.inputs[s.input].Name].JSON())
		}
	}
	b := make([]byte, 0, size)
	for _, s := range steps {
		if s.only >= 0 && inputs[p.inputs[s.only].Name].IsZero() {
			continue
		}
		switch s.kind {
		case writeText:
			b = append(b, s.text...)
		case writeInstruction:
			b = append(b, instruction...)
		case writeInput:
			field := &p.inputs[s.input]
			v := inputs[field.Name]
			if v.IsZero() {
				return "", Failf(TypeInterface, "missing-input", "there is no value for the input %s, which the template writes by its name", field.Name)
			}
			b = field.spelling.append(b, v)
		}
	}
	return string(b), nil
}

// turns adds the worked examples, then the earlier turns.
func (p *Program) turns(f *form, req *Request, instruction string, earlier []datasets.Turn, fenced bool) *Failure {
	if instruction == p.instruction {
		if f.broken != nil {
			return f.broken
		}
		req.Messages = append(req.Messages, f.examples...)
	} else if err := p.addExamples(f, &req.Messages, instruction); err != nil {
		return err
	}
	for i, turn := range earlier {
		var between []Message
		// Steps are in the form of the program that took them.
		if len(p.tools) > 0 && turn.Signature == p.Signature() {
			between = stepMessages(turn.Steps, fenced)
		}
		shown, err := p.addTurn(f, &req.Messages, instruction, turn.Inputs, turn.Outputs, between)
		if err != nil {
			err.Message = "earlier turn " + itoa(i+1) + ": " + err.Message
			return err
		}
		if !shown {
			return Failf(TypeInterface, "turn-invalid", "earlier turn %d has no output of the program %s, so it cannot be shown", i+1, p.name)
		}
	}
	return nil
}

func (p *Program) addExamples(f *form, messages *[]Message, instruction string) *Failure {
	for i, demo := range p.demos {
		// One that is left with no output shows nothing and is skipped.
		if _, err := p.addTurn(f, messages, instruction, demo.Inputs, demo.Outputs, nil); err != nil {
			err.Type = TypeProgram
			err.Message = "worked example " + itoa(i+1) + ": " + err.Message
			return err
		}
	}
	return nil
}

// addTurn adds a turn's messages: what was asked, as the layout's user messages
// write it, the messages between, and what was answered. It adds nothing when no
// output is left.
func (p *Program) addTurn(f *form, messages *[]Message, instruction string, inputs, outputs datasets.Values, between []Message) (shown bool, err *Failure) {
	reply, some := f.reply(outputs)
	if !some {
		return false, nil
	}
	for _, m := range f.messages {
		if m.role != "user" {
			continue
		}
		text, err := p.write(m.steps, instruction, inputs)
		if err != nil {
			return false, err
		}
		if text != "" {
			*messages = append(*messages, TextMessage("user", text))
		}
	}
	*messages = append(append(*messages, between...), TextMessage("assistant", reply))
	return true, nil
}

// reply writes outputs as the model is to write them; some is false when there
// are none of the program's.
func (f *form) reply(outputs datasets.Values) (text string, some bool) {
	var b []byte
	var members []member
	for _, o := range f.outputs {
		v := outputs[o.name]
		if v.IsZero() {
			continue
		}
		switch {
		case f.layout.object:
			members = append(members, member{o.name, o.inObject(v)})
		case f.marks:
			b = append(b, o.before...)
			b = o.spelling.append(b, v)
			b = append(b, o.after...)
		default:
			if some {
				b = append(b, '\n')
			}
			b = o.spelling.append(b, v)
		}
		some = true
	}
	switch {
	case !some:
		return "", false
	case f.layout.object:
		return string(appendIndented(nil, object(members))), true
	case f.marks:
		return strings.Trim(string(append(b, f.after...)), "\n"), true
	}
	return string(b), true
}

// inObject is a value as a member of the reply's object. The format's family
// spells the value first and then embeds what reads as JSON: so the text "9"
// is the number 9 there, and versions agree only if it is here. It reads back
// as the text it was; the word null would not, and stays a text.
func (o *outField) inObject(v datasets.Value) datasets.Value {
	spelled := o.spelling.append(nil, v)
	if text := jsontext.Value(spelled); text.IsValid() && text.Kind() != '"' {
		if embedded, err := datasets.ParseValue(spelled); err == nil && (embedded.IsNull() == v.IsNull()) {
			return embedded
		}
	}
	return datasets.Text(string(spelled))
}

// offered are the program's tools of these names, in its own order.
func (p *Program) offered(names []string) []Tool {
	var tools []Tool
	for _, t := range p.tools {
		if slices.Contains(names, t.Name) {
			tools = append(tools, t.Tool)
		}
	}
	return tools
}

// config is what the request asks of the provider.
func (f *form) config(r Rendering) datasets.Values {
	config := cloneValues(r.Config)
	if config == nil {
		config = datasets.Values{}
	}
	if f.stop != "" && r.Facts.StopSequences {
		stops := []string{f.stop}
		given := config["stop"]
		if s, ok := given.AsText(); ok {
			stops = append(stops, s)
		}
		for s := range given.Elements() {
			if text, ok := s.AsText(); ok && !slices.Contains(stops, text) {
				stops = append(stops, text)
			}
		}
		config["stop"] = texts(stops)
	}
	if f.layout.object {
		config["response_format"] = f.schema()
	}
	if _, set := config["reasoning"]; f.native && !set {
		config["reasoning"] = datasets.RawValue(`{"effort":"medium"}`)
	}
	return config
}

// schema has the provider enforce an object of the outputs.
func (f *form) schema() datasets.Value {
	var properties []member
	var names []string
	for _, o := range f.outputs {
		properties = append(properties, member{o.name, closed(o.field.Shape)})
		names = append(names, o.name)
	}
	return object([]member{
		{"type", datasets.Text("json_schema")},
		{"schema", object([]member{
			{"type", datasets.Text("object")},
			{"properties", object(properties)},
			{"required", texts(names)},
			{"additionalProperties", datasets.Bool(false)},
		})},
	})
}

// askAgain is the request after a reply that could not be read: the same with
// twice the room when the reply was cut off, else the conversation so far, the
// reply, and what was wrong with it. A reply that was cut at the service's own
// limit had as much room as it took.
func (p *Program) askAgain(req *Request, reply *Reply, why *Failure) *Request {
	next := req.Clone()
	if why.Code == "parse-truncated" {
		room, ok := next.Config["max_tokens"].AsInt()
		if took := reply.Usage.Output; next.Config["max_tokens"].IsZero() && took != nil {
			room, ok = *took, true
		}
		if ok && room > 0 && room < 1<<40 {
			if next.Config == nil {
				next.Config = datasets.Values{}
			}
			next.Config["max_tokens"] = datasets.Int(2 * room)
		}
		return next
	}
	// No provider takes an empty message.
	if reply.Text != "" {
		next.Messages = append(next.Messages, TextMessage("assistant", reply.Text))
	}
	hint := strings.TrimSuffix(why.Message, ".")
	next.Messages = append(next.Messages, TextMessage("user",
		"Your reply could not be read: "+hint+". Reply again, in exactly the form the instructions give."))
	return next
}
