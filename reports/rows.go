package reports

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"evalrun/datasets"
	"evalrun/harness"
)

// What a page holds at most. A person reads tens of rows, and an answer of a
// megabyte helps nobody; all of it is in the run's folder.
const (
	maxChanged  = 500  // rows that changed, of one candidate
	maxPage     = 3000 // rows that changed, of all candidates together, but for minChanged of each
	minChanged  = 20
	maxAnswers  = 5    // repeats of a row
	maxMessages = 3    // different messages of a class of failures
	maxText     = 4000 // code points of a text
)

// changes are the rows that changed between the baseline and a candidate.
type changes struct {
	Baseline, Candidate string
	Versus              string // what the baseline is, in words
	Better, Worse       int    // rows in all, by the first metric that changed
	Lost                bool   // some of them had an answer that was lost
	Rows                []*changedRow
}

// Total is how many rows changed, shown or not.
func (c *changes) Total() int { return c.Better + c.Worse }

// changedRow is a row that changed, with both answers.
type changedRow struct {
	ID          string
	CandidateID string        // when it is another row
	Scores      []scoreChange // of the metrics that changed
	Inputs      []field       // nil when they are not known
	Before      []answer      // the baseline's, a repeat each
	After       []answer
}

// scoreChange is what became of a row's score.
type scoreChange struct {
	Metric        string
	Before, After float64
	Lower         bool // less is better
}

// by is how much better the row became, by the first metric that changed.
func (c *changedRow) by() float64 {
	s := c.Scores[0]
	if s.Lower {
		return s.Before - s.After
	}
	return s.After - s.Before
}

// Worse reports whether the row got worse, by the first metric that changed.
func (c *changedRow) Worse() bool { return c.by() < 0 }

// Failed reports whether an answer of either side failed.
func (c *changedRow) Failed() bool {
	failed := func(a answer) bool { return a.Failed != nil }
	return slices.ContainsFunc(c.Before, failed) || slices.ContainsFunc(c.After, failed)
}

// answer is one answer as it is shown.
type answer struct {
	Repeat   int    // from 1; 0 when there is only one
	Text     string // "" when there is none
	None     bool   // there is no answer
	Others   []field
	Scores   []harness.Scored
	Failed   *harness.Failed
	Feedback []field // by metric
}

// field is a named text.
type field struct{ Name, Text string }

// failure is what went wrong for a candidate, in one class.
type failure struct {
	Candidate string
	Class     string
	Rows      int
	Messages  []message // the first different ones
}

type message struct{ Row, Text string }

// gather reads the results once, keeps the answers to rows that are shown and
// the first messages of what failed, and then reads the inputs of these rows.
func (r *Report) gather(m *material) error {
	g := gatherer{wanted: map[answerKey][]*[]answer{}, call: map[rowKey]string{}, failures: map[failureKey]*failure{}}
	compared := 0
	for _, e := range r.Evaluations {
		compared += len(e.Candidates) - 1
	}
	g.most = max(minChanged, min(maxChanged, maxPage/max(1, compared)))
	for _, e := range r.Evaluations {
		e.changes = g.choose(e)
		e.failures = nil
		for _, out := range e.Candidates {
			for _, class := range classes(out.Failures) {
				e.failures = append(e.failures, failure{Candidate: out.Name, Class: class, Rows: out.Failures[class]})
			}
		}
		for i := range e.failures {
			f := &e.failures[i]
			g.failures[failureKey{e.Name, f.Candidate, f.Class}] = f
		}
	}
	for res, err := range m.results() {
		if err != nil {
			return err
		}
		g.take(&res)
	}
	return g.fill(r, m)
}

func classes(failures map[string]int) []string {
	var names []string
	for name, n := range failures {
		if n > 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(failures[b], failures[a]), cmp.Compare(a, b))
	})
	return names
}

type (
	answerKey  struct{ evaluation, candidate, row string }
	failureKey struct{ evaluation, candidate, class string }
	rowKey     struct{ evaluation, row string }
)

// A gatherer sorts results into the places that want them.
type gatherer struct {
	most     int // rows of one candidate
	wanted   map[answerKey][]*[]answer
	call     map[rowKey]string // a call that was given the row's inputs
	failures map[failureKey]*failure
}

// choose lists an evaluation's changed rows, candidate by candidate, and notes
// which answers they want.
func (g *gatherer) choose(e *Evaluation) []changes {
	var all []changes
	for _, out := range e.Candidates {
		var (
			c    = changes{Candidate: out.Name, Versus: e.versus()}
			rows []*changedRow
			at   = map[string]*changedRow{}
		)
		for i := range e.Comparisons {
			with := &e.Comparisons[i]
			if with.Candidate != out.Name {
				continue
			}
			c.Baseline = with.Baseline
			c.Lost = c.Lost || with.Lost != nil
			for _, ch := range with.Changed {
				row := at[ch.Row]
				if row == nil {
					row = &changedRow{ID: ch.Row, CandidateID: ch.CandidateRow}
					at[ch.Row] = row
					rows = append(rows, row)
				}
				row.Scores = append(row.Scores, scoreChange{with.Metric, ch.Before, ch.After, with.Lower})
			}
		}
		if c.Baseline == "" { // it is in no comparison
			continue
		}
		for _, row := range rows {
			if row.Worse() {
				c.Worse++
			} else {
				c.Better++
			}
		}
		c.Rows = readable(rows, g.most)
		for _, row := range c.Rows {
			g.want(answerKey{e.Name, c.Baseline, row.ID}, &row.Before)
			g.want(answerKey{e.Name, c.Candidate, cmp.Or(row.CandidateID, row.ID)}, &row.After)
		}
		all = append(all, c)
	}
	return all
}

func (g *gatherer) want(key answerKey, into *[]answer) {
	g.wanted[key] = append(g.wanted[key], into)
}

// readable sorts rows by how far they moved, the largest loss first, and keeps
// both ends when they are too many.
func readable(rows []*changedRow, most int) []*changedRow {
	slices.SortStableFunc(rows, func(a, b *changedRow) int { return cmp.Compare(a.by(), b.by()) })
	if len(rows) <= most {
		return rows
	}
	losses, _ := slices.BinarySearchFunc(rows, 0.0, func(row *changedRow, zero float64) int { return cmp.Compare(row.by(), zero) })
	gains := len(rows) - losses
	first := min(losses, max(most/2, most-gains))
	return slices.Concat(rows[:first], rows[len(rows)-(most-first):])
}

// take puts a result where it is wanted.
func (g *gatherer) take(res *harness.Result) {
	if f := res.Failed; f != nil {
		if in := g.failures[failureKey{res.Evaluation, res.Candidate, f.Class}]; in != nil && len(in.Messages) < maxMessages &&
			!slices.ContainsFunc(in.Messages, func(m message) bool { return m.Text == f.Message }) {
			in.Messages = append(in.Messages, message{res.Row, f.Message})
		}
	}
	wanted := g.wanted[answerKey{res.Evaluation, res.Candidate, res.Row}]
	if len(wanted) == 0 {
		return
	}
	if res.Call != "" {
		g.call[rowKey{res.Evaluation, res.Row}] = res.Call
	}
	a := answerOf(res)
	for _, into := range wanted {
		if len(*into) < maxAnswers {
			*into = append(*into, a)
		}
	}
}

func answerOf(res *harness.Result) answer {
	a := answer{Repeat: res.Repeat + 1, Text: res.Answer.String(), None: res.Answer.IsZero(), Scores: res.Scores, Failed: res.Failed}
	for name, v := range res.Outputs.Members() {
		if !v.Equal(res.Answer) {
			a.Others = append(a.Others, field{name, v.String()})
		}
	}
	for _, s := range res.Scores {
		if s.Feedback != "" {
			a.Feedback = append(a.Feedback, field{s.Metric, s.Feedback})
		}
	}
	return a
}

// fill looks up the inputs of the rows that are shown: in the call that was made
// for the row, or in the call that the row was made of and is named by.
func (g *gatherer) fill(r *Report, m *material) error {
	asked, rated := map[string]bool{}, map[string]bool{}
	find := func(look func(e *Evaluation, row *changedRow, call string)) {
		for _, e := range r.Evaluations {
			for i := range e.changes {
				for _, row := range e.changes[i].Rows {
					look(e, row, cmp.Or(g.call[rowKey{e.Name, row.ID}], g.call[rowKey{e.Name, row.CandidateID}]))
				}
			}
		}
	}
	find(func(_ *Evaluation, row *changedRow, call string) {
		if call != "" {
			asked[call] = true
		} else {
			rated[row.ID] = true
		}
	})
	var inputs, recorded map[string]datasets.Value
	if len(asked) > 0 && m.inputs != nil {
		var err error
		if inputs, err = m.inputs(asked); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("reading the inputs of rows that changed: %w", err)
		}
	}
	if len(rated) > 0 && m.rated != nil {
		// The records are not the run's own: they may have been moved or
		// replaced since, and the report does without.
		recorded, _ = m.rated(rated)
	}
	find(func(e *Evaluation, row *changedRow, call string) {
		in := inputs[call]
		if call == "" {
			in = recorded[row.ID]
		}
		for name, v := range in.Members() {
			row.Inputs = append(row.Inputs, field{name, v.String()})
		}
		if e.Repeats == 1 {
			single(row.Before)
			single(row.After)
		}
	})
	return nil
}

// single takes the number off the only answer there can be.
func single(answers []answer) {
	for i := range answers {
		answers[i].Repeat = 0
	}
}
