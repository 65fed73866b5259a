package replay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"evalrun/internal/columnar"
)

// numberedCalls are n calls with ids that begin with a name.
func numberedCalls(name string, n int) (lines, ids []string) {
	for i := range n {
		id := fmt.Sprintf("%s%04d", name, i)
		ids = append(ids, id)
		lines = append(lines, `{"functai_call":2,"id":"`+id+`"}`)
	}
	return lines, ids
}

// importing makes this test's program an import: `go test` starts it again.
const importing = "EVALRUN_TEST_IMPORT"

// Several processes that import into one store at once lose nothing: each waits
// until it is the only one.
func TestImportsAtOnce(t *testing.T) {
	if logs := os.Getenv(importing); logs != "" {
		log, folder, _ := strings.Cut(logs, "\n")
		im := newImporter(t.Context(), folder)
		im.rows = 25 // a file each
		if _, err := im.run([]string{log}); err != nil {
			t.Fatal(err)
		}
		return
	}
	dir := t.TempDir()
	folder := filepath.Join(dir, "store")
	var want []string
	var running []*exec.Cmd
	for i := range 4 {
		lines, ids := numberedCalls(fmt.Sprint("p", i, "-"), 100)
		want = append(want, ids...)
		log := writeLines(t, filepath.Join(dir, fmt.Sprint(i, ".jsonl")), lines...)
		cmd := exec.Command(os.Args[0], "-test.run", "^TestImportsAtOnce$")
		cmd.Env = append(os.Environ(), importing+"="+log+"\n"+folder)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Skipf("cannot start processes: %v", err)
		}
		running = append(running, cmd)
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Errorf("an import failed: %v", err)
		}
	}
	var got []string
	for r, err := range open(t, folder).Calls(Want{All: true}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.ID)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%d calls in the store, want %d", len(got), len(want))
	}
	files, err := filepath.Glob(filepath.Join(folder, callsPattern))
	if err != nil || len(files) != 16 {
		t.Errorf("%d files, want 16; %v", len(files), err)
	}
}

// An import that waits for another stops when its context ends.
func TestImportWaits(t *testing.T) {
	dir := t.TempDir()
	folder := imported(t, "testdata/records.jsonl")
	other := flock.New(filepath.Join(folder, ".lock"))
	if got, err := other.TryLock(); err != nil || !got {
		t.Fatal(got, err)
	}
	defer other.Unlock()
	log := writeLines(t, filepath.Join(dir, "log.jsonl"), callA)
	before := maps.Collect(contents(t, folder))
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	done, err := Import(ctx, []string{log}, folder)
	if !errors.Is(err, context.DeadlineExceeded) || done.Calls != 0 || !maps.Equal(before, maps.Collect(contents(t, folder))) {
		t.Errorf("%+v, %v", done, err)
	}
}

// ending is a context that ends when it has been asked so often.
type ending struct {
	context.Context
	asked int
}

func (e *ending) Err() error {
	if e.asked--; e.asked < 0 {
		return context.Canceled
	}
	return nil
}

// An import that is stopped leaves whole files, and says so.
func TestImportStops(t *testing.T) {
	dir := t.TempDir()
	lines, _ := numberedCalls("c", 50)
	log := writeLines(t, filepath.Join(dir, "log.jsonl"), lines...)
	some := false
	for asked := 0; ; asked += 7 {
		folder := filepath.Join(dir, fmt.Sprint("store", asked))
		im := newImporter(&ending{t.Context(), asked}, folder)
		im.rows = 10
		done, err := im.run([]string{log})
		if err == nil {
			if asked < 50 || done.Calls != 50 {
				t.Errorf("asked %d times, it goes on: %+v", asked, done)
			}
			break
		}
		if !errors.Is(err, context.Canceled) || done.Calls != int64(10*len(done.Files)) {
			t.Fatalf("asked %d times: %+v, %v", asked, done, err)
		}
		stored := 0
		if done.Calls > 0 {
			some = true
			stored = len(strings.Fields(idsOf(t, open(t, folder).Calls(Want{All: true}))))
		}
		if stored != int(done.Calls) {
			t.Errorf("asked %d times: it says %d calls, the store has %d", asked, done.Calls, stored)
		}
		for path := range contents(t, dir) {
			if strings.HasSuffix(path, ".tmp") {
				t.Errorf("asked %d times: %s is left", asked, path)
			}
		}
	}
	if !some {
		t.Error("no import was stopped after a file")
	}
}

// Whether data was refused, or something could not be done, can be told apart.
func TestImportErrors(t *testing.T) {
	dir := t.TempDir()
	log := writeLines(t, filepath.Join(dir, "log.jsonl"), callA)
	damaged := filepath.Join(dir, "damaged")
	writeLines(t, filepath.Join(damaged, "calls-000001.parquet"), "no parquet")
	dangling := filepath.Join(dir, "dangling")
	if err := os.Mkdir(dangling, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "gone"), filepath.Join(dangling, "calls-000001.parquet")); err != nil {
		t.Fatal(err)
	}
	thesis := writeLines(t, filepath.Join(dir, "foreign", "thesis.txt"), "mine")
	for _, tt := range []struct {
		what, src, folder string
		refused           bool
	}{
		{"a source that is damaged", damaged, filepath.Join(dir, "new"), true},
		{"a store that is damaged", log, damaged, true},
		{"a folder that is no store", log, filepath.Dir(thesis), true},
		{"a source that is no file of records", thesis, filepath.Join(dir, "new"), true},
		{"a source that holds nothing", filepath.Dir(thesis), filepath.Join(dir, "new"), true},
		{"a source that is not there", filepath.Join(dir, "none"), filepath.Join(dir, "new"), false},
		{"a link to nothing in the store", log, dangling, false},
		{"a store below a file", log, filepath.Join(thesis, "store"), false},
	} {
		_, err := Import(t.Context(), []string{tt.src}, tt.folder)
		_, records := errors.AsType[*DataError](err)
		_, file := errors.AsType[*columnar.Error](err)
		if err == nil || (records || file) != tt.refused {
			t.Errorf("%s: %v; refused %v, want %v", tt.what, err, records || file, tt.refused)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was written by way of a link: %v", err)
	}
}
