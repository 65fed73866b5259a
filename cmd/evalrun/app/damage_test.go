package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"evalrun/harness"
)

// code runs the command and returns its exit code and what it said.
func code(dir string, args ...string) (int, string) {
	cmd, out := evalrun(dir, args...)
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), out.String()
}

func total(counts map[string]int) (n int) {
	for _, k := range counts {
		n += k
	}
	return n
}

// A run whose journal is damaged is not asked again in silence: it is refused
// before anything is asked, with the file named, until it is said to go on without
// what is lost.
func TestDamagedJournal(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, segment string)
		lost   int // answers
	}{
		{"a bit", func(t *testing.T, segment string) {
			text := read(t, segment)
			text[bytes.Index(text, []byte(`"text":`))] ^= 1 // of the first reply
			write(t, segment, string(text))
		}, 1},
		{"a segment", func(t *testing.T, segment string) {
			if err := os.Remove(segment); err != nil {
				t.Fatal(err)
			}
		}, 16},
		{"all of a segment", func(t *testing.T, segment string) { write(t, segment, "") }, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			service := newDesk(t)
			dir := deskFiles(t, service.URL, 8, "")
			run, _ := ran(t, service, dir)
			service.forget()
			c.damage(t, filepath.Join(run, "journal", "000001.journal"))
			for range 2 {
				if code, out := code(dir, "run", "evalrun.yaml"); code != ExitData || !strings.Contains(out, "000001.journal") || !strings.Contains(out, "--accept-damaged-journal") {
					t.Errorf("exit %d, want %d, the file and what to do\n%s", code, ExitData, out)
				}
			}
			if n := total(service.counts()); n > 0 {
				t.Fatalf("%d requests were made", n)
			}
			again, asked := ran(t, service, dir, "--accept-damaged-journal")
			if again != run || asked != c.lost {
				t.Errorf("going on without what is lost: %d answers were asked for in %s, want %d in %s", asked, again, c.lost, run)
			}
			if _, asked := ran(t, service, dir); asked != 0 {
				t.Errorf("after that, %d answers were asked for", asked)
			}
		})
	}
}

// A run whose manifest cannot be read is not passed over: it is refused with its
// folder named, and --fresh goes around it.
func TestUnreadableManifest(t *testing.T) {
	service := newDesk(t)
	dir := deskFiles(t, service.URL, 2, "")
	run, _ := ran(t, service, dir)
	manifest := filepath.Join(run, "manifest.json")
	whole := string(read(t, manifest))
	service.forget()
	for name, damage := range map[string]func(){
		"later": func() { rewrite(t, manifest, `"schema": 1`, `"schema": 9`) },
		"cut":   func() { write(t, manifest, whole[:len(whole)/2]) },
		"gone": func() {
			if err := os.Remove(manifest); err != nil {
				t.Fatal(err)
			}
		},
	} {
		damage()
		if code, out := code(dir, "run", "evalrun.yaml"); code != ExitData || !strings.Contains(out, filepath.Base(run)) || !strings.Contains(out, "--fresh") {
			t.Errorf("%s: exit %d, want %d, the folder and what to do\n%s", name, code, ExitData, out)
		}
		write(t, manifest, whole)
	}
	if n := total(service.counts()); n > 0 {
		t.Errorf("%d requests were made", n)
	}
	rewrite(t, manifest, `"schema": 1`, `"schema": 9`)
	time.Sleep(time.Second) // a run's name has the second it was started in
	if code, out := code(dir, "run", "evalrun.yaml", "--fresh"); code != ExitOK || total(service.counts()) < 4 {
		t.Errorf("--fresh: exit %d, %d requests\n%s", code, total(service.counts()), out)
	}
}

// What a run took only informs: when it cannot be read, the run goes on without it,
// says so, and keeps it aside.
func TestUnreadableMeasured(t *testing.T) {
	service := newDesk(t)
	dir := deskFiles(t, service.URL, 2, "")
	run, _ := ran(t, service, dir)
	measured := filepath.Join(run, "measured.json")
	for _, bad := range []string{"{", `{"schema":{"name":"evalrun.measured","version":9}}`} {
		write(t, measured, bad)
		code, out := code(dir, "run", "evalrun.yaml")
		if code != ExitOK || !strings.Contains(out, "warning") || !strings.Contains(out, "measured.json.damaged") {
			t.Errorf("exit %d; want a warning\n%s", code, out)
		}
		if kept := string(read(t, measured+".damaged")); kept != bad {
			t.Errorf("kept aside is %q", kept)
		}
		read(t, filepath.Join(run, "report.json"))
	}
}

// What was answered and paid for stays in the results, however often a run whose
// budget is spent is started again, and however many of its rows failed.
func TestKnownAnswersStay(t *testing.T) {
	for _, limits := range []string{"budget: {calls: 25}", "max_errors: 0"} {
		t.Run(limits, func(t *testing.T) {
			service := newDesk(t)
			dir := deskFiles(t, service.URL, 60, "limits: {concurrency: 8, max_retries: 0, "+limits+"}\n")
			rows := -1
			for again := range 3 {
				service.forget()
				code, out := code(dir, "run", "evalrun.yaml")
				runs, err := filepath.Glob(filepath.Join(dir, "runs", "*"))
				if err != nil || len(runs) != 1 {
					t.Fatal(runs, err, out)
				}
				n := answeredRows(t, runs[0])
				if code != ExitBudget && code != ExitIncomplete || n < rows || n == 0 {
					t.Errorf("start %d: exit %d, %d answers in the results, and before %d\n%s", again, code, n, rows, out)
				}
				if again > 0 && strings.HasPrefix(limits, "budget") && total(service.counts()) > 0 {
					t.Errorf("start %d asked %d times without a budget", again, total(service.counts()))
				}
				rows = n
			}
		})
	}
}

// answeredRows is how many results of a run are answers.
func answeredRows(t *testing.T, dir string) (n int) {
	t.Helper()
	run, err := harness.OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range run.Results() {
		if err != nil {
			t.Fatal(err)
		}
		if r.Failed == nil {
			n++
		}
	}
	return n
}
