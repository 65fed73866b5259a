package harness

import (
	"context"
	"iter"

	"evalrun/internal/par"
)

// Task is one answer to get: positions in the plan's rows and candidates, and
// which of the repeats, from 0.
type Task struct{ Row, Candidate, Repeat int }

// Job is work an executor is given: what to do with a task.
type Job struct {
	// Ref names the stored plan, from which a worker elsewhere can make Do
	// again; "" when there is none.
	Ref string

	// Do gets and scores one answer. A failed answer is a Result, and so is one
	// that is unfinished. An error means that there is no result: ctx ended, or
	// the run cannot go on.
	Do func(context.Context, Task) (Result, error)

	// Stop, once closed, means: start no further task. May be nil.
	Stop <-chan struct{}
}

// Executor does a job's tasks, wherever. It yields the results in the order of
// the tasks. When it is stopped, or ctx ends, or a task returns an error, it
// yields what was finished first, in order, and then one last pair with the
// error.
type Executor interface {
	Execute(context.Context, Job, iter.Seq[Task]) iter.Seq2[Result, error]
}

// Local executes tasks in this process.
type Local struct {
	Workers int // tasks at once; 0 means DefaultWorkers
	Window  int // results held while an earlier one is awaited; 0 means 1024
}

// DefaultWorkers is how many tasks a Local that states nothing has at once.
const DefaultWorkers = 16

// Execute does the tasks, Workers at once.
func (l Local) Execute(ctx context.Context, job Job, tasks iter.Seq[Task]) iter.Seq2[Result, error] {
	if l.Workers == 0 {
		l.Workers = DefaultWorkers
	}
	return par.Map(ctx, tasks, par.Limits{Workers: l.Workers, Window: l.Window, Stop: job.Stop}, job.Do)
}

// ErrStopped is the error of an evaluation that was stopped before every task
// was started.
var ErrStopped = par.ErrStopped
