package provider

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"evalrun/pipeline"
)

// find looks for the batches that the run has with the service already, before
// the first is sent, and after one was sent of which the service said nothing.
func (m *batched) find(ctx context.Context) {
	m.mu.Lock()
	idle := m.found || len(m.queue) == 0
	m.mu.Unlock()
	if idle {
		return
	}
	var err *pipeline.Failure
	if m.o.Run.ID != "" {
		err = m.adoptAll(ctx)
	}
	m.found = err == nil
	if m.found || ctx.Err() != nil {
		return
	}
	if !retryable(err) {
		err = down(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.queue {
		m.fail(e, err)
	}
	m.queue = nil
}

// adoptAll takes over the run's batches. Of those that are finished it takes the
// answers; what had none is asked again.
func (m *batched) adoptAll(ctx context.Context) *pipeline.Failure {
	var finished []*batchObject
	for o, err := range m.tagged(ctx) {
		switch {
		case err != nil:
			return err
		case m.known[o.ID]:
		case o.finished():
			finished = append(finished, o)
		default:
			lines, err := m.content(ctx, o.Input)
			if err != nil {
				return err
			}
			b := &batch{id: o.ID}
			for _, l := range lines {
				b.ids = append(b.ids, l.ID)
			}
			m.mu.Lock()
			m.watch(b)
			m.mu.Unlock()
		}
	}
	for _, o := range finished { // after those that may have the same requests anew
		if !m.o.Run.Anew {
			results, err := m.results(ctx, o)
			if err != nil {
				return err
			}
			m.mu.Lock()
			m.resolve(nil, results)
			m.mu.Unlock()
		}
		m.known[o.ID] = true
	}
	return nil
}

// look looks at the batches whose time it is.
func (m *batched) look(ctx context.Context) {
	for _, b := range slices.Clone(m.batches) {
		if m.now().Before(b.next) || ctx.Err() != nil {
			continue
		}
		var o batchObject
		err := m.get(ctx, "/batches/"+url.PathEscape(b.id), &o)
		if err == nil && o.finished() {
			var results []batchResult
			if results, err = m.results(ctx, &o); err == nil {
				m.finish(b, &o, results)
				continue
			}
		}
		b.every = min(longestLook, b.every*3/2)
		b.next = m.now().Add(b.every)
		if ctx.Err() == nil {
			m.looked(b, err)
		}
	}
}

// looked takes in how looking at a batch went. One that cannot be looked at any
// more is left with the service: sent again, its requests would be charged twice.
func (m *batched) looked(b *batch, err *pipeline.Failure) {
	switch {
	case err == nil:
		b.failing = time.Time{}
		return
	case b.failing.IsZero():
		b.failing = m.now()
	}
	if retryable(err) && m.now().Sub(b.failing) < m.limiter.limits.OutageFor {
		b.next = b.next.Add(min(err.RetryAfter, longestAfter))
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.unwatch(b) {
		m.fail(e, down(err))
	}
}

// down is a failure of the batch API for which trying again is no help. It says
// nothing about a request, so it is that of a service that is down.
func down(f *pipeline.Failure) *pipeline.Failure {
	d := *f
	d.Code = outageCode
	if f.Type == pipeline.TypeRefusal {
		d.Type = pipeline.TypeServer
	}
	return &d
}

// finish gives the requests of a batch what became of them.
func (m *batched) finish(b *batch, o *batchObject, results []batchResult) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.resolve(b, results)
	left := m.unwatch(b)
	if len(left) > 0 && o.tooMany() && m.shrink(b) {
		for _, line := range slices.Sorted(maps.Keys(left)) {
			m.enqueue(left[line], m.now())
		}
		return
	}
	for line, e := range left {
		m.fail(e, m.unanswered(o, line))
	}
}

// tooMany reports whether the service has no room for so many tokens at once.
func (o *batchObject) tooMany() bool {
	return o.Status == "failed" && slices.ContainsFunc(o.Errors.Data, func(e batchError) bool { return strings.Contains(e.Code, "token_limit") })
}

// shrink reports whether a batch for which the service has no room may have it
// later, when another is finished, or else when it is smaller.
func (m *batched) shrink(b *batch) bool {
	if len(m.batches) > 0 {
		m.full = true
		return true
	}
	m.most = min(m.most, len(b.ids)) / 2
	if m.most == 0 {
		m.most = 1
		return false
	}
	return true
}

// resolve gives requests their results, those of b, or of a batch of before when
// it is nil. Answers that nobody has asked for yet are kept. The lock is held.
func (m *batched) resolve(b *batch, results []batchResult) {
	for i := range results {
		r := &results[i]
		if with := m.sent[r.ID]; with != b {
			continue // it was sent again since
		}
		e, answered := m.open[r.ID], r.answered()
		switch {
		case e == nil && answered:
			if _, had := m.kept[r.ID]; !had {
				m.kept[r.ID] = r.Response.Body
			}
		case e == nil:
		case answered:
			m.close(e, r.Response.Body, nil)
		case b != nil && !e.queued:
			m.refusedOne(e, r)
		}
	}
}

// refusedOne ends a request that failed in a batch. When the model does not take
// one of its settings, it is sent again without.
func (m *batched) refusedOne(e *batchEntry, r *batchResult) {
	f, said := m.failed(r)
	settings := e.settings
	if settings == nil {
		settings = e.request.Config
	}
	if e.learned < mostLearned && m.learn(said, settings) {
		e.learned++
		m.enqueue(e, m.now())
		return
	}
	m.close(e, nil, f)
}
