package app

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"evalrun/harness"
	"evalrun/reports"
)

// cannot runs a command that cannot do what it is to, and returns what it says.
func cannot(t *testing.T, dir string, command string, args ...string) string {
	t.Helper()
	cmd := exec.Command(command, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	failed, ok := errors.AsType[*exec.ExitError](err)
	if !ok || failed.ExitCode() != ExitCannot {
		t.Fatalf("%v, want exit code %d\n%s", err, ExitCannot, out)
	}
	return string(out)
}

// A disk that is full, for which a limit on the size of files stands, ends the run
// with an error that says so. What was written by then is no more than it was: with
// room again the run goes on, asks nothing twice and finds what it would have.
func TestDiskFull(t *testing.T) {
	service := newDesk(t)
	dir := deskFiles(t, service.URL, 40, "")
	k := &killer{t: t, service: service, dir: dir, workers: 4, chance: rand.New(rand.NewPCG(1, 2))}
	undisturbed := k.run("undisturbed", 0)
	for _, blocks := range []string{"1", "8", "20"} { // of 512 bytes: the manifest does not fit, the journal or the calls do not
		root := "runs" + blocks
		service.forget()
		said := cannot(t, dir, "sh", "-c", "ulimit -f "+blocks+" && exec evalrun run evalrun.yaml --concurrency 4 --runs "+root)
		if !strings.Contains(said, "file too large") {
			t.Errorf("with room for %s blocks it says\n%s", blocks, said)
		}
		partial, err := filepath.Glob(filepath.Join(dir, root, "*", reports.JSONFile))
		if err != nil {
			t.Fatal(err)
		}
		for _, report := range partial {
			if !strings.Contains(string(read(t, report)), `"code": 7`) {
				t.Errorf("%s does not say that the run could not be done", report)
			}
		}
		if stale, err := filepath.Glob(filepath.Join(dir, root, "*", ".*.tmp")); err != nil || len(stale) != 0 {
			t.Errorf("half-written files are left: %v (%v)", stale, err)
		}
		k.same(undisturbed, k.again(root))
	}
}

// again carries out a run that could not be, and returns its folder.
func (k *killer) again(root string) string {
	k.t.Helper()
	known, before := k.known(root), k.service.counts()
	cmd, out := evalrun(k.dir, "run", "evalrun.yaml", "--runs", root, "--concurrency", "4")
	if err := cmd.Run(); err != nil {
		k.t.Fatalf("%v\n%s", err, out)
	}
	for key, n := range k.service.counts() {
		if known[key] && n != before[key] {
			k.t.Errorf("%s is in the journal and was asked again", key)
		}
	}
	whole, err := filepath.Glob(filepath.Join(k.dir, root, "*", harness.ResultsFile))
	if err != nil || len(whole) != 1 {
		k.t.Fatalf("runs with results are %v (%v), want one", whole, err)
	}
	return filepath.Dir(whole[0])
}

// Where nothing can be written nothing is asked.
func TestCannotWrite(t *testing.T) {
	for _, c := range []struct {
		name  string
		block func(t *testing.T, dir string)
		says  string
	}{
		{"a file where the runs are to be", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "runs"), "") }, "not a directory"},
		{"a folder that is read-only", func(t *testing.T, dir string) {
			if os.Getuid() != 0 {
				if err := os.Mkdir(filepath.Join(dir, "runs"), 0o500); err != nil {
					t.Fatal(err)
				}
			} else if err := os.Symlink(neverWritten, filepath.Join(dir, "runs")); err != nil { // root may write into the other
				t.Fatal(err)
			}
		}, "not permitted|permission denied"},
		{"a file where the journal is to be", func(t *testing.T, dir string) {
			cmd, out := evalrun(dir, "run", "evalrun.yaml")
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			journals, err := filepath.Glob(filepath.Join(dir, "runs", "*", harness.JournalDir))
			if err != nil || len(journals) != 1 {
				t.Fatal(journals, err)
			}
			if err := os.RemoveAll(journals[0]); err != nil {
				t.Fatal(err)
			}
			write(t, journals[0], "")
		}, "not a directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			service := newDesk(t)
			dir := deskFiles(t, service.URL, 2, "")
			c.block(t, dir)
			service.forget()
			if said := cannot(t, dir, "evalrun", "run", "evalrun.yaml"); !containsAny(said, strings.Split(c.says, "|")) || strings.Contains(said, "panic") {
				t.Errorf("it says\n%s\nwant %q", said, c.says)
			}
			if n := service.counts(); len(n) != 0 {
				t.Errorf("asked all the same: %v", n)
			}
		})
	}
}

// neverWritten is a folder that not even root may write into.
const neverWritten = "/sys/kernel"

func containsAny(s string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(s, p) })
}
