package harness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// modelFunc is a model that is a function of the request.
type modelFunc func(context.Context, *pipeline.Request) (*pipeline.Reply, error)

func (f modelFunc) Generate(ctx context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
	return f(ctx, r)
}

// says is a model that answers what say makes of the site, in the xml layout.
func says(say func(pipeline.Site) string) pipeline.Model {
	return modelFunc(func(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
		return reply(say(r.Site)), nil
	})
}

func reply(answer string) *pipeline.Reply {
	return &pipeline.Reply{Text: "<result>\n" + answer + "\n</result>\n", Finish: "stop", Usage: tokens(10, 2)}
}

func tokens(in, out int64) pipeline.Usage {
	total := in + out
	return pipeline.Usage{Input: &in, Output: &out, Total: &total}
}

// answerProgram has an input question and an answer result, both texts.
const answerProgram = `
name: answer
module: quiz
description: Answer the question.
inputs:
  - {name: question, shape: {type: string}}
outputs:
  - {name: result, shape: {type: string}}
`

func program(t testing.TB, definition string) *pipeline.Program {
	t.Helper()
	p, err := pipeline.ParseProgram("program.yaml", []byte(definition))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// caller asks a model, at a fixed time and with ids that count.
func caller(m pipeline.Model) *pipeline.Caller {
	var n atomic.Int64
	return &pipeline.Caller{
		LM:    pipeline.LM{Name: "fake", Model: m},
		Now:   func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		NewID: func() string { return fmt.Sprintf("call-%06d", n.Add(1)) },
	}
}

func candidate(t testing.TB, name string, m pipeline.Model) Candidate {
	return Candidate{Name: name, Program: program(t, answerProgram), Caller: caller(m)}
}

// quiz has n rows r0, r1, …: the question q3 has the right answer a3, and was
// answered a3 when that was recorded.
func quiz(n int) datasets.Rows {
	rows := make(datasets.Rows, n)
	for i := range rows {
		rows[i] = datasets.Row{
			ID:       fmt.Sprintf("r%d", i),
			Inputs:   datasets.Values{"question": datasets.Text(fmt.Sprintf("q%d", i)), "note": datasets.Text("not for the program")},
			Labels:   datasets.Values{"result": datasets.Text(fmt.Sprintf("a%d", i))},
			Recorded: datasets.Values{"result": datasets.Text(fmt.Sprintf("a%d", i))},
		}
	}
	return rows
}

// right answers every row right.
func right(s pipeline.Site) string { return "a" + strings.TrimPrefix(s.Row, "r") }

// rightBut answers every row right but some.
func rightBut(wrong ...string) func(pipeline.Site) string {
	return func(s pipeline.Site) string {
		for _, row := range wrong {
			if s.Row == row {
				return "wrong"
			}
		}
		return right(s)
	}
}

// match is 1 when the answer is the right one.
type match struct{}

func (match) Name() string { return "match" }

func (match) Score(_ context.Context, row datasets.Row, call *pipeline.Call) (Score, error) {
	if row.Labels["result"].IsZero() {
		return Score{Missing: "no right answer"}, nil
	}
	if row.Labels["result"].Equal(call.Outputs["result"]) {
		return Score{Value: 1}, nil
	}
	return Score{}, nil
}

// metricFunc is a metric that is a function.
type metricFunc struct {
	name  string
	score func(context.Context, datasets.Row, *pipeline.Call) (Score, error)
}

func (m metricFunc) Name() string { return m.name }

func (m metricFunc) Score(ctx context.Context, row datasets.Row, call *pipeline.Call) (Score, error) {
	return m.score(ctx, row, call)
}

func mustEvaluate(t testing.TB, p Plan, o Options) *Evaluation {
	t.Helper()
	e, err := Evaluate(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func wantError(t testing.TB, err, kind error, parts ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("error %v; want one that is %q", err, kind)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q; want it to say %q", err, part)
		}
	}
}
