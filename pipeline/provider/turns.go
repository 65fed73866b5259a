package provider

import (
	"strings"

	"evalrun/pipeline"
)

// turn is what one side says before the other does.
type turn struct {
	role  string // user, assistant or tool
	parts []pipeline.Part
}

// turnsOf are a request's system text and its turns, for a service that has no
// other roles than the user's and the model's. A developer's message joins the
// system text while nobody has spoken, and is the user's after that: it must stay
// where it stands. Parts without any text are left out, for such services refuse
// them.
func turnsOf(req *pipeline.Request) (system string, turns []turn) {
	var first []string
	if req.System != "" {
		first = append(first, req.System)
	}
	for _, m := range req.Messages {
		role := m.Role
		if role != "assistant" && role != "tool" && role != "user" {
			if len(turns) == 0 {
				for _, p := range spoken(m.Parts) {
					first = append(first, textOf(p))
				}
				continue
			}
			role = "user"
		}
		parts := spoken(m.Parts)
		switch last := len(turns) - 1; {
		case len(parts) == 0:
		case last >= 0 && turns[last].role == role:
			turns[last].parts = append(turns[last].parts, parts...)
		default:
			turns = append(turns, turn{role, parts})
		}
	}
	return strings.Join(first, "\n\n"), turns
}

// spoken are the parts that say something.
func spoken(parts []pipeline.Part) []pipeline.Part {
	var some []pipeline.Part
	for _, p := range parts {
		if p.Raw.IsZero() && strings.TrimSpace(p.Text) == "" {
			continue
		}
		some = append(some, p)
	}
	return some
}

// textOf is the text of a part, which may have other members beside it; "" when
// it is no text.
func textOf(p pipeline.Part) string {
	if p.Raw.IsZero() {
		return p.Text
	}
	if kind, _ := p.Raw.Member("type").AsText(); kind != "text" {
		return ""
	}
	text, _ := p.Raw.Member("text").AsText()
	return text
}
