package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"evalrun/datasets"
)

// ToolCall is a model's wish to have a tool run.
type ToolCall struct {
	ID    string         `json:"id"` // the model's, or "call-" and the number of the call where it gives none
	Name  string         `json:"name"`
	Input datasets.Value `json:"input"` // what the model wrote, not checked against the tool's parameters
}

// ToolDefinition is a tool as a program declares it.
type ToolDefinition struct {
	Tool
	Effects Effects // "" is undeclared
}

// Toolbox finds what runs a tool. It is safe for concurrent use.
type Toolbox interface {
	Tool(name string) (ToolRunner, bool)
}

// ToolRunner runs a tool: it is given the input as the handlers of tool_call left
// it, and returns the text the model is told. An error is told to the model as
// "error: <type>: <message>", with the type of a [Failure], else ToolError. It
// ends the asking call instead when it is [Fatal], when the context is over, when
// a person has to answer first, and when something was never recorded: none of
// these is the model's to mend.
//
// A ToolRunner with a method Effects() Effects says what it does where the
// program's declaration does not. One with a method OnlyAsks() bool says whether
// all it does is to ask programs: whoever keeps what cannot be computed again then
// keeps the replies these got, and has no need of its result.
type ToolRunner interface {
	Run(ctx context.Context, in Invocation, input datasets.Value) (string, error)
}

// ToolFunc is a Go function that runs a tool.
type ToolFunc func(ctx context.Context, in Invocation, input datasets.Value) (string, error)

// Run calls f.
func (f ToolFunc) Run(ctx context.Context, in Invocation, input datasets.Value) (string, error) {
	return f(ctx, in, input)
}

// Invocation is the tool call that a tool runs for.
type Invocation interface {
	// Ask asks another program, by the Caller of the asking call, as a call made
	// inside it. The site follows from the place; the notebook, the turn and the
	// tags are the asking call's where in names none, and what is made of them is
	// not kept in the turn's log.
	Ask(ctx context.Context, p *Program, in Ask) (*Call, error)

	// Site is that of the asking call, with the number of this invocation.
	Site() Site

	// Effects are what the tool does, as the asking program declares it, else as
	// the tool says; "" is undeclared.
	Effects() Effects

	// Conversation and Turn say what conversation's turn the asking call belongs
	// to, and Notes are its entries: "" and nil outside one.
	Conversation() string
	Turn() string
	Notes() Notebook
}

// nesting is where a call is made by a tool of another call.
type nesting struct {
	call *Call
	turn *TurnCall // the turn it all happens in; nil outside one
}

// maxNesting is how deep calls may lie inside calls. Tools that are programs
// could else call each other for ever.
const maxNesting = 16

// madeCall is a call a tool made, and which of them.
type madeCall struct {
	nth  int
	call *Call
}

// invocation is one run of a tool.
type invocation struct {
	loop    *toolLoop
	number  int
	site    Site
	effects Effects

	mu       sync.Mutex
	children []madeCall
	asked    int
}

func (i *invocation) Site() Site       { return i.site }
func (i *invocation) Effects() Effects { return i.effects }
func (i *invocation) Notes() Notebook  { return i.loop.in.Notes }

func (i *invocation) Conversation() string {
	if t := i.loop.in.turn(); t != nil {
		return t.Conversation
	}
	return ""
}

func (i *invocation) Turn() string {
	if t := i.loop.in.turn(); t != nil {
		return t.Turn
	}
	return ""
}

func (i *invocation) Ask(ctx context.Context, p *Program, in Ask) (*Call, error) {
	i.mu.Lock()
	nth := i.asked
	i.asked++
	i.mu.Unlock()
	in.Site = i.site
	in.Site.Inside = joinPath(i.site.Inside, itoa(i.number)+"."+itoa(nth))
	if strings.Count(in.Site.Inside, "/") >= maxNesting {
		return nil, Failf(TypeTool, "", "calls lie %d deep inside calls: tools that are programs call each other in a circle", maxNesting)
	}
	in.Site.Step, in.Site.Try = 0, 0
	if in.Notes == nil {
		in.Notes = i.loop.in.Notes
	}
	if in.Tags == nil {
		in.Tags = i.loop.in.Tags
	}
	in.outer = &nesting{i.loop.call, i.loop.in.turn()}
	call, err := i.loop.caller.Ask(ctx, p, in)
	if call != nil {
		i.mu.Lock()
		i.children = append(i.children, madeCall{nth, call})
		i.mu.Unlock()
	}
	return call, err
}

// made are the calls the tool made, in the order it began them.
func (i *invocation) made() []*Call {
	i.mu.Lock()
	defer i.mu.Unlock()
	slices.SortFunc(i.children, func(a, b madeCall) int { return a.nth - b.nth })
	var calls []*Call
	for _, c := range i.children {
		calls = append(calls, c.call)
	}
	return calls
}

// turn is the conversation's turn a call happens in, its own or that of the call
// it lies inside; nil outside one.
func (in *Ask) turn() *TurnCall {
	switch {
	case in.Turn != nil:
		return in.Turn
	case in.outer != nil:
		return in.outer.turn
	}
	return nil
}

// unequipped refuses a tool that is offered and that nothing runs.
func (s *shaped) unequipped(tools Toolbox) *Failure {
	for _, name := range s.tools {
		if _, ok := tools.Tool(name); !ok {
			return Failf(TypeTool, "tools-unsupported", "the program %s has the tool %s, and nothing is given to run it", s.program.Name(), name)
		}
	}
	return nil
}

// toolRun is one tool call on its way.
type toolRun struct {
	ToolCall
	loop    *toolLoop
	number  int
	runner  ToolRunner // nil when there is no such tool
	effects Effects
	refusal *Answer // a person's no
	blocked *string // what the model is told instead of a result
}

// newRun looks the tool up. One that is not offered is as one that is not there.
func (t *toolLoop) newRun(call ToolCall) *toolRun {
	r := &toolRun{ToolCall: call, loop: t, number: t.called, effects: EffectsRead}
	t.called++
	if r.Input.IsZero() {
		r.Input = datasets.RawValue(`{}`)
	}
	if r.ID == "" {
		r.ID = "call-" + itoa(r.number)
	}
	if !slices.Contains(t.shaped.tools, r.Name) {
		return r
	}
	r.runner, _ = t.caller.Tools.Tool(r.Name)
	r.effects = t.call.Program.ToolEffects(r.Name, r.runner)
	return r
}

// ToolEffects are what a tool of the program does: what the program declares, else
// what its runner says; "" when neither does.
func (p *Program) ToolEffects(name string, runner ToolRunner) Effects {
	for _, d := range p.tools {
		if d.Name == name && d.Effects != "" {
			return d.Effects
		}
	}
	return RunnerEffects(runner)
}

// RunnerEffects are what a tool's runner says it does; "" when it does not say.
func RunnerEffects(runner ToolRunner) Effects {
	if says, ok := runner.(interface{ Effects() Effects }); ok {
		return says.Effects()
	}
	return ""
}

// run carries the tool call out and returns the text the model is told.
func (r *toolRun) run(ctx context.Context) (string, []*Call, error) {
	before := len(r.loop.call.Changes)
	if err := r.check(ctx); err != nil {
		return "", nil, err
	}
	if r.blocked != nil {
		return *r.blocked, nil, nil
	}
	log := r.loop.log()
	if log != nil {
		kept := log.Tool(r.number)
		switch {
		case kept.Output != nil:
			if kept.Changes != nil { // what it ran with, and what was made of its result
				r.loop.call.Changes = append(r.loop.call.Changes[:before], kept.Changes...)
			}
			return *kept.Output, nil, nil
		case kept.Started:
			return "", nil, Failf(TypeTool, "turn-unfinished",
				"the tool %s was started before the turn was cut off, and may have run; give its result, or say to run it again", r.Name)
		}
		if r.effects != EffectsRead {
			if err := log.ToolStarted(r.number, r.ID, r.Name, r.Input); err != nil {
				return "", nil, err
			}
		}
	}
	output, made, err := r.execute(ctx)
	if err != nil {
		if f, ok := errors.AsType[*Failure](err); ok && f.Code == "turn-waiting" && log != nil && r.effects != EffectsRead {
			// A delegate waits for a person. It is asked again once there is an
			// answer, and knows by itself what it did.
			err = cmp.Or(log.ToolAgain(r.number), err)
		}
		return "", made, err
	}
	if output, err = r.result(ctx, output); err != nil {
		return "", made, err
	}
	if log != nil {
		if err := log.ToolDone(r.number, output, r.loop.call.Changes[before:]); err != nil {
			return "", made, err
		}
	}
	return output, made, nil
}

func (r *toolRun) path() string { return joinPath(r.loop.call.Site.Path, r.Name) }

// check runs the handlers of tool_call, each on the input as the ones before it
// left it, and then the approval plugin. The first block, or a person's no, ends
// the hook.
func (r *toolRun) check(ctx context.Context) error {
	approval := r.loop.caller.Approval
	for _, p := range r.loop.plugins {
		if p == approval {
			continue // it has its place, the last
		}
		if err := r.checkBy(ctx, p); err != nil || r.blocked != nil {
			return err
		}
	}
	if log := r.loop.log(); log != nil {
		// The plugin that asked may be gone; a person's no is not.
		if no, ok := log.Refused(r.number); ok {
			text := no.told()
			r.blocked = &text
			return nil
		}
	}
	if approval == nil {
		return nil
	}
	return r.checkBy(ctx, approval)
}

func (r *toolRun) checkBy(ctx context.Context, p *Plugin) error {
	for _, handle := range p.toolCall {
		event := &ToolCallEvent{
			ID: r.ID, Name: r.Name, Input: r.Input, Effects: r.effects, Path: r.path(),
			Function: r.loop.call.Program.Name(), Invocation: r.number, plugin: p.name,
		}
		// A handler owns its event; a person is asked about the call as it is.
		handlings := &r.loop.shaped.handlings
		own := handlings.begin(ctx, r.loop.caller)
		asked := &approving{ctx: ctx, run: r, event: *event, pause: handlings.now.pause}
		event.asker = asked
		change, err := handle(own, event)
		err = handlings.end(err)
		if asked.failed != nil {
			// Whatever the handler made of it: nobody allowed the tool.
			err = asked.failed
		}
		if err != nil {
			if err = r.failing(ctx, p, err); err != nil {
				return err
			}
			return nil
		}
		if change != nil && len(change.fields()) > 0 {
			if f := change.check(p, HookToolCall); f != nil {
				return f
			}
			if f := r.apply(p, change); f != nil {
				return f
			}
			r.record(p.applied(HookToolCall, change.object()))
		}
		if r.blocked == nil && r.refusal != nil {
			text := r.refusal.told()
			r.blocked = &text
		}
		if r.blocked != nil {
			return nil
		}
	}
	return nil
}

func (r *toolRun) record(a Applied) { r.loop.call.Changes = append(r.loop.call.Changes, a) }

// failing blocks the tool when a handler failed: the check it was meant to make
// was not made. What is not the handler's own failing ends the call.
func (r *toolRun) failing(ctx context.Context, p *Plugin, err error) error {
	kind := kindOf(err)
	err = p.handlerFailed(ctx, HookToolCall, err)
	f, ok := errors.AsType[*Failure](err)
	if !ok || f.Code != "plugin-failed" {
		return err
	}
	reason := "a check on this tool call failed (" + p.name + ")"
	r.block(p, reason)
	if warn := r.loop.caller.Warn; warn != nil && p.warned.first(r.loop.caller, kind) {
		warn(fmt.Sprintf("the tool %s was blocked, since a check on it failed: %v", r.Name, f))
	}
	// No version: what is recorded is not what the plugin asked for.
	r.record(Applied{Plugin: p.name, Hook: HookToolCall, Change: (&Change{Block: &reason}).object()})
	return nil
}

func (r *toolRun) block(p *Plugin, reason string) {
	text := blockedBy + p.name + "): " + reason
	r.blocked = &text
}

// apply makes a tool_call change. The input is not checked against the tool's
// parameters: that is the tool's to do, whoever wrote it.
func (r *toolRun) apply(p *Plugin, change *Change) *Failure {
	if change.Inputs != nil {
		r.Input = withMembers(r.Input, change.Inputs)
	}
	if change.Block != nil {
		r.block(p, *change.Block)
	}
	return nil
}

// withMembers is the object v with members replaced by name, the others as they
// were; what is no object is replaced whole.
func withMembers(v datasets.Value, replace datasets.Values) datasets.Value {
	var members []member
	have := map[string]int{}
	add := func(name string, v datasets.Value) {
		if i, ok := have[name]; ok {
			members[i].value = v
			return
		}
		have[name] = len(members)
		members = append(members, member{name, v})
	}
	for name, v := range v.Members() {
		add(name, v)
	}
	for _, name := range replace.Names() {
		add(name, replace[name])
	}
	return object(members)
}

// execute runs the tool. Its own failing is a text as well.
func (r *toolRun) execute(ctx context.Context) (string, []*Call, error) {
	if r.runner == nil {
		text := "error: " + TypeTool + ": there is no tool " + r.Name
		if tools := r.loop.shaped.tools; len(tools) > 0 {
			text += "; there are " + strings.Join(tools, ", ")
		}
		return text, nil, nil
	}
	site := r.loop.call.Site
	site.Step, site.Invocation = r.loop.step, r.number
	in := &invocation{loop: r.loop, number: r.number, site: site, effects: r.effects}
	output, err := r.runSafely(ctx, in)
	made := in.made()
	switch {
	case err == nil:
		return strings.ToValidUTF8(output, "\uFFFD"), made, nil
	case ctx.Err() != nil || !ToldToModel(err):
		return "", made, err
	}
	return strings.ToValidUTF8(ToolErrorText(err), "\uFFFD"), made, nil
}

// runSafely turns a tool's panic into its error: the model is told, and the
// process goes on.
func (r *toolRun) runSafely(ctx context.Context, in Invocation) (output string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("it panicked: %v", v)
		}
	}()
	return r.runner.Run(ctx, in, r.Input)
}

// ToolErrorText is a tool's error as the model is told it.
func ToolErrorText(err error) string {
	f, ok := errors.AsType[*Failure](err)
	if !ok {
		f = Failf(TypeTool, "", "%v", err)
	}
	return "error: " + f.Type + ": " + f.Message
}

// ToldToModel reports whether a tool's error is one the model can do something
// about. Any other ends the asking call.
func ToldToModel(err error) bool {
	if _, fatal := errors.AsType[*Fatal](err); fatal {
		return false
	}
	f, ok := errors.AsType[*Failure](err)
	if !ok {
		return true
	}
	switch f.Type {
	case TypeApproval, TypeNotRecorded, TypeToolUnknown, TypeCancelled:
		return false
	}
	switch f.Code {
	case "turn-waiting", "turn-unfinished", "tool-unfinished":
		return false
	}
	return true
}

// result runs the handlers of tool_result, each on the output as the ones before
// it left it.
func (r *toolRun) result(ctx context.Context, output string) (string, error) {
	for _, p := range r.loop.plugins {
		for _, handle := range p.toolResult {
			handlings := &r.loop.shaped.handlings
			change, err := handle(handlings.begin(ctx, r.loop.caller), &ToolResultEvent{
				Name: r.Name, Input: r.Input, Output: output, Path: r.path(),
				Function: r.loop.call.Program.Name(), Invocation: r.number,
			})
			if err = handlings.end(err); err != nil {
				return "", p.handlerFailed(ctx, HookToolResult, err)
			}
			if change == nil || len(change.fields()) == 0 {
				continue
			}
			if f := change.check(p, HookToolResult); f != nil {
				return "", f
			}
			output = strings.ToValidUTF8(*change.Output, "\uFFFD")
			r.record(p.applied(HookToolResult, change.object()))
		}
	}
	return output, nil
}

// approving asks a person for one handler. A person takes the time of the call,
// not that of the handler.
type approving struct {
	ctx    context.Context
	run    *toolRun
	event  ToolCallEvent
	pause  func() (resume func()) // of the handler's time
	failed error                  // why there is no answer; the tool is then not run
}

func (a *approving) ask(_ context.Context, _ *ToolCallEvent, reason string, decide Decide) (Answer, error) {
	defer a.pause()()
	answer, err := a.answer(a.ctx, reason, decide)
	if err != nil {
		a.failed = err
		return Answer{}, err
	}
	if !answer.Allowed && a.run.refusal == nil {
		a.run.refusal = &answer
	}
	return answer, nil
}

func (a *approving) answer(ctx context.Context, reason string, decide Decide) (Answer, error) {
	e := a.event
	log := a.run.loop.log()
	if log != nil {
		if answer, ok := log.Approval(e.Invocation, e.plugin); ok {
			return answer, nil
		}
	}
	if decide != nil {
		answer, err := decide(ctx, &e)
		answer.By = "" // no person said it
		return answer, err
	}
	if log != nil {
		if err := log.Wait(&e, e.plugin, reason); err != nil {
			return Answer{}, err
		}
	} else if stand := a.run.loop.caller.Approve; stand != nil {
		return stand(ctx, &e)
	}
	return Answer{}, Failf(TypeApproval, "approval-required",
		"the tool %s needs a person's approval (%s), and in a plain call nobody is asked; ask in a conversation, or give a function that decides", e.Name, reason)
}
