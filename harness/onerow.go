package harness

import (
	"context"
	"slices"

	"evalrun/pipeline"
)

// AskRow asks candidates about one row of the plan, all repeats of it, and scores
// the answers. Nothing is kept of it. The row and the candidates are given by
// their positions in the plan.
func (c *Checked) AskRow(ctx context.Context, row int, candidates ...int) ([]Result, error) {
	w := c.worker(Options{})
	var results []Result
	for _, candidate := range candidates {
		for repeat := range c.plan.repeats() {
			r, err := w.do(ctx, Task{row, candidate, repeat})
			if err != nil {
				return results, err
			}
			results = append(results, r)
		}
	}
	return results, nil
}

// FirstRequest is the first request that a candidate would make about a row, as
// its plugins leave it. No model is asked. There is a Failure instead when the
// call would end before it asked anything.
func (c *Checked) FirstRequest(ctx context.Context, row, candidate int) (*pipeline.Request, *pipeline.Failure, error) {
	muted := *c
	muted.plan.Candidates, muted.plan.Metrics = slices.Clone(c.plan.Candidates), nil
	cand := &muted.plan.Candidates[candidate]
	caller := *cand.Caller
	caller.Retries, caller.LM.Model = 0, mute{}
	if lookup := caller.Lookup; lookup != nil {
		caller.Lookup = func(name string) (pipeline.LM, error) {
			lm, err := lookup(name)
			lm.Model = mute{}
			return lm, err
		}
	}
	cand.Caller = &caller
	r, err := muted.worker(Options{}).do(ctx, Task{Row: row, Candidate: candidate})
	if err != nil {
		return nil, nil, err
	}
	if len(r.call.Exchanges) == 0 {
		return nil, r.call.Failure, nil
	}
	return r.call.Exchanges[0].Request, nil, nil
}

// mute is a model that answers nothing.
type mute struct{}

func (mute) Generate(context.Context, *pipeline.Request) (*pipeline.Reply, error) {
	return nil, pipeline.Failf(pipeline.TypeCancelled, "not-asked", "the model is not asked")
}
