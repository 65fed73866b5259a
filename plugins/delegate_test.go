package plugins_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/plugins"
)

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

func result(turn *pipeline.Turn) string { return turn.Outputs["result"].String() }

// A delegate follows the branch of the turn that asks: it was shown, and shows,
// what it answered on that branch.
func TestDelegate(t *testing.T) {
	caller, _ := delegating(t, plugins.DelegateOptions{})
	store := pipeline.NewMemoryStore()
	chat := must(caller.Converse(parseYAML(t, outerYAML), "alex", store, pipeline.ConversationOptions{}))(t)
	one := send(t, chat, "a", pipeline.SendOptions{})
	two := send(t, chat, "b", pipeline.SendOptions{})
	branch := send(t, chat, "c", pipeline.SendOptions{From: one.ID})
	anew := send(t, chat, "d", pipeline.SendOptions{Anew: true})
	back := send(t, chat, "e", pipeline.SendOptions{From: two.ID})
	for _, c := range []struct {
		turn *pipeline.Turn
		want string
	}{{one, "a"}, {two, "a b"}, {branch, "a c"}, {anew, "d"}, {back, "a b e"}} {
		if got := result(c.turn); got != c.want {
			t.Errorf("turn %s was answered %q, want %q", c.turn.ID, got, c.want)
		}
	}
	inner := must(caller.Converse(parseYAML(t, researchYAML), "alex.research", store, pipeline.ConversationOptions{}))(t)
	turns := must(inner.Turns(t.Context()))(t)
	if len(turns) != 5 {
		t.Fatalf("the delegate's conversation has %d turns, want 5", len(turns))
	}
	places := must(chat.Entries(t.Context(), two.ID, "delegate", "research"))(t)
	var kept []string
	for _, e := range places {
		kept = append(kept, e.Turn+" "+e.Data.JSON())
	}
	equalLists(t, "entries", kept, []string{
		one.ID + ` {"turn":"` + turns[0].ID + `"}`, two.ID + ` {"turn":"` + turns[1].ID + `"}`,
	})
}

// Outside a turn, and when it is to forget, a delegate is asked plainly.
func TestDelegatePlainly(t *testing.T) {
	caller, _ := delegating(t, plugins.DelegateOptions{})
	call := askWith(t, caller, parseYAML(t, outerYAML), "a")
	if call.Failure != nil || call.Outputs["result"].String() != "a" || len(call.Inside) != 1 {
		t.Errorf("a plain call: %v, %s, %d calls inside", call.Failure, call.Outputs.Object().JSON(), len(call.Inside))
	}
	caller, _ = delegating(t, plugins.DelegateOptions{Forget: true})
	chat := converse(t, caller, parseYAML(t, outerYAML), pipeline.ConversationOptions{})
	send(t, chat, "a", pipeline.SendOptions{})
	two := send(t, chat, "b", pipeline.SendOptions{})
	if got := result(two); got != "b" {
		t.Errorf("a delegate that forgets answered %q, want b", got)
	}
	if e := must(chat.Entries(t.Context(), "", "delegate", "research"))(t); e != nil {
		t.Errorf("it kept %v", e)
	}
}

// A turn that failed is told to the model and is no place to go on from.
func TestDelegateFails(t *testing.T) {
	caller, _ := delegating(t, plugins.DelegateOptions{})
	chat := converse(t, caller, parseYAML(t, outerYAML), pipeline.ConversationOptions{})
	send(t, chat, "a", pipeline.SendOptions{})
	failed := send(t, chat, "fail", pipeline.SendOptions{})
	if got := result(failed); !strings.HasPrefix(got, "error: ReplyError: ") {
		t.Errorf("the model was told %q", got)
	}
	if got := result(send(t, chat, "b", pipeline.SendOptions{})); got != "a b" {
		t.Errorf("after it, the delegate answered %q, want %q", got, "a b")
	}
}

// Delegates that ask each other in a circle come to an end.
func TestDelegateCircle(t *testing.T) {
	m := &script{answer: func(r *pipeline.Request) *pipeline.Reply {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == "tool" {
			_, text, _ := last.Parts[0].ToolResult()
			return answers(text)
		}
		return &pipeline.Reply{Calls: []pipeline.ToolCall{toolCall("research", `{"message":"x"}`)}, Finish: "tool_calls"}
	}}
	caller := scriptCaller(m)
	p := parseYAML(t, outerYAML)
	caller.Tools = only{"research": must(plugins.Delegate(plugins.DelegateOptions{Program: p, Caller: caller, Name: "research"}))(t)}
	turn := send(t, converse(t, caller, p, pipeline.ConversationOptions{}), "x", pipeline.SendOptions{})
	if got := result(turn); !strings.HasPrefix(got, "error: ToolError: calls lie 16 deep") {
		t.Errorf("the model was told %q", got)
	}
}

// A conversation's plugins are around a delegate's turns too.
func TestDelegateInsidePlugins(t *testing.T) {
	caller, m := delegating(t, plugins.DelegateOptions{})
	p := must(plugins.Modes(map[string]string{"careful": "Cite the file you read."}, "careful"))(t)
	chat := converse(t, caller, parseYAML(t, outerYAML), pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{p}})
	send(t, chat, "a", pipeline.SendOptions{})
	if i := slices.IndexFunc(m.sent, func(r *pipeline.Request) bool { return !strings.Contains(r.System, "Cite the file") }); i >= 0 {
		t.Errorf("request %d lacks the section: %s", i, m.sent[i].System)
	}
}

// A delegate's turn is a call inside the tool's.
func TestDelegateCallInside(t *testing.T) {
	caller, _ := delegating(t, plugins.DelegateOptions{})
	turn := send(t, converse(t, caller, parseYAML(t, outerYAML), pipeline.ConversationOptions{}), "a", pipeline.SendOptions{})
	made := turn.Record.Inside
	if len(made) != 1 || made[0].Program.Name() != "research" || made[0].Parent != turn.Call || made[0].Root != turn.Call || made[0].Site.Inside != "0.0" {
		t.Fatalf("inside the call are %+v", made)
	}
	if got, want := turn.Record.Steps[1].Member("children").JSON(), `["`+made[0].ID+`"]`; got != want {
		t.Errorf("the tool's step has the children %s, want %s", got, want)
	}
}

// dying is a store whose process dies when it has written so many records.
type dying struct {
	pipeline.Store
	left int
}

var errDead = errors.New("the process is dead")

func (s *dying) Append(ctx context.Context, id string, n int, r datasets.Value) error {
	if s.left == 0 {
		return errDead
	}
	s.left--
	return s.Store.Append(ctx, id, n, r)
}

// Whichever record a process died at, the outer turn is resumed without asking
// the delegate again what it has answered, and each of its turns is there once.
func TestDelegateResumed(t *testing.T) {
	died := 0
	for ended := false; !ended; died++ {
		synctest.Test(t, func(t *testing.T) {
			store := pipeline.NewMemoryStore()
			caller, m := delegating(t, plugins.DelegateOptions{})
			caller.Now = time.Now
			outer, research := parseYAML(t, outerYAML), parseYAML(t, researchYAML)
			chat := must(caller.Converse(outer, "alex", &dying{store, died}, pipeline.ConversationOptions{}))(t)
			_, err := chat.Send(t.Context(), message("a"), pipeline.SendOptions{RequestID: "r"})
			if ended = err == nil; !ended && !errors.Is(err, errDead) {
				t.Fatalf("died at %d: %v", died, err)
			}
			kept := 0
			for _, id := range []string{"alex", "alex.research"} {
				for _, r := range must(store.Read(t.Context(), id, 0))(t) {
					if kind, _ := r.Member("kind").AsText(); kind == "reply" {
						kept++
					}
				}
			}
			asked := len(m.sent)
			time.Sleep(time.Minute)

			chat = must(caller.Converse(outer, "alex", store, pipeline.ConversationOptions{}))(t)
			turn := must(chat.Send(t.Context(), message("a"), pipeline.SendOptions{RequestID: "r"}))(t)
			if turn.State == pipeline.TurnInterrupted {
				turn = must(chat.Resume(t.Context(), turn.ID, pipeline.TurnOptions{}))(t)
			}
			if turn.State != pipeline.TurnDone || result(turn) != "a" {
				t.Fatalf("died at %d: the turn is %s, %v, answered %q", died, turn.State, turn.Failure, result(turn))
			}
			// Three requests answer the turn; those whose replies were kept are not sent again.
			if again := len(m.sent) - asked; again != 3-kept {
				t.Errorf("died at %d: %d requests were sent after it, want %d", died, again, 3-kept)
			}
			inner := must(caller.Converse(research, "alex.research", store, pipeline.ConversationOptions{}))(t)
			turns := must(inner.Turns(t.Context()))(t)
			places := must(chat.Entries(t.Context(), "", "delegate", "research"))(t)
			if len(turns) != 1 || turns[0].State != pipeline.TurnDone || len(places) != 1 {
				t.Errorf("died at %d: the delegate has %d turns and %d places, want one of each", died, len(turns), len(places))
			}
		})
	}
	if died < 12 { // both conversations begin, are leased, asked, ended: else nothing was tried
		t.Errorf("the turn was answered in %d records: fewer than two conversations need", died-1)
	}
}

// A delegate whose own turn waits for a person holds up the asking turn, which goes
// on once the person has answered: nobody is asked twice.
func TestDelegateWaits(t *testing.T) {
	for _, effects := range []pipeline.Effects{"", pipeline.EffectsRead, pipeline.EffectsChange} {
		t.Run(string(effects), func(t *testing.T) {
			caller, m := delegating(t, plugins.DelegateOptions{Effects: effects})
			answer, looked := m.answer, false
			m.answer = func(r *pipeline.Request) *pipeline.Reply {
				if len(r.Tools) > 0 && r.Tools[0].Name == "look" && !looked {
					looked = true
					return &pipeline.Reply{Calls: []pipeline.ToolCall{toolCall("look", `{}`)}, Finish: "tool_calls"}
				}
				return answer(r)
			}
			research := parseYAML(t, researchYAML+"tools:\n  - {name: look, description: Look., parameters: {type: object}}\n")
			tool := must(plugins.Delegate(plugins.DelegateOptions{Caller: caller, Program: research, Effects: effects}))(t)
			ran := 0
			caller.Tools = only{"research": tool, "look": pipeline.ToolFunc(func(context.Context, pipeline.Invocation, datasets.Value) (string, error) {
				ran++
				return "seen", nil
			})}
			caller.Approval = must(plugins.Approval(plugins.AboutTools("look"), nil))(t)
			store := pipeline.NewMemoryStore()
			chat := must(caller.Converse(parseYAML(t, outerYAML), "alex", store, pipeline.ConversationOptions{}))(t)
			turn, err := chat.Send(t.Context(), message("a"), pipeline.SendOptions{})
			if err != nil || turn.State != pipeline.TurnInterrupted || turn.Failure == nil || turn.Failure.Code != "turn-waiting" || ran != 0 {
				t.Fatalf("the asking turn is %+v, %v; the tool ran %d times", turn, err, ran)
			}
			inner := must(caller.Converse(research, "alex.research", store, pipeline.ConversationOptions{}))(t)
			waiting := must(inner.Turns(t.Context()))(t)
			if len(waiting) != 1 || waiting[0].State != pipeline.TurnWaiting {
				t.Fatalf("%+v", waiting)
			}
			if err := inner.Answer(t.Context(), waiting[0].ID, 0, "approval", pipeline.Answer{Allowed: true, By: "ada"}); err != nil {
				t.Fatal(err)
			}
			asked := len(m.sent)
			turn = must(chat.Resume(t.Context(), turn.ID, pipeline.TurnOptions{}))(t)
			if turn.State != pipeline.TurnDone || ran != 1 || len(must(inner.Turns(t.Context()))(t)) != 1 {
				t.Errorf("resumed, the turn is %s, %v; the tool ran %d times", turn.State, turn.Failure, ran)
			}
			// What the delegate answers with the tool's result, and the asking turn with that.
			if again := len(m.sent) - asked; again != 2 {
				t.Errorf("%d requests were sent once the person had answered, want 2", again)
			}
		})
	}
}

// Two different questions that one tool call asks are two turns.
func TestDelegateAskedTwice(t *testing.T) {
	caller, _ := delegating(t, plugins.DelegateOptions{})
	tool, _ := caller.Tools.Tool("research")
	caller.Tools = only{"research": pipeline.ToolFunc(func(ctx context.Context, in pipeline.Invocation, _ datasets.Value) (string, error) {
		var said []string
		for _, question := range []string{"x", "y"} {
			text, err := tool.Run(ctx, in, datasets.Values{"question": datasets.Text(question)}.Object())
			if err != nil {
				return "", err
			}
			said = append(said, text)
		}
		return strings.Join(said, ", "), nil
	})}
	turn := send(t, converse(t, caller, parseYAML(t, outerYAML), pipeline.ConversationOptions{}), "a", pipeline.SendOptions{})
	if got := result(turn); got != "x, x y" {
		t.Errorf("answered %q, want %q", got, "x, x y")
	}
}

// The name of a delegate's conversation: the tool's after the outer one's, or when
// that is longer than 200, the first 150 and a hash.
func TestDelegateConversation(t *testing.T) {
	for _, c := range []struct{ outer, want string }{
		{"alex", "alex.research"},
		{strings.Repeat("x", 191), strings.Repeat("x", 191) + ".research"},
		// SHA-256 of 192 times "x" and ".research", computed apart.
		{strings.Repeat("x", 192), strings.Repeat("x", 150) + ".417777c06bc1d2ba"},
	} {
		caller, _ := delegating(t, plugins.DelegateOptions{})
		store := pipeline.NewMemoryStore()
		chat := must(caller.Converse(parseYAML(t, outerYAML), c.outer, store, pipeline.ConversationOptions{}))(t)
		send(t, chat, "a", pipeline.SendOptions{})
		if records := must(store.Read(t.Context(), c.want, 0))(t); len(records) == 0 {
			t.Errorf("of %s, the delegate's conversation is not %s", c.outer, c.want)
		}
	}
}

func TestDelegateDefinition(t *testing.T) {
	caller := scriptCaller(says("x"))
	research := parseYAML(t, researchYAML)
	d := must(plugins.Delegate(plugins.DelegateOptions{Program: research, Caller: caller}))(t)
	if got := d.Definition(); got.Name != "research" || got.Description != "Look things up." || got.Effects != pipeline.EffectsRead || d.Effects() != got.Effects ||
		got.Parameters.Canonical() != `{"properties":{"question":{"type":"string"}},"required":["question"],"type":"object"}` {
		t.Errorf("the tool is %+v with parameters %s", got, got.Parameters.JSON())
	}
	d = must(plugins.Delegate(plugins.DelegateOptions{Program: research, Caller: caller, Name: "ask", Description: "Ask.", Effects: pipeline.EffectsChange}))(t)
	if got := d.Definition(); got.Name != "ask" || got.Description != "Ask." || got.Effects != pipeline.EffectsChange {
		t.Errorf("the tool is %+v", got)
	}
	for _, c := range []struct {
		o   plugins.DelegateOptions
		say string
	}{
		{plugins.DelegateOptions{}, "no program"},
		{plugins.DelegateOptions{Program: research}, "needs a caller"},
		{plugins.DelegateOptions{Program: research, Caller: caller, Name: "ask them"}, "conversation-id"},
	} {
		if _, err := plugins.Delegate(c.o); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("Delegate(%+v): %v, want an error that says %q", c.o, err, c.say)
		}
	}
	_, err := d.Run(t.Context(), nil, datasets.RawValue(`["x"]`))
	if err == nil || !strings.Contains(err.Error(), "must be an object") {
		t.Errorf("an input that is no object: %v", err)
	}
}
