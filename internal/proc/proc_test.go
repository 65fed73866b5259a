package proc_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"evalrun/internal/proc"
)

// The test binary is the command under test: with this word as its first
// argument it plays one.
const role = "play"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == role {
		play(os.Args[2])
		return
	}
	os.Exit(m.Run())
}

func self(part string) []string { return []string{os.Args[0], role, part} }

func play(part string) {
	switch part {
	case "upper":
		b, _ := io.ReadAll(os.Stdin)
		os.Stdout.Write(bytes.ToUpper(b))
	case "fail":
		fmt.Fprintln(os.Stderr, strings.Repeat("x", 20_000)+"the reason")
		fmt.Println("so far")
		os.Exit(3)
	case "flood":
		for {
			if _, err := os.Stdout.Write(bytes.Repeat([]byte("x"), 4096)); err != nil {
				return
			}
		}
	case "hang":
		time.Sleep(time.Hour)
	case "deaf": // ends well without reading what it is given
	case "lines": // answers each line, and ends when there are no more
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			switch in.Text() {
			case "die":
				fmt.Fprintln(os.Stderr, "dying")
				os.Exit(4)
			case "flood":
				fmt.Println(strings.Repeat("y", 100_000))
			case "hang":
				time.Sleep(time.Hour)
			default:
				fmt.Println(strings.ToUpper(in.Text()))
			}
		}
	}
}

func TestRun(t *testing.T) {
	ctx := t.Context()
	out, err := proc.Run(ctx, self("upper"), []byte("abc $HOME\n"), 100)
	if err != nil || string(out.Stdout) != "ABC $HOME\n" {
		t.Errorf("upper: %q, %v", out.Stdout, err)
	}
	out, err = proc.Run(ctx, self("deaf"), bytes.Repeat([]byte("x"), 1<<20), 100)
	if err != nil || len(out.Stdout) > 0 {
		t.Errorf("a command that does not read its input: %q, %v", out.Stdout, err)
	}

	out, err = proc.Run(ctx, self("fail"), nil, 100)
	exit, ok := errors.AsType[*proc.ExitError](err)
	if !ok || exit.Code != 3 || exit.How != "exit status 3" || string(out.Stdout) != "so far\n" {
		t.Errorf("fail: %q, %v", out.Stdout, err)
	} else if !strings.HasSuffix(exit.Stderr, "the reason\n") || !strings.HasPrefix(exit.Stderr, "…x") || len(exit.Stderr) > 9000 {
		t.Errorf("the end of its standard error is not what was kept: %d bytes, %.20q", len(exit.Stderr), exit.Stderr)
	}

	out, err = proc.Run(ctx, self("flood"), nil, 10_000)
	if long, ok := errors.AsType[*proc.TooLongError](err); !ok || long.Limit != 10_000 || len(out.Stdout) != 10_000 {
		t.Errorf("flood: %d bytes, %v", len(out.Stdout), err)
	}

	for _, argv := range [][]string{nil, {""}, {"no-such-command-anywhere"}} {
		if _, err := proc.Run(ctx, argv, nil, 10); err == nil {
			t.Errorf("%q ran", argv)
		}
	}
}

func TestRunIsStopped(t *testing.T) {
	late := errors.New("too late")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, late)
	defer cancel()
	began := time.Now()
	if _, err := proc.Run(ctx, self("hang"), nil, 10); err != late {
		t.Errorf("the error is %v, not the cause of the context's end", err)
	}
	if _, err := proc.Run(ctx, self("upper"), nil, 10); err != late {
		t.Errorf("a command was run in a context that had ended: %v", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("stopping took %s", took)
	}
}

// A command whose own children hold its pipes does not hold us.
func TestRunWithHeirs(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("there is no /bin/sh")
	}
	began := time.Now()
	out, err := proc.Run(t.Context(), []string{"/bin/sh", "-c", "sleep 600 & echo done"}, nil, 100)
	if err != nil || string(out.Stdout) != "done\n" {
		t.Errorf("%q, %v", out.Stdout, err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

func start(t *testing.T, part string, limit int) *proc.Child {
	t.Helper()
	c, err := proc.Start(self(part), limit, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestChild(t *testing.T) {
	ctx := t.Context()
	c := start(t, "lines", 1000)
	for range 3 {
		if err := c.Send(ctx, []byte("ab")); err != nil {
			t.Fatal(err)
		}
		if line, err := c.Receive(ctx); err != nil || string(line) != "AB" {
			t.Fatalf("%q, %v", line, err)
		}
	}
	if err := c.Send(ctx, []byte("die")); err != nil {
		t.Fatal(err)
	}
	_, err := c.Receive(ctx)
	if exit, ok := errors.AsType[*proc.ExitError](err); !ok || exit.Code != 4 || exit.Stderr != "dying\n" {
		t.Errorf("a child that died: %v", err)
	}
	if _, err := c.Receive(ctx); err == nil {
		t.Error("a dead child answered")
	}
	if err := c.Send(ctx, []byte("ab")); err == nil {
		t.Error("a dead child was told something")
	}
	c.Close()
	c.Close()
}

func TestChildIsStopped(t *testing.T) {
	c := start(t, "lines", 1000)
	if err := c.Send(t.Context(), []byte("flood")); err != nil {
		t.Fatal(err)
	}
	_, err := c.Receive(t.Context())
	if long, ok := errors.AsType[*proc.TooLongError](err); !ok || long.What != "a line" || long.Limit != 1000 {
		t.Errorf("a line too long: %v", err)
	}

	late := errors.New("too late")
	soon := func() (context.Context, context.CancelFunc) {
		return context.WithTimeoutCause(t.Context(), 50*time.Millisecond, late)
	}
	c = start(t, "lines", 1000)
	ctx, cancel := soon()
	defer cancel()
	if err := c.Send(ctx, []byte("hang")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Receive(ctx); err != late {
		t.Errorf("a child that hangs: %v", err)
	}

	c = start(t, "hang", 1000)
	ctx, cancel = soon()
	defer cancel()
	if err := c.Send(ctx, bytes.Repeat([]byte("x"), 1<<20)); err != late {
		t.Errorf("a child that does not read: %v", err)
	}

	// Closing one that does not end takes no longer than the grace.
	c = start(t, "hang", 1000)
	began := time.Now()
	c.Close()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("closing took %s", took)
	}
	if _, err := proc.Start([]string{"no-such-command-anywhere"}, 10, nil); err == nil {
		t.Error("a command that is not there was started")
	}
}

// A command that ended well has said what it said, even when something it started
// keeps its standard output for longer than the time there is; and that is stopped.
func TestRunTakesWhatWasSaid(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("there is no /bin/sh")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	out, err := proc.Run(ctx, []string{"/bin/sh", "-c", "sleep 600 & echo $!"}, nil, 100)
	if err != nil {
		t.Fatal(err)
	}
	heir := strings.TrimSpace(string(out.Stdout))
	for range 100 {
		if err = exec.Command("/bin/sh", "-c", "kill -0 "+heir).Run(); err != nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err == nil {
		t.Errorf("what it started, process %s, goes on", heir)
	}
	// All of it: more than a pipe holds.
	out, err = proc.Run(ctx, []string{"/bin/sh", "-c", "sleep 600 & head -c 3000000 /dev/zero"}, nil, 4_000_000)
	if err != nil || len(out.Stdout) != 3_000_000 {
		t.Errorf("%d bytes, %v", len(out.Stdout), err)
	}
	// The time is over while its pipes are still open.
	for range 5 {
		late, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		out, err = proc.Run(late, []string{"/bin/sh", "-c", "sleep 600 & echo hi"}, nil, 100)
		cancel()
		if err == nil && string(out.Stdout) == "hi\n" {
			return
		}
		if !errors.Is(err, context.DeadlineExceeded) { // else the machine was too slow
			t.Fatalf("%q, %v", out.Stdout, err)
		}
	}
	t.Errorf("%q, %v", out.Stdout, err)
}
