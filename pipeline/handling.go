package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// handlerTime is how long a handler may take where its Caller does not say.
const handlerTime = 30 * time.Second

// handling is the context of one handler. It is over when the time for the
// handler is. The time begins when the handler first looks: one that never does
// pays for no timer.
type handling struct {
	context.Context // of the call
	most            time.Duration

	mu     sync.Mutex
	timed  context.Context // nil until the handler looks
	cancel context.CancelFunc
}

func (h *handling) look() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timed == nil {
		h.timed, h.cancel = context.WithTimeoutCause(h.Context, h.most, fmt.Errorf("it took longer than %s", h.most))
	}
	return h.timed
}

func (h *handling) Deadline() (time.Time, bool) { return h.look().Deadline() }
func (h *handling) Done() <-chan struct{}       { return h.look().Done() }
func (h *handling) Err() error                  { return h.look().Err() }

// Value leads to the context that Done is of, once there is one: contexts made of
// this one then end with it by themselves.
func (h *handling) Value(key any) any {
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
func (k *handlings) begin(ctx context.Context, most time.Duration) context.Context {
	switch {
	case k.now == nil:
		k.now = &k.first
	case k.now.looked():
		k.now = new(handling)
	}
	if most == 0 {
		most = handlerTime
	}
	k.now.Context, k.now.most = ctx, most
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
	defer h.cancel()
	_, fatal := errors.AsType[*Fatal](err)
	switch {
	case err == nil || fatal:
		return err
	case timeOver(h.Context):
		return errors.New("it was still at work when the time for the call was over")
	case errors.Is(err, context.DeadlineExceeded) && h.Context.Err() == nil && h.timed.Err() != nil:
		return context.Cause(h.timed)
	}
	return err
}
