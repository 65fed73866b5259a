package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"evalrun/datasets"
)

// content is what a record holds of a call's values, and which of them are not
// there as data: not written, written as a description of something that has no
// JSON form, or with a number that no float64 can hold.
type content struct {
	answer          string // the name of the answer output
	inputs, outputs members
	inputsLacking   []string
	outputsLacking  []string
	truncated       bool // cut to fit: what is left is not to be relied on
	unsaid          bool // values were left out, and the record does not say which
}

func readContent(r *Record) *content {
	c := &content{
		answer:    strings.Clone(cmp.Or(r.Program.Answer, "result")),
		inputs:    readMembers(r.Inputs),
		outputs:   readMembers(r.Outputs),
		truncated: isSet(r.Truncated),
	}
	if !r.Whole() {
		// In format 1 content is all or nothing; in format 2 omitted names what
		// is missing.
		if r.Format == 1 || r.Omitted.Kind() != '{' {
			c.unsaid = true
		} else {
			c.lack(r.Omitted)
		}
	}
	if isSet(r.Described) {
		if r.Described.Kind() != '{' {
			c.unsaid = true
		}
		c.lack(r.Described)
	}
	c.inputsLacking = append(c.inputsLacking, c.inputs.noData()...)
	c.outputsLacking = append(c.outputsLacking, c.outputs.noData()...)
	// A size is written for every field, so a field with a size and no value was
	// not written, whatever the record says of its content.
	if r.Sizes.Kind() == '{' {
		c.inputsLacking = append(c.inputsLacking, unwritten(r.Sizes.Member("inputs"), c.inputs)...)
		c.outputsLacking = append(c.outputsLacking, unwritten(r.Sizes.Member("outputs"), c.outputs)...)
	}
	return c
}

// isSet reports whether a flag or description is there and says something.
func isSet(v datasets.Value) bool { return !v.IsZero() && !v.IsNull() && v.JSON() != "false" }

// lack notes the fields that an object {"inputs": […], "outputs": […]} names.
func (c *content) lack(names datasets.Value) {
	c.inputsLacking = append(c.inputsLacking, c.namesIn(names, "inputs")...)
	c.outputsLacking = append(c.outputsLacking, c.namesIn(names, "outputs")...)
}

func (c *content) namesIn(object datasets.Value, member string) []string {
	var names []string
	switch list := object.Member(member); list.Kind() {
	case 0, 'n':
	case '[':
		if !setTexts(&names, cloneValue(list).JSON()) {
			c.unsaid = true
		}
	default:
		c.unsaid = true
	}
	return names
}

// noData names the members that are not data.
func (m members) noData() []string {
	var names []string
	for _, name := range m.names {
		if !isData(m.values[name]) {
			names = append(names, name)
		}
	}
	return names
}

func unwritten(sizes datasets.Value, values members) []string {
	var names []string
	for name := range sizes.Members() {
		if _, ok := values.values[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}

// lacking says in words why the inputs are not all there as data; "" when they are.
func (c *content) lacking() string {
	switch {
	case c.truncated:
		return "its record was cut to fit"
	case c.unsaid:
		return "values were left out of its record"
	case len(c.inputsLacking) > 0:
		return fmt.Sprintf("not in its record as data: %s", strings.Join(c.inputsLacking, ", "))
	}
	return ""
}

// recorded is the answer as it was given, with the other outputs that are data;
// nil when the answer is not there, or is none.
func (c *content) recorded() datasets.Values {
	if _, ok := c.outputs.values[c.answer]; !ok || c.truncated || slices.Contains(c.outputsLacking, c.answer) {
		return nil
	}
	return c.outputs.without(c.outputsLacking).values
}

// metaOf are the facts of a rated call to slice by.
func metaOf(r *Record, row *datasets.Row) datasets.Values {
	meta := datasets.Values{"purpose": datasets.Text("use")}
	text := func(name, s string) {
		if s != "" {
			meta[name] = datasets.Text(s)
		}
	}
	text("version", r.Program.Version)
	text("module", r.Program.Module)
	text("file", r.Program.File)
	text("model", r.Model)
	text("started", r.StartedText())
	if r.Seconds != nil {
		meta["seconds"] = datasets.Float(*r.Seconds)
	}
	if r.Usage.Kind() == '{' && isData(r.Usage) {
		meta["usage"] = cloneValue(r.Usage)
	}
	if r.Error != nil {
		text("error", cmp.Or(r.Error.Type, "Error"))
		text("error_code", r.Error.Code)
	}
	if r.Caller != nil {
		text("user", r.Caller.User)
		switch {
		case r.Caller.Optimization != "":
			text("purpose", "optimization")
		case r.Caller.Evaluation != "":
			text("purpose", "evaluation")
		}
	}
	text("conversation", row.Context.Conversation)
	text("rating", row.Verdict.Verdict)
	text("rated_by", row.Verdict.By)
	text("origin", row.Verdict.Origin)
	text("sample", row.Verdict.Sample)
	meta["disputed"] = datasets.Bool(row.Verdict.Disputed)
	if len(r.Changes) > 0 {
		w := writer{[]byte{'['}}
		for i := range r.Changes {
			w.comma()
			w.change(&r.Changes[i])
		}
		if changes := datasets.RawValue(string(append(w.b, ']'))); isData(changes) {
			meta["changes"] = changes
		}
	}
	if r.Replayable != nil {
		meta["replayable"] = datasets.Bool(*r.Replayable)
	}
	return meta
}

// cloneValue keeps a value without the text it was cut from, which may be a
// whole record.
func cloneValue(v datasets.Value) datasets.Value { return datasets.RawValue(strings.Clone(v.JSON())) }
