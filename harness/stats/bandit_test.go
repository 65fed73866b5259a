package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mathext"
)

func TestHalvingKeepsItsBudget(t *testing.T) {
	for candidates := 1; candidates <= 70; candidates++ {
		for _, budget := range []int{500, 777, 4096} {
			plan := must(Halving(candidates, budget))(t)
			calls, left, rows := 0, candidates, 0
			for _, r := range plan {
				if r.Candidates != left || r.Rows < max(1, rows) {
					t.Fatalf("%d candidates, %d calls: %v", candidates, budget, plan)
				}
				calls += r.Calls()
				left, rows = (left+1)/2, r.Rows
			}
			if left != 1 || calls > budget || len(plan) != int(math.Ceil(math.Log2(float64(candidates)))) {
				t.Errorf("%d candidates, %d calls: %v leaves %d and takes %d", candidates, budget, plan, left, calls)
			}
		}
	}
}

func TestRejectsKeepTheirBudget(t *testing.T) {
	for candidates := 2; candidates <= 40; candidates++ {
		for budget := candidates + 1; budget < 900; budget += 7 {
			plan := must(SuccessiveRejects(candidates, budget))(t)
			calls, before := 0, 0
			for k, rows := range plan.Rows {
				if rows < max(1, before) {
					t.Fatalf("%d candidates, %d calls: %v", candidates, budget, plan)
				}
				calls += rows // of the one that goes
				if k == len(plan.Rows)-1 {
					calls += rows // and of the one left
				}
				before = rows
			}
			if len(plan.Rows) != candidates-1 || plan.Calls != calls || calls > budget {
				t.Fatalf("%d candidates, %d calls: %v takes %d", candidates, budget, plan, calls)
			}
		}
	}
	// L is 19/12 for 4 candidates, so 42 = 4 + 38 calls give whole numbers: 38/(19/12·4) is 6.
	if plan := must(SuccessiveRejects(4, 42))(t); plan.Rows[0] != 6 || plan.Rows[1] != 8 || plan.Rows[2] != 12 {
		t.Errorf("whole numbers become %v", plan.Rows)
	}
}

func TestHyperbandBrackets(t *testing.T) {
	for _, rows := range []int{1, 2, 16, 50, 81, 1000, maxHyperbandRows} {
		for _, keep := range []int{2, 3, 4, 10, math.MaxInt} {
			brackets := must(Hyperband(rows, keep))(t)
			for b, bracket := range brackets {
				if len(bracket) != len(brackets)-b {
					t.Fatalf("%d rows, 1 of %d: bracket %d of %d has %d rounds", rows, keep, b, len(brackets), len(bracket))
				}
				for i, r := range bracket {
					if i > 0 && (r.Candidates > bracket[i-1].Candidates/keep || r.Rows < bracket[i-1].Rows*keep) || r.Candidates < 1 || r.Rows < 1 {
						t.Fatalf("%d rows, 1 of %d: %v", rows, keep, bracket)
					}
				}
				if last := bracket[len(bracket)-1]; last.Rows != rows {
					t.Fatalf("%d rows, 1 of %d: the last round has %d", rows, keep, last.Rows)
				}
			}
		}
	}
}

func TestDeviation(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 4))
	const runs = 300
	var missed [3]int
	for run := range runs {
		scores := unitScores(rng, 60, 0.8, run%2 == 0)
		r := must(Deviation(scores, Scale{}, Options{Alpha: 0.1}))(t)
		wide := make([]float64, len(scores))
		for i, x := range scores {
			wide[i] = 10*x - 4
		}
		w := must(Deviation(wide, Scale{-4, 6}, Options{Alpha: 0.1}))(t)
		mean, _ := moments(scores)
		for i, pair := range [][2]Opt{{r.Hoeffding, w.Hoeffding}, {r.Bernstein, w.Bernstein}, {r.Sample, w.Sample}} {
			if !closeTo(10*pair[0].v, pair[1].v) {
				t.Fatalf("ten times the scale: %+v becomes %+v", r, w)
			}
			if math.Abs(mean-0.8) > pair[0].v {
				missed[i]++
			}
		}
	}
	for i, m := range missed {
		if m > 45 { // 30 expected at most
			t.Errorf("radius %d is exceeded in %d of %d runs", i, m, runs)
		}
	}
	if r := must(Deviation([]float64{1}, Scale{}, Options{}))(t); !r.Sample.IsZero() || r.Hoeffding.IsZero() {
		t.Errorf("one row: %+v", r)
	}
	if r := must(Deviation(nil, Scale{}, Options{}))(t); r != (Radii{}) {
		t.Errorf("no rows: %+v", r)
	}
	// Only where the variance is small do many rows tell more than Hoeffding knows.
	still := must(Deviation(make([]float64, 1000), Scale{}, Options{}))(t)
	if still.Bernstein.v >= still.Hoeffding.v || still.Sample.v >= still.Hoeffding.v {
		t.Errorf("no variance: %+v", still)
	}
}

func TestLUCBRadius(t *testing.T) {
	at := func(rows, round, candidates int) float64 {
		return must(LUCBRadius(rows, round, candidates, Options{}))(t)
	}
	if !closeTo(at(40, 9, 3), at(10, 9, 3)/2) {
		t.Error("four times the rows do not halve the radius")
	}
	if at(10, 9, 3) >= at(10, 10, 3) || at(10, 9, 3) >= at(10, 9, 4) {
		t.Error("neither rounds nor candidates widen it")
	}
	if x := at(1, math.MaxInt, math.MaxInt); math.IsInf(x, 0) || !(x > 0) {
		t.Errorf("at the end of all rounds it is %v", x)
	}
}

// greaterBySum is the probability by a sum that whole parameters have (Miller 2014).
func greaterBySum(first, second Beta) float64 {
	total := 0.0
	for i := range int(first.A) {
		k := float64(i)
		total += math.Exp(mathext.Lbeta(second.A+k, first.B+second.B) - math.Log(first.B+k) - mathext.Lbeta(1+k, first.B) - mathext.Lbeta(second.A, second.B))
	}
	return total
}

func TestProbGreater(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 4))
	for range 200 {
		whole := func() float64 { return float64(1 + rng.IntN(1+rng.IntN(200))) }
		a, b := Beta{whole(), whole()}, Beta{whole(), whole()}
		p := must(ProbGreater(a, b))(t)
		if !closeTo(p, greaterBySum(a, b)) {
			t.Errorf("%v over %v: %v, by the sum %v", a, b, p, greaterBySum(a, b))
		}
		if back := must(ProbGreater(b, a))(t); !closeTo(p+back, 1) {
			t.Errorf("%v over %v: %v, and back %v", a, b, p, back)
		}
		if wrong := must(ProbGreater(Beta{b.B, b.A}, Beta{a.B, a.A}))(t); !closeTo(p, wrong) {
			t.Errorf("%v over %v: %v, by what is wrong %v", a, b, p, wrong)
		}
	}
	// Beta(a, 1) is the a-th root of a uniform number, so that the answer is a/(a+c).
	for _, a := range []float64{0.01, 0.3, 1, 7.5, 1000} {
		for _, c := range []float64{0.01, 0.02, 0.5, 3, 1e6} {
			if p := must(ProbGreater(Beta{a, 1}, Beta{c, 1}))(t); !closeTo(p, a/(a+c)) {
				t.Errorf("%v to %v: %v", a, c, p)
			}
		}
	}
	if p := must(ProbGreater(Beta{0.5, 0.5}, Beta{1e7, 1e7}))(t); math.Abs(p-0.5) > 1e-6 {
		t.Errorf("of a rate that is surely a half: %v", p)
	}
	if p := must(ProbGreater(Beta{9e6, 1e6}, Beta{1, 1e7}))(t); !closeTo(p, 1) {
		t.Errorf("of rates far apart: %v", p)
	}
}

func TestPassKCountsAllChoices(t *testing.T) {
	for answers := 1; answers <= 9; answers++ {
		for right := range answers + 1 {
			for k := 1; k <= answers; k++ {
				hits, all, choices := 0, 0, 0
				for set := range 1 << answers { // the first so many bits are right answers
					size, hit := 0, 0
					for i := range answers {
						if set>>i&1 == 1 {
							size++
							if i < right {
								hit++
							}
						}
					}
					if size != k {
						continue
					}
					choices++
					if hit > 0 {
						hits++
					}
					if hit == k {
						all++
					}
				}
				p := must(PassK(answers, right, k))(t)
				if !closeTo(p.Any, float64(hits)/float64(choices)) || !closeTo(p.All, float64(all)/float64(choices)) {
					t.Errorf("%d of %d right, k %d: %+v, counted %d and %d of %d", right, answers, k, p, hits, all, choices)
				}
			}
		}
	}
}
