package providertest

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"evalrun/datasets"
)

// Anthropic is a simulated Messages API: it refuses what the service refuses, in
// its words, and answers in its form. A model whose name begins with "older" takes
// no adaptive thinking, one that begins with "newer" no sampling and no thinking
// budget, and "absent" is not there.
func Anthropic(r *http.Request, body []byte) (int, http.Header, []byte) {
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/v1/messages":
		return anthropicError(http.StatusNotFound, "not_found_error", "Not Found")
	case r.Header.Get("X-Api-Key") == "":
		return anthropicError(http.StatusUnauthorized, "authentication_error", "x-api-key header is required")
	case r.Header.Get("Anthropic-Version") == "":
		return anthropicError(http.StatusBadRequest, "invalid_request_error", "anthropic-version: header is required")
	}
	v, err := datasets.ParseValue(body)
	if err != nil {
		return anthropicError(http.StatusBadRequest, "invalid_request_error", "The request body is not valid JSON: "+err.Error())
	}
	if model := v.Member("model").String(); model == "absent" {
		return anthropicError(http.StatusNotFound, "not_found_error", "model: "+model)
	}
	a := &anthropicAsked{body: datasets.ValuesOf(v)}
	for _, check := range []func() string{a.members, a.settings, a.thinking, a.messages} {
		if wrong := check(); wrong != "" {
			return anthropicError(http.StatusBadRequest, "invalid_request_error", wrong)
		}
	}
	return ok(a.reply())
}

func anthropicError(status int, kind, message string) (int, http.Header, []byte) {
	return status, nil, encode(map[string]any{
		"type": "error", "error": map[string]any{"type": kind, "message": message}, "request_id": "req_1",
	})
}

// anthropicAsked is a request to the simulated service. Its checks say what is
// wrong with it.
type anthropicAsked struct {
	asked
	body   datasets.Values
	thinks bool
}

func (a *anthropicAsked) model() string { return a.body["model"].String() }

func (a *anthropicAsked) members() string {
	if name := unknownMember(a.body.Object(), "model", "max_tokens", "messages", "system", "tools", "tool_choice", "stop_sequences", "temperature",
		"top_p", "top_k", "thinking", "output_config", "metadata", "service_tier"); name != "" {
		return name + ": Extra inputs are not permitted"
	}
	for _, name := range []string{"model", "max_tokens", "messages"} {
		if a.body[name].IsZero() {
			return name + ": Field required"
		}
	}
	for t := range a.body["tools"].Elements() {
		if t.Member("input_schema").Member("type").String() != "object" {
			return "tools.0.input_schema.type: Field required"
		}
		a.tools = append(a.tools, t.Member("name").String())
	}
	return ""
}

func (a *anthropicAsked) settings() string {
	most, whole := a.body["max_tokens"].AsInt()
	if a.most = int(most); !whole || most < 1 {
		return "max_tokens: Input should be greater than or equal to 1"
	}
	temperature, given := a.body["temperature"].AsFloat()
	for _, name := range []string{"temperature", "top_p", "top_k"} {
		if strings.HasPrefix(a.model(), "newer") && !a.body[name].IsZero() {
			return "`" + name + "` is deprecated for this model."
		}
	}
	switch {
	case given && (temperature < 0 || temperature > 1):
		return "temperature: range: 0..1"
	case given && !a.body["top_p"].IsZero():
		return "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
	}
	for _, s := range textsOf(a.body["stop_sequences"]) {
		if strings.TrimSpace(s) == "" {
			return "stop_sequences: each stop sequence must contain non-whitespace"
		}
		a.stops = append(a.stops, s)
	}
	format := a.body["output_config"].Member("format")
	if schema := format.Member("schema"); !schema.IsZero() {
		if format.Member("type").String() != "json_schema" || schema.Member("additionalProperties").JSON() != "false" {
			return "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false"
		}
		if strings.Contains(schema.JSON(), `"minimum"`) {
			return "output_config.format.schema: For 'integer' type, property 'minimum' is not supported"
		}
		a.schema = schema
	}
	return ""
}

func (a *anthropicAsked) thinking() string {
	thinking, effort := a.body["thinking"], a.body["output_config"].Member("effort")
	kind, _ := thinking.Member("type").AsText()
	budget, _ := thinking.Member("budget_tokens").AsInt()
	switch older := strings.HasPrefix(a.model(), "older"); {
	case kind == "adaptive" && older:
		return "adaptive thinking is not supported on this model"
	case kind == "enabled" && strings.HasPrefix(a.model(), "newer"):
		return `"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`
	case !effort.IsZero() && older:
		return "This model does not support the effort parameter."
	case kind == "enabled" && budget < 1024:
		return "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
	case kind == "enabled" && int(budget) >= a.most:
		return "`max_tokens` must be greater than `thinking.budget_tokens`."
	}
	a.thinks = kind == "adaptive" || kind == "enabled"
	if temperature, given := a.body["temperature"].AsFloat(); a.thinks && (given && temperature != 1 || !a.body["top_k"].IsZero()) {
		return "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode."
	}
	return ""
}

var anthropicID = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

func (a *anthropicAsked) messages() string {
	ids := map[string]bool{}
	open := map[string]bool{} // calls of the message before that wait for a result
	before, first := "", ""   // the role before; the type of a message's first block
	unsigned := false         // the model called tools last, and its thinking is missing
	for m := range a.body["messages"].Elements() {
		role := m.Member("role").String()
		if role != "user" && role != "assistant" || before == "" && role != "user" {
			return `messages: Input should be 'user' or 'assistant', the first of them 'user'`
		}
		if role == before {
			return "messages: roles must alternate"
		}
		a.text, a.told, first = "", false, ""
		for b := range m.Member("content").Elements() {
			kind := b.Member("type").String()
			if first == "" {
				first = kind
			}
			switch kind {
			case "text":
				if a.text += b.Member("text").String(); strings.TrimSpace(a.text) == "" {
					return "messages: text content blocks must be non-empty"
				}
			case "tool_use":
				id := b.Member("id").String()
				if ids[id] || !anthropicID.MatchString(id) {
					return "messages: `tool_use` ids must be unique and match '^[a-zA-Z0-9_-]+$'"
				}
				if b.Member("input").Kind() != '{' {
					return "messages: tool_use.input: Input should be a valid dictionary"
				}
				ids[id], open[id] = true, true
			case "tool_result":
				id := b.Member("tool_use_id").String()
				if !open[id] {
					return "messages: unexpected `tool_use_id` found in `tool_result` blocks: " + id
				}
				delete(open, id)
				a.text, a.told = b.Member("content").String(), true
			}
		}
		if first == "" {
			return "messages: user messages must have non-empty content"
		}
		if role == "user" && len(open) > 0 {
			return "messages: `tool_use` ids were found without `tool_result` blocks immediately after"
		}
		if role == "assistant" {
			unsigned = len(open) > 0 && first != "thinking"
		}
		before = role
	}
	if unsigned && a.body["thinking"].Member("type").String() == "enabled" {
		return "messages: Expected `thinking` or `redacted_thinking`, but found `tool_use`"
	}
	if before != "user" {
		return "messages: the last message must be the user's"
	}
	return ""
}

// reply is the answer. It reads two words from the cache and writes one.
func (a *anthropicAsked) reply() any {
	s := a.answer()
	blocks := []any{}
	usage := map[string]any{
		"input_tokens": words(a.text), "output_tokens": words(s.text), "cache_read_input_tokens": 2, "cache_creation_input_tokens": 1,
	}
	if a.thinks {
		blocks = append(blocks, map[string]any{"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"})
		usage["output_tokens_details"] = map[string]any{"thinking_tokens": 1}
		usage["output_tokens"] = words(s.text) + 1
	}
	for _, text := range halves(s.text) {
		blocks = append(blocks, map[string]any{"type": "text", "text": text})
	}
	for i, tool := range s.calls {
		blocks = append(blocks, map[string]any{
			"type": "tool_use", "id": fmt.Sprintf("toolu_%d", i+1), "name": tool, "input": map[string]any{"text": a.text},
		})
	}
	stop := map[string]string{"stop": "end_turn", "stopped": "stop_sequence", "length": "max_tokens", "calls": "tool_use", "refusal": "refusal"}
	return map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": a.model() + "-20260101",
		"content": blocks, "stop_reason": stop[s.finish], "stop_sequence": nil, "usage": usage,
	}
}
