package pipeline

import (
	"errors"
	"fmt"
	"slices"

	"evalrun/datasets"
	"evalrun/internal/canon"
	"evalrun/internal/conf"
)

// savedFormat is the format of saved folders that is read here.
const savedFormat = 1

// ParseSaved reads a program from the functai.json of a saved folder: its entry,
// when that is an AI function the model answers alone. file names it in
// messages.
//
// It refuses, with a *[Failure] that has a code, what cannot be run here
// (saved-not-ai, saved-code, saved-tools, saved-model, saved-layout), what it
// cannot read (saved-malformed, saved-format, interface-malformed), and a
// function that would not send what was saved (saved-differs): every probe is
// rendered again, and its hash, like the version, must be the one the file has.
// Keys it does not know are skipped.
func ParseSaved(file string, data []byte) (*Program, error) {
	p, f := parseSaved(data)
	if f != nil {
		return nil, fmt.Errorf("%s: %w", file, f)
	}
	return p, nil
}

func notSaved(code, format string, args ...any) *Failure {
	return Failf(TypeProgram, code, format, args...)
}

func parseSaved(data []byte) (*Program, *Failure) {
	root, err := conf.Parse("functai.json", data)
	if err != nil {
		return nil, notSaved("saved-malformed", "%v", err)
	}
	if root.Kind() != conf.Map {
		return nil, notSaved("saved-malformed", "it must be an object, found %s", root.Kind())
	}
	manifest := value(root)
	if n, ok := manifest.Member("functai_saved").AsInt(); !ok || n != savedFormat {
		return nil, notSaved("saved-format", "it is of format %s, and format %d is read here", describe(manifest.Member("functai_saved")), savedFormat)
	}
	key, ok := manifest.Member("entry").AsText()
	node := manifest.Member("nodes").Member(key)
	if !ok || node.Kind() != '{' {
		return nil, notSaved("saved-malformed", "its entry names none of its nodes")
	}
	s := savedNode{key: key, node: node, language: "python"}
	if l, ok := manifest.Member("language").AsText(); ok {
		s.language = l
	}
	p, f := s.program()
	if f != nil {
		f.Message = s.key + ": " + f.Message
		return nil, f
	}
	p.saved = canon.Hash(data)
	return p, nil
}

// savedNode is one AI function of a saved folder.
type savedNode struct {
	key      string
	language string // what the folder's code is written in
	node     datasets.Value
	ai       datasets.Value
}

func (s *savedNode) program() (*Program, *Failure) {
	if kind, _ := s.node.Member("kind").AsText(); kind != "ai" {
		return nil, notSaved("saved-not-ai", "it is a %s, code in %s, and only AI functions are run here", shorten(kind), s.language)
	}
	if s.ai = s.node.Member("ai"); s.ai.Kind() != '{' {
		return nil, notSaved("saved-malformed", "it has no ai")
	}
	if f := s.runnable(); f != nil {
		return nil, f
	}
	p := &Program{showName: true, layout: layouts["xml"]}
	if f := s.takeFields(p); f != nil {
		return nil, f
	}
	if f := s.takeState(p); f != nil {
		return nil, f
	}
	if f := s.takeSettings(p); f != nil {
		return nil, f
	}
	if f := s.takeDefaults(p); f != nil {
		return nil, f
	}
	if fault := p.derive(); fault != nil {
		return nil, fault.why
	}
	return p, s.same(p)
}

// runnable refuses what is code.
func (s *savedNode) runnable() *Failure {
	if body := s.ai.Member("body"); !body.IsNull() {
		return notSaved("saved-code", "code of its own, written in %s, runs beside the model", s.language)
	}
	for t := range s.ai.Member("tools").Elements() {
		return notSaved("saved-tools", "it has tools (the first is %s), and a tool is code", shorten(t.JSON()))
	}
	for name, v := range s.ai.Member("settings").Members() {
		if baked, other := v.Member("baked"), v.Member("node"); !baked.IsZero() || !other.IsZero() {
			return notSaved("saved-model", "its setting %s is %s, a model that is not in reach", name, shorten(v.JSON()))
		}
	}
	return nil
}

// takeFields takes the signature: the instruction as it was last, and the fields.
func (s *savedNode) takeFields(p *Program) *Failure {
	var ok1, ok2, ok3 bool
	var instruction string
	p.name, ok1 = s.node.Member("name").AsText()
	p.module, ok2 = s.node.Member("module").AsText()
	signature := s.ai.Member("signature")
	instruction, ok3 = signature.Member("instructions").AsText()
	if !ok1 || !ok2 || !ok3 || signature.Member("fields").Kind() != '[' {
		return notSaved("saved-malformed", "it needs a name, a module, and a signature of instructions and fields")
	}
	p.instructions = &instruction
	if d, ok := s.node.Member("interface").Member("description").AsText(); ok {
		p.description = d
	}
	for v := range signature.Member("fields").Elements() {
		name, _ := v.Member("name").AsText()
		direction, _ := v.Member("direction").AsText()
		purpose := purposeOf(v)
		desc, _ := v.Member("desc").AsText()
		shape := v.Member("shape")
		if direction == "input" && shape.Kind() == '{' {
			shape = withoutDefault(shape)
		}
		f, err := newField(name, shape, desc)
		if err != nil || !identifier.MatchString(name) {
			return notSaved("saved-malformed", "its field %q cannot be read: %v", shorten(name), err)
		}
		switch {
		case direction == "input" && purpose == "plain":
			p.inputs = append(p.inputs, f)
		case direction == "output" && purpose == "plain":
			p.outputs = append(p.outputs, f)
		case direction == "output" && purpose == "reasoning":
			p.cot = true
		default:
			return notSaved("saved-tools", "its field %s (%s) needs tools", name, shorten(purpose))
		}
	}
	if p.outputs == nil {
		return notSaved("saved-malformed", "it has no output")
	}
	return nil
}

func purposeOf(field datasets.Value) string {
	if purpose, ok := field.Member("purpose").AsText(); ok {
		return purpose
	}
	return "plain"
}

func (s *savedNode) takeState(p *Program) *Failure {
	st := s.ai.Member("state")
	if text, ok := st.Member("instructions").AsText(); ok {
		p.instructions = &text
	}
	for demo := range st.Member("demos").Elements() {
		inputs, outputs := demo.Member("inputs"), demo.Member("outputs")
		if inputs.Kind() != '{' || outputs.Kind() != '{' {
			return notSaved("saved-malformed", "worked example %d is not inputs and outputs", len(p.demos)+1)
		}
		p.demos = append(p.demos, Demo{datasets.ValuesOf(inputs), datasets.ValuesOf(outputs)})
	}
	return nil
}

// takeSettings takes the settings that shape the request; the others, such as
// the model, say where it ran.
func (s *savedNode) takeSettings(p *Program) *Failure {
	st := s.ai.Member("settings")
	if module, _ := st.Member("module").AsText(); module == "cot" {
		p.cot = true
	}
	if show, ok := st.Member("include_fn_name_in_instructions").AsBool(); ok {
		p.showName = show
	}
	adapter := st.Member("adapter")
	if name, ok := adapter.AsText(); ok {
		l, f := layoutNamed(name)
		if f != nil {
			return f
		}
		p.layout, p.adapter = l, name
	} else if !adapter.IsZero() && !adapter.IsNull() {
		return notSaved("saved-layout", "its adapter is a layout of its own; xml, chat, json and templates are read here")
	}
	if template := s.ai.Member("template"); template.Kind() == '[' {
		n, err := conf.Parse("template.json", []byte(template.JSON()))
		if err != nil {
			return notSaved("saved-malformed", "%v", err)
		}
		l, err := parseLayout(n)
		if err != nil {
			var f *Failure
			if errors.As(err, &f) {
				return f
			}
			return notSaved("saved-layout", "%v", err)
		}
		p.layout, p.adapter, p.template = l, "", template
	}
	if c := st.Member("capabilities"); c.Kind() == '{' {
		p.capabilities = c
	}
	return nil
}

// takeDefaults takes the optional inputs, which the interface alone knows.
func (s *savedNode) takeDefaults(p *Program) *Failure {
	for v := range s.node.Member("interface").Member("inputs").Elements() {
		name, _ := v.Member("name").AsText()
		i := slices.IndexFunc(p.inputs, func(f Field) bool { return f.Name == name })
		if optional, _ := v.Member("optional").AsBool(); !optional || i < 0 {
			continue
		}
		code, _ := s.node.Member("defaults").Member(name).Member("code").AsText()
		f, err := newField(name, v.Member("shape"), p.inputs[i].Desc)
		if err == nil {
			err = f.optional(true, code)
		}
		if err != nil {
			return notSaved("interface-malformed", "%v", err)
		}
		p.inputs[i].Optional, p.inputs[i].Default, p.inputs[i].DefaultCode = true, f.Default, code
	}
	return nil
}

// same refuses a program that is not, byte for byte, the one that was saved.
func (s *savedNode) same(p *Program) *Failure {
	differs := func(what, here, saved string) *Failure {
		return notSaved("saved-differs", "%s here is %s, and %s was saved", what, here, saved)
	}
	prints := s.ai.Member("fingerprints")
	if want, ok := prints.Member("signature").AsText(); ok {
		if got := s.fingerprint(); got != want {
			return differs("its signature's fingerprint", got, want)
		}
	}
	want := slices.Collect(prints.Member("requests").Elements())
	i := 0
	for probe := range s.ai.Member("probes").Elements() {
		if i == len(want) {
			break
		}
		hash, _ := want[i].AsText()
		if got, _ := p.probe(datasets.ValuesOf(probe)); got != hash {
			return differs(fmt.Sprintf("the request for probe %d (%s)", i, shorten(probe.JSON())), got, hash)
		}
		i++
	}
	if version, ok := s.ai.Member("version").AsText(); ok && version != p.version {
		return differs("its version", p.version, version)
	}
	if declared := s.node.Member("interface"); declared.Kind() == '{' {
		if got := interfaceHash(declared); got != p.iface {
			return notSaved("saved-differs", "its interface describes other data than its signature")
		}
	}
	return nil
}

// fingerprint is the hash of the saved signature's fields, with the names their
// types have in the language that saved them.
func (s *savedNode) fingerprint() string {
	var fields []datasets.Value
	for v := range s.ai.Member("signature").Member("fields").Elements() {
		direction, _ := v.Member("direction").AsText()
		name, _ := v.Member("name").AsText()
		typ, _ := v.Member("type").AsText()
		fields = append(fields, hashed(direction, name, purposeOf(v), typ, v.Member("shape")))
	}
	return list(fields).Hash()
}

// interfaceHash is the hash of a declared interface's fields.
func interfaceHash(declared datasets.Value) string {
	var fields []datasets.Value
	for _, d := range []struct{ direction, member string }{{"input", "inputs"}, {"output", "outputs"}} {
		for v := range declared.Member(d.member).Elements() {
			name, _ := v.Member("name").AsText()
			fields = append(fields, hashed(d.direction, name, "plain", "", withoutDefaults(v.Member("shape"))))
		}
	}
	return list(fields).Hash()
}
