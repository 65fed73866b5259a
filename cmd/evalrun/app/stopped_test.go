package app

import (
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"evalrun/pipeline/provider/providertest"
)

// One interrupt ends a run whose service is down: nothing more is sent, the rows are
// unfinished and not failed, and the last lines say how to go on.
func TestInterruptDuringOutage(t *testing.T) {
	service := providertest.NewService(func(*http.Request, []byte) (int, http.Header, []byte) {
		return http.StatusInternalServerError, nil, []byte(`{"error":{"message":"try again"}}`)
	})
	defer service.Close()
	dir := deskFiles(t, service.URL, 20, "limits: {concurrency: 4, outage: 10m}\n")
	cmd, out := evalrun(dir, "run", "evalrun.yaml")
	cmd.Env = append(cmd.Environ(), "OPENAI_API_KEY=sk-test-key")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for service.Count() == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(out.String(), "interrupted: 40 of the candidates' rows are not finished; the same command goes on") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// A service that is given up in the middle leaves a run that is not done: exit 7, and
// the same command asks again what was lost.
func TestOutageInTheMiddle(t *testing.T) {
	var asked atomic.Int64
	var well atomic.Bool
	service := providertest.NewService(func(*http.Request, []byte) (int, http.Header, []byte) {
		if asked.Add(1) > 30 && !well.Load() {
			return http.StatusInternalServerError, nil, []byte(`{"error":{"message":"try again"}}`)
		}
		return http.StatusOK, nil, []byte(`{"model":"desk-1","choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"<team>\na\n</team>"}}],` +
			`"usage":{"prompt_tokens":30,"completion_tokens":3,"total_tokens":33}}`)
	})
	defer service.Close()
	dir := deskFiles(t, service.URL, 40, "limits: {concurrency: 4, outage: 1s, max_retries: 1}\n")
	run := func() (int, string) {
		cmd, out := evalrun(dir, "run", "evalrun.yaml")
		cmd.Env = append(cmd.Environ(), "OPENAI_API_KEY=sk-test-key")
		_ = cmd.Run()
		return cmd.ProcessState.ExitCode(), out.String()
	}
	if code, out := run(); code != 7 || !strings.Contains(out, "the service of desk was given up, and 50 of the candidates' rows were lost: the same command asks those again") {
		t.Errorf("exit %d\n%s", code, out)
	}
	well.Store(true)
	before := asked.Load()
	if code, out := run(); code != 0 || asked.Load()-before != 50 {
		t.Errorf("exit %d after %d requests\n%s", code, asked.Load()-before, out)
	}
}

// A budget of time ends a run whose service hangs.
func TestBudgetTimeEndsRun(t *testing.T) {
	hangs := providertest.NewService(func(r *http.Request, _ []byte) (int, http.Header, []byte) {
		<-r.Context().Done()
		return http.StatusInternalServerError, nil, nil
	})
	defer hangs.Close()
	dir := deskFiles(t, hangs.URL, 20, "limits: {concurrency: 4, budget: {time: 1s}}\n")
	cmd, out := evalrun(dir, "run", "evalrun.yaml")
	cmd.Env = append(cmd.Environ(), "OPENAI_API_KEY=sk-test-key")
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 5 || !strings.Contains(out.String(), "the time of 1s is over") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if n := hangs.Count(); n != 4 {
		t.Errorf("%d requests were made, want those on the wire when the time was over", n)
	}
}

// A list that names nothing is a slip, and one that names no class is told in a line.
func TestRetryFailedNamesClasses(t *testing.T) {
	dir := deskFiles(t, "http://127.0.0.1:1", 1, "")
	for list, says := range map[string]string{",,": "names no class", "unreadabel": `--retry-failed: "unreadabel" is no class of failures; did you mean unreadable?`} {
		cmd, out := evalrun(dir, "run", "evalrun.yaml", "--retry-failed", list)
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(out.String(), says) {
			t.Errorf("%s: exit %d\n%s", list, code, out)
		}
	}
}

// Without a key the message says which variable would have one.
func TestMissingKey(t *testing.T) {
	service := providertest.NewService(func(*http.Request, []byte) (int, http.Header, []byte) {
		return http.StatusUnauthorized, nil, []byte(`{"error":{"message":"no key"}}`)
	})
	defer service.Close()
	dir := deskFiles(t, service.URL, 4, "")
	cmd, out := evalrun(dir, "run", "evalrun.yaml")
	cmd.Env = append(cmd.Environ(), "OPENAI_API_KEY=")
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 7 || !strings.Contains(out.String(), "no key was sent: the environment variable OPENAI_API_KEY (key_env names another) has none") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// What a budget does to the question, and that it cannot suffice, is said before
// anything is asked.
func TestBudgetCautions(t *testing.T) {
	dir := deskFiles(t, "http://127.0.0.1:1", 40, "limits: {budget: {usd: 0.00001}}\n")
	cmd, out := evalrun(dir, "run", "evalrun.yaml", "--dry-run")
	cmd.Env = append(cmd.Environ(), "OPENAI_API_KEY=sk-test-key")
	_ = cmd.Run()
	for _, say := range []string{"max_tokens of desk is 4096 because there is a budget", "asks everything anew", "the budget of USD 0.000010 will not suffice"} {
		if !strings.Contains(out.String(), say) {
			t.Errorf("it does not say %q:\n%s", say, out)
		}
	}
}

// A folder that is no run was asked for wrongly, as one that is not there is.
func TestStatusOfNoRun(t *testing.T) {
	for _, folder := range []string{t.TempDir(), "not-there"} {
		cmd, out := evalrun(t.TempDir(), "status", folder)
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != 2 {
			t.Errorf("%s: exit %d\n%s", folder, code, out)
		}
	}
}

// One row that is asked says what that took.
func TestRowSaysWhatItTook(t *testing.T) {
	var asked atomic.Int64
	service := routing(&asked)
	defer service.Close()
	dir := deskFiles(t, service.URL, 1, "")
	cmd, out := evalrun(dir, "run", "evalrun.yaml", "--row", deskRow(0), "--candidate", "plain")
	cmd.Env = append(cmd.Environ(), "OPENAI_API_KEY=sk-test-key")
	_ = cmd.Run()
	if !strings.Contains(out.String(), "took: 30 tokens in and 3 out, USD 0.000036") { // 30 of 1 and 3 of 2 a million
		t.Errorf("%s", out)
	}
}
