package star

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"time"

	"go.starlark.net/starlark"

	"evalrun/internal/par"
)

// weighEvery is how often the time and the memory are looked at while a run goes on.
const weighEvery = time.Millisecond

// scale watches how the process's memory grows while a run goes on: Starlark counts
// none, so what others take at the same time counts as the run's.
type scale struct {
	most uint64

	mu     sync.Mutex
	before uint64 // when it was first looked at; 0 is not yet
	away   bool   // the run waits, and takes none
	over   bool
}

// watch cancels the run's thread when its time is up, which a few steps may take
// long to see, or when the memory grew too much.
func (r *run) watch(t *starlark.Thread) (stop func()) {
	return par.Every(weighEvery, func() {
		s := &r.scale
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case s.away:
		case r.ctx.Err() != nil:
			t.Cancel("the time is up")
		case s.weigh():
			t.Cancel("too much memory")
		}
	})
}

// weigh is called with the lock held.
func (s *scale) weigh() (over bool) {
	switch now := heap(); {
	case s.over:
	case s.before == 0:
		s.before = now
	case now > s.before+s.most:
		runtime.GC() // what nobody has any more is not grown
		s.over = heap() > s.before+s.most
	}
	return s.over
}

// leave is called when the run waits, for something that may take long.
func (s *scale) leave() (back func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.away, s.before = false, 0
	}
}

func (s *scale) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// heap is how many bytes the process's objects take.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
