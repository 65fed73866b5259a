package provider_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/pipeline/provider"
)

const routeProgram = `
name: route
description: %q
inputs:
  - {name: ticket, shape: {type: string}}
  - {name: floor, shape: {type: integer}}
outputs:
  - {name: hours, shape: {type: integer}}
  - {name: urgent, shape: {type: boolean}}
  - {name: result, shape: {enum: [question, refund, repair], type: string}}
settings: %s
state:
  instructions: null
  demos:
    - {inputs: {ticket: "The door is loose.", floor: 2}, outputs: {hours: 3, urgent: true, result: repair}}
    - {inputs: {ticket: "Where is my money?", floor: 1}, outputs: {hours: 0, urgent: false, result: refund}}
`

func askProgram(t *testing.T, p *pipeline.Program, lm pipeline.LM, ticket string) *pipeline.Call {
	t.Helper()
	lm.Name = "test"
	c := &pipeline.Caller{
		LM:    lm,
		Now:   func() time.Time { return time.Unix(0, 0) },
		NewID: func() string { return "call" },
	}
	call, err := c.Ask(t.Context(), p, pipeline.Ask{Inputs: datasets.Values{"ticket": datasets.Text(ticket), "floor": datasets.Int(7)}})
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// TestPrograms asks programs of each layout: the baseline writes what they read,
// and its replies, kept in a file, are served again.
func TestPrograms(t *testing.T) {
	for _, settings := range []string{
		"{}", "{adapter: chat}", "{adapter: json}", "{module: cot}", "{adapter: chat, module: cot}", "{adapter: json, module: cot}",
	} {
		t.Run(settings, func(t *testing.T) {
			parse := func(instruction string) *pipeline.Program {
				p, err := pipeline.ParseProgram("route.yaml", fmt.Appendf(nil, routeProgram, instruction, settings))
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			var kept []provider.RecordedReply
			check := func(p *pipeline.Program, ticket, want string, hours int64) {
				t.Helper()
				call := askProgram(t, p, pipeline.LM{Model: provider.Lexical{}, Deterministic: true}, ticket)
				if call.Failure != nil {
					t.Fatalf("%v; the reply was %q", call.Failure, call.Exchanges[0].Reply.Text)
				}
				result, _ := call.Outputs["result"].AsText()
				if n, ok := call.Outputs["hours"].AsInt(); result != want || !ok || n != hours {
					t.Errorf("%s: %s, want %s and %d hours", ticket, call.Outputs.Object().JSON(), want, hours)
				}
				x := call.Exchanges[0]
				kept = append(kept, provider.RecordedReply{Request: x.Request.JSON(), Reply: &x.Reply.Text, Finish: x.Reply.Finish, Model: x.Reply.Model})
			}
			plain := parse("Say what the customer wants done.")
			check(plain, "The door is bent.", "repair", 3)
			check(plain, "Is it open?", "repair", 3) // one word of five with each: the earlier
			check(parse("Say what the customer wants done. Choose question when the ticket contains \"?\"."), "Is it open?", "question", 0)

			path := filepath.Join(t.TempDir(), "replies.parquet")
			if err := provider.WriteReplies(path, replies(kept...)); err != nil {
				t.Fatal(err)
			}
			recorded := pipeline.LM{Model: open(t, path), Deterministic: true}
			if call := askProgram(t, plain, recorded, "The door is bent."); call.Failure != nil || call.Outputs["result"].String() != "repair" {
				t.Errorf("the recorded reply: %v, %v", call.Outputs, call.Failure)
			}
			call := askProgram(t, plain, recorded, "Somebody else wrote this.")
			if call.Failure == nil || call.Failure.Class() != "never_recorded" || len(call.Exchanges) != 1 {
				t.Errorf("what was never recorded: %v after %d requests", call.Failure, len(call.Exchanges))
			}
		})
	}
}
