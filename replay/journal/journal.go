// Package journal keeps what a run cannot compute again, so that a run that was
// killed goes on where it was.
package journal

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"evalrun/pipeline"
)

// Journal keeps what a run cannot compute again: exchanges with models, and the
// id and start of each call. Whatever is in it is on disk before anyone acts on
// it, so that a run that was killed goes on from its journal: the same steps are
// taken again and answered from here, until the first one that is not.
//
// A journal is a folder of segments. Every process writes a segment of its own
// and reads those of the ones before it; the end of a segment may be torn. A
// segment begins with its format's name and version, and then holds frames:
// the length and the CRC-32C of a JSON text, and the text.
//
// What is journaled is known by its site, the place in the run where it
// happened, not by its content: two rows with equal inputs are two observations.
type Journal struct {
	mu        sync.Mutex
	known     map[siteSum]frameAt
	forgotten map[Answer]bool // that were to be asked anew
	files     []*os.File      // segments that were there, and last our own
	out       *bufio.Writer   // nil when the journal is only read
	size      int64           // of our own segment
	err       error           // the first failure to write: nothing is journaled after it
	synced    int64           // how much of our own segment is on disk
	commit    sync.Mutex

	places chan struct{} // of requests in flight; nil: no bound

	earlier map[string][]Earlier // what other runs may know, by candidate
	others  map[string]*another  // their journals, by folder
	inDoubt int

	halted  atomic.Pointer[Halted] // nil while there is asking
	knowers atomic.Bool            // some model behind it has replies of its own
}

// frameAt is where a frame's text lies.
type frameAt struct {
	offset int64
	file   int32
	length int32
}

// siteSum is the beginning of the SHA-256 of a site's key: a run has hundreds of
// thousands of sites, whose names are in their frames.
type siteSum [16]byte

func sumOf(site string) siteSum {
	sum := sha256.Sum256([]byte(site))
	return siteSum(sum[:])
}

const (
	journalHead = "evalrun.journal 1\n"
	frameHead   = 8       // length and checksum
	maxFrame    = 1 << 30 // a longer length is no length
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Open opens the journal in a folder, making both when they are not there.
// It reads what earlier processes wrote, leaving out torn ends, and begins a
// segment of its own. A segment of another or a later format is refused. past,
// when it is not nil, is told of every request that was sent, those that were
// forgotten since included.
func Open(dir string, past func(pipeline.Sent)) (*Journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	j, names, err := load(dir, past)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(segment(dir, len(names)+1), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, errors.Join(err, j.closeFiles())
	}
	j.files = append(j.files, f)
	j.out = bufio.NewWriterSize(f, 1<<16)
	j.size = int64(len(journalHead))
	if _, err := j.out.WriteString(journalHead); err != nil {
		return nil, errors.Join(err, j.closeFiles())
	}
	return j, nil
}

// Read opens the journal in a folder to be read alone: models and tools behind it
// are answered from it, and what it does not know fails with code [NotAnswered].
// There is none when nothing is known.
func Read(dir string) (*Journal, error) {
	j, _, err := load(dir, nil)
	return j, err
}

// load reads the segments of a folder.
func load(dir string, past func(pipeline.Sent)) (*Journal, []string, error) {
	j := &Journal{
		known: map[siteSum]frameAt{}, forgotten: map[Answer]bool{},
		earlier: map[string][]Earlier{}, others: map[string]*another{},
	}
	names, err := segments(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		sent := &sentRequests{tell: past, open: map[string]pipeline.Sent{}}
		if err := j.read(name, sent); err != nil {
			return nil, nil, errors.Join(err, j.closeFiles())
		}
		j.inDoubt += sent.finish()
	}
	return j, names, nil
}

// read takes in a segment that an earlier process wrote.
func (j *Journal) read(name string, sent *sentRequests) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	j.files = append(j.files, f)
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size() // its process may be at work
	r := bufio.NewReaderSize(io.LimitReader(f, size), 1<<16)
	head := make([]byte, len(journalHead))
	if n, err := io.ReadFull(r, head); err != nil {
		if strings.HasPrefix(journalHead, string(head[:n])) {
			return nil // the process was killed before it wrote anything
		}
		return fmt.Errorf("%s is no journal: it does not begin with %q", name, journalHead)
	}
	if string(head) != journalHead {
		if bytes.HasPrefix(head, []byte("evalrun.journal ")) {
			return fmt.Errorf("%s is a journal of another version (%q); use the evalrun that wrote it, or start over with --fresh", name, strings.TrimSpace(string(head)))
		}
		return fmt.Errorf("%s is no journal: it does not begin with %q", name, journalHead)
	}
	offset := int64(len(journalHead))
	for {
		var frame [frameHead]byte
		if _, err := io.ReadFull(r, frame[:]); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil // torn or not
		} else if err != nil {
			return err
		}
		length := binary.LittleEndian.Uint32(frame[:4])
		if length > maxFrame {
			return unread(f, name, offset, size)
		}
		var b bytes.Buffer // grows with what is there, whatever the length says
		if n, err := io.CopyN(&b, r, int64(length)); err != nil || n < int64(length) {
			return unread(f, name, offset, size)
		}
		var e kept
		if crc32.Checksum(b.Bytes(), castagnoli) != binary.LittleEndian.Uint32(frame[4:]) || json.Unmarshal(b.Bytes(), &e) != nil {
			return unread(f, name, offset, size)
		}
		sent.take(&e)
		switch {
		case e.Forget != nil:
			if _, err := j.forget(e.Forget); err != nil {
				return err
			}
		case e.answers():
			j.known[sumOf(e.Site)] = frameAt{offset + frameHead, int32(len(j.files) - 1), int32(length)}
		}
		offset += frameHead + int64(length)
	}
}

// Len is how many entries the journal knows.
func (j *Journal) Len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.known)
}

// Bound has at most n requests in flight, which they are until the system has what
// became of them: so many may be asked again when the process is killed. It is called
// before anything is asked.
func (j *Journal) Bound(n int) { j.places = make(chan struct{}, n) }

// enter waits for a place among the requests in flight; leave may be called again.
func (j *Journal) enter(ctx context.Context) (leave func(), err error) {
	if j.places == nil {
		return func() {}, nil
	}
	leave = sync.OnceFunc(func() { <-j.places })
	select {
	case j.places <- struct{}{}:
		return leave, nil
	default:
	}
	defer pipeline.Waiting(ctx)()
	select {
	case j.places <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// InDoubt is how many requests were sent by processes that were killed before they
// knew what became of them.
func (j *Journal) InDoubt() int { return j.inDoubt }

// Sync returns when all that was written is on disk.
func (j *Journal) Sync() error {
	if j.out == nil {
		return nil
	}
	j.mu.Lock()
	end := j.size
	j.mu.Unlock()
	return j.sync(end)
}

// Close ends the journal. What was written is on disk.
func (j *Journal) Close() error { return errors.Join(j.Sync(), j.closeFiles()) }

func (j *Journal) closeFiles() error {
	var errs []error
	for _, other := range j.others {
		if other.journal != nil {
			errs = append(errs, other.journal.Close())
		}
	}
	for _, f := range j.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// siteKey names a site.
func siteKey(kind string, s pipeline.Site) string {
	b := make([]byte, 0, 128)
	text := func(t string) { b = strconv.AppendQuote(append(b, ' '), t) }
	number := func(n int) { b = strconv.AppendInt(append(b, ' '), int64(n), 10) }
	b = append(b, kind...)
	text(s.Candidate)
	text(s.Row)
	number(s.Repeat)
	text(s.Path)
	number(s.Step)
	number(s.Try)
	number(s.Invocation)
	text(s.Purpose)
	if s.Inside != "" {
		text(s.Inside)
	}
	return string(b)
}

// find returns what is known of a site.
func (j *Journal) find(site string) (kept, bool, error) {
	j.mu.Lock()
	p, ok := j.known[sumOf(site)]
	if ok && j.out != nil && int(p.file) == len(j.files)-1 {
		// It may still be in the buffer.
		if err := j.flush(); err != nil {
			j.mu.Unlock()
			return kept{}, false, err
		}
	}
	j.mu.Unlock()
	if !ok {
		return kept{}, false, nil
	}
	e, err := j.readFrame(p)
	return e, err == nil, err
}

func (j *Journal) readFrame(p frameAt) (kept, error) {
	b := make([]byte, p.length)
	if _, err := j.files[p.file].ReadAt(b, p.offset); err != nil {
		return kept{}, &pipeline.Fatal{Err: fmt.Errorf("reading the journal: %w", err)}
	}
	var e kept
	if err := json.Unmarshal(b, &e); err != nil {
		return kept{}, &pipeline.Fatal{Err: fmt.Errorf("reading the journal: %w", err)}
	}
	return e, nil
}

// keep writes an entry and returns when it is on disk.
func (j *Journal) keep(e kept) error {
	end, err := j.append(e)
	if err != nil {
		return err
	}
	return j.sync(end)
}

// keepLeaving is keep for an answer: its request is not in flight any more once the
// system has it, while it is on its way to the disk.
func (j *Journal) keepLeaving(e kept, leave func()) error {
	if j.places == nil {
		return j.keep(e)
	}
	end, err := j.hand(e)
	if err != nil {
		return err
	}
	leave()
	return j.sync(end)
}

// note writes an entry that nobody acts on: it may reach the disk later, with
// the next one that is kept. A journal that is only read notes nothing.
func (j *Journal) note(e kept) error {
	if j.out == nil {
		return nil
	}
	_, err := j.append(e)
	return err
}

// hand writes an entry and returns when the system has it: it outlives this
// process, though not the machine.
func (j *Journal) hand(e kept) (end int64, err error) {
	if end, err = j.append(e); err != nil {
		return 0, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return end, j.flush()
}

// flush gives the system what is in the buffer; the lock is held.
func (j *Journal) flush() error {
	if j.err == nil {
		j.err = j.out.Flush()
	}
	return fatal(j.err)
}

// fatal ends the run when the journal cannot be written.
func fatal(err error) error {
	if err == nil {
		return nil
	}
	return &pipeline.Fatal{Err: fmt.Errorf("writing the journal: %w", err)}
}

// append writes an entry and returns where it ends in our segment.
func (j *Journal) append(e kept) (end int64, err error) {
	b, err := json.Marshal(e, json.Deterministic(true))
	if err != nil {
		return 0, err
	}
	var frame [frameHead]byte
	binary.LittleEndian.PutUint32(frame[:4], uint32(len(b)))
	binary.LittleEndian.PutUint32(frame[4:], crc32.Checksum(b, castagnoli))

	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		_, err1 := j.out.Write(frame[:])
		_, err2 := j.out.Write(b)
		j.err = errors.Join(err1, err2)
	}
	if j.err != nil {
		return 0, fatal(j.err)
	}
	if e.answers() {
		j.known[sumOf(e.Site)] = frameAt{j.size + frameHead, int32(len(j.files) - 1), int32(len(b))}
	}
	j.size += frameHead + int64(len(b))
	return j.size, nil
}

// sync returns when our segment is on disk up to end. Whoever comes while
// another syncs waits for it, and one of those who waited then syncs for all.
func (j *Journal) sync(end int64) error {
	j.commit.Lock()
	defer j.commit.Unlock()
	if j.synced >= end {
		return nil
	}
	runtime.Gosched() // those who are about to append are in the same sync then
	j.mu.Lock()
	upTo := j.size
	err := j.flush()
	j.mu.Unlock()
	if err != nil {
		return err
	}
	if err := syncData(j.files[len(j.files)-1]); err != nil {
		j.mu.Lock()
		j.err = err
		j.mu.Unlock()
		return fatal(err)
	}
	j.synced = upTo
	return nil
}

// Begin gives a call its id and start: those it had when it was begun before,
// else the ones that are offered.
func (j *Journal) Begin(site pipeline.Site, id string, started time.Time) (string, time.Time, error) {
	key := siteKey("call", site)
	e, ok, err := j.find(key)
	if err != nil {
		return "", time.Time{}, err
	}
	if ok && e.Call != nil {
		return e.Call.ID, e.Call.Started, nil
	}
	// No effect hangs on it yet: it is on disk with the call's first exchange.
	return id, started, j.note(kept{Site: key, Call: &callEntry{id, started}})
}
