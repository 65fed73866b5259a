package provider

import (
	"context"
	"net/url"
	"strings"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// gemini asks a model through generateContent of the Gemini API.
type gemini struct {
	*service
	name    string // the model's name at the service
	path    string
	untaken *untaken
}

const geminiURL = "https://generativelanguage.googleapis.com/v1beta"

// geminiOwn are members of a request that are no settings, and what to write
// instead.
var geminiOwn = map[string]string{
	"contents": ownMember, "systemInstruction": ownMember, "tools": ownMember,
	"generationConfig":   "write what is in it",
	"candidateCount":     "one reply is read",
	"stopSequences":      "write stop",
	"maxOutputTokens":    "write max_tokens",
	"responseMimeType":   "write response_format",
	"responseJsonSchema": "write response_format",
	"responseSchema":     "write response_format",
	"thinkingConfig":     "write reasoning",
}

func openGemini(o Options) (pipeline.LM, error) {
	s, err := openService(o, "gemini", geminiURL, geminiOwn)
	if err != nil {
		return pipeline.LM{}, err
	}
	if o.Key != "" {
		s.headers = withKey(s.headers, "X-Goog-Api-Key", string(o.Key))
	}
	m := &gemini{service: s, name: modelName(o), untaken: newUntaken(o)}
	m.path = geminiPath(m.name)
	return pipeline.LM{Model: m}, nil
}

// geminiPath is the path for a model, whose name may say which kind of resource it
// is, as in tunedModels/mine.
func geminiPath(model string) string {
	if !strings.Contains(model, "/") {
		model = "models/" + model
	}
	parts := strings.Split(model, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return "/" + strings.Join(parts, "/") + ":generateContent"
}

// Generate asks the service. What the model turns out not to take is left out from
// then on, beginning with this request.
func (m *gemini) Generate(ctx context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
	a, err := m.untaken.asking(func() (*answer, []refusable, error) {
		body, sent, err := m.request(req)
		if err != nil {
			return nil, nil, err
		}
		a, err := m.post(ctx, m.path, body, explainGemini)
		return a, sent, err
	})
	if err != nil {
		return nil, err
	}
	return m.read(a)
}

// geminiRequest is the body of a request.
type geminiRequest struct {
	System   *geminiContent  `json:"systemInstruction,omitzero"`
	Contents []geminiContent `json:"contents"`
	Tools    []geminiTools   `json:"tools,omitzero"`
	Config   geminiConfig    `json:"generationConfig,omitempty"`

	ToolConfig    datasets.Value `json:"toolConfig,omitzero"`
	Safety        datasets.Value `json:"safetySettings,omitzero"`
	CachedContent datasets.Value `json:"cachedContent,omitzero"`
}

type geminiContent struct {
	Role  string `json:"role,omitzero"` // user, model
	Parts []any  `json:"parts"`
}

type geminiText struct {
	Text string `json:"text"`
}

type geminiCall struct {
	Call struct {
		ID   string         `json:"id,omitzero"`
		Name string         `json:"name"`
		Args datasets.Value `json:"args"`
	} `json:"functionCall"`
	Signature string `json:"thoughtSignature,omitzero"`
}

type geminiResult struct {
	Response struct {
		ID     string       `json:"id,omitzero"`
		Name   string       `json:"name"`
		Result geminiOutput `json:"response"`
	} `json:"functionResponse"`
}

type geminiOutput struct {
	Output string `json:"output"`
}

type geminiTools struct {
	Functions []geminiFunction `json:"functionDeclarations"`
}

type geminiFunction struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitzero"`
	Parameters  datasets.Value `json:"parametersJsonSchema,omitzero"`
}

type geminiConfig struct {
	MaxTokens datasets.Value  `json:"maxOutputTokens,omitzero"`
	Stop      []string        `json:"stopSequences,omitzero"`
	MimeType  string          `json:"responseMimeType,omitzero"`
	Schema    datasets.Value  `json:"responseJsonSchema,omitzero"`
	Thinking  *geminiThinking `json:"thinkingConfig,omitzero"`

	Further datasets.Values `json:",embed"` // the settings that are left, by the service's names
}

type geminiThinking struct {
	Level  string `json:"thinkingLevel,omitzero"`
	Budget *int64 `json:"thinkingBudget,omitzero"`
}

// request is the body for a request, and what in it a model may not take.
func (m *gemini) request(req *pipeline.Request) (body []byte, sent []refusable, err error) {
	r := geminiRequest{Config: geminiConfig{Further: datasets.Values{}}}
	system, turns := turnsOf(req)
	if system != "" {
		r.System = &geminiContent{Parts: []any{geminiText{system}}}
	}
	if r.Contents, err = m.contents(turns); err != nil {
		return nil, nil, err
	}
	if len(req.Tools) > 0 {
		r.Tools = make([]geminiTools, 1)
	}
	for _, t := range req.Tools {
		r.Tools[0].Functions = append(r.Tools[0].Functions, geminiFunction{t.Name, t.Description, t.Parameters})
	}
	if sent, err = m.settings(&r, req.Config); err != nil {
		return nil, nil, err
	}
	body, err = bodyOf(&r)
	return body, sent, err
}

// geminiForeign stands for the signature of a thought in a call that the service is
// told of without the thought: newer models refuse such a call otherwise. The
// service's documentation gives it for calls from elsewhere.
const geminiForeign = "skip_thought_signature_validator"

// signed reports whether the model wants a signature with a tool call. Those before
// the third generation have none or need none.
func (m *gemini) signed() bool {
	_, name, _ := strings.Cut("/"+m.name, "gemini-")
	return !strings.HasPrefix(name, "1") && !strings.HasPrefix(name, "2")
}

// contents are the turns as contents: a tool's results are the user's, in a content
// of their own. A result names its tool, which the call that it answers says.
func (m *gemini) contents(turns []turn) ([]geminiContent, error) {
	contents := []geminiContent{}
	tools := map[string]string{} // by the latest call's id
	for _, t := range turns {
		c := geminiContent{Role: "user"}
		if t.role == "assistant" {
			c.Role = "model"
		}
		first := true
		for _, p := range t.parts {
			part, err := geminiPart(p, tools)
			if err != nil {
				return nil, err
			}
			if call, ok := part.(*geminiCall); ok && first {
				first = false
				if m.signed() {
					call.Signature = geminiForeign
				}
			}
			c.Parts = append(c.Parts, part)
		}
		contents = append(contents, c)
	}
	return contents, nil
}

// geminiPart is a part as the service has it. One that has no type is taken for one
// of the service's own.
func geminiPart(p pipeline.Part, tools map[string]string) (any, error) {
	if text := textOf(p); text != "" {
		return geminiText{text}, nil
	}
	if call, ok := p.ToolCall(); ok {
		tools[call.ID] = call.Name
		c := &geminiCall{}
		c.Call.ID, c.Call.Name, c.Call.Args = call.ID, call.Name, asObject(call.Input)
		return c, nil
	}
	if id, text, ok := p.ToolResult(); ok {
		r := geminiResult{}
		r.Response.ID, r.Response.Name, r.Response.Result.Output = id, tools[id], text
		if r.Response.Name == "" {
			r.Response.Name = id
		}
		return r, nil
	}
	if kind := p.Raw.Member("type"); !kind.IsZero() {
		return nil, pipeline.Failf(pipeline.TypeRefusal, "part", "a part of type %s cannot be sent to a gemini model; write it as the service has it, such as {inlineData: …}", kind.JSON())
	}
	return p.Raw, nil
}

// geminiNames are the settings of sampling by the names of the service.
var geminiNames = map[string]string{
	"temperature": "temperature", "top_p": "topP", "top_k": "topK", "seed": "seed",
	"presence_penalty": "presencePenalty", "frequency_penalty": "frequencyPenalty",
}

// settings takes the settings, and says which of them a model may not take.
func (m *gemini) settings(r *geminiRequest, config datasets.Values) (sent []refusable, err error) {
	for _, name := range config.Names() {
		v := config[name]
		if v.IsNull() {
			continue
		}
		switch name {
		case "max_tokens", "max_completion_tokens":
			r.Config.MaxTokens = v
		case "stop":
			r.Config.Stop = stops(v)
		case "response_format":
			schema, anyJSON := replyForm(v)
			if anyJSON || !schema.IsZero() {
				r.Config.MimeType, r.Config.Schema = "application/json", schema
			}
		case "toolConfig":
			r.ToolConfig = v
		case "safetySettings":
			r.Safety = v
		case "cachedContent":
			r.CachedContent = v
		case "tool_choice":
			r.ToolConfig = geminiChoice(v)
		case "reasoning", "reasoning_effort":
		case "logprobs", "top_logprobs", "n":
			m.untaken.leave(name, noSetting)
		default:
			sent = append(sent, m.further(r, name, v)...)
		}
	}
	may, err := m.reason(r, config)
	return append(sent, may...), err
}

// geminiChoice is a tool_choice as the service has it.
func geminiChoice(v datasets.Value) datasets.Value {
	calling := datasets.Values{"mode": datasets.Text("ANY")}
	switch word, tool := toolChoice(v); {
	case tool != "":
		calling["allowedFunctionNames"] = datasets.RawValue("[" + datasets.Text(tool).JSON() + "]")
	case word == "required":
	case word != "":
		calling["mode"] = datasets.Text(strings.ToUpper(word))
	default:
		return v
	}
	return datasets.Values{"functionCallingConfig": calling.Object()}.Object()
}

// further takes a setting that goes as it is.
func (m *gemini) further(r *geminiRequest, name string, v datasets.Value) []refusable {
	if instead, own := geminiOwn[name]; own {
		m.untaken.leave(name, instead)
		return nil
	}
	if m.untaken.leaves(name) {
		return nil
	}
	sent, ok := geminiNames[name]
	if !ok {
		sent = name
	}
	r.Config.Further[sent] = v
	may := refusableSetting(name, sent)
	if strings.HasSuffix(name, "_penalty") {
		may.names = append(may.names, "penalty is not enabled")
	}
	return []refusable{may}
}

// What of reasoning a model may not take: newer models have levels, older ones a
// budget, and some do not reason.
var (
	geminiLevel  = refusable{"thinkingLevel", []string{"thinking level", "thinkinglevel", "thinking_level"}}
	geminiBudget = refusable{"reasoning", []string{"thinking"}}
)

// reason takes the setting reasoning.
func (m *gemini) reason(r *geminiRequest, config datasets.Values) ([]refusable, error) {
	t, set, err := readThinking(config, m.untaken)
	if err != nil || !set || m.untaken.leaves(geminiBudget.what) {
		return nil, err
	}
	// A level cannot say that there is to be no reasoning at all.
	if t.effort == "" || t.off() || !m.signed() || m.untaken.refuses(geminiLevel.what) {
		r.Config.Thinking = &geminiThinking{Budget: &t.tokens}
		return []refusable{geminiBudget}, nil
	}
	level := t.effort
	if level == "xhigh" || level == "max" {
		level = "high"
	}
	r.Config.Thinking = &geminiThinking{Level: level}
	return []refusable{geminiLevel, geminiBudget}, nil
}
