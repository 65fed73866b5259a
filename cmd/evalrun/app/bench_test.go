package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

// A whole run of 10,000 calls against a local service that answers at once, as a
// process of its own, and the same again, which its journal answers.
func BenchmarkRun(b *testing.B) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"model":"desk-1","choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"<team>\na\n</team>"}}],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`)
	}))
	defer service.Close()
	for _, rows := range []int{500, 5000} {
		for _, how := range []string{"asked", "journaled", "cached"} {
			b.Run(fmt.Sprintf("%s/calls=%d", how, 2*rows), func(b *testing.B) {
				dir := deskFiles(b, service.URL, rows, "report: {formats: [json]}\n")
				cpu := time.Duration(0)
				run := func(args ...string) {
					cmd, out := evalrun(dir, append([]string{"run", "evalrun.yaml", "--concurrency", "32", "--quiet"}, args...)...)
					if err := cmd.Run(); err != nil {
						b.Fatalf("%v\n%s", err, out)
					}
					cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
				}
				if how == "cached" {
					run("--cache", "write", "--runs", "first")
				} else if how == "journaled" {
					run("--runs", "first")
				}
				n := 0
				for b.Loop() {
					n++
					switch how {
					case "asked":
						run("--runs", fmt.Sprint("run", n))
					case "journaled":
						run("--runs", "first")
					default:
						run("--cache", "read", "--runs", fmt.Sprint("run", n))
					}
				}
				b.ReportMetric(cpu.Seconds(), "cpu-s/run") // steadier than the time when others use the machine
				if err := os.RemoveAll(dir); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
