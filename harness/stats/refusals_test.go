package stats

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// problem drops what was computed.
func problem[T any](_ T, err error) error { return err }

func TestRefusals(t *testing.T) {
	nan, two, names := math.NaN(), []float64{0, 1}, []string{"a", "b"}
	many := [][]float64{two, two}
	badOptions := Options{Alpha: 2}
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"cluster mean, options":      {problem(ClusterMean(two, names, badOptions)), "alpha is 2"},
		"cluster mean, score":        {problem(ClusterMean([]float64{0, nan}, names, Options{})), "row 1 has NaN"},
		"cluster mean, names":        {problem(ClusterMean(two, names[:1], Options{})), "1 names of clusters for 2 rows"},
		"cluster mean, empty name":   {problem(ClusterMean(two, []string{"a", ""}, Options{})), "row 1 has no cluster"},
		"paired clusters, options":   {problem(PairedClusters(two, two, names, badOptions)), "alpha is 2"},
		"paired clusters, lengths":   {problem(PairedClusters(two, two[:1], names, Options{})), "2 baseline rows and 1 candidate rows"},
		"paired clusters, binary":    {problem(PairedClusters([]float64{0, 0.5}, two, names, Options{Binary: true})), "stated to be binary"},
		"paired clusters, candidate": {problem(PairedClusters(two, []float64{0, 0.5}, names, Options{Binary: true})), "stated to be binary"},
		"paired clusters, names":     {problem(PairedClusters(two, two, names[:1], Options{})), "1 names"},
		"wild, options":              {problem(WildCluster(two, names, 0, badOptions)), "alpha is 2"},
		"wild, value":                {problem(WildCluster([]float64{nan}, names[:1], 0, Options{})), "value 0 is NaN"},
		"wild, null":                 {problem(WildCluster(two, names, nan, Options{})), "null 0 is NaN"},
		"wild, names":                {problem(WildCluster(two, names[:1], 0, Options{})), "1 names"},
		"icc, value":                 {problem(ICC([]float64{math.Inf(1)}, names[:1])), "value 0 is +Inf"},
		"icc, names":                 {problem(ICC(two, names[:1])), "1 names"},
		"design effect, size":        {problem(DesignEffect(0.5, 0.1)), "0.5"},
		"design effect, too far":     {problem(DesignEffect(5, -0.3)), "-0.3"},
		"design effect, NaN":         {problem(DesignEffect(5, nan)), "NaN"},
		"components, no answer":      {problem(VarianceComponents([][]float64{{1}, {}})), "row 1 has no answer"},
		"components, answer":         {problem(VarianceComponents([][]float64{{1, nan}})), "row 0, answer 1 is NaN"},
		"exact, more right":          {problem(ClopperPearson(3, 2, Options{})), "3 right of 2 rows"},
		"exact, negative":            {problem(Jeffreys(-1, 2, Options{})), "-1 right"},
		"exact, options":             {problem(Jeffreys(1, 2, badOptions)), "alpha is 2"},
		"counts, negative":           {problem(PairedCounts{OnlyBaseline: -1, BothRight: 3}.Newcombe(Options{})), "OnlyBaseline:-1"},
		"counts, options":            {problem(PairedCounts{BothRight: 3}.AgrestiMin(badOptions)), "alpha is 2"},
		"quantile, none":             {problem(Quantile(nil, 0.5)), "no values"},
		"quantile, share":            {problem(Quantile(two, 1.5)), "1.5"},
		"quantile, value":            {problem(Quantile([]float64{nan}, 0.5)), "NaN"},
		"median, value":              {problem(Median([]float64{nan}, Options{})), "NaN"},
		"median, options":            {problem(Median(two, badOptions)), "alpha is 2"},
		"bca, one replicate":         {problem(BCa(1, two[:1], two, Options{})), "no second replicate"},
		"bca, one unit":              {problem(BCa(1, two, two[:1], Options{})), "no second value without one unit"},
		"bca, value":                 {problem(BCa(nan, two, two, Options{})), "NaN"},
		"bca, options":               {problem(BCa(1, two, two, badOptions)), "alpha is 2"},
		"bca mean, score":            {problem(BCaMean([]float64{nan}, nil, Options{})), "NaN"},
		"bca mean, names":            {problem(BCaMean(two, names[:1], Options{})), "1 names"},
		"bca mean, options":          {problem(BCaMean(two, nil, badOptions)), "alpha is 2"},
		"holm":                       {problem(Holm([]float64{0.5, 1.5})), "number 1 is 1.5"},
		"sidak":                      {problem(Sidak([]float64{nan})), "number 0 is NaN"},
		"benjamini-hochberg":         {problem(BenjaminiHochberg([]float64{-0.1})), "-0.1"},
		"benjamini-yekutieli":        {problem(BenjaminiYekutieli([]float64{2})), "number 0 is 2"},
		"max-t, none":                {problem(MaxT(nil, nil, Options{})), "no candidates"},
		"max-t, lengths":             {problem(MaxT([][]float64{two, two[:1]}, nil, Options{})), "candidate 1 has 1 rows"},
		"max-t, number":              {problem(MaxT([][]float64{{nan}}, nil, Options{})), "candidate 0, row 0 is NaN"},
		"max-t, options":             {problem(MaxT(many, nil, badOptions)), "alpha is 2"},
		"max-t, names":               {problem(MaxT(many, names[:1], Options{})), "1 names"},
		"westfall-young, none":       {problem(WestfallYoung(nil, nil, Options{})), "no candidates"},
		"westfall-young, options":    {problem(WestfallYoung(many, nil, badOptions)), "alpha is 2"},
		"optimism, none":             {problem(WinnerOptimism(nil, nil, Options{})), "no candidates"},
		"optimism, options":          {problem(WinnerOptimism(many, nil, badOptions)), "alpha is 2"},
		"conditional, none":          {problem(WinnerConditional(nil, nil, Options{})), "no estimates"},
		"conditional, estimate":      {problem(WinnerConditional([]float64{nan}, [][]float64{{1}}, Options{})), "estimate 0 is NaN"},
		"conditional, rows":          {problem(WinnerConditional(two, [][]float64{{1, 0}}, Options{})), "covariance of 1 rows"},
		"conditional, columns":       {problem(WinnerConditional(two, [][]float64{{1, 0}, {0}}, Options{})), "row 1 of the covariance has 1"},
		"conditional, number":        {problem(WinnerConditional(two, [][]float64{{1, nan}, {0, 1}}, Options{})), "number 1 is NaN"},
		"conditional, asymmetric":    {problem(WinnerConditional(two, [][]float64{{1, 0.1}, {0.2, 1}}, Options{})), "symmetric"},
		"conditional, too large":     {problem(WinnerConditional(two, [][]float64{{1, 2}, {2, 1}}, Options{})), "allow at most 1"},
		"conditional, no variance":   {problem(WinnerConditional(two, [][]float64{{1, 0}, {0, 0}}, Options{})), "variance of the winner"},
		"conditional, options":       {problem(WinnerConditional(two, [][]float64{{1, 0}, {0, 1}}, badOptions)), "alpha is 2"},
		"rates, lengths":             {problem(ShrinkRates([]int{1}, []int{2, 3}, Prior{0.5, 5}, Options{})), "1 counts"},
		"rates, counts":              {problem(ShrinkRates([]int{3}, []int{2}, Prior{0.5, 5}, Options{})), "slice 0 has 3 right of 2"},
		"rates, prior":               {problem(ShrinkRates([]int{1}, []int{2}, Prior{1, 5}, Options{})), "the prior is"},
		"rates, no prior":            {problem(ShrinkRates([]int{1}, []int{2}, Prior{}, Options{})), "the prior is"},
		"rates, options":             {problem(ShrinkRates(nil, nil, Prior{0.5, 5}, badOptions)), "alpha is 2"},
		"slices, lengths":            {problem(ShrinkSlices(two, two[:1])), "1 standard errors for 2 estimates"},
		"slices, no variation":       {problem(ShrinkSlices(two, two)), "standard error 0 is 0"},
		"slices, estimate":           {problem(ShrinkSlices([]float64{nan}, []float64{1})), "estimate 0 is NaN"},
		"tweedie, variance":          {problem(Tweedie(0, 0, []Normal{{1, 0, 1}})), "variance 0 is 0"},
		"tweedie, no parts":          {problem(Tweedie(0, 1, nil)), "no parts"},
		"tweedie, weight":            {problem(Tweedie(0, 1, []Normal{{0, 0, 1}})), "part 0"},
		"tweedie, mean":              {problem(Tweedie(0, 1, []Normal{{1, nan, 1}})), "NaN"},
		"bounds, scale":              {problem(MissingBounds(nil, Scale{2, 1}, Options{})), "from 2 to 1"},
		"bounds, score":              {problem(MissingBounds([]Outcome{{Score: 2}}, Scale{}, Options{})), "row 0 has 2"},
		"bounds, options":            {problem(MissingBounds(nil, Scale{}, badOptions)), "alpha is 2"},
		"paired bounds, lengths":     {problem(MissingBoundsPaired(nil, make([]Outcome, 1), Scale{}, Options{})), "0 baseline rows and 1"},
		"paired bounds, baseline":    {problem(MissingBoundsPaired([]Outcome{{Score: nan}}, make([]Outcome, 1), Scale{}, Options{})), "baseline scores: row 0"},
		"paired bounds, candidate":   {problem(MissingBoundsPaired(make([]Outcome, 1), []Outcome{{Score: -1}}, Scale{}, Options{})), "candidate scores: row 0"},
		"strata, none":               {problem(StratifiedMean(nil, Options{})), "none"},
		"strata, one score":          {problem(StratifiedMean([]Stratum{{5, two[:1]}}, Options{})), "stratum 0 has 1 scores"},
		"strata, size":               {problem(StratifiedMean([]Stratum{{1, two}}, Options{})), "2 scores of 1 rows"},
		"strata, score":              {problem(StratifiedMean([]Stratum{{5, []float64{0, nan}}}, Options{})), "stratum 0, score 1 is NaN"},
		"strata, options":            {problem(StratifiedMean([]Stratum{{5, two}}, badOptions)), "alpha is 2"},
		"weights, lengths":           {problem(WeightedMean(two, two[:1], Options{})), "1 chances"},
		"weights, chance":            {problem(WeightedMean(two, two, Options{})), "row 0 had a chance of 0"},
		"weights, score":             {problem(WeightedMean([]float64{nan}, []float64{1}, Options{})), "NaN"},
		"weights, options":           {problem(WeightedMean(two, two, badOptions)), "alpha is 2"},
		"cost, lengths":              {problem(CostPerPoint(two, two[:1])), "2 costs for 1 scores"},
		"cost, negative":             {problem(CostPerPoint([]float64{-1}, two[:1])), "cost 0 is -1"},
		"cost, score":                {problem(CostPerPoint(two[:1], []float64{nan})), "score 0 is NaN"},
		"pareto, NaN":                {problem(ParetoFront([]float64{nan}, two[:1])), "cost 0 is NaN"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: %v, want an error with %q", name, c.err, c.says)
		}
	}
	if _, _, err := JamesStein(two, 0); err == nil {
		t.Error("james-stein takes a standard error of 0")
	}
	if _, _, err := JamesStein([]float64{nan}, 1); err == nil {
		t.Error("james-stein takes NaN")
	}
}

// finite fails for what JSON cannot hold: NaN and infinity.
func finite[T any](t *testing.T, what string, in any) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatalf("%s of %v: %v", what, in, err)
		}
		if _, err := json.Marshal(v); err != nil {
			t.Fatalf("%s of %v gives %+v: %v", what, in, v, err)
		}
		return v
	}
}

// What is accepted gives numbers or none, in order, however large, small or
// alike it is.
func TestNumbersAreFinite(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 3))
	kinds := []func() float64{
		func() float64 { return float64(rng.IntN(2)) },
		rng.Float64,
		func() float64 { return 0.25 },
		func() float64 { return float64(1-2*rng.IntN(2)) * 1e100 },
		func() float64 { return rng.NormFloat64() * 1e-200 },
		func() float64 { return rng.NormFloat64() * math.Pow10(rng.IntN(200)-100) / 100 },
	}
	for i := range 180 {
		kind := kinds[i%len(kinds)]
		n := rng.IntN(15)
		names, base, cand := make([]string, n), make([]float64, n), make([]float64, n)
		chances, costs := make([]float64, n), make([]float64, n)
		for k := range n {
			names[k] = string(rune('a' + rng.IntN(1+n/2)))
			base[k], cand[k] = kind(), kind()
			chances[k], costs[k] = max(1e-90, rng.Float64()*math.Pow10(-rng.IntN(80))), math.Abs(kind())
		}
		o := Options{Margin: 0.1}
		in := []any{names, base, cand}
		ordered := func(s Statistic) {
			t.Helper()
			low, okLow := s.Low.Get()
			high, okHigh := s.High.Get()
			if okLow != okHigh || low > high {
				t.Fatalf("%+v of %v", s, in)
			}
		}
		d := differences(base, cand)
		for k := range d {
			d[k] = max(-maxScore, min(maxScore, d[k]))
		}
		ordered(finite[ClusterEstimate](t, "cluster mean", in)(ClusterMean(cand, names, o)).Statistic)
		p := finite[Test](t, "paired clusters", in)(PairedClusters(base, cand, names, o))
		if v, ok := p.P.Get(); ok != (n > 0) || v < 0 || v > 1 {
			t.Fatalf("p is %v of %v", p.P, in)
		}
		finite[WildTest](t, "wild", in)(WildCluster(cand, names, 0.5, o))
		finite[Likeness](t, "icc", in)(ICC(cand, names))
		ordered(finite[Statistic](t, "bca", in)(BCaMean(cand[:min(n, 5)], nil, o)))
		ordered(finite[Statistic](t, "median", in)(Median(cand, o)))
		finite[Statistic](t, "cost", in)(CostPerPoint(costs, cand))
		ordered(finite[WeightedEstimate](t, "weighted", in)(WeightedMean(cand, chances, o)).Statistic)
		s := finite[Simultaneous](t, "max-t", in)(MaxT([][]float64{d, cand}, names, o))
		for _, c := range s.Candidates {
			ordered(c)
		}
		finite[[]StepDown](t, "westfall-young", in)(WestfallYoung([][]float64{d, cand}, names, o))
		if few := min(n, 5); few > 1 {
			finite[Winner](t, "optimism", in)(WinnerOptimism([][]float64{base[:few], cand[:few]}, nil, o))
			finite[Components](t, "components", in)(VarianceComponents([][]float64{base, cand, base[:1]}))
			ordered(finite[Statistic](t, "stratified", in)(StratifiedMean([]Stratum{{n, base}, {3 * n, cand}}, o)))
			se := slices.Repeat([]float64{largest(cand)}, n)
			se[0] /= 1e40
			finite[Shrunk](t, "slices", in)(ShrinkSlices(cand, se))
			shrunk, factor, err := JamesStein(cand, se[0])
			finite[[]float64](t, "james-stein", in)(append(shrunk, factor), err)
			finite[float64](t, "tweedie", in)(Tweedie(cand[0], se[0], []Normal{{1, base[0], 0}, {1e-9, cand[1], se[1]}}))
			v, w := se[0], se[1]
			shared := math.Sqrt(v) * math.Sqrt(w) / 2
			c := finite[ConditionalWinner](t, "conditional", in)(WinnerConditional(cand[:2], [][]float64{{v, shared}, {shared, w}}, o))
			if !c.Low.IsZero() { // else the race is so close that there is no lower end
				ordered(c.Statistic)
			}
		}
	}
}
