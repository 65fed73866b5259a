package pipeline

import (
	"slices"

	"evalrun/datasets"
)

// CallEvent is what a before_call handler is told. Each handler sees the call as
// the changes before it left it. Nested values are copied when they are asked
// for, so changing what a handler was given changes nothing, and a handler that
// asks for nothing costs nothing.
type CallEvent struct {
	Instruction string // as it stands
	Function    string // the program's name
	Program     string // the program's version
	Path        string // call names from the outermost, joined by "/"
	LM          string // the model that would be asked

	shape *shaped
}

// Inputs returns a copy of the call's bound inputs.
func (e *CallEvent) Inputs() datasets.Values { return cloneValues(e.shape.inputs) }

// Settings returns a copy of the sampling settings that are set so far.
func (e *CallEvent) Settings() datasets.Values { return cloneValues(e.shape.settings) }

// Tools returns the names of the tools offered, in the program's order.
func (e *CallEvent) Tools() []string { return slices.Clone(e.shape.tools) }

// AllTools returns the names of the program's own tools.
func (e *CallEvent) AllTools() []string { return slices.Clone(e.shape.program.toolNames()) }

// Sections returns the sections so far, the conversation's first.
func (e *CallEvent) Sections() []string { return slices.Clone(e.shape.sections) }

// RequestEvent is what a request handler is told: a copy of the request about to
// be sent, which it may change and return.
type RequestEvent struct {
	Request  *Request
	Function string
	Path     string
}
