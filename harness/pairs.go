package harness

import (
	"context"
	"sync"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// pairs share the baseline's answers with the judges that compare others with
// them. Whoever needs an answer first gets it, and the others wait for that one.
type pairs struct {
	mu      sync.Mutex
	answers map[Task]*sharedAnswer
}

type sharedAnswer struct {
	once sync.Once
	r    Result
	call *pipeline.Call
	err  error
	left int // tasks that may still look at it
}

// of is the answer to a task of the baseline; n tasks may look at it, and say when
// they are done.
func (p *pairs) of(t Task, n int) *sharedAnswer {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.answers[t]
	if a == nil {
		if p.answers == nil {
			p.answers = map[Task]*sharedAnswer{}
		}
		a = &sharedAnswer{left: n}
		p.answers[t] = a
	}
	return a
}

// done lets go of an answer that nobody else will look at.
func (p *pairs) done(t Task, n int) {
	a := p.of(t, n)
	p.mu.Lock()
	defer p.mu.Unlock()
	if a.left--; a.left == 0 {
		delete(p.answers, t)
	}
}

// baselineTask is the task of the baseline that others are compared with.
func (w *worker) baselineTask(t Task) Task {
	for i := range w.plan.Candidates {
		if w.plan.Candidates[i].Name == w.plan.baseline() {
			t.Candidate = i
		}
	}
	return t
}

// answered gets the answer to a task, or waits for whoever gets it.
func (w *worker) answered(ctx context.Context, t Task, row *datasets.Row) (Result, *pipeline.Call, error) {
	if w.pairs == nil || t != w.baselineTask(t) {
		return w.ask(ctx, t, row)
	}
	a := w.pairs.of(t, len(w.plan.Candidates))
	a.once.Do(func() { a.r, a.call, a.err = w.ask(ctx, t, row) })
	return a.r, a.call, a.err
}

// against is the baseline's call that a task's answer is compared with; nil when
// it has no answer.
func (w *worker) against(ctx context.Context, t Task, row *datasets.Row) (*pipeline.Call, error) {
	if w.pairs == nil {
		return nil, nil
	}
	r, call, err := w.answered(ctx, w.baselineTask(t), row)
	if err != nil || r.Failed != nil {
		return nil, err
	}
	return call, nil
}
