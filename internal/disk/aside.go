package disk

import (
	"fmt"
	"os"
)

// Aside holds texts in a temporary file that only this process sees, and that is
// gone with it: memory does not grow with them. The zero value is empty. Texts are
// put one at a time; once all are there, they may be read by many at once.
type Aside struct {
	file    *os.File // nil until there is enough for one
	written int64    // to the file
	tail    []byte   // what is put and not written
}

// Place is where a text lies.
type Place struct {
	at   int64
	size int32
}

// atOnce is how much is written at once, and never written when there is no more.
const atOnce = 1 << 20

// Put keeps a text of less than 2 GB.
func (a *Aside) Put(text []byte) (Place, error) {
	p := Place{a.written + int64(len(a.tail)), int32(len(text))}
	a.tail = append(a.tail, text...)
	if len(a.tail) < atOnce {
		return p, nil
	}
	if a.file == nil {
		f, err := os.CreateTemp("", "evalrun-*")
		if err != nil {
			return p, fmt.Errorf("a temporary file: %w", err)
		}
		a.file = f              // the system closes it when nobody has it any more
		_ = os.Remove(f.Name()) // where a file that is open cannot be removed it stays
	}
	if _, err := a.file.WriteAt(a.tail, a.written); err != nil {
		return p, fmt.Errorf("a temporary file in %s, which TMPDIR names: %w", os.TempDir(), err)
	}
	a.written += int64(len(a.tail))
	a.tail = a.tail[:0]
	return p, nil
}

// Get returns the text at a place.
func (a *Aside) Get(p Place) (string, error) {
	if p.at >= a.written {
		at := p.at - a.written
		return string(a.tail[at : at+int64(p.size)]), nil
	}
	b := make([]byte, p.size)
	if n, err := a.file.ReadAt(b, p.at); n < len(b) {
		return "", fmt.Errorf("reading a temporary file: %w", err)
	}
	return string(b), nil
}
