package plugins_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// script is a model that is told what to answer, and keeps what it was sent.
type script struct {
	mu     sync.Mutex
	sent   []*pipeline.Request
	answer func(r *pipeline.Request) *pipeline.Reply
}

func (m *script) Generate(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent = append(m.sent, r)
	return m.answer(r), nil
}

// says answers always the same.
func says(text string) *script {
	return &script{answer: func(*pipeline.Request) *pipeline.Reply { return answers(text) }}
}

func answers(text string) *pipeline.Reply {
	return &pipeline.Reply{Text: "<result>\n" + text + "\n</result>", Finish: "stop"}
}

// callsOnce calls the tools when it is asked, and answers "done" when it is told
// their results.
func callsOnce(calls ...pipeline.ToolCall) *script {
	return &script{answer: func(r *pipeline.Request) *pipeline.Reply {
		if r.Messages[len(r.Messages)-1].Role == "tool" {
			return answers("done")
		}
		return &pipeline.Reply{Calls: slices.Clone(calls), Finish: "tool_calls"}
	}}
}

// told are the results that the model was told last.
func (m *script) told() []string {
	var list []string
	last := m.sent[len(m.sent)-1]
	for _, p := range last.Messages[len(last.Messages)-1].Parts {
		_, text, _ := p.ToolResult()
		list = append(list, text)
	}
	return list
}

func toolCall(name, input string) pipeline.ToolCall {
	return pipeline.ToolCall{ID: "c-" + name, Name: name, Input: datasets.RawValue(input)}
}

// toolbox runs every tool of the tests: it keeps what it was given and returns
// what the test says.
type toolbox struct {
	ran    []string // name and input
	output string
}

func (b *toolbox) Tool(name string) (pipeline.ToolRunner, bool) {
	return pipeline.ToolFunc(func(_ context.Context, _ pipeline.Invocation, input datasets.Value) (string, error) {
		b.ran = append(b.ran, name+" "+input.JSON())
		return b.output, nil
	}), true
}

func scriptCaller(m pipeline.Model) *pipeline.Caller {
	n := 0
	var mu sync.Mutex
	return &pipeline.Caller{
		LM:    pipeline.LM{Name: "probe", Model: m},
		Tools: &toolbox{output: "ok"},
		Now:   func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		NewID: func() string {
			mu.Lock()
			defer mu.Unlock()
			n++
			return fmt.Sprintf("id%03d", n)
		},
	}
}

const assistantYAML = `
name: assistant
description: Help.
inputs:
  - {name: message, shape: {type: string}}
  - {name: photo, shape: {type: string, default: ""}, optional: true}
outputs:
  - {name: result, shape: {type: string}}
tools:
  - {name: send_email, description: Send., effects: changes, parameters: {type: object}}
  - {name: search, description: Search., effects: reads, parameters: {type: object}}
  - {name: file, description: File., parameters: {type: object}}
`

func parseYAML(t testing.TB, yaml string) *pipeline.Program {
	t.Helper()
	p, err := pipeline.ParseProgram("program.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func plainProgram(t testing.TB) *pipeline.Program {
	return parseYAML(t, `
name: assistant
description: Help.
inputs:
  - {name: message, shape: {type: string}}
  - {name: photo, shape: {type: string, default: ""}, optional: true}
outputs:
  - {name: result, shape: {type: string}}
`)
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func message(text string) datasets.Values { return datasets.Values{"message": datasets.Text(text)} }

// askWith asks the assistant plainly with plugins around the call.
func askWith(t testing.TB, c *pipeline.Caller, p *pipeline.Program, text string, plugins ...*pipeline.Plugin) *pipeline.Call {
	t.Helper()
	c.Process = pipeline.Layer{Plugins: plugins}
	return must(c.Ask(t.Context(), p, pipeline.Ask{Inputs: message(text)}))(t)
}

// changesOf prints a call's changes, one a line.
func changesOf(call *pipeline.Call) []string {
	var list []string
	for _, c := range call.Changes {
		list = append(list, fmt.Sprintf("%s %s %s %s", c.Plugin, c.Version, c.Hook, c.Change.JSON()))
	}
	return list
}

func converse(t testing.TB, c *pipeline.Caller, p *pipeline.Program, o pipeline.ConversationOptions) *pipeline.Conversation {
	t.Helper()
	return must(c.Converse(p, "alex", pipeline.NewMemoryStore(), o))(t)
}

func send(t testing.TB, c *pipeline.Conversation, text string, o pipeline.SendOptions) *pipeline.Turn {
	t.Helper()
	turn := must(c.Send(t.Context(), message(text), o))(t)
	if turn.State == pipeline.TurnFailed {
		t.Fatalf("the turn failed: %v", turn.Failure)
	}
	return turn
}

func equalLists(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}
