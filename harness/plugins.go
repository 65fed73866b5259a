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
	Failed      bool // it failed, or what it asked for was refused: the call stopped
}

// PluginUse sums a plugin's acts at one hook over a candidate's answers.
type PluginUse struct {
	Plugin      string `json:"plugin"`
	Version     string `json:"version,omitempty"`
	Hook        string `json:"hook"`
	Changed     int    `json:"changed"`               // calls it changed something of
	Instruction int    `json:"instruction,omitempty"` // of them, calls whose instruction it replaced
	Blocked     int    `json:"blocked,omitempty"`     // calls of which it blocked a tool
	Failed      int    `json:"failed,omitempty"`      // calls that it stopped by failing
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
		if only := difference(l.plugins, base.plugins); only != "" {
			doubts = append(doubts, fmt.Sprintf("%s changed calls of %s and none of %s: the comparison is of the plugin as well", only, l.out.Name, base.out.Name))
		}
		if only := difference(base.plugins, l.plugins); only != "" {
			doubts = append(doubts, fmt.Sprintf("%s changed calls of %s and none of %s: the comparison is of the plugin as well", only, base.out.Name, l.out.Name))
		}
	}
	return doubts
}

// difference names the plugins that changed calls of a and none of b.
func difference(a, b []PluginUse) string {
	changed := func(uses []PluginUse, plugin string) bool {
		return slices.ContainsFunc(uses, func(u PluginUse) bool { return u.Plugin == plugin && u.Changed > 0 })
	}
	var only []string
	for _, u := range a {
		if u.Changed > 0 && !changed(b, u.Plugin) && !slices.Contains(only, u.Plugin) {
			only = append(only, u.Plugin)
		}
	}
	if only == nil {
		return ""
	}
	return "the plugin " + strings.Join(only, ", ")
}
