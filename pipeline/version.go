package pipeline

import (
	"evalrun/datasets"
)

// The fields a program with tools has besides its own.
var (
	toolsShape = datasets.RawValue(`{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},` +
		`"description":{"anyOf":[{"type":"string"},{"type":"null"}]},"parameters":{"anyOf":[{"type":"object"},{"type":"null"}]}},` +
		`"required":["name","description","parameters"]}}`)
	callsShape = datasets.RawValue(`{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},` +
		`"name":{"type":"string"},"input":{"type":"object"}},"required":["id","name","input"]}}`)
	textShape = datasets.RawValue(`{"type":"string"}`)
)

// reasoningField is the output that a program gets when its model is to reason.
const reasoningField = "reasoning"

// reasons reports whether the program has that output: a field of its own of
// that name takes its place.
func (p *Program) reasons() bool {
	if !p.cot {
		return false
	}
	for _, fields := range [][]Field{p.inputs, p.outputs} {
		for _, f := range fields {
			if f.Name == reasoningField {
				return false
			}
		}
	}
	return true
}

// derive computes what follows from the definition. Only a new layout or new
// fields can be at fault.
func (p *Program) derive() *fault {
	if f := p.bindLayout(); f != nil {
		return f
	}
	p.instruction = p.ownInstruction()
	p.signature, p.iface = p.hashFields()
	for _, f := range []*form{p.written, p.native} {
		if f == nil {
			continue
		}
		f.broken = p.addExamples(f, &f.examples, p.instruction)
	}
	p.version = p.hashVersion()
	return nil
}

// bindLayout binds the layout to the outputs a reply holds.
func (p *Program) bindLayout() *fault {
	outputs := make([]outField, len(p.outputs))
	for i := range p.outputs {
		f := &p.outputs[i]
		outputs[i] = outField{name: f.Name, spelling: f.spelling, shape: f.shape, field: f}
	}
	p.native = nil
	var err *fault
	if !p.reasons() {
		p.written, err = p.readable(p.layout.bind(p.inputs, outputs))
		return err
	}
	reasoning, bad := newField(reasoningField, textShape, "")
	if bad != nil {
		panic("pipeline: the shape of reasoning: " + bad.Error())
	}
	all := append([]outField{{name: reasoningField, spelling: reasoning.spelling, shape: reasoning.shape, field: &reasoning}}, outputs...)
	if p.written, err = p.readable(p.layout.bind(p.inputs, all)); err != nil || p.layout.object {
		return err
	}
	p.written.tell = "Reason step by step in the '" + reasoningField + "' section before writing any other section."
	if p.native, err = p.readable(p.layout.bind(p.inputs, outputs)); err == nil {
		p.native.native = true
	}
	return err
}

// readable refuses a form whose reply could not be told apart into outputs.
func (p *Program) readable(f *form, err *fault) (*form, *fault) {
	if err != nil || len(f.outputs) == 1 {
		return f, err
	}
	names := ""
	for i, o := range f.outputs {
		if i > 0 {
			names += ", "
		}
		names += o.name
	}
	switch {
	case p.reader != nil:
		return nil, &fault{why: Failf(TypeProgram, "not-readable", "a pattern reads one output, and the reply holds %d: %s", len(f.outputs), names)}
	case !f.marks && !f.layout.object:
		return nil, &fault{why: Failf(TypeProgram, "not-readable", "the template shows no form of the reply, so it can hold one output, not %d (%s); "+
			"add a loop such as {%% for f in outputs %%}<{f.name}>{f.value}</{f.name}>{%% endfor %%}", len(f.outputs), names)}
	}
	return f, nil
}

// signatureField is one field of a program's signature.
type signatureField struct {
	name, direction, purpose string
	shape                    datasets.Value
	desc                     string
}

// fields are the program's own and those that tools and reasoning add, in the
// order of the signature.
func (p *Program) fields() []signatureField {
	var fields []signatureField
	for _, f := range p.inputs {
		fields = append(fields, signatureField{f.Name, "input", "plain", f.Shape, f.Desc})
	}
	if len(p.tools) > 0 {
		fields = append(fields, signatureField{"tools", "input", "tools", toolsShape, ""})
	}
	if p.reasons() {
		fields = append(fields, signatureField{reasoningField, "output", "reasoning", textShape, ""})
	}
	if len(p.tools) > 0 {
		fields = append(fields, signatureField{"calls", "output", "tools.calls", callsShape, ""})
	}
	for _, f := range p.outputs {
		fields = append(fields, signatureField{f.Name, "output", "plain", f.Shape, f.Desc})
	}
	return fields
}

// Fields is the program's signature as data: a list of {name, direction, purpose,
// shape, desc?}. Purpose is plain for the program's own fields; reasoning, tools
// and tools.calls are those of fields that settings and tools add.
func (p *Program) Fields() datasets.Value {
	var fields []datasets.Value
	for _, f := range p.fields() {
		m := []member{
			{"name", datasets.Text(f.name)},
			{"direction", datasets.Text(f.direction)},
			{"purpose", datasets.Text(f.purpose)},
			{"shape", f.shape},
		}
		if f.desc != "" {
			m = append(m, member{"desc", datasets.Text(f.desc)})
		}
		fields = append(fields, object(m))
	}
	return list(fields)
}

// hashFields is the signature and the interface: hashes of what the program's
// data looks like, whatever it is told to do with it.
func (p *Program) hashFields() (signature, iface string) {
	var all, plain []datasets.Value
	for _, f := range p.fields() {
		v := hashed(f.direction, f.name, f.purpose, "", withoutDefaults(f.shape))
		all = append(all, v)
		if f.purpose == "plain" {
			plain = append(plain, v)
		}
	}
	return list(all).Hash(), list(plain).Hash()
}

// hashed is a field as signatures hash it.
func hashed(direction, name, purpose, typ string, shape datasets.Value) datasets.Value {
	return object([]member{
		{"direction", datasets.Text(direction)},
		{"name", datasets.Text(name)},
		{"purpose", datasets.Text(purpose)},
		{"shape", shape},
		{"type", datasets.Text(typ)},
	})
}

// hashVersion is the hash of what the program sends for its sample input, under
// fixed facts and without plugins or a conversation, with its defaults and what
// code it has of its own.
func (p *Program) hashVersion() string {
	var request string
	request, p.refused = p.probe(p.Sample())
	doc := []member{{"request", datasets.Text(request)}}
	var defaults []member
	for _, f := range p.inputs {
		switch {
		case f.DefaultCode != "":
			defaults = append(defaults, member{f.Name, object([]member{{"code", datasets.Text(f.DefaultCode)}})})
		case !f.Default.IsZero():
			defaults = append(defaults, member{f.Name, object([]member{{"value", f.Default}})})
		}
	}
	if defaults != nil {
		doc = append(doc, member{"defaults", object(defaults)})
	}
	if p.reader != nil {
		doc = append(doc, member{"code", datasets.Text(p.reader.given.Hash())})
	}
	return object(doc).Hash()
}

// probe is the hash of the request for some inputs under fixed facts, or
// "refused:" and the code of why there is none.
func (p *Program) probe(inputs datasets.Values) (hash string, refused *Failure) {
	req, f := p.probeRequest(inputs)
	if f != nil {
		return "refused:" + f.Code, f
	}
	return req.Hash(), nil
}

func (p *Program) probeRequest(inputs datasets.Values) (*Request, *Failure) {
	return p.render(Rendering{
		Inputs: inputs, Instruction: p.instruction, Tools: p.toolNames(), Model: ProbeModel, Facts: ProbeFacts,
	})
}

// SampleRequest is the request the version rests on: for the sample, under fixed
// facts, to the model "probe", without plugins or a conversation.
func (p *Program) SampleRequest() (*Request, error) {
	req, f := p.probeRequest(p.Sample())
	if f != nil {
		return nil, f
	}
	return req, nil
}

// Sample is a value for every input, chosen by its shape alone.
func (p *Program) Sample() datasets.Values {
	sample := make(datasets.Values, len(p.inputs))
	for _, f := range p.inputs {
		sample[f.Name] = sampleOf(f.shape, 0)
	}
	return sample
}

// sampleOf picks the first choice of an enum, the first of several shapes or
// types that is not null, and a fixed value for each type.
func sampleOf(s *shape, depth int) datasets.Value {
	const deep = 32 // references may lead in circles
	switch {
	case len(s.enum) > 0:
		return s.enum[0]
	case !s.constant.IsZero():
		return s.constant
	case s.ref != nil && depth < deep:
		return sampleOf(s.ref, depth+1)
	}
	for _, option := range s.anyOf {
		if depth < deep && !(len(option.types) == 1 && option.types[0] == "null") {
			return sampleOf(option, depth+1)
		}
	}
	typ := "string"
	switch {
	case s.types != nil:
		if typ = s.types[0]; typ == "null" && len(s.types) > 1 {
			typ = s.types[1]
		}
	case s.record:
		typ = "object"
	}
	return datasets.RawValue(map[string]string{
		"string": `"example text"`, "integer": "3", "number": "2.5", "boolean": "true",
		"array": "[]", "object": "{}", "null": "null",
	}[typ])
}
