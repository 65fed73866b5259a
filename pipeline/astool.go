package pipeline

import (
	"slices"
	"strings"

	"evalrun/datasets"
)

// AsTool declares the program as a tool for other programs: its name, its
// description or "Ask <name>.", its inputs as parameters, and its effects: it
// reads when all its own tools read. [Call.ToolResult] is what it answers.
func (p *Program) AsTool() ToolDefinition {
	d := ToolDefinition{Tool: Tool{Name: p.name, Description: p.description, Parameters: p.parameters()}, Effects: EffectsRead}
	if blank(d.Description) {
		d.Description = "Ask " + p.name + "."
	}
	for _, t := range p.tools {
		if t.Effects != EffectsRead {
			d.Effects = ""
		}
	}
	if slices.ContainsFunc(p.tools, func(t ToolDefinition) bool { return t.Effects == EffectsChange }) {
		d.Effects = EffectsChange
	}
	return d
}

// ToolResult is the call as the result of a tool: the answer of a program with one
// output, else the object of its outputs, as text; or the call's failure.
func (c *Call) ToolResult() (string, error) {
	if c.Failure != nil {
		return "", c.Failure
	}
	outputs := c.Program.outputs
	if len(outputs) == 1 {
		return c.Outputs[outputs[0].Name].String(), nil
	}
	var members []member
	for _, f := range outputs {
		if v := c.Outputs[f.Name]; !v.IsZero() {
			members = append(members, member{f.Name, v})
		}
	}
	return object(members).JSON(), nil
}

// parameters is the JSON Schema of an object of the program's inputs.
func (p *Program) parameters() datasets.Value {
	var properties, defs []member
	var required []string
	for _, f := range p.inputs {
		shape := lift(f.Name, f.Shape, &defs)
		var members []member
		for name, v := range shape.Members() {
			members = append(members, member{name, v})
		}
		if f.Desc != "" && find(members, "description") < 0 {
			members = append(members, member{"description", datasets.Text(f.Desc)})
		}
		if f.Optional {
			members = append(members, member{"default", f.Default})
		} else {
			required = append(required, f.Name)
		}
		properties = append(properties, member{f.Name, object(members)})
	}
	schema := []member{{"type", datasets.Text("object")}, {"properties", object(properties)}, {"required", texts(required)}}
	if defs != nil {
		schema = append(schema, member{"$defs", object(defs)})
	}
	return object(schema)
}

// lift moves the definitions a shape refers to up to the schema it becomes part
// of, since references begin at the top. A name that another field gave to
// something else gets the field's before it.
func lift(field string, shape datasets.Value, defs *[]member) datasets.Value {
	renamed := map[string]string{}
	for _, key := range []string{"$defs", "definitions"} {
		for name, def := range shape.Member(key).Members() {
			to := name
			if i := find(*defs, name); i >= 0 && !(*defs)[i].value.Equal(def) {
				to = field + "_" + name
			}
			renamed["#/"+key+"/"+name] = "#/$defs/" + to
		}
	}
	if len(renamed) == 0 {
		return shape
	}
	point := func(members []member) []member {
		for i, m := range members {
			if to, ok := renamed[m.value.String()]; ok && m.name == "$ref" {
				members[i].value = datasets.Text(to)
			}
		}
		return members
	}
	for _, key := range []string{"$defs", "definitions"} {
		for name, def := range shape.Member(key).Members() {
			to := strings.TrimPrefix(renamed["#/"+key+"/"+name], "#/$defs/")
			if find(*defs, to) < 0 {
				*defs = append(*defs, member{to, eachSchema(def, point)})
			}
		}
	}
	return eachSchema(shape, func(members []member) []member {
		members = slices.DeleteFunc(members, func(m member) bool { return m.name == "$defs" || m.name == "definitions" })
		return point(members)
	})
}
