package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"evalrun/datasets"
	"evalrun/internal/conf"
	"evalrun/internal/par"
)

// Caller asks programs in one environment: a model, the host's own plugins, a
// clock and a source of ids. It is safe for concurrent use.
type Caller struct {
	LM           LM                            // the model that is asked
	Lookup       func(name string) (LM, error) // finds the model a before_call change names; nil when there is no other
	Conversation Layer                         // plugins around every call, as a conversation would have them
	Process      Layer                         // the host's plugins, outermost
	Approval     *Plugin                       // whose tool_call handlers run last, whatever the layers say; nil asks nobody
	Tools        Toolbox                       // runs what programs' tools do; nil refuses programs with tools
	Approve      Decide                        // answers in a person's place where a call outside a conversation would ask one; nil refuses such a call
	MaxSteps     int                           // how many requests a call with tools may make, those about an unreadable reply apart; 0 means 8
	Facts        *Facts                        // what the models can do; nil means ProbeFacts
	Timeout      time.Duration                 // of a call, without what it waits for its turn; one that takes longer fails; 0 is none
	HandlerTime  time.Duration                 // of a plugin's handler, without what it waits for its turn or a person; one that looks at its context and takes longer fails; 0 means 30 s
	Warn         func(text string)             // is told what a call does not end for and a person should know; may be nil
	Retries      int                           // further requests after a reply that could not be read; a deterministic LM gets none
	Journal      Journal                       // nil when nothing is to be remembered
	Now          func() time.Time              // the clock
	NewID        func() string                 // makes UUIDv7s

	copied *Caller // that this is a copy of, made for one call; nil for the host's own
}

// Ask is what a program is asked, and with what context. It has no place for a
// right answer.
type Ask struct {
	Site    Site
	Inputs  datasets.Values
	Context datasets.Context
	Tags    datasets.Values // who calls
	Notes   Notebook        // entries its plugins may read and keep; nil for none
	Turn    *TurnCall       // the conversation's turn this call answers; nil for a plain call
	Tools   Toolbox         // in place of the Caller's, also for calls made inside; nil leaves it to that
	Approve Decide          // likewise

	outer *nesting // the call whose tool makes this one; nil for an outermost call
}

// TurnCall places a call in a conversation's turn.
type TurnCall struct {
	Conversation string
	Turn         string
	Parent       string    // the turn it continues; "" for none
	Attempt      int       // which one at the turn this is: from 1, more when it was resumed
	Changes      []Applied // what turn_start and context handlers changed
	Saw          []Saw     // what it is shown, as records keep it
	Log          TurnLog   // what is kept of it, to resume it
}

// Saw is one earlier call that a call is shown, or with SawOf, everything that
// call saw.
type Saw struct {
	Call    string
	SawOf   string
	Steps   bool
	Without []string
}

// shaped is a call on its way: what the program, the conversation and the
// plugins so far make of it.
type shaped struct {
	program     *Program
	inputs      datasets.Values
	instruction string
	sections    []string
	lm          LM
	settings    datasets.Values
	tools       []string
	handlings   handlings
}

// Ask asks p and returns the finished call. There is an error only when the
// context ended before the call did (it is then the context's), or when what was
// answered could not be kept (a *Fatal); every other failure is in the call.
//
// The order: bind the inputs, take the conversation's context as it was shown,
// let before_call handlers shape the call, refuse a shape that cannot reach the
// model, render, let request handlers replace the request, ask, read.
func (c *Caller) Ask(ctx context.Context, p *Program, in Ask) (*Call, error) {
	if c.Now == nil || c.NewID == nil || c.LM.Model == nil && c.LM.Name == "" {
		return nil, &Fatal{Err: errors.New("a Caller needs a model (LM), a clock (Now) and a source of ids (NewID)")}
	}
	if in.Tools != nil || in.Approve != nil {
		own := *c
		own.copied = c.origin()
		if in.Tools != nil {
			own.Tools = in.Tools
		}
		if in.Approve != nil {
			own.Approve = in.Approve
		}
		c = &own
	}
	began := c.Now()
	call := &Call{ID: c.NewID(), Program: p, Site: in.Site, Started: began, LM: c.LM.Name, Inputs: in.Inputs, Tags: in.Tags}
	call.Site.Path = joinPath(in.Site.Path, p.Name())
	if c.Journal != nil {
		var err error
		if call.ID, call.Started, err = c.Journal.Begin(call.Site, call.ID, began); err != nil {
			return nil, err
		}
	}
	call.Root = call.ID
	if in.outer != nil {
		call.Parent, call.Root = in.outer.call.ID, in.outer.call.Root
	}
	if in.Turn != nil {
		call.Turn, call.Changes = in.Turn, slices.Clone(in.Turn.Changes)
	}
	call.Sections = in.Context.Sections
	if len(in.Context.Earlier) > 0 {
		call.SawOf = in.Context.Of
	}

	err := c.within(ctx, call, in)
	call.Seconds = c.Now().Sub(began).Seconds()
	if err == nil {
		return call, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if fatal, ok := errors.AsType[*Fatal](err); ok {
		return nil, fatal
	}
	call.Failure = failureOf(err)
	return call, nil
}

// within asks in the time a call may take.
func (c *Caller) within(ctx context.Context, call *Call, in Ask) error {
	if c.Timeout == 0 {
		return c.ask(ctx, call, in)
	}
	ctx, watch := par.Timed(ctx, c.Timeout, Failf(TypeTimeout, "", "no answer within %s", c.Timeout), c.Now)
	defer watch.Stop()
	err := c.ask(pausable(ctx, watch.Pause), call, in)
	if err == nil || ctx.Err() == nil {
		return err
	}
	if f, ok := errors.AsType[*Failure](err); ok && f.Code == "plugin-failed" {
		return f // it was at work when the time was over
	}
	return context.Cause(ctx)
}

func (c *Caller) ask(ctx context.Context, call *Call, in Ask) error {
	p := call.Program
	if f := p.unsupported(c.Tools); f != nil {
		return f
	}
	inputs, err := p.Bind(in.Inputs)
	if err != nil {
		return err
	}
	call.Inputs = inputs
	s := &shaped{
		program: p, inputs: inputs, instruction: p.Instruction(),
		sections: slices.Clone(in.Context.Sections), lm: c.LM, tools: p.toolNames(),
	}
	plugins := Order(c.layers(ctx, p))
	if err := c.beforeCall(ctx, plugins, s, call, &in); err != nil {
		return err
	}
	call.LM = s.lm.Name
	if f := s.unreachable(); f != nil {
		return f
	}
	if f := s.unequipped(c.Tools); f != nil {
		return f
	}
	req, err := p.Render(s.rendering(in.Context, c.facts()))
	if err != nil {
		return err
	}
	return c.converse(ctx, plugins, s, call, &in, req)
}

// origin is the Caller that the host has.
func (c *Caller) origin() *Caller {
	if c.copied != nil {
		return c.copied
	}
	return c
}

func (c *Caller) facts() Facts {
	if c.Facts == nil {
		return ProbeFacts
	}
	return *c.Facts
}

// beforeCall runs the handlers of before_call in order, each on what the ones
// before it left.
func (c *Caller) beforeCall(ctx context.Context, plugins []*Plugin, s *shaped, call *Call, in *Ask) error {
	for _, p := range plugins {
		for _, handle := range p.beforeCall {
			event := &CallEvent{
				Instruction: s.instruction, Function: s.program.Name(), Program: s.program.Version(),
				Path: call.Site.Path, LM: s.lm.Name, notes: notes{in.Notes, p.name}, shape: s,
			}
			if turn := in.turn(); turn != nil {
				event.Conversation, event.Turn = turn.Conversation, turn.Turn
			} else {
				event.Conversation = in.Context.Conversation // of a call that is asked again
			}
			change, err := handle(s.handlings.begin(ctx, c), event)
			if err = s.handlings.end(err); err != nil {
				return p.handlerFailed(ctx, HookBeforeCall, err)
			}
			if change == nil || len(change.fields()) == 0 {
				continue
			}
			if f := change.check(p, HookBeforeCall); f != nil {
				return f
			}
			if f := c.apply(s, p, change); f != nil {
				f.Hook = HookBeforeCall
				return f
			}
			call.Changes = append(call.Changes, p.applied(HookBeforeCall, change.object()))
		}
	}
	return nil
}

// apply checks the values of a before_call change and makes it.
func (c *Caller) apply(s *shaped, p *Plugin, change *Change) *Failure {
	if change.Instruction != nil && blank(*change.Instruction) {
		return p.failf("plugin-change", "the instruction is blank; leave it unset to keep the one there is")
	}
	if change.LM != nil {
		if blank(*change.LM) {
			return p.failf("plugin-change", "lm is blank; leave it unset to keep the model there is")
		}
		lm, err := c.lookup(*change.LM)
		if err != nil {
			return p.failf("plugin-change", "lm %q: %v", *change.LM, err)
		}
		s.lm = lm
	}
	for _, name := range change.Settings.Names() {
		if !slices.Contains(modelSettings, name) {
			if near := conf.Suggest(name, modelSettings); near != "" {
				return p.failf("plugin-change", "%q is not a model's setting; did you mean %q? There are %s", name, near, strings.Join(modelSettings, ", "))
			}
			return p.failf("plugin-change", "%q is not a model's setting; those are %s", name, strings.Join(modelSettings, ", "))
		}
	}
	own := s.program.toolNames()
	for _, name := range change.Tools {
		if !slices.Contains(own, name) {
			return p.failf("plugin-change", "the program %s has no tool %q", s.program.Name(), name)
		}
	}

	if change.Instruction != nil {
		s.instruction = *change.Instruction
	}
	for _, section := range change.Sections {
		if !blank(section) {
			s.sections = append(s.sections, section)
		}
	}
	if len(change.Settings) > 0 && s.settings == nil {
		s.settings = datasets.Values{}
	}
	for name, v := range change.Settings {
		s.settings[name] = v
	}
	if change.Tools != nil {
		// The last list wins, in the program's own order.
		s.tools = nil
		for _, name := range own {
			if slices.Contains(change.Tools, name) {
				s.tools = append(s.tools, name)
			}
		}
	}
	return nil
}

func (c *Caller) lookup(name string) (LM, error) {
	if name == c.LM.Name {
		return c.LM, nil
	}
	if c.Lookup == nil {
		return LM{}, errors.New("this environment has no other model")
	}
	return c.Lookup(name)
}

// modelSettings are the settings that a request's config may carry to a model.
var modelSettings = []string{
	"frequency_penalty", "logit_bias", "logprobs", "max_tokens", "presence_penalty", "reasoning",
	"seed", "stop", "temperature", "top_k", "top_p",
}

// unreachable refuses an instruction that differs from the program's own and
// cannot reach the model: the record would say it was sent.
func (s *shaped) unreachable() *Failure {
	if len(s.sections) == 0 && s.instruction == s.program.Instruction() {
		return nil
	}
	if s.lm.Baked {
		return Failf(TypePlugin, "plugin-change",
			"the model %s is baked: it reads only the message it was trained on, so a changed instruction or a section cannot reach it", s.lm.Name)
	}
	if !s.program.InstructionReaches() {
		return Failf(TypePlugin, "plugin-change",
			"the template of %s writes {instruction} nowhere, so a changed instruction or a section cannot reach the model; write {instruction} in it", s.program.Name())
	}
	return nil
}

func (s *shaped) rendering(shown datasets.Context, facts Facts) Rendering {
	config := s.lm.Config
	if len(s.settings) > 0 {
		config = cloneValues(config)
		if config == nil {
			config = datasets.Values{}
		}
		for name, v := range s.settings {
			config[name] = v
		}
	}
	return Rendering{
		Inputs: s.inputs, Instruction: s.instruction, Sections: s.sections,
		Earlier: shown.Earlier, Tools: s.tools, Model: s.lm.Name, Config: config, Facts: facts,
	}
}

// replaceRequest runs the request handlers in order.
func (c *Caller) replaceRequest(ctx context.Context, plugins []*Plugin, s *shaped, path string, req *Request) (*Request, []Applied, error) {
	var changes []Applied
	for _, p := range plugins {
		for _, handle := range p.request {
			next, err := handle(s.handlings.begin(ctx, c), &RequestEvent{Request: req.Clone(), Function: s.program.Name(), Path: path})
			if err = s.handlings.end(err); err != nil {
				return nil, nil, p.handlerFailed(ctx, HookRequest, err)
			}
			if next == nil {
				continue
			}
			if f := next.check(p); f != nil {
				return nil, nil, f
			}
			if bytes.Equal(next.Canonical(next.Model), req.Canonical(req.Model)) {
				continue // the request it was given
			}
			// The handler keeps its pointer; what is sent must not change under us.
			site := req.Site
			req = next.Clone()
			req.Site = site
			changes = append(changes, p.applied(HookRequest, replaced))
		}
	}
	return req, changes, nil
}

// check refuses a replacement that is no request.
func (r *Request) check(p *Plugin) *Failure {
	f := p.checkValues("the setting", r.Config)
	if len(r.Messages) == 0 || r.Model == "" {
		f = p.failf("plugin-change", "the replacement is not a request: it needs a model and at least one message")
	}
	for _, m := range r.Messages {
		for _, part := range m.Parts {
			if f == nil && !part.Raw.IsZero() {
				f = p.checkValue("a part of a message", part.Raw)
			}
		}
	}
	for _, t := range r.Tools {
		if f == nil && !t.Parameters.IsZero() {
			f = p.checkValue("the parameters of the tool "+t.Name, t.Parameters)
		}
	}
	if f != nil {
		f.Hook = HookRequest
	}
	return f
}

// exchange asks the model and keeps the exchange in the call, failed or not. A
// reply that the turn's log has is taken from there, and any other is in it before
// it is used.
func (c *Caller) exchange(ctx context.Context, lm LM, call *Call, req *Request, wasReplaced bool, log TurnLog) (*Reply, error) {
	req.seal()
	x := Exchange{Request: req, Started: c.Now(), Replaced: wasReplaced}
	if !wasReplaced {
		x.Hash = req.Hash()
	}
	var reply *Reply
	var err error
	if log == nil {
		reply, err = generate(ctx, lm.Model, req)
	} else {
		reply, err = logged(ctx, lm.Model, req, log)
	}
	x.Seconds = c.Now().Sub(x.Started).Seconds()
	if err != nil {
		x.Failure = failureOf(err)
		call.Exchanges = append(call.Exchanges, x)
		return nil, err
	}
	x.Reply, x.Cost = reply, lm.Price.Cost(reply.Usage)
	call.Exchanges = append(call.Exchanges, x)
	call.Model = lm.Name
	if reply.Model != "" {
		call.Model = reply.Model
	}
	return reply, nil
}

// logged answers from a turn's log, or asks and keeps the reply there.
func logged(ctx context.Context, model Model, req *Request, log TurnLog) (*Reply, error) {
	key := req.Hash()
	if kept, ok := log.Reply(key); ok {
		reply := *kept
		reply.Cached = true
		return &reply, nil
	}
	reply, err := generate(ctx, model, req)
	if err != nil {
		return nil, err
	}
	return reply, log.KeepReply(key, reply)
}

// generate asks the model. Where it called a tool with an input that no record can
// hold, the input is the text that it is: the tool refuses that in words that the
// model is told, and can mend.
func generate(ctx context.Context, model Model, req *Request) (*Reply, error) {
	reply, err := model.Generate(ctx, req)
	if err != nil || !slices.ContainsFunc(reply.Calls, func(c ToolCall) bool { return !recordable(c.Input) }) {
		return reply, err
	}
	own := *reply // the model may give the same reply again
	own.Calls = slices.Clone(reply.Calls)
	for i, c := range own.Calls {
		if !recordable(c.Input) {
			own.Calls[i].Input = datasets.Text(c.Input.JSON())
		}
	}
	if !recordable(own.Response) { // it has them too
		own.Response = datasets.Text(own.Response.JSON())
	}
	return &own, nil
}

// recordable reports whether a value can stand inside a record, with some room for
// what is around it there.
func recordable(v datasets.Value) bool {
	const room = 16
	_, err := datasets.ParseValue(strings.Repeat("[", room) + v.JSON() + strings.Repeat("]", room))
	return err == nil
}

// handlerFailed is the failure of a handler that raised. A Failure passes
// unchanged, and so does the end of the call's own context ctx; any other error,
// that of a shorter time which the handler gave itself too, is plugin-failed: the
// change it was meant to make did not happen, and the call must not go on as if
// it had.
func (p *Plugin) handlerFailed(ctx context.Context, hook Hook, err error) error {
	if ctx.Err() != nil && ended(err) {
		return err
	}
	if fatal, ok := errors.AsType[*Fatal](err); ok {
		return fatal
	}
	var f *Failure
	if errors.As(err, &f) && (hook != HookRequest || f.Code == "plugin-change") {
		if f.Type == TypePlugin && f.Plugin == "" {
			named := *f
			named.Plugin, named.Hook = p.name, hook
			return &named
		}
		return f
	}
	failed := p.failf("plugin-failed", "%v", err)
	failed.Hook = hook
	return failed
}

func failureOf(err error) *Failure {
	var f *Failure
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, context.DeadlineExceeded):
		return Failf(TypeTimeout, "", "%v", err)
	case errors.Is(err, context.Canceled):
		return Failf(TypeCancelled, "", "%v", err)
	}
	return Failf(TypeServer, "", "%v", err)
}

func joinPath(outer, name string) string {
	if outer == "" {
		return name
	}
	return fmt.Sprintf("%s/%s", outer, name)
}
