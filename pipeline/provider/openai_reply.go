package provider

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// completion is what the service answers, as far as it is read. What is not of
// the expected kind counts as absent, where a reply can do without it.
type completion struct {
	Model   datasets.Value `json:"model"`
	System  datasets.Value `json:"system_fingerprint"`
	Usage   jsontext.Value `json:"usage"`
	Error   datasets.Value `json:"error"`
	Choices []choice       `json:"choices"`
}

type choice struct {
	Finish   datasets.Value     `json:"finish_reason"`
	Message  *completionMessage `json:"message"`
	Logprobs datasets.Value     `json:"logprobs"`
}

type completionMessage struct {
	Role    datasets.Value  `json:"role"`
	Content datasets.Value  `json:"content"`
	Refusal datasets.Value  `json:"refusal"`
	Calls   datasets.Value  `json:"tool_calls"`
	Rest    datasets.Values `json:",embed"` // reasoning, …
}

// read reads a reply.
func (m *openAI) read(got *answer) (*pipeline.Reply, error) {
	var c completion
	if err := readBody(got.body, &c); err != nil {
		return nil, m.unreadable(got.body, "it is no JSON of a chat completion")
	}
	switch {
	case len(c.Choices) > 0 && c.Choices[0].Message != nil:
	case !given(c.Error).IsZero():
		return nil, m.failedInside(got.body)
	default:
		return nil, m.unreadable(got.body, "it has no choice with a message")
	}
	usage := openAIUsage(c.Usage)
	reply, f := m.choose(&c.Choices[0])
	if f != nil {
		f.Usage = usage
		return nil, f
	}
	reply.Model, _ = c.Model.AsText()
	reply.System, _ = c.System.AsText()
	reply.Provider, reply.Usage, reply.Wire = "openai", usage, got.wire
	return reply, nil
}

// failedInside is the failure that an answer with status 200 tells of, as
// gateways have it.
func (m *openAI) failedInside(body []byte) *pipeline.Failure {
	said := readServiceError(body)
	said.status = http.StatusInternalServerError
	if n, err := strconv.Atoi(said.code); err == nil && n >= 400 && n < 600 {
		said.status = n
	}
	f := m.failf(typeOf(said.status), "http-"+strconv.Itoa(said.status), "answered with an error: %s", said.message)
	said.class(f)
	return f
}

// choose reads a choice.
func (m *openAI) choose(c *choice) (*pipeline.Reply, *pipeline.Failure) {
	message := c.Message
	finish, _ := c.Finish.AsText()
	refusal, _ := message.Refusal.AsText()
	switch {
	case refusal != "":
		return nil, m.failf(pipeline.TypeRefusal, "refusal", "says that the model refused: %s", refusal)
	case finish == "content_filter":
		return nil, m.failf(pipeline.TypeRefusal, "content-filter", "cut the reply off: its content filter does not let it pass")
	case finish == "error":
		return nil, m.failf(pipeline.TypeServer, "reply-failed", "says that the reply failed on the way")
	}
	var s saying
	if text, ok := message.Content.AsText(); ok {
		s.text(text)
	}
	for part := range message.Content.Elements() {
		s.openAIPart(part)
	}
	for call := range message.Calls.Elements() {
		s.openAICall(call)
	}
	for _, name := range message.Rest.Names() {
		s.openAIMember(name, message.Rest[name])
	}
	s.openAIMember("logprobs", c.Logprobs)
	return s.reply(finish), nil
}

// openAIPart takes a part of a content that is no plain text.
func (s *saying) openAIPart(part datasets.Value) {
	kind, _ := part.Member("type").AsText()
	text, isText := part.Member("text").AsText()
	if kind != "text" || !isText {
		s.other(part)
		return
	}
	s.text(text)
}

// openAIMember takes a member of the reply that has no place of its own.
func (s *saying) openAIMember(name string, v datasets.Value) {
	if !given(v).IsZero() && v.JSON() != "[]" {
		s.other(datasets.Values{"type": datasets.Text(name), name: v}.Object())
	}
}

// openAICall takes a tool call, whose arguments are a text, or with some servers
// the object.
func (s *saying) openAICall(call datasets.Value) {
	id, _ := call.Member("id").AsText()
	function := datasets.ValuesOf(call.Member("function"))
	name, _ := function["name"].AsText()
	input := function["arguments"]
	if text, ok := input.AsText(); ok {
		input = arguments(text)
	}
	s.call(id, name, input)
}

// arguments is the input of a tool that a model wrote as a text. One that is no
// JSON is kept as the text it is: its tool refuses that in words that the model is
// told, and can mend.
func arguments(text string) datasets.Value {
	if strings.TrimSpace(text) == "" {
		return datasets.Value{}
	}
	v, err := datasets.ParseValue(text)
	switch {
	case err != nil:
		return datasets.Text(text)
	case !jsontext.Value(v.JSON()).IsValid():
		// A member twice, or half of a character: not every reader of JSON takes that.
		return datasets.RawValue(v.Canonical())
	}
	return v
}

// completionUsage counts tokens.
type completionUsage struct {
	Input   datasets.Value `json:"prompt_tokens"`
	Output  datasets.Value `json:"completion_tokens"`
	Total   datasets.Value `json:"total_tokens"`
	Hit     datasets.Value `json:"prompt_cache_hit_tokens"` // DeepSeek's name for the cached
	Details struct {
		Cached datasets.Value `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	OutputDetails struct {
		Reasoning datasets.Value `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// openAIUsage reads the service's counts of tokens. Those it does not give, or not
// so that they can be read, are unknown.
func openAIUsage(text jsontext.Value) pipeline.Usage {
	var u completionUsage
	if text != nil {
		_ = json.Unmarshal(text, &u, lenientJSON) // what was read until then counts
	}
	usage := pipeline.Usage{
		Input: count(u.Input), Output: count(u.Output), Total: count(u.Total),
		Cached: count(u.Details.Cached), Reasoning: count(u.OutputDetails.Reasoning),
	}
	if usage.Cached == nil {
		usage.Cached = count(u.Hit)
	}
	return usage
}
