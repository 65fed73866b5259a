package provider

import (
	"context"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// anthropic asks a model through the Messages API.
type anthropic struct {
	*service
	name    string // the model's name at the service
	untaken *untaken
}

const (
	anthropicURL     = "https://api.anthropic.com/v1"
	anthropicVersion = "2023-06-01"

	// anthropicRoom is the limit of tokens where none is given, besides those for
	// reasoning: the service wants a limit in each request.
	anthropicRoom = 4096

	// anthropicLeast is the smallest budget for reasoning that the service takes.
	anthropicLeast = 1024
)

// anthropicOwn are members of a request that are no settings, and what to write
// instead.
var anthropicOwn = map[string]string{
	"model": ownMember, "system": ownMember, "messages": ownMember, "tools": ownMember,
	"stream":         "replies are read whole",
	"stop_sequences": "write stop",
	"thinking":       "write reasoning",
	"output_config":  "write response_format or reasoning",
}

const ownMember = "requests say it themselves"

func openAnthropic(o Options) (pipeline.LM, error) {
	s, err := openService(o, "anthropic", anthropicURL, anthropicOwn)
	if err != nil {
		return pipeline.LM{}, err
	}
	if s.headers.Get("Anthropic-Version") == "" {
		s.headers.Set("Anthropic-Version", anthropicVersion)
	}
	if o.Key != "" {
		s.headers = withKey(s.headers, "X-Api-Key", string(o.Key))
	}
	return pipeline.LM{Model: &anthropic{service: s, name: modelName(o), untaken: newUntaken(o)}}, nil
}

// Generate asks the service. What the model turns out not to take is left out from
// then on, beginning with this request.
func (m *anthropic) Generate(ctx context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
	a, err := m.untaken.asking(func() (*answer, []refusable, error) {
		body, sent, err := m.request(req)
		if err != nil {
			return nil, nil, err
		}
		a, err := m.post(ctx, "/messages", body, explainAnthropic)
		return a, sent, err
	})
	if err != nil {
		return nil, err
	}
	return m.read(a)
}

// anthropicRequest is the body of a request.
type anthropicRequest struct {
	Model     string             `json:"model"`
	MaxTokens datasets.Value     `json:"max_tokens"`
	System    string             `json:"system,omitzero"`
	Messages  []anthropicMessage `json:"messages"`
	Tools     []anthropicTool    `json:"tools,omitzero"`
	Choice    datasets.Value     `json:"tool_choice,omitzero"`
	Stop      []string           `json:"stop_sequences,omitzero"`
	Thinking  *anthropicThinking `json:"thinking,omitzero"`
	Output    anthropicOutput    `json:"output_config,omitzero"`

	Temperature datasets.Value `json:"temperature,omitzero"`
	TopP        datasets.Value `json:"top_p,omitzero"`
	TopK        datasets.Value `json:"top_k,omitzero"`

	Further datasets.Values `json:",embed"` // settings that go as they are
}

type anthropicMessage struct {
	Role    string `json:"role"`
	Content []any  `json:"content"`
}

type anthropicText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type anthropicCall struct {
	Type  string         `json:"type"`
	ID    string         `json:"id"`
	Name  string         `json:"name"`
	Input datasets.Value `json:"input"`
}

type anthropicResult struct {
	Type    string `json:"type"`
	ID      string `json:"tool_use_id"`
	Content string `json:"content"`
}

type anthropicTool struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitzero"`
	Schema      datasets.Value `json:"input_schema"`
}

type anthropicThinking struct {
	Type   string `json:"type"` // adaptive, enabled, disabled
	Budget int64  `json:"budget_tokens,omitzero"`
}

type anthropicOutput struct {
	Effort string           `json:"effort,omitzero"`
	Format *anthropicFormat `json:"format,omitzero"`
}

type anthropicFormat struct {
	Type   string         `json:"type"` // json_schema
	Schema datasets.Value `json:"schema"`
}

// request is the body for a request, and what in it a model may not take.
func (m *anthropic) request(req *pipeline.Request) (body []byte, sent []refusable, err error) {
	r := anthropicRequest{Model: m.name, Further: datasets.Values{}}
	system, turns := turnsOf(req)
	r.System, r.Messages = system, anthropicMessages(turns)
	for _, t := range req.Tools {
		r.Tools = append(r.Tools, anthropicTool{t.Name, t.Description, t.Parameters})
		if t.Parameters.IsZero() {
			r.Tools[len(r.Tools)-1].Schema = datasets.RawValue(`{"type":"object"}`)
		}
	}
	m.settings(&r, req.Config)
	if err := m.reason(&r, req.Config, turns); err != nil {
		return nil, nil, err
	}
	m.sample(&r, req.Config)
	body, err = bodyOf(&r)
	return body, r.refusable(), err
}

// anthropicMessages are the turns as messages. Tools' results are the user's, and
// what the user says after them is in the same message.
func anthropicMessages(turns []turn) []anthropicMessage {
	messages := []anthropicMessage{}
	ids := anthropicIDs{}
	for _, t := range turns {
		role := "user"
		if t.role == "assistant" {
			role = t.role
		}
		last := len(messages) - 1
		if last < 0 || messages[last].Role != role {
			messages = append(messages, anthropicMessage{Role: role})
			last++
		}
		for _, p := range t.parts {
			messages[last].Content = append(messages[last].Content, anthropicBlock(p, ids))
		}
	}
	return messages
}

// anthropicBlock is a part as a block of content. One that is neither text nor of
// a tool goes as it is: what is known of its form is that it has a type, as a block
// of content has.
func anthropicBlock(p pipeline.Part, ids anthropicIDs) any {
	if text := textOf(p); text != "" {
		return anthropicText{"text", text}
	}
	if call, ok := p.ToolCall(); ok {
		return anthropicCall{"tool_use", ids.next(call.ID), call.Name, asObject(call.Input)}
	}
	if id, text, ok := p.ToolResult(); ok {
		return anthropicResult{"tool_result", ids.last(id), text}
	}
	return p.Raw
}

// asObject is a tool's input as services want it, which take objects alone.
func asObject(input datasets.Value) datasets.Value {
	if input.Kind() == '{' {
		return input
	}
	return datasets.Values{"input": input}.Object()
}

// anthropicIDs are how often each id of a tool call was used. The service takes an
// id once in a request, of letters, digits, _ and -; one that the pipeline gave, or
// another provider, may come again in a later turn.
type anthropicIDs map[string]int

var notInID = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

func (ids anthropicIDs) next(id string) string {
	ids[id]++
	return ids.last(id)
}

// last is the id of the latest call that had this one.
func (ids anthropicIDs) last(id string) string {
	sent := notInID.ReplaceAllString(id, "_")
	if n := ids[id]; n > 1 {
		sent += "_" + strconv.Itoa(n)
	}
	return sent
}

// settings are those that depend on no other; reason and sample take the rest.
func (m *anthropic) settings(r *anthropicRequest, config datasets.Values) {
	for _, name := range config.Names() {
		v := config[name]
		if v.IsNull() {
			continue
		}
		switch name {
		case "max_tokens", "max_completion_tokens":
			r.MaxTokens = v
		case "stop":
			for _, s := range stops(v) {
				if strings.TrimSpace(s) == "" {
					m.untaken.leave("a stop sequence of white space alone", "the service takes none")
					continue
				}
				r.Stop = append(r.Stop, s)
			}
		case "response_format":
			schema, anyJSON := replyForm(v)
			if anyJSON {
				m.untaken.leave("response_format json_object", "the service enforces a schema or nothing")
			}
			if !schema.IsZero() {
				r.Output.Format = &anthropicFormat{"json_schema", m.enforced(schema)}
			}
		case "tool_choice":
			r.Choice = anthropicChoice(v)
		case "reasoning", "reasoning_effort", "temperature", "top_p", "top_k":
		case "seed", "frequency_penalty", "presence_penalty", "logprobs", "top_logprobs", "n":
			m.untaken.leave(name, noSetting)
		default:
			if instead, own := anthropicOwn[name]; own {
				m.untaken.leave(name, instead)
			} else if !m.untaken.leaves(name) {
				r.Further[name] = v
			}
		}
	}
}

// anthropicChoice is a tool_choice as the service has it.
func anthropicChoice(v datasets.Value) datasets.Value {
	choice := datasets.Values{}
	switch word, tool := toolChoice(v); {
	case tool != "":
		choice["type"], choice["name"] = datasets.Text("tool"), datasets.Text(tool)
	case word == "required":
		choice["type"] = datasets.Text("any")
	case word != "":
		choice["type"] = datasets.Text(word)
	default:
		return v
	}
	return choice.Object()
}

// What of reasoning a model may not take: newer models decide themselves how much
// to reason, older ones are given a budget.
var (
	anthropicAdaptive = refusable{"adaptive thinking", []string{"adaptive"}}
	anthropicBudget   = refusable{"reasoning", []string{"thinking"}}
	anthropicEffort   = refusable{"reasoning.effort", []string{"effort"}}
)

// reason takes the setting reasoning, and sets the limit of tokens, which counts
// those of reasoning too.
func (m *anthropic) reason(r *anthropicRequest, config datasets.Values, turns []turn) error {
	limited := !r.MaxTokens.IsZero()
	if !limited {
		r.MaxTokens = datasets.Int(anthropicRoom)
	}
	t, set, err := readThinking(config, m.untaken)
	if err != nil || !set {
		return err
	}
	adaptive := t.effort != "" && !m.untaken.refuses(anthropicAdaptive.what)
	switch {
	case t.off():
		r.Thinking = &anthropicThinking{Type: "disabled"}
		return nil
	case !adaptive && m.untaken.leaves(anthropicBudget.what):
		return nil
	case !adaptive && tellsResults(turns):
		// The service wants its own signed thinking back before the tool calls that
		// these results are of, and a conversation does not carry it.
		m.untaken.leave("reasoning in a request that tells the results of tools", "the service would want its earlier reasoning back, which is not kept")
		return nil
	}
	if !limited {
		r.MaxTokens = datasets.Int(anthropicRoom + t.tokens)
	}
	if adaptive {
		r.Thinking = &anthropicThinking{Type: "adaptive"}
		m.effort(r, t.effort)
		return nil
	}
	budget := t.tokens
	if most, ok := r.MaxTokens.AsInt(); ok {
		budget = min(budget, most-1)
	}
	if budget < anthropicLeast {
		m.untaken.leave("reasoning", "it takes at least "+strconv.Itoa(anthropicLeast)+" tokens, and max_tokens must be more")
		return nil
	}
	r.Thinking = &anthropicThinking{Type: "enabled", Budget: budget}
	return nil
}

// tellsResults reports whether the model called tools when it last spoke.
func tellsResults(turns []turn) bool {
	for _, t := range slices.Backward(turns) {
		if t.role == "assistant" {
			return slices.ContainsFunc(t.parts, func(p pipeline.Part) bool { _, ok := p.ToolCall(); return ok })
		}
	}
	return false
}

func (m *anthropic) effort(r *anthropicRequest, word string) {
	switch {
	case m.untaken.leaves(anthropicEffort.what):
	case word == "minimal":
		r.Output.Effort = "low"
	default:
		r.Output.Effort = word
	}
}

// sample takes the settings of sampling, of which few go together with reasoning.
func (m *anthropic) sample(r *anthropicRequest, config datasets.Values) {
	reasons := r.Thinking != nil && r.Thinking.Type != "disabled"
	for _, s := range []struct {
		name  string
		to    *datasets.Value
		least float64 // the least value that goes together with reasoning
	}{{"temperature", &r.Temperature, 1}, {"top_p", &r.TopP, 0.95}, {"top_k", &r.TopK, math.Inf(1)}} {
		v := config[s.name]
		if v.IsZero() || v.IsNull() {
			continue
		}
		number, _ := v.AsFloat()
		switch {
		case m.untaken.leaves(s.name):
		case reasons && number < s.least:
			m.untaken.leave(s.name, "the service does not take it together with reasoning")
		default:
			*s.to = v
		}
	}
}

// refusable is what in the request the model may not take, first that which is
// to go first when the service names several at once.
func (r *anthropicRequest) refusable() (sent []refusable) {
	for _, s := range []struct {
		name string
		v    datasets.Value
	}{{"top_p", r.TopP}, {"top_k", r.TopK}, {"temperature", r.Temperature}} {
		if !s.v.IsZero() {
			sent = append(sent, refusableSetting(s.name, s.name))
		}
	}
	switch {
	case r.Thinking != nil && r.Thinking.Type == "adaptive":
		sent = append(sent, anthropicAdaptive)
	case r.Thinking != nil && r.Thinking.Type == "enabled":
		sent = append(sent, anthropicBudget)
	}
	if r.Output.Effort != "" {
		sent = append(sent, anthropicEffort)
	}
	for _, name := range r.Further.Names() {
		sent = append(sent, refusableSetting(name, name))
	}
	return sent
}
