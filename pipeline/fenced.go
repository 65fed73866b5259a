package pipeline

import (
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"evalrun/datasets"
)

// The fenced form of tools is for models that call none natively. The system text
// offers it, the reply holds a call as one fenced block, and the results follow
// in a message of the user.

// fencedOffer is the paragraph of the system text that offers tools.
func fencedOffer(tools []Tool) string {
	var b strings.Builder
	b.WriteString("You may call a tool before you answer. To call one, reply with one fenced block of this form and nothing else:\n\n" +
		"```tool\n{\"name\": \"<the tool's name>\", \"input\": {<what it is given>}}\n```\n\n" +
		"Its result comes in the next message. The tools:\n")
	for _, t := range tools {
		b.WriteString("\n- " + t.Name)
		if t.Description != "" {
			b.WriteString(": " + trim(t.Description))
		}
		b.WriteString("\n  input: JSON matching this schema: ")
		b.WriteString(string(appendOneLine(nil, t.Parameters)))
	}
	return b.String()
}

// fencedCall writes a call as the model is to write it.
func fencedCall(c ToolCall) string {
	call := object([]member{{"name", datasets.Text(c.Name)}, {"input", c.Input}})
	return "```tool\n" + string(appendOneLine(nil, call)) + "\n```"
}

// fencedResults is the message that tells results.
func fencedResults(results []toolResult) Message {
	var texts []string
	for _, r := range results {
		texts = append(texts, "Result of the tool "+r.name+":\n\n"+r.output)
	}
	return TextMessage("user", strings.Join(texts, "\n\n"))
}

var fencedOpening = regexp.MustCompile("(?m)^[ \t]*```tool[ \t]*\r?$")

// readFenced finds the tool call of a reply: none when it has no block. The block
// ends where its JSON ends: a text inside it may hold what looks like a fence. A
// block that cannot be read, and a second one, refuse parse-tool: guessing what
// was meant would run something.
func readFenced(text, finish string) ([]ToolCall, error) {
	at := fencedOpening.FindStringIndex(text)
	if at == nil {
		return nil, nil
	}
	rest := text[at[1]:]
	dec := jsontext.NewDecoder(strings.NewReader(rest), jsontext.AllowDuplicateNames(false))
	raw, err := dec.ReadValue()
	if err != nil {
		if finish == finishLength {
			return nil, cutOff(" inside a tool block")
		}
		return nil, unread("parse-tool", "the tool block does not hold one JSON object {\"name\", \"input\"}")
	}
	rest = strings.TrimLeft(rest[dec.InputOffset():], " \t\r\n")
	after, closed := strings.CutPrefix(rest, "```")
	switch {
	case rest != "" && !closed:
		return nil, unread("parse-tool", "more than one JSON object is in the tool block")
	case fencedOpening.MatchString(after):
		return nil, unread("parse-tool", "the reply has more than one tool block; call one tool, and wait for its result")
	}
	v, err := datasets.ParseValue([]byte(raw))
	if err != nil {
		return nil, unread("parse-tool", "the tool block's JSON cannot be read: %v", err)
	}
	members := datasets.ValuesOf(v)
	name, ok := members["name"].AsText()
	if !ok || name == "" {
		return nil, unread("parse-tool", "the tool block names no tool; write {\"name\": …, \"input\": {…}}")
	}
	input := members["input"]
	if input.IsZero() {
		input = datasets.RawValue(`{}`)
	}
	if input.Kind() != '{' {
		return nil, unread("parse-tool", "the input in the tool block must be an object, found %s", describe(input))
	}
	return []ToolCall{{Name: name, Input: input}}, nil
}
