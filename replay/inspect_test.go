package replay

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"evalrun/internal/columnar"
	"evalrun/internal/fakelog"
)

// fakeLog writes a simulated log of n calls.
func fakeLog(t testing.TB, n int) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "log")
	if err := fakelog.WriteFolder(folder, n, 7); err != nil {
		t.Fatal(err)
	}
	return folder
}

// A generated log and its store hold the same records.
func TestGeneratedLogs(t *testing.T) {
	const n = 600
	log := fakeLog(t, n)
	store := imported(t, log)
	a, b := open(t, log), open(t, store)
	if x, y := texts(t, a.Calls(Want{All: true})), texts(t, b.Calls(Want{All: true})); !slices.Equal(x, y) || len(x) != n {
		t.Errorf("calls: %d and %d", len(x), len(y))
	}
	if x, y := texts(t, a.Ratings()), texts(t, b.Ratings()); !slices.Equal(x, y) || len(x) == 0 {
		t.Errorf("ratings: %d and %d", len(x), len(y))
	}
	if s := append(a.Skipped(), b.Skipped()...); len(s) != 0 {
		t.Errorf("skipped %v", s)
	}
	// Their statistics agree, and with a plain count of the lines.
	x, err := ReadStats(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := ReadStats(b)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(x, y); d != "" {
		t.Error(d)
	}
	var all bytes.Buffer
	if err := fakelog.Write(&all, n, 7); err != nil {
		t.Fatal(err)
	}
	lines := func(part string) int64 { return int64(strings.Count(all.String(), part)) }
	if x.Calls != n || x.Ratings != lines(`"functai_rating"`) || x.Unknown != 0 || x.Rated != x.Ratings || x.Whole != n ||
		x.Failed != lines(`"error":{`) || x.Evaluation != lines(`"evaluation":`) || x.Plugins[0] != (Count{"modes 1.2.0", lines(`"plugin":"modes"`)}) ||
		x.Programs[0].Name != "triage" || x.Programs[0].Calls != lines(`"name":"triage"`) || x.Models[0].Count != lines(`"error":null`) {
		t.Errorf("%+v", x)
	}
}

func TestStatsOfLittle(t *testing.T) {
	s, err := ReadStats(open(t, "testdata/records.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Calls != 12 || s.Ratings != 4 || s.Rated != 2 || s.Unknown != 2 || s.First != "2024-02-29T23:59:59.999999Z" || s.Last != "2025-01-02T03:04:05.123457Z" ||
		s.NotReplayable != 1 || fmt.Sprint(s.Formats) != "[{functai_call 2 11} {functai_call 1 1}]" || fmt.Sprint(s.Verdicts) != "[{ 3} {wrong 1}]" {
		t.Errorf("%+v", s)
	}
	empty := writeLines(t, filepath.Join(t.TempDir(), "empty.jsonl"))
	if s, err := ReadStats(open(t, empty)); err != nil || s.Calls != 0 || s.Programs != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestValidate(t *testing.T) {
	dir := t.TempDir()
	log := writeLines(t, filepath.Join(dir, "log.jsonl"),
		`{"functai_call":2,"id":"0190b3c4-0000-7000-8000-000000000001","started":"2025-01-01T00:00:00.000001Z","seconds":"fast","parent":null,"model":null,"zebra":1,"inputs":{}}`,
		"",
		`{"functai_call":2,"id":"x","started":"yesterday","inputs":[1],"exchanges":[{},{"finish":null,"cached":1}],"program":{"name":7},"error":{"type":"E","message":"","why":1}}`,
		"torn {", callA, callA2, callA,
		`{"functai_rating":1,"id":"0190b3c4-0000-7000-8000-000000000002","verdict":"perhaps"}`)
	check := func(want ...string) {
		t.Helper()
		var got []string
		calls, ratings, err := Validate([]string{dir}, func(p Problem) bool {
			minor := "! "
			if p.Minor {
				minor = "- "
			}
			got = append(got, minor+strings.TrimPrefix(p.String(), dir+"/"))
			return true
		})
		if err != nil || calls != 5 || ratings != 1 {
			t.Errorf("%d calls, %d ratings, %v", calls, ratings, err)
		}
		slices.Sort(got)
		slices.Sort(want)
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
	at := func(line int, s string) string { return fmt.Sprintf("%.2slog.jsonl:%d: %s", s, line, s[2:]) }
	inLog := []string{
		at(1, `! seconds: "fast" is not what belongs here (a number does); it is kept and not used`),
		at(1, `- zebra: unknown key; it is kept`),
		at(3, `- id: "x" is no UUID; it is kept as it is`),
		at(3, `! started: "yesterday" is not what belongs here (a time such as 2025-01-31T12:00:00.123456Z, UTC with six fraction digits, does); it is kept and not used`),
		at(3, `! exchanges[1].cached: 1 is not what belongs here (true or false does); it is kept and not used`),
		at(3, `! program.name: 7 is not what belongs here; it is kept and not used`),
		at(3, `- error.why: unknown key; it is kept`),
		at(3, `! inputs: [1] where an object belongs`),
		at(4, `! skipped: not-json`),
		at(5, `- id: "a" is no UUID; it is kept as it is`),
		at(6, `- id: "a" is no UUID; it is kept as it is`),
		at(6, `- id: there is another record of a; the one of the highest writer counts (here 1 and 2)`),
		at(7, `- id: "a" is no UUID; it is kept as it is`),
		at(7, `- id: there is another record of a; the one of the highest writer counts (here 2 and 1)`),
		at(8, `! call: missing: the rating is of no call`),
		at(8, `! verdict: "perhaps" says nothing; it is right, wrong or null`),
	}
	check(inLog...)

	bad := filepath.Join(dir, "calls-000001.parquet")
	writeLines(t, bad, "no parquet at all")
	check(append(inLog, "! calls-000001.parquet: is damaged: it is truncated, or no Parquet file: it does not end with PAR1")...)

	n := 0
	if _, _, err := Validate([]string{log}, func(Problem) bool { n++; return n < 3 }); err != nil || n != 3 {
		t.Errorf("asked to stop after 3, it reported %d, %v", n, err)
	}
	if _, _, err := Validate([]string{filepath.Join(dir, "none")}, nil); err == nil {
		t.Error("nothing to look at is no success")
	}
}

func TestSchema(t *testing.T) {
	store := imported(t, "testdata/records.jsonl")
	got, err := Schema(store)
	if err != nil || len(got) != 2 || got[0].Schema != "evalrun.calls" || got[0].Version != 1 || got[1].Schema != "evalrun.ratings" {
		t.Fatal(got, err)
	}
	if _, err := Schema("testdata/records.jsonl"); err == nil {
		t.Error("a call log has no columns")
	}
	// The documentation lists every column, with its type.
	docs, err := os.ReadFile("../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range got {
		for _, c := range s.Columns {
			if row := fmt.Sprintf("| `%s` | %s |", c.Name, c.Type); !bytes.Contains(docs, []byte(row)) {
				t.Errorf("docs/formats.md has no row %s", row)
			}
		}
	}
}

// Whatever happens to a store's file, it is refused by name or read as it was.
func TestDamagedStores(t *testing.T) {
	dir := imported(t, "testdata/records.jsonl")
	for _, name := range []string{"calls-000001.parquet", "ratings-000001.parquet"} {
		path := filepath.Join(dir, name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		read := func(b []byte) (texts []string, err error) {
			f, err := columnar.OpenReader(name, bytes.NewReader(b), int64(len(b)), callsSchema, ratingsSchema)
			if err != nil {
				return nil, err
			}
			records := file(newCallsFile(f))
			if f.Schema().Name == ratingsSchema.Name {
				records = &ratingsFile{f}
			}
			err = records.each(func(_ int64, c *Record, r *Rating) bool {
				if c != nil {
					texts = append(texts, string(c.AppendJSON(nil)))
				} else {
					texts = append(texts, string(r.AppendJSON(nil)))
				}
				return true
			}, nil)
			return texts, err
		}
		want, err := read(whole)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(whole); n += 1 + len(whole)/150 {
			if _, err := read(whole[:n:n]); err == nil || !strings.Contains(err.Error(), name) {
				t.Fatalf("%s cut to %d bytes: %v", name, n, err)
			}
		}
		r := rand.New(rand.NewPCG(1, 2))
		for range 200 {
			bad := bytes.Clone(whole)
			at := r.IntN(len(bad))
			bad[at] ^= 1 << r.IntN(8)
			got, err := read(bad)
			if err != nil && !strings.Contains(err.Error(), name) {
				t.Fatalf("the error names no file: %v", err)
			}
			if err == nil && !slices.Equal(got, want) {
				t.Fatalf("%s: a changed bit in byte %d was read as something else", name, at)
			}
		}
	}
}

// A file may say what no record can: it is refused with its row and column.
func TestRowsThatAreNoRecords(t *testing.T) {
	nan := new(float64)
	*nan /= *nan
	for _, c := range []struct {
		row  callRow
		want string
	}{
		{callRow{ID: "x", Format: 2, Inputs: "{"}, "row 1: column inputs"},
		{callRow{ID: "x", Format: 2, Inputs: "\"\xff\""}, "row 1: column inputs"},
		{callRow{ID: "x", Format: 2, Extra: "[1]"}, "no JSON object"},
		{callRow{ID: "x", Format: 2, Seconds: nan}, "row 1: column seconds"},
		{callRow{ID: "x", Format: 2, Exchanges: []exchangeRow{{Usage: "nan"}}}, "column exchanges[].usage"},
		{callRow{ID: "", Format: 2}, "format and id"},
		{callRow{ID: "x", Format: 3}, "format and id"},
	} {
		path := filepath.Join(t.TempDir(), "calls-000001.parquet")
		err := columnar.Write(path, callsSchema, func(yield func(callRow, error) bool) {
			_ = yield(callRow{ID: "a", Format: 2}, nil) && yield(c.row, nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, err = range open(t, path).Calls(Want{All: true}) {
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%v, want %q and the file", err, c.want)
		}
	}
}

// A file of version 1, written when that was the only one, and what it holds.
func TestVersion1(t *testing.T) {
	s := open(t, "testdata/v1")
	got := append(texts(t, s.Calls(Want{All: true})), texts(t, s.Ratings())...)
	slices.Sort(got)
	var want []string
	b, err := os.ReadFile("testdata/v1/records.jsonl.want")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		want = append(want, canonical(t, bytes.TrimSpace(line)))
	}
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A file from before most columns were there.
func TestOlderFiles(t *testing.T) {
	type older struct {
		ID     string `parquet:"id"`
		Format int32  `parquet:"format"`
		Inputs string `parquet:"inputs,json,optional"`
	}
	path := filepath.Join(t.TempDir(), "calls-000001.parquet")
	err := columnar.Write(path, callsSchema, func(yield func(older, error) bool) {
		_ = yield(older{"a", 1, `{"x":1}`}, nil) && yield(older{ID: "b", Format: 2}, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`{"functai_call":1,"id":"a","inputs":{"x":1}}`, `{"functai_call":2,"id":"b"}`}
	s := open(t, path)
	if got := texts(t, s.Calls(Want{All: true})); !slices.Equal(got, want) {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := idsOf(t, s.Calls(Want{IDs: map[string]bool{"b": true}, Roots: map[string]bool{"a": true}, Conversations: map[string]bool{"c": true}})); got != "a b" {
		t.Errorf("looked up %q", got)
	}
}

type countingReader struct {
	io.ReaderAt
	read atomic.Int64
}

func (c *countingReader) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(b, at)
	c.read.Add(int64(n))
	return n, err
}

// Looking calls up reads the pages they are in and not the file.
func TestLookupsReadLittle(t *testing.T) {
	const n = 4000
	store := imported(t, fakeLog(t, n))
	b, err := os.ReadFile(filepath.Join(store, "calls-000001.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	counter := &countingReader{ReaderAt: bytes.NewReader(b)}
	f, err := columnar.OpenReader("calls", counter, int64(len(b)), callsSchema)
	if err != nil {
		t.Fatal(err)
	}
	l := &library{files: []file{newCallsFile(f)}, counted: map[file]bool{}}
	var order []string
	for r, err := range l.Calls(Want{All: true}) {
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, r.ID)
	}
	ids := map[string]bool{}
	for _, id := range order[2000:2400] {
		ids[id] = true
	}
	counter.read.Store(0)
	found := 0
	for r, err := range l.Calls(Want{IDs: ids}) {
		if err != nil || !ids[r.ID] {
			t.Fatal(r, err)
		}
		found++
	}
	if read := counter.read.Load(); found != 400 || read > int64(len(b))/3 {
		t.Errorf("%d of 400 found; %d of %d bytes read", found, read, len(b))
	} else {
		t.Logf("a tenth of the calls, neighbours: %.1f%% of the file", 100*float64(read)/float64(len(b)))
	}
}
