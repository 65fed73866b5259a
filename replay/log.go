package replay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// MaxLine is the longest line of a call log that is read, in bytes. Writers cut
// records to 8 MiB.
const MaxLine = 64 << 20

// logFile is a file of JSON lines: calls and ratings in any order.
type logFile struct{ path string }

// day is the form of the folders of a call log.
var day = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)

// logFiles finds the files of a call log: *.jsonl in the folder, then those in
// its day folders, by name.
func logFiles(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder) // sorted by name
	if err != nil {
		return nil, err
	}
	var files, days []string
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		switch {
		case e.IsDir() && day.MatchString(e.Name()):
			days = append(days, path)
		case isLog(path) && isFile(path):
			files = append(files, path)
		}
	}
	for _, folder := range days {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if path := filepath.Join(folder, e.Name()); isLog(path) && isFile(path) {
				files = append(files, path)
			}
		}
	}
	return files, nil
}

func isLog(path string) bool {
	return strings.HasSuffix(path, ".jsonl") && !strings.HasPrefix(filepath.Base(path), ".")
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// line is a line of a log file.
type line struct {
	text []byte // without its end; valid until the next line is read
	at   int64  // where it begins
	nr   int64  // from 1
	torn bool   // the file ends before the line does
	long bool   // longer than MaxLine; text is missing
}

// lines passes the file's lines on, blank ones left out, until take says that it
// is enough. Memory is bounded by the longest line.
func (l *logFile) lines(take func(line) bool) error {
	f, err := os.Open(l.path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<20)
	var at, nr int64
	var held []byte
	for {
		nr++
		ln := line{at: at, nr: nr}
		held = held[:0]
		for {
			part, err := r.ReadSlice('\n')
			at += int64(len(part))
			if ln.long = ln.long || len(held)+len(part) > MaxLine+1; ln.long {
				held = held[:0]
			}
			switch {
			case err == nil && len(held) == 0:
				ln.text = part // the common case: nothing is copied
			case !ln.long:
				held = append(held, part...)
				ln.text = held
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err != nil && !errors.Is(err, io.EOF) {
				return fmt.Errorf("reading %s: %w", l.path, err)
			}
			ln.torn = err != nil
			break
		}
		if nr == 1 {
			mark := len(ln.text)
			ln.text = bytes.TrimPrefix(ln.text, []byte("\uFEFF")) // which some editors put first
			ln.at += int64(mark - len(ln.text))
		}
		if ln.long {
			ln.text = nil
		}
		ln.text = bytes.TrimRight(ln.text, "\r\n")
		if (len(ln.text) > 0 && len(bytes.TrimSpace(ln.text)) > 0 || ln.long) && !take(ln) {
			return nil
		}
		if ln.torn {
			return nil
		}
	}
}

// where names a line for a person.
func (l *logFile) where(nr int64) string { return fmt.Sprintf("%s:%d", l.path, nr) }

// check reads a line as far as needed to know whether it is a usable record.
func (ln *line) check() (text string, what lineFacts, err error) {
	if ln.long {
		return "", what, &SkipError{SkipTooLong, fmt.Sprintf("more than %d bytes", MaxLine)}
	}
	text, what, err = usable(ln.text)
	if err != nil && ln.torn {
		if skip, ok := errors.AsType[*SkipError](err); ok && (skip.Reason == SkipNotJSON || skip.Reason == SkipNotUTF8) {
			skip.Reason = SkipTorn
		}
	}
	return text, what, err
}

// each passes every usable record on, as either a call or a rating, and skipped
// lines to skip.
func (l *logFile) each(take func(nr int64, call *Record, rating *Rating) bool, skip func(nr int64, err error)) error {
	return l.lines(func(ln line) bool {
		text, what, err := ln.check()
		if err != nil {
			skip(ln.nr, err)
			return true
		}
		var call *Record
		var rating *Rating
		if what.call {
			call, err = parseRecord(text, what)
		} else {
			rating, err = parseRating(text, what)
		}
		if err != nil {
			skip(ln.nr, err)
			return true
		}
		return take(ln.nr, call, rating)
	})
}

// ratings passes every rating on. Calls are only checked, so that what is
// skipped is known.
func (l *logFile) ratings(take func(*Rating) bool, skip func(nr int64, err error)) error {
	return l.lines(func(ln line) bool {
		text, what, err := ln.check()
		switch {
		case err != nil:
		case what.call:
			if head := peek(text); head.id == "" {
				err = &SkipError{SkipNoID, ""}
			}
		default:
			var r *Rating
			if r, err = parseRating(text, what); err == nil {
				return take(r)
			}
		}
		if err != nil {
			skip(ln.nr, err)
		}
		return true
	})
}

// head is what decides whether a call is wanted.
type head struct {
	call                   bool
	id, root, conversation string
	writer                 int64
	follows                bool // it may have seen all that another call saw
}

// peek finds a record's head without reading the rest. The text may be no JSON
// at all; only what it finds is then wrong.
func peek(text string) (h head) {
	if text == "" || text[0] != '{' {
		return h
	}
	h.writer = 1
	c := enter(text)
	for name, v, ok := c.member(); ok; name, v, ok = c.member() {
		switch name {
		case callKey:
			h.call = true
		case "id":
			h.id = ""
			setText(&h.id, v)
		case "root":
			h.root = ""
			setText(&h.root, v)
		case "writer":
			h.writer = 1
			if n, ok := wholeNumber(v); ok && n != 0 {
				h.writer = n
			}
		case "saw":
			h.follows = follows(v)
		case "conversation":
			h.conversation = ""
			if v[0] == '{' {
				in := enter(v)
				for name, v, ok := in.member(); ok; name, v, ok = in.member() {
					if name == "id" {
						h.conversation = ""
						setText(&h.conversation, v)
					}
				}
			}
		}
	}
	return h
}

// follows reports whether an entry of saw names a call in saw_of.
func follows(saw string) bool {
	if saw[0] != '[' {
		return false
	}
	c := enter(saw)
	for e, ok := c.element(); ok; e, ok = c.element() {
		if e[0] != '{' {
			continue
		}
		in := enter(e)
		for name, v, ok := in.member(); ok; name, v, ok = in.member() {
			if name == "saw_of" && v[0] == '"' {
				return true
			}
		}
	}
	return false
}

// locate finds the calls that are wanted. Each line is looked at without being
// read; only those found are checked.
func (l *logFile) locate(w *Want, found func(place)) error {
	return l.lines(func(ln line) bool {
		h := peek(strings.Trim(string(ln.text), " \t\r"))
		if !h.call || h.id == "" || !w.wants(&h) {
			return true
		}
		if _, what, err := ln.check(); err == nil && what.call {
			found(place{at: ln.at, size: len(ln.text), id: strings.Clone(h.id), writer: h.writer})
		}
		return true
	})
}

// fetch reads the calls at these places, which are in ascending order.
func (l *logFile) fetch(places []place, _ Parts, take func(*Record) bool) error {
	f, err := os.Open(l.path)
	if err != nil {
		return err
	}
	defer f.Close()
	var text []byte
	for _, p := range places {
		text = slices.Grow(text[:0], p.size)[:p.size]
		if _, err := f.ReadAt(text, p.at); err != nil {
			return fmt.Errorf("reading %s: %w", l.path, err)
		}
		r, err := ParseRecord(text)
		if err != nil {
			return refusedf("%s changed while it was read: %v", l.path, err)
		}
		if !take(r) {
			return nil
		}
	}
	return nil
}

func (l *logFile) close() error { return nil }
