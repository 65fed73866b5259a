package stats

import "math"

// WildTest asks whether a mean of clusters is some number.
type WildTest struct {
	Method   string `json:"method"` // "wild-cluster", "wild-cluster-sampled", or "none" under two clusters
	T        Opt    `json:"t"`      // of CR1; absent without variation
	P        Opt    `json:"p"`      // two-sided
	Smallest Opt    `json:"smallest"`
	Clusters int    `json:"clusters"`
}

// WildCluster tests whether the mean of values is null with the restricted wild
// cluster bootstrap (Cameron, Gelbach and Miller 2008; MacKinnon, Nielsen and
// Webb 2023): the deviations from null get one sign for each cluster, and p is
// the share of patterns whose t, with the variance CR1, lies at least as far
// from 0. All patterns of up to 20 clusters that deviate are tried, else 9,999
// drawn from Seed.
//
// It is the second opinion on [PairedClusters], whose sign flips are simpler
// and exact under symmetry: call it when few or very unequal clusters decide,
// and believe a difference that both show. p cannot be below Smallest, 2 of all
// patterns of so many clusters: five never show anything at 5 %.
//
// What is an error for [ClusterMean] is one here.
func WildCluster(values []float64, clusters []string, null float64, o Options) (WildTest, error) {
	o, err := o.withDefaults()
	if err != nil {
		return WildTest{}, err
	}
	if err := checkNumbers("testing a mean of clusters", "value", values); err != nil {
		return WildTest{}, err
	}
	if err := checkNumbers("testing a mean of clusters", "null", []float64{null}); err != nil {
		return WildTest{}, err
	}
	g, err := group(clusters, len(values))
	if err != nil {
		return WildTest{}, err
	}
	w := WildTest{Method: none, Clusters: g.count()}
	if g.count() < 2 {
		return w, nil
	}
	round := rounder(largest(values, []float64{null}))
	d := make([]float64, len(values))
	for i, x := range values {
		d[i] = round(x - null)
	}
	sums := g.sums(d)
	moved := movedClusters(g.count(), sums)
	f := newFlipT(g, sums, moved, func(int) float64 { return 1 })
	observed := f.squared(observedPattern(len(moved)))
	far := 0
	eachSignPattern(len(moved), o.Seed, func(pattern []byte) {
		if notBelow(f.squared(pattern), observed) {
			far++
		}
	})
	w.Method = signMethod("wild-cluster", len(moved))
	m := g.mean(d)
	count := float64(g.count())
	w.T = some(m.mean / math.Sqrt(m.sandwich(0)*count/(count-1)))
	w.P = some(signShare(far, len(moved)))
	w.Smallest = some(math.Ldexp(1, 1-g.count()))
	if len(moved) > maxEnumerated {
		w.Smallest = some(monteCarloP(0, signDraws))
	}
	return w, nil
}
