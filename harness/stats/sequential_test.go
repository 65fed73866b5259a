package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func closeTo(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

func mirrored(scores []float64) []float64 {
	out := make([]float64, len(scores))
	for i, x := range scores {
		out[i] = 1 - x
	}
	return out
}

// unitScores draws scores from 0 to 1 with this mean, whole or with partial credit.
func unitScores(rng *rand.Rand, rows int, mean float64, partial bool) []float64 {
	scores := make([]float64, rows)
	for i := range scores {
		switch {
		case partial: // uniform of the width that fits
			scores[i] = mean + (2*rng.Float64()-1)*min(mean, 1-mean)
		case rng.Float64() < mean:
			scores[i] = 1
		}
	}
	return scores
}

// Without a difference, no more than Alpha of all runs ever reach 1/Alpha,
// though each is looked at after every row.
func TestBettingHoldsItsLevel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	const runs = 600
	alarms, found := 0, 0
	for range runs {
		for _, mean := range []float64{0.5, 0.65} {
			scores := unitScores(rng, 150, mean, false)
			bets, plugIn := make([]float64, len(scores)), newPlugIn(0.05)
			for i, x := range scores {
				bets[i] = min(1, plugIn.bet())
				plugIn.add(x)
			}
			if slices.Max(must(BettingCapital(scores, bets, 0.5))(t)) >= 20 {
				if mean == 0.5 {
					alarms++
				} else {
					found++
				}
			}
		}
	}
	if alarms > 45 { // 30 expected at most, 5.3 the standard error
		t.Errorf("%d of %d runs without a difference reach 20", alarms, runs)
	}
	if found < runs/2 {
		t.Errorf("%d of %d runs with a difference reach 20", found, runs)
	}
}

func TestBettingMirrorsAndStaysFinite(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	for range 100 {
		null := 0.1 + 0.8*rng.Float64()
		scores := unitScores(rng, 30, 0.6, rng.IntN(2) == 0)
		bets, against := make([]float64, 30), make([]float64, 30)
		for i := range bets {
			bets[i] = -1/(1-null) + rng.Float64()*(1/(1-null)+1/null)*0.999
			against[i] = -bets[i]
		}
		one, other := must(BettingCapital(scores, bets, null))(t), must(BettingCapital(mirrored(scores), against, 1-null))(t)
		for i := range one {
			if !closeTo(one[i], other[i]) || one[i] < 0 {
				t.Fatalf("row %d: %v, mirrored %v", i, one[i], other[i])
			}
		}
	}
	all, most := rightOf(3000, 3000), make([]float64, 3000)
	for i := range most {
		most[i] = 2
	}
	if last := must(BettingCapital(all, most, 0.5))(t)[2999]; last != math.MaxFloat64 {
		t.Errorf("a capital without bound is %v", last)
	}
	if ruined := must(BettingCapital([]float64{0, 1, 1}, []float64{2, 2, 2}, 0.5))(t); !slices.Equal(ruined, []float64{0, 0, 0}) {
		t.Errorf("who loses everything has %v", ruined)
	}
}

var anytimeRanges = map[string]func([]float64, Options) (Statistic, error){
	"predictable-bernstein": PredictableBernstein,
	"hedged-capital":        HedgedCapital,
}

func TestAnytimeRangesCoverAtAllLooks(t *testing.T) {
	const runs = 150
	for method, find := range anytimeRanges {
		rng := rand.New(rand.NewPCG(3, 3))
		missed := 0
		for run := range runs {
			mean := []float64{0.5, 0.9}[run%2]
			scores := unitScores(rng, 120, mean, run%3 == 0)
			var looks []Statistic
			for rows := 10; rows <= len(scores); rows += 10 {
				looks = append(looks, must(find(scores[:rows], Options{}))(t))
			}
			all := must(InAllLooks(looks))(t)
			if all.Method != method || all.Low.v > mean || all.High.v < mean {
				missed++
			}
		}
		if missed > 15 { // 7.5 expected at most, 2.7 the standard error
			t.Errorf("%s misses the mean in %d of %d runs", method, missed, runs)
		}
	}
}

func TestAnytimeRangesMirror(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 3))
	for method, find := range anytimeRanges {
		for rows := range 40 {
			scores := unitScores(rng, rows, rng.Float64(), rows%2 == 0)
			s, m := must(find(scores, Options{Alpha: 0.1}))(t), must(find(mirrored(scores), Options{Alpha: 0.1}))(t)
			if rows == 0 {
				if s.Method != "none" || !s.Low.IsZero() || !s.Value.IsZero() || len(s.Warnings) != 1 {
					t.Errorf("%s without rows: %+v", method, s)
				}
				continue
			}
			if !closeTo(s.Low.v, 1-m.High.v) || !closeTo(s.High.v, 1-m.Low.v) || !closeTo(s.Value.v, 1-m.Value.v) {
				t.Errorf("%s of %v: %+v, mirrored %+v", method, scores, s, m)
			}
			if s.Method != method || !(0 <= s.Low.v && s.Low.v < s.High.v && s.High.v <= 1) {
				t.Errorf("%s of %v: %+v", method, scores, s)
			}
		}
	}
}

// The range is what the definition keeps, mean by mean.
func TestHedgedCapitalKeepsByItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 3))
	const alpha = 0.05
	for run := range 20 {
		scores := unitScores(rng, 60, 0.7, run%2 == 0)
		s := must(HedgedCapital(scores, Options{Alpha: alpha}))(t)
		for m := 0.005; m < 1; m += 0.01 {
			higher, lower := 1.0, 1.0
			total, squares := 0.5, 0.25
			for i, x := range scores {
				n := float64(i + 1)
				bet := math.Sqrt(2 * math.Log(2/alpha) / (squares / n * n * math.Log(1+n)))
				higher *= 1 + min(bet, 0.5/m)*(x-m)
				lower *= 1 - min(bet, 0.5/(1-m))*(x-m)
				total += x
				squares += (x - total/(n+1)) * (x - total/(n+1))
			}
			if kept := max(higher, lower)/2 < 1/alpha; kept != (m > s.Low.v && m < s.High.v) {
				t.Fatalf("%v has capitals %v and %v; the range is [%v, %v]", m, higher, lower, s.Low, s.High)
			}
		}
	}
}

func TestInAllLooks(t *testing.T) {
	look := func(method string, low, high float64) Statistic {
		return Statistic{Method: method, Low: some(low), High: some(high), Rows: 5}
	}
	s := must(InAllLooks([]Statistic{{Method: "none"}, look("a", 0.1, 0.6), look("a", 0.3, 0.9)}))(t)
	if s.Low != some(0.3) || s.High != some(0.6) || s.Method != "a" || s.Rows != 5 {
		t.Errorf("cut: %+v", s)
	}
	s = must(InAllLooks([]Statistic{look("a", 0.1, 0.2), look("a", 0.3, 0.9)}))(t)
	if !s.Low.IsZero() || s.Method != "none" || len(s.Warnings) != 1 {
		t.Errorf("nothing in common: %+v", s)
	}
	if s = must(InAllLooks([]Statistic{{Method: "none"}}))(t); !s.Low.IsZero() || s.Method != "none" {
		t.Errorf("no range: %+v", s)
	}
}

// A walk of fair steps leaves a boundary with chance Alpha at most, however
// long it is watched.
func TestBoundariesHold(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 3))
	const runs, rows = 400, 400
	o := Options{Alpha: 0.1}
	var mixture, stitched [rows]float64
	for i := range rows {
		v := float64(i+1) / 4
		mixture[i], stitched[i] = must(MixtureBoundary(v, 25, o))(t), must(StitchedBoundary(v, 2.5, 0, o))(t)
		if i > 0 && (mixture[i] <= mixture[i-1] || stitched[i] < stitched[i-1]) {
			t.Fatalf("row %d: a boundary falls: %v, %v", i, mixture[i], stitched[i])
		}
	}
	outside, above := 0, 0
	for range runs {
		walk, left, rose := 0.0, false, false
		for i := range rows {
			walk += float64(rng.IntN(2)) - 0.5
			left = left || math.Abs(walk) >= mixture[i]
			rose = rose || walk >= stitched[i]
		}
		if left {
			outside++
		}
		if rose {
			above++
		}
	}
	if outside > 58 || above > 58 { // 40 expected at most, 6 the standard error
		t.Errorf("of %d walks %d leave the mixture's boundary and %d the stitched one", runs, outside, above)
	}
}

func TestBoundaryShapes(t *testing.T) {
	at := func(best float64) float64 { return must(MixtureBoundary(100, best, Options{}))(t) }
	if at(100) > at(50) || at(100) > at(200) || at(50) > at(10) || at(200) > at(1000) {
		t.Errorf("at 100 it is %v for 100, %v for 50, %v for 200", at(100), at(50), at(200))
	}
	stitched := func(v, c, alpha float64) float64 { return must(StitchedBoundary(v, 10, c, Options{Alpha: alpha}))(t) }
	if stitched(0, 0, 0.05) != stitched(10, 0, 0.05) || stitched(10, 0, 0.05) >= stitched(11, 0, 0.05) {
		t.Error("a variance below the least does not count as that")
	}
	if stitched(100, 1, 0.05) <= stitched(100, 0, 0.05) || stitched(100, 0, 0.01) <= stitched(100, 0, 0.05) {
		t.Error("neither heavier tails nor a smaller alpha ask for more")
	}
	for _, v := range []float64{0, 1e-100, 1e100} {
		for _, b := range []float64{1e-100, 1e100} {
			m, s := must(MixtureBoundary(v, b, Options{}))(t), must(StitchedBoundary(v, b, 1e100, Options{}))(t)
			if !(m > 0 && s > 0) || math.IsInf(m+s, 0) {
				t.Errorf("variance %v, %v: %v and %v", v, b, m, s)
			}
		}
	}
}

// Over all ways that n fair rows can fall, an e-value is 1 on average.
func TestSignEvidenceIsFair(t *testing.T) {
	for n := range 40 {
		either, greater := 0.0, 0.0
		ways := math.Ldexp(1, -n)
		for wins := range n + 1 {
			e, m := must(SignEvidence(wins, n-wins))(t), must(SignEvidence(n-wins, wins))(t)
			if !closeTo(e.Either, m.Either) || !closeTo(e.Greater+m.Greater, 2*e.Either) {
				t.Fatalf("%d wins of %d: %+v, mirrored %+v", wins, n, e, m)
			}
			either += ways * e.Either
			greater += ways * e.Greater
			ways *= float64(n-wins) / float64(wins+1)
		}
		if !closeTo(either, 1) || !closeTo(greater, 1) {
			t.Errorf("%d rows: %v and %v on average", n, either, greater)
		}
	}
	e := must(SignEvidence(100_000, 0))(t)
	if e.Either != math.MaxFloat64 || e.Greater != math.MaxFloat64 {
		t.Errorf("all of 100,000 wins: %+v", e)
	}
	if e = must(SignEvidence(0, 100_000))(t); e.Greater != 0 || e.Either != math.MaxFloat64 {
		t.Errorf("none of 100,000 wins: %+v", e)
	}
}

// Choosing by e-values is Benjamini and Hochberg on 1/e.
func TestEBenjaminiHochbergIsThatOfInverses(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 3))
	chosen := 0
	for range 300 {
		e, p := make([]float64, rng.IntN(12)), []float64{}
		for i := range e {
			e[i] = math.Exp(6 * rng.Float64() * rng.Float64())
			p = append(p, 1/e[i])
		}
		got := must(EBenjaminiHochberg(e, Options{Alpha: 0.1}))(t)
		var want []int
		for i, a := range must(BenjaminiHochberg(p))(t) {
			if a <= 0.1 {
				want = append(want, i)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("e %v: %v, by p %v", e, got, want)
		}
		chosen += len(got)
	}
	if chosen == 0 {
		t.Error("nothing was ever chosen")
	}
	if got := must(EBenjaminiHochberg([]float64{math.Inf(1), 1}, Options{}))(t); !slices.Equal(got, []int{0}) {
		t.Errorf("a certain one: %v", got)
	}
}
