package stats

import "fmt"

// Likeness says how alike the rows of a cluster are.
type Likeness struct {
	Rows     int `json:"rows"`
	Clusters int `json:"clusters"`

	// ICC is the share of the variance that lies between clusters: 0 when rows
	// of a cluster are no more alike than others, 1 when they are all the
	// same. An estimate may be negative, and stays so.
	ICC     Opt `json:"icc"`
	Between Opt `json:"between"` // mean square between clusters
	Within  Opt `json:"within"`  // mean square within clusters
	Size    Opt `json:"size"`    // of a cluster, corrected for unequal sizes

	// DesignEffect says how many rows like these tell as much as one that
	// stands alone, by the mean size. Absent if it is not positive.
	DesignEffect Opt `json:"design_effect,omitzero"`
}

// ICC estimates the intraclass correlation by one-way analysis of variance
// (Donner 1986): (MSB-MSW)/(MSB+(n0-1)·MSW), n0 = (n - Σ n_g²/n)/(G-1). It is
// for planning, and for saying why a range of [ClusterMean] is as wide as it
// is; the range itself does not need it. Under two clusters, without a cluster
// of two rows, and without any variation it is absent.
//
// What is an error for [ClusterMean] is one here.
func ICC(values []float64, clusters []string) (Likeness, error) {
	if err := checkNumbers("finding how alike rows are", "value", values); err != nil {
		return Likeness{}, err
	}
	g, err := group(clusters, len(values))
	if err != nil {
		return Likeness{}, err
	}
	l := Likeness{Rows: g.rows, Clusters: g.count()}
	if g.count() < 2 || g.count() == g.rows {
		return l, nil
	}
	values = rounded(values)
	n, count := float64(g.rows), float64(g.count())
	mean, _ := moments(values)
	means := g.sums(values)
	var between, within, sizes sum
	for k, size := range g.sizes {
		means[k] /= size
		between.add(size * (means[k] - mean) * (means[k] - mean))
		sizes.add(size * size)
	}
	for i, x := range values {
		off := x - means[g.of[i]]
		within.add(off * off)
	}
	msb, msw := between.value()/(count-1), within.value()/(n-count)
	n0 := (n - sizes.value()/n) / (count - 1)
	l.Between, l.Within, l.Size = some(msb), some(msw), some(n0)
	l.ICC = some((msb - msw) / (msb + (n0-1)*msw))
	if icc, ok := l.ICC.Get(); ok {
		if effect := designEffect(n/count, icc); effect > 0 {
			l.DesignEffect = some(effect)
		}
	}
	return l, nil
}

// DesignEffect returns what to multiply planned rows by when they come in
// clusters of a mean size: 1 + (size-1)·icc (Kish 1965). Rows divided by it are
// the rows that stand alone and tell as much.
//
// A size below 1, an icc above 1, and one so far below 0 that no rows can have
// it are errors.
func DesignEffect(size, icc float64) (float64, error) {
	if !(size >= 1 && size <= maxScore) {
		return 0, fmt.Errorf("finding a design effect: the mean size of a cluster is %v: give at least 1", size)
	}
	effect := designEffect(size, icc)
	if !(icc <= 1 && effect > 0) {
		return 0, fmt.Errorf("finding a design effect: an intraclass correlation of %v with clusters of %v rows: give one above -1/(size-1) and up to 1", icc, size)
	}
	return effect, nil
}

func designEffect(size, icc float64) float64 { return 1 + (size-1)*icc }
