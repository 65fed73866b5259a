package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// named gives the rows of clusters of these sizes their names.
func named(sizes ...int) []string {
	var names []string
	for k, size := range sizes {
		for range size {
			names = append(names, fmt.Sprint("c", k))
		}
	}
	return names
}

// clusteredRows makes values that share a part within each cluster.
func clusteredRows(rng *rand.Rand, sizes []int, shared float64) []float64 {
	var values []float64
	for _, size := range sizes {
		common := shared * rng.NormFloat64()
		for range size {
			values = append(values, common+rng.NormFloat64())
		}
	}
	return values
}

func near(t *testing.T, what string, have Opt, want float64) {
	t.Helper()
	v, ok := have.Get()
	if !ok || math.Abs(v-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s is %v, want %v", what, have, want)
	}
}

func TestRowsAloneGiveStudentsRange(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		sizes := make([]int, 2+rng.IntN(30))
		for k := range sizes {
			sizes[k] = 1
		}
		base, cand := clusteredRows(rng, sizes, 0), clusteredRows(rng, sizes, 0)
		o := Options{Margin: 0.5, Seed: 3}
		alone, err := Single(cand, o)
		if err != nil {
			t.Fatal(err)
		}
		e := must(ClusterMean(cand, named(sizes...), o))(t)
		near(t, "low", e.Low, alone.Low.v)
		near(t, "high", e.High, alone.High.v)
		near(t, "df", e.DF, alone.DF.v)

		want := must(Paired(base, cand, o))(t)
		have := must(PairedClusters(base, cand, named(sizes...), o))(t)
		near(t, "paired low", have.Low, want.Low.v)
		near(t, "paired high", have.High, want.High.v)
		near(t, "detectable", have.Detectable, want.Detectable.v)
		if have.P != want.P || have.Decision != want.Decision || have.RowsNeeded != want.RowsNeeded || have.Better != want.Better {
			t.Errorf("clusters of one row give %+v, rows %+v", have, want)
		}
	}
}

func TestEqualClustersGiveStudentsRangeOfTheirMeans(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	for range 30 {
		sizes := make([]int, 2+rng.IntN(12))
		for k := range sizes {
			sizes[k] = 4
		}
		values := clusteredRows(rng, sizes, 1)
		var means []float64
		for i := 0; i < len(values); i += 4 {
			means = append(means, (values[i]+values[i+1]+values[i+2]+values[i+3])/4)
		}
		low, high := meanOf(means).interval(0.95)
		e := must(ClusterMean(values, named(sizes...), Options{}))(t)
		near(t, "low", e.Low, low)
		near(t, "high", e.High, high)
		near(t, "df", e.DF, float64(len(sizes)-1))
	}
}

func TestClustersMirror(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for range 40 {
		sizes := make([]int, 1+rng.IntN(25))
		for k := range sizes {
			sizes[k] = 1 + rng.IntN(6)
		}
		names := named(sizes...)
		base, cand := clusteredRows(rng, sizes, 1), clusteredRows(rng, sizes, 1)
		o := Options{Seed: 5}
		p := must(PairedClusters(base, cand, names, o))(t)
		m := must(PairedClusters(cand, base, names, o))(t)
		if m.Diff != negated(p.Diff) || m.Low != negated(p.High) || m.High != negated(p.Low) || m.P != p.P || m.Better != p.Worse {
			t.Errorf("paired gives %+v and mirrored %+v", p, m)
		}
		d, minus := differences(base, cand), differences(cand, base)
		w, wm := must(WildCluster(d, names, 0, o))(t), must(WildCluster(minus, names, 0, o))(t)
		if w.P != wm.P || w.T != negated(wm.T) {
			t.Errorf("wild gives %+v and mirrored %+v", w, wm)
		}
		if len(sizes) > 1 && w.P.v < w.Smallest.v {
			t.Errorf("p is %v, below the smallest possible %v", w.P, w.Smallest)
		}
	}
}

// The rule's own table: with 12 clusters of unequal sizes CR2 covers about 95
// %, rows taken as independent about 74 %.
func TestClusterMeanCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	sizes := []int{1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 10, 15}
	names := named(sizes...)
	const runs = 1000
	clustered, alone := 0, 0
	for range runs {
		values := clusteredRows(rng, sizes, 1)
		if e := must(ClusterMean(values, names, Options{}))(t); e.Low.v <= 0 && 0 <= e.High.v {
			clustered++
		}
		if low, high := meanOf(values).interval(0.95); low <= 0 && 0 <= high {
			alone++
		}
	}
	if share := float64(clustered) / runs; share < 0.935 || share > 0.985 {
		t.Errorf("the range of clusters covers %v", share)
	}
	if share := float64(alone) / runs; share > 0.85 {
		t.Errorf("rows taken as independent cover %v: the rows are not clustered, so the test shows nothing", share)
	}
}

func TestClusterWarnings(t *testing.T) {
	for _, c := range []struct {
		name   string
		scores []float64
		sizes  []int
		method string
		warns  string
	}{
		{"no rows", nil, nil, "none", "no rows"},
		{"one cluster", []float64{0, 1, 0.5}, []int{3}, "none", "one cluster has no range"},
		{"one cluster has most", []float64{0, 1, 0, 1, 0.5, 0.2, 1, 0.4, 0.1}, []int{5, 1, 1, 1, 1}, "cr2", "few effective clusters"},
		{"nothing varies", []float64{0.5, 0.5, 0.5, 0.5, 0.5, 0.5}, []int{1, 1, 1, 1, 1, 1}, "cr2", "do not vary"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := must(ClusterMean(c.scores, named(c.sizes...), Options{}))(t)
			if e.Method != c.method || !strings.Contains(strings.Join(e.Warnings, "\n"), c.warns) {
				t.Errorf("method %q and warnings %q, want %q and %q", e.Method, e.Warnings, c.method, c.warns)
			}
			if e.Units != len(c.sizes) || e.Rows != len(c.scores) {
				t.Errorf("%d rows of %d clusters", e.Rows, e.Units)
			}
		})
	}
}

// Five clusters, all better: 2 of 32 patterns, so no decision at 5 %. Six: 2 of
// 64.
func TestPairedClustersDecide(t *testing.T) {
	for count, want := range map[int]Decision{5: TooFewRows, 6: Better} {
		sizes := make([]int, count)
		var base, cand []float64
		for k := range sizes {
			sizes[k] = 3
			for i := range 3 {
				base = append(base, 0)
				cand = append(cand, 0.5+float64(i)/10+float64(k)/100)
			}
		}
		p := must(PairedClusters(base, cand, named(sizes...), Options{}))(t)
		near(t, "p", p.P, math.Ldexp(2, -count))
		if p.Decision != want || p.Units != count || p.Better != 3*count || p.PMethod != "cluster-sign-flip" {
			t.Errorf("%d clusters: %+v", count, p)
		}
	}
}

// RowsNeeded counts rows: four to a cluster, clusters in the planning.
func TestPairedClustersAskForRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	sizes := []int{4, 4, 4, 4, 4, 4, 4, 4, 4, 4}
	cand := clusteredRows(rng, sizes, 1)
	p := must(PairedClusters(make([]float64, 40), cand, named(sizes...), Options{Margin: 0.1}))(t)
	e := must(ClusterMean(cand, named(sizes...), Options{}))(t)
	o := must(Options{}.withDefaults())(t)
	z := o.zAlpha() + o.zPower()
	want := int(math.Ceil(z*z*10*e.SE.v*e.SE.v/0.01)) * 4
	if p.Decision != TooFewRows || p.RowsNeeded != want {
		t.Errorf("%s, %d rows needed, want %d", p.Decision, p.RowsNeeded, want)
	}
}

// A sum by tables is the sum, for as many numbers as it takes to fill several
// words.
func TestSignForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	for _, n := range []int{0, 1, 7, 8, 9, 20, 21, 70, 150} {
		numbers := make([]float64, n)
		for i := range numbers {
			numbers[i] = rng.NormFloat64()
		}
		form, visits := newSignForm(numbers), 0
		seen := map[string]bool{}
		if n <= 9 || n > maxEnumerated {
			eachSignPattern(n, 9, func(pattern []byte) {
				visits++
				seen[string(pattern)] = true
				want := 0.0
				for i, x := range numbers {
					if pattern[i/8]>>(i%8)&1 == 0 {
						x = -x
					}
					want += x
				}
				if math.Abs(form.at(pattern)-want) > 1e-12*float64(n+1) {
					t.Fatalf("%d numbers: %v, want %v", n, form.at(pattern), want)
				}
			})
			if want := min(1<<min(n, 30), signDraws); visits != want || n <= 9 && len(seen) != want || n > 60 && len(seen) != want {
				t.Errorf("%d numbers: %d patterns, %d of them different", n, visits, len(seen))
			}
		}
	}
}

func TestLikeness(t *testing.T) {
	same := must(ICC([]float64{1, 1, 0, 0, 0.5, 0.5}, named(2, 2, 2)))(t)
	near(t, "icc of rows that are the same", same.ICC, 1)
	near(t, "design effect", same.DesignEffect, 2)
	for name, sizes := range map[string][]int{"one cluster": {3}, "rows alone": {1, 1, 1}} {
		if l := must(ICC([]float64{1, 0, 1}, named(sizes...)))(t); !l.ICC.IsZero() || l.Rows != 3 {
			t.Errorf("%s: %+v", name, l)
		}
	}
	if l := must(ICC([]float64{1, 1, 1, 1}, named(2, 2)))(t); !l.ICC.IsZero() {
		t.Errorf("without variation: %+v", l)
	}
}

func TestComponentsOfUnequalAnswers(t *testing.T) {
	// One row with two answers: s² = 0.02; the other takes it. Means 0.3 and
	// 0.9.
	c := must(VarianceComponents([][]float64{{0.2, 0.4}, {0.9}}))(t)
	near(t, "within", c.Within, 0.02)
	near(t, "between", c.Between, 0.18-(0.01+0.02)/2)
	if c.SEWith(0) != (Opt{}) || c.SEWith(3).v >= c.SEWith(2).v || c.SEWith(1000).v < c.Floor.v {
		t.Errorf("standard errors by answers: %v, %v, %v, floor %v", c.SEWith(0), c.SEWith(2), c.SEWith(3), c.Floor)
	}
	if c := must(VarianceComponents([][]float64{{1}, {0}}))(t); !c.Within.IsZero() || !c.SEWith(2).IsZero() || c.SE.IsZero() {
		t.Errorf("one answer a row: %+v", c)
	}
	if c := must(VarianceComponents([][]float64{{0, 1}, {1, 0}}))(t); c.Between != some(0) {
		t.Errorf("between is %v, want 0 and not below", c.Between)
	}
}

// t² from sums is that of the rows with their signs flipped, whatever the sizes.
func TestFlippedStatistic(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 1))
	sizes := []int{1, 5, 2, 3, 1, 8, 2, 2, 4, 1}
	values, names := clusteredRows(rng, sizes, 1), named(sizes...)
	g := must(group(names, len(values)))(t)
	all := movedClusters(g.count(), g.sums(values))
	cr1 := newFlipT(g, g.sums(values), all, func(int) float64 { return 1 })
	cr2 := newFlipT(g, g.sums(values), all, func(k int) float64 { return 1 / (1 - g.share(k)) })
	joint := newStepDown(g, [][]float64{values})
	for range 200 {
		pattern := []byte{byte(rng.IntN(256)), byte(rng.IntN(4))}
		flipped := make([]float64, len(values))
		for i, x := range values {
			if k := g.of[i]; pattern[k/8]>>(k%8)&1 == 0 {
				x = -x
			}
			flipped[i] = x
		}
		m := g.mean(flipped)
		near(t, "t² of CR1", some(cr1.squared(pattern)), m.mean*m.mean/m.sandwich(0))
		near(t, "t² of CR2", some(cr2.squared(pattern)), m.mean*m.mean/m.cr2())
		near(t, "t² of the step-down test", some(joint.tests[0].squared(pattern)), m.mean*m.mean/m.cr2())
	}
}
