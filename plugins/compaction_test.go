package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/plugins"
)

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

func summaries(t testing.TB, c *pipeline.Conversation) []string {
	t.Helper()
	var list []string
	for _, e := range must(c.Entries(t.Context(), "", "compaction", "summary"))(t) {
		list = append(list, e.Data.Canonical())
	}
	return list
}

// With keep 2 and every 2, the fifth turn is the first with more than four open
// ones: three are folded, two stay.
func TestCompaction(t *testing.T) {
	m := says("fine")
	p := must(plugins.Compaction(plugins.CompactionOptions{Keep: new(2), Every: 2, Summarize: folds}))(t)
	chat := converse(t, scriptCaller(m), plainProgram(t), pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{p}})
	var ids []string
	for i, want := range []struct{ turns, section string }{
		{"", ""},
		{"a", ""},
		{"a b", ""},
		{"a b c", ""},
		{"a b c d", ""},
		{"d e", "Earlier in this conversation (3 turns, summarized):\n<a b c>"},
		{"d e f", "Earlier in this conversation (3 turns, summarized):\n<a b c>"},
		{"d e f g", "Earlier in this conversation (3 turns, summarized):\n<a b c>"},
		{"g h", "Earlier in this conversation (6 turns, summarized):\n<<a b c> d e f>"},
	} {
		turn := send(t, chat, string(rune('a'+i)), pipeline.SendOptions{})
		ids = append(ids, turn.ID)
		if turns, section := m.shownIn(t); turns != want.turns || section != want.section {
			t.Errorf("turn %d was shown %q and %q, want %q and %q", i+1, turns, section, want.turns, want.section)
		}
		switch {
		case want.section == "" && turn.Record.Sections != nil, want.section != "" && !slices.Equal(turn.Record.Sections, []string{want.section}):
			t.Errorf("turn %d: the call's sections are %q", i+1, turn.Record.Sections)
		}
	}
	equalLists(t, "entries", summaries(t, chat), []string{
		fmt.Sprintf(`{"text":"<a b c>","through":%q,"turns":3}`, ids[2]),
		fmt.Sprintf(`{"text":"<<a b c> d e f>","through":%q,"turns":6}`, ids[5]),
	})

	// A branch from before the first summary's turn sees none; one from after it
	// sees the first.
	send(t, chat, "x", pipeline.SendOptions{From: ids[3]})
	if turns, section := m.shownIn(t); turns != "a b c d" || section != "" {
		t.Errorf("a branch from turn 4 was shown %q and %q", turns, section)
	}
	send(t, chat, "y", pipeline.SendOptions{From: ids[6]})
	if turns, section := m.shownIn(t); turns != "d e f g" || !strings.HasPrefix(section, "Earlier in this conversation (3 turns") {
		t.Errorf("a branch from turn 7 was shown %q and %q", turns, section)
	}
}

// A rule that shows only the last turns may have dropped all that is covered;
// what is left is shown all the same.
func TestCompactionWithARule(t *testing.T) {
	m := says("fine")
	p := must(plugins.Compaction(plugins.CompactionOptions{Keep: new(3), Every: 1, Summarize: folds}))(t)
	chat := converse(t, scriptCaller(m), plainProgram(t), pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{p}, Last: new(2)})
	for _, text := range strings.Split("a b c d e f", " ") {
		send(t, chat, text, pipeline.SendOptions{})
	}
	if turns, section := m.shownIn(t); turns != "d e" || section != "Earlier in this conversation (2 turns, summarized):\n<a b>" {
		t.Errorf("shown %q and %q", turns, section)
	}
}

// Keeping none shows none.
func TestCompactionOfAll(t *testing.T) {
	m := says("fine")
	p := must(plugins.Compaction(plugins.CompactionOptions{Keep: new(0), Every: 1, Summarize: folds}))(t)
	chat := converse(t, scriptCaller(m), plainProgram(t), pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{p}})
	for _, text := range strings.Split("a b c", " ") {
		send(t, chat, text, pipeline.SendOptions{})
	}
	if turns, section := m.shownIn(t); turns != "" || !strings.HasSuffix(section, "\n<a b>") {
		t.Errorf("shown %q and %q", turns, section)
	}
}

// A summary that fails or is blank is reported, and nothing is kept or lost; nor
// is anything folded at the end of a turn that failed.
func TestCompactionFails(t *testing.T) {
	for name, summarize := range map[string]plugins.Summarize{
		"an error": func(context.Context, string, []datasets.Values) (string, error) { return "x", errors.New("no paper") },
		"blank":    func(context.Context, string, []datasets.Values) (string, error) { return " \n", nil },
	} {
		t.Run(name, func(t *testing.T) {
			m := says("fine")
			var warned []string
			p := must(plugins.Compaction(plugins.CompactionOptions{Keep: new(0), Every: 1, Summarize: summarize}))(t)
			chat := converse(t, scriptCaller(m), plainProgram(t), pipeline.ConversationOptions{
				Plugins: []*pipeline.Plugin{p}, Warn: func(s string) { warned = append(warned, s) },
			})
			for _, text := range strings.Split("a b c d", " ") {
				send(t, chat, text, pipeline.SendOptions{})
			}
			if turns, section := m.shownIn(t); turns != "a b c" || section != "" {
				t.Errorf("shown %q and %q", turns, section)
			}
			if len(warned) != 1 || !strings.Contains(warned[0], "compaction") || summaries(t, chat) != nil {
				t.Errorf("warned %q, kept %q", warned, summaries(t, chat))
			}
		})
	}
}

// A host's entry that is no summary stops the turn, rather than showing another
// conversation than the one there was; one about a turn of elsewhere is no
// summary of this branch.
func TestCompactionOtherEntries(t *testing.T) {
	m := says("fine")
	p := must(plugins.Compaction(plugins.CompactionOptions{Keep: new(1), Every: 1, Summarize: folds}))(t)
	chat := converse(t, scriptCaller(m), plainProgram(t), pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{p}})
	send(t, chat, "a", pipeline.SendOptions{})
	remember := func(data string) {
		if err := chat.Remember(t.Context(), "", "compaction", "summary", datasets.RawValue(data)); err != nil {
			t.Fatal(err)
		}
	}
	remember(`{"through":"elsewhere","text":"x","turns":1}`)
	send(t, chat, "b", pipeline.SendOptions{})
	if turns, section := m.shownIn(t); turns != "a" || section != "" {
		t.Errorf("shown %q and %q", turns, section)
	}
	send(t, chat, "c", pipeline.SendOptions{})
	send(t, chat, "d", pipeline.SendOptions{})
	if turns, section := m.shownIn(t); turns != "c" || section != "Earlier in this conversation (2 turns, summarized):\n<a b>" {
		t.Errorf("shown %q and %q", turns, section)
	}
	remember(`"what?"`)
	_, err := chat.Send(t.Context(), message("e"), pipeline.SendOptions{})
	if f, ok := errors.AsType[*pipeline.Failure](err); !ok || f.Code != "plugin-failed" || f.Plugin != "compaction" {
		t.Errorf("got %v, want plugin-failed of compaction", err)
	}
}

// Without a function, the default program is asked: by the model that is named,
// tagged with the turn that ended.
func TestCompactionAsks(t *testing.T) {
	writer := &script{answer: func(*pipeline.Request) *pipeline.Reply {
		return &pipeline.Reply{Text: "<summary>\nThey said a and b.\n</summary>", Finish: "stop"}
	}}
	m := says("fine")
	caller := scriptCaller(m)
	caller.Lookup = func(name string) (pipeline.LM, error) {
		if name != "writer" {
			return pipeline.LM{}, fmt.Errorf("no model %q", name)
		}
		return pipeline.LM{Name: "writer", Model: writer}, nil
	}
	var asked []*pipeline.Call
	o := plugins.CompactionOptions{
		Keep: new(0), Every: 1, Caller: caller, LM: "writer", Name: "short",
		Asked: func(c *pipeline.Call) { asked = append(asked, c) },
	}
	p := must(plugins.Compaction(o))(t)
	chat := converse(t, caller, plainProgram(t), pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{p}})
	send(t, chat, "a", pipeline.SendOptions{})
	second := send(t, chat, "b", pipeline.SendOptions{})
	send(t, chat, "c", pipeline.SendOptions{})
	if turns, section := m.shownIn(t); turns != "" || section != "Earlier in this conversation (2 turns, summarized):\nThey said a and b." {
		t.Errorf("shown %q and %q", turns, section)
	}
	if len(asked) != 1 || asked[0].Failure != nil || asked[0].LM != "writer" || asked[0].Program.Name() != "summarize_conversation" || asked[0].Tags["compaction"].String() != second.ID {
		t.Fatalf("the summarizer was asked %+v", asked)
	}
	if got, want := asked[0].Inputs.Object().Canonical(), `{"earlier_summary":"","new_turns":[{"message":"a","photo":"","result":"fine"},{"message":"b","photo":"","result":"fine"}]}`; got != want {
		t.Errorf("it was given %s, want %s", got, want)
	}
	o.LM = "nobody"
	if _, err := plugins.Compaction(o); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("a model nobody knows: %v", err)
	}
}

func TestCompactionRefuses(t *testing.T) {
	caller := scriptCaller(says(""))
	for _, c := range []struct {
		o   plugins.CompactionOptions
		say string
	}{
		{plugins.CompactionOptions{}, "nobody summarizes"},
		{plugins.CompactionOptions{Summarize: folds, Keep: new(-1)}, "keep -1"},
		{plugins.CompactionOptions{Summarize: folds, Every: -1}, "every -1"},
		{plugins.CompactionOptions{Summarize: folds, Caller: caller}, "there is a function"},
		{plugins.CompactionOptions{Summarize: folds, Name: "Short"}, "plugin-name"},
		{plugins.CompactionOptions{Caller: caller, LM: "other"}, `no model "other"`},
	} {
		if _, err := plugins.Compaction(c.o); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("Compaction(%+v): %v, want an error that says %q", c.o, err, c.say)
		}
	}
	if _, err := plugins.AskSummarizer(caller, plainProgram(t), nil); err != nil {
		t.Errorf("a program whose other inputs are optional: %v", err)
	}
	if _, err := plugins.AskSummarizer(caller, parseYAML(t, "name: one\ninputs: [{name: a, shape: {type: string}}]\noutputs: [{name: b, shape: {type: string}}]\n"), nil); err == nil {
		t.Error("a program of one input summarizes")
	}
	if w := plugins.Summarizer().Warnings(); w != nil {
		t.Errorf("the default program: %q", w)
	}
}
