package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"evalrun/internal/disk"
	"evalrun/pipeline"
)

// MeasuredFile has the sittings of a run that asked services.
const MeasuredFile = "measured.json"

// Sitting is what one process that carried a run out took. A run that was
// interrupted and went on has several. Its JSON is an item of measured.json and
// of a report's "measured".
type Sitting struct {
	Started  time.Time          `json:"started"`
	Ended    *time.Time         `json:"ended,omitzero"` // none: the process ended before it could say what it took
	Models   []Limited          `json:"models"`         // the services that were asked, by name
	Bookings []pipeline.Booking `json:"bookings"`       // what they were asked for, without what a journal or cache answered
	Before   []pipeline.Booking `json:"before"`         // what the run's journal knows that the sittings before were asked for
}

// Limited says how the limits of a model's service went.
type Limited struct {
	Name string `json:"name"` // as the run calls it

	Requests     int64            `json:"requests"`          // that were to be answered
	Tries        int64            `json:"tries"`             // sent to the service
	Retries      map[string]int64 `json:"retries,omitempty"` // further tries, by the class of the failure before them
	Episodes     int64            `json:"episodes"`          // of rate limiting
	Pauses       int64            `json:"pauses"`            // in which nothing was sent
	LongestPause float64          `json:"longest_pause"`     // in seconds
	Waited       float64          `json:"waited"`            // seconds in the queue, limits and back-off, of all requests together

	History []LimitEvent `json:"history"` // oldest first
}

// LimitEvent is something that happened to the limit on requests in flight.
type LimitEvent struct {
	At    float64 `json:"at"`    // seconds since the model was opened, which is before the first request
	Limit int     `json:"limit"` // on requests in flight, from then on
	Why   string  `json:"why"`   // start, grew, rate_limited, server_error, paused, probe, resumed, gave_up
}

// measuredSchema is the form of measured.json that is written.
var measuredSchema = schemaLine{"evalrun.measured", 1}

type schemaLine struct {
	Name    string `json:"name"`
	Version int    `json:"version"`
}

// measured is measured.json.
type measured struct {
	Schema   schemaLine `json:"schema"`
	Sittings []Sitting  `json:"sittings"`
}

// KeepSitting adds a sitting to the run's measured.json, in the place of the one
// that began at the same time, if there is one: so a sitting can be kept when it
// begins, and again when it ends.
func (r *Run) KeepSitting(s Sitting) error {
	sittings, err := r.Sittings()
	if err != nil {
		return err
	}
	if n := len(sittings); n > 0 && sittings[n-1].Started.Equal(s.Started) {
		sittings = sittings[:n-1]
	}
	text, err := json.Marshal(measured{measuredSchema, append(sittings, s)}, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("writing %s: %w", MeasuredFile, err)
	}
	err = disk.Write(r.measuredPath(), func(f *os.File) error {
		_, err := f.Write(append(text, '\n'))
		return err
	})
	if err != nil {
		return fmt.Errorf("writing %s: %w", MeasuredFile, err)
	}
	return nil
}

// SetSittingsAside takes a measured.json that cannot be read out of the way, since
// it only informs, and says where it is now and why; "" when nothing is wrong.
func (r *Run) SetSittingsAside() (aside string, why, err error) {
	if _, why = r.Sittings(); why == nil {
		return "", nil, nil
	}
	aside = r.measuredPath() + ".damaged"
	return aside, why, os.Rename(r.measuredPath(), aside)
}

// Sittings reads the run's measured.json. Without one there are none, and no
// error: the run asked no service.
func (r *Run) Sittings() ([]Sitting, error) {
	text, err := os.ReadFile(r.measuredPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var m measured
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%s: it does not say what a run took: %w; take it away to go without", r.measuredPath(), err)
	}
	switch {
	case m.Schema.Name != measuredSchema.Name:
		return nil, fmt.Errorf("%s: its schema is %q, not %q; take it away to go without", r.measuredPath(), m.Schema.Name, measuredSchema.Name)
	case m.Schema.Version > measuredSchema.Version:
		return nil, fmt.Errorf("%s: its version is %d, of a later evalrun; this one reads up to %d", r.measuredPath(), m.Schema.Version, measuredSchema.Version)
	}
	return m.Sittings, nil
}

func (r *Run) measuredPath() string { return filepath.Join(r.Dir, MeasuredFile) }
