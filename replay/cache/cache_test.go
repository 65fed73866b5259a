package cache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// counting is a model that says which of its answers this is.
type counting struct {
	n    atomic.Int64
	wait time.Duration
	err  error
}

func (m *counting) Generate(context.Context, *pipeline.Request) (*pipeline.Reply, error) {
	n := m.n.Add(1)
	time.Sleep(m.wait)
	if m.err != nil {
		return nil, m.err
	}
	return &pipeline.Reply{Text: fmt.Sprint(n), Wire: time.Second, Attempts: []pipeline.Attempt{{Failure: pipeline.Failf(pipeline.TypeServer, "", "down")}}}, nil
}

func request(text string, site pipeline.Site) *pipeline.Request {
	return &pipeline.Request{Model: "alias", Messages: []pipeline.Message{pipeline.TextMessage("user", text)}, Site: site}
}

var here = Identity("openai", datasets.Values{"model": datasets.Text("m")})

// open opens a cache whose warnings are counted.
func open(t testing.TB, dir string, mode Mode) (c *Cache, warnings func() []string) {
	t.Helper()
	var mu sync.Mutex
	var said []string
	c, err := Open(dir, mode, func(s string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, s)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return said
	}
}

func answer(t testing.TB, m pipeline.Model, req *pipeline.Request) *pipeline.Reply {
	t.Helper()
	reply, err := m.Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// The key is a hash of the contract's text.
func TestKey(t *testing.T) {
	for _, c := range []struct {
		replicate, try int
		text           string
	}{
		{0, 0, `{"functai_reply":1,"replicate":0,"request":{"a":1}}`},
		{2, 1, `{"functai_reply":1,"replicate":2,"request":{"a":1},"try":1}`},
	} {
		if got, want := Key(datasets.RawValue(`{ "a": 1 }`), c.replicate, c.try), sum([]byte(c.text)).String(); got != want || !strings.HasPrefix(got, "sha256:") {
			t.Errorf("the key is %s, want that of %s", got, c.text)
		}
	}
}

// What is the same question: rows are no part of it, replicates and models are.
func TestWhatIsShared(t *testing.T) {
	dir := t.TempDir()
	c, _ := open(t, dir, ReadWrite)
	live := &counting{}
	first := answer(t, c.Model(live, here), request("x", pipeline.Site{Row: "a"}))
	if first.Cached || first.From != pipeline.Asked || first.Wire == 0 {
		t.Errorf("the first reply is %+v", first)
	}
	for _, c2 := range []struct {
		name   string
		model  pipeline.Model
		req    *pipeline.Request
		shared bool
	}{
		{"another row", c.Model(live, here), request("x", pipeline.Site{Row: "b"}), true},
		{"another alias", c.Model(live, here), &pipeline.Request{Model: "other", Messages: request("x", pipeline.Site{}).Messages}, true},
		{"another text", c.Model(live, here), request("y", pipeline.Site{Row: "a"}), false},
		{"another replicate", c.Model(live, here), request("x", pipeline.Site{Row: "a", Repeat: 1}), false},
		{"another try", c.Model(live, here), request("x", pipeline.Site{Row: "a", Try: 1}), false},
		{"another model", c.Model(live, Identity("openai", datasets.Values{"model": datasets.Text("n")})), request("x", pipeline.Site{}), false},
		{"another provider", c.Model(live, Identity("gemini", datasets.Values{"model": datasets.Text("m")})), request("x", pipeline.Site{}), false},
	} {
		got := answer(t, c2.model, c2.req)
		if got.Cached != c2.shared || (got.From == pipeline.FromCache) != c2.shared || (got.Text == "1") != c2.shared {
			t.Errorf("%s: %+v; shared: %v", c2.name, got, c2.shared)
		}
		if c2.shared && (got.Wire != 0 || got.Attempts != nil) {
			t.Errorf("%s: what it took then is said again: %+v", c2.name, got)
		}
	}
}

func TestModes(t *testing.T) {
	dir := t.TempDir()
	live := &counting{}
	for i, step := range []struct {
		mode   Mode
		text   string
		cached bool
	}{
		{Read, "1", false},
		{Read, "2", false},
		{Write, "3", false},
		{Write, "4", false},
		{Read, "4", true},
		{ReadWrite, "4", true},
	} {
		c, warnings := open(t, dir, step.mode)
		got := answer(t, c.Model(live, here), request("x", pipeline.Site{}))
		if got.Text != step.text || got.Cached != step.cached || len(warnings()) != 0 {
			t.Errorf("step %d, %s: %q, cached %v, warnings %v; want %q, %v", i, step.mode, got.Text, got.Cached, warnings(), step.text, step.cached)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ParseMode("always"); err == nil || !strings.Contains(err.Error(), "off, read, write or rw") {
		t.Errorf("error %v; want the modes there are", err)
	}
	if m, err := ParseMode(""); m != Off || err != nil {
		t.Errorf("no mode is %s (%v)", m, err)
	}
}

// A reply reads back as it was, but for what it took.
func TestReplyReadsBack(t *testing.T) {
	in := int64(3)
	want := pipeline.Reply{
		Text: "yes", Calls: []pipeline.ToolCall{{ID: "a", Name: "look", Input: datasets.RawValue(`{"n":1.0}`)}}, Finish: "stop",
		Model: "m-1", System: "fp", Provider: "openai", Usage: pipeline.Usage{Input: &in}, Response: datasets.RawValue(`{"b":1,"a":2}`),
	}
	c, _ := open(t, t.TempDir(), ReadWrite)
	m := c.Model(says(want), here)
	answer(t, m, request("x", pipeline.Site{}))
	got := answer(t, m, request("x", pipeline.Site{}))
	want.Cached, want.From = true, pipeline.FromCache
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("read back it is\n%+v\nwant\n%+v", *got, want)
	}
}

type says pipeline.Reply

func (s says) Generate(context.Context, *pipeline.Request) (*pipeline.Reply, error) {
	r := pipeline.Reply(s)
	return &r, nil
}

func TestFailuresAreNotKept(t *testing.T) {
	c, _ := open(t, t.TempDir(), ReadWrite)
	live := &counting{err: pipeline.Failf(pipeline.TypeRefusal, "policy", "no")}
	for range 2 {
		if _, err := c.Model(live, here).Generate(t.Context(), request("x", pipeline.Site{})); !errors.Is(err, live.err) {
			t.Errorf("error %v", err)
		}
	}
	if live.n.Load() != 2 {
		t.Errorf("asked %d times, want 2", live.n.Load())
	}
}

// One asks, the others wait for it; when it fails, the next one asks.
func TestOneFlight(t *testing.T) {
	for _, err := range []error{nil, pipeline.Failf(pipeline.TypeServer, "", "down")} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			c, _ := open(t, dir, ReadWrite)
			live := &counting{wait: time.Second, err: err}
			const n = 5
			var wg sync.WaitGroup
			for range n {
				wg.Go(func() { _, _ = c.Model(live, here).Generate(t.Context(), request("x", pipeline.Site{})) })
			}
			began := time.Now()
			wg.Wait()
			asked, took := int64(1), time.Second
			if err != nil {
				asked, took = n, n*time.Second
			}
			if live.n.Load() != asked || time.Since(began) != took {
				t.Errorf("failing with %v: asked %d times in %s, want %d in %s", err, live.n.Load(), time.Since(began), asked, took)
			}
		})
	}
}

// What one process asks, another waits for; when it fails, the other asks.
func TestOneFlightOfProcesses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes wait for each other on Linux alone")
	}
	for _, err := range []error{nil, pipeline.Failf(pipeline.TypeServer, "", "down")} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			live := &counting{wait: time.Second, err: err}
			const processes, each = 3, 4
			var wg sync.WaitGroup
			for range processes {
				c, _ := open(t, dir, ReadWrite) // files of its own, as another process has
				for i := range each {
					wg.Go(func() { _, _ = c.Model(live, here).Generate(t.Context(), request(fmt.Sprint(i), pipeline.Site{})) })
				}
			}
			began := time.Now()
			wg.Wait()
			asked := int64(each)
			if err != nil {
				asked = processes * each
			}
			if n := live.n.Load(); n != asked {
				t.Errorf("failing with %v: asked %d times, want %d", err, n, asked)
			}
			if took := time.Since(began); err == nil && took > 2*time.Second {
				t.Errorf("different requests waited for each other: %s", took)
			}
		})
	}
}

// Who waits for another's reply does so no longer than its context lasts.
func TestWaitEnds(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c, _ := open(t, dir, ReadWrite)
		live := &counting{wait: time.Hour}
		var wg sync.WaitGroup
		wg.Go(func() { answer(t, c.Model(live, here), request("x", pipeline.Site{})) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := c.Model(live, here).Generate(ctx, request("x", pipeline.Site{})); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v; want that its time was over", err)
		}
		wg.Wait()
	})
}

// Several processes share the file: each sees what the others kept since.
func TestShared(t *testing.T) {
	dir := t.TempDir()
	a, _ := open(t, dir, ReadWrite)
	b, _ := open(t, dir, ReadWrite)
	live := &counting{}
	var wg sync.WaitGroup
	for i, c := range []*Cache{a, b} {
		wg.Go(func() {
			for n := range 100 {
				answer(t, c.Model(live, here), request(fmt.Sprint(i, n), pipeline.Site{}))
			}
		})
	}
	wg.Wait()
	for i, c := range []*Cache{b, a} {
		for n := range 100 {
			if got := answer(t, c.Model(live, here), request(fmt.Sprint(i, n), pipeline.Site{})); !got.Cached {
				t.Fatalf("reply %d of the other is not seen", n)
			}
		}
	}
}

// Damage costs what is damaged and nothing else, with a warning, and never gives a
// wrong answer.
func TestDamaged(t *testing.T) {
	whole := t.TempDir()
	c, _ := open(t, whole, ReadWrite)
	live := &counting{}
	const n = 4
	for i := range n {
		answer(t, c.Model(live, here), request(fmt.Sprint(i), pipeline.Site{}))
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(whole, fileName))
	if err != nil {
		t.Fatal(err)
	}
	size := (len(text) - len(fileHead)) / n
	for at := len(fileHead); at < len(text); at++ {
		for _, cut := range []bool{false, true} {
			dir := t.TempDir()
			bad := append([]byte(nil), text...)
			if bad[at] ^= 0x41; cut {
				bad = text[:at]
			}
			if err := os.WriteFile(filepath.Join(dir, fileName), bad, 0o600); err != nil {
				t.Fatal(err)
			}
			hit := (at - len(fileHead)) / size // the damaged entry
			c, warnings := open(t, dir, ReadWrite)
			fresh := &counting{}
			fresh.n.Store(100)
			for i := range n {
				got := answer(t, c.Model(fresh, here), request(fmt.Sprint(i), pipeline.Site{}))
				if wants := i != hit && !(cut && i > hit); got.Cached != wants || wants && got.Text != fmt.Sprint(i+1) {
					t.Fatalf("byte %d, cut %v: reply %d is %q, cached %v; want cached %v", at, cut, i, got.Text, got.Cached, wants)
				}
			}
			for i := range n { // what was asked anew is kept behind the damage
				if got := answer(t, c.Model(nil, here), request(fmt.Sprint(i), pipeline.Site{})); !got.Cached {
					t.Fatalf("byte %d, cut %v: reply %d is not kept", at, cut, i)
				}
			}
			if torn := cut && (at-len(fileHead))%size != 0; len(warnings()) == 0 && (!cut || torn) {
				t.Errorf("byte %d, cut %v: nothing is said", at, cut)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Files of every version are read; those of later ones, and other files, refused.
func TestVersions(t *testing.T) {
	c, warnings := open(t, filepath.Join("testdata", "v1"), Read)
	got := answer(t, c.Model(&counting{}, here), request("x", pipeline.Site{Repeat: 1}))
	if !got.Cached || got.Text != "kept by version 1" || got.Model != "m-1" || len(warnings()) != 0 {
		t.Errorf("the file of version 1 gives %+v, warnings %v", got, warnings())
	}
	for _, text := range []string{"evalrun.replies 2\n...", "something else altogether"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fileName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, ReadWrite, nil); err == nil || !strings.Contains(err.Error(), fileName) {
			t.Errorf("a file that begins %q: %v", text, err)
		}
	}
}

// A folder that cannot be is an error, before anything is asked.
func TestNoFolder(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(name, ReadWrite, nil); err == nil || !strings.Contains(err.Error(), "reply cache") {
		t.Errorf("error %v", err)
	}
}

func FuzzFile(f *testing.F) {
	dir := f.TempDir()
	c, _ := open(f, dir, ReadWrite)
	for i := range 2 {
		answer(f, c.Model(&counting{}, here), request(fmt.Sprint(i), pipeline.Site{}))
	}
	whole, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole[len(fileHead):])
	f.Fuzz(func(t *testing.T, frames []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fileName), append([]byte(fileHead), frames...), 0o600); err != nil {
			t.Fatal(err)
		}
		c, _ := open(t, dir, ReadWrite)
		m := c.Model(&counting{}, here)
		answer(t, m, request("new", pipeline.Site{}))
		if got := answer(t, m, request("new", pipeline.Site{})); !got.Cached {
			t.Error("what was kept behind it is not found")
		}
	})
}

func BenchmarkCached(b *testing.B) {
	c, _ := open(b, b.TempDir(), ReadWrite)
	m := c.Model(&counting{}, here)
	text := strings.Repeat("What is the right answer to this one? ", 40)
	answer(b, m, request(text, pipeline.Site{}))
	for b.Loop() {
		answer(b, m, request(text, pipeline.Site{}))
	}
}
