package replay

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"evalrun/internal/canon"
)

// Values and names that mutated records are made of: every kind of value, odd
// spellings, what columns treat apart, and every name that a record knows.
var (
	oddValues = []string{
		`null`, `true`, `false`, `""`, `"x"`, `"\ud800"`, `"\\\ud83d\udE00 \udc00\ud800\u0041\uD800\\ud800"`, `{"\udc00":"\ud800"}`, `"\u0000é\n\"\\"`, `0`, `-0.0`, `1`, `5.0`, `1e2`, `-7`, `0.1`, `1.7976931348623157e308`,
		`123456789012345678901234567890`, `9007199254740993`, `[]`, `{}`, `[[]]`, `[1,"a",null]`, `["a",""]`, `[{}]`, `[{},{"call":"x"},{}]`, `{"a":null}`,
		`{"id":"","parent":null,"type":"","extra":{}}`, `"2025-01-01T00:00:00.000000Z"`, `"1970-01-01T00:00:00.000000Z"`, `"0000-01-01T00:00:00.000001Z"`,
		`"9999-12-31T23:59:59.999999Z"`, `"2025-01-01T00:00:00Z"`, `{"\u0061":1, "b" : [ ]}`, `"{{ env.KEY }}"`,
	}
	oddNames = append([]string{
		"extra", "absent", "", "\u0000", "é", "list", "element", "type", "message", "code", "name", "kind", "module", "version", "signature", "interface",
		"answer", "file", "line", "saved", "remote", "provider", "cached", "finish", "request", "response", "request_hash", "streamed", "first_delta",
		"call", "saw_of", "without", "slot", "plugin", "hook", "change", "turn", "user", "notebook", "cell", "evaluation", "optimization", "compaction",
		"output", "children", "calls_field", "root", "started", "seconds", "content", "omitted", "inputs", "returned", "sizes", "probabilities", "escalated",
		"exchanges", "saw", "sections", "changes", "replayable", "steps", "conversation", "described", "journal", "invocation", "writer", "truncated",
		"caller", "process", "at", "by", "account", "verdict", "reasons", "note", "origin", "sample",
	}, keySetNames[:]...)
)

// mutate changes a JSON value here and there.
func mutate(r *rand.Rand, text string, depth int) string {
	odd := func() string { return oddValues[r.IntN(len(oddValues))] }
	if depth > 0 && r.IntN(12) == 0 {
		return odd()
	}
	switch text[0] {
	case '{':
		b := []byte{'{'}
		add := func(name, v string) {
			if len(b) > 1 {
				b = append(b, ',')
			}
			b = append(canon.AppendString(b, name), ':')
			b = append(b, v...)
		}
		c := enter(text)
		for name, v, ok := c.member(); ok; name, v, ok = c.member() {
			keep := depth == 0 && (name == callKey || name == ratingKey || name == "id")
			switch {
			case keep:
				add(name, v)
			case r.IntN(15) == 0: // dropped
			case r.IntN(30) == 0: // renamed
				add(oddNames[r.IntN(len(oddNames))], v)
			default:
				add(name, mutate(r, v, depth+1))
				if r.IntN(40) == 0 { // twice
					add(name, odd())
				}
			}
		}
		for r.IntN(3) == 0 {
			add(oddNames[r.IntN(len(oddNames))], odd())
		}
		return string(append(b, '}'))
	case '[':
		b := []byte{'['}
		add := func(v string) {
			if len(b) > 1 {
				b = append(b, ',')
			}
			b = append(b, v...)
		}
		c := enter(text)
		for v, ok := c.element(); ok; v, ok = c.element() {
			if r.IntN(10) > 0 {
				add(mutate(r, v, depth+1))
			}
			if r.IntN(10) == 0 {
				add(v)
			}
		}
		if r.IntN(10) == 0 {
			add(odd())
		}
		return string(append(b, ']'))
	}
	return text
}

// FuzzStore takes mutated records, each with an id of its own, through a store.
func FuzzStore(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(seed, []byte(`{"functai_call":2,"id":"fuzzed"}`))
	}
	lines := testLines(f)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, seed uint64, line []byte) {
		r := rand.New(rand.NewPCG(seed, 1))
		im := newImporter(t.Context(), filepath.Join(dir, "store"))
		defer os.RemoveAll(im.folder)
		defer im.close()
		var want []string
		add := func(line []byte) {
			rec, err := parseAny(line)
			if err != nil {
				return
			}
			if _, err := canon.Append(nil, line); err != nil {
				return // a number no float64 can hold has no canonical form
			}
			checkHead(t, line, rec)
			switch rec := rec.(type) {
			case *Record:
				rec.ID = fmt.Sprint("id ", len(want))
				im.take(0, rec, nil)
			case *Rating:
				rec.ID = fmt.Sprint("id ", len(want))
				im.take(0, nil, rec)
			}
			// The id apart, what is stored must be the line itself.
			again, err := parseAny(line)
			if err != nil {
				t.Fatal(err)
			}
			if got := canonical(t, again.AppendJSON(nil)); got != canonical(t, line) {
				t.Fatalf("read    %s\nwritten %s", line, got)
			}
			want = append(want, canonical(t, rec.AppendJSON(nil)))
		}
		add(line)
		for range 60 {
			add([]byte(mutate(r, string(lines[r.IntN(len(lines))]), 0)))
		}
		if err := im.flush(); err != nil {
			t.Fatal(err)
		}
		got := append(texts(t, im.store.Calls(Want{All: true})), texts(t, im.store.Ratings())...)
		slices.Sort(got)
		slices.Sort(want)
		for i := range want {
			if i >= len(got) || got[i] != want[i] {
				t.Fatalf("%d records became %d\nread   %s\nstored %s", len(want), len(got), want[i], got[min(i, len(got)-1)])
			}
		}
	})
}
