package provider_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"evalrun/pipeline"
	"evalrun/pipeline/provider/providertest"
)

func TestGeminiRequest(t *testing.T) {
	conversation := &pipeline.Request{
		System: "Be kind.",
		Messages: []pipeline.Message{
			pipeline.TextMessage("developer", "Answer in one word."),
			pipeline.TextMessage("user", "One?"),
			pipeline.TextMessage("user", "Or two?"),
			pipeline.TextMessage("assistant", "Two"),
			pipeline.TextMessage("developer", "Now more."),
			{Role: "user", Parts: []pipeline.Part{{Text: ""}, {Raw: raw(`{"type":"text","text":"Three?","mark":1}`)}, {Raw: raw(`{"inlineData":{"mimeType":"image/png","data":"aGk="}}`)}}},
		},
	}
	again := looked("a", "b")
	again.Messages = append(again.Messages, pipeline.TextMessage("user", "Go on."))
	again.Tools = append(again.Tools, pipeline.Tool{Name: "stop"})
	lost := said("hi")
	lost.Messages = append(lost.Messages, pipeline.Message{Role: "tool", Parts: []pipeline.Part{{Raw: raw(`{"type":"tool_result","id":"x","text":"found"}`)}}})
	user := `"contents":[{"role":"user","parts":[{"text":"hi"}]}]`
	tools := func(signature string) string {
		return `{"tools":[{"functionDeclarations":[{"name":"look","description":"Looks.","parametersJsonSchema":{"type":"object","properties":{"q":{"type":"string"}}}},{"name":"stop"}]}],
			"contents":[{"role":"user","parts":[{"text":"Where is it?"}]},
			{"role":"model","parts":[{"text":"I look."},{"functionCall":{"id":"a","name":"look","args":{"q":"0"}}` + signature + `},{"functionCall":{"id":"b","name":"look","args":{"q":"1"}}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"a","name":"look","response":{"output":"found 0"}}},{"functionResponse":{"id":"b","name":"look","response":{"output":"found 1"}}}]},
			{"role":"user","parts":[{"text":"Go on."}]}]}`
	}
	for _, c := range []struct {
		name, model string
		req         *pipeline.Request
		want        string
	}{
		{"plain", "gemini-3", said("hi"), `{` + user + `}`},
		{"conversation", "gemini-3", conversation, `{"systemInstruction":{"parts":[{"text":"Be kind.\n\nAnswer in one word."}]},"contents":[
			{"role":"user","parts":[{"text":"One?"},{"text":"Or two?"}]},{"role":"model","parts":[{"text":"Two"}]},
			{"role":"user","parts":[{"text":"Now more."},{"text":"Three?"},{"inlineData":{"mimeType":"image/png","data":"aGk="}}]}]}`},
		{"tools", "gemini-3", again, tools(`,"thoughtSignature":"skip_thought_signature_validator"`)},
		{"tools of an older model", "gemini-2.5-pro", again, tools("")},
		{"a result of no call", "gemini-3", lost, `{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"user","parts":[{"functionResponse":{"id":"x","name":"x","response":{"output":"found"}}}]}]}`},
		{
			"settings", "gemini-3", with("hi", `{"temperature":0,"top_p":0.5,"top_k":5,"max_tokens":100,"stop":["a","b"],"seed":7,"presence_penalty":null,"responseLogprobs":true,
			"safetySettings":[{"category":"c"}],"cachedContent":"cachedContents/1"}`),
			`{` + user + `,"generationConfig":{"temperature":0,"topP":0.5,"topK":5,"maxOutputTokens":100,"stopSequences":["a","b"],"seed":7,"responseLogprobs":true},
			"safetySettings":[{"category":"c"}],"cachedContent":"cachedContents/1"}`,
		},
		{
			"penalties", "gemini-3", with("hi", `{"presence_penalty":0.5,"frequency_penalty":1,"max_completion_tokens":7,"stop":"a"}`),
			`{` + user + `,"generationConfig":{"maxOutputTokens":7,"stopSequences":["a"]}}`,
		},
		{"a tool must be called", "gemini-3", with("hi", `{"tool_choice":"required"}`), `{` + user + `,"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}}`},
		{"no tool may be called", "gemini-3", with("hi", `{"tool_choice":"none"}`), `{` + user + `,"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}}`},
		{
			"one tool must be called", "gemini-3", with("hi", `{"tool_choice":{"type":"function","function":{"name":"look"}}}`),
			`{` + user + `,"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["look"]}}}`,
		},
		{
			"schema", "gemini-3", with("hi", record), `{` + user + `,"generationConfig":{"responseMimeType":"application/json",
			"responseJsonSchema":{"type":"object","properties":{"answer":{"type":"string"},"sure":{"type":"integer"}},"required":["answer","sure"],"additionalProperties":false}}}`,
		},
		{"JSON without schema", "gemini-3", with("hi", `{"response_format":{"type":"json_object"}}`), `{` + user + `,"generationConfig":{"responseMimeType":"application/json"}}`},
		{"effort", "gemini-3", with("hi", `{"reasoning":{"effort":"max"}}`), `{` + user + `,"generationConfig":{"thinkingConfig":{"thinkingLevel":"high"}}}`},
		{"effort for an older model", "gemini-2.5-flash", with("hi", `{"reasoning_effort":"medium"}`), `{` + user + `,"generationConfig":{"thinkingConfig":{"thinkingBudget":8192}}}`},
		{"budget", "gemini-3", with("hi", `{"reasoning":{"budget_tokens":2000}}`), `{` + user + `,"generationConfig":{"thinkingConfig":{"thinkingBudget":2000}}}`},
		{"no reasoning", "gemini-3", with("hi", `{"reasoning":{"effort":"none"}}`), `{` + user + `,"generationConfig":{"thinkingConfig":{"thinkingBudget":0}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := simulate(t, "gemini", c.model, providertest.Gemini)
			_, _ = s.Generate(t.Context(), c.req) // the service may refuse it
			equalJSON(t, "body", s.body(t), c.want)
		})
	}
}

// What a model does not take is told once.
func TestGeminiModels(t *testing.T) {
	for _, c := range []struct {
		name, model string
		req         *pipeline.Request
		asked       int      // requests until it is answered
		warnings    []string // what each says
		config      string   // of the request that was answered
	}{
		{"all is taken", "gemini-3", with("hi", `{"temperature":0,"seed":2}`), 1, nil, `{"seed":2,"temperature":0}`},
		{"penalties", "gemini-3", with("hi", `{"frequency_penalty":1,"presence_penalty":1}`), 3, []string{"frequency_penalty", "presence_penalty"}, ``},
		{"budget for effort", "gemini-2-latest", with("hi", `{"reasoning":{"effort":"low"}}`), 1, nil, `{"thinkingConfig":{"thinkingBudget":2048}}`},
		{"no reasoning at all", "gemini-1.5", with("hi", `{"reasoning":{"effort":"low"},"temperature":1}`), 2, []string{"reasoning"}, `{"temperature":1}`},
		{"members of reasoning", "gemini-3", with("hi", `{"reasoning":{"effort":"low","summary":"auto"}}`), 1, []string{"reasoning.summary"}, `{"thinkingConfig":{"thinkingLevel":"low"}}`},
		{"no such setting", "gemini-3", with("hi", `{"n":1,"logprobs":true}`), 1, []string{"n", "logprobs"}, ``},
		{"unknown to the service", "gemini-3", with("hi", `{"fine":1}`), 2, []string{"fine"}, ``},
		{"a member that is none", "gemini-3", with("hi", `{"maxOutputTokens":5}`), 1, []string{"maxOutputTokens"}, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := simulate(t, "gemini", c.model, providertest.Gemini)
			s.ask(t, c.req)
			if s.Count() != c.asked {
				t.Errorf("%d requests, want %d", s.Count(), c.asked)
			}
			s.ask(t, c.req)
			if got := s.body(t).Member("generationConfig"); c.config != got.Canonical() {
				t.Errorf("generationConfig %s, want %s", got.Canonical(), c.config)
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

// A model under a name that does not say its generation takes a budget when it does
// not take a level.
func TestGeminiLevel(t *testing.T) {
	s := simulate(t, "gemini", "latest", providertest.Gemini, providertest.Fault{
		Has: "thinkingLevel",
		Do:  providertest.Answer(400, `{"error":{"message":"Thinking level is not supported for this model.","status":"INVALID_ARGUMENT"}}`),
	})
	s.ask(t, with("hi", `{"reasoning":{"effort":"high"}}`))
	equalJSON(t, "generationConfig", s.body(t).Member("generationConfig"), `{"thinkingConfig":{"thinkingBudget":16384}}`)
	if s.said != nil {
		t.Errorf("nothing was left out, and yet: %q", s.said)
	}
}

func TestGeminiReply(t *testing.T) {
	unknown := usage(-1, -1, -1, -1, -1)
	candidate := func(parts, rest string) string {
		return `{"candidates":[{"content":{"role":"model","parts":[` + parts + `]}` + rest + `}`
	}
	for _, c := range []struct {
		body string
		want pipeline.Reply
	}{
		{
			candidate(`{"text":"a"},{"text":" b","thoughtSignature":"s"}`, `,"finishReason":"STOP"}],"modelVersion":"gemini-3-001",
			"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":5,"thoughtsTokenCount":20,"totalTokenCount":125}`),
			pipeline.Reply{Text: "a b", Finish: "stop", Model: "gemini-3-001", Usage: usage(100, 25, 125, 60, 20)},
		},
		{
			candidate(`{"text":"a"}`, `,"finishReason":"MAX_TOKENS"}],"usageMetadata":{"promptTokenCount":100,"toolUsePromptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":115}`),
			pipeline.Reply{Text: "a", Finish: "length", Usage: usage(110, 5, 115, -1, -1)},
		},
		// All went into reasoning: the count of none is left out.
		{
			`{"candidates":[{"finishReason":"MAX_TOKENS"}],"usageMetadata":{"promptTokenCount":100,"thoughtsTokenCount":20,"totalTokenCount":120}}`,
			pipeline.Reply{Finish: "length", Usage: usage(100, 20, 120, -1, 20)},
		},
		{candidate(``, `}],"usageMetadata":{"promptTokenCount":100}`), pipeline.Reply{Usage: usage(100, -1, -1, -1, -1)}},
		{candidate(``, `}],"usageMetadata":{"candidatesTokenCount":-5,"promptTokenCount":9,"totalTokenCount":5}`), pipeline.Reply{Usage: usage(9, -1, 5, -1, -1)}},
		{candidate(`{"text":"a"}`, `}]`), pipeline.Reply{Text: "a", Usage: unknown}},
		{candidate(`{"text":"hm","thought":true},{"text":"a"}`, `,"finishReason":"STOP"}]`), pipeline.Reply{
			Text: "a", Finish: "stop", Usage: unknown,
			Response: raw(`{"finish_reason":"stop","message":{"role":"assistant","parts":[{"text":"hm","thought":true},{"type":"text","text":"a"}]}}`),
		}},
		{candidate(`{"functionCall":{"name":"look","args":{"q": 1.50}},"thoughtSignature":"s"},{"functionCall":{"id":"2","name":"stop"}}`, `,"finishReason":"STOP"}]`), pipeline.Reply{
			Finish: "tool_calls", Usage: unknown,
			Calls: []pipeline.ToolCall{{Name: "look", Input: raw(`{"q": 1.50}`)}, {ID: "2", Name: "stop", Input: raw(`{}`)}},
			Response: raw(`{"finish_reason":"tool_calls","message":{"role":"assistant","parts":[
				{"type":"tool_call","id":"","name":"look","input":{"q":1.5}},{"type":"tool_call","id":"2","name":"stop","input":{}}]}}`),
		}},
		{candidate(``, `,"finishReason":"MALFORMED_FUNCTION_CALL"}]`), pipeline.Reply{Finish: "malformed_function_call", Usage: unknown}},
	} {
		checkReply(t, "gemini", c.body, c.want)
	}
}

// What the service says went wrong, or keeps to itself.
func TestGeminiErrors(t *testing.T) {
	says := func(status, message, details string) string {
		return `{"error":{"code":1,"message":"` + message + `","status":"` + status + `","details":[` + details + `]}}`
	}
	retry := func(delay string) string {
		return `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[]},7,{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":` + delay + `}`
	}
	kept := func(reason string) string {
		return `{"candidates":[{"content":{"parts":[{"text":"I"}]},"finishReason":"` + reason + `","finishMessage":"So it is."}]}`
	}
	for _, c := range []struct {
		do        providertest.Trouble
		typ, code string
		message   string
		after     time.Duration
	}{
		{providertest.Answer(429, says("RESOURCE_EXHAUSTED", "Quota exceeded", retry(`"34.5s"`))), pipeline.TypeRateLimit, "http-429", "RESOURCE_EXHAUSTED: Quota exceeded", 34500 * time.Millisecond},
		{providertest.Answer(429, says("RESOURCE_EXHAUSTED", "Quota exceeded", retry(`"2s"`)), "Retry-After", "7"), pipeline.TypeRateLimit, "http-429", "Quota", 7 * time.Second},
		{providertest.Answer(429, says("RESOURCE_EXHAUSTED", "Quota exceeded", retry(`"soon"`)+`,{"@type":"x","retryDelay":"9s"}`)), pipeline.TypeRateLimit, "http-429", "Quota", 0},
		{providertest.Answer(429, says("RESOURCE_EXHAUSTED", "Quota exceeded", retry(`"-5s"`))), pipeline.TypeRateLimit, "http-429", "Quota", 0},
		{providertest.Answer(503, says("UNAVAILABLE", "The model is overloaded.", "")), pipeline.TypeServer, "http-503", "UNAVAILABLE: The model", 0},
		{providertest.Answer(504, says("DEADLINE_EXCEEDED", "Too long", "")), pipeline.TypeTimeout, "http-504", "DEADLINE_EXCEEDED", 0},
		{providertest.Answer(400, says("INVALID_ARGUMENT", "API key not valid.", "")), pipeline.TypeRefusal, "http-400", "API key not valid", 0},
		{providertest.Answer(200, kept("SAFETY")), pipeline.TypeRefusal, "content-filter", "SAFETY: So it is.", 0},
		{providertest.Answer(200, kept("RECITATION")), pipeline.TypeRefusal, "content-filter", "RECITATION", 0},
		{providertest.Answer(200, `{"promptFeedback":{"blockReason":"OTHER","blockReasonMessage":"No."},"usageMetadata":{"promptTokenCount":4}}`), pipeline.TypeRefusal, "content-filter", "refused the request: OTHER: No.", 0},
		{providertest.Answer(200, `{"candidates":[],"promptFeedback":{}}`), pipeline.TypeServer, "unreadable-answer", "no candidates", 0},
	} {
		s := simulate(t, "gemini", "gemini-3", providertest.Gemini, providertest.Fault{Do: c.do})
		_, err := s.Generate(t.Context(), said("hi"))
		f, ok := errors.AsType[*pipeline.Failure](err)
		if !ok || f.Type != c.typ || f.Code != c.code || !strings.Contains(f.Message, c.message) || f.RetryAfter != c.after {
			t.Errorf("got %#v, want %s %s: …%s…, after %v", f, c.typ, c.code, c.message, c.after)
		}
	}
}

// A part in the form of another service cannot be sent.
func TestGeminiPart(t *testing.T) {
	s := simulate(t, "gemini", "gemini-3", providertest.Gemini)
	_, err := s.Generate(t.Context(), &pipeline.Request{Messages: []pipeline.Message{{Role: "user", Parts: []pipeline.Part{{Raw: raw(`{"type":"image"}`)}}}}})
	if f, ok := errors.AsType[*pipeline.Failure](err); !ok || f.Type != pipeline.TypeRefusal || f.Code != "part" || !strings.Contains(f.Message, `type "image"`) || s.Count() != 0 {
		t.Error(err)
	}
}

func TestGeminiPath(t *testing.T) {
	for model, want := range map[string]string{
		"gemini-3":        "/v1beta/models/gemini-3:generateContent",
		"models/gemini-3": "/v1beta/models/gemini-3:generateContent",
		"tunedModels/a?b": "/v1beta/tunedModels/a%3Fb:generateContent",
	} {
		s := simulate(t, "gemini", model, providertest.Gemini, providertest.Fault{Do: providertest.Answer(200, `{"candidates":[{}]}`)})
		s.ask(t, said("hi"))
		if r := s.Received()[0]; r.Path != want || r.Header.Get("X-Goog-Api-Key") != testKey || r.Header.Get("Authorization") != "" {
			t.Errorf("%s: %s %v", model, r.Path, r.Header)
		}
	}
}

// A blocked prompt, as the simulated service has it.
func TestGeminiForbidden(t *testing.T) {
	s := simulate(t, "gemini", "gemini-3", providertest.Gemini)
	for _, text := range []string{"a forbidden prompt", "a forbidden answer"} {
		_, err := s.Generate(t.Context(), said(text))
		if f, ok := errors.AsType[*pipeline.Failure](err); !ok || f.Code != "content-filter" {
			t.Errorf("%s: %v", text, err)
		}
	}
}
