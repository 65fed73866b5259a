package provider

import (
	"iter"
	"path/filepath"
	"strings"
	"testing"

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
