package harness

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/replay"
)

// checkTools refuses a tool that is to run and that nothing runs.
func (cand *Candidate) checkTools() error {
	for _, name := range cand.Tools.Live {
		if box := cand.Caller.Tools; box != nil {
			if _, ok := box.Tool(name); ok {
				continue
			}
		}
		return fmt.Errorf("is to run the tool %s, and nothing is given to run it: give its caller one, or answer it from the record or a file", name)
	}
	return nil
}

// answering makes what answers the tool calls of one asking of a row, and has the
// call asked with it; nil when the program has no tools.
func (cand *Candidate) answering(row *datasets.Row, ask *pipeline.Ask) *replay.RowTools {
	if len(cand.Program.Tools()) == 0 {
		return nil
	}
	tools := cand.Tools.For(row, cand.Caller.Tools)
	ask.Tools = tools
	if cand.Caller.Approve == nil {
		ask.Approve = tools.Approve
	}
	return tools
}

// takeTools keeps how the call's tool calls were answered.
func (r *Result) takeTools(tools *replay.RowTools) {
	if tools == nil {
		return
	}
	for _, s := range tools.Served() {
		r.Tools = append(r.Tools, ToolServed(s))
	}
}

// serve adds how a call's tool calls were answered to a candidate's.
func (l *lane) serve(served []ToolServed) {
	for _, s := range served {
		if l.tools == nil {
			l.tools = map[string]int{}
		}
		l.tools[s.Match]++
		if l.calls == nil {
			l.calls = map[string]ToolErrors{}
		}
		of := l.calls[s.Tool]
		of.Calls++
		of.Errors += one(s.Failed)
		l.calls[s.Tool] = of
	}
}

// ToolErrors says how often a tool's result was an error, of the calls of it.
type ToolErrors struct {
	Errors int `json:"errors"` // it ran, and its result was an error
	Calls  int `json:"calls"`  // however they were answered
}

// toolErrors are those of the tools that failed, by name; nil when none did.
func (l *lane) toolErrors() map[string]ToolErrors {
	var failed map[string]ToolErrors
	for name, of := range l.calls {
		if of.Errors > 0 {
			if failed == nil {
				failed = map[string]ToolErrors{}
			}
			failed[name] = of
		}
	}
	return failed
}

// toolDoubts warns of tools that failed: what an answer was worth may have hung on
// them.
func (t *tally) toolDoubts() []string {
	var doubts []string
	for _, l := range t.lanes {
		failed := l.toolErrors()
		for _, name := range slices.Sorted(maps.Keys(failed)) {
			of := failed[name]
			doubts = append(doubts, fmt.Sprintf("the tool %s failed in %d of %d calls of %s", name, of.Errors, of.Calls, l.out.Name))
		}
	}
	return doubts
}

// shaped counts rows whose recorded tool results plugins had a hand in.
type shaped struct {
	rows    int
	plugins []string
}

func (s *shaped) look(row *datasets.Row) {
	names := replay.ToolResultShapers(row)
	if names == nil {
		return
	}
	s.rows++
	for _, name := range names {
		if !slices.Contains(s.plugins, name) {
			s.plugins = append(s.plugins, name)
		}
	}
}

// doubt warns when candidates may be told such results.
func (s *shaped) doubt(p *Plan) string {
	asks := slices.ContainsFunc(p.Candidates, func(c Candidate) bool { return !c.Recorded && len(c.Program.Tools()) > 0 })
	if s.rows == 0 || !asks {
		return ""
	}
	return fmt.Sprintf("tool result shaped by %s: in %d of %d rows a plugin changed or blocked what the model was told of a tool; from the record it is told the same, and today's plugins see that text",
		strings.Join(s.plugins, ", "), s.rows, p.Rows.Len())
}
