package pipeline_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A handler of the wrong event does not compile.
func TestWrongEventDoesNotCompile(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the go tool is not there")
	}
	changes := map[string]string{
		"TurnStart": "*pipeline.Change", "Context": "*pipeline.Change", "BeforeCall": "*pipeline.Change", "Request": "*pipeline.Request",
		"ToolCall": "*pipeline.Change", "ToolResult": "*pipeline.Change", "TurnEnd": "",
	}
	events := map[string]string{
		"TurnStart": "TurnStartEvent", "Context": "ContextEvent", "BeforeCall": "CallEvent", "Request": "RequestEvent",
		"ToolCall": "ToolCallEvent", "ToolResult": "ToolResultEvent", "TurnEnd": "TurnEndEvent",
	}
	// check compiles handlers, each on a line of its own, and returns what is wrong.
	check := func(lines []string) string {
		dir, err := os.MkdirTemp("testdata", "compiled-*") // in the module, and in no build of all of it
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		source := "package compiled\nimport (\n\"context\"\n\"evalrun/pipeline\"\n)\nvar _ = []pipeline.Option{\n" + strings.Join(lines, "\n") + "\n}\n"
		if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		build := exec.Command("go", "build", "-gcflags=-e", "./"+filepath.ToSlash(dir))
		build.Env = append(os.Environ(), "GOFLAGS=") // with -v it would say what it builds
		out, err := build.CombinedOutput()
		if (err != nil) != strings.Contains(string(out), "cannot use") {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	handler := func(hook, event string) string {
		if change := changes[hook]; change != "" {
			return "pipeline.On" + hook + "(func(context.Context, *pipeline." + event + ") (" + change + ", error) { return nil, nil }),"
		}
		return "pipeline.On" + hook + "(func(context.Context, *pipeline." + event + ") error { return nil }),"
	}
	var right, wrong []string
	for hook, event := range events {
		right = append(right, handler(hook, event))
		for other, event := range events {
			if other != hook {
				wrong = append(wrong, handler(hook, event))
			}
		}
	}
	if out := check(right); out != "" {
		t.Errorf("handlers of the right events: %s", out)
	}
	if out := check(wrong); strings.Count(out, "cannot use") != len(wrong) {
		t.Errorf("of %d handlers of wrong events some compile:\n%s", len(wrong), out)
	}
}
