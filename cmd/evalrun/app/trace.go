package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/internal/canon"
	"evalrun/pipeline"
	"evalrun/plugins"
	"evalrun/replay/journal"
)

// trace is what plugins do to one answer of a candidate.
type trace struct {
	Evaluation string         `json:"evaluation,omitzero"`
	Candidate  string         `json:"candidate"`
	Row        string         `json:"row"`
	Repeat     int            `json:"repeat"`
	Recorded   datasets.Value `json:"recorded"`       // what plugins had done to the rated call
	Idle       []idlePlugin   `json:"idle,omitempty"` // plugins that do nothing in a run
	Steps      []traceStep    `json:"steps"`
	Stopped    string         `json:"stopped,omitzero"` // why no more is known: the run has no answer here
	Failure    string         `json:"failure,omitzero"` // why the call failed, in the run too

	plugins int // around the candidate
}

// idlePlugin is a plugin whose hooks are those of turns, or none.
type idlePlugin struct {
	Plugin  string          `json:"plugin"`
	Version string          `json:"version"`
	Hooks   []pipeline.Hook `json:"hooks"`
}

// traceStep is one handler: the fields its change is about, as they were before
// and after it; at the hooks of tools always the tool's input or output.
type traceStep struct {
	Hook       pipeline.Hook   `json:"hook"`
	Plugin     string          `json:"plugin"`
	Version    string          `json:"version"`
	Path       string          `json:"path"` // of the call, or of the tool
	Invocation datasets.Value  `json:"invocation,omitzero"`
	Micros     float64         `json:"microseconds"`
	Before     datasets.Values `json:"before"`
	Change     datasets.Value  `json:"change"` // null: it changed nothing
	After      datasets.Values `json:"after"`  // empty when nothing went on from here
	Person     string          `json:"person,omitzero"`
	Blocked    bool            `json:"blocked,omitzero"` // the tool does not run
	Error      string          `json:"error,omitzero"`
}

func (e *env) tracePlugins(c *cli.Context) error {
	args, err := arguments(c, 2, 2, "a run's folder and a row's id")
	if err != nil {
		return err
	}
	run, err := findRun(args[0], c.String("runs"))
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
	w.models.offline = true
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
		for k := range p.Candidates {
			if want := c.String("candidate"); p.Candidates[k].Recorded || want != "" && want != p.Candidates[k].Name {
				continue
			}
			for repeat := range max(1, p.Repeats) {
				t, err := newTrace(c.Context, run, checked, harness.Task{Row: i, Candidate: k, Repeat: repeat})
				if err != nil {
					return harnessError(err)
				}
				traces = append(traces, t)
			}
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

// newTrace traces one answer.
func newTrace(ctx context.Context, run *harness.Run, checked *harness.Checked, task harness.Task) (*trace, error) {
	p := checked.Plan()
	cand := &p.Candidates[task.Candidate]
	row, err := p.Rows.At(task.Row)
	if err != nil {
		return nil, exit(ExitData, err)
	}
	t := &trace{
		Evaluation: p.Name, Candidate: cand.Name, Row: row.ID, Repeat: task.Repeat, Recorded: row.Meta["changes"], Steps: []traceStep{},
		plugins: len(cand.Plugins),
	}
	for _, idle := range cand.Idle() {
		m := idle.Describe()
		t.Idle = append(t.Idle, idlePlugin{m.Name, m.Version, m.Hooks})
	}
	handled, call, err := run.Trace(ctx, checked, task)
	if err != nil {
		return nil, err
	}
	for i := range handled {
		t.Steps = append(t.Steps, newStep(&handled[i]))
	}
	switch f := call.Failure; {
	case f == nil:
	case f.Code == journal.NotAnswered:
		t.Stopped = f.Message
	case f.Type == pipeline.TypeDiverged:
		t.Stopped = "the run asked something else here: a handler is not deterministic, or what shapes requests has changed"
	default:
		t.Failure = f.Error()
	}
	return t, nil
}

// fieldsOf names the fields of a hook's event that its handlers act on, where that
// is not what their changes name.
var fieldsOf = map[pipeline.Hook]string{pipeline.HookToolCall: "input", pipeline.HookToolResult: "output"}

func newStep(h *harness.Traced) traceStep {
	s := traceStep{
		Hook: h.Hook, Plugin: h.Plugin, Version: h.Version, Path: h.Event["path"].String(), Invocation: h.Event["invocation"],
		Micros: float64(h.Took.Nanoseconds()) / 1e3, Change: datasets.Null, Before: datasets.Values{}, After: datasets.Values{},
	}
	if !h.Change.IsZero() {
		s.Change = h.Change
	}
	if h.Err != nil {
		s.Error = h.Err.Error()
	}
	s.Blocked = h.Hook == pipeline.HookToolCall && h.After == nil
	if a := h.Asked; a != nil {
		s.Person = "allowed it"
		if !a.Allowed {
			s.Person = "did not allow it"
			if a.Reason != "" {
				s.Person += ": " + a.Reason
			}
		}
	}
	fields := []string{fieldsOf[h.Hook]}
	if fields[0] == "" {
		fields = datasets.ValuesOf(h.Change).Names()
	}
	for _, name := range fields {
		s.Before[name] = h.Event[name]
		if h.After != nil {
			s.After[name] = h.After[name]
		}
	}
	return s
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

func (t *trace) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "row %s, %s", t.Row, title(t.Evaluation, t.Candidate))
	if t.Repeat > 0 {
		fmt.Fprintf(&b, ", answer %d", t.Repeat+1)
	}
	b.WriteString("\n")
	for change := range t.Recorded.Elements() {
		how := "not applied"
		if hook := pipeline.Hook(change.Member("hook").String()); hook == pipeline.HookTurnStart || hook == pipeline.HookContext {
			how = "part of the row"
		}
		fmt.Fprintf(&b, "  recorded, %s: %s %s %s %s\n", how, change.Member("hook"), change.Member("plugin"), change.Member("version"), change.Member("change").JSON())
	}
	for _, p := range t.Idle {
		why := "has no handlers"
		if len(p.Hooks) > 0 {
			why = fmt.Sprintf("acts on turns only (%s)", joinHooks(p.Hooks))
		}
		fmt.Fprintf(&b, "  %s %s %s: it does nothing in a run\n", p.Plugin, p.Version, why)
	}
	for i := range t.Steps {
		b.WriteString(t.Steps[i].text())
	}
	switch {
	case len(t.Steps) > 0:
	case t.plugins > len(t.Idle):
		b.WriteString("  no handler ran\n")
	default:
		b.WriteString("  no plugin has a handler here\n")
	}
	switch {
	case t.Stopped != "":
		fmt.Fprintf(&b, "  not answered in this run: %s\n", t.Stopped)
	case t.Failure != "":
		fmt.Fprintf(&b, "  the call failed: %s\n", t.Failure)
	}
	return b.String()
}

func (s *traceStep) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %s %s %s", s.Hook, s.Plugin, s.Version)
	if strings.Contains(s.Path, "/") { // else it is the program's own call
		fmt.Fprintf(&b, ", %s", s.Path)
	}
	fmt.Fprintf(&b, ", %.0f µs\n", s.Micros)
	if s.Error == "" && s.Change.IsNull() {
		b.WriteString("    nothing\n")
	}
	for _, name := range s.Before.Names() {
		change := s.Change.Member(name)
		switch {
		case name == "request":
			b.WriteString(replacedText(s.Before[name], s.After[name]))
			continue
		case s.Hook == pipeline.HookToolCall:
			change = s.Change // of inputs, or a block
		}
		if s.Change.IsNull() {
			fmt.Fprintf(&b, "    %s  %s\n", name, s.Before[name].JSON())
			continue
		}
		fmt.Fprintf(&b, "    %s\n      before  %s\n      change  %s\n", name, s.Before[name].JSON(), change.JSON())
		if after, ok := s.After[name]; ok {
			fmt.Fprintf(&b, "      after   %s\n", after.JSON())
		}
	}
	if s.Person != "" {
		fmt.Fprintf(&b, "    the person %s\n", s.Person)
	}
	if s.Error != "" {
		fmt.Fprintf(&b, "    failed: %s\n", s.Error)
	}
	if s.Blocked {
		b.WriteString("    blocked: the tool does not run\n")
	}
	return b.String()
}

// replacedText is what a handler of request changed of the request it was given.
func replacedText(before, after datasets.Value) string {
	was, err := pipeline.ParseRequest(before)
	if err != nil {
		return fmt.Sprintf("    request: %v\n", err)
	}
	if after.IsZero() {
		return "    a request that is refused\n"
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
