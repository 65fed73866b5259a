package app

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"evalrun/pipeline/provider/providertest"
)

// A run whose requests are in a batch ends in any way; the same command finds the
// batch again, and sends nothing twice.
func TestBatchLeft(t *testing.T) {
	for _, c := range []struct {
		name     string
		signal   os.Signal
		finished bool // before the run goes on
		says     string
	}{
		{"killed", os.Kill, false, ""},
		{"killed, then finished", os.Kill, true, ""},
		{"interrupted", os.Interrupt, false, "1 of them with 12 requests stay with"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			batches := &providertest.Batches{Dialect: func(*http.Request, []byte) (int, http.Header, []byte) {
				return http.StatusOK, nil, []byte(`{"model":"desk-1","choices":[{"finish_reason":"stop","message":{"content":"<team>\na\n</team>"}}],` +
					`"usage":{"prompt_tokens":1000000,"completion_tokens":1000000}}`)
			}}
			batches.Hold(true)
			service := providertest.NewService(batches.Answer)
			t.Cleanup(service.Close)
			dir := deskFiles(t, service.URL+"/v1", 6, "")
			spec := filepath.Join(dir, "evalrun.yaml")
			write(t, spec, strings.Replace(string(read(t, spec)), "model: desk, base_url", "model: desk, mode: batch, base_url", 1))

			cmd, out := evalrun(dir, "run", "evalrun.yaml")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			for batches.Made() == 0 {
				select {
				case err := <-ended:
					t.Fatalf("it ended before: %v\n%s", err, out)
				case <-time.After(10 * time.Millisecond):
				}
			}
			if err := cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			err := <-ended
			if cmd.ProcessState.Success() || !strings.Contains(out.String(), c.says) || c.says != "" && cmd.ProcessState.ExitCode() != ExitInterrupted {
				t.Fatalf("%v, want %q\n%s", err, c.says, out)
			}
			batches.Hold(false)
			if c.finished {
				r, err := http.Get(service.URL + "/v1/batches/batch_1")
				if err != nil {
					t.Fatal(err)
				}
				r.Body.Close()
			}
			cmd, out = evalrun(dir, "run", "evalrun.yaml")
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			sent := batches.Sent()
			if batches.Made() != 1 || len(sent) != 12 {
				t.Errorf("%d batches with %d requests were made, want 1 with 12", batches.Made(), len(sent))
			}
			runs, err := filepath.Glob(filepath.Join(dir, "runs", "*", "manifest.json"))
			if err != nil || len(runs) != 1 {
				t.Fatalf("the runs are %v (%v), want one", runs, err)
			}
			price := strings.Join(strings.Fields(string(read(t, runs[0]))), "")
			if !strings.Contains(price, `"price":{"input":0.5,"output":1,"batch":true}`) {
				t.Errorf("the manifest has not the price of batches:\n%s", price)
			}
		})
	}
}
