package provider

import (
	"slices"
	"strings"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// geminiReply is the body of an answer.
type geminiReply struct {
	Candidates []struct {
		Content struct {
			Parts []datasets.Value `json:"parts"`
		} `json:"content"`
		Finish  string `json:"finishReason"`
		Message string `json:"finishMessage"`
	} `json:"candidates"`
	Feedback struct {
		Block   string `json:"blockReason"`
		Message string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	Model string      `json:"modelVersion"`
	Usage geminiUsage `json:"usageMetadata"`
}

// geminiPartRead is a part of an answer, as far as it is read.
type geminiPartRead struct {
	Text    *string `json:"text"`
	Thought bool    `json:"thought"` // Text sums up the reasoning
	Call    *struct {
		ID   string         `json:"id"`
		Name string         `json:"name"`
		Args datasets.Value `json:"args"`
	} `json:"functionCall"`
}

// geminiUsage counts tokens. The service leaves out a count of nothing, as it does
// one that it does not know.
type geminiUsage struct {
	Prompt   datasets.Value `json:"promptTokenCount"` // what was cached is among them
	ToolUse  datasets.Value `json:"toolUsePromptTokenCount"`
	Cached   datasets.Value `json:"cachedContentTokenCount"`
	Replied  datasets.Value `json:"candidatesTokenCount"`
	Thoughts datasets.Value `json:"thoughtsTokenCount"` // not among Replied
	Total    datasets.Value `json:"totalTokenCount"`
}

func (u *geminiUsage) common() pipeline.Usage {
	common := pipeline.Usage{Input: count(u.Prompt), Total: count(u.Total), Cached: count(u.Cached), Reasoning: count(u.Thoughts)}
	if common.Input != nil {
		*common.Input += known(count(u.ToolUse))
	}
	switch replied := count(u.Replied); {
	case replied != nil:
		common.Output = new(*replied + known(common.Reasoning))
	case common.Total != nil && common.Input != nil && *common.Total >= *common.Input:
		common.Output = new(*common.Total - *common.Input)
	}
	return common
}

// geminiStops are the reasons to stop in the words that all providers share;
// others stay as they are.
var geminiStops = map[string]string{"STOP": "stop", "MAX_TOKENS": "length"}

// geminiRefusals are the reasons for which the service keeps an answer to itself.
var geminiRefusals = []string{
	"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "MODEL_ARMOR",
	"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION",
}

// read reads an answer.
func (m *gemini) read(a *answer) (*pipeline.Reply, error) {
	var r geminiReply
	err := readBody(a.body, &r)
	switch {
	case err != nil:
		return nil, m.unreadable(a.body, "it is no JSON of a generated content")
	case len(r.Candidates) == 0 && r.Feedback.Block != "":
		return nil, m.filtered(&r, "refused the request%s", detail(r.Feedback.Block, r.Feedback.Message))
	case len(r.Candidates) == 0:
		return nil, m.unreadable(a.body, "it has no candidates")
	}
	c := &r.Candidates[0]
	if slices.Contains(geminiRefusals, c.Finish) {
		return nil, m.filtered(&r, "kept its answer back%s", detail(c.Finish, c.Message))
	}
	said := &saying{}
	for _, v := range c.Content.Parts {
		var p geminiPartRead
		if err := readBody([]byte(v.JSON()), &p); err != nil {
			return nil, m.unreadable(a.body, "its content is not of parts")
		}
		switch {
		case p.Call != nil:
			said.call(p.Call.ID, p.Call.Name, p.Call.Args)
		case p.Text != nil && !p.Thought:
			said.text(*p.Text)
		default:
			said.other(v)
		}
	}
	finish := inWords(geminiStops, c.Finish)
	if said.calls != nil && finish == "stop" {
		finish = "tool_calls"
	}
	reply := said.reply(finish)
	reply.Model, reply.Provider, reply.Usage, reply.Wire = r.Model, "gemini", r.Usage.common(), a.wire
	return reply, nil
}

// filtered is the failure of a request that the service's filter did not let
// pass, which it may charge all the same.
func (m *gemini) filtered(r *geminiReply, format, detail string) *pipeline.Failure {
	f := m.failf(pipeline.TypeRefusal, "content-filter", format, detail)
	f.Usage = r.Usage.common()
	return f
}

// explainGemini reads the service's words out of an error, and how long it asks to
// be left alone.
func explainGemini(_ int, body []byte, f *pipeline.Failure) {
	var e struct {
		Error struct {
			Status  string           `json:"status"`
			Message string           `json:"message"`
			Details []datasets.Value `json:"details"`
		} `json:"error"`
	}
	if err := readBody(body, &e); err != nil {
		return
	}
	for _, d := range e.Error.Details {
		delay, _ := d.Member("retryDelay").AsText()
		if after, err := time.ParseDuration(delay); err == nil && strings.HasSuffix(d.Member("@type").String(), "google.rpc.RetryInfo") {
			f.RetryAfter = max(f.RetryAfter, after)
		}
	}
	if e.Error.Message == "" {
		return
	}
	f.Message = e.Error.Message
	if e.Error.Status != "" {
		f.Message = e.Error.Status + ": " + f.Message
	}
}
