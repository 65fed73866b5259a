package reports

import (
	"strings"
	"testing"

	"evalrun/harness"
	"evalrun/harness/stats"
)

// judgesStage is judged by three judges: one that agrees with people, one that does
// not, and one of pairs.
func judgesStage(t testing.TB) *stage {
	judged := func(name string, wrong int) *lane {
		return &lane{harness.CandidateFacts{Name: name, Program: "shop:route", Model: model("small", "openai")}, func(i, _ int) reply {
			if i < wrong {
				return reply{text: "billing", scores: []float64{0, 0, 0.5}}
			}
			return reply{text: "repair", scores: []float64{1, 1, 0.5}}
		}}
	}
	return &stage{
		metrics: []string{"sound", "kind", "duel"}, baseline: "old", rows: 40, row: ticket,
		lanes: []*lane{judged("old", 12), judged("new", 2)},
		tell: func(e *harness.Evaluation) {
			e.Judges = []harness.JudgeReport{
				judgeReport(t, "sound", [][2]int{{55, 4}, {6, 33}}, 0.6),
				judgeReport(t, "kind", [][2]int{{30, 20}, {20, 30}}, 0.6),
				{JudgeFacts: harness.JudgeFacts{
					Metric: "duel", Mode: harness.JudgePairwise, Model: harness.ModelRef{Name: "critic", Provider: "openai"}, Program: "judge_pair", ProgramVersion: "sha256:02",
					Verdicts: []string{"better", "worse", "tie"}, MinAgreement: 0.6, Repeats: 1,
				}, Requests: 80, Pairs: 40, Ties: 15},
			}
			e.Judges[0].Missing, e.Judges[0].N = 2, 100
			e.Judges[0].NoVerdict = map[string]int{"refused": 1, "off_menu": 2}
			cost, n := 0.25, int64(9000)
			e.Judges[0].Usage = harness.Usage{Cost: &cost, InputTokens: &n, OutputTokens: &n}
			bias, err := stats.Orders{Same: 30, First: 7, Second: 1, Tied: 2}.Bias(stats.Options{})
			if err != nil {
				t.Fatal(err)
			}
			e.Judges[2].Position = &bias
			for _, out := range e.Candidates {
				out.Judging = &harness.Usage{Cost: &cost, InputTokens: &n, OutputTokens: &n, Unknown: 1}
			}
			m := e.Candidates[1].Metrics["sound"]
			m.Failed, m.NoVerdict = 3, 3
			e.Candidates[1].Metrics["sound"] = m
			for i := range e.Comparisons {
				c := &e.Comparisons[i]
				if c.Metric == "sound" {
					c.Unjudged = 3
				} else {
					c.TrendOnly, c.Decision = true, harness.TrendOnly
				}
			}
		},
	}
}

func judgeReport(t testing.TB, metric string, confusion [][2]int, least float64) harness.JudgeReport {
	t.Helper()
	a, err := stats.Agree([][]int{confusion[0][:], confusion[1][:]}, stats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	kappa, _ := a.Kappa.Value.Get()
	return harness.JudgeReport{
		JudgeFacts: harness.JudgeFacts{
			Metric: metric, Mode: harness.JudgePointwise, Model: harness.ModelRef{Name: "critic", Provider: "openai"}, Program: "judge", ProgramVersion: "sha256:01",
			Plugins: []harness.PluginRef{{Name: "trim", Version: "1.0.0"}}, Verdicts: []string{"right", "wrong"}, Right: []string{"right"}, Calibrate: true, MinAgreement: least, Repeats: 1,
		},
		N: a.N, Confusion: confusion, Agreement: a.Observed, Kappa: a.Kappa, AC1: a.AC1, Fit: kappa >= least, Requests: 120,
	}
}

// By hand: sound agrees on 88 of 98, with shares of 59 and 61 in 98: chance is
// (59·61 + 39·37)/98² = .5250, and kappa (.8980 − .5250)/.4750 = .785. kind agrees on
// 60 of 100, with even shares: kappa .2.
func TestJudgesInWords(t *testing.T) {
	e := report(t, "judges", facts, judgesStage(t)).Evaluations[0]
	said := map[string]string{}
	for _, v := range e.Verdicts {
		said[v.Metric] = v.Sentence
	}
	var words []string
	for _, j := range e.judges() {
		words = append(words, j.Words.String())
	}
	for _, c := range []struct {
		text  string
		wants []string
	}{
		{said["sound"], []string{"`new` is better than `old`", "The judge gave no verdict on an answer to 3 rows, left out here."}},
		{said["kind"], []string{"A trend and no verdict: `new` against `old` by `kind`", "Its judge's kappa 0.20 is below the 0.60 that was asked for, so this decides nothing."}},
		{said["duel"], []string{"A trend and no verdict", "Its judge was not compared with people, so this decides nothing."}},
		{words[0], []string{"Judge `sound` (model `critic`) agrees with people on 90% of 98 rated answers (82 to 94%), Cohen's kappa 0.79", "gave no verdict on 2 of 100", "Kappa is at least the 0.60 that was asked for, so its scores may decide.", "No verdict on answers of candidates: 2 off menu, 1 refused.", "cost 0.25", "in no candidate's"}},
		{words[1], []string{"kappa 0.20", "trend only"}},
		{words[2], []string{"another verdict on 10 of 40 pairs (25%, 14 to 40%), 7 for whichever came first and 1 for the second (p 0.070); 15 of 40 answers are ties in all", "trend only"}},
	} {
		for _, want := range c.wants {
			if !strings.Contains(c.text, want) {
				t.Errorf("%q does not say %q", c.text, want)
			}
		}
	}
	if strings.Contains(said["sound"], "count 0") {
		t.Errorf("a missing verdict is said to count 0: %s", said["sound"])
	}
}
