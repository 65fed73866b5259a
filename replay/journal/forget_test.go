package journal

import (
	"os"
	"path/filepath"
	"testing"

	"evalrun/pipeline"
)

// What is forgotten is asked anew, in this process and in those after it, even
// when the one that forgot was killed before it asked anything.
func TestForget(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	live := &counting{}
	site := func(candidate, row string, repeat, step int) *pipeline.Request {
		r := request(row, "x")
		r.Site.Candidate, r.Site.Repeat, r.Site.Step, r.Site.Path = candidate, repeat, step, "f"
		return r
	}
	all := []*pipeline.Request{
		site("a", "r", 0, 0), site("a", "r", 0, 1), // two steps of one answer
		site("a", "r", 1, 0), site("b", "r", 0, 0), site("a", `r" 0 "f`, 0, 0), site(`a" "r`, "r", 0, 0),
	}
	j := openJournal(t, dir)
	m := j.Model(live)
	for _, req := range all {
		answer(t, m, req)
	}
	if n, err := j.Forget(); n != 0 || err != nil {
		t.Errorf("nothing to forget: %d, %v", n, err)
	}
	if n, err := j.Forget(Answer{Candidate: "c", Row: "r"}); n != 0 || err != nil {
		t.Errorf("an answer nobody gave: %d, %v", n, err)
	}
	if n, err := j.Forget(Answer{Candidate: "a", Row: "r"}, Answer{Candidate: "a", Row: `r" 0 "f`}); n != 3 || err != nil {
		t.Fatalf("forgot %d entries (%v), want the 3 of two answers", n, err)
	}
	// As a kill leaves it: no Close.
	again := openJournal(t, dir)
	m = again.Model(live)
	for i, req := range all {
		forgotten := i < 2 || i == 4
		if got := answer(t, m, req); (got.From == pipeline.FromJournal) == forgotten {
			t.Errorf("request %d: from %q", i, got.From)
		}
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	// What was asked since counts.
	last := openJournal(t, dir)
	defer last.Close()
	for i, req := range all {
		if got := answer(t, last.Model(live), req); got.From != pipeline.FromJournal {
			t.Errorf("request %d was asked a third time", i)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 3 {
		t.Errorf("%d segments (%v), want 3", len(files), err)
	}
}

func TestAnswerAt(t *testing.T) {
	want := Answer{`a "b" é`, "r\n", 12, "judge"}
	s := pipeline.Site{Candidate: want.Candidate, Row: want.Row, Repeat: want.Repeat, Path: `p "q" 1`, Inside: "0.0", Purpose: want.Purpose}
	for _, kind := range []string{"call", "exchange"} {
		if got, ok := answerAt(siteKey(kind, s)); !ok || got != want {
			t.Errorf("%s: %+v, %v", kind, got, ok)
		}
	}
	for _, bad := range []string{"", "call", "call a", `call "a"`, `call "a" "b`, `call "a" "b" x`} {
		if got, ok := answerAt(bad); ok {
			t.Errorf("%q is read as %+v", bad, got)
		}
	}
}

// With a purpose, what was asked for another one stays.
func TestForgetOnePurpose(t *testing.T) {
	j := openJournal(t, filepath.Join(t.TempDir(), "journal"))
	defer j.Close()
	live := &counting{}
	asked := request("r", "x")
	asked.Site.Purpose = "candidate"
	judged := request("r", "x")
	judged.Site.Purpose = "judge"
	m := j.Model(live)
	answer(t, m, asked)
	answer(t, m, judged)
	site := judged.Site
	if n, err := j.Forget(Answer{site.Candidate, site.Row, site.Repeat, "judge"}); n != 1 || err != nil {
		t.Fatalf("forgot %d entries (%v), want 1", n, err)
	}
	if got := answer(t, m, asked); got.From != pipeline.FromJournal {
		t.Error("the candidate was asked again")
	}
	if got := answer(t, m, judged); got.From == pipeline.FromJournal {
		t.Error("the judge was not")
	}
}
