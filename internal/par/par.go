// Package par runs work in goroutines. It is the one place where the rest of
// the module gets them from, so that one set of tests answers for order,
// bounds, stopping and leaks.
//
// [Map] does many tasks at once and hands out their results in the order of the
// tasks. [Go] runs one thing in the background, owned by whoever started it.
// Every goroutine of this package has ended when the call that owns it
// returns, and a panic in one of them comes out in its owner, not as the end of
// the process.
package par

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// ErrStopped is the error of a [Map] that was stopped before it had started
// every task.
var ErrStopped = errors.New("stopped before every task was started")

// DefaultWindow is the window of a [Map] that states none.
const DefaultWindow = 1024

// Limits bound a [Map]. The zero value does one task at a time.
type Limits struct {
	// Workers is how many tasks are at work at once; 0 means 1.
	Workers int

	// Window is how many tasks may have been started and not handed out yet:
	// those at work and those done that wait for an earlier one. It bounds
	// memory, and it is apart from Workers, and should be much larger, so that
	// one slow task stalls nobody. 0 means DefaultWindow; less than Workers
	// means Workers.
	Window int

	// Stop, once closed, keeps further tasks from being started. Those at
	// work are finished.
	Stop <-chan struct{}
}

// A slot is the place of one task in the order of results.
type slot[T, R any] struct {
	task   T
	result R
	err    error
	ready  chan struct{} // closed when result and err are there
}

// errSkipped marks a slot whose task was never started.
var errSkipped = errors.New("not started")

// Map does the tasks and yields the results in the order of the tasks, however
// long each takes.
//
// It ends in one of three ways. All tasks were done: the last pair is the last
// result. It was stopped, or ctx ended: the results of all that was finished
// come first, in order, whatever is missing between them, and then one last
// pair with ErrStopped or the cause of ctx's end. A task returned an error:
// nothing more is started, what is at work is finished and yielded likewise,
// and the last pair has the error of the first failed task in their order.
//
// When ctx ends the tasks at work are told by their own context; one that
// returns an error then counts as not finished. When the consumer breaks off,
// tasks at work are canceled, and waited for. The tasks are read in a goroutine
// of Map's own, a window ahead.
func Map[T, R any](ctx context.Context, tasks iter.Seq[T], l Limits, do func(context.Context, T) (R, error)) iter.Seq2[R, error] {
	workers := max(1, l.Workers)
	window := l.Window
	if window == 0 {
		window = DefaultWindow
	}
	window = max(window, workers)

	return func(yield func(R, error) bool) {
		workCtx, cancel := context.WithCancel(ctx)
		m := &mapping[T, R]{
			ctx: workCtx, do: do, stop: l.Stop, workers: workers,
			failed: make(chan struct{}),
			work:   make(chan *slot[T, R]),
			// One slot is in the consumer's hands, the others in here.
			order: make(chan *slot[T, R], window-1),
		}
		m.running.Go(func() { m.dispatch(tasks) })
		defer m.rethrow()
		defer m.running.Wait()
		defer cancel()

		var failure error
		for s := range m.order {
			<-s.ready
			switch {
			case s.err == nil:
				if !yield(s.result, nil) {
					return
				}
			case failure == nil && !errors.Is(s.err, errSkipped) && ctx.Err() == nil:
				failure = s.err
			}
		}
		if m.panicked.Load() != nil {
			return
		}
		if failure == nil {
			failure = m.cutShort(ctx)
		}
		if failure != nil {
			var none R
			yield(none, failure)
		}
	}
}

// A mapping is a Map at work.
type mapping[T, R any] struct {
	ctx     context.Context
	do      func(context.Context, T) (R, error)
	stop    <-chan struct{}
	workers int

	order chan *slot[T, R] // every slot, in order, as soon as there is room in the window
	work  chan *slot[T, R] // to whichever worker is free

	failed    chan struct{} // closed with the first error of a task
	failOnce  sync.Once
	unstarted atomic.Bool // some task was not started
	running   sync.WaitGroup
	panicked  atomic.Pointer[panicValue]
}

type panicValue struct {
	value any
	stack []byte
}

// dispatch gives every task its place in the order and then to a worker. It
// alone closes the channels.
func (m *mapping[T, R]) dispatch(tasks iter.Seq[T]) {
	defer close(m.order)
	defer close(m.work)
	defer m.recovered()

	hired := 0
	for task := range tasks {
		s := &slot[T, R]{task: task, ready: make(chan struct{})}
		if m.ended() {
			m.unstarted.Store(true)
			return
		}
		select {
		case m.order <- s:
		case <-m.ctx.Done():
			m.unstarted.Store(true)
			return
		case <-m.stop:
			m.unstarted.Store(true)
			return
		case <-m.failed:
			return
		}
		if hired < m.workers {
			select {
			case m.work <- s:
				continue
			default: // all of them are busy
				hired++
				m.running.Go(m.worker)
			}
		}
		select {
		case m.work <- s:
			continue
		case <-m.ctx.Done():
		case <-m.stop:
		case <-m.failed:
		}
		m.skip(s)
		return
	}
}

// ended reports whether nothing more may be started. A select alone would
// choose at random when there is room as well.
func (m *mapping[T, R]) ended() bool {
	select {
	case <-m.ctx.Done():
	case <-m.stop:
	case <-m.failed:
	default:
		return false
	}
	return true
}

func (m *mapping[T, R]) worker() {
	for s := range m.work {
		if m.ended() { // while the task waited for this worker
			m.skip(s)
			continue
		}
		m.finish(s)
	}
}

func (m *mapping[T, R]) skip(s *slot[T, R]) {
	m.unstarted.Store(true)
	s.err = errSkipped
	close(s.ready)
}

func (m *mapping[T, R]) finish(s *slot[T, R]) {
	defer close(s.ready)
	defer m.recovered()
	s.err = errSkipped // stands when do panics
	s.result, s.err = m.do(m.ctx, s.task)
	if s.err != nil {
		m.failOnce.Do(func() { close(m.failed) })
	}
}

// recovered keeps a panic for the owner and ends the work.
func (m *mapping[T, R]) recovered() {
	if v := recover(); v != nil {
		m.panicked.CompareAndSwap(nil, &panicValue{v, debug.Stack()})
		m.failOnce.Do(func() { close(m.failed) })
	}
}

func (m *mapping[T, R]) rethrow() {
	if p := m.panicked.Load(); p != nil {
		panic(p.String())
	}
}

// cutShort is why not every task was finished; nil when all were. It is called
// once order is closed and drained.
func (m *mapping[T, R]) cutShort(ctx context.Context) error {
	if ctx.Err() != nil && (m.unstarted.Load() || m.anyFailed()) {
		return context.Cause(ctx)
	}
	if m.unstarted.Load() {
		return ErrStopped
	}
	return nil
}

func (m *mapping[T, R]) anyFailed() bool {
	select {
	case <-m.failed:
		return true
	default:
		return false
	}
}

func (p *panicValue) String() string {
	return fmt.Sprintf("%v\n\nin a goroutine of internal/par:\n%s", p.value, p.stack)
}

// Go runs f in a goroutine of its own and returns what ends it: stop cancels
// f's context and waits until f has returned. It may be called more than once.
// A panic of f comes out of stop.
func Go(ctx context.Context, f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	var panicked *panicValue
	running.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				panicked = &panicValue{v, debug.Stack()}
			}
		}()
		f(ctx)
	})
	return func() {
		cancel()
		running.Wait()
		if panicked != nil {
			panic(panicked.String())
		}
	}
}
