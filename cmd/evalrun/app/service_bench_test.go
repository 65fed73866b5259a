package app

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"evalrun/harness"
	"evalrun/pipeline"
)

// The service and the plainest client of it are processes of their own, as the
// command is: the test's binary under other names.
var serviceCommands = map[string]func(){
	"bench-service": serveBench,
	"bench-loop":    loopBench,
}

// benchReply is what the service answers: 0.7 KB.
var benchReply = []byte(`{"id":"chatcmpl-0123456789abcdef","object":"chat.completion","created":1764600000,"model":"desk-1","system_fingerprint":"fp_0123456789",` +
	`"choices":[{"index":0,"finish_reason":"stop","logprobs":null,"message":{"role":"assistant","content":"` +
	strings.Repeat("The ticket is read twice. ", 12) + `<team>\na\n</team>","refusal":null}}],` +
	`"usage":{"prompt_tokens":312,"completion_tokens":74,"total_tokens":386,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}`)

// serveBench answers each request after a time, and says on its first line where.
func serveBench() {
	latency, err := time.ParseDuration(os.Args[1])
	if err != nil {
		panic(err)
	}
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println("http://" + at.Addr().String())
	panic(http.Serve(at, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if latency > 0 {
			time.Sleep(latency)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(benchReply)
	})))
}

// loopBench asks a service so many times, so many at once, and prints the seconds
// that took: net/http's client with enough connections, and a struct of what is
// read.
func loopBench() {
	url, calls, inFlight := os.Args[1], number(os.Args[2]), number(os.Args[3])
	body := []byte(`{"model":"desk","messages":[{"role":"user","content":"` + strings.Repeat("x", number(os.Args[4])) + `"}]}`)
	client := &http.Client{Transport: &http.Transport{
		MaxIdleConns: 4096, MaxIdleConnsPerHost: 4096, DisableCompression: true, ReadBufferSize: 16 << 10, WriteBufferSize: 16 << 10,
	}}
	ask := func() {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			panic(err)
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			panic(err)
		}
		var reply struct {
			Model   string `json:"model"`
			Choices []struct {
				Finish  string `json:"finish_reason"`
				Message struct {
					Content string `json:"content"`
				} `json:"message"`
			} `json:"choices"`
			Usage struct {
				Input  int64 `json:"prompt_tokens"`
				Output int64 `json:"completion_tokens"`
			} `json:"usage"`
		}
		if err := json.Unmarshal(data, &reply); err != nil || len(reply.Choices) != 1 {
			panic(fmt.Sprint(err, string(data)))
		}
	}
	began := time.Now()
	left := make(chan struct{}, calls)
	for range calls {
		left <- struct{}{}
	}
	close(left)
	var asking sync.WaitGroup
	for range inFlight {
		asking.Go(func() {
			for range left {
				ask()
			}
		})
	}
	asking.Wait()
	fmt.Println(time.Since(began).Seconds())
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// startService starts the service and returns its address.
func startService(b *testing.B, latency time.Duration) string {
	b.Helper()
	cmd := exec.Command("bench-service", latency.String())
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(url)
}

// loopSeconds is how long the plain client takes, with requests of that many bytes.
func loopSeconds(b *testing.B, url string, calls, inFlight, size int) float64 {
	b.Helper()
	out, err := exec.Command("bench-loop", url, strconv.Itoa(calls), strconv.Itoa(inFlight), strconv.Itoa(size)).CombinedOutput()
	if err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil {
		b.Fatal(err)
	}
	return seconds
}

// ticketSize makes requests of about 1.1 KB.
const ticketSize = 900

// serviceFiles writes a spec about n tickets and so many candidates, and returns
// its folder.
func serviceFiles(b *testing.B, url string, n, candidates int) string {
	b.Helper()
	dir := b.TempDir()
	p, err := pipeline.ParseProgram("plain.yaml", fmt.Appendf(nil, route, "Route the ticket."))
	if err != nil {
		b.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "log.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	log := bufio.NewWriter(f)
	text := strings.Repeat("The hinge of the left door squeaks. ", ticketSize/36)
	for i := range n {
		id := deskRow(i)
		fmt.Fprintf(log, `{"functai_call":2,"id":%q,"parent":null,"root":%q,"program":{"name":"route","kind":"ai","module":"desk","version":"v","interface":%q,"answer":"team"},`+
			`"started":"2026-01-02T03:04:05.%06dZ","content":true,"inputs":{"ticket":%q},"outputs":{"team":"a"},"error":null,"saw":[]}`+"\n", id, id, p.Interface(), i, text+strconv.Itoa(i))
		fmt.Fprintf(log, `{"functai_rating":1,"id":"0194235b-0000-7000-8001-%012d","call":%q,"at":"2026-01-02T04:00:00.000000Z","by":"ada","verdict":"right"}`+"\n", i, id)
	}
	if err := log.Flush(); err != nil {
		b.Fatal(err)
	}
	spec := fmt.Sprintf("version: 1\nname: desk\nrecords: log.jsonl\nprogram: desk:route\nreport: {formats: [json]}\n"+
		"models: {desk: {provider: openai, model: desk, base_url: %q, price: {input: 1, output: 2}}}\ncandidates:\n", url)
	for i := range candidates {
		write(b, filepath.Join(dir, fmt.Sprintf("p%d.yaml", i)), fmt.Sprintf(route, "Route the ticket"+strings.Repeat(" tersely", i)+"."))
		spec += fmt.Sprintf("  - {name: c%d, program: p%d.yaml, model: desk}\n", i, i)
	}
	write(b, filepath.Join(dir, "evalrun.yaml"), spec)
	return dir
}

// took is what a run of the command took.
type took struct {
	seconds float64 // the whole process
	asking  float64 // of it, from the first request until the results are written
	cpu     float64 // seconds
	memory  float64 // most resident, MB
	median  float64 // latency of the first candidate, seconds
}

// runService runs the spec in a folder.
func runService(b *testing.B, dir string, inFlight int, args ...string) took {
	b.Helper()
	cmd, out := evalrun(dir, append([]string{"run", "evalrun.yaml", "--quiet", "--concurrency", strconv.Itoa(inFlight)}, args...)...)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	most := watchMemory(cmd.Process.Pid)
	if err := cmd.Wait(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	t := took{
		seconds: time.Since(began).Seconds(), cpu: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(),
		memory: float64(most()) / 1024,
	}
	runs, err := filepath.Glob(filepath.Join(dir, "runs", "*"))
	if err != nil || len(runs) == 0 {
		b.Fatal("no run", err)
	}
	run, err := harness.OpenRun(runs[len(runs)-1])
	if err != nil {
		b.Fatal(err)
	}
	sittings, err := run.Sittings()
	if err != nil {
		b.Fatal(err)
	}
	last := sittings[len(sittings)-1]
	t.asking = last.Ended.Sub(last.Started).Seconds()
	evaluations, err := run.Evaluations()
	if err != nil {
		b.Fatal(err)
	}
	t.median = evaluations[0].Candidates[0].Measured.Latency.Median
	return t
}

// watchMemory returns what tells the most memory, in kB, that a process had
// resident. It is looked up now and then: what the system says once the process has
// ended counts the one that started it as well.
func watchMemory(pid int) (most func() int) {
	stop, done := make(chan struct{}), make(chan struct{})
	peak := 0
	go func() {
		defer close(done)
		for {
			if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)); err == nil {
				for line := range strings.Lines(string(text)) {
					if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
						n, _ := strconv.Atoi(strings.Fields(rest)[0])
						peak = max(peak, n)
					}
				}
			}
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() int { close(stop); <-done; return peak }
}

// The command against a service that answers at once or after 50 ms, beside the
// plainest client of it: calls a second of both, by turns in one run, and the best of
// each. A latency bounds the calls a second as well.
func BenchmarkService(b *testing.B) {
	for _, c := range []struct {
		latency  time.Duration
		inFlight int
		calls    int
	}{{0, 32, 10_000}, {0, 128, 10_000}, {50 * time.Millisecond, 32, 5000}, {50 * time.Millisecond, 128, 20_000}} {
		b.Run(fmt.Sprintf("latency=%s/inflight=%d", c.latency, c.inFlight), func(b *testing.B) {
			url := startService(b, c.latency)
			dir := serviceFiles(b, url, c.calls, 1)
			var best took
			loop := 0.0
			for b.Loop() {
				if s := loopSeconds(b, url, c.calls, c.inFlight, ticketSize+200); loop == 0 || s < loop {
					loop = s
				}
				if t := runService(b, dir, c.inFlight, "--fresh"); best.seconds == 0 || t.seconds < best.seconds {
					best = t
				}
			}
			n := float64(c.calls)
			b.ReportMetric(n/loop, "loop-calls/s")
			b.ReportMetric(n/best.asking, "calls/s")
			b.ReportMetric(100*loop/best.asking, "%-of-loop")
			if c.latency > 0 {
				bound := float64(c.inFlight) / c.latency.Seconds()
				b.ReportMetric(100*n/loop/bound, "loop-%-of-bound")
				b.ReportMetric(100*n/best.asking/bound, "%-of-bound")
				b.ReportMetric(best.median*1e3, "median-ms")
			}
			best.report(b, n)
		})
	}
}

func (t *took) report(b *testing.B, calls float64) {
	b.ReportMetric(t.seconds, "s/run")
	b.ReportMetric(t.cpu*1e6/calls, "cpu-us/call")
	b.ReportMetric(t.memory, "MB")
	b.ReportMetric(0, "ns/op")
}

// A run with many rows, whose memory is to stay within bounds, and one that is
// answered from the journal.
func BenchmarkServiceRows(b *testing.B) {
	for _, c := range []struct {
		rows, candidates int
		again            bool
	}{{1000, 1, true}, {10_000, 2, false}, {100_000, 2, false}} {
		b.Run(fmt.Sprintf("rows=%d/candidates=%d/again=%v", c.rows, c.candidates, c.again), func(b *testing.B) {
			if c.rows > 10_000 && testing.Short() {
				b.Skip("it takes half a minute")
			}
			url := startService(b, 0)
			dir := serviceFiles(b, url, c.rows, c.candidates)
			var best took
			how := []string{"--fresh"}
			if c.again {
				runService(b, dir, 32)
				how = nil
			}
			for b.Loop() {
				if t := runService(b, dir, 32, how...); best.seconds == 0 || t.seconds < best.seconds {
					best = t
				}
			}
			best.report(b, float64(c.rows*c.candidates))
		})
	}
}
