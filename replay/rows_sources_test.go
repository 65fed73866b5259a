package replay

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// allCases are the records of all cases as one log, in which each case has calls
// and programs of its own.
func allCases(t *testing.T) (lines []string, queries []Query) {
	t.Helper()
	for i, c := range slices.Concat(ratingCases, contextCases) {
		own := func(s *string) {
			if *s != "" {
				*s = fmt.Sprintf("%d-%s", i, *s)
			}
		}
		src := sourceOf(t, c.log).(*memory)
		for _, r := range src.calls {
			for _, s := range []*string{&r.ID, &r.Root, &r.Parent, &r.Program.Name} {
				own(s)
			}
			for j := range r.Saw {
				own(&r.Saw[j].Call)
				own(&r.Saw[j].SawOf)
			}
			if r.Conversation != nil {
				own(&r.Conversation.ID)
			}
			lines = append(lines, string(r.AppendJSON(nil)))
		}
		for _, r := range src.ratings {
			own(&r.ID)
			own(&r.Call)
			lines = append(lines, string(r.AppendJSON(nil)))
		}
		q := c.query()
		own(&q.Program)
		queries = append(queries, q)
	}
	return lines, queries
}

// Rows are the same wherever the records lie: in one file, in a log of several
// days and writers, in a store, in a store and a log together.
func TestRowsAreTheSameFromEverySource(t *testing.T) {
	lines, queries := allCases(t)
	dir := t.TempDir()
	one := writeLines(t, filepath.Join(dir, "one.jsonl"), lines...)
	folder := filepath.Join(dir, "log")
	var parts [3][]string
	for i, line := range lines {
		parts[i%3] = append(parts[i%3], line)
	}
	writeLines(t, filepath.Join(folder, "2026-09-26", "a.jsonl"), parts[0]...)
	writeLines(t, filepath.Join(folder, "2026-09-26", "b.jsonl"), parts[1]...)
	writeLines(t, filepath.Join(folder, "2026-09-27", "a.jsonl"), append(parts[2], `{"functai_call":2,"id":`)...)
	store := imported(t, one)
	part := writeLines(t, filepath.Join(dir, "part.jsonl"), parts[1]...)

	plain := open(t, one)
	others := map[string]Source{
		"a log": open(t, folder), "a store": open(t, store), "a store and a log": open(t, store, folder),
		"a store of a log": open(t, imported(t, folder)), "a store of a part, and the log": open(t, imported(t, part), folder),
	}
	made := 0
	for _, q := range queries {
		want, err := Rows(t.Context(), plain, q)
		if err != nil {
			t.Fatal(err)
		}
		made += want.Len() + len(want.Left)
		for name, src := range others {
			r, err := Rows(t.Context(), src, q)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(rowsText(want), rowsText(r)); diff != "" {
				t.Errorf("%s: %+v: rows:\n%s", name, q, diff)
			}
			if diff := cmp.Diff(want.Left, r.Left); diff != "" {
				t.Errorf("%s: %+v: left out:\n%s", name, q, diff)
			}
			for i := range r.Len() {
				a, _ := want.At(i)
				b, _ := r.At(i)
				if diff := cmp.Diff(a.Meta.Object().JSON(), b.Meta.Object().JSON()); diff != "" {
					t.Errorf("%s: %+v: facts of row %d:\n%s", name, q, i, diff)
				}
			}
		}
	}
	if made < 100 {
		t.Errorf("only %d rated calls were compared", made)
	}
}

// A log that cannot be read any more is an error and not an empty table.
func TestRowsOfAnUnreadableSource(t *testing.T) {
	path := writeLines(t, filepath.Join(t.TempDir(), "one.jsonl"),
		expand(`{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"}}`), expand(`{RIGHT,"id":"r1","call":"c1","at":"@30"}`))
	src := open(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if r, err := Rows(t.Context(), src, Query{Program: "team"}); err == nil {
		t.Errorf("got %d rows", r.Len())
	}
}
