package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"evalrun/datasets"
)

// A turn is its holder's for leaseFor at a time, and the holder renews its lease
// every renewEvery: a turn whose process died is known to be interrupted within
// the first. Whoever waits for a turn looks again every lookEvery.
const (
	leaseFor   = 30 * time.Second
	renewEvery = 10 * time.Second
	lookEvery  = 250 * time.Millisecond
)

// Conversation asks one program again and again, each time showing it the
// earlier turns. Its turns form a tree: each continues another, or begins anew;
// the path to a turn is its branch. All that is known of a conversation is in
// its [Store], so that another process may go on with it, and a turn that was
// interrupted, or waits for a person, is resumed without asking again what was
// answered. A Conversation is safe for concurrent use.
type Conversation struct {
	caller  *Caller
	program *Program
	id      string
	store   Store
	o       ConversationOptions
	holder  string // who we are in leases

	mu      sync.Mutex // guards all below; never held while a handler or a model is asked
	h       *history
	running map[turnAttempt]context.CancelCauseFunc // our own turns at work
	warned  map[string]bool
	queue   []*SendOptions // of those who have yet to begin a turn, in the order they came
}

// ConversationOptions say how a conversation's turns are asked. The zero value
// shows every turn whole, with no plugins.
type ConversationOptions struct {
	Plugins        []*Plugin    // the conversation's layer
	ProgramPlugins *bool        // false drops the program's own plugins
	Last           *int         // show this many turns, the latest; nil shows all
	Without        []string     // fields left out of the turns shown
	Warn           func(string) // told doubts that stop nothing; nil drops them
}

// Converse opens a conversation with p, new or not, in a store.
func (c *Caller) Converse(p *Program, id string, store Store, o ConversationOptions) (*Conversation, error) {
	if err := CheckConversationID(id); err != nil {
		return nil, err
	}
	if o.Last != nil && *o.Last < 0 {
		return nil, fmt.Errorf("conversation %s: the last %d turns cannot be shown; use 0 or more", id, *o.Last)
	}
	return &Conversation{
		caller: c, program: p, id: id, store: store, o: o, holder: c.NewID(),
		h: newHistory(), running: map[turnAttempt]context.CancelCauseFunc{}, warned: map[string]bool{},
	}, nil
}

// ID is the conversation's id.
func (c *Conversation) ID() string { return c.id }

// Store is where the conversation is kept.
func (c *Conversation) Store() Store { return c.store }

// Busy says what to do when the turn to continue has not ended yet.
type Busy int

// What to do about a turn that has not ended.
const (
	BusyQueue  Busy = iota // wait until it has; who waits in one Conversation, first come, first served
	BusyRefuse             // refuse: conversation-busy
	BusyBranch             // continue its nearest ancestor that is done
)

// SendOptions say how one turn is sent. The zero value continues the head.
type SendOptions struct {
	RequestID string // the same one twice is one turn; "" is none
	From      string // the turn to continue; "" is the head
	Anew      bool   // continue no turn
	Busy      Busy
	Turn      TurnOptions
	Nested    bool // it is known that a turn is running around this one
}

// TurnOptions are what a turn is asked with besides its inputs.
type TurnOptions struct {
	Plugins        []*Plugin       // in the place of the conversation's; nil keeps those
	ProgramPlugins *bool           // nil keeps the conversation's
	Site           Site            // where it happens
	Tags           datasets.Values // who calls; nil is as Inside's call
	Inside         Invocation      // the tool call whose tool sends it, so that its call is recorded inside that one; nil for none
}

// Turn is one turn as it stands. A turn that was answered here has its Record.
type Turn struct {
	ID        string
	Parent    string // the turn it continues; "" for none
	RequestID string
	Program   string // the version of the program it was begun with
	State     TurnState
	Inputs    datasets.Values
	Outputs   datasets.Values // nil when it has none
	Failure   *Failure        // why it failed; also why it waits or could not be finished
	Call      string          // the id of its call; "" when it was not begun
	Attempt   int             // from 1; more when it was resumed
	Waiting   []Question      // what it waits for
	Record    *Call           // the call as it was made here; nil when the turn was only read
}

// Question is what a waiting turn asks a person: whether a tool may run.
type Question struct {
	Invocation int
	Plugin     string // who asks
	Name       string // the tool
	Input      datasets.Value
	Effects    Effects
	Path       string
	Reason     string // why it is asked
	Answer     *Answer
}

func (t *turn) view(now time.Time) *Turn {
	v := &Turn{
		ID: t.id(), Parent: t.parent, RequestID: t.made.RequestID, Program: t.made.Program, State: t.state(now),
		Inputs: cloneValues(t.made.Inputs), Call: t.call, Attempt: t.attempt,
	}
	if e := t.ended; e != nil {
		v.Outputs = cloneValues(e.Outputs)
		if e.Error != nil {
			v.Failure = &Failure{Type: e.Error.Type, Code: e.Error.Code, Message: e.Error.Message, Plugin: e.Error.Plugin, Hook: e.Error.Hook}
		}
		return v
	}
	for _, w := range t.waits {
		q := Question{
			Invocation: *w.Invocation, Plugin: w.Plugin, Name: w.Name, Input: w.Input,
			Effects: Effects(w.Effects), Path: w.Path, Reason: w.Question,
		}
		if a, ok := t.answers[askedOf{q.Invocation, q.Plugin}]; ok {
			q.Answer = &a
		}
		v.Waiting = append(v.Waiting, q)
	}
	return v
}

// Turns are all turns, in the order in which they were begun.
func (c *Conversation) Turns(ctx context.Context) ([]*Turn, error) {
	return c.views(ctx, func(h *history) []*turn { return h.order })
}

// Branch is the path to a turn, the first turn first; "" is the head's.
func (c *Conversation) Branch(ctx context.Context, id string) ([]*Turn, error) {
	return c.views(ctx, func(h *history) []*turn {
		if id == "" {
			id = h.head
		}
		return h.branch(id)
	})
}

func (c *Conversation) views(ctx context.Context, pick func(*history) []*turn) ([]*Turn, error) {
	var list []*Turn
	err := c.locked(ctx, func(h *history) error {
		now := c.caller.Now()
		for _, t := range pick(h) {
			list = append(list, t.view(now))
		}
		return nil
	})
	return list, err
}

// Turn is one turn; there being no such turn is an error (turn-unknown).
func (c *Conversation) Turn(ctx context.Context, turn string) (v *Turn, err error) {
	err = c.locked(ctx, func(h *history) error {
		t, err := h.known(turn)
		if err == nil {
			v = t.view(c.caller.Now())
		}
		return err
	})
	return v, err
}

func (h *history) known(id string) (*turn, error) {
	if t := h.turns[id]; t != nil {
		return t, nil
	}
	return nil, Failf(TypeConversation, "turn-unknown", "the conversation has no turn %q", id)
}

// Head is the turn that the next one continues when nothing else is said: the
// latest, or the one chosen since; "" when there is none.
func (c *Conversation) Head(ctx context.Context) (head string, err error) {
	err = c.locked(ctx, func(h *history) error { head = h.head; return nil })
	return head, err
}

// SetHead chooses the head; "" is before every turn.
func (c *Conversation) SetHead(ctx context.Context, turn string) error {
	return c.append(ctx, func(h *history) (*record, error) {
		if turn != "" {
			if _, err := h.known(turn); err != nil {
				return nil, err
			}
		}
		return &record{Kind: "head", Turn: turn}, nil
	})
}

// Entries are a plugin's entries of a kind on a turn's branch, oldest first; ""
// is the head's.
func (c *Conversation) Entries(ctx context.Context, turn, plugin, kind string) (list []Entry, err error) {
	err = c.locked(ctx, func(h *history) error {
		if turn == "" {
			turn = h.head
		}
		list = h.entriesOn(turn, plugin, kind)
		return nil
	})
	return list, err
}

// Remember keeps an entry under a plugin's name, at a turn, or, for "", on every
// branch.
func (c *Conversation) Remember(ctx context.Context, turn, plugin, kind string, data datasets.Value) error {
	return c.remember(ctx, turn, plugin, kind, data)
}

func (c *Conversation) remember(ctx context.Context, turn, plugin, kind string, data datasets.Value) error {
	if kind == "" {
		return Failf(TypeConversation, "", "an entry needs a kind")
	}
	if data.IsZero() {
		data = datasets.Null
	}
	return c.append(ctx, func(h *history) (*record, error) {
		if turn != "" {
			if _, err := h.known(turn); err != nil {
				return nil, err
			}
		}
		return &record{Kind: "entry", Turn: turn, Plugin: plugin, Entry: kind, Data: data}, nil
	})
}

// locked brings the history up to date and looks at it.
func (c *Conversation) locked(ctx context.Context, f func(*history) error) error {
	c.mu.Lock()
	err := c.refresh(ctx)
	if err == nil {
		err = f(c.h)
	}
	doubts := c.h.doubts
	c.h.doubts = nil
	c.mu.Unlock()
	for _, d := range doubts {
		c.warn("conversation " + c.id + ": " + d)
	}
	return err
}

// refresh reads what was added since. The lock is held.
func (c *Conversation) refresh(ctx context.Context) error {
	records, err := c.store.Read(ctx, c.id, c.h.n)
	if err != nil {
		return err
	}
	for _, v := range records {
		if err := c.h.add(v); err != nil {
			return err
		}
	}
	return nil
}

// append adds the record that build makes of the history as it stands, again and
// again until nobody else was quicker; no record adds nothing.
func (c *Conversation) append(ctx context.Context, build func(*history) (*record, error)) error {
	return c.locked(ctx, func(h *history) error {
		for {
			r, err := build(h)
			if r == nil || err != nil {
				return err
			}
			before := h.n
			conflict := c.put(ctx, h, r)
			if !isConflict(conflict) {
				return conflict
			}
			if err := c.refresh(ctx); err != nil {
				return err
			}
			if h.n == before { // nothing new: trying again would not end
				return conflict
			}
		}
	})
}

// put adds a record to the history as it stands. The lock is held.
func (c *Conversation) put(ctx context.Context, h *history, r *record) error {
	r.Format, r.At, r.Seq = conversationFormat, timeText(c.caller.Now()), h.n
	v, err := r.value()
	if err != nil {
		return fmt.Errorf("a record of conversation %s cannot be written: %w", c.id, err)
	}
	if err := c.store.Append(ctx, c.id, h.n, v); err != nil {
		return err
	}
	return h.add(v)
}

func isConflict(err error) bool {
	f, ok := errors.AsType[*Failure](err)
	return ok && f.Code == "store-conflict"
}

func (c *Conversation) warn(text string) {
	if c.o.Warn != nil {
		c.o.Warn(text)
	}
}

type turnKey struct{}

type runningTurn struct {
	c    *Conversation
	turn string
}

// TurnOf returns the conversation and the turn that are running around ctx, the
// innermost; ok is false outside of any.
func TurnOf(ctx context.Context) (c *Conversation, turn string, ok bool) {
	r, ok := ctx.Value(turnKey{}).(runningTurn)
	return r.c, r.turn, ok
}

// layer returns a context in which the conversation's plugins, or the turn's in
// their place, are around every call, helpers and inner conversations included.
func (c *Conversation) layer(ctx context.Context, o TurnOptions) context.Context {
	l := Layer{Kind: ConversationLayer, Plugins: c.o.Plugins, ProgramPlugins: c.o.ProgramPlugins}
	if o.Plugins != nil {
		l.Plugins = o.Plugins
	}
	if o.ProgramPlugins != nil {
		l.ProgramPlugins = o.ProgramPlugins
	}
	if len(l.Plugins) == 0 && l.ProgramPlugins == nil {
		return ctx
	}
	return With(ctx, l)
}

// wait waits for a while; an error is why ctx ended before.
func wait(ctx context.Context, d time.Duration) error {
	pause, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-pause.Done()
	return context.Cause(ctx)
}

func sortedUnion(a, b []string) []string {
	u := slices.Concat(a, b)
	slices.Sort(u)
	return slices.Compact(u)
}
