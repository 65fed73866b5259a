package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// coverage is the exact probability that a range of a rate holds it.
func coverage(t *testing.T, find func(right, rows int, o Options) (Statistic, error), rows int, rate float64) float64 {
	t.Helper()
	covered, chance := 0.0, math.Pow(1-rate, float64(rows))
	for k := range rows + 1 {
		if s := must(find(k, rows, Options{}))(t); s.Low.v <= rate && rate <= s.High.v {
			covered += chance
		}
		chance *= float64(rows-k) / float64(k+1) * rate / (1 - rate)
	}
	return covered
}

// Exact coverage over 100 rates from .50 to .995: Clopper and Pearson never
// below 95 %, Jeffreys 95 % on average.
func TestRatesCover(t *testing.T) {
	for rows, want := range map[int]struct{ exactMean, exactWorst, jeffreysMean, jeffreysWorst float64 }{
		10: {0.984, 0.961, 0.954, 0.869},
		30: {0.974, 0.954, 0.951, 0.889},
	} {
		exactMean, exactWorst, jeffreysMean, jeffreysWorst := 0.0, 1.0, 0.0, 1.0
		for i := range 100 {
			rate := 0.5 + 0.495*float64(i)/99
			exact, jeffreys := coverage(t, ClopperPearson, rows, rate), coverage(t, Jeffreys, rows, rate)
			exactMean, jeffreysMean = exactMean+exact/100, jeffreysMean+jeffreys/100
			exactWorst, jeffreysWorst = min(exactWorst, exact), min(jeffreysWorst, jeffreys)
		}
		if exactWorst < 0.95 {
			t.Errorf("%d rows: clopper-pearson covers only %v", rows, exactWorst)
		}
		for what, pair := range map[string][2]float64{
			"clopper-pearson, mean": {exactMean, want.exactMean}, "clopper-pearson, worst": {exactWorst, want.exactWorst},
			"jeffreys, mean": {jeffreysMean, want.jeffreysMean}, "jeffreys, worst": {jeffreysWorst, want.jeffreysWorst},
		} {
			if math.Abs(pair[0]-pair[1]) > 0.006 {
				t.Errorf("%d rows: %s covers %v, want about %v", rows, what, pair[0], pair[1])
			}
		}
	}
}

func TestRatesMirror(t *testing.T) {
	for rows := range 25 {
		for right := range rows + 1 {
			for _, find := range []func(int, int, Options) (Statistic, error){ClopperPearson, Jeffreys} {
				s, m := must(find(right, rows, Options{}))(t), must(find(rows-right, rows, Options{}))(t)
				if rows == 0 {
					if s.Method != "none" || !s.Value.IsZero() {
						t.Errorf("no rows: %+v", s)
					}
					continue
				}
				near(t, "low", s.Low, 1-m.High.v)
				if !(s.Low.v <= s.Value.v && s.Value.v <= s.High.v) || (s.Low.v == 0) != (right == 0) || (s.High.v == 1) != (right == rows) {
					t.Errorf("%d of %d: %+v", right, rows, s)
				}
			}
		}
	}
	if s := must(ClopperPearson(700_000, 1_000_000, Options{}))(t); math.Abs(s.Low.v-0.6991) > 1e-4 || math.Abs(s.High.v-0.7009) > 1e-4 {
		t.Errorf("many rows: %+v", s)
	}
}

func TestPairedCountsMirror(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	for range 300 {
		c := PairedCounts{rng.IntN(9), rng.IntN(9), rng.IntN(9), rng.IntN(9)}
		swapped := PairedCounts{c.BothRight, c.OnlyBaseline, c.OnlyCandidate, c.BothWrong}
		for name, find := range map[string]func(PairedCounts, Options) (Statistic, error){
			"agresti-min": PairedCounts.AgrestiMin, "newcombe-10": PairedCounts.Newcombe, "newcombe-8": PairedCounts.NewcombeUncorrected,
		} {
			s, m := must(find(c, Options{}))(t), must(find(swapped, Options{}))(t)
			if c.rows() == 0 {
				if s.Method != "none" {
					t.Errorf("no rows: %+v", s)
				}
				continue
			}
			if s.Method != name || !(-1 <= s.Low.v && s.Low.v <= s.High.v && s.High.v <= 1+1e-12) {
				t.Errorf("%+v: %+v", c, s)
			}
			near(t, "low of the swapped", m.Low, -s.High.v)
			near(t, "difference of the swapped", m.Value, -s.Value.v)
		}
		if c.rows() > 0 {
			corrected, plain := must(c.Newcombe(Options{}))(t), must(c.NewcombeUncorrected(Options{}))(t)
			if corrected.Low.v > plain.Low.v+1e-12 || corrected.High.v < plain.High.v-1e-12 {
				t.Errorf("%+v: correction narrows [%v, %v] to [%v, %v]", c, plain.Low, plain.High, corrected.Low, corrected.High)
			}
		}
	}
}

func TestQuantileAndMedian(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	for n := 1; n < 40; n++ {
		values := make([]float64, n)
		for i := range values {
			values[i] = math.Exp(rng.NormFloat64())
		}
		kept := slices.Clone(values)
		last := math.Inf(-1)
		for p := 0.0; p <= 1; p += 0.01 {
			q := must(Quantile(values, p))(t)
			if q < last || q < slices.Min(values) || q > slices.Max(values) {
				t.Fatalf("%d values: quantile %v is %v after %v", n, p, q, last)
			}
			last = q
		}
		m := must(Median(values, Options{}))(t)
		if !slices.Equal(values, kept) {
			t.Fatal("the values were reordered")
		}
		if (m.Method == "none") != (n < 6) || n >= 6 && !(m.Low.v <= m.Value.v && m.Value.v <= m.High.v && slices.Contains(values, m.Low.v)) {
			t.Errorf("%d values: %+v", n, m)
		}
		if rank, covers := medianRank(n, 0.05); rank > 0 {
			tail, _ := coinTail(n, min(rank, n/2))
			if covers < 0.95 || 2*rank < n && 1-2*tail >= 0.95 {
				t.Errorf("%d values: rank %d covers %v, the next %v", n, rank, covers, 1-2*tail)
			}
		}
	}
	if rank, covers := medianRank(1_000_000, 0.05); math.Abs(float64(rank)-(500_000-980)) > 2 || covers < 0.95 {
		t.Errorf("a million values: rank %d covers %v", rank, covers)
	}
}

func TestBCaMean(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	held := 0
	const runs = 30
	for range runs {
		values, minus := make([]float64, 25), make([]float64, 25)
		for i := range values {
			values[i] = rng.ExpFloat64()
			minus[i] = -values[i]
		}
		s, m := must(BCaMean(values, nil, Options{Seed: 1}))(t), must(BCaMean(minus, nil, Options{Seed: 1}))(t)
		near(t, "low mirrored", m.Low, -s.High.v)
		near(t, "high mirrored", m.High, -s.Low.v)
		if s.Method != "bca-sampled" || s.High.v-s.Value.v <= s.Value.v-s.Low.v {
			t.Errorf("a range of skewed values leans to the wrong side: %+v", s)
		}
		if s.Low.v <= 1 && 1 <= s.High.v {
			held++
		}
	}
	if held < runs*85/100 {
		t.Errorf("of %d ranges %d hold the mean", runs, held)
	}
	if s := must(BCaMean([]float64{0, 0, 0, 0, 0, 0, 5e-13}, nil, Options{}))(t); s.Method != "cr2" && s.Method != "bca-sampled" {
		t.Errorf("next to no variation: %+v", s)
	}
	if s := must(BCaMean([]float64{0.5, 0.5, 0.5}, nil, Options{}))(t); s.Low != some(0.5) || s.High != some(0.5) {
		t.Errorf("no variation: %+v", s)
	}
	if s := must(BCa(5, []float64{1, 2, 3}, []float64{4, 5, 6}, Options{}))(t); s.Method != "none" || !s.Low.IsZero() || len(s.Warnings) != 2 {
		t.Errorf("a value beyond all replicates: %+v", s)
	}
}

func TestBoundsHoldEveryFilling(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 3))
	for range 200 {
		n := 1 + rng.IntN(12)
		outcomes := func() []Outcome {
			rows := make([]Outcome, n)
			for i := range rows {
				rows[i] = Outcome{Score: 2 + 3*rng.Float64(), Missing: rng.IntN(3) == 0}
			}
			return rows
		}
		base, cand, scale := outcomes(), outcomes(), Scale{2, 5}
		filled := func(rows []Outcome) float64 {
			total := 0.0
			for _, r := range rows {
				total += r.fill(2 + 3*rng.Float64())
			}
			return total / float64(n)
		}
		one := must(MissingBounds(cand, scale, Options{}))(t)
		both := must(MissingBoundsPaired(base, cand, scale, Options{}))(t)
		for range 20 {
			c, b := filled(cand), filled(base)
			if c < one.Low.v-1e-9 || c > one.High.v+1e-9 || c-b < both.Low.v-1e-9 || c-b > both.High.v+1e-9 {
				t.Fatalf("%v and %v lie outside of %+v and %+v", c, c-b, one, both)
			}
		}
		if n > 1 && !(one.RangeLow.v <= one.Low.v && one.High.v <= one.RangeHigh.v) || one.RangeLow.IsZero() != (n == 1) {
			t.Errorf("%d rows: %+v", n, one)
		}
	}
	whole := must(MissingBounds([]Outcome{{Score: 1}, {Score: 0}, {Score: 1}}, Scale{}, Options{}))(t)
	m := meanOf([]float64{1, 0, 1})
	near(t, "low with nothing missing", whole.RangeLow, m.mean-normalQuantile(0.975)*m.se)
	if whole.Low != whole.High || whole.Low != whole.AsZero || whole.Low != whole.Observed {
		t.Errorf("nothing missing: %+v", whole)
	}
	all := must(MissingBounds([]Outcome{{Missing: true}, {Missing: true}}, Scale{}, Options{}))(t)
	if !all.Observed.IsZero() || all.Low != some(0) || all.High != some(1) || all.RangeHigh != some(1) {
		t.Errorf("everything missing: %+v", all)
	}
}

func TestEqualWeightsGiveStudentsRange(t *testing.T) {
	scores := []float64{0.2, 0.9, 0.4, 1, 0.7, 0.5}
	low, high := meanOf(scores).interval(0.95)
	w := must(WeightedMean(scores, slices.Repeat([]float64{0.1}, 6), Options{}))(t)
	s := must(StratifiedMean([]Stratum{{Population: 100, Scores: scores}}, Options{}))(t)
	for _, r := range []Statistic{w.Statistic, s} {
		near(t, r.Method+" low", r.Low, low)
		near(t, r.Method+" high", r.High, high)
		near(t, r.Method+" df", r.DF, 5)
	}
	near(t, "effective rows", w.Effective, 6)
	near(t, "largest weight", w.Largest, 1.0/6)
	if s := must(StratifiedMean([]Stratum{{9, []float64{1, 1}}, {1000, []float64{0, 0, 0}}}, Options{}))(t); !s.Low.IsZero() || s.Value.IsZero() || len(s.Warnings) != 2 {
		t.Errorf("no variation within strata: %+v", s)
	}
}

func TestShrinkingDrawsIn(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 3))
	for range 200 {
		n := 1 + rng.IntN(8)
		estimates, se := make([]float64, n), make([]float64, n)
		right, rows := make([]int, n), make([]int, n)
		for i := range n {
			estimates[i], se[i] = rng.NormFloat64(), 0.1+rng.Float64()
			rows[i] = rng.IntN(30)
			right[i] = rng.IntN(rows[i] + 1)
		}
		s := must(ShrinkSlices(estimates, se))(t)
		for i, slice := range s.Slices {
			far, shrunk := estimates[i]-s.Common.v, slice.Value.v-s.Common.v
			if far*shrunk < 0 || math.Abs(shrunk) > math.Abs(far)+1e-12 || slice.SE.v > se[i]+1e-12 || s.Weights[i] < 0 || s.Weights[i] > 1 {
				t.Fatalf("slice %d of %v, %v becomes %+v about %v", i, estimates, se, slice, s.Common)
			}
			for k := range n {
				if se[i] < se[k] && s.Weights[i] < s.Weights[k] {
					t.Errorf("a less certain slice keeps more: %v of %v", s.Weights, se)
				}
			}
		}
		for i, slice := range must(ShrinkRates(right, rows, Prior{Mean: 0.7, Rows: 5}, Options{}))(t) {
			plain := 0.7
			if rows[i] > 0 {
				plain = float64(right[i]) / float64(rows[i])
			}
			if v := slice.Value.v; v < min(plain, 0.7)-1e-12 || v > max(plain, 0.7)+1e-12 || !(slice.Low.v < v && v < slice.High.v) {
				t.Errorf("%d of %d becomes %+v", right[i], rows[i], slice)
			}
		}
		shrunk, factor, err := JamesStein(estimates, 0.5)
		if err != nil || factor < 0 || factor > 1 || n <= 3 && factor != 1 || len(shrunk) != n {
			t.Errorf("james-stein of %v: %v, %v, %v", estimates, shrunk, factor, err)
		}
	}
	// Far from all parts their densities are 0 to a double; the nearer part
	// decides.
	far := must(Tweedie(1000, 1, []Normal{{0.5, 0, 1}, {0.5, 10, 1}}))(t)
	near(t, "far out", some(far), (1000+10)/2.0)
}

func TestParetoFront(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 3))
	for range 200 {
		n := rng.IntN(10)
		costs, quality := make([]float64, n), make([]float64, n)
		for i := range n {
			costs[i], quality[i] = float64(rng.IntN(6)), float64(rng.IntN(6))
		}
		front := must(ParetoFront(costs, quality))(t)
		beats := func(a, b int) bool {
			return costs[a] <= costs[b] && quality[a] >= quality[b] && (costs[a] != costs[b] || quality[a] != quality[b])
		}
		for i := range n {
			by := slices.IndexFunc(front, func(j int) bool { return beats(j, i) })
			if slices.Contains(front, i) != (by < 0) {
				t.Fatalf("costs %v, quality %v: front %v", costs, quality, front)
			}
		}
	}
}

func TestCostPerPointWithoutPoints(t *testing.T) {
	s := must(CostPerPoint([]float64{1, 2}, []float64{0, 0}))(t)
	if !s.Value.IsZero() || len(s.Warnings) != 2 {
		t.Errorf("no points: %+v", s)
	}
	s = must(CostPerPoint([]float64{1, 2, 0.5}, []float64{2, 4, 1}))(t)
	near(t, "ratio", s.Value, 0.5)
	near(t, "standard error of a ratio that never varies", s.SE, 0)
}
