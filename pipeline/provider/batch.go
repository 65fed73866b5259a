package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"evalrun/datasets"
	"evalrun/internal/canon"
	"evalrun/pipeline"
)

// ErrBatched ends a run that was told to stop while its requests are in batches.
// They stay with the service, and the run finds them when it goes on.
var ErrBatched = errors.New("stopped waiting for batches")

// BatchRun is the run whose requests are sent in batches.
type BatchRun struct {
	ID string // tags its batches, so that they are found again; "" tags and finds none

	// Anew has batches that are finished left alone: their answers were had, and
	// some are to be had anew.
	Anew bool
}

// BatchOptions say how requests are gathered into batches.
type BatchOptions struct {
	Run   *BatchRun       // is read when the first request comes
	Stop  <-chan struct{} // once closed, nobody waits for a batch any more; may be nil
	Quiet time.Duration   // a batch is sent when no request has come for so long; 0: 2 s
	Look  time.Duration   // a batch is looked at after so long, then ever more rarely, up to once a minute; 0: 2 s
}

// What the service takes in a batch (OpenAI's guide to its batch API).
const (
	mostInBatch    = 50_000
	mostBatchBytes = 200_000_000
)

// longestLook is the longest time between two looks at a batch.
const longestLook = time.Minute

// Batch returns a model that asks m in batches, through an API as OpenAI has it:
// cheaper, and answered within a day. Only an openai model can be asked so.
//
// A request waits until its batch is finished; meanwhile its call's time stands
// still. What a batch did not answer fails as the service's failure, which
// [Limiter.Retry] around this asks again in a next batch. The limits are those of
// the requests to the batch API, not of those in batches.
//
// Batches are tagged with the run's id. Before the first is sent, those of the run
// that are there already are looked for: what is in them is not sent again. A
// request is known by its site and its hash.
func (l *Limiter) Batch(m pipeline.Model, o BatchOptions) (pipeline.Model, error) {
	model, ok := m.(*openAI)
	if !ok {
		return nil, errors.New("only the provider openai is asked in batches")
	}
	if o.Run == nil {
		o.Run = &BatchRun{}
	}
	o.Quiet, o.Look = cmp.Or(o.Quiet, 2*time.Second), cmp.Or(o.Look, 2*time.Second)
	return &batched{
		openAI: model, limiter: l, o: o, most: mostInBatch, mostBytes: mostBatchBytes,
		lead: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		open: map[string]*batchEntry{}, sent: map[string]*batch{}, kept: map[string][]byte{}, known: map[string]bool{},
	}, nil
}

// batched asks in batches. It has no goroutine of its own: one of those who wait
// does the work for all, and when it has its answer, another does.
type batched struct {
	*openAI
	limiter *Limiter
	o       BatchOptions

	lead chan struct{} // is full while somebody does the work
	wake chan struct{} // has room for one: a request came

	mu    sync.Mutex
	open  map[string]*batchEntry // requests without an answer, by id
	queue []*batchEntry          // those that are in no batch, in the order they came
	last  time.Time              // when the last of them came
	sent  map[string]*batch      // the batches with the service, by the ids of what is in them
	kept  map[string][]byte      // answers from batches of before that nobody has asked for yet, by id

	// Of whoever does the work alone.
	found   bool            // batches of before were looked for
	known   map[string]bool // batches that were seen, by their ids at the service
	batches []*batch        // with the service
	full    bool            // the service takes no more until it has finished a batch

	most, mostBytes int // of a batch
}

// batchEntry is a request in or on its way into a batch.
type batchEntry struct {
	id      string
	request *pipeline.Request
	queued  bool // it is in no batch
	callers int

	settings datasets.Values // as they were sent; nil when another process sent them
	learned  int             // how often it was sent again because of what the model does not take

	done    chan struct{} // closed when there is one of the two
	answer  []byte
	failure *pipeline.Failure // nil: there is an answer
}

// batch is a batch with the service.
type batch struct {
	id    string
	ids   []string // of what is in it
	every time.Duration
	next  time.Time // when to look at it again

	failing time.Time // since when looking fails; zero when it does not
}

func (m *batched) Generate(ctx context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	began := m.now()
	resume := pipeline.Waiting(ctx)
	defer resume()
	e := m.enter(req, began)
	if err := m.await(ctx, e); err != nil {
		m.leave(e)
		return nil, err
	}
	waited := m.now().Sub(began)
	if e.failure != nil {
		f := *e.failure
		return nil, &failedTry{pipeline.Attempt{Failure: &f, Waited: waited}, false}
	}
	reply, err := m.read(&answer{body: e.answer})
	if err != nil {
		return nil, &failedTry{pipeline.Attempt{Failure: asFailure(err), Waited: waited}, false}
	}
	reply.Waited = waited
	return reply, nil
}

// batchID is how a request is known in a batch, of 64 characters at most. Those at
// one site with one hash are one: the same step of the same question.
func batchID(req *pipeline.Request) string {
	s := req.Site
	place := fmt.Sprintf("%q %q %d %q %d %d %d %q %q %s", s.Candidate, s.Row, s.Repeat, s.Path, s.Step, s.Try, s.Invocation, s.Inside, s.Purpose, req.Hash())
	return strings.TrimPrefix(canon.Hash([]byte(place)), "sha256:")[:40]
}

// enter has a request wait for its answer, in the queue unless a batch has it.
func (m *batched) enter(req *pipeline.Request, now time.Time) *batchEntry {
	id := batchID(req)
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.open[id]
	if e == nil {
		e = &batchEntry{id: id, request: req, done: make(chan struct{})}
		m.open[id] = e
		switch body, kept := m.kept[id]; {
		case kept:
			delete(m.kept, id)
			m.close(e, body, nil)
		case m.sent[id] == nil:
			m.enqueue(e, now)
		}
	}
	e.callers++
	return e
}

func (m *batched) enqueue(e *batchEntry, now time.Time) {
	e.queued, m.last = true, now
	m.queue = append(m.queue, e)
	select {
	case m.wake <- struct{}{}:
	default: // whoever does the work has not looked yet
	}
}

// leave is for a caller that waits no more. What nobody waits for is not sent.
func (m *batched) leave(e *batchEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.callers--; e.callers == 0 && m.open[e.id] == e {
		delete(m.open, e.id)
		e.queued = false
	}
}

// close gives a request its answer or its failure. The lock is held.
func (m *batched) close(e *batchEntry, answer []byte, f *pipeline.Failure) {
	e.answer, e.failure, e.queued, e.settings = answer, f, false, nil
	delete(m.open, e.id)
	close(e.done)
}

// await returns when a request has its answer, or with an error when its context
// is over or the run is to stop. Meanwhile it may do the work for all.
func (m *batched) await(ctx context.Context, e *batchEntry) error {
	for {
		select {
		case <-e.done:
			return nil
		case <-ctx.Done():
			return m.gone(ctx)
		case <-m.o.Stop:
			return m.stopped(ctx)
		case m.lead <- struct{}{}:
			m.work(ctx, e)
		}
	}
}

// gone is the failure of a request whose context is over. What is in a batch that
// is found again is answered, and charged, then.
func (m *batched) gone(ctx context.Context) error {
	f := asFailure(ended(ctx))
	if m.o.Run.ID != "" {
		f.Code = awaited
	}
	return f
}

// stopped is the error of a run that stops while requests wait for batches. A
// batch that is being sent is counted.
func (m *batched) stopped(ctx context.Context) error {
	select {
	case m.lead <- struct{}{}:
		defer func() { <-m.lead }()
	case <-ctx.Done():
		return m.gone(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.batches) == 0 {
		return &pipeline.Fatal{Err: fmt.Errorf("%w: model %s: none was sent yet", ErrBatched, m.model)}
	}
	return &pipeline.Fatal{Err: fmt.Errorf("%w: model %s: %d of them with %d requests stay with %s, and the same command finds them again",
		ErrBatched, m.model, len(m.batches), len(m.sent), m.host)}
}

// work does what is to be done for all until e has its answer, its context is
// over, or the run is to stop.
func (m *batched) work(ctx context.Context, e *batchEntry) {
	defer func() { <-m.lead }()
	for {
		for _, do := range []func(context.Context){m.find, m.look, m.send} {
			select {
			case <-e.done:
				return
			case <-m.o.Stop:
				return
			case <-ctx.Done():
				return
			default:
				do(ctx)
			}
		}
		m.rest(ctx, e)
	}
}

// rest waits until there may be something to do.
func (m *batched) rest(ctx context.Context, e *batchEntry) {
	now := m.now()
	until := now.Add(longestLook)
	for _, b := range m.batches {
		if b.next.Before(until) {
			until = b.next
		}
	}
	m.mu.Lock()
	if at := m.last.Add(m.o.Quiet); len(m.queue) > 0 && !m.held() && at.Before(until) {
		until = at
	}
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, until.Sub(now))
	defer cancel()
	select {
	case <-e.done:
	case <-m.wake:
	case <-m.o.Stop:
	case <-ctx.Done():
	}
}

// held reports whether nothing can be sent until a batch is finished.
func (m *batched) held() bool { return m.full && len(m.batches) > 0 }

// send sends a batch when it is time to.
func (m *batched) send(ctx context.Context) {
	entries, file := m.gather()
	if len(entries) == 0 {
		return
	}
	id, err := m.submit(ctx, file)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		b := &batch{id: id}
		for _, e := range entries {
			b.ids = append(b.ids, e.id)
		}
		m.watch(b)
	case ctx.Err() != nil: // whoever did the work for them is gone
		m.found = false
		m.giveBack(entries)
	default:
		// Unless the service said no, it may have the batch all the same: it is
		// looked for before another is sent.
		m.found = m.found && (err.Type == pipeline.TypeRefusal || err.Type == pipeline.TypeRateLimit)
		for _, e := range entries {
			m.fail(e, err)
		}
	}
}

// gather takes what is to be sent in the next batch out of the queue, and makes
// the file of it.
func (m *batched) gather() (entries []*batchEntry, file []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue = slices.DeleteFunc(m.queue, func(e *batchEntry) bool { return !e.queued })
	if !m.found || len(m.queue) == 0 || m.held() || len(m.queue) < m.most && m.now().Sub(m.last) < m.o.Quiet {
		return nil, nil
	}
	for _, e := range m.queue[:min(len(m.queue), m.most)] {
		line := m.line(e)
		if len(file) > 0 && len(file)+len(line) > m.mostBytes {
			break
		}
		file = append(file, line...)
		e.queued = false
		entries = append(entries, e)
	}
	m.queue = slices.Clone(m.queue[len(entries):])
	return entries, file
}

// giveBack puts requests back to the head of the queue, but those that nobody
// waits for any more. The lock is held.
func (m *batched) giveBack(entries []*batchEntry) {
	entries = slices.DeleteFunc(entries, func(e *batchEntry) bool { return m.open[e.id] != e })
	for _, e := range entries {
		e.queued = true
	}
	m.queue = append(entries, m.queue...)
}

// fail ends a request unless nobody waits for it. The lock is held.
func (m *batched) fail(e *batchEntry, f *pipeline.Failure) {
	if m.open[e.id] == e {
		m.close(e, nil, f)
	}
}

// watch begins to wait for a batch. The lock is held.
func (m *batched) watch(b *batch) {
	b.every = m.o.Look
	b.next = m.now().Add(b.every)
	m.known[b.id] = true
	m.batches = append(m.batches, b)
	for _, id := range b.ids {
		m.sent[id] = b
		if e := m.open[id]; e != nil {
			e.queued = false
		}
	}
	m.queue = slices.DeleteFunc(m.queue, func(e *batchEntry) bool { return !e.queued })
}

// unwatch waits for a batch no more. It returns those of its requests that are not
// answered and in no other, by their lines in its file. The lock is held.
func (m *batched) unwatch(b *batch) (left map[int]*batchEntry) {
	m.batches = slices.DeleteFunc(m.batches, func(w *batch) bool { return w == b })
	m.full = false
	left = map[int]*batchEntry{}
	for i, id := range b.ids {
		if m.sent[id] != b {
			continue
		}
		delete(m.sent, id)
		if e := m.open[id]; e != nil && !e.queued {
			left[i+1] = e
		}
	}
	return left
}
