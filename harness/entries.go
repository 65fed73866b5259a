package harness

import (
	"fmt"
	"sync"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// entries are what plugins may read when a row is asked again: what was kept in
// its conversation before the rated call. What a plugin keeps goes nowhere, since
// the conversation is over; that is no error, for it would do so in production.
type entries struct {
	find func(row *datasets.Row) (func(plugin, kind string) []pipeline.Entry, error) // nil when nothing is known
	row  *datasets.Row

	mu   sync.Mutex
	read func(plugin, kind string) []pipeline.Entry
	err  error // why they cannot be read
	kept int
}

// Entries reads the conversation when somebody first asks.
func (e *entries) Entries(plugin, kind string) []pipeline.Entry {
	if e.find == nil || e.row.Context.Conversation == "" {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.read == nil && e.err == nil {
		if e.read, e.err = e.find(e.row); e.err != nil {
			e.err = fmt.Errorf("%w: row %s: the entries of its conversation: %w", ErrRows, e.row.ID, e.err)
		}
		if e.read == nil {
			e.read = func(string, string) []pipeline.Entry { return nil }
		}
	}
	return e.read(plugin, kind)
}

func (e *entries) Remember(string, string, datasets.Value) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kept++
	return nil
}
