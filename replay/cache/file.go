package cache

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/gofrs/flock"
)

// The file begins with a line that names its format and version, and then holds
// frames: a mark, the length of the text, the CRC-32C of key and text, the key, and
// the text, which is JSON. Of several frames of a key the last counts.
//
// Frames are appended, one writer at a time. What is not whole, a frame of a killed
// process or a damaged one, is passed over: the next frame begins at the next mark.
const (
	fileName  = "replies.cache"
	fileHead  = "evalrun.replies 1\n"
	fileKind  = "evalrun.replies "
	frameMark = "\xf7evR"
	frameHead = len(frameMark) + 4 + 4 + sha256.Size
	maxText   = 1 << 28 // a longer text is no text
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// key is the name of a reply.
type key [sha256.Size]byte

func sum(b []byte) key { return sha256.Sum256(b) }

func (k key) String() string { return "sha256:" + hex.EncodeToString(k[:]) }

// file is a cache's file, and where in it replies lie.
type file struct {
	path string
	warn func(string)

	mu   sync.Mutex
	f    *os.File // nil when there is none and none is made
	lock *flock.Flock
	at   map[key]place
	read int64 // what is read so far
}

// place is where a text lies.
type place struct {
	offset int64
	length uint32
	check  uint32
}

func openFile(dir string, writes bool, warn func(string)) (*file, error) {
	c := &file{path: filepath.Join(dir, fileName), warn: warn, at: map[key]place{}}
	if writes {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	var err error
	if writes {
		c.f, err = os.OpenFile(c.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	} else if c.f, err = os.Open(c.path); errors.Is(err, fs.ErrNotExist) {
		return c, nil // nothing is known
	}
	if err != nil {
		return nil, err
	}
	if writes {
		c.lock = flock.New(c.path + ".lock")
	}
	if err := c.begin(); err != nil {
		return nil, errors.Join(err, c.close())
	}
	if err := c.refresh(); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// begin reads the head, or writes it.
func (c *file) begin() error {
	if c.lock != nil {
		if err := c.lock.Lock(); err != nil {
			return err
		}
		defer c.lock.Unlock()
	}
	head := make([]byte, len(fileHead))
	n, err := c.f.ReadAt(head, 0)
	head = head[:n]
	switch {
	case string(head) == fileHead:
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case strings.HasPrefix(fileHead, string(head)): // new, or its maker was killed
		if c.lock == nil {
			return nil
		}
		if err := c.f.Truncate(0); err != nil {
			return err
		}
		if _, err := c.f.WriteString(fileHead); err != nil {
			return err
		}
	case bytes.HasPrefix(head, []byte(fileKind)):
		return fmt.Errorf("%s is of another version (%q); use the evalrun that wrote it, or another cache_dir", c.path, strings.TrimSpace(string(head)))
	default:
		return fmt.Errorf("%s is no reply cache: it does not begin with %q", c.path, fileHead)
	}
	c.read = int64(len(fileHead))
	return nil
}

func (c *file) close() error {
	if c.f == nil {
		return nil
	}
	err := c.f.Close()
	if c.lock != nil {
		err = errors.Join(err, c.lock.Close())
	}
	return err
}

// refresh takes in what was appended since, by whomever. Either the lock is held,
// or nobody else has the file.
func (c *file) refresh() error {
	info, err := c.f.Stat()
	if err != nil || info.Size() <= c.read {
		return err
	}
	end, passed := info.Size(), 0
	section := func() io.Reader { return io.NewSectionReader(c.f, c.read, end-c.read) }
	r := bufio.NewReaderSize(section(), 1<<16)
	for {
		n, state := c.frame(r, end)
		c.read += int64(n)
		switch state {
		case partial:
			if passed > 0 {
				c.warn(fmt.Sprintf("the reply cache %s: %d bytes of it cannot be read, and are left out", c.path, passed))
			}
			return nil
		case damaged:
			c.read++
			passed++
			r.Reset(section())
		}
	}
}

// What there may be where a frame should be.
type state int

const (
	whole state = iota
	partial
	damaged
)

// frame takes in the frame that r is at, and says how long it is.
func (c *file) frame(r *bufio.Reader, end int64) (int, state) {
	head, err := r.Peek(frameHead)
	if err != nil {
		return 0, partial
	}
	length := binary.LittleEndian.Uint32(head[4:])
	if string(head[:len(frameMark)]) != frameMark || length > maxText {
		return 0, damaged
	}
	if c.read+int64(frameHead)+int64(length) > end {
		if c.markAhead(c.read+1, end) {
			return 0, damaged
		}
		return 0, partial // its writer is at work, or was killed
	}
	p := place{c.read + int64(frameHead), length, binary.LittleEndian.Uint32(head[8:])}
	k := key(head[12:])
	text := make([]byte, length)
	if _, err := r.Discard(frameHead); err != nil {
		return 0, partial
	}
	if _, err := io.ReadFull(r, text); err != nil {
		return 0, partial
	}
	if check(k, text) != p.check {
		return 0, damaged
	}
	c.at[k] = p
	return frameHead + int(length), whole
}

// markAhead reports whether a frame begins between two places.
func (c *file) markAhead(from, to int64) bool {
	r := bufio.NewReader(io.NewSectionReader(c.f, from, to-from))
	for matched := 0; ; {
		b, err := r.ReadByte()
		if err != nil {
			return false
		}
		switch {
		case b == frameMark[matched]:
			if matched++; matched == len(frameMark) {
				return true
			}
		case b == frameMark[0]:
			matched = 1
		default:
			matched = 0
		}
	}
}

// get returns the text of a key; nil when there is none.
func (c *file) get(k key) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.f == nil {
		return nil
	}
	p, ok := c.at[k]
	if !ok {
		if err := c.refresh(); err != nil {
			c.warn(fmt.Sprintf("the reply cache %s: %v", c.path, err))
			return nil
		}
		if p, ok = c.at[k]; !ok {
			return nil
		}
	}
	text := make([]byte, p.length)
	if _, err := c.f.ReadAt(text, p.offset); err != nil || check(k, text) != p.check {
		delete(c.at, k)
		c.leftOut()
		return nil
	}
	return text
}

func check(k key, text []byte) uint32 {
	return crc32.Update(crc32.Checksum(k[:], castagnoli), castagnoli, text)
}

// drop leaves an entry out.
func (c *file) drop(k key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.at, k)
	c.leftOut()
}

func (c *file) leftOut() {
	c.warn(fmt.Sprintf("the reply cache %s: an entry is damaged, and is left out", c.path))
}

// put appends an entry.
func (c *file) put(k key, e *entry) error {
	text, err := json.Marshal(e, json.Deterministic(true))
	if err != nil {
		return err
	}
	frame := make([]byte, frameHead, frameHead+len(text))
	copy(frame, frameMark)
	binary.LittleEndian.PutUint32(frame[4:], uint32(len(text)))
	binary.LittleEndian.PutUint32(frame[8:], check(k, text))
	copy(frame[12:], k[:])
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.lock.Lock(); err != nil {
		return err
	}
	defer c.lock.Unlock()
	_, err = c.f.Write(append(frame, text...))
	return err
}
