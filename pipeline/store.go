package pipeline

import (
	"context"
	"regexp"
	"slices"
	"sync"

	"evalrun/datasets"
)

// Store keeps conversations: for each an ordered list of records, JSON objects,
// that only grows. Implementations are safe for concurrent use, and several
// processes may use one store at once.
type Store interface {
	// Read returns a conversation's records from position from on; the first is
	// at 0. A conversation nobody wrote to has none.
	Read(ctx context.Context, id string, from int) ([]datasets.Value, error)

	// Append adds a record at the end of a conversation that has length records;
	// when it has another number, nothing is added and the error is a *Failure of
	// code store-conflict. Once Append returned nil the record is there for good.
	Append(ctx context.Context, id string, length int, record datasets.Value) error
}

var conversationID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$`)

// CheckConversationID refuses (conversation-id) what cannot name a conversation:
// an id is 1 to 200 ASCII letters, digits, ".", "_" and "-", and begins with a
// letter or a digit, so that it can be a file's name and never a path.
func CheckConversationID(id string) error {
	if conversationID.MatchString(id) {
		return nil
	}
	return Failf(TypeConversation, "conversation-id",
		`%q does not name a conversation: use 1 to 200 letters, digits, ".", "_" and "-", a letter or digit first`, id)
}

// StoreConflict is the error of an Append to a conversation that has records
// which the writer has not seen.
func StoreConflict(id string, length, has int) *Failure {
	return Failf(TypeConversation, "store-conflict",
		"conversation %s has %d records, not %d: someone else wrote to it; read it again", id, has, length)
}

// NewMemoryStore returns an empty store that lasts as long as the process.
func NewMemoryStore() Store { return &memoryStore{lists: map[string][]datasets.Value{}} }

type memoryStore struct {
	mu    sync.Mutex
	lists map[string][]datasets.Value
}

func (s *memoryStore) Read(ctx context.Context, id string, from int) ([]datasets.Value, error) {
	if err := CheckConversationID(id); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.lists[id]
	return slices.Clone(list[min(max(from, 0), len(list)):]), ctx.Err()
}

func (s *memoryStore) Append(ctx context.Context, id string, length int, record datasets.Value) error {
	if err := CheckConversationID(id); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.lists[id]); n != length {
		return StoreConflict(id, length, n)
	}
	s.lists[id] = append(s.lists[id], record)
	return nil
}
