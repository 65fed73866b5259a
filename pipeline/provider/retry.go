package provider

import (
	"context"
	"errors"
	"time"

	"evalrun/pipeline"
)

// Back-off with full jitter: before the nth further try, a time drawn evenly from
// 0 to firstBackoff·2ⁿ⁻¹, at most longestBackoff.
const (
	firstBackoff   = time.Second
	longestBackoff = time.Minute
	longestAfter   = 24 * time.Hour // a service that asks for more than a day asks for a day
)

// Retry returns a model that asks m, which asks what [Limiter.Limit] returned,
// again when the service was asked too much, failed, could not be reached or took
// too long. Before that it waits, holding no place among the requests in flight,
// not less than the service asked for. Every try that failed is among the
// Attempts of the reply or of the last failure. A try that probed a service that
// is down counts against no limit. The error is a *pipeline.Failure, or a
// *pipeline.Fatal.
func (l *Limiter) Retry(m pipeline.Model) pipeline.Model { return &retried{l, m} }

type retried struct {
	*Limiter
	model pipeline.Model
}

func (m *retried) Generate(ctx context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
	m.asked.Add(1)
	var failed []pipeline.Attempt
	var waited, spent time.Duration // before this try; in tries and back-off so far
	for retries := 0; ; {
		reply, err := m.model.Generate(triedBefore(ctx, failed), req)
		if err == nil {
			reply.Waited += waited
			reply.Attempts = append(failed, reply.Attempts...)
			return reply, nil
		}
		if fatal, ok := errors.AsType[*pipeline.Fatal](err); ok {
			if len(failed) > 0 {
				fatal = &pipeline.Fatal{Err: fatal.Err, Attempts: failed}
			}
			return nil, fatal
		}
		try, probe := tryOf(err)
		if !retryable(try.Failure) {
			return nil, after(failed, try.Failure)
		}
		if over := ended(ctx); over != nil {
			return nil, after(failed, asFailure(over))
		}
		if over := m.over(ctx); over != nil {
			return nil, after(append(failed, try), asFailure(over))
		}
		try.Waited += waited
		waited = 0
		if !probe {
			pause := m.backoff(retries, try.Failure.RetryAfter)
			spent += try.Wire + pause
			if retries == m.limits.MaxRetries || spent > m.limits.RetryFor {
				return nil, after(failed, try.Failure)
			}
			retries++
			waited = m.rest(ctx, pause)
			if over := m.over(ctx); over != nil {
				asFailure(over).Code = unsent
				return nil, after(append(failed, try), asFailure(over))
			}
		}
		failed = append(failed, try)
		m.retrying(try.Failure)
	}
}

// failedTry is a try that failed, on its way from Limit to Retry.
type failedTry struct {
	pipeline.Attempt
	probe bool
}

func (t *failedTry) Error() string { return t.Failure.Error() }
func (t *failedTry) Unwrap() error { return t.Failure }

func tryOf(err error) (try pipeline.Attempt, probe bool) {
	if t, ok := errors.AsType[*failedTry](err); ok {
		return t.Attempt, t.probe
	}
	return pipeline.Attempt{Failure: asFailure(err)}, false
}

// asFailure is the failure an error is or stands for.
func asFailure(err error) *pipeline.Failure {
	if f, ok := errors.AsType[*pipeline.Failure](err); ok {
		return f
	}
	return pipeline.Failf(pipeline.TypeServer, "", "%v", err)
}

// retryable reports whether the same request may be answered another time.
func retryable(f *pipeline.Failure) bool {
	switch f.Type {
	case pipeline.TypeRateLimit, pipeline.TypeServer, pipeline.TypeTimeout:
		return f.Code != outageCode && !hopeless(f)
	}
	return false
}

// hopeless reports whether nothing will be answered until a person does something.
func hopeless(f *pipeline.Failure) bool {
	return f.Code == quotaExhausted || f.Code == unknownKey
}

// after is the failure with the tries before it. Models may fail with the same
// one more than once, so it is a copy.
func after(failed []pipeline.Attempt, f *pipeline.Failure) *pipeline.Failure {
	last := *f
	last.Attempts = append(failed, f.Attempts...)
	return &last
}

// backoff is how long to wait after that many retries.
func (l *Limiter) backoff(retries int, retryAfter time.Duration) time.Duration {
	most := min(longestBackoff, firstBackoff<<min(retries, 6))
	l.mu.Lock()
	defer l.mu.Unlock()
	return min(retryAfter, longestAfter) + time.Duration(l.chance.Int64N(int64(most)))
}

// rest waits, until ctx ends, the service is given up or nothing more is to be sent
// at the longest, and returns how long.
func (l *Limiter) rest(ctx context.Context, d time.Duration) time.Duration {
	began := l.now()
	defer pipeline.Waiting(ctx)()
	pause, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-pause.Done():
	case <-l.gaveUp:
	case <-l.stop:
	}
	waited := l.now().Sub(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.Waited += waited
	return waited
}

func (l *Limiter) retrying(f *pipeline.Failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts.Retries == nil {
		l.counts.Retries = map[string]int64{}
	}
	l.counts.Retries[f.Class()]++
}
