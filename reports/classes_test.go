package reports

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"evalrun/harness"
	"evalrun/harness/stats"
)

// classified is a report of one candidate with a classification of two classes.
func classified(t *testing.T, labels []string) *Report {
	t.Helper()
	r := fixtures(t)["alone"]
	n, half := len(labels), 0.5
	c := &harness.Classification{N: 2 * n, Accuracy: 0.5, MacroF1: 0.5, Labels: labels}
	for i, label := range labels {
		c.Confusion = append(c.Confusion, make([]int, n))
		c.Confusion[i][i] = 1
		c.Other, c.Failed = append(c.Other, 0), append(c.Failed, 1)
		of := harness.OfClass{Label: label, N: 2, Predicted: 1, Recall: 0.5, F1: 2.0 / 3}
		if i > 0 {
			of.Precision = &half
		}
		c.PerClass = append(c.PerClass, of)
	}
	e := r.Evaluations[0]
	e.Candidates[0].Classification = map[string]*harness.Classification{e.Metrics[0]: c}
	return r
}

func TestClasses(t *testing.T) {
	r := classified(t, []string{"h|am", "spam"})
	name := r.Evaluations[0].Candidates[0].Name
	for format, want := range map[string][]string{
		"md":   {"accuracy 0.50, macro F1 0.50, on 4 answers.", "| class | precision | recall | F1 | right for | answered |", "| `h\\|am` | – | 0.50 | 0.67 | 2 | 1 |", "| `spam` | 0.50 | 0.50 |"},
		"html": {"<h3>Classes</h3>", `<th scope="col" class="n"><code>h|am</code></th>`, `<td class="n">1</td><td class="n">0.50</td><td class="n">0.50</td><td class="n">0.67</td></tr>`},
	} {
		text := string(written(t, r, format))
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s lacks %s", format, w)
			}
		}
	}
	var b strings.Builder
	if err := Text(&b, r, 80, false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), name+" by ") || !strings.Contains(b.String(), "  spam: precision 0.50, recall 0.50, F1 0.67; right for 2, answered 1\n") {
		t.Errorf("the text lacks the classes:\n%s", &b)
	}
	schemed(t, r)

	many := strings.Split(strings.Repeat("x,", maxClasses)+"x", ",")
	md := string(written(t, classified(t, many), "md"))
	if !strings.Contains(md, "its 13 classes are in report.json") || strings.Contains(md, "| class |") {
		t.Error("a table of too many classes is written")
	}
}

// schemed checks a report against its schema.
func schemed(t *testing.T, r *Report) {
	t.Helper()
	var doc any
	if err := json.Unmarshal(written(t, r, "json"), &doc); err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal([]byte(JSONSchema()), &schema); err != nil {
		t.Fatal(err)
	}
	s := &shapes{root: schema, seen: map[string]bool{}}
	for _, wrong := range s.check(doc, schema, "") {
		t.Error(wrong)
	}
}

// Where less is better, the words and the order say so, and the numbers stay.
func TestLessIsBetter(t *testing.T) {
	before, after := make([]float64, 40), make([]float64, 40)
	for i := range before {
		before[i], after[i] = 2+float64(i%3)/10, 1+float64(i%5)/10
	}
	e := compared(t, "", before, after, stats.Options{})
	c := &e.Comparisons[0]
	metric := c.Metric
	e.Lower, c.Lower = []string{metric}, true
	c.Added = c.Added.Turned()
	c.Decision = c.Added.Decision
	got := e.verdict(c).Sentence
	if !strings.Contains(got, " is better than ") || !strings.Contains(got, "(less is better): 40 of 40 rows better, 0 worse") || !strings.Contains(got, "(−0.897, ") {
		t.Error(got)
	}
	row := &changedRow{Scores: []scoreChange{{Metric: metric, Before: 2, After: 1, Lower: true}}}
	if row.Worse() || row.by() != 1 {
		t.Errorf("a row that fell from 2 to 1 is worse: %v, by %v", row.Worse(), row.by())
	}
	e.lines = e.standings()
	if first := e.lines[0]; !first.Baseline {
		t.Error("the baseline is not the first line")
	}
	f := forests(e.lines, e.Statistics, false)
	if len(f) != 1 || f[0].Side != "Left" {
		t.Errorf("the plot's better side: %+v", f)
	}
	if text := legend([]*Evaluation{e}); !strings.Contains(text, "less is better of "+metric) {
		t.Error(text)
	}
}
