package harness

import (
	"fmt"
	"maps"
	"slices"
	"sort"

	"evalrun/harness/stats"
	"evalrun/pipeline"
)

// A tally adds results up into an evaluation. A run that goes on and a run that
// is read back add the same results in the same order, and so come to the same
// numbers.
type tally struct {
	eval  *Evaluation
	stats stats.Options
	lanes []*lane
	lane  map[string]*lane // by the candidate's name

	judges []*judged // of the evaluation's judges, in order

	rows []rowKey
	at   map[string]int // row id → position in rows

	failedRow, failedWhy string // of the first answer that failed
}

// rowKey is what is known of a row from its results.
type rowKey struct{ id, pair, conversation string }

// key is what the row is paired by.
func (r *rowKey) key() string {
	if r.pair != "" {
		return r.pair
	}
	return r.id
}

// A lane is one candidate's answers. Its slices have one place a row, and scores
// one for each metric of each row.
type lane struct {
	out     *Outcome
	rows    []laneRow
	sums    []float64 // of the answers' scores
	lacking []bool    // some answer has no score

	unscored []bool // some answer has none because the metric, which is no judge, gave none
	unjudged []bool // some answer has none because its judge gave none; empty without judges

	usage   Usage
	plugins []PluginUse
	failed  int                   // rows with an answer that failed
	tools   map[string]int        // tool calls, by how they were answered
	calls   map[string]ToolErrors // of each tool
	classes map[Classed]int       // answers
	wire    []float64             // of calls that were not cached, where it was measured
	seconds []float64             // of calls that were not cached
}

type laneRow struct {
	answers int
	repeat  int    // the latest
	class   string // of the first answer that failed
	lost    bool   // an answer failed for a reason that is not the candidate's
	before  bool   // some of an answer was asked for before: a cache had it, or another run
}

// newTally begins with an evaluation that has everything but its results.
func newTally(eval *Evaluation, o stats.Options) *tally {
	t := &tally{eval: eval, stats: o, lane: map[string]*lane{}, at: map[string]int{}}
	for _, out := range eval.Candidates {
		l := &lane{out: out}
		t.lanes = append(t.lanes, l)
		t.lane[out.Name] = l
	}
	for i := range eval.Judges {
		t.judges = append(t.judges, &judged{facts: eval.Judges[i].JudgeFacts, table: map[string]*[2]int{}})
	}
	return t
}

// check refuses a result that nobody asked for, or that has come already. Results
// come row by row, and the repeats of a candidate in order.
func (t *tally) check(r *Result) error {
	l := t.lane[r.Candidate]
	if l == nil {
		return fmt.Errorf("%w: row %s has a result of %s, which is no candidate of the evaluation", ErrLedger, r.Row, r.Candidate)
	}
	latest := -1
	if i, known := t.at[r.Row]; known {
		latest = l.rows[i].repeat
	} else if len(t.rows) == t.eval.Rows.Asked {
		return fmt.Errorf("%w: row %s is one more than the %d that were asked", ErrLedger, r.Row, t.eval.Rows.Asked)
	}
	if r.Repeat <= latest || r.Repeat >= t.eval.Repeats {
		return fmt.Errorf("%w: row %s has answer %d of %s twice, or beyond the %d that were asked for", ErrLedger, r.Row, r.Repeat, r.Candidate, t.eval.Repeats)
	}
	if len(r.Scores) != 0 {
		same := len(r.Scores) == len(t.eval.Metrics)
		for j := 0; same && j < len(r.Scores); j++ {
			same = r.Scores[j].Metric == t.eval.Metrics[j]
		}
		if !same {
			return fmt.Errorf("%w: row %s of %s has scores of other metrics than the evaluation's", ErrLedger, r.Row, r.Candidate)
		}
	}
	for _, k := range r.Judged {
		if t.judge(k.Metric) == nil {
			return fmt.Errorf("%w: row %s of %s has a verdict by %s, which is no judge of the evaluation", ErrLedger, r.Row, r.Candidate, k.Metric)
		}
	}
	return nil
}

// add takes in a result that was checked.
func (t *tally) add(r *Result) {
	i, known := t.at[r.Row]
	if !known {
		i = len(t.rows)
		t.at[r.Row] = i
		t.rows = append(t.rows, rowKey{r.Row, r.Pair, r.Conversation})
		for _, l := range t.lanes {
			l.rows = append(l.rows, laneRow{repeat: -1})
			for range t.eval.Metrics {
				l.sums = append(l.sums, 0)
				l.lacking = append(l.lacking, false)
				l.unscored = append(l.unscored, false)
				if t.judges != nil {
					l.unjudged = append(l.unjudged, false)
				}
			}
		}
	}
	l := t.lane[r.Candidate]
	row := &l.rows[i]
	row.repeat = r.Repeat
	row.answers++
	row.before = row.before || r.From != ""
	if r.Failed != nil {
		if t.failedRow == "" {
			t.failedRow, t.failedWhy = r.Row, r.Failed.Message
		}
		if row.class == "" {
			row.class = r.Failed.Class
			l.failed++
		}
		row.lost = row.lost || lostClasses[r.Failed.Class]
	}
	first := i * len(t.eval.Metrics)
	for j := range t.eval.Metrics {
		if len(r.Scores) == 0 || r.Scores[j].Value == nil {
			l.lacking[first+j] = true
			switch {
			case len(r.Scores) == 0: // there was nothing to score
			case t.judge(r.Scores[j].Metric) != nil:
				l.unjudged[first+j] = true
			default:
				l.unscored[first+j] = true
			}
		} else {
			l.sums[first+j] += *r.Scores[j].Value
		}
	}
	for _, c := range r.Classes {
		if l.classes == nil {
			l.classes = map[Classed]int{}
		}
		l.classes[c]++
	}
	for i := range r.Judged {
		k := &r.Judged[i]
		t.judge(k.Metric).add(k)
		if !k.Rated {
			if l.out.Judging == nil {
				l.out.Judging = &Usage{}
			}
			k.book(l.out.Judging)
		}
	}
	l.measure(r)
}

// judge is the judge of a metric; nil when it has none.
func (t *tally) judge(metric string) *judged {
	for _, j := range t.judges {
		if j.facts.Metric == metric {
			return j
		}
	}
	return nil
}

// measure adds up what an answer took.
func (l *lane) measure(r *Result) {
	m := &l.out.Measured
	m.Answers++
	m.Waited += r.Waited
	m.Retries += r.Retries
	if r.asked() {
		m.Asked++
	}
	if r.Call != "" {
		plus(&m.Spent, r.Spent)
		if r.Cached {
			m.Cached++
			if r.From == string(pipeline.FromRun) {
				m.FromRun++
			}
			m.Reused.Add(r.spent())
		} else {
			if r.Resumed {
				m.Resumed++ // its wall clock says nothing
			} else {
				l.seconds = append(l.seconds, r.Seconds)
			}
			if r.Latency != nil {
				l.wire = append(l.wire, *r.Latency)
			}
		}
	}
	l.use(r.Plugins)
	l.trace(r)
	l.serve(r.Tools)
	l.out.Kept += r.Kept
	l.usage.add(r.usageUnknown(), r.Usage, r.Cost)
}

// add adds what an answer took.
func (u *Usage) add(unknown bool, v pipeline.Usage, cost *float64) {
	if unknown {
		u.Unknown++
	}
	plus(&u.InputTokens, v.Input)
	plus(&u.OutputTokens, v.Output)
	plus(&u.TotalTokens, v.Total)
	plus(&u.CachedInputTokens, v.Cached)
	plus(&u.ReasoningTokens, v.Reasoning)
	plus(&u.Cost, cost)
}

// spent is what the call's requests took, whoever was asked.
func (r *Result) spent() pipeline.Amount {
	s := pipeline.Amount{Requests: int64(r.Requests)}
	if r.usageUnknown() {
		s.Uncounted = s.Requests
	} else if r.Requests > 0 {
		s.Tokens = *r.Usage.Input + *r.Usage.Output
	}
	if r.Cost == nil || s.Uncounted > 0 {
		s.Unknown = s.Requests
	} else {
		s.Money = *r.Cost
	}
	return s
}

// plus adds v, if it is known, to a sum that is nil until something is.
func plus[T int64 | float64](sum **T, v *T) {
	if v == nil {
		return
	}
	if *sum == nil {
		*sum = new(T)
	}
	**sum += *v
}

// finish computes the evaluation from what was added.
func (t *tally) finish() (*Evaluation, error) {
	e := t.eval
	if err := t.finishJudges(); err != nil {
		return e, err
	}
	for _, l := range t.lanes {
		if err := t.finishLane(l); err != nil {
			return e, err
		}
	}
	e.Ledger = t.ledger()
	if err := e.Ledger.Check(); err != nil {
		return e, err
	}
	e.Warnings = append(e.Warnings, t.pluginDoubts()...)
	e.Warnings = append(e.Warnings, t.toolDoubts()...)
	e.Warnings = append(e.Warnings, t.servedDoubts()...)
	if w := t.conversations(); w != "" {
		e.Warnings = append(e.Warnings, w)
	}
	if err := e.compare(t.stats); err != nil {
		return e, err
	}
	return e, e.noise(t.stats)
}

// finishLane turns sums into means and means into an outcome.
func (t *tally) finishLane(l *lane) error {
	out, k := l.out, len(t.eval.Metrics)
	out.scores = &scoreTable{
		metrics: t.eval.Metrics, lower: t.eval.Lower, timed: t.eval.timed, units: t.eval.Units, trends: t.eval.trends(), judges: t.eval.judgeVersions(), fingerprint: t.eval.Rows.Fingerprint, field: t.eval.Rows.Pair,
		by: make([][]float64, k), lacks: make([][]bool, k), unscored: make([][]bool, k), unjudged: make([][]bool, k),
	}
	lacking, unscored := make([]int, k), make([]int, k)
	out.Failures = map[string]int{}
	for i, row := range l.rows {
		if row.answers < t.eval.Repeats {
			continue
		}
		if row.class != "" {
			out.Failures[row.class]++
			out.Failed++
		}
		out.scores.rows = append(out.scores.rows, t.rows[i])
		out.scores.lost = append(out.scores.lost, row.lost)
		out.scores.before = append(out.scores.before, row.before)
		for j := range k {
			out.scores.by[j] = append(out.scores.by[j], l.sums[i*k+j]/float64(row.answers))
			out.scores.lacks[j] = append(out.scores.lacks[j], l.lacking[i*k+j])
			out.scores.unscored[j] = append(out.scores.unscored[j], l.unscored[i*k+j])
			if l.unjudged != nil {
				out.scores.unjudged[j] = append(out.scores.unjudged[j], l.unjudged[i*k+j])
			}
			if l.lacking[i*k+j] {
				lacking[j]++
			}
			if l.unscored[i*k+j] {
				unscored[j]++
			}
		}
	}
	out.N = len(out.scores.rows)
	out.Unfinished = t.eval.Rows.Asked - out.N
	out.Metrics = map[string]Summary{}
	for j, name := range t.eval.Metrics {
		scores := out.scores.withVerdict(j)
		interval, err := stats.Range(scores)
		if err != nil {
			return fmt.Errorf("candidate %s, metric %s: %w", out.Name, name, err)
		}
		out.Metrics[name] = Summary{interval, lacking[j], out.N - len(scores), unscored[j]}
	}
	out.Classification = classifications(t.eval.Metrics, l.classes)
	out.Usage, out.PluginUse, out.Tools, out.ToolErrors = l.usage, l.plugins, l.tools, l.toolErrors()
	out.Measured.Latency = latency(OfCall, l.seconds)
	if len(l.wire) > 0 {
		out.Measured.Latency = latency(OfWire, l.wire)
	}
	return nil
}

// withVerdict are a metric's scores of the rows on which no judge failed.
func (s *scoreTable) withVerdict(metric int) []float64 {
	if !slices.Contains(s.unjudged[metric], true) {
		return s.by[metric]
	}
	var scores []float64
	for i, score := range s.by[metric] {
		if !s.unjudged[metric][i] {
			scores = append(scores, score)
		}
	}
	return scores
}

func (t *tally) ledger() Ledger {
	led := Ledger{Input: t.eval.Rows.Input, LeftOut: maps.Clone(t.eval.Rows.LeftOut), Asked: t.eval.Rows.Asked}
	for _, l := range t.lanes {
		c := CandidateLedger{Candidate: l.out.Name, Failed: map[string]int{}, Unfinished: t.eval.Rows.Asked - len(l.rows)}
		for _, row := range l.rows {
			switch {
			case row.answers < t.eval.Repeats:
				c.Unfinished++
			case row.class != "":
				c.Failed[row.class]++
			default:
				c.Scored++
			}
		}
		led.Candidates = append(led.Candidates, c)
	}
	return led
}

// conversations warns of rows that depend on each other.
func (t *tally) conversations() string {
	n := map[string]int{}
	for _, row := range t.rows {
		if row.conversation != "" {
			n[row.conversation]++
		}
	}
	shared, rows := 0, 0
	for _, k := range n {
		if k > 1 {
			shared++
			rows += k
		}
	}
	if shared == 0 {
		return ""
	}
	return fmt.Sprintf("%d of the rows come from %d conversations that have several: they depend on each other, and the ranges, which take rows as independent, are too narrow", rows, shared)
}

// latency sums up seconds of that kind, which it sorts. Quantiles are values that were seen:
// the smallest that so large a share does not exceed.
func latency(of string, seconds []float64) Latency {
	n := len(seconds)
	if n == 0 {
		return Latency{}
	}
	l := Latency{Of: of, N: n}
	for _, s := range seconds {
		l.Total += s
	}
	sort.Float64s(seconds)
	l.Median = seconds[(n-1)/2]
	l.P95 = seconds[(95*n+99)/100-1]
	l.Max = seconds[n-1]
	return l
}

// anyEvaluated reports whether some candidate answered some row.
func (t *tally) anyEvaluated() bool {
	return slices.ContainsFunc(t.lanes, func(l *lane) bool {
		if l.out.N > l.out.Failed {
			return true
		}
		for _, m := range l.out.Metrics {
			if m.N > m.Failed-m.NoVerdict { // another metric gave no number
				return true
			}
		}
		return false
	})
}

// onlyOutages reports whether every failed row was lost to an outage.
func (t *tally) onlyOutages() bool {
	for _, l := range t.lanes {
		for class := range l.out.Failures {
			if !outageClasses[class] {
				return false
			}
		}
	}
	return true
}

// failures counts failed rows by class, over all candidates.
func (t *tally) failures() string {
	all := map[string]int{}
	for _, l := range t.lanes {
		for class, n := range l.out.Failures {
			all[class] += n
		}
	}
	return reasons(all)
}
