package outside

import (
	"context"
	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/plugins"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func allow(asked *[]string) pipeline.Decide {
	return func(_ context.Context, e *pipeline.ToolCallEvent) (pipeline.Answer, error) {
		*asked = append(*asked, e.Name)
		return pipeline.Answer{Allowed: true}, nil
	}
}

func refuse(asked *[]string) pipeline.Decide {
	return func(_ context.Context, e *pipeline.ToolCallEvent) (pipeline.Answer, error) {
		*asked = append(*asked, e.Name)
		return pipeline.Answer{Reason: "not today"}, nil
	}
}

func allTools() *script {
	return callsOnce(toolCall("send_email", `{"to":"a"}`), toolCall("search", `{"q":"b"}`), toolCall("file", `{}`))
}

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

// messages prints rows by their messages: "a b".
func messages(rows []datasets.Values) string {
	var list []string
	for _, row := range rows {
		list = append(list, row["message"].String())
	}
	return strings.Join(list, " ")
}

// folds is a Summarize that says what it was given.
func folds(_ context.Context, earlier string, rows []datasets.Values) (string, error) {
	return "<" + strings.TrimSpace(earlier+" "+messages(rows)) + ">", nil
}

// shownIn is what the model was shown in the last request: the user messages
// before the last, and the section of the summary.
func (m *script) shownIn(t testing.TB) (turns, section string) {
	t.Helper()
	req := m.sent[len(m.sent)-1]
	var list []string
	for _, msg := range req.Messages[:len(req.Messages)-1] {
		if msg.Role == "user" {
			_, text, _ := strings.Cut(msg.Parts[0].Text, "<message>\n")
			text, _, _ = strings.Cut(text, "\n")
			list = append(list, text)
		}
	}
	if i := strings.Index(req.System, "Earlier in this conversation"); i >= 0 {
		section, _, _ = strings.Cut(req.System[i:], "\n\n")
	}
	return strings.Join(list, " "), section
}

const outerYAML = `
name: outer
description: Help.
inputs:
  - {name: message, shape: {type: string}}
outputs:
  - {name: result, shape: {type: string}}
tools:
  - {name: research, description: Look things up., parameters: {type: object}}
`

const researchYAML = `
name: research
description: Look things up.
inputs:
  - {name: question, shape: {type: string}}
outputs:
  - {name: result, shape: {type: string}}
`

// delegating is a host whose outer program asks research once a turn, about the
// turn's message; research answers with the questions that it was shown.
func delegating(t *testing.T, o plugins.DelegateOptions) (*pipeline.Caller, *script) {
	t.Helper()
	m := &script{answer: func(r *pipeline.Request) *pipeline.Reply {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == "tool" {
			_, text, _ := last.Parts[0].ToolResult()
			return answers(strings.ReplaceAll(text, "<result>", "(mark)"))
		}
		text := last.Parts[0].Text
		if _, question, ok := strings.Cut(text, "<question>\n"); ok {
			question, _, _ = strings.Cut(question, "\n")
			if question == "fail" {
				return &pipeline.Reply{Text: "no form", Finish: "stop"}
			}
			var seen []string
			for _, msg := range r.Messages {
				if _, q, ok := strings.Cut(msg.Parts[0].Text, "<question>\n"); ok {
					q, _, _ = strings.Cut(q, "\n")
					seen = append(seen, q)
				}
			}
			return answers(strings.Join(seen, " "))
		}
		_, text, _ = strings.Cut(text, "<message>\n")
		text, _, _ = strings.Cut(text, "\n")
		return &pipeline.Reply{Calls: []pipeline.ToolCall{toolCall("research", `{"question":"`+text+`"}`)}, Finish: "tool_calls"}
	}}
	caller := scriptCaller(m)
	o.Caller = caller
	o.Program = parseYAML(t, researchYAML)
	tool := must(plugins.Delegate(o))(t)
	caller.Tools = only{"research": tool}
	return caller, m
}

type only map[string]pipeline.ToolRunner

func (o only) Tool(name string) (pipeline.ToolRunner, bool) { r, ok := o[name]; return r, ok }

// recordsOf are all records of conversations, and what the model was sent.
func recordsOf(t *testing.T, store pipeline.Store, m *script, ids ...string) []string {
	t.Helper()
	var list []string
	for _, id := range ids {
		records := must(store.Read(t.Context(), id, 0))(t)
		if len(records) == 0 {
			t.Errorf("there is no conversation %s", id)
		}
		for _, v := range records {
			list = append(list, v.JSON())
		}
	}
	for _, r := range m.sent {
		list = append(list, r.JSON().JSON())
	}
	return list
}

func TestReplacedApproval(t *testing.T) {
	for name, decide := range map[string]func(*[]string) pipeline.Decide{
		"allowed": allow, "refused": refuse,
		"later": func(*[]string) pipeline.Decide { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			run := func(p *pipeline.Plugin) []string {
				m := allTools()
				caller := scriptCaller(m)
				caller.Approval = p
				store := pipeline.NewMemoryStore()
				chat := must(caller.Converse(parseYAML(t, assistantYAML), "alex", store, pipeline.ConversationOptions{}))(t)
				turn := send(t, chat, "x", pipeline.SendOptions{})
				for turn.State == pipeline.TurnWaiting {
					for _, q := range turn.Waiting {
						if err := chat.Answer(t.Context(), turn.ID, q.Invocation, q.Plugin, pipeline.Answer{Allowed: q.Name == "file", By: "kim"}); err != nil {
							t.Fatal(err)
						}
					}
					turn = must(chat.Resume(t.Context(), turn.ID, pipeline.TurnOptions{}))(t)
				}
				return append(recordsOf(t, store, m, "alex"), caller.Tools.(*toolbox).ran...)
			}
			var asked, askedByOwn []string
			builtin := run(must(plugins.Approval(plugins.AboutChanges(), decide(&asked)))(t))
			own := run(must(ownApproval(decide(&askedByOwn)))(t))
			equalLists(t, "the copy's records", own, builtin)
			equalLists(t, "the copy asked", askedByOwn, asked)
		})
	}
}

func TestReplacedCompaction(t *testing.T) {
	run := func(p *pipeline.Plugin) []string {
		m := says("fine")
		store := pipeline.NewMemoryStore()
		o := pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{p}}
		chat := must(scriptCaller(m).Converse(plainProgram(t), "alex", store, o))(t)
		var third string
		for i := range 12 {
			turn := send(t, chat, string(rune('a'+i)), pipeline.SendOptions{})
			if i == 2 {
				third = turn.ID
			}
		}
		for i := range 6 {
			o := pipeline.SendOptions{}
			if i == 0 {
				o.From = third
			}
			send(t, chat, string(rune('A'+i)), o)
		}
		return recordsOf(t, store, m, "alex")
	}
	builtin := run(must(plugins.Compaction(plugins.CompactionOptions{Keep: new(2), Every: 2, Summarize: folds}))(t))
	if !strings.Contains(strings.Join(builtin, "\n"), `"kind":"entry"`) {
		t.Fatal("nothing was folded")
	}
	equalLists(t, "the copy's records", run(must(ownCompaction())(t)), builtin)
}

func TestReplacedDelegate(t *testing.T) {
	long := strings.Repeat("x", 195)
	for id, inner := range map[string]string{"alex": "alex.research", long: long[:150] + ".9d1490f66c2af21a"} {
		run := func(own bool) []string {
			caller, m := delegating(t, plugins.DelegateOptions{})
			if own {
				caller.Tools = only{"research": ownDelegate{caller, parseYAML(t, researchYAML)}}
			}
			store := pipeline.NewMemoryStore()
			chat := must(caller.Converse(parseYAML(t, outerYAML), id, store, pipeline.ConversationOptions{}))(t)
			one := send(t, chat, "a", pipeline.SendOptions{})
			send(t, chat, "b", pipeline.SendOptions{})
			send(t, chat, "fail", pipeline.SendOptions{})
			send(t, chat, "c", pipeline.SendOptions{From: one.ID})
			plain := askWith(t, caller, parseYAML(t, outerYAML), "p")
			return append(recordsOf(t, store, m, id, inner), plain.Outputs.Object().JSON())
		}
		equalLists(t, "the copy's records", run(true), run(false))
	}
}
