package replay

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"evalrun/datasets"
	"evalrun/internal/columnar"
)

// Imported says what an import did.
type Imported struct {
	Calls   int64    `json:"calls"`   // call records written
	Ratings int64    `json:"ratings"` // rating records written
	Known   int64    `json:"known"`   // records that were in the store already
	Other   int64    `json:"other"`   // written records whose id another record has: of calls the highest writer counts, else the first
	Files   []string `json:"files"`   // the files that were added, by name
	Skipped []Skip   `json:"skipped"` // what was left out, and why
}

// An import holds as many records as these allow, sorts them, and writes them
// to a file of their own: memory does not grow with what is imported.
const (
	importBytes = 32 << 20 // of JSON, about
	importRows  = 100_000
)

// Import writes the records of the sources to Parquet files in a store's folder,
// which is made if it is not there. Every record of a call is kept, whoever wrote
// it; readers choose. A record that the store has already, equal as canonical
// JSON, is not written again, so that a log that grew can be imported again. It
// refuses a folder that holds anything else. A store has one writer at a time.
func Import(sources []string, folder string) (Imported, error) {
	im := newImporter(folder)
	if err := im.open(sources); err != nil {
		return im.done, err
	}
	defer im.store.Close()
	from, err := Open(sources...)
	if err != nil {
		return im.done, err
	}
	defer from.Close()
	l := from.(*library)
	for _, f := range l.files {
		skip, counted := l.skipper(f)
		if err := f.each(im.take, skip); err != nil {
			return im.done, err
		}
		if im.err != nil {
			return im.done, im.err
		}
		counted()
	}
	err = im.flush()
	im.done.Skipped = l.Skipped()
	return im.done, err
}

type importer struct {
	folder  string
	store   *library // what the folder holds
	done    Imported
	calls   pile[*Record, callRow]
	ratings pile[*Rating, ratingRow]
	last    map[string]int // number of the last file by kind
	err     error
}

func newImporter(folder string) *importer {
	im := &importer{folder: folder, store: &library{counted: map[file]bool{}}, last: map[string]int{}}
	im.calls = pile[*Record, callRow]{
		im: im, kind: "calls", schema: callsSchema, written: &im.done.Calls,
		opts: []columnar.Option{columnar.SortedBy("started", "id"), columnar.Bloom("id", "root", "conversation_id")},
		id:   func(r *Record) string { return r.ID },
		row:  (*Record).row,
		order: func(a, b *Record) int {
			return cmp.Or(cmp.Compare(timeColumn(a.Started), timeColumn(b.Started)), cmp.Compare(a.ID, b.ID), cmp.Compare(a.WriterRank(), b.WriterRank()))
		},
		known: im.knownCalls,
	}
	im.ratings = pile[*Rating, ratingRow]{
		im: im, kind: "ratings", schema: ratingsSchema, written: &im.done.Ratings,
		opts: []columnar.Option{columnar.SortedBy("at", "id"), columnar.Bloom("id", "call")},
		id:   func(r *Rating) string { return r.ID },
		row:  (*Rating).row,
		order: func(a, b *Rating) int {
			return cmp.Or(cmp.Compare(timeColumn(a.At), timeColumn(b.At)), cmp.Compare(a.ID, b.ID))
		},
		known: im.knownRatings,
	}
	return im
}

// open looks at the store and refuses what is none.
func (im *importer) open(sources []string) error {
	for _, src := range sources {
		if inside(src, im.folder) {
			return fmt.Errorf("%s is part of the store %s itself; name another folder to import to", src, im.folder)
		}
	}
	entries, err := os.ReadDir(im.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening the store: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		calls, _ := filepath.Match(callsPattern, name)
		ratings, _ := filepath.Match(ratingsPattern, name)
		if !calls && !ratings && !strings.HasPrefix(name, ".") {
			return fmt.Errorf("%s is no store: it holds %s; name an empty folder, or one that is not there", im.folder, name)
		}
	}
	names, err := storeFiles(im.folder)
	if err != nil {
		return fmt.Errorf("opening the store: %w", err)
	}
	for _, name := range names {
		if err := im.store.addFile(name); err != nil {
			_ = im.store.Close()
			return err
		}
	}
	return nil
}

// inside reports whether path is the folder or in it.
func inside(path, folder string) bool {
	p, err1 := filepath.EvalSymlinks(path)
	f, err2 := filepath.EvalSymlinks(folder)
	if err1 != nil || err2 != nil {
		return false
	}
	p, err1 = filepath.Abs(p)
	f, err2 = filepath.Abs(f)
	return err1 == nil && err2 == nil && (p == f || strings.HasPrefix(p, f+string(filepath.Separator)))
}

// take holds a record until there are enough for a file.
func (im *importer) take(_ int64, call *Record, rating *Rating) bool {
	if call != nil {
		im.err = im.calls.add(call, call.size())
	} else {
		im.err = im.ratings.add(rating, 500+len(rating.Answer.JSON())+len(rating.Outputs.JSON())+len(rating.Note))
	}
	return im.err == nil
}

// flush writes what is still held.
func (im *importer) flush() error { return errors.Join(im.calls.flush(), im.ratings.flush()) }

// size is about what the record takes as JSON: its large values, and the rest as
// it usually is.
func (r *Record) size() int {
	n := 1000 + 60*len(r.Saw)
	for _, v := range []datasets.Value{r.Inputs, r.Outputs, r.Returned, r.Process, r.Described} {
		n += len(v.JSON())
	}
	for i := range r.Exchanges {
		n += 300 + len(r.Exchanges[i].Request.JSON()) + len(r.Exchanges[i].Response.JSON())
	}
	for _, c := range r.Changes {
		n += 100 + len(c.Change.JSON())
	}
	for _, s := range r.Steps {
		n += len(s.JSON())
	}
	for _, s := range r.Sections {
		n += len(s)
	}
	for _, v := range r.Extra {
		n += len(v.JSON())
	}
	return n
}

// knownCalls and knownRatings return the sums of the store's records of these
// ids.
func (im *importer) knownCalls(ids map[string]bool) (sums, error) {
	known := sums{}
	for _, f := range im.store.files {
		var places []place
		err := f.locate(&Want{IDs: ids}, func(p place) { places = append(places, p) })
		if err == nil {
			err = f.fetch(places, AllParts, func(r *Record) bool { known.add(r.ID, sumOf(r)); return true })
		}
		if err != nil {
			return nil, err
		}
	}
	return known, nil
}

func (im *importer) knownRatings(ids map[string]bool) (sums, error) {
	known := sums{}
	for _, f := range im.store.files {
		if t, ok := f.(*ratingsFile); ok {
			if err := t.find(ids, func(r *Rating) { known.add(r.ID, sumOf(r)) }); err != nil {
				return nil, err
			}
		}
	}
	return known, nil
}

// nextFile is the name of the next file of a kind: calls-000001.parquet, and so on.
func (im *importer) nextFile(kind string) (string, error) {
	if im.last[kind] == 0 {
		entries, err := os.ReadDir(im.folder)
		if err != nil {
			return "", fmt.Errorf("opening the store: %w", err)
		}
		for _, e := range entries {
			if name, ok := strings.CutPrefix(e.Name(), kind+"-"); ok {
				if n, err := strconv.Atoi(strings.TrimSuffix(name, ".parquet")); err == nil {
					im.last[kind] = max(im.last[kind], n)
				}
			}
		}
	}
	im.last[kind]++
	return filepath.Join(im.folder, fmt.Sprintf("%s-%06d.parquet", kind, im.last[kind])), nil
}
