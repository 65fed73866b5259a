package harness

import (
	"fmt"
	"slices"
	"strings"

	"evalrun/pipeline"
)

// PluginAct is what a plugin did to one call at one hook. Several changes of it
// there are one act.
type PluginAct struct {
	Plugin      string
	Version     string
	Hook        string
	Changed     bool // it changed something
	Instruction bool // it replaced the instruction
	Blocked     bool // it blocked a tool
	Failed      bool // it failed, or what it asked for was refused: the call stopped, or the tool it was to check was blocked
}

// PluginUse sums a plugin's acts at one hook over a candidate's answers.
type PluginUse struct {
	Plugin      string `json:"plugin"`
	Version     string `json:"version,omitempty"`
	Hook        string `json:"hook"`
	Changed     int    `json:"changed"`               // calls it changed something of
	Instruction int    `json:"instruction,omitempty"` // of them, calls whose instruction it replaced
	Blocked     int    `json:"blocked,omitempty"`     // calls of which it blocked a tool
	Failed      int    `json:"failed,omitempty"`      // calls at which it failed
}

// actsOf are what plugins did to a call, in the order they first did it.
func actsOf(call *pipeline.Call) []PluginAct {
	var acts []PluginAct
	at := func(plugin, version, hook string) *PluginAct {
		i := slices.IndexFunc(acts, func(a PluginAct) bool { return a.Plugin == plugin && a.Version == version && a.Hook == hook })
		if i < 0 {
			i = len(acts)
			acts = append(acts, PluginAct{Plugin: plugin, Version: version, Hook: hook})
		}
		return &acts[i]
	}
	for _, c := range call.Changes {
		a := at(c.Plugin, c.Version, string(c.Hook))
		a.Changed = true
		// What is recorded without a version is not what the plugin asked for: it
		// failed, and the tool was blocked.
		a.Failed = a.Failed || c.Version == "" && c.Hook == pipeline.HookToolCall
		for name := range c.Change.Members() {
			a.Instruction = a.Instruction || name == "instruction"
			a.Blocked = a.Blocked || name == "block"
		}
	}
	if f := call.Failure; f != nil && f.Plugin != "" {
		at(f.Plugin, "", string(f.Hook)).Failed = true
	}
	return acts
}

// use adds a call's acts to a candidate's.
func (l *lane) use(acts []PluginAct) {
	for _, a := range acts {
		i := slices.IndexFunc(l.plugins, func(u PluginUse) bool {
			// A failure does not say which version failed.
			return u.Plugin == a.Plugin && u.Hook == a.Hook && (u.Version == a.Version || a.Version == "" || u.Version == "")
		})
		if i < 0 {
			i = len(l.plugins)
			l.plugins = append(l.plugins, PluginUse{Plugin: a.Plugin, Hook: a.Hook})
		}
		u := &l.plugins[i]
		if u.Version == "" {
			u.Version = a.Version
		}
		u.Changed += one(a.Changed)
		u.Instruction += one(a.Instruction)
		u.Blocked += one(a.Blocked)
		u.Failed += one(a.Failed)
	}
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// pluginDoubts warns of plugins that make a comparison unfair or void.
func (t *tally) pluginDoubts() []string {
	var doubts []string
	base := t.lane[t.eval.Baseline]
	for _, l := range t.lanes {
		for _, u := range l.plugins {
			if u.Instruction == l.out.Measured.Answers && l.out.Measured.Answers > 0 {
				doubts = append(doubts, fmt.Sprintf("the plugin %s replaced the instruction of every call of %s: another instruction of the program would change nothing", u.Plugin, l.out.Name))
			}
		}
		if l == base || base == nil || l.out.Recorded || base.out.Recorded {
			continue
		}
		for _, pair := range [][2]*lane{{l, base}, {base, l}} {
			if only := difference(pair[0].plugins, pair[1].plugins); only != nil {
				doubts = append(doubts, fmt.Sprintf("%s changed calls of %s and none of %s: the comparison is of %s as well",
					pluginNames(only), pair[0].out.Name, pair[1].out.Name, thePlugin(only)))
			}
		}
		if others := namesakes(l, base); others != nil {
			doubts = append(doubts, fmt.Sprintf("%s of %s and %s are not the same: the comparison is of %s as well",
				pluginNames(others), l.out.Name, base.out.Name, thePlugin(others)))
		}
	}
	return doubts
}

// namesakes names the plugins that changed calls of both and are others in one
// than in the other: of another version, or from a file of other content.
func namesakes(a, b *lane) []string {
	var names []string
	for _, u := range a.plugins {
		used := func(v PluginUse) bool { return v.Plugin == u.Plugin && v.Changed > 0 }
		if u.Changed > 0 && slices.ContainsFunc(b.plugins, used) && !slices.Contains(names, u.Plugin) && !slices.Equal(a.called(u.Plugin), b.called(u.Plugin)) {
			names = append(names, u.Plugin)
		}
	}
	return names
}

// called are the plugins of that name around the candidate, in their order; where
// nobody said which those are, as what they did says.
func (l *lane) called(name string) []PluginRef {
	var refs []PluginRef
	for _, ref := range l.out.Plugins {
		if ref.Name == name {
			refs = append(refs, ref)
		}
	}
	if refs != nil {
		return refs
	}
	for _, u := range l.plugins {
		if ref := (PluginRef{Name: name, Version: u.Version}); u.Plugin == name && !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	return refs
}

// difference names the plugins that changed calls of a and none of b.
func difference(a, b []PluginUse) []string {
	changed := func(uses []PluginUse, plugin string) bool {
		return slices.ContainsFunc(uses, func(u PluginUse) bool { return u.Plugin == plugin && u.Changed > 0 })
	}
	var only []string
	for _, u := range a {
		if u.Changed > 0 && !changed(b, u.Plugin) && !slices.Contains(only, u.Plugin) {
			only = append(only, u.Plugin)
		}
	}
	return only
}

func thePlugin(names []string) string {
	if len(names) > 1 {
		return "the plugins"
	}
	return "the plugin"
}

func pluginNames(names []string) string { return thePlugin(names) + " " + strings.Join(names, ", ") }

// idlePlugins warns of plugins that can do nothing in a run: theirs are hooks of
// conversations' turns, or none.
func (p *Plan) idlePlugins() []string {
	var doubts []string
	seen := map[*pipeline.Plugin]bool{}
	for i := range p.Candidates {
		cand := &p.Candidates[i]
		if cand.Recorded {
			continue
		}
		for _, plugin := range cand.Idle() {
			if seen[plugin] {
				continue
			}
			seen[plugin] = true
			hooks := plugin.Describe().Hooks
			if len(hooks) == 0 {
				doubts = append(doubts, fmt.Sprintf("the plugin %s has no handlers, so it does nothing", plugin.Name()))
				continue
			}
			doubts = append(doubts, fmt.Sprintf("the plugin %s acts on turns only (%s); a run asks single calls, so it does nothing", plugin.Name(), joined(hooks)))
		}
	}
	return doubts
}

// Idle are the plugins around a candidate that is asked which can do nothing in a
// run: theirs are hooks of conversations' turns, or none.
func (cand *Candidate) Idle() []*pipeline.Plugin {
	var idle []*pipeline.Plugin
	for _, plugin := range slices.Concat(cand.Program.Plugins(), cand.Caller.Conversation.Plugins, cand.Caller.Process.Plugins) {
		if !slices.ContainsFunc(plugin.Describe().Hooks, ofCalls) && !slices.Contains(idle, plugin) {
			idle = append(idle, plugin)
		}
	}
	return idle
}

// ofCalls reports whether a hook's handlers run in a single call.
func ofCalls(h pipeline.Hook) bool {
	return h != pipeline.HookTurnStart && h != pipeline.HookContext && h != pipeline.HookTurnEnd
}

func joined(hooks []pipeline.Hook) string {
	names := make([]string, len(hooks))
	for i, h := range hooks {
		names[i] = string(h)
	}
	return strings.Join(names, ", ")
}
