package pipeline

import (
	"cmp"
	"context"
	"slices"

	"evalrun/datasets"
)

// Send sends inputs as the conversation's next turn and answers it.
//
// It continues the head, or the turn that is named, when that is done, else its
// nearest ancestor that is; a turn that has not ended is waited for, refused or
// left aside, as Busy says, and one that waits for a person is left aside or
// refused. A turn that failed is no error: the Turn says so, as it does of one
// that waits for a person. There is an error when no turn was begun (a *Failure,
// as a rule), when ctx ended, or when what was answered could not be kept.
func (c *Conversation) Send(ctx context.Context, inputs datasets.Values, o SendOptions) (*Turn, error) {
	if err := c.nested(ctx, &o); err != nil {
		return nil, err
	}
	c.enter(&o)
	defer c.leave(&o)
	ctx = c.layer(ctx, o.Turn)
	plugins := Order(c.caller.layers(ctx, c.program))
	at, err := c.place(ctx, &o)
	if err != nil {
		return nil, err
	}
	starting := context.WithValue(ctx, startingKey{}, c)
	inputs, changes, err := c.turnStart(starting, plugins, at.parent, inputs)
	if err != nil {
		return nil, err
	}
	if inputs, err = c.program.Bind(inputs); err != nil {
		return nil, err
	}
	for {
		if at.twin != "" {
			c.leave(&o)
			return c.join(ctx, at.twin, o.Busy)
		}
		// Others may write while handlers choose what is shown. Then the turn is
		// built again, on what is there now.
		chosen, err := c.choose(starting, plugins, at.parent)
		if err != nil {
			return nil, err
		}
		parent := datasets.Null
		if at.parent != "" {
			parent = datasets.Text(at.parent)
		}
		id := c.caller.NewID()
		made := &record{
			Kind: "turn", Turn: id, Parent: parent, Program: c.program.Version(), Inputs: inputs, RequestID: o.RequestID,
			Settings: c.settings(o.Turn), Context: chosen.record, Changes: recordChanges(slices.Concat(changes, chosen.changes)), MadeBy: c.holder,
		}
		begun := false
		err = c.locked(ctx, func(h *history) error {
			if h.n != at.length {
				return nil
			}
			err := c.put(ctx, h, made)
			if isConflict(err) {
				return nil
			}
			begun = err == nil
			return err
		})
		if err != nil {
			return nil, err
		}
		if begun {
			c.leave(&o)
			return c.attempt(ctx, id, 1, o.Turn, slices.Concat(changes, chosen.changes))
		}
		if at, err = c.place(ctx, &o); err != nil {
			return nil, err
		}
	}
}

// nested refuses a turn inside another one where nobody said that it is meant, and
// one that would wait for the turn that waits for it.
func (c *Conversation) nested(ctx context.Context, o *SendOptions) error {
	starting, _ := ctx.Value(startingKey{}).(*Conversation)
	outer, _, running := TurnOf(ctx)
	switch {
	case running && !o.Nested:
		return Failf(TypeConversation, "conversation-nested",
			"conversation %s was sent a turn while a turn of %s is running; if that is meant, say that it is nested", c.id, outer.id)
	case starting != nil && !o.Nested:
		return Failf(TypeConversation, "conversation-nested",
			"conversation %s was sent a turn by a handler of a turn of %s that is about to start; if that is meant, say that it is nested", c.id, starting.id)
	case starting == c && o.Busy == BusyQueue && !o.Anew:
		return Failf(TypeConversation, "conversation-nested",
			"conversation %s was sent a turn by a handler of its own turn, which is about to start: it would wait for itself; branch, or begin anew", c.id)
	}
	return nil
}

// startingKey is the key under which the context of turn_start and context
// handlers has the conversation whose turn is about to start.
type startingKey struct{}

// place is where a turn goes: what it continues, in a conversation of that many
// records, or the turn that has its request id already.
type place struct {
	parent string
	length int
	twin   string
}

// place finds where a turn goes, waiting for the one it continues if need be. It
// also makes sure that the program is on record.
func (c *Conversation) place(ctx context.Context, o *SendOptions) (at place, err error) {
	err = c.append(ctx, func(h *history) (*record, error) {
		if h.programs[c.program.Version()] != nil {
			return nil, nil
		}
		return &record{
			Kind: "program", Program: c.program.Version(), Name: c.program.Name(),
			Signature: c.program.Signature(), Interface: c.program.Interface(),
		}, nil
	})
	for err == nil {
		busy := false
		err = c.locked(ctx, func(h *history) (err error) {
			at, busy, err = h.place(o, c)
			busy = busy || err == nil && at.twin == "" && c.behind(o)
			return err
		})
		if err != nil || !busy {
			break
		}
		err = wait(ctx, lookEvery)
	}
	return at, err
}

// enter puts a turn that is to be begun into the queue, and leave takes it out.
func (c *Conversation) enter(o *SendOptions) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.Busy == BusyQueue && !o.Anew {
		c.queue = append(c.queue, o)
	}
}

func (c *Conversation) leave(o *SendOptions) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = slices.DeleteFunc(c.queue, func(q *SendOptions) bool { return q == o })
}

// behind reports whether another turn is before this one in the queue, to continue
// the same turn. The lock is held.
func (c *Conversation) behind(o *SendOptions) bool {
	i := slices.Index(c.queue, o)
	return slices.ContainsFunc(c.queue[:max(i, 0)], func(q *SendOptions) bool { return q.From == o.From })
}

func (h *history) place(o *SendOptions, c *Conversation) (at place, busy bool, err error) {
	at.length = h.n
	if twin := h.requests[o.RequestID]; o.RequestID != "" && twin != nil {
		at.twin, at.parent = twin.id(), twin.parent
		return at, false, nil
	}
	if o.Anew {
		return at, false, nil
	}
	view := o.From
	if view == "" {
		view = h.head
	} else if _, err := h.known(view); err != nil {
		return at, false, err
	}
	if t := h.turns[view]; t != nil && o.Busy != BusyBranch {
		switch state := t.state(c.caller.Now()); {
		case state == TurnWaiting:
			return at, false, waitingFor(t.id(), t.waits[0].Name)
		case state == TurnRunning && o.Busy == BusyRefuse:
			return at, false, Failf(TypeConversation, "conversation-busy",
				"turn %s of conversation %s is running; wait for it, or branch", t.id(), c.id)
		case state == TurnRunning:
			return at, true, nil
		}
	}
	at.parent = h.nearestDone(view)
	return at, false, nil
}

// join returns the turn that a request id already has. One that is running is
// waited for, unless busy says otherwise.
func (c *Conversation) join(ctx context.Context, id string, busy Busy) (*Turn, error) {
	for {
		t, err := c.Turn(ctx, id)
		if err != nil || t.State != TurnRunning || busy != BusyQueue {
			return t, err
		}
		if err := wait(ctx, lookEvery); err != nil {
			return t, err
		}
	}
}

// settings are those that differ from what a conversation does by itself; nil
// when none does.
func (c *Conversation) settings(o TurnOptions) *turnSettings {
	s := &turnSettings{Last: c.o.Last, Without: c.o.Without, ProgramPlugins: cmp.Or(o.ProgramPlugins, c.o.ProgramPlugins)}
	if o.Plugins != nil {
		s.Plugins = []pluginRecord{}
	}
	for _, p := range o.Plugins {
		s.Plugins = append(s.Plugins, pluginRecord{p.name, p.version})
	}
	if s.Last == nil && s.Without == nil && s.Plugins == nil && s.ProgramPlugins == nil {
		return nil
	}
	return s
}

func recordChanges(changes []Applied) []changeRecord {
	var list []changeRecord
	for _, ch := range changes {
		list = append(list, changeRecord(ch))
	}
	return list
}

// turnStart runs the handlers of turn_start, each on the inputs that the ones
// before it left.
func (c *Conversation) turnStart(ctx context.Context, plugins []*Plugin, parent string, inputs datasets.Values) (datasets.Values, []Applied, error) {
	var changes []Applied
	inputs = cloneValues(inputs)
	var handlings handlings
	for _, p := range plugins {
		for _, handle := range p.turnStart {
			change, err := handle(handlings.begin(ctx, c.caller), &TurnStartEvent{Conversation: c.id, Parent: parent, Program: c.program.Name(), inputs: inputs})
			if err = handlings.end(err); err != nil {
				return nil, nil, p.handlerFailed(ctx, HookTurnStart, err)
			}
			if change == nil || len(change.fields()) == 0 {
				continue
			}
			if f := change.check(p, HookTurnStart); f != nil {
				return nil, nil, f
			}
			next := cloneValues(inputs)
			if next == nil {
				next = datasets.Values{}
			}
			for _, name := range change.Inputs.Names() {
				if !slices.ContainsFunc(c.program.inputs, func(f Field) bool { return f.Name == name }) {
					f := p.failf("plugin-change", "the program %s has no input %q", c.program.Name(), name)
					f.Hook = HookTurnStart
					return nil, nil, f
				}
				next[name] = change.Inputs[name]
			}
			inputs = next
			changes = append(changes, p.applied(HookTurnStart, change.object()))
		}
	}
	return inputs, changes, nil
}
