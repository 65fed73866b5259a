package harness

import (
	"cmp"
	"context"
	"fmt"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/replay/journal"
)

// Estimate is about what a run has still to ask of a candidate's model. Tokens are
// taken to be four bytes long; replies to be as long as the recorded answers, or as
// the recorded calls say. Only the first request of a call counts.
type Estimate struct {
	Candidate    string   `json:"candidate"`
	Model        string   `json:"model"` // as the run calls it
	Calls        int      `json:"calls"`
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	Cost         *float64 `json:"cost,omitzero"`    // nil: no price is known
	Seconds      *float64 `json:"seconds,omitzero"` // one call's, as recorded; nil when the records do not say
}

// sampled is how many rows an estimate looks at.
const sampled = 100

// Estimate estimates each candidate's part, from the real requests of some rows
// spread over all. Models whose replies can be had again at any time are left out.
// Nothing is asked, and nothing written; plugins run.
func (r *Run) Estimate(ctx context.Context) ([]Estimate, error) {
	j, err := r.known()
	if err != nil {
		return nil, err
	}
	defer j.Close()
	var list []Estimate
	for _, c := range r.plans {
		for k := range c.plan.Candidates {
			if cand := &c.plan.Candidates[k]; cand.Recorded || cand.Caller.LM.Deterministic {
				continue
			}
			e, err := c.estimate(ctx, j, k)
			if err != nil {
				return nil, err
			}
			list = append(list, e)
		}
	}
	return list, nil
}

func (c *Checked) estimate(ctx context.Context, j *journal.Journal, candidate int) (Estimate, error) {
	cand := &c.plan.Candidates[candidate]
	e := Estimate{Candidate: c.plan.title(cand), Model: cmp.Or(cand.Model.Name, cand.Caller.LM.Name)}
	rows := c.plan.Rows.Len()
	step := max(1, rows/sampled)
	var looked, calls, timed int
	var input, output int64
	var seconds float64
	for at := 0; at < rows; at += step {
		looked++
		req, n, err := c.toAsk(ctx, j, at, candidate)
		if err != nil {
			return e, err
		}
		if n == 0 {
			continue
		}
		row, err := c.plan.Rows.At(at)
		if err != nil {
			return e, fmt.Errorf("%w: %w", ErrRows, err)
		}
		calls += n
		input += int64(n) * int64(req.Size()) / 4
		output += int64(n) * replyTokens(&row)
		if s, ok := row.Meta["seconds"].AsFloat(); ok && s > 0 {
			seconds += s
			timed++
		}
	}
	if looked == 0 {
		return e, nil
	}
	of := func(n int64) int64 { return n * int64(rows) / int64(looked) }
	e.Calls, e.InputTokens, e.OutputTokens = int(of(int64(calls))), of(input), of(output)
	e.Cost = cand.Caller.LM.Price.Cost(pipeline.Usage{Input: &e.InputTokens, Output: &e.OutputTokens})
	if timed > 0 {
		mean := seconds / float64(timed)
		e.Seconds = &mean
	}
	return e, nil
}

// replyTokens is about how long a reply to a row is.
func replyTokens(row *datasets.Row) int64 {
	if n, ok := row.Meta["usage"].Member("output_tokens").AsInt(); ok && n >= 0 {
		return n
	}
	outputs := row.Recorded
	if outputs == nil {
		outputs = row.Labels
	}
	return int64(len(outputs.Object().JSON()))/4 + 1
}
