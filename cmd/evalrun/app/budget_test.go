package app

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"evalrun/pipeline/provider/providertest"
)

// routing answers every ticket with team a, for 30 tokens in and 3 out.
func routing(count *atomic.Int64) *providertest.Service {
	return providertest.NewService(func(*http.Request, []byte) (int, http.Header, []byte) {
		count.Add(1)
		return http.StatusOK, nil, []byte(`{"model":"desk-1","choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"<team>\na\n</team>"}}],` +
			`"usage":{"prompt_tokens":30,"completion_tokens":3,"total_tokens":33}}`)
	})
}

func rewrite(t *testing.T, file, from, to string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), from) {
		t.Fatalf("%s has no %q", file, from)
	}
	write(t, file, strings.Replace(string(data), from, to, 1))
}

// A run whose budget is spent ends with what there is, exit 5, and goes on when
// the budget is raised; no request is made twice.
func TestBudgetSpent(t *testing.T) {
	var asked atomic.Int64
	service := routing(&asked)
	defer service.Close()
	dir := deskFiles(t, service.URL, 40, "limits: {concurrency: 16, budget: {calls: 25}}\n")
	spec := filepath.Join(dir, "evalrun.yaml")
	run := func(code int, says ...string) {
		t.Helper()
		cmd, out := evalrun(dir, "run", "evalrun.yaml")
		cmd.Env = append(cmd.Environ(), "OPENAI_API_KEY=sk-test-key")
		_ = cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Fatalf("exit %d, want %d\n%s", got, code, out)
		}
		for _, say := range says {
			if !strings.Contains(out.String(), say) {
				t.Errorf("it does not say %q:\n%s", say, out)
			}
		}
	}
	run(5, "the budget is spent: 25 of 25 calls are made", "about 80 calls", "exit 5")
	if n := asked.Load(); n != 25 {
		t.Errorf("%d requests were made, of a budget of 25", n)
	}
	run(5, "25 of 25 calls") // what was made before counts
	if n := asked.Load(); n != 25 {
		t.Errorf("%d requests were made, of a budget of 25", n)
	}
	rewrite(t, spec, "calls: 25", "calls: 100")
	run(0, "about 5") // the estimate is of what is left
	if n := asked.Load(); n != 80 {
		t.Errorf("%d requests were made for 80 answers", n)
	}
}

// A budget of money sees no model without a price.
func TestBudgetOfUnpriced(t *testing.T) {
	var asked atomic.Int64
	service := routing(&asked)
	defer service.Close()
	dir := deskFiles(t, service.URL, 4, "limits: {budget: {usd: 1}}\n")
	rewrite(t, filepath.Join(dir, "evalrun.yaml"), ", price: {input: 1, output: 2}", "")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"run", "evalrun.yaml"}, 2, "the price of desk is not known"},
		{[]string{"run", "evalrun.yaml", "--allow-unpriced"}, 0, "cost unknown (no price for desk)"},
	} {
		cmd, out := evalrun(dir, c.args...)
		cmd.Env = append(cmd.Environ(), "OPENAI_API_KEY=sk-test-key")
		_ = cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != c.code || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: exit %d, want %d and %q\n%s", c.args, got, c.code, c.says, out)
		}
	}
	if n := asked.Load(); n != 8 {
		t.Errorf("%d requests were made, want those of the second run alone", n)
	}
}

// A key that the service does not know is no answer of the candidates': the run
// ends after a few requests, and says so.
func TestWrongKey(t *testing.T) {
	service := providertest.NewService(func(*http.Request, []byte) (int, http.Header, []byte) {
		return http.StatusUnauthorized, nil, []byte(`{"error":{"message":"Incorrect API key provided"}}`)
	})
	defer service.Close()
	dir := deskFiles(t, service.URL, 200, "")
	cmd, out := evalrun(dir, "run", "evalrun.yaml")
	cmd.Env = append(cmd.Environ(), "OPENAI_API_KEY=sk-test-key")
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 7 || !strings.Contains(out.String(), "the environment variable OPENAI_API_KEY") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if n := service.Count(); n > 40 {
		t.Errorf("%d requests were made with a wrong key", n)
	}
}
