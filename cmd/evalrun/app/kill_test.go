package app

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/pipeline"
	"evalrun/reports"
)

const route = `
name: route
module: desk
description: %s
inputs: [{name: ticket, shape: {type: string}}]
outputs: [{name: team, shape: {enum: [b, a]}}]
`

// desk is a service that answers by what it is asked, counts that, and fails some
// requests the first time.
type desk struct {
	*httptest.Server

	mu      sync.Mutex
	asked   map[string]int // requests, by their content
	answers int            // of all
	watch   func(answers int)
}

func newDesk(t testing.TB) *desk {
	d := &desk{asked: map[string]int{}}
	d.Server = httptest.NewServer(http.HandlerFunc(d.serve))
	t.Cleanup(d.Close)
	return d
}

// content is what tells requests apart: the candidate's instruction and the ticket.
func content(instruction, ticket string) string { return instruction + " / " + ticket }

func (d *desk) serve(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []struct {
			Content string `json:"content"`
		} `json:"messages"`
	}
	if err := json.UnmarshalRead(r.Body, &body); err != nil || len(body.Messages) != 2 {
		http.Error(w, "not what a desk is asked", http.StatusBadRequest)
		return
	}
	instruction := "plain"
	if strings.Contains(body.Messages[0].Content, "tersely") {
		instruction = "tersely"
	}
	ticket := strings.Split(body.Messages[1].Content, "\n")[1]
	key := content(instruction, ticket)
	h := fnv.New32a()
	h.Write([]byte(key))
	n := h.Sum32()

	d.mu.Lock()
	d.asked[key]++
	first := d.asked[key] == 1
	d.mu.Unlock()
	time.Sleep(time.Duration(n%7) * time.Millisecond)
	if first {
		switch n % 29 {
		case 0:
			http.Error(w, `{"error":{"message":"slow down"}}`, http.StatusTooManyRequests)
			return
		case 1:
			http.Error(w, `{"error":{"message":"try again"}}`, http.StatusInternalServerError)
			return
		case 2:
			if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_ = c.Close()
			}
			return
		}
	}
	fmt.Fprintf(w, `{"model":"desk-1","choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"<team>\n%s\n</team>"}}],`+
		`"usage":{"prompt_tokens":%d,"completion_tokens":3,"total_tokens":%d}}`, []string{"a", "b"}[n%2], len(key), len(key)+3)
	d.mu.Lock()
	d.answers++
	if d.watch != nil {
		d.watch(d.answers)
	}
	d.mu.Unlock()
}

// forget begins to count anew.
func (d *desk) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = map[string]int{}
	d.answers = 0
}

func (d *desk) counts() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	counts := make(map[string]int, len(d.asked))
	for key, n := range d.asked {
		counts[key] = n
	}
	return counts
}

// deskFiles writes a spec about n tickets, two candidates and their programs, and
// returns the folder.
func deskFiles(t testing.TB, url string, n int, more string) string {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "plain.yaml"), fmt.Sprintf(route, "Route the ticket."))
	write(t, filepath.Join(dir, "tersely.yaml"), fmt.Sprintf(route, "Route the ticket tersely."))
	p, err := pipeline.ParseProgram("plain.yaml", fmt.Appendf(nil, route, "Route the ticket."))
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	for i := range n {
		id := deskRow(i)
		fmt.Fprintf(&log, `{"functai_call":2,"id":%q,"parent":null,"root":%q,"program":{"name":"route","kind":"ai","module":"desk","version":"v","interface":%q,"answer":"team"},`+
			`"started":"2026-01-02T03:04:05.%06dZ","content":true,"inputs":{"ticket":%q},"outputs":{"team":"a"},"error":null,"saw":[]}`+"\n", id, id, p.Interface(), i, deskTicket(i))
		fmt.Fprintf(&log, `{"functai_rating":1,"id":"0194235b-0000-7000-8001-%012d","call":%q,"at":"2026-01-02T04:00:00.000000Z","by":"ada","verdict":"right"}`+"\n", i, id)
	}
	write(t, filepath.Join(dir, "log.jsonl"), log.String())
	write(t, filepath.Join(dir, "evalrun.yaml"), fmt.Sprintf(`version: 1
name: desk
records: log.jsonl
program: desk:route
models: {desk: {provider: openai, model: desk, base_url: %q, price: {input: 1, output: 2}}}
candidates:
  - {name: plain, program: plain.yaml, model: desk}
  - {name: tersely, program: tersely.yaml, model: desk}
%s`, url, more))
	return dir
}

func deskRow(i int) string    { return fmt.Sprintf("0194235b-0000-7000-8000-%012d", i) }
func deskTicket(i int) string { return fmt.Sprintf("ticket %d is about a hinge", i) }

// evalrun is the command as a process of its own, in a folder.
func evalrun(dir string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.Command("evalrun", args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

// A run that is killed at any moment goes on with the same command: what its
// journal has is not asked again, and its report is that of an undisturbed run.
func TestKilled(t *testing.T) {
	kills := 5
	if os.Getenv("EVALRUN_E2E") != "" {
		kills = 100
	}
	const rows = 40
	service := newDesk(t)
	for _, workers := range []int{1, 16} {
		t.Run(fmt.Sprintf("workers=%d", workers), func(t *testing.T) {
			dir := deskFiles(t, service.URL, rows, "")
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			k := &killer{t: t, service: service, dir: dir, workers: workers, chance: rand.New(rand.NewPCG(seed, 0))}
			service.forget()
			undisturbed := k.run("undisturbed", 0)
			for round := 0; k.kills < kills; round++ {
				service.forget()
				k.same(undisturbed, k.run(fmt.Sprintf("runs%d", round), kills))
			}
		})
	}
}

// killer carries out runs and kills them.
type killer struct {
	t       *testing.T
	service *desk
	dir     string
	workers int
	chance  *rand.Rand
	kills   int // so far
}

// run carries out one run under a root, killing it until there were so many kills
// in all, and returns its folder.
func (k *killer) run(root string, kills int) string {
	k.t.Helper()
	killed, repeated := 0, 0
	for {
		known, before := k.known(root), k.service.counts()
		cmd, out := evalrun(k.dir, "run", "evalrun.yaml", "--runs", root, "--concurrency", strconv.Itoa(k.workers))
		if err := k.process(cmd, k.kills < kills); err != nil && !strings.Contains(err.Error(), "killed") {
			k.t.Fatalf("%v\n%s", err, out)
		}
		again := 0
		for key, n := range k.service.counts() {
			if n == before[key] {
				continue
			}
			if known[key] {
				k.t.Errorf("%s is in the journal and was asked again", key)
			}
			if before[key] > 0 {
				again++
			}
		}
		// One that was in flight at a kill may be asked again only after the next.
		if repeated += again; repeated > killed*k.workers {
			k.t.Errorf("%d requests of before were asked again after %d kills, with %d in flight at most", repeated, killed, k.workers)
		}
		if cmd.ProcessState.Success() {
			break
		}
		killed++
		k.kills++
	}
	run, err := filepath.Glob(filepath.Join(k.dir, root, "*_desk_*"))
	if err != nil || len(run) != 1 {
		k.t.Fatalf("the runs are %v (%v), want one", run, err)
	}
	var report struct {
		Measured struct {
			InDoubt int `json:"in_doubt"`
		} `json:"measured"`
	}
	if err := json.Unmarshal(read(k.t, filepath.Join(run[0], reports.JSONFile)), &report); err != nil {
		k.t.Fatal(err)
	}
	if n := report.Measured.InDoubt; n > killed*k.workers || killed == 0 && n != 0 {
		k.t.Errorf("%d requests are in doubt after %d kills with %d in flight at most", n, killed, k.workers)
	}
	k.t.Logf("%s: %d kills, %d requests repeated, %d in doubt", root, killed, repeated, report.Measured.InDoubt)
	return run[0]
}

// process carries out a process and, when it is to be, kills it: when the service
// has given some more answers, or after some time, whichever is first.
func (k *killer) process(cmd *exec.Cmd, kill bool) error {
	if !kill {
		return cmd.Run()
	}
	moment := make(chan struct{}, 1)
	soon := 1 + k.chance.IntN(30)
	pause := time.Duration(k.chance.IntN(3000)) * time.Microsecond
	k.service.mu.Lock()
	until := k.service.answers + soon
	k.service.watch = func(answers int) {
		if answers == until {
			select {
			case moment <- struct{}{}:
			default: // the time was up first, and another process is answered now
			}
		}
	}
	k.service.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	after := time.Duration(k.chance.IntN(2000)) * time.Millisecond
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		return err
	case <-moment:
		time.Sleep(pause)
	case <-time.After(after):
	}
	_ = cmd.Process.Kill() // it may have ended
	return <-done
}

// known are the contents of the requests whose answers are in the journal.
func (k *killer) known(root string) map[string]bool {
	segments, err := filepath.Glob(filepath.Join(k.dir, root, "*", harness.JournalDir, "*.journal"))
	if err != nil {
		k.t.Fatal(err)
	}
	known := map[string]bool{}
	for _, segment := range segments {
		b := read(k.t, segment)
		_, b, _ = bytes.Cut(b, []byte("\n"))
		for len(b) >= 8 {
			length := int(binary.LittleEndian.Uint32(b))
			if len(b) < 8+length {
				break
			}
			var entry struct {
				Site string `json:"site"`
				Hash string `json:"hash"`
				Lost bool   `json:"lost"`
			}
			if json.Unmarshal(b[8:8+length], &entry) == nil && entry.Hash != "" && !entry.Lost {
				var candidate, row string
				if _, err := fmt.Sscanf(entry.Site, "exchange %q %q", &candidate, &row); err != nil {
					k.t.Fatalf("%s: %v", entry.Site, err)
				}
				i, err := strconv.Atoi(strings.TrimLeft(row[len(row)-12:len(row)-1], "0") + row[len(row)-1:])
				if err != nil {
					k.t.Fatal(err)
				}
				known[content(candidate, deskTicket(i))] = true
			}
			b = b[8+length:]
		}
	}
	return known
}

// same compares what two runs of one question found, but for what is measured.
func (k *killer) same(want, got string) {
	k.t.Helper()
	if a, b := unmeasured(k.t, want), unmeasured(k.t, got); a != b {
		k.t.Errorf("the report that went on is\n%s\nwant\n%s", b, a)
	}
	if diff := cmp.Diff(results(k.t, want), results(k.t, got), cmpopts.IgnoreUnexported(harness.Result{}),
		cmpopts.IgnoreFields(harness.Result{}, "Seconds", "Latency", "Waited", "Retries", "Resumed", "Call"),
		cmp.Comparer(func(a, b datasets.Value) bool { return a.JSON() == b.JSON() })); diff != "" {
		k.t.Errorf("results (-undisturbed +gone on):\n%s", diff)
	}
	calls := bytes.Count(read(k.t, filepath.Join(got, harness.CallsFile)), []byte("\n"))
	if n := len(results(k.t, got)); calls != n {
		k.t.Errorf("%d calls are recorded of %d", calls, n)
	}
}

// unmeasured is a run's report without what is measured.
func unmeasured(t testing.TB, run string) string {
	vs := datasets.ValuesOf(datasets.RawValue(string(read(t, filepath.Join(run, reports.JSONFile)))))
	if vs["measured"].IsZero() {
		t.Fatalf("%s: the report has nothing measured", run)
	}
	delete(vs, "measured")
	return vs.Object().JSON()
}

func results(t testing.TB, dir string) (list []harness.Result) {
	r, err := harness.OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	for res, err := range r.Results() {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, res)
	}
	return list
}

func read(t testing.TB, name string) []byte {
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
