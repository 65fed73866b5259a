package pipeline

import (
	"errors"
	"fmt"
	"sync"
	"weak"
)

// warned is what was warned of about a plugin, by each Caller.
type warned struct {
	mu   sync.Mutex
	said map[warning]bool
}

type warning struct {
	by   weak.Pointer[Caller] // a plugin may outlive its Callers
	kind string
}

// first reports whether this is the first warning of its kind.
func (w *warned) first(by *Caller, kind string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	this := warning{weak.Make(by.origin()), kind}
	again := w.said[this]
	if w.said == nil {
		w.said = map[warning]bool{}
	}
	w.said[this] = true
	return !again
}

// kindOf is the same for errors that differ in their details alone.
func kindOf(err error) string {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.Type + " " + f.Code
	}
	return fmt.Sprintf("%T", err)
}
