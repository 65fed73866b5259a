package harness

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// long has n rows whose question takes 1.5 KB.
func long(n int) datasets.Rows {
	rows := quiz(n)
	text := strings.Repeat("What is the right answer to this one? ", 40)
	for i := range rows {
		rows[i].Inputs["question"] = datasets.Text(text + rows[i].ID)
	}
	return rows
}

// The cost of a call through the harness, with a model that answers at once. The
// plain loop does the same without it: it asks, scores and adds up, one row after
// the other, and keeps, orders and writes nothing.
func BenchmarkEvaluate(b *testing.B) {
	const n = 2000
	rows := long(n)
	p := program(b, answerProgram)
	c := Candidate{Name: "a", Program: p, Caller: caller(says(right))}
	perCall := func(b *testing.B) {
		b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		b.ReportMetric(0, "ns/op")
	}
	b.Run("loop", func(b *testing.B) {
		for b.Loop() {
			sum := 0.0
			for i := range rows {
				call, err := c.Caller.Ask(b.Context(), p, pipeline.Ask{
					Site: pipeline.Site{Row: rows[i].ID}, Inputs: p.Own(rows[i].Inputs), Context: rows[i].Context,
				})
				if err != nil {
					b.Fatal(err)
				}
				s, err := match{}.Score(b.Context(), rows[i], call)
				if err != nil {
					b.Fatal(err)
				}
				sum += s.Value
			}
			if sum != n {
				b.Fatal(sum)
			}
		}
		perCall(b)
	})
	for _, workers := range []int{1, 16} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			for b.Loop() {
				e := mustEvaluate(b, Plan{Rows: rows, Metrics: []Metric{match{}}, Candidates: []Candidate{c}}, Options{Executor: Local{Workers: workers}})
				if e.Outcome("a").N != n {
					b.Fatal(e)
				}
			}
			perCall(b)
		})
	}
	// A run writes calls and results; one whose model's answers cannot be had
	// again has each on disk before it is used as well.
	for _, deterministic := range []bool{true, false} {
		name := "run, journaled"
		if deterministic {
			name = "run"
		}
		b.Run(name, func(b *testing.B) {
			caller := *c.Caller
			caller.LM.Deterministic = deterministic
			c := c
			c.Caller = &caller
			checked := mustCheck(b, Plan{Rows: rows, Metrics: []Metric{match{}}, Candidates: []Candidate{c}})
			for b.Loop() {
				if _, err := mustCreate(b, checked).Evaluate(b.Context(), Options{}); err != nil {
					b.Fatal(err)
				}
			}
			perCall(b)
		})
	}
}

// A run that its journal answers wholly.
func BenchmarkResume(b *testing.B) {
	const n = 1000
	root := b.TempDir()
	checked := mustCheck(b, Plan{Rows: long(n), Metrics: []Metric{match{}}, Candidates: []Candidate{candidate(b, "a", says(right))}})
	once := func() *Run {
		r, err := StartRun(root, RunInfo{Name: "x", Started: started}, checked)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := r.Evaluate(b.Context(), Options{Executor: Local{Workers: 32}}); err != nil {
			b.Fatal(err)
		}
		return r
	}
	once()
	for b.Loop() {
		if r := once(); !r.Again {
			b.Fatal("it began anew")
		}
	}
}

// Ten times the rows take at most eleven times the time: compare the two.
func BenchmarkRows(b *testing.B) {
	for _, n := range []int{2000, 20_000} {
		b.Run(fmt.Sprintf("rows=%d", n), func(b *testing.B) {
			rows := long(n)
			plan := Plan{Rows: rows, Metrics: []Metric{match{}}, Candidates: []Candidate{
				candidate(b, "a", says(right)), candidate(b, "b", says(rightBut("r1"))),
			}}
			for i := range plan.Candidates {
				plan.Candidates[i].Caller.LM.Deterministic = true // a disk's moods are not measured
			}
			for b.Loop() {
				r := mustCreate(b, mustCheck(b, plan))
				if _, err := r.Evaluate(b.Context(), Options{}); err != nil {
					b.Fatal(err)
				}
				if _, err := r.Evaluations(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What is done once the answers are in, tally and comparison, must not grow with
// the square of the rows, which would be a hundred times for ten times the rows.
// The bound is wide because the machine may be busy; the benchmark is narrow.
func TestTallyIsLinear(t *testing.T) {
	took := func(n int) time.Duration {
		least := time.Hour
		for range 4 {
			begun := time.Now()
			tallied(t, n)
			least = min(least, time.Since(begun))
		}
		return least
	}
	small, large := took(3000), took(30_000)
	if ratio := float64(large) / float64(small); ratio > 60 {
		t.Errorf("ten times the rows took %.1f times as long (%v, %v)", ratio, small, large)
	}
}

func tallied(t *testing.T, n int) {
	t.Helper()
	e := &Evaluation{
		Metrics: []string{"match"}, Repeats: 1, Baseline: "a", Rows: RowCounts{Input: n, Asked: n},
		Candidates: []*Outcome{{CandidateFacts: CandidateFacts{Name: "a"}}, {CandidateFacts: CandidateFacts{Name: "b"}}},
	}
	ta := newTally(e, Plan{}.Stats)
	one := 1.0
	for i := range n {
		for _, name := range []string{"a", "b"} {
			r := Result{Row: fmt.Sprint(i), Candidate: name, Scores: []Scored{{Metric: "match", Value: &one}}}
			if err := ta.check(&r); err != nil {
				t.Fatal(err)
			}
			ta.add(&r)
		}
	}
	if _, err := ta.finish(); err != nil {
		t.Fatal(err)
	}
}
