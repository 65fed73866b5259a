package conversations_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/replay/conversations"
)

// TestMain lets the test binary be a writer of its own, to be killed or raced.
func TestMain(m *testing.M) {
	if folder := os.Getenv("EVALRUN_TEST_WRITER"); folder != "" {
		write(folder, os.Getenv("EVALRUN_TEST_NAME"))
		return
	}
	if folder := os.Getenv("EVALRUN_TEST_CRAMPED"); folder != "" {
		cram(folder)
		return
	}
	os.Exit(m.Run())
}

// cram is what such a writer does where files may not grow.
var cram func(folder string)

// write appends numbered records of its name, and says so after each, until it
// has written as many as it was told, or is killed.
func write(folder, name string) {
	s, err := conversations.Open(folder)
	if err != nil {
		panic(err)
	}
	var most int
	fmt.Sscan(os.Getenv("EVALRUN_TEST_COUNT"), &most)
	length := 0
	for i := 0; i < most; {
		err := s.Append(context.Background(), "ada", length, record(name, i))
		if f, ok := errors.AsType[*pipeline.Failure](err); ok && f.Code == "store-conflict" {
			more, err := s.Read(context.Background(), "ada", length)
			if err != nil {
				panic(err)
			}
			length += len(more)
			continue
		}
		if err != nil {
			panic(err)
		}
		fmt.Println(i)
		length++
		i++
	}
}

func record(name string, i int) datasets.Value {
	return datasets.Values{
		"by": datasets.Text(name), "n": datasets.Int(int64(i)), "text": datasets.Text(strings.Repeat("é\n", i%700)),
	}.Object()
}

// writer starts a process that writes.
func writer(t testing.TB, folder, name string, count int) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "EVALRUN_TEST_WRITER="+folder, "EVALRUN_TEST_NAME="+name, fmt.Sprint("EVALRUN_TEST_COUNT=", count))
	out := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

func open(t testing.TB, folder string) *conversations.Folder {
	t.Helper()
	s, err := conversations.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(t testing.TB, s pipeline.Store) []datasets.Value {
	t.Helper()
	list, err := s.Read(t.Context(), "ada", 0)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func add(t testing.TB, s pipeline.Store, n int, text string) {
	t.Helper()
	if err := s.Append(t.Context(), "ada", n, datasets.RawValue(text)); err != nil {
		t.Fatal(err)
	}
}

func conflicts(err error) bool {
	f, ok := errors.AsType[*pipeline.Failure](err)
	return ok && f.Code == "store-conflict"
}

func file(folder string) string { return filepath.Join(folder, "conversations", "ada.jsonl") }

func TestFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "store")
	s, other := open(t, folder), open(t, folder)
	if got := read(t, s); got != nil {
		t.Errorf("a conversation nobody wrote to has %v", got)
	}
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading made the folder: %v", err)
	}
	texts := []string{`{"kind":"a","x": 1.50}`, "{\n\"kind\":\"b\",\n\"t\":\"\\n\"}", `{"kind":"c"}`}
	add(t, s, 0, texts[0])
	add(t, other, 1, texts[1])
	add(t, s, 2, texts[2])
	for _, store := range []*conversations.Folder{s, other, open(t, folder)} {
		got := read(t, store)
		if len(got) != 3 || got[0].JSON() != texts[0] || got[1].Canonical() != `{"kind":"b","t":"\n"}` || got[2].JSON() != texts[2] {
			t.Errorf("read %v", got)
		}
		for n := range 6 {
			rest, err := store.Read(t.Context(), "ada", n)
			if want := max(0, 3-n); err != nil || len(rest) != want || want > 0 && !rest[0].Equal(got[n]) {
				t.Errorf("from %d: %v, %v", n, rest, err)
			}
		}
	}
	for _, n := range []int{0, 2, 4, 99} {
		if err := s.Append(t.Context(), "ada", n, datasets.RawValue(`{}`)); !conflicts(err) {
			t.Errorf("an append at %d: %v", n, err)
		}
	}
	for _, text := range []string{`[]`, `"x"`, ``, `null`, `{"a":}`, "{\"a\":\"\xff\"}"} {
		if err := s.Append(t.Context(), "ada", 3, datasets.RawValue(text)); err == nil {
			t.Errorf("%q was taken for a record", text)
		}
	}
	for _, id := range []string{"", "../x", "a/b", ".", "-a", strings.Repeat("x", 201)} {
		_, err := s.Read(t.Context(), id, 0)
		for _, err := range []error{err, s.Append(t.Context(), id, 0, datasets.RawValue(`{}`))} {
			if f, ok := errors.AsType[*pipeline.Failure](err); !ok || f.Code != "conversation-id" {
				t.Errorf("%q: %v", id, err)
			}
		}
	}
	if err := s.Append(t.Context(), "bo", 0, datasets.RawValue(`{}`)); err != nil {
		t.Fatal(err)
	}
	if ids, err := s.IDs(); err != nil || strings.Join(ids, " ") != "ada bo" {
		t.Errorf("ids %q, %v", ids, err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for path, want := range map[string]fs.FileMode{
		folder: 0o700, filepath.Join(folder, "conversations"): 0o700, file(folder): 0o600, filepath.Join(folder, "conversations", "ada.lock"): 0o600,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, want %v (%v)", path, info.Mode().Perm(), want, err)
		}
	}
}

func TestOpenNoFolder(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "conversations"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := conversations.Open(folder); err == nil || !strings.Contains(err.Error(), "not a folder") {
		t.Errorf("got %v", err)
	}
}

// TestCutAnywhere: whatever byte a file ends at, all records before the cut one
// are there, the next append puts its record right after them, and neither a
// reader nor a writer that knew the file before is misled.
func TestCutAnywhere(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	for i := range 4 {
		add(t, s, i, fmt.Sprintf(`{"n":%d,"t":"é\\n{}"}`, i))
	}
	whole, err := os.ReadFile(file(folder))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for cut := range len(whole) + 1 {
		if err := os.WriteFile(file(folder), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		complete, rest := 0, cut
		for complete < 4 && rest >= len(lines[complete]) {
			rest -= len(lines[complete])
			complete++
		}
		fresh := open(t, folder)
		if got := read(t, fresh); len(got) != complete {
			t.Fatalf("cut at %d: %d records, want %d", cut, len(got), complete)
		}
		// A record that lacks nothing but its line's end is kept.
		if complete < 4 && rest == len(lines[complete])-1 {
			if err := fresh.Append(t.Context(), "ada", complete, datasets.RawValue(`{"new":true}`)); !conflicts(err) {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			complete++
		}
		add(t, fresh, complete, `{"new":true}`)
		for _, store := range []pipeline.Store{fresh, open(t, folder)} {
			got := read(t, store)
			if len(got) != complete+1 || got[complete].JSON() != `{"new":true}` {
				t.Fatalf("cut at %d: read %v", cut, got)
			}
			for i := range complete {
				if n, _ := got[i].Member("n").AsInt(); int(n) != i {
					t.Fatalf("cut at %d: record %d is %s", cut, i, got[i].JSON())
				}
			}
		}
	}
}

// TestForeignLines: lines that are no records keep their places, so that all
// others keep theirs, and are never taken away.
func TestForeignLines(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	add(t, s, 0, `{"n":0}`)
	f, err := os.OpenFile(file(folder), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("\x00\x00garbage\n\n[1]\n{\"n\":4}"); err != nil { // the last without its end, as some editors leave it
		t.Fatal(err)
	}
	f.Close()
	if err := s.Append(t.Context(), "ada", 4, datasets.RawValue(`{"n":5}`)); !conflicts(err) {
		t.Fatalf("got %v, want a conflict: there is a fifth record", err)
	}
	add(t, s, 5, `{"n":5}`)
	var got []string
	for _, r := range read(t, s) {
		got = append(got, r.JSON())
	}
	if want := `{"n":0} null null null {"n":4} {"n":5}`; strings.Join(got, " ") != want {
		t.Errorf("read %s, want %s", got, want)
	}
}

// TestKilled: a writer that is killed at any moment loses no record it was told
// is kept, and at most the one it was writing is not there.
func TestKilled(t *testing.T) {
	kills := 10
	if os.Getenv("EVALRUN_E2E") != "" {
		kills = 200
	}
	folder := t.TempDir()
	next := 0
	for kill := range kills {
		name := fmt.Sprintf("w%d", kill)
		cmd, out := writer(t, folder, name, 1<<30)
		// Let it write something, then any moment is as good as another.
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			if got, _ := open(t, folder).Read(t.Context(), "ada", next); len(got) > 0 {
				break
			}
		}
		time.Sleep(time.Duration(rand.IntN(30_000)) * time.Microsecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		told := strings.Count(out.String(), "\n")
		records := read(t, open(t, folder))
		written := len(records) - next
		if written != told && written != told+1 {
			t.Fatalf("kill %d: %d records are there, %d were said to be kept", kill, written, told)
		}
		if written == 0 {
			t.Fatalf("kill %d: the writer wrote nothing", kill)
		}
		for i, r := range records[next:] {
			if !r.Equal(record(name, i)) {
				t.Fatalf("kill %d: record %d is %.80s", kill, i, r.JSON())
			}
		}
		// The next writer begins after what is there, a record without its line's
		// end included.
		s := open(t, folder)
		n := len(records)
		err := s.Append(t.Context(), "ada", n, datasets.RawValue(`{"after":true}`))
		if conflicts(err) {
			n++
			err = s.Append(t.Context(), "ada", n, datasets.RawValue(`{"after":true}`))
		}
		if err != nil {
			t.Fatalf("kill %d: %v", kill, err)
		}
		now := read(t, s)
		if len(now) != n+1 || n > len(records) && !now[n-1].Equal(record(name, written)) {
			t.Fatalf("kill %d: %d records, want %d", kill, len(now), n+1)
		}
		next = len(now)
	}
	// Everything of before is there, in its order.
	n, by := -1, ""
	for i, r := range read(t, open(t, folder)) {
		if !r.Member("after").IsZero() {
			continue
		}
		m, _ := r.Member("n").AsInt()
		if r.Member("by").String() != by {
			n, by = -1, r.Member("by").String()
		}
		if n++; int(m) != n {
			t.Fatalf("record %d is number %d of %s, want %d", i, m, by, n)
		}
	}
}

// TestTwoWriters: processes that append at once lose and reorder nothing.
func TestTwoWriters(t *testing.T) {
	const each = 150
	folder := t.TempDir()
	names := []string{"one", "two", "three"}
	var running []*exec.Cmd
	for _, name := range names {
		cmd, _ := writer(t, folder, name, each)
		running = append(running, cmd)
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	next := map[string]int{}
	turns := 0
	last := ""
	for i, r := range read(t, open(t, folder)) {
		name := r.Member("by").String()
		if !r.Equal(record(name, next[name])) {
			t.Fatalf("record %d is not number %d of %s: %.80s", i, next[name], name, r.JSON())
		}
		next[name]++
		if name != last {
			turns++
			last = name
		}
	}
	for _, name := range names {
		if next[name] != each {
			t.Errorf("%s has %d records, want %d", name, next[name], each)
		}
	}
	if turns < 4 {
		t.Logf("the writers hardly met: %d turns", turns)
	}
}

// FuzzLines: whatever is in a file, reading it and adding to it takes no record
// away.
func FuzzLines(f *testing.F) {
	f.Add([]byte("{\"a\":1}\n{\"b\""))
	f.Add([]byte("\n\n{}\n\xff\n{}"))
	f.Add([]byte("{}\r\n{}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		folder := t.TempDir()
		if err := os.MkdirAll(filepath.Dir(file(folder)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file(folder), text, 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, folder)
		before := read(t, s)
		n := len(before)
		err := s.Append(t.Context(), "ada", n, datasets.RawValue(`{"new":1}`))
		if conflicts(err) {
			n++
			err = s.Append(t.Context(), "ada", n, datasets.RawValue(`{"new":1}`))
		}
		if err != nil {
			t.Fatal(err)
		}
		after := read(t, open(t, folder))
		if len(after) != n+1 || after[n].JSON() != `{"new":1}` {
			t.Fatalf("%q became %v", text, after)
		}
		for i := range before {
			if after[i] != before[i] {
				t.Fatalf("record %d was %s and is %s", i, before[i].JSON(), after[i].JSON())
			}
		}
	})
}

// Whoever is in the middle of a torn line when the next writer takes it away gets to
// no record that is made of both lines.
func TestReadWhileMended(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	add(t, s, 0, `{"n":0}`)
	f, err := os.OpenFile(file(folder), os.O_APPEND|os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	torn := `{"t":"aaaaaaaa`
	if _, err := f.WriteString(torn); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, len(`{"n":0}`+"\n"+torn)-4)
	if _, err := io.ReadFull(f, first); err != nil {
		t.Fatal(err)
	}
	add(t, s, 1, `{"t":"bbbbbbbbbbbbbbbb"}`)
	rest, err := io.ReadAll(f)
	if got := string(first) + string(rest); err != nil || strings.Contains(got, "ab") {
		t.Errorf("it reads %q, %v", got, err)
	}
	if got := read(t, open(t, folder)); len(got) != 2 || got[1].JSON() != `{"t":"bbbbbbbbbbbbbbbb"}` {
		t.Errorf("read anew: %v", got)
	}
}

// A writer waits for another's lock no longer than its context.
func TestLockWaits(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	add(t, s, 0, `{"n":0}`)
	held := flock.New(filepath.Join(folder, "conversations", "ada.lock"))
	if err := held.Lock(); err != nil {
		t.Fatal(err)
	}
	late := errors.New("too late")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, late)
	defer cancel()
	if err := s.Append(ctx, "ada", 1, datasets.RawValue(`{"n":1}`)); !errors.Is(err, late) {
		t.Errorf("while another had the lock: %v", err)
	}
	if got := read(t, s); len(got) != 1 {
		t.Errorf("read %v", got)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	add(t, s, 1, `{"n":1}`)
}

// A tool's input that no record can hold is no reason to lose the turn.
func TestInputOfNoRecord(t *testing.T) {
	desk, err := pipeline.ParseProgram("desk.yaml", []byte(`{name: desk, inputs: [{name: q, shape: {type: string}}],
  outputs: [{name: a, shape: {type: string}}], tools: [{name: book, parameters: {type: object}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, input := range []string{`{"a":1e400}`, strings.Repeat("[", 9_995) + strings.Repeat("]", 9_995)} {
		s := open(t, t.TempDir())
		n := 0
		caller := &pipeline.Caller{LM: pipeline.LM{Name: "m", Model: callsOnce{input, new(bool)}}, Tools: echoes{}, Now: time.Now, NewID: func() string {
			n++
			return fmt.Sprint("id", n)
		}}
		chat, err := caller.Converse(desk, "ada", s, pipeline.ConversationOptions{})
		if err != nil {
			t.Fatal(err)
		}
		turn, err := chat.Send(t.Context(), datasets.Values{"q": datasets.Text("x")}, pipeline.SendOptions{})
		if err != nil || turn.State != pipeline.TurnDone || turn.Record.Steps[1].Member("output").String() != datasets.Text(input).JSON() {
			t.Errorf("%.12s: %+v, %v", input, turn, err)
		}
	}
}

// callsOnce is a model that calls a tool, and then answers.
type callsOnce struct {
	input  string
	called *bool
}

func (m callsOnce) Generate(context.Context, *pipeline.Request) (*pipeline.Reply, error) {
	if *m.called {
		return &pipeline.Reply{Text: "<a>\nb\n</a>"}, nil
	}
	*m.called = true
	return &pipeline.Reply{Calls: []pipeline.ToolCall{{ID: "x", Name: "book", Input: datasets.RawValue(m.input)}}, Response: datasets.RawValue(m.input)}, nil
}

// echoes is a tool that answers with its input.
type echoes struct{}

func (e echoes) Tool(string) (pipeline.ToolRunner, bool) { return e, true }

func (echoes) Run(_ context.Context, _ pipeline.Invocation, input datasets.Value) (string, error) {
	return input.JSON(), nil
}
