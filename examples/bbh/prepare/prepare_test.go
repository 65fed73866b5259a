package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"evalrun/cmd/evalrun/app"
)

// counts are what a task must come to, as computed by others from the same replies.
type counts struct {
	N          int     `json:"n"`
	Direct     int     `json:"direct_correct"`
	Cot        int     `json:"cot_correct"`
	DirectOnly int     `json:"direct_only"`
	CotOnly    int     `json:"cot_only"`
	Accuracy   float64 `json:"authors_accuracy_direct"` // percent, as published
	CotPercent float64 `json:"authors_accuracy_cot"`
}

// report is the part of report.json that is looked at.
type report struct {
	Evaluations []struct {
		Name       string `json:"name"`
		Candidates []struct {
			Name    string `json:"name"`
			N       int    `json:"n"`
			Metrics map[string]struct {
				Mean float64 `json:"mean"`
			} `json:"metrics"`
		} `json:"candidates"`
		Comparisons []struct {
			N      int `json:"n"`
			Better int `json:"better"`
			Worse  int `json:"worse"`
			Same   int `json:"same"`
		} `json:"comparisons"`
	} `json:"evaluations"`
}

func readJSON(t *testing.T, file string, v any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// run runs a spec and returns its report.
func run(t *testing.T, spec string) report {
	t.Helper()
	runs := t.TempDir()
	var out, messages bytes.Buffer
	if code := app.Main(context.Background(), []string{"evalrun", "run", spec, "--runs", runs}, app.Stdio{In: strings.NewReader(""), Out: &out, Err: &messages}); code != 0 {
		t.Fatalf("exit %d\n%s%s", code, &out, &messages)
	}
	found, err := filepath.Glob(filepath.Join(runs, "*", "report.json"))
	if err != nil || len(found) != 1 {
		t.Fatalf("reports %v, %v", found, err)
	}
	var r report
	readJSON(t, found[0], &r)
	return r
}

func check(t *testing.T, r report, want map[string]counts) {
	t.Helper()
	if len(r.Evaluations) != len(want) {
		t.Errorf("%d evaluations, want %d", len(r.Evaluations), len(want))
	}
	for _, ev := range r.Evaluations {
		w := want[ev.Name]
		if w.N == 0 || len(ev.Candidates) != 2 || len(ev.Comparisons) != 1 {
			t.Errorf("%s: %d candidates, %d comparisons", ev.Name, len(ev.Candidates), len(ev.Comparisons))
			continue
		}
		for i, right := range []int{w.Direct, w.Cot} {
			c := ev.Candidates[i]
			if mean := float64(right) / float64(w.N); c.N != w.N || c.Metrics["exact_match"].Mean != mean {
				t.Errorf("%s, %s: %v over %d rows, want %d of %d", ev.Name, c.Name, c.Metrics["exact_match"].Mean, c.N, right, w.N)
			}
		}
		if got, published := fmt.Sprintf("%.1f %.1f", 100*ev.Candidates[0].Metrics["exact_match"].Mean, 100*ev.Candidates[1].Metrics["exact_match"].Mean),
			fmt.Sprintf("%.1f %.1f", w.Accuracy, w.CotPercent); got != published {
			t.Errorf("%s: %s, published %s", ev.Name, got, published)
		}
		if c := ev.Comparisons[0]; c.N != w.N || c.Better != w.CotOnly || c.Worse != w.DirectOnly || c.Same != w.N-w.CotOnly-w.DirectOnly {
			t.Errorf("%s: %d better, %d worse, %d same of %d; want %d, %d of %d", ev.Name, c.Better, c.Worse, c.Same, c.N, w.CotOnly, w.DirectOnly, w.N)
		}
	}
}

// TestExample runs the example as it is in the repository.
func TestExample(t *testing.T) {
	var want map[string]counts
	readJSON(t, "../data/expected.json", &want)
	if d := want["date_understanding"]; d.Direct != 159 || d.Cot != 218 || d.DirectOnly != 10 || d.CotOnly != 69 {
		t.Fatalf("expected.json was changed: %+v", d)
	}
	check(t, run(t, "../evalrun.yaml"), want)

	var size int64
	err := filepath.WalkDir("..", func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil || size > 1<<20 {
		t.Errorf("the example is %d bytes (%v); it is to stay under 1 MB", size, err)
	}
}

const fullData = "../../../../shared/data/bbh"

// TestAllTasks prepares and runs every task of the full data set.
func TestAllTasks(t *testing.T) {
	if _, err := os.Stat(fullData); err != nil {
		t.Skip("the full data set is not beside the repository")
	}
	var expected struct {
		BBH map[string]counts `json:"bbh"`
	}
	readJSON(t, fullData+"/../expected.json", &expected)
	tasks := slices.Sorted(maps.Keys(expected.BBH))
	if len(tasks) != 13 {
		t.Fatalf("%d tasks, want 13", len(tasks))
	}
	dir := t.TempDir()
	if err := Prepare(fullData, dir, tasks); err != nil {
		t.Fatal(err)
	}
	spec := "version: 1\nname: bbh\nrecords: data/records\nmodels: {codex: {provider: recorded, replies: data/replies.parquet}}\nbaseline: direct\nevaluations:\n"
	for _, task := range tasks {
		spec += fmt.Sprintf("  - name: %[1]s\n    program: bbh:%[1]s\n    candidates:\n"+
			"      - {name: direct, program: programs/%[1]s_direct.yaml, model: codex}\n"+
			"      - {name: cot, program: programs/%[1]s_cot.yaml, model: codex}\n", task)
	}
	file := filepath.Join(dir, "evalrun.yaml")
	if err := os.WriteFile(file, []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	check(t, run(t, file), expected.BBH)
}

// TestSameBytes prepares the example again: its files are what the command makes.
func TestSameBytes(t *testing.T) {
	if _, err := os.Stat(fullData); err != nil {
		t.Skip("the full data set is not beside the repository")
	}
	dir := t.TempDir()
	if err := Prepare(fullData, dir, []string{"boolean_expressions", "causal_judgement", "date_understanding", "disambiguation_qa"}); err != nil {
		t.Fatal(err)
	}
	made := 0
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		made++
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		got, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		has, err := os.ReadFile(filepath.Join("..", rel))
		if err != nil {
			return err
		}
		if !bytes.Equal(got, has) {
			t.Errorf("%s is not what prepare makes", rel)
		}
		return nil
	})
	if err != nil || made < 11 {
		t.Errorf("%d files were made, %v", made, err)
	}
}
