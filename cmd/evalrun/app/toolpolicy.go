package app

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"evalrun/harness"
	"evalrun/internal/canon"
	"evalrun/internal/conf"
	"evalrun/pipeline"
	"evalrun/pipeline/tools"
	"evalrun/replay"
)

// toolsSpec says what answers tool calls: recorded, live, or {live: …, stub: FILE}.
// What neither answers is answered from the record. run says what runs the tools
// that the command was not built with.
type toolsSpec struct {
	live toolNames
	stub text
	run  conf.Pairs[toolSpec]
}

func (t *toolsSpec) DecodeConf(n conf.Node) error {
	if word, ok := n.Text(); ok {
		switch word {
		case "recorded":
			return nil
		case "live":
			t.live.all = true
			return nil
		case "stub":
			return n.Errorf("stub needs its file: tools: {stub: FILE}")
		}
		return n.Errorf("tools is recorded, live, or a map of live and stub, not %q", word)
	}
	var keys struct {
		Live toolNames `conf:"live"`
		Stub text      `conf:"stub"`

		Run conf.Pairs[toolSpec] `conf:"run"`
	}
	if err := conf.Decode(n, &keys); err != nil {
		return err
	}
	t.live, t.stub, t.run = keys.Live, keys.Stub, keys.Run
	return nil
}

// toolNames are the tools that run: those named, or all that only read.
type toolNames struct {
	all   bool
	names []text
}

func (t *toolNames) DecodeConf(n conf.Node) error {
	if n.Kind() == conf.List {
		return conf.Decode(n, &t.names)
	}
	if word, ok := n.Text(); !ok || word != "all" {
		return n.Errorf("live is a list of tools, or all, which is every tool whose effects are reads")
	}
	t.all = true
	return nil
}

// approveSpec says who answers where a person would be asked about a tool call.
type approveSpec []replay.Approval

var approvals = []string{string(replay.ApproveRecorded), string(replay.ApproveYes), string(replay.ApproveNo), string(replay.ApproveFail)}

func (a *approveSpec) DecodeConf(n conf.Node) error {
	var words []text
	if n.Kind() == conf.List {
		if err := conf.Decode(n, &words); err != nil {
			return err
		}
		if len(words) == 0 {
			return n.Errorf("approve is empty: give one of %s, or leave it out", strings.Join(approvals, ", "))
		}
	} else {
		words = make([]text, 1)
		if err := conf.Decode(n, &words[0]); err != nil {
			return err
		}
	}
	for i, w := range words {
		switch {
		case !slices.Contains(approvals, w.s):
			return w.errorf("approve is %s or a list of them, not %q%s", strings.Join(approvals, ", "), w.s, suggestion(w.s, approvals))
		case i > 0 && words[i-1].s != string(replay.ApproveRecorded):
			return w.errorf("%s comes after %s, which always answers: it would never be asked", w.s, words[i-1].s)
		}
		*a = append(*a, replay.Approval(w.s))
	}
	return nil
}

// toolPolicy is the spec's policy, with its files read.
type toolPolicy struct {
	env   *env
	spec  *spec
	stubs *replay.Stubs
	hash  string              // of the stub file
	run   map[string]specTool // what the spec says runs tools, by name
	box   tools.Map           // that, and what the command was built with
	known map[string]bool     // tools that candidates have, by name
	runs  map[string]bool     // of them, those that run

	offline bool // none does, whatever the policy
}

func (w *wiring) toolPolicy() (*toolPolicy, error) {
	p := &toolPolicy{
		env: w.env, spec: w.spec, run: map[string]specTool{}, box: maps.Clone(w.env.tools),
		known: map[string]bool{}, runs: map[string]bool{}, offline: w.models.offline,
	}
	for _, t := range w.spec.Tools.run {
		if _, twice := p.box[t.Key]; twice {
			return nil, exit(ExitUsage, t.At.Errorf("this evalrun was built with a tool %q: take what runs it out of the spec, or the tool out of the command", t.Key))
		}
		made, err := w.tool(&t.Value)
		if err != nil {
			return nil, exit(ExitUsage, err)
		}
		p.run[t.Key], p.box[t.Key] = made, made.runner
	}
	return p, p.readStubs()
}

func (p *toolPolicy) readStubs() error {
	file := p.spec.Tools.stub
	if file.s == "" {
		return nil
	}
	data, err := os.ReadFile(beside(p.spec.file, file.s))
	if err != nil {
		return at(file, usageFile("stub file", err))
	}
	p.hash = canon.Hash(data)
	if p.stubs, err = replay.ParseStubs(filepath.Base(file.s), data); err != nil {
		return exit(ExitUsage, file.errorf("%v", err))
	}
	return nil
}

// give gives a candidate its policy: of the tools that may run those that its
// program has, and the programs that are tools of it. A tool that may change
// something runs only when it is named.
func (p *toolPolicy) give(c *harness.Candidate) error {
	if len(p.box) > 0 {
		c.Caller.Tools = p.box
	}
	policy := replay.ToolPolicy{Stubs: p.stubs, Approve: p.spec.Approve}
	for _, program := range p.within(c.Program, nil) {
		for _, d := range program.Tools() {
			p.known[d.Name] = true
			switch runs, err := p.live(program, d.Name); {
			case err != nil:
				return err
			case runs && !slices.Contains(policy.Live, d.Name):
				policy.Live = append(policy.Live, d.Name)
			}
		}
	}
	for _, name := range policy.Live {
		if t := p.run[name]; t.command != "" && !p.runs[name] && !p.offline {
			p.env.sayTool(name, t)
		}
		p.runs[name] = true
	}
	c.Tools = policy
	return nil
}

// within lists a program and, each once, those that the spec has run its tools.
func (p *toolPolicy) within(program *pipeline.Program, list []*pipeline.Program) []*pipeline.Program {
	if program == nil || slices.Contains(list, program) {
		return list
	}
	list = append(list, program)
	for _, d := range program.Tools() {
		list = p.within(p.run[d.Name].program, list)
	}
	return list
}

// live reports whether a program's tool runs. One that the spec names, and that
// nothing runs, is an error.
func (p *toolPolicy) live(program *pipeline.Program, name string) (bool, error) {
	runner, has := p.box.Tool(name)
	live := p.spec.Tools.live
	if i := slices.IndexFunc(live.names, func(t text) bool { return t.s == name }); i >= 0 {
		if !has {
			hint := "; say"
			if near := didYouMean(name, sortedKeys(p.box)); near != "" {
				hint = near + " Else say"
			}
			return false, exit(ExitUsage, live.names[i].errorf("nothing runs the tool %q%s what does, tools: {run: {%s: …}} with one of %s, or build it in (app.WithTool); or leave it out of live: it is answered from the record then",
				name, hint, name, waysToRun))
		}
		return true, nil
	}
	return live.all && has && program.ToolEffects(name, runner) == pipeline.EffectsRead, nil
}

func didYouMean(word string, known []string) string {
	if near := conf.Suggest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// check refuses a tool that is named and that no candidate has, and warns of one
// that the spec says how to run and does not let run.
func (p *toolPolicy) check() error {
	named := slices.Clone(p.spec.Tools.live.names)
	for _, t := range p.spec.Tools.run {
		named = append(named, text{t.Key, t.At})
	}
	for _, t := range named {
		if !p.known[t.s] {
			known := sortedKeys(p.known)
			if known == nil {
				return exit(ExitUsage, t.errorf("no candidate's program has a tool %q, or any other", t.s))
			}
			return exit(ExitUsage, t.errorf("no candidate's program has a tool %q%s", t.s, suggestion(t.s, known)))
		}
	}
	for _, t := range p.spec.Tools.run {
		if !p.runs[t.Key] {
			p.env.warn(fmt.Sprintf("the tool %s is answered from the record, and what would run it does not: name it in tools.live to let it run", t.Key))
		}
	}
	return nil
}

// String is the policy in words, as a run's identity has it.
func (p *toolPolicy) String() string {
	var parts []string
	switch live := p.spec.Tools.live; {
	case live.all:
		parts = append(parts, "live all")
	case len(live.names) > 0:
		names := texts(live.names)
		slices.Sort(names)
		parts = append(parts, "live "+strings.Join(slices.Compact(names), " "))
	}
	for _, name := range sortedKeys(p.run) {
		if p.runs[name] {
			parts = append(parts, "run "+name+" "+p.run[name].content)
		}
	}
	if p.hash != "" {
		parts = append(parts, "stub "+p.hash)
	}
	parts = append(parts, "recorded")
	if a := p.spec.Approve; a != nil && !slices.Equal(a, approveSpec{replay.ApproveRecorded}) && !slices.Equal(a, approveSpec{replay.ApproveRecorded, replay.ApproveFail}) {
		parts = append(parts, fmt.Sprintf("approve %s", a))
	}
	return strings.Join(parts, ", ")
}

func (a approveSpec) String() string {
	words := make([]string, len(a))
	for i, w := range a {
		words[i] = string(w)
	}
	return strings.Join(words, " ")
}
