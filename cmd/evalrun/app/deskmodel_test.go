package app

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// deskModel is a model for scripts, which its author controls by a file: it
// answers as the first line of ./answers says whose text, all parts of it, is in the
// candidate's name or the question, and adds a line to ./asked.
//
//	TEXT & TEXT | REPLY | SERVED MODEL
//
// A judge's requests are about "judge of" the candidate, and get the reply as the
// verdict. The reply !refused is a refusal, !server an outage; !call NAME INPUT calls a tool,
// and is passed over once the model is told a result. TEXT may be empty.
type deskModel struct{}

func (deskModel) Generate(_ context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
	asked, err := os.OpenFile("asked", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	who := req.Site.Candidate
	if req.Site.Purpose == "judge" {
		who = "judge of " + who
	}
	if _, err = fmt.Fprintf(asked, "%s %s\n", who, req.Site.Row); err != nil {
		return nil, err
	}
	if err := asked.Close(); err != nil {
		return nil, err
	}
	answers, err := os.ReadFile("answers")
	if err != nil {
		return nil, err
	}
	about := who + "\n" + string(req.Canonical(req.Model))
	for line := range strings.Lines(string(answers)) {
		text, rest, _ := strings.Cut(line, "|")
		reply, model, _ := strings.Cut(rest, "|")
		if slices.ContainsFunc(strings.Split(text, "&"), func(part string) bool { return !strings.Contains(about, strings.TrimSpace(part)) }) {
			continue
		}
		reply = strings.TrimSpace(reply)
		if call, ok := strings.CutPrefix(reply, "!call "); ok {
			if req.Messages[len(req.Messages)-1].Role == "tool" {
				continue
			}
			name, input, _ := strings.Cut(call, " ")
			return &pipeline.Reply{Calls: []pipeline.ToolCall{{ID: "c1", Name: name, Input: datasets.RawValue(input)}}, Finish: "tool_calls"}, nil
		}
		switch reply {
		case "!refused":
			return nil, pipeline.Failf(pipeline.TypeRefusal, "", "it will not say")
		case "!server":
			return nil, pipeline.Failf(pipeline.TypeServer, "", "it is down")
		}
		if req.Site.Purpose == "judge" {
			text := "<reason>\nas it is\n</reason>\n<verdict>\n" + reply + "\n</verdict>\n"
			return &pipeline.Reply{Text: text, Finish: "stop", Model: strings.TrimSpace(model)}, nil
		}
		return &pipeline.Reply{Text: "<team>\n" + reply + "\n</team>\n", Finish: "stop", Model: strings.TrimSpace(model)}, nil
	}
	return nil, fmt.Errorf("no line of answers is about %s", about)
}
