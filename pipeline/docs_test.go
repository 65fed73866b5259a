package pipeline_test

import (
	"os"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// Every YAML example of the manual is a program, and does what the manual says.
func TestManual(t *testing.T) {
	b, err := os.ReadFile("../docs/programs.md")
	if err != nil {
		t.Fatal(err)
	}
	programs := map[string]*pipeline.Program{}
	texts := map[string]string{}
	for _, block := range strings.Split(string(b), "\n```yaml\n")[1:] {
		text, _, _ := strings.Cut(block, "\n```\n")
		p := parse(t, text)
		if w := p.Warnings(); w != nil {
			t.Errorf("%s: %q", p.Name(), w)
		}
		programs[p.Name()], texts[p.Name()] = p, text
	}
	if len(programs) != 4 {
		t.Fatalf("there are %d examples", len(programs))
	}

	got, err := programs["classify"].Read("Here you go.\nwhy: They want it back.\nintent: refund\nEND", "stop", pipeline.ProbeFacts)
	if err != nil || got["intent"].String() != "refund" || got["why"].String() != "They want it back." {
		t.Errorf("classify reads %v, %v", got, err)
	}
	if stop := sampleRequest(t, programs["classify"]).Config["stop"].JSON(); stop != `["END"]` {
		t.Errorf("classify stops at %s", stop)
	}
	_, err = pipeline.ParseProgram("classify.yaml", []byte(strings.Replace(texts["classify"], "{message}\"", "{mesage}\"", 1)))
	if want := "\n" + err.Error() + "\n"; !strings.Contains(string(b), want) {
		t.Errorf("the manual does not show the message %s", want)
	}

	got, err = programs["date"].Read("It was yesterday. So the answer is (B).", "stop", pipeline.ProbeFacts)
	if err != nil || got["answer"].String() != "(B)" {
		t.Errorf("date reads %v, %v", got, err)
	}
	if text := sampleRequest(t, programs["date"]).Messages[0].Parts[0].Text; !strings.HasSuffix(text, "\nA: Let's think step by step.") {
		t.Errorf("date asks %q", text)
	}
	bound, err := programs["answer"].Bind(datasets.Values{"message": datasets.Text("x")})
	if err != nil || bound["tone"].String() != "kind" {
		t.Errorf("answer binds %v, %v", bound, err)
	}

	// Every code of an unread reply is in its table.
	for _, code := range []string{"parse-missing", "parse-ambiguous", "parse-choice", "parse-json", "format-read-error", "parse-shape", "parse-pattern", "parse-truncated"} {
		if !strings.Contains(string(b), "| `"+code+"` |") {
			t.Errorf("the manual lacks %s", code)
		}
	}
}
