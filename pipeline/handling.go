package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"evalrun/internal/par"
)

// handlerTime is how long a handler may take where its Caller does not say.
const handlerTime = 30 * time.Second

// handling is the context of one handler. It is over when the time for the
// handler is. The time begins when the handler first looks: one that never does
// pays for no timer. It stands still while the handler waits for its turn, or for
// a person, so its end is not known beforehand.
type handling struct {
	context.Context // of the call
	most            time.Duration
	now             func() time.Time

	mu    sync.Mutex
	timed context.Context // nil until the handler looks
	watch *par.Stopwatch
}

// tooSlow is why a handler's context ended.
type tooSlow struct{ most time.Duration }

func (t tooSlow) Error() string        { return fmt.Sprintf("it took longer than %s", t.most) }
func (t tooSlow) Is(target error) bool { return target == context.DeadlineExceeded }

func (h *handling) look() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timed == nil {
		h.timed, h.watch = par.Timed(h.Context, h.most, tooSlow{h.most}, h.now)
		h.timed = pausable(h.timed, h.watch.Pause)
	}
	return h.timed
}

// pause stops the handler's time alone, not that of the call.
func (h *handling) pause() (resume func()) {
	h.look()
	return h.watch.Pause()
}

func (h *handling) Done() <-chan struct{} { return h.look().Done() }
func (h *handling) Err() error            { return h.look().Err() }

// Value leads to the context that Done is of, once there is one: contexts made of
// this one then end with it by themselves.
func (h *handling) Value(key any) any {
	if _, pauses := key.(pauseKey); pauses {
		return h.look().Value(key)
	}
	h.mu.Lock()
	inner := h.timed
	h.mu.Unlock()
	if inner == nil {
		inner = h.Context
	}
	return inner.Value(key)
}

// handlings gives each handler of a call a context, one after the other. Those
// that nobody looked at are used again, so that a handler costs no allocation.
type handlings struct {
	first handling
	now   *handling
}

// begin returns the context of the next handler.
func (k *handlings) begin(ctx context.Context, c *Caller) context.Context {
	switch {
	case k.now == nil:
		k.now = &k.first
	case k.now.looked():
		k.now = new(handling)
	}
	k.now.Context, k.now.most, k.now.now = ctx, c.HandlerTime, c.Now
	if k.now.most == 0 {
		k.now.most = handlerTime
	}
	return k.now
}

func (h *handling) looked() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.timed != nil
}

// end ends the handler's context. A handler that was at work when its time, or
// that of the call, was over has failed itself: it is not the model that was slow.
func (k *handlings) end(err error) error {
	h := k.now
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timed == nil {
		return err
	}
	defer h.watch.Stop()
	_, fatal := errors.AsType[*Fatal](err)
	switch {
	case err == nil || fatal:
		return err
	case timeOver(h.Context):
		return errors.New("it was still at work when the time for the call was over")
	case ended(err) && h.Context.Err() == nil && h.timed.Err() != nil:
		return context.Cause(h.timed)
	}
	return err
}

// ended reports whether an error says that a context ended.
func ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
