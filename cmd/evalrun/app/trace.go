package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/internal/canon"
	"evalrun/pipeline"
	"evalrun/plugins"
)

// trace is what plugins do to one row's call of a candidate.
type trace struct {
	Evaluation string         `json:"evaluation,omitzero"`
	Candidate  string         `json:"candidate"`
	Row        string         `json:"row"`
	Recorded   datasets.Value `json:"recorded"` // what plugins had done to the rated call: not applied
	Steps      []traceStep    `json:"steps"`
	Failure    string         `json:"failure,omitzero"`
}

// traceStep is one handler: the fields its change is about, as they were before
// and after it.
type traceStep struct {
	Hook    pipeline.Hook   `json:"hook"`
	Plugin  string          `json:"plugin"`
	Version string          `json:"version"`
	Micros  float64         `json:"microseconds"`
	Before  datasets.Values `json:"before"`
	Change  datasets.Value  `json:"change"` // null: it changed nothing
	After   datasets.Values `json:"after"`
	Error   string          `json:"error,omitzero"`
}

func (e *env) tracePlugins(c *cli.Context) error {
	args, err := arguments(c, 2, 2, "a run's folder and a row's id")
	if err != nil {
		return err
	}
	run, _, err := openRun(args[0], c.String("runs"))
	if err != nil {
		return err
	}
	file := run.Manifest.SpecFile
	if file == "" {
		return dataf("%s does not say which spec it was run with", run.Dir)
	}
	s, err := loadSpec(file, os.LookupEnv)
	if err != nil {
		return err
	}
	if canon.Hash(s.data) != run.Manifest.Spec {
		return dataf("%s has changed since the run: run it again to trace it", file)
	}
	w, err := e.wire(s)
	if err != nil {
		return err
	}
	defer w.close()
	plans, err := w.plans(c.Context)
	if err != nil {
		return err
	}
	if err := samePlugins(run, plans, w.loaded); err != nil {
		return err
	}
	if err := tracedCandidate(c.String("candidate"), plans); err != nil {
		return err
	}
	traces := []*trace{}
	for _, checked := range plans {
		p := checked.Plan()
		i := position(p.Rows, args[1])
		if i < 0 {
			continue
		}
		row, err := p.Rows.At(i)
		if err != nil {
			return exit(ExitData, err)
		}
		for k := range p.Candidates {
			if want := c.String("candidate"); p.Candidates[k].Recorded || want != "" && want != p.Candidates[k].Name {
				continue
			}
			t, err := e.trace(c.Context, &p.Candidates[k], row)
			if err != nil {
				return err
			}
			t.Evaluation = p.Name
			traces = append(traces, t)
		}
	}
	if len(traces) == 0 {
		return noRow(args[1], plans)
	}
	if e.json {
		return e.printJSON(map[string]any{"traces": traces})
	}
	for _, t := range traces {
		if err := e.print(e.wrapped(t.text())); err != nil {
			return err
		}
	}
	return nil
}

// samePlugins refuses plugins that are others than a run's: what they would do now
// says nothing of what they did then.
func samePlugins(run *harness.Run, plans []*harness.Checked, loaded map[*pipeline.Plugin]plugins.LoadInfo) error {
	was := map[string][]harness.PluginRef{} // by evaluation and candidate
	for _, ev := range run.Manifest.Evaluations {
		for _, cand := range ev.Candidates {
			was[title(ev.Name, cand.Name)] = cand.Plugins
		}
	}
	for _, checked := range plans {
		p := checked.Plan()
		for _, cand := range p.Candidates {
			name := title(p.Name, cand.Name)
			for i, now := range cand.Plugins {
				if i < len(was[name]) && was[name][i] == now {
					continue
				}
				what := now.Name
				for _, info := range loaded {
					if info.Hash == now.Content {
						what += " (" + info.Path + ")"
						break
					}
				}
				return dataf("the plugin %s of the candidate %s has changed since the run: run it again to trace it", what, name)
			}
			if len(was[name]) > len(cand.Plugins) {
				return dataf("the run had %d plugins around the candidate %s, and there are %d now: run it again to trace it", len(was[name]), name, len(cand.Plugins))
			}
		}
	}
	return nil
}

// tracedCandidate refuses a name that no candidate that is asked has; "" is all.
func tracedCandidate(name string, plans []*harness.Checked) error {
	var names []string
	for _, checked := range plans {
		for _, cand := range checked.Plan().Candidates {
			switch {
			case cand.Recorded && cand.Name == name:
				return usagef("the candidate %q is recorded: no plugin acts on it", name)
			case !cand.Recorded && !slices.Contains(names, cand.Name):
				names = append(names, cand.Name)
			}
		}
	}
	switch {
	case names == nil:
		return usagef("every candidate is recorded: no plugin acts on any")
	case name != "" && !slices.Contains(names, name):
		return usagef("there is no candidate %q that is asked%s", name, suggestion(name, names))
	}
	return nil
}

// trace asks a candidate about a row once more with its plugins watched. A model
// whose replies would cost something is not asked: what plugins do until then is
// shown.
func (e *env) trace(ctx context.Context, cand *harness.Candidate, row datasets.Row) (*trace, error) {
	t := &trace{Candidate: cand.Name, Row: row.ID, Recorded: row.Meta["changes"], Steps: []traceStep{}}
	var mu sync.Mutex
	var seen []pipeline.Handled
	see := func(h pipeline.Handled) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, h)
	}
	watched := map[*pipeline.Plugin]*pipeline.Plugin{}
	watch := func(list []*pipeline.Plugin) []*pipeline.Plugin {
		var out []*pipeline.Plugin
		for _, p := range list {
			if watched[p] == nil {
				watched[p] = pipeline.Watch(p, e.now, see)
			}
			out = append(out, watched[p])
		}
		return out
	}
	// What is left after the last plugin is what one more would be told.
	last, err := pipeline.NewPlugin("after",
		pipeline.OnBeforeCall(func(context.Context, *pipeline.CallEvent) (*pipeline.Change, error) { return nil, nil }),
		pipeline.OnRequest(func(context.Context, *pipeline.RequestEvent) (*pipeline.Request, error) { return nil, nil }))
	if err != nil {
		return nil, err
	}
	caller := *cand.Caller
	caller.Conversation.Plugins = watch(caller.Conversation.Plugins)
	caller.Process.Plugins = append(watch(caller.Process.Plugins), pipeline.Watch(last, e.now, see))
	free := func(lm pipeline.LM) pipeline.LM {
		if !lm.Deterministic {
			lm.Model = unasked{}
		}
		return lm
	}
	caller.LM = free(caller.LM)
	if lookup := caller.Lookup; lookup != nil { // a plugin may name another model
		caller.Lookup = func(name string) (pipeline.LM, error) {
			lm, err := lookup(name)
			return free(lm), err
		}
	}
	program := cand.Program.WithPlugins(watch(cand.Program.Plugins())...)
	tools := cand.Tools.For(&row, nil) // a trace runs none
	call, err := caller.Ask(ctx, program, pipeline.Ask{
		Site: pipeline.Site{Row: row.ID, Purpose: "trace"}, Inputs: program.Own(row.Inputs), Context: row.Context, Tools: tools, Approve: tools.Approve,
	})
	if err != nil {
		return nil, err
	}
	if call.Failure != nil {
		t.Failure = call.Failure.Error()
	}
	for i, h := range seen {
		if h.Plugin == "after" {
			continue
		}
		step := traceStep{Hook: h.Hook, Plugin: h.Plugin, Version: h.Version, Micros: float64(h.Took.Nanoseconds()) / 1e3, Change: datasets.Null, Before: datasets.Values{}, After: datasets.Values{}}
		if h.Err != nil {
			step.Error = h.Err.Error()
		}
		if !h.Change.IsZero() {
			step.Change = h.Change
			for name := range h.Change.Members() {
				step.Before[name] = h.Event[name]
				step.After[name] = h.Change.Member(name) // of a tool's hooks, where nobody is told what is left
				for _, next := range seen[i+1:] {
					if next.Hook == h.Hook {
						step.After[name] = next.Event[name]
						break
					}
				}
			}
		}
		t.Steps = append(t.Steps, step)
	}
	return t, nil
}

// position is where a row lies in a source; -1 when it does not.
func position(rows datasets.Source, id string) int {
	for i := range rows.Len() {
		if rows.ID(i) == id {
			return i
		}
	}
	return -1
}

// unasked is the model of a trace that would have to pay.
type unasked struct{}

func (unasked) Generate(context.Context, *pipeline.Request) (*pipeline.Reply, error) {
	return nil, pipeline.Failf(pipeline.TypeNotRecorded, "not-asked", "the model is not asked to trace plugins")
}

func (t *trace) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "row %s, %s\n", t.Row, title(t.Evaluation, t.Candidate))
	for change := range t.Recorded.Elements() {
		fmt.Fprintf(&b, "  recorded, not applied: %s %s %s %s\n", change.Member("hook"), change.Member("plugin"), change.Member("version"), change.Member("change").JSON())
	}
	for _, s := range t.Steps {
		fmt.Fprintf(&b, "  %s %s %s, %.0f µs\n", s.Hook, s.Plugin, s.Version, s.Micros)
		switch {
		case s.Error != "":
			fmt.Fprintf(&b, "    failed: %s\n", s.Error)
		case s.Change.IsNull():
			b.WriteString("    nothing\n")
		}
		for _, name := range s.Before.Names() {
			if name == "request" {
				b.WriteString(replacedText(s.Before[name], s.After[name]))
				continue
			}
			fmt.Fprintf(&b, "    %s\n      before  %s\n      change  %s\n      after   %s\n", name, s.Before[name].JSON(), s.Change.Member(name).JSON(), s.After[name].JSON())
		}
	}
	if len(t.Steps) == 0 {
		b.WriteString("  no plugin has a handler here\n")
	}
	if t.Failure != "" {
		fmt.Fprintf(&b, "  the call failed: %s\n", t.Failure)
	}
	return b.String()
}

// replacedText is what a handler of request changed of the request it was given.
func replacedText(before, after datasets.Value) string {
	was, err := pipeline.ParseRequest(before)
	if err != nil {
		return fmt.Sprintf("    request: %v\n", err)
	}
	is, err := pipeline.ParseRequest(after)
	if err != nil {
		return fmt.Sprintf("    request: %v\n", err)
	}
	text := requestDiff(was, is)
	if was.Model != is.Model {
		text = fmt.Sprintf("model\n-%s\n+%s\n", was.Model, is.Model) + text
	}
	if text == "" {
		return "    nothing\n"
	}
	return "    " + indented(text, "    ") + "\n"
}

// absolute is a path that stays right when the working directory changes.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
