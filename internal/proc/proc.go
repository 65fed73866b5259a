// Package proc runs other programs. It is the one place of the module that
// starts processes, so that one set of tests answers for time limits, bounds,
// stopping and what a child leaves behind.
//
// [Run] starts a command, gives it its standard input, and returns what it
// wrote: one answer to one question. [Start] starts a command that stays, and
// speaks with it in lines: [Child.Send] writes one, [Child.Receive] reads one.
//
// A command is its arguments, never a line for a shell: nothing in it is
// expanded. It runs in this process's folder and environment, with this
// process's rights. Whatever stops it (the context's end, too much output, Close)
// stops the processes it started as well, where the system has process groups.
package proc

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"
)

const (
	// grace is how long a command that was told to end may take.
	grace = 2 * time.Second

	// drain is how long its pipes may stay open in other hands once it has ended:
	// long enough to take what it wrote.
	drain = 250 * time.Millisecond
)

// stderrKept is how much of a command's standard error is kept: the end of it,
// where the reason is.
const stderrKept = 8 << 10

// Output is what a command wrote.
type Output struct {
	Stdout []byte
	Stderr string // its last 8 KiB
}

// ExitError says that a command ended badly, or when it should not have.
type ExitError struct {
	Command string // its first argument
	Code    int    // its exit code; -1 when a signal ended it
	How     string // in the system's words: "exit status 1", "signal: killed"
	Stderr  string // the last 8 KiB it wrote there
}

// Error is one line, and then what the command wrote to its standard error.
func (e *ExitError) Error() string {
	s := fmt.Sprintf("%s ended: %s", e.Command, e.How)
	if text := strings.TrimSpace(e.Stderr); text != "" {
		s += "; its standard error:\n" + text
	}
	return s
}

// TooLongError says that a command wrote more than it may.
type TooLongError struct {
	Command string
	What    string // "standard output" or "a line"
	Limit   int    // in bytes
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("%s wrote more than %d bytes as %s", e.Command, e.Limit, e.What)
}

// Run runs a command to its end: argv[0] is looked for in PATH when it has no
// slash, the rest are its arguments. It is given stdin and then the end of it. Of
// its standard output at most limit bytes are taken; a command that writes more is
// stopped (*TooLongError). When ctx ends the command is killed, and the error is
// the cause of ctx's end. A command that exits with 0 has said what it said until
// then, whoever it started holds its standard output; one that exits with another
// code is an *ExitError. What had been written comes with any error.
func Run(ctx context.Context, argv []string, stdin []byte, limit int) (Output, error) {
	if len(argv) == 0 || argv[0] == "" {
		return Output{}, errors.New("there is no command to run")
	}
	if err := ctx.Err(); err != nil {
		return Output{}, context.Cause(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = drain
	ownGroup(cmd)
	cmd.Cancel = func() error { return killGroup(cmd) }

	out := &head{limit: limit, full: func() { cancel(&TooLongError{argv[0], "standard output", limit}) }}
	var stderr tail
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(string(stdin)), out, &stderr
	err := cmd.Run()
	_ = killGroup(cmd) // what it started and left running
	output := Output{Stdout: out.bytes, Stderr: stderr.String()}
	long, isLong := errors.AsType[*TooLongError](context.Cause(ctx))
	switch exit := (*exec.ExitError)(nil); {
	case isLong:
		return output, long
	case cmd.ProcessState != nil && cmd.ProcessState.Success():
		return output, nil // whatever kept its pipes, and for how long
	case ctx.Err() != nil:
		return output, context.Cause(ctx)
	case errors.As(err, &exit):
		return output, &ExitError{argv[0], exit.ExitCode(), exit.String(), output.Stderr}
	}
	return output, err
}

// head keeps the first limit bytes, and says when there is more.
type head struct {
	bytes []byte
	limit int
	full  func()
}

func (h *head) Write(p []byte) (int, error) {
	if room := h.limit - len(h.bytes); len(p) > room {
		h.bytes = append(h.bytes, p[:room]...)
		h.full()
		return len(p), nil // taken and dropped until the command is dead
	}
	h.bytes = append(h.bytes, p...)
	return len(p), nil
}

// tail keeps the last stderrKept bytes. It is safe for concurrent use.
type tail struct {
	mu    sync.Mutex
	bytes []byte
	cut   bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes = append(t.bytes, p...)
	if over := len(t.bytes) - stderrKept; over > 0 {
		t.bytes = append(t.bytes[:0], t.bytes[over:]...)
		t.cut = true
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.ToValidUTF8(string(t.bytes), "\uFFFD")
	if t.cut {
		text = "…" + text
	}
	return text
}
