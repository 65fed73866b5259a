package app

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"evalrun/datasets"
	"evalrun/replay"
)

const gsm8k = "../../../../shared/data/gsm8k/solutions.jsonl.gz"

// afterA reads an answer as the data set's own rule does: the number after "A:"
// that ends the text, without commas and dollar signs.
var afterA = regexp.MustCompile(`A:\s*(\S+)\s*$`)

func numberOf(text string) datasets.Value {
	m := afterA.FindStringSubmatch(text)
	if m == nil {
		return datasets.Value{}
	}
	v, err := datasets.ParseValue(strings.TrimSuffix(strings.NewReplacer(",", "", "$", "").Replace(m[1]), "."))
	if err != nil || v.Kind() != '0' {
		return datasets.Value{}
	}
	return v
}

// TestGSM8K makes the recorded solutions of four systems the rated calls of four
// programs, and compares their recorded lanes question by question.
func TestGSM8K(t *testing.T) {
	f, err := os.Open(gsm8k)
	if err != nil {
		t.Skip("the full data set is not beside the repository")
	}
	defer f.Close()
	text, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var expected struct {
		GSM8K map[string]int `json:"gsm8k"`
	}
	b, err := os.ReadFile(filepath.Join(filepath.Dir(gsm8k), "../expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &expected); err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	var log []byte
	dec := jsontext.NewDecoder(text)
	systems := []string{}
	for n := 0; ; n++ {
		var row struct {
			ID        string `json:"id"`
			Question  string `json:"question"`
			Answer    string `json:"answer"`
			Solutions []struct {
				Model   string `json:"model"`
				Text    string `json:"text"`
				Correct bool   `json:"is_correct"`
			} `json:"solutions"`
		}
		if err := json.UnmarshalDecode(dec, &row); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		right := numberOf(row.Answer)
		if right.IsZero() {
			t.Fatalf("%s: no right answer", row.ID)
		}
		for s, solution := range row.Solutions {
			if n == 0 {
				systems = append(systems, solution.Model)
			}
			at := time.Date(2021, 10, 27, 0, 0, 0, (n*4+s)*1000, time.UTC)
			whole := true
			outputs := datasets.Values{"solution": datasets.Text(solution.Text)}
			// A solution without a readable number has no answer: it is null, which is wrong.
			outputs["answer"] = datasets.Null
			if v := numberOf(solution.Text); !v.IsZero() {
				outputs["answer"] = v
			}
			id := fmt.Sprintf("%s/%s", row.ID, solution.Model)
			call := replay.Record{
				Format: 2, ID: id, Root: id, Started: at, Content: &whole, Model: solution.Model, Saw: []replay.Saw{},
				Program: replay.Program{Name: solution.Model, Kind: "ai", Module: "gsm8k", Interface: "math", Answer: "answer"},
				Inputs:  datasets.Values{"question": datasets.Text(row.Question)}.Object(), Outputs: outputs.Object(),
			}
			rating := replay.Rating{Format: 1, ID: "r/" + id, Call: id, At: at, By: "GSM8K", Verdict: "right"}
			if !solution.Correct {
				rating.Verdict, rating.Answer = "wrong", right
			}
			log = append(call.AppendJSON(log), '\n')
			log = append(rating.AppendJSON(log), '\n')
		}
	}
	write(t, filepath.Join(dir, "calls.jsonl"), string(log))
	if code, out := runMain(t, dir, "import", "calls.jsonl", "-o", "records"); code != 0 {
		t.Fatal(out)
	}
	spec := "version: 1\nname: gsm8k\nrecords: records\nprogram: gsm8k:" + systems[0] + "\nrows: {pair: question}\ncandidates:\n"
	for _, s := range systems {
		spec += fmt.Sprintf("  - {name: %s, recorded: true, program: 'gsm8k:%s'}\n", s, s)
	}
	write(t, filepath.Join(dir, "evalrun.yaml"), spec)
	code, out := runMain(t, dir, "run", "evalrun.yaml", "--json", "--quiet")
	if code != 0 {
		t.Fatal(out)
	}
	var report struct {
		Evaluations []struct {
			Candidates []struct {
				Name    string `json:"name"`
				N       int    `json:"n"`
				Metrics map[string]struct {
					Mean float64 `json:"mean"`
				} `json:"metrics"`
			} `json:"candidates"`
			Comparisons []struct {
				N int `json:"n"`
			} `json:"comparisons"`
		} `json:"evaluations"`
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ev := report.Evaluations[0]
	if len(ev.Candidates) != 4 || len(ev.Comparisons) != 3 {
		t.Fatalf("%d candidates, %d comparisons", len(ev.Candidates), len(ev.Comparisons))
	}
	for _, c := range ev.Candidates {
		n := expected.GSM8K["n"]
		if want := float64(expected.GSM8K[c.Name]) / float64(n); c.N != n || c.Metrics["exact_match"].Mean != want {
			t.Errorf("%s: %v over %d rows, want %d of %d", c.Name, c.Metrics["exact_match"].Mean, c.N, expected.GSM8K[c.Name], n)
		}
	}
	for _, c := range ev.Comparisons {
		if c.N != expected.GSM8K["n"] {
			t.Errorf("%d questions are paired, want %d", c.N, expected.GSM8K["n"])
		}
	}

	// A field that does not tell rows apart pairs nothing.
	write(t, filepath.Join(dir, "twice.yaml"), strings.Replace(spec, "pair: question", "pair: module", 1))
	if code, out := runMain(t, dir, "run", "twice.yaml"); code != ExitData || !strings.Contains(out, "pair by a field that tells rows apart") {
		t.Errorf("pairing by module: exit %d\n%s", code, out)
	}
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// runMain runs the command in a folder. It returns standard output, or on
// failure what it said.
func runMain(t *testing.T, dir string, args ...string) (int, string) {
	t.Helper()
	t.Chdir(dir)
	var out, messages bytes.Buffer
	code := Main(t.Context(), append([]string{"evalrun"}, args...), Stdio{In: strings.NewReader(""), Out: &out, Err: &messages})
	if code != 0 {
		return code, out.String() + messages.String()
	}
	return code, out.String()
}
