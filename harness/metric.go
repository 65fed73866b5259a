package harness

import (
	"context"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// Metric scores the answer to a row. Implementations are safe for concurrent
// use.
//
// A metric is asked only about calls that have an answer. In the recorded lane
// the call is made up from the row: it has the recorded outputs and no
// exchanges, and no program when the candidate has none.
//
// An error means that this row could not be scored. It ends no run: the row has
// no score of this metric, says why, and counts 0.
type Metric interface {
	Name() string // unique among the metrics of a plan
	Score(ctx context.Context, row datasets.Row, call *pipeline.Call) (Score, error)
}

// Score is what a metric gives a row: a finite number, or a reason why there is
// none.
type Score struct {
	Value    float64
	Missing  string // not "": there is no value, for this reason; the row counts 0
	Feedback string // what a person or an optimizer can learn from the answer; "" for none
}
