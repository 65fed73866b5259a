package replay

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// ToolPolicy says what answers the tool calls of a rated call that is asked again:
// a tool that may run, then a file, then the rated call's own record. The zero
// value is the record alone: no tool runs.
type ToolPolicy struct {
	Live    []string   // the tools that run, by name
	Stubs   *Stubs     // answers from a file; nil has none
	Approve []Approval // who answers where a person would be asked, in order; nil: the record alone
}

// Approval says who answers where a person would be asked whether a tool may run.
type Approval string

// Who answers for a person.
const (
	ApproveRecorded Approval = "recorded" // the person, as the rated call's record has it; the next one where it has nothing
	ApproveYes      Approval = "yes"      // every tool may run
	ApproveNo       Approval = "no"       // none may
	ApproveFail     Approval = "fail"     // nobody: the row fails
)

// The ways in which a tool call is answered.
const (
	MatchExact     = "exact"          // from the record, of a call with the same input, letter for letter
	MatchCanonical = "canonical"      // from the record, of a call with an equal input that was written otherwise
	MatchStub      = "stub"           // from a file
	MatchLive      = "live"           // the tool ran
	MatchNever     = "never_recorded" // not at all
)

// ServedTool is a tool call and how it was answered: one of the Match constants.
type ServedTool struct {
	Tool   string
	Match  string
	Failed bool // it ran, and its result was an error
}

// RowTools answers the tool calls of one asking of a row. It has every tool: what
// it cannot answer fails the call with type [pipeline.TypeToolUnknown] and code
// "tool-never-recorded".
//
// From the record it gives what the model was told then. Of several recorded
// results of one input each is given once, in order, and the last one again when
// the model asks more often than it did then. An input counts as recorded in the
// form in which the model wrote it and in the form in which a plugin of then had
// it run.
type RowTools struct {
	policy *ToolPolicy
	live   pipeline.Toolbox

	mu      sync.Mutex
	results []recordedResult
	served  []ServedTool
}

var _ pipeline.Toolbox = (*RowTools)(nil)

// recordedResult is a tool call of the rated call's record.
type recordedResult struct {
	tool     string
	inputs   []datasets.Value // as the model wrote it, and as it may have run
	output   string
	answered bool
	given    bool
}

// For makes what answers the tool calls of one asking of a row; live finds the
// tools that may run, and is nil where none may.
func (p *ToolPolicy) For(row *datasets.Row, live pipeline.Toolbox) *RowTools {
	return &RowTools{policy: p, live: live, results: recordedResults(row)}
}

// toolSteps are the steps of a call that called tools; nil of any other, whose
// steps say no more than its outputs.
func toolSteps(r *Record) []datasets.Step {
	if !slices.ContainsFunc(r.Steps, isToolStep) {
		return nil
	}
	steps := make([]datasets.Step, len(r.Steps))
	for i, s := range r.Steps {
		steps[i] = cloneValue(s)
	}
	return steps
}

// recordedResults reads the row's steps: model steps hold the calls, tool steps
// what they were answered. They are in the order of the calls.
func recordedResults(row *datasets.Row) []recordedResult {
	var calls []recordedResult
	var open []string // the id of each; "" once it was answered
	replaced := replacedInputs(row)
	for _, step := range row.Steps {
		if !isToolStep(step) {
			for call := range stepCalls(step) {
				input := call.Member("input")
				if input.IsZero() {
					input = datasets.RawValue(`{}`)
				}
				r := recordedResult{tool: call.Member("name").String(), inputs: []datasets.Value{input}}
				for _, change := range replaced {
					r.inputs = append(r.inputs, merged(input, change))
				}
				calls, open = append(calls, r), append(open, call.Member("id").String())
			}
			continue
		}
		id, name := step.Member("id").String(), step.Member("name").String()
		for i := range calls {
			if id != "" && open[i] == id && calls[i].tool == name {
				calls[i].output, calls[i].answered, open[i] = step.Member("output").String(), true, ""
				break
			}
		}
	}
	return slices.DeleteFunc(calls, func(r recordedResult) bool { return !r.answered })
}

func isToolStep(s datasets.Step) bool { kind, _ := s.Member("kind").AsText(); return kind == "tool" }

// stepCalls are the tool calls of a model's step.
func stepCalls(s datasets.Step) iter.Seq[datasets.Value] {
	field := "calls"
	if name, ok := s.Member("calls_field").AsText(); ok {
		field = name
	}
	return s.Member("outputs").Member(field).Elements()
}

// replacedInputs are what plugins put in place of members of tool inputs in the
// rated call. Which of its tool calls each belongs to is not recorded.
func replacedInputs(row *datasets.Row) []datasets.Values {
	var list []datasets.Values
	for change := range row.Meta["changes"].Elements() {
		if hook, _ := change.Member("hook").AsText(); hook != string(pipeline.HookToolCall) {
			continue
		}
		if inputs := datasets.ValuesOf(change.Member("change").Member("inputs")); inputs != nil {
			list = append(list, inputs)
		}
	}
	return list
}

// merged is the object with members replaced by name.
func merged(object datasets.Value, replace datasets.Values) datasets.Value {
	all := datasets.ValuesOf(object)
	if all == nil {
		return replace.Object()
	}
	for name, v := range replace {
		all[name] = v
	}
	return all.Object()
}

// ToolResultShapers names the plugins that, by the row's record, changed what the
// model was told of a tool: its result, or by blocking it.
func ToolResultShapers(row *datasets.Row) []string {
	if len(row.Steps) == 0 {
		return nil
	}
	var names []string
	for change := range row.Meta["changes"].Elements() {
		hook, _ := change.Member("hook").AsText()
		shaped := hook == string(pipeline.HookToolResult) ||
			hook == string(pipeline.HookToolCall) && !change.Member("change").Member("block").IsZero()
		if name, _ := change.Member("plugin").AsText(); shaped && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Tool finds a tool: there is every one.
func (t *RowTools) Tool(name string) (pipeline.ToolRunner, bool) {
	r := rowTool{name: name, tools: t}
	if t.live != nil {
		r.live, _ = t.live.Tool(name)
	}
	return r, true
}

// Served lists the tool calls so far, in order, and how each was answered.
func (t *RowTools) Served() []ServedTool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.served)
}

// note adds a tool call, and returns its place.
func (t *RowTools) note(tool, match string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.served = append(t.served, ServedTool{Tool: tool, Match: match})
	return len(t.served) - 1
}

// noteFailed says that the tool of a tool call failed.
func (t *RowTools) noteFailed(place int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.served[place].Failed = true
}

// rowTool answers the calls of one tool.
type rowTool struct {
	name  string
	tools *RowTools
	live  pipeline.ToolRunner // nil when there is nothing that could run
}

// Effects are what the tool would do, so that plugins see it as in production.
func (r rowTool) Effects() pipeline.Effects { return pipeline.RunnerEffects(r.live) }

// Run answers a call of the tool, and runs it when it may.
func (r rowTool) Run(ctx context.Context, in pipeline.Invocation, input datasets.Value) (string, error) {
	t := r.tools
	if r.live != nil && slices.Contains(t.policy.Live, r.name) {
		place := t.note(r.name, MatchLive)
		output, err := r.live.Run(ctx, in, input)
		if err != nil {
			t.noteFailed(place)
		}
		return output, err
	}
	if output, ok := t.policy.Stubs.answer(r.name, input); ok {
		t.note(r.name, MatchStub)
		return output, nil
	}
	inside := in.Site().Inside != ""
	if !inside {
		if output, match, ok := t.take(r.name, input); ok {
			t.note(r.name, match)
			return output, nil
		}
	}
	t.note(r.name, MatchNever)
	return "", pipeline.Failf(pipeline.TypeToolUnknown, "tool-never-recorded",
		"the tool %s was called with %s, and %s; let it run (tools: {live: [%s]}), or answer it in a stub file (tools: {stub: FILE})",
		r.name, shortInput(input), t.had(r.name, inside), r.name)
}

// take finds the recorded result of an input, and marks it as given.
func (t *RowTools) take(tool string, input datasets.Value) (output, match string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, match := t.find(tool, input)
	if i < 0 {
		return "", "", false
	}
	t.results[i].given = true
	return t.results[i].output, match, true
}

// find looks for the result to give: of those not given yet the first with the
// same text, then the first that is equal; of the others the last with the same
// text, then the last that is equal. -1 when there is none.
func (t *RowTools) find(tool string, input datasets.Value) (at int, match string) {
	canonical := input.Canonical()
	is := map[string]func(datasets.Value) bool{
		MatchExact:     func(v datasets.Value) bool { return v.JSON() == input.JSON() },
		MatchCanonical: func(v datasets.Value) bool { return v.Canonical() == canonical },
	}
	for _, given := range []bool{false, true} {
		for _, match := range []string{MatchExact, MatchCanonical} {
			at := -1
			for i := range t.results {
				r := &t.results[i]
				if r.tool == tool && r.given == given && (at < 0 || given) && slices.ContainsFunc(r.inputs, is[match]) {
					at = i
				}
			}
			if at >= 0 {
				return at, match
			}
		}
	}
	return -1, ""
}

// had says what the record has of a tool instead.
func (t *RowTools) had(tool string, inside bool) string {
	if inside {
		return "in a call made inside another: no recorded results are kept of those"
	}
	if len(t.results) == 0 {
		return "no tool call is in the rated call's record"
	}
	var inputs, others []string
	for _, r := range t.results {
		if r.tool != tool {
			if !slices.Contains(others, r.tool) {
				others = append(others, r.tool)
			}
		} else if input := shortInput(r.inputs[0]); !slices.Contains(inputs, input) {
			inputs = append(inputs, input)
		}
	}
	if inputs == nil {
		return "the rated call did not call it: it called " + strings.Join(others, ", ")
	}
	const most = 3
	more := ""
	if n := len(inputs) - most; n > 0 {
		inputs, more = inputs[:most], fmt.Sprintf(" and with %d more", n)
	}
	return "the rated call called it with " + strings.Join(inputs, ", with ") + more
}

// shortInput is an input as a message quotes it.
func shortInput(v datasets.Value) string {
	const most = 80
	s := []rune(v.JSON())
	if len(s) <= most {
		return string(s)
	}
	return string(s[:most-1]) + "…"
}

// Approve answers where a plugin would ask a person whether a tool may run. It is
// a [pipeline.Decide]. A tool call that has a result in the record was allowed
// then, whether or not anybody was asked.
func (t *RowTools) Approve(_ context.Context, e *pipeline.ToolCallEvent) (pipeline.Answer, error) {
	words := t.policy.Approve
	if words == nil {
		words = []Approval{ApproveRecorded}
	}
	for _, word := range words {
		switch word {
		case ApproveYes:
			return pipeline.Answer{Allowed: true}, nil
		case ApproveNo:
			return pipeline.Answer{}, nil
		case ApproveRecorded:
			if answer, ok := t.recordedAnswer(e); ok {
				return answer, nil
			}
		}
	}
	return pipeline.Answer{}, pipeline.Failf(pipeline.TypeApproval, "approval-required",
		"the tool %s needs a person's approval for %s, and nobody is asked when a rated call is asked again%s; answer for the person with approve: [recorded, yes] or [recorded, no]",
		e.Name, shortInput(e.Input), map[bool]string{true: ": its record has no such call"}[slices.Contains(words, ApproveRecorded)])
}

// recordedAnswer is what the person said of the tool call when it was rated. A no
// stands in the place of the tool's result, and is given like one.
func (t *RowTools) recordedAnswer(e *pipeline.ToolCallEvent) (pipeline.Answer, bool) {
	if e.Path != e.Function+"/"+e.Name {
		return pipeline.Answer{}, false // of a call made inside another
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	i, _ := t.find(e.Name, e.Input)
	if i < 0 {
		return pipeline.Answer{}, false
	}
	answer, ok := pipeline.RecordedAnswer(t.results[i].output)
	if ok && !answer.Allowed {
		t.results[i].given = true
	}
	return answer, ok
}
