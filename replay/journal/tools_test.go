package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// outcome is a tool's result, or how it failed.
func outcome(text string, err error) string {
	if f, ok := errors.AsType[*pipeline.Failure](err); ok {
		return f.Class() + " " + f.Code + ": " + f.Message
	} else if err != nil {
		return "error: " + err.Error()
	}
	return text
}

// TestToolRunsOnce: what came of a tool is given again, in the process that ran it
// and in the next.
func TestToolRunsOnce(t *testing.T) {
	input := datasets.RawValue(`{"n":1}`)
	for _, c := range []struct {
		name    string
		err     error
		effects pipeline.Effects
		rests   bool   // what it rests on is kept
		over    bool   // the call is over when the tool returns
		again   bool   // it runs again the next time
		want    string // the next time, when it does not
	}{
		{name: "a result", effects: pipeline.EffectsRead, want: "1"},
		{name: "of one that changes", effects: pipeline.EffectsChange, want: "1"},
		{name: "of one that does not say", want: "1"},
		{name: "a reading that rests on what is kept", effects: pipeline.EffectsRead, rests: true, again: true},
		{name: "a change that rests on what is kept", effects: pipeline.EffectsChange, rests: true, want: "1"},
		{name: "an error that is told", err: errors.New("no such room"), want: "tool : no such room"},
		{name: "a failure that is told", err: pipeline.Failf(pipeline.TypeTimeout, "slow", "no answer"), want: "timeout slow: no answer"},
		{name: "one that ends the call", err: pipeline.Failf(pipeline.TypeNotRecorded, "", "x"), effects: pipeline.EffectsRead, again: true},
		{name: "one that ends the call, after a change", err: pipeline.Failf(pipeline.TypeNotRecorded, "", "x"), effects: pipeline.EffectsChange, want: "tool tool-unfinished: "},
		{name: "the call's end", err: context.Canceled, effects: pipeline.EffectsRead, over: true, again: true},
		{name: "the call's end, not said of effects", err: context.Canceled, over: true, want: "tool tool-unfinished: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, ran := t.TempDir(), 0
			site := pipeline.Site{Row: "a", Purpose: "candidate", Invocation: 2}
			run := func(j *Journal, site pipeline.Site, name string) string {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				return outcome(j.Tool(ctx, site, name, input, c.effects, func() (string, bool, error) {
					ran++
					if c.over {
						cancel()
					}
					return fmt.Sprint(ran), c.rests, c.err
				}))
			}
			j := openJournal(t, dir)
			run(j, site, "buy")
			for range 2 {
				before := ran
				got := run(j, site, "buy")
				if again := ran > before; again != c.again || !again && !strings.HasPrefix(got, c.want) {
					t.Errorf("again it is %q, and ran %v; want %q, and %v", got, again, c.want, c.again)
				}
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
				j = openJournal(t, dir)
			}
			defer j.Close()
			before := ran
			for _, other := range []pipeline.Site{
				{Row: "b", Purpose: "candidate", Invocation: 2}, {Row: "a", Purpose: "judge", Invocation: 2}, {Row: "a", Purpose: "candidate", Invocation: 3},
			} {
				run(j, other, "buy")
			}
			if ran != before+3 {
				t.Errorf("at other sites the tool ran %d times, want 3", ran-before)
			}
			if got := run(j, site, "sell"); !c.again && !strings.HasPrefix(got, "diverged diverged: ") {
				t.Errorf("another tool at the same site is %q", got)
			}
		})
	}
}

// TestToolKilled: a process that is killed while a tool runs, and one that is
// killed right after, never have it run twice; one that only reads may be.
func TestToolKilled(t *testing.T) {
	dir := t.TempDir()
	done := func() string {
		b, err := os.ReadFile(filepath.Join(dir, "done"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for i, c := range []struct {
		die  string // where the process is killed
		done string // what the tools did so far
		said string // what came of them, in a process that was not killed
	}{
		{"in 1", "0 1 ", ""},
		{"after 2", "0 1 2 ", ""},
		{"in 3", "0 1 2 3 ", ""}, // it only reads
		{"", "0 1 2 3 3 ", "result 0|tool tool-unfinished: the tool buy was begun before the run was cut off|result 2|result 3"},
		{"", "0 1 2 3 3 ", "result 0|tool tool-unfinished: the tool buy was begun before the run was cut off|result 2|result 3"},
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestToolChild$", "-test.timeout=60s")
		cmd.Env = append(os.Environ(), "JOURNAL_CHILD="+dir, "JOURNAL_DIE="+c.die)
		out, err := cmd.Output()
		if killed := err != nil; killed != (c.die != "") {
			t.Fatalf("process %d: %v\n%s", i, err, out)
		}
		if got := done(); got != c.done {
			t.Errorf("after process %d the tools did %q, want %q", i, got, c.done)
		}
		if c.said == "" {
			continue
		}
		said := strings.Split(strings.SplitN(string(out), "\n", 2)[0], "|")
		for k, want := range strings.Split(c.said, "|") {
			if k >= len(said) || !strings.HasPrefix(said[k], want) {
				t.Errorf("process %d: tool %d came to %q, want %q", i, k, said, want)
			}
		}
	}
}

// TestToolChild is the process that TestToolKilled kills.
func TestToolChild(t *testing.T) {
	dir, die := os.Getenv("JOURNAL_CHILD"), os.Getenv("JOURNAL_DIE")
	if dir == "" {
		return // TestToolKilled runs it, in processes of its own
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	dieAt := func(place string, i int) {
		if die == fmt.Sprint(place, " ", i) {
			_ = self.Kill()
			select {}
		}
	}
	j := openJournal(t, filepath.Join(dir, "journal"))
	var said []string
	for i := range 4 {
		effects := pipeline.EffectsChange
		if i == 3 {
			effects = pipeline.EffectsRead
		}
		text, err := j.Tool(t.Context(), pipeline.Site{Row: "a", Invocation: i}, "buy", datasets.RawValue(`{}`), effects, func() (string, bool, error) {
			f, err := os.OpenFile(filepath.Join(dir, "done"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
			if err != nil {
				return "", false, err
			}
			fmt.Fprintf(f, "%d ", i)
			dieAt("in", i)
			return fmt.Sprint("result ", i), false, f.Close()
		})
		dieAt("after", i)
		said = append(said, outcome(text, err))
	}
	fmt.Println(strings.Join(said, "|"))
}

// An answer that is asked anew has its tools read anew; what a tool may have
// changed is not done twice.
func TestForgetTools(t *testing.T) {
	dir, ran := t.TempDir(), map[pipeline.Effects]int{}
	for i := range 3 {
		j := openJournal(t, dir)
		for n, effects := range []pipeline.Effects{pipeline.EffectsRead, pipeline.EffectsChange, ""} {
			site := pipeline.Site{Candidate: "a", Row: "r", Invocation: n}
			_, err := j.Tool(t.Context(), site, "use", datasets.RawValue(`{}`), effects, func() (string, bool, error) {
				ran[effects]++
				return "done", false, nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		if n, err := j.Forget(Answer{Candidate: "a", Row: "r"}); n != 1 || err != nil {
			t.Errorf("%d entries forgotten (%v), want that of the reading tool", n, err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if ran[pipeline.EffectsRead] != i+1 || ran[pipeline.EffectsChange] != 1 || ran[""] != 1 {
			t.Errorf("asked %d times, the tools ran %v", i+1, ran)
		}
	}
}
