package plugins

import (
	"bytes"
	"io"
	"sync"
)

// maxPrinted is how much of a line that has not ended is waited for.
const maxPrinted = 64 << 10

// printed is a program's standard error as people are shown it: whole lines, each
// with the plugin's name in front, so that one knows who speaks.
type printed struct {
	mu   sync.Mutex
	w    io.Writer // nil drops it
	name string
	rest []byte // of a line that has not ended
}

// Write passes on the lines that have ended.
func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w == nil {
		return len(b), nil
	}
	p.rest = append(p.rest, b...)
	for {
		i := bytes.IndexByte(p.rest, '\n')
		if i < 0 && len(p.rest) < maxPrinted {
			return len(b), nil
		}
		if i < 0 {
			i = len(p.rest) - 1
		}
		err := p.line(p.rest[:i+1])
		p.rest = append(p.rest[:0], p.rest[i+1:]...)
		if err != nil {
			return len(b), err
		}
	}
}

// end passes on a line that was not ended.
func (p *printed) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.rest) > 0 {
		_ = p.line(p.rest)
		p.rest = nil
	}
}

func (p *printed) line(b []byte) error {
	_, err := p.w.Write(append(append([]byte(p.name+": "), bytes.TrimRight(b, "\r\n")...), '\n'))
	return err
}

// called is what the lines to come have in front.
func (p *printed) called(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.name = name
}
