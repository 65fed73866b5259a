package par

import (
	"context"
	"sync"
	"time"
)

// Stopwatch is the time of a context that [Timed] made.
type Stopwatch struct {
	end   context.CancelCauseFunc
	cause error
	now   func() time.Time

	mu     sync.Mutex
	timer  *time.Timer
	left   time.Duration
	since  time.Time // when the time began to run last
	paused int       // how many pauses there are at once
}

// Timed returns a context that ends, with that cause, when so much time has
// passed while no pause was on. Its Deadline is unknown, since pauses move it. Stop
// must be called when it is not needed any more.
func Timed(ctx context.Context, d time.Duration, cause error, now func() time.Time) (context.Context, *Stopwatch) {
	ctx, end := context.WithCancelCause(ctx)
	s := &Stopwatch{end: end, cause: cause, now: now, left: d, since: now()}
	s.timer = time.AfterFunc(d, func() { end(cause) })
	return ctx, s
}

// Pause stops the time until resume is called. Several pauses may be on at once;
// the time runs when none is.
func (s *Stopwatch) Pause() (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused++; s.paused == 1 && s.timer.Stop() {
		s.left -= s.now().Sub(s.since)
	}
	return sync.OnceFunc(s.resume)
}

func (s *Stopwatch) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused--; s.paused == 0 {
		s.since = s.now()
		s.timer.Reset(max(0, s.left))
	}
}

// Stop ends the context, and the time.
func (s *Stopwatch) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused++ // nobody starts it again
	s.timer.Stop()
	s.end(context.Canceled)
}
