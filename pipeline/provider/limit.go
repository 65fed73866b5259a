package provider

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"evalrun/pipeline"
)

// Limits say how a model's service may be asked. Begin with [DefaultLimits]: but
// for those that say otherwise, 0 is no value of a limit and is refused.
type Limits struct {
	Concurrency       int           // requests in flight at once; 0 adapts to what the service bears
	Start             int           // adaptive: in flight at first
	Most              int           // adaptive: never more in flight
	RequestsPerMinute int           // tries; 0 is no limit
	TokensPerMinute   int           // of input and output together; 0 is no limit
	MaxRetries        int           // further tries of a request that failed; 0 is none
	RetryFor          time.Duration // a request whose tries and back-off have taken that long is not tried again
	Timeout           time.Duration // of one try
	OutageFor         time.Duration // how long a service that is down is probed before it is given up
}

// DefaultLimits adapt to the service and limit no rate.
func DefaultLimits() Limits {
	return Limits{
		Start: 8, Most: 256, MaxRetries: 6,
		RetryFor: 10 * time.Minute, Timeout: 2 * time.Minute, OutageFor: 5 * time.Minute,
	}
}

func (l Limits) check() error {
	for _, n := range []struct {
		name         string
		value, least int
	}{
		{"concurrency", l.Concurrency, 0},
		{"start", l.Start, 1},
		{"most", l.Most, 1},
		{"requests_per_minute", l.RequestsPerMinute, 0},
		{"tokens_per_minute", l.TokensPerMinute, 0},
		{"max_retries", l.MaxRetries, 0},
	} {
		if n.value < n.least {
			return fmt.Errorf("%s is %d; it is a number from %d", n.name, n.value, n.least)
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"retry_for", l.RetryFor}, {"timeout", l.Timeout}, {"outage_for", l.OutageFor}} {
		if d.value <= 0 {
			return fmt.Errorf("%s is %s; it is a time above 0", d.name, d.value)
		}
	}
	if l.Concurrency == 0 && l.Start > l.Most {
		return fmt.Errorf("start is %d and most is %d; start with no more than most", l.Start, l.Most)
	}
	return nil
}

// Limiter keeps the requests to one model within what its service bears: how many
// are in flight, how many and how many tokens are sent a minute, and none while
// the service is down. What [Limiter.Limit] and [Limiter.Retry] make share it. It
// is safe for concurrent use and has no goroutine of its own.
type Limiter struct {
	model  string // as the run calls it, for messages
	limits Limits
	now    func() time.Time
	began  time.Time

	asked  atomic.Int64
	gaveUp chan struct{}   // closed when the service is given up
	stop   <-chan struct{} // closed when nothing more is to be sent; nil: never

	mu       sync.Mutex
	chance   *rand.Rand
	inFlight int
	queue    queue
	window   window
	requests *tokenBucket // nil: no limit
	tokens   *tokenBucket // nil: no limit
	outputs  outputs
	breaker  breaker
	history  history
	observe  func(LimitEvent) // nil: nobody does
	counts   LimitCounts
}

// NewLimiter makes the limiter of the model that a run calls by that name. It
// reads the time from now, which goes on as it does; seed is that of the chance in
// its back-off.
func NewLimiter(model string, l Limits, now func() time.Time, seed uint64) (*Limiter, error) {
	if err := l.check(); err != nil {
		return nil, fmt.Errorf("limits of model %s: %w", model, err)
	}
	if now == nil {
		return nil, fmt.Errorf("limits of model %s: a limiter needs a clock", model)
	}
	began := now()
	lim := &Limiter{
		model: model, limits: l, now: now, began: began, gaveUp: make(chan struct{}),
		chance:   rand.New(rand.NewPCG(seed, 0)),
		window:   newWindow(l),
		requests: newTokenBucket(l.RequestsPerMinute, began), tokens: newTokenBucket(l.TokensPerMinute, began),
	}
	lim.note(WhyStart, began)
	return lim, nil
}

// StopOn has nothing more sent, or tried again, once stop is closed: what waits for
// its turn, backs off, or waits for a service that is down fails at once as canceled.
// What is on the wire is finished. It is called before the first request.
func (l *Limiter) StopOn(stop <-chan struct{}) { l.stop = stop }

// over is why a request is not to be sent any more; nil while it may be.
func (l *Limiter) over(ctx context.Context) error {
	if at, ok := ctx.Deadline(); ok && !l.now().Before(at) {
		<-ctx.Done() // it is due: many have the same deadline, and those that hear of it first make room
	}
	if err := ended(ctx); err != nil {
		return err
	}
	select {
	case <-l.stop:
		return pipeline.Failf(pipeline.TypeCancelled, unsent, "the run was stopped before the request was sent")
	default:
		return nil
	}
}

// Limit returns a model that asks m within the limits. A request waits for its
// turn, first come first served; one that takes longer than Timeout on the wire
// fails as a timeout. Replies say how long they waited, and what they took on the
// wire where m does not say so. While the service is down, requests wait for it
// to come back; once it was given up they fail with code "outage". Whoever stands
// between it and Retry passes its errors on as they are: they hold a
// *pipeline.Failure, and what the try took.
func (l *Limiter) Limit(m pipeline.Model) pipeline.Model { return &limited{l, m} }

type limited struct {
	*Limiter
	model pipeline.Model
}

func (m *limited) Generate(ctx context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
	p, err := m.acquire(ctx, m.estimate(req))
	if err != nil {
		return nil, err
	}
	o := outcome{verdict: nothing} // stands when the model panics
	defer func() { m.release(p, o) }()
	if err := m.over(ctx); err != nil {
		asFailure(err).Code = unsent
		return nil, err
	}
	if err := pipeline.Sending(ctx, triesBefore(ctx)); err != nil {
		return nil, err
	}
	attempt, cancel := context.WithTimeout(ctx, m.limits.Timeout)
	defer cancel()
	reply, err := m.model.Generate(attempt, req)
	wire := m.now().Sub(p.sent)
	if err == nil {
		o = outcome{verdict: answered, usage: reply.Usage}
		reply.Waited += p.waited
		if reply.Wire == 0 {
			reply.Wire = wire
		}
		return reply, nil
	}
	if _, fatal := errors.AsType[*pipeline.Fatal](err); fatal {
		return nil, err
	}
	o = m.judge(ctx, attempt, err)
	return nil, &failedTry{pipeline.Attempt{Failure: o.failure, Waited: p.waited, Wire: wire}, p.probe != 0}
}

// A permit is the right to send one try.
type permit struct {
	sent   time.Time // when it was used
	waited time.Duration
	tokens float64 // reserved
	probe  int     // which outage it probes; 0 is none
}

// outcome is what became of a try.
type outcome struct {
	verdict verdict
	failure *pipeline.Failure // of those that failed
	usage   pipeline.Usage    // of those that were answered
}

// verdict is what a try says about the service.
type verdict int

const (
	nothing   verdict = iota // nothing: it did not come to it
	abandoned                // nothing: the caller canceled it
	answered                 // that it is well
	refused                  // that it is there
	throttled                // that it was asked too much
	exhausted                // that it will not answer until somebody pays, or gives another key
	failing                  // that it is not well
)

// judge says what a try that failed says about the service. A caller's time that
// is over while the service has the request is the service's timeout too: else
// one that hangs would never be found out by rows with less time than a try.
func (l *Limiter) judge(ctx, attempt context.Context, err error) outcome {
	over, _ := errors.AsType[*pipeline.Failure](ended(ctx))
	switch {
	case over != nil && over.Type == pipeline.TypeCancelled:
		return outcome{verdict: abandoned, failure: over}
	case over != nil:
		return outcome{verdict: failing, failure: over}
	case attempt.Err() != nil:
		return outcome{verdict: failing, failure: pipeline.Failf(pipeline.TypeTimeout, "attempt-timeout",
			"model %s: no answer within %s", l.model, l.limits.Timeout)}
	}
	f := asFailure(err)
	switch f.Type {
	case pipeline.TypeRateLimit, pipeline.TypeServer:
		if hopeless(f) {
			return outcome{verdict: exhausted, failure: f}
		}
	}
	switch f.Type {
	case pipeline.TypeRateLimit:
		return outcome{verdict: throttled, failure: f}
	case pipeline.TypeServer, pipeline.TypeTimeout:
		return outcome{verdict: failing, failure: f}
	}
	return outcome{verdict: refused, failure: f}
}

// acquire waits until a try that may take so many tokens may be sent. The error
// is a *pipeline.Failure.
func (l *Limiter) acquire(ctx context.Context, tokens float64) (permit, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	began := l.now()
	if l.queue.first == nil {
		if _, free := l.free(tokens, began); free {
			return l.grant(tokens, began)
		}
	}
	w := &waiter{tokens: tokens, wake: make(chan struct{}, 1)}
	l.queue.add(w)
	now := began
	for l.dispatch(now, w); !w.gone; l.dispatch(now, w) {
		until := w.until
		l.mu.Unlock()
		resume := pipeline.Waiting(ctx)
		w.wait(ctx, l.stop, now, until)
		resume()
		l.mu.Lock()
		w.until = time.Time{}
		now = l.now()
		if err := l.over(ctx); err != nil && !w.gone {
			l.counts.Waited += now.Sub(began)
			l.queue.remove(w)
			l.dispatch(now, nil)
			asFailure(err).Code = unsent
			return permit{}, err
		}
	}
	w.permit.sent, w.permit.waited = now, now.Sub(began)
	l.counts.Waited += w.permit.waited
	return w.permit, w.err
}

// dispatch lets go those who wait and may go now, in the order they came. The
// first who may not learns until when, where time alone decides; self need not be
// woken for it.
func (l *Limiter) dispatch(now time.Time, self *waiter) {
	for w := l.queue.first; w != nil; w = l.queue.first {
		at, free := l.free(w.tokens, now)
		switch {
		case free:
			l.queue.remove(w)
			w.gone = true
			w.permit, w.err = l.grant(w.tokens, now)
		case at.IsZero() || !w.until.IsZero() && w.until.Sub(at) < time.Millisecond:
			return
		default:
			w.until = at
		}
		if w != self {
			w.rouse()
		}
		if !free {
			return
		}
	}
}

// free reports whether a try may be sent now, and if not, when to look again;
// the zero time is when something else happens.
func (l *Limiter) free(tokens float64, now time.Time) (at time.Time, free bool) {
	b := &l.breaker
	switch {
	case b.gaveUp:
		return now, true // to hear of it
	case b.open && b.probing:
		return time.Time{}, false
	case b.open:
		return b.until, !now.Before(b.until)
	case l.inFlight >= l.window.limit:
		return time.Time{}, false
	}
	at = l.requests.when(1, now)
	if t := l.tokens.when(tokens, now); t.After(at) {
		at = t
	}
	return at, !now.Before(at)
}

// grant takes what a try needs. The error is that of a service that was given up.
func (l *Limiter) grant(tokens float64, now time.Time) (permit, error) {
	if l.breaker.gaveUp {
		return permit{}, l.outage()
	}
	l.inFlight++
	l.counts.Tries++
	l.requests.take(1, now)
	l.tokens.take(tokens, now)
	p := permit{sent: now, tokens: tokens}
	if l.breaker.open {
		l.breaker.probing = true
		p.probe = l.breaker.outages
		l.note(WhyProbe, now)
	}
	return p, nil
}

// release gives back what a try had and learns from its outcome.
func (l *Limiter) release(p permit, o outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	used := l.inFlight >= l.window.limit
	l.inFlight--
	l.settle(p, o)
	l.learn(now, p, o, used)
	l.probed(now, p, o)
	l.dispatch(now, nil)
}

// learn moves the limit on requests in flight. What a probe finds does not: the
// limit is not what was wrong.
func (l *Limiter) learn(now time.Time, p permit, o outcome, used bool) {
	if p.probe != 0 {
		return
	}
	switch w := &l.window; o.verdict {
	case answered:
		if used && w.answered(now, p.sent) {
			l.note(WhyGrew, now)
		}
	case throttled:
		if w.throttled(now, p.sent, min(o.failure.RetryAfter, l.limits.OutageFor)) {
			l.counts.Episodes++
			l.note(WhyRateLimited, now)
		}
	case failing:
		if w.freeze(now) {
			l.note(WhyServerError, now)
		}
	}
}

// settle replaces what was reserved by what was used.
func (l *Limiter) settle(p permit, o outcome) {
	switch o.verdict {
	case nothing:
		l.counts.Tries--
		l.requests.give(1)
		l.tokens.give(p.tokens)
	case answered:
		if l.tokens != nil {
			l.tokens.give(p.tokens - tokensOf(o.usage, p.tokens))
			l.outputs.add(o.usage.Output)
		}
	}
}
