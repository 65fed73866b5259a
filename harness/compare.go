package harness

import (
	"fmt"
	"slices"
	"strings"

	"evalrun/harness/stats"
)

// Comparison is one metric of a candidate and a baseline on the rows both
// finished.
//
// N to Same are the contract's numbers, which every implementation gives digit
// for digit: in them a failed row counts 0, and better is a score that rose.
// Added is the layer that is right where those are weak; p, method, detectable
// and decision are taken from it. Its decision and its counts of rows are turned
// where less is better.
type Comparison struct {
	Metric    string    `json:"metric"`
	Lower     bool      `json:"lower_is_better,omitzero"` // less of the metric is better
	Baseline  string    `json:"baseline"`
	Candidate string    `json:"candidate"`
	N         int       `json:"n"`      // rows
	Before    stats.Opt `json:"before"` // the baseline's mean
	After     stats.Opt `json:"after"`  // the candidate's mean
	Diff      stats.Opt `json:"diff"`   // After less Before
	Low       stats.Opt `json:"low"`    // Diff's range
	High      stats.Opt `json:"high"`
	Better    int       `json:"better"` // rows whose score rose
	Worse     int       `json:"worse"`  // rows whose score fell
	Same      int       `json:"same"`   // rows with exactly the same score

	P          stats.Opt      `json:"p"`
	Method     string         `json:"method"` // that gave p
	Detectable stats.Opt      `json:"detectable"`
	Decision   stats.Decision `json:"decision"`
	Added      stats.Test     `json:"added"`
	Lost       *Lost          `json:"lost,omitzero"`

	// TrendOnly says that the metric is a judge's that was not found to agree with
	// people: Decision is [TrendOnly], and no gate may rest on it.
	TrendOnly bool `json:"trend_only,omitzero"`

	// WithinNoise says that the difference is no larger than what asking the
	// baseline again makes: see [Evaluation.Noise].
	WithinNoise bool `json:"within_noise,omitzero"`

	// Clusters counts conversations, and rows that belong to none, when they
	// are fewer than N; else it is 0.
	Clusters int `json:"clusters,omitzero"`

	Unjudged      int      `json:"unjudged,omitzero"`       // rows on which a judge gave no verdict: they are in no other number
	Unscored      int      `json:"unscored,omitzero"`       // rows with an answer that the metric could not score: Added is without them
	BaselineOnly  int      `json:"baseline_only,omitzero"`  // rows that only the baseline finished
	CandidateOnly int      `json:"candidate_only,omitzero"` // rows that only the candidate finished
	Changed       []Change `json:"changed"`                 // rows whose score changed, in the baseline's order
	Warnings      []string `json:"warnings,omitempty"`      // of Added, and of the pairing
}

// Change is a row whose score changed. Its answers are in the results.
type Change struct {
	Row          string  `json:"row"`                     // the baseline's row
	CandidateRow string  `json:"candidate_row,omitempty"` // the candidate's, when it is another row: of another program
	Before       float64 `json:"before"`
	After        float64 `json:"after"`
}

// Lost tells of rows with an answer that was lost to the world around the
// candidates: an outage, a limit, a reply that was never recorded. Added is
// without these rows, which say nothing of a candidate. Worst and Best bound
// the difference over all rows, had the lost answers come: each lost score is
// taken as the lowest or the highest that was seen, 0 and 1 included.
type Lost struct {
	Rows  int     `json:"rows"`
	Worst float64 `json:"worst"`
	Best  float64 `json:"best"`
}

// mostUnscored is how many of 100 rows a metric may fail on and still decide.
const mostUnscored = 10

// Unsound says that the metric failed on so many rows that what the others show
// is no verdict: Decision is then neither better nor worse nor equal.
func (c *Comparison) Unsound() bool {
	return 100*(c.Unscored+c.Unjudged) > mostUnscored*(c.N+c.Unjudged)
}

// CompareOptions say how outcomes are compared. The zero value compares the rows
// they have in common.
type CompareOptions struct {
	Strict bool          // rows that are not common are an error
	Stats  stats.Options // Binary is found by looking at the scores
}

// scoreTable holds an outcome's finished rows, and their scores by metric.
type scoreTable struct {
	metrics     []string
	lower       []string          // of them, those of which less is better
	timed       []string          // of them, those that the clock measures
	units       Units             // of them, those whose scores are amounts
	trends      []string          // of them, those of judges that are not fit
	judges      map[string]string // by metric: which judge
	fingerprint string            // of the plan's rows
	field       string            // that rows are paired by; "" for their ids
	rows        []rowKey
	lost        []bool
	before      []bool // some of it was asked for before the run
	by          [][]float64
	lacks       [][]bool // as by: an answer has no score
	unscored    [][]bool // as by: an answer has none because the metric gave none
	unjudged    [][]bool // as by: an answer has none because its judge gave none; without judges empty
}

// Pairing says which rows two outcomes have in common.
type Pairing struct {
	Common        int
	BaselineOnly  []string // ids of the baseline's rows that the candidate did not finish
	CandidateOnly []string // ids of the candidate's rows that the baseline did not finish

	pairs [][2]int // positions in both tables
}

// Pair finds the rows that two outcomes have in common: those both finished, by
// their ids, or by the field that both are paired by. A key that two rows of
// one outcome share is an [ErrRows].
func Pair(base, cand *Outcome) (*Pairing, error) {
	if base.scores == nil || cand.scores == nil {
		return nil, fmt.Errorf("%w: only outcomes of an evaluation, or of a run that was opened, can be paired", ErrPlan)
	}
	a, b := base.scores, cand.scores
	if a.field != b.field {
		return nil, fmt.Errorf("%w: the rows of %s are paired by %s, those of %s by %s: pair both by the same field",
			ErrPlan, base.Name, fieldName(a.field), cand.Name, fieldName(b.field))
	}
	if _, err := a.positions(base.Name); err != nil {
		return nil, err
	}
	at, err := b.positions(cand.Name)
	if err != nil {
		return nil, err
	}
	p := &Pairing{}
	taken := make([]bool, len(b.rows))
	for i := range a.rows {
		if j, ok := at[a.rows[i].key()]; ok {
			p.pairs = append(p.pairs, [2]int{i, j})
			taken[j] = true
		} else {
			p.BaselineOnly = append(p.BaselineOnly, a.rows[i].id)
		}
	}
	for j := range b.rows {
		if !taken[j] {
			p.CandidateOnly = append(p.CandidateOnly, b.rows[j].id)
		}
	}
	p.Common = len(p.pairs)
	return p, nil
}

func fieldName(field string) string {
	if field == "" {
		return "their ids"
	}
	return field
}

func (s *scoreTable) positions(outcome string) (map[string]int, error) {
	at := make(map[string]int, len(s.rows))
	for i := range s.rows {
		key := s.rows[i].key()
		if first, twice := at[key]; twice {
			return nil, fmt.Errorf("%w: rows %s and %s of %s have the same key %s, so neither can be paired", ErrRows, s.rows[first].id, s.rows[i].id, outcome, short(key))
		}
		at[key] = i
	}
	return at, nil
}

// Compare compares a candidate with a baseline on the rows both finished, metric
// by metric, in the order of the baseline's metrics. The outcomes may be of two
// runs. That they have no metric, or no row, in common is an error.
func Compare(base, cand *Outcome, o CompareOptions) ([]Comparison, error) {
	pairing, err := Pair(base, cand)
	if err != nil {
		return nil, err
	}
	if pairing.Common == 0 {
		return nil, fmt.Errorf("%w: %s and %s have no row in common: rows are paired by %s", ErrNoRows, base.Name, cand.Name, fieldName(base.scores.field))
	}
	if o.Strict {
		if err := pairing.strict(base, cand); err != nil {
			return nil, err
		}
	}
	return pairing.compare(base, cand, o.Stats)
}

// compare compares every metric that both have.
func (p *Pairing) compare(base, cand *Outcome, o stats.Options) ([]Comparison, error) {
	var all []Comparison
	for _, m := range base.scores.metrics {
		if !slices.Contains(cand.scores.metrics, m) {
			continue
		}
		c, err := p.compareMetric(m, base, cand, o)
		if err != nil {
			return nil, fmt.Errorf("comparing %s of %s and %s: %w", m, base.Name, cand.Name, err)
		}
		all = append(all, *c)
	}
	if all == nil {
		return nil, fmt.Errorf("%w: %s and %s have no metric in common: %s has %s, %s has %s", ErrPlan, base.Name, cand.Name,
			base.Name, listed(base.scores.metrics), cand.Name, listed(cand.scores.metrics))
	}
	return all, nil
}

// strict refuses outcomes of different rows.
func (p *Pairing) strict(base, cand *Outcome) error {
	if a, b := len(p.BaselineOnly), len(p.CandidateOnly); a+b > 0 {
		return fmt.Errorf("%w: %s and %s did not finish the same rows: %d are common, %d only the baseline's (%s), %d only the candidate's (%s)",
			ErrRows, base.Name, cand.Name, p.Common, a, few(p.BaselineOnly), b, few(p.CandidateOnly))
	}
	if p.differ(base, cand) {
		return fmt.Errorf("%w: %s and %s were asked rows of the same ids that are not the same: their inputs, labels or context differ", ErrRows, base.Name, cand.Name)
	}
	return nil
}

// differ reports whether rows that are paired by id, and are the same set, are
// known not to be the same rows.
func (p *Pairing) differ(base, cand *Outcome) bool {
	return base.scores.field == "" && base.scores.fingerprint != cand.scores.fingerprint &&
		len(p.BaselineOnly)+len(p.CandidateOnly) == 0
}

func few(ids []string) string {
	const most = 3
	if len(ids) > most {
		return strings.Join(ids[:most], ", ") + ", …"
	}
	return listed(ids)
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// compareMetric compares one metric on the common rows.
func (p *Pairing) compareMetric(metric string, base, cand *Outcome, o stats.Options) (*Comparison, error) {
	c := &Comparison{
		Metric: metric, Lower: slices.Contains(base.scores.lower, metric), Baseline: base.Name, Candidate: cand.Name, Changed: []Change{},
		BaselineOnly: len(p.BaselineOnly), CandidateOnly: len(p.CandidateOnly),
	}
	a, b := base.scores, cand.scores
	whole := p
	p = p.judged(metric, a, b)
	c.Unjudged = len(whole.pairs) - len(p.pairs)
	if c.Lower != slices.Contains(b.lower, metric) {
		return nil, fmt.Errorf("%w: less is better of one and worse of the other: these are two metrics", ErrPlan)
	}
	before, after := p.scores(metric, a, b)
	if err := c.contract(before, after); err != nil {
		return nil, err
	}
	clusters := map[string]bool{}
	kept := make([]int, 0, len(p.pairs)) // positions of pairs that decide
	lost, failed, otherTime := 0, 0, 0
	timed := slices.Contains(a.timed, metric)
	lacks, unscored := p.lacks(metric, a, b), p.unscored(metric, a, b)
	for i, at := range p.pairs {
		x, y := &a.rows[at[0]], &b.rows[at[1]]
		if before[i] != after[i] {
			change := Change{Row: x.id, Before: before[i], After: after[i]}
			if y.id != x.id {
				change.CandidateRow = y.id
			}
			c.Changed = append(c.Changed, change)
		}
		if x.conversation != "" {
			clusters["conversation "+x.conversation] = true
		} else {
			clusters["row "+x.id] = true
		}
		switch {
		case a.lost[at[0]] || b.lost[at[1]]:
			lost++
		case unscored[i]:
			c.Unscored++
		case c.Lower && lacks[i]:
			failed++
		case timed && a.before[at[0]] != b.before[at[1]]:
			otherTime++
		default:
			kept = append(kept, i)
		}
	}
	if len(clusters) < c.N {
		c.Clusters = len(clusters)
		c.Warnings = append(c.Warnings, fmt.Sprintf("the %d rows come from %d conversations and single rows: rows of one conversation depend on each other, and the ranges and p, which take them as independent, claim too much", c.N, c.Clusters))
	}
	if lost > 0 {
		c.Lost = p.lost(before, after, a, b)
		c.Warnings = append(c.Warnings, fmt.Sprintf("answers to %d rows were lost to the world around the candidates: p and the decision are without these rows", c.Lost.Rows))
	}
	if n := c.Unscored + c.Unjudged; n > 0 {
		text := fmt.Sprintf("the metric itself failed on %d of %d rows, which says nothing of a candidate: p and the decision are without these rows", n, c.N+c.Unjudged)
		if c.Unsound() {
			text += fmt.Sprintf("; that is more than %d %%, so nothing is decided: see what failed, mend the metric, and run again", mostUnscored)
		}
		c.Warnings = append(c.Warnings, text)
	}
	if failed > 0 {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%d rows have no score of this metric, of which less is better, and count 0 in the means, the best there is: p and the decision are without these rows; compare the failed rows first", failed))
	}
	if otherTime > 0 {
		c.Warnings = append(c.Warnings, fmt.Sprintf("of %d rows one side was timed at another time, in another run or for a cache: p and the decision are without these rows; --fresh times both sides anew", otherTime))
	}
	before, after = at(before, kept), at(after, kept)
	if least := min(slices.Min(append(before, 0)), slices.Min(append(after, 0))); least < 0 && base.Failed+cand.Failed > 0 {
		c.Warnings = append(c.Warnings, "scores of this metric can be below 0, and a failed row counts 0: to fail is then better than to answer; compare the failed rows first")
	}
	o.Binary = stats.AllBinary(before, after)
	o.Unmargined = a.units[metric] != "" || !withinOne(before) || !withinOne(after)
	var err error
	if c.Added, err = stats.Paired(before, after, o); err != nil {
		return nil, err
	}
	if c.Lower {
		c.Added = c.Added.Turned()
	}
	if len(kept) == 0 && c.N > 0 {
		c.Added.Warnings = nil // there were rows: why none is left has been said
	}
	c.P, c.Method, c.Detectable, c.Decision = c.Added.P, c.Added.PMethod, c.Added.Detectable, c.Added.Decision
	if c.Decision != stats.Invalid && c.Unsound() {
		c.Decision = stats.TooFewRows
	}
	otherJudge := a.judges[metric] != b.judges[metric]
	if otherJudge {
		c.Warnings = append(c.Warnings, "the two sides were judged by different judges: this compares the judges as well")
	}
	if otherJudge || slices.Contains(a.trends, metric) || slices.Contains(b.trends, metric) {
		c.TrendOnly, c.Decision = true, TrendOnly
	}
	if whole.differ(base, cand) {
		c.Warnings = append(c.Warnings, "the rows have the same ids, and their inputs, labels or context differ: this compares different questions")
	}
	if n := c.BaselineOnly + c.CandidateOnly; n > 0 {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%d rows are not common and not compared", n))
	}
	return c, nil
}

// contract fills in the contract's numbers.
func (c *Comparison) contract(before, after []float64) error {
	d, err := stats.Compare(before, after)
	if err != nil {
		return err
	}
	x, err := stats.Range(before)
	if err != nil {
		return err
	}
	y, err := stats.Range(after)
	if err != nil {
		return err
	}
	c.N, c.Before, c.After = d.N, x.Mean, y.Mean
	c.Diff, c.Low, c.High = d.Diff, d.Low, d.High
	c.Better, c.Worse, c.Same = d.Better, d.Worse, d.Same
	return nil
}

// scores are a metric's scores of both sides of each pair.
func (p *Pairing) scores(metric string, a, b *scoreTable) (before, after []float64) {
	x, y := a.by[slices.Index(a.metrics, metric)], b.by[slices.Index(b.metrics, metric)]
	before, after = make([]float64, len(p.pairs)), make([]float64, len(p.pairs))
	for i, at := range p.pairs {
		before[i], after[i] = x[at[0]], y[at[1]]
	}
	return before, after
}

// lacks says of which pairs an answer has no score of the metric.
func (p *Pairing) lacks(metric string, a, b *scoreTable) []bool {
	x, y := a.lacks[slices.Index(a.metrics, metric)], b.lacks[slices.Index(b.metrics, metric)]
	lacks := make([]bool, len(p.pairs))
	for i, at := range p.pairs {
		lacks[i] = x[at[0]] || y[at[1]]
	}
	return lacks
}

// unscored says of which pairs the metric gave an answer no score.
func (p *Pairing) unscored(metric string, a, b *scoreTable) []bool {
	x, y := a.unscored[slices.Index(a.metrics, metric)], b.unscored[slices.Index(b.metrics, metric)]
	unscored := make([]bool, len(p.pairs))
	for i, at := range p.pairs {
		unscored[i] = x[at[0]] || y[at[1]]
	}
	return unscored
}

// withinOne reports whether scores lie from 0 to 1, which is the scale of a margin.
func withinOne(scores []float64) bool {
	return !slices.ContainsFunc(scores, func(s float64) bool { return s < 0 || s > 1 })
}

// judged is the pairing without the rows on whose answers a judge gave no verdict.
func (p *Pairing) judged(metric string, a, b *scoreTable) *Pairing {
	x, y := a.unjudged[slices.Index(a.metrics, metric)], b.unjudged[slices.Index(b.metrics, metric)]
	if !slices.Contains(x, true) && !slices.Contains(y, true) {
		return p
	}
	q := *p
	q.pairs = slices.DeleteFunc(slices.Clone(p.pairs), func(at [2]int) bool { return x != nil && x[at[0]] || y != nil && y[at[1]] })
	return &q
}

// lost bounds what the lost answers could have done.
func (p *Pairing) lost(before, after []float64, a, b *scoreTable) *Lost {
	low, high := 0.0, 1.0
	for i := range before {
		low, high = min(low, before[i], after[i]), max(high, before[i], after[i])
	}
	l := &Lost{}
	for i, at := range p.pairs {
		beforeLow, beforeHigh, afterLow, afterHigh := before[i], before[i], after[i], after[i]
		if a.lost[at[0]] {
			beforeLow, beforeHigh = low, high
		}
		if b.lost[at[1]] {
			afterLow, afterHigh = low, high
		}
		if a.lost[at[0]] || b.lost[at[1]] {
			l.Rows++
		}
		l.Worst += afterLow - beforeHigh
		l.Best += afterHigh - beforeLow
	}
	n := float64(len(p.pairs))
	l.Worst, l.Best = l.Worst/n, l.Best/n
	return l
}

// at picks the values at some positions.
func at(values []float64, positions []int) []float64 {
	picked := make([]float64, len(positions))
	for i, p := range positions {
		picked[i] = values[p]
	}
	return picked
}

// compare compares every other candidate with the reference. Candidates that
// have no finished row in common with it, in a run that was cut short, are left
// out.
func (e *Evaluation) compare(o stats.Options) error {
	e.Comparisons = []Comparison{}
	base := e.Outcome(e.Reference())
	if base == nil {
		return fmt.Errorf("%w: the baseline %s is no candidate of the evaluation", ErrPlan, e.Reference())
	}
	for _, cand := range e.Candidates {
		if cand == base || len(e.Metrics) == 0 {
			continue
		}
		pairing, err := Pair(base, cand)
		if err != nil {
			return err
		}
		if pairing.Common == 0 {
			continue
		}
		c, err := pairing.compare(base, cand, o)
		if err != nil {
			return err
		}
		e.Comparisons = append(e.Comparisons, c...)
	}
	return nil
}
