package provider

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// saying gathers what a model said, from a service that answers in parts.
type saying struct {
	words strings.Builder
	calls []pipeline.ToolCall
	parts []pipeline.Part
	more  bool // than text
}

func (s *saying) text(text string) {
	s.words.WriteString(text)
	if text != "" {
		s.parts = append(s.parts, pipeline.Part{Text: text})
	}
}

// textIn takes a text that has something beside it, which records keep.
func (s *saying) textIn(text string, part datasets.Value) {
	s.words.WriteString(text)
	s.other(part)
}

// call takes a tool call. A service may leave out an input of nothing.
func (s *saying) call(id, name string, input datasets.Value) {
	if input = given(input); input.IsZero() {
		input = datasets.RawValue(`{}`)
	}
	call := pipeline.ToolCall{ID: id, Name: name, Input: arguments(input.JSON())}
	s.calls = append(s.calls, call)
	s.other(callPart(call))
}

// other takes what is neither, such as reasoning, for the record alone. What cannot
// be written again is kept as a text.
func (s *saying) other(part datasets.Value) {
	s.parts = append(s.parts, pipeline.Part{Raw: arguments(part.JSON())})
	s.more = true
}

// reply is the reply, with the response as records keep it where the text was not
// all.
func (s *saying) reply(finish string) *pipeline.Reply {
	r := &pipeline.Reply{Text: s.words.String(), Calls: s.calls, Finish: finish}
	if s.more {
		r.Response = datasets.Values{
			"message":       datasets.Values{"role": datasets.Text("assistant"), "parts": partList(s.parts)}.Object(),
			"finish_reason": datasets.Text(finish),
		}.Object()
	}
	return r
}

// callPart is a tool call as a part of a message.
func callPart(call pipeline.ToolCall) datasets.Value {
	return datasets.Values{
		"type": datasets.Text("tool_call"), "id": datasets.Text(call.ID), "name": datasets.Text(call.Name), "input": call.Input,
	}.Object()
}

// partList is the list of parts as JSON.
func partList(parts []pipeline.Part) datasets.Value {
	v, err := datasets.ValueOf(parts)
	if err != nil { // texts, and values that were JSON already
		panic("provider: a message's parts have no JSON form: " + err.Error())
	}
	return v
}

// readBody reads a JSON body. What dst has no place for is passed over, and a null
// leaves its place empty.
func readBody(body []byte, dst any) error {
	if !utf8.Valid(body) {
		body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	}
	return json.Unmarshal(body, dst, lenientJSON)
}

// inWords is a service's word in the words that all providers share; one that is
// not among them stays as it is, in lower case.
func inWords(words map[string]string, word string) string {
	if w, ok := words[word]; ok {
		return w
	}
	return strings.ToLower(word)
}

// detail is what a service says of a refusal, to end a message with.
func detail(words ...string) string {
	var b strings.Builder
	for _, w := range words {
		if w != "" {
			b.WriteString(": " + w)
		}
	}
	return b.String()
}

// mostTokens is more than any answer takes; a greater count is no count.
const mostTokens = 1 << 40

// count is a number of tokens; nil when a service does not say, or says what is no
// such number.
func count(v datasets.Value) *int64 {
	if n, ok := v.AsInt(); ok && n >= 0 && n < mostTokens {
		return &n
	}
	return nil
}

// known is a count that is nothing when it is not said.
func known(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
