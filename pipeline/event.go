package pipeline

import (
	"context"
	"slices"

	"evalrun/datasets"
)

// TurnStartEvent is what a turn_start handler is told: a conversation's turn is
// about to be recorded. Entries are not to be had yet.
type TurnStartEvent struct {
	Conversation string // its id
	Parent       string // the turn it continues; "" for none
	Program      string // the program's name

	inputs datasets.Values // as given, not yet bound
}

// Inputs returns a copy of the turn's inputs as they were given.
func (e *TurnStartEvent) Inputs() datasets.Values { return cloneValues(e.inputs) }

// ShownTurn is one turn that is about to be shown.
type ShownTurn struct {
	ID      string
	Inputs  datasets.Values
	Outputs datasets.Values
	Without []string // fields left out when it is shown
}

// ContextEvent is what a context handler is told: a turn's earlier turns are
// being chosen.
type ContextEvent struct {
	Conversation string
	Parent       string
	Program      string

	notes
	turns    []ShownTurn
	sections []string
	done     []*turn // of the branch
}

// Branch returns the ids of the branch's done turns, in order, shown or not: what
// keep may name.
func (e *ContextEvent) Branch() []string {
	ids := make([]string, len(e.done))
	for i, t := range e.done {
		ids[i] = t.id()
	}
	return ids
}

// Turns returns copies of the turns shown so far, in branch order.
func (e *ContextEvent) Turns() []ShownTurn { return cloneTurns(e.turns) }

// Sections returns the sections so far.
func (e *ContextEvent) Sections() []string { return slices.Clone(e.sections) }

// CallEvent is what a before_call handler is told. Each handler sees the call as
// the changes before it left it. Nested values are copied when they are asked
// for, so changing what a handler was given changes nothing, and a handler that
// asks for nothing costs nothing.
type CallEvent struct {
	Instruction  string // as it stands
	Function     string // the program's name
	Program      string // the program's version
	Path         string // call names from the outermost, joined by "/"
	LM           string // the model that would be asked
	Conversation string // "" outside a conversation
	Turn         string

	notes
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

// ToolCallEvent is what a tool_call handler is told: a tool is about to run.
type ToolCallEvent struct {
	ID         string         // the model's id of the call
	Name       string         // the tool's
	Input      datasets.Value // as it stands
	Effects    Effects        // "" is undeclared, which may change anything
	Path       string         // call names from the outermost, then the tool, joined by "/"
	Function   string         // the asking program's name
	Invocation int            // running number of the tool call inside the asking call, from 0

	plugin string
	asker  asker
}

// asker asks a person on behalf of a plugin.
type asker interface {
	ask(ctx context.Context, e *ToolCallEvent, reason string, decide Decide) (Answer, error)
}

// Decide answers for a person: whether the tool may run, and if not why.
type Decide func(ctx context.Context, e *ToolCallEvent) (Answer, error)

// Answer is a person's answer about a tool call.
type Answer struct {
	Allowed bool
	Reason  string // of a no; "" for none
	By      string // who said so; "" when a function decided
}

// Ask asks a person whether the tool may run, saying why it is asked. Who answers:
// the answer recorded when a turn is resumed; else decide, when it is not nil; in
// a conversation's turn, a person later: the turn waits, and the error says so. In
// a plain call there is nobody, and the error is approval-required. An answer of
// no is told to the model; the handler has nothing more to do about it.
func (e *ToolCallEvent) Ask(ctx context.Context, reason string, decide Decide) (Answer, error) {
	return e.asker.ask(ctx, e, reason, decide)
}

// ToolResultEvent is what a tool_result handler is told: a tool just ran.
type ToolResultEvent struct {
	Name       string
	Input      datasets.Value // what it ran with
	Output     string         // its result as it stands
	Path       string
	Function   string
	Invocation int
}

// TurnEndEvent is what a turn_end handler is told: a turn ended, and its end is
// about to be recorded.
type TurnEndEvent struct {
	Turn         string
	State        TurnState // done, failed or stopped
	Conversation string
	Parent       string

	notes
	inputs, outputs datasets.Values
	turns           []ShownTurn // the branch's done turns, this one last when it is done
}

// Inputs returns a copy of the turn's inputs.
func (e *TurnEndEvent) Inputs() datasets.Values { return cloneValues(e.inputs) }

// Outputs returns a copy of the turn's outputs; nil when it has none.
func (e *TurnEndEvent) Outputs() datasets.Values { return cloneValues(e.outputs) }

// Turns returns copies of the branch's done turns, this one last when it is done.
func (e *TurnEndEvent) Turns() []ShownTurn { return cloneTurns(e.turns) }

func cloneTurns(turns []ShownTurn) []ShownTurn {
	c := slices.Clone(turns)
	for i := range c {
		c[i].Inputs, c[i].Outputs = cloneValues(c[i].Inputs), cloneValues(c[i].Outputs)
		c[i].Without = slices.Clone(c[i].Without)
	}
	return c
}
