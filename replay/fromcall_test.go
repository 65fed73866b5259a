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

	call.Failure, call.Outputs = nil, datasets.Values{"label": datasets.Text("refund")}
	call.Exchanges = call.Exchanges[:1]
	call.SawOf, call.Changes, call.Tags = "", nil, nil
	r = FromCall(call, datasets.Value{})
	if r.Error != nil || r.Outputs.JSON() != `{"label":"refund"}` || r.Sizes.JSON() != `{"inputs":{"ticket":8},"outputs":{"label":8}}` ||
		r.Replayable != nil || len(r.Saw) != 0 || r.Saw == nil || r.Changes != nil || r.Caller != nil || !r.Process.IsZero() {
		t.Errorf("got %s", r.AppendJSON(nil))
	}
}
