package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"evalrun/harness/stats"
	"evalrun/internal/canon"
	"evalrun/internal/disk"
)

// manifestSchema is the version of manifest.json that is written. Later ones are
// refused.
const manifestSchema = 1

// Manifest says what a run is: what its answers depend on, and what is needed to
// read its files.
type Manifest struct {
	Schema      int                  `json:"schema"`
	ID          string               `json:"id"`       // the folder's name; calls are tagged with it
	Identity    string               `json:"identity"` // hash of the question: see [Identity]
	Name        string               `json:"name"`
	Started     time.Time            `json:"started"`
	Fresh       bool                 `json:"fresh,omitzero"`      // started over: it takes no answers from other runs
	Spec        string               `json:"spec,omitempty"`      // hash of the spec file
	SpecFile    string               `json:"spec_file,omitempty"` // where it was
	Records     []string             `json:"records,omitempty"`   // the stores that rows came from; what a call's record says it saw is in there
	Seed        uint64               `json:"seed"`
	Tools       string               `json:"tools,omitempty"` // policy, in words
	Evaluations []EvaluationManifest `json:"evaluations"`
	Versions    map[string]string    `json:"versions,omitempty"` // of evalrun and of Go
	Host        map[string]string    `json:"host,omitempty"`     // facts about where it ran
}

// EvaluationManifest is an evaluation's part of a manifest.
type EvaluationManifest struct {
	Name       string           `json:"name"`
	Rows       RowCounts        `json:"rows"`
	Candidates []CandidateFacts `json:"candidates"`
	Baseline   string           `json:"baseline"`
	Compare    string           `json:"compare,omitempty"` // what candidates are compared with, when it is not the baseline
	Metrics    []string         `json:"metrics"`
	Lower      []string         `json:"lower_is_better,omitempty"` // of the metrics, those of which less is better
	Timed      []string         `json:"timed,omitempty"`           // of the metrics, those that the clock measures
	Units      Units            `json:"units,omitempty"`           // of the metrics whose scores are amounts
	Judges     []JudgeFacts     `json:"judges,omitempty"`          // of the metrics, those that ask a model
	Repeats    int              `json:"repeats"`
	Stats      stats.Options    `json:"stats,omitzero"`
	Fidelity   *Fidelity        `json:"fidelity,omitzero"`
	Warnings   []string         `json:"warnings,omitempty"`
}

// manifest is the plan's part.
func (c *Checked) manifest() EvaluationManifest {
	m := EvaluationManifest{
		Name: c.plan.Name, Rows: c.rows, Baseline: c.plan.baseline(), Metrics: c.plan.metricNames(), Lower: c.plan.lowerIsBetter(), Timed: c.plan.timed(), Units: c.plan.units(),
		Repeats: c.plan.repeats(), Stats: c.plan.Stats, Compare: c.plan.Compare, Fidelity: c.same, Warnings: c.warnings, Judges: c.plan.judgeFacts(),
	}
	for i := range c.plan.Candidates {
		facts := c.plan.Candidates[i].facts()
		facts.Outputs = c.outputs[i]
		m.Candidates = append(m.Candidates, facts)
	}
	return m
}

// blank is the evaluation before its results.
func (m *EvaluationManifest) blank() *Evaluation {
	e := &Evaluation{
		Name: m.Name, Metrics: m.Metrics, Lower: m.Lower, timed: m.Timed, Units: m.Units, Baseline: m.Baseline, Repeats: m.Repeats, Rows: m.Rows,
		Compare: m.Compare, Fidelity: m.Fidelity, Warnings: append([]string(nil), m.Warnings...),
	}
	for _, facts := range m.Judges {
		e.Judges = append(e.Judges, JudgeReport{JudgeFacts: facts})
	}
	for _, facts := range m.Candidates {
		e.Candidates = append(e.Candidates, &Outcome{CandidateFacts: facts})
	}
	return e
}

// question is what a run's identity is the hash of: everything its answers
// depend on. Metrics, prices and versions of evalrun are not in it, so that
// changing them scores the same answers again. Names are: answers are filed
// under them.
type question struct {
	Evaluations []evaluationQuestion `json:"evaluations"`
	Seed        uint64               `json:"seed"`
	Tools       string               `json:"tools"`
}

type evaluationQuestion struct {
	Name       string              `json:"name"`
	Rows       string              `json:"rows"`
	Candidates []candidateQuestion `json:"candidates"`
	Repeats    int                 `json:"repeats"`
}

type candidateQuestion struct {
	Name     string      `json:"name"`
	Program  string      `json:"program"`
	Settings string      `json:"definition"`
	Recorded bool        `json:"recorded"`
	Outputs  string      `json:"outputs"`
	Model    *ModelRef   `json:"model"`
	Plugins  []PluginRef `json:"plugins"`
}

// asked is the candidate's part of the question.
func (c *CandidateFacts) asked() candidateQuestion {
	return candidateQuestion{c.Name, c.ProgramVersion, c.Definition, c.Recorded, c.Outputs, c.Model, c.Plugins}
}

// identity hashes the manifest's question.
func (m *Manifest) identity() (string, error) {
	q := question{Seed: m.Seed, Tools: m.Tools}
	for _, e := range m.Evaluations {
		eq := evaluationQuestion{Name: e.Name, Rows: e.Rows.Fingerprint, Repeats: e.Repeats}
		for _, c := range e.Candidates {
			eq.Candidates = append(eq.Candidates, c.asked())
		}
		q.Evaluations = append(q.Evaluations, eq)
	}
	text, err := json.Marshal(q)
	if err != nil {
		return "", err
	}
	text, err = canon.Append(nil, text)
	if err != nil {
		return "", err
	}
	return canon.Hash(text), nil
}

// folder names the run: when it was started, what it is called, and the head of
// its identity.
func (m *Manifest) folder() string {
	return m.Started.UTC().Format("20060102T150405Z") + m.suffix()
}

// suffix is the part of the folder's name that runs of one question share.
func (m *Manifest) suffix() string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '-'
	}, m.Name)
	if name == "" {
		name = "run"
	}
	hash := strings.TrimPrefix(m.Identity, "sha256:")
	return "_" + name + "_" + hash[:8]
}

// newest yields the manifests of the runs under a folder whose names end so, the
// newest run first: names begin with the time. What is no run's folder is passed
// over.
func newest(root, suffix string) iter.Seq[*Manifest] {
	return func(yield func(*Manifest) bool) {
		for dir := range folders(root, suffix) {
			m, err := readManifest(dir)
			if err == nil && m.ID == filepath.Base(dir) && !yield(m) {
				return
			}
		}
	}
}

// folders yields the folders under another whose names end so, the last name first.
func folders(root, suffix string) iter.Seq[string] {
	return func(yield func(string) bool) {
		entries, err := os.ReadDir(root)
		if err != nil {
			return // there is no root yet, or whoever writes into it will say what is wrong with it
		}
		for _, e := range slices.Backward(entries) {
			if strings.HasSuffix(e.Name(), suffix) && !yield(filepath.Join(root, e.Name())) {
				return
			}
		}
	}
}

// readRun reads the manifest of a folder that its name says is a run's: one that
// cannot be read is an error, as is a journal beside none. It is nil when nothing
// came of the run.
func readRun(dir string) (*Manifest, error) {
	m, err := readManifest(dir)
	if err == nil {
		return m, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		if _, none := os.Stat(filepath.Join(dir, JournalDir)); errors.Is(none, fs.ErrNotExist) {
			return nil, nil // its process was killed at once, or there is no folder
		}
	}
	return nil, fmt.Errorf("%w: it has the name of a run of this question, and %w; put back a copy of %s, use the evalrun that wrote it, or start over with --fresh", ErrFolder, err, manifestFile)
}

const manifestFile = "manifest.json"

// write writes the manifest into the run's folder.
func (m *Manifest) write(dir string) error {
	text, err := json.Marshal(m, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	// A manifest that is cut short would orphan the answers beside it.
	err = disk.Write(filepath.Join(dir, manifestFile), func(f *os.File) error {
		_, err := f.Write(append(text, '\n'))
		return err
	})
	if err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	return nil
}

// readManifest reads the manifest of the run in a folder.
func readManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, manifestFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s is no run's folder: %w", dir, err)
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%s: not a run's manifest: %w", path, err)
	}
	switch {
	case m.Schema < 1:
		return nil, fmt.Errorf("%s: not a run's manifest: it names no schema", path)
	case m.Schema > manifestSchema:
		return nil, fmt.Errorf("%s: its schema is %d, of a later evalrun; this one reads up to %d", path, m.Schema, manifestSchema)
	}
	return &m, nil
}
