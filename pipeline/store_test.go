package pipeline_test

import (
	"context"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
)

func TestConversationID(t *testing.T) {
	for id, ok := range map[string]bool{
		"a": true, "A-1_b.c": true, "7": true, strings.Repeat("x", 200): true,
		"": false, ".": false, "..": false, "-a": false, "_a": false, ".a": false, "a/b": false, `a\b`: false, "a b": false,
		"a\n": false, "é": false, "a\x00": false, strings.Repeat("x", 201): false,
	} {
		err := pipeline.CheckConversationID(id)
		if ok != (err == nil) {
			t.Errorf("%q: %v", id, err)
		}
		_, opened := caller(&model{}).Converse(program(t, routeYAML), id, pipeline.NewMemoryStore(), pipeline.ConversationOptions{})
		if !ok {
			failsWith(t, err, "conversation-id", "letters")
			failsWith(t, opened, "conversation-id", "letters")
		} else if opened != nil {
			t.Errorf("%q: %v", id, opened)
		}
	}
}

func TestMemoryStore(t *testing.T) {
	s := pipeline.NewMemoryStore()
	ctx := t.Context()
	for i := range 3 {
		if err := s.Append(ctx, "a", i, datasets.RawValue(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	failsWith(t, s.Append(ctx, "a", 2, datasets.RawValue(`{}`)), "store-conflict", "has 3 records, not 2")
	failsWith(t, s.Append(ctx, "a", 4, datasets.RawValue(`{}`)), "store-conflict", "has 3 records, not 4")
	for from, want := range map[int]int{0: 3, 2: 1, 3: 0, 9: 0} {
		if list, err := s.Read(ctx, "a", from); err != nil || len(list) != want {
			t.Errorf("from %d: %d records, %v", from, len(list), err)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if s.Append(ended, "a", 3, datasets.RawValue(`{}`)) == nil {
		t.Error("an append after the end")
	}
}

// rawStore has a conversation's records as they are given.
type rawStore struct{ records []datasets.Value }

func (s *rawStore) Append(_ context.Context, id string, n int, r datasets.Value) error {
	if n != len(s.records) {
		return pipeline.StoreConflict(id, n, len(s.records))
	}
	s.records = append(s.records, r)
	return nil
}

func (s *rawStore) Read(_ context.Context, _ string, from int) ([]datasets.Value, error) {
	return s.records[min(from, len(s.records)):], nil
}

const oldTurns = `{"functai_conversation":1,"kind":"program","at":"2026-01-02T03:04:05.000000Z","seq":0,"program":"v","name":"tutor","signature":"s"}
{"functai_conversation":1,"kind":"turn","at":"2026-01-02T03:04:05.000000Z","seq":1,"turn":"t1","parent":null,"program":"v","inputs":{"message":"hi"},"later":{"x":1}}
{"functai_conversation":1,"kind":"call","at":"2026-01-02T03:04:05.000000Z","seq":2,"turn":"t1","call":"c1","started":"2026-01-02T03:04:05.000000Z"}
{"functai_conversation":1,"kind":"mood","at":"2026-01-02T03:04:05.000000Z","seq":3,"turn":"t1"}
{"functai_conversation":1,"kind":"ended","at":"2026-01-02T03:04:05.000000Z","seq":4,"turn":"t1","state":"done","outputs":{"reply":"ho"},"steps":[],"saw":[],"error":null,"model":"m","usage":null,"seconds":1,"attempt":1}
{"functai_conversation":1,"kind":"turn","at":"2026-01-02T03:04:05.000000Z","seq":5,"turn":"t2","parent":"t1","program":"v","inputs":{"message":"hi"}}
{"functai_conversation":1,"kind":"waiting","at":"2026-01-02T03:04:05.000000Z","seq":6,"turn":"t2","invocation":0,"plugin":"p","name":"pay"}`

func parsed(text string) []datasets.Value {
	var list []datasets.Value
	for line := range strings.Lines(text) {
		v, err := datasets.ParseValue(line)
		if err != nil {
			v = datasets.Null
		}
		list = append(list, v)
	}
	return list
}

// TestReading: what is not known is left alone, what is broken is left out with
// a warning, and a later format is refused.
func TestReading(t *testing.T) {
	read := func(text string) (string, []string, error) {
		var warned []string
		chat := converse(t, talker("a", &model{}), &rawStore{parsed(text)}, pipeline.ConversationOptions{
			Warn: func(s string) { warned = append(warned, s) },
		})
		turns, err := chat.Turns(t.Context())
		var states []string
		for _, turn := range turns {
			states = append(states, turn.ID+" "+string(turn.State))
		}
		return strings.Join(states, ", "), warned, err
	}
	good := "t1 done, t2 waiting"
	line := func(s string) string {
		return `{"functai_conversation":1,"at":"2026-01-02T03:04:05.000000Z",` + s + "}"
	}
	for _, c := range []struct{ name, text, turns, warn, err string }{
		{"as it is", oldTurns, good, "", ""},
		{"a line that is no record", oldTurns + "\n\x00\x00", good, "record 7 is left out", ""},
		{"a turn of nothing", oldTurns + "\n" + line(`"kind":"turn","turn":"t3","parent":"t9"`), good, "record 7 is left out: the turn continues", ""},
		{"a turn twice", oldTurns + "\n" + line(`"kind":"turn","turn":"t1"`), good, "a turn \"t1\" already", ""},
		{"a turn that is its own parent", oldTurns + "\n" + line(`"kind":"turn","turn":"t3","parent":"t3"`), good, "left out", ""},
		{"the end of no turn", oldTurns + "\n" + line(`"kind":"ended","turn":"t9","state":"done"`), good, "no turn \"t9\"", ""},
		{"an end that ended", oldTurns + "\n" + line(`"kind":"ended","turn":"t1","state":"failed"`), good, "", ""},
		{"a known key of another kind", oldTurns + "\n" + line(`"kind":"lease","turn":"t2","attempt":"many"`), good, "left out", ""},
		{"a tool call without its number", oldTurns + "\n" + line(`"kind":"tool","turn":"t2","state":"started"`), good, "which tool call", ""},
		{"a later format", oldTurns + "\n" + `{"functai_conversation":2,"kind":"turn"}`, "", "", "conversation-format"},
	} {
		got, warned, err := read(c.text)
		if got != c.turns {
			t.Errorf("%s: turns %q, want %q", c.name, got, c.turns)
		}
		if all := strings.Join(warned, "\n"); c.warn == "" && all != "" || !strings.Contains(all, c.warn) {
			t.Errorf("%s: warned %q, want %q", c.name, all, c.warn)
		}
		if c.err != "" {
			failsWith(t, err, c.err, "later version")
		} else if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// FuzzReading: whatever a store holds, looking at it and going on with it does
// not panic, and does not go round in circles.
func FuzzReading(f *testing.F) {
	f.Add(oldTurns)
	f.Add(strings.Replace(oldTurns, `"saw":[]`, `"saw":[{"saw_of":"c1"},{"call":"c1"}]`, 1))
	f.Add(`{"functai_conversation":1,"kind":"turn","turn":"t","context":{"turns":["t","x"],"without":{"t":["a"]},"sections":[]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		store := &rawStore{parsed(text)}
		chat := converse(t, talker("a", &model{answer: echo}), store, pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{}})
		turns, err := chat.Turns(t.Context())
		if err != nil {
			return
		}
		for _, turn := range turns {
			_, _ = chat.Branch(t.Context(), turn.ID)
			_, _ = chat.Unfinished(t.Context(), turn.ID)
			_, _ = chat.Entries(t.Context(), turn.ID, "p", "k")
			_, _ = chat.Resume(t.Context(), turn.ID, pipeline.TurnOptions{})
		}
		_, _ = chat.Send(t.Context(), message("x"), pipeline.SendOptions{Busy: pipeline.BusyBranch})
	})
}
