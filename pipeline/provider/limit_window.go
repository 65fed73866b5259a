package provider

import "time"

// How the number of requests in flight follows what the service answers.
const (
	decrease = 0.8              // of the limit is left by an episode of rate limiting
	increase = 0.05             // of the limit is added once a limit's worth of answers came clean
	cooldown = 15 * time.Second // after an episode nothing is cut or added for that long; after a server's failure nothing is added
)

// window is how many requests may be in flight. It doubles until the service is
// first asked too much, and from then on is cut by a fifth each time and grows by
// a twentieth. A fixed one is not cut; after an outage it doubles up to its number.
type window struct {
	limit, most int
	fixed       bool
	doubling    bool
	clean       int       // answers since the limit last changed, each while it was used
	changed     time.Time // when it did
	episode     time.Time // when the latest of rate limiting began
	cool        time.Time // when it ends
	frozen      time.Time // until then nothing is added
}

func newWindow(l Limits) window {
	if n := l.Concurrency; n > 0 {
		return window{limit: n, most: n, fixed: true, doubling: true}
	}
	return window{limit: l.Start, most: l.Most, doubling: true}
}

// answered takes in the answer to a try that was sent then, with the limit
// reached; it reports whether the limit grew.
func (w *window) answered(now, sent time.Time) bool {
	if w.limit == w.most || now.Before(w.frozen) || sent.Before(w.changed) {
		return false
	}
	w.clean++
	if w.clean < w.limit {
		return false
	}
	more := max(1, int(increase*float64(w.limit)))
	if w.doubling {
		more = w.limit
	}
	w.set(min(w.most, w.limit+more), now)
	return true
}

// throttled takes in that a try which was sent then was one too many; it reports
// whether an episode began with it. What was sent before the latest began belongs
// to that one.
func (w *window) throttled(now, sent time.Time, retryAfter time.Duration) bool {
	w.clean = 0
	if now.Before(w.cool) || sent.Before(w.episode) {
		return false
	}
	w.episode, w.cool = now, now.Add(max(cooldown, retryAfter))
	w.frozen = w.cool
	if !w.fixed {
		w.doubling = false
		w.set(max(1, min(w.limit-1, int(decrease*float64(w.limit)))), now)
	}
	return true
}

// freeze stops growth for a while; it reports whether it was not stopped before.
func (w *window) freeze(now time.Time) bool {
	w.clean = 0
	fresh := !now.Before(w.frozen)
	if until := now.Add(cooldown); until.After(w.frozen) {
		w.frozen = until
	}
	return fresh
}

// resume begins again at half the limit after an outage.
func (w *window) resume(now time.Time) {
	w.frozen = w.cool
	w.set(max(1, w.limit/2), now)
}

func (w *window) set(limit int, now time.Time) {
	w.limit, w.clean, w.changed = limit, 0, now
}
