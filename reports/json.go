package reports

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"evalrun/datasets"
	"evalrun/harness/stats"
	"evalrun/internal/canon"
)

// JSONFile is the name of a run's machine-readable report.
const JSONFile = "report.json"

//go:embed report.schema.json
var reportSchema string

// JSONSchema is the JSON Schema of report.json.
func JSONSchema() string { return reportSchema }

// writeJSON writes report.json: members sorted, numbers in their canonical
// spelling, two spaces of indentation.
func writeJSON(w io.Writer, r *Report) error {
	text, err := json.Marshal(r, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return err
	}
	value := jsontext.Value(nil)
	if value, err = canon.Append(nil, text); err != nil {
		return err
	}
	if err := value.Indent(jsontext.WithIndent("  ")); err != nil {
		return err
	}
	_, err = w.Write(append(value, '\n'))
	return err
}

// StoredFacts reads back what the report.json in a run's folder says beyond the
// run's results, so that reports can be written again. Without a report.json
// there are none, and no error.
func StoredFacts(dir string) (Facts, error) {
	path := filepath.Join(dir, JSONFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Facts{}, nil
	}
	if err != nil {
		return Facts{}, err
	}
	var stored struct {
		Schema   Schema   `json:"schema"`
		Exit     Exit     `json:"exit"`
		Warnings []string `json:"warnings"`
		Measured struct {
			Limits  datasets.Values `json:"limits"`
			InDoubt int             `json:"in_doubt"`
		} `json:"measured"`
		Evaluations []struct {
			Statistics stats.Options `json:"statistics"`
		} `json:"evaluations"`
	}
	if err := json.Unmarshal(text, &stored); err != nil {
		return Facts{}, fmt.Errorf("%s: not a report: %w", path, err)
	}
	switch s := stored.Schema; {
	case s.Name != schema.Name:
		return Facts{}, fmt.Errorf("%s: not a report: its schema is %q, not %q", path, s.Name, schema.Name)
	case s.Version > schema.Version:
		return Facts{}, fmt.Errorf("%s: its version is %d, of a later evalrun; this one reads up to %d", path, s.Version, schema.Version)
	}
	facts := Facts{Exit: stored.Exit, Warnings: stored.Warnings, Limits: stored.Measured.Limits, InDoubt: stored.Measured.InDoubt}
	if len(stored.Evaluations) > 0 {
		facts.Stats = stored.Evaluations[0].Statistics
	}
	return facts, nil
}
