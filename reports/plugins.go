package reports

import (
	"strings"
)

// pluginLine is what a plugin did to a candidate's calls at one hook.
type pluginLine struct{ Candidate, Plugin, Hook, Changed, Instruction, Blocked, Failed, Answers string }

// plugins lists what plugins did, by candidate.
func (e *Evaluation) plugins() []pluginLine {
	var list []pluginLine
	for _, out := range e.Candidates {
		for _, u := range out.PluginUse {
			list = append(list, pluginLine{
				out.Name, strings.TrimSpace(u.Plugin + " " + u.Version), u.Hook,
				count(u.Changed), count(u.Instruction), count(u.Blocked), count(u.Failed), count(out.Measured.Answers),
			})
		}
	}
	return list
}

// pluginTrouble says which plugins blocked tools or failed, a sentence each.
func (e *Evaluation) pluginTrouble() []phrase {
	var list []phrase
	for _, out := range e.Candidates {
		for _, u := range out.PluginUse {
			var did []string
			if u.Blocked > 0 {
				did = append(did, "blocked tools of "+count(u.Blocked))
			}
			if u.Failed > 0 {
				did = append(did, "failed in "+count(u.Failed))
			}
			if did == nil {
				continue
			}
			var p phrase
			if e.Name != "" {
				p.say("%s: ", e.Name)
			}
			p.say("the plugin ")
			p.name(u.Plugin)
			p.say(" %s of %s calls of ", strings.Join(did, " and "), count(out.Measured.Answers))
			p.name(out.Name)
			p.say(" (%s)", u.Hook)
			list = append(list, p)
		}
	}
	return list
}
