package pipeline

import (
	"slices"

	"evalrun/datasets"
	"evalrun/internal/conf"
)

// Program is an AI function as data. It is immutable; the With methods return
// changed copies. The model that runs it and its sampling settings are not part
// of it: they say where it runs.
type Program struct {
	name         string
	module       string
	description  string
	instructions *string // improved instruction; nil when as written
	inputs       []Field
	outputs      []Field // the last is the answer
	tools        []ToolDefinition
	demos        []Demo
	cot          bool
	showName     bool
	layout       *Layout
	adapter      string         // how the definition names the layout; "" for the default one
	template     datasets.Value // the template's messages, when the layout is one
	reader       *patternReader // nil: replies are read by the layout
	capabilities datasets.Value // what the definition says its model can do
	saved        string

	// All below follows from the above.

	written     *form // the layout when the model writes its reasoning, if any, in the reply
	native      *form // and when it reasons in a channel of its own; nil when that is no different
	instruction string
	signature   string
	iface       string
	version     string
	refused     *Failure // why not even the sample can be rendered; nil when it can

	plugins []*Plugin // the program layer; not part of the version
}

// Field is an input or an output of a program.
type Field struct {
	Name        string
	Shape       datasets.Value // JSON Schema; an input's without its own default
	Desc        string
	Optional    bool           // inputs only
	Default     datasets.Value // an optional input's default
	DefaultCode string         // the expression a default was computed from, where it was; "" for a plain value

	shape    *shape
	spelling spelling
}

// Demo is a worked example.
type Demo struct {
	Inputs  datasets.Values
	Outputs datasets.Values
}

// Rendering is everything a request is made of besides the program itself.
type Rendering struct {
	Inputs      datasets.Values // bound
	Instruction string          // as it stands
	Sections    []string        // in order; each follows the instruction after a blank line
	Earlier     []datasets.Turn
	Tools       []string // names of the tools offered
	Model       string
	Config      datasets.Values
	Facts       Facts
}

// Name is the program's name.
func (p *Program) Name() string { return p.name }

// Module is the module the program belongs to; "" when its definition names none.
func (p *Program) Module() string { return p.module }

// Description says what the program does; "" when its definition says nothing.
func (p *Program) Description() string { return p.description }

// Instruction is the program's own instruction, before any plugin.
func (p *Program) Instruction() string { return p.instruction }

// Inputs are the program's plain inputs, in order.
func (p *Program) Inputs() []Field { return p.inputs }

// Outputs are the program's plain outputs, in order; the last is the answer.
func (p *Program) Outputs() []Field { return p.outputs }

// Demos are the program's worked examples, in order.
func (p *Program) Demos() []Demo { return p.demos }

// Answer is the name of the answer output.
func (p *Program) Answer() string { return p.outputs[len(p.outputs)-1].Name }

// Signature is the hash of all fields.
func (p *Program) Signature() string { return p.signature }

// Interface is the hash of the plain fields.
func (p *Program) Interface() string { return p.iface }

// Version names what the program sends: two programs of one version send the
// same requests.
func (p *Program) Version() string { return p.version }

// Saved is the hash of the functai.json the program was loaded from; "" for any
// other program.
func (p *Program) Saved() string { return p.saved }

// Own returns those of the values that are the program's inputs: a row may have
// more.
func (p *Program) Own(values datasets.Values) datasets.Values {
	own := make(datasets.Values, len(p.inputs))
	for i := range p.inputs {
		name := p.inputs[i].Name
		if v, ok := values[name]; ok {
			own[name] = v
		}
	}
	return own
}

// Plugins are the program's own plugins, the innermost layer.
func (p *Program) Plugins() []*Plugin { return slices.Clone(p.plugins) }

// WithPlugins returns the program with its own plugins, the innermost layer.
// The version stays: plugins change calls, not programs.
func (p *Program) WithPlugins(plugins ...*Plugin) *Program {
	c := *p
	c.plugins = plugins
	return &c
}

// WithInstruction returns the program with an improved instruction, which stands
// in the place of all that was written: name, description and guidance.
func (p *Program) WithInstruction(instruction string) *Program {
	c := *p
	c.instructions = &instruction
	c.derive()
	return &c
}

// WithDemos returns the program with other worked examples.
func (p *Program) WithDemos(demos []Demo) *Program {
	c := *p
	c.demos = slices.Clone(demos)
	c.derive()
	return &c
}

// toolNames are the names of the program's tools, in order.
func (p *Program) toolNames() []string {
	names := make([]string, len(p.tools))
	for i, t := range p.tools {
		names[i] = t.Name
	}
	return names
}

// Tools are the program's tools, in order.
func (p *Program) Tools() []ToolDefinition { return slices.Clone(p.tools) }

// WithTools returns the program with other tools. It refuses (interface-malformed)
// two tools of one name, parameters that are no object, and a program with a field
// called tools or calls: those that programs with tools have of their own.
func (p *Program) WithTools(tools ...ToolDefinition) (*Program, error) {
	for i, t := range tools {
		if slices.ContainsFunc(tools[:i], func(u ToolDefinition) bool { return u.Name == t.Name }) {
			return nil, Failf(TypeProgram, "interface-malformed", "two tools are called %s", t.Name)
		}
		if t.Parameters.Kind() != '{' {
			return nil, Failf(TypeProgram, "interface-malformed", "the parameters of %s must be a JSON Schema of an object", t.Name)
		}
	}
	if name := toolField(p.inputs, p.outputs); name != "" && len(tools) > 0 {
		return nil, Failf(TypeProgram, "interface-malformed", "a program with tools has fields tools and calls of its own; call the field %s something else", name)
	}
	c := *p
	c.tools = slices.Clone(tools)
	c.derive()
	return &c, nil
}

// unsupported is why the program cannot be asked, nil when it can.
func (p *Program) unsupported(tools Toolbox) *Failure {
	if len(p.tools) > 0 && tools == nil {
		return Failf(TypeTool, "tools-unsupported", "the program %s has tools, and nothing is given to run them; give the caller tools, or evaluate the program's recorded answers", p.name)
	}
	for _, f := range slices.Concat(p.inputs, p.outputs) {
		if f.shape.media != "" {
			return Failf(TypeProgram, "media-unsupported", "the field %s of the program %s is of media %q, and only text is sent yet", f.Name, p.name, f.shape.media)
		}
	}
	return nil
}

// InstructionReaches reports whether the layout writes the instruction
// anywhere. Where it does not, changing it changes nothing.
func (p *Program) InstructionReaches() bool { return p.layout.writesInstruction() }

// Warnings are doubts about the program that do not stop it, each in a line.
func (p *Program) Warnings() []string {
	var warnings []string
	if p.refused != nil {
		warnings = append(warnings, "no request can be made, not even for the sample: "+p.refused.Error())
	}
	for _, f := range p.inputs {
		if !p.layout.writesInput(f.Name) {
			warnings = append(warnings, "the template writes the input "+f.Name+" nowhere, so the model never sees it")
		}
	}
	for _, f := range slices.Concat(p.inputs, p.outputs) {
		for key := range f.Shape.Members() {
			if near := conf.Suggest(key, shapeKeywords); near != "" && near != key {
				warnings = append(warnings, f.Name+": its shape says "+key+", which means nothing; did you mean "+near+"?")
			}
		}
	}
	for i, demo := range p.demos {
		example := "worked example " + itoa(i+1)
		if _, some := p.written.reply(demo.Outputs); !some {
			warnings = append(warnings, example+" has none of the program's outputs and is not shown")
		}
		if p.refused == nil {
			warnings = append(warnings, p.doubts(example, demo)...)
		}
	}
	return warnings
}

// Bind checks a call's inputs and adds the defaults of those left out. It
// refuses (interface-input, a *[Failure]) an input the program does not have,
// the first in code point order, then, in the program's order, a required one
// that was left out and a value that does not fit.
func (p *Program) Bind(in datasets.Values) (datasets.Values, error) {
	for _, name := range in.Names() {
		if !slices.ContainsFunc(p.inputs, func(f Field) bool { return f.Name == name }) {
			return nil, refuseInput(name, "the program %s has no such input", p.name)
		}
	}
	bound := make(datasets.Values, len(p.inputs))
	for i := range p.inputs {
		f := &p.inputs[i]
		v := in[f.Name]
		if v.IsZero() {
			if !f.Optional {
				return nil, refuseInput(f.Name, "it is required and was left out")
			}
			bound[f.Name] = f.Default
			continue
		}
		if m := f.shape.check(v); m != nil {
			return nil, refuseInput(f.Name, "%s", m)
		}
		bound[f.Name] = v
	}
	return bound, nil
}

func refuseInput(name, format string, args ...any) *Failure {
	f := Failf(TypeInterface, "interface-input", format, args...)
	f.Message = "input " + name + ": " + f.Message
	return f
}

// shapeKeywords are the keywords of a shape that are checked.
var shapeKeywords = []string{
	"type", "enum", "const", "anyOf", "items", "prefixItems", "minItems", "maxItems", "uniqueItems", "properties", "required",
	"additionalProperties", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "default",
}

// doubts are what a worked example has and the program does not: it is not shown.
func (p *Program) doubts(example string, demo Demo) []string {
	var doubts []string
	for _, side := range []struct {
		what   string
		values datasets.Values
		fields []Field
	}{{"input", demo.Inputs, p.inputs}, {"output", demo.Outputs, p.outputs}} {
		var names []string
		for _, f := range side.fields {
			names = append(names, f.Name)
			v := side.values[f.Name]
			switch {
			case v.IsZero() && side.what == "input" && !f.Optional:
				doubts = append(doubts, example+" lacks the input "+f.Name)
			case !v.IsZero() && side.what == "output" && f.shape != nil:
				if m := f.shape.check(v); m != nil {
					doubts = append(doubts, example+", "+f.Name+": "+m.String())
				}
			}
		}
		for _, name := range side.values.Names() {
			if slices.Contains(names, name) || name == reasoningField && side.what == "output" {
				continue
			}
			doubt := example + " has the " + side.what + " " + name + ", which the program does not have"
			if near := conf.Suggest(name, names); near != "" {
				doubt += "; did you mean " + near + "?"
			}
			doubts = append(doubts, doubt)
		}
	}
	return doubts
}
