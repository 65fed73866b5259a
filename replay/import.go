package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

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
// refuses a folder that holds anything else.
//
// A store has one writer at a time: an import waits until another is done. No
// file is ever written over. When ctx ends it stops; the files that are whole by
// then stay, and the error is that of ctx.
//
// The error is a *[DataError] or a *[columnar.Error] when the data was refused,
// and otherwise that of the file system.
func Import(ctx context.Context, sources []string, folder string) (Imported, error) {
	return newImporter(ctx, folder).run(sources)
}

func (im *importer) run(sources []string) (Imported, error) {
	for _, src := range sources {
		if inside(src, im.folder) {
			return im.done, refusedf("%s is part of the store %s itself; name another folder to import to", src, im.folder)
		}
	}
	if err := im.look(); err != nil {
		return im.done, err
	}
	defer im.close()
	from, err := Open(sources...)
	if err != nil {
		return im.done, err
	}
	defer from.Close()
	l := from.(*library)
	for _, f := range l.files {
		if err := im.ctx.Err(); err != nil {
			return im.done, err
		}
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
	ctx     context.Context
	folder  string
	bytes   int          // of JSON that are held at a time, about
	rows    int          // records that are held at a time
	lock    *flock.Flock // nil until there is something to write
	store   *library     // what the folder holds
	done    Imported
	calls   pile[*Record, callRow]
	ratings pile[*Rating, ratingRow]
	last    map[string]int // number of the last file by kind
	err     error
}

func newImporter(ctx context.Context, folder string) *importer {
	im := &importer{
		ctx: ctx, folder: folder, bytes: importBytes, rows: importRows,
		store: &library{counted: map[file]bool{}}, last: map[string]int{},
	}
	im.calls = pile[*Record, callRow]{
		im: im, kind: "calls", schema: callsSchema, written: &im.done.Calls,
		opts: []columnar.Option{columnar.SortedBy("started", "id"), columnar.Bloom("id", "root", "conversation_id"), columnar.NeverReplace()},
		id:   func(r *Record) string { return r.ID },
		row:  (*Record).row,
		order: func(a, b *Record) int {
			return cmp.Or(cmp.Compare(timeColumn(a.Started), timeColumn(b.Started)), cmp.Compare(a.ID, b.ID), cmp.Compare(a.WriterRank(), b.WriterRank()))
		},
		known: im.knownCalls,
	}
	im.ratings = pile[*Rating, ratingRow]{
		im: im, kind: "ratings", schema: ratingsSchema, written: &im.done.Ratings,
		opts: []columnar.Option{columnar.SortedBy("at", "id"), columnar.Bloom("id", "call"), columnar.NeverReplace()},
		id:   func(r *Rating) string { return r.ID },
		row:  (*Rating).row,
		order: func(a, b *Rating) int {
			return cmp.Or(cmp.Compare(timeColumn(a.At), timeColumn(b.At)), cmp.Compare(a.ID, b.ID))
		},
		known: im.knownRatings,
	}
	return im
}

// look refuses a folder that is no store.
func (im *importer) look() error {
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
			return refusedf("%s is no store: it holds %s; name an empty folder, or one that is not there", im.folder, name)
		}
	}
	return nil
}

// lockRetry is how long an import waits before it asks again whether another is
// done.
const lockRetry = 50 * time.Millisecond

// begin makes the store, waits until it is this import's alone, and looks at what
// it holds by then. It does so once.
func (im *importer) begin() error {
	if im.lock != nil {
		return nil
	}
	if err := os.MkdirAll(im.folder, 0o700); err != nil {
		return fmt.Errorf("making the store: %w", err)
	}
	im.lock = flock.New(filepath.Join(im.folder, ".lock"))
	if _, err := im.lock.TryLockContext(im.ctx, lockRetry); err != nil {
		if ended := im.ctx.Err(); ended != nil {
			return ended
		}
		return fmt.Errorf("locking the store: %w", err)
	}
	if err := im.look(); err != nil {
		return err
	}
	names, err := storeFiles(im.folder)
	if err != nil {
		return fmt.Errorf("opening the store: %w", err)
	}
	for _, name := range names {
		if err := im.store.addFile(name); err != nil {
			return err
		}
	}
	return nil
}

// close gives the store free. What was written is on disk by then.
func (im *importer) close() {
	_ = im.store.Close()
	if im.lock != nil {
		_ = im.lock.Unlock()
	}
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
	if im.err = im.ctx.Err(); im.err != nil {
		return false
	}
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
		if err := im.ctx.Err(); err != nil {
			return nil, err
		}
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
		if err := im.ctx.Err(); err != nil {
			return nil, err
		}
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
