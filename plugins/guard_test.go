package plugins_test

import (
	"strings"
	"testing"

	"evalrun/pipeline"
	"evalrun/plugins"
)

func TestGuard(t *testing.T) {
	const blocked = "This call was blocked (guard): "
	for _, c := range []struct {
		name  string
		rules []plugins.GuardRule
		call  pipeline.ToolCall
		want  string // what the model is told
	}{
		{"by name", []plugins.GuardRule{{Tools: []string{"file"}, Reason: "no files"}}, toolCall("file", `{}`), blocked + "no files"},
		{"by path ending", []plugins.GuardRule{{Tools: []string{"assistant/file"}}}, toolCall("file", `{}`), blocked + "it is not allowed here"},
		{"another tool", []plugins.GuardRule{{Tools: []string{"email", "le"}, Reason: "r"}}, toolCall("file", `{}`), "ok"},
		{"the first rule's reason", []plugins.GuardRule{
			{Tools: []string{"search"}, Reason: "one"}, {Tools: []string{"file"}, Reason: "two"}, {Tools: []string{"file"}, Reason: "three"},
		}, toolCall("file", `{}`), blocked + "two"},
		{"by argument, any tool", []plugins.GuardRule{{Arguments: map[string]string{"to": `@rival\.example$`}, Reason: "r"}}, toolCall("send_email", `{"to":"a@rival.example"}`), blocked + "r"},
		{"the argument is fine", []plugins.GuardRule{{Arguments: map[string]string{"to": `@rival\.example$`}, Reason: "r"}}, toolCall("send_email", `{"to":"a@rival.example.org"}`), "ok"},
		{"the argument is not there", []plugins.GuardRule{{Arguments: map[string]string{"to": ``}, Reason: "r"}}, toolCall("send_email", `{"cc":""}`), "ok"},
		{"by pointer", []plugins.GuardRule{{Arguments: map[string]string{"/files/1/a~1b": `^/etc/`}, Reason: "r"}}, toolCall("file", `{"files":[{},{"a/b":"/etc/passwd"}]}`), blocked + "r"},
		{"a pointer into nothing", []plugins.GuardRule{{Arguments: map[string]string{"/files/2/name": ``}, Reason: "r"}}, toolCall("file", `{"files":[{},{"name":"x"}]}`), "ok"},
		{"an argument that is no text", []plugins.GuardRule{{Arguments: map[string]string{"amount": `^\d{4,}$`}, Reason: "r"}}, toolCall("file", `{"amount":1000}`), blocked + "r"},
		{"a member named twice", []plugins.GuardRule{{Arguments: map[string]string{"to": `^bad$`}, Reason: "r"}}, toolCall("file", `{"to":"bad","to":"good"}`), blocked + "r"},
		{"all that a rule sets", []plugins.GuardRule{{Tools: []string{"file"}, Arguments: map[string]string{"a": "1", "b": "2"}, Reason: "r"}}, toolCall("file", `{"a":1,"b":3}`), "ok"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := callsOnce(c.call)
			caller := scriptCaller(m)
			call := askWith(t, caller, parseYAML(t, assistantYAML), "x", must(plugins.Guard(c.rules...))(t))
			if call.Failure != nil {
				t.Fatal(call.Failure)
			}
			equalLists(t, "told", m.told(), []string{c.want})
			if ran := len(caller.Tools.(*toolbox).ran) == 1; ran != (c.want == "ok") {
				t.Errorf("the tool ran: %v", ran)
			}
		})
	}
}

func TestGuardRefuses(t *testing.T) {
	if _, err := plugins.Guard(); err == nil || !strings.Contains(err.Error(), "guard: it has no rule") {
		t.Errorf("Guard(): %v", err)
	}
	for _, c := range []struct {
		rule plugins.GuardRule
		say  string
	}{
		{plugins.GuardRule{Reason: "r"}, "block every tool"},
		{plugins.GuardRule{Tools: []string{""}}, "names no tool"},
		{plugins.GuardRule{Tools: []string{"/file"}}, "names no tool"},
		{plugins.GuardRule{Arguments: map[string]string{"to": "("}}, `the pattern of "to"`},
	} {
		if _, err := plugins.Guard(plugins.GuardRule{Tools: []string{"x"}}, c.rule); err == nil || !strings.Contains(err.Error(), c.say) || !strings.Contains(err.Error(), "rule 2") {
			t.Errorf("Guard(%+v): %v, want an error of rule 2 that says %q", c.rule, err, c.say)
		}
	}
}
