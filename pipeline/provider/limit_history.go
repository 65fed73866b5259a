package provider

import (
	"maps"
	"slices"
	"time"
)

// Why an event of a limiter's history happened.
const (
	WhyStart       = "start"        // the limiter was made
	WhyGrew        = "grew"         // the limit was used and the answers were clean
	WhyRateLimited = "rate_limited" // an episode of rate limiting began; an adaptive limit was cut
	WhyServerError = "server_error" // the service failed, or took too long: the limit does not grow for a while
	WhyPaused      = "paused"       // too many tries in a row failed: nothing is sent
	WhyProbe       = "probe"        // one request was sent to see whether the service is back
	WhyResumed     = "resumed"      // it is, and requests are sent again; at half the limit where a probe found it
	WhyGaveUp      = "gave_up"      // it is not, and is not asked any more
)

// LimitEvent is something that happened to the limit on requests in flight.
type LimitEvent struct {
	At    time.Duration // since the limiter was made
	Limit int           // on requests in flight, from then on
	Why   string        // one of the Why constants
}

// LimitCounts are what a limiter did so far.
type LimitCounts struct {
	Requests     int64            // asked through Retry
	Tries        int64            // sent to the service
	Retries      map[string]int64 // further tries, by the class of the failure before them
	Episodes     int64            // of rate limiting
	Pauses       int64            // in which nothing was sent, because too many tries in a row failed
	Waited       time.Duration    // in the queue, in limits and in back-off, of all requests together
	LongestPause time.Duration
}

// mostHistory bounds the events kept.
const mostHistory = 512

type history struct{ events []LimitEvent }

// add keeps an event. When there are too many, every second growth goes, and if
// that is not enough the oldest of all but the first.
func (h *history) add(e LimitEvent) {
	if len(h.events) == mostHistory {
		odd := false
		h.events = slices.DeleteFunc(h.events, func(e LimitEvent) bool {
			if e.Why == WhyGrew {
				odd = !odd
			}
			return e.Why == WhyGrew && odd
		})
		if over := len(h.events) - mostHistory*3/4; over > 0 {
			h.events = slices.Delete(h.events, 1, 1+over)
		}
	}
	h.events = append(h.events, e)
}

func (l *Limiter) note(why string, now time.Time) {
	e := LimitEvent{now.Sub(l.began), l.window.limit, why}
	l.history.add(e)
	if l.observe != nil {
		l.observe(e)
	}
}

// Observe has every event from now on told, in order, as it happens. What is told
// must not ask the limiter anything: it waits meanwhile.
func (l *Limiter) Observe(tell func(LimitEvent)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.observe = tell
}

// LimitStatus is how a limiter stands now.
type LimitStatus struct {
	InFlight int
	Limit    int           // on requests in flight
	Paused   string        // the class of the failure for which nothing is sent; "" when requests are
	ProbeIn  time.Duration // while paused: until the next probe; 0 while one is in flight, or due
	GaveUp   bool          // the service is not asked any more
}

// Status returns how the limiter stands now.
func (l *Limiter) Status() LimitStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := &l.breaker
	s := LimitStatus{InFlight: l.inFlight, Limit: l.window.limit, GaveUp: b.gaveUp}
	if b.open {
		s.Paused = b.last.Class()
		if !b.probing && !b.gaveUp {
			s.ProbeIn = max(0, b.until.Sub(l.now()))
		}
	}
	return s
}

// History returns what happened to the limit on requests in flight, oldest first.
// It is bounded: of a long history some growth is left out.
func (l *Limiter) History() []LimitEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.history.events)
}

// Counts returns what the limiter did so far.
func (l *Limiter) Counts() LimitCounts {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.counts
	c.Requests = l.asked.Load()
	c.Retries = maps.Clone(c.Retries)
	if b := &l.breaker; b.open && !b.gaveUp {
		c.LongestPause = max(c.LongestPause, l.now().Sub(b.opened))
	}
	return c
}
