package reports

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"evalrun/harness"
	"evalrun/harness/stats"
	"evalrun/pipeline"
)

// metricsStage has a score and what else was measured: an amount of each kind, and a
// metric that failed on so many of 100 rows.
func metricsStage(fails int) *stage {
	answer := func(right bool, i int, slow float64) reply {
		r := choose(right, i)
		r.scores = append(r.scores, 0.5+slow*float64(1+i%3), 0.001*slow, float64(i%7)+slow, 1)
		return r
	}
	return &stage{
		metrics: []string{"exact_match", "latency", "cost", "words", "brittle"}, baseline: "old", rows: 100, row: ticket,
		lanes: []*lane{
			{harness.CandidateFacts{Name: "old", Model: model("small", "openai")}, func(i, _ int) reply { return answer(i%2 == 0, i, 0) }},
			{harness.CandidateFacts{Name: "new", Model: model("small", "openai")}, func(i, _ int) reply { return answer(true, i, 2) }},
		},
		tell: func(e *harness.Evaluation) {
			e.Lower = []string{"latency", "cost"}
			e.Units = harness.Units{"latency": "s", "cost": "USD", "words": "words"}
			for i := 1; i <= 2; i++ {
				c := &e.Comparisons[i]
				c.Lower, c.Added = true, c.Added.Turned()
				c.Decision = c.Added.Decision
			}
			m := e.Candidates[1].Metrics["brittle"]
			m.Failed, m.Unscored = fails, fails
			e.Candidates[1].Metrics["brittle"] = m
			c := &e.Comparisons[4]
			c.Unscored = fails
			if c.Unsound() {
				c.Decision = stats.TooFewRows
			}
		},
	}
}

func said(t *testing.T, r *Report, columns int) string {
	t.Helper()
	var b bytes.Buffer
	if err := Text(&b, r, columns, false); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Only the first metric is the verdict; the others are in a table, with units.
func TestFirstMetricIsTheVerdict(t *testing.T) {
	r := report(t, "metrics", facts, metricsStage(0))
	page := string(withoutCode(written(t, r, "html")))
	if n := strings.Count(page, `<p class="verdict `); n != 1 {
		t.Errorf("the page has %d boxes with a verdict", n)
	}
	begin, end := strings.Index(page, "By the other metrics."), strings.Index(page, `<dl class="facts">`)
	if begin < 0 || end < begin {
		t.Fatalf("the other metrics are at %d, the facts at %d", begin, end)
	}
	for _, metric := range []string{"latency", "cost", "words", "brittle"} {
		if !strings.Contains(page[begin:end], "<code>"+metric+"</code>") {
			t.Errorf("%s is not in the table of the other metrics", metric)
		}
	}
	text, md := said(t, r, 200), string(written(t, r, "md"))
	for name, form := range map[string]string{"the terminal": text, "report.md": md} {
		if n := strings.Count(form, " is better than ") + strings.Count(form, " is worse than "); n != 1 {
			t.Errorf("%s: %d verdicts", name, n)
		}
	}
	// 0.5 s more by 2·(1+i%3), whose mean over 100 rows is 3.98; 0.002 USD more; 2 words more.
	for _, want := range []string{"+3.98 s", "+0.002", " USD", " words", "+50.0 pts"} {
		if !strings.Contains(text, want) || !strings.Contains(md, want) {
			t.Errorf("differences lack %q:\n%s", want, text)
		}
	}
	if !strings.Contains(text, "less is better of latency, cost") {
		t.Errorf("the terminal does not say of what less is better:\n%s", text)
	}
	if len(r.Evaluations[0].Verdicts) != 5 {
		t.Errorf("report.json has %d verdicts; want one for each metric", len(r.Evaluations[0].Verdicts))
	}
}

// Where the metric itself failed, the scores are marked, and too many such rows are
// the reason that there is no verdict.
func TestUnscoredRows(t *testing.T) {
	for _, c := range []struct {
		fails int
		want  string
	}{
		{10, "The metric itself failed on an answer to 10 rows, left out here."},
		{11, "The metric itself failed on 11 rows, too many for a verdict."},
	} {
		r := report(t, "metrics", facts, metricsStage(c.fails))
		v := r.Evaluations[0].Verdicts[4]
		if !strings.Contains(v.Sentence, c.want) || strings.Contains(v.Sentence, "could have seen") && c.fails > 10 {
			t.Errorf("%d fail: %s", c.fails, v.Sentence)
		}
		if text := said(t, r, 200); !strings.Contains(text, "100.0%*") || !strings.Contains(text, apartNote) {
			t.Errorf("%d fail: the score is not marked:\n%s", c.fails, text)
		}
	}
}

// Of a candidate whose every answer was lost no score is shown.
func TestAllLostHasNoScore(t *testing.T) {
	s := betterStage()
	s.lanes[1].reply = func(int, int) reply { return timedOut() }
	r := report(t, "lost", facts, s)
	l := r.Evaluations[0].lines[1]
	if l.Score != nothing || l.Range != "" || l.Versus.After != nothing {
		t.Errorf("score %q, range %q, compared %q", l.Score, l.Range, l.Versus.After)
	}
	if v := r.Evaluations[0].Verdicts[0]; !strings.Contains(v.Sentence, "an answer to every row was lost") {
		t.Error(v.Sentence)
	}
}

// spentStage is a run whose calls a cache answered, all but so many, and its sitting.
func spentStage(bookings []pipeline.Booking, cached int, over bool) (*stage, []harness.Sitting) {
	s := betterStage()
	s.tell = func(e *harness.Evaluation) {
		for _, out := range e.Candidates {
			out.Measured.Cached = cached
		}
	}
	began := time.Date(2026, 3, 2, 9, 15, 0, 0, time.UTC)
	ended := began.Add(90 * time.Second)
	sitting := harness.Sitting{Started: began, Ended: &ended, Models: []harness.Limited{{Name: "small", History: []harness.LimitEvent{}}}, Bookings: bookings}
	if !over {
		sitting.Ended = nil
	}
	return s, []harness.Sitting{sitting}
}

// The headline cost is all that was spent, judges included and what was cached not;
// doubts are in words.
func TestSpentIsOfEverything(t *testing.T) {
	book := func(purpose string, a pipeline.Amount) pipeline.Booking {
		return pipeline.Booking{Account: pipeline.Account{Purpose: purpose, Cause: "first", Model: "small"}, Amount: a}
	}
	both := []pipeline.Booking{
		book("candidate", pipeline.Amount{Requests: 500, Tokens: 6000, Money: 0.04}), book("judge", pipeline.Amount{Requests: 900, Tokens: 9000, Money: 0.16}),
	}
	for _, c := range []struct {
		name     string
		bookings []pipeline.Booking
		cached   int
		over     bool
		doubt    int
		want     []string
		fact     string
	}{
		{"candidates and a judge", both, 0, true, 0, []string{"500 calls, 1,400 requests, 15,000 tokens, 0.200 USD spent, 90 s"}, "0.200 USD"},
		{"wholly cached", nil, 250, true, 0, []string{"500 calls (500 from a cache or another run), 0 requests, 0 tokens, 0 USD spent (the answers cost ", "when they were asked)"}, "0 USD"},
		{"killed", both, 0, false, 3, []string{"at least 15,000 tokens, at least 0.200 USD spent", "3 in doubt", "1 of 1 sitting was cut off"}, "at least 0.200 USD"},
		{"nothing was answered", []pipeline.Booking{book("candidate", pipeline.Amount{Requests: 15, Doubtful: 15})}, 0, true, 0, []string{"15 requests, tokens unknown, cost unknown", "15 in doubt"}, "unknown"},
	} {
		f := facts
		f.InDoubt = c.doubt
		s, sittings := spentStage(c.bookings, c.cached, c.over)
		r := reportOf(t, "spent", f, sittings, s)
		text, page := said(t, r, 400), string(withoutCode(written(t, r, "html")))
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the terminal lacks %q:\n%s", c.name, want, text)
			}
		}
		if want := fmt.Sprintf("<dt>spent</dt><dd>%s</dd>", c.fact); !strings.Contains(page, want) {
			t.Errorf("%s: the page lacks %q", c.name, want)
		}
		if asked := strings.Contains(page, "<dt>cost of the answers</dt>"); asked != (c.cached > 0) {
			t.Errorf("%s: the page has what the answers cost: %v", c.name, asked)
		}
	}
}

// What the terminal has said it does not say again; the files do.
func TestToldOnce(t *testing.T) {
	s := betterStage()
	s.warnings = []string{"12 of 80 rated calls were left out"}
	r := report(t, "told", facts, s)
	if !strings.Contains(said(t, r, 200), s.warnings[0]) {
		t.Error("the terminal does not warn")
	}
	r.Told(s.warnings)
	if strings.Contains(said(t, r, 200), s.warnings[0]) {
		t.Error("the terminal warns again")
	}
	if !strings.Contains(string(written(t, r, "md")), s.warnings[0]) {
		t.Error("report.md does not warn")
	}
}
