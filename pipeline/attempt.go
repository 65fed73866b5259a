package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"evalrun/datasets"
	"evalrun/internal/par"
)

// errStopped is why a turn's context ended when somebody stopped the turn.
var errStopped = errors.New("the turn was stopped")

// turnAttempt is an attempt at a turn.
type turnAttempt struct {
	turn    string
	attempt int
}

// attempt answers a turn that is recorded and ours, and records its end. The
// changes are those of its turn_start and context handlers, which belong to its
// call's record the first time.
func (c *Conversation) attempt(ctx context.Context, id string, attempt int, o TurnOptions, changes []Applied) (*Turn, error) {
	lasting := context.WithoutCancel(ctx)
	in, journal, err := c.begin(lasting, id, attempt)
	if err != nil {
		return nil, err
	}
	in.Site, in.Tags, in.Turn.Changes = o.Site, o.Tags, changes
	around, _ := o.Inside.(*invocation)
	if around != nil {
		in.outer = &nesting{around.loop.call, in.Turn}
		if in.Tags == nil {
			in.Tags = around.loop.in.Tags
		}
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.mu.Lock()
	c.running[turnAttempt{id, attempt}] = cancel
	c.mu.Unlock()
	stopRenewing := par.Go(lasting, func(ctx context.Context) { c.renew(ctx, id, attempt, cancel) })
	defer func() {
		stopRenewing()
		c.mu.Lock()
		delete(c.running, turnAttempt{id, attempt})
		c.mu.Unlock()
	}()
	caller := *c.caller
	caller.copied, caller.Journal = c.caller.origin(), journal
	call, err := caller.Ask(context.WithValue(ctx, turnKey{}, runningTurn{c, id}), c.program, in)

	cause := context.Cause(ctx)
	if err != nil {
		if fatal, ok := errors.AsType[*Fatal](err); ok || cause == nil {
			// Nobody goes on with the turn here; whoever can need not wait for the
			// lease to run out. What ended the call may be the store itself.
			_, _ = c.release(lasting, ending{turn: id, attempt: attempt, stopRenewing: stopRenewing}, func() (*Turn, error) { return nil, nil })
			if ok {
				err = fatal
			}
			return nil, err
		}
		if isLost(cause) {
			return nil, cause
		}
		call = &Call{
			ID: journal.call, Root: journal.call, Program: c.program, Site: in.Site, Started: journal.started, LM: c.caller.LM.Name,
			Seconds: c.caller.Now().Sub(journal.started).Seconds(), Inputs: in.Inputs, Sections: in.Context.Sections,
			Changes: changes, Tags: in.Tags, Failure: Failf(TypeCancelled, "", "%v", cause),
		}
	}
	call.Turn = in.Turn
	if around != nil {
		around.mu.Lock()
		around.children = append(around.children, madeCall{around.asked, call})
		around.asked++
		around.mu.Unlock()
	}
	t, endErr := c.end(ctx, ending{id, attempt, call, cause != nil, stopRenewing})
	if errors.Is(cause, errStopped) {
		err = nil // it is what somebody asked for
	}
	return t, cmp.Or(endErr, err)
}

// begin takes a turn's lease, gives its call an id, and gathers what it is asked
// with.
func (c *Conversation) begin(ctx context.Context, id string, attempt int) (in Ask, j *turnJournal, err error) {
	if attempt == 1 { // a later attempt begins with its lease
		err = c.append(ctx, func(h *history) (*record, error) {
			if !h.turns[id].held(c.holder, attempt) {
				return nil, turnLost(id)
			}
			return c.lease(id, attempt), nil
		})
		if err != nil {
			return in, nil, err
		}
	}
	err = c.append(ctx, func(h *history) (*record, error) {
		if h.turns[id].call != "" {
			return nil, nil
		}
		return &record{Kind: "call", Turn: id, Call: c.caller.NewID(), Started: timeText(c.caller.Now())}, nil
	})
	if err != nil {
		return in, nil, err
	}
	err = c.locked(ctx, func(h *history) error {
		t := h.turns[id]
		left := map[string][]*Reply{}
		for key, list := range t.replies {
			left[key] = slices.Clone(list)
		}
		shown, saw := h.shownTo(t, c.id, c.program)
		in = Ask{
			Inputs: cloneValues(t.made.Inputs), Context: shown, Notes: &turnNotes{c: c, ctx: ctx, branch: id, turn: id},
			Turn: &TurnCall{
				Conversation: c.id, Turn: id, Parent: t.parent, Attempt: attempt, Saw: saw,
				Log: &turnLog{c: c, ctx: ctx, turn: id, attempt: attempt, left: left},
			},
		}
		j = &turnJournal{call: t.call, started: t.started, next: c.caller.Journal}
		return nil
	})
	return in, j, err
}

func (c *Conversation) lease(id string, attempt int) *record {
	return &record{Kind: "lease", Turn: id, Holder: c.holder, Until: timeText(c.caller.Now().Add(leaseFor)), Attempt: attempt}
}

// renew renews a turn's lease until ctx ends: until the turn's end is recorded, or
// its lease is given back. It ends the asking when somebody stopped the turn or
// took it over, or when the lease ran out because the store could not be written
// to: another process may then have it.
func (c *Conversation) renew(ctx context.Context, id string, attempt int, end context.CancelCauseFunc) {
	until := c.caller.Now().Add(leaseFor)
	for wait(ctx, renewEvery) == nil {
		stopping := false
		err := c.append(ctx, func(h *history) (*record, error) {
			t := h.turns[id]
			stopping = t.stopping
			switch {
			case !t.held(c.holder, attempt):
				return nil, turnLost(id)
			case len(t.waits) > 0: // it waits for a person now, who needs no lease
				return nil, nil
			}
			return c.lease(id, attempt), nil
		})
		if stopping {
			end(errStopped) // it is ours until that is recorded
		}
		switch f, _ := errors.AsType[*Failure](err); {
		case err == nil:
			until = c.caller.Now().Add(leaseFor)
		case f != nil:
			end(err)
			return
		case !c.caller.Now().Before(until):
			end(Failf(TypeConversation, "turn-lost", "the lease of turn %s ran out: %v", id, err))
			return
		}
	}
}

// ending is how a turn is about to end.
type ending struct {
	turn    string
	attempt int
	call    *Call
	stopped bool // its context ended before it was answered

	stopRenewing func() // its lease; may be called again
}

// end runs the turn_end handlers and records the turn's end, whether asking is
// over or not. A turn that waits for a person, or whose tools are in doubt, has
// not ended.
func (c *Conversation) end(asking context.Context, p ending) (*Turn, error) {
	ctx := context.WithoutCancel(asking)
	call := p.call
	result := func() (*Turn, error) {
		t, err := c.Turn(ctx, p.turn)
		if err == nil {
			t.Record = call
			if t.Failure == nil {
				t.Failure = call.Failure
			}
		}
		return t, err
	}
	state := TurnDone
	if f := call.Failure; f != nil {
		state = TurnFailed
		switch {
		case p.stopped:
			state = TurnStopped
		case f.Code == "turn-lost":
			return nil, f
		case f.Code == "turn-waiting" && c.waits(p.turn):
			return result()
		case f.Code == "turn-waiting", f.Code == "turn-unfinished": // of a turn inside this one, or of our own tools
			return c.release(ctx, p, result)
		}
	}
	if err := c.turnEnd(asking, p.turn, state, call.Outputs); err != nil {
		return nil, err
	}
	r := &record{
		Kind: "ended", Turn: p.turn, State: string(state), Outputs: call.Outputs, Model: call.Model, Attempt: p.attempt,
		Seconds: &call.Seconds, Saw: recordSaw(call.Turn.Saw),
	}
	if call.Outputs != nil {
		r.Value = call.Outputs[c.program.Answer()]
		r.Steps = call.Steps
	}
	if u := call.Usage(); u != (Usage{}) {
		r.Usage = &u
	}
	if f := call.Failure; f != nil {
		r.Error = &errorRecord{f.Type, f.Message, f.Code, f.Plugin, f.Hook}
	}
	err := c.append(ctx, func(h *history) (*record, error) {
		if !h.turns[p.turn].held(c.holder, p.attempt) {
			return nil, turnLost(p.turn)
		}
		return r, nil
	})
	if err != nil {
		return nil, err
	}
	return result()
}

func (c *Conversation) waits(turn string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.h.turns[turn].waits) > 0
}

// release gives the turn's lease back, so that it is interrupted at once.
func (c *Conversation) release(ctx context.Context, p ending, result func() (*Turn, error)) (*Turn, error) {
	p.stopRenewing()
	err := c.append(ctx, func(h *history) (*record, error) {
		if !h.turns[p.turn].held(c.holder, p.attempt) {
			return nil, turnLost(p.turn)
		}
		r := c.lease(p.turn, p.attempt)
		r.Until = timeText(c.caller.Now())
		return r, nil
	})
	if err != nil {
		return nil, err
	}
	return result()
}

func recordSaw(saw []Saw) []sawRecord {
	list := []sawRecord{}
	for _, s := range saw {
		list = append(list, sawRecord(s))
	}
	return list
}

// turnEnd tells the turn_end handlers, which are given the time that the asking
// has left, or, when it was over before, the time of a handler. They only hear:
// one that fails is warned of, once for each plugin and type of error, and changes
// nothing.
func (c *Conversation) turnEnd(asking context.Context, id string, state TurnState, outputs datasets.Values) error {
	ctx := context.WithoutCancel(asking)
	if asking.Err() != nil {
		asking = ctx
	}
	plugins := Order(c.caller.layers(ctx, c.program))
	if !slices.ContainsFunc(plugins, func(p *Plugin) bool { return len(p.turnEnd) > 0 }) {
		return nil
	}
	var shown []ShownTurn
	var parent string
	var inputs datasets.Values
	err := c.locked(ctx, func(h *history) error {
		t := h.turns[id]
		parent, inputs = t.parent, t.made.Inputs
		for _, d := range h.doneOn(parent) {
			shown = append(shown, d.asShown(nil))
		}
		if state == TurnDone {
			shown = append(shown, ShownTurn{ID: id, Inputs: inputs, Outputs: outputs})
		}
		return nil
	})
	if err != nil {
		return err
	}
	book := &turnNotes{c: c, ctx: ctx, branch: id, turn: id}
	asking = context.WithValue(asking, turnKey{}, runningTurn{c, id}) // it has not ended yet
	var handlings handlings
	for _, p := range plugins {
		for _, handle := range p.turnEnd {
			err := handle(handlings.begin(asking, c.caller), &TurnEndEvent{
				Turn: id, State: state, Conversation: c.id, Parent: parent,
				notes: notes{book, p.name}, inputs: inputs, outputs: outputs, turns: shown,
			})
			if err = handlings.end(err); err != nil {
				c.warnOnce(p, err)
			}
		}
	}
	return nil
}

func (c *Conversation) warnOnce(p *Plugin, err error) {
	kind := p.name + " " + kindOf(err)
	c.mu.Lock()
	again := c.warned[kind]
	c.warned[kind] = true
	c.mu.Unlock()
	if !again {
		c.warn(fmt.Sprintf("conversation %s: plugin %s, turn_end: %v", c.id, p.name, err))
	}
}
