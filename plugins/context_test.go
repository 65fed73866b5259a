package plugins_test

import (
	"errors"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/plugins"
)

func sendPhoto(t testing.TB, c *pipeline.Conversation, text, photo string) *pipeline.Turn {
	t.Helper()
	in := message(text)
	in["photo"] = datasets.Text(photo)
	turn := must(c.Send(t.Context(), in, pipeline.SendOptions{}))(t)
	if turn.State != pipeline.TurnDone {
		t.Fatalf("the turn is %s: %v", turn.State, turn.Failure)
	}
	return turn
}

// Bulky fields are left out of earlier turns by size in code points or by name,
// but not of the latest ones.
func TestBudget(t *testing.T) {
	for _, c := range []struct {
		name string
		o    plugins.BudgetOptions
		want string // the photos that the fourth turn is shown
	}{
		{"by size", plugins.BudgetOptions{Size: 5}, "ååå 12"}, // the answers are of four
		{"by name", plugins.BudgetOptions{Fields: []string{"photo"}}, ""},
		{"the latest whole", plugins.BudgetOptions{Fields: []string{"photo"}, Whole: 2}, "PPPPPP 12"},
		{"no answer left", plugins.BudgetOptions{Fields: []string{"result"}, Whole: 1}, "12"},
		{"more whole than there are", plugins.BudgetOptions{Size: 1, Whole: 9}, "ååå PPPPPP 12"},
		{"another field", plugins.BudgetOptions{Fields: []string{"video"}}, "ååå PPPPPP 12"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := says("fine")
			chat := converse(t, scriptCaller(m), plainProgram(t), pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{must(plugins.Budget(c.o))(t)}})
			for _, photo := range []string{"ååå", "PPPPPP", "12"} {
				sendPhoto(t, chat, "look", photo)
			}
			last := sendPhoto(t, chat, "and?", "now")
			var shown []string
			for _, msg := range m.sent[3].Messages[:len(m.sent[3].Messages)-1] {
				if _, text, ok := strings.Cut(msg.Parts[0].Text, "<photo>\n"); ok {
					text, _, _ = strings.Cut(text, "\n")
					shown = append(shown, text)
				}
			}
			if got := strings.Join(shown, " "); got != c.want {
				t.Errorf("shown %q, want %q", got, c.want)
			}
			if changed := last.Record.Changes != nil; changed != (c.want != "ååå PPPPPP 12") {
				t.Errorf("changes: %q", changesOf(last.Record))
			}
		})
	}
	for _, o := range []plugins.BudgetOptions{{}, {Whole: 3}, {Size: -1}, {Size: 1, Whole: -1}, {Fields: []string{""}}} {
		if _, err := plugins.Budget(o); err == nil || !strings.HasPrefix(err.Error(), "budget: ") {
			t.Errorf("Budget(%+v): %v, want an error", o, err)
		}
	}
}

// The mode is the last one kept on the branch; outside a conversation it is the
// initial one.
func TestModes(t *testing.T) {
	sections := map[string]string{"careful": "Cite the file you read.", "brief": "One sentence."}
	p := must(plugins.Modes(sections, "brief"))(t)
	sections["brief"] = "changed after"
	m := says("fine")
	caller := scriptCaller(m)
	mode := func() string {
		system := m.sent[len(m.sent)-1].System
		for _, section := range []string{"Cite the file you read.", "One sentence."} {
			if strings.Contains(system, "\n\n"+section+"\n\n") {
				return section
			}
		}
		return ""
	}
	call := askWith(t, caller, plainProgram(t), "x", p)
	if got := mode(); got != "One sentence." {
		t.Errorf("a plain call has the section %q", got)
	}
	equalLists(t, "changes", changesOf(call), []string{`modes 1.0.0 before_call {"sections":["One sentence."]}`})
	caller.Process = pipeline.Layer{}

	chat := converse(t, caller, plainProgram(t), pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{p}})
	set := func(turn string, v datasets.Value) {
		if err := chat.Remember(t.Context(), turn, plugins.ModesPlugin, plugins.ModeEntry, v); err != nil {
			t.Fatal(err)
		}
	}
	one := send(t, chat, "a", pipeline.SendOptions{})
	set(one.ID, datasets.Text("careful"))
	two := send(t, chat, "b", pipeline.SendOptions{})
	if got := mode(); got != "Cite the file you read." {
		t.Errorf("in careful mode the section is %q", got)
	}
	set(two.ID, datasets.Null)
	send(t, chat, "c", pipeline.SendOptions{})
	if got := mode(); got != "" {
		t.Errorf("in no mode the section is %q", got)
	}
	send(t, chat, "d", pipeline.SendOptions{From: one.ID})
	if got := mode(); got != "Cite the file you read." {
		t.Errorf("on another branch the section is %q", got)
	}
	set("", datasets.Text("carefull"))
	turn, err := chat.Send(t.Context(), message("e"), pipeline.SendOptions{})
	if err != nil || turn.Failure == nil || turn.Failure.Code != "plugin-failed" || !strings.Contains(turn.Failure.Message, "brief, careful") {
		t.Errorf("an unknown mode: %v, %+v", err, turn)
	}

	for _, c := range []struct {
		sections map[string]string
		initial  string
	}{{nil, ""}, {map[string]string{}, ""}, {sections, "loud"}, {map[string]string{"": "x"}, ""}, {map[string]string{"x": " "}, ""}} {
		if _, err := plugins.Modes(c.sections, c.initial); err == nil || errors.As(err, new(*pipeline.Failure)) {
			t.Errorf("Modes(%v, %q): %v, want an error", c.sections, c.initial, err)
		}
	}
}
