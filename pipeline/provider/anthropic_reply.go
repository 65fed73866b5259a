package provider

import (
	"strings"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// anthropicReply is the body of an answer.
type anthropicReply struct {
	Model       string           `json:"model"`
	Content     []datasets.Value `json:"content"`
	Stop        string           `json:"stop_reason"`
	StopDetails struct {
		Category    string `json:"category"`
		Explanation string `json:"explanation"`
	} `json:"stop_details"`
	Usage anthropicUsage `json:"usage"`
}

// anthropicBlockRead is a block of content, as far as it is read.
type anthropicBlockRead struct {
	Type      string           `json:"type"` // text, tool_use, thinking, …
	Text      string           `json:"text"`
	Citations []datasets.Value `json:"citations"`
	ID        string           `json:"id"`
	Name      string           `json:"name"`
	Input     datasets.Value   `json:"input"`
}

// anthropicUsage counts tokens. What was read from or written to the cache is not
// among the input tokens.
type anthropicUsage struct {
	Input   datasets.Value `json:"input_tokens"`
	Written datasets.Value `json:"cache_creation_input_tokens"`
	Read    datasets.Value `json:"cache_read_input_tokens"`
	Output  datasets.Value `json:"output_tokens"`
	Details struct {
		Thinking datasets.Value `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

func (u *anthropicUsage) common() pipeline.Usage {
	common := pipeline.Usage{Input: count(u.Input), Output: count(u.Output), Cached: count(u.Read), Reasoning: count(u.Details.Thinking)}
	if common.Input != nil {
		common.Input = new(*common.Input + known(count(u.Written)) + known(common.Cached))
	}
	if common.Input != nil && common.Output != nil {
		common.Total = new(*common.Input + *common.Output)
	}
	return common
}

// anthropicStops are the reasons to stop in the words that all providers share;
// others stay as they are.
var anthropicStops = map[string]string{
	"end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls",
	"max_tokens": "length", "model_context_window_exceeded": "length",
}

// read reads an answer.
func (m *anthropic) read(a *answer) (*pipeline.Reply, error) {
	var r anthropicReply
	err := readBody(a.body, &r)
	switch {
	case err != nil:
		return nil, m.unreadable(a.body, "it is no JSON of a message")
	case r.Stop == "refusal":
		f := m.failf(pipeline.TypeRefusal, "refusal", "says that the model refused%s", detail(r.StopDetails.Category, r.StopDetails.Explanation))
		f.Usage = r.Usage.common()
		return nil, f
	case r.Content == nil:
		return nil, m.unreadable(a.body, "it has no content")
	}
	said := &saying{}
	for _, v := range r.Content {
		var b anthropicBlockRead
		if err := readBody([]byte(v.JSON()), &b); err != nil {
			return nil, m.unreadable(a.body, "its content is not of blocks")
		}
		switch {
		case b.Type == "text" && len(b.Citations) == 0:
			said.text(b.Text)
		case b.Type == "text":
			said.textIn(b.Text, v)
		case b.Type == "tool_use":
			said.call(b.ID, b.Name, b.Input)
		default:
			said.other(v)
		}
	}
	reply := said.reply(inWords(anthropicStops, r.Stop))
	reply.Model, reply.Provider, reply.Usage, reply.Wire = r.Model, "anthropic", r.Usage.common(), a.wire
	return reply, nil
}

// explainAnthropic reads the service's words out of an error.
func explainAnthropic(_ int, body []byte, f *pipeline.Failure) {
	var e struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := readBody(body, &e); err != nil || e.Error.Message == "" {
		return
	}
	f.Message = e.Error.Message
	if e.Error.Type != "" {
		f.Message = e.Error.Type + ": " + f.Message
	}
	if f.Type == pipeline.TypeRefusal && strings.Contains(strings.ToLower(f.Message), "content filtering policy") {
		f.Code = "content-filter"
	}
}
