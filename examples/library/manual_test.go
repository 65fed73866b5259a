package library

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"evalrun/harness"
	"evalrun/pipeline"
	"evalrun/replay/conversations"
)

// Every Go example of the manual is in this package, and its YAML is the program.
func TestManual(t *testing.T) {
	manual, err := os.ReadFile("../../docs/go.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("library_test.go")
	if err != nil {
		t.Fatal(err)
	}
	main, err := os.ReadFile("../custom/main.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, block := range strings.Split(string(manual), "\n```go\n")[1:] {
		text, _, _ := strings.Cut(block, "\n```\n")
		n++
		if !strings.Contains(string(code), text+"\n") && !strings.Contains(string(main), text+"\n") {
			t.Errorf("no test has the manual's example:\n%s", text)
		}
	}
	if n != 10 {
		t.Errorf("the manual has %d examples in Go, not 10", n)
	}
	_, yaml, _ := strings.Cut(string(manual), "\n```yaml\n")
	if yaml, _, _ = strings.Cut(yaml, "\n```\n"); strings.TrimSpace(shopYAML) != yaml {
		t.Errorf("the manual's program is another one:\n%s", yaml)
	}
}

func parsed() *pipeline.Program {
	p, err := pipeline.ParseProgram("shop.yaml", []byte(shopYAML))
	if err != nil {
		panic(err)
	}
	return p
}

// folder is one for an example; it is taken away afterwards.
func folder() (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "library")
	if err != nil {
		panic(err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }
}

func Example_ask() {
	if err := ask(context.Background(), newCaller(clerk{})); err != nil {
		panic(err)
	}
	// Output: The shop says: 3 2
}

func Example_converse() {
	dir, remove := folder()
	defer remove()
	if err := converse(context.Background(), newCaller(clerk{}), parsed(), dir); err != nil {
		panic(err)
	}
	// Output: 3 turns, 2 on the branch; done
}

func Example_waits() {
	dir, remove := folder()
	defer remove()
	store, err := conversations.Open(dir)
	if err != nil {
		panic(err)
	}
	if err := waits(context.Background(), newCaller(clerk{}), parsed(), store); err != nil {
		panic(err)
	}
	// Output:
	// waiting
	// approval asks about order {"item":"tea"}
	// done The shop says: ordered
}

// The built-in plugins around a caller are around its calls.
func TestAround(t *testing.T) {
	if _, err := around([]byte("short")); err == nil {
		t.Error("a short key hides nothing, and nobody says so")
	}
	caller, err := around([]byte("keep this one to yourself"))
	if err != nil {
		t.Fatal(err)
	}
	call, err := caller.Ask(t.Context(), parsed(), pipeline.Ask{Inputs: message("Is there tea? ann@mail.example asks")})
	if err != nil || call.Failure != nil {
		t.Fatal(err, call.Failure)
	}
	sent := string(call.Exchanges[0].Request.Canonical("small"))
	if strings.Contains(sent, "ann@mail.example") || !strings.Contains(sent, "Answer in one sentence.") {
		t.Errorf("sent %s", sent)
	}
}

// A run from Go answers tools as its policies say, and leaves a report.
func TestRun(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log.jsonl")
	call := fmt.Sprintf(`{"functai_call":2,"id":"0194235b-0000-7000-8000-000000000001","parent":null,"root":"0194235b-0000-7000-8000-000000000001",`+
		`"program":{"name":"shop","interface":%q,"answer":"reply"},"started":"2026-01-02T03:04:01.000001Z","content":true,`+
		`"inputs":{"message":"Is there tea?"},"outputs":{"reply":"Three."},"error":null,"saw":[],"steps":[`+
		`{"kind":"model","outputs":{"calls":[{"id":"c1","name":"stock","input":{"item":"tea"}}]}},`+
		`{"kind":"tool","id":"c1","name":"stock","output":"9"},{"kind":"model","outputs":{"reply":"Three."}}]}`, parsed().Interface())
	rating := `{"functai_rating":1,"id":"0194235b-0000-7000-8000-000000000011","call":"0194235b-0000-7000-8000-000000000001","at":"2026-01-02T04:00:00.000000Z","by":"ada","verdict":"right"}`
	if err := os.WriteFile(log, []byte(call+"\n"+rating+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := run(t.Context(), parsed(), log, root); err != nil {
		t.Fatal(err)
	}
	list, err := filepath.Glob(filepath.Join(root, "*_kind_*"))
	if err != nil || len(list) != 1 {
		t.Fatalf("there are %q, %v", list, err)
	}
	done, err := harness.OpenRun(list[0])
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for r, err := range done.Results() {
		if err != nil {
			t.Fatal(err)
		}
		got[r.Candidate] = fmt.Sprintf("%s %s %v", r.Answer, r.Tools[0].Match, *r.Scores[0].Value)
	}
	if want := map[string]string{"today": "The shop says: 9 exact 1", "kind": "The shop says: 3 live 1"}; !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, name := range []string{"report.json", "report.html"} {
		if _, err := os.Stat(filepath.Join(list[0], name)); err != nil {
			t.Error(err)
		}
	}
}

// A command of one's own is built offline, in a module as the manual shows it.
func TestModule(t *testing.T) {
	manual, err := os.ReadFile("../../docs/go.md")
	if err != nil {
		t.Fatal(err)
	}
	_, module, _ := strings.Cut(string(manual), "\n```text\n")
	module, _, _ = strings.Cut(module, "```\n")
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	main, err := os.ReadFile("../custom/main.go")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": strings.Replace(module, "../evalrun", root, 1), "main.go": string(main)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, argv := range [][]string{{"go", "build", "-mod=mod", "-o", "mine", "."}, {"./mine", "version"}} {
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
		}
	}
}
