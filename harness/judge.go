package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"evalrun/datasets"
	"evalrun/harness/stats"
	"evalrun/pipeline"
)

// Judge is a [Metric] whose scores a model gives. The harness asks Verdict in place
// of Score, and has it ask through a copy of its Caller: in a run, exchanges are
// journaled, calls are written beside those of candidates, and what they took is
// booked apart.
type Judge interface {
	Metric
	JudgeFacts() JudgeFacts
	Caller() *pipeline.Caller

	// Verdict judges an answer. A model that gave no usable verdict is a score that
	// is missing; an error means that ctx ended, or that the run cannot go on.
	Verdict(ctx context.Context, j *Judging) (Verdict, error)
}

// JudgeFacts say what a judge is, in manifests and reports.
type JudgeFacts struct {
	Metric         string      `json:"metric"`
	Mode           string      `json:"mode"` // JudgePointwise or JudgePairwise
	Model          ModelRef    `json:"model"`
	Program        string      `json:"program"`
	ProgramVersion string      `json:"program_version"` // of all that it sends, the rubric included
	Plugins        []PluginRef `json:"plugins,omitempty"`
	Verdicts       []string    `json:"verdicts"`           // the menu
	Right          []string    `json:"right,omitempty"`    // of them, those that say what a person's "right" does; pointwise
	Calibrate      bool        `json:"calibrate,omitzero"` // it judges the rated answers too
	Repeats        int         `json:"repeats"`            // how often it looks at each answer
	MinAgreement   float64     `json:"min_agreement"`      // the kappa from which its scores may decide
}

// The ways to judge.
const (
	JudgePointwise = "pointwise" // an answer by itself
	JudgePairwise  = "pairwise"  // against the baseline's answer to the same row, in both orders
)

// What a pairwise judge's verdicts say of the answer: it is better than the
// baseline's, worse, or neither.
const (
	VerdictBetter = "better"
	VerdictWorse  = "worse"
	VerdictTie    = "tie"
)

// Judging is an answer before a judge.
type Judging struct {
	Row     datasets.Row
	Call    *pipeline.Call // whose answer is judged; the recorded lane's is made up
	Against *pipeline.Call // of a pairwise judge: the baseline's call; nil when that has no answer

	// Ask asks the judge's program, and keeps the call. Draw tells apart what is
	// asked several times of one answer. What differs in anything that a verdict
	// depends on is asked at a place of its own.
	Ask func(ctx context.Context, p *pipeline.Program, inputs datasets.Values, draw int) (*pipeline.Call, error)
}

// Verdict is what a judge said.
type Verdict struct {
	Score
	Word    string       // of the menu; "" when there is no verdict
	Missing string       // why there is none, in a word: refused, truncated, off_menu, unreadable, timeout, …
	Orders  stats.Orders // of a pairwise judge that asked
}

// Judged is a verdict at rest, and what it took.
type Judged struct {
	Metric   string
	Rated    bool   // of the recorded answer, to compare the judge with people: it is no answer of the candidate's
	Person   string // what people said of that very answer: "right" or "wrong"; "" for all others
	Verdict  string // of the judge's menu; "" when there is none
	Missing  string // why there is none: see [Verdict]
	Orders   stats.Orders
	Requests int            // that the judge's model answered
	Usage    pipeline.Usage // of these
	Cost     *float64       // of these; nil when it is not known of all
}

// ClassJudge is the class of an answer that only judges gave no score to. Class
// and type of what is said in Failed.
const (
	ClassJudge = "judge"
	TypeJudge  = "JudgeError"
)

// TrendOnly is the decision on a metric whose judge was not found to agree with
// people: there is none, whatever the numbers say.
const TrendOnly stats.Decision = "trend-only"

// judges are the plan's judges' callers, by the position of their metric.
type judges map[int]*pipeline.Caller

func (p *Plan) judges() judges {
	callers := judges{}
	for i, m := range p.Metrics {
		if j, ok := m.(Judge); ok {
			callers[i] = j.Caller()
		}
	}
	return callers
}

// judgeFacts are of the plan's judges, in order.
func (p *Plan) judgeFacts() []JudgeFacts {
	var facts []JudgeFacts
	for _, m := range p.Metrics {
		if j, ok := m.(Judge); ok {
			f := j.JudgeFacts()
			f.Metric, f.Repeats = m.Name(), max(1, f.Repeats)
			facts = append(facts, f)
		}
	}
	return facts
}

// calibrated reports whether the metric is a judge's that is compared with people.
func (p *Plan) calibrated(metric string) bool {
	return slices.ContainsFunc(p.judgeFacts(), func(f JudgeFacts) bool { return f.Metric == metric && f.Calibrate })
}

// checkJudges refuses judges that cannot be asked.
func (c *Checked) checkJudges() error {
	c.judges = c.plan.judges()
	for i, caller := range c.judges {
		name := c.plan.Metrics[i].Name()
		switch {
		case caller == nil || caller.LM.Model == nil:
			return fmt.Errorf("the judge %s has no model", name)
		case caller.Now == nil || caller.NewID == nil:
			return fmt.Errorf("the judge %s has a caller without a clock or a source of ids", name)
		}
	}
	for _, f := range c.plan.judgeFacts() {
		if f.Calibrate && f.Mode == JudgePairwise {
			return fmt.Errorf("the judge %s compares two answers, and people rated single ones: it cannot be calibrated; judge pointwise, or leave calibrate out", f.Metric)
		}
	}
	return nil
}

// JudgeCalls is how many calls a judge makes at most.
type JudgeCalls struct {
	JudgeFacts
	Calls int
}

// JudgeCalls says of each judge of the plan how many calls it makes at most: fewer
// when answers fail, and of a pairwise one, when they equal the baseline's.
func (c *Checked) JudgeCalls() []JudgeCalls {
	rows, candidates, rated := c.plan.Rows.Len(), len(c.plan.Candidates), 1
	for i := range c.plan.Candidates {
		if cand := &c.plan.Candidates[i]; cand.Recorded && cand.Outputs == nil {
			rated = 0 // its answers are the rated ones
		}
	}
	var list []JudgeCalls
	for _, f := range c.plan.judgeFacts() {
		n := rows * c.plan.repeats() * candidates
		switch {
		case f.Mode == JudgePairwise:
			n = 2 * rows * c.plan.repeats() * (candidates - 1)
		case f.Calibrate:
			n += rated * rows
		}
		list = append(list, JudgeCalls{f, n * f.Repeats})
	}
	return list
}

// pairwise reports whether some judge looks at the baseline's answers.
func (c *Checked) pairwise() bool {
	return slices.ContainsFunc(c.plan.judgeFacts(), func(f JudgeFacts) bool { return f.Mode == JudgePairwise })
}

// judge has a judge look at an answer, and keeps what it said and took.
func (w *worker) judge(ctx context.Context, at int, r *Result, j Judging, kept Judged) (Score, error) {
	m := w.plan.Metrics[at].(Judge)
	kept.Metric = m.Name()
	priced := true
	j.Ask = func(ctx context.Context, p *pipeline.Program, inputs datasets.Values, draw int) (*pipeline.Call, error) {
		site, err := w.judgeSite(r, m, p, inputs, draw, kept.Rated)
		if err != nil {
			return nil, err
		}
		call, err := w.judges[at].Ask(ctx, p, pipeline.Ask{Site: site, Inputs: inputs, Tags: w.judgeTags})
		if err != nil {
			return nil, err
		}
		priced = kept.take(call) && priced
		if w.record != nil {
			r.record = append(r.record, w.record(call)...)
		}
		return call, nil
	}
	v, err := m.Verdict(ctx, &j)
	if err != nil {
		return Score{}, err
	}
	kept.Verdict, kept.Missing, kept.Orders = v.Word, v.Missing, v.Orders
	if !priced {
		kept.Cost = nil
	}
	r.Judged = append(r.Judged, kept)
	return v.Score, nil
}

// take books what a call of the judge took; false when some of it has no price.
func (k *Judged) take(call *pipeline.Call) (priced bool) {
	priced = true
	for c := range within(call) {
		for _, x := range c.Exchanges {
			if x.Reply == nil {
				continue
			}
			k.Usage.Add(x.Reply.Usage, k.Requests == 0)
			plus(&k.Cost, x.Cost)
			priced = priced && x.Cost != nil
			k.Requests++
		}
	}
	return priced
}

// judgeSite is where a judge asks. Its path is of all that the verdict depends on:
// another judge, and the same one about another answer, asks anew, and the same
// about the same is answered from the journal.
func (w *worker) judgeSite(r *Result, m Judge, p *pipeline.Program, inputs datasets.Values, draw int, rated bool) (pipeline.Site, error) {
	facts := m.JudgeFacts()
	of, err := datasets.ValueOf(struct {
		Model   ModelRef    `json:"model"`
		Plugins []PluginRef `json:"plugins"`
	}{facts.Model, facts.Plugins})
	if err != nil {
		return pipeline.Site{}, err
	}
	all := datasets.Values{
		"judge": of, "program": datasets.Text(p.Definition().Hash()), "version": datasets.Text(p.Version()), "inputs": inputs.Object(),
	}
	path := []string{m.Name(), strings.TrimPrefix(all.Object().Hash(), "sha256:")[:16], strconv.Itoa(draw)}
	site := pipeline.Site{Candidate: w.plan.title(&Candidate{Name: r.Candidate}), Row: r.Row, Repeat: r.Repeat, Purpose: judgePurpose}
	if rated {
		site.Candidate = w.plan.ratedTitle()
		path = append([]string{"rated"}, path...)
	}
	site.Path = strings.Join(path, "/")
	return site, nil
}

// judgePurpose is the purpose of requests that judges make.
const judgePurpose = "judge"

// ratedName is the name under which judges ask about rated answers: no candidate's.
const ratedName = "(recorded)"

func (p *Plan) ratedTitle() string { return titleOf(p.Name, ratedName) }

// calibrates reports whether a task has the judges look at the row's rated answer:
// that of the recorded lane, whose answer it is, or else the first one of the row.
func (w *worker) calibrates(t Task, row *datasets.Row) bool {
	if !w.calibrate || t.Repeat != 0 || row.Verdict.Verdict == "" {
		return false
	}
	for i := range w.plan.Candidates {
		if cand := &w.plan.Candidates[i]; cand.Recorded && cand.Outputs == nil {
			return t.Candidate == i
		}
	}
	return t.Candidate == 0
}

// calibrateOn has the judges that are calibrated look at the rated answer of a row.
// That of the recorded lane they have judged already.
func (w *worker) calibrateOn(ctx context.Context, r *Result, cand *Candidate, row *datasets.Row) error {
	if cand.Recorded && cand.Outputs == nil {
		for i := range r.Judged {
			if w.plan.calibrated(r.Judged[i].Metric) {
				r.Judged[i].Person = row.Verdict.Verdict
			}
		}
		return nil
	}
	if row.Recorded == nil {
		return nil
	}
	call := &pipeline.Call{Program: cand.Program, Inputs: row.Inputs, Outputs: row.Recorded, Steps: row.Steps}
	for i, m := range w.plan.Metrics {
		if !w.plan.calibrated(m.Name()) {
			continue
		}
		_, err := w.judge(ctx, i, r, Judging{Row: *row, Call: call}, Judged{Rated: true, Person: row.Verdict.Verdict})
		if err = endsRun(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

// endsRun is an error that leaves no result, of one that a metric gave: its
// context ended, or what was answered could not be kept.
func endsRun(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if fatal, ok := errors.AsType[*pipeline.Fatal](err); ok {
		return fatal
	}
	return nil
}
