//go:build unix

package app

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Told to end, or when its terminal is gone, the command ends at once and leaves
// no program behind that it started.
func TestSignals(t *testing.T) {
	// Under nohup the signal is ignored, and what we start would inherit that.
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP)
	defer signal.Stop(heard)
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM} {
		dir := t.TempDir()
		for name, text := range map[string]string{
			"log.jsonl": `{"functai_call":2,"id":"0194235b-0000-7000-8000-000000000001","program":{"name":"route","module":"desk",` +
				`"interface":"sha256:65e30bd533aa48ba9b9dcda27060f098d6f7a7db39bdf93e269798fcf190239d","answer":"team"},"started":"2026-01-02T03:04:05.000001Z",` +
				`"content":true,"inputs":{"ticket":"x"},"outputs":{"team":"a"},"error":null,"saw":[]}` + "\n" +
				`{"functai_rating":1,"id":"0194235b-0000-7000-8000-000000000002","call":"0194235b-0000-7000-8000-000000000001",` +
				`"at":"2026-01-02T04:00:00.000000Z","by":"ada","verdict":"right"}` + "\n",
			"route.yaml": "{name: route, inputs: [{name: ticket, shape: {type: string}}], outputs: [{name: team, shape: {enum: [b, a]}}]}",
			"spec.yaml": "{version: 1, records: log.jsonl, program: route, models: {base: {provider: lexical}}, plugins: [hangs], " +
				"candidates: [{name: a, program: route.yaml, model: base}]}",
			// It heeds nothing, and says who it is when it has an event.
			"hangs": "#!/bin/sh\ntrap '' TERM HUP INT\nread -r hello\n" +
				`echo '{"evalrun_plugin":1,"name":"hangs","hooks":["before_call"]}'` + "\nread -r event\necho $$ >pid.part; mv pid.part pid\nwhile :; do sleep 1; done\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("evalrun", "run", "spec.yaml", "--runs", "runs")
		cmd.Dir = dir
		var out strings.Builder
		cmd.Stderr = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		plugin := 0
		for plugin == 0 {
			select {
			case err := <-ended:
				t.Fatalf("it ended before: %v\n%s", err, out.String())
			case <-time.After(10 * time.Millisecond):
				text, _ := os.ReadFile(filepath.Join(dir, "pid"))
				plugin, _ = strconv.Atoi(strings.TrimSpace(string(text)))
			}
		}
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		err := <-ended
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != ExitInterrupted {
			t.Errorf("%v: %v\n%s", s, err, out.String())
		}
		if err := syscall.Kill(plugin, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%v: its plugin still runs (%v)", s, err)
			_ = syscall.Kill(-plugin, syscall.SIGKILL)
		}
	}
}
