package plugins_test

import (
	"context"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/plugins"
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

// A rule asks about tools by their effects, or by name, path or path ending in
// whole segments.
func TestApprovalRules(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  plugins.Rule
		asked []string
	}{
		{"unset", plugins.Rule{}, nil},
		{"changes", plugins.AboutChanges(), []string{"send_email", "file"}}, // undeclared may change anything
		{"all", plugins.AboutAll(), []string{"send_email", "search", "file"}},
		{"a name", plugins.AboutTools("send_email"), []string{"send_email"}},
		{"a path", plugins.AboutTools("assistant/search"), []string{"search"}},
		{"part of a name", plugins.AboutTools("email", "sea", "assistant"), nil},
		{"more than the path", plugins.AboutTools("outer/assistant/search"), nil},
		{"part of a segment", plugins.AboutTools("ant/search"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked []string
			caller := scriptCaller(allTools())
			caller.Approval = must(plugins.Approval(c.rule, allow(&asked)))(t)
			call := askWith(t, caller, parseYAML(t, assistantYAML), "x")
			if call.Failure != nil {
				t.Fatal(call.Failure)
			}
			equalLists(t, "asked", asked, c.asked)
			if ran := caller.Tools.(*toolbox).ran; len(ran) != 3 {
				t.Errorf("ran %q, want all three tools", ran)
			}
			if call.Changes != nil {
				t.Errorf("asking left changes: %v", changesOf(call))
			}
		})
	}
}

func TestApprovalRefusal(t *testing.T) {
	var asked []string
	m := allTools()
	caller := scriptCaller(m)
	caller.Approval = must(plugins.Approval(plugins.AboutChanges(), refuse(&asked)))(t)
	call := askWith(t, caller, parseYAML(t, assistantYAML), "x")
	if call.Failure != nil {
		t.Fatal(call.Failure)
	}
	equalLists(t, "told", m.told(), []string{
		"The person did not allow this call. Reason: not today", "ok", "The person did not allow this call. Reason: not today",
	})
	equalLists(t, "ran", caller.Tools.(*toolbox).ran, []string{`search {"q":"b"}`})
}

// With nobody to ask, a plain call fails before the tool runs.
func TestApprovalNobody(t *testing.T) {
	caller := scriptCaller(allTools())
	caller.Approval = must(plugins.Approval(plugins.AboutTools("search"), nil))(t)
	call := askWith(t, caller, parseYAML(t, assistantYAML), "x")
	if call.Failure == nil || call.Failure.Code != "approval-required" {
		t.Fatalf("got %v, want approval-required", call.Failure)
	}
	equalLists(t, "ran", caller.Tools.(*toolbox).ran, []string{`send_email {"to":"a"}`})
}

// In a conversation the turn waits for a person; their answer is found when the
// turn is resumed, and nothing is asked or run twice.
func TestApprovalWaits(t *testing.T) {
	m := allTools()
	caller := scriptCaller(m)
	caller.Approval = must(plugins.Approval(plugins.AboutTools("search"), nil))(t)
	chat := converse(t, caller, parseYAML(t, assistantYAML), pipeline.ConversationOptions{})
	turn := send(t, chat, "x", pipeline.SendOptions{})
	if turn.State != pipeline.TurnWaiting || len(turn.Waiting) != 1 || turn.Waiting[0].Plugin != "approval" || turn.Waiting[0].Reason == "" {
		t.Fatalf("got %+v, want a turn that waits for the approval plugin's question", turn)
	}
	q := turn.Waiting[0]
	if err := chat.Answer(t.Context(), turn.ID, q.Invocation, q.Plugin, pipeline.Answer{Allowed: true, By: "kim"}); err != nil {
		t.Fatal(err)
	}
	turn = must(chat.Resume(t.Context(), turn.ID, pipeline.TurnOptions{}))(t)
	if turn.State != pipeline.TurnDone {
		t.Fatalf("got %+v, want a turn that is done", turn)
	}
	equalLists(t, "ran", caller.Tools.(*toolbox).ran, []string{`send_email {"to":"a"}`, `search {"q":"b"}`, "file {}"})
}

// A person's no stands also when the turn is resumed without the plugin that
// asked.
func TestRefusalStands(t *testing.T) {
	caller := scriptCaller(allTools())
	caller.Approval = must(plugins.Approval(plugins.AboutTools("send_email"), nil))(t)
	store := pipeline.NewMemoryStore()
	program := parseYAML(t, assistantYAML)
	chat := must(caller.Converse(program, "alex", store, pipeline.ConversationOptions{}))(t)
	turn := send(t, chat, "x", pipeline.SendOptions{})
	if turn.State != pipeline.TurnWaiting {
		t.Fatalf("got %+v, want a turn that waits", turn)
	}
	if err := chat.Answer(t.Context(), turn.ID, turn.Waiting[0].Invocation, "approval", pipeline.Answer{Reason: "not now"}); err != nil {
		t.Fatal(err)
	}
	bare := scriptCaller(allTools())
	again := must(bare.Converse(program, "alex", store, pipeline.ConversationOptions{}))(t)
	turn = must(again.Resume(t.Context(), turn.ID, pipeline.TurnOptions{}))(t)
	if turn.State != pipeline.TurnDone {
		t.Fatalf("got %+v, want a turn that is done", turn)
	}
	equalLists(t, "ran", bare.Tools.(*toolbox).ran, []string{`search {"q":"b"}`, "file {}"})
}

func TestParseRule(t *testing.T) {
	for _, c := range []struct {
		text string
		want plugins.Rule
		say  string // part of the error
	}{
		{"null", plugins.Rule{}, ""},
		{`"changes"`, plugins.AboutChanges(), ""},
		{`"all"`, plugins.AboutAll(), ""},
		{`["changes"]`, plugins.AboutTools("changes"), ""},
		{`["search","a/b"]`, plugins.AboutTools("search", "a/b"), ""},
		{`"search"`, plugins.Rule{}, `"changes", "all" or a list`},
		{`true`, plugins.Rule{}, `"changes", "all" or a list`},
		{`[1]`, plugins.Rule{}, "by name or path"},
		{`[]`, plugins.Rule{}, "it names no tool"},
		{`[""]`, plugins.Rule{}, "names no tool"},
		{`["search/"]`, plugins.Rule{}, "names no tool"},
	} {
		got, err := plugins.ParseRule(datasets.RawValue(c.text))
		switch {
		case c.say != "" && (err == nil || !strings.Contains(err.Error(), c.say)):
			t.Errorf("%s: error %v, want one that says %q", c.text, err, c.say)
		case c.say == "" && (err != nil || !sameRule(t, got, c.want)):
			t.Errorf("%s: got %+v, %v; want %+v", c.text, got, err, c.want)
		}
	}
	if got, err := plugins.ParseRule(datasets.Value{}); err != nil || !sameRule(t, got, plugins.Rule{}) {
		t.Errorf("no value: got %+v, %v", got, err)
	}
}

func TestApprovalRefuses(t *testing.T) {
	if _, err := plugins.Approval(plugins.AboutTools("search", " "), nil); err == nil || !strings.HasPrefix(err.Error(), "approval: ") {
		t.Errorf("a blank name: %v, want an error", err)
	}
}

// sameRule compares what two rules ask about.
func sameRule(t *testing.T, a, b plugins.Rule) bool {
	asks := func(r plugins.Rule) string {
		var asked []string
		caller := scriptCaller(allTools())
		caller.Approval = must(plugins.Approval(r, allow(&asked)))(t)
		askWith(t, caller, parseYAML(t, assistantYAML), "x")
		return strings.Join(asked, " ")
	}
	return asks(a) == asks(b)
}

func TestApprovalOfNothing(t *testing.T) {
	if _, err := plugins.Approval(plugins.AboutTools(), nil); err == nil || !strings.Contains(err.Error(), "approval: it names no tool") {
		t.Errorf("Approval(AboutTools(), nil): %v", err)
	}
	if _, err := plugins.Approval(plugins.Rule{}, nil); err != nil {
		t.Errorf("the rule that asks about none: %v", err)
	}
}
