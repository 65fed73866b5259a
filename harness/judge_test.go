package harness

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/replay"
)

// verdictProgram is a judge's: it is shown an answer, and says right or wrong.
const verdictProgram = `
name: verdict
inputs: [{name: answer, shape: {type: string}}]
outputs: [{name: verdict, shape: {enum: [right, wrong]}}]
`

// testJudge asks its program about an answer, with the baseline's behind it when it
// is pairwise.
type testJudge struct {
	facts   JudgeFacts
	caller  *pipeline.Caller
	program *pipeline.Program
}

func newTestJudge(t testing.TB, m pipeline.Model, facts JudgeFacts) *testJudge {
	t.Helper()
	j := &testJudge{facts: facts, caller: caller(m), program: program(t, verdictProgram)}
	var n atomic.Int64
	j.caller.NewID = func() string { return fmt.Sprintf("judge-%06d", n.Add(1)) }
	j.caller.LM.Price = &pipeline.Price{Input: 1e6, Output: 1e6} // 1 a token
	j.facts.Metric, j.facts.Verdicts, j.facts.Right = "good", []string{"right", "wrong"}, []string{"right"}
	if j.facts.Mode == "" {
		j.facts.Mode = JudgePointwise
	}
	return j
}

func (j *testJudge) Name() string             { return "good" }
func (j *testJudge) JudgeFacts() JudgeFacts   { return j.facts }
func (j *testJudge) Caller() *pipeline.Caller { return j.caller }

func (j *testJudge) Score(context.Context, datasets.Row, *pipeline.Call) (Score, error) {
	panic("a judge is not asked for a score")
}

func (j *testJudge) Verdict(ctx context.Context, q *Judging) (Verdict, error) {
	text := q.Call.Outputs["result"].String()
	if j.facts.Mode == JudgePairwise {
		if q.Against == nil {
			return Verdict{Missing: "no_baseline", Score: Score{Missing: "the baseline has no answer"}}, nil
		}
		text += " or " + q.Against.Outputs["result"].String()
	}
	call, err := q.Ask(ctx, j.program, datasets.Values{"answer": datasets.Text(text)}, 0)
	if err != nil {
		return Verdict{}, err
	}
	if f := call.Failure; f != nil {
		return Verdict{Missing: f.Class(), Score: Score{Missing: "no verdict: " + f.Error()}}, nil
	}
	v := Verdict{Word: call.Outputs["verdict"].String()}
	v.Value = float64(one(v.Word == "right"))
	return v, nil
}

// saysOf is a judge's model: it answers by the text that it is shown, or fails.
func saysOf(asked *atomic.Int64, say func(text string) (string, error)) pipeline.Model {
	return modelFunc(func(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
		asked.Add(1)
		word, err := say(r.Messages[0].Parts[0].Text)
		if err != nil {
			return nil, err
		}
		return &pipeline.Reply{Text: "<verdict>\n" + word + "\n</verdict>\n", Finish: "stop", Usage: tokens(3, 1)}, nil
	})
}

// ratedQuiz is quiz whose recorded answers people rated: right but those that are
// listed.
func ratedQuiz(n int, wrong ...int) datasets.Rows {
	rows := quiz(n)
	for i := range rows {
		rows[i].Verdict.Verdict = "right"
	}
	for _, i := range wrong {
		rows[i].Verdict.Verdict = "wrong"
	}
	return rows
}

func TestJudgeWithoutVerdict(t *testing.T) {
	var asked atomic.Int64
	m := saysOf(&asked, func(text string) (string, error) {
		switch {
		case strings.Contains(text, "a1"):
			return "", pipeline.Failf(pipeline.TypeRefusal, "", "it will not say")
		case strings.Contains(text, "a2"):
			return "perhaps", nil
		case strings.Contains(text, "a3"):
			return "wrong", nil
		}
		return "right", nil
	})
	e := mustEvaluate(t, Plan{
		Rows: quiz(6), Metrics: []Metric{match{}, newTestJudge(t, m, JudgeFacts{})},
		Candidates: []Candidate{candidate(t, "old", says(right)), candidate(t, "new", says(rightBut("r4")))},
	}, Options{})
	out := e.Outcome("old")
	if out.Failures[ClassJudge] != 2 || out.Failed != 2 || out.Metrics["match"].Failed != 0 || out.Metrics["good"].Failed != 2 {
		t.Errorf("%d failed (%v); by match %d, by good %d", out.Failed, out.Failures, out.Metrics["match"].Failed, out.Metrics["good"].Failed)
	}
	// A missing verdict is no 0: 3 of 4 are right.
	if m := out.Metrics["good"]; m.N != 4 || m.NoVerdict != 2 || m.Mean.String() != "0.75" {
		t.Errorf("the mean is %v over %d rows, %d left out", m.Mean, m.N, m.NoVerdict)
	}
	j := e.Judge("good")
	if j.NoVerdict["refused"] != 2 || j.NoVerdict["unreadable"] != 2 {
		t.Errorf("no verdict: %v", j.NoVerdict)
	}
	// Rows without a verdict are in no decision; for the other metric they are.
	for _, c := range e.Comparisons {
		want := map[string]int{"match": 6, "good": 4}[c.Metric]
		if c.Added.Units != want || c.N != want || c.Unjudged != 6-want {
			t.Errorf("%s: decided on %d of %d rows (%d without a verdict), want %d", c.Metric, c.Added.Units, c.N, c.Unjudged, want)
		}
		if c.TrendOnly != (c.Metric == "good") || c.TrendOnly != (c.Decision == TrendOnly) || c.Added.Decision == TrendOnly {
			t.Errorf("%s: %+v", c.Metric, c)
		}
	}
}

// What a judge takes is in no candidate's usage.
func TestJudgeIsBookedApart(t *testing.T) {
	var asked atomic.Int64
	m := saysOf(&asked, func(string) (string, error) { return "right", nil })
	var results []Result
	e := mustEvaluate(t, Plan{
		Rows: ratedQuiz(3), Metrics: []Metric{newTestJudge(t, m, JudgeFacts{Calibrate: true})}, Candidates: []Candidate{candidate(t, "old", says(right))},
	}, Options{Observe: func(r Result, _ *pipeline.Call) error { results = append(results, r); return nil }})
	out := e.Outcome("old")
	if *out.Usage.InputTokens != 30 || out.Usage.Cost != nil {
		t.Errorf("the candidate took %v tokens, cost %v", *out.Usage.InputTokens, out.Usage.Cost)
	}
	if *out.Judging.InputTokens != 9 || *out.Judging.Cost != 12 {
		t.Errorf("judging it took %v tokens, cost %v", *out.Judging.InputTokens, *out.Judging.Cost)
	}
	if j := e.Judge("good"); *j.Usage.InputTokens != 18 || j.Requests != 6 {
		t.Errorf("the judge took %v tokens in %d requests", *j.Usage.InputTokens, j.Requests)
	}
	if r := results[0]; len(r.Judged) != 2 || r.Judged[0].Rated || !r.Judged[1].Rated || r.Requests != 1 {
		t.Errorf("%+v", r.Judged)
	}
}

// 10 rated answers, 6 of them right. The judge says right of 6, among them one that
// people call wrong: chance is .52, and kappa .28/.48.
func TestCalibration(t *testing.T) {
	var asked atomic.Int64
	say := func(text string) (string, error) {
		for _, right := range []string{"a0", "a1", "a2", "a3", "a4", "a6"} {
			if strings.Contains(text, right) {
				return "right", nil
			}
		}
		return "wrong", nil
	}
	rows := ratedQuiz(10, 6, 7, 8, 9)
	for _, c := range []struct {
		name string
		cand Candidate
		asks int64
	}{
		{"asked", candidate(t, "old", says(func(pipeline.Site) string { return "another" })), 20},
		{"recorded", Candidate{Name: "rated", Recorded: true, Program: program(t, answerProgram)}, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked.Store(0)
			for least, fit := range map[float64]bool{0.5: true, 0.6: false} {
				e := mustEvaluate(t, Plan{
					Rows: rows, Candidates: []Candidate{c.cand},
					Metrics: []Metric{newTestJudge(t, saysOf(&asked, say), JudgeFacts{Calibrate: true, MinAgreement: least})},
				}, Options{})
				j := e.Judge("good")
				if fmt.Sprint(j.Confusion) != "[[5 1] [1 3]]" || j.N != 10 || j.Missing != 0 || j.Fit != fit {
					t.Errorf("at least %v: %v of %d, fit %v", least, j.Confusion, j.N, j.Fit)
				}
				for what, want := range map[string]float64{j.Agreement.Value.String(): 0.8, j.Kappa.Value.String(): 0.28 / 0.48, j.AC1.Value.String(): 0.32 / 0.52} {
					var have float64
					if _, err := fmt.Sscan(what, &have); err != nil || math.Abs(have-want) > 1e-12 {
						t.Errorf("%v, want %v", what, want)
					}
				}
			}
			if asked.Load() != 2*c.asks {
				t.Errorf("the judge was asked %d times, want %d", asked.Load(), 2*c.asks)
			}
		})
	}
}

// A judge that is fit decides as any metric does.
func TestFitJudgeDecides(t *testing.T) {
	var asked atomic.Int64
	m := saysOf(&asked, func(text string) (string, error) {
		if strings.Contains(text, "wrong") {
			return "wrong", nil
		}
		return "right", nil
	})
	rows := ratedQuiz(12, 0, 1)
	for _, i := range []int{0, 1} {
		rows[i].Recorded = datasets.Values{"result": datasets.Text("wrong")}
	}
	bad := says(func(pipeline.Site) string { return "wrong" })
	e := mustEvaluate(t, Plan{
		Rows: rows, Candidates: []Candidate{candidate(t, "old", says(right)), candidate(t, "new", bad)},
		Metrics: []Metric{newTestJudge(t, m, JudgeFacts{Calibrate: true, MinAgreement: 0.6})},
	}, Options{})
	if c := e.Comparisons[0]; c.TrendOnly || c.Decision != "worse" || !e.Judge("good").Fit {
		t.Errorf("%+v", c)
	}
}

// Judges of pairs are given the baseline's answer, which is asked once, wherever
// the baseline stands and however many rows are at work.
func TestPairwiseJudge(t *testing.T) {
	for _, workers := range []int{1, 8} {
		for _, baseline := range []string{"first", "last"} {
			var asked, base atomic.Int64
			m := saysOf(&asked, func(text string) (string, error) {
				if strings.Contains(text, "a3 or wrong") {
					return "right", nil
				}
				return "wrong", nil
			})
			old := says(func(s pipeline.Site) string {
				base.Add(1)
				return "wrong"
			})
			list := []Candidate{candidate(t, "first", says(right)), candidate(t, "other", says(right)), candidate(t, "last", says(right))}
			for i := range list {
				if list[i].Name == baseline {
					list[i] = candidate(t, baseline, old)
				}
			}
			e := mustEvaluate(t, Plan{
				Rows: quiz(5), Candidates: list, Baseline: baseline, Repeats: 2,
				Metrics: []Metric{newTestJudge(t, m, JudgeFacts{Mode: JudgePairwise})},
			}, Options{Executor: Local{Workers: workers}})
			if base.Load() != 10 {
				t.Errorf("%d workers: the baseline was asked %d times, want 10", workers, base.Load())
			}
			mean, _ := e.Outcome("other").Metrics["good"].Mean.Get()
			if mean != 0.2 {
				t.Errorf("%d workers: the other's mean is %v, want 0.2", workers, mean)
			}
			if c := e.Comparisons[0]; c.Decision != TrendOnly {
				t.Errorf("decision %s", c.Decision)
			}
		}
	}
}

// Changing the judge asks no candidate; the same judge is not asked again; its
// calls are in the run's, as its own.
func TestJudgeInRun(t *testing.T) {
	root := filepath.Join(t.TempDir(), "runs")
	var cands, judged atomic.Int64
	old := says(func(s pipeline.Site) string { cands.Add(1); return right(s) })
	carry := func(say string, settings string) (*Run, *Evaluation) {
		t.Helper()
		m := saysOf(&judged, func(string) (string, error) { return say, nil })
		j := newTestJudge(t, m, JudgeFacts{Calibrate: true, Model: ModelRef{Name: "fake", Settings: datasets.Values{"seed": datasets.Text(settings)}}})
		run, err := StartRun(root, RunInfo{Name: "judged", Started: started}, mustCheck(t, Plan{
			Rows: ratedQuiz(4), Candidates: []Candidate{candidate(t, "old", old)}, Metrics: []Metric{j},
		}))
		if err != nil {
			t.Fatal(err)
		}
		evals, err := run.Evaluate(t.Context(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		again, err := run.Evaluations()
		if err != nil {
			t.Fatal(err)
		}
		if a, b := asJSON(t, evals[0]), asJSON(t, again[0]); a != b {
			t.Errorf("read back it is another evaluation:\n%s\n%s", a, b)
		}
		return run, evals[0]
	}
	run, _ := carry("right", "1")
	if cands.Load() != 4 || judged.Load() != 8 {
		t.Errorf("%d candidates' requests and %d of judges, want 4 and 8", cands.Load(), judged.Load())
	}
	carry("wrong", "1") // the same judge, whatever its model would say now
	if cands.Load() != 4 || judged.Load() != 8 {
		t.Errorf("again: %d candidates' requests and %d of judges", cands.Load(), judged.Load())
	}
	_, e := carry("wrong", "2")
	if cands.Load() != 4 || judged.Load() != 16 {
		t.Errorf("another judge: %d candidates' requests and %d of judges, want 4 and 16", cands.Load(), judged.Load())
	}
	if mean, _ := e.Outcome("old").Metrics["good"].Mean.Get(); mean != 0 {
		t.Errorf("the other judge's mean is %v", mean)
	}
	text, err := os.ReadFile(filepath.Join(run.Dir, CallsFile))
	if err != nil {
		t.Fatal(err)
	}
	kinds, ids := map[string]int{}, map[string]bool{}
	for line := range bytes.Lines(text) {
		r, err := replay.ParseRecord(line)
		if err != nil {
			t.Fatal(err)
		}
		kinds[r.Caller.Kind]++
		ids[r.ID] = true
	}
	if kinds["evaluation"] != 4 || kinds["judge"] != 8 || len(ids) != 12 {
		t.Errorf("%v, %d ids", kinds, len(ids))
	}
}

// Verdicts that did not come are asked for again, and nothing else is.
func TestRetryJudge(t *testing.T) {
	root := filepath.Join(t.TempDir(), "runs")
	var cands, asked atomic.Int64
	word := "perhaps"
	carry := func(classes ...string) (int, *Evaluation) {
		t.Helper()
		m := saysOf(&asked, func(text string) (string, error) {
			if strings.Contains(text, "a1") {
				return word, nil
			}
			return "right", nil
		})
		old := says(func(s pipeline.Site) string { cands.Add(1); return right(s) })
		run, err := StartRun(root, RunInfo{Name: "judged", Started: started}, mustCheck(t, Plan{
			Rows: ratedQuiz(4), Candidates: []Candidate{candidate(t, "old", old)}, Metrics: []Metric{newTestJudge(t, m, JudgeFacts{Calibrate: true})},
		}))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		if classes != nil {
			if n, err = run.RetryFailed(classes...); err != nil {
				t.Fatal(err)
			}
		}
		evals, err := run.Evaluate(t.Context(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return n, evals[0]
	}
	_, e := carry()
	if e.Outcome("old").Failures[ClassJudge] != 1 || e.Judge("good").Missing != 1 {
		t.Fatalf("%v, %d missing", e.Outcome("old").Failures, e.Judge("good").Missing)
	}
	word = "wrong"
	if n, _ := carry("refused"); n != 0 || asked.Load() != 8 {
		t.Errorf("another class: %d, %d requests", n, asked.Load())
	}
	n, e := carry(ClassJudge)
	if n != 2 || cands.Load() != 4 || asked.Load() != 10 || e.Outcome("old").Failed != 0 || e.Judge("good").Missing != 0 {
		t.Errorf("%d asked anew; %d and %d requests; %d failed", n, cands.Load(), asked.Load(), e.Outcome("old").Failed)
	}
}

func TestJudgeCalls(t *testing.T) {
	m := says(right)
	asked := []Candidate{candidate(t, "old", m), candidate(t, "new", m)}
	recorded := append([]Candidate{{Name: "rated", Recorded: true, Program: program(t, answerProgram)}}, asked...)
	for _, c := range []struct {
		facts      JudgeFacts
		candidates []Candidate
		want       int
	}{
		{JudgeFacts{}, asked, 20},
		{JudgeFacts{Repeats: 3}, asked, 60},
		{JudgeFacts{Calibrate: true}, asked, 25},
		{JudgeFacts{Calibrate: true}, recorded, 30},
		{JudgeFacts{Mode: JudgePairwise}, asked, 20},
	} {
		checked := mustCheck(t, Plan{Rows: quiz(5), Candidates: c.candidates, Repeats: 2, Metrics: []Metric{newTestJudge(t, m, c.facts)}})
		if got := checked.JudgeCalls()[0].Calls; got != c.want {
			t.Errorf("%+v of %d: %d calls, want %d", c.facts, len(c.candidates), got, c.want)
		}
	}
}

func TestJudgeIsRefused(t *testing.T) {
	j := newTestJudge(t, says(right), JudgeFacts{Mode: JudgePairwise, Calibrate: true})
	plan := Plan{Rows: quiz(1), Candidates: []Candidate{candidate(t, "old", says(right))}, Metrics: []Metric{j}}
	_, err := Check(plan)
	wantError(t, err, ErrPlan, "good", "judge pointwise")
	j.facts.Calibrate = false
	j.caller.LM.Model = nil
	_, err = Check(plan)
	wantError(t, err, ErrPlan, "the judge good has no model")
}

// Scores of two judges under one name are no one metric.
func TestJudgesOfTwoRuns(t *testing.T) {
	m := saysOf(new(atomic.Int64), func(text string) (string, error) {
		if strings.Contains(text, "wrong") {
			return "wrong", nil
		}
		return "right", nil
	})
	rows := ratedQuiz(12, 0, 1)
	for _, i := range []int{0, 1} {
		rows[i].Recorded = datasets.Values{"result": datasets.Text("wrong")}
	}
	outcome := func(model string, answer func(pipeline.Site) string) *Outcome {
		e := mustEvaluate(t, Plan{
			Rows: rows, Candidates: []Candidate{candidate(t, "old", says(answer))},
			Metrics: []Metric{newTestJudge(t, m, JudgeFacts{Calibrate: true, MinAgreement: 0.6, Model: ModelRef{Name: model}})},
		}, Options{})
		return e.Outcome("old")
	}
	wrong := func(pipeline.Site) string { return "wrong" }
	base := outcome("critic", right)
	for model, trend := range map[string]bool{"critic": false, "another": true} {
		c, err := Compare(base, outcome(model, wrong), CompareOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if c[0].TrendOnly != trend || (c[0].Decision == "worse") == trend {
			t.Errorf("%s: %s, %v", model, c[0].Decision, c[0].Warnings)
		}
	}
}

// What was answered and could not be kept ends the run, also when a judge asked.
func TestJudgeEndsRun(t *testing.T) {
	var asked atomic.Int64
	m := saysOf(&asked, func(string) (string, error) { return "", &pipeline.Fatal{Err: os.ErrInvalid} })
	_, err := Evaluate(t.Context(), Plan{
		Rows: quiz(2), Candidates: []Candidate{candidate(t, "old", says(right))}, Metrics: []Metric{newTestJudge(t, m, JudgeFacts{})},
	}, Options{})
	wantError(t, err, os.ErrInvalid)
}
