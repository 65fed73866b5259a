// Package tools runs programs' tools: Go functions, other programs, commands and
// HTTP services.
//
// A program declares its tools (name, description, parameters, effects); what is
// here says what happens when its model calls one. Steps of use:
//
//	box := tools.Map{
//		"room_status": pipeline.ToolFunc(roomStatus),         // a Go function
//		"ask_lawyer":  tools.Program(lawyer),                 // an AI function
//		"search":      tools.Command{Argv: []string{"./search"}},
//		"weather":     tools.HTTP{URL: "https://weather.example/now"},
//	}
//	caller := &pipeline.Caller{Tools: box, …}
//
// A command and a service are given the tool's input as JSON, and answer with
// JSON or with text: a JSON string is told to the model as the text it is, and
// anything else as it was written. They have a time limit and a bound on what
// they write, and an answer that came to nothing is an error the model is told.
// Nothing of an input is ever expanded, run, or made part of a command line or an
// address.
package tools

import (
	"context"
	"fmt"
	"strings"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// What a tool may take and write where it does not say.
const (
	DefaultTimeout = 30 * time.Second
	DefaultLimit   = 1 << 20 // bytes
)

// Map is a toolbox of tools by name.
type Map map[string]pipeline.ToolRunner

// Tool finds a tool.
func (m Map) Tool(name string) (pipeline.ToolRunner, bool) {
	t, ok := m[name]
	return t, ok && t != nil
}

// ProgramTool is an AI function as a tool.
type ProgramTool struct{ program *pipeline.Program }

// Program makes an AI function a tool. It is asked by the Caller of the program
// that calls it, with its plugins; its failure is the tool's error. What it is
// declared as is [pipeline.Program.AsTool].
func Program(p *pipeline.Program) ProgramTool { return ProgramTool{p} }

// Effects are those of the program's own tools.
func (t ProgramTool) Effects() pipeline.Effects { return t.program.AsTool().Effects }

// OnlyAsks is true: it asks its program and does nothing else.
func (t ProgramTool) OnlyAsks() bool { return true }

// Run asks the program.
func (t ProgramTool) Run(ctx context.Context, in pipeline.Invocation, input datasets.Value) (string, error) {
	inputs := datasets.ValuesOf(input)
	if inputs == nil {
		return "", pipeline.Failf(pipeline.TypeInterface, "interface-input", "the input must be an object of %s's inputs, not %s", t.program.Name(), input.Kind())
	}
	call, err := in.Ask(ctx, t.program, pipeline.Ask{Inputs: inputs})
	if err != nil {
		return "", err
	}
	return call.ToolResult()
}

// said is what a tool wrote, as the model is told it.
func said(b []byte) string {
	if v, err := datasets.ParseValue(b); err == nil {
		if s, ok := v.AsText(); ok {
			return s
		}
	}
	return strings.TrimRight(string(b), "\r\n")
}

// limits are a tool's time and size, or the defaults.
func limits(timeout time.Duration, limit int) (time.Duration, int) {
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	if limit == 0 {
		limit = DefaultLimit
	}
	return timeout, limit
}

// within is ctx with a tool's time limit.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, tooSlow(limit))
}

func tooSlow(limit time.Duration) *pipeline.Failure {
	return pipeline.Failf(pipeline.TypeTimeout, "", "the tool gave no answer within %s", limit)
}

func failed(format string, args ...any) *pipeline.Failure {
	return pipeline.Failf(pipeline.TypeTool, "", "%s", fmt.Sprintf(format, args...))
}
