package provider

import (
	"time"

	"evalrun/pipeline"
)

// When a service counts as down, and how it is probed.
const (
	failuresInRow = 10               // without an answer between them; fewer where fewer are in flight
	fewestInRow   = 3                // but never fewer than these
	firstProbe    = time.Second      // after the pause begins
	longestProbe  = 30 * time.Second // between two, doubling up to it
)

// The codes of failures that tell something else than to try again.
const (
	outageCode     = pipeline.CodeOutage
	unsent         = pipeline.CodeUnsent
	awaited        = pipeline.CodeAwaited
	quotaExhausted = "quota-exhausted" // nothing will be answered until somebody pays
	unknownKey     = "http-401"        // nor with this key
)

// breaker is a circuit breaker: it opens when the service is down, and closes
// when a probe is answered. It closes as well when a try that was sent before is
// answered: then there were only too many at once.
type breaker struct {
	inRow   int               // tries that failed with no answer between them
	last    *pipeline.Failure // the latest of them
	closed  time.Time         // when it last closed: what was sent before says nothing
	open    bool              // the service is down
	opened  time.Time         // since when
	outages int               // how often it was
	probing bool              // a probe is in flight
	every   time.Duration     // between probes
	until   time.Time         // when the next probe may be sent
	leave   time.Time         // until then the service asked to be left alone
	gaveUp  bool
}

// probed moves the breaker by the outcome of a try.
func (l *Limiter) probed(now time.Time, p permit, o outcome) {
	b := &l.breaker
	probe := p.probe != 0 && p.probe == b.outages && b.open
	switch {
	case probe:
		b.probing = false
	case b.gaveUp || p.sent.Before(b.closed):
		return
	case b.open:
		if o.verdict == answered && !now.Before(b.leave) {
			l.resume(now)
		}
		return
	}
	switch o.verdict {
	case answered, refused:
		b.inRow = 0
		if probe {
			l.window.resume(now)
			l.resume(now)
		}
	case throttled, exhausted, failing:
		b.inRow++
		b.last = o.failure
		if probe {
			l.probeLater(now)
		} else if b.inRow >= min(failuresInRow, max(fewestInRow, l.inFlight+1)) {
			l.pause(now)
		}
	}
}

// pause opens the breaker.
func (l *Limiter) pause(now time.Time) {
	b := &l.breaker
	b.open, b.opened, b.every = true, now, firstProbe
	b.outages++
	l.counts.Pauses++
	l.note(WhyPaused, now)
	if hopeless(b.last) {
		l.giveUp(now)
		return
	}
	l.setProbe(now)
}

// probeLater is for a probe that failed.
func (l *Limiter) probeLater(now time.Time) {
	b := &l.breaker
	if now.Sub(b.opened) >= l.limits.OutageFor {
		l.giveUp(now)
		return
	}
	b.every = min(longestProbe, 2*b.every)
	l.setProbe(now)
}

// setProbe says when the next probe may go: when the service asked to be left
// alone, not before, and the last of them when it is time to give up.
func (l *Limiter) setProbe(now time.Time) {
	b := &l.breaker
	b.leave = now.Add(b.last.RetryAfter)
	b.until = now.Add(max(b.every, b.last.RetryAfter))
	if end := b.opened.Add(l.limits.OutageFor); b.until.After(end) {
		b.until = end
	}
}

func (l *Limiter) resume(now time.Time) {
	b := &l.breaker
	l.counts.LongestPause = max(l.counts.LongestPause, now.Sub(b.opened))
	b.open, b.probing, b.inRow, b.closed = false, false, 0, now
	l.note(WhyResumed, now)
}

func (l *Limiter) giveUp(now time.Time) {
	l.counts.LongestPause = max(l.counts.LongestPause, now.Sub(l.breaker.opened))
	l.breaker.gaveUp = true
	close(l.gaveUp)
	l.note(WhyGaveUp, now)
}

// outage is the failure of a request to a service that was given up.
func (l *Limiter) outage() *pipeline.Failure {
	last := l.breaker.last
	return pipeline.Failf(last.Type, outageCode, "model %s: the service is down and was given up after %d tries in a row without an answer; the last said: %s",
		l.model, l.breaker.inRow, last.Message)
}
