// Package conversations keeps conversations in a folder.
//
// Each conversation is one file, conversations/<id>.jsonl, with one record, a
// JSON object, a line; next to it lies its lock. Records are only ever added at
// the end: whoever adds one holds the lock, has seen all that is there, and
// returns when the record is on disk. A process that is killed while it writes
// leaves a torn line at the end, which no reader counts and the next writer
// takes away; no earlier record is ever touched.
package conversations

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"evalrun/datasets"
	"evalrun/internal/disk"
	"evalrun/pipeline"
)

// Folder is a [pipeline.Store] of files. Several processes may use one folder at
// once.
type Folder struct {
	dir string

	mu    sync.Mutex
	known map[string]place
}

// place is a position in a conversation's file: records complete lines end at
// byte offset. It stays true for ever, since complete lines never change.
type place struct {
	records int
	offset  int64
}

// Open opens the store in a folder, which need not be there yet: folders are
// made (0700) when the first record is written.
func Open(folder string) (*Folder, error) {
	dir := filepath.Join(folder, "conversations")
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%s is not a folder, so no conversations can be kept in it", dir)
	}
	return &Folder{dir: dir, known: map[string]place{}}, nil
}

// IDs lists the conversations there are, sorted.
func (s *Folder) IDs() ([]string, error) {
	entries, err := os.ReadDir(s.dir) // sorted
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var ids []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".jsonl"); ok && pipeline.CheckConversationID(id) == nil {
			ids = append(ids, id)
		}
	}
	return ids, err
}

func (s *Folder) path(id string) string { return filepath.Join(s.dir, id+".jsonl") }

// Read returns the records from position from on. A complete line that is no
// JSON object keeps its position and is null.
func (s *Folder) Read(ctx context.Context, id string, from int) ([]datasets.Value, error) {
	if err := pipeline.CheckConversationID(id); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := os.Open(s.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	at, err := s.start(f, id, from)
	if err != nil {
		return nil, err
	}
	var records []datasets.Value
	end, _, err := scan(f, at, func(n int, line []byte) {
		if n >= from {
			records = append(records, parse(line))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", f.Name(), err)
	}
	s.learn(id, end)
	return records, nil
}

// Append adds a record: it holds the conversation's lock, repairs a torn end,
// compares the number of records, writes the line and flushes it to disk.
func (s *Folder) Append(ctx context.Context, id string, length int, record datasets.Value) error {
	if err := pipeline.CheckConversationID(id); err != nil {
		return err
	}
	line, err := lineOf(record)
	if err != nil {
		return fmt.Errorf("conversation %s: %w", id, err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	unlock, err := s.lock(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	f, err := os.OpenFile(s.path(id), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { f.Close() }()
	at, err := s.start(f, id, length)
	if err != nil {
		return err
	}
	end, tail, err := scan(f, at, func(int, []byte) {})
	if err != nil {
		return fmt.Errorf("reading %s: %w", f.Name(), err)
	}
	if f, end, err = repair(f, end, tail); err != nil {
		return fmt.Errorf("mending the end of %s: %w", f.Name(), err)
	}
	s.learn(id, end)
	if end.records != length {
		return pipeline.StoreConflict(id, length, end.records)
	}
	if err := write(f, end.offset, line); err != nil {
		return fmt.Errorf("conversation %s: the record was not kept: %w", id, err)
	}
	if length == 0 {
		// The file's name has to be on disk as well.
		if err := syncDir(s.dir); err != nil {
			return err
		}
	}
	s.learn(id, place{length + 1, end.offset + int64(len(line))})
	return nil
}

// start is the furthest place known that lies at or before record n.
func (s *Folder) start(f *os.File, id string, n int) (place, error) {
	info, err := f.Stat()
	if err != nil {
		return place{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.known[id]
	if at.records > n {
		return place{}, nil
	}
	if at.offset > info.Size() { // the file was taken away, and is a new one
		delete(s.known, id)
		return place{}, nil
	}
	return at, nil
}

func (s *Folder) learn(id string, at place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[id] = at
}

// scan passes on the complete lines from a place on and returns where they end,
// and what follows without a line's end.
func scan(f *os.File, at place, take func(n int, line []byte)) (end place, tail []byte, err error) {
	if _, err := f.Seek(at.offset, io.SeekStart); err != nil {
		return at, nil, err
	}
	r := bufio.NewReaderSize(f, 1<<16)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return at, line, nil
		}
		if err != nil {
			return at, nil, err
		}
		take(at.records, line[:len(line)-1])
		at.records++
		at.offset += int64(len(line))
	}
}

// repair mends the end of a file whose last line has no end. A whole record gets
// its line's end: it may be all there but for that, or written by hand. Anything
// else was never kept, and is taken away.
func repair(f *os.File, end place, tail []byte) (*os.File, place, error) {
	switch {
	case len(tail) == 0:
		return f, end, nil
	case parse(tail).IsNull():
		if err := cut(f, end.offset); err != nil {
			return f, end, err
		}
		mended, err := os.OpenFile(f.Name(), os.O_RDWR, 0)
		if err != nil {
			return f, end, err
		}
		return mended, end, f.Close()
	}
	at := end.offset + int64(len(tail))
	if err := write(f, at, []byte{'\n'}); err != nil {
		return f, end, err
	}
	return f, place{end.records + 1, at + 1}, nil
}

// cut puts a new file of the first size bytes in the place of a file: in the old
// one, whoever is reading what is taken away would find the next line where it goes
// on. What others that were killed over this left behind goes as well.
func cut(f *os.File, size int64) error {
	if err := tidy(f.Name()); err != nil {
		return err
	}
	return disk.Write(f.Name(), func(whole *os.File) error {
		_, err := io.Copy(whole, io.NewSectionReader(f, 0, size))
		return err
	})
}

// tidy removes the copies of a file that were never finished. The lock is held:
// nobody is at work on one.
func tidy(name string) error {
	entries, err := os.ReadDir(filepath.Dir(name))
	if err != nil {
		return err
	}
	pattern := filepath.Base(disk.Temporary(name))
	for _, e := range entries {
		// Another conversation's name may go on where this one's ends.
		if ok, _ := filepath.Match(pattern, e.Name()); ok && !strings.Contains(strings.TrimPrefix(e.Name(), "."+filepath.Base(name)), ".jsonl.") {
			if err := os.Remove(filepath.Join(filepath.Dir(name), e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// write writes at the end of the file and flushes it; when it cannot, a new file
// has what there was. Where there is no room for that either, the next writer
// takes the torn line away; one that is not torn goes at once, since it would
// count.
func write(f *os.File, at int64, b []byte) error {
	n, err := f.WriteAt(b, at)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		return nil
	}
	mending := cut(f, at)
	if mending != nil && n >= len(b)-1 {
		mending = errors.Join(mending, f.Truncate(at))
	}
	return errors.Join(err, mending)
}

// canSyncFolders says whether the system knows how.
const canSyncFolders = runtime.GOOS != "windows" && runtime.GOOS != "plan9"

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && canSyncFolders {
		return fmt.Errorf("flushing %s: %w", dir, err)
	}
	return nil
}

// parse reads a line. What is no JSON object is null: its place counts, so that
// all others keep theirs.
func parse(line []byte) datasets.Value {
	v, err := datasets.ParseValue(line)
	if err != nil || v.Kind() != '{' {
		return datasets.Null
	}
	return v
}

// lineOf is a record as a line of its own.
func lineOf(record datasets.Value) ([]byte, error) {
	if record.Kind() != '{' {
		return nil, errors.New("a record is a JSON object")
	}
	text := jsontext.Value(record.JSON())
	if strings.ContainsAny(record.JSON(), "\n\r") { // white space: inside a text they are escaped
		text = text.Clone()
		if err := text.Compact(jsontext.AllowDuplicateNames(true)); err != nil {
			return nil, fmt.Errorf("not a record: %w", err)
		}
	}
	line := append([]byte(text), '\n')
	if parse(line[:len(line)-1]).IsNull() {
		return nil, errors.New("not a record: it is no JSON object in UTF-8")
	}
	return line, nil
}
