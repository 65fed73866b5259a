package reports

import (
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"time"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/harness/stats"
	"evalrun/pipeline"
)

// Report is what there is to say about a run. Its JSON is report.json.
type Report struct {
	Schema      Schema        `json:"schema"`
	Exit        Exit          `json:"exit"`
	Warnings    []string      `json:"warnings"`          // about the run as a whole; evaluations and comparisons have their own
	Question    *Question     `json:"question,omitzero"` // none when runs are compared
	Suite       []SuiteLine   `json:"suite,omitempty"`   // the score of every candidate that was compared, when there are several evaluations
	Evaluations []*Evaluation `json:"evaluations"`       // in the run's order
	Measured    Measured      `json:"measured"`          // all that depends on clock, host or schedule, and nothing else does

	told    map[string]bool // warnings
	dir     string          // the run's folder; "" when runs are compared
	results func() iter.Seq2[harness.Result, error]
}

// Schema names the form of a document and its version.
type Schema struct {
	Name    string `json:"name"`
	Version int    `json:"version"`
}

// schema is the form of report.json that is written.
var schema = Schema{Name: "evalrun.report", Version: 1}

// Exit says how the run ended: the command's exit code, and what it means.
type Exit struct {
	Code    int    `json:"code"`
	Meaning string `json:"meaning"`
}

// Question is what the answers depend on, as one hash and by its parts.
type Question struct {
	Identity string `json:"identity"`
	Seed     uint64 `json:"seed"`
	Tools    string `json:"tools"` // policy: recorded, stub or live
}

// Evaluation is an evaluation with its verdicts.
type Evaluation struct {
	*harness.Evaluation
	Statistics stats.Options `json:"statistics"` // how the comparisons were made
	Verdicts   []Verdict     `json:"verdicts"`   // one for each of the comparisons, in their order

	lines    []line    // every candidate, by metric
	changes  []changes // rows that changed, by candidate
	failures []failure // what went wrong, by candidate and class
}

// Verdict is a comparison in one sentence.
type Verdict struct {
	Candidate string         `json:"candidate"`
	Metric    string         `json:"metric"`
	Decision  stats.Decision `json:"decision"`
	Sentence  string         `json:"sentence"` // names in backquotes

	words phrase
}

// SuiteLine is one line of the table over all evaluations. N to Same are the
// contract's numbers; P, Decision and Added come from the added layer.
type SuiteLine struct {
	Evaluation string         `json:"evaluation"`
	Baseline   string         `json:"baseline"`
	Candidate  string         `json:"candidate"`
	Metric     string         `json:"metric"`
	N          int            `json:"n"`
	Failed     int            `json:"failed"` // rows of the candidate that failed
	Before     stats.Opt      `json:"before"`
	After      stats.Opt      `json:"after"`
	Diff       stats.Opt      `json:"diff"`
	Better     int            `json:"better"`
	Worse      int            `json:"worse"`
	Same       int            `json:"same"`
	P          stats.Opt      `json:"p"`
	Decision   stats.Decision `json:"decision"`
	Added      SuiteRange     `json:"added"`
}

// SuiteRange is the added layer's difference and its range.
type SuiteRange struct {
	Diff stats.Opt `json:"diff"`
	Low  stats.Opt `json:"low"`
	High stats.Opt `json:"high"`
}

// Measured is what a run owes to the clock, the host and the schedule.
type Measured struct {
	Run         string               `json:"run,omitzero"`  // its id, which is its folder's name
	Name        string               `json:"name,omitzero"` // as the spec calls it
	Started     time.Time            `json:"started,omitzero"`
	Spec        string               `json:"spec,omitzero"`     // hash of the spec file
	Records     []string             `json:"records,omitempty"` // where the rows came from
	Limits      datasets.Values      `json:"limits,omitempty"`
	Versions    map[string]string    `json:"versions,omitempty"`
	Host        map[string]string    `json:"host,omitempty"`
	InDoubt     int                  `json:"in_doubt,omitzero"` // requests of processes that were killed before they knew what became of them
	Evaluations []MeasuredEvaluation `json:"evaluations"`
	Spending    []pipeline.Booking   `json:"spending,omitempty"` // of all sittings together, and what a cache or another run answered, of cause cached
	Sittings    []harness.Sitting    `json:"sittings,omitempty"` // of a run that asked services
}

// MeasuredEvaluation is an evaluation's part of what was measured.
type MeasuredEvaluation struct {
	Name       string              `json:"name"`
	Candidates []MeasuredCandidate `json:"candidates"`
}

// MeasuredCandidate is a candidate's part of what was measured.
type MeasuredCandidate struct {
	Name string `json:"name"`
	harness.Measured
}

// Facts are what a report says beyond the results: what is known only to whoever
// had the run carried out. [StoredFacts] reads them back.
type Facts struct {
	Exit     Exit
	Warnings []string        // doubts about the run as a whole
	Limits   datasets.Values // as the spec states them: concurrency, timeout, budget, …
	InDoubt  int             // requests of processes that were killed before they knew what became of them
	Stats    stats.Options   // how candidates of several runs were compared; a run knows its own
}

// New makes the report of a run. It reads the run's results once, and of its
// calls those whose inputs are shown. Rows that no call was made for, in the
// recorded lane, have their inputs from the records that the run names, if these
// are still where they were.
//
// run is nil when the evaluations compare candidates of several runs. Then
// nothing is said of a run, and no answers are shown.
func New(run *harness.Run, evals []*harness.Evaluation, facts Facts) (*Report, error) {
	if run == nil {
		return build(&material{}, evals, facts)
	}
	sittings, err := run.Sittings()
	if err != nil {
		return nil, err
	}
	return build(&material{
		dir:      run.Dir,
		sittings: sittings,
		manifest: &run.Manifest,
		results:  run.Results,
		inputs: func(calls map[string]bool) (map[string]datasets.Value, error) {
			return callInputs(calls, filepath.Join(run.Dir, harness.CallsFile))
		},
		rated: func(calls map[string]bool) (map[string]datasets.Value, error) {
			return callInputs(calls, run.Manifest.Records...)
		},
	}, evals, facts)
}

// material is what a report is made of beside the evaluations. All of it may be
// missing.
type material struct {
	dir      string
	manifest *harness.Manifest
	sittings []harness.Sitting
	results  func() iter.Seq2[harness.Result, error]
	inputs   func(calls map[string]bool) (map[string]datasets.Value, error) // of the run's own calls, by their ids
	rated    func(calls map[string]bool) (map[string]datasets.Value, error) // of the calls that rows were made of
}

func build(m *material, evals []*harness.Evaluation, facts Facts) (*Report, error) {
	r := &Report{
		Schema: schema, Exit: facts.Exit, Warnings: slices.Clone(facts.Warnings),
		dir: m.dir, results: m.results,
	}
	r.Measured.Limits, r.Measured.InDoubt = facts.Limits, facts.InDoubt
	options := map[string]stats.Options{}
	if man := m.manifest; man != nil {
		r.Question = &Question{Identity: man.Identity, Seed: man.Seed, Tools: man.Tools}
		r.Measured.Run, r.Measured.Name, r.Measured.Started = man.ID, man.Name, man.Started.UTC()
		r.Measured.Spec, r.Measured.Records = man.Spec, man.Records
		r.Measured.Versions, r.Measured.Host = man.Versions, man.Host
		for _, e := range man.Evaluations {
			options[e.Name] = e.Stats
		}
	}
	for _, eval := range evals {
		o, known := options[eval.Name]
		if !known {
			o = facts.Stats
		}
		e := &Evaluation{Evaluation: eval, Statistics: withDefaults(o), Verdicts: []Verdict{}}
		e.lines = e.standings()
		for i := range eval.Comparisons {
			e.Verdicts = append(e.Verdicts, e.verdict(&eval.Comparisons[i]))
		}
		r.Evaluations = append(r.Evaluations, e)
		measured := MeasuredEvaluation{Name: eval.Name}
		for _, out := range eval.Candidates {
			measured.Candidates = append(measured.Candidates, MeasuredCandidate{out.Name, out.Measured})
		}
		r.Measured.Evaluations = append(r.Measured.Evaluations, measured)
	}
	r.Measured.Sittings = m.sittings
	r.Measured.Spending = r.spending()
	if len(evals) > 1 {
		r.Suite = r.suite()
	}
	if m.results != nil {
		if err := r.gather(m); err != nil {
			return nil, fmt.Errorf("%s: %w", m.dir, err)
		}
	}
	return r, nil
}

// Told names warnings that whoever reads the terminal has been told: [Text] does not
// repeat them.
func (r *Report) Told(warnings []string) {
	if r.told == nil {
		r.told = map[string]bool{}
	}
	for _, w := range warnings {
		r.told[w] = true
	}
}

// withDefaults states what leaving an option out means.
func withDefaults(o stats.Options) stats.Options {
	if o.Alpha == 0 {
		o.Alpha = 0.05
	}
	if o.Power == 0 {
		o.Power = 0.8
	}
	return o
}

func (r *Report) suite() []SuiteLine {
	var lines []SuiteLine
	for _, e := range r.Evaluations {
		for i := range e.Comparisons {
			c := &e.Comparisons[i]
			if c.Metric != e.Metrics[0] {
				continue
			}
			failed := 0
			if out := e.Outcome(c.Candidate); out != nil {
				failed = out.Failed
			}
			lines = append(lines, SuiteLine{
				Evaluation: e.Name, Baseline: c.Baseline, Candidate: c.Candidate, Metric: c.Metric,
				N: c.N, Failed: failed, Before: c.Before, After: c.After, Diff: c.Diff,
				Better: c.Better, Worse: c.Worse, Same: c.Same, P: c.P, Decision: c.Decision,
				Added: SuiteRange{c.Added.Diff, c.Added.Low, c.Added.High},
			})
		}
	}
	return lines
}

// title is what a reader calls the run.
func (r *Report) title() string {
	switch {
	case r.Measured.Name != "":
		return r.Measured.Name
	case r.Measured.Run != "":
		return r.Measured.Run
	}
	return "comparison"
}
