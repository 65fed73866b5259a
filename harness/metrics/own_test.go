package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// The test binary is the command under test: with this word as its first argument
// it plays one.
const role = "play"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == role {
		switch os.Args[2] {
		case "echo": // its input, as feedback
			in, _ := io.ReadAll(os.Stdin)
			v, _ := datasets.ValueOf(map[string]any{"value": 0.5, "feedback": string(in)})
			fmt.Println(v.JSON())
		case "count": // how many of it run
			mine := filepath.Join(os.Args[3], fmt.Sprint(os.Getpid()))
			_ = os.WriteFile(mine, nil, 0o600)
			time.Sleep(20 * time.Millisecond)
			others, _ := os.ReadDir(os.Args[3])
			_ = os.Remove(mine)
			fmt.Println(len(others))
		case "crash":
			fmt.Fprintln(os.Stderr, "the reason")
			os.Exit(3)
		case "hang":
			time.Sleep(time.Hour)
		default: // says the word
			fmt.Print(os.Args[2])
		}
		return
	}
	os.Exit(m.Run())
}

// Rows at work may be many; processes are as many as there are CPUs, and a process
// that waits for its turn is not late.
func TestCommandsTakeTurns(t *testing.T) {
	dir := t.TempDir()
	m := mustMake(t, fmt.Sprintf("command: {argv: [%q, %s, count, %q], timeout: 10s}", os.Args[0], role, dir), Options{AllowExec: true})
	n := 4 * cap(turns)
	most := make([]float64, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			s, err := m.Score(t.Context(), datasets.Row{ID: fmt.Sprint(i)}, &pipeline.Call{})
			if err != nil {
				t.Error(err)
			}
			most[i] = s.Value
		})
	}
	all.Wait()
	if got := slices.Max(most); got < 1 || got > float64(cap(turns)) {
		t.Errorf("%v processes at once; want at most %d", got, cap(turns))
	}

	// While every place is taken, a run that ends does not wait.
	for range cap(turns) {
		turns <- struct{}{}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("it is over"))
	_, err := m.Score(ctx, datasets.Row{ID: "late"}, &pipeline.Call{})
	for range cap(turns) {
		<-turns
	}
	if err == nil || !strings.Contains(err.Error(), "it is over") {
		t.Errorf("error %v", err)
	}
}

func TestCommand(t *testing.T) {
	row := datasets.Row{
		ID: "r1", Inputs: datasets.Values{"q": datasets.Text("?")}, Labels: datasets.Values{"result": datasets.Int(1)},
		Recorded: datasets.Values{"result": datasets.Int(2)},
	}
	n := int64(7)
	call := &pipeline.Call{
		ID: "c", Seconds: 1.5, Outputs: datasets.Values{"result": datasets.Int(3)},
		Exchanges: []pipeline.Exchange{{Reply: &pipeline.Reply{Usage: pipeline.Usage{Output: &n}}}},
	}
	run := func(part, options string) (string, string) {
		m := mustMake(t, fmt.Sprintf("command: {argv: [%q, %s, %q]%s}", os.Args[0], role, part, options), Options{AllowExec: true})
		s, err := m.Score(t.Context(), row, call)
		if err != nil {
			return err.Error(), ""
		}
		if s.Missing != "" {
			return "missing: " + s.Missing, s.Feedback
		}
		return fmt.Sprint(s.Value), s.Feedback
	}
	got, told := run("echo", "")
	const want = `{"call":{"answer":3,"error":null,"outputs":{"result":3},"seconds":1.5,"steps":[],"usage":{"output_tokens":7}},` +
		`"row":{"id":"r1","inputs":{"q":"?"},"labels":{"result":1},"meta":{},"recorded":{"result":2}}}` + "\n"
	if got != "0.5" || told != want {
		t.Errorf("it scores %s and was told %s; want %s", got, told, want)
	}
	for _, c := range []struct{ part, options, want string }{
		{"0.25", "", "0.25"},
		{" true\n", "", "1"},
		{"null", "", "missing: the metric gave no value"},
		{`{"missing":"no idea"}`, "", "missing: no idea"},
		{"crash", "", "ended: exit status 3; its standard error:\nthe reason"},
		{"hang", ", timeout: 50ms", "took longer than 50ms"},
		{"good", "", `wrote "good", which is no score`},
		{"", "", `wrote "", which is no score`},
		{"NaN", "", `wrote "NaN", which is no score`},
		{"1 2", "", "which is no score"},
		{`"1"`, "", `a score is a number, a boolean, null, or an object with value, feedback and missing, not "1"`},
	} {
		if got, _ := run(c.part, c.options); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s; want %s", c.part, got, c.want)
		}
	}
}

func TestStarlark(t *testing.T) {
	dir := t.TempDir()
	for body, want := range map[string]string{
		`return len(call["answer"]) / len(row["labels"]["result"])`: "0.5 ",
		`return call["answer"] in row["labels"]["result"]`:          "1 ",
		`return {"value": 2, "feedback": "so " + row["id"]}`:        "2 so r1",
		`return None`:                         "missing: the metric gave no value",
		`return {"missing": "who knows"}`:     "missing: who knows",
		`return {"valu": 1}`:                  `m.star:1:1: a score has no "valu"; did you mean "value"?`,
		`return {"value": 1, "missing": "x"}`: "m.star:1:1: a score has a value or says why it is missing, not both",
		`return "1"`:                          "m.star:1:1: a score is a number",
		`return row["nosuch"]`:                `m.star:2:15: in score: key "nosuch" not in dict`,
		"for i in range(10000000):\n        for j in range(1000):\n            pass": "in score: stopped after 20000000 steps",
		`return (call["seconds"], call["usage"], call["error"])`:                     "m.star:1:1: a score is a number, a boolean, null, or an object with value, feedback and missing, not [null,null,null]",
	} {
		if err := os.WriteFile(filepath.Join(dir, "m.star"), []byte("def score(row, call):\n    "+body+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		m := mustMake(t, `starlark: {file: m.star}`, Options{Dir: dir})
		s, err := m.Score(t.Context(), datasets.Row{ID: "r1", Labels: datasets.Values{"result": datasets.Text("abcd")}},
			&pipeline.Call{Outputs: datasets.Values{"result": datasets.Text("ab")}})
		got := fmt.Sprint(s.Value) + " " + s.Feedback
		if s.Missing != "" {
			got = "missing: " + s.Missing
		}
		if err != nil {
			got = strings.TrimPrefix(err.Error(), dir+string(filepath.Separator))
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s; want %s", body, got, want)
		}
	}
}

func FuzzScoreOf(f *testing.F) {
	for _, s := range []string{"1", "true", "null", `{"value":1,"feedback":"x"}`, `{"missing":"x"}`, `{"value":null}`, `{"value":{}}`, `[]`, `{"vlue":1}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := datasets.ParseValue(text)
		if err != nil {
			return
		}
		s, err := scoreOf(v)
		if err == nil && (s.Missing != "" && s.Value != 0 || s.Value-s.Value != 0) {
			t.Errorf("%s is the score %+v", text, s)
		}
		if _, isText := v.AsText(); isText && err == nil {
			t.Errorf("the text %s is a score", text)
		}
	})
}
