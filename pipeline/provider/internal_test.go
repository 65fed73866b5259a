package provider

import (
	"iter"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"evalrun/internal/columnar"
	"evalrun/pipeline"
)

// TestParquetRefuses writes files that evalrun would not write.
func TestParquetRefuses(t *testing.T) {
	hash := (&pipeline.Request{System: "s"}).ProbeHash()
	good := replyRow{RequestHash: hash, Reply: new("x")}
	for _, c := range []struct {
		name, want string
		schema     columnar.Schema
		rows       []replyRow
	}{
		{"later version", "evalrun.replies 2", columnar.Schema{Name: "evalrun.replies", Version: 2}, []replyRow{good}},
		{"another kind of file", "evalrun.calls", columnar.Schema{Name: "evalrun.calls", Version: 1}, []replyRow{good}},
		{"no rows", "r.parquet: no reply in it", repliesSchema, nil},
		{"no reply", "r.parquet: row 2: neither reply nor response", repliesSchema, []replyRow{good, {RequestHash: hash}}},
		{"contradiction", "r.parquet: row 2: another reply than r.parquet: row 1 has", repliesSchema, []replyRow{good, {RequestHash: hash, Reply: new("y")}}},
		{"hash of another request", "r.parquet: row 1: request_hash is " + hash + ", but the request beside it has", repliesSchema, []replyRow{{RequestHash: hash, Reply: new("x"), Request: columnar.JSON(`{"system":"t"}`)}}},
		{"request that is no JSON", "r.parquet: row 1: request: not a request", repliesSchema, []replyRow{{RequestHash: hash, Reply: new("x"), Request: columnar.JSON(`{"sys`)}}},
		{"response that is no JSON", "r.parquet: row 1: response: not a JSON value", repliesSchema, []replyRow{{RequestHash: hash, Reply: new("x"), Response: columnar.JSON(`{`)}}},
		{"usage with an unknown key", "r.parquet: row 1: usage: ", repliesSchema, []replyRow{{RequestHash: hash, Reply: new("x"), Usage: columnar.JSON(`{"tokens":1}`)}}},
		{"replicate below 0", "r.parquet: row 1: replicate is -1", repliesSchema, []replyRow{{RequestHash: hash, Reply: new("x"), Replicate: -1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "r.parquet")
			var rows iter.Seq2[replyRow, error] = func(yield func(replyRow, error) bool) {
				for _, r := range c.rows {
					if !yield(r, nil) {
						return
					}
				}
			}
			if err := columnar.Write(path, c.schema, rows); err != nil {
				t.Fatal(err)
			}
			if _, err := OpenRecorded(path); err == nil || !strings.HasPrefix(err.Error(), path) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// TestCommonPrefix compares with the plainest loops that do the same.
func TestCommonPrefix(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	letters := []rune("aaaaaaéè€☃")
	text := func() string {
		var b strings.Builder
		for range r.IntN(4) {
			b.WriteString(strings.Repeat(string(letters[r.IntN(len(letters))]), r.IntN(100)))
		}
		return b.String()
	}
	for range 5000 {
		a, b := text(), text()
		if n := r.IntN(len(a) + 1); r.IntN(2) == 0 && (n == len(a) || utf8.RuneStart(a[n])) {
			b = a[:n] + b
		}
		characters, bs := 0, []rune(b)
		for i, c := range []rune(a) {
			if i == len(bs) || c != bs[i] {
				break
			}
			characters++
		}
		n := commonPrefix(a, b)
		if want := len(string(bs[:characters])); n != want {
			t.Fatalf("%q and %q begin alike for %d bytes, want %d", a, b, n, want)
		}
		tail := 0
		for tail < min(len(a), len(b))-n && a[len(a)-1-tail] == b[len(b)-1-tail] {
			tail++
		}
		if got, want := differing(a, b), len(a)+len(b)-2*n-2*tail; got != want {
			t.Fatalf("%q and %q differ in %d bytes, want %d", a, b, got, want)
		}
	}
}

// TestPortraitsAreBounded: past the limit a request is no longer kept, and its
// texts are kept once however many requests share them.
func TestPortraitsAreBounded(t *testing.T) {
	ps := &portraits{texts: map[string]string{}}
	prompt := strings.Repeat("x", 1<<20)
	for i := range int32(200) {
		ps.add(i, &pipeline.Request{System: prompt})
	}
	if len(ps.all) != 200 || ps.bytes > 2<<20 {
		t.Errorf("%d requests of one prompt are kept in %d bytes", len(ps.all), ps.bytes)
	}
	for i := range int32(200) {
		ps.add(i, &pipeline.Request{System: string(rune('a'+i)) + prompt})
	}
	if kept := len(ps.all) - 200; kept < 60 || kept > 65 || ps.bytes > mostTexts+2<<20 {
		t.Errorf("%d requests of 1 MB are kept in %d bytes", kept, ps.bytes)
	}
}
