package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"evalrun/pipeline"
)

// written makes a journal of segments, each with so many answers, and returns the
// places at which these end in the first one.
func written(t *testing.T, dir string, segments, answers int) (ends []int64) {
	t.Helper()
	for s := range segments {
		j := openJournal(t, dir)
		m := j.Model(&counting{})
		for i := range answers {
			answer(t, m, request(fmt.Sprint(s, i), "x"))
			if s == 0 {
				ends = append(ends, j.size)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return ends
}

func refusedAsDamaged(t *testing.T, dir, what string) {
	t.Helper()
	if j, err := Open(dir, nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("%s: opened %v, error %v; want that it is damaged", what, j, err)
	}
	if _, err := Read(dir); !errors.Is(err, ErrDamaged) {
		t.Errorf("%s: reading it, error %v; want that it is damaged", what, err)
	}
}

// A byte that is wrong before other answers is damage, whichever it is and in
// whichever segment: nothing behind it is forgotten in silence. Mended, the journal
// knows all but the answer that was hit.
func TestDamagedByte(t *testing.T) {
	const answers = 3
	source := t.TempDir()
	ends := written(t, source, 2, answers)
	whole, err := os.ReadFile(segment(source, 1))
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(segment(source, 2))
	if err != nil {
		t.Fatal(err)
	}
	for at := len(journalHead); at < int(ends[answers-2]); at++ {
		dir := t.TempDir()
		bad := append([]byte(nil), whole...)
		bad[at] ^= 1
		for number, text := range [][]byte{bad, second} {
			if err := os.WriteFile(segment(dir, number+1), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		refusedAsDamaged(t, dir, fmt.Sprintf("byte %d", at))
		lost, err := Mend(dir)
		if err != nil || lost == 0 {
			t.Fatalf("byte %d: %d bytes were left out (%v)", at, lost, err)
		}
		j := openJournal(t, dir)
		if n := j.Len(); n != 2*answers-1 && n != 2*answers { // the mark before a request holds no answer
			t.Errorf("byte %d: %d answers are known, want all but one of %d", at, n, 2*answers)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if kept, err := os.ReadFile(segment(dir, 1) + ".damaged"); err != nil || string(kept) != string(bad) {
			t.Errorf("byte %d: the damaged segment is not kept: %v", at, err)
		}
	}
}

// A segment that is missing, or shorter than it was, is damage too.
func TestLostSegment(t *testing.T) {
	for _, c := range []struct {
		name string
		lose func(dir string) error
	}{
		{"the first is gone", func(dir string) error { return os.Remove(segment(dir, 1)) }},
		{"the last is gone", func(dir string) error { return os.Remove(segment(dir, 3)) }},
		{"all are gone", func(dir string) error { return os.RemoveAll(dir) }},
		{"the first is empty", func(dir string) error { return os.Truncate(segment(dir, 1), 0) }},
		{"the last is cut", func(dir string) error { return os.Truncate(segment(dir, 3), 100) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "journal")
			written(t, dir, 3, 2)
			had, err := Sizes(dir)
			if err != nil || len(had) != 3 {
				t.Fatal(had, err)
			}
			if err := CheckSizes(dir, had); err != nil {
				t.Fatal(err)
			}
			if err := c.lose(dir); err != nil {
				t.Fatal(err)
			}
			if err := CheckSizes(dir, had); !errors.Is(err, ErrDamaged) {
				t.Errorf("error %v; want that it is damaged", err)
			}
			if _, err := Mend(dir); err != nil {
				t.Fatal(err)
			}
			j := openJournal(t, dir)
			defer j.Close()
			if n := j.Len(); n > 5 {
				t.Errorf("%d answers are known", n)
			}
		})
	}
}

// After the asking has ended, what is known is given, also by a model that has
// replies of its own, and nothing else is asked.
func TestHalt(t *testing.T) {
	spent := errors.New("spent")
	j := openJournal(t, t.TempDir())
	defer j.Close()
	live := &counting{}
	m := j.Model(live)
	answer(t, m, request("a", "x"))
	ends := j.Model(sends{err: &pipeline.Fatal{Err: spent}})
	if _, err := ends.Generate(t.Context(), request("b", "x")); !errors.Is(err, spent) {
		t.Errorf("error %v", err)
	}
	j.Halt(errors.New("another reason"))
	if got := answer(t, m, request("a", "x")); got.From != pipeline.FromJournal {
		t.Errorf("what is known is from %q", got.From)
	}
	_, err := m.Generate(t.Context(), request("c", "x"))
	if _, fatal := errors.AsType[*pipeline.Fatal](err); !fatal || !errors.Is(err, spent) {
		t.Errorf("error %v; want the first reason, for the run", err)
	}
	if halted, ok := errors.AsType[*Halted](err); !ok || halted.Why != spent {
		t.Errorf("error %v; want that nothing is asked any more", err)
	}
	if live.n.Load() != 1 {
		t.Errorf("asked %d times, want 1", live.n.Load())
	}
	call := request("b", "x").Site
	if j.MayKnow(call) {
		t.Error("a call that was not begun may be known")
	}
	knows := j.Model(knower{live})
	if !j.MayKnow(call) {
		t.Error("a model that has replies of its own may not know a call")
	}
	if got := answer(t, knows, request("d", "x")); got.Text != "had" || live.n.Load() != 1 {
		t.Errorf("a model that has the reply said %q, and was asked %d times", got.Text, live.n.Load())
	}
}

// knower has a reply to everything.
type knower struct{ pipeline.Model }

func (knower) Known(ctx context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
	return &pipeline.Reply{Text: "had", Cached: true, From: pipeline.FromCache}, nil
}
