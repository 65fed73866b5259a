package pipeline

import (
	"context"
	"errors"
	"time"

	"evalrun/datasets"
)

// Entry is something a plugin kept in a conversation, at a turn.
type Entry struct {
	Turn string // the turn it was kept at; "" belongs to every branch
	Data datasets.Value
	At   time.Time
}

// Notebook is where plugins' entries are read and kept: those of one branch of a
// conversation.
type Notebook interface {
	// Entries are a plugin's entries of a kind on the branch, oldest first.
	Entries(plugin, kind string) []Entry

	// Remember keeps an entry at the running turn.
	Remember(plugin, kind string, data datasets.Value) error
}

// notes gives an event the entries of the plugin that handles it.
type notes struct {
	book   Notebook // nil outside a conversation
	plugin string
}

// Entries returns what the plugin kept of that kind on the branch, oldest first:
// nothing outside a conversation.
func (n *notes) Entries(kind string) []Entry {
	if n.book == nil {
		return nil
	}
	return n.book.Entries(n.plugin, kind)
}

// Remember keeps an entry at the running turn; it then belongs to every branch
// through that turn. Outside a conversation it is an error.
func (n *notes) Remember(kind string, data datasets.Value) error {
	if n.book == nil {
		return errors.New("there is no conversation to keep an entry in")
	}
	return n.book.Remember(n.plugin, kind, data)
}

// RecordedEntries reads the entries of a recorded conversation that the call of
// one of its turns could read when it began: those of the turn's branch, and of
// every branch, that were kept before. It returns nil when the store has no such
// conversation, or none of its turns has that call.
func RecordedEntries(ctx context.Context, s Store, conversation, call string) (func(plugin, kind string) []Entry, error) {
	records, err := s.Read(ctx, conversation, 0)
	if err != nil {
		return nil, err
	}
	h := newHistory()
	for _, r := range records {
		if err := h.add(r); err != nil {
			return nil, err
		}
	}
	t := h.calls[call]
	if t == nil {
		return nil, nil
	}
	return func(plugin, kind string) []Entry { return h.entriesBefore(t.began, t.id(), plugin, kind) }, nil
}
