package provider

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"evalrun/pipeline"
)

// TestHistoryIsBounded: what is left of a long one begins with its first event,
// ends with its last, is in order, and keeps what is rare.
func TestHistoryIsBounded(t *testing.T) {
	for _, c := range []struct {
		name string
		rare int // every so many events is an episode
	}{{"growth", 50}, {"episodes alone", 1}} {
		t.Run(c.name, func(t *testing.T) {
			var h history
			h.add(LimitEvent{0, 8, WhyStart})
			const n = 3000
			episodes := 0
			for i := 1; i <= n; i++ {
				why := WhyGrew
				if i%c.rare == 0 {
					why = WhyRateLimited
				}
				h.add(LimitEvent{time.Duration(i), i, why})
			}
			for i, e := range h.events {
				if e.Why == WhyRateLimited {
					episodes++
				}
				if i > 0 && e.At <= h.events[i-1].At {
					t.Fatalf("event %d is of %d, after one of %d", i, e.At, h.events[i-1].At)
				}
			}
			if first, last := h.events[0], h.events[len(h.events)-1]; first.Why != WhyStart || last.At != n || len(h.events) > mostHistory {
				t.Errorf("%d events from %v to %v", len(h.events), first, last)
			}
			if c.rare > 1 && episodes != n/c.rare {
				t.Errorf("%d of %d episodes are left", episodes, n/c.rare)
			}
		})
	}
}

// chaos answers, fails, hangs and panics by chance.
type chaos struct {
	mu     sync.Mutex
	chance *rand.Rand
}

func (c *chaos) Generate(ctx context.Context, _ *pipeline.Request) (*pipeline.Reply, error) {
	c.mu.Lock()
	what, takes := c.chance.IntN(100), time.Duration(c.chance.IntN(3000))*time.Millisecond
	c.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	fail := func(typ string) (*pipeline.Reply, error) {
		f := pipeline.Failf(typ, "", "no")
		f.RetryAfter = takes
		return nil, f
	}
	switch {
	case what < 20:
		return fail(pipeline.TypeRateLimit)
	case what < 35:
		return fail(pipeline.TypeServer)
	case what < 40:
		return fail(pipeline.TypeRefusal)
	case what < 45:
		<-ctx.Done()
		return nil, ctx.Err()
	case what < 47:
		panic("oh")
	}
	return &pipeline.Reply{Usage: pipeline.Usage{Total: new(int64(what))}}, nil
}

// TestNothingLeaks: whatever happens to requests, each ends, with a reply or a
// failure, and afterwards nothing is held and nobody waits.
func TestNothingLeaks(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				chance := rand.New(rand.NewPCG(seed, 1))
				limits := DefaultLimits()
				limits.Concurrency = chance.IntN(2) * (1 + chance.IntN(20))
				limits.RequestsPerMinute = chance.IntN(2) * (60 + chance.IntN(2000))
				limits.TokensPerMinute = chance.IntN(2) * 100_000
				limits.Timeout = 10 * time.Second
				l, err := NewLimiter("m", limits, time.Now, seed)
				if err != nil {
					t.Fatal(err)
				}
				m := l.Retry(l.Limit(&chaos{chance: rand.New(rand.NewPCG(seed, 2))}))
				var wg sync.WaitGroup
				for range 300 {
					ctx, cancel := context.WithCancel(t.Context())
					if chance.IntN(4) == 0 {
						ctx, cancel = context.WithTimeout(t.Context(), time.Duration(chance.IntN(60_000))*time.Millisecond)
					}
					wg.Go(func() {
						defer cancel()
						defer func() { _ = recover() }()
						reply, err := m.Generate(ctx, &pipeline.Request{System: "s"})
						if (reply == nil) == (err == nil) {
							t.Errorf("got %v and %v", reply, err)
						}
					})
				}
				wg.Wait()
				if l.inFlight != 0 || l.queue.first != nil || l.queue.last != nil || l.breaker.probing {
					t.Errorf("%d are in flight, somebody waits: %t, probes: %t", l.inFlight, l.queue.first != nil, l.breaker.probing)
				}
			})
		})
	}
}

// TestLateRefusal: what was sent before an episode belongs to it, even when it is
// refused after it; what was sent later begins another.
func TestLateRefusal(t *testing.T) {
	limits := DefaultLimits()
	limits.Start = 100
	w := newWindow(limits)
	began := time.Now()
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	for _, c := range []struct {
		now, sent int
		cut       bool
		limit     int
	}{{10, 0, true, 80}, {11, 10, false, 80}, {40, 9, false, 80}, {41, 40, true, 64}} {
		if cut := w.throttled(at(c.now), at(c.sent), 0); cut != c.cut || w.limit != c.limit {
			t.Errorf("sent at %d s and refused at %d s: cut %t to %d, want %t and %d", c.sent, c.now, cut, w.limit, c.cut, c.limit)
		}
	}
}

// TestResumeThaws: once the service is back, its failures from before no longer
// keep the limit from growing.
func TestResumeThaws(t *testing.T) {
	limits := DefaultLimits()
	limits.Concurrency = 2
	w := newWindow(limits)
	now := time.Now()
	w.freeze(now)
	w.resume(now)
	if !w.answered(now, now) || w.limit != 2 {
		t.Errorf("after an answer the limit is %d, want 2 again", w.limit)
	}
}
