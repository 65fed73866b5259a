package stats

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

func TestAdjustedOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		p := make([]float64, rng.IntN(12))
		for i := range p {
			p[i] = float64(rng.IntN(21)) / 20
		}
		holm, sidak := must(Holm(p))(t), must(Sidak(p))(t)
		bh, by := must(BenjaminiHochberg(p))(t), must(BenjaminiYekutieli(p))(t)
		for i := range p {
			bonferroni := min(1, float64(len(p))*p[i])
			// Each asks for less than the next: one p, the false discovery
			// rate, any false alarm.
			if !(p[i] <= bh[i]+1e-15 && bh[i] <= holm[i] && bh[i] <= by[i] && by[i] <= 1 && holm[i] <= bonferroni && p[i] <= sidak[i]+1e-15 && sidak[i] <= bonferroni+1e-15) {
				t.Fatalf("p %v: holm %v, sidak %v, bh %v, by %v", p, holm, sidak, bh, by)
			}
			for k := range p {
				if p[i] == p[k] && (holm[i] != holm[k] || bh[i] != bh[k]) || p[i] < p[k] && (holm[i] > holm[k] || bh[i] > bh[k]) {
					t.Fatalf("p %v changes its order: holm %v, bh %v", p, holm, bh)
				}
			}
		}
	}
}

// together makes candidates' differences that vary together over rows.
func together(rng *rand.Rand, candidates, rows int, gain float64) [][]float64 {
	d := make([][]float64, candidates)
	for i := range rows {
		common := rng.NormFloat64()
		for j := range candidates {
			if i == 0 {
				d[j] = make([]float64, rows)
			}
			d[j][i] = gain + common + rng.NormFloat64()
		}
	}
	return d
}

func TestMaxTRanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for _, rows := range []int{2, 6, 14, 60} {
		d := together(rng, 5, rows, 0.2)
		last := 0.0
		for m := 1; m <= 5; m++ {
			s := must(MaxT(d[:m], nil, Options{Seed: 4}))(t)
			if s.Critical.v < last {
				t.Errorf("%d rows: %d candidates reach %v, fewer reach %v", rows, m, s.Critical, last)
			}
			last = s.Critical.v
			twins := must(MaxT(append(slices.Clone(d[:m]), d[0]), nil, Options{Seed: 4}))(t)
			if twins.Critical != s.Critical {
				t.Errorf("%d rows: a twin changes the critical value from %v to %v", rows, s.Critical, twins.Critical)
			}
			for j, c := range s.Candidates {
				alone, err := Single(d[j], Options{})
				if err != nil {
					t.Fatal(err)
				}
				if c.Low.v > alone.Low.v+1e-9 || c.High.v < alone.High.v-1e-9 {
					t.Errorf("%d rows: [%v, %v] is narrower than the range of one candidate, [%v, %v]", rows, c.Low, c.High, alone.Low, alone.High)
				}
			}
		}
	}
	s := must(MaxT([][]float64{{0.5, 0.5, 0.5}, {0, 1, 0.5}}, nil, Options{}))(t)
	if c := s.Candidates[0]; !c.Low.IsZero() || c.Method != "none" || c.Value != some(0.5) || s.Candidates[1].Low.IsZero() {
		t.Errorf("a candidate that does not vary: %+v", s.Candidates)
	}
	if s := must(MaxT([][]float64{{1}, {0}}, nil, Options{}))(t); s.Method != "none" || !s.Critical.IsZero() {
		t.Errorf("one row: %+v", s)
	}
}

// Of eight candidates without a gain, some ordinary range misses in many a run,
// on so few rows also a simultaneous one in more than 5 %, and on 40 rows no
// longer.
func TestMaxTCoversAllAtOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 2))
	const runs = 60
	for rows, least := range map[int]int{12: 80, 40: 93} {
		held, ordinary := 0, 0
		for range runs {
			d := together(rng, 8, rows, 0)
			s := must(MaxT(d, nil, Options{}))(t)
			all, each := true, true
			for j, c := range s.Candidates {
				low, high := meanOf(d[j]).interval(0.95)
				all = all && c.Low.v <= 0 && 0 <= c.High.v
				each = each && low <= 0 && 0 <= high
			}
			if all {
				held++
			}
			if each {
				ordinary++
			}
		}
		if held < runs*least/100 || ordinary > runs*80/100 {
			t.Errorf("%d rows: of %d runs all hold in %d, with ordinary ranges in %d", rows, runs, held, ordinary)
		}
	}
}

func TestWestfallYoung(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	for _, rows := range []int{2, 5, 10, 40} {
		d := together(rng, 4, rows, 0.4)
		names := named(rows/2, rows-rows/2)
		if rows >= 10 {
			names = nil
		}
		all := must(WestfallYoung(d, names, Options{Seed: 1}))(t)
		for j, r := range all {
			if r.Adjusted.v < r.P.v || r.Adjusted.v > 1 {
				t.Errorf("%d rows: adjusted %v of p %v", rows, r.Adjusted, r.P)
			}
			alone := must(WestfallYoung(d[j:j+1], names, Options{Seed: 1}))(t)[0]
			if alone.P != alone.Adjusted || alone.P != r.P || math.Abs(alone.T.v/r.T.v-1) > 1e-6 {
				t.Errorf("%d rows: alone %+v, among others %+v", rows, alone, r)
			}
			if names == nil && rows <= maxEnumerated {
				if _, p := signFlip(rounded(d[j]), 0); r.P != some(p) {
					t.Errorf("%d rows: p is %v, by sums %v", rows, r.P, p)
				}
			}
		}
	}
	if r := must(WestfallYoung([][]float64{{0, 0, 0}, {0.5, 0.5, 0.5}}, nil, Options{}))(t); r[0].Adjusted != some(1) || r[1].P != some(0.25) || !r[1].T.IsZero() {
		t.Errorf("without variation: %+v", r)
	}
}

// No candidate gains: some adjusted p is below 5 % in no more than 5 % of runs.
func TestWestfallYoungHoldsItsLevel(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 2))
	const runs = 400
	adjusted, plain := 0, 0
	for range runs {
		all := must(WestfallYoung(together(rng, 6, 10, 0), nil, Options{}))(t)
		if slices.ContainsFunc(all, func(r StepDown) bool { return r.Adjusted.v < 0.05 }) {
			adjusted++
		}
		if slices.ContainsFunc(all, func(r StepDown) bool { return r.P.v < 0.05 }) {
			plain++
		}
	}
	if adjusted > runs*8/100 || plain < runs*10/100 {
		t.Errorf("of %d runs without a gain %d find one, by plain p %d", runs, adjusted, plain)
	}
}

// Ten equal candidates on 100 rows: the plain mean of the best is about .05 too
// high; the correction leaves about a third of it.
func TestOptimismOfTheBest(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 2))
	const runs, candidates, rows = 12, 10, 100
	plain, corrected := 0.0, 0.0
	for range runs {
		scores := make([][]float64, candidates)
		for i := range rows {
			common := math.Sqrt(0.6) * rng.NormFloat64()
			for j := range candidates {
				if i == 0 {
					scores[j] = make([]float64, rows)
				}
				if common+math.Sqrt(0.4)*rng.NormFloat64() < normalQuantile(0.75) {
					scores[j][i] = 1
				}
			}
		}
		w := must(WinnerOptimism(scores, nil, Options{Seed: 2}))(t)
		if w.Method != "optimism-sampled" || w.Optimism.v < 0 {
			t.Errorf("%+v", w)
		}
		share := 0.0
		for _, s := range w.WinShare {
			share += s
		}
		near(t, "sum of win shares", some(share), 1)
		plain += (w.Mean.v - 0.75) / runs
		corrected += (w.Corrected.v - 0.75) / runs
	}
	if plain < 0.03 || corrected > plain-0.02 {
		t.Errorf("the best is %v too high, corrected %v", plain, corrected)
	}
}

func TestOptimismByClusters(t *testing.T) {
	scores := [][]float64{{1, 1, 0, 1, 0, 1}, {0, 1, 1, 1, 1, 0}}
	w := must(WinnerOptimism(scores, named(2, 2, 2), Options{}))(t)
	// By clusters the candidates score 2,1,1 and 1,2,1: of 27 resamples the
	// second wins where it drew the second cluster more often than the first,
	// 10 of them; 7 tie, and the first has them.
	near(t, "win share", some(w.WinShare[1]), 10.0/27)
	if w.Winner != 0 || w.Method != "optimism" {
		t.Errorf("%+v", w)
	}
	if one := must(WinnerOptimism(scores[:1], named(2, 2, 2), Options{}))(t); math.Abs(one.Optimism.v) > 1e-12 {
		t.Errorf("there is no choice among one, but optimism is %v", one.Optimism)
	}
}

func TestConditionalWinner(t *testing.T) {
	o := Options{}
	one := must(WinnerConditional([]float64{0.7}, [][]float64{{0.01}}, o))(t)
	near(t, "low of one", one.Low, 0.7-0.1*normalQuantile(0.975))
	near(t, "high of one", one.High, 0.7+0.1*normalQuantile(0.975))
	near(t, "value of one", one.Value, 0.7)

	tie := must(WinnerConditional([]float64{0.7, 0.7}, [][]float64{{0.01, 0}, {0, 0.01}}, o))(t)
	if tie.Winner != 0 || !tie.Low.IsZero() || !tie.Value.IsZero() || len(tie.Warnings) != 1 {
		t.Errorf("a tie: %+v", tie)
	}

	// In a race so close the limits are, but for 1/z², where exp(-gap·z) is
	// the probability.
	const gap = 1e-6
	close := must(WinnerConditional([]float64{gap, 0}, [][]float64{{1, 0}, {0, 1}}, o))(t)
	for p, limit := range map[float64]Opt{0.025: close.Low, 0.5: close.Value} {
		if got := limit.v * gap / math.Log(p); math.Abs(got-1) > 1e-5 {
			t.Errorf("limit at %v is %v, %v of the far tail's", p, limit, got)
		}
	}

	// A candidate that varies with the winner, and more than it, cuts from
	// above.
	both := must(WinnerConditional([]float64{1, 0}, [][]float64{{1, 2}, {2, 9}}, o))(t)
	near(t, "below", both.Below, 2)
	if !both.Above.IsZero() || both.Value.v < 1 {
		t.Errorf("cut from above: %+v", both)
	}
}

// Two equal candidates: given that one won, its range covers 95 %.
func TestConditionalWinnerCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 2))
	const runs = 1500
	held := 0
	for range runs {
		c := must(WinnerConditional([]float64{rng.NormFloat64(), rng.NormFloat64()}, [][]float64{{1, 0}, {0, 1}}, Options{}))(t)
		if c.Low.v <= 0 && 0 <= c.High.v {
			held++
		}
	}
	if share := float64(held) / runs; share < 0.935 || share > 0.965 {
		t.Errorf("the range covers %v", share)
	}
}

func TestSampledMethodsRepeat(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 2))
	d := together(rng, 3, 30, 0.3)
	run := func(seed uint64) []any {
		o := Options{Seed: seed}
		return []any{
			must(MaxT(d, nil, o))(t), must(WestfallYoung(d, nil, o))(t), must(WinnerOptimism(d, nil, o))(t),
			must(BCaMean(d[0], nil, o))(t), must(WildCluster(d[0], named(slices.Repeat([]int{1}, 30)...), 0, o))(t),
		}
	}
	once, again, other := run(1), run(1), run(2)
	for i := range once {
		if !reflect.DeepEqual(once[i], again[i]) {
			t.Errorf("the same seed gives %+v and %+v", once[i], again[i])
		}
		if reflect.DeepEqual(once[i], other[i]) {
			t.Errorf("another seed changes nothing of %+v", once[i])
		}
	}
}
