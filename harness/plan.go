package harness

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"evalrun/datasets"
	"evalrun/harness/stats"
	"evalrun/pipeline"
	"evalrun/replay"
)

// Plan is one question: how good are these candidates on these rows? It is one
// evaluation of a run, which may have several. A plan says what is asked,
// [Options] how.
type Plan struct {
	Name       string          // the evaluation's name, unique in its run; "" in a run of one
	Rows       datasets.Source // what the candidates are asked
	Intake     Intake          // where the rows came from
	Candidates []Candidate     // what is compared
	Baseline   string          // the candidate that is in use, which the others are compared with; "" for the first
	AA         bool            // ask the baseline a second time, as a candidate of its own: see [Noise]
	Compare    string          // what candidates are compared with: one of the Compare constants; "" for the baseline
	Metrics    []Metric        // the first one is the score
	Repeats    int             // answers to each row from each candidate; 0 means 1

	// Pair names the input or meta field by whose value rows are paired with
	// those of other programs; "" pairs by the rows' ids.
	Pair string

	// Entries returns what reads the entries that plugins had kept in the row's
	// conversation before its call: nil where nothing is known of them. It is safe
	// for concurrent use.
	Entries func(row *datasets.Row) (func(plugin, kind string) []pipeline.Entry, error)

	// Records are the calls that the rows were made of, to say in what requests
	// differ from those that were recorded; nil when they are not at hand. They
	// are read when the plan is checked, and not later.
	Records replay.Source

	Stats stats.Options // of the comparisons with the baseline; Binary is found by looking
}

// Intake accounts for the input of which a plan's rows are what is left. The
// zero value means that the plan's rows are all there was.
type Intake struct {
	Input   int            // rows that were read; 0 means those of the plan and those left out
	Rated   int            // of them, rows that a rating made usable; 0 when rows are not made of ratings
	LeftOut map[string]int // rows that are not asked, by reason

	Warnings []string // doubts about the rows, for the evaluation
}

// Candidate is one of the things that are compared: a program as it is asked in
// one environment, or the outputs that were recorded.
type Candidate struct {
	Name    string            // unique in its plan
	Program *pipeline.Program // may be nil in the recorded lane

	// Caller asks the program. It has the model, the environment's plugins,
	// the clock and the ids. Nil in the recorded lane.
	Caller *pipeline.Caller

	// Recorded makes this the recorded lane: a row's answer is the output
	// recorded for it, and nothing is asked.
	Recorded bool

	// Outputs are what was recorded for a row, in place of the row's own
	// recorded output: another program's, say, for rows that are paired by a
	// field. nil where nothing was. For the recorded lane alone.
	Outputs func(datasets.Row) datasets.Values

	// Tools says what answers its program's tool calls. Those that run are found in
	// the caller's Tools. The caller's Approve, where it has one, comes before
	// this policy's.
	Tools replay.ToolPolicy

	Model   ModelRef    // which model and settings the caller has
	Plugins []PluginRef // the plugins of every layer around it, in the order they run

	aa bool // the A/A lane
}

// ModelRef says which model a candidate asked. Answers depend on all of it.
type ModelRef struct {
	Name     string          `json:"name"`              // as the spec calls it
	Provider string          `json:"provider,omitzero"` // recorded, lexical, openai, …
	Settings datasets.Values `json:"settings,omitzero"` // its real name, address, sampling settings, …; no secrets
	Content  string          `json:"content,omitzero"`  // hash of a file that the answers come from
}

// PluginRef says which plugin was around a candidate.
type PluginRef struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Content string `json:"content,omitzero"` // hash of its file
}

// Errors to tell apart with errors.Is. Their text is followed by what, where and
// what to do.
var (
	ErrPlan    = errors.New("the plan cannot be carried out") // a mistake in the question
	ErrRows    = errors.New("the rows cannot be used")        // the data is at fault: a row that cannot be read, an id that occurs twice
	ErrNoRows  = errors.New("no row was evaluated")           // never a success
	ErrFailed  = errors.New("every answer failed")            // an ErrNoRows too: rows there were
	ErrOutage  = errors.New("no model answered")              // an ErrNoRows too: every answer was lost to an outage
	ErrTooMany = errors.New("too many rows failed")
	ErrBusy    = errors.New("another process is carrying out this run")
	ErrFolder  = errors.New("the run's folder cannot be used") // something in it is damaged, or of a later evalrun
	ErrLedger  = errors.New("the rows do not add up")          // a row was lost, or counted twice
)

func (p *Plan) repeats() int { return max(1, p.Repeats) }

func (p *Plan) baseline() string {
	if p.Baseline == "" && len(p.Candidates) > 0 {
		return p.Candidates[0].Name
	}
	return p.Baseline
}

func (p *Plan) metricNames() []string {
	names := make([]string, len(p.Metrics))
	for i, m := range p.Metrics {
		names[i] = m.Name()
	}
	return names
}

// lowerIsBetter names the metrics of which less is better.
func (p *Plan) lowerIsBetter() []string {
	return p.metricsThat(lowerIsBetter)
}

// timed names the metrics that the clock measures.
func (p *Plan) timed() []string { return p.metricsThat(timed) }

// units are those of the metrics that have one.
func (p *Plan) units() Units {
	var units Units
	for _, m := range p.Metrics {
		u := unit(m)
		if u == "" {
			continue
		}
		if units == nil {
			units = Units{}
		}
		units[m.Name()] = u
	}
	return units
}

func (p *Plan) metricsThat(are func(Metric) bool) []string {
	var names []string
	for _, m := range p.Metrics {
		if are(m) {
			names = append(names, m.Name())
		}
	}
	return names
}

// recordedOutputs are what was recorded for a row.
func (cand *Candidate) recordedOutputs(row *datasets.Row) datasets.Values {
	if cand.Outputs != nil {
		return cand.Outputs(*row)
	}
	return row.Recorded
}

// where begins an error about the plan.
func (p *Plan) where() string {
	if p.Name == "" {
		return ""
	}
	return "evaluation " + p.Name + ": "
}

// title names the candidate where results are kept and calls are made: by its
// name in the run, since evaluations of one run may ask the same rows.
func (p *Plan) title(c *Candidate) string { return titleOf(p.Name, c.Name) }

func titleOf(evaluation, candidate string) string {
	if evaluation == "" {
		return candidate
	}
	if strings.Contains(evaluation, "/") {
		return strconv.Quote(evaluation) + "/" + candidate // no other evaluation and candidate come to the same
	}
	return evaluation + "/" + candidate
}

// rowCounts is the intake, completed.
func (p *Plan) rowCounts(fingerprint string) RowCounts {
	n := RowCounts{
		Input: p.Intake.Input, Rated: p.Intake.Rated, LeftOut: maps.Clone(p.Intake.LeftOut),
		Asked: p.Rows.Len(), Fingerprint: fingerprint, Pair: p.Pair,
	}
	if n.LeftOut == nil {
		n.LeftOut = map[string]int{}
	}
	if n.Input == 0 {
		n.Input = n.Asked + total(n.LeftOut)
	}
	return n
}

func total(counts map[string]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

// reasons lists counts by name: "3 no_answer, 1 no_content".
func reasons(counts map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(list, ", ")
}
