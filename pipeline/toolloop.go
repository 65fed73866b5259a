package pipeline

import (
	"context"
	"slices"
	"strings"

	"evalrun/datasets"
)

// defaultMaxSteps is how many requests a call with tools may make when its
// Caller does not say.
const defaultMaxSteps = 8

// toolLoop asks a model and runs the tools it calls, until it answers.
type toolLoop struct {
	caller  *Caller
	plugins []*Plugin
	shaped  *shaped
	call    *Call
	in      *Ask
	fenced  bool // tools are offered in the text, for the model calls none natively
	step    int  // which request of the loop is answered
	called  int  // how many tool calls there were
}

// log is where a turn keeps what happens; nil in a plain call.
func (t *toolLoop) log() TurnLog {
	if t.in.Turn == nil {
		return nil
	}
	return t.in.Turn.Log
}

// converse sends the request and reads the reply; runs the tools it calls, and
// asks again with their results, until the model answers.
func (c *Caller) converse(ctx context.Context, plugins []*Plugin, s *shaped, call *Call, in *Ask, req *Request) error {
	facts := s.program.capable(c.facts())
	t := &toolLoop{caller: c, plugins: plugins, shaped: s, call: call, in: in, fenced: !facts.ToolCalling}
	most := c.MaxSteps
	if most == 0 {
		most = defaultMaxSteps
	}
	for ; ; t.step++ {
		reply, calls, err := t.request(ctx, &req)
		if err != nil {
			return err
		}
		if len(calls) == 0 {
			if call.Steps != nil || in.Turn != nil {
				call.Steps = append(call.Steps, modelStep(call.Outputs.Object(), nil))
			}
			return nil
		}
		if t.step+1 >= most {
			// Nobody would be told the results.
			return Failf(TypeStepLimit, "", "the model was asked %d times and still calls tools (%s); max_steps is %d", most, calls[0].Name, most)
		}
		runs := make([]*toolRun, len(calls))
		for i := range calls {
			runs[i] = t.newRun(calls[i])
			calls[i] = runs[i].ToolCall
		}
		wants := callsMessage(t.fenced, reply.Text, calls)
		call.Steps = append(call.Steps, modelStep(datasets.Values{"calls": callsValue(calls)}.Object(), &wants))
		results := make([]toolResult, len(runs))
		for i, r := range runs {
			output, made, err := r.run(ctx)
			call.Inside = append(call.Inside, made...)
			if err != nil {
				return err
			}
			results[i] = toolResult{r.ID, r.Name, output}
			call.Steps = append(call.Steps, toolStep(results[i], made))
		}
		req = req.Clone()
		req.Messages = append(req.Messages, wants, resultsMessage(t.fenced, results))
	}
}

// request sends one request and reads the reply, asking again when it could not
// be read. It returns the tool calls of the reply, or puts its outputs into the
// call. What was asked again stays in the request.
func (t *toolLoop) request(ctx context.Context, next **Request) (*Reply, []ToolCall, error) {
	c, call := t.caller, t.call
	retries := c.Retries
	if t.shaped.lm.Deterministic {
		retries = 0
	}
	for try := 0; ; try++ {
		req := *next
		req.Site = call.Site
		req.Site.Step, req.Site.Try = t.step, try
		sent, changes, err := t.caller.replaceRequest(ctx, t.plugins, t.shaped, call.Site.Path, req)
		if err != nil {
			return nil, nil, err
		}
		call.Changes = append(call.Changes, changes...)
		reply, err := c.exchange(ctx, t.shaped.lm, call, sent, len(changes) > 0, t.log())
		if err != nil {
			return nil, nil, err
		}
		calls, err := t.callsOf(reply)
		if err == nil && len(calls) == 0 {
			call.Outputs, err = t.shaped.program.Read(reply.Text, reply.Finish, c.facts())
		}
		if err == nil {
			return reply, calls, nil
		}
		if try >= retries {
			return nil, nil, err
		}
		*next = t.shaped.program.askAgain(req, reply, failureOf(err))
	}
}

// callsOf are the tool calls of a reply. A program without tools has none,
// whatever its model says.
func (t *toolLoop) callsOf(reply *Reply) ([]ToolCall, error) {
	switch {
	case len(t.shaped.program.tools) == 0:
		return nil, nil
	case !t.fenced:
		return slices.Clone(reply.Calls), nil
	case len(t.shaped.tools) == 0:
		return nil, nil // none were offered, so the form means nothing
	}
	return readFenced(reply.Text, reply.Finish)
}

type toolResult struct{ id, name, output string }

// callsMessage is a model's message that called tools, as later requests have it.
// In the fenced form its text holds the calls.
func callsMessage(fenced bool, text string, calls []ToolCall) Message {
	if fenced {
		return TextMessage("assistant", text)
	}
	m := Message{Role: "assistant"}
	if text != "" {
		m.Parts = append(m.Parts, Part{Text: text})
	}
	for _, c := range calls {
		m.Parts = append(m.Parts, c.part())
	}
	return m
}

// resultsMessage is the message that tells results.
func resultsMessage(fenced bool, results []toolResult) Message {
	if fenced {
		return fencedResults(results)
	}
	m := Message{Role: "tool"}
	for _, r := range results {
		m.Parts = append(m.Parts, r.part())
	}
	return m
}

// part is the call in a message of the model: {type: tool_call, id, name, input}.
func (c ToolCall) part() Part {
	return Part{Raw: object([]member{
		{"type", datasets.Text("tool_call")}, {"id", datasets.Text(c.ID)}, {"name", datasets.Text(c.Name)}, {"input", c.Input},
	})}
}

// part is the result in a message of role tool: {type: tool_result, id, text}.
func (r toolResult) part() Part {
	return Part{Raw: object([]member{
		{"type", datasets.Text("tool_result")}, {"id", datasets.Text(r.id)}, {"text", datasets.Text(r.output)},
	})}
}

// ToolCall is the tool call a part is; ok is false for any other part.
func (p Part) ToolCall() (c ToolCall, ok bool) {
	m := datasets.ValuesOf(p.Raw)
	if kind, _ := m["type"].AsText(); kind != "tool_call" {
		return ToolCall{}, false
	}
	c.ID, _ = m["id"].AsText()
	c.Name, ok = m["name"].AsText()
	c.Input = m["input"]
	return c, ok && !c.Input.IsZero()
}

// ToolResult is the tool's result a part is, and the id of the call it answers;
// ok is false for any other part.
func (p Part) ToolResult() (id, text string, ok bool) {
	m := datasets.ValuesOf(p.Raw)
	if kind, _ := m["type"].AsText(); kind != "tool_result" {
		return "", "", false
	}
	id, _ = m["id"].AsText()
	text, ok = m["text"].AsText()
	return id, text, ok
}

// stepMessages are the messages of an earlier turn between what was asked and
// what was answered: its tool calls and their results, from its steps as records
// keep them.
func stepMessages(steps []datasets.Step, fenced bool) []Message {
	var messages []Message
	var results []toolResult
	flush := func() {
		if results != nil {
			messages = append(messages, resultsMessage(fenced, results))
			results = nil
		}
	}
	for _, s := range steps {
		m := datasets.ValuesOf(s)
		if kind, _ := m["kind"].AsText(); kind == "tool" {
			results = append(results, toolResult{m["id"].String(), m["name"].String(), m["output"].String()})
			continue
		}
		calls := StepCalls(s)
		if calls == nil {
			continue // the answer, which is shown by its values
		}
		flush()
		var text []string
		for p := range m["message"].Member("parts").Elements() {
			if s, ok := p.Member("text").AsText(); ok {
				text = append(text, s)
			}
		}
		if fenced && len(text) == 0 {
			for _, c := range calls {
				text = append(text, fencedCall(c))
			}
		}
		messages = append(messages, callsMessage(fenced, strings.Join(text, "\n\n"), calls))
	}
	flush()
	return messages
}

// StepCalls are the tool calls that a step of the model asked for, in order; nil
// for any other step.
func StepCalls(s datasets.Step) []ToolCall {
	field := "calls"
	if name, ok := s.Member("calls_field").AsText(); ok {
		field = name
	}
	var calls []ToolCall
	for c := range s.Member("outputs").Member(field).Elements() {
		c := datasets.ValuesOf(c)
		input := c["input"]
		if input.IsZero() {
			input = datasets.RawValue(`{}`)
		}
		calls = append(calls, ToolCall{c["id"].String(), c["name"].String(), input})
	}
	return calls
}

func callsValue(calls []ToolCall) datasets.Value { return mustValue(calls) }

// modelStep is a step of the model as records keep it: what its reply was read
// as, and with tool calls the message they were in.
func modelStep(outputs datasets.Value, message *Message) datasets.Step {
	m := []member{{"kind", datasets.Text("model")}, {"outputs", outputs}}
	if message != nil {
		m = append(m, member{"message", mustValue(message)})
	}
	return object(m)
}

// toolStep is a tool's step as records keep it, with the ids of the calls it made.
func toolStep(r toolResult, made []*Call) datasets.Step {
	m := []member{
		{"kind", datasets.Text("tool")}, {"id", datasets.Text(r.id)}, {"name", datasets.Text(r.name)}, {"output", datasets.Text(r.output)},
	}
	if len(made) > 0 {
		ids := make([]string, len(made))
		for i, c := range made {
			ids[i] = c.ID
		}
		m = append(m, member{"children", texts(ids)})
	}
	return object(m)
}
