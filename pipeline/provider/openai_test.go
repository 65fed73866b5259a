package provider_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"evalrun/datasets"
	"evalrun/internal/par"
	"evalrun/pipeline"
	"evalrun/pipeline/provider"
	"evalrun/pipeline/provider/providertest"
	"evalrun/pipeline/tools"
)

const testKey = "sk-0123456789abcdef"

// warnings collects what a model warns of.
type warnings struct {
	mu   sync.Mutex
	said []string
}

func (w *warnings) warn(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, text)
}

// openAI opens the model under test at a service.
func openAI(t testing.TB, s *providertest.Service, o provider.Options) pipeline.Model {
	t.Helper()
	o.Name = "small"
	if o.BaseURL == "" {
		o.BaseURL = s.URL + "/v1"
	}
	o.Now = time.Now
	lm, err := provider.Open("openai", o)
	if err != nil {
		t.Fatal(err)
	}
	if lm.Deterministic {
		t.Error("a service is said to give the same reply to the same request always")
	}
	return lm.Model
}

// service starts a service for a test.
func service(t testing.TB, d providertest.Dialect, faults ...providertest.Fault) *providertest.Service {
	t.Helper()
	s := providertest.NewService(d, faults...)
	t.Cleanup(s.Close)
	return s
}

// says is a dialect of one answer.
func says(status int, response string) providertest.Dialect {
	return func(*http.Request, []byte) (int, http.Header, []byte) { return status, nil, []byte(response) }
}

func saying(text string) *pipeline.Request {
	return &pipeline.Request{System: "Say it back.", Messages: []pipeline.Message{pipeline.TextMessage("user", text)}}
}

func raw(text string) datasets.Value { return datasets.RawValue(text) }

// config is a request's config from JSON.
func config(object string) datasets.Values { return datasets.ValuesOf(raw(object)) }

func TestOpenAIConformance(t *testing.T) {
	s := service(t, providertest.OpenAI, providertest.Fault{Has: "hang", Do: providertest.Hang()},
		providertest.Fault{Has: "who am I", Do: providertest.Answer(http.StatusUnauthorized, `{"error":{"message":"no access for Bearer `+testKey+`"}}`)},
		providertest.Fault{Has: "tell my key", Do: providertest.Answer(http.StatusOK, `{"choices":[{"message":{"content":"It is `+testKey+`."}}]}`)})
	tools, schema, strange := saying("look"), saying("as an object"), saying("?")
	tools.Tools = []pipeline.Tool{{Name: "look", Description: "Looks.", Parameters: raw(`{"type":"object"}`)}}
	schema.Config = config(`{"response_format":{"type":"json_schema","schema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}}}`)
	strange.Messages[0].Role = "narrator"
	err := providertest.Check(openAI(t, s, provider.Options{Key: testKey}), providertest.Case{
		Answers: []*pipeline.Request{saying("one two"), tools, schema, saying("tell my key")},
		Fails:   []*pipeline.Request{strange, saying("who am I")},
		Waits:   saying("hang"),
		Secret:  testKey,
	})
	if err != nil {
		t.Error(err)
	}
}

func TestOpenAIRequests(t *testing.T) {
	messages := func(list string) string { return `"messages":[` + list + `]` }
	const user = `{"role":"user","content":"hi"}`
	hi := pipeline.TextMessage("user", "hi")
	part := func(object string) pipeline.Part { return pipeline.Part{Raw: raw(object)} }
	for _, c := range []struct {
		name string
		req  pipeline.Request
		want string // without the model
	}{
		{"system", pipeline.Request{System: "Be \"brief\".", Messages: []pipeline.Message{hi}}, messages(`{"role":"system","content":"Be \"brief\"."},` + user)},
		{"developer stays", pipeline.Request{Messages: []pipeline.Message{pipeline.TextMessage("developer", "d"), hi}}, messages(`{"role":"developer","content":"d"},` + user)},
		{"texts alone are one", pipeline.Request{Messages: []pipeline.Message{{Role: "user", Parts: []pipeline.Part{{Text: "a"}, {Text: "b"}}}}}, messages(`{"role":"user","content":"ab"}`)},
		{
			"other parts as they are",
			pipeline.Request{Messages: []pipeline.Message{{Role: "user", Parts: []pipeline.Part{{Text: "what?"}, part(`{"type":"image_url","image_url":{"url":"data:,x"}}`)}}}},
			messages(`{"role":"user","content":[{"type":"text","text":"what?"},{"type":"image_url","image_url":{"url":"data:,x"}}]}`),
		},
		{
			"tool calls and results",
			pipeline.Request{Messages: []pipeline.Message{
				hi,
				{Role: "assistant", Parts: []pipeline.Part{part(`{"type":"tool_call","id":"a","name":"look","input":{"room": 3}}`), part(`{"type":"tool_call","id":"b","name":"go","input":{}}`)}},
				{Role: "tool", Parts: []pipeline.Part{part(`{"type":"tool_result","id":"a","text":"dark"}`), part(`{"type":"tool_result","id":"b","text":""}`)}},
			}},
			messages(user + `,{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{\"room\": 3}"}},{"id":"b","type":"function","function":{"name":"go","arguments":"{}"}}]},
				{"role":"tool","tool_call_id":"a","content":"dark"},{"role":"tool","tool_call_id":"b","content":""}`),
		},
		{
			"a text beside a tool call, and arguments that were no JSON",
			pipeline.Request{Messages: []pipeline.Message{{Role: "assistant", Parts: []pipeline.Part{{Text: "I look."}, part(`{"type":"tool_call","id":"a","name":"look","input":"{room"}`)}}}},
			messages(`{"role":"assistant","content":"I look.","tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{room"}}]}`),
		},
		{
			"tools",
			pipeline.Request{Messages: []pipeline.Message{hi}, Tools: []pipeline.Tool{{Name: "look", Description: "Looks.", Parameters: raw(`{"type":"object","properties":{}}`)}, {Name: "go"}}},
			messages(user) + `,"tools":[{"type":"function","function":{"name":"look","description":"Looks.","parameters":{"type":"object","properties":{}}}},{"type":"function","function":{"name":"go"}}]`,
		},
		{
			"settings",
			pipeline.Request{Messages: []pipeline.Message{hi}, Config: config(`{"temperature":0.0,"top_p":0.9,"max_tokens":7,"seed":3,"stop":["</r>"],"frequency_penalty":1,"presence_penalty":-1,"logit_bias":{"50256":-100},"top_k":40,"min_p":null}`)},
			messages(user) + `,"temperature":0,"top_p":0.9,"max_tokens":7,"seed":3,"stop":["</r>"],"frequency_penalty":1,"presence_penalty":-1,"logit_bias":{"50256":-100},"top_k":40`,
		},
		{"effort", pipeline.Request{Messages: []pipeline.Message{hi}, Config: config(`{"reasoning":{"effort":"low"}}`)}, messages(user) + `,"reasoning_effort":"low"`},
		{"reasoning of a gateway", pipeline.Request{Messages: []pipeline.Message{hi}, Config: config(`{"reasoning":{"max_tokens":9}}`)}, messages(user) + `,"reasoning":{"max_tokens":9}`},
		{"log probabilities", pipeline.Request{Messages: []pipeline.Message{hi}, Config: config(`{"logprobs":5}`)}, messages(user) + `,"logprobs":true,"top_logprobs":5`},
		{"log probabilities, the service's way", pipeline.Request{Messages: []pipeline.Message{hi}, Config: config(`{"logprobs":true}`)}, messages(user) + `,"logprobs":true`},
		{
			"a schema that can be kept to the letter",
			pipeline.Request{Messages: []pipeline.Message{hi}, Config: config(`{"response_format":{"type":"json_schema","schema":{"type":"object","properties":{"a":{"enum":["x","y"],"type":"string"},"b":{"type":"array","items":{"type":"integer"}}},"required":["a","b"],"additionalProperties":false}}}`)},
			messages(user) + `,"response_format":{"type":"json_schema","json_schema":{"name":"reply","strict":true,"schema":{"type":"object","properties":{"a":{"enum":["x","y"],"type":"string"},"b":{"type":"array","items":{"type":"integer"}}},"required":["a","b"],"additionalProperties":false}}}`,
		},
		{
			"a schema that cannot",
			pipeline.Request{Messages: []pipeline.Message{hi}, Config: config(`{"response_format":{"type":"json_schema","schema":{"type":"object","properties":{"a":{"type":"object"}},"required":["a"],"additionalProperties":false}}}`)},
			messages(user) + `,"response_format":{"type":"json_schema","json_schema":{"name":"reply","strict":false,"schema":{"type":"object","properties":{"a":{"type":"object"}},"required":["a"],"additionalProperties":false}}}`,
		},
		{"the service's own form", pipeline.Request{Messages: []pipeline.Message{hi}, Config: config(`{"response_format":{"type":"json_object"}}`)}, messages(user) + `,"response_format":{"type":"json_object"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := service(t, says(http.StatusOK, `{"choices":[{"message":{"content":""}}]}`))
			if _, err := openAI(t, s, provider.Options{Model: "gpt-x"}).Generate(t.Context(), &c.req); err != nil {
				t.Fatal(err)
			}
			got, err := datasets.ParseValue(s.Received()[0].Body)
			if err != nil {
				t.Fatal(err)
			}
			if want := raw(`{"model":"gpt-x",` + c.want + `}`); !got.Equal(want) {
				t.Errorf("got  %s\nwant %s", got.Canonical(), want.Canonical())
			}
		})
	}
}

func TestOpenAIStrictSchemas(t *testing.T) {
	closed := func(properties, required string) string {
		return `{"type":"object","properties":{` + properties + `},"required":[` + required + `],"additionalProperties":false}`
	}
	for schema, want := range map[string]bool{
		closed(``, ``):                                                                  true,
		closed(`"a":{"type":"string"}`, `"a"`):                                          true,
		closed(`"a":{"type":"string"}`, ``):                                             false, // may be absent
		closed(`"a":{}`, `"a"`):                                                         false, // says nothing
		closed(`"a":{"type":["string","null"]}`, `"a"`):                                 true,
		closed(`"a":{"anyOf":[{"type":"null"},{"type":"object"}]}`, `"a"`):              false,
		closed(`"a":{"type":"array"}`, `"a"`):                                           false, // of what?
		closed(`"a":{"type":"array","items":{"type":"string","minLength":1}}`, `"a"`):   false, // no such keyword
		closed(`"a":{"type":"object","additionalProperties":{"type":"string"}}`, `"a"`): false, // a map
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"required":["a"],"additionalProperties":false,"$defs":{"b":{"type":"integer","minimum":0}}}`: true,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"required":["a"],"additionalProperties":false,"$defs":{"b":{"type":"object"}}}`:              false,
	} {
		s := service(t, says(http.StatusOK, `{"choices":[{"message":{"content":""}}]}`))
		req := saying("x")
		req.Config = datasets.Values{"response_format": raw(`{"type":"json_schema","schema":` + schema + `}`)}
		if _, err := openAI(t, s, provider.Options{}).Generate(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		body := raw(string(s.Received()[0].Body))
		if got, _ := body.Member("response_format").Member("json_schema").Member("strict").AsBool(); got != want {
			t.Errorf("%s: strict is %v", schema, got)
		}
	}
}

func TestOpenAIReplies(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		name, body string
		want       pipeline.Reply
	}{
		{
			"a text", `{"id":"c","model":"gpt-x-2025","system_fingerprint":"fp_9","choices":[{"index":0,"message":{"role":"assistant","content":"yes","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],
				"usage":{"prompt_tokens":11,"completion_tokens":5,"total_tokens":16,"prompt_tokens_details":{"cached_tokens":8,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}`,
			pipeline.Reply{Text: "yes", Finish: "stop", Model: "gpt-x-2025", System: "fp_9", Usage: pipeline.Usage{Input: n(11), Output: n(5), Total: n(16), Cached: n(8), Reasoning: n(0)}},
		},
		{"little said", `{"choices":[{"message":{"content":"yes"}}]}`, pipeline.Reply{Text: "yes"}},
		{
			"counts that are none", `{"choices":[{"message":{"content":"yes"},"finish_reason":"length"}],"usage":{"prompt_tokens":-1,"completion_tokens":null,"total_tokens":"9","prompt_tokens_details":null}}`,
			pipeline.Reply{Text: "yes", Finish: "length"},
		},
		{"usage that is none", `{"choices":[{"message":{"content":null},"finish_reason":"length"}],"usage":[1]}`, pipeline.Reply{Finish: "length"}},
		{
			"cached tokens at the top", `{"choices":[{"message":{"content":""}}],"usage":{"prompt_tokens":3,"prompt_cache_hit_tokens":2}}`,
			pipeline.Reply{Usage: pipeline.Usage{Input: n(3), Cached: n(2)}},
		},
		{
			"tool calls", `{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[
				{"id":"a","type":"function","function":{"name":"look","arguments":"{\"room\": 3.0}"}},
				{"id":"b","type":"function","function":{"name":"go","arguments":""}},
				{"id":"c","type":"function","function":{"name":"go","arguments":"{\"to"}},
				{"id":"d","type":"function","function":{"name":"go","arguments":{"to":"B"}}}]},"finish_reason":"tool_calls"}]}`,
			pipeline.Reply{
				Finish: "tool_calls",
				Calls: []pipeline.ToolCall{
					{ID: "a", Name: "look", Input: raw(`{"room": 3.0}`)},
					{ID: "b", Name: "go", Input: raw(`{}`)},
					{ID: "c", Name: "go", Input: datasets.Text(`{"to`)},
					{ID: "d", Name: "go", Input: raw(`{"to":"B"}`)},
				},
				Response: raw(`{"finish_reason":"tool_calls","message":{"role":"assistant","parts":[
					{"type":"tool_call","id":"a","name":"look","input":{"room":3}},{"type":"tool_call","id":"b","name":"go","input":{}},
					{"type":"tool_call","id":"c","name":"go","input":"{\"to"},{"type":"tool_call","id":"d","name":"go","input":{"to":"B"}}]}}`),
			},
		},
		{
			"reasoning and log probabilities", `{"choices":[{"message":{"role":"assistant","content":"yes","reasoning_content":"hm","tool_calls":[]},"logprobs":{"content":[]},"finish_reason":"stop"}]}`,
			pipeline.Reply{Text: "yes", Finish: "stop", Response: raw(`{"finish_reason":"stop","message":{"role":"assistant","parts":[{"type":"text","text":"yes"},{"type":"reasoning_content","reasoning_content":"hm"},{"type":"logprobs","logprobs":{"content":[]}}]}}`)},
		},
		{
			"parts", `{"choices":[{"message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"y"},{"type":"text","text":"es"}]},"finish_reason":"stop"}]}`,
			pipeline.Reply{Text: "yes", Finish: "stop", Response: raw(`{"finish_reason":"stop","message":{"role":"assistant","parts":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"y"},{"type":"text","text":"es"}]}}`)},
		},
		{"bytes that are no text", "{\"choices\":[{\"message\":{\"content\":\"a\xff\"}}]}", pipeline.Reply{Text: "a\uFFFD"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := openAI(t, service(t, says(http.StatusOK, c.body)), provider.Options{}).Generate(t.Context(), saying("x"))
			if err != nil {
				t.Fatal(err)
			}
			if got.Provider != "openai" || got.Wire <= 0 || got.Waited != 0 || got.Cached {
				t.Errorf("provider %q, %s on the wire", got.Provider, got.Wire)
			}
			if !got.Response.Equal(c.want.Response) {
				t.Errorf("response\ngot  %s\nwant %s", got.Response.Canonical(), c.want.Response.Canonical())
			}
			got.Wire, got.Provider, got.Response, c.want.Response = 0, "", datasets.Value{}, datasets.Value{}
			if g, w := described(got), described(&c.want); g != w {
				t.Errorf("got  %s\nwant %s", g, w)
			}
		})
	}
}

// described is a reply with what its pointers point to.
func described(r *pipeline.Reply) string {
	usage, err := datasets.ValueOf(r.Usage)
	if err != nil {
		return err.Error()
	}
	plain := *r
	plain.Usage = pipeline.Usage{}
	return fmt.Sprintf("%+v %s", plain, usage.JSON())
}

// TestOpenAIToolReplyIsReadBack keeps a reply with tool calls in a replies file and
// gets it again.
func TestOpenAIToolReplyIsReadBack(t *testing.T) {
	req := saying("look")
	req.Tools = []pipeline.Tool{{Name: "look"}}
	reply, err := openAI(t, service(t, providertest.OpenAI), provider.Options{}).Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	row, err := datasets.ValueOf(provider.RecordedReply{Request: req.JSON(), Response: reply.Response, Usage: reply.Usage, Model: reply.Model})
	if err != nil {
		t.Fatal(err)
	}
	again, err := open(t, write(t, "r.jsonl", row.JSON()+"\n")).Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Calls) != 1 || !again.Calls[0].Input.Equal(raw(`{"text":"look"}`)) || again.Finish != "tool_calls" || again.Calls[0].ID != reply.Calls[0].ID {
		t.Errorf("got %+v", again)
	}
}

// TestOpenAILearns asks a reasoning model with what it does not take: it is left
// out within the same request, said once, and not sent again.
func TestOpenAILearns(t *testing.T) {
	s := service(t, providertest.OpenAI)
	var w warnings
	m := openAI(t, s, provider.Options{Model: "o9", Warn: w.warn, Key: testKey})
	req := saying("one two three")
	req.Config = config(`{"temperature":0,"stop":["</r>"],"max_tokens":2,"top_k":5,"seed":1,"reasoning":{"effort":"low"}}`)
	for i, want := range []int{5, 6} {
		reply, err := m.Generate(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if reply.Text != "one two" || reply.Finish != "length" {
			t.Errorf("reply %d is %q, %s", i, reply.Text, reply.Finish)
		}
		if n := s.Count(); n != want {
			t.Errorf("%d requests, want %d", n, want)
		}
	}
	last := raw(string(s.Received()[5].Body))
	var names []string
	for name := range last.Members() {
		names = append(names, name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "max_completion_tokens messages model reasoning_effort seed" {
		t.Errorf("the last request has %s", got)
	}
	slices.Sort(w.said)
	if len(w.said) != 3 || !strings.Contains(w.said[0], "model small: stop is left out") || !strings.Contains(w.said[1], "temperature is left out") || !strings.Contains(w.said[2], "top_k is left out") {
		t.Errorf("warnings: %q", w.said)
	}
}

// TestOpenAILearnsNoMore: a service that refuses one setting after the other is not
// asked for ever.
func TestOpenAILearnsNoMore(t *testing.T) {
	s := service(t, func(_ *http.Request, body []byte) (int, http.Header, []byte) {
		for name := range raw(string(body)).Members() {
			if strings.HasPrefix(name, "x_") {
				return 400, nil, []byte(`{"error":{"message":"no","code":"unsupported_parameter","param":"` + name + `"}}`)
			}
		}
		return 200, nil, []byte(`{"choices":[{"message":{"content":""}}]}`)
	})
	req := saying("x")
	req.Config = datasets.Values{}
	for i := range 40 {
		req.Config[fmt.Sprintf("x_%d", i)] = datasets.Int(1)
	}
	_, err := openAI(t, s, provider.Options{}).Generate(t.Context(), req)
	if f := failureIn(t, err); f.Type != pipeline.TypeRefusal || s.Count() > 20 {
		t.Errorf("%v, after %d requests", f, s.Count())
	}
}

// TestOpenAILearnsAtOnce: many that learn the same thing at one time warn once.
func TestOpenAILearnsAtOnce(t *testing.T) {
	s := service(t, providertest.OpenAI)
	var w warnings
	m := openAI(t, s, provider.Options{Model: "o9", Warn: w.warn})
	tasks := func(yield func(int) bool) {
		for i := range 64 {
			if !yield(i) {
				return
			}
		}
	}
	ask := func(ctx context.Context, i int) (*pipeline.Reply, error) {
		req := saying(fmt.Sprint(i))
		req.Config = config(`{"temperature":0.5,"max_tokens":9}`)
		return m.Generate(ctx, req)
	}
	for _, err := range par.Map(t.Context(), tasks, par.Limits{Workers: 16}, ask) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(w.said) != 1 {
		t.Errorf("warnings: %q", w.said)
	}
}

// TestOpenAIDoesNotLeaveOut: what a reply's form or meaning depends on is not left
// out, and a value out of bounds is for whoever wrote it.
func TestOpenAIDoesNotLeaveOut(t *testing.T) {
	for _, c := range []struct{ name, said string }{
		{"the form", `{"error":{"message":"Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.","param":"response_format","code":"unsupported_value"}}`},
		{"a bound", `{"error":{"message":"Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead.","param":"temperature","code":"decimal_above_max_value"}}`},
		{"something else", `{"error":{"message":"Unsupported value: 'messages[0].role' does not support 'developer'. Remove 'stop'.","param":"messages[0].role","code":"unsupported_value"}}`},
		{"a word of the language", `{"error":{"message":"Unsupported model: I stop here.","param":null}}`},
		{"nothing that was sent", `{"error":{"message":"Unrecognized request argument supplied: foo_bar"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := service(t, says(http.StatusBadRequest, c.said))
			req := saying("x")
			req.Config = config(`{"temperature":3,"stop":["x"],"response_format":{"type":"json_schema","schema":{"type":"object"}}}`)
			f := failure(t, openAI(t, s, provider.Options{}), req)
			if f.Type != pipeline.TypeRefusal || f.Code != "http-400" || s.Count() != 1 {
				t.Errorf("%d requests, %+v", s.Count(), f)
			}
		})
	}
}

func TestOpenAILearnsFromOtherWords(t *testing.T) {
	for _, said := range []string{
		`{"error":{"message":"Unknown parameter: 'top_k'.","type":"invalid_request_error","param":"top_k","code":"unknown_parameter"}}`,
		`{"error":{"message":"property 'top_k' is unsupported","type":"invalid_request_error"}}`,
		`{"object":"error","message":"top_k is not supported","type":"BadRequestError","param":null,"code":400}`,
		`{"detail":[{"type":"extra_forbidden","loc":["body","top_k"],"msg":"Extra inputs are not permitted","input":5}]}`,
		`{"error":"unsupported option top_k"}`,
		`[{"error":{"message":"Unrecognized request argument supplied: top_k"}}]`,
	} {
		s := service(t, func(r *http.Request, body []byte) (int, http.Header, []byte) {
			if strings.Contains(string(body), "top_k") {
				return http.StatusUnprocessableEntity, nil, []byte(said)
			}
			return providertest.OpenAI(r, body)
		})
		req := saying("yes")
		req.Config = config(`{"top_k":5,"top_p":1}`)
		if reply, err := openAI(t, s, provider.Options{}).Generate(t.Context(), req); err != nil || reply.Text != "yes" || s.Count() != 2 {
			t.Errorf("%s: %v after %d requests", said, err, s.Count())
		}
	}
}

// TestOpenAILearnsOfLogprobs: without them their number is an error of its own.
func TestOpenAILearnsOfLogprobs(t *testing.T) {
	s := service(t, func(r *http.Request, body []byte) (int, http.Header, []byte) {
		if strings.Contains(string(body), "logprobs") {
			return http.StatusBadRequest, nil, []byte(`{"error":{"message":"You are not allowed to request logprobs from this model"}}`)
		}
		return providertest.OpenAI(r, body)
	})
	req := saying("yes")
	req.Config = config(`{"logprobs":3}`)
	if reply, err := openAI(t, s, provider.Options{}).Generate(t.Context(), req); err != nil || reply.Text != "yes" || s.Count() != 2 {
		t.Errorf("%v after %d requests", err, s.Count())
	}
}

func TestOpenAIFaults(t *testing.T) {
	const (
		refused, limited, server, timeout = pipeline.TypeRefusal, pipeline.TypeRateLimit, pipeline.TypeServer, pipeline.TypeTimeout
	)
	said := func(status int, message, code string, header ...string) providertest.Trouble {
		return providertest.Answer(status, `{"error":{"message":"`+message+`","type":"t","param":null,"code":`+code+`}}`, header...)
	}
	ok := func(body string) providertest.Trouble { return providertest.Answer(http.StatusOK, body) }
	for _, c := range []struct {
		name            string
		do              providertest.Trouble
		typ, code, want string
		after           time.Duration
	}{
		{"rate limit", said(429, "slow down", "null", "Retry-After", "7"), limited, "http-429", "answered 429: slow down", 7 * time.Second},
		{"rate limit in milliseconds", said(429, "slow down", "null", "Retry-After-Ms", "150", "Retry-After", "1"), limited, "http-429", "", 150 * time.Millisecond},
		{"no more money", said(429, "You exceeded your current quota", `"insufficient_quota"`), limited, "quota-exhausted", "exceeded your current quota", 0},
		{"no more money at a gateway", said(402, "Insufficient credits", "402"), limited, "quota-exhausted", "", 0},
		{"no key", said(401, "Incorrect API key provided: "+testKey, `"invalid_api_key"`), server, "http-401", "Incorrect API key provided: [secret]; the key is that of the environment variable TEST_KEY", 0},
		{"not allowed", said(403, "no access", "null"), refused, "http-403", "the environment variable TEST_KEY", 0},
		{"no such model", said(404, "The model does not exist", `"model_not_found"`), refused, "http-404", "The model does not exist", 0},
		{"too long", said(400, "maximum context length", `"context_length_exceeded"`), refused, "http-400", "maximum context length", 0},
		{"content filter of the request", said(400, "The response was filtered", `"content_filter"`), refused, "content-filter", "", 0},
		{"conflict", said(409, "x", "null"), server, "http-409", "", 0},
		{"request timeout", said(408, "x", "null"), timeout, "http-408", "", 0},
		{"server", said(500, "The server had an error", "null"), server, "http-500", "The server had an error", 0},
		{"overloaded", said(503, "overloaded", "null", "Retry-After", "Thu, 01 Jan 1970 00:00:00 GMT"), server, "http-503", "", 0},
		{"overloaded, another way", said(529, "overloaded", "null"), server, "http-529", "", 0},
		{"gateway timeout as a page", providertest.Page(504), timeout, "http-504", "answered 504: Oops", 0},
		{"bad gateway as a text", providertest.Answer(502, "no\nupstream", "Content-Type", "text/plain"), server, "http-502", "answered 502: no upstream", 0},
		{"nothing but a status", providertest.Answer(500, ""), server, "http-500", "answered 500: Internal Server Error", 0},
		{"sent on", providertest.Answer(307, "", "Location", "https://other.test/v1"), refused, "http-307", "another address", 0},
		{"a page instead of an answer", providertest.Page(200), server, "unreadable-answer", "HTML page (Oops)", 0},
		{"torn", providertest.Torn(), server, "unreadable-answer", `it begins: {"choices`, 0},
		{"empty", ok(""), server, "unreadable-answer", "the answer is empty", 0},
		{"no object", ok(`"hi"`), server, "unreadable-answer", "", 0},
		{"null", ok(`null`), server, "unreadable-answer", "", 0},
		{"a list", ok(`[{"choices":[]}]`), server, "unreadable-answer", "", 0},
		{"no choice", ok(`{"choices":[]}`), server, "unreadable-answer", "no choice with a message", 0},
		{"no message", ok(`{"choices":[{"finish_reason":"stop"}]}`), server, "unreadable-answer", "no choice with a message", 0},
		{"a message that is none", ok(`{"choices":[{"message":"yes"}]}`), server, "unreadable-answer", "", 0},
		{"two answers", ok(`{"choices":[{"message":{"content":"a"}}]} {}`), server, "unreadable-answer", "", 0},
		{"an error with status 200", ok(`{"error":{"message":"Provider returned error","code":429}}`), limited, "http-429", "Provider returned error", 0},
		{"an error with status 200 and no code", ok(`{"error":"boom"}`), server, "http-500", "boom", 0},
		{"refusal", ok(`{"choices":[{"message":{"content":null,"refusal":"I can't help with that."},"finish_reason":"stop"}]}`), refused, "refusal", "I can't help with that.", 0},
		{"content filter of the reply", ok(`{"choices":[{"message":{"content":"so"},"finish_reason":"content_filter"}]}`), refused, "content-filter", "", 0},
		{"failed on the way", ok(`{"choices":[{"message":{"content":"so"},"finish_reason":"error"}]}`), server, "reply-failed", "", 0},
		{"dropped", providertest.Drop(), server, "connection", "cannot be reached", 0},
		{"reset", providertest.Reset(), server, "connection", "broke off its answer", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := service(t, providertest.OpenAI, providertest.Fault{Times: 1, Do: c.do})
			m := openAI(t, s, provider.Options{Key: testKey, KeyFrom: "the environment variable TEST_KEY"})
			f := failure(t, m, saying("x"))
			if f.Type != c.typ || f.Code != c.code || f.RetryAfter != c.after || !strings.Contains(f.Message, c.want) || !strings.HasPrefix(f.Message, "model small: 127.0.0.1:") {
				t.Errorf("got %s, %s, %s: %s\nwant %s, %s, %s: …%s…", f.Type, f.Code, f.RetryAfter, f.Message, c.typ, c.code, c.after, c.want)
			}
			if strings.Contains(fmt.Sprintf("%+v", *f), testKey) {
				t.Errorf("the key is in %+v", *f)
			}
			if n := s.Count(); n != 1 {
				t.Errorf("it asked %d times", n)
			}
			if reply, err := m.Generate(t.Context(), saying("x")); err != nil || reply.Text != "x" {
				t.Errorf("asked again: %v", err)
			}
		})
	}
}

func TestOpenAISlow(t *testing.T) {
	s := service(t, providertest.OpenAI, providertest.Fault{Do: providertest.Slow(30 * time.Millisecond)})
	reply, err := openAI(t, s, provider.Options{}).Generate(t.Context(), saying("x"))
	if err != nil || reply.Wire < 30*time.Millisecond {
		t.Errorf("%+v, %v", reply, err)
	}
}

func TestOpenAINobodyThere(t *testing.T) {
	s := providertest.NewService(providertest.OpenAI)
	m := openAI(t, s, provider.Options{Key: testKey})
	s.Close()
	if f := failure(t, m, saying("x")); f.Type != pipeline.TypeServer || f.Code != "connection" {
		t.Errorf("got %+v", f)
	}
}

func TestOpenAIAddressAndKey(t *testing.T) {
	for _, c := range []struct {
		name, base string // base is what follows the server's address
		key        provider.Secret
		headers    map[string]string
		path       string
		want       http.Header
	}{
		{"key", "/v1", testKey, nil, "/v1/chat/completions", http.Header{"Authorization": {"Bearer " + testKey}, "Api-Key": nil}},
		{"no key", "/v1/", "", nil, "/v1/chat/completions", http.Header{"Authorization": nil, "Api-Key": nil}},
		{"no path", "", "", nil, "/chat/completions", nil},
		{"the whole address", "/v1/chat/completions", "", nil, "/v1/chat/completions", nil},
		{
			"Azure", "/openai/deployments/small?api-version=2024-10-21", testKey, nil,
			"/openai/deployments/small/chat/completions?api-version=2024-10-21",
			http.Header{"Api-Key": {testKey}, "Authorization": nil},
		},
		{
			"headers of a gateway", "/v1", "",
			map[string]string{"Ocp-Apim-Subscription-Key": testKey, "x-team": "a"},
			"/v1/chat/completions",
			http.Header{"Ocp-Apim-Subscription-Key": {testKey}, "X-Team": {"a"}, "Authorization": nil},
		},
		{"a header wins", "/v1", "another-key", map[string]string{"authorization": "Basic " + testKey}, "/v1/chat/completions", http.Header{"Authorization": {"Basic " + testKey}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := service(t, providertest.OpenAI)
			if _, err := openAI(t, s, provider.Options{BaseURL: s.URL + c.base, Key: c.key, Headers: c.headers}).Generate(t.Context(), saying("x")); err != nil {
				t.Fatal(err)
			}
			got := s.Received()[0]
			if got.Path != c.path || got.Method != http.MethodPost || got.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %s", got.Method, got.Path)
			}
			for name, want := range c.want {
				if !slices.Equal(got.Header[name], want) {
					t.Errorf("%s is %q, want %q", name, got.Header[name], want)
				}
			}
		})
	}
}

func TestOpenAIHintsAtThePath(t *testing.T) {
	s := service(t, says(http.StatusNotFound, "404 page not found"))
	for base, want := range map[string]bool{"": true, "/v1": false} {
		f := failure(t, openAI(t, s, provider.Options{BaseURL: s.URL + base}), saying("x"))
		if f.Code != "http-404" || strings.Contains(f.Message, "base_url has no path") != want {
			t.Errorf("%q: %s", base, f.Message)
		}
	}
}

func TestOpenAIRefuses(t *testing.T) {
	for _, c := range []struct {
		want string
		o    provider.Options
	}{
		{"model small: the provider openai takes no replies", provider.Options{Replies: "r.jsonl"}},
		{"model small: stream is no setting of a model: replies are read whole", provider.Options{Config: config(`{"stream":true}`)}},
		{"model small: n is no setting", provider.Options{Config: config(`{"n":2}`)}},
		{"model small: base_url is no address", provider.Options{BaseURL: "localhost:8000"}},
	} {
		c.o.Name, c.o.Now = "small", time.Now
		if _, err := provider.Open("openai", c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

const lookProgram = `
name: look
description: Say what is there.
inputs:
  - {name: place, shape: {type: string}}
outputs:
  - {name: seen, shape: {type: string}}
settings: {adapter: json}
`

// TestOpenAIPrograms asks a program of the json layout, whose schema the service
// enforces.
func TestOpenAIPrograms(t *testing.T) {
	p, err := pipeline.ParseProgram("look.yaml", []byte(lookProgram))
	if err != nil {
		t.Fatal(err)
	}
	c := &pipeline.Caller{
		LM:  pipeline.LM{Name: "small", Model: openAI(t, service(t, providertest.OpenAI), provider.Options{})},
		Now: time.Now, NewID: func() string { return "call" },
	}
	call, err := c.Ask(t.Context(), p, pipeline.Ask{Inputs: datasets.Values{"place": datasets.Text("the hall")}})
	if err != nil || call.Failure != nil {
		t.Fatal(err, call.Failure)
	}
	if seen, _ := call.Outputs["seen"].AsText(); !strings.Contains(seen, "the hall") {
		t.Errorf("outputs %s", call.Outputs.Object().JSON())
	}
	if u := call.Usage(); u.Input == nil || *u.Input == 0 || u.Cached == nil {
		t.Errorf("usage %+v", u)
	}
}

const deskProgram = `
name: desk
description: Say whether the room is free.
inputs: [{name: question, shape: {type: string}}]
outputs: [{name: result, shape: {type: string}}]
tools: [{name: room_status, effects: reads, parameters: {type: object, properties: {room: {type: integer}}, required: [room]}}]
`

// TestOpenAIMendsArguments: a model that wrote no JSON is told so by its tool, sees
// what it wrote, and mends it.
func TestOpenAIMendsArguments(t *testing.T) {
	calls := func(arguments string) string {
		return `{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"room_status","arguments":` +
			datasets.Text(arguments).JSON() + `}}]},"finish_reason":"tool_calls"}]}`
	}
	answers := []string{calls(`{"room": 3`), calls(`{"room": 3}`), `{"choices":[{"message":{"content":"<result>\nfree\n</result>"},"finish_reason":"stop"}]}`}
	s := service(t, func(_ *http.Request, body []byte) (int, http.Header, []byte) {
		return http.StatusOK, nil, []byte(answers[strings.Count(string(body), `"role":"tool"`)])
	})
	p, err := pipeline.ParseProgram("desk.yaml", []byte(deskProgram))
	if err != nil {
		t.Fatal(err)
	}
	status := pipeline.ToolFunc(func(_ context.Context, _ pipeline.Invocation, input datasets.Value) (string, error) {
		if input.Kind() != '{' {
			return "", pipeline.Failf(pipeline.TypeTool, "", "the input must be an object, not %s", input.Kind())
		}
		return "room " + input.Member("room").JSON() + " is free", nil
	})
	c := &pipeline.Caller{
		LM:    pipeline.LM{Name: "small", Model: openAI(t, s, provider.Options{})},
		Tools: tools.Map{"room_status": status}, Now: time.Now, NewID: func() string { return "call" },
	}
	call, err := c.Ask(t.Context(), p, pipeline.Ask{Inputs: datasets.Values{"question": datasets.Text("Is room 3 free?")}})
	if err != nil || call.Failure != nil {
		t.Fatal(err, call.Failure)
	}
	last := string(s.Received()[2].Body)
	for _, want := range []string{
		`"arguments":"{\"room\": 3"`, `"content":"error: ToolError: the input must be an object, not string"`,
		`"arguments":"{\"room\": 3}"`, `"content":"room 3 is free"`,
	} {
		if !strings.Contains(last, want) {
			t.Errorf("the last request lacks %s:\n%s", want, last)
		}
	}
}
