package replay

import (
	"iter"
	"slices"
	"strings"
)

// Source is where calls and ratings are read from: a store of Parquet files, a
// call log, or records held in memory ([InMemory]). [Open] opens one. A Source
// is used by one goroutine at a time.
//
// Reading never holds all calls: rated rows read the ratings first and then ask
// for the calls they need.
type Source interface {
	// Ratings yields every rating, in the order of the files. An error ends it.
	Ratings() iter.Seq2[*Rating, error]

	// Calls yields the calls that are wanted. Of several records of one id the
	// one of the highest writer is yielded, once, whatever file it is in. The
	// order is that of the files, which need not be that of the calls. What is
	// yielded belongs to the caller. An error ends it.
	Calls(Want) iter.Seq2[*Record, error]

	// Skipped says what was left out so far, and why. It is complete once
	// Ratings or Calls has been read to its end.
	Skipped() []Skip

	// Close releases the files. Nothing that was yielded needs them.
	Close() error
}

// Want says which calls to read: those any of its parts asks for. Sets are
// never changed by a Source.
type Want struct {
	All           bool            // every call
	IDs           map[string]bool // calls of these ids
	Roots         map[string]bool // calls whose root, or whose id, is one of these
	Conversations map[string]bool // turns of these conversations
	Following     bool            // calls that saw all that another call saw (saw_of)
	Parts         Parts           // how much of the records is wanted
}

// wants reports whether a call of that head is wanted.
func (w *Want) wants(h *head) bool {
	return w.All || w.IDs[h.id] || w.Roots[h.id] || h.root != "" && w.Roots[h.root] ||
		h.conversation != "" && w.Conversations[h.conversation] || w.Following && h.follows
}

// some reports whether calls are wanted that their ids alone do not tell.
func (w *Want) some() bool { return len(w.Roots)+len(w.Conversations) > 0 || w.Following }

func (w *Want) record(r *Record) bool {
	h := head{id: r.ID, root: r.Root}
	if r.Conversation != nil {
		h.conversation = r.Conversation.ID
	}
	h.follows = slices.ContainsFunc(r.Saw, func(s Saw) bool { return s.SawOf != "" })
	return w.wants(&h)
}

// InMemory is a Source of records held in memory, in that order.
func InMemory(calls []*Record, ratings []*Rating) Source {
	return &memory{calls, ratings}
}

type memory struct {
	calls   []*Record
	ratings []*Rating
}

func (m *memory) Ratings() iter.Seq2[*Rating, error] {
	return func(yield func(*Rating, error) bool) {
		for _, r := range m.ratings {
			c := *r
			if !yield(&c, nil) {
				return
			}
		}
	}
}

func (m *memory) Calls(w Want) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		best := map[string]int{}
		for i, r := range m.calls {
			j, seen := best[r.ID]
			if !seen || r.WriterRank() > m.calls[j].WriterRank() {
				best[r.ID] = i
			}
		}
		for i, r := range m.calls {
			if best[r.ID] != i || !w.record(r) {
				continue
			}
			c := *r
			if !yield(&c, nil) {
				return
			}
		}
	}
}

func (m *memory) Skipped() []Skip {
	var s skips
	rank := map[string]bool{}
	for _, r := range m.calls {
		if rank[r.ID] {
			s.add(SkipSuperseded, "memory: "+strings.ToValidUTF8(r.ID, "\uFFFD"))
		}
		rank[r.ID] = true
	}
	return s.list()
}

func (m *memory) Close() error { return nil }
