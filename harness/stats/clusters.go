package stats

import (
	"fmt"
	"math"
)

// fewUnits is the number of degrees of freedom under which a range of clusters
// is called rough.
const fewUnits = 4

// ClusterEstimate is a mean of rows that come in clusters: turns of a
// conversation, questions about one document, requests of one user.
type ClusterEstimate struct {
	Statistic     // Method "cr2", or "none" under two clusters; Units counts clusters
	Largest   Opt `json:"largest"` // share of the rows that the largest cluster has
}

// ClusterMean returns the range of one candidate's mean score when rows come in
// clusters: the right one as soon as some cluster has two rows. Rows of a
// cluster resemble each other, so that there is less to learn from them than
// from as many rows that stand alone, and a range that ignores it is too
// narrow. clusters names the cluster of each row. Every row counts the same: a
// long conversation counts more than a short one.
//
// The variance is Σ S_g²/(1-w_g)/n² with S_g the sum of a cluster's deviations
// from the mean and w_g its share of the n rows (CR2), the degrees of freedom
// Satterthwaite's, 1/(Σ w_g² + Σ_{g≠h} w_g²·w_h²/((1-w_g)(1-w_h))) (Bell and
// McCaffrey 2002; Pustejovsky and Tipton 2018). With clusters of equal size it
// is Student's range of their means, and with rows that stand alone that of
// [Single].
//
// Binary is checked and otherwise not used: a mean of clusters of 0/1 scores is
// not 0/1. As many names as scores are needed, none of them empty; scores that
// are not finite or beyond ±1e100, Binary stated of other scores, and options
// without meaning are errors.
func ClusterMean(scores []float64, clusters []string, o Options) (ClusterEstimate, error) {
	o, err := o.withDefaults()
	if err != nil {
		return ClusterEstimate{}, err
	}
	if err := checkScores("candidate", scores); err != nil {
		return ClusterEstimate{}, err
	}
	if err := checkBinary("candidate", scores, o); err != nil {
		return ClusterEstimate{}, err
	}
	g, err := group(clusters, len(scores))
	if err != nil {
		return ClusterEstimate{}, err
	}
	e := ClusterEstimate{Statistic: Statistic{Method: none, Rows: g.rows, Units: g.count()}}
	if g.rows == 0 {
		warnRows(&e.Warnings, 0)
		return e, nil
	}
	m := g.mean(rounded(scores))
	e.Value, e.Largest = some(m.mean), some(g.largestShare())
	warnClusters(&e.Warnings, g)
	if g.count() > 1 {
		e.Method = "cr2"
		e.student(m.mean, math.Sqrt(m.cr2()), g.df(), o)
		if m.cr2() == 0 {
			warn(&e.Warnings, "the clusters do not vary: the range has no width and says nothing about other rows; add rows that vary")
		}
	}
	return e, nil
}

// PairedClusters is [Paired] for rows that come in clusters; clusters names the
// cluster of each row. The range of the mean difference is that of
// [ClusterMean], method "cr2". p comes from one sign for each cluster on the
// sum of its differences, "cluster-sign-flip": all patterns of up to 20
// clusters that differ, else 9,999 drawn from Seed. That is exact when a
// cluster's differences could as well all have had the other sign. Better,
// Worse, Same and RowsNeeded count rows, Units counts clusters.
//
// Binary is checked and otherwise not used.
func PairedClusters(base, cand []float64, clusters []string, o Options) (Test, error) {
	o, err := o.forPair(base, cand)
	if err != nil {
		return Test{}, err
	}
	g, err := group(clusters, len(base))
	if err != nil {
		return Test{}, err
	}
	t := Test{Method: none, PMethod: none, Units: g.count(), Decision: Invalid}
	if g.rows == 0 {
		warnRows(&t.Warnings, 0)
		return t, nil
	}
	d := differences(base, cand)
	t.Better, t.Worse, t.Same = signs(d)
	warnClusters(&t.Warnings, g)
	t.decide(t.judgeClusters(g, d, spread(base, cand), o), o)
	// The planning was in clusters like these.
	rows := math.Ceil(float64(t.RowsNeeded) * float64(g.rows) / float64(g.count()))
	if rows >= 1<<53 {
		rows, t.RowsFor = 0, Opt{}
	}
	t.RowsNeeded = int(rows)
	return t, nil
}

// judgeClusters fills in the fields for differences of rows in clusters. span
// is how far apart scores were seen.
func (t *Test) judgeClusters(g grouped, d []float64, span float64, o Options) prospect {
	m := g.mean(d)
	sums := rounded(g.sums(d))
	method, p := signFlip(sums, o.Seed)
	t.Diff = some(m.mean)
	t.PMethod, t.P = "cluster-"+method, some(p)
	count := float64(g.count())
	pr := prospect{fewest: fewestRows(2, o.Alpha)}
	above, below, _ := signs(sums)
	if changed := above + below; changed < pr.fewest {
		warn(&t.Warnings, "too few clusters changed to tell: %d of %d, and fewer than %d cannot show a difference; add clusters", changed, t.Units, pr.fewest)
	}
	if g.count() == 1 {
		return pr
	}
	variance := m.cr2()
	pr.rows = func(diff float64) float64 { return rowsForDiff(count*variance, diff, o) }
	at := func(confidence float64) (low, high Opt) {
		half := studentQuantile((1+confidence)/2, g.df()) * math.Sqrt(variance)
		return some(m.mean - half), some(m.mean + half)
	}
	t.Method, t.DF = "cr2", some(g.df())
	t.Low, t.High = at(1 - o.Alpha)
	if variance == 0 {
		warn(&t.Warnings, "the differences of clusters do not vary: the range has no width and says nothing about other rows; add rows that vary")
		if span > 0 { // a cluster unlike these may differ by as much as scores were seen to
			unseen := span * zeroEventsUpper(g.count(), o.Alpha)
			pr.equalLow, pr.equalHigh = some(m.mean-unseen), some(m.mean+unseen)
		}
		return pr
	}
	pr.equalLow, pr.equalHigh = at(1 - 2*o.Alpha)
	t.Detectable = some(detectableDiff(count*variance, g.count(), o))
	return pr
}

// warnClusters says what the number and sizes of clusters mean for a result.
func warnClusters(to *[]string, g grouped) {
	switch {
	case g.count() == 1:
		warn(to, "one cluster has no range: add clusters")
	case g.df() < fewUnits:
		warn(to, "few effective clusters: %d clusters count as about %.1f, the largest has %.0f %% of the rows; take the range as a rough guide, or add clusters",
			g.count(), g.df()+1, 100*g.largestShare())
	}
}

// grouped says which rows belong together. Clusters are numbered in the order
// in which they first appear.
type grouped struct {
	rows  int
	of    []int     // the cluster of each row
	sizes []float64 // the rows of each cluster
}

// group numbers the clusters. Without names every row stands alone.
func group(clusters []string, rows int) (grouped, error) {
	g := grouped{rows: rows, of: make([]int, rows)}
	if clusters == nil {
		for i := range rows {
			g.of[i] = i
			g.sizes = append(g.sizes, 1)
		}
		return g, nil
	}
	if len(clusters) != rows {
		return g, fmt.Errorf("grouping rows: %d names of clusters for %d rows: give each row the name of its cluster", len(clusters), rows)
	}
	numbers := map[string]int{}
	for i, name := range clusters {
		if name == "" {
			return g, fmt.Errorf("grouping rows: row %d has no cluster: give a row that stands alone a name of its own", i)
		}
		k, ok := numbers[name]
		if !ok {
			k = len(g.sizes)
			numbers[name] = k
			g.sizes = append(g.sizes, 0)
		}
		g.of[i] = k
		g.sizes[k]++
	}
	return g, nil
}

func (g grouped) count() int { return len(g.sizes) }

// share is the part of all rows that a cluster has.
func (g grouped) share(k int) float64 { return g.sizes[k] / float64(g.rows) }

func (g grouped) largestShare() float64 {
	most := 0.0
	for k := range g.sizes {
		most = max(most, g.share(k))
	}
	return most
}

// sums adds up each cluster's values.
func (g grouped) sums(values []float64) []float64 {
	of := make([]sum, g.count())
	for i, x := range values {
		of[g.of[i]].add(x)
	}
	totals := make([]float64, len(of))
	for k := range of {
		totals[k] = of[k].value()
	}
	return totals
}

// df is the number of degrees of freedom of CR2, for two or more clusters.
func (g grouped) df() float64 {
	var own, levered, squares sum
	for k := range g.sizes {
		w := g.share(k)
		a := w * w / (1 - w)
		own.add(w * w)
		levered.add(a)
		squares.add(a * a)
	}
	return 1 / (own.value() + levered.value()*levered.value() - squares.value())
}

// clusterMean is a mean and how far each cluster lies from it.
type clusterMean struct {
	grouped
	mean       float64
	deviations []float64 // of each cluster: the sum of its values less the mean
}

// mean needs at least one value.
func (g grouped) mean(values []float64) clusterMean {
	mean, _ := moments(values)
	residuals := make([]float64, len(values))
	for i, x := range values {
		residuals[i] = x - mean
	}
	return clusterMean{g, mean, g.sums(residuals)}
}

// sandwich is Σ S_g²/(1-w_g)^power/n²: CR0, CR2 and CR3 for powers 0, 1 and 2.
func (m clusterMean) sandwich(power float64) float64 {
	var squares sum
	for k, s := range m.deviations {
		squares.add(s * s / math.Pow(1-m.share(k), power))
	}
	n := float64(m.rows)
	return squares.value() / (n * n)
}

// cr2 is the variance of the mean, unbiased if all rows vary alike and
// independently.
func (m clusterMean) cr2() float64 { return m.sandwich(1) }
