package plugins_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/plugins"
)

func manual(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../docs/plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// blocks are the manual's examples in a language.
func blocks(t *testing.T, language string, n int) []string {
	t.Helper()
	var list []string
	for _, part := range strings.Split(manual(t), "\n```"+language+"\n")[1:] {
		text, _, _ := strings.Cut(part, "\n```\n")
		list = append(list, text+"\n")
	}
	if len(list) != n {
		t.Fatalf("the manual has %d examples in %s, not %d", len(list), language, n)
	}
	return list
}

func sameAsFile(t *testing.T, block, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), block) {
		t.Errorf("%s does not have the manual's example:\n%s", path, block)
	}
}

// Every example of the manual is a plugin, and does what the manual says.
func TestManual(t *testing.T) {
	sameAsFile(t, blocks(t, "go", 1)[0], "manual_example_test.go")
	sameAsFile(t, blocks(t, "python", 1)[0], careful)
	star := blocks(t, "starlark", 4)
	sameAsFile(t, star[1], "../examples/plugins/no_deletes.star")
	sameAsFile(t, star[3], "../examples/plugins/modes.star")

	inGo, err := noDeletes()
	if err != nil {
		t.Fatal(err)
	}
	both := &deskModel{wishes: []pipeline.ToolCall{wish("delete_file", `{}`), wish("send_mail", `{"to":"ann"}`)}}
	section := `before_call {"sections":["Answer carefully. Cite the file you read."]}`
	blocked := `tool_call {"block":"deleting is not allowed here"}`
	for _, c := range []struct {
		plugin *pipeline.Plugin
		m      *deskModel
		notes  pipeline.Notebook
		want   string // the changes
		code   string // of the call's failure
	}{
		{loadText(t, star[0]), &deskModel{}, nil, "careful 1.0.0 " + section, ""},
		{loadText(t, star[1]), &deskModel{wishes: both.wishes}, nil, "no-deletes 1.0.0 " + blocked, "approval-required"},
		{loadText(t, star[2]), &deskModel{}, nil, `cooler 0.0.0 request {"request":"replaced"}`, ""},
		{loadText(t, star[3]), &deskModel{}, nil, "modes 1.0.0 " + section, ""},
		{loadText(t, star[3]), &deskModel{}, &book{}, `modes 1.0.0 before_call {"sections":["Answer in one sentence."]}`, ""},
		{inGo, &deskModel{wishes: both.wishes}, nil, "no-deletes 1.0.0 " + section + "\nno-deletes 1.0.0 " + blocked, ""},
	} {
		call := asked(t, c.m, c.plugin, c.notes)
		code := ""
		if call.Failure != nil {
			code = call.Failure.Code
		}
		if changes(call) != c.want || code != c.code {
			t.Errorf("%s: %s, %v", c.plugin, changes(call), call.Failure)
		}
		if c.plugin.Name() == "cooler" && c.m.sent[0].Config["temperature"].JSON() != "0" {
			t.Errorf("cooler sends %v", c.m.sent[0].Config)
		}
	}
}

// The manual's table has the fields that events have, and each field is explained.
func TestManualFields(t *testing.T) {
	fields := map[pipeline.Hook][]string{}
	for _, e := range []pipeline.Event{
		&pipeline.TurnStartEvent{}, &pipeline.ContextEvent{}, &pipeline.RequestEvent{}, &pipeline.ToolCallEvent{}, &pipeline.ToolResultEvent{}, &pipeline.TurnEndEvent{},
	} {
		fields[e.Hook()] = e.Fields()
	}
	p, err := pipeline.NewPlugin("looks", pipeline.On("before_call", pipeline.DataHandler(func(_ context.Context, e pipeline.Event) (datasets.Value, error) {
		fields[e.Hook()] = e.Fields()
		return datasets.Value{}, nil
	})))
	if err != nil {
		t.Fatal(err)
	}
	asked(t, &deskModel{}, p, nil)

	rows := map[string][]string{}
	_, table, _ := strings.Cut(manual(t), "\n## Hooks\n")
	table, _, _ = strings.Cut(table, "\n\nWhat the fields of events are:")
	for line := range strings.SplitSeq(table, "\n") {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| `") {
			rows[strings.Trim(cells[0], "| ")] = cells
		}
	}
	explained := manual(t)
	_, explained, _ = strings.Cut(explained, "What the fields of events are:")
	explained, _, _ = strings.Cut(explained, "What the fields of a change are")
	for _, hook := range pipeline.Hooks() {
		row := rows["`"+string(hook)+"`"]
		if len(row) < 4 {
			t.Errorf("the table lacks %s", hook)
			continue
		}
		got := strings.Split(strings.Trim(row[2], "`"), "`, `")
		if !slices.Equal(got, fields[hook]) {
			t.Errorf("%s: the manual has the fields %v, the event %v", hook, got, fields[hook])
		}
		for _, name := range fields[hook] {
			if !strings.Contains(explained, "`"+name+"`") {
				t.Errorf("the manual does not explain %s", name)
			}
		}
	}
}

// The manual has the codes, and the example files load.
func TestManualFiles(t *testing.T) {
	for _, code := range []string{"plugin-load", "plugin-name", "plugin-api", "plugin-hook"} {
		if !strings.Contains(manual(t), "| `"+code+"` |") {
			t.Errorf("the manual lacks %s", code)
		}
	}
	for _, name := range []string{"careful.py", "modes.star", "no_deletes.star"} {
		l := plugins.NewLoader(plugins.LoadOptions{AllowExec: true})
		if strings.HasSuffix(name, ".py") {
			needsPython(t)
		}
		if _, _, err := l.Load(t.Context(), "../examples/plugins/"+name); err != nil {
			t.Error(err)
		}
		_ = l.Close()
	}
}
