package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// counting is a model that says which of its answers this is.
type counting struct{ n atomic.Int64 }

func (c *counting) Generate(context.Context, *pipeline.Request) (*pipeline.Reply, error) {
	return &pipeline.Reply{Text: fmt.Sprint(c.n.Add(1)), Finish: "stop", Provider: "test"}, nil
}

func request(row string, text string) *pipeline.Request {
	return &pipeline.Request{Model: "m", Messages: []pipeline.Message{pipeline.TextMessage("user", text)}, Site: pipeline.Site{Row: row}}
}

func openJournal(t *testing.T, dir string) *Journal {
	t.Helper()
	j, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func answer(t *testing.T, m pipeline.Model, req *pipeline.Request) *pipeline.Reply {
	t.Helper()
	reply, err := m.Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func TestJournalAnswersAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	live := &counting{}
	j := openJournal(t, dir)
	m := j.Model(live)
	if got := answer(t, m, request("a", "x")); got.Text != "1" || got.From != pipeline.Asked {
		t.Errorf("the first answer is %q, from %q", got.Text, got.From)
	}
	// An equal request at another site is another observation.
	if got := answer(t, m, request("b", "x")); got.Text != "2" {
		t.Errorf("row b was given the answer to row a: %q", got.Text)
	}
	for range 2 { // in the process that wrote it, and in one that reads it
		if got := answer(t, m, request("a", "x")); got.Text != "1" || got.From != pipeline.FromJournal || got.Finish != "stop" || got.Provider != "test" {
			t.Errorf("asked again, got %+v, want the first answer, cached", got)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		j = openJournal(t, dir)
		m = j.Model(live)
	}
	if live.n.Load() != 2 {
		t.Errorf("the model was asked %d times, want 2", live.n.Load())
	}
	// Another request at the same site is never asked in silence.
	_, err := m.Generate(t.Context(), request("a", "y"))
	var f *pipeline.Failure
	if !errors.As(err, &f) || f.Code != "diverged" || live.n.Load() != 2 {
		t.Errorf("another request at the same site: %v after %d requests, want diverged after 2", err, live.n.Load())
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// The tools a model called are part of its answer, and calls made inside
// different tool calls are apart.
func TestJournalKeepsToolCalls(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(t, dir)
	wants := []pipeline.ToolCall{{ID: "a", Name: "look", Input: datasets.RawValue(`{"n":1}`)}}
	live := scripted{Calls: wants, Finish: "tool_calls"}
	answer(t, j.Model(live), request("a", "x"))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = openJournal(t, dir)
	defer j.Close()
	if got := answer(t, j.Model(&counting{}), request("a", "x")); got.From != pipeline.FromJournal || !slices.Equal(got.Calls, wants) {
		t.Errorf("read again, it called %v", got.Calls)
	}
	inside := request("a", "x")
	inside.Site.Inside = "0.0"
	if got := answer(t, j.Model(&counting{}), inside); got.From != pipeline.Asked {
		t.Error("a call inside another was given its answer")
	}
}

type scripted pipeline.Reply

func (s scripted) Generate(context.Context, *pipeline.Request) (*pipeline.Reply, error) {
	r := pipeline.Reply(s)
	return &r, nil
}

func TestJournalKeepsCalls(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(t, dir)
	site := pipeline.Site{Row: "a", Repeat: 1}
	first := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	if id, at, err := j.Begin(site, "one", first); err != nil || id != "one" || !at.Equal(first) {
		t.Fatalf("got %s, %v, %v", id, at, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = openJournal(t, dir)
	defer j.Close()
	if id, at, err := j.Begin(site, "two", first.Add(time.Hour)); err != nil || id != "one" || !at.Equal(first) {
		t.Errorf("begun again it is %s at %v (%v), want one at %v", id, at, err, first)
	}
	site.Repeat = 2
	if id, _, err := j.Begin(site, "two", first); err != nil || id != "two" {
		t.Errorf("another repeat got %s, %v", id, err)
	}
}

// TestJournalFailures: what the provider said of a request is kept, what may be
// different another time is asked again.
func TestJournalFailures(t *testing.T) {
	for _, c := range []struct {
		err  error
		kept bool
	}{
		{pipeline.Failf(pipeline.TypeRefusal, "policy", "no"), true},
		{pipeline.Failf(pipeline.TypeServer, "", "down"), false},
		{pipeline.Failf(pipeline.TypeRateLimit, "", "slow down"), false},
		{errors.New("broken pipe"), false},
	} {
		asked := 0
		j := openJournal(t, t.TempDir())
		m := j.Model(modelFunc(func() (*pipeline.Reply, error) { asked++; return nil, c.err }))
		for range 2 {
			if _, err := m.Generate(t.Context(), request("a", "x")); err == nil || err.Error() != c.err.Error() {
				t.Errorf("got %v, want %v", err, c.err)
			}
		}
		if kept := asked == 1; kept != c.kept {
			t.Errorf("%v: asked %d times; kept %v, want %v", c.err, asked, kept, c.kept)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

type modelFunc func() (*pipeline.Reply, error)

func (f modelFunc) Generate(context.Context, *pipeline.Request) (*pipeline.Reply, error) { return f() }

// TestJournalTorn cuts a segment after every byte: the whole frames before the
// cut are known, nothing else is, and the journal goes on.
func TestJournalTorn(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(t, dir)
	m := j.Model(&counting{})
	var ends []int64 // where each answer ends on disk
	for i := range 4 {
		answer(t, m, request(fmt.Sprint(i), "x"))
		ends = append(ends, j.size)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "000001.journal"))
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) + 1 {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "000001.journal"), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		want := 0
		for _, end := range ends {
			if int64(cut) >= end {
				want++
			}
		}
		j := openJournal(t, dir)
		if j.Len() != want {
			t.Errorf("cut after %d of %d bytes, %d answers are known, want %d", cut, len(whole), j.Len(), want)
		}
		live := &counting{}
		live.n.Store(100)
		for i := range 4 {
			got := answer(t, j.Model(live), request(fmt.Sprint(i), "x")).Text
			if i < want && got != fmt.Sprint(i+1) || i >= want && len(got) < 3 {
				t.Errorf("cut after %d bytes, answer %d is %q", cut, i, got)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestJournalRefuses(t *testing.T) {
	for _, text := range []string{"evalrun.journal 2\n.....", "evalrun.journal 12", "something else altogether"} {
		dir := t.TempDir()
		name := filepath.Join(dir, "000001.journal")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if j, err := Open(dir, nil); err == nil {
			t.Errorf("a segment that begins %q was taken: %v", text, j)
		}
	}
}

// TestJournalConcurrent: many at once, each answer on disk when it is given.
func TestJournalConcurrent(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(t, dir)
	m := j.Model(&counting{})
	const n = 200
	got := make([]string, n)
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := w; i < n; i += 16 {
				reply, err := m.Generate(t.Context(), request(fmt.Sprint(i), "x"))
				if err != nil {
					t.Error(err)
					return
				}
				got[i] = reply.Text
			}
		})
	}
	wg.Wait()
	// Not closed: what a killed process leaves behind.
	again := openJournal(t, dir)
	defer again.Close()
	if again.Len() != n {
		t.Fatalf("%d answers are on disk, want %d", again.Len(), n)
	}
	for i := range n {
		if text := answer(t, again.Model(nil), request(fmt.Sprint(i), "x")).Text; text != got[i] {
			t.Errorf("answer %d reads back as %q, want %q", i, text, got[i])
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func FuzzJournal(f *testing.F) {
	dir := f.TempDir()
	j, err := Open(dir, nil)
	if err != nil {
		f.Fatal(err)
	}
	if _, err := j.Model(&counting{}).Generate(context.Background(), request("a", "x")); err != nil {
		f.Fatal(err)
	}
	if err := j.Close(); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "000001.journal"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(append(whole, whole[len(journalHead):]...))
	f.Fuzz(func(t *testing.T, segment []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "000001.journal"), segment, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := Open(dir, nil)
		if err != nil {
			return
		}
		defer j.closeFiles()
		for _, at := range j.known {
			if e, err := j.readFrame(at); err != nil || j.known[sumOf(e.Site)] != at {
				t.Fatalf("%s is known but cannot be read: %v", e.Site, err)
			}
		}
	})
}
