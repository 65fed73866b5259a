package provider_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/pipeline/provider/providertest"
)

func TestAnthropicRequest(t *testing.T) {
	conversation := &pipeline.Request{
		System: "Be kind.",
		Messages: []pipeline.Message{
			pipeline.TextMessage("developer", "Answer in one word."),
			pipeline.TextMessage("user", "One?"),
			pipeline.TextMessage("user", "Or two?"),
			pipeline.TextMessage("assistant", "Two"),
			pipeline.TextMessage("developer", "Now more."),
			{Role: "user", Parts: []pipeline.Part{{Text: " "}, {Raw: raw(`{"type":"text","text":"Three?","mark":1}`)}, {Raw: raw(`{"type":"image","source":{"type":"url","url":"u"}}`)}}},
			pipeline.TextMessage("assistant", ""),
		},
	}
	again := looked("call.1", "b")
	again.Messages = append(again.Messages, pipeline.TextMessage("user", "Go on."))
	again.Messages = append(again.Messages, looked("call.1").Messages[1:]...)
	again.Tools = append(again.Tools, pipeline.Tool{Name: "stop"})
	odd := looked("1")
	odd.Messages[1].Parts[1].Raw = raw(`{"type":"tool_call","id":"1","name":"look","input":"q: 1"}`)
	odd.Tools = nil
	user := `"model":"claude","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]`
	for _, c := range []struct {
		name string
		req  *pipeline.Request
		want string
	}{
		{"plain", said("hi"), `{` + user + `,"max_tokens":4096}`},
		{"conversation", conversation, `{"model":"claude","max_tokens":4096,"system":"Be kind.\n\nAnswer in one word.","messages":[
			{"role":"user","content":[{"type":"text","text":"One?"},{"type":"text","text":"Or two?"}]},
			{"role":"assistant","content":[{"type":"text","text":"Two"}]},
			{"role":"user","content":[{"type":"text","text":"Now more."},{"type":"text","text":"Three?"},{"type":"image","source":{"type":"url","url":"u"}}]}]}`},
		{"tools", again, `{"model":"claude","max_tokens":4096,
			"tools":[{"name":"look","description":"Looks.","input_schema":{"type":"object","properties":{"q":{"type":"string"}}}},{"name":"stop","input_schema":{"type":"object"}}],
			"messages":[{"role":"user","content":[{"type":"text","text":"Where is it?"}]},
			{"role":"assistant","content":[{"type":"text","text":"I look."},
				{"type":"tool_use","id":"call_1","name":"look","input":{"q":"0"}},{"type":"tool_use","id":"b","name":"look","input":{"q":"1"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"found 0"},{"type":"tool_result","tool_use_id":"b","content":"found 1"},{"type":"text","text":"Go on."}]},
			{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"call_1_2","name":"look","input":{"q":"0"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1_2","content":"found 0"}]}]}`},
		{"an input that is no object", odd, `{"model":"claude","max_tokens":4096,"messages":[{"role":"user","content":[{"type":"text","text":"Where is it?"}]},
			{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"1","name":"look","input":{"input":"q: 1"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"found 0"}]}]}`},
		{
			"settings", with("hi", `{"temperature":0,"top_k":5,"max_tokens":100,"stop":["a"," ","b"],"seed":null,"metadata":{"user_id":"u"}}`),
			`{` + user + `,"temperature":0,"top_k":5,"max_tokens":100,"stop_sequences":["a","b"],"metadata":{"user_id":"u"}}`,
		},
		{"one stop", with("hi", `{"stop":"a","top_p":0.5,"max_completion_tokens":7}`), `{` + user + `,"top_p":0.5,"max_tokens":7,"stop_sequences":["a"]}`},
		{"a tool must be called", with("hi", `{"tool_choice":"required"}`), `{` + user + `,"max_tokens":4096,"tool_choice":{"type":"any"}}`},
		{"no tool may be called", with("hi", `{"tool_choice":"none"}`), `{` + user + `,"max_tokens":4096,"tool_choice":{"type":"none"}}`},
		{"one tool must be called", with("hi", `{"tool_choice":{"type":"function","function":{"name":"look"}}}`), `{` + user + `,"max_tokens":4096,"tool_choice":{"type":"tool","name":"look"}}`},
		{
			"a choice in the service's form", with("hi", `{"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`),
			`{` + user + `,"max_tokens":4096,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`,
		},
		{"schema", with("hi", record), `{` + user + `,"max_tokens":4096,"output_config":{"format":{"type":"json_schema",
			"schema":{"type":"object","properties":{"answer":{"type":"string"},"sure":{"type":"integer"}},"required":["answer","sure"],"additionalProperties":false}}}}`},
		{
			"wrapped schema", with("hi", `{"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","additionalProperties":false}}}}`),
			`{` + user + `,"max_tokens":4096,"output_config":{"format":{"type":"json_schema","schema":{"type":"object","additionalProperties":false}}}}`,
		},
		{
			"schema with bounds", with("hi", `{"response_format":{"type":"json_schema","schema":{"type":"object","additionalProperties":false,"properties":{
			"minimum":{"type":"integer","minimum":1,"maximum":5},"list":{"type":"array","minItems":2,"maxItems":3,"items":{"anyOf":[{"type":"string","maxLength":3},{"const":{"maximum":1}}]}}},
			"$defs":{"x":{"uniqueItems":true}}}}}`),
			`{` + user + `,"max_tokens":4096,"output_config":{"format":{"type":"json_schema","schema":{"type":"object","additionalProperties":false,"properties":{
			"minimum":{"type":"integer"},"list":{"type":"array","items":{"anyOf":[{"type":"string"},{"const":{"maximum":1}}]}}},"$defs":{"x":{}}}}}}`,
		},
		{"effort", with("hi", `{"reasoning":{"effort":"medium"}}`), `{` + user + `,"max_tokens":12288,"thinking":{"type":"adaptive"},"output_config":{"effort":"medium"}}`},
		{"effort by another name", with("hi", `{"reasoning_effort":"minimal","max_tokens":50}`), `{` + user + `,"max_tokens":50,"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}}`},
		{"no reasoning", with("hi", `{"reasoning":{"effort":"none"},"temperature":0}`), `{` + user + `,"max_tokens":4096,"thinking":{"type":"disabled"},"temperature":0}`},
		{"budget", with("hi", `{"reasoning":{"budget_tokens":2000}}`), `{` + user + `,"max_tokens":6096,"thinking":{"type":"enabled","budget_tokens":2000}}`},
		{
			"budget within the limit", with("hi", `{"reasoning":{"budget_tokens":2000},"max_tokens":1500,"temperature":1,"top_k":3}`),
			`{` + user + `,"max_tokens":1500,"thinking":{"type":"enabled","budget_tokens":1499},"temperature":1}`,
		},
		{"no room for a budget", with("hi", `{"reasoning":{"budget_tokens":2000},"max_tokens":1000}`), `{` + user + `,"max_tokens":1000}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := simulate(t, "anthropic", "claude", providertest.Anthropic)
			_, _ = s.Generate(t.Context(), c.req) // the service may refuse it
			equalJSON(t, "body", s.body(t), c.want)
		})
	}
}

// The same requests that a run makes are taken by the simulated service, whichever
// model it is, and what the model does not take is told once.
func TestAnthropicModels(t *testing.T) {
	reason := looked("a", "b")
	reason.Config = config(`{"reasoning":{"effort":"low"}}`)
	more, earlier := reason.Clone(), reason.Clone()
	more.Messages = append(more.Messages, pipeline.TextMessage("user", "Go on."))
	earlier.Messages = append(earlier.Messages, pipeline.TextMessage("assistant", "There."), pipeline.TextMessage("user", "And now?"))
	for _, c := range []struct {
		name, model string
		req         *pipeline.Request
		asked       int      // requests until it is answered
		warnings    []string // what each says
		has, hasNot string   // of the request that was answered
	}{
		{"all is taken", "claude", with("hi", `{"temperature":0,"top_k":2}`), 1, nil, `"temperature":0`, ""},
		{"one of two", "claude", with("hi", `{"temperature":0,"top_p":0.5}`), 2, []string{"top_p"}, `"temperature":0`, `"top_p"`},
		{"no sampling", "newer", with("hi", `{"temperature":0,"top_p":0.5,"top_k":1}`), 4, []string{"temperature", "top_k", "top_p"}, "", `"top_`},
		{"budget for effort", "older", with("hi", `{"reasoning":{"effort":"low"}}`), 2, nil, `"budget_tokens":2048`, `"effort"`},
		{"no budget", "newer", with("hi", `{"reasoning":{"budget_tokens":2048}}`), 2, []string{"reasoning"}, "", `"thinking"`},
		{"reasoning and tools", "claude", reason, 1, nil, `"adaptive"`, ""},
		{"reasoning with a budget and tools", "older", reason, 2, []string{"results of tools"}, "", `"thinking"`},
		{"and the user's word", "older", more, 2, []string{"results of tools"}, "", `"thinking"`},
		{"reasoning with a budget after tools", "older", earlier, 2, nil, `"budget_tokens":2048`, ""},
		{"reasoning and temperature", "claude", with("hi", `{"reasoning":{"effort":"low","summary":"auto"},"temperature":0}`), 1, []string{"reasoning.summary", "temperature"}, "", `"temperature"`},
		{"seed", "claude", with("hi", `{"seed":1,"n":2,"presence_penalty":1}`), 1, []string{"n", "presence_penalty", "seed"}, "", `"seed"`},
		{"unknown to the service", "claude", with("hi", `{"fine":1}`), 2, []string{"fine"}, "", `"fine"`},
		{"unknown to the service, a name of its", "claude", with("hi", `{"user":"u","in_all":true}`), 3, []string{"user", "in_all"}, "", `"user"`},
		{"JSON without schema", "claude", with("hi", `{"response_format":{"type":"json_object"}}`), 1, []string{"response_format json_object"}, "", `"output_config"`},
		{"a member that is none", "claude", with("hi", `{"stop_sequences":["a"]}`), 1, []string{"stop_sequences"}, "", `"stop_sequences"`},
		{"bounds", "claude", with("hi", strings.ReplaceAll(record, `"integer"`, `"integer","minimum":1`)), 1, []string{"response_format's minimum"}, `"integer"`, `"minimum"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := simulate(t, "anthropic", c.model, providertest.Anthropic)
			s.ask(t, c.req)
			if s.Count() != c.asked {
				t.Errorf("%d requests, want %d", s.Count(), c.asked)
			}
			s.ask(t, c.req)
			body := datasets.ValuesOf(s.body(t))
			delete(body, "messages")
			if text := body.Object().JSON(); !strings.Contains(text, c.has) || c.hasNot != "" && strings.Contains(text, c.hasNot) {
				t.Errorf("body %s", text)
			}
			if s.Count() != c.asked+1 || len(s.said) != len(c.warnings) {
				t.Errorf("%d requests, warnings %q", s.Count(), s.said)
			}
			for _, want := range c.warnings {
				if !strings.Contains(strings.Join(s.said, "\n"), want+" is left out") {
					t.Errorf("nothing says that %s is left out: %q", want, s.said)
				}
			}
		})
	}
}

func TestAnthropicReply(t *testing.T) {
	unknown := usage(-1, -1, -1, -1, -1)
	call := pipeline.ToolCall{ID: "toolu_1", Name: "look", Input: raw(`{"q": 1.50}`)}
	for _, c := range []struct {
		body string
		want pipeline.Reply
	}{
		{
			`{"model":"claude-1","content":[{"type":"text","text":"a"},{"type":"text","text":" b","citations":[]}],"stop_reason":"end_turn",
			"usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":100,"cache_creation_input_tokens":1000}}`,
			pipeline.Reply{Text: "a b", Finish: "stop", Model: "claude-1", Usage: usage(1110, 5, 1115, 100, -1)},
		},
		{
			`{"content":[],"stop_reason":"stop_sequence","usage":{"input_tokens":10,"output_tokens":0,"cache_read_input_tokens":null}}`,
			pipeline.Reply{Finish: "stop", Usage: usage(10, 0, 10, -1, -1)},
		},
		{
			`{"content":[{"type":"text","text":"a"}],"stop_reason":"max_tokens","usage":{"output_tokens":5,"output_tokens_details":{"thinking_tokens":4}}}`,
			pipeline.Reply{Text: "a", Finish: "length", Usage: usage(-1, 5, -1, -1, 4)},
		},
		{
			`{"content":[{"type":"text","text":"a"}],"stop_reason":"model_context_window_exceeded","usage":{"input_tokens":-1,"output_tokens":"5"}}`,
			pipeline.Reply{Text: "a", Finish: "length", Usage: unknown},
		},
		{`{"content":[{"type":"text","text":"a"}],"stop_reason":null}`, pipeline.Reply{Text: "a", Usage: unknown}},
		{`{"content":[{"type":"text","text":"a"}],"stop_reason":"pause_turn"}`, pipeline.Reply{Text: "a", Finish: "pause_turn", Usage: unknown}},
		{
			`{"content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"a"},{"type":"tool_use","id":"toolu_1","name":"look","input":{"q": 1.50}},
			{"type":"tool_use","id":"toolu_2","name":"stop"}],"stop_reason":"tool_use"}`,
			pipeline.Reply{
				Text: "a", Finish: "tool_calls", Usage: unknown, Calls: []pipeline.ToolCall{call, {ID: "toolu_2", Name: "stop", Input: raw(`{}`)}},
				Response: raw(`{"finish_reason":"tool_calls","message":{"role":"assistant","parts":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"a"},
					{"type":"tool_call","id":"toolu_1","name":"look","input":{"q":1.5}},{"type":"tool_call","id":"toolu_2","name":"stop","input":{}}]}}`),
			},
		},
		{
			`{"content":[{"type":"text","text":"a","citations":[{"n":1}]}],"stop_reason":"end_turn"}`,
			pipeline.Reply{
				Text: "a", Finish: "stop", Usage: unknown,
				Response: raw(`{"finish_reason":"stop","message":{"role":"assistant","parts":[{"type":"text","text":"a","citations":[{"n":1}]}]}}`),
			},
		},
	} {
		checkReply(t, "anthropic", c.body, c.want)
	}
}

// What the service says went wrong.
func TestAnthropicErrors(t *testing.T) {
	says := func(kind, message string) string {
		return `{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"r"}`
	}
	for _, c := range []struct {
		do        providertest.Trouble
		typ, code string
		message   string
		after     time.Duration
	}{
		{providertest.Answer(529, says("overloaded_error", "Overloaded")), pipeline.TypeServer, "http-529", "overloaded_error: Overloaded", 0},
		{providertest.Answer(429, says("rate_limit_error", "Slow down"), "Retry-After", "7"), pipeline.TypeRateLimit, "http-429", "rate_limit_error: Slow down", 7 * time.Second},
		{providertest.Answer(500, says("api_error", "Internal server error")), pipeline.TypeServer, "http-500", "api_error: Internal", 0},
		{providertest.Answer(504, says("timeout_error", "Too long")), pipeline.TypeTimeout, "http-504", "timeout_error", 0},
		{providertest.Answer(401, says("authentication_error", "invalid x-api-key")), pipeline.TypeServer, "http-401", "invalid x-api-key", 0},
		{providertest.Answer(400, says("invalid_request_error", "Output blocked by content filtering policy")), pipeline.TypeRefusal, "content-filter", "blocked", 0},
		{providertest.Answer(400, says("invalid_request_error", "Your credit balance is too low")), pipeline.TypeRefusal, "http-400", "credit", 0},
		{
			providertest.Answer(200, `{"content":[{"type":"text","text":"I"}],"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":"It may harm."}}`),
			pipeline.TypeRefusal, "refusal", "refused: cyber: It may harm.", 0,
		},
		{providertest.Answer(200, `{"content":[],"stop_reason":"refusal","stop_details":null}`), pipeline.TypeRefusal, "refusal", "refused", 0},
	} {
		s := simulate(t, "anthropic", "claude", providertest.Anthropic, providertest.Fault{Do: c.do})
		_, err := s.Generate(t.Context(), said("hi"))
		f, ok := errors.AsType[*pipeline.Failure](err)
		if !ok || f.Type != c.typ || f.Code != c.code || !strings.Contains(f.Message, c.message) || f.RetryAfter != c.after {
			t.Errorf("got %#v, want %s %s: …%s…, after %v", f, c.typ, c.code, c.message, c.after)
		}
	}
}

func TestAnthropicHeaders(t *testing.T) {
	s := simulate(t, "anthropic", "claude", providertest.Anthropic)
	s.ask(t, said("hi"))
	r := s.Received()[0]
	if r.Path != "/v1/messages" || r.Header.Get("X-Api-Key") != testKey || r.Header.Get("Anthropic-Version") != "2023-06-01" || r.Header.Get("Authorization") != "" {
		t.Errorf("%s %v", r.Path, r.Header)
	}
}
