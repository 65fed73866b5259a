package reports

import (
	"strings"
	"testing"

	"evalrun/harness"
	"evalrun/harness/stats"
)

// lanesStage compares a candidate with the baseline asked again, on rows of which
// not all could be compared with what was recorded, answered by two models.
func lanesStage(t testing.TB) *stage {
	lane1 := func(name string, wrong ...int) *lane {
		return &lane{harness.CandidateFacts{Name: name, Program: "shop:route", Model: model("small", "openai")}, func(i, _ int) reply {
			for _, w := range wrong {
				if i == w {
					return reply{text: "billing", scores: []float64{0}}
				}
			}
			return reply{text: "repair", scores: []float64{1}}
		}}
	}
	again := lane1("old (again)", 1, 2)
	again.AA = true
	return &stage{
		metrics: []string{"exact_match"}, baseline: "old (again)", rows: 40, row: ticket,
		lanes: []*lane{lane1("old", 0, 1), lane1("new", 1), again},
		tell: func(e *harness.Evaluation) {
			e.Baseline, e.Compare = "old", harness.CompareAA
			first, second := make([]float64, 40), make([]float64, 40)
			for i := range first {
				first[i], second[i] = 1, 1
			}
			first[0], first[1], second[1], second[2] = 0, 0, 0, 0
			floor, err := stats.FloorOf(first, second, stats.Options{})
			if err != nil {
				t.Fatal(err)
			}
			e.Noise = []harness.Noise{{Metric: "exact_match", NoiseFloor: floor}}
			for i := range e.Comparisons {
				e.Comparisons[i].WithinNoise = e.Comparisons[i].Candidate == "new"
			}
			e.Fidelity = &harness.Fidelity{
				Same: 29, Different: 3, ByPart: map[string]int{"system": 2, "config": 1}, First: "ticket-3",
				NotComparable: map[string]int{harness.IncomparableShaped: 5, harness.IncomparableVersion: 2, harness.IncomparableNoHash: 1},
			}
			for _, out := range e.Candidates {
				out.Transferred = &harness.Transfers{Exact: 30, Normalized: 2, None: 8}
				out.Served, out.Systems = map[string]int{"small-2026-01-01": 40}, map[string]int{"fp-1": 40}
			}
			e.Candidates[1].Served = map[string]int{"small-2026-01-01": 31, "small-2026-03-01": 9}
		},
	}
}

func TestFidelityText(t *testing.T) {
	for _, tt := range []struct {
		f    *harness.Fidelity
		want string
	}{
		{nil, ""},
		{&harness.Fidelity{Same: 1}, "The baseline sends exactly what was recorded, on the 1 row that could be compared."},
		{&harness.Fidelity{Same: 1200}, "The baseline sends exactly what was recorded, on all 1,200 rows that could be compared."},
		{
			&harness.Fidelity{NotComparable: map[string]int{"no_hash": 3, "shaped": 4}},
			"No row's request could be compared with the recorded one; not compared: 4 shaped by their host's plugins, 3 without a recorded hash.",
		},
		{
			&harness.Fidelity{Same: 3, Different: 2, ByPart: map[string]int{"messages": 2, "tools": 1}, First: "r1", NotComparable: map[string]int{"other_version": 1}},
			"The baseline sends another request than was recorded on 2 of 5 rows (2 messages, 1 tools); not compared: 1 of another version. See evalrun run SPEC --row r1 --show-request.",
		},
	} {
		if got := Fidelity(tt.f); got != tt.want {
			t.Errorf("%+v:\n%s\nwant\n%s", tt.f, got, tt.want)
		}
	}
}

// The verdict says what a candidate was compared with, and that a difference is
// within what asking again changes; the notes say the rest.
func TestLanesInWords(t *testing.T) {
	e := report(t, "lanes", facts, lanesStage(t)).Evaluations[0]
	var sentence string
	for _, v := range e.Verdicts {
		if v.Candidate == "new" {
			sentence = v.Sentence
		}
	}
	for _, want := range []string{"`new` against `old (again)` (the baseline asked again)", "within what asking the baseline again changes"} {
		if !strings.Contains(sentence, want) {
			t.Errorf("the verdict %q does not say %q", sentence, want)
		}
	}
	var notes []string
	for _, p := range e.notes() {
		notes = append(notes, p.String())
	}
	all := strings.Join(notes, "\n")
	for _, want := range []string{
		"on 3 of 32 rows (2 system, 1 config)",
		"Asked again, `old` changed on 2 of 40 rows (0.0 points): asking again moves its score by up to ±6.9 points. Within that: `new`.",
		"Answers that equal the rated one, of which alone its verdict holds: `old` 32 of 40 (80%, 2 but for white space and case); `new` ",
		"Answered by: `old` `small-2026-01-01` (40); `new` `small-2026-01-01` (31), `small-2026-03-01` (9); ",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the notes do not say %q:\n%s", want, all)
		}
	}
}
