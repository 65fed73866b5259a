package fakelog

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json"
)

func TestLog(t *testing.T) {
	var a, b, other bytes.Buffer
	for _, w := range []struct {
		to   *bytes.Buffer
		seed uint64
	}{{&a, 1}, {&b, 1}, {&other, 2}} {
		if err := Write(w.to, 2000, w.seed); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) || bytes.Equal(a.Bytes(), other.Bytes()) {
		t.Error("a seed gives one log, and another seed another")
	}
	var calls, ratings, turns, shown, sections, changed, failed, inside int
	ids := map[string]bool{}
	inputs := 0
	for line := range bytes.Lines(a.Bytes()) {
		var r struct {
			Call         int `json:"functai_call"`
			ID           string
			Parent       *string
			Of           string `json:"call"`
			Inputs       map[string]string
			Error        any
			Saw          []struct{ Call, SawOf string }
			Sections     []string
			Changes      []any
			Conversation *struct{ ID string }
		}
		if err := json.Unmarshal(line, &r, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if ids[r.ID] {
			t.Fatalf("the id %s occurs twice", r.ID)
		}
		ids[r.ID] = true
		if r.Call == 0 {
			ratings++
			if !ids[r.Of] {
				t.Fatalf("a rating of %s, which is no call", r.Of)
			}
			continue
		}
		calls++
		for _, text := range r.Inputs {
			inputs += len(text)
		}
		count := func(n *int, is bool) {
			if is {
				*n++
			}
		}
		count(&turns, r.Conversation != nil)
		count(&shown, len(r.Saw) > 0)
		count(&sections, r.Sections != nil)
		count(&changed, r.Changes != nil)
		count(&failed, r.Error != nil)
		count(&inside, r.Parent != nil)
	}
	if calls != 2000 || ratings < 150 || ratings > 250 || inputs/calls < 1000 || inputs/calls > 2000 {
		t.Errorf("%d calls, %d ratings, inputs of %d bytes", calls, ratings, inputs/calls)
	}
	if turns == 0 || shown == 0 || sections == 0 || changed == 0 || failed == 0 || inside == 0 {
		t.Errorf("something is missing: %d turns, %d shown, %d with sections, %d changed, %d failed, %d inside", turns, shown, sections, changed, failed, inside)
	}
	t.Logf("%d bytes a call", a.Len()/calls)

	folder := t.TempDir()
	if err := WriteFolder(folder, 2000, 1); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "2025-03-0*", "worker-*.jsonl"))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	size := 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		size += len(b)
	}
	if size != a.Len() {
		t.Errorf("the folder has %d bytes, the log %d", size, a.Len())
	}
}
