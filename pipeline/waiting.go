package pipeline

import (
	"context"
	"errors"
)

// pauseKey is the key under which a context has what stops the time of the calls
// it belongs to.
type pauseKey struct{}

// Waiting says that a call waits for its turn, in a queue or after a failed try,
// and not for an answer: the time it may take stands still until resume is called.
func Waiting(ctx context.Context) (resume func()) {
	if pause, ok := ctx.Value(pauseKey{}).(func() func()); ok {
		return pause()
	}
	return func() {}
}

// pausable makes pause part of what Waiting on ctx does: the times of all calls
// around stand still.
func pausable(ctx context.Context, pause func() func()) context.Context {
	around, ok := ctx.Value(pauseKey{}).(func() func())
	if !ok {
		return context.WithValue(ctx, pauseKey{}, pause)
	}
	return context.WithValue(ctx, pauseKey{}, func() func() {
		own, outer := pause(), around()
		return func() { own(); outer() }
	})
}

// timeOver reports whether ctx ended because a time was over.
func timeOver(ctx context.Context) bool {
	cause := context.Cause(ctx)
	f, ok := errors.AsType[*Failure](cause)
	return ok && f.Type == TypeTimeout || errors.Is(cause, context.DeadlineExceeded)
}
