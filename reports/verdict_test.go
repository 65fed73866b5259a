package reports

import (
	"fmt"
	"strings"
	"testing"

	"evalrun/harness"
	"evalrun/harness/stats"
)

// comparison is one with these numbers in the added layer.
func comparison(diff, low, high float64) *harness.Comparison {
	return &harness.Comparison{
		Baseline: "direct", Candidate: "cot", Metric: "m",
		Added: stats.Test{Diff: opt(diff), Low: opt(low), High: opt(high), Better: 5, Worse: 3, Same: 2, Units: 10},
	}
}

// pairs makes 0/1 scores: both right, only the candidate, only the baseline, both
// wrong.
func pairs(both, candidate, baseline, neither int) (before, after []float64) {
	for _, c := range []struct {
		n    int
		x, y float64
	}{{both, 1, 1}, {candidate, 0, 1}, {baseline, 1, 0}, {neither, 0, 0}} {
		for range c.n {
			before, after = append(before, c.x), append(after, c.y)
		}
	}
	return before, after
}

// compared is an evaluation of two candidates with these scores.
func compared(t *testing.T, name string, before, after []float64, o stats.Options) *Evaluation {
	t.Helper()
	answers := map[string][]float64{"direct": before, "cot": after}
	s := stage{name: name, metrics: []string{"m"}, baseline: "direct", rows: len(before), row: ticket, stats: o}
	for _, name := range []string{"direct", "cot"} {
		s.lanes = append(s.lanes, &lane{harness.CandidateFacts{Name: name}, func(i, _ int) reply { return reply{text: "x", scores: []float64{answers[name][i]}} }})
	}
	e, _, _ := s.play(t)
	return &Evaluation{Evaluation: e, Statistics: withDefaults(o)}
}

func TestVerdictsSayWhatToDo(t *testing.T) {
	for _, c := range []struct {
		name                               string
		both, candidate, baseline, neither int
		margin                             float64
		evaluation                         string
		want                               string
	}{
		{
			"better", 149, 69, 10, 22, 0, "date_understanding",
			"`cot` is better than `direct` on date_understanding: 69 of 250 rows better, 10 worse, 171 the same (+23.6 points, 95% range +17.3 to +30.1).",
		},
		{
			"worse", 149, 10, 69, 22, 0, "",
			"`cot` is worse than `direct`: 69 of 250 rows worse, 10 better, 171 the same (−23.6 points, 95% range −30.1 to −17.3).",
		},
		{
			"equal", 1950, 4, 6, 40, 0.01, "",
			"`cot` and `direct` are equal, but for less than the margin of 1 point: 4 of 2,000 rows better, 6 worse, 1,990 the same (−0.10 points, 95% range −0.48 to +0.25).",
		},
	} {
		before, after := pairs(c.both, c.candidate, c.baseline, c.neither)
		e := compared(t, c.evaluation, before, after, stats.Options{Margin: c.margin})
		if got := e.verdict(&e.Comparisons[0]).Sentence; got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestUndecidedIsNeverNoChange(t *testing.T) {
	for _, c := range []struct{ both, candidate, baseline, neither int }{
		{150, 12, 9, 79}, {10, 0, 0, 0}, {0, 1, 0, 0}, {5, 2, 2, 1}, {20, 3, 0, 5},
	} {
		before, after := pairs(c.both, c.candidate, c.baseline, c.neither)
		e := compared(t, "", before, after, stats.Options{})
		cmp := &e.Comparisons[0]
		if cmp.Decision != stats.TooFewRows {
			t.Fatalf("%v is decided: %s", c, cmp.Decision)
		}
		got := e.verdict(cmp).Sentence
		if !strings.HasPrefix(got, "Not decided: `cot` against `direct`: ") {
			t.Errorf("%v: %s", c, got)
		}
		for _, word := range []string{"no change", "no difference", "equal", "same as"} {
			if strings.Contains(strings.ToLower(got), word) {
				t.Errorf("%v: an undecided comparison says %q: %s", c, word, got)
			}
		}
		if !strings.Contains(got, "could have seen") {
			t.Errorf("%v does not say what could have been seen: %s", c, got)
		}
		if v, ok := cmp.Added.Detectable.Get(); ok && !strings.Contains(got, "±"+rounded(100*v, placeOf(100*v, 2))+" points") {
			t.Errorf("%v does not say ±%v: %s", c, v, got)
		}
		if n := cmp.Added.RowsNeeded; n > 0 != strings.Contains(got, "rows would show a difference of ") || n > 0 && !strings.Contains(got, "about "+about(n)+" rows") {
			t.Errorf("%v: %d rows are needed: %s", c, n, got)
		}
	}
}

func TestVerdictsTellWhatIsMissing(t *testing.T) {
	before, after := pairs(30, 20, 2, 8)
	e := compared(t, "", before, after, stats.Options{})
	c := &e.Comparisons[0]
	fail := func(name string, n int) {
		m := e.Outcome(name).Metrics["m"]
		m.Failed = n
		e.Outcome(name).Metrics["m"] = m
	}
	ends := func(want string) {
		t.Helper()
		if got := e.verdict(c).Sentence; !strings.HasSuffix(got, want) {
			t.Errorf("got %s\nwant it to end in %q", got, want)
		}
	}
	ends("+44).")
	fail("cot", 1)
	ends("). 1 row of `cot` failed and counts 0.")
	fail("cot", 3)
	ends("). 3 rows of `cot` failed and count 0.")
	fail("direct", 1)
	ends("). 3 rows of `cot` and 1 row of `direct` failed and count 0.")
	c.Lost = &harness.Lost{Rows: 2, Worst: 0.25, Best: 0.33}
	ends("Answers to 2 rows were lost, to an outage or because none was recorded, and are left out; with them the difference would lie between +25 and +33 points. 3 rows of `cot` and 1 row of `direct` failed; a failed row counts 0 unless its answer was lost.")
	c.Lost = nil
	fail("cot", 0)
	fail("direct", 0)
	e.Rows.Asked = 1060
	ends(" 1,000 of 1,060 rows were not finished by both and are not compared.")
}

func TestNoRowsIsNoVerdict(t *testing.T) {
	e := compared(t, "x", nil, nil, stats.Options{})
	if got, want := e.verdict(&e.Comparisons[0]).Sentence, "Nothing can be said of `cot` against `direct` on x: there are no rows."; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	e.Comparisons[0].Lost = &harness.Lost{Rows: 7}
	if got, want := e.verdict(&e.Comparisons[0]).Sentence, "an answer to every row was lost. Answers to 7 rows were lost"; !strings.Contains(got, want) {
		t.Errorf("got %s", got)
	}
}

func TestHeadlineOfASuite(t *testing.T) {
	var r Report
	for i := range 9 {
		before, after := pairs(20, 15, 0, 5)
		if i > 5 {
			before, after = pairs(20, 2, 2, 5)
		}
		r.Evaluations = append(r.Evaluations, compared(t, fmt.Sprintf("task%d", i), before, after, stats.Options{}))
	}
	r.Suite = r.suite()
	want := "`cot` against `direct` on 9 evaluations: better on 6 (task0, task1, task2, task3, …), worse on none, not decided on 3 (task6, task7, task8)."
	if got := r.headline(); len(got) != 1 || got[0].String() != want {
		t.Errorf("got %v\nwant %s", got, want)
	}
}
