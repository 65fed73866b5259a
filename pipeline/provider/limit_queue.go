package provider

import (
	"context"
	"time"
)

// queue holds who waits for a turn, in the order they came.
type queue struct{ first, last *waiter }

// waiter is a request that waits. All but wake belongs to the limiter's lock.
type waiter struct {
	tokens     float64
	until      time.Time     // when to look again; zero is when woken
	wake       chan struct{} // has room for one
	gone       bool          // it may go, or hears why not
	permit     permit
	err        error
	prev, next *waiter
}

func (q *queue) add(w *waiter) {
	if q.first == nil {
		q.first, q.last = w, w
		return
	}
	w.prev, q.last.next = q.last, w
	q.last = w
}

func (q *queue) remove(w *waiter) {
	if w.prev == nil {
		q.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
}

// rouse wakes the waiter.
func (w *waiter) rouse() {
	select {
	case w.wake <- struct{}{}:
	default: // it was woken already and has not looked yet
	}
}

// wait returns when the waiter is woken, when it is to look again, and when ctx
// ends or nothing more is to be sent.
func (w *waiter) wait(ctx context.Context, stop <-chan struct{}, now, until time.Time) {
	if !until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, until.Sub(now))
		defer cancel()
	}
	select {
	case <-w.wake:
	case <-stop:
	case <-ctx.Done():
	}
}
