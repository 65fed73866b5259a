package reports

import (
	"strings"

	"evalrun/replay"
)

// matches are the ways in which tool calls are answered, in the order in which
// reports say them.
var matches = []string{replay.MatchExact, replay.MatchCanonical, replay.MatchStub, replay.MatchLive, replay.MatchNever}

// toolCalls says how each candidate's tool calls were answered; nil when there
// were none.
func (e *Evaluation) toolCalls() phrase {
	var p phrase
	for _, out := range e.Candidates {
		if len(out.Tools) == 0 {
			continue
		}
		if p == nil {
			p.say("Tool calls, by how they were answered: ")
		} else {
			p.say("; ")
		}
		p.name(out.Name)
		sep := " "
		for _, match := range matches {
			if n := out.Tools[match]; n > 0 {
				p.say("%s%s %s", sep, count(n), strings.ReplaceAll(match, "_", " "))
				sep = ", "
			}
		}
	}
	return p
}
