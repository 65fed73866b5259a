package replay

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"evalrun/internal/columnar"
)

// file is a file of records, of any kind.
type file interface {
	// each passes every record on, as either a call or a rating, until take
	// says that it is enough; lines that are none go to skip.
	each(take func(nr int64, call *Record, rating *Rating) bool, skip func(nr int64, err error)) error
	// ratings is each for ratings alone, with the same lines skipped.
	ratings(take func(*Rating) bool, skip func(nr int64, err error)) error
	// locate says where calls are that are wanted, in ascending order.
	locate(w *Want, found func(place)) error
	// fetch reads the calls at these places, in ascending order.
	fetch(places []place, parts Parts, take func(*Record) bool) error
	// where names a line or a row for a person.
	where(nr int64) string
	close() error
}

// place is where a call lies in a file.
type place struct {
	at     int64 // a row, or the offset of a line
	size   int   // of the line
	id     string
	writer int64 // 0 counts as 1
}

// library is a Source over files.
type library struct {
	files   []file
	counted map[file]bool // files whose skipped lines are counted
	skipped skips
	doubles [2]bool // superseded calls and ratings are counted
}

// Open opens records: a store's folder, a call log's folder, files of either
// kind, or several of these. A folder is read for the Parquet files of a store,
// for *.jsonl files, and for those in day folders (2025-01-31). A file that
// cannot be used is an error that names it and what to do; lines of a call log
// that cannot be used are skipped and counted.
func Open(paths ...string) (Source, error) {
	if len(paths) == 0 {
		return nil, errors.New("no records to open; name a store, a call log, or files of either")
	}
	l := &library{counted: map[file]bool{}}
	for _, path := range paths {
		if err := l.add(path); err != nil {
			_ = l.Close()
			return nil, err
		}
	}
	return l, nil
}

func (l *library) add(path string) error {
	names, err := filesOf(path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := l.addFile(name); err != nil {
			return err
		}
	}
	return nil
}

// filesOf lists the files that a path stands for.
func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("opening records: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	names, err := storeFiles(path)
	if err != nil {
		return nil, fmt.Errorf("opening records: %w", err)
	}
	logs, err := logFiles(path)
	if err != nil {
		return nil, fmt.Errorf("opening records: %w", err)
	}
	if len(names) == 0 && holdsConversations(path, logs) {
		return nil, refusedf("%s is a folder of conversations and holds no call records; rated rows come from call logs: name the call log of these turns, or the store it was imported into", path)
	}
	if names = append(names, logs...); len(names) == 0 {
		return nil, refusedf("%s holds no records: no %s or %s, no *.jsonl and no day folder (2025-01-31); name a store or a call log", path, callsPattern, ratingsPattern)
	}
	return names, nil
}

// holdsConversations reports whether a folder without a store is one that has
// conversations, or the folder in it that they are in.
func holdsConversations(folder string, logs []string) bool {
	if len(logs) == 0 {
		info, err := os.Stat(filepath.Join(folder, "conversations"))
		return err == nil && info.IsDir()
	}
	f, err := os.Open(logs[0])
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := io.ReadFull(f, head)
	first, _, _ := bytes.Cut(head[:n], []byte("\n"))
	return bytes.Contains(first, []byte(`"functai_conversation"`))
}

func (l *library) addFile(path string) error {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".jsonl":
		l.files = append(l.files, &logFile{path: path})
	case ".parquet":
		f, err := columnar.Open(path, callsSchema, ratingsSchema)
		if err != nil {
			return err
		}
		if f.Schema().Name == callsSchema.Name {
			l.files = append(l.files, newCallsFile(f))
		} else {
			l.files = append(l.files, &ratingsFile{f})
		}
	default:
		return refusedf("%s is no file of records by its name; name a .parquet or .jsonl file, or a folder", path)
	}
	return nil
}

// The files of a store.
const (
	callsPattern   = "calls-*.parquet"
	ratingsPattern = "ratings-*.parquet"
)

// storeFiles finds a store's files, calls first, each kind by name.
func storeFiles(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var calls, ratings []string
	for _, e := range entries {
		if ok, _ := filepath.Match(callsPattern, e.Name()); ok {
			calls = append(calls, filepath.Join(folder, e.Name()))
		}
		if ok, _ := filepath.Match(ratingsPattern, e.Name()); ok {
			ratings = append(ratings, filepath.Join(folder, e.Name()))
		}
	}
	return append(calls, ratings...), nil
}

// skipper counts a file's skipped lines, on the first pass that reaches its end.
func (l *library) skipper(f file) (skip func(nr int64, err error), done func()) {
	if l.counted[f] {
		return func(int64, error) {}, func() {}
	}
	var found skips
	skip = func(nr int64, err error) {
		reason := SkipNotJSON
		if e, ok := errors.AsType[*SkipError](err); ok {
			reason = e.Reason
		}
		found.add(reason, f.where(nr))
	}
	return skip, func() {
		l.counted[f] = true
		l.skipped.merge(found)
	}
}

func (l *library) Ratings() iter.Seq2[*Rating, error] {
	return func(yield func(*Rating, error) bool) {
		seen := map[string]bool{}
		var doubles skips
		for _, f := range l.files {
			skip, done := l.skipper(f)
			more := true
			err := f.ratings(func(r *Rating) bool {
				if seen[r.ID] {
					doubles.add(SkipSuperseded, "rating "+r.ID)
					return true
				}
				seen[r.ID] = true
				more = yield(r, nil)
				return more
			}, skip)
			if err != nil {
				yield(nil, err)
				return
			}
			if !more {
				return
			}
			done()
		}
		if !l.doubles[1] {
			l.doubles[1] = true
			l.skipped.merge(doubles)
		}
	}
}

func (l *library) Calls(w Want) iter.Seq2[*Record, error] {
	if w.All {
		return l.all
	}
	return func(yield func(*Record, error) bool) {
		ids := w.IDs
		if w.some() {
			// A record of another writer may say another root: all of an id are
			// looked at before one is chosen.
			ids = map[string]bool{}
			for id := range w.IDs {
				ids[id] = true
			}
			for _, f := range l.files {
				if err := f.locate(&w, func(p place) { ids[p.id] = true }); err != nil {
					yield(nil, err)
					return
				}
			}
		}
		places, err := l.best(ids)
		if err != nil {
			yield(nil, err)
			return
		}
		for i, f := range l.files {
			more := true
			err := f.fetch(places[i], w.Parts, func(r *Record) bool {
				if w.record(r) {
					more = yield(r, nil)
				}
				return more
			})
			if err != nil {
				yield(nil, err)
				return
			}
			if !more {
				return
			}
		}
	}
}

// best finds, for each id, the record of the highest writer, and returns the
// places by file, in ascending order. Of equal writers the first counts.
func (l *library) best(ids map[string]bool) ([][]place, error) {
	type choice struct {
		file int
		place
	}
	places := make([][]place, len(l.files))
	if len(ids) == 0 {
		return places, nil
	}
	chosen := make(map[string]choice, len(ids))
	for i, f := range l.files {
		err := f.locate(&Want{IDs: ids}, func(p place) {
			if has, ok := chosen[p.id]; !ok || max(p.writer, 1) > max(has.writer, 1) {
				chosen[p.id] = choice{i, p}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	for _, c := range chosen {
		places[c.file] = append(places[c.file], c.place)
	}
	for _, list := range places {
		slices.SortFunc(list, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	}
	return places, nil
}

// all yields every call. Which ids occur twice is found first, from eight bytes
// an id, so that nothing else needs to be remembered of the calls. Those few are
// yielded after the others of their file.
func (l *library) all(yield func(*Record, error) bool) {
	twice, err := l.twice()
	if err != nil {
		yield(nil, err)
		return
	}
	places, err := l.best(twice)
	if err != nil {
		yield(nil, err)
		return
	}
	for i, f := range l.files {
		skip, done := l.skipper(f)
		more := true
		pass := func(r *Record) bool {
			more = yield(r, nil)
			return more
		}
		err := f.each(func(_ int64, r *Record, _ *Rating) bool {
			return r == nil || twice[r.ID] || pass(r)
		}, skip)
		if err == nil && more {
			done()
			err = f.fetch(places[i], AllParts, pass)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		if !more {
			return
		}
	}
}

// twice returns the ids of which there are several records.
func (l *library) twice() (map[string]bool, error) {
	seed := maphash.MakeSeed()
	var hashes []uint64
	every := func(found func(place)) error {
		for _, f := range l.files {
			if err := f.locate(&Want{All: true}, found); err != nil {
				return err
			}
		}
		return nil
	}
	if err := every(func(p place) { hashes = append(hashes, maphash.String(seed, p.id)) }); err != nil {
		return nil, err
	}
	slices.Sort(hashes)
	again := map[uint64]bool{}
	for i := 1; i < len(hashes); i++ {
		if hashes[i] == hashes[i-1] {
			again[hashes[i]] = true
		}
	}
	if len(again) == 0 {
		return nil, nil
	}
	// Two ids may have one hash: look again at those few.
	once, twice := map[string]bool{}, map[string]bool{}
	var superseded skips
	err := every(func(p place) {
		switch {
		case !again[maphash.String(seed, p.id)]:
		case once[p.id]:
			twice[p.id] = true
			superseded.add(SkipSuperseded, "call "+p.id)
		default:
			once[p.id] = true
		}
	})
	if err == nil && !l.doubles[0] {
		l.doubles[0] = true
		l.skipped.merge(superseded)
	}
	return twice, err
}

func (l *library) Skipped() []Skip { return l.skipped.list() }

func (l *library) Close() error {
	var err error
	for _, f := range l.files {
		err = errors.Join(err, f.close())
	}
	return err
}
