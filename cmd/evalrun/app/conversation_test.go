package app

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/replay"
)

// keeper is a model that keeps what it is sent.
type keeper struct {
	mu   sync.Mutex
	sent []*pipeline.Request
}

func (k *keeper) Generate(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sent = append(k.sent, r)
	return &pipeline.Reply{Text: "<reply>\nYes, it has two divisors.\n</reply>", Finish: "stop"}, nil
}

// TestAskedAgain is what evalrun is for: a rated call whose host's plugin had
// replaced the instruction, with a section and two earlier turns of its
// conversation, is asked again with what it was shown of the conversation, and
// shaped by the environment that asks alone.
func TestAskedAgain(t *testing.T) {
	log, err := filepath.Abs("testdata/conversation/log.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	const spec = `
version: 1
records: LOG
program: school:tutor
models: {here: {provider: keeper}}
candidates: [{name: new, program: tutor.yaml, model: here}]
`
	const tutor = `
name: tutor
inputs: [{name: message, shape: {type: string}}]
outputs: [{name: reply, shape: {type: string}}]
state: {instructions: Answer in one short sentence.}
`
	today, err := pipeline.NewPlugin("careful", pipeline.Version("2.0.0"), pipeline.OnBeforeCall(
		func(_ context.Context, e *pipeline.CallEvent) (*pipeline.Change, error) {
			return &pipeline.Change{Sections: []string{"Answer carefully."}}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	const summary = "Earlier in this conversation (3 turns, summarized):\nAda is eleven."
	for _, c := range []struct {
		name, plugins, system string
	}{
		{"without the old plugin", "", "Answer in one short sentence.\n\n" + summary},
		{"under one of today", "plugins: [careful]\n", "Answer in one short sentence.\n\n" + summary + "\n\nAnswer carefully."},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			// The program's interface is that of the log, as it would be for the program that wrote it.
			p, err := pipeline.ParseProgram("tutor.yaml", []byte(tutor))
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			text = bytes.ReplaceAll(text, []byte(`"interface":"face"`), []byte(`"interface":"`+p.Interface()+`"`))
			write(t, filepath.Join(dir, "log.jsonl"), string(text))
			write(t, filepath.Join(dir, "tutor.yaml"), tutor)
			write(t, filepath.Join(dir, "evalrun.yaml"), strings.Replace(spec, "LOG", "log.jsonl", 1)+c.plugins)
			t.Chdir(dir)
			model := &keeper{}
			var out, messages bytes.Buffer
			code := Main(t.Context(), []string{"evalrun", "run", "evalrun.yaml"}, Stdio{In: strings.NewReader(""), Out: &out, Err: &messages},
				WithModel("keeper", model), WithPlugin(today))
			if code != 0 {
				t.Fatalf("exit %d: %s", code, &messages)
			}
			if len(model.sent) != 1 {
				t.Fatalf("%d requests, want 1", len(model.sent))
			}
			sent := model.sent[0]
			if want := c.system + "\n\nReply in exactly this form:\n<reply>\n...\n</reply>\n"; sent.System != want {
				t.Errorf("the system text is\n%q, want\n%q", sent.System, want)
			}
			var turns []string
			for _, m := range sent.Messages {
				turns = append(turns, m.Role+": "+m.Parts[0].Text)
			}
			want := []string{
				"user: <message>\nWhat is a prime?\n</message>\n", "assistant: <reply>\nA number with two divisors.\n</reply>",
				"user: <message>\nIs 1 a prime?\n</message>\n", "assistant: <reply>\nNo, it has one divisor.\n</reply>",
				"user: <message>\nAnd 2?\n</message>\n",
			}
			if !slices.Equal(turns, want) {
				t.Errorf("messages are\n%q, want\n%q", turns, want)
			}

			// The run's own record says what it was shown, and what shaped it now.
			runs, err := filepath.Glob("runs/*/calls.jsonl")
			if err != nil || len(runs) != 1 {
				t.Fatal(runs, err)
			}
			src, err := replay.Open(runs...)
			if err != nil {
				t.Fatal(err)
			}
			defer src.Close()
			for r, err := range src.Calls(replay.Want{All: true}) {
				if err != nil {
					t.Fatal(err)
				}
				if len(r.Saw) != 1 || r.Saw[0].SawOf != "0194235b-0000-7000-8000-00000000000c" || r.Conversation != nil {
					t.Errorf("the new record saw %+v in conversation %v, want what the rated call saw, in none", r.Saw, r.Conversation)
				}
				if !slices.Equal(r.Sections, []string{summary}) {
					t.Errorf("the new record's sections are %q", r.Sections)
				}
				if got, want := len(r.Changes), strings.Count(c.plugins, "careful"); got != want {
					t.Errorf("the new record has %d changes, want %d", got, want)
				}
				if r.Caller == nil || r.Caller.Evaluation == "" {
					t.Error("the new record does not say that an evaluation made it")
				}
			}
		})
	}

	// What the old host did is still readable.
	src, err := replay.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	rated, err := replay.Rows(t.Context(), src, replay.Query{Module: "school", Program: "tutor"})
	if err != nil || rated.Len() != 1 {
		t.Fatal(rated, err)
	}
	row, err := rated.At(0)
	if err != nil {
		t.Fatal(err)
	}
	const change = `[{"change":{"instruction":"Answer as a pirate.","sections":["Say arr."]},"hook":"before_call","plugin":"pirate","version":"0.1.0"}]`
	if got := row.Meta["changes"].Canonical(); got != change {
		t.Errorf("the row's recorded changes are %s, want %s", got, change)
	}
}

// toolUser is a model that calls the tool look and then answers with what it said.
type toolUser struct{}

func (toolUser) Generate(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
	last := r.Messages[len(r.Messages)-1]
	if last.Role != "tool" {
		return &pipeline.Reply{Calls: []pipeline.ToolCall{{ID: "1", Name: "look", Input: datasets.RawValue(`{"for":"x"}`)}}, Finish: "tool_calls"}, nil
	}
	_, said, _ := last.Parts[0].ToolResult()
	return &pipeline.Reply{Text: "<reply>\n" + said + "\n</reply>", Finish: "stop"}, nil
}

// TestWithTool: a tool that the command was built with runs when a row is asked
// again and the spec lets it, under the plugins of its environment; and never else.
func TestWithTool(t *testing.T) {
	log, err := os.ReadFile("testdata/conversation/log.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	const tutor = "name: tutor\ninputs: [{name: message, shape: {type: string}}]\noutputs: [{name: reply, shape: {type: string}}]\n"
	p, err := pipeline.ParseProgram("tutor.yaml", []byte(tutor))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		effects, tools string
		runs           bool
	}{
		{"effects: reads", "live", true},
		{"effects: reads", "{live: all}", true},
		{"effects: reads", "{live: [look]}", true},
		{"effects: reads", "recorded", false},
		{"effects: changes", "live", false},
		{"effects: changes", "{live: [look]}", true},
		{"description: undeclared", "{live: all}", false},
		{"description: undeclared", "{live: [look]}", true},
	} {
		t.Run(c.effects+", "+c.tools, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "log.jsonl"), strings.ReplaceAll(string(log), `"interface":"face"`, `"interface":"`+p.Interface()+`"`))
			write(t, filepath.Join(dir, "tutor.yaml"), tutor+"tools: [{name: look, "+c.effects+", parameters: {type: object}}]\n")
			write(t, filepath.Join(dir, "guard.star"), `plugin = Plugin("guard", tool_result = lambda r: Change(output = r.output + " divisors."))`)
			write(t, filepath.Join(dir, "evalrun.yaml"), "version: 1\nrecords: log.jsonl\nprogram: school:tutor\nplugins: [guard.star]\ntools: "+c.tools+
				"\nmodels: {here: {provider: user}}\ncandidates: [{name: new, program: tutor.yaml, model: here}]\n")
			t.Chdir(dir)
			ran := 0
			look := pipeline.ToolFunc(func(_ context.Context, _ pipeline.Invocation, input datasets.Value) (string, error) {
				ran++
				return "Yes, it has two", nil
			})
			var out, messages bytes.Buffer
			code := Main(t.Context(), []string{"evalrun", "run", "evalrun.yaml"}, Stdio{In: strings.NewReader(""), Out: &out, Err: &messages},
				WithModel("user", toolUser{}), WithTool("look", look))
			if c.runs && (ran != 1 || code != 0 || !strings.Contains(out.String(), "100.0%") || !strings.Contains(out.String(), "1 live")) {
				t.Errorf("it ran %d times, exit %d: %s%s", ran, code, &out, &messages)
			}
			if !c.runs && (ran != 0 || code == 0 || !strings.Contains(out.String(), "1 tool never recorded")) {
				t.Errorf("it ran %d times, and was not to; exit %d: %s%s", ran, code, &out, &messages)
			}
		})
	}
}

// TestManualSpec: the spec of the manual is read, and refused for nothing but
// the files it names.
func TestManualSpec(t *testing.T) {
	text, err := os.ReadFile("../../../docs/spec.md")
	if err != nil {
		t.Fatal(err)
	}
	_, yaml, ok := strings.Cut(string(text), "```yaml\n")
	yaml, _, ok2 := strings.Cut(yaml, "```")
	if !ok || !ok2 {
		t.Fatal("docs/spec.md has no spec")
	}
	file := filepath.Join(t.TempDir(), "evalrun.yaml")
	write(t, file, yaml)
	s, err := loadSpec(file, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	if e := s.Evaluations[0]; len(e.Candidates) != 3 || e.Margin != 0.03 || s.Limits.MaxErrors.share != 0.05 {
		t.Errorf("read as %+v", e)
	}
}
