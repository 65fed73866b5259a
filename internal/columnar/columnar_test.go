package columnar

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
)

var things = Schema{"test.things", 2}

type part struct {
	Name string   `parquet:"name,optional"`
	Size *float64 `parquet:"size"`
	Data string   `parquet:"data,json,optional"`
	Tags []string `parquet:"tags,list,optional"`
}

type thing struct {
	ID    string   `parquet:"id"`
	Kind  string   `parquet:"kind,optional,dict"`
	At    int64    `parquet:"at,optional,timestamp(microsecond:utc)"`
	Whole *bool    `parquet:"whole"`
	Count int64    `parquet:"count"`
	Score *float64 `parquet:"score"`
	Data  string   `parquet:"data,json,optional"`
	Names []string `parquet:"names,list,optional"`
	Parts []part   `parquet:"parts,list,optional"`
}

func someThings(n int) []thing {
	r := rand.New(rand.NewPCG(1, 2))
	list := make([]thing, n)
	for i := range list {
		t := &list[i]
		t.ID = fmt.Sprintf("%08d-%04x", i, r.IntN(1<<16))
		t.Count = r.Int64()
		if r.IntN(2) == 0 {
			t.Kind = fmt.Sprint("kind ", r.IntN(5))
			t.At = r.Int64()
			t.Whole = new(r.IntN(2) == 0)
			t.Score = new(float64(r.IntN(3)))
			t.Data = fmt.Sprintf(`{"z": %d, "a":[1.50]}`, r.IntN(100))
		}
		switch r.IntN(4) {
		case 0:
			t.Names, t.Parts = []string{}, []part{}
		case 1:
			t.Names = []string{"", "b"}
			t.Parts = []part{{}, {"n", new(0.5), "null", nil}, {"", new(0.0), `""`, []string{}}, {Tags: []string{"x", ""}}}
		}
	}
	return list
}

func all[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range list {
			if !yield(v, nil) {
				return
			}
		}
	}
}

func collect[T any](rows iter.Seq2[T, error]) (list []T, err error) {
	for row, err := range rows {
		if err != nil {
			return list, err
		}
		list = append(list, row)
	}
	return list, nil
}

func write[T any](t testing.TB, rows []T, opts ...Option) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "things.parquet")
	if err := Write(path, things, all(rows), opts...); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, n := range []int{0, 1, batchRows, 3 * batchRows / 2, rowsPerGroup + 10} {
		want := someThings(n)
		path := write(t, want, SortedBy("id"), Bloom("kind"))
		got, err := collect(Read[thing](path, things))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got[:len(got):len(got)]); n > 0 && d != "" {
			t.Fatalf("%d rows: %.2000s", n, d)
		}
		if len(got) != n {
			t.Fatalf("%d rows became %d", n, len(got))
		}
		// A row that was kept is not changed by reading on.
		if n > 0 && !cmp.Equal(got[0], want[0]) {
			t.Fatal("the first row changed")
		}
	}
}

func TestTheSameRowsGiveTheSameBytes(t *testing.T) {
	rows := someThings(500)
	a, errA := os.ReadFile(write(t, rows, SortedBy("id"), Bloom("id", "kind")))
	b, errB := os.ReadFile(write(t, rows, SortedBy("id"), Bloom("id", "kind")))
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Error("two files of the same rows differ")
	}
}

func TestAFileIsWholeOrNotThere(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.parquet")
	boom := errors.New("boom")
	failing := func(yield func(thing, error) bool) {
		for range 1000 {
			if !yield(thing{ID: "x"}, nil) {
				return
			}
		}
		yield(thing{}, boom)
	}
	if err := Write(path, things, failing); !errors.Is(err, boom) {
		t.Errorf("%v, want %v", err, boom)
	}
	if names, _ := os.ReadDir(dir); len(names) != 0 {
		t.Errorf("left behind: %v", names)
	}
	if err := Write(filepath.Join(dir, "no", "x.parquet"), things, all([]thing{})); err == nil {
		t.Error("written into a folder that is not there")
	}
	if err := Write(path, things, all(someThings(3))); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: a file of records is its owner's", info.Mode(), err)
	}
}

func TestMissingColumnsAreZero(t *testing.T) {
	type olderPart struct {
		Name string   `parquet:"name,optional"`
		Tags []string `parquet:"tags,list,optional"`
	}
	type older struct {
		ID    string      `parquet:"id"`
		Gone  string      `parquet:"gone"`
		Parts []olderPart `parquet:"parts,list,optional"`
	}
	path := write(t, []older{{ID: "a", Gone: "x"}, {ID: "b", Parts: []olderPart{{Name: "n"}}}})
	got, err := collect(Read[thing](path, things))
	want := []thing{{ID: "a"}, {ID: "b", Parts: []part{{Name: "n"}}}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
	f, err := Open(path, things)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if hits, err := f.Find("kind", map[string]bool{"x": true}); hits != nil || err != nil {
		t.Errorf("found %v, %v in a column that is not there", hits, err)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	good := write(t, someThings(10))
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	foreign := filepath.Join(dir, "foreign.parquet")
	if err := parquet.WriteFile(foreign, []struct{ ID string }{{"x"}}); err != nil {
		t.Fatal(err)
	}
	written := func(name string, s Schema) string {
		path := filepath.Join(dir, name)
		if err := Write(path, s, all(someThings(3))); err != nil {
			t.Fatal(err)
		}
		return path
	}
	type number struct {
		ID float64 `parquet:"id"`
	}
	numbers := write(t, []number{{1}})
	for _, c := range []struct{ path, want string }{
		{filepath.Join(dir, "none.parquet"), "no such file"},
		{dir, "is no file"},
		{file("empty.parquet", nil), "too short"},
		{file("text.parquet", []byte(strings.Repeat("no parquet\n", 9))), "no Parquet file"},
		{file("cut.parquet", whole[:len(whole)-1]), "truncated"},
		{file("headless.parquet", append([]byte("XXXX"), whole[4:]...)), "damaged"},
		{file("longer.parquet", append(whole[:len(whole):len(whole)], whole...)), "checksum"},
		{file("footer.parquet", []byte("PAR1....\xff\xff\xff\xffPAR1")), "longer than the file"},
		{foreign, "not of evalrun"},
		{written("other.parquet", Schema{"test.others", 1}), "its schema is test.others, not test.things"},
		{written("later.parquet", Schema{"test.things", 3}), "update evalrun"},
		{numbers, "column id of type double, where text belongs"},
	} {
		_, err := collect(Read[thing](c.path, things))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), filepath.Base(c.path)) {
			t.Errorf("%s: %v\nwant the name and %q", filepath.Base(c.path), err, c.want)
		}
	}
	if _, err := collect(Read[thing](written("earlier.parquet", Schema{"test.things", 1}), things)); err != nil {
		t.Errorf("an earlier version: %v", err)
	}
}

// readDamaged reads a file's bytes in every way; what it returns without an
// error is what the file is taken to say.
func readDamaged(b []byte, keys map[string]bool) (rows []thing, hits []Hit, err error) {
	f, err := OpenReader("damaged.parquet", bytes.NewReader(b), int64(len(b)), things)
	if err != nil {
		return nil, nil, err
	}
	if hits, err = f.Find("id", keys); err != nil {
		return nil, nil, err
	}
	rows, err = collect(All[thing](f))
	return rows, hits, err
}

func TestDamage(t *testing.T) {
	want := someThings(300)
	keys := map[string]bool{want[7].ID: true, want[250].ID: true, "none": true}
	b, err := os.ReadFile(write(t, want, SortedBy("id"), Bloom("id")))
	if err != nil {
		t.Fatal(err)
	}
	_, wantHits, err := readDamaged(b, keys)
	if err != nil || len(wantHits) != 2 {
		t.Fatal(wantHits, err)
	}
	for n := 0; n < len(b); n += 1 + n/50 {
		if _, _, err := readDamaged(b[:n:n], keys); err == nil {
			t.Fatalf("cut to %d of %d bytes, it was read", n, len(b))
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	refused := 0
	for i := range 400 {
		bad := bytes.Clone(b)
		at := r.IntN(len(bad))
		if i%2 == 0 { // half of them where nothing but our checksum looks
			at = len(bad) - 1 - r.IntN(min(len(bad), 4000))
		}
		bad[at] ^= 1 << r.IntN(8)
		rows, hits, err := readDamaged(bad, keys)
		if err != nil {
			refused++
			if !strings.Contains(err.Error(), "damaged.parquet") {
				t.Fatalf("byte %d: the error names no file: %v", at, err)
			}
			continue
		}
		if !cmp.Equal(rows, want) || !slices.Equal(hits, wantHits) {
			t.Fatalf("a changed bit in byte %d of %d was read as something else", at, len(b))
		}
	}
	if refused < 300 {
		t.Errorf("only %d of 400 damaged files were refused", refused)
	}
	for range 200 { // and garbage of all kinds between the marks
		bad := bytes.Clone(b)
		for range 1 + r.IntN(40) {
			bad[4+r.IntN(len(bad)-8)] = byte(r.IntN(256))
		}
		_, _, _ = readDamaged(bad, keys) // must return
	}
}

type countingReader struct {
	r    io.ReaderAt
	read atomic.Int64
}

func (c *countingReader) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.r.ReadAt(b, at)
	c.read.Add(int64(n))
	return n, err
}

func TestFindAndRows(t *testing.T) {
	const n = rowsPerGroup + 5000
	want := someThings(n)
	long := strings.Repeat("kind of a long name ", 20)
	r := rand.New(rand.NewPCG(5, 6))
	for i := range want {
		want[i].Data = fmt.Sprintf(`"%016x%016x%016x%016x"`, r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64())
		switch i % 1000 {
		case 7:
			want[i].Kind = fmt.Sprint("rare ", i)
		case 8:
			want[i].Kind = long + "1"
		case 9:
			want[i].Kind = long + "3"
		}
	}
	b, err := os.ReadFile(write(t, want, SortedBy("id"), Bloom("kind")))
	if err != nil {
		t.Fatal(err)
	}
	counter := &countingReader{r: bytes.NewReader(b)}
	f, err := OpenReader("things.parquet", counter, int64(len(b)), things)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, keys map[string]bool, column string, value func(thing) string) {
		t.Helper()
		var wantHits []Hit
		for i, row := range want {
			if v := value(row); keys[v] {
				wantHits = append(wantHits, Hit{int64(i), v})
			}
		}
		hits, err := f.Find(column, keys)
		if err != nil || !slices.Equal(hits, wantHits) {
			t.Fatalf("%s: found %d of %d, %v", what, len(hits), len(wantHits), err)
		}
		at := make([]int64, len(hits))
		for i, h := range hits {
			at[i] = h.Row
		}
		got, err := collect(Rows[thing](f, at))
		if err != nil || len(got) != len(at) {
			t.Fatalf("%s: %d of %d rows, %v", what, len(got), len(at), err)
		}
		for i := range got {
			if !cmp.Equal(got[i], want[at[i]]) {
				t.Fatalf("%s: row %d was read as %v", what, at[i], got[i])
			}
		}
	}
	id := func(t thing) string { return t.ID }
	kind := func(t thing) string { return t.Kind }
	scattered := map[string]bool{"absent": true, "": true}
	for range 30 {
		scattered[want[r.IntN(n)].ID] = true
	}
	check("scattered", scattered, "id", id)
	check("first and last", map[string]bool{want[0].ID: true, want[n-1].ID: true}, "id", id)
	check("rare kinds", map[string]bool{"rare 7": true, "rare 54007": true, "rare 3": true}, "kind", kind)
	check("long kinds", map[string]bool{long + "1": true, long + "2": true, long: true}, "kind", kind)
	check("nothing", map[string]bool{}, "id", id)

	clustered := map[string]bool{}
	for i := range 2000 {
		clustered[want[20000+i].ID] = true
	}
	before := counter.read.Load()
	check("clustered", clustered, "id", id)
	if read := counter.read.Load() - before; read > int64(len(b))/4 {
		t.Errorf("2,000 neighbours of %d rows: %d of %d bytes were read", n, read, len(b))
	}
	before = counter.read.Load()
	if hits, err := f.Find("kind", map[string]bool{"no such kind": true, "kind": true}); len(hits) != 0 || err != nil {
		t.Error(hits, err)
	}
	if read := counter.read.Load() - before; read > 10_000 {
		t.Errorf("looking for what the filters rule out read %d bytes", read)
	}
}

func TestColumns(t *testing.T) {
	f, err := Open(write(t, someThings(1)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := map[string]string{}
	for _, c := range f.Columns() {
		got[c.Name] = fmt.Sprint(c.Type, " ", c.Optional)
	}
	want := map[string]string{
		"id": "text false", "kind": "text true", "at": "timestamp true", "whole": "boolean true", "count": "int64 false",
		"score": "double true", "data": "json true", "names[]": "text true", "parts[].name": "text true",
		"parts[].size": "double true", "parts[].data": "json true", "parts[].tags[]": "text true",
	}
	if !maps.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

// In every pattern of zeros and values, exactly the zeros are NULL.
func TestZerosAreNULL(t *testing.T) {
	type item[S, N any] struct {
		S S `parquet:"s,optional"`
		N N `parquet:"n,optional"`
	}
	type row[S, N any] struct {
		S     S            `parquet:"s,optional"`
		N     N            `parquet:"n,optional"`
		Items []item[S, N] `parquet:"items,list,optional"`
	}
	const bits = 7
	var rows []row[string, int64]
	for pattern := range 1 << bits {
		var list []item[string, int64]
		for i := range bits {
			r := row[string, int64]{}
			if pattern>>i&1 == 1 {
				r.S, r.N = "x", 1
			}
			list = append(list, item[string, int64]{r.S, r.N})
			rows = append(rows, r)
		}
		rows = append(rows, row[string, int64]{Items: list})
	}
	got, err := collect(Read[row[*string, *int64]](write(t, rows), things))
	if err != nil || len(got) != len(rows) {
		t.Fatal(len(got), err)
	}
	for i, r := range rows {
		g := got[i]
		if (g.S == nil) != (r.S == "") || (g.N == nil) != (r.N == 0) || len(g.Items) != len(r.Items) {
			t.Fatalf("row %d: %v was written as %v", i, r, g)
		}
		for j, it := range r.Items {
			if g := g.Items[j]; (g.S == nil) != (it.S == "") || (g.N == nil) != (it.N == 0) {
				t.Fatalf("row %d: item %d: %v was written as %v", i, j, it, g)
			}
		}
	}
}

// A file that may not be replaced is not, even when it appears while the new one
// is written.
func TestNeverReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "calls.parquet")
	type row struct {
		ID string `parquet:"id"`
	}
	s := Schema{Name: "evalrun.test", Version: 1}
	other := func(yield func(row, error) bool) {
		if err := os.WriteFile(path, []byte("another's"), 0o600); err != nil {
			t.Error(err)
		}
		yield(row{"a"}, nil)
	}
	if err := Write(path, s, other, NeverReplace()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
	entries, err := os.ReadDir(dir)
	if text, _ := os.ReadFile(path); string(text) != "another's" || err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v; the file is now %q", entries, text)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	one := func(yield func(row, error) bool) { yield(row{"a"}, nil) }
	if err := Write(path, s, one, NeverReplace()); err != nil {
		t.Fatal(err)
	}
	if entries, err = os.ReadDir(dir); err != nil || len(entries) != 1 || entries[0].Name() != "calls.parquet" {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}
