package pipeline

import "context"

// Knower is a [Model] that has some replies without asking anybody, such as one
// behind a cache.
type Knower interface {
	// Known is the reply to a request; nil when somebody would have to be asked.
	Known(ctx context.Context, req *Request) (*Reply, error)
}
