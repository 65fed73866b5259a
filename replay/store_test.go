package replay

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"evalrun/datasets"
)

// writeLines writes a log file of these lines.
func writeLines(t testing.TB, path string, lines ...string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, paths ...string) Source {
	t.Helper()
	s, err := Open(paths...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// texts are records as canonical JSON, sorted.
func texts[T interface{ AppendJSON([]byte) []byte }](t testing.TB, list iter.Seq2[T, error]) []string {
	t.Helper()
	var got []string
	for r, err := range list {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, canonical(t, r.AppendJSON(nil)))
	}
	slices.Sort(got)
	return got
}

func imported(t testing.TB, sources ...string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "store")
	if _, err := Import(t.Context(), sources, folder); err != nil {
		t.Fatal(err)
	}
	return folder
}

// Every record of testdata, and what a store gives back.
func TestStoresKeepRecords(t *testing.T) {
	store := imported(t, "testdata/records.jsonl")
	var want []string
	for _, line := range testLines(t) {
		want = append(want, canonical(t, line))
	}
	slices.Sort(want)
	s := open(t, store)
	got := append(texts(t, s.Calls(Want{All: true})), texts(t, s.Ratings())...)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		for i := range want {
			if i >= len(got) || got[i] != want[i] {
				t.Fatalf("%d records for %d\ngot  %s\nwant %s", len(got), len(want), got[min(i, len(got)-1)], want[i])
			}
		}
	}
}

// The recorded text of open values is kept, not their canonical form.
func TestStoresKeepRecordedText(t *testing.T) {
	for r, err := range open(t, imported(t, "testdata/records.jsonl")).Calls(Want{IDs: map[string]bool{"0190b3c4-0000-7000-8000-000000000001": true}}) {
		if err != nil {
			t.Fatal(err)
		}
		if got, want := r.Inputs.JSON(), `{"z":"last first","a":1.50,"n":12345678901234567890}`; got != want {
			t.Errorf("inputs %s, want %s", got, want)
		}
		if !r.Started.Equal(time.Date(2025, 1, 2, 3, 4, 5, 123456000, time.UTC)) || r.Started.Location() != time.UTC {
			t.Errorf("started %v", r.Started)
		}
	}
}

func TestALiteralRecordInAStore(t *testing.T) {
	r := &Record{
		Format: 2, ID: "x", Started: time.Unix(0, 0), Outputs: datasets.Null, Error: &Error{}, Conversation: &Conversation{},
		Exchanges: []Exchange{{Started: time.Unix(0, 0)}},
	}
	row := r.row()
	var f fromRow
	got := f.record(&row)
	if f.err != nil || canonical(t, got.AppendJSON(nil)) != canonical(t, r.AppendJSON(nil)) {
		t.Errorf("%v\ngot  %s\nwant %s", f.err, got.AppendJSON(nil), r.AppendJSON(nil))
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(dir, "bad", "calls-000001.parquet")
	writeLines(t, bad, "no parquet, whatever its name says")
	writeLines(t, filepath.Join(dir, "spec.yaml"), "version: 1")
	store := imported(t, "testdata/records.jsonl")
	for _, c := range []struct{ path, want string }{
		{filepath.Join(dir, "none"), "no such file"},
		{empty, "holds no records"},
		{filepath.Join(dir, "bad"), "calls-000001.parquet"},
		{bad, "no Parquet file"},
		{filepath.Join(dir, "spec.yaml"), "name a .parquet or .jsonl file"},
	} {
		if _, err := Open(store, c.path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.path, err, c.want)
		}
	}
}

const (
	callA  = `{"functai_call":2,"id":"a","root":"a","started":"2025-01-01T00:00:00.000001Z","inputs":{"n":1}}`
	callA2 = `{"functai_call":2,"id":"a","root":"a","started":"2025-01-01T00:00:00.000001Z","inputs":{"n":2},"writer":2}`
	callA3 = `{"functai_call":2,"id":"a","root":"other","started":"2025-01-01T00:00:00.000001Z","inputs":{"n":3},"writer":3}`
	callB  = `{"functai_call":2,"id":"b","parent":"a","root":"a","started":"2025-01-01T00:00:00.000002Z","conversation":{"id":"c1","turn":"1","parent":null}}`
	callC  = `{"functai_call":2,"id":"c","root":"c","started":"2024-12-31T00:00:00.000000Z","conversation":{"id":"c2"}}`
	callD  = `{"functai_call":2,"id":"d"}`
	rating = `{"functai_rating":1,"id":"r1","call":"a","at":"2025-01-02T00:00:00.000000Z","by":"ada","verdict":"right"}`
)

// ids of calls, in the order they are yielded, each with n of its inputs.
func idsOf(t *testing.T, calls iter.Seq2[*Record, error]) string {
	t.Helper()
	var got []string
	for r, err := range calls {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.ID+r.Inputs.Member("n").JSON())
	}
	slices.Sort(got)
	return strings.Join(got, " ")
}

// Every kind of source answers the same questions alike.
func TestSources(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	writeLines(t, filepath.Join(log, "2025-01-01", "p1.jsonl"), callA2, callB, rating)
	writeLines(t, filepath.Join(log, "2025-01-02", "p2.jsonl"), callC, callA)
	writeLines(t, filepath.Join(log, "2025-01-02", "p3.jsonl"), callD, rating)
	one := writeLines(t, filepath.Join(dir, "one.jsonl"), rating, callA2, callB, callC, callA, callD)
	stores := filepath.Join(dir, "store")
	for _, src := range []string{filepath.Join(log, "2025-01-01", "p1.jsonl"), log} { // in two steps: two files of calls
		if _, err := Import(t.Context(), []string{src}, stores); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(stores, "*.parquet"))
	if err != nil || len(files) != 3 {
		t.Fatalf("%v, %v: two files of calls and one of ratings", files, err)
	}
	var calls []*Record
	for _, line := range []string{callA2, callB, callC, callA, callD} {
		r, err := ParseRecord([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, r)
	}
	r1, err := ParseRating([]byte(rating))
	if err != nil {
		t.Fatal(err)
	}
	third := writeLines(t, filepath.Join(dir, "third.jsonl"), callA3)
	set := func(keys ...string) map[string]bool {
		m := map[string]bool{}
		for _, k := range keys {
			m[k] = true
		}
		return m
	}
	for name, s := range map[string]Source{
		"memory": InMemory(calls, []*Rating{r1}), "folder": open(t, log), "file": open(t, one), "store": open(t, stores),
		"files": open(t, files...), "mixed": open(t, files[0], one),
	} {
		for _, c := range []struct {
			want Want
			ids  string
		}{
			{Want{All: true}, "a2 b c d"},
			{Want{}, ""},
			{Want{IDs: set("a", "d", "x", "")}, "a2 d"},
			{Want{IDs: set("b")}, "b"},
			{Want{Roots: set("a")}, "a2 b"},
			{Want{Roots: set("d", "c")}, "c d"},
			{Want{Conversations: set("c1", "c2", "c3")}, "b c"},
			{Want{IDs: set("d"), Roots: set("c"), Conversations: set("c1")}, "b c d"},
		} {
			if got := idsOf(t, s.Calls(c.want)); got != c.ids {
				t.Errorf("%s: %+v gives %q, want %q", name, c.want, got, c.ids)
			}
		}
		if got := texts(t, s.Ratings()); len(got) != 1 {
			t.Errorf("%s: ratings %s", name, got)
		}
		for range s.Calls(Want{All: true}) {
			break // and it can be read again
		}
		if got := idsOf(t, s.Calls(Want{All: true})); got != "a2 b c d" {
			t.Errorf("%s: read again: %q", name, got)
		}
	}
	// The record that counts may be in another file, and say another root.
	s := open(t, third, stores)
	if got := idsOf(t, s.Calls(Want{Roots: set("other", "a")})); got != "a3 b" {
		t.Errorf("got %q", got)
	}
	if got := idsOf(t, s.Calls(Want{Roots: set("x"), Conversations: set("c2")})); got != "c" {
		t.Errorf("got %q", got)
	}
	if got := idsOf(t, s.Calls(Want{All: true})); got != "a3 b c d" {
		t.Errorf("got %q", got)
	}
}

func TestLogsAreReadLeniently(t *testing.T) {
	folder := t.TempDir()
	first := filepath.Join(folder, "2025-01-01", "a.jsonl")
	writeLines(t, first, callA, "", "  \t", `{"functai_call":2,"id":"x"`, "not json", "\xff", "[]", `{"functai_conversation":1}`,
		`{"functai_call":9,"id":"x"}`, `{"functai_call":9,"id":"y"}`, `{"functai_call":2,"id":5}`, callB+"\r")
	torn := filepath.Join(folder, "2025-01-02", "b.jsonl")
	writeLines(t, torn, callC)
	f, err := os.OpenFile(torn, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(callD[:len(callD)-3]); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	last := filepath.Join(folder, "2025-01-03", "c.jsonl")
	writeLines(t, last, "\uFEFF"+callD, rating)
	if err := os.WriteFile(last, []byte("\uFEFF"+callD+"\n"+rating), 0o600); err != nil { // no last line end, and whole
		t.Fatal(err)
	}
	writeLines(t, filepath.Join(folder, "conversations", "c.jsonl"), callA)     // no day folder
	writeLines(t, filepath.Join(folder, "2025-01-03", "notes.txt"), "not mine") // no .jsonl
	writeLines(t, filepath.Join(folder, "2025-01-03", ".c.jsonl.swp"), "{")
	want := []Skip{
		{SkipNotJSON, 2, first + ":4"},
		{SkipNotUTF8, 1, first + ":6"},
		{SkipNotObject, 1, first + ":7"},
		{SkipNoFormat, 1, first + ":8"},
		{SkipFormat, 2, first + ":9"},
		{SkipNoID, 1, first + ":11"},
		{SkipTorn, 1, torn + ":2"},
	}
	for name, read := range map[string]func(Source){
		"ratings first": func(s Source) {
			if got := texts(t, s.Ratings()); len(got) != 1 {
				t.Errorf("ratings %s", got)
			}
		},
		"calls first": func(Source) {},
	} {
		s := open(t, folder)
		read(s)
		if got := idsOf(t, s.Calls(Want{All: true})); got != "a1 b c d" {
			t.Errorf("%s: got %s", name, got)
		}
		if got := idsOf(t, s.Calls(Want{IDs: map[string]bool{"b": true, "d": true, "x": true}})); got != "b d" {
			t.Errorf("%s: looked up %s", name, got)
		}
		if got := s.Skipped(); !slices.Equal(got, want) {
			t.Errorf("%s: skipped\n%v\nwant\n%v", name, got, want)
		}
	}
}

func TestHugeLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "huge.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	big := `{"functai_call":2,"id":"big","inputs":{"t":"` + strings.Repeat("x", 3<<20) + `"}}`
	chunk := bytes.Repeat([]byte("y"), 1<<20)
	fmt.Fprintf(f, "%s\n%s\n{\"functai_call\":2,\"id\":\"", callA, big)
	for range MaxLine>>20 + 1 {
		if _, err := f.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprintf(f, "\"}\n%s\n", callB)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	var got []string
	for r, err := range s.Calls(Want{All: true}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.ID)
	}
	if fmt.Sprint(got) != "[a big b]" {
		t.Errorf("read %v", got)
	}
	if skipped := s.Skipped(); !slices.Equal(skipped, []Skip{{SkipTooLong, 1, path + ":3"}}) {
		t.Errorf("skipped %v", skipped)
	}
}

func TestImport(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "store")
	log := writeLines(t, filepath.Join(dir, "log.jsonl"), callD, callB, callA, callB, "torn {", callC, rating, rating)
	got, err := Import(t.Context(), []string{log}, folder)
	if err != nil {
		t.Fatal(err)
	}
	if got.Calls != 4 || got.Ratings != 1 || got.Known != 2 || fmt.Sprint(got.Files) != "[calls-000001.parquet ratings-000001.parquet]" ||
		len(got.Skipped) != 1 {
		t.Errorf("imported %+v", got)
	}
	// In a file, calls come by (started, id); those without a time first.
	var order []string
	for r, err := range open(t, filepath.Join(folder, "calls-000001.parquet")).Calls(Want{All: true}) {
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, r.ID)
	}
	if fmt.Sprint(order) != "[d c a b]" {
		t.Errorf("order %v", order)
	}
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	// The same again adds nothing; what is new is added.
	if got, err = Import(t.Context(), []string{log}, folder); err != nil || got.Calls+got.Ratings != 0 || got.Known != 7 || got.Files != nil {
		t.Errorf("again: %+v, %v", got, err)
	}
	more := writeLines(t, filepath.Join(dir, "more.jsonl"), callA2, callA, strings.Replace(rating, "r1", "r2", 1))
	if got, err = Import(t.Context(), []string{more, log}, folder); err != nil || got.Calls != 1 || got.Ratings != 1 || fmt.Sprint(got.Files) != "[calls-000002.parquet ratings-000002.parquet]" {
		t.Errorf("more: %+v, %v", got, err)
	}
	if got := idsOf(t, open(t, folder).Calls(Want{All: true})); got != "a2 b c d" {
		t.Errorf("read %s", got)
	}

	// A store imported from a store is the same store.
	other := imported(t, folder)
	if a, b := texts(t, open(t, folder).Calls(Want{All: true})), texts(t, open(t, other).Calls(Want{All: true})); !slices.Equal(a, b) {
		t.Error("a store imported from a store differs")
	}
	foreign := filepath.Join(dir, "foreign")
	writeLines(t, filepath.Join(foreign, "thesis.txt"), "mine")
	for _, c := range []struct {
		src, folder, want string
	}{
		{log, foreign, "it holds thesis.txt"},
		{folder, folder, "is part of the store"},
		{filepath.Join(folder, "calls-000001.parquet"), folder, "is part of the store"},
		{filepath.Join(dir, "none.jsonl"), folder, "no such file"},
		{log, more, "opening the store"},
	} {
		before := maps.Collect(contents(t, dir))
		if _, err := Import(t.Context(), []string{c.src}, c.folder); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s to %s: %v, want %q", c.src, c.folder, err, c.want)
		}
		if !maps.Equal(before, maps.Collect(contents(t, dir))) {
			t.Errorf("%s to %s: something was written", c.src, c.folder)
		}
	}
}

// contents are the files below a folder and their bytes.
func contents(t *testing.T, dir string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			if err == nil && !yield(path, string(b)) {
				return filepath.SkipAll
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
