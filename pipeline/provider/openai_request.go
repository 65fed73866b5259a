package provider

import (
	"slices"

	"evalrun/datasets"
	"evalrun/internal/canon"
	"evalrun/pipeline"
)

// The two names of the limit of a reply's tokens; reasoning models take the second alone.
const (
	maxTokens           = "max_tokens"
	maxCompletionTokens = "max_completion_tokens"
)

// settings are what a request's config is to the service, without what the model
// does not take. A setting that is not known here is passed as it is.
func (m *openAI) settings(config datasets.Values) datasets.Values {
	sent := make(datasets.Values, len(config)+1)
	for name, v := range config {
		if _, own := openAIOwn[name]; own || given(v).IsZero() {
			continue
		}
		switch name {
		case "response_format":
			sent[name] = responseFormat(v)
		case "reasoning":
			setEffort(sent, v)
		case "logprobs":
			setLogprobs(sent, v)
		default:
			sent[name] = v
		}
	}
	if most, ok := sent[maxTokens]; ok && m.untaken.refuses(maxTokens) {
		delete(sent, maxTokens)
		if _, ok := sent[maxCompletionTokens]; !ok {
			sent[maxCompletionTokens] = most
		}
	}
	for name := range sent {
		if m.untaken.leaves(name) {
			delete(sent, name)
		}
	}
	if sent["logprobs"].IsZero() {
		delete(sent, "top_logprobs") // it is an error alone
	}
	return sent
}

// setEffort passes {effort: …} under the service's name for it. What says more is
// passed as it is, for gateways that take the object.
func setEffort(sent datasets.Values, reasoning datasets.Value) {
	members := datasets.ValuesOf(reasoning)
	switch effort := members["effort"]; {
	case reasoning.Kind() == '"':
		sent["reasoning_effort"] = reasoning
	case len(members) == 1 && !effort.IsZero():
		sent["reasoning_effort"] = effort
	default:
		sent["reasoning"] = reasoning
	}
}

// setLogprobs passes a number of alternatives as the two settings it is.
func setLogprobs(sent datasets.Values, v datasets.Value) {
	n, isNumber := v.AsInt()
	if !isNumber {
		sent["logprobs"] = v
		return
	}
	sent["logprobs"] = datasets.Bool(true)
	if n > 0 {
		sent["top_logprobs"] = v
	}
}

// responseFormat is a response_format as the service has it: {type: json_schema,
// schema} has its schema one level deeper there, with a name.
func responseFormat(v datasets.Value) datasets.Value {
	schema := v.Member("schema")
	if kind, _ := v.Member("type").AsText(); kind != "json_schema" || schema.IsZero() {
		return v
	}
	return datasets.Values{
		"type": datasets.Text("json_schema"),
		"json_schema": datasets.Values{
			"name": datasets.Text("reply"), "schema": schema, "strict": datasets.Bool(strict(schema)),
		}.Object(),
	}.Object()
}

// strictKeywords are those that a schema may have where the service is to enforce
// it to the letter (OpenAI's guide to structured outputs, supported schemas).
var strictKeywords = []string{
	"$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum", "exclusiveMaximum", "exclusiveMinimum",
	"format", "items", "maxItems", "maximum", "minItems", "minimum", "multipleOf", "pattern", "properties", "required", "title", "type",
}

// strict reports whether a service can enforce a schema to the letter: every
// keyword in it is one it knows, and every object is closed and has no member
// that may be absent.
func strict(schema datasets.Value) bool {
	members := datasets.ValuesOf(schema)
	for name, v := range members {
		switch {
		case !slices.Contains(strictKeywords, name):
			return false
		case name == "properties" || name == "$defs":
			for _, s := range v.Members() {
				if !strict(s) {
					return false
				}
			}
		case name == "items" && !strict(v):
			return false
		case name == "anyOf":
			for s := range v.Elements() {
				if !strict(s) {
					return false
				}
			}
		}
	}
	return constrained(members) && whole(members)
}

// constrained reports whether a schema says what fits it.
func constrained(schema datasets.Values) bool {
	for _, name := range []string{"type", "anyOf", "$ref", "enum", "const"} {
		if !schema[name].IsZero() {
			return true
		}
	}
	return false
}

// whole reports whether a schema, if it is that of an object, is closed with all
// members required, and if it is that of a list, says of what.
func whole(schema datasets.Values) bool {
	types := []datasets.Value{schema["type"]}
	if schema["type"].Kind() == '[' {
		types = slices.Collect(schema["type"].Elements())
	}
	for _, t := range types {
		switch kind, _ := t.AsText(); kind {
		case "object":
			if closed, isBool := schema["additionalProperties"].AsBool(); !isBool || closed {
				return false
			}
			required := slices.Collect(schema["required"].Elements())
			for name := range schema["properties"].Members() {
				if !slices.ContainsFunc(required, datasets.Text(name).Equal) {
					return false
				}
			}
		case "array":
			if schema["items"].IsZero() {
				return false
			}
		}
	}
	return true
}

// body is the request as the service has it.
func (m *openAI) body(req *pipeline.Request, settings datasets.Values) []byte {
	b := make([]byte, 0, 512+len(req.System))
	b = append(b, `{"model":`...)
	b = canon.AppendString(b, m.name)
	b = append(b, `,"messages":[`...)
	first := len(b)
	if req.System != "" {
		b = append(appendRole(b, first, "system"), `,"content":`...)
		b = append(canon.AppendString(b, req.System), '}')
	}
	for _, message := range req.Messages {
		b = appendMessage(b, first, message)
	}
	b = append(b, ']')
	for _, name := range settings.Names() {
		b = append(canon.AppendString(append(b, ','), name), ':')
		b = append(b, settings[name].JSON()...)
	}
	if len(req.Tools) > 0 {
		b = append(b, `,"tools":[`...)
		for i, tool := range req.Tools {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendTool(b, tool)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

func appendTool(b []byte, tool pipeline.Tool) []byte {
	b = append(b, `{"type":"function","function":{"name":`...)
	b = canon.AppendString(b, tool.Name)
	if tool.Description != "" {
		b = append(b, `,"description":`...)
		b = canon.AppendString(b, tool.Description)
	}
	if !tool.Parameters.IsZero() {
		b = append(b, `,"parameters":`...)
		b = append(b, tool.Parameters.JSON()...)
	}
	return append(b, `}}`...)
}

// appendMessage adds a message to a list of them that begins at first. Each tool's
// result is a message of its own to the service.
func appendMessage(b []byte, first int, message pipeline.Message) []byte {
	var calls []pipeline.ToolCall
	var content []pipeline.Part
	results := 0
	for _, p := range message.Parts {
		if id, text, ok := p.ToolResult(); ok {
			b = appendRole(b, first, "tool")
			b = canon.AppendString(append(b, `,"tool_call_id":`...), id)
			b = append(canon.AppendString(append(b, `,"content":`...), text), '}')
			results++
		} else if call, ok := p.ToolCall(); ok {
			calls = append(calls, call)
		} else {
			content = append(content, p)
		}
	}
	if results > 0 && results == len(message.Parts) {
		return b
	}
	b = append(appendRole(b, first, message.Role), `,"content":`...)
	if len(content) == 0 && len(calls) > 0 {
		b = append(b, `null`...)
	} else {
		b = appendContent(b, content)
	}
	for i, call := range calls {
		if i == 0 {
			b = append(b, `,"tool_calls":[`...)
		} else {
			b = append(b, ',')
		}
		b = appendCall(b, call)
	}
	if len(calls) > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}

// appendRole begins a message.
func appendRole(b []byte, first int, role string) []byte {
	if len(b) > first {
		b = append(b, ',')
	}
	return canon.AppendString(append(b, `{"role":`...), role)
}

// appendContent adds a message's content: a text where there is nothing else, for
// not every server takes a list.
func appendContent(b []byte, parts []pipeline.Part) []byte {
	if !slices.ContainsFunc(parts, func(p pipeline.Part) bool { return !p.Raw.IsZero() }) {
		var text string
		for _, p := range parts {
			text += p.Text
		}
		return canon.AppendString(b, text)
	}
	b = append(b, '[')
	for i, p := range parts {
		if i > 0 {
			b = append(b, ',')
		}
		if !p.Raw.IsZero() {
			b = append(b, p.Raw.JSON()...)
			continue
		}
		b = append(b, `{"type":"text","text":`...)
		b = append(canon.AppendString(b, p.Text), '}')
	}
	return append(b, ']')
}

// appendCall adds a tool call. An input that was no JSON is kept as a text, and
// goes back as the model wrote it.
func appendCall(b []byte, call pipeline.ToolCall) []byte {
	b = append(b, `{"id":`...)
	b = canon.AppendString(b, call.ID)
	b = append(b, `,"type":"function","function":{"name":`...)
	b = canon.AppendString(b, call.Name)
	b = append(b, `,"arguments":`...)
	arguments, isText := call.Input.AsText()
	if !isText {
		arguments = call.Input.JSON()
	}
	b = canon.AppendString(b, arguments)
	return append(b, `}}`...)
}
