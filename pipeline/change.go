package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"evalrun/datasets"
)

// Change is what a handler asks for. A field that is nil is not asked for; a set
// but empty list means something. Each hook takes some of the fields; one it
// does not take refuses plugin-change.
//
//	turn_start   Inputs
//	context      Keep, Without, Sections
//	before_call  Instruction, Sections, LM, Settings, Tools
//	tool_call    Inputs, Block
//	tool_result  Output
//	request      none: its handler returns a whole request
type Change struct {
	Instruction *string         `json:"instruction,omitzero"` // replaces the instruction; not blank
	Sections    []string        `json:"sections,omitzero"`    // appended to the instruction; blank ones are dropped
	LM          *string         `json:"lm,omitzero"`          // the model to ask instead, by name
	Settings    datasets.Values `json:"settings,omitzero"`    // sampling settings, merged by name
	Tools       []string        `json:"tools,omitzero"`       // the tools to offer, of the program's own
	Keep        []string        `json:"keep,omitzero"`        // the turns to show
	Without     datasets.Value  `json:"without,omitzero"`     // fields to leave out of shown turns
	Inputs      datasets.Values `json:"inputs,omitzero"`      // replaced by name
	Block       *string         `json:"block,omitzero"`       // the tool is not run, for this reason
	Output      *string         `json:"output,omitzero"`      // replaces the tool's result
}

// fields names the fields that are set, in the order above.
func (c *Change) fields() []string {
	var set []string
	add := func(name string, is bool) {
		if is {
			set = append(set, name)
		}
	}
	add("instruction", c.Instruction != nil)
	add("sections", c.Sections != nil)
	add("lm", c.LM != nil)
	add("settings", c.Settings != nil)
	add("tools", c.Tools != nil)
	add("keep", c.Keep != nil)
	add("without", !c.Without.IsZero())
	add("inputs", c.Inputs != nil)
	add("block", c.Block != nil)
	add("output", c.Output != nil)
	return set
}

// taken are the fields each hook's handlers may set.
var taken = map[Hook][]string{
	HookTurnStart:  {"inputs"},
	HookContext:    {"keep", "without", "sections"},
	HookBeforeCall: {"instruction", "sections", "lm", "settings", "tools"},
	HookToolCall:   {"inputs", "block"},
	HookToolResult: {"output"},
}

// check refuses fields the hook does not take, naming them, and values that are
// none.
func (c *Change) check(p *Plugin, hook Hook) *Failure {
	var wrong []string
	for _, name := range c.fields() {
		if !slices.Contains(taken[hook], name) {
			wrong = append(wrong, name)
		}
	}
	var f *Failure
	if wrong != nil {
		f = p.failf("plugin-change", "%s does not take %s; it takes %s", hook, strings.Join(wrong, ", "), strings.Join(taken[hook], ", "))
	} else {
		f = cmp.Or(p.checkValues("the setting", c.Settings), p.checkValues("the input", c.Inputs))
	}
	if f == nil && !c.Without.IsZero() {
		f = p.checkValue("without", c.Without)
	}
	if f != nil {
		f.Hook = hook
	}
	return f
}

// checkValues refuses values that a change or a request gives by name and that
// are no JSON.
func (p *Plugin) checkValues(what string, vs datasets.Values) *Failure {
	for _, name := range vs.Names() {
		if f := p.checkValue(fmt.Sprintf("%s %q", what, name), vs[name]); f != nil {
			return f
		}
	}
	return nil
}

func (p *Plugin) checkValue(what string, v datasets.Value) *Failure {
	if v.IsZero() {
		return p.failf("plugin-change", "%s has no value", what)
	}
	if _, err := datasets.ParseValue(v.JSON()); err != nil {
		return p.failf("plugin-change", "%s: %v", what, err)
	}
	return nil
}

// Applied is one change that was made to a call, as records keep it.
type Applied struct {
	Plugin  string
	Version string
	Hook    Hook
	Change  datasets.Value // the set fields as a JSON object; {"request":"replaced"} for a replaced request
}

func (p *Plugin) applied(hook Hook, change datasets.Value) Applied {
	return Applied{p.name, p.version, hook, change}
}

// object is the change as data: its set fields.
func (c *Change) object() datasets.Value {
	b, err := marshal(c)
	if err != nil { // every field is text or a value that was JSON already
		panic("pipeline: a change has no JSON form: " + err.Error())
	}
	return datasets.RawValue(string(b))
}

var replaced = datasets.RawValue(`{"request":"replaced"}`)
