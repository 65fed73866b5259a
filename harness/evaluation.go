package harness

import (
	"fmt"

	"evalrun/harness/stats"
	"evalrun/pipeline"
)

// Evaluation is what came of a [Plan]. Its JSON is an item of a report's
// "evaluations". It depends on the answers alone: what depends on clock, host
// or schedule is in each outcome's Measured, which JSON leaves out.
type Evaluation struct {
	Name        string        `json:"name"`
	Metrics     []string      `json:"metrics"`                   // the plan's, in order; the first one is the score
	Lower       []string      `json:"lower_is_better,omitempty"` // of the metrics, those of which less is better
	Units       Units         `json:"units,omitempty"`           // of the metrics whose scores are amounts
	Baseline    string        `json:"baseline"`
	Compare     string        `json:"compare,omitempty"` // what candidates are compared with, when it is not the baseline: see [Evaluation.Reference]
	Repeats     int           `json:"repeats"`
	Rows        RowCounts     `json:"rows"`
	Candidates  []*Outcome    `json:"candidates"`        // in the plan's order
	Comparisons []Comparison  `json:"comparisons"`       // of each other candidate with the reference, metric by metric
	Noise       []Noise       `json:"noise,omitempty"`   // of each metric, where the baseline was asked again
	Judges      []JudgeReport `json:"judges,omitempty"`  // of the metrics that ask a model
	Fidelity    *Fidelity     `json:"fidelity,omitzero"` // whether the baseline sends what was recorded
	Ledger      Ledger        `json:"ledger"`
	Warnings    []string      `json:"warnings,omitempty"` // doubts a reader should know of

	timed []string // of the metrics, those that the clock measures
}

// Units are what scores are amounts of, by metric: see [Measuring].
type Units map[string]string

// Outcome returns the candidate's outcome; nil when there is no such candidate.
func (e *Evaluation) Outcome(candidate string) *Outcome {
	for _, out := range e.Candidates {
		if out.Name == candidate {
			return out
		}
	}
	return nil
}

// RowCounts says how many rows there were.
type RowCounts struct {
	Input       int            `json:"input"`          // rows that were read
	Rated       int            `json:"rated,omitzero"` // of them, made usable by a rating; absent when rows are not made of ratings
	LeftOut     map[string]int `json:"left_out"`       // rows that were not asked, by reason
	Asked       int            `json:"asked"`          // rows of the plan
	Fingerprint string         `json:"fingerprint"`    // hash of the rows
	Pair        string         `json:"pair,omitempty"` // the field that rows are paired by; absent: their ids
}

// Outcome is what one candidate came to on the rows of a plan.
type Outcome struct {
	CandidateFacts
	N          int                `json:"n"`                   // rows that are finished: every answer asked for has come
	Failed     int                `json:"failed"`              // of them, rows with an answer that failed or lacks a score
	Failures   map[string]int     `json:"failures,omitempty"`  // these, by the class of their first such answer
	Unfinished int                `json:"unfinished,omitzero"` // rows that were not finished when the run ended; in no other count
	Metrics    map[string]Summary `json:"metrics"`
	Usage      Usage              `json:"usage"`
	Judging    *Usage             `json:"judging,omitzero"` // what judges took on its answers; it is not in Usage

	// Classification has the classes of each metric that has any.
	Classification map[string]*Classification `json:"classification,omitempty"`

	Tools map[string]int `json:"tools,omitempty"` // its tool calls, by how they were answered: exact, canonical, stub, live, never_recorded

	ToolErrors map[string]ToolErrors `json:"tool_errors,omitempty"` // of its tools that failed, by name

	Transferred *Transfers     `json:"transferred,omitzero"` // answers to rated rows, by whether they equal the rated one; none in the recorded lane
	Served      map[string]int `json:"served,omitempty"`     // answers by the model that served them, as the provider named it
	Systems     map[string]int `json:"systems,omitempty"`    // answers by the fingerprint of the system that served them

	PluginUse []PluginUse `json:"plugin_use,omitempty"` // what plugins did to its calls, in the order they first did it
	Kept      int         `json:"kept,omitzero"`        // entries that plugins would have kept: on replay they go nowhere

	Measured Measured `json:"-"`

	scores *scoreTable
}

// CandidateFacts say what a candidate is, in manifests and reports.
type CandidateFacts struct {
	Name           string          `json:"name"`
	Program        string          `json:"program,omitempty"` // MODULE:NAME, or the name alone
	ProgramVersion string          `json:"program_version,omitempty"`
	Definition     string          `json:"definition,omitempty"` // hash of the program's definition: it also says what its version does not
	Recorded       bool            `json:"recorded,omitzero"`    // the recorded lane
	AA             bool            `json:"aa,omitzero"`          // the A/A lane: the baseline, asked again
	Outputs        string          `json:"outputs,omitempty"`    // hash of its recorded outputs, when they are not the rows' own
	Model          *ModelRef       `json:"model,omitzero"`       // none in the recorded lane
	Plugins        []PluginRef     `json:"plugins,omitempty"`
	Price          *pipeline.Price `json:"price,omitzero"`
}

// Summary is a metric over the finished rows. The answers to a row are averaged
// first; one without a score counts 0. Rows on which the metric's judge gave no
// verdict say nothing of a candidate: they are left out of the interval.
type Summary struct {
	stats.Interval
	Failed    int `json:"failed"`              // rows with an answer that has no score of this metric
	NoVerdict int `json:"no_verdict,omitzero"` // of them, those left out
	Unscored  int `json:"unscored,omitzero"`   // of them, those with an answer that the metric, which is no judge, could not score
}

// Usage is what a candidate's answers took, cached ones included. A sum is of
// the answers that say how much they took, and absent when none does.
type Usage struct {
	InputTokens       *int64   `json:"input_tokens,omitzero"`
	OutputTokens      *int64   `json:"output_tokens,omitzero"`
	TotalTokens       *int64   `json:"total_tokens,omitzero"`
	CachedInputTokens *int64   `json:"cached_input_tokens,omitzero"`
	ReasoningTokens   *int64   `json:"reasoning_tokens,omitzero"`
	Cost              *float64 `json:"cost,omitzero"`
	Unknown           int      `json:"unknown,omitzero"` // answers of a model that did not say; the sums are without them
}

// Measured is what an outcome owes to the clock, the host and the schedule.
type Measured struct {
	Answers int             `json:"answers"`           // answers that came, failed ones included
	Asked   int             `json:"asked"`             // of them, calls that a model answered or a request was sent for; none in the recorded lane
	Cached  int             `json:"cached"`            // of these, calls that a cache or another run answered alone
	FromRun int             `json:"from_run,omitzero"` // of them, those that another run answered
	Resumed int             `json:"resumed,omitzero"`  // of the calls that are not cached, those that an earlier process of the run had asked
	Spent   *float64        `json:"spent,omitzero"`    // what the run paid, all of its processes together, where it is known: without what was cached
	Latency Latency         `json:"latency"`
	Waited  float64         `json:"waited"`          // seconds in queues, limits and back-off, of all calls together
	Retries int             `json:"retries"`         // tries that failed and were made again
	Reused  pipeline.Amount `json:"reused,omitzero"` // what the cached calls took when they were asked
}

// What a latency is of: see [Latency].
const (
	OfWire = "wire"
	OfCall = "call"
)

// Latency sums up, in seconds, what the wire took for the tries that answered a
// call; where nobody measured that, the wall clock of the calls. It is without
// cached calls, and of the wire also without those that got no answer. All is 0,
// and Of is "", when there were none.
type Latency struct {
	Of     string  `json:"of,omitempty"` // OfWire or OfCall
	N      int     `json:"n"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	Max    float64 `json:"max"`
	Total  float64 `json:"total"`
}

// Ledger accounts for every input row: it was left out for a reason, or asked;
// and a row that was asked ended, for each candidate, in one state.
type Ledger struct {
	Input      int               `json:"input"`
	LeftOut    map[string]int    `json:"left_out"` // by reason
	Asked      int               `json:"asked"`
	Candidates []CandidateLedger `json:"candidates"`
}

// CandidateLedger says how the rows that were asked ended for a candidate. A row
// of which an answer is missing is unfinished; else it failed, under the class
// of the first answer that did; else it was scored.
type CandidateLedger struct {
	Candidate  string         `json:"candidate"`
	Scored     int            `json:"scored"`
	Failed     map[string]int `json:"failed"` // by class
	Unfinished int            `json:"unfinished"`
}

// Check returns an [ErrLedger] that says where the sums do not reconcile.
func (l *Ledger) Check() error {
	if sum := l.Asked + total(l.LeftOut); sum != l.Input {
		return fmt.Errorf("%w: %d rows went in, %d were asked and %d left out", ErrLedger, l.Input, l.Asked, total(l.LeftOut))
	}
	for _, c := range l.Candidates {
		if sum := c.Scored + total(c.Failed) + c.Unfinished; sum != l.Asked {
			return fmt.Errorf("%w: candidate %s was asked %d rows, and %d were scored, %d failed and %d are unfinished",
				ErrLedger, c.Candidate, l.Asked, c.Scored, total(c.Failed), c.Unfinished)
		}
	}
	return nil
}
