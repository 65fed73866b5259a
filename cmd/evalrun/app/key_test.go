package app

import (
	"bytes"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"evalrun/pipeline/provider/providertest"
)

// echo answers with the key it was sent, as careless services do.
func echo(status int) providertest.Trouble {
	return func(_ *providertest.Service, w http.ResponseWriter, r *http.Request, _ providertest.Usual) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		w.Header().Set("X-Request-Id", key)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"error":{"message":"not with the key ` + key + `, that is ` + key + `","type":"` + key + `","code":"` + key + `"}}`))
	}
}

// A key is in nothing that a run writes or shows, whatever the service answers and
// however much is told.
func TestKeyIsNowhere(t *testing.T) {
	const key = "sk-proj_9f8e7d6c5b4a-TheKey"
	var mu sync.Mutex
	var shown []string // command lines with the key, while the run was on
	sent := 0
	service := providertest.NewService(func(r *http.Request, _ []byte) (int, http.Header, []byte) {
		lines := commandLines(key)
		mu.Lock()
		defer mu.Unlock()
		shown = append(shown, lines...)
		if r.Header.Get("Authorization") == "Bearer "+key {
			sent++
		}
		return http.StatusOK, nil, []byte(`{"model":"desk-1","system_fingerprint":"fp","choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"<team>\na\n</team>"}}],` +
			`"usage":{"prompt_tokens":30,"completion_tokens":3,"total_tokens":33}}`)
	})
	defer service.Close()
	const limits = "limits: {concurrency: 4, max_retries: 1, outage: 5s}\nreport: {formats: [json, md, html, csv, junit]}\n"
	for _, c := range []struct {
		name, format string
		files        map[string]string // beside the spec
		entry        string            // of the model
		environment  []string
		told         []string // what the log must say, so that there is something to look in
	}{
		{
			"from the environment", "text", nil, "",
			[]string{"OPENAI_API_KEY=" + key},
			[]string{"msg=request", "status=answered", "status=rate_limited", "tries=2", "[secret]", "msg=limit"},
		},
		{
			"from a file", "json",
			map[string]string{"desk.key": key + "\n"},
			"key_file: desk.key, ", nil,
			[]string{`"msg":"request"`, `"status":"answered"`, `"status":"rate_limited"`, `"tries":2`, "[secret]", `"msg":"limit"`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := deskFiles(t, service.URL, 12, limits)
			for name, text := range c.files {
				write(t, filepath.Join(dir, name), text)
			}
			spec, err := os.ReadFile(filepath.Join(dir, "evalrun.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "evalrun.yaml"), strings.Replace(string(spec), "model: desk,", c.entry+"model: desk,", 1))
			service.Fail(
				// So often that both candidates' tries fail, and a probe of a pause is answered.
				providertest.Fault{Has: "ticket 1 ", Do: echo(http.StatusUnauthorized)}, providertest.Fault{Has: "ticket 4 ", Times: 4, Do: echo(http.StatusTooManyRequests)},
				providertest.Fault{Has: "ticket 7 ", Times: 4, Do: echo(http.StatusInternalServerError)}, providertest.Fault{Has: "ticket 9 ", Times: 1, Do: echo(http.StatusTooManyRequests)},
			)
			mu.Lock()
			shown, sent = nil, 0
			mu.Unlock()
			cmd, _ := evalrun(dir, "run", "evalrun.yaml", "--log-level", "debug", "--log-format", c.format)
			cmd.Env = append(cmd.Environ(), c.environment...)
			var out, messages bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &messages
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s", err, messages.String())
			}
			mu.Lock()
			defer mu.Unlock()
			if sent == 0 {
				t.Fatal("the key was never sent: the test shows nothing")
			}
			if shown != nil {
				t.Errorf("the key is on the command lines %q", shown)
			}
			for _, want := range c.told {
				if !strings.Contains(messages.String(), want) {
					t.Errorf("the log does not say %s:\n%s", want, messages.String())
				}
			}
			for name, text := range map[string]string{"standard output": out.String(), "standard error": messages.String()} {
				if strings.Contains(text, key) {
					t.Errorf("the key is on %s:\n%s", name, text)
				}
			}
			files, failures := 0, false
			err = filepath.WalkDir(filepath.Join(dir, "runs"), func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				data, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				files++
				failures = failures || bytes.Contains(data, []byte("[secret]"))
				if bytes.Contains(data, []byte(key)) {
					t.Errorf("the key is in %s", path)
				}
				return nil
			})
			if err != nil || files < 8 || !failures {
				t.Errorf("looked into %d files (%v), failures seen: %v", files, err, failures)
			}
		})
	}
}

// commandLines are the processes' that show a text, where the system tells.
func commandLines(text string) (list []string) {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		if line, err := os.ReadFile(path); err == nil && bytes.Contains(line, []byte(text)) {
			list = append(list, string(line))
		}
	}
	return list
}
