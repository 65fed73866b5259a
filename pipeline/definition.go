package pipeline

import (
	"fmt"
	"slices"

	"evalrun/datasets"
	"evalrun/internal/conf"
)

// definition is a program file as it is written.
type definition struct {
	Name        string      `conf:"name,required"`
	Module      *string     `conf:"module"`
	Description *string     `conf:"description"`
	Inputs      []conf.Node `conf:"inputs"`
	Outputs     []conf.Node `conf:"outputs,required"`
	Settings    *settings   `conf:"settings"`
	Tools       []conf.Node `conf:"tools"`
	State       *state      `conf:"state"`
}

type settings struct {
	Adapter      *string    `conf:"adapter"`
	Template     conf.Node  `conf:"template"`
	Module       conf.Node  `conf:"module"`
	ShowName     *bool      `conf:"include_fn_name_in_instructions"`
	Capabilities conf.Node  `conf:"capabilities"`
	Reader       *readerDef `conf:"reader"`
}

type readerDef struct {
	Pattern conf.Node `conf:"pattern,required"`
}

type state struct {
	Instructions *string     `conf:"instructions"`
	Demos        []conf.Node `conf:"demos"`
}

type inputDef struct {
	Name        string    `conf:"name,required"`
	Shape       conf.Node `conf:"shape,required"`
	Desc        *string   `conf:"desc"`
	Optional    bool      `conf:"optional"`
	DefaultCode *string   `conf:"default_code"`
}

type outputDef struct {
	Name  string    `conf:"name,required"`
	Shape conf.Node `conf:"shape,required"`
	Desc  *string   `conf:"desc"`
}

type toolDef struct {
	Name        string    `conf:"name,required"`
	Description *string   `conf:"description"`
	Parameters  conf.Node `conf:"parameters,required"`
	Effects     *Effects  `conf:"effects"`
}

type demoDef struct {
	Inputs  conf.Pairs[datasets.Value] `conf:"inputs"`
	Outputs conf.Pairs[datasets.Value] `conf:"outputs"`
}

// ParseProgram reads a program's definition from YAML or JSON; file names it in
// messages. Nothing in it is expanded or run. An error names file, line and
// column, and is or wraps a *[Failure] where a rule has a code: template-syntax,
// not-readable, reader-pattern, adapter-unknown, interface-malformed.
func ParseProgram(file string, data []byte) (*Program, error) {
	root, err := conf.Parse(file, data)
	if err != nil {
		return nil, err
	}
	var d definition
	if err := conf.Decode(root, &d); err != nil {
		return nil, err
	}
	p := &Program{name: d.Name, module: text(d.Module), description: text(d.Description), showName: true, layout: layouts["xml"]}
	if blank(p.name) {
		return nil, root.Member("name").Errorf("name is blank")
	}
	if p.inputs, p.outputs, err = parseFields(d.Inputs, d.Outputs); err != nil {
		return nil, err
	}
	if p.outputs == nil {
		return nil, root.Member("outputs").Errorf("outputs is empty; a program has at least one, and the last is the answer")
	}
	if p.tools, err = parseTools(d.Tools, slices.Concat(p.inputs, p.outputs)); err != nil {
		return nil, err
	}
	if d.State != nil {
		p.instructions = d.State.Instructions
		if p.demos, err = parseDemos(d.State.Demos); err != nil {
			return nil, err
		}
	}
	if d.Settings != nil {
		if err := p.applySettings(d.Settings, root.Member("settings")); err != nil {
			return nil, err
		}
	}
	if fault := p.derive(); fault != nil {
		at := fault.at
		if at.IsZero() {
			if at = root.Member("settings"); at.IsZero() {
				at = root
			}
		}
		return nil, at.Wrap(fault.why)
	}
	return p, nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// value is a node's JSON, which conf has checked.
func value(n conf.Node) datasets.Value {
	if n.IsZero() {
		return datasets.Value{}
	}
	return datasets.RawValue(string(n.JSON()))
}

func malformed(n conf.Node, format string, args ...any) error {
	return n.Wrap(Failf(TypeProgram, "interface-malformed", format, args...))
}

// parseFields reads inputs and outputs. A name is an ASCII identifier, used once.
func parseFields(ins, outs []conf.Node) (inputs, outputs []Field, err error) {
	seen := map[string]bool{}
	add := func(fields *[]Field, n conf.Node, d inputDef) error {
		if !identifier.MatchString(d.Name) {
			return malformed(n.Member("name"), "the name %q is no identifier: letters, digits and _, not beginning with a digit", d.Name)
		}
		if seen[d.Name] {
			return malformed(n.Member("name"), "two fields are called %s", d.Name)
		}
		seen[d.Name] = true
		f, err := newField(d.Name, value(d.Shape), text(d.Desc))
		if err != nil {
			return malformed(d.Shape, "the shape of %s: %v", d.Name, err)
		}
		*fields = append(*fields, f)
		return nil
	}
	for _, n := range ins {
		var d inputDef
		if err := conf.Decode(n, &d); err != nil {
			return nil, nil, err
		}
		if err := add(&inputs, n, d); err != nil {
			return nil, nil, err
		}
		if err := inputs[len(inputs)-1].optional(d.Optional, text(d.DefaultCode)); err != nil {
			return nil, nil, malformed(n, "%v", err)
		}
	}
	for _, n := range outs {
		var d outputDef
		if err := conf.Decode(n, &d); err != nil {
			return nil, nil, err
		}
		if err := add(&outputs, n, inputDef{Name: d.Name, Shape: d.Shape, Desc: d.Desc}); err != nil {
			return nil, nil, err
		}
	}
	return inputs, outputs, nil
}

func newField(name string, schema datasets.Value, desc string) (Field, error) {
	s, err := parseShape(schema)
	if err != nil {
		return Field{}, err
	}
	return Field{Name: name, Shape: schema, Desc: desc, shape: s, spelling: spellingOf(s)}, nil
}

// optional makes an input optional, and moves the default out of its shape: the
// default is how a call is bound, not what the model is told.
func (f *Field) optional(optional bool, code string) error {
	v := f.Shape.Member("default")
	switch {
	case optional && v.IsZero():
		return fmt.Errorf("the input %s is optional and its shape has no default; a model is sent every input", f.Name)
	case !optional && !v.IsZero():
		return fmt.Errorf("the input %s has a default and is not optional; add optional: true, or leave the default out", f.Name)
	case !optional:
		return nil
	}
	g, err := newField(f.Name, withoutDefault(f.Shape), f.Desc)
	if err != nil {
		return err
	}
	g.Optional, g.Default, g.DefaultCode = true, v, code
	if m := g.shape.check(v); m != nil {
		return fmt.Errorf("the default of %s %s", f.Name, m)
	}
	*f = g
	return nil
}

func parseTools(nodes []conf.Node, fields []Field) ([]ToolDefinition, error) {
	var tools []ToolDefinition
	for _, n := range nodes {
		var d toolDef
		if err := conf.Decode(n, &d); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(tools, func(t ToolDefinition) bool { return t.Name == d.Name }) {
			return nil, n.Errorf("two tools are called %s", d.Name)
		}
		if d.Parameters.Kind() != conf.Map {
			return nil, d.Parameters.Errorf("the parameters of %s must be a JSON Schema of an object", d.Name)
		}
		tool := ToolDefinition{Tool: Tool{d.Name, text(d.Description), value(d.Parameters)}}
		if d.Effects != nil {
			if tool.Effects = *d.Effects; tool.Effects != EffectsRead && tool.Effects != EffectsChange {
				return nil, n.Member("effects").Errorf("effects is %s or %s; leave it out when it is not known, which counts as %[2]s", EffectsRead, EffectsChange)
			}
		}
		tools = append(tools, tool)
	}
	if name := toolField(fields); name != "" && tools != nil {
		return nil, nodes[0].Errorf("a program with tools has fields tools and calls of its own; call the field %s something else", name)
	}
	return tools, nil
}

// toolField is the first field that a program with tools cannot have; "" for none.
func toolField(sides ...[]Field) string {
	for _, fields := range sides {
		for _, f := range fields {
			if f.Name == "tools" || f.Name == "calls" {
				return f.Name
			}
		}
	}
	return ""
}

func parseDemos(nodes []conf.Node) ([]Demo, error) {
	var demos []Demo
	for _, n := range nodes {
		var d demoDef
		if err := conf.Decode(n, &d); err != nil {
			return nil, err
		}
		demos = append(demos, Demo{valuesOf(d.Inputs), valuesOf(d.Outputs)})
	}
	return demos, nil
}

func valuesOf(pairs conf.Pairs[datasets.Value]) datasets.Values {
	vs := make(datasets.Values, len(pairs))
	for _, p := range pairs {
		vs[p.Key] = p.Value
	}
	return vs
}

// Definition is the program as a definition: reading it gives a program of the
// same version.
func (p *Program) Definition() datasets.Value {
	d := []member{{"name", datasets.Text(p.name)}}
	if p.module != "" {
		d = append(d, member{"module", datasets.Text(p.module)})
	}
	d = append(d, member{"description", datasets.Text(p.description)},
		member{"inputs", definitionsOf(p.inputs)}, member{"outputs", definitionsOf(p.outputs)},
		member{"settings", p.settings()})
	if len(p.tools) > 0 {
		var tools []datasets.Value
		for _, t := range p.tools {
			m := []member{{"name", datasets.Text(t.Name)}, {"description", datasets.Text(t.Description)}, {"parameters", t.Parameters}}
			if t.Effects != "" {
				m = append(m, member{"effects", datasets.Text(string(t.Effects))})
			}
			tools = append(tools, object(m))
		}
		d = append(d, member{"tools", list(tools)})
	}
	instructions := datasets.Null
	if p.instructions != nil {
		instructions = datasets.Text(*p.instructions)
	}
	var demos []datasets.Value
	for _, demo := range p.demos {
		demos = append(demos, object([]member{{"inputs", demo.Inputs.Object()}, {"outputs", demo.Outputs.Object()}}))
	}
	return object(append(d, member{"state", object([]member{{"instructions", instructions}, {"demos", list(demos)}})}))
}

func definitionsOf(fields []Field) datasets.Value {
	var defs []datasets.Value
	for _, f := range fields {
		shape := f.Shape
		if f.Optional {
			var members []member
			for name, v := range shape.Members() {
				members = append(members, member{name, v})
			}
			shape = object(append(members, member{"default", f.Default}))
		}
		d := []member{{"name", datasets.Text(f.Name)}, {"shape", shape}}
		if f.Desc != "" {
			d = append(d, member{"desc", datasets.Text(f.Desc)})
		}
		if f.Optional {
			d = append(d, member{"optional", datasets.Bool(true)})
		}
		if f.DefaultCode != "" {
			d = append(d, member{"default_code", datasets.Text(f.DefaultCode)})
		}
		defs = append(defs, object(d))
	}
	return list(defs)
}

func (p *Program) settings() datasets.Value {
	var s []member
	if p.adapter != "" {
		s = append(s, member{"adapter", datasets.Text(p.adapter)})
	}
	if !p.template.IsZero() {
		s = append(s, member{"template", p.template})
	}
	if p.cot {
		s = append(s, member{"module", datasets.Text("cot")})
	}
	if !p.showName {
		s = append(s, member{"include_fn_name_in_instructions", datasets.Bool(false)})
	}
	if !p.capabilities.IsZero() {
		s = append(s, member{"capabilities", p.capabilities})
	}
	if p.reader != nil {
		s = append(s, member{"reader", p.reader.given})
	}
	return object(s)
}
