package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func randomTable(rng *rand.Rand, q int) [][]int {
	table := make([][]int, q)
	for k := range table {
		for range q {
			table[k] = append(table[k], rng.IntN(6))
		}
		table[k][k] += rng.IntN(12)
	}
	return table
}

func sameCoefficient(a, b Coefficient) bool {
	return closeTo(a.Value.v, b.Value.v) && closeTo(a.SE.v, b.SE.v) && a.Value.ok == b.Value.ok && a.SE.ok == b.SE.ok
}

func TestAgreeOrdered(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 5))
	for i := range 200 {
		q := 2 + i%4
		table := randomTable(rng, q)
		table[0][1]++ // two categories at least
		turned, reversed := make([][]int, q), make([][]int, q)
		for k := range q {
			for l := range q {
				turned[k] = append(turned[k], table[l][k])
				reversed[k] = append(reversed[k], table[q-1-k][q-1-l])
			}
		}
		a := must(AgreeOrdered(table, Options{}))(t)
		if !sameCoefficient(a.Kappa, must(AgreeOrdered(turned, Options{}))(t).Kappa) {
			t.Errorf("%v: kappa hangs on who is first", table)
		}
		if !sameCoefficient(a.Kappa, must(AgreeOrdered(reversed, Options{}))(t).Kappa) {
			t.Errorf("%v: kappa hangs on the direction", table)
		}
		if plain := must(Agree(table, Options{}))(t); q == 2 && !sameCoefficient(a.Kappa, plain.Kappa) {
			t.Errorf("%v: %+v, without weights %+v", table, a.Kappa, plain.Kappa)
		}
	}
	near := must(AgreeOrdered([][]int{{5, 5, 0}, {0, 5, 5}, {0, 0, 5}}, Options{}))(t)
	far := must(AgreeOrdered([][]int{{5, 0, 5}, {0, 5, 0}, {5, 0, 5}}, Options{}))(t)
	if near.Kappa.Value.v <= far.Kappa.Value.v {
		t.Errorf("a miss by one has %v and one by two %v", near.Kappa.Value, far.Kappa.Value)
	}
	if full := must(AgreeOrdered([][]int{{3, 0}, {0, 4}}, Options{}))(t); full.Kappa.Value != some(1) || !full.Kappa.Low.IsZero() {
		t.Errorf("full agreement: %+v", full)
	}
	for _, table := range [][][]int{{}, {{7}}, {{0, 0}, {0, 7}}} {
		if a := must(AgreeOrdered(table, Options{}))(t); !a.Kappa.Value.IsZero() {
			t.Errorf("%v has kappa %v", table, a.Kappa.Value)
		}
	}
}

// alphaByPairs is Krippendorff's definition, pair by pair.
func alphaByPairs(units [][]float64, level Level) float64 {
	counts, all := map[float64]float64{}, []float64{}
	for _, u := range units {
		if len(u) > 1 {
			all = append(all, u...)
		}
	}
	for _, x := range all {
		counts[x]++
	}
	gap := func(a, b float64) float64 {
		if a > b {
			a, b = b, a
		}
		switch {
		case a == b:
			return 0
		case level == NominalLevel:
			return 1
		case level == IntervalLevel:
			return (a - b) * (a - b)
		}
		between := -(counts[a] + counts[b]) / 2
		for x, c := range counts {
			if x >= a && x <= b {
				between += c
			}
		}
		return between * between
	}
	pairs := func(values []float64) float64 {
		total := 0.0
		for i := range values {
			for j := range values {
				if i != j {
					total += gap(values[i], values[j])
				}
			}
		}
		return total
	}
	n, observed := float64(len(all)), 0.0
	for _, u := range units {
		if len(u) > 1 {
			observed += pairs(u) / float64(len(u)-1)
		}
	}
	return 1 - observed/n/(pairs(all)/(n*(n-1)))
}

func TestKrippendorffIsItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 5))
	for range 100 {
		units, monotone := make([][]float64, 3+rng.IntN(8)), [][]float64{}
		for u := range units {
			for range rng.IntN(5) {
				units[u] = append(units[u], float64(rng.IntN(4)))
			}
		}
		units = append(units, []float64{0, 1, 1}, []float64{2, 2})
		for _, ratings := range units {
			var changed []float64
			for _, x := range ratings {
				changed = append(changed, x*x*x-7)
			}
			slices.Reverse(changed)
			monotone = append(monotone, changed)
		}
		for _, level := range []Level{NominalLevel, OrdinalLevel, IntervalLevel} {
			a := must(Krippendorff(units, level))(t)
			if want := alphaByPairs(units, level); !closeTo(a.Alpha.v, want) {
				t.Errorf("%v, %s: %v, pair by pair %v", units, level, a.Alpha, want)
			}
			other := must(Krippendorff(monotone, level))(t)
			if level != IntervalLevel && !closeTo(a.Alpha.v, other.Alpha.v) {
				t.Errorf("%v, %s: other numbers in the same order change %v to %v", units, level, a.Alpha, other.Alpha)
			}
		}
	}
	full := must(Krippendorff([][]float64{{1, 1, 1}, {3}, {2, 2}}, IntervalLevel))(t)
	if full.Alpha != some(1) || full.Units != 2 || full.Ratings != 5 {
		t.Errorf("full agreement: %+v", full)
	}
	for _, units := range [][][]float64{nil, {{1}, {2}}, {{0.1, 0.1, 0.1}, {0.1, 0.1}}} {
		for _, level := range []Level{NominalLevel, OrdinalLevel, IntervalLevel} {
			if a := must(Krippendorff(units, level))(t); !a.Alpha.IsZero() {
				t.Errorf("%v, %s: alpha is %v", units, level, a.Alpha)
			}
		}
	}
}

// The most likely line has residuals that neither lean to a side nor go along
// with the length.
func TestPreferLongerIsMostLikely(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	for range 100 {
		n := 30 + rng.IntN(60)
		x, y := make([]float64, n), make([]float64, n)
		slope, shift, scale := 2*rng.NormFloat64(), 3*rng.NormFloat64(), math.Exp(5*rng.NormFloat64())
		for i := range x {
			x[i] = scale * (rng.NormFloat64() + shift)
			if rng.Float64() < chanceOf(slope*(x[i]/scale-shift)) {
				y[i] = 1
			}
		}
		if parted(x, y) {
			continue
		}
		b := must(PreferLonger(x, y, Options{}))(t)
		var lean, along sum
		for i := range x {
			miss := y[i] - chanceOf(b.Intercept.Value.v+b.Slope.Value.v*x[i])
			lean.add(miss)
			along.add(miss * x[i] / scale)
		}
		if math.Abs(lean.value()) > 1e-8 || math.Abs(along.value()) > 1e-8 {
			t.Fatalf("residuals are %v and %v: %+v", lean.value(), along.value(), b)
		}
		m := must(PreferLonger(x, mirrored(y), Options{}))(t)
		if math.Abs(m.Slope.Value.v+b.Slope.Value.v) > 1e-8/scale || math.Abs(m.AtEqualLength.Value.v+b.AtEqualLength.Value.v-1) > 1e-8 {
			t.Fatalf("%+v, mirrored %+v", b, m)
		}
		if e := b.AtEqualLength; !(0 <= e.Low.v && e.Low.v <= e.Value.v && e.Value.v <= e.High.v && e.High.v <= 1) {
			t.Fatalf("at equal length: %+v", e)
		}
	}
}

func TestPreferLongerWithoutAFit(t *testing.T) {
	for name, pairs := range map[string][2][]float64{
		"no pairs":          {{}, {}},
		"one verdict":       {{1, 2, 3}, {1, 1, 1}},
		"parted":            {{1, 2, 3, 4}, {0, 0, 1, 1}},
		"parted, turned":    {{1, 2, 3, 4}, {1, 1, 0, 0}},
		"parted at a value": {{1, 2, 2, 3}, {0, 0, 1, 1}},
		"one length":        {{2, 2, 2}, {0, 1, 1}},
		"lengths too small": {{-1e-200, 1e-200, 0, 0}, {1, 0, 1, 0}},
	} {
		b := must(PreferLonger(pairs[0], pairs[1], Options{}))(t)
		if b.Slope.Method != "none" || !b.Slope.Value.IsZero() || !b.P.IsZero() || !b.AtEqualLength.Value.IsZero() || len(b.Warnings) == 0 {
			t.Errorf("%s: %+v", name, b)
		}
	}
	wide := must(PreferLonger([]float64{-1e100, 1e100, -1e99, 2e99}, []float64{1, 0, 0, 1}, Options{}))(t)
	if wide.Slope.Value.IsZero() || wide.AtEqualLength.Value.IsZero() {
		t.Errorf("wide lengths: %+v", wide)
	}
}

// ratedRows makes a person's ratings of all rows, and a judge's scores that
// lean by 0.2 and go along with them as stated.
func ratedRows(rng *rand.Rand, rows int, along float64) (human, judge []float64) {
	for range rows {
		x := rng.NormFloat64()
		human = append(human, x)
		judge = append(judge, 0.2+along*x+math.Sqrt(1-along*along)*rng.NormFloat64())
	}
	return human, judge
}

func TestPPICoversAndSaves(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	const runs, rated, rows = 400, 40, 440
	for _, along := range []float64{0, 0.9} {
		missed, missedPlain, width, widthAlone := 0, 0, 0.0, 0.0
		for range runs {
			human, judge := ratedRows(rng, rows, along)
			p := must(PPIPlusPlus(human[:rated], judge[:rated], judge[rated:], Options{}))(t)
			plain := must(PPI(human[:rated], judge[:rated], judge[rated:], Options{}))(t)
			alone := must(Single(human[:rated], Options{}))(t)
			if p.Low.v > 0 || p.High.v < 0 {
				missed++
			}
			if plain.Low.v > 0 || plain.High.v < 0 {
				missedPlain++
			}
			width += p.High.v - p.Low.v
			widthAlone += alone.High.v - alone.Low.v
		}
		if missed > 40 || missedPlain > 40 { // 20 expected, 4.4 the standard error
			t.Errorf("with a correlation of %v, %d and %d of %d ranges miss", along, missed, missedPlain, runs)
		}
		// At 0.9 the variance is 1-0.81/1.1 of the ratings' alone: half the width.
		if ratio := width / widthAlone; along == 0 && ratio > 1.02 || along == 0.9 && math.Abs(ratio-0.51) > 0.05 {
			t.Errorf("with a correlation of %v the range has %v of the width", along, ratio)
		}
	}
}

func TestPPIRules(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	human, judge := ratedRows(rng, 30, 0.7)
	human, judge, rest := human[:12], judge[:12], judge[12:]
	p := must(PPIPlusPlus(human, judge, rest, Options{}))(t)
	shifted := func(values []float64) []float64 {
		out := slices.Clone(values)
		for i := range out {
			out[i] += 3
		}
		return out
	}
	kinder := must(PPIPlusPlus(human, shifted(judge), shifted(rest), Options{}))(t)
	if !closeTo(p.Value.v, kinder.Value.v) || !closeTo(p.SE.v, kinder.SE.v) {
		t.Errorf("a kinder judge changes %+v to %+v", p, kinder)
	}
	if p.DF != some(11) || len(p.Warnings) != 1 || p.Units != 12 || p.Rows != 30 || p.Method != "ppi++" {
		t.Errorf("twelve ratings: %+v", p)
	}
	// A judge that always says the same adds nothing to the ratings.
	still := must(PPIPlusPlus(human, make([]float64, 12), make([]float64, 18), Options{}))(t)
	alone := must(Single(human, Options{}))(t)
	if still.Lambda != some(0) || !closeTo(still.Low.v, alone.Low.v) || !closeTo(still.High.v, alone.High.v) {
		t.Errorf("%+v, the ratings alone %+v", still, alone)
	}
	// A judge that is always right leaves only what the rest varies.
	right := must(PPI(human, human, rest, Options{}))(t)
	if want := meanOf(rest); !closeTo(right.Value.v, want.mean) || !closeTo(right.SE.v, want.se) {
		t.Errorf("%+v, the rest alone %+v", right, want)
	}
	if none := must(PPI([]float64{0.1, 0.3}, []float64{0.2, 0.4}, []float64{0.7, 0.7}, Options{}))(t); none.Method != "none" || !none.Low.IsZero() {
		t.Errorf("nothing varies: %+v", none)
	}
	wide := must(PPIPlusPlus([]float64{1e100, -1e100}, []float64{1e-300, 0}, []float64{1e100, -1e100}, Options{}))(t)
	if wide.Value.IsZero() || wide.SE.IsZero() {
		t.Errorf("wide scores: %+v", wide)
	}
}

func TestCorrectRate(t *testing.T) {
	// Of 200 right answers the judge takes 160, of 200 wrong ones 60: at a share of right answers of s it takes .3 + .5s.
	check := JudgeCheck{Right: 200, Accepted: 160, Wrong: 200, Rejected: 140}
	for accepted, want := range map[int]float64{300: 0, 400: 0.2, 550: 0.5, 800: 1, 100: 0, 900: 1} {
		s := must(CorrectRate(accepted, 1000, check, Options{}))(t)
		if !closeTo(s.Value.v, want) || s.Method != "rogan-gladen" || !(0 <= s.Low.v && s.Low.v <= s.High.v && s.High.v <= 1) {
			t.Errorf("%d of 1000: %+v, want %v", accepted, s, want)
		}
		turned := JudgeCheck{Right: check.Wrong, Accepted: check.Rejected, Wrong: check.Right, Rejected: check.Accepted}
		m := must(CorrectRate(1000-accepted, 1000, turned, Options{}))(t)
		if !closeTo(m.Value.v, 1-s.Value.v) || !closeTo(m.Low.v, 1-s.High.v) || !closeTo(m.High.v, 1-s.Low.v) {
			t.Errorf("%d of 1000: %+v, with right and wrong exchanged %+v", accepted, s, m)
		}
	}
	for _, blind := range []JudgeCheck{{Right: 10, Accepted: 5, Wrong: 10, Rejected: 5}, {Right: 10, Accepted: 3, Wrong: 10, Rejected: 6}, {Right: 3, Accepted: 1, Wrong: 3, Rejected: 2}} {
		if s := must(CorrectRate(5, 10, blind, Options{}))(t); !s.Value.IsZero() || s.Method != "none" || len(s.Warnings) < 2 {
			t.Errorf("a judge that cannot tell: %+v", s)
		}
	}
	short := JudgeCheck{Right: 1, Accepted: 1, Wrong: 1000, Rejected: 200}
	if s := must(CorrectRate(900, 1000, short, Options{}))(t); s.Value.IsZero() || !s.Low.IsZero() || len(s.Warnings) != 1 {
		t.Errorf("one right answer checked: %+v", s)
	}
}

func TestCorrectRateCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 5))
	count := func(n int, chance float64) int { return ones(unitScores(rng, n, chance, false)) }
	const runs = 400
	missed := 0
	for range runs {
		check := JudgeCheck{Right: 80, Accepted: count(80, 0.85), Wrong: 60, Rejected: count(60, 0.75)}
		s := must(CorrectRate(count(300, 0.7*0.85+0.3*0.25), 300, check, Options{}))(t)
		if s.Low.v > 0.7 || s.High.v < 0.7 {
			missed++
		}
	}
	if missed > 35 { // 20 expected, 4.4 the standard error
		t.Errorf("%d of %d ranges miss", missed, runs)
	}
}
