package harness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/replay"
)

// rated asks a program one question per change, each of which may alter what is
// recorded of the call, and gives the records with a rating of each, and the rows
// made of them.
func rated(t *testing.T, p *pipeline.Program, c *pipeline.Caller, changes ...func(*replay.Record)) (replay.Source, *replay.Rated) {
	t.Helper()
	var calls []*replay.Record
	var ratings []*replay.Rating
	for i, change := range changes {
		call, err := c.Ask(t.Context(), p, pipeline.Ask{
			Inputs:  datasets.Values{"question": datasets.Text(fmt.Sprintf("q%d", i))},
			Context: datasets.Context{Sections: []string{"Be brief."}},
		})
		if err != nil || call.Failure != nil {
			t.Fatal(err, call.Failure)
		}
		rec := replay.FromCall(call, datasets.Value{})
		if change != nil {
			change(rec)
		}
		calls = append(calls, rec)
		ratings = append(ratings, &replay.Rating{Format: 1, ID: fmt.Sprintf("rating-%d", i), Call: rec.ID, By: "ada", Verdict: "right"})
	}
	src := replay.InMemory(calls, ratings)
	rows, err := replay.Rows(t.Context(), src, replay.Query{Program: "answer"})
	if err != nil || rows.Len() != len(changes) {
		t.Fatalf("%d rows of %d calls: %v, %+v", rows.Len(), len(changes), err, rows.Left)
	}
	return src, rows
}

// resend replaces the recorded request by one that was changed, as though that
// one had been sent.
func resend(t *testing.T, change func(*pipeline.Request)) func(*replay.Record) {
	return func(r *replay.Record) {
		req, err := pipeline.ParseRequest(r.Exchanges[0].Request)
		if err != nil {
			t.Fatal(err)
		}
		change(req)
		r.Exchanges[0].Request, r.Exchanges[0].RequestHash = req.JSON(), req.Hash()
	}
}

func TestFidelity(t *testing.T) {
	p := program(t, answerProgram)
	host := caller(modelFunc(func(context.Context, *pipeline.Request) (*pipeline.Reply, error) {
		r := reply("yes")
		r.Model = "fake-2026-01-01" // what the provider calls it is not what was asked for
		return r, nil
	}))
	shaping, err := pipeline.NewPlugin("tone", pipeline.OnBeforeCall(func(context.Context, *pipeline.CallEvent) (*pipeline.Change, error) {
		return &pipeline.Change{Sections: []string{"Be kind."}}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	replacing, err := pipeline.NewPlugin("swap", pipeline.OnRequest(func(_ context.Context, e *pipeline.RequestEvent) (*pipeline.Request, error) {
		e.Request.System = "Say yes."
		return e.Request, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	other := program(t, strings.Replace(answerProgram, "Answer the question.", "Answer the question at length.", 1))

	for _, tt := range []struct {
		name    string
		program *pipeline.Program
		changes []func(*replay.Record)
		config  datasets.Values // of the baseline's model
		want    Fidelity
		warns   []string
	}{
		{name: "the same", program: p, changes: make([]func(*replay.Record), 3), want: Fidelity{Same: 3}},
		{
			name: "a part of some", program: p,
			changes: []func(*replay.Record){
				nil,
				resend(t, func(r *pipeline.Request) { r.System += " Please." }),
				resend(t, func(r *pipeline.Request) { r.Messages = append(r.Messages, pipeline.TextMessage("user", "?")) }),
				resend(t, func(r *pipeline.Request) { r.System, r.Tools = "", []pipeline.Tool{{Name: "look"}} }),
				resend(t, func(r *pipeline.Request) { r.Model = "called otherwise" }),
			},
			want:  Fidelity{Same: 2, Different: 3, ByPart: map[string]int{"system": 2, "messages": 1, "tools": 1}, First: "call-000002"},
			warns: []string{"sends another request than was recorded for 3 of the 5 rows"},
		},
		{
			name: "other settings", program: p, changes: make([]func(*replay.Record), 2), config: datasets.Values{"temperature": datasets.Int(1)},
			want:  Fidelity{Different: 2, ByPart: map[string]int{"config": 2}, First: "call-000001"},
			warns: []string{"2 config"},
		},
		{
			name: "nothing to look at", program: p,
			changes: []func(*replay.Record){
				func(r *replay.Record) { // a hash alone, of a request nobody kept
					r.Exchanges[0].RequestHash = "sha256:" + strings.Repeat("0", 64)
					r.Exchanges[0].Request = datasets.Value{}
				},
				func(r *replay.Record) { // a hash of another request than is beside it
					r.Exchanges[0].RequestHash = "sha256:" + strings.Repeat("1", 64)
				},
				func(r *replay.Record) { r.Exchanges[0].RequestHash = "" },
				func(r *replay.Record) { r.Exchanges = nil },
				func(r *replay.Record) { r.Program.Version = "" },
			},
			want:  Fidelity{Different: 2, ByPart: map[string]int{"unknown": 2}, First: "call-000001", NotComparable: map[string]int{"no_hash": 2, "other_version": 1}},
			warns: []string{"2 unknown"},
		},
		{name: "shaped by a plugin", program: p.WithPlugins(shaping), changes: make([]func(*replay.Record), 2), want: Fidelity{NotComparable: map[string]int{"shaped": 2}}},
		{name: "replaced by a plugin", program: p.WithPlugins(replacing), changes: make([]func(*replay.Record), 1), want: Fidelity{NotComparable: map[string]int{"shaped": 1}}},
		{
			name: "another version", program: other, changes: make([]func(*replay.Record), 2), want: Fidelity{NotComparable: map[string]int{"other_version": 2}},
			warns: []string{"2 of 2 rated calls were made by version"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := *host
			n := 0
			c.NewID = func() string { n++; return fmt.Sprintf("call-%06d", n) }
			src, rows := rated(t, tt.program, &c, tt.changes...)
			today := candidate(t, "old", says(right))
			today.Caller.LM.Name, today.Caller.LM.Config = "today's name", tt.config
			checked := mustCheck(t, Plan{Rows: rows, Records: src, Metrics: []Metric{match{}}, Candidates: []Candidate{today}})
			got := checked.Fidelity()
			if got == nil {
				t.Fatal("nothing was compared")
			}
			if got.Same != tt.want.Same || got.Different != tt.want.Different || got.First != tt.want.First ||
				!maps.Equal(got.ByPart, tt.want.ByPart) || !maps.Equal(got.NotComparable, tt.want.NotComparable) {
				t.Errorf("got %+v\nwant %+v", *got, tt.want)
			}
			if got.Rows() != rows.Len() {
				t.Errorf("%d of %d rows are in a count", got.Rows(), rows.Len())
			}
			warnings := checked.Warnings()
			for _, want := range tt.warns {
				if !slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, want) }) {
					t.Errorf("warnings %q; want one that says %q", warnings, want)
				}
			}
			if len(warnings) != len(tt.warns) {
				t.Errorf("warnings %q, want %d", warnings, len(tt.warns))
			}
		})
	}

	t.Run("nothing to compare", func(t *testing.T) {
		src, rows := rated(t, p, host, nil)
		recorded := Candidate{Name: "recorded", Recorded: true}
		if f := mustCheck(t, Plan{Rows: rows, Records: src, Metrics: []Metric{match{}}, Candidates: []Candidate{recorded}}).Fidelity(); f != nil {
			t.Errorf("the recorded lane sends nothing, and there is %+v", *f)
		}
		if f := mustCheck(t, Plan{Rows: quiz(2), Metrics: []Metric{match{}}, Candidates: []Candidate{candidate(t, "old", says(right))}}).Fidelity(); f != nil {
			t.Errorf("rows of no calls: %+v", *f)
		}
	})
}
