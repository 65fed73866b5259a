package provider

import (
	"testing"
	"time"

	"evalrun/pipeline"
)

// fuzzReply: whatever a service answers becomes a reply or a failure that says so,
// and whatever it says of a failure leaves it one.
func fuzzReply(f *testing.F, read func(*answer) (*pipeline.Reply, error), explain explanation) {
	f.Fuzz(func(t *testing.T, body string) {
		failure := pipeline.Failf(pipeline.TypeRateLimit, "http-429", "429")
		explain(429, []byte(body), failure)
		if failure.Type != pipeline.TypeRateLimit || failure.RetryAfter < 0 || failure.Message == "" {
			t.Fatalf("explained as %+v", failure)
		}
		reply, err := read(&answer{body: []byte(body), wire: time.Second})
		if err == nil {
			checkRead(t, reply)
		} else if fail := failed(t, err); fail.Class() == "other" || fail.Message == "" || reply != nil {
			t.Fatalf("%+v beside %+v", fail, reply)
		}
	})
}

func FuzzAnthropicReply(f *testing.F) {
	for _, body := range []string{
		`{"model":"m","content":[{"type":"text","text":"yes"},{"type":"thinking","thinking":"x","signature":"y"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":3}}`,
		`{"content":[{"type":"tool_use","id":"a","name":"f","input":{"a":1,"a":1e999}}],"stop_reason":"tool_use"}`,
		`{"content":[{"type":"text","text":"\ud800","citations":[{}]},{"x":"\udc00","x":1}],"stop_reason":"refusal","stop_details":{"category":"c"}}`,
		`{"type":"error","error":{"type":"overloaded_error","message":"x"}}`, `{"content":[7]}`, `{"content":null}`, `[]`, ``,
		"{\"content\":[{\"type\":\"\xff\"}]}", `{"content":[null,{}],"usage":{"input_tokens":9223372036854775807,"output_tokens":-1}}`,
	} {
		f.Add(body)
	}
	m := &anthropic{service: newTestService(f, Options{}), name: "m", untaken: newUntaken(Options{})}
	fuzzReply(f, m.read, explainAnthropic)
}

func FuzzGeminiReply(f *testing.F) {
	for _, body := range []string{
		`{"candidates":[{"content":{"parts":[{"text":"yes"},{"text":"x","thought":true}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"totalTokenCount":9,"thoughtsTokenCount":2}}`,
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":1,"a":1e999}}},{"functionCall":null}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"\ud800"},{"x":"\udc00","x":1},7,null]},"finishReason":"SAFETY"}]}`,
		`{"promptFeedback":{"blockReason":"OTHER"}}`, `{"candidates":[null]}`, `[]`, ``, "{\"candidates\":[{\"finishReason\":\"\xff\"}]}",
		`{"error":{"message":"x","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"-1s"}]}}`,
	} {
		f.Add(body)
	}
	m := &gemini{service: newTestService(f, Options{}), name: "m", untaken: newUntaken(Options{})}
	fuzzReply(f, m.read, explainGemini)
}
