package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"evalrun/datasets"
)

// ratedCase is a small log and what it must come to. A log is written as JSON
// lines with a few abbreviations, see expand.
type ratedCase struct {
	rule string // what it shows
	log  string
	q    Query  // without a program: support:team
	rows string // a JSON object a line, members in order
	left string // the counts that are not zero
	why  string // for calls left out for their context
}

// expand writes the abbreviations of test logs out: TEAM and TUTOR are
// programs, RIGHT and WRONG ratings without their id and call, @07 is seven
// minutes past ten.
func expand(log string) string {
	log = strings.NewReplacer(
		"TEAM", `"program":{"name":"team","kind":"ai","module":"support","version":"v1","signature":"s1","interface":"i1","answer":"result"}`,
		"RIGHT", `"functai_rating":1,"by":"ana","verdict":"right"`,
		"WRONG", `"functai_rating":1,"by":"ana","verdict":"wrong"`,
		"CALL", `"functai_call":2,"content":true,"saw":[]`,
	).Replace(log)
	return regexp.MustCompile(`"@(\d\d)"`).ReplaceAllString(log, `"2026-09-26T10:$1:00.000000Z"`)
}

// sourceOf reads a log. Lines that are no records are skipped, as a log's
// reader does.
func sourceOf(t testing.TB, log string) Source {
	t.Helper()
	var calls []*Record
	var ratings []*Rating
	for line := range strings.Lines(expand(log)) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if r, err := ParseRecord([]byte(line)); err == nil {
			calls = append(calls, r)
		} else if r, err := ParseRating([]byte(line)); err == nil {
			ratings = append(ratings, r)
		} else if !jsontext.Value(line).IsValid() {
			t.Fatalf("the test's log is not JSON: %s", line)
		}
	}
	return InMemory(calls, ratings)
}

func (c *ratedCase) query() Query {
	q := c.q
	if q.Program == "" {
		q.Program, q.Module = "team", "support"
	}
	return q
}

// text is the rows, one a line, with white space taken out.
func text(t testing.TB, rows string) string {
	t.Helper()
	var out []string
	for line := range strings.Lines(expand(rows)) {
		v := jsontext.Value(strings.TrimSpace(line))
		if len(v) == 0 {
			continue
		}
		if err := v.Compact(); err != nil {
			t.Fatalf("the test's row is not JSON: %v: %s", err, line)
		}
		out = append(out, string(v))
	}
	return strings.Join(out, "\n")
}

func rowsText(r *Rated) string {
	var out []string
	for i := range r.Len() {
		out = append(out, string(r.AppendRowJSON(nil, i)))
	}
	return strings.Join(out, "\n")
}

// counted writes the counts that are not zero, by name.
func counted(n map[string]int) string {
	var out []string
	for _, name := range slices.Sorted(keys(n)) {
		if n[name] > 0 {
			out = append(out, fmt.Sprintf("%s %d", name, n[name]))
		}
	}
	return strings.Join(out, ", ")
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (c *ratedCase) check(t *testing.T, src Source) *Rated {
	t.Helper()
	r, err := Rows(t.Context(), src, c.query())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text(t, c.rows), rowsText(r)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if got := counted(r.LeftOut()); got != c.left {
		t.Errorf("left out %q, want %q: %+v", got, c.left, r.Left)
	}
	if got := counted(r.NoContext()); got != c.why {
		t.Errorf("no context %q, want %q: %+v", got, c.why, r.Left)
	}
	return r
}

var ratingCases = []ratedCase{{
	rule: "right means the answer it gave",
	log: `{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"message":"charged twice"},"outputs":{"result":"billing"}}
		{RIGHT,"id":"r1","call":"c1","at":"@30"}`,
	rows: `{"message":"charged twice","result":"billing","call":"c1","version":"v1","rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}`,
}, {
	rule: "a correction is the answer; origin and sample are the rating's",
	log: `{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"message":"no parcel"},"outputs":{"result":"billing"}}
		{WRONG,"id":"r1","call":"c1","at":"@30","answer":"shipping","origin":"edit","sample":"draw-7"}`,
	rows: `{"message":"no parcel","result":"shipping","call":"c1","version":"v1","rating":"wrong","rated_by":"ana","origin":"edit","sample":"draw-7","disputed":false}`,
}, {
	rule: "wrong without an answer says what the answer is not",
	log: `{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"message":"a"},"outputs":{"result":"billing"}}
		{WRONG,"id":"r1","call":"c1","at":"@30"}`,
	left: "no_answer 1",
}, {
	rule: "null is an answer",
	log: `{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"message":"a"},"outputs":{"result":"billing"}}
		{WRONG,"id":"r1","call":"c1","at":"@30","answer":null}
		{CALL,"id":"c2",TEAM,"started":"@02","inputs":{"message":"b"},"outputs":{"result":null}}
		{RIGHT,"id":"r2","call":"c2","at":"@30"}`,
	rows: `{"message":"a","result":null,"call":"c1","version":"v1","rating":"wrong","rated_by":"ana","origin":"review","sample":null,"disputed":false}
		{"message":"b","result":null,"call":"c2","version":"v1","rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}`,
}, {
	rule: "a number that no float64 can hold is no data: not an input, not an answer, not a correction, not a fact",
	log: `{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"m":[{"n":-1E+999}]},"outputs":{"result":"x"}}
		{RIGHT,"id":"r1","call":"c1","at":"@30"}
		{CALL,"id":"c2",TEAM,"started":"@02","inputs":{"m":2},"outputs":{"result":{"n":1e999}}}
		{RIGHT,"id":"r2","call":"c2","at":"@30"}
		{CALL,"id":"c3",TEAM,"started":"@03","inputs":{"m":3},"outputs":{"result":"x"}}
		{WRONG,"id":"r3","call":"c3","at":"@30","answer":1e999}
		{CALL,"id":"c4",TEAM,"started":"@04","inputs":{"m":4},"outputs":{"result":"x"}}
		{WRONG,"id":"r4","call":"c4","at":"@30","answer":"y","outputs":{"score":[1e999]}}
		{CALL,"id":"c5",TEAM,"started":"@05","inputs":{"m":"1e999"},"outputs":{"result":1e-999,"1e999":1e308},"usage":{"tokens":1e999}}
		{RIGHT,"id":"r5","call":"c5","at":"@30"}`,
	rows: `{"m":"1e999","result":1e-999,"call":"c5","version":"v1","rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}`,
	left: "no_answer 3, no_content 1",
}, {
	rule: "rows are in the order in which calls started, then by id; lines may be in any order",
	log: `{RIGHT,"id":"r3","call":"c3","at":"@30"}
		{CALL,"id":"c3",TEAM,"started":"@01","inputs":{"m":3},"outputs":{"result":"x"}}
		{CALL,"id":"c2",TEAM,"started":"@02","inputs":{"m":2},"outputs":{"result":"x"}}
		{RIGHT,"id":"r1","call":"c1","at":"@30"}
		{RIGHT,"id":"r2","call":"c2","at":"@30"}
		{CALL,"id":"c1",TEAM,"started":"@02","inputs":{"m":1},"outputs":{"result":"x"}}`,
	rows: `{"m":3,"result":"x","call":"c3","version":"v1","rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}
		{"m":1,"result":"x","call":"c1","version":"v1","rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}
		{"m":2,"result":"x","call":"c2","version":"v1","rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}`,
}, {
	rule: "each person's latest rating counts: the latest time, then the larger id",
	log: `{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"}}
		{WRONG,"id":"r1","call":"c1","at":"@31","answer":"later"}
		{WRONG,"id":"r9","call":"c1","at":"@30","answer":"earlier"}
		{CALL,"id":"c2",TEAM,"started":"@02","inputs":{"m":2},"outputs":{"result":"x"}}
		{WRONG,"id":"r4","call":"c2","at":"@30","answer":"larger id"}
		{WRONG,"id":"r3","call":"c2","at":"@30","answer":"smaller id"}`,
	rows: `{"m":1,"result":"later","call":"c1","version":"v1","rating":"wrong","rated_by":"ana","origin":"review","sample":null,"disputed":false}
		{"m":2,"result":"larger id","call":"c2","version":"v1","rating":"wrong","rated_by":"ana","origin":"review","sample":null,"disputed":false}`,
}, {
	rule: "a null verdict takes back that person's rating and no other's; what is left without one is not rated",
	log: `{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"}}
		{RIGHT,"id":"r1","call":"c1","at":"@30"}
		{"functai_rating":1,"id":"r2","call":"c1","at":"@31","by":"ana","verdict":null}
		{CALL,"id":"c2",TEAM,"started":"@02","inputs":{"m":2},"outputs":{"result":"x"}}
		{RIGHT,"id":"r3","call":"c2","at":"@30"}
		{"functai_rating":1,"id":"r4","call":"c2","at":"@31","by":"bo","verdict":null}
		{CALL,"id":"c3",TEAM,"started":"@03","inputs":{"m":3},"outputs":{"result":"x"}}
		{"functai_rating":1,"id":"r5","call":"c3","at":"@31","by":"ana","verdict":null}
		{RIGHT,"id":"r6","call":"c3","at":"@32"}`,
	rows: `{"m":2,"result":"x","call":"c2","version":"v1","rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}
		{"m":3,"result":"x","call":"c3","version":"v1","rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}`,
}, {
	rule: "a word other than right and wrong replaces that person's rating and says nothing",
	log: `{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"}}
		{RIGHT,"id":"r1","call":"c1","at":"@30"}
		{"functai_rating":1,"id":"r2","call":"c1","at":"@31","by":"ana","verdict":"unsure"}
		{CALL,"id":"c2",TEAM,"started":"@02","inputs":{"m":2},"outputs":{"result":"x"}}
		{RIGHT,"id":"r3","call":"c2","at":"@30"}
		{"functai_rating":1,"id":"r4","call":"c2","at":"@31","by":"bo","verdict":"unsure"}`,
	rows: `{"m":2,"result":"x","call":"c2","version":"v1","rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}`,
}, {
	rule: "an account's ratings each stand alone: they replace nothing, nothing replaces them, its null takes nothing back",
	log: `{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"}}
		{"functai_rating":1,"id":"r1","call":"c1","at":"@30","account":"lab","verdict":"right"}
		{"functai_rating":1,"id":"r2","call":"c1","at":"@31","account":"lab","verdict":"wrong","answer":"y"}
		{CALL,"id":"c2",TEAM,"started":"@02","inputs":{"m":2},"outputs":{"result":"x"}}
		{"functai_rating":1,"id":"r3","call":"c2","at":"@30","account":"lab","verdict":"right"}
		{"functai_rating":1,"id":"r4","call":"c2","at":"@31","account":"lab","verdict":null}
		{CALL,"id":"c3",TEAM,"started":"@03","inputs":{"m":3},"outputs":{"result":"x"}}
		{"functai_rating":1,"id":"r5","call":"c3","at":"@30","account":"lab","verdict":"right"}
		{"functai_rating":1,"id":"r6","call":"c3","at":"@31","by":"ana","verdict":null}`,
	rows: `{"m":1,"result":"y","call":"c1","version":"v1","rating":"wrong","rated_by":null,"origin":"review","sample":null,"disputed":true}
		{"m":2,"result":"x","call":"c2","version":"v1","rating":"right","rated_by":null,"origin":"review","sample":null,"disputed":false}
		{"m":3,"result":"x","call":"c3","version":"v1","rating":"right","rated_by":null,"origin":"review","sample":null,"disputed":false}`,
}, {
	rule: "by reads only that person's ratings; an account's are nobody's",
	log: `{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"}}
		{RIGHT,"id":"r1","call":"c1","at":"@30"}
		{"functai_rating":1,"id":"r2","call":"c1","at":"@31","by":"bo","verdict":"wrong","answer":"y"}
		{CALL,"id":"c2",TEAM,"started":"@02","inputs":{"m":2},"outputs":{"result":"x"}}
		{"functai_rating":1,"id":"r3","call":"c2","at":"@30","account":"ana","verdict":"right"}`,
	q:    Query{Program: "team", Module: "support", By: "ana"},
	rows: `{"m":1,"result":"x","call":"c1","version":"v1","rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}`,
}, {
	rule: "a rating of an unknown format is not read, and neither is such a call",
	log: `{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"}}
		{RIGHT,"id":"r1","call":"c1","at":"@30"}
		{"functai_rating":2,"id":"r2","call":"c1","at":"@31","by":"ana","verdict":"wrong","answer":"y"}
		{"functai_call":3,"id":"c2",TEAM,"started":"@02","content":true,"inputs":{"m":2},"outputs":{"result":"x"},"saw":[]}
		{RIGHT,"id":"r3","call":"c2","at":"@30"}`,
	rows: `{"m":1,"result":"x","call":"c1","version":"v1","rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}`,
}, {
	rule: "the latest rating that says what is right gives the row; one that does not still makes it disputed",
	log: `{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"}}
		{RIGHT,"id":"r1","call":"c1","at":"@30"}
		{"functai_rating":1,"id":"r2","call":"c1","at":"@31","by":"bo","verdict":"wrong"}`,
	rows: `{"m":1,"result":"x","call":"c1","version":"v1","rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":true}`,
}, {
	rule: "disputed: verdicts differ, even over one value; or values differ, as canonical JSON",
	log: `{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"}}
		{RIGHT,"id":"r1","call":"c1","at":"@30"}
		{"functai_rating":1,"id":"r2","call":"c1","at":"@31","by":"bo","verdict":"wrong","answer":"x"}
		{CALL,"id":"c2",TEAM,"started":"@02","inputs":{"m":2},"outputs":{"result":"x"}}
		{WRONG,"id":"r3","call":"c2","at":"@30","answer":{"a":1,"b":[2]}}
		{"functai_rating":1,"id":"r4","call":"c2","at":"@31","by":"bo","verdict":"wrong","answer":{"b":[2.0],"a":1.0}}
		{CALL,"id":"c3",TEAM,"started":"@03","inputs":{"m":3},"outputs":{"result":"x"}}
		{WRONG,"id":"r5","call":"c3","at":"@30","answer":1}
		{"functai_rating":1,"id":"r6","call":"c3","at":"@31","by":"bo","verdict":"wrong","answer":"1"}
		{CALL,"id":"c4",TEAM,"started":"@04","inputs":{"m":4},"outputs":{"result":"x"}}
		{WRONG,"id":"r7","call":"c4","at":"@30","answer":1}
		{"functai_rating":1,"id":"r8","call":"c4","at":"@31","by":"bo","verdict":"wrong","answer":1,"outputs":{"p":2}}`,
	rows: `{"m":1,"result":"x","call":"c1","version":"v1","rating":"wrong","rated_by":"bo","origin":"review","sample":null,"disputed":true}
		{"m":2,"result":{"b":[2.0],"a":1.0},"call":"c2","version":"v1","rating":"wrong","rated_by":"bo","origin":"review","sample":null,"disputed":false}
		{"m":3,"result":"1","call":"c3","version":"v1","rating":"wrong","rated_by":"bo","origin":"review","sample":null,"disputed":true}
		{"m":4,"result":1,"p":2,"call":"c4","version":"v1","rating":"wrong","rated_by":"bo","origin":"review","sample":null,"disputed":true}`,
}, {
	rule: "other right outputs follow the answer in the rating's order; outputs nobody corrected are no data",
	log: `{CALL,"id":"c1","program":{"name":"team","kind":"ai","module":"support","answer":"category"},"started":"@01","inputs":{"m":1},"outputs":{"reasoning":"hm","category":"x","priority":1}}
		{WRONG,"id":"r1","call":"c1","at":"@30","outputs":{"z":1,"priority":3},"answer":"y"}
		{CALL,"id":"c2","program":{"name":"team","kind":"ai","module":"support","answer":"category"},"started":"@02","inputs":{"m":2},"outputs":{"reasoning":"hm","category":"x","priority":1}}
		{WRONG,"id":"r2","call":"c2","at":"@30","outputs":{"priority":3}}
		{CALL,"id":"c3","program":{"name":"team","kind":"ai","module":"support","answer":"category"},"started":"@03","inputs":{"m":3},"outputs":{"reasoning":"hm","category":"x","priority":1}}
		{WRONG,"id":"r3","call":"c3","at":"@30","outputs":{"priority":3,"category":"z"}}
		{CALL,"id":"c4","program":{"name":"team","kind":"ai","module":"support","answer":"category"},"started":"@04","inputs":{"m":4},"outputs":{"reasoning":"hm","category":"x","priority":1}}
		{RIGHT,"id":"r4","call":"c4","at":"@30","outputs":{"priority":3}}`,
	rows: `{"m":1,"category":"y","z":1,"priority":3,"call":"c1","version":null,"rating":"wrong","rated_by":"ana","origin":"review","sample":null,"disputed":false}
		{"m":2,"priority":3,"call":"c2","version":null,"rating":"wrong","rated_by":"ana","origin":"review","sample":null,"disputed":false}
		{"m":3,"category":"z","priority":3,"call":"c3","version":null,"rating":"wrong","rated_by":"ana","origin":"review","sample":null,"disputed":false}
		{"m":4,"category":"x","call":"c4","version":null,"rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}`,
}, {
	rule: "data keeps its names and its spelling: added keys get underscores until they are free",
	log: `{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"version":"2","call":1.50,"_version":"draft","rating":"<é>"},"outputs":{"result":{"b":1e2,"a":"\u00e9"}}}
		{RIGHT,"id":"r1","call":"c1","at":"@30"}`,
	rows: `{"version":"2","call":1.50,"_version":"draft","rating":"<é>","result":{"b":1e2,"a":"\u00e9"},"_call":"c1","__version":"v1","_rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}`,
}, {
	rule: "an output named like an input hides no input",
	log: `{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"text":"in"},"outputs":{"result":"x"}}
		{WRONG,"id":"r1","call":"c1","at":"@30","answer":"y","outputs":{"text":"out"}}`,
	rows: `{"text":"in","result":"y","_text":"out","call":"c1","version":"v1","rating":"wrong","rated_by":"ana","origin":"review","sample":null,"disputed":false}`,
}, {
	rule: "a call of another module, or another name, is another program",
	log: `{CALL,"id":"c1","program":{"name":"team","module":"other","answer":"result"},"started":"@01","inputs":{"m":1},"outputs":{"result":"x"}}
		{RIGHT,"id":"r1","call":"c1","at":"@30"}
		{CALL,"id":"c2","program":{"name":"teams","module":"support","answer":"result"},"started":"@02","inputs":{"m":2},"outputs":{"result":"x"}}
		{RIGHT,"id":"r2","call":"c2","at":"@30"}`,
}, {
	rule: "a name alone takes calls of every module",
	log: `{CALL,"id":"c1","program":{"name":"team","module":"other","answer":"result"},"started":"@01","inputs":{"m":1},"outputs":{"result":"x"}}
		{RIGHT,"id":"r1","call":"c1","at":"@30"}
		{CALL,"id":"c2",TEAM,"started":"@02","inputs":{"m":2},"outputs":{"result":"x"}}
		{RIGHT,"id":"r2","call":"c2","at":"@30"}`,
	q: Query{Program: "team"},
	rows: `{"m":1,"result":"x","call":"c1","version":null,"rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}
		{"m":2,"result":"x","call":"c2","version":"v1","rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}`,
}, {
	rule: "two notebooks' programs of one name are two; a call that names no file is neither's",
	log:  notebooks,
	q:    Query{Program: "sum", Module: "__main__", File: "/a.ipynb"},
	rows: `{"m":1,"result":"x","call":"c1","version":null,"rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}`,
}, {
	rule: "any file takes them all",
	log:  notebooks,
	q:    Query{Program: "sum", Module: "__main__", File: "/a.ipynb", AnyFile: true},
	rows: `{"m":1,"result":"x","call":"c1","version":null,"rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}
		{"m":2,"result":"x","call":"c2","version":null,"rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}
		{"m":3,"result":"x","call":"c3","version":null,"rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}`,
}, {
	rule: "same data by interface; a record without one is known by its signature",
	log:  interfaces,
	q:    Query{Program: "f", Module: "m", Interface: "i1"},
	rows: `{"m":1,"result":"x","call":"c1","version":null,"rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}
		{"m":3,"result":"x","call":"c3","version":null,"rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}`,
	left: "other_signature 3",
}, {
	rule: "same data by signature",
	log:  interfaces,
	q:    Query{Program: "f", Module: "m", Signature: "s1"},
	rows: `{"m":1,"result":"x","call":"c1","version":null,"rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}
		{"m":2,"result":"x","call":"c2","version":null,"rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}`,
	left: "other_signature 3",
}, {
	rule: "same data by either; an interface is not a signature",
	log:  interfaces,
	q:    Query{Program: "f", Module: "m", Interface: "i2", Signature: "s3"},
	rows: `{"m":2,"result":"x","call":"c2","version":null,"rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}
		{"m":4,"result":"x","call":"c4","version":null,"rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}`,
	left: "other_signature 3",
}, {
	rule: "inputs that are not there as data: format 1 without content, omitted, described, cut to fit, a size with no value",
	log: `{"functai_call":1,"id":"c1",TEAM,"started":"@01","content":false,"outputs":null}
		{"functai_call":2,"id":"c2",TEAM,"started":"@02","content":false,"inputs":{"m":2},"outputs":{"result":"x"},"saw":[]}
		{"functai_call":2,"id":"c3",TEAM,"started":"@03","content":false,"omitted":{"inputs":["n"],"outputs":[]},"inputs":{"m":3},"outputs":{"result":"x"},"saw":[]}
		{CALL,"id":"c4",TEAM,"started":"@04","inputs":{"m":{"$type":"Frame","$repr":"…"}},"outputs":{"result":"x"},"described":{"inputs":["m"],"outputs":[]}}
		{CALL,"id":"c5",TEAM,"started":"@05","inputs":{"m":5},"outputs":{"result":"x"},"truncated":true}
		{CALL,"id":"c6",TEAM,"started":"@06","outputs":{"result":"x"},"sizes":{"inputs":{"m":1},"outputs":{"result":3}}}
		{"functai_call":2,"id":"c7",TEAM,"started":"@07","inputs":{"m":7},"outputs":{"result":"x"},"saw":[]}
		` + allRight(7),
	left: "no_content 7",
}, {
	rule: "outputs that are not there are no content's matter, but right then says nothing; a correction does",
	log: `{"functai_call":2,"id":"c1",TEAM,"started":"@01","content":false,"omitted":{"inputs":[],"outputs":["result"]},"inputs":{"m":1},"saw":[]}
		{CALL,"id":"c2",TEAM,"started":"@02","inputs":{"m":2},"outputs":{"result":{"$type":"T","$repr":"t"}},"described":{"inputs":[],"outputs":["result"]}}
		{CALL,"id":"c3",TEAM,"started":"@03","inputs":{"m":3},"outputs":null,"error":{"type":"ReplyError","code":"parse-missing","message":"no"}}
		{CALL,"id":"c4",TEAM,"started":"@04","inputs":{"m":4},"outputs":{"reasoning":"r"}}
		` + allRight(4) + `
		{"functai_call":2,"id":"d1",TEAM,"started":"@11","content":false,"omitted":{"inputs":[],"outputs":["result"]},"inputs":{"m":1},"saw":[]}
		{CALL,"id":"d2",TEAM,"started":"@12","inputs":{"m":2},"outputs":{"result":{"$type":"T","$repr":"t"}},"described":{"inputs":[],"outputs":["result"]}}
		{CALL,"id":"d3",TEAM,"started":"@13","inputs":{"m":3},"outputs":null,"error":{"type":"ReplyError","code":"parse-missing","message":"no"}}
		{WRONG,"id":"q1","call":"d1","at":"@30","answer":"y"}
		{WRONG,"id":"q2","call":"d2","at":"@30","answer":"y"}
		{WRONG,"id":"q3","call":"d3","at":"@30","answer":"y"}`,
	rows: `{"m":1,"result":"y","call":"d1","version":"v1","rating":"wrong","rated_by":"ana","origin":"review","sample":null,"disputed":false}
		{"m":2,"result":"y","call":"d2","version":"v1","rating":"wrong","rated_by":"ana","origin":"review","sample":null,"disputed":false}
		{"m":3,"result":"y","call":"d3","version":"v1","rating":"wrong","rated_by":"ana","origin":"review","sample":null,"disputed":false}`,
	left: "no_answer 4",
}, {
	rule: "a call left out for several reasons is counted under the first: other data, then content, then answer",
	log: `{"functai_call":2,"id":"c1","program":{"name":"team","module":"support","interface":"i2","answer":"result"},"started":"@01","content":false,"saw":[]}
		{"functai_call":2,"id":"c2",TEAM,"started":"@02","content":false,"saw":[]}
		{CALL,"id":"c3",TEAM,"started":"@03","inputs":{"m":3},"outputs":null,"saw":[{"call":"nowhere"}]}
		{CALL,"id":"c4",TEAM,"started":"@04","inputs":{"m":4},"outputs":{"result":"x"},"saw":[{"call":"nowhere"}]}
		` + allRight(4),
	q:    Query{Program: "team", Module: "support", Interface: "i1"},
	left: "no_answer 1, no_content 1, no_context 1, other_signature 1",
	why:  "missing-call 1",
}, {
	rule: "of several records of one call the one of the highest writer counts",
	log: `{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"second"},"writer":2}
		{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"first"}}
		{RIGHT,"id":"r1","call":"c1","at":"@30"}`,
	rows: `{"m":1,"result":"second","call":"c1","version":"v1","rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}`,
}}

const notebooks = `{CALL,"id":"c1","program":{"name":"sum","module":"__main__","file":"/a.ipynb","answer":"result"},"started":"@01","inputs":{"m":1},"outputs":{"result":"x"}}
	{CALL,"id":"c2","program":{"name":"sum","module":"__main__","file":"/b.ipynb","answer":"result"},"started":"@02","inputs":{"m":2},"outputs":{"result":"x"}}
	{CALL,"id":"c3","program":{"name":"sum","module":"__main__","answer":"result"},"started":"@03","inputs":{"m":3},"outputs":{"result":"x"}}
	{RIGHT,"id":"r1","call":"c1","at":"@30"}
	{RIGHT,"id":"r2","call":"c2","at":"@30"}
	{RIGHT,"id":"r3","call":"c3","at":"@30"}`

const interfaces = `{CALL,"id":"c1","program":{"name":"f","module":"m","interface":"i1","signature":"s1","answer":"result"},"started":"@01","inputs":{"m":1},"outputs":{"result":"x"}}
	{CALL,"id":"c2","program":{"name":"f","module":"m","interface":"i2","signature":"s1","answer":"result"},"started":"@02","inputs":{"m":2},"outputs":{"result":"x"}}
	{"functai_call":1,"id":"c3","program":{"name":"f","module":"m","signature":"i1","answer":"result"},"started":"@03","content":true,"inputs":{"m":3},"outputs":{"result":"x"}}
	{CALL,"id":"c4","program":{"name":"f","module":"m","interface":"i9","signature":"s3","answer":"result"},"started":"@04","inputs":{"m":4},"outputs":{"result":"x"}}
	{CALL,"id":"c5","program":{"name":"f","module":"m","answer":"result"},"started":"@05","inputs":{"m":5},"outputs":{"result":"x"}}
	{RIGHT,"id":"r1","call":"c1","at":"@30"}
	{RIGHT,"id":"r2","call":"c2","at":"@30"}
	{RIGHT,"id":"r3","call":"c3","at":"@30"}
	{RIGHT,"id":"r4","call":"c4","at":"@30"}
	{RIGHT,"id":"r5","call":"c5","at":"@30"}`

// allRight rates the calls c1 to cn right.
func allRight(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, `{RIGHT,"id":"r%d","call":"c%d","at":"@30"}`+"\n", i, i)
	}
	return b.String()
}

func TestRatedRows(t *testing.T) {
	for _, c := range ratingCases {
		t.Run(c.rule, func(t *testing.T) { c.check(t, sourceOf(t, c.log)) })
	}
}

// What is said of calls that are no rows, and why there are none.
func TestRatedCounts(t *testing.T) {
	log := `{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"}}
		{"functai_rating":1,"id":"r1","call":"c1","at":"@30","by":"ana","verdict":null}
		{CALL,"id":"c2",TEAM,"started":"@02","inputs":{"m":2},"outputs":{"result":"x"}}
		{RIGHT,"id":"r2","call":"c2","at":"@30"}
		{"functai_rating":1,"id":"r3","call":"c2","at":"@30","by":"bo","verdict":"wrong"}
		{CALL,"id":"c3",TEAM,"started":"@03","inputs":{"m":3},"outputs":null}
		{RIGHT,"id":"r4","call":"c3","at":"@30"}
		{RIGHT,"id":"r5","call":"gone","at":"@30"}
		{RIGHT,"id":"r6","call":"gone","at":"@31"}
		{"functai_rating":1,"id":"r7","call":"gone","at":"@30","account":"lab","verdict":"right"}
		{CALL,"id":"d1","program":{"name":"other","module":"support","answer":"result"},"started":"@04","inputs":{},"outputs":{"result":"x"}}
		{RIGHT,"id":"r8","call":"d1","at":"@30"}`
	r, err := Rows(t.Context(), sourceOf(t, log), Query{Program: "team", Module: "support"})
	if err != nil {
		t.Fatal(err)
	}
	if r.Len() != 1 || r.ID(0) != "c2" || len(r.Left) != 1 || r.Withdrawn != 1 || r.Disputed != 1 {
		t.Errorf("got %d rows, left %+v, withdrawn %d, disputed %d", r.Len(), r.Left, r.Withdrawn, r.Disputed)
	}
	// Ana's two ratings of the call that is not there are one, the account's another.
	if r.Unknown != 2 {
		t.Errorf("%d ratings of unknown calls, want 2", r.Unknown)
	}
	want := []string{"1 of 2 rated calls were left out: no_answer (1)", "ratings of calls that these records do not have: 2"}
	if diff := cmp.Diff(want, r.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if got := string(r.AppendLeftOutJSON(nil)); got != `{"other_signature":0,"no_content":0,"no_answer":1,"no_context":0}` {
		t.Errorf("left out: %s", got)
	}
	if err := r.Empty(); err != nil {
		t.Errorf("there is a row, but: %v", err)
	}
	for _, c := range []struct {
		q    Query
		want string
	}{
		{Query{Program: "team", Module: "support", Interface: "i2"}, "no row of support:team: 2 of 2 rated calls were left out: other_signature (2); rows with the interface i2 were asked for, and of the first call left out for it, its interface is i1 and its signature s1; " +
			"'evalrun programs show' shows a program's interface, which its calls carry as program.interface"},
		{Query{Program: "tema"}, "no rated call of tema; there are rated calls of support:team (2), support:other (1)"},
		{Query{Program: "team", By: "cy"}, "no rated call of team: there is no rating by cy"},
	} {
		r, err := Rows(t.Context(), sourceOf(t, log), c.q)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(r.Empty()); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.q, got, c.want)
		}
	}
	if _, err := Rows(t.Context(), sourceOf(t, log), Query{}); err == nil {
		t.Error("rows of no program in particular")
	}
}

func TestPoolingIsDoubtful(t *testing.T) {
	for _, c := range []struct {
		log  string
		q    Query
		want string
	}{
		{notebooks, Query{Program: "sum", Module: "__main__"}, "the rows come from 3 scripts or notebooks: /a.ipynb (1), /b.ipynb (1), no file (1); choose one by its file"},
		{notebooks, Query{Program: "sum", Module: "__main__", AnyFile: true}, ""},
		{interfaces, Query{Program: "f"}, "the rows have 4 different interfaces: i1 (2), i2 (1), i9 (1), none recorded (1); choose one by its interface"},
		{`{"functai_call":1,"id":"c1",TEAM,"started":"@01","content":true,"inputs":{"m":1},"outputs":{"result":"x"}}
			{CALL,"id":"c2",TEAM,"started":"@02","inputs":{"m":2},"outputs":{"result":"x"},"sections":["S"]}
			` + allRight(2), Query{Program: "team"}, "rows whose record does not say what the call was shown, taken as shown nothing: 1"},
		{interfaces, Query{Program: "f", Interface: "i1"}, "3 of 5 rated calls were left out: other_signature (3)"},
	} {
		r, err := Rows(t.Context(), sourceOf(t, c.log), c.q)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(r.Warnings, "\n"); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.q, got, c.want)
		}
	}
}

// A row holds what a program is asked apart from what is right, and the facts
// of the recorded call.
func TestRatedRow(t *testing.T) {
	log := `{"functai_call":2,"id":"c1","root":"c1","parent":null,"program":{"name":"team","kind":"ai","module":"support","version":"v1","signature":"s1","interface":"i1","answer":"result","file":"/s.py"},"started":"@01","seconds":0.5,"content":true,"inputs":{"b":1,"a":[2.50]},"outputs":{"reasoning":"hm","result":"x"},"error":null,"model":"m-1","usage":{"input_tokens":12},"saw":[],"caller":{"user":"cy","evaluation":"run-3"},"replayable":false,"changes":[{"plugin":"modes","version":"1.0.0","hook":"before_call","change":{"instruction":"Be terse."}},{"plugin":"new","kind":"?"}]}
		{WRONG,"id":"r1","call":"c1","at":"@30","answer":"y","outputs":{"p":3},"sample":"d1"}
		{CALL,"id":"c2",TEAM,"started":"@02","inputs":{"b":1},"outputs":null,"error":{"type":"ReplyError","code":"parse-missing"}}
		{"functai_rating":1,"id":"r2","call":"c2","at":"@30","account":"lab","verdict":"wrong","answer":"y"}
		{CALL,"id":"c3",TEAM,"started":"@03","inputs":{"b":1},"outputs":{"reasoning":{"$type":"T","$repr":"t"},"result":"x"},"described":{"inputs":[],"outputs":["reasoning"]}}
		{RIGHT,"id":"r3","call":"c3","at":"@30"}`
	r, err := Rows(t.Context(), sourceOf(t, log), Query{Program: "team", Module: "support"})
	if err != nil {
		t.Fatal(err)
	}
	if r.Len() != 3 {
		t.Fatalf("%d rows, left %+v", r.Len(), r.Left)
	}
	at := func(i int) datasets.Row {
		row, err := r.At(i)
		if err != nil {
			t.Fatal(err)
		}
		return row
	}
	row := at(0)
	for _, c := range []struct {
		what      string
		got, want string
	}{
		{"id", row.ID, "c1"},
		{"inputs", row.Inputs.Object().JSON(), `{"a":[2.50],"b":1}`},
		{"labels", row.Labels.Object().JSON(), `{"p":3,"result":"y"}`},
		{"recorded", row.Recorded.Object().JSON(), `{"reasoning":"hm","result":"x"}`},
		{"verdict", fmt.Sprintf("%+v", row.Verdict), "{Verdict:wrong By:ana Origin:review Sample:d1 Disputed:false}"},
		{"context", fmt.Sprintf("%+v", row.Context), "{Of:c1 Earlier:[] Sections:[] Helpers:[] Conversation:}"},
		{"meta", row.Meta.Object().JSON(), `{"changes":[{"plugin":"modes","version":"1.0.0","hook":"before_call","change":{"instruction":"Be terse."}},{"plugin":"new","kind":"?"}],` +
			`"disputed":false,"file":"/s.py","model":"m-1","module":"support","origin":"review","purpose":"evaluation","rated_by":"ana","rating":"wrong",` +
			`"replayable":false,"sample":"d1","seconds":0.5,"started":"2026-09-26T10:01:00.000000Z","usage":{"input_tokens":12},"user":"cy","version":"v1"}`},
		{"recorded outputs of a failed call", fmt.Sprint(at(1).Recorded == nil), "true"},
		{"meta of a failed call", at(1).Meta.Object().JSON(), `{"disputed":false,"error":"ReplyError","error_code":"parse-missing","module":"support","origin":"review","purpose":"use","rating":"wrong",` +
			`"started":"2026-09-26T10:02:00.000000Z","version":"v1"}`},
		{"recorded outputs that are data", at(2).Recorded.Object().JSON(), `{"result":"x"}`},
	} {
		if c.got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.what, c.got, c.want)
		}
	}
	var n int
	for row, err := range datasets.All(r) {
		if err != nil || row.ID != r.ID(n) {
			t.Errorf("row %d: %q is not %q: %v", n, row.ID, r.ID(n), err)
		}
		n++
	}
}

func TestRatedColumns(t *testing.T) {
	log := `{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"}}
		{RIGHT,"id":"r1","call":"c1","at":"@30"}
		{CALL,"id":"c2",TEAM,"started":"@02","inputs":{"m":2,"version":"b"},"outputs":{"result":"x"},"sections":["Summary."]}
		{WRONG,"id":"r2","call":"c2","at":"@30","outputs":{"p":1}}`
	r, err := Rows(t.Context(), sourceOf(t, log), Query{Program: "team"})
	if err != nil {
		t.Fatal(err)
	}
	var table []string
	for _, c := range r.Columns() {
		line := c.Name
		for i := range r.Len() {
			line += " | " + r.Cell(i, c).JSON()
		}
		table = append(table, line)
	}
	want := []string{
		`m | 1 | 2`, `version |  | "b"`, `result | "x" | `, `p |  | 1`,
		`earlier | [] | []`, `conversation | null | null`, `sections |  | ["Summary."]`,
		`rating | "right" | "wrong"`, `rated_by | "ana" | "ana"`, `origin | "review" | "review"`, `disputed | false | false`,
		`sample | null | null`, `_version | "v1" | "v1"`, `call | "c1" | "c2"`,
	}
	if diff := cmp.Diff(want, table); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

// A row is on one line, even when a store kept a value that is spread over several.
func TestRowIsOneLine(t *testing.T) {
	call, err := ParseRecord([]byte(expand(`{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"}}`)))
	if err != nil {
		t.Fatal(err)
	}
	call.Inputs = datasets.RawValue("{\n  \"m\": [\r\n 1, \"a\\n\" ] }")
	rating, err := ParseRating([]byte(expand(`{RIGHT,"id":"r1","call":"c1","at":"@30"}`)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Rows(t.Context(), InMemory([]*Record{call}, []*Rating{rating}), Query{Program: "team"})
	if err != nil {
		t.Fatal(err)
	}
	got := r.AppendRowJSON(nil, 0)
	if bytes.ContainsAny(got, "\r\n") || !strings.Contains(string(got), `"a\n"`) {
		t.Errorf("got %q", got)
	}
}

// The example of docs/rated-rows.md is what it says.
func TestDocumentedExample(t *testing.T) {
	doc, err := os.ReadFile("../docs/rated-rows.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```jsonl?\n(.*?)```").FindAllStringSubmatch(string(doc), -1) {
		blocks = append(blocks, strings.TrimSpace(m[1]))
	}
	if len(blocks) != 3 {
		t.Fatalf("the page has %d blocks of JSON, want the log, the rows and what was left out", len(blocks))
	}
	r, err := Rows(t.Context(), sourceOf(t, blocks[0]), Query{Program: "team", Module: "support"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(blocks[1], rowsText(r)); diff != "" {
		t.Errorf("rows (-page +got):\n%s", diff)
	}
	if diff := cmp.Diff(blocks[2], string(r.AppendLeftOutJSON(nil))); diff != "" {
		t.Errorf("left out (-page +got):\n%s", diff)
	}
}

func TestRowsStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Rows(ctx, sourceOf(t, conversationLog+rightOf("t1")), Query{Program: "team"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", r, err)
	}
}

func TestParseProgram(t *testing.T) {
	for _, c := range []struct{ text, module, name string }{
		{"support:team", "support", "team"}, {"team", "", "team"}, {"a:b:team", "a:b", "team"}, {":team", "", "team"}, {"support:", "support", ""},
	} {
		if module, name := ParseProgram(c.text); module != c.module || name != c.name {
			t.Errorf("%q is %q and %q", c.text, module, name)
		}
	}
}

// A recorded answer that is no data is not there to be measured; the correction
// of it is.
func TestRecordedAnswerThatIsNoData(t *testing.T) {
	src := sourceOf(t, `{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":1e999,"note":"n"},"usage":{"tokens":1e999},"changes":[{"plugin":"p","hook":"h","change":{"t":1e999}}]}
		{WRONG,"id":"r1","call":"c1","at":"@30","answer":2}
		{CALL,"id":"c2",TEAM,"started":"@02","inputs":{"m":2},"outputs":{"result":1,"note":1e999}}
		{WRONG,"id":"r2","call":"c2","at":"@30","answer":2}`)
	r, err := Rows(t.Context(), src, Query{Program: "team"})
	if err != nil || r.Len() != 2 {
		t.Fatalf("%d rows, %v", r.Len(), err)
	}
	first, _ := r.At(0)
	if first.Recorded != nil || first.Labels.Object().JSON() != `{"result":2}` || !first.Meta["usage"].IsZero() || !first.Meta["changes"].IsZero() {
		t.Errorf("recorded %v, labels %v, meta %v", first.Recorded, first.Labels, first.Meta)
	}
	second, _ := r.At(1)
	if got := second.Recorded.Object().JSON(); got != `{"result":1}` {
		t.Errorf("recorded %s", got)
	}
}
