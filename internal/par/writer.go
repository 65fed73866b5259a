package par

import (
	"io"
	"sync"
)

// Writer returns a writer through which many may write to w, one at a time.
func Writer(w io.Writer) io.Writer { return &writer{w: w} }

type writer struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *writer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(b)
}
