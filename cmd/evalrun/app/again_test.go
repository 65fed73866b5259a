package app

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"evalrun/harness"
	"evalrun/reports"
)

// ran carries out a run and returns its folder and how many requests it made.
func ran(t *testing.T, service *desk, dir string, args ...string) (run string, requests int) {
	t.Helper()
	service.forget()
	cmd, out := evalrun(dir, append([]string{"run", "evalrun.yaml"}, args...)...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, at, ok := strings.Cut(out.String(), "evalrun: the run is in ")
	if !ok {
		t.Fatalf("it does not say where the run is:\n%s", out)
	}
	at, _, _ = strings.Cut(at, ";")
	service.mu.Lock()
	defer service.mu.Unlock()
	return filepath.Join(dir, at), service.answers
}

// measuredOf is a candidate's part of what was measured.
type measuredOf struct {
	Asked   int      `json:"asked"`
	Cached  int      `json:"cached"`
	FromRun int      `json:"from_run"`
	Resumed int      `json:"resumed"`
	Spent   *float64 `json:"spent"`
}

func measured(t *testing.T, run string) map[string]measuredOf {
	t.Helper()
	var report struct {
		Measured struct {
			Evaluations []struct {
				Candidates []struct {
					Name string `json:"name"`
					measuredOf
				} `json:"candidates"`
			} `json:"evaluations"`
		} `json:"measured"`
	}
	if err := json.Unmarshal(read(t, filepath.Join(run, reports.JSONFile)), &report); err != nil {
		t.Fatal(err)
	}
	by := map[string]measuredOf{}
	for _, c := range report.Measured.Evaluations[0].Candidates {
		by[c.Name] = c.measuredOf
	}
	return by
}

// A run that the cache answers finds what the one that asked found, and pays
// nothing; one that goes on pays what its first process paid.
func TestCachedRun(t *testing.T) {
	service := newDesk(t)
	dir := deskFiles(t, service.URL, 10, "limits: {max_retries: 6}\n")
	first, asked := ran(t, service, dir, "--cache", "rw", "--runs", "first")
	if m := measured(t, first)["plain"]; asked != 20 || m.Cached != 0 || m.Spent == nil {
		t.Fatalf("%d requests, measured %+v", asked, m)
	}
	paid := *measured(t, first)["plain"].Spent
	cached, asked := ran(t, service, dir, "--cache", "rw", "--runs", "second")
	if m := measured(t, cached)["plain"]; asked != 0 || m.Cached != 10 || m.Spent != nil {
		t.Errorf("from the cache: %d requests, measured %+v; want none, 10 cached and nothing spent", asked, m)
	}
	if a, b := unmeasured(t, first), unmeasured(t, cached); a != b {
		t.Errorf("from the cache it is\n%s\nwant\n%s", b, a)
	}
	again, asked := ran(t, service, dir, "--runs", "second")
	if m := measured(t, again)["plain"]; asked != 0 || m.Cached != 10 || m.Resumed != 0 || m.Spent != nil {
		t.Errorf("from the journal of a run that the cache answered: %d requests, measured %+v", asked, m)
	}
	again, asked = ran(t, service, dir, "--runs", "first")
	if m := measured(t, again)["plain"]; asked != 0 || m.Cached != 0 || m.Resumed != 10 || m.Spent == nil || *m.Spent != paid {
		t.Errorf("from the journal of a run that asked: %d requests, measured %+v; want none, and %v spent", asked, m, paid)
	}
}

// Processes that share a reply cache pay for a reply once, also when they ask at the
// same time; what the cache has is not in the estimate of a run.
func TestCacheOfProcesses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes wait for each other on Linux alone")
	}
	service := newDesk(t)
	dir := deskFiles(t, service.URL, 40, "limits: {max_retries: 6}\n")
	var running []*exec.Cmd
	for _, runs := range []string{"first", "second", "third"} {
		cmd, _ := evalrun(dir, "run", "evalrun.yaml", "--cache", "rw", "--runs", runs)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if service.answers != 80 {
		t.Errorf("%d answers were given, want 80 for three runs of the same 80 requests", service.answers)
	}
	if code, out := code(dir, "run", "evalrun.yaml", "--cache", "rw", "--runs", "fourth", "--dry-run"); code != ExitOK || strings.Contains(out, "to ask") {
		t.Errorf("exit %d; with everything in the cache there is nothing to ask\n%s", code, out)
	}
}

// A budget counts what earlier processes of the run used: calls, tokens and money.
func TestBudgetGoesOn(t *testing.T) {
	service := newDesk(t)
	dir := deskFiles(t, service.URL, 10, "limits: {budget: {calls: 9}}\n")
	calls := 0
	for _, more := range []struct {
		budget string
		calls  int // in all
	}{{"9", 9}, {"9", 9}, {"14", 14}, {"100", 20}} {
		spec := string(read(t, filepath.Join(dir, "evalrun.yaml")))
		at := strings.Index(spec, "limits:")
		write(t, filepath.Join(dir, "evalrun.yaml"), spec[:at]+"limits: {budget: {calls: "+more.budget+"}}\n")
		service.forget()
		cmd, out := evalrun(dir, "run", "evalrun.yaml")
		err := cmd.Run()
		for _, n := range service.counts() {
			calls += n // those that failed count too
		}
		if spent := cmd.ProcessState.ExitCode() == ExitBudget; spent != (more.calls < 20) || calls != more.calls && calls < 20 {
			t.Fatalf("with a budget of %s calls, %d were made in all (%v)\n%s", more.budget, calls, err, out)
		}
	}
}

// edit replaces a text in a file of the folder.
func edit(t *testing.T, dir, name, was, is string) {
	t.Helper()
	file := filepath.Join(dir, name)
	text := string(read(t, file))
	if !strings.Contains(text, was) {
		t.Fatalf("%s has no %q", file, was)
	}
	write(t, file, strings.ReplaceAll(text, was, is))
}

// What did not change is not asked again: another metric scores the same run;
// another candidate, and other rows, are asked and nothing else is, in a run of
// their own that counts what it took from the one before. --fresh asks everything.
func TestOnlyWhatChanged(t *testing.T) {
	service := newDesk(t)
	dir := deskFiles(t, service.URL, 10, "metrics: [exact_match]\nrows: {limit: 8}\n")
	first, asked := ran(t, service, dir)
	if asked != 16 {
		t.Fatalf("%d requests, want 16", asked)
	}
	edit(t, dir, "evalrun.yaml", "metrics: [exact_match]", "metrics: [exact_match, length]")
	if run, asked := ran(t, service, dir); run != first || asked != 0 {
		t.Errorf("another metric: %d requests in %s, want none in %s", asked, run, first)
	}
	edit(t, dir, "tersely.yaml", "Route the ticket tersely.", "Route the ticket as tersely as can be.")
	changed, asked := ran(t, service, dir)
	if m := measured(t, changed); changed == first || asked != 8 || m["plain"].FromRun != 8 || m["plain"].Spent != nil || m["tersely"].FromRun != 0 || m["tersely"].Spent == nil {
		t.Errorf("another candidate: %d requests, measured %+v; want 8, and those of plain from the run before", asked, m)
	}
	edit(t, dir, "evalrun.yaml", "limit: 8", "limit: 10")
	rows, asked := ran(t, service, dir)
	if m := measured(t, rows); asked != 4 || m["plain"].FromRun != 8 || m["tersely"].FromRun != 8 {
		t.Errorf("two rows more: %d requests, measured %+v; want 4", asked, m)
	}
	edit(t, dir, "evalrun.yaml", "name: plain", "name: as-it-was")
	renamed, asked := ran(t, service, dir)
	if m := measured(t, renamed); asked != 0 || m["as-it-was"].FromRun != 10 {
		t.Errorf("another name: %d requests, measured %+v; want none", asked, m)
	}
	edit(t, dir, "log.jsonl", "ticket 3 is about a hinge", "ticket 3 is about a lamp")
	if _, asked := ran(t, service, dir); asked != 2 {
		t.Errorf("a row changed: %d requests, want 2", asked)
	}
	time.Sleep(time.Second) // a run's name has the second it was started in
	fresh, asked := ran(t, service, dir, "--fresh")
	if m := measured(t, fresh); asked != 20 || m["tersely"].FromRun != 0 {
		t.Errorf("--fresh: %d requests, measured %+v; want 20", asked, m)
	}
}

// The A/A lane is a draw of its own, and is not answered with the baseline's.
func TestTwoDrawsStayTwo(t *testing.T) {
	service := newDesk(t)
	dir := deskFiles(t, service.URL, 3, "")
	ran(t, service, dir)
	edit(t, dir, "evalrun.yaml", "candidates:", "aa: true\ncandidates:")
	if _, asked := ran(t, service, dir); asked != 3 {
		t.Errorf("with the A/A lane: %d requests, want its 3", asked)
	}
}

// status says of each part whether it is current, why not, and what running again
// would ask; running again says what changed before it asks.
func TestStatus(t *testing.T) {
	service := newDesk(t)
	dir := deskFiles(t, service.URL, 4, "metrics: [exact_match]\n")
	write(t, filepath.Join(dir, "plug.star"), `plugin = Plugin("plug", before_call = lambda c: None)`)
	first, _ := ran(t, service, dir)
	type status struct {
		Parts []harness.Part  `json:"parts"`
		Again string          `json:"again"`
		Calls int             `json:"calls"`
		ToAsk []harness.ToAsk `json:"to_ask"`
	}
	for _, c := range []struct {
		name          string
		file, was, is string // the edit
		stale         string // part, name and why
		again         bool   // it is the same run
		calls         int
	}{
		{"nothing", "", "", "", "", true, 0},
		{"a metric", "evalrun.yaml", "[exact_match]", "[length]", "metrics: stale (exact_match, and now length)", true, 0},
		{"a program", "tersely.yaml", "tersely", "very tersely", "candidate tersely: stale (its program sends something else: version ", false, 4},
		{"a plugin", "evalrun.yaml", "program: tersely.yaml", "plugins: [plug.star], program: tersely.yaml", "candidate tersely: stale (the plugin plug is new)", false, 4},
		{"a setting", "evalrun.yaml", "model: desk, base_url", "temperature: 0.5, model: desk, base_url", "candidate plain: stale (the model's temperature was unset and is 0.5)", false, 8},
		{"a candidate's name", "evalrun.yaml", "name: tersely", "name: short", "candidate short: new (the run has no such candidate)", false, 0},
		{"rows", "evalrun.yaml", "metrics:", "rows: {limit: 3}\nmetrics:", "rows: stale (4 rows, and now 3)", false, 0},
		{"a record", "log.jsonl", "ticket 2 is about a hinge", "ticket 2 is about a lamp", "rows: stale (some of the 4 rows, or their order, changed)", false, 2},
		{"repeats", "evalrun.yaml", "metrics:", "repeats: 2\nmetrics:", "rows: stale (1 answers to each, and now 2)", false, 8},
		{"tools", "evalrun.yaml", "metrics:", "tools: live\nmetrics:", "tools: stale (recorded, and now live", false, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.file != "" {
				was := string(read(t, filepath.Join(dir, c.file)))
				edit(t, dir, c.file, c.was, c.is)
				defer write(t, filepath.Join(dir, c.file), was)
			}
			service.forget()
			cmd, out := evalrun(dir, "status", first, "--json")
			cmd.Stderr = nil
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var got status
			if err := json.Unmarshal(out.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if len(service.counts()) != 0 {
				t.Error("it asked")
			}
			if got.Calls != c.calls || (got.Again == first) != c.again {
				t.Errorf("%d calls, going on in %q: %+v; want %d, %v", got.Calls, got.Again, got.ToAsk, c.calls, c.again)
			}
			found := c.stale == ""
			for _, p := range got.Parts {
				found = found || strings.HasPrefix(partLine(p), c.stale)
				if c.stale == "" && p.State != harness.Current {
					t.Errorf("nothing changed, and %s", partLine(p))
				}
			}
			if !found {
				t.Errorf("the parts are %+v, want %q", got.Parts, c.stale)
			}
			if c.file == "" {
				return
			}
			cmd, out = evalrun(dir, "run", "evalrun.yaml", "--quiet", "--runs", "runs", "--concurrency", "2")
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if said, _, _ := strings.Cut(out.String(), "points"); !strings.Contains(said, "since ") || !strings.Contains(said, c.stale[:len(c.stale)-1]) {
				t.Errorf("running again says\n%s\nwant %q", out, c.stale)
			}
			n := 0
			for _, k := range service.counts() {
				n += k
			}
			if n < c.calls || c.calls == 0 && n > 0 {
				t.Errorf("running again asked %d times, and status foresaw %d calls", n, c.calls)
			}
			runs, err := filepath.Glob(filepath.Join(dir, "runs", "*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, run := range runs {
				if run != first {
					if err := os.RemoveAll(run); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}
