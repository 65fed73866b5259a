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
// the call is made up from the row: it has the recorded outputs and steps and no
// exchanges, and no program when the candidate has none.
//
// An error means that this row could not be scored. It ends no run: the row has
// no score of this metric, says why, and counts 0. What the candidate cannot help
// decides nothing: verdicts are without the row, and where that is more than one
// row in ten there is none.
type Metric interface {
	Name() string // unique among the metrics of a plan
	Score(ctx context.Context, row datasets.Row, call *pipeline.Call) (Score, error)
}

// Directed is a [Metric] that may say that less of it is better, as of seconds.
// Its scores, means and differences stay what they are; decisions, the words of
// reports and the counts of the added layer are turned round. A row without a
// score, whose 0 would be the best there is, is left out of that layer.
type Directed interface {
	Metric
	LowerIsBetter() bool
}

// Effort is a [Metric] of what an answer took, not of what it says. The harness
// asks ScoreEffort in place of Score: only the result knows cost and the time on
// the wire, of the calls made inside as well.
type Effort interface {
	Metric
	ScoreEffort(row datasets.Row, took *Result) (Score, error)
}

// Timed is an [Effort] that the clock measures: how a service was doing at the time
// is in its scores. Answers that were asked for at other times, those of a cache or of
// another run, are not compared with answers of this run.
type Timed interface {
	Effort
	Timed() bool
}

// Measuring is a [Metric] whose scores are amounts of something, as seconds are. A
// margin, which is of scores from 0 to 1, is not for it.
type Measuring interface {
	Metric
	Unit() string // as it follows a number: s, USD, tokens; "" when there is none
}

// Classifier is a [Metric] whose answers fall in classes. The harness counts, for
// each candidate, which class was answered where which was right: see
// [Classification].
type Classifier interface {
	Metric

	// Class names the class that is right for the row, "" when it is not known,
	// and the one that the call answered, "" for none. call is nil when there is
	// no answer.
	Class(row datasets.Row, call *pipeline.Call) (expected, predicted string)
}

// lowerIsBetter reports whether less of a metric is better.
func lowerIsBetter(m Metric) bool {
	d, ok := m.(Directed)
	return ok && d.LowerIsBetter()
}

// timed reports whether the clock measures a metric.
func timed(m Metric) bool {
	d, ok := m.(Timed)
	return ok && d.Timed()
}

// unit is what a metric's scores are amounts of; "" when that is nothing.
func unit(m Metric) string {
	u, ok := m.(Measuring)
	if !ok {
		return ""
	}
	return u.Unit()
}

// Score is what a metric gives a row: a finite number, or a reason why there is
// none.
type Score struct {
	Value    float64
	Missing  string // not "": there is no value, for this reason; the row counts 0
	Feedback string // what a person or an optimizer can learn from the answer; "" for none
}
