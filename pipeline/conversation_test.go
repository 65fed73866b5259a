package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
)

const tutorYAML = `
name: tutor
inputs:
  - {name: message, shape: {type: string}}
  - {name: photo, shape: {type: string, default: ""}, optional: true}
outputs:
  - {name: reply, shape: {type: string}}
`

// echo answers "answer 1", "answer 2", …
func echo(n int, r *pipeline.Request) (*pipeline.Reply, error) {
	return &pipeline.Reply{Text: fmt.Sprintf("<reply>\nanswer %d\n</reply>", n+1), Finish: "stop"}, nil
}

func message(text string) datasets.Values { return datasets.Values{"message": datasets.Text(text)} }

// talker is a caller with ids of its own, so that several can share a store.
func talker(name string, m pipeline.Model) *pipeline.Caller {
	c := caller(m)
	var n atomic.Int64
	c.NewID = func() string { return fmt.Sprintf("%s%d", name, n.Add(1)) }
	c.Now = time.Now
	return c
}

func converse(t testing.TB, c *pipeline.Caller, store pipeline.Store, o pipeline.ConversationOptions) *pipeline.Conversation {
	t.Helper()
	chat, err := c.Converse(program(t, tutorYAML), "ada", store, o)
	if err != nil {
		t.Fatal(err)
	}
	return chat
}

func send(t testing.TB, chat *pipeline.Conversation, text string, o pipeline.SendOptions) *pipeline.Turn {
	t.Helper()
	turn, err := chat.Send(t.Context(), message(text), o)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return turn
}

// last is the text of the last request's messages.
func (m *model) last() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	r := m.sent[len(m.sent)-1]
	b.WriteString("system: " + r.System + "\n")
	for _, msg := range r.Messages {
		for _, p := range msg.Parts {
			fmt.Fprintf(&b, "%s: %s\n", msg.Role, p.Text)
		}
	}
	return b.String()
}

func (m *model) asked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.sent)
}

func sawText(call *pipeline.Call, turns ...*pipeline.Turn) string {
	names := map[string]string{"": ""}
	for i, t := range turns {
		names[t.Call] = fmt.Sprintf("c%d", i+1)
	}
	var list []string
	for _, s := range call.Turn.Saw {
		text := names[s.Call]
		if s.SawOf != "" {
			text = "all of " + names[s.SawOf]
		}
		if s.Steps {
			text += " steps"
		}
		if s.Without != nil {
			text += " without " + strings.Join(s.Without, ",")
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

func failsWith(t testing.TB, err error, code, words string) {
	t.Helper()
	f, ok := errors.AsType[*pipeline.Failure](err)
	if !ok || f.Code != code || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v, want a failure of code %q that says %q", err, code, words)
	}
}

// TestConversation: each turn is shown the earlier ones, and says what it saw
// as all its parent saw, and the parent.
func TestConversation(t *testing.T) {
	m := &model{answer: echo}
	chat := converse(t, talker("a", m), pipeline.NewMemoryStore(), pipeline.ConversationOptions{})
	var turns []*pipeline.Turn
	for i, want := range []string{"", "c1 steps", "all of c2; c2 steps", "all of c3; c3 steps"} {
		turn := send(t, chat, fmt.Sprintf("question %d", i+1), pipeline.SendOptions{})
		turns = append(turns, turn)
		if turn.State != pipeline.TurnDone || turn.Outputs["reply"].String() != fmt.Sprintf("answer %d", i+1) {
			t.Fatalf("turn %d: %+v", i+1, turn)
		}
		if got := sawText(turn.Record, turns...); got != want {
			t.Errorf("turn %d saw %q, want %q", i+1, got, want)
		}
		if i > 0 && turn.Parent != turns[i-1].ID {
			t.Errorf("turn %d continues %q", i+1, turn.Parent)
		}
		if turn.Record.ID != turn.Call || turn.Record.Turn.Turn != turn.ID {
			t.Errorf("turn %d's call is %q of turn %q", i+1, turn.Record.ID, turn.Record.Turn.Turn)
		}
	}
	text := m.last()
	at := -1
	for _, want := range []string{"question 1", "answer 1", "question 2", "answer 2", "question 3", "answer 3", "question 4"} {
		next := strings.Index(text, want)
		if next <= at {
			t.Fatalf("%q is not where it belongs in\n%s", want, text)
		}
		at = next
	}
}

func TestContextRule(t *testing.T) {
	for _, c := range []struct {
		o          pipeline.ConversationOptions
		want, hide string
		saw        string
	}{
		{pipeline.ConversationOptions{Last: new(1)}, "question 3", "question 2", "c3 steps"},
		{pipeline.ConversationOptions{Last: new(2)}, "question 2", "question 1", "c2 steps; c3 steps"},
		{pipeline.ConversationOptions{Last: new(0)}, "question 4", "question 3", ""},
		{pipeline.ConversationOptions{Last: new(9)}, "question 1", "nothing", "all of c3; c3 steps"},
		{pipeline.ConversationOptions{Without: []string{"photo", "nosuch"}}, "question 1", "PHOTO", "all of c3; c3 without photo"},
	} {
		m := &model{answer: echo}
		chat := converse(t, talker("a", m), pipeline.NewMemoryStore(), c.o)
		var turns []*pipeline.Turn
		for i := range 4 {
			in := message(fmt.Sprintf("question %d", i+1))
			if i < 3 {
				in["photo"] = datasets.Text("PHOTO")
			}
			turn, err := chat.Send(t.Context(), in, pipeline.SendOptions{})
			if err != nil || turn.Failure != nil {
				t.Fatal(err, turn.Failure)
			}
			turns = append(turns, turn)
		}
		if text := m.last(); !strings.Contains(text, c.want) || strings.Contains(text, c.hide) {
			t.Errorf("%+v: %q is missing or %q is there:\n%s", c.o, c.want, c.hide, text)
		}
		if got := sawText(turns[3].Record, turns...); got != c.saw {
			t.Errorf("%+v: saw %q, want %q", c.o, got, c.saw)
		}
		if turns[3].Record.Sections != nil {
			t.Errorf("sections out of nowhere: %q", turns[3].Record.Sections)
		}
	}
}

func choosing(t testing.TB, name string, choose func(e *pipeline.ContextEvent) *pipeline.Change) *pipeline.Plugin {
	return plugin(t, name, pipeline.Version("2.0.0"), pipeline.OnContext(
		func(_ context.Context, e *pipeline.ContextEvent) (*pipeline.Change, error) { return choose(e), nil }))
}

// TestContextMerge: shown t1, t2, t3; without [photo]; keep t2 and t3 and a
// section; without t3: [notes]. Each handler sees what the ones before it left.
func TestContextMerge(t *testing.T) {
	m := &model{answer: echo}
	var ids []string
	var seen []string
	on := false
	see := func(e *pipeline.ContextEvent) {
		var list []string
		for _, turn := range e.Turns() {
			list = append(list, fmt.Sprintf("t%d%v", slices.Index(ids, turn.ID)+1, turn.Without))
		}
		seen = append(seen, strings.Join(list, " ")+" | "+strings.Join(e.Sections(), "+"))
	}
	step := func(name string, change func() *pipeline.Change) *pipeline.Plugin {
		return choosing(t, name, func(e *pipeline.ContextEvent) *pipeline.Change {
			if !on {
				return nil
			}
			see(e)
			return change()
		})
	}
	store := pipeline.NewMemoryStore()
	chat := converse(t, talker("a", m), store, pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{
		step("one", func() *pipeline.Change { return &pipeline.Change{Without: datasets.RawValue(`["photo"]`)} }),
		step("two", func() *pipeline.Change {
			return &pipeline.Change{Keep: []string{ids[2], ids[1]}, Sections: []string{"S", "  "}} // not in the branch's order
		}),
		step("three", func() *pipeline.Change {
			return &pipeline.Change{Without: datasets.Values{ids[2]: datasets.RawValue(`["notes"]`)}.Object()}
		}),
		step("four", func() *pipeline.Change { return &pipeline.Change{} }),
	}})
	var turns []*pipeline.Turn
	for i := range 3 {
		turns = append(turns, send(t, chat, fmt.Sprintf("question %d", i+1), pipeline.SendOptions{}))
		ids = append(ids, turns[i].ID)
	}
	on = true
	turn := send(t, chat, "question 4", pipeline.SendOptions{})
	want := []string{
		"t1[] t2[] t3[] | ",
		"t1[photo] t2[photo] t3[photo] | ",
		"t2[photo] t3[photo] | S",
		"t2[photo] t3[notes photo] | S",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("the handlers saw\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
	if got := sawText(turn.Record, turns...); got != "c2 without photo; c3 without notes,photo" {
		t.Errorf("saw %q", got)
	}
	if got := turn.Record.Sections; !slices.Equal(got, []string{"S"}) {
		t.Errorf("sections %q", got)
	}
	if !strings.Contains(m.last(), "\n\nS\n") {
		t.Errorf("the section did not reach the model:\n%s", m.last())
	}
	var changed []string
	for _, ch := range turn.Record.Changes {
		changed = append(changed, ch.Plugin+" "+ch.Version+" "+string(ch.Hook)+" "+ch.Change.JSON())
	}
	wantChanges := []string{
		`one 2.0.0 context {"without":["photo"]}`,
		`two 2.0.0 context {"sections":["S","  "],"keep":["` + ids[2] + `","` + ids[1] + `"]}`,
		`three 2.0.0 context {"without":{"` + ids[2] + `":["notes"]}}`,
	}
	if !slices.Equal(changed, wantChanges) {
		t.Errorf("changes\n%s\nwant\n%s", strings.Join(changed, "\n"), strings.Join(wantChanges, "\n"))
	}
	// On the turn's record the same, and what is shown.
	made := recordsOf(t, store, "turn")[3]
	wantShown := `{"sections":["S"],"turns":["` + ids[1] + `","` + ids[2] + `"],"without":{"` + ids[1] + `":["photo"],"` + ids[2] + `":["notes","photo"]}}`
	if got := made.Member("context").Canonical(); got != wantShown {
		t.Errorf("the turn's context is %s, want %s", got, wantShown)
	}
	n := 0
	for range made.Member("changes").Elements() {
		n++
	}
	if n != 3 {
		t.Errorf("the turn's record has %d changes: %s", n, made.JSON())
	}
	// With no plugin that chooses, nothing is recorded.
	quiet := send(t, chat, "question 5", pipeline.SendOptions{Turn: pipeline.TurnOptions{Plugins: []*pipeline.Plugin{}}})
	if got := recordsOf(t, store, "turn")[4].Member("context"); !got.IsZero() || quiet.Record.Changes != nil {
		t.Errorf("a turn nobody chose for has context %s and changes %v", got.JSON(), quiet.Record.Changes)
	}
}

// recordsOf are the records of a kind.
func recordsOf(t testing.TB, store pipeline.Store, kind string) []datasets.Value {
	t.Helper()
	all, err := store.Read(t.Context(), "ada", 0)
	if err != nil {
		t.Fatal(err)
	}
	var list []datasets.Value
	for i, r := range all {
		if seq, ok := r.Member("seq").AsInt(); !ok || int(seq) != i {
			t.Errorf("record %d has seq %s", i, r.Member("seq").JSON())
		}
		if r.Member("kind").String() == kind {
			list = append(list, r)
		}
	}
	return list
}

func TestContextRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		change pipeline.Change
		code   string
		words  string
	}{
		{"a turn of another branch", pipeline.Change{Keep: []string{"OTHER"}}, "plugin-change", "no done turn of this branch"},
		{"a failed turn", pipeline.Change{Keep: []string{"FAILED"}}, "plugin-change", "no done turn of this branch"},
		{"without is a text", pipeline.Change{Without: datasets.Text("photo")}, "plugin-change", "without is a list"},
		{"without by turn is a text", pipeline.Change{Without: datasets.RawValue(`{"x":"photo"}`)}, "plugin-change", "without is a list"},
		{"without has a number", pipeline.Change{Without: datasets.RawValue(`[1]`)}, "plugin-change", "without is a list"},
		{"a field of another hook", pipeline.Change{Inputs: datasets.Values{}}, "plugin-change", "does not take inputs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &model{answer: func(n int, r *pipeline.Request) (*pipeline.Reply, error) {
				if strings.Contains(r.Messages[len(r.Messages)-1].Parts[0].Text, "fail") {
					return nil, pipeline.Failf(pipeline.TypeServer, "", "down")
				}
				return echo(n, r)
			}}
			chat := converse(t, talker("a", m), pipeline.NewMemoryStore(), pipeline.ConversationOptions{})
			first := send(t, chat, "one", pipeline.SendOptions{})
			other := send(t, chat, "two", pipeline.SendOptions{From: first.ID})
			failed := send(t, chat, "fail", pipeline.SendOptions{From: first.ID})
			for i, id := range c.change.Keep {
				c.change.Keep[i] = map[string]string{"OTHER": other.ID, "FAILED": failed.ID}[id]
			}
			before := m.asked()
			_, err := chat.Send(t.Context(), message("three"), pipeline.SendOptions{From: failed.ID, Turn: pipeline.TurnOptions{
				Plugins: []*pipeline.Plugin{choosing(t, "chooser", func(*pipeline.ContextEvent) *pipeline.Change { return &c.change })},
			}})
			failsWith(t, err, c.code, c.words)
			failsWith(t, err, c.code, "plugin chooser, context")
			if m.asked() != before {
				t.Error("the model was asked all the same")
			}
			if turns, _ := chat.Turns(t.Context()); len(turns) != 3 {
				t.Errorf("a turn was recorded: %d", len(turns))
			}
		})
	}
	// A plugin can widen a window.
	m := &model{answer: echo}
	chat := converse(t, talker("a", m), pipeline.NewMemoryStore(), pipeline.ConversationOptions{Last: new(1), Without: []string{"photo"}})
	first := send(t, chat, "one", pipeline.SendOptions{})
	send(t, chat, "two", pipeline.SendOptions{})
	wide := send(t, chat, "three", pipeline.SendOptions{Turn: pipeline.TurnOptions{Plugins: []*pipeline.Plugin{
		choosing(t, "wide", func(e *pipeline.ContextEvent) *pipeline.Change { return &pipeline.Change{Keep: []string{first.ID}} }),
	}}})
	if got := sawText(wide.Record, first); got != "c1 without photo" {
		t.Errorf("saw %q", got)
	}
}

func starting(t testing.TB, name string, change func(e *pipeline.TurnStartEvent) (*pipeline.Change, error)) *pipeline.Plugin {
	return plugin(t, name, pipeline.OnTurnStart(
		func(_ context.Context, e *pipeline.TurnStartEvent) (*pipeline.Change, error) { return change(e) }))
}

func TestTurnStart(t *testing.T) {
	m := &model{answer: echo}
	store := pipeline.NewMemoryStore()
	runs := 0
	mask := starting(t, "mask", func(e *pipeline.TurnStartEvent) (*pipeline.Change, error) {
		runs++
		in := e.Inputs()
		in["message"] = datasets.Text("defaced")
		if e.Conversation != "ada" || e.Program != "tutor" {
			t.Errorf("event %+v", e)
		}
		return &pipeline.Change{Inputs: datasets.Values{"photo": datasets.Text("masked")}}, nil
	})
	watch := starting(t, "watch", func(e *pipeline.TurnStartEvent) (*pipeline.Change, error) {
		if in := e.Inputs(); in["photo"].String() != "masked" || len(in) == 2 && in["message"].String() != "hello" {
			t.Errorf("the second handler was given %v", in)
		}
		return nil, nil
	})
	chat := converse(t, talker("a", m), store, pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{mask, watch}})
	turn := send(t, chat, "hello", pipeline.SendOptions{RequestID: "r1"})
	if got := turn.Record.Inputs["photo"].String(); got != "masked" {
		t.Errorf("the call was asked with photo %q", got)
	}
	want := `[{"change":{"inputs":{"photo":"masked"}},"hook":"turn_start","plugin":"mask","version":"0.0.0"}]`
	if got := recordsOf(t, store, "turn")[0].Member("changes").Canonical(); got != want {
		t.Errorf("changes %s, want %s", got, want)
	}
	if ch := turn.Record.Changes; len(ch) != 1 || ch[0].Hook != pipeline.HookTurnStart {
		t.Errorf("the call's changes are %v", ch)
	}
	// The handlers run before it is known that the request was sent already.
	again := send(t, chat, "hello", pipeline.SendOptions{RequestID: "r1"})
	if again.ID != turn.ID || runs != 2 || m.asked() != 1 || again.Record != nil {
		t.Errorf("sent again: turn %s, %d runs, asked %d times", again.ID, runs, m.asked())
	}

	for _, c := range []struct {
		name  string
		err   error
		chg   *pipeline.Change
		code  string
		words string
	}{
		{"no such input", nil, &pipeline.Change{Inputs: datasets.Values{"nosuch": datasets.Null}}, "plugin-change", `no input "nosuch"`},
		{"another hook's field", nil, &pipeline.Change{Sections: []string{"x"}}, "plugin-change", "does not take sections"},
		{"an ordinary error", errors.New("broke"), nil, "plugin-failed", "plugin bad, turn_start: broke"},
		{"a failure of its own", pipeline.Failf(pipeline.TypeInterface, "own-code", "no"), nil, "own-code", "no"},
	} {
		bad := starting(t, "bad", func(*pipeline.TurnStartEvent) (*pipeline.Change, error) { return c.chg, c.err })
		_, err := chat.Send(t.Context(), message("x"), pipeline.SendOptions{Turn: pipeline.TurnOptions{Plugins: []*pipeline.Plugin{bad}}})
		failsWith(t, err, c.code, c.words)
	}
	_, err := chat.Send(t.Context(), datasets.Values{"photo": datasets.Text("x")}, pipeline.SendOptions{})
	failsWith(t, err, "interface-input", "message")
	if m.asked() != 1 {
		t.Errorf("asked %d times", m.asked())
	}
}

// TestTurnEnd: a handler hears of the turn before its end is recorded, keeps
// entries the next turn reads, and changes nothing by failing.
func TestTurnEnd(t *testing.T) {
	m := &model{answer: func(n int, r *pipeline.Request) (*pipeline.Reply, error) {
		if n == 1 {
			return nil, pipeline.Failf(pipeline.TypeServer, "", "down")
		}
		return echo(n, r)
	}}
	var heard, warned []string
	var read [][]pipeline.Entry
	keeper := plugin(t, "keeper",
		pipeline.OnTurnEnd(func(_ context.Context, e *pipeline.TurnEndEvent) error {
			heard = append(heard, fmt.Sprintf("%s %d %s", e.State, len(e.Turns()), e.Outputs()["reply"]))
			return e.Remember("seen", datasets.Int(int64(len(heard))))
		}),
		pipeline.OnContext(func(_ context.Context, e *pipeline.ContextEvent) (*pipeline.Change, error) {
			read = append(read, e.Entries("seen"))
			if err := e.Remember("seen", datasets.Null); err == nil {
				t.Error("an entry was kept before the turn was begun")
			}
			return nil, nil
		}))
	broken := plugin(t, "broken", pipeline.OnTurnEnd(func(context.Context, *pipeline.TurnEndEvent) error { return errors.New("broke") }))
	store := pipeline.NewMemoryStore()
	chat := converse(t, talker("a", m), store, pipeline.ConversationOptions{
		Plugins: []*pipeline.Plugin{broken, keeper}, Warn: func(s string) { warned = append(warned, s) },
	})
	for i := range 3 {
		send(t, chat, fmt.Sprint(i), pipeline.SendOptions{})
	}
	if want := []string{"done 1 answer 1", "failed 1 ", "done 2 answer 3"}; !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "plugin broken, turn_end: broke") {
		t.Errorf("warned %q, want one warning", warned)
	}
	// The failed turn is on no branch of the third.
	if len(read) != 3 || len(read[0]) != 0 || len(read[1]) != 1 || len(read[2]) != 1 || read[2][0].Data.JSON() != "1" {
		t.Errorf("read %v", read)
	}
	all, _ := store.Read(t.Context(), "ada", 0)
	var kinds []string
	for _, r := range all[:8] {
		kinds = append(kinds, r.Member("kind").String())
	}
	if want := []string{"program", "turn", "lease", "call", "reply", "entry", "ended", "turn"}; !slices.Equal(kinds, want) {
		t.Errorf("records %q, want %q", kinds, want)
	}
}

// TestEntriesByBranch: an entry at a turn belongs to the branches through it,
// one at no turn to all.
func TestEntriesByBranch(t *testing.T) {
	chat := converse(t, talker("a", &model{answer: echo}), pipeline.NewMemoryStore(), pipeline.ConversationOptions{})
	ctx := t.Context()
	keep := func(turn, data string) {
		if err := chat.Remember(ctx, turn, "modes", "mode", datasets.Text(data)); err != nil {
			t.Fatal(err)
		}
	}
	one := send(t, chat, "1", pipeline.SendOptions{})
	left := send(t, chat, "2", pipeline.SendOptions{From: one.ID})
	right := send(t, chat, "3", pipeline.SendOptions{From: one.ID})
	keep(left.ID, "left")
	keep("", "all")
	keep(one.ID, "one")
	keep(right.ID, "right")
	for _, c := range []struct{ turn, want string }{
		{one.ID, "all one"}, {left.ID, "left all one"}, {right.ID, "all one right"}, {"", "all one right"},
	} {
		list, err := chat.Entries(ctx, c.turn, "modes", "mode")
		var got []string
		for _, e := range list {
			got = append(got, e.Data.String())
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("branch of %q: %q, want %q (%v)", c.turn, got, c.want, err)
		}
	}
	if list, _ := chat.Entries(ctx, right.ID, "other", "mode"); list != nil {
		t.Errorf("another plugin's: %v", list)
	}
	failsWith(t, chat.Remember(ctx, "nosuch", "modes", "mode", datasets.Null), "turn-unknown", "nosuch")

	// In a call the branch is the running turn's, and an entry is kept at it.
	var got [][]pipeline.Entry
	note := plugin(t, "modes", pipeline.OnBeforeCall(func(_ context.Context, e *pipeline.CallEvent) (*pipeline.Change, error) {
		got = append(got, e.Entries("mode"))
		return nil, e.Remember("mode", datasets.Text("now"))
	}))
	turn := send(t, chat, "4", pipeline.SendOptions{From: left.ID, Turn: pipeline.TurnOptions{Plugins: []*pipeline.Plugin{note}}})
	if turn.Failure != nil || len(got) != 1 || len(got[0]) != 3 {
		t.Fatalf("%v: read %v", turn.Failure, got)
	}
	list, _ := chat.Entries(ctx, turn.ID, "modes", "mode")
	if last := list[len(list)-1]; last.Data.String() != "now" || last.Turn != turn.ID {
		t.Errorf("kept %+v", last)
	}
}

// TestPlace: a turn continues the head, or the turn it names, when that is done,
// else its nearest ancestor that is.
func TestPlace(t *testing.T) {
	m := &model{answer: func(n int, r *pipeline.Request) (*pipeline.Reply, error) {
		if strings.Contains(r.Messages[len(r.Messages)-1].Parts[0].Text, "fail") {
			return nil, pipeline.Failf(pipeline.TypeServer, "", "down")
		}
		return echo(n, r)
	}}
	chat := converse(t, talker("a", m), pipeline.NewMemoryStore(), pipeline.ConversationOptions{})
	turns := map[string]string{"": ""}
	for _, c := range []struct{ head, name, text, from, parent string }{
		{"", "a", "hello", "", ""},
		{"", "b", "hello", "", "a"},
		{"", "c", "fail", "", "b"},
		{"", "d", "hello", "", "b"},   // the head failed
		{"", "e", "fail", "a", "a"},   // another branch
		{"", "f", "fail", "", "a"},    // and again
		{"", "g", "hello", "c", "b"},  // from the failed one by name
		{"a", "h", "hello", "", "a"},  // the head was moved
		{"f", "i", "hello", "", "a"},  // to a failed turn
		{"-", "j", "hello", "", ""},   // before every turn
		{"", "k", "hello", "", "j"},   // the latest turn is the head again
		{"", "l", "hello", "d", "d"},  //
		{"", "m", "hello", "-", ""},   // anew
		{"b", "n", "hello", "d", "d"}, // what is named outranks the head
	} {
		if c.head != "" {
			if err := chat.SetHead(t.Context(), turns[strings.Trim(c.head, "-")]); err != nil {
				t.Fatal(err)
			}
		}
		o := pipeline.SendOptions{From: turns[strings.Trim(c.from, "-")], Anew: c.from == "-"}
		turn := send(t, chat, c.text, o)
		turns[c.name] = turn.ID
		if turn.Parent != turns[c.parent] {
			t.Errorf("turn %s continues %q, want %q (%s): %v", c.name, turn.Parent, turns[c.parent], c.parent, turns)
		}
		if want := map[bool]pipeline.TurnState{true: pipeline.TurnFailed, false: pipeline.TurnDone}[c.text == "fail"]; turn.State != want {
			t.Errorf("turn %s is %s", c.name, turn.State)
		}
		if head, _ := chat.Head(t.Context()); head != turn.ID {
			t.Errorf("after turn %s the head is %q", c.name, head)
		}
	}
	branch, err := chat.Branch(t.Context(), turns["l"])
	var path []string
	for _, b := range branch {
		path = append(path, b.ID)
	}
	if want := []string{turns["a"], turns["b"], turns["d"], turns["l"]}; err != nil || !slices.Equal(path, want) {
		t.Errorf("the branch is %q, want %q", path, want)
	}
	_, err = chat.Send(t.Context(), message("x"), pipeline.SendOptions{From: "nosuch"})
	failsWith(t, err, "turn-unknown", "nosuch")
	failsWith(t, chat.SetHead(t.Context(), "nosuch"), "turn-unknown", "nosuch")
}

// gate is a model that answers when it is let.
type gate struct {
	model
	began, open chan struct{}
}

func newGate() *gate { return &gate{began: make(chan struct{}, 9), open: make(chan struct{})} }

func (g *gate) Generate(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
	g.began <- struct{}{}
	select {
	case <-g.open:
		return g.model.Generate(ctx, r)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		g.answer = echo
		store := pipeline.NewMemoryStore()
		chat := converse(t, talker("a", g), store, pipeline.ConversationOptions{})
		other := converse(t, talker("b", &model{answer: echo}), store, pipeline.ConversationOptions{})
		first := make(chan *pipeline.Turn, 1)
		go func() { first <- send(t, chat, "1", pipeline.SendOptions{RequestID: "same"}) }()
		<-g.began
		time.Sleep(2 * time.Minute) // its lease is renewed
		synctest.Wait()

		_, err := other.Send(t.Context(), message("2"), pipeline.SendOptions{Busy: pipeline.BusyRefuse})
		failsWith(t, err, "conversation-busy", "is running")
		branched := send(t, other, "3", pipeline.SendOptions{Busy: pipeline.BusyBranch})
		if branched.Parent != "" || branched.State != pipeline.TurnDone {
			t.Errorf("the branch: %+v", branched)
		}
		turns, _ := other.Turns(t.Context())
		if turns[0].State != pipeline.TurnRunning {
			t.Errorf("after two minutes the turn is %s", turns[0].State)
		}
		if err := other.SetHead(t.Context(), turns[0].ID); err != nil {
			t.Fatal(err)
		}
		queued, joined := make(chan *pipeline.Turn, 1), make(chan *pipeline.Turn, 1)
		go func() { queued <- send(t, other, "4", pipeline.SendOptions{}) }()
		go func() { joined <- send(t, other, "1", pipeline.SendOptions{RequestID: "same"}) }()
		time.Sleep(time.Minute)
		select {
		case <-queued:
			t.Fatal("a turn did not wait for the one before it")
		case <-joined:
			t.Fatal("the same request did not wait for its turn")
		default:
		}
		close(g.open)
		turn := <-first
		if q := <-queued; q.Parent != turn.ID || q.State != pipeline.TurnDone {
			t.Errorf("the queued turn continues %q, want %q", q.Parent, turn.ID)
		}
		if j := <-joined; j.ID != turn.ID || j.State != pipeline.TurnDone {
			t.Errorf("the same request is turn %q, want %q", j.ID, turn.ID)
		}
		// The first lease, and one every ten seconds.
		leases := 0
		for _, r := range recordsOf(t, store, "lease") {
			if r.Member("turn").String() == turn.ID {
				leases++
			}
		}
		if leases < 18 || leases > 19 { // the last one and the end come at the same moment
			t.Errorf("%d leases in three minutes", leases)
		}
	})
}

func TestQueueGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		chat := converse(t, talker("a", g), pipeline.NewMemoryStore(), pipeline.ConversationOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() {
			turn, err := chat.Send(ctx, message("1"), pipeline.SendOptions{})
			if turn == nil || turn.State != pipeline.TurnStopped || turn.Failure.Type != pipeline.TypeCancelled || turn.Record.ID != turn.Call {
				t.Errorf("the canceled turn is %+v", turn)
			}
			first <- err
		}()
		<-g.began
		soon, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := chat.Send(soon, message("2"), pipeline.SendOptions{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting ended with %v", err)
		}
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the canceled turn's error is %v", err)
		}
	})
}

func TestStop(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate()
			store := pipeline.NewMemoryStore()
			var heard []pipeline.TurnState
			hears := plugin(t, "hears", pipeline.OnTurnEnd(func(_ context.Context, e *pipeline.TurnEndEvent) error {
				heard = append(heard, e.State)
				return nil
			}))
			chat := converse(t, talker("a", g), store, pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{hears}})
			stopper := chat
			if elsewhere {
				stopper = converse(t, talker("b", g), store, pipeline.ConversationOptions{})
			}
			done := make(chan *pipeline.Turn, 1)
			go func() { done <- send(t, chat, "1", pipeline.SendOptions{}) }()
			<-g.began
			head, _ := stopper.Head(t.Context())
			began := time.Now()
			if err := stopper.Stop(t.Context(), head); err != nil {
				t.Fatal(err)
			}
			turn := <-done
			if turn.State != pipeline.TurnStopped || !slices.Equal(heard, []pipeline.TurnState{pipeline.TurnStopped}) {
				t.Errorf("the turn is %s, turn_end heard %v", turn.State, heard)
			}
			if took := time.Since(began); took > 10*time.Second || !elsewhere && took > 0 {
				t.Errorf("it took %s", took)
			}
			if err := stopper.Stop(t.Context(), head); err != nil {
				t.Errorf("stopped again: %v", err)
			}
			if n := len(recordsOf(t, store, "ended")); n != 1 {
				t.Errorf("%d ends", n)
			}
		})
	}
}

// TestLayers: the conversation's plugins are a layer between the program's and
// the host's; a turn's stand in their place; an outer turn's are around an inner
// conversation.
func TestLayers(t *testing.T) {
	var order []string
	log := func(name string) *pipeline.Plugin {
		return plugin(t, name,
			pipeline.OnTurnStart(func(context.Context, *pipeline.TurnStartEvent) (*pipeline.Change, error) {
				order = append(order, name)
				return nil, nil
			}),
			pipeline.OnBeforeCall(func(context.Context, *pipeline.CallEvent) (*pipeline.Change, error) {
				order = append(order, name)
				return nil, nil
			}),
			pipeline.OnTurnEnd(func(context.Context, *pipeline.TurnEndEvent) error {
				order = append(order, name)
				return nil
			}))
	}
	own, conv, turn, block, host := log("own"), log("conv"), log("turn"), log("block"), log("host")
	c := talker("a", &model{answer: echo})
	c.Process = pipeline.Layer{Plugins: []*pipeline.Plugin{host}}
	chat, err := c.Converse(program(t, tutorYAML).WithPlugins(own, host), "ada", pipeline.NewMemoryStore(),
		pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{conv}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := pipeline.With(t.Context(), pipeline.Layer{Kind: pipeline.BlockLayer, Plugins: []*pipeline.Plugin{block}})
	for _, c := range []struct {
		o    pipeline.TurnOptions
		want string
	}{
		{pipeline.TurnOptions{}, "own conv block host"},
		{pipeline.TurnOptions{Plugins: []*pipeline.Plugin{turn}}, "own turn block host"},
		{pipeline.TurnOptions{Plugins: []*pipeline.Plugin{}}, "own block host"},
		{pipeline.TurnOptions{ProgramPlugins: new(false)}, "conv block host"},
	} {
		order = nil
		if _, err := chat.Send(ctx, message("x"), pipeline.SendOptions{Turn: c.o}); err != nil {
			t.Fatal(err)
		}
		names := strings.Fields(c.want)
		if want := slices.Concat(names, names, names); !slices.Equal(order, want) {
			t.Errorf("%+v: %q, want each of three hooks as %q", c.o, order, c.want)
		}
	}

	inner := converse(t, talker("b", &model{answer: echo}), pipeline.NewMemoryStore(), pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{turn}})
	var innerErr error
	asks := plugin(t, "asks", pipeline.OnBeforeCall(func(ctx context.Context, e *pipeline.CallEvent) (*pipeline.Change, error) {
		if around, at, ok := pipeline.TurnOf(ctx); around != nil && around.ID() == "ada" && e.Turn == at && ok && innerErr == nil {
			if _, err := inner.Send(ctx, message("x"), pipeline.SendOptions{}); err == nil {
				return nil, errors.New("a nested turn was let through")
			} else {
				innerErr = err
			}
			order = nil
			_, err := inner.Send(ctx, message("x"), pipeline.SendOptions{Nested: true, Turn: pipeline.TurnOptions{Plugins: []*pipeline.Plugin{turn}}})
			return nil, err
		}
		return nil, nil
	}))
	outer, err := chat.Send(ctx, message("x"), pipeline.SendOptions{Turn: pipeline.TurnOptions{Plugins: []*pipeline.Plugin{asks, conv}}})
	if err != nil || outer.Failure != nil {
		t.Fatal(err, outer)
	}
	failsWith(t, innerErr, "conversation-nested", "ada")
	// Inner: turn (its own), then the outer turn's (asks says nothing), then the block.
	if want := []string{"turn", "conv", "block", "turn", "conv", "block", "turn", "conv", "block"}; !slices.Equal(order[:9], want) {
		t.Errorf("inside: %q, want %q", order[:9], want)
	}
}

// TestSignatureChanged: a turn keeps its steps only while the program's fields
// are what they were; with others it is shown by its values.
func TestSignatureChanged(t *testing.T) {
	m := &model{answer: echo}
	store := pipeline.NewMemoryStore()
	one := send(t, converse(t, talker("a", m), store, pipeline.ConversationOptions{}), "1", pipeline.SendOptions{})
	other := program(t, tutorYAML+"  - {name: mood, shape: {type: string}}\n")
	m2 := &model{answer: func(int, *pipeline.Request) (*pipeline.Reply, error) {
		return &pipeline.Reply{Text: "<reply>\nyes\n</reply>\n<mood>\ngood\n</mood>", Finish: "stop"}, nil
	}}
	chat, err := talker("b", m2).Converse(other, "ada", store, pipeline.ConversationOptions{})
	if err != nil {
		t.Fatal(err)
	}
	two := send(t, chat, "2", pipeline.SendOptions{})
	three := send(t, chat, "3", pipeline.SendOptions{})
	if got := sawText(two.Record, one, two); got != "c1" {
		t.Errorf("turn 2 saw %q", got)
	}
	if got := sawText(three.Record, one, two); got != "all of c2; c2 steps" {
		t.Errorf("turn 3 saw %q", got)
	}
	// Back with the first program: now the second turn's steps are foreign, and
	// what its parent saw is no longer what is shown.
	back := send(t, converse(t, talker("c", m), store, pipeline.ConversationOptions{}), "4", pipeline.SendOptions{})
	if got := sawText(back.Record, one, two, three); got != "c1 steps; c2; c3" {
		t.Errorf("turn 4 saw %q", got)
	}
	if n := len(recordsOf(t, store, "program")); n != 2 {
		t.Errorf("%d programs on record", n)
	}
}

// TestQueueInOrder: who waits for the same turn goes on in the order they came.
func TestQueueInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chat := converse(t, talker("a", lateModel{&model{answer: echo}, 3 * time.Second}), pipeline.NewMemoryStore(), pipeline.ConversationOptions{})
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 70 * time.Millisecond)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if i == 2 { // one gives up, and holds up nobody
					time.AfterFunc(time.Second, cancel)
				}
				_, err := chat.Send(ctx, message(fmt.Sprint(i)), pipeline.SendOptions{})
				if (err != nil) != (i == 2) {
					t.Errorf("%d: %v", i, err)
				}
			})
		}
		all.Wait()
		turns, err := chat.Turns(t.Context())
		var order []string
		for _, turn := range turns {
			order = append(order, turn.Inputs["message"].String())
		}
		if got := strings.Join(order, " "); err != nil || got != "0 1 3 4 5" {
			t.Errorf("the branch is %s, %v", got, err)
		}
	})
}

// TestBlockOfNoKind: what is set around a call is a block's, said or not: no
// setting drops it, and its own drops the program's.
func TestBlockOfNoKind(t *testing.T) {
	adds := func(name string) *pipeline.Plugin {
		return before(t, name, func(*pipeline.CallEvent) *pipeline.Change { return &pipeline.Change{Sections: []string{name}} })
	}
	c := caller(&model{answer: echo})
	c.Conversation.ProgramPlugins = new(false)
	guard := pipeline.Layer{Plugins: []*pipeline.Plugin{adds("guard")}}
	call := ask(t, c, program(t, tutorYAML).WithPlugins(adds("own")), pipeline.Ask{Inputs: message("x")})
	if got := kept(call); len(got) != 0 {
		t.Errorf("without a block: %q", got)
	}
	for _, guard.ProgramPlugins = range []*bool{nil, new(false)} {
		c.Conversation.ProgramPlugins = new(guard.ProgramPlugins != nil) // one of both says so
		call, err := c.Ask(pipeline.With(t.Context(), guard), program(t, tutorYAML).WithPlugins(adds("own")), pipeline.Ask{Inputs: message("x")})
		if err != nil || len(call.Changes) != 1 || call.Changes[0].Plugin != "guard" {
			t.Errorf("%q, %v", kept(call), err)
		}
	}
}
