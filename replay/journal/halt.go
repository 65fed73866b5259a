package journal

import (
	"context"

	"evalrun/pipeline"
)

// Halted is the error of a request, or of a tool call, that the journal does not
// know after the asking has ended. It comes in a [pipeline.Fatal].
type Halted struct{ Why error }

func (h *Halted) Error() string { return h.Why.Error() }
func (h *Halted) Unwrap() error { return h.Why }

// Halt ends the asking: models and tools behind the journal give what is known and
// nothing else. What is in flight is finished. The first reason counts. A model
// that ends the run, with a [pipeline.Fatal], halts the journal as well.
func (j *Journal) Halt(why error) { j.halted.CompareAndSwap(nil, &Halted{why}) }

// refusal is the error of what is not known; nil while there is asking.
func (j *Journal) refusal() error {
	if h := j.halted.Load(); h != nil {
		return &pipeline.Fatal{Err: h}
	}
	return nil
}

// MayKnow reports whether something may be known of a call: it was begun, in this
// run or in an earlier one whose answers are taken, or its model has replies of its
// own. When it is false, all that the call asks would have to be asked.
func (j *Journal) MayKnow(call pipeline.Site) bool {
	if j.knowers.Load() || j.has(siteKey("call", call)) {
		return true
	}
	for _, other := range j.earlier[call.Candidate] {
		at := call
		at.Candidate = other.Candidate
		if from, err := j.others[other.Dir].read(other.Dir); err != nil || from.has(siteKey("call", at)) {
			return true
		}
	}
	return false
}

func (j *Journal) has(site string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, ok := j.known[sumOf(site)]
	return ok
}

// unasked is the live model's reply where it has one without asking.
func (m *journaled) unasked(ctx context.Context, req *pipeline.Request, key, hash string, refusal error) (*pipeline.Reply, error) {
	knower, ok := m.live.(pipeline.Knower)
	if !ok {
		return nil, refusal
	}
	reply, err := knower.Known(ctx, req)
	if err != nil || reply == nil {
		return nil, refusal // of two reasons, the one that came first
	}
	e := kept{Site: key, Hash: hash}
	e.take(reply)
	if err := m.journal.keep(e); err != nil {
		return nil, err
	}
	return reply, nil
}
