package reports

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/pipeline"
)

// echo answers every question rightly but those that it does not know.
type echo struct{ unknown string }

func (m echo) Generate(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
	answer := "a" + strings.TrimPrefix(r.Site.Row, "r")
	if strings.Contains(m.unknown, r.Site.Row+" ") {
		answer = "no idea"
	}
	return &pipeline.Reply{Text: "<result>\n" + answer + "\n</result>\n", Finish: "stop"}, nil
}

type match struct{}

func (match) Name() string { return "match" }

func (match) Score(_ context.Context, row datasets.Row, call *pipeline.Call) (harness.Score, error) {
	if row.Labels["result"].Equal(call.Outputs["result"]) {
		return harness.Score{Value: 1}, nil
	}
	return harness.Score{Feedback: "expected " + row.Labels["result"].String()}, nil
}

// A real run, from its start to a report that is written again a day later.
func TestReportOfARun(t *testing.T) {
	program, err := pipeline.ParseProgram("program.yaml", []byte("name: answer\nmodule: quiz\ndescription: Answer the question.\n"+
		"inputs:\n  - {name: question, shape: {type: string}}\noutputs:\n  - {name: result, shape: {type: string}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var rows datasets.Rows
	for i := range 24 {
		rows = append(rows, datasets.Row{
			ID:     fmt.Sprintf("r%d", i),
			Inputs: datasets.Values{"question": datasets.Text(fmt.Sprintf("What is question %d?", i))},
			Labels: datasets.Values{"result": datasets.Text(fmt.Sprintf("a%d", i))},
		})
	}
	var ids atomic.Int64
	candidate := func(name, unknown string) harness.Candidate {
		return harness.Candidate{Name: name, Program: program, Caller: &pipeline.Caller{
			LM:    pipeline.LM{Name: "echo", Model: echo{unknown}},
			Now:   func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
			NewID: func() string { return fmt.Sprintf("call-%d", ids.Add(1)) },
		}}
	}
	plan, err := harness.Check(harness.Plan{
		Rows: rows, Metrics: []harness.Metric{match{}},
		Candidates: []harness.Candidate{candidate("old", "r1 r2 r3 r4 r5 r6 r7 r8 r9 "), candidate("new", "r2 r23 ")},
	})
	if err != nil {
		t.Fatal(err)
	}
	run, err := harness.StartRun(t.TempDir(), harness.RunInfo{Name: "quiz", Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, plan)
	if err != nil {
		t.Fatal(err)
	}
	evals, err := run.Evaluate(t.Context(), harness.Options{})
	if err != nil {
		t.Fatal(err)
	}
	facts := Facts{Exit: Exit{0, "done"}, Limits: datasets.Values{"retries": datasets.Int(3)}}
	r, err := New(run, evals, facts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Write(run.Dir, r, []string{"json", "html", "csv", "md", "junit"}); err != nil {
		t.Fatal(err)
	}
	changed := r.Evaluations[0].changes[0]
	if changed.Worse != 1 || changed.Better != 8 {
		t.Errorf("%d rows worse, %d better", changed.Worse, changed.Better)
	}
	worst := changed.Rows[0]
	if worst.ID != "r23" || worst.Inputs[0].Text != "What is question 23?" || worst.Before[0].Text != "a23" || worst.After[0].Text != "no idea" || worst.After[0].Feedback[0].Text != "expected a23" {
		t.Errorf("the row that got worse is %+v", worst)
	}
	if got, want := r.Evaluations[0].Verdicts[0].Sentence, "`new` is better than `old`: 8 of 24 rows better, 1 worse, 15 the same"; !strings.HasPrefix(got, want) {
		t.Errorf("got %s\nwant %s…", got, want)
	}

	again, err := harness.OpenRun(run.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if evals, err = again.Evaluations(); err != nil {
		t.Fatal(err)
	}
	stored, err := StoredFacts(run.Dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := New(again, evals, stored)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Formats() {
		was, err := os.ReadFile(filepath.Join(run.Dir, f.File))
		if err != nil {
			t.Fatal(err)
		}
		if now := written(t, second, f.Name); !bytes.Equal(was, now) {
			t.Errorf("%s written again differs:\n%s\nwas\n%s", f.File, now, was)
		}
	}
}
