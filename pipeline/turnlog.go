package pipeline

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"evalrun/datasets"
)

// replyRecord is a reply as a conversation keeps it.
type replyRecord struct {
	Text     string         `json:"text,omitzero"`
	Finish   string         `json:"finish,omitzero"`
	Model    string         `json:"model,omitzero"`
	Provider string         `json:"provider,omitzero"`
	System   string         `json:"system,omitzero"`
	Usage    Usage          `json:"usage,omitzero"`
	Cached   bool           `json:"cached,omitzero"`
	From     Origin         `json:"from,omitzero"`
	Response datasets.Value `json:"response,omitzero"`
	Calls    []ToolCall     `json:"calls,omitzero"`
}

func recordReply(r *Reply) *replyRecord {
	return &replyRecord{r.Text, r.Finish, r.Model, r.Provider, r.System, r.Usage, r.Cached, r.From, r.Response, r.Calls}
}

func (r *replyRecord) reply() *Reply {
	return &Reply{
		Text: r.Text, Finish: r.Finish, Model: r.Model, Provider: r.Provider, System: r.System, Usage: r.Usage, Cached: r.Cached, From: r.From, Response: r.Response, Calls: r.Calls,
	}
}

// turnLog is the [TurnLog] of one attempt at a turn. What is kept is kept even
// when the call was canceled meanwhile: it was paid for.
type turnLog struct {
	c       *Conversation
	ctx     context.Context // never canceled
	turn    string
	attempt int

	mu   sync.Mutex
	left map[string][]*Reply // kept by earlier attempts and not given out yet
}

func (l *turnLog) Reply(key string) (*Reply, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.left[key]
	if len(list) == 0 {
		return nil, false
	}
	l.left[key] = list[1:]
	return list[0], true
}

func (l *turnLog) KeepReply(key string, r *Reply) error {
	return l.keep(&record{Kind: "reply", Key: key, Reply: recordReply(r)})
}

func (l *turnLog) Tool(invocation int) KeptTool {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	if k := l.c.h.turns[l.turn].tools[invocation]; k != nil {
		return *k
	}
	return KeptTool{}
}

func (l *turnLog) ToolStarted(invocation int, id, name string, input datasets.Value) error {
	return l.keep(&record{Kind: "tool", State: "started", Invocation: &invocation, ID: id, Name: name, Input: input})
}

func (l *turnLog) ToolDone(invocation int, output string, changes []Applied) error {
	return l.keep(&record{Kind: "tool", State: "done", Invocation: &invocation, Output: &output, Changes: recordChanges(changes)})
}

func (l *turnLog) ToolAgain(invocation int) error {
	return l.keep(&record{Kind: "tool", State: "rerun", Invocation: &invocation})
}

func (l *turnLog) Approval(invocation int, plugin string) (Answer, bool) {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	a, ok := l.c.h.turns[l.turn].answers[askedOf{invocation, plugin}]
	return a, ok
}

func (l *turnLog) Refused(invocation int) (Answer, bool) {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	answers := l.c.h.turns[l.turn].answers
	for _, by := range slices.SortedFunc(maps.Keys(answers), func(a, b askedOf) int { return cmp.Compare(a.plugin, b.plugin) }) {
		if a := answers[by]; by.invocation == invocation && !a.Allowed {
			return a, true
		}
	}
	return Answer{}, false
}

func (l *turnLog) Wait(e *ToolCallEvent, plugin, reason string) error {
	invocation := e.Invocation
	err := l.keep(&record{
		Kind: "waiting", Attempt: l.attempt, Invocation: &invocation, ID: e.ID, Name: e.Name, Input: e.Input,
		Effects: string(e.Effects), Path: e.Path, Plugin: plugin, Question: reason,
	})
	if err != nil {
		return err
	}
	f := waitingFor(l.turn, e.Name)
	f.Plugin, f.Hook = plugin, HookToolCall
	return f
}

func waitingFor(turn, tool string) *Failure {
	return Failf(TypeApproval, "turn-waiting", "turn %s waits for a person to say whether %s may run; answer, and resume it", turn, tool)
}

// keep adds a record of the turn, unless somebody else has taken the turn over.
func (l *turnLog) keep(r *record) error {
	r.Turn = l.turn
	err := l.c.append(l.ctx, func(h *history) (*record, error) {
		if !h.turns[l.turn].held(l.c.holder, l.attempt) {
			return nil, turnLost(l.turn)
		}
		return r, nil
	})
	if _, ok := err.(*Failure); err != nil && !ok {
		return &Fatal{Err: err}
	}
	return err
}

func turnLost(turn string) *Failure {
	return Failf(TypeConversation, "turn-lost", "turn %s was resumed or ended by someone else while it was answered here", turn)
}

func isLost(err error) bool {
	f, ok := errors.AsType[*Failure](err)
	return ok && f.Code == "turn-lost"
}

// turnNotes is the [Notebook] of a turn's handlers.
type turnNotes struct {
	c      *Conversation
	ctx    context.Context // never canceled
	branch string          // the turn whose branch is read
	turn   string          // the running turn; "" while entries can only be read
}

func (n *turnNotes) Entries(plugin, kind string) []Entry {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	return n.c.h.entriesOn(n.branch, plugin, kind)
}

func (n *turnNotes) Remember(plugin, kind string, data datasets.Value) error {
	if n.turn == "" {
		return Failf(TypeConversation, "", "entries are only read here: no turn is running yet that they could be kept at")
	}
	return n.c.remember(n.ctx, n.turn, plugin, kind, data)
}

// turnJournal gives a turn's own call the id it has in the conversation, however
// often the turn is resumed, and leaves the calls inside it alone.
type turnJournal struct {
	next    Journal // nil for none
	call    string
	started time.Time
	begun   atomic.Bool
}

func (j *turnJournal) Begin(site Site, id string, started time.Time) (string, time.Time, error) {
	if !j.begun.Swap(true) {
		id, started = j.call, j.started
	}
	if j.next == nil {
		return id, started, nil
	}
	return j.next.Begin(site, id, started)
}
