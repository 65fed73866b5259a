package reports

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/harness/stats"
	"evalrun/internal/canon"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file in testdata, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run go test -update", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("%s (-want +got; if the change is meant, run go test -update and look at it):\n%s", path, diff)
	}
}

func written(t testing.TB, r *Report, format string) []byte {
	t.Helper()
	f, err := FindFormat(format)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := f.Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGolden(t *testing.T) {
	reports := fixtures(t)
	for name, r := range reports {
		for _, format := range []string{"md", "json", "junit"} {
			f, _ := FindFormat(format)
			golden(t, name+filepath.Ext(f.File), written(t, r, format))
		}
		var text bytes.Buffer
		if err := Text(&text, r, 100, false); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".txt", text.Bytes())
	}
	for _, name := range []string{"hostile", "suite", "alone", "served", "metrics"} {
		golden(t, name+".html", withoutCode(written(t, reports[name], "html")))
	}
	golden(t, "hostile.csv", written(t, reports["hostile"], "csv"))
}

func TestSameAnswersSameBytes(t *testing.T) {
	// Two runs of the same question, by another name, at another time, on
	// another host, with other limits: measured is the only difference.
	first, second := fixtures(t)["suite"], fixtures(t)["suite"]
	m := &second.Measured
	m.Run, m.Name, m.Started, m.Spec, m.Records = "other", "another", m.Started.Add(1e15), "sha256:00", nil
	m.Host, m.Versions, m.Limits = map[string]string{"os": "plan9"}, nil, datasets.Values{"concurrency": datasets.Int(1)}
	m.Evaluations[0].Candidates[1].Latency.Median = 12
	parts := func(r *Report) (all, measured []byte) {
		var doc map[string]jsontext.Value
		if err := json.Unmarshal(written(t, r, "json"), &doc); err != nil {
			t.Fatal(err)
		}
		measured = doc["measured"]
		delete(doc, "measured")
		all, _ = json.Marshal(doc, json.Deterministic(true))
		return all, measured
	}
	a, am := parts(first)
	b, bm := parts(second)
	if !bytes.Equal(a, b) {
		t.Errorf("not the same bytes (-first +second):\n%s", cmp.Diff(string(a), string(b)))
	}
	if bytes.Equal(am, bm) {
		t.Error("measured is the same too: the test changes nothing")
	}
	if !bytes.Equal(written(t, first, "json"), written(t, fixtures(t)["suite"], "json")) {
		t.Error("the same report was written in other bytes")
	}
}

func TestJSONIsSortedAndCanonical(t *testing.T) {
	for name, r := range fixtures(t) {
		text := jsontext.Value(written(t, r, "json"))
		if err := text.Compact(); err != nil {
			t.Fatal(err)
		}
		canonical, err := canon.Append(nil, text)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(text, canonical) {
			t.Errorf("%s: report.json is not canonical apart from its white space", name)
		}
	}
}

// The schema is exact: it allows no key that it does not name, and the fixtures
// have every key it names, but for those of kinds of runs that no fixture has.
func TestReportHasTheKeysOfItsSchema(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal([]byte(JSONSchema()), &schema); err != nil {
		t.Fatal(err)
	}
	s := &shapes{root: schema, seen: map[string]bool{}}
	for name, r := range fixtures(t) {
		var doc any
		if err := json.Unmarshal(written(t, r, "json"), &doc); err != nil {
			t.Fatal(err)
		}
		for _, wrong := range s.check(doc, schema, "") {
			t.Errorf("%s: %s", name, wrong)
		}
	}
	rare := []string{
		".rows.pair", ".model.settings", ".model.content", ".plugins.content", ".unfinished", ".total_tokens", ".cached_input_tokens",
		".reasoning_tokens", ".usage.unknown", ".statistics.seed", ".baseline_only", ".candidate_only", ".changed.candidate_row", ".clusters",
		".from_run", ".resumed", ".in_doubt",
		".lower_is_better", ".classification", // see TestClasses and TestLessIsBetter
	}
	for _, path := range s.unseen(schema, "") {
		if !slices.ContainsFunc(rare, func(end string) bool { return strings.HasSuffix(path, end) }) {
			t.Errorf("the schema has %s, which no report has", path)
		}
	}
	// The check can fail.
	var doc map[string]any
	if err := json.Unmarshal(written(t, fixtures(t)["better"], "json"), &doc); err != nil {
		t.Fatal(err)
	}
	doc["extra"] = true
	delete(doc, "exit")
	doc["warnings"] = []any{1.0}
	if wrong := s.check(doc, schema, ""); len(wrong) != 3 {
		t.Errorf("three mistakes were planted, found %q", wrong)
	}
}

// shapes checks values against the part of JSON Schema that the report's uses.
type shapes struct {
	root map[string]any
	seen map[string]bool // keys by path
}

func (s *shapes) follow(shape map[string]any) map[string]any {
	for {
		ref, ok := shape["$ref"].(string)
		if !ok {
			return shape
		}
		shape = s.root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
}

func (s *shapes) check(v any, shape map[string]any, path string) (wrong []string) {
	shape = s.follow(shape)
	if want, ok := shape["const"]; ok && want != v {
		wrong = append(wrong, fmt.Sprintf("%s is %v, want %v", path, v, want))
	}
	if of, ok := shape["enum"].([]any); ok && !slices.Contains(of, v) {
		wrong = append(wrong, fmt.Sprintf("%s is %v, none of %v", path, v, of))
	}
	if least, ok := shape["minimum"].(float64); ok {
		if n, isNumber := v.(float64); isNumber && n < least {
			wrong = append(wrong, fmt.Sprintf("%s is %v, under %v", path, v, least))
		}
	}
	kind := ""
	switch v := v.(type) {
	case nil:
		kind = "null"
	case bool:
		kind = "boolean"
	case string:
		kind = "string"
	case float64:
		if kind = "number"; v == math.Trunc(v) && shape["type"] == "integer" {
			kind = "integer"
		}
	case []any:
		kind = "array"
		for _, e := range v {
			if items, ok := shape["items"].(map[string]any); ok {
				wrong = append(wrong, s.check(e, items, path)...)
			}
		}
	case map[string]any:
		kind = "object"
		known, _ := shape["properties"].(map[string]any)
		for key, e := range v {
			if of, ok := known[key].(map[string]any); ok {
				s.seen[path+"."+key] = true
				wrong = append(wrong, s.check(e, of, path+"."+key)...)
			} else if of, ok := shape["additionalProperties"].(map[string]any); ok {
				wrong = append(wrong, s.check(e, of, path+".*")...)
			} else if shape["additionalProperties"] == false {
				wrong = append(wrong, fmt.Sprintf("%s has the key %q", path, key))
			}
		}
		required, _ := shape["required"].([]any)
		for _, key := range required {
			if _, ok := v[key.(string)]; !ok {
				wrong = append(wrong, fmt.Sprintf("%s lacks the key %q", path, key))
			}
		}
	}
	switch want := shape["type"].(type) {
	case string:
		if want != kind {
			wrong = append(wrong, fmt.Sprintf("%s is %s, want %s", path, kind, want))
		}
	case []any:
		if !slices.Contains(want, any(kind)) {
			wrong = append(wrong, fmt.Sprintf("%s is %s, want one of %v", path, kind, want))
		}
	}
	return wrong
}

func (s *shapes) unseen(shape map[string]any, path string) (paths []string) {
	shape = s.follow(shape)
	if known, ok := shape["properties"].(map[string]any); ok {
		for key, of := range known {
			if !s.seen[path+"."+key] {
				paths = append(paths, path+"."+key)
				continue
			}
			paths = append(paths, s.unseen(of.(map[string]any), path+"."+key)...)
		}
	}
	if items, ok := shape["items"].(map[string]any); ok {
		paths = append(paths, s.unseen(items, path)...)
	}
	if of, ok := shape["additionalProperties"].(map[string]any); ok {
		paths = append(paths, s.unseen(of, path+".*")...)
	}
	return paths
}

func TestWriteIsWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	r := fixtures(t)["better"]
	if _, err := Write(dir, r, []string{"json", "docx"}); err == nil || !strings.Contains(err.Error(), `"docx": there are json, md, html, csv, junit`) {
		t.Errorf("an unknown format: %v", err)
	}
	if files, _ := os.ReadDir(dir); len(files) > 0 {
		t.Errorf("something was written before every format was known: %v", files)
	}
	var all []string
	for _, f := range Formats() {
		all = append(all, f.Name)
	}
	files, err := Write(dir, r, all)
	if err != nil || len(files) != 5 {
		t.Fatalf("wrote %q: %v", files, err)
	}
	old, _ := os.ReadFile(filepath.Join(dir, "report.csv"))
	// A report whose results break off leaves the old file and nothing else.
	broken := *r
	broken.results = func() iter.Seq2[harness.Result, error] {
		return func(yield func(harness.Result, error) bool) { yield(harness.Result{}, errors.New("torn")) }
	}
	if _, err := Write(dir, &broken, []string{"csv"}); err == nil || !strings.Contains(err.Error(), "report.csv: torn") {
		t.Errorf("broken results: %v", err)
	}
	if now, _ := os.ReadFile(filepath.Join(dir, "report.csv")); !bytes.Equal(old, now) {
		t.Error("the old file is gone")
	}
	if left, _ := os.ReadDir(dir); len(left) != 5 {
		t.Errorf("left behind: %v", left)
	}
}

func TestStoredFacts(t *testing.T) {
	dir := t.TempDir()
	if f, err := StoredFacts(dir); err != nil || f.Exit.Code != 0 {
		t.Errorf("without a report: %v, %v", f, err)
	}
	r := fixtures(t)["suite"]
	if _, err := Write(dir, r, []string{"json"}); err != nil {
		t.Fatal(err)
	}
	f, err := StoredFacts(dir)
	if err != nil {
		t.Fatal(err)
	}
	if f.Exit != r.Exit || !slices.Equal(f.Warnings, r.Warnings) || f.Limits["timeout"].String() != "60s" || f.Stats.Alpha != 0.05 {
		t.Errorf("read back %+v", f)
	}
	for text, want := range map[string]string{
		"{":              "not a report",
		`{"schema": {}}`: `its schema is ""`,
		`{"schema": {"name": "evalrun.report", "version": 2}}`: "of a later evalrun",
	} {
		if err := os.WriteFile(filepath.Join(dir, JSONFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := StoredFacts(dir); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestCSVHasEveryAnswer(t *testing.T) {
	for _, name := range []string{"suite", "hostile", "alone"} {
		r := fixtures(t)[name]
		lines, err := csv.NewReader(bytes.NewReader(written(t, r, "csv"))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		answers := 0
		for _, e := range r.Evaluations {
			for _, out := range e.Candidates {
				answers += out.Measured.Answers
			}
		}
		if len(lines) != answers+1 {
			t.Errorf("%s: %d lines for %d answers", name, len(lines)-1, answers)
		}
		column := func(name string) int { return slices.Index(lines[0], name) }
		i := 1
		for res, err := range r.results() {
			if err != nil {
				t.Fatal(err)
			}
			l := lines[i]
			// The reader makes one line end of two characters.
			answer := strings.ReplaceAll(res.Answer.String(), "\r\n", "\n")
			if l[column("row")] != res.Row || l[column("candidate")] != res.Candidate || l[column("answer")] != answer {
				t.Fatalf("%s, line %d is %q, want %+v", name, i+1, l, res)
			}
			if res.Failed != nil && (l[column("failed_class")] != res.Failed.Class || l[column("score_"+r.Evaluations[0].Metrics[0])] != "") {
				t.Errorf("%s, line %d: a failed answer is %q", name, i+1, l)
			}
			i++
		}
	}
	if err := writeCSV(io.Discard, fixtures(t)["across"]); err == nil {
		t.Error("a comparison of runs has no answers to list, and listed them")
	}
}

func TestJUnitCounts(t *testing.T) {
	for name, r := range fixtures(t) {
		var all junitSuites
		if err := xml.Unmarshal(written(t, r, "junit"), &all); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := map[stats.Decision]int{}
		tests := 0
		for _, e := range r.Evaluations {
			for _, c := range e.Comparisons {
				want[c.Decision]++
				tests++
			}
		}
		if all.Tests != tests || all.Failures != want[stats.Worse] || all.Skipped != want[stats.TooFewRows]+want[harness.TrendOnly] || all.Errors != want[stats.Invalid] || len(all.Suites) != len(r.Evaluations) {
			t.Errorf("%s: %d tests, %d failures, %d skipped, %d errors in %d suites, want %d and %v", name, all.Tests, all.Failures, all.Skipped, all.Errors, len(all.Suites), tests, want)
		}
	}
}

func TestMarkdownTablesHaveWholeLines(t *testing.T) {
	bar := regexp.MustCompile(`(^|[^\\])\|`)
	for name, r := range fixtures(t) {
		columns := 0
		for _, line := range strings.Split(string(written(t, r, "md")), "\n") {
			if !strings.HasPrefix(line, "|") {
				columns = 0
				continue
			}
			n := len(bar.FindAllString(line, -1))
			if columns == 0 {
				columns = n
			}
			if n != columns {
				t.Errorf("%s: %d bars where the head has %d: %s", name, n, columns, line)
			}
		}
	}
}

func TestNobodyReadsThousandsOfRows(t *testing.T) {
	rows := func(losses, gains int) (list []*changedRow) {
		for i := range losses + gains {
			by := float64(i+1) / 10000
			if i < losses {
				by = -by
			}
			list = append(list, &changedRow{ID: fmt.Sprint(i), Scores: []scoreChange{{Metric: "m", After: by}}})
		}
		return list
	}
	for _, c := range []struct{ losses, gains, wantLosses, wantGains int }{
		{3, 4, 3, 4}, {400, 100, 400, 100}, {400, 300, 250, 250}, {10, 700, 10, 490}, {700, 10, 490, 10}, {600, 0, 500, 0}, {0, 600, 0, 500},
	} {
		kept := readable(rows(c.losses, c.gains), 500)
		losses := 0
		for i, row := range kept {
			if row.Worse() {
				losses++
			}
			if i > 0 && row.by() < kept[i-1].by() {
				t.Fatalf("%v: not the largest loss first", c)
			}
		}
		if losses != c.wantLosses || len(kept)-losses != c.wantGains {
			t.Errorf("%d losses and %d gains: kept %d and %d, want %d and %d", c.losses, c.gains, losses, len(kept)-losses, c.wantLosses, c.wantGains)
		}
		if losses > 0 && kept[0].by() != -float64(c.losses)/10000 {
			t.Errorf("%v: the largest loss is not the first row", c)
		}
	}
}

func TestRowsHaveBothAnswersAndTheirInputs(t *testing.T) {
	r := fixtures(t)["better"]
	c := r.Evaluations[0].changes[0]
	if c.Worse != 10 || c.Better != 69 || len(c.Rows) != 79 {
		t.Fatalf("%d worse, %d better, %d rows", c.Worse, c.Better, len(c.Rows))
	}
	for i, row := range c.Rows {
		if row.Worse() != (i < 10) {
			t.Errorf("row %d of the list is worse: %v", i, row.Worse())
		}
		if len(row.Before) != 1 || len(row.After) != 1 || row.Before[0].Text == row.After[0].Text {
			t.Errorf("row %s: %v and %v", row.ID, row.Before, row.After)
		}
		if len(row.Inputs) != 1 || row.Inputs[0].Name != "message" || row.Inputs[0].Text == "" {
			t.Errorf("row %s has the inputs %v", row.ID, row.Inputs)
		}
		if len(row.After[0].Others) != 1 || row.After[0].Others[0].Name != "reasoning" {
			t.Errorf("row %s: the other outputs are %v", row.ID, row.After[0].Others)
		}
	}
	failures := r.Evaluations[0].failures
	if len(failures) != 1 || failures[0].Rows != 3 || len(failures[0].Messages) != 2 {
		t.Errorf("failures %+v", failures)
	}
	for _, row := range fixtures(t)["suite"].Evaluations[1].changes[0].Rows {
		if len(row.Before) != 2 || row.Before[1].Repeat != 2 {
			t.Errorf("row %s: two repeats are %v", row.ID, row.Before)
		}
	}
}

// Rows of the recorded lane alone have no call of this run: their inputs come
// from the records that the rows were made of, and are missing without them.
func TestInputsOfRecordedRows(t *testing.T) {
	s := betterStage()
	for _, l := range s.lanes {
		l.Recorded = true
	}
	e, results, _ := s.play(t)
	_, in := ticket(0)
	m := &material{
		results: func() iter.Seq2[harness.Result, error] {
			return func(yield func(harness.Result, error) bool) {
				for _, r := range results {
					if !yield(r, nil) {
						return
					}
				}
			}
		},
		inputs: func(map[string]bool) (map[string]datasets.Value, error) { return nil, errors.New("there are no calls") },
		rated: func(rows map[string]bool) (map[string]datasets.Value, error) {
			found := map[string]datasets.Value{}
			for id := range rows {
				found[id] = in
			}
			return found, nil
		},
	}
	r, err := build(m, []*harness.Evaluation{e}, facts)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Evaluations[0].changes[0].Rows[0].Inputs; len(got) != 1 {
		t.Errorf("inputs %v", got)
	}
	m.rated = func(map[string]bool) (map[string]datasets.Value, error) { return nil, errors.New("moved away") }
	if r, err = build(m, []*harness.Evaluation{e}, facts); err != nil || r.Evaluations[0].changes[0].Rows[0].Inputs != nil {
		t.Errorf("without the records: %v", err)
	}
}

func TestText(t *testing.T) {
	escape := regexp.MustCompile("\x1b\\[[0-9]+m")
	for name, r := range fixtures(t) {
		for _, columns := range []int{40, 80, 200} {
			var bare, colored bytes.Buffer
			if err := Text(&bare, r, columns, false); err != nil {
				t.Fatal(err)
			}
			if err := Text(&colored, r, columns, true); err != nil {
				t.Fatal(err)
			}
			for _, line := range strings.Split(bare.String(), "\n") {
				longest := 0
				for _, word := range strings.Fields(line) {
					longest = max(longest, cells(word))
				}
				if n := cells(line); n > columns && longest+4 <= columns {
					t.Errorf("%s at %d: a line of %d columns: %s", name, columns, n, line)
				}
				for _, c := range line {
					if unicode.IsControl(c) || c >= '\u202a' && c <= '\u202e' {
						t.Errorf("%s at %d: a terminal would obey %U in %q", name, columns, c, line)
					}
				}
			}
			if plain := escape.ReplaceAllString(colored.String(), ""); plain != bare.String() {
				t.Errorf("%s at %d: color changes the text:\n%s", name, columns, cmp.Diff(bare.String(), plain))
			}
			if strings.Count(colored.String(), "\x1b[0m")*2 != len(escape.FindAllString(colored.String(), -1)) {
				t.Errorf("%s at %d: a color is not ended", name, columns)
			}
			for _, e := range r.Evaluations {
				for _, c := range e.Comparisons {
					if c.Metric == e.Metrics[0] && !strings.Contains(bare.String(), decisions[c.Decision].Words) && !strings.Contains(strings.ToLower(bare.String()), decisions[c.Decision].Words) {
						t.Errorf("%s at %d does not say %q", name, columns, decisions[c.Decision].Words)
					}
				}
			}
		}
	}
}

func TestTextGolden(t *testing.T) {
	var b bytes.Buffer
	reports := fixtures(t)
	for _, columns := range []int{40, 80, 200} {
		for _, name := range []string{"better", "suite"} {
			fmt.Fprintf(&b, "== %s at %d\n", name, columns)
			if err := Text(&b, reports[name], columns, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	golden(t, "widths.txt", b.Bytes())
}

func TestCells(t *testing.T) {
	for s, want := range map[string]int{"": 0, "abc": 3, "▲▼−": 3, "日本": 4, "e\u0301": 1, "مرحبا": 5, "👍": 2, "a\u200bb": 2} {
		if got := cells(s); got != want {
			t.Errorf("%q takes %d columns, want %d", s, got, want)
		}
	}
}
