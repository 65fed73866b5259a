package proc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
)

// Child is a command that stays, and is spoken with in lines. One goroutine at a
// time may speak with it; Close may be called from any.
type Child struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
	lines  *bufio.Reader
	limit  int
	stderr tail

	end  sync.Once
	dead chan struct{} // closed when the command has ended and was waited for
}

// Start starts a command that stays. Its lines may have limit bytes. What it
// writes to its standard error goes to also, as it comes, when that is not nil,
// and the last 8 KiB are kept for errors. Whoever starts it closes it.
func Start(argv []string, limit int, also io.Writer) (*Child, error) {
	if len(argv) == 0 || argv[0] == "" {
		return nil, errors.New("there is no command to start")
	}
	c := &Child{cmd: exec.Command(argv[0], argv[1:]...), limit: limit, dead: make(chan struct{})}
	c.cmd.WaitDelay = grace
	ownGroup(c.cmd)
	c.cmd.Stderr = &c.stderr
	if also != nil {
		c.cmd.Stderr = io.MultiWriter(&c.stderr, also)
	}
	var err error
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if c.stdout, err = c.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	c.lines = bufio.NewReader(c.stdout)
	return c, nil
}

// Send writes a line; line itself has no line break. When ctx ends first the
// command is killed, and the error is the cause of ctx's end: a command that does
// not read is as stuck as one that does not answer.
func (c *Child) Send(ctx context.Context, line []byte) error {
	defer context.AfterFunc(ctx, c.Kill)()
	_, err := c.stdin.Write(append(append(make([]byte, 0, len(line)+1), line...), '\n'))
	if err != nil {
		return c.ended(ctx)
	}
	return nil
}

// Receive reads the next line, without its line break. When ctx ends first, or the
// line is longer than it may be (*TooLongError), the command is killed; when the
// command ended instead of answering, the error is an *ExitError.
func (c *Child) Receive(ctx context.Context) ([]byte, error) {
	defer context.AfterFunc(ctx, c.Kill)()
	var line []byte
	for {
		part, err := c.lines.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > c.limit+1 {
			c.Kill()
			return nil, &TooLongError{c.cmd.Args[0], "a line", c.limit}
		}
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, c.ended(ctx)
		}
	}
}

// Stderr is the last 8 KiB of the command's standard error so far.
func (c *Child) Stderr() string { return c.stderr.String() }

// Close closes the command's standard input, which tells it to end, gives it two
// seconds and then kills it. It returns when the command is gone. Closing again
// does nothing.
func (c *Child) Close() {
	_ = c.stdin.Close()
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = killGroup(c.cmd) })
	c.wait()
	stop()
}

// Kill ends the command at once, whatever holds its pipes. What it had written to
// its standard error is then all kept.
func (c *Child) Kill() {
	_ = killGroup(c.cmd)
	_ = c.stdin.Close()
	_ = c.stdout.Close()
	c.wait()
}

// wait waits for the command's end and for nobody else to be waiting.
func (c *Child) wait() {
	c.end.Do(func() {
		_ = c.cmd.Wait()
		_ = killGroup(c.cmd) // what it started and left running
		close(c.dead)
	})
	<-c.dead
}

// ended says why the command can no longer be spoken with.
func (c *Child) ended(ctx context.Context) error {
	c.Kill()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	state := c.cmd.ProcessState
	if state == nil {
		return fmt.Errorf("%s cannot be waited for", c.cmd.Args[0])
	}
	return &ExitError{c.cmd.Args[0], state.ExitCode(), state.String(), c.Stderr()}
}
