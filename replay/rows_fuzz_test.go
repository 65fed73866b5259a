package replay

import (
	"bytes"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// FuzzRows: whatever lines a log has, every rated call of a program ends as one
// row or as one call left out, a row is one JSON object without a name twice,
// and the order of the lines does not matter.
func FuzzRows(f *testing.F) {
	for _, c := range slices.Concat(ratingCases, contextCases) {
		f.Add([]byte(expand(c.log)))
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		var calls []*Record
		var ratings []*Rating
		for line := range bytes.Lines(log) {
			if r, err := ParseRecord(line); err == nil {
				calls = append(calls, r)
			} else if r, err := ParseRating(line); err == nil {
				ratings = append(ratings, r)
			}
		}
		programs := map[string]bool{}
		ids := map[string]bool{}
		for _, c := range calls {
			programs[c.Program.Name] = true
			ids[c.ID] = true
		}
		for program := range programs {
			if program == "" {
				continue
			}
			q := Query{Program: program}
			r, err := Rows(t.Context(), InMemory(calls, ratings), q)
			if err != nil {
				t.Fatal(err)
			}
			checkRated(t, r, ratedIDs(program, calls, ratings))
			if len(ids) < len(calls) {
				continue // of two records of one call and one writer, either may count
			}
			slices.Reverse(calls)
			slices.Reverse(ratings)
			again, err := Rows(t.Context(), InMemory(calls, ratings), q)
			if err != nil {
				t.Fatal(err)
			}
			if rowsText(again) != rowsText(r) || !slices.Equal(again.Left, r.Left) {
				t.Errorf("the rows depend on the order of the lines:\n%s\n%s", rowsText(r), rowsText(again))
			}
		}
	})
}

// ratedIDs are the rated calls of a program, found the plainest way.
func ratedIDs(program string, calls []*Record, ratings []*Rating) []string {
	var ids []string
	for c := range InMemory(calls, nil).Calls(Want{All: true}) {
		if c.Program.Name != program {
			continue
		}
		isRated := slices.ContainsFunc(ratings, func(r *Rating) bool {
			replaced := func(other *Rating) bool {
				same := other.By == r.By && (r.By != "" || other.ID == r.ID)
				return other.Call == c.ID && same && laterRating(r, other) < 0
			}
			return r.Call == c.ID && counts(r) && !slices.ContainsFunc(ratings, replaced)
		})
		if isRated {
			ids = append(ids, c.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

func checkRated(t *testing.T, r *Rated, want []string) {
	t.Helper()
	var got []string
	for i := range r.Len() {
		got = append(got, r.ID(i))
		row := r.AppendRowJSON(nil, i)
		if !jsontext.Value(row).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) || bytes.ContainsAny(row, "\r\n") {
			t.Fatalf("row %d is not one JSON object on one line: %s", i, row)
		}
		names := map[string]bool{}
		c := enter(string(row))
		for name, _, ok := c.member(); ok; name, _, ok = c.member() {
			if names[name] {
				t.Errorf("row %d has %q twice: %s", i, name, row)
			}
			names[name] = true
		}
		for _, col := range r.Columns() {
			r.Cell(i, col)
		}
	}
	sum := 0
	for _, n := range r.LeftOut() {
		sum += n
	}
	if sum != len(r.Left) {
		t.Errorf("%d calls left out, counted as %d", len(r.Left), sum)
	}
	for _, l := range r.Left {
		got = append(got, l.Call)
		if (l.Why != "") != (l.Reason == LeftNoContext) || l.Detail == "" {
			t.Errorf("left out without a reason: %+v", l)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("rows and calls left out are\n%q\nthe rated calls are\n%q", got, want)
	}
}
