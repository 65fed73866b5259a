package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"evalrun/internal/disk"
	"evalrun/replay/journal"
)

// SegmentsFile has the sizes of the journal's segments when a process of the run
// last ended: what is missing since is damage.
const SegmentsFile = "segments.json"

// segmentSizes is segments.json.
type segmentSizes struct {
	Schema schemaLine `json:"schema"`
	Sizes  []int64    `json:"sizes"` // in bytes, of the first segment first
}

var segmentsSchema = schemaLine{"evalrun.segments", 1}

// journal is the folder of the run's journal.
func (r *Run) journal() string { return filepath.Join(r.Dir, JournalDir) }

// checkJournal refuses a journal that has lost segments, or parts of them, since a
// process of the run last ended.
func (r *Run) checkJournal() error {
	path := filepath.Join(r.Dir, SegmentsFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no process of the run has ended yet, but by a kill
	}
	if err != nil {
		return err
	}
	var had segmentSizes
	if err := json.Unmarshal(text, &had); err != nil || had.Schema != segmentsSchema {
		return fmt.Errorf("%w: %s does not say how large the journal's segments were (%v): take it away to go without", ErrFolder, path, err)
	}
	return damaged(journal.CheckSizes(r.journal(), had.Sizes))
}

// damaged says how to go on with a journal that is damaged.
func damaged(err error) error {
	if errors.Is(err, journal.ErrDamaged) {
		return fmt.Errorf("%w: %w; or go on without what is lost, which is asked again, with --accept-damaged-journal; or start over with --fresh", ErrFolder, err)
	}
	return err
}

// sizeJournal writes down how large the journal's segments are, once all is in them.
func (r *Run) sizeJournal(kept *journal.Journal) error {
	if kept == nil {
		return nil
	}
	if err := kept.Sync(); err != nil {
		return err
	}
	sizes, err := journal.Sizes(r.journal())
	if err != nil {
		return err
	}
	text, err := json.Marshal(segmentSizes{segmentsSchema, sizes})
	if err != nil {
		return err
	}
	return disk.Write(filepath.Join(r.Dir, SegmentsFile), func(f *os.File) error {
		_, err := f.Write(append(text, '\n'))
		return err
	})
}

// MendJournal leaves out what is damaged of the journal of the run that [StartRun]
// would go on with: see [journal.Mend]. It says how many bytes were left out, and of
// which run; there is no folder when there is no run to go on with.
func MendJournal(root string, info RunInfo, plans ...*Checked) (dir string, lost int64, err error) {
	r, err := Foresee(root, info, plans...)
	if err != nil || !r.Again {
		return "", 0, err
	}
	if err := r.acquire(); err != nil {
		return "", 0, err
	}
	defer r.Close()
	if lost, err = journal.Mend(r.journal()); err != nil {
		return r.Dir, lost, fmt.Errorf("mending the journal: %w", err)
	}
	if err := os.Remove(filepath.Join(r.Dir, SegmentsFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r.Dir, lost, err
	}
	return r.Dir, lost, nil
}
