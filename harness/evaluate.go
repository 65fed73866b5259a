package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"sync/atomic"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/replay/journal"
)

// Options say how a plan is carried out. They change no result.
type Options struct {
	Run      string          // the run's id: every call is tagged with it
	Tags     datasets.Values // more about who calls, for the calls' records: kind, user
	Executor Executor        // nil means Local{}
	Stop     <-chan struct{} // once closed, nothing more is asked; what is at work is finished

	// InFlight bounds the requests of which, when the process is killed, nobody knows
	// whether they were answered; 0 leaves that to the executor, which may do more
	// tasks at once.
	InFlight int

	// Observe is given every result, in the order of the tasks, with its
	// call. The call is nil in the recorded lane, and when the task was done
	// in another process. An error of Observe ends the run.
	Observe func(Result, *pipeline.Call) error

	// TooMany reports whether so many failed rows of a candidate, of those that are
	// asked, make the run hopeless: nothing more is asked then, and when something
	// is unfinished for it, the error is ErrTooMany. nil never does.
	TooMany func(failed, asked int) bool

	Progress *Progress // nil when nobody watches

	// Past is told, before anything is asked, of every request that earlier
	// processes of the run sent, for a budget to count; nil when nobody counts.
	Past func(pipeline.Sent)

	// record writes down a call, and those inside it, where it was made, so that
	// this is done by many at once; the order comes later.
	record func(*pipeline.Call) []byte

	halt *halt // of the run; nil: the evaluation has its own
}

// Progress counts answers as they come, in whatever order. It may be read while
// the run goes on, and watch several evaluations. The zero value is ready.
type Progress struct{ done, failed, total atomic.Int64 }

// Counts returns how many answers have come, how many of them failed or could
// not be scored, and how many there will be.
func (p *Progress) Counts() (done, failed, total int) {
	return int(p.done.Load()), int(p.failed.Load()), int(p.total.Load())
}

func (p *Progress) expect(n int) {
	if p != nil {
		p.total.Add(int64(n))
	}
}

func (p *Progress) count(r *Result) {
	if p == nil {
		return
	}
	p.done.Add(1)
	if r.Failed != nil {
		p.failed.Add(1)
	}
}

// Evaluate checks a plan and carries it out: see [Check] and [Checked.Evaluate].
func Evaluate(ctx context.Context, p Plan, o Options) (*Evaluation, error) {
	c, err := Check(p)
	if err != nil {
		return nil, err
	}
	return c.Evaluate(ctx, o)
}

// Evaluate asks every candidate about every row, scores the answers and compares
// the candidates with the baseline.
//
// Row by row, all candidates are asked before the next row is, so that whatever
// drifts during a run hits all alike. How many tasks are at work at once changes
// no number.
//
// A failed answer is data: it counts 0, and is counted and shown apart. When ctx
// ends, when the run is stopped, and when it cannot go on, what was finished
// comes with the error; rows that were not are unfinished, not failed. Nothing more
// is asked then, and what a run's journal knows is finished all the same. A run in
// which no answer could be scored is an [ErrNoRows].
func (c *Checked) Evaluate(ctx context.Context, o Options) (*Evaluation, error) {
	o.Progress.expect(c.Tasks())
	return c.evaluate(ctx, o)
}

func (c *Checked) evaluate(ctx context.Context, o Options) (*Evaluation, error) {
	t := newTally(c.blank(), c.plan.Stats)
	runErr := c.run(ctx, o, t)
	eval, err := t.finish()
	if runErr != nil {
		return eval, runErr
	}
	if err == nil && !t.anyEvaluated() {
		why := ErrFailed
		if t.onlyOutages() {
			why = ErrOutage
		}
		err = fmt.Errorf("%w: %s%w (%s); the first, to row %s: %s", ErrNoRows, c.plan.where(), why, t.failures(), t.failedRow, t.failedWhy)
	}
	return eval, err
}

// run has the tasks done, and gives every result to the observer and the tally.
func (c *Checked) run(ctx context.Context, o Options, t *tally) error {
	executor := o.Executor
	if executor == nil {
		executor = Local{}
	}
	w := c.worker(o)
	w.calibrate = true
	job := Job{Ref: o.Run, Do: w.do}
	if w.halt.journal == nil {
		job.Stop = o.Stop // nothing is known that would have to be given still
	}
	came, unfinished := 0, 0
	for r, err := range executor.Execute(ctx, job, c.tasks()) {
		if err != nil {
			return err
		}
		if r.Unfinished {
			unfinished++
			continue
		}
		if err := t.check(&r); err != nil {
			return err
		}
		call := r.call
		r.call = nil
		if o.Observe != nil {
			if err := o.Observe(r, call); err != nil {
				return err
			}
		}
		t.add(&r)
		came++
		if failed := t.lane[r.Candidate].failed; o.TooMany != nil && o.TooMany(failed, t.eval.Rows.Asked) {
			w.halt.tooMany(failed, t.eval.Rows.Asked)
		}
	}
	if unfinished > 0 {
		return w.halt.reason()
	}
	if lost := c.Tasks() - came; lost != 0 {
		return fmt.Errorf("%w: %d of %d answers did not come, and nobody said why", ErrLedger, lost, c.Tasks())
	}
	return nil
}

// tasks are the answers to get, the candidates interleaved.
func (c *Checked) tasks() iter.Seq[Task] {
	return func(yield func(Task) bool) {
		for row := range c.plan.Rows.Len() {
			for repeat := range c.plan.repeats() {
				for candidate := range c.plan.Candidates {
					if !yield(Task{row, candidate, repeat}) {
						return
					}
				}
			}
		}
	}
}

// tags say who calls.
func tags(o Options) datasets.Values {
	tags := datasets.Values{"kind": datasets.Text("evaluation")}
	maps.Copy(tags, o.Tags)
	if o.Run != "" {
		tags["evaluation"] = datasets.Text(o.Run)
	}
	return tags
}

// A worker does tasks of a plan. It is safe for concurrent use.
type worker struct {
	*Checked
	tags      datasets.Values
	judgeTags datasets.Values
	progress  *Progress
	record    func(*pipeline.Call) []byte
	halt      *halt
	calibrate bool   // judges look at rated answers as well
	pairs     *pairs // nil when no judge looks at the baseline's answers
}

func (c *Checked) worker(o Options) *worker {
	w := &worker{Checked: c, tags: tags(o), judgeTags: tags(o), progress: o.Progress, record: o.record, halt: o.halt}
	if w.halt == nil {
		w.halt = &halt{stop: o.Stop}
	}
	w.judgeTags["kind"] = datasets.Text(judgePurpose)
	if c.pairwise() {
		w.pairs = &pairs{}
	}
	return w
}

// do gets and scores one answer, unless it is not known when the asking has ended.
func (w *worker) do(ctx context.Context, t Task) (Result, error) {
	if w.pairs != nil {
		defer w.pairs.done(w.baselineTask(t), len(w.plan.Candidates))
	}
	row, err := w.plan.Rows.At(t.Row)
	if err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrRows, err)
	}
	if w.halt.over() && w.unknown(t, row.ID) {
		return Result{Unfinished: true}, nil
	}
	r, err := w.finish(ctx, t, row)
	if h, ok := errors.AsType[*journal.Halted](err); ok && ctx.Err() == nil {
		w.halt.end(h.Why)
		return Result{Unfinished: true}, nil
	}
	if err != nil {
		return Result{}, err
	}
	if r.Failed != nil && r.Failed.Type == pipeline.TypeCancelled && w.halt.over() {
		return Result{Unfinished: true}, nil // it waited to be asked
	}
	w.progress.count(&r)
	return r, nil
}

// finish gets and scores one answer. The row stays here: what is asked is made of
// its id, its inputs and its context.
func (w *worker) finish(ctx context.Context, t Task, row datasets.Row) (Result, error) {
	r, call, err := w.answered(ctx, t, &row)
	if err != nil {
		return Result{}, err
	}
	if r.Failed == nil {
		against, err := w.against(ctx, t, &row)
		if err != nil {
			return Result{}, err
		}
		err = r.score(ctx, w.plan.Metrics, row, call, func(at int) (Score, error) {
			return w.judge(ctx, at, &r, Judging{Row: row, Call: call, Against: against}, Judged{})
		})
		if err != nil {
			return Result{}, err
		}
	}
	if w.calibrates(t, &row) {
		if err := w.calibrateOn(ctx, &r, &w.plan.Candidates[t.Candidate], &row); err != nil {
			return Result{}, err
		}
	}
	r.classify(w.plan.Metrics, row, call)
	return r, nil
}

// candidatePurpose is the purpose of requests that candidates make.
const candidatePurpose = "candidate"

// ask gets one answer, which is not scored yet.
func (w *worker) ask(ctx context.Context, t Task, row *datasets.Row) (Result, *pipeline.Call, error) {
	cand := &w.plan.Candidates[t.Candidate]
	r := Result{Evaluation: w.plan.Name, Row: row.ID, Candidate: cand.Name, Repeat: t.Repeat, Conversation: row.Context.Conversation}
	if w.plan.Pair != "" {
		var err error
		if r.Pair, err = PairKey(row, w.plan.Pair); err != nil {
			return Result{}, nil, fmt.Errorf("%w: %w", ErrRows, err)
		}
	}
	if cand.Recorded {
		call := w.recorded(&r, cand, row)
		return r, call, nil
	}
	notes := &entries{find: w.plan.Entries, row: row}
	ask := pipeline.Ask{
		Site:    pipeline.Site{Candidate: w.plan.title(cand), Row: row.ID, Repeat: t.Repeat, Purpose: candidatePurpose},
		Inputs:  cand.Program.Own(row.Inputs),
		Context: row.Context,
		Tags:    w.tags,
		Notes:   notes,
	}
	tools := cand.answering(row, &ask)
	call, err := cand.Caller.Ask(ctx, cand.Program, ask)
	if err = cmp.Or(notes.err, err); err != nil {
		return Result{}, nil, err
	}
	r.take(call, w.answer)
	r.Transfer = transfer(row, r.Answer, w.answer)
	r.takeTools(tools)
	r.Kept = notes.kept
	if w.record != nil {
		r.record = w.record(call)
	}
	return r, call, nil
}

// recorded makes a call of the row's recorded output, for the metrics to look at.
func (w *worker) recorded(r *Result, cand *Candidate, row *datasets.Row) *pipeline.Call {
	outputs := cand.recordedOutputs(row)
	r.takeOutputs(outputs, w.answer)
	if outputs == nil {
		f := pipeline.Failf(pipeline.TypeNotRecorded, "no-recorded-output", "the row has no recorded output")
		r.Failed = &Failed{Class: f.Class(), Type: f.Type, Code: f.Code, Message: f.Message}
	}
	made := &pipeline.Call{Program: cand.Program, Inputs: row.Inputs, Outputs: outputs}
	if cand.Outputs == nil { // else they are another call's
		made.Steps = row.Steps
	}
	return made
}

// blank is the evaluation before its results.
func (c *Checked) blank() *Evaluation {
	m := c.manifest()
	return m.blank()
}

// facts are what manifests and reports say of the candidate.
func (cand *Candidate) facts() CandidateFacts {
	f := CandidateFacts{Name: cand.Name, Recorded: cand.Recorded, AA: cand.aa, Plugins: cand.Plugins}
	if p := cand.Program; p != nil {
		f.Program, f.ProgramVersion, f.Definition = p.Name(), p.Version(), p.Definition().Hash()
		if p.Module() != "" {
			f.Program = p.Module() + ":" + p.Name()
		}
	}
	if !cand.Recorded {
		model := cand.Model
		if model.Name == "" {
			model.Name = cand.Caller.LM.Name
		}
		f.Model, f.Price = &model, cand.Caller.LM.Price
	}
	return f
}
