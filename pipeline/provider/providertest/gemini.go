package providertest

import (
	"net/http"
	"strings"

	"evalrun/datasets"
)

// Gemini is a simulated generateContent of the Gemini API: it refuses what the
// service refuses, in its words, and answers in its form. A model whose name begins
// with "gemini-2" takes no thinking level, "gemini-1" no thinking at all, any other
// wants a signature with each step's first tool call; "absent" is not there.
func Gemini(r *http.Request, body []byte) (int, http.Header, []byte) {
	model, found := strings.CutPrefix(r.URL.Path, "/v1beta/models/")
	model, generates := strings.CutSuffix(model, ":generateContent")
	switch {
	case r.Method != http.MethodPost || !found || !generates || model == "absent":
		return geminiError(http.StatusNotFound, "NOT_FOUND", r.URL.Path+" is not found for API version v1beta, or is not supported for generateContent.")
	case r.Header.Get("X-Goog-Api-Key") == "":
		return geminiError(http.StatusForbidden, "PERMISSION_DENIED", "Method doesn't allow unregistered callers.")
	}
	v, err := datasets.ParseValue(body)
	if err != nil {
		return geminiError(http.StatusBadRequest, "INVALID_ARGUMENT", "Invalid JSON payload received. "+err.Error())
	}
	a := &geminiAsked{model: model, body: datasets.ValuesOf(v)}
	for _, check := range []func() string{a.members, a.settings, a.thinking, a.contents} {
		if wrong := check(); wrong != "" {
			return geminiError(http.StatusBadRequest, "INVALID_ARGUMENT", wrong)
		}
	}
	return ok(a.reply())
}

func geminiError(status int, word, message string) (int, http.Header, []byte) {
	return status, nil, encode(map[string]any{"error": map[string]any{"code": status, "message": message, "status": word}})
}

// geminiAsked is a request to the simulated service. Its checks say what is wrong
// with it.
type geminiAsked struct {
	asked
	model  string
	body   datasets.Values
	thinks bool
}

func (a *geminiAsked) config(name string) datasets.Value {
	return a.body["generationConfig"].Member(name)
}

func (a *geminiAsked) members() string {
	unknown := func(name, where string) string {
		return `Invalid JSON payload received. Unknown name "` + name + `"` + where + `: Cannot find field.`
	}
	if name := unknownMember(a.body.Object(), "contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings", "cachedContent"); name != "" {
		return unknown(name, "")
	}
	if name := unknownMember(a.body["generationConfig"], "maxOutputTokens", "stopSequences", "responseMimeType", "responseJsonSchema", "thinkingConfig",
		"temperature", "topP", "topK", "seed", "presencePenalty", "frequencyPenalty", "responseLogprobs"); name != "" {
		return unknown(name, " at 'generation_config'")
	}
	for t := range a.body["tools"].Elements() {
		for f := range t.Member("functionDeclarations").Elements() {
			if name := unknownMember(f, "name", "description", "parametersJsonSchema"); name != "" {
				return unknown(name, " at 'tools[0].function_declarations[0]'")
			}
			a.tools = append(a.tools, f.Member("name").String())
		}
	}
	return ""
}

func (a *geminiAsked) settings() string {
	if temperature, given := a.config("temperature").AsFloat(); given && (temperature < 0 || temperature > 2) {
		return "Unable to submit request because it has a temperature value out of the range from 0 to 2."
	}
	if !a.config("presencePenalty").IsZero() || !a.config("frequencyPenalty").IsZero() {
		return "Penalty is not enabled for this model"
	}
	most, _ := a.config("maxOutputTokens").AsInt()
	a.most = int(most)
	if a.stops = textsOf(a.config("stopSequences")); len(a.stops) > 5 {
		return "The number of stop_sequences must be at most 5."
	}
	if schema := a.config("responseJsonSchema"); !schema.IsZero() {
		if a.config("responseMimeType").String() != "application/json" {
			return "Response schema is only supported with response mime type application/json"
		}
		a.schema = schema
	}
	return ""
}

func (a *geminiAsked) thinking() string {
	level, budget := a.config("thinkingConfig").Member("thinkingLevel"), a.config("thinkingConfig").Member("thinkingBudget")
	switch {
	case a.config("thinkingConfig").IsZero():
		return ""
	case strings.HasPrefix(a.model, "gemini-1"):
		return "Thinking is not supported for this model."
	case !level.IsZero() && strings.HasPrefix(a.model, "gemini-2"):
		return "Thinking level is not supported for this model."
	case !level.IsZero() && !budget.IsZero():
		return "You can only set only one of thinking budget and thinking level."
	}
	n, _ := budget.AsInt()
	a.thinks = !level.IsZero() || n > 0
	return ""
}

func (a *geminiAsked) contents() string {
	var waiting []string // names of the tools called in the content before
	last := ""
	for c := range a.body["contents"].Elements() {
		role := c.Member("role").String()
		if role != "user" && role != "model" {
			return "Please use a valid role: user, model."
		}
		a.text, a.told = "", false
		var calls, results []string
		parts := 0
		for p := range c.Member("parts").Elements() {
			parts++
			call, result := p.Member("functionCall"), p.Member("functionResponse")
			switch {
			case !call.IsZero():
				older := strings.HasPrefix(a.model, "gemini-1") || strings.HasPrefix(a.model, "gemini-2")
				if len(calls) == 0 && !older && p.Member("thoughtSignature").IsZero() {
					return "Function call is missing a thought_signature in functionCall parts."
				}
				if call.Member("args").Kind() != '{' {
					return "Invalid value at 'contents[0].parts[0].function_call.args'"
				}
				calls = append(calls, call.Member("name").String())
			case !result.IsZero():
				if result.Member("response").Kind() != '{' {
					return "Invalid value at 'contents[0].parts[0].function_response.response'"
				}
				results = append(results, result.Member("name").String())
				a.text, a.told = result.Member("response").Member("output").String(), true
			default:
				if a.text += p.Member("text").String(); a.text == "" {
					return "Unable to submit request because it must have a text parameter."
				}
			}
		}
		switch {
		case parts == 0:
			return "Unable to submit request because it must include at least one parts field."
		case strings.Join(results, ",") != strings.Join(waiting, ","):
			return "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
		}
		waiting, last = calls, role
	}
	if last != "user" {
		return "Please ensure that multiturn requests end with a user role."
	}
	return ""
}

// reply is the answer. Counts of nothing are left out, as in the service's JSON.
func (a *geminiAsked) reply() any {
	s := a.answer()
	parts := []any{}
	input, output, thought := words(a.text), words(s.text), 0
	usage := map[string]any{"promptTokenCount": input}
	if s.finish == "refusal" && strings.Contains(a.text, "forbidden prompt") {
		return map[string]any{
			"promptFeedback": map[string]any{"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": usage, "modelVersion": a.model + "-001",
		}
	}
	if a.thinks {
		parts = append(parts, map[string]any{"text": "Hm.", "thought": true})
		thought = 3
		usage["thoughtsTokenCount"] = thought
	}
	for _, text := range halves(s.text) {
		parts = append(parts, map[string]any{"text": text})
		usage["candidatesTokenCount"] = output
	}
	for i, tool := range s.calls {
		call := map[string]any{"functionCall": map[string]any{"name": tool, "args": map[string]any{"text": a.text}}}
		if i == 0 {
			call["thoughtSignature"] = "c2lnbmVk"
		}
		parts = append(parts, call)
	}
	usage["totalTokenCount"] = input + output + thought
	finish := map[string]string{"stop": "STOP", "stopped": "STOP", "length": "MAX_TOKENS", "calls": "STOP", "refusal": "SAFETY"}
	return map[string]any{
		"candidates": []any{map[string]any{
			"content": map[string]any{"role": "model", "parts": parts}, "finishReason": finish[s.finish], "index": 0,
		}},
		"modelVersion": a.model + "-001", "responseId": "1", "usageMetadata": usage,
	}
}
