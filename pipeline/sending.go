package pipeline

import "context"

// Sent is a request that was sent, with its tries, as a journal knows of it later.
type Sent struct {
	Site      Site   // of it: Try, Inside and Purpose
	Model     string // as the run calls it
	Size      int64  // bytes of the canonical request
	MaxTokens *int64 // most output tokens that it stated; nil for none

	Failed []Attempt // tries that failed, in order, the last one too when nothing came of it
	Reply  *Reply    // what was answered; nil when nothing was
	Doubt  bool      // nobody knows what became of the last try: it may have been answered
}

// sendingKey is the key under which a context has who is told of what is sent.
type sendingKey struct{}

// Sending says that a request is about to be sent, after these tries of it have
// failed. It returns once whoever is told has written that down, since from then
// on nobody can know whether it was answered. An error, a *Fatal, means that the
// request is not to be sent.
func Sending(ctx context.Context, failed []Attempt) error {
	if told, ok := ctx.Value(sendingKey{}).(func([]Attempt) error); ok {
		return told(failed)
	}
	return nil
}

// WithSending has told hear of each request that is sent under the context.
func WithSending(ctx context.Context, told func(failed []Attempt) error) context.Context {
	return context.WithValue(ctx, sendingKey{}, told)
}
