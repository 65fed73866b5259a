package harness

import (
	"fmt"
	"slices"

	"evalrun/datasets"
	"evalrun/harness/stats"
)

// Checked is a plan that was found fit to be carried out.
type Checked struct {
	plan     Plan
	rows     RowCounts
	answer   string    // the answer's name; "" when no candidate has a program
	outputs  []string  // by candidate: hash of its recorded outputs, when they are not the rows' own
	same     *Fidelity // nil when nothing was compared
	judges   judges
	warnings []string
}

// Plan is the plan that was checked.
func (c *Checked) Plan() Plan { return c.plan }

// Rows says how many rows there are, and their fingerprint.
func (c *Checked) Rows() RowCounts { return c.rows }

// Tasks is how many answers the plan takes.
func (c *Checked) Tasks() int {
	return c.plan.Rows.Len() * len(c.plan.Candidates) * c.plan.repeats()
}

// Fidelity says whether the baseline sends what was recorded; nil when it is not
// asked, or no recorded call is known.
func (c *Checked) Fidelity() *Fidelity { return c.same }

// Warnings are doubts about the plan.
func (c *Checked) Warnings() []string { return slices.Clone(c.warnings) }

// Check refuses a plan that cannot be carried out, before anything is asked. The
// error names evaluation, candidate and field, and is an [ErrPlan], [ErrRows],
// [ErrNoRows] or [ErrLedger]. Check reads every row once.
func Check(p Plan) (*Checked, error) {
	c := &Checked{plan: p, warnings: slices.Clone(p.Intake.Warnings)}
	where := p.where()
	for _, check := range []struct {
		kind error
		do   func() error
	}{
		{ErrPlan, c.addAA},
		{ErrPlan, c.checkCandidates},
		{ErrPlan, c.checkCompare},
		{ErrPlan, c.checkMetrics},
		{ErrPlan, c.checkJudges},
		{ErrNoRows, c.checkAnyRow},
		{ErrLedger, c.checkIntake},
	} {
		if err := check.do(); err != nil {
			return nil, fmt.Errorf("%w: %s%w", check.kind, where, err)
		}
	}
	if kind, err := c.checkRows(); err != nil {
		return nil, fmt.Errorf("%w: %s%w", kind, where, err)
	}
	var err error
	if c.same, err = c.fidelity(); err != nil {
		return nil, fmt.Errorf("%w: %s%w", ErrRows, where, err)
	}
	c.warnings = append(c.warnings, c.plan.idlePlugins()...)
	return c, nil
}

func (c *Checked) checkCandidates() error {
	p := &c.plan
	if len(p.Candidates) == 0 {
		return fmt.Errorf("it has no candidates: name at least one")
	}
	var names []string
	first := "" // the candidate that named the answer
	for i := range p.Candidates {
		cand := &p.Candidates[i]
		switch {
		case cand.Name == "":
			return fmt.Errorf("candidate %d has no name", i+1)
		case slices.Contains(names, cand.Name):
			return fmt.Errorf("two candidates are called %s: give each a name of its own", cand.Name)
		}
		names = append(names, cand.Name)
		if err := cand.check(); err != nil {
			return fmt.Errorf("candidate %s %w", cand.Name, err)
		}
		if cand.Program != nil {
			switch answer := cand.Program.Answer(); {
			case c.answer == "":
				c.answer, first = answer, cand.Name
			case answer != c.answer:
				return fmt.Errorf("candidate %s answers with %q, candidate %s with %q: candidates that are compared name the same answer, the last output", cand.Name, answer, first, c.answer)
			}
		}
	}
	if p.Baseline != "" && !slices.Contains(names, p.Baseline) {
		return fmt.Errorf("the baseline %s is no candidate%s", p.Baseline, didYouMean(p.Baseline, names))
	}
	if p.Repeats < 0 || p.Repeats > maxRepeats {
		return fmt.Errorf("%d repeats: give from 1 to %d", p.Repeats, maxRepeats)
	}
	if _, err := stats.Paired(nil, nil, p.Stats); err != nil {
		return err
	}
	return nil
}

// maxRepeats is far beyond what anyone asks for; a count of answers stays a count.
const maxRepeats = 1_000_000

func (cand *Candidate) check() error {
	if cand.Recorded {
		if cand.Caller != nil {
			return fmt.Errorf("is the recorded lane, which asks nothing, and has a caller: leave one of the two out")
		}
		return nil
	}
	switch c := cand.Caller; {
	case cand.Outputs != nil:
		return fmt.Errorf("has recorded outputs and is not the recorded lane: leave one of the two out")
	case cand.Program == nil:
		return fmt.Errorf("has no program")
	case c == nil:
		return fmt.Errorf("has nothing to ask its program with: give it a model, or make it the recorded lane")
	case c.LM.Model == nil:
		return fmt.Errorf("has no model")
	case c.Now == nil || c.NewID == nil:
		return fmt.Errorf("has a caller without a clock or a source of ids")
	case !cand.Recorded && cand.Caller != nil && cand.Caller.LM.Price != nil && !cand.Caller.LM.Price.Sane():
		return fmt.Errorf("has a price of %v and %v for a million tokens: give numbers from 0 to a million", cand.Caller.LM.Price.Input, cand.Caller.LM.Price.Output)
	}
	caller := *cand.Caller
	caller.Tools = cand.Tools.For(&datasets.Row{}, caller.Tools)
	if err := caller.Check(cand.Program); err != nil {
		return fmt.Errorf("cannot be asked: %w", err)
	}
	return cand.checkTools()
}

func (c *Checked) checkMetrics() error {
	var names []string
	for _, m := range c.plan.Metrics {
		name := m.Name()
		switch {
		case name == "":
			return fmt.Errorf("metric %d has no name", len(names)+1)
		case slices.Contains(names, name):
			return fmt.Errorf("two metrics are called %s: give each a name of its own", name)
		}
		names = append(names, name)
	}
	return nil
}

func (c *Checked) checkAnyRow() error {
	if c.plan.Rows != nil && c.plan.Rows.Len() > 0 {
		return nil
	}
	if left := c.plan.Intake.LeftOut; total(left) > 0 {
		return fmt.Errorf("there are no rows: all %d were left out (%s)", total(left), reasons(left))
	}
	return fmt.Errorf("there are no rows: see the records, the program's name and the filters")
}

func (c *Checked) checkIntake() error {
	c.rows = c.plan.rowCounts("")
	if c.rows.Input != c.rows.Asked+total(c.rows.LeftOut) {
		return fmt.Errorf("%d rows were read, %d of them are asked and %d left out", c.rows.Input, c.rows.Asked, total(c.rows.LeftOut))
	}
	return nil
}
