package harness

import (
	"errors"
	"fmt"
	"sync"

	"evalrun/pipeline"
	"evalrun/replay/journal"
)

// A halt ends the asking of a run: when it is told to stop, when too many rows
// failed, and when a model says that the run cannot go on, as one does whose budget
// is spent. What the run's journal knows is scored all the same; the rest is
// unfinished. It is safe for concurrent use.
type halt struct {
	journal *journal.Journal // nil when the run has none
	stop    <-chan struct{}  // nil: nobody stops it

	mu  sync.Mutex
	why error // nil while there is asking
}

// over reports whether the asking has ended.
func (h *halt) over() bool {
	select {
	case <-h.stop:
		h.end(ErrStopped)
	default:
	}
	return h.reason() != nil
}

// end ends the asking. The first reason counts, but what a model says counts before
// a stop: it may say how to go on.
func (h *halt) end(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.why == nil || h.why == ErrStopped {
		h.why = why
	}
	if h.journal != nil {
		h.journal.Halt(why)
	}
}

func (h *halt) reason() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.why
}

// is reports whether an error is that the asking has ended.
func (h *halt) is(err error) bool {
	why := h.reason()
	return why != nil && (errors.Is(err, why) || errors.Is(err, ErrStopped))
}

// tooMany ends the asking because so many rows of a candidate failed.
func (h *halt) tooMany(failed, asked int) {
	if !h.over() {
		h.end(fmt.Errorf("%w: %d of %d; nothing more was asked", ErrTooMany, failed, asked))
	}
}

// unknown reports whether a task would have to ask, now that the asking has ended.
// It may be wrong about one that would: that one finds out when it asks.
func (w *worker) unknown(t Task, row string) bool {
	cand := &w.plan.Candidates[t.Candidate]
	switch j := w.halt.journal; {
	case j == nil:
		return !cand.Recorded && !cand.Caller.LM.Deterministic || w.judged()
	case cand.Recorded || cand.Caller.LM.Deterministic:
		return false
	default:
		return !j.MayKnow(pipeline.Site{Candidate: w.plan.title(cand), Row: row, Repeat: t.Repeat, Path: cand.Program.Name(), Purpose: candidatePurpose})
	}
}

// judged reports whether a judge's model has to be asked.
func (w *worker) judged() bool {
	for _, caller := range w.judges {
		if !caller.LM.Deterministic {
			return true
		}
	}
	return false
}
