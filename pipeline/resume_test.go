package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// mortal is a store whose process dies when it has written so many records: what
// it wrote is there, and it writes nothing more.
type mortal struct {
	pipeline.Store
	mu   sync.Mutex
	left int
}

var errDead = errors.New("the process is dead")

func (s *mortal) Append(ctx context.Context, id string, n int, r datasets.Value) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 {
		return errDead
	}
	err := s.Store.Append(ctx, id, n, r)
	if err == nil {
		s.left--
	}
	return err
}

const clerkYAML = `
name: clerk
inputs:
  - {name: message, shape: {type: string}}
outputs:
  - {name: reply, shape: {type: string}}
tools:
  - {name: look, description: Looks., parameters: {type: object}, effects: reads}
  - {name: pay, description: Pays., parameters: {type: object}, effects: changes}
`

// clerk is asked once, looks and pays, and answers when it knows of both.
func clerk(n int, r *pipeline.Request) (*pipeline.Reply, error) {
	last := r.Messages[len(r.Messages)-1]
	if last.Role != "tool" {
		return &pipeline.Reply{Finish: "tool_calls", Calls: []pipeline.ToolCall{
			{ID: "x1", Name: "look", Input: datasets.RawValue(`{}`)},
			{ID: "x2", Name: "pay", Input: datasets.RawValue(`{"cents":5}`)},
		}}, nil
	}
	var said []string
	for _, p := range last.Parts {
		if _, text, ok := p.ToolResult(); ok {
			said = append(said, text)
		}
	}
	return &pipeline.Reply{Text: "<reply>\n" + strings.Join(said, ", ") + "\n</reply>", Finish: "stop"}, nil
}

// tools counts what ran.
type tools struct {
	mu  sync.Mutex
	ran []string
}

func (b *tools) Tool(name string) (pipeline.ToolRunner, bool) {
	return pipeline.ToolFunc(func(context.Context, pipeline.Invocation, datasets.Value) (string, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.ran = append(b.ran, name)
		return fmt.Sprintf("%s %d", name, len(b.ran)), nil
	}), name == "look" || name == "pay"
}

func clerkChat(t testing.TB, name string, m pipeline.Model, b *tools, store pipeline.Store, o pipeline.ConversationOptions) *pipeline.Conversation {
	t.Helper()
	c := talker(name, m)
	c.Tools = b
	chat, err := c.Converse(program(t, clerkYAML), "ada", store, o)
	if err != nil {
		t.Fatal(err)
	}
	return chat
}

// TestDeadProcess: whichever record a process died at, another goes on from what
// is there: no reply that was kept is asked for again, no tool that may have
// changed something runs a second time unless it is told to, and no record of
// before is lost or changed.
func TestDeadProcess(t *testing.T) {
	ended := false
	for died := 0; !ended; died++ {
		synctest.Test(t, func(t *testing.T) {
			store := pipeline.NewMemoryStore()
			m, b := &model{answer: clerk}, &tools{}
			choosers := 0
			chooser := []*pipeline.Plugin{choosing(t, "chooser", func(*pipeline.ContextEvent) *pipeline.Change {
				choosers++
				return &pipeline.Change{Sections: []string{fmt.Sprintf("Section %d.", choosers)}}
			})}
			o := pipeline.ConversationOptions{Plugins: chooser}
			chat := clerkChat(t, "a", m, b, &mortal{Store: store, left: died}, o)
			_, err := chat.Send(t.Context(), message("go"), pipeline.SendOptions{RequestID: "r"})
			ended = err == nil
			if err != nil && !errors.Is(err, errDead) {
				t.Fatalf("died at %d: %v", died, err)
			}
			before, _ := store.Read(t.Context(), "ada", 0)
			asked, kept := m.asked(), len(recordsOf(t, store, "reply"))

			next := clerkChat(t, "b", m, b, store, o)
			if turns, _ := next.Turns(t.Context()); len(turns) == 0 {
				if died > 1 {
					t.Fatalf("died at %d: no turn", died)
				}
				return
			}
			head, _ := next.Head(t.Context())
			if !ended {
				_, err = next.Resume(t.Context(), head, pipeline.TurnOptions{})
				failsWith(t, err, "conversation-busy", "running")
				if turn, _ := next.Turn(t.Context(), head); turn.State != pipeline.TurnRunning {
					t.Errorf("died at %d: right after, the turn is %s", died, turn.State)
				}
			}
			time.Sleep(31 * time.Second)
			if turn, _ := next.Turn(t.Context(), head); !ended && turn.State != pipeline.TurnInterrupted {
				t.Errorf("died at %d: half a minute after, the turn is %s", died, turn.State)
			}
			payRan := slices.Contains(b.ran, "pay")
			turn, err := next.Resume(t.Context(), head, pipeline.TurnOptions{})
			want := ""
			if f, ok := errors.AsType[*pipeline.Failure](err); ok && f.Code == "turn-unfinished" {
				doubt, _ := next.Unfinished(t.Context(), head)
				if !slices.Equal(doubt, []int{1}) {
					t.Fatalf("died at %d: in doubt are %v", died, doubt)
				}
				if payRan {
					want = "pay given"
					err = next.GiveResult(t.Context(), head, 1, want)
				} else {
					err = next.Rerun(t.Context(), head, 1)
				}
				if err == nil {
					turn, err = next.Resume(t.Context(), head, pipeline.TurnOptions{})
				}
			}
			if err != nil {
				t.Fatalf("died at %d: %v", died, err)
			}
			if turn.State != pipeline.TurnDone || turn.ID != head || !strings.Contains(turn.Outputs["reply"].String(), want) {
				t.Errorf("died at %d: resumed, the turn is %+v", died, turn)
			}
			if again := m.asked() - asked; again != 2-kept && !ended {
				t.Errorf("died at %d with %d replies kept: the model was asked %d times more", died, kept, again)
			}
			pays := 0
			for _, name := range b.ran {
				if name == "pay" {
					pays++
				}
			}
			if pays != 1 {
				t.Errorf("died at %d: it was paid %d times", died, pays)
			}
			if choosers != 1 && died > 2 {
				t.Errorf("died at %d: the context handler ran %d times", died, choosers)
			}
			if r := turn.Record; !ended && (r.Turn.Attempt != 2 || r.ID != turn.Call || !slices.Equal(r.Sections, []string{"Section 1."}) || len(r.Changes) != 0) {
				t.Errorf("died at %d: the record of the resumed call: attempt %d, id %s, sections %q, changes %v", died, r.Turn.Attempt, r.ID, r.Sections, r.Changes)
			}
			after, _ := store.Read(t.Context(), "ada", 0)
			if !slices.Equal(after[:len(before)], before) {
				t.Errorf("died at %d: records of before were changed", died)
			}
			if n := len(recordsOf(t, store, "ended")); n != 1 {
				t.Errorf("died at %d: %d ends", died, n)
			}
			// The conversation goes on, and the same request is the same turn.
			twin := send(t, next, "go", pipeline.SendOptions{RequestID: "r"})
			if twin.ID != head {
				t.Errorf("died at %d: the same request made turn %s", died, twin.ID)
			}
			if on := send(t, next, "more", pipeline.SendOptions{}); on.Parent != head || on.State != pipeline.TurnDone {
				t.Errorf("died at %d: the next turn: %+v", died, on)
			}
		})
	}
}

// sleeper is a store whose process hangs when it writes more than it is let.
type sleeper struct {
	pipeline.Store
	awake chan struct{}
}

func (s *sleeper) Append(ctx context.Context, id string, n int, r datasets.Value) error {
	<-s.awake
	return s.Store.Append(ctx, id, n, r)
}

// TestTakenOver: a process that comes back after its turn was resumed elsewhere
// writes nothing more of it.
func TestTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := pipeline.NewMemoryStore()
		g := newGate()
		g.answer = echo
		asleep := &sleeper{Store: store, awake: make(chan struct{}, 99)}
		for range 4 { // program, turn, lease and call
			asleep.awake <- struct{}{}
		}
		slow := converse(t, talker("a", g), asleep, pipeline.ConversationOptions{})
		done := make(chan error, 1)
		go func() {
			_, err := slow.Send(t.Context(), message("1"), pipeline.SendOptions{})
			done <- err
		}()
		<-g.began
		time.Sleep(31 * time.Second)
		quick := converse(t, talker("b", &model{answer: echo}), store, pipeline.ConversationOptions{})
		head, _ := quick.Head(t.Context())
		turn, err := quick.Resume(t.Context(), head, pipeline.TurnOptions{})
		if err != nil || turn.State != pipeline.TurnDone {
			t.Fatal(turn, err)
		}
		close(asleep.awake)
		failsWith(t, <-done, "turn-lost", "someone else")
		if n := len(recordsOf(t, store, "ended")); n != 1 {
			t.Errorf("%d ends", n)
		}
	})
}

// asker asks a person about paying, and blocks nothing by itself.
func asker(t testing.TB, name string) *pipeline.Plugin {
	return plugin(t, name, pipeline.OnToolCall(func(ctx context.Context, e *pipeline.ToolCallEvent) (*pipeline.Change, error) {
		if e.Name == "pay" {
			_, err := e.Ask(ctx, "it costs money", nil)
			return nil, err
		}
		return nil, nil
	}))
}

// TestWaiting: a turn that needs a person waits, for as long as it takes, and
// goes on in any process with what was answered.
func TestWaiting(t *testing.T) {
	for _, c := range []struct {
		answer pipeline.Answer
		reply  string
		pays   bool
	}{
		{pipeline.Answer{Allowed: true, By: "bo"}, "look 1, pay 3", true},
		{pipeline.Answer{Reason: "too much", By: "bo"}, "look 1, The person did not allow this call. Reason: too much", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := pipeline.NewMemoryStore()
			m, b := &model{answer: clerk}, &tools{}
			o := pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{asker(t, "money")}}
			turn, err := clerkChat(t, "a", m, b, store, o).Send(t.Context(), message("go"), pipeline.SendOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if turn.State != pipeline.TurnWaiting || len(turn.Waiting) != 1 || turn.Failure == nil || turn.Failure.Code != "turn-waiting" {
				t.Fatalf("the turn: %+v", turn)
			}
			q := turn.Waiting[0]
			if q.Name != "pay" || q.Invocation != 1 || q.Plugin != "money" || q.Reason != "it costs money" || q.Effects != pipeline.EffectsChange || q.Answer != nil {
				t.Errorf("the question: %+v", q)
			}
			time.Sleep(24 * time.Hour)
			chat := clerkChat(t, "b", m, b, store, o)
			ctx := t.Context()
			_, err = chat.Send(ctx, message("more"), pipeline.SendOptions{})
			failsWith(t, err, "turn-waiting", "pay")
			if branch := send(t, chat, "more", pipeline.SendOptions{Busy: pipeline.BusyBranch, Turn: pipeline.TurnOptions{Plugins: []*pipeline.Plugin{
				plugin(t, "no-tools", pipeline.OnToolCall(func(context.Context, *pipeline.ToolCallEvent) (*pipeline.Change, error) {
					return &pipeline.Change{Block: new("not here")}, nil
				})),
			}}}); branch.Parent != "" {
				t.Errorf("the branch: %+v", branch)
			}
			_, err = chat.Resume(ctx, turn.ID, pipeline.TurnOptions{})
			failsWith(t, err, "turn-waiting", "pay")
			failsWith(t, chat.Answer(ctx, turn.ID, 0, "money", c.answer), "", "waits for no answer")
			failsWith(t, chat.Answer(ctx, turn.ID, 1, "other", c.answer), "", "waits for no answer")
			if err := errors.Join(chat.Answer(ctx, turn.ID, 1, "money", c.answer), chat.Answer(ctx, turn.ID, 1, "money", c.answer)); err != nil {
				t.Fatal(err)
			}
			failsWith(t, chat.Answer(ctx, turn.ID, 1, "money", pipeline.Answer{Allowed: !c.answer.Allowed}), "", "answered already")
			asked := m.asked()
			got, err := chat.Resume(ctx, turn.ID, pipeline.TurnOptions{})
			if err != nil || got.State != pipeline.TurnDone || got.Attempt != 2 {
				t.Fatalf("resumed: %+v, %v", got, err)
			}
			reply := got.Outputs["reply"].String()
			if slices.Contains(b.ran, "pay") != c.pays || strings.Contains(reply, "did not allow") == c.pays || !c.pays && !strings.HasSuffix(reply, c.reply[len("look 1"):]) {
				t.Errorf("the reply is %q, ran %q", reply, b.ran)
			}
			if m.asked() != asked+1 { // the first reply was kept
				t.Errorf("asked %d times more", m.asked()-asked)
			}
			approvals := recordsOf(t, store, "approval")
			if len(approvals) != 1 || approvals[0].Member("by").String() != "bo" {
				t.Errorf("approvals: %v", approvals)
			}
			failsWith(t, chat.Answer(ctx, turn.ID, 1, "money", c.answer), "", "waits for no answer")
			same, err := chat.Resume(ctx, turn.ID, pipeline.TurnOptions{})
			if err != nil || same.State != pipeline.TurnDone || same.Record != nil {
				t.Errorf("an ended turn resumed: %+v, %v", same, err)
			}
		})
	}
}

func TestAbandon(t *testing.T) {
	store := pipeline.NewMemoryStore()
	m, b := &model{answer: clerk}, &tools{}
	var heard []pipeline.TurnState
	hears := plugin(t, "hears", pipeline.OnTurnEnd(func(_ context.Context, e *pipeline.TurnEndEvent) error {
		heard = append(heard, e.State)
		return nil
	}))
	chat := clerkChat(t, "a", m, b, store, pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{asker(t, "money"), hears}})
	for i, c := range []struct {
		end  func(context.Context, string) error
		want pipeline.TurnState
		hear []pipeline.TurnState
	}{
		{chat.Abandon, pipeline.TurnAbandoned, nil},
		{chat.Stop, pipeline.TurnStopped, []pipeline.TurnState{pipeline.TurnStopped}},
	} {
		turn := send(t, chat, fmt.Sprint(i), pipeline.SendOptions{})
		if turn.State != pipeline.TurnWaiting {
			t.Fatalf("%+v", turn)
		}
		if err := errors.Join(c.end(t.Context(), turn.ID), c.end(t.Context(), turn.ID)); err != nil {
			t.Fatal(err)
		}
		if got, _ := chat.Turn(t.Context(), turn.ID); got.State != c.want || !slices.Equal(heard, c.hear) {
			t.Errorf("the turn is %s, heard %v", got.State, heard)
		}
	}
}

// TestKeptReply: a reply loses nothing by being kept. A field that Reply gets
// later fails here until it is kept.
func TestKeptReply(t *testing.T) {
	n := int64(3)
	reply := pipeline.Reply{
		Text: "<reply>\nhello\n</reply>", Finish: "stop", Model: "m-2", Provider: "acme", System: "fp_1", Usage: pipeline.Usage{Input: &n, Cached: &n}, Cached: true, From: pipeline.FromCache,
		Calls:    []pipeline.ToolCall{{ID: "x", Name: "look", Input: datasets.RawValue(`{"a":1.50}`)}},
		Response: datasets.RawValue(`{"text":"hello"}`),
	}
	how := []string{"Attempts", "Waited", "Wire"} // the way to it, which is not taken again
	for i := range reflect.TypeFor[pipeline.Reply]().NumField() {
		if name := reflect.TypeFor[pipeline.Reply]().Field(i).Name; reflect.ValueOf(reply).Field(i).IsZero() && !slices.Contains(how, name) {
			t.Errorf("this test gives the field %s no value", name)
		}
	}
	store := pipeline.NewMemoryStore()
	chat := converse(t, talker("a", &model{answer: func(int, *pipeline.Request) (*pipeline.Reply, error) { r := reply; return &r, nil }}),
		&mortal{Store: store, left: 5}, pipeline.ConversationOptions{})
	if _, err := chat.Send(t.Context(), message("hi"), pipeline.SendOptions{}); !errors.Is(err, errDead) {
		t.Fatal(err)
	}
	c := talker("b", &model{answer: func(int, *pipeline.Request) (*pipeline.Reply, error) { return nil, errors.New("asked again") }})
	c.Now = func() time.Time { return time.Now().Add(time.Minute) }
	next := converse(t, c, store, pipeline.ConversationOptions{})
	head, _ := next.Head(t.Context())
	turn, err := next.Resume(t.Context(), head, pipeline.TurnOptions{})
	if err != nil || turn.Failure != nil {
		t.Fatal(err, turn)
	}
	if got := *turn.Record.Exchanges[0].Reply; !reflect.DeepEqual(got, reply) {
		t.Errorf("kept as\n%+v, was\n%+v", got, reply)
	}
}

// TestTurnInsideTool: a turn that a tool sends is a call inside the tool's.
func TestTurnInsideTool(t *testing.T) {
	store := pipeline.NewMemoryStore()
	inner := converse(t, talker("i", &model{answer: echo}), pipeline.NewMemoryStore(), pipeline.ConversationOptions{})
	c := talker("a", &model{answer: clerk})
	var sub *pipeline.Turn
	c.Tools = toolFunc(func(ctx context.Context, in pipeline.Invocation, _ datasets.Value) (string, error) {
		turn, err := inner.Send(ctx, message("x"), pipeline.SendOptions{Nested: true, Turn: pipeline.TurnOptions{Inside: in}})
		if err != nil {
			return "", err
		}
		sub = turn
		return turn.Outputs["reply"].String(), nil
	})
	chat, err := c.Converse(program(t, clerkYAML), "ada", store, pipeline.ConversationOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tags := datasets.Values{"kind": datasets.Text("evaluation")}
	turn := send(t, chat, "go", pipeline.SendOptions{Turn: pipeline.TurnOptions{Tags: tags}})
	if turn.State != pipeline.TurnDone || turn.Outputs["reply"].String() != "answer 1, answer 2" {
		t.Fatalf("%+v", turn)
	}
	if r := sub.Record; r.Parent != turn.Call || r.Root != turn.Call || r.ID != sub.Call || r.Turn.Conversation != "ada" {
		t.Errorf("the inner call %s has parent %q and root %q, want %q", r.ID, r.Parent, r.Root, turn.Call)
	}
	if !reflect.DeepEqual(sub.Record.Tags, tags) {
		t.Errorf("the inner call is tagged %v, want as the one around it", sub.Record.Tags)
	}
	if in := turn.Record.Inside; len(in) != 2 || in[1] != sub.Record {
		t.Errorf("inside the outer call are %v", in)
	}
	// The next turn is shown this one with its steps, by what they were recorded as.
	if steps := recordsOf(t, store, "ended")[0].Member("steps").JSON(); !strings.Contains(steps, `"children":["`+sub.Call+`"]`) {
		t.Errorf("steps %s", steps)
	}
}

type toolFunc pipeline.ToolFunc

func (f toolFunc) Tool(string) (pipeline.ToolRunner, bool) { return pipeline.ToolFunc(f), true }

// TestKeptInOrder: two replies to one request are taken in the order in which
// they came.
func TestKeptInOrder(t *testing.T) {
	m := &model{answer: func(n int, _ *pipeline.Request) (*pipeline.Reply, error) {
		if n == 0 {
			return &pipeline.Reply{Text: "<reply>\ncut o", Finish: "length"}, nil // the same is asked again
		}
		return &pipeline.Reply{Text: fmt.Sprintf("<reply>\nreply %d\n</reply>", n), Finish: "stop"}, nil
	}}
	store := pipeline.NewMemoryStore()
	first := talker("a", m)
	first.Retries = 1
	if _, err := converse(t, first, &mortal{Store: store, left: 6}, pipeline.ConversationOptions{}).
		Send(t.Context(), message("hi"), pipeline.SendOptions{}); !errors.Is(err, errDead) {
		t.Fatal(err)
	}
	c := talker("b", m)
	c.Retries = 1
	c.Now = func() time.Time { return time.Now().Add(time.Minute) }
	next := converse(t, c, store, pipeline.ConversationOptions{})
	head, _ := next.Head(t.Context())
	turn, err := next.Resume(t.Context(), head, pipeline.TurnOptions{})
	if err != nil || turn.Outputs["reply"].String() != "reply 1" || m.asked() != 2 {
		t.Errorf("%+v, %v: asked %d times", turn, err, m.asked())
	}
}

// intruder is a store into which somebody else writes right before a turn is
// recorded.
type intruder struct {
	pipeline.Store
	before func()
}

func (s *intruder) Append(ctx context.Context, id string, n int, r datasets.Value) error {
	if before := s.before; before != nil && r.Member("kind").String() == "turn" {
		s.before = nil
		before()
	}
	return s.Store.Append(ctx, id, n, r)
}

// TestBuiltAgain: when somebody writes while a turn is built, it is built again
// on what is there then; turn_start runs once.
func TestBuiltAgain(t *testing.T) {
	for _, when := range []string{"while handlers run", "right before the append"} {
		store := &intruder{Store: pipeline.NewMemoryStore()}
		other := converse(t, talker("b", &model{answer: echo}), store.Store, pipeline.ConversationOptions{})
		write := func() {
			if err := other.Remember(t.Context(), "", "p", "note", datasets.Int(1)); err != nil {
				t.Fatal(err)
			}
		}
		var read []int
		starts := 0
		p := plugin(t, "p",
			pipeline.OnTurnStart(func(context.Context, *pipeline.TurnStartEvent) (*pipeline.Change, error) { starts++; return nil, nil }),
			pipeline.OnContext(func(_ context.Context, e *pipeline.ContextEvent) (*pipeline.Change, error) {
				read = append(read, len(e.Entries("note")))
				if when == "while handlers run" && len(read) == 1 {
					write()
				}
				return &pipeline.Change{Sections: []string{"S"}}, nil
			}))
		if when != "while handlers run" {
			store.before = write
		}
		chat := converse(t, talker("a", &model{answer: echo}), store, pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{p}})
		turn := send(t, chat, "1", pipeline.SendOptions{})
		if !slices.Equal(read, []int{0, 1}) || starts != 1 || len(turn.Record.Changes) != 1 {
			t.Errorf("%s: the handler read %v entries; turn_start ran %d times; changes %v", when, read, starts, turn.Record.Changes)
		}
		if n := len(recordsOf(t, store, "turn")); n != 1 {
			t.Errorf("%s: %d turns", when, n)
		}
	}
}

// TestWaitingNeedsNoLease: a turn waits from the moment it asks, however long its
// call then takes to end.
func TestWaitingNeedsNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := pipeline.NewMemoryStore()
		slow := plugin(t, "slow", pipeline.OnToolCall(func(ctx context.Context, e *pipeline.ToolCallEvent) (*pipeline.Change, error) {
			_, err := e.Ask(ctx, "may it?", nil)
			time.Sleep(time.Minute)
			return nil, err
		}))
		chat := clerkChat(t, "a", &model{answer: clerk}, &tools{}, store, pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{slow}})
		turn := send(t, chat, "go", pipeline.SendOptions{})
		if turn.State != pipeline.TurnWaiting || len(turn.Waiting) != 1 {
			t.Errorf("%+v", turn)
		}
		if n := len(recordsOf(t, store, "lease")); n != 1 {
			t.Errorf("%d leases", n)
		}
	})
}

// TestTurnEndKeepsTheTurn: a turn whose turn_end handlers take longer than a lease
// stays its own, and nobody answers it again.
func TestTurnEndKeepsTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := pipeline.NewMemoryStore()
		slow := plugin(t, "slow", pipeline.OnTurnEnd(func(context.Context, *pipeline.TurnEndEvent) error {
			time.Sleep(70 * time.Second)
			return nil
		}))
		chat := converse(t, talker("a", &model{answer: echo}), store, pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{slow}})
		done := make(chan error, 1)
		go func() {
			turn, err := chat.Send(context.Background(), message("hi"), pipeline.SendOptions{})
			if err == nil && turn.State != pipeline.TurnDone {
				err = fmt.Errorf("the turn is %s", turn.State)
			}
			done <- err
		}()
		other := converse(t, talker("b", &model{answer: echo}), store, pipeline.ConversationOptions{})
		for range 6 {
			time.Sleep(11 * time.Second)
			head, _ := other.Head(t.Context())
			_, err := other.Resume(t.Context(), head, pipeline.TurnOptions{})
			failsWith(t, err, "conversation-busy", "is running")
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestTurnEndContext: turn_end handlers have the time that the asking has left; of
// a turn that was stopped they hear in the time of a handler.
func TestTurnEndContext(t *testing.T) {
	for _, c := range []struct {
		state pipeline.TurnState
		takes time.Duration // the model
		ends  time.Duration // the handler's context, after Send began
	}{
		{pipeline.TurnDone, 2 * time.Second, 5 * time.Second},
		{pipeline.TurnStopped, time.Minute, 12 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			m := &model{answer: func(n int, r *pipeline.Request) (*pipeline.Reply, error) { return echo(n, r) }}
			late := lateModel{m, c.takes}
			ended := time.Duration(0)
			var state pipeline.TurnState
			hears := plugin(t, "hears", pipeline.OnTurnEnd(func(ctx context.Context, e *pipeline.TurnEndEvent) error {
				<-ctx.Done()
				ended, state = time.Since(began), e.State
				return nil
			}))
			asks := talker("a", late)
			asks.HandlerTime = 7 * time.Second
			chat := converse(t, asks, pipeline.NewMemoryStore(), pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{hears}})
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			turn, _ := chat.Send(ctx, message("x"), pipeline.SendOptions{})
			if turn == nil || turn.State != c.state || state != c.state || ended != c.ends {
				t.Errorf("the turn %+v is %s to the handler, whose context ended after %s; want %s after %s", turn, state, ended, c.state, c.ends)
			}
		})
	}
}

// lateModel takes its time.
type lateModel struct {
	pipeline.Model
	takes time.Duration
}

func (m lateModel) Generate(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
	select {
	case <-time.After(m.takes):
		return m.Model.Generate(ctx, r)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// TestChangesOfResumed: the record of a resumed turn's call has what plugins
// changed about tools that do not run again, as they ran.
func TestChangesOfResumed(t *testing.T) {
	store := pipeline.NewMemoryStore()
	m, b := &model{answer: clerk}, &tools{}
	times := 0
	shapes := plugin(t, "shapes", onTool(func(*pipeline.ToolCallEvent) (*pipeline.Change, error) {
		times++ // it looks at something that changes
		return &pipeline.Change{Inputs: datasets.Values{"n": datasets.Int(int64(times))}}, nil
	}), onResult(func(e *pipeline.ToolResultEvent) (*pipeline.Change, error) {
		return &pipeline.Change{Output: new(e.Output + "!")}, nil
	}))
	o := pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{shapes, asker(t, "money")}}
	turn, err := clerkChat(t, "a", m, b, store, o).Send(t.Context(), message("go"), pipeline.SendOptions{})
	if err != nil || turn.State != pipeline.TurnWaiting {
		t.Fatal(turn, err)
	}
	before := kept(turn.Record)[:2] // of the tool that ran; another is of the one that waits
	chat := clerkChat(t, "b", m, b, store, o)
	if err := chat.Answer(t.Context(), turn.ID, 1, "money", pipeline.Answer{Allowed: true}); err != nil {
		t.Fatal(err)
	}
	turn, err = chat.Resume(t.Context(), turn.ID, pipeline.TurnOptions{})
	if err != nil || turn.State != pipeline.TurnDone {
		t.Fatal(turn, err)
	}
	after := kept(turn.Record)
	if len(after) != 4 || !slices.Equal(after[:2], before) {
		t.Errorf("changes %q, then resumed %q", before, after)
	}
}

// TestResumedAsBegun: a turn that was begun without the program's plugins is
// resumed, or stopped, without them.
func TestResumedAsBegun(t *testing.T) {
	for _, of := range []string{"turn", "conversation"} {
		for _, stop := range []bool{false, true} {
			resumedAsBegun(t, of, stop)
		}
	}
}

func resumedAsBegun(t *testing.T, of string, stop bool) {
	synctest.Test(t, func(t *testing.T) {
		heard := 0
		own := plugin(t, "own", pipeline.OnTurnEnd(func(context.Context, *pipeline.TurnEndEvent) error { heard++; return nil }))
		p := program(t, tutorYAML).WithPlugins(own)
		store := pipeline.NewMemoryStore()
		dies := &mortal{Store: store, left: 4} // program, turn, lease and call
		var o pipeline.ConversationOptions
		var turn pipeline.TurnOptions
		if off := new(false); of == "turn" {
			turn.ProgramPlugins = off
		} else {
			o.ProgramPlugins = off
		}
		begun, err := talker("a", &model{answer: echo}).Converse(p, "ada", dies, o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := begun.Send(t.Context(), message("x"), pipeline.SendOptions{Turn: turn}); !errors.Is(err, errDead) {
			t.Fatal(err)
		}
		time.Sleep(31 * time.Second)
		chat, err := talker("b", &model{answer: echo}).Converse(p, "ada", store, pipeline.ConversationOptions{})
		if err != nil {
			t.Fatal(err)
		}
		head, err := chat.Head(t.Context())
		if err == nil && stop {
			err = chat.Stop(t.Context(), head)
		} else if err == nil {
			_, err = chat.Resume(t.Context(), head, pipeline.TurnOptions{})
		}
		if err != nil || heard != 0 {
			t.Errorf("%s, stop %v: the program's plugin heard %d ends, %v", of, stop, heard, err)
		}
		send(t, chat, "more", pipeline.SendOptions{})
		if heard != 1 {
			t.Errorf("%s, stop %v: of the next turn it heard %d times", of, stop, heard)
		}
	})
}
