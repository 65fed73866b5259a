package providertest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"evalrun/datasets"
)

// OpenAI is the dialect of a chat completions API. What it says follows from the
// request alone:
//
//   - With tools, and no result of one after the last message of the user, it
//     calls each tool with {"text": that message}.
//   - With a JSON schema, it writes an object of which each property is the last
//     message where it is a text, and else the least that fits.
//   - Else it says back the last message.
//
// A reply ends before a stop sequence, and after max_tokens words. A token is a
// word. Models called reasoning or o… take no temperature, stop, or max_tokens,
// and any model refuses a setting that the API does not have, as the service does.
func OpenAI(r *http.Request, body []byte) (status int, header http.Header, response []byte) {
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		return openAIError(http.StatusNotFound, "Invalid URL ("+r.Method+" "+r.URL.Path+")", "", "")
	}
	if r.Method != http.MethodPost {
		return openAIError(http.StatusMethodNotAllowed, "Not allowed to "+r.Method+" on "+r.URL.Path, "", "")
	}
	var q openAIRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return openAIError(http.StatusBadRequest, "We could not parse the JSON body of your request.", "", "")
	}
	if status, header, response, refused := q.refuse(); refused {
		return status, header, response
	}
	return http.StatusOK, http.Header{"X-Request-Id": {"req_1"}}, q.answer()
}

// openAIRequest is what the dialect knows of a request.
type openAIRequest struct {
	Model     string                    `json:"model"`
	Messages  []openAIMessage           `json:"messages"`
	Tools     []openAITool              `json:"tools"`
	Stop      datasets.Value            `json:"stop"`
	Most      datasets.Value            `json:"max_tokens"`
	MostNew   datasets.Value            `json:"max_completion_tokens"`
	Effort    datasets.Value            `json:"reasoning_effort"`
	Format    datasets.Value            `json:"response_format"`
	Remaining map[string]jsontext.Value `json:",embed"`
}

type openAIMessage struct {
	Role    string         `json:"role"`
	Content datasets.Value `json:"content"`
	Calls   []openAICall   `json:"tool_calls,omitzero"`
	ID      string         `json:"tool_call_id,omitzero"`
}

type openAICall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type openAITool struct {
	Type     string `json:"type"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
}

func openAIError(status int, message, code, param string) (int, http.Header, []byte) {
	e := map[string]any{"message": message, "type": "invalid_request_error", "param": nil, "code": nil}
	if code != "" {
		e["code"] = code
	}
	if param != "" {
		e["param"] = param
	}
	return status, nil, encode(map[string]any{"error": e})
}

func encode(v any) []byte {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic("providertest: " + err.Error())
	}
	return b
}

// openAISettings are the further settings that the API has.
var openAISettings = map[string]bool{
	"temperature": true, "top_p": true, "seed": true, "frequency_penalty": true, "presence_penalty": true,
	"logit_bias": true, "logprobs": true, "top_logprobs": true, "parallel_tool_calls": true, "tool_choice": true,
}

func (q *openAIRequest) reasons() bool {
	return strings.HasPrefix(q.Model, "o") || strings.HasPrefix(q.Model, "reasoning")
}

// refuse is the service's word on a request that it does not take.
func (q *openAIRequest) refuse() (status int, header http.Header, response []byte, refused bool) {
	refuse := func(message, code, param string) (int, http.Header, []byte, bool) {
		status, header, response := openAIError(http.StatusBadRequest, message, code, param)
		return status, header, response, true
	}
	for _, name := range sorted(q.Remaining) {
		if !openAISettings[name] {
			return refuse("Unrecognized request argument supplied: "+name, "", "")
		}
	}
	if problem, param := q.wrong(); problem != "" {
		return refuse(problem, "", param)
	}
	if !q.reasons() {
		if !q.Effort.IsZero() {
			return refuse("Unrecognized request argument supplied: reasoning_effort", "", "")
		}
		return 0, nil, nil, false
	}
	switch {
	case !q.Most.IsZero():
		return refuse("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "unsupported_parameter", "max_tokens")
	case !q.Stop.IsZero():
		return refuse("Unsupported parameter: 'stop' is not supported with this model.", "unsupported_parameter", "stop")
	case string(q.Remaining["temperature"]) != "" && string(q.Remaining["temperature"]) != "1":
		return refuse("Unsupported value: 'temperature' does not support "+string(q.Remaining["temperature"])+" with this model. Only the default (1) value is supported.", "unsupported_value", "temperature")
	}
	return 0, nil, nil, false
}

// wrong is what is not of the API's form.
func (q *openAIRequest) wrong() (problem, param string) {
	if len(q.Messages) == 0 {
		return "[] is too short - 'messages'", "messages"
	}
	called := map[string]bool{}
	for i, m := range q.Messages {
		at := fmt.Sprintf("messages[%d]", i)
		switch m.Role {
		case "system", "developer", "user", "assistant", "tool":
		default:
			return fmt.Sprintf("Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'tool', and 'developer'.", m.Role), at + ".role"
		}
		for _, c := range m.Calls {
			if c.Type != "function" || !jsontext.Value(c.Function.Arguments).IsValid() && !strings.HasPrefix(c.Function.Arguments, "{") {
				return "Invalid tool call.", at + ".tool_calls"
			}
			called[c.ID] = true
		}
		switch kind := m.Content.Kind(); {
		case m.Role == "tool" && !called[m.ID]:
			return "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.", at + ".role"
		case kind != '"' && kind != '[' && len(m.Calls) == 0:
			return fmt.Sprintf("Invalid value for 'content': expected a string, got %s.", m.Content.JSON()), at + ".content"
		}
	}
	if kind, _ := q.Format.Member("type").AsText(); kind == "json_schema" && (q.Format.Member("json_schema").Member("name").IsZero() || q.schema().IsZero()) {
		return "Missing required parameter: 'response_format.json_schema'.", "response_format.json_schema"
	}
	for i, t := range q.Tools {
		if t.Type != "function" || t.Function.Name == "" {
			return fmt.Sprintf("Missing required parameter: 'tools[%d].function'.", i), fmt.Sprintf("tools[%d].function", i)
		}
	}
	return "", ""
}

func (q *openAIRequest) schema() datasets.Value {
	return q.Format.Member("json_schema").Member("schema")
}

// answer is the completion.
func (q *openAIRequest) answer() []byte {
	last := q.Messages[len(q.Messages)-1]
	said := textOf(last.Content)
	message := map[string]any{"role": "assistant", "content": nil, "refusal": nil, "annotations": []any{}}
	finish, output := "stop", 0
	if len(q.Tools) > 0 && last.Role != "tool" {
		finish = "tool_calls"
		var calls []openAICall
		for i, t := range q.Tools {
			c := openAICall{ID: fmt.Sprintf("call_%d", i+1), Type: "function"}
			c.Function.Name, c.Function.Arguments = t.Function.Name, string(encode(map[string]any{"text": said}))
			calls = append(calls, c)
			output += words(c.Function.Arguments)
		}
		message["tool_calls"] = calls
	} else {
		text := said
		if !q.schema().IsZero() {
			text = string(encode(fitting(q.schema(), said)))
		}
		text, finish = Ended(text, q.stops(), q.most())
		message["content"] = text
		output = words(text)
	}
	input := 0
	for _, m := range q.Messages {
		input += words(textOf(m.Content))
	}
	reasoning := 0
	if q.reasons() {
		reasoning = 7
	}
	return encode(map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1700000000,
		"model": q.Model + "-2025-01-01", "system_fingerprint": "fp_1",
		"choices": []any{map[string]any{"index": 0, "message": message, "logprobs": nil, "finish_reason": finish}},
		"usage": map[string]any{
			"prompt_tokens": input, "completion_tokens": output + reasoning, "total_tokens": input + output + reasoning,
			"prompt_tokens_details":     map[string]any{"cached_tokens": input / 2},
			"completion_tokens_details": map[string]any{"reasoning_tokens": reasoning},
		},
	})
}

func (q *openAIRequest) stops() (stops []string) {
	if s, ok := q.Stop.AsText(); ok {
		return []string{s}
	}
	for v := range q.Stop.Elements() {
		stops = append(stops, v.String())
	}
	return stops
}

// most is the limit of tokens; 0 for none.
func (q *openAIRequest) most() int {
	for _, v := range []datasets.Value{q.Most, q.MostNew} {
		if n, ok := v.AsInt(); ok {
			return int(n)
		}
	}
	return 0
}
