package replay

import (
	"testing"
	"time"

	"evalrun/datasets"
	"evalrun/internal/fakelog"
	"evalrun/pipeline"
)

func TestFromCall(t *testing.T) {
	p, err := pipeline.ParseProgram("triage.json", []byte(fakelog.Triage))
	if err != nil {
		t.Fatal(err)
	}
	started := time.Date(2025, 3, 4, 5, 6, 7, 89, time.FixedZone("", 3600)).Add(12345678 * time.Nanosecond)
	request := &pipeline.Request{Model: "small-1", System: "Sort.", Messages: []pipeline.Message{pipeline.TextMessage("user", "late")}}
	n := int64(7)
	call := &pipeline.Call{
		ID: "0190b3c4-0000-7000-8000-000000000001", Program: p, Started: started, Seconds: 0.12345678,
		Inputs: datasets.Values{"ticket": datasets.Text("late é")}, LM: "small", Model: "small-1-2025",
		Exchanges: []pipeline.Exchange{
			{Request: request, Hash: request.Hash(), Started: started, Seconds: 0.1, Reply: &pipeline.Reply{
				Text: "hm", Finish: "stop", Provider: "acme", Model: "small-1-2025", Usage: pipeline.Usage{Input: &n},
				Attempts: []pipeline.Attempt{{Failure: pipeline.Failf(pipeline.TypeRateLimit, "", "slow down"), Wire: 20 * time.Millisecond}},
			}},
			{Request: request, Started: started, Seconds: 0.1, Replaced: true, Failure: pipeline.Failf(pipeline.TypeServer, "down", "no answer")},
		},
		SawOf: "0190b3c4-0000-7000-8000-0000000000aa", Sections: []string{"A regular customer."},
		Changes: []pipeline.Applied{{Plugin: "modes", Version: "1.0.0", Hook: pipeline.HookBeforeCall, Change: datasets.RawValue(`{"sections":["x"]}`)}},
		Failure: &pipeline.Failure{Type: pipeline.TypePlugin, Code: "plugin-failed", Message: "it broke", Plugin: "modes", Hook: pipeline.HookRequest},
		Tags:    datasets.Values{"kind": datasets.Text("evaluation"), "evaluation": datasets.Text("run-1"), "row": datasets.Int(3)},
	}
	want := `{"functai_call":2,"id":"0190b3c4-0000-7000-8000-000000000001","parent":null,"root":"0190b3c4-0000-7000-8000-000000000001",
"program":{"name":"triage","kind":"ai","module":"shop","version":"` + p.Version() + `","signature":"` + p.Signature() + `","interface":"` + p.Interface() + `","answer":"label"},
"started":"2025-03-04T04:06:07.012345Z","seconds":0.123457,"content":true,"inputs":{"ticket":"late é"},"outputs":null,
"sizes":{"inputs":{"ticket":8}},"error":{"type":"PluginError","message":"plugin modes, request: it broke","code":"plugin-failed"},
"model":"small-1-2025","usage":{"input_tokens":7},"confidence":null,
"exchanges":[
 {"model":"small-1","seconds":0.02,"cached":false,"finish":null,"provider":null,"usage":null,"error":{"type":"RateLimitError","message":"slow down"},"request":` + request.JSON().JSON() + `,"request_hash":"` + request.Hash() + `"},
 {"model":"small-1-2025","provider":"acme","started":"2025-03-04T04:06:07.012345Z","seconds":0.1,"cached":false,"finish":"stop","usage":{"input_tokens":7},"request":` + request.JSON().JSON() + `,"response":{"text":"hm"},"request_hash":"` + request.Hash() + `"},
 {"model":"small-1","provider":null,"started":"2025-03-04T04:06:07.012345Z","seconds":0.1,"cached":false,"finish":null,"usage":null,"request":` + request.JSON().JSON() + `,"error":{"type":"ServerError","message":"no answer","code":"down"}}],
"saw":[{"saw_of":"0190b3c4-0000-7000-8000-0000000000aa"}],"sections":["A regular customer."],
"changes":[{"plugin":"modes","version":"1.0.0","hook":"before_call","change":{"sections":["x"]}}],"replayable":false,
"caller":{"kind":"evaluation","evaluation":"run-1","row":3},"process":{"host":"h"}}`
	r := FromCall(call, datasets.RawValue(`{"host":"h"}`))
	got := r.AppendJSON(nil)
	if canonical(t, got) != canonical(t, []byte(want)) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	read, err := ParseRecord(got)
	if err != nil || canonical(t, read.AppendJSON(nil)) != canonical(t, got) || len(read.Extra) != 0 || read.Absent != nil {
		t.Errorf("%v: read again as %s", err, read.AppendJSON(nil))
	}

	// Steps, and the tools a model called natively.
	tools := *call
	tools.Steps = []datasets.Step{datasets.RawValue(`{"kind":"tool","id":"a","name":"look","output":"free","children":["c2"]}`)}
	tools.Exchanges = []pipeline.Exchange{{Request: request, Reply: &pipeline.Reply{Calls: []pipeline.ToolCall{{ID: "a", Name: "look", Input: datasets.RawValue(`{"n":1}`)}}}}}
	with, err := ParseRecord(FromCall(&tools, datasets.Value{}).AppendJSON(nil))
	if err != nil || len(with.Steps) != 1 || with.Steps[0] != tools.Steps[0] {
		t.Errorf("%v: the steps are %v", err, with.Steps)
	}
	if got, want := with.Exchanges[0].Response.Canonical(), `{"calls":[{"id":"a","input":{"n":1},"name":"look"}],"text":""}`; got != want {
		t.Errorf("the response is %s, want %s", got, want)
	}

	// A model may write a member twice: the record has what it wrote.
	tools.Exchanges[0].Reply.Calls = []pipeline.ToolCall{{ID: "a\n", Name: "look", Input: datasets.RawValue(`{"n":1,"n":2}`)}, {Name: "go"}}
	with, err = ParseRecord(FromCall(&tools, datasets.Value{}).AppendJSON(nil))
	if err != nil || with.Exchanges[0].Response.JSON() != `{"calls":[{"id":"a\n","name":"look","input":{"n":1,"n":2}},{"id":"","name":"go","input":null}],"text":""}` {
		t.Errorf("%v: the response is %s", err, with.Exchanges[0].Response.JSON())
	}

	call.Failure, call.Outputs = nil, datasets.Values{"label": datasets.Text("refund")}
	call.Exchanges = call.Exchanges[:1]
	call.SawOf, call.Changes, call.Tags = "", nil, nil
	r = FromCall(call, datasets.Value{})
	if r.Error != nil || r.Outputs.JSON() != `{"label":"refund"}` || r.Sizes.JSON() != `{"inputs":{"ticket":8},"outputs":{"label":8}}` ||
		r.Replayable != nil || len(r.Saw) != 0 || r.Saw == nil || r.Changes != nil || r.Caller != nil || !r.Process.IsZero() {
		t.Errorf("got %s", r.AppendJSON(nil))
	}
}

// TestFromTurn: the call of a conversation's turn says where it belongs and what
// it was shown; written again after resuming, it outranks what was written before.
func TestFromTurn(t *testing.T) {
	p, err := pipeline.ParseProgram("triage.json", []byte(fakelog.Triage))
	if err != nil {
		t.Fatal(err)
	}
	call := func(parent string, attempt int, saw ...pipeline.Saw) string {
		r := FromCall(&pipeline.Call{ID: "c", Program: p, Turn: &pipeline.TurnCall{
			Conversation: "ada", Turn: "t3", Parent: parent, Attempt: attempt, Saw: saw,
		}}, datasets.Value{})
		read, err := ParseRecord(r.AppendJSON(nil))
		if err != nil || len(read.Extra) != 0 || read.Absent != nil {
			t.Fatalf("%v: %s", err, r.AppendJSON(nil))
		}
		v := datasets.RawValue(string(r.AppendJSON(nil)))
		return v.Member("conversation").JSON() + " " + v.Member("saw").JSON() + " " + v.Member("writer").JSON()
	}
	for _, c := range []struct{ got, want string }{
		{call("", 1), `{"id":"ada","turn":"t3","parent":null} [] `},
		{
			call("t2", 3, pipeline.Saw{SawOf: "c2"}, pipeline.Saw{Call: "c2", Steps: true}),
			`{"id":"ada","turn":"t3","parent":"t2"} [{"saw_of":"c2"},{"call":"c2","steps":true}] 3`,
		},
		{
			call("t2", 1, pipeline.Saw{Call: "c1", Without: []string{"photo"}}, pipeline.Saw{Call: "c2"}),
			`{"id":"ada","turn":"t3","parent":"t2"} [{"call":"c1","without":["photo"]},{"call":"c2"}] `,
		},
	} {
		if c.got != c.want {
			t.Errorf("got  %s\nwant %s", c.got, c.want)
		}
	}
}
