package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Simultaneous holds ranges of several candidates' differences to one baseline,
// which with 1-Alpha cover all of them at once.
type Simultaneous struct {
	Method     string      `json:"method"`   // "max-t", "max-t-sampled", or "none" under two units
	Critical   Opt         `json:"critical"` // how many standard errors the ranges reach to either side
	Candidates []Statistic `json:"candidates"`
}

// MaxT returns simultaneous ranges of the mean differences of several
// candidates to a baseline on the same rows (Dunnett 1955; Westfall and Young
// 1993): the ones to show when more than one candidate was tried, since of
// twenty ordinary ranges one misses. differences[j][i] is candidate j less the
// baseline on row i; clusters names the cluster of each row, nil if every row
// stands alone. Give every candidate that was tried.
//
// Each range is mean ± c·se with se that of [ClusterMean], and c the 1-Alpha
// quantile of the largest deviation, in se, of any candidate: over all sign
// patterns of the clusters' deviations up to 20 clusters, method "max-t", else
// over 9,999 resamples of clusters drawn from Seed, "max-t-sampled". Candidates
// on the same rows deviate together, which keeps c low. From a normal quantile
// it is turned into Student's, and it is never below the one for one candidate.
// Still, under 20 clusters the ranges of many candidates cover less than they
// say; go by [WestfallYoung] there. A candidate whose differences do not vary
// has no range and does not enter c.
//
// No candidates, rows of different number, and what is an error for
// [ClusterMean] are errors.
func MaxT(differences [][]float64, clusters []string, o Options) (Simultaneous, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Simultaneous{}, err
	}
	g, samples, err := manySamples("finding simultaneous ranges", differences, clusters)
	if err != nil {
		return Simultaneous{}, err
	}
	s := Simultaneous{Method: none, Candidates: make([]Statistic, len(samples))}
	for j := range samples {
		s.Candidates[j] = Statistic{Method: none, Rows: g.rows, Units: g.count()}
	}
	if g.count() < 2 {
		return s, nil
	}
	j := newJoint(g, samples)
	s.Method = signMethod("max-t", g.count())
	critical := j.signFlipCritical(o.Alpha)
	if g.count() > maxEnumerated {
		critical = j.bootstrapCritical(o)
	}
	s.fill(j, max(studentFor(critical, g.df()), studentQuantile(1-o.Alpha/2, g.df())))
	return s, nil
}

// studentFor returns the Student quantile that is passed as rarely as a normal
// value passes z. Resampling keeps the standard errors as they are, and so
// knows nothing of how uncertain those of few clusters are.
func studentFor(z, df float64) float64 {
	const rare = 8 // past it, the normal tail is lost beside 1
	return max(z, studentQuantile(normalBelow(min(z, rare)), df))
}

// fill sets the candidates' ranges.
func (s *Simultaneous) fill(joint joint, critical float64) {
	s.Critical = some(critical)
	for j := range s.Candidates {
		c := &s.Candidates[j]
		c.Value, c.SE, c.DF = some(joint.means[j].mean), some(joint.se[j]), some(joint.df())
		warnClusters(&c.Warnings, joint.grouped)
		if joint.se[j] == 0 {
			warn(&c.Warnings, "the differences do not vary: there is no simultaneous range; add rows that vary")
			continue
		}
		half := critical * joint.se[j]
		c.Method = s.Method
		c.Low, c.High = some(joint.means[j].mean-half), some(joint.means[j].mean+half)
	}
}

// manySamples checks samples of the same rows, and rounds them.
func manySamples(doing string, samples [][]float64, clusters []string) (grouped, [][]float64, error) {
	if len(samples) == 0 {
		return grouped{}, nil, fmt.Errorf("%s: there are no candidates: give at least one", doing)
	}
	round := rounder(largest(samples...))
	out := make([][]float64, len(samples))
	for j, sample := range samples {
		if len(sample) != len(samples[0]) {
			return grouped{}, nil, fmt.Errorf("%s: candidate %d has %d rows and candidate 0 has %d: give all the same rows in the same order", doing, j, len(sample), len(samples[0]))
		}
		if err := checkNumbers(doing, fmt.Sprintf("candidate %d, row", j), sample); err != nil {
			return grouped{}, nil, err
		}
		for _, x := range sample {
			out[j] = append(out[j], round(x))
		}
	}
	g, err := group(clusters, len(samples[0]))
	return g, out, err
}

// joint holds several candidates' means on the same clusters.
type joint struct {
	grouped
	means []clusterMean
	se    []float64
}

func newJoint(g grouped, samples [][]float64) joint {
	j := joint{grouped: g}
	for _, sample := range samples {
		m := g.mean(sample)
		j.means = append(j.means, m)
		j.se = append(j.se, math.Sqrt(m.cr2()))
	}
	return j
}

// farthest is the largest of the candidates' deviations in standard errors.
func (j joint) farthest(deviation func(candidate int) float64) float64 {
	most := 0.0
	for c, se := range j.se {
		if se > 0 {
			most = max(most, math.Abs(deviation(c))/se)
		}
	}
	return most
}

// signFlipCritical is the smallest number that the farthest deviation does not
// pass under at least 1-alpha of the sign patterns.
func (j joint) signFlipCritical(alpha float64) float64 {
	if j.count() > maxEnumerated {
		return 0
	}
	forms := make([]signForm, len(j.means))
	for c, m := range j.means {
		forms[c] = newSignForm(m.deviations)
	}
	var farthest []float64
	eachSignPattern(j.count(), 0, func(pattern []byte) {
		farthest = append(farthest, j.farthest(func(c int) float64 { return forms[c].at(pattern) / float64(j.rows) }))
	})
	slices.Sort(farthest)
	return farthest[int(math.Ceil((1-alpha)*float64(len(farthest))-1e-9))-1]
}

// bootstrapCritical is the type 6 quantile of the farthest deviation of
// resamples.
func (j joint) bootstrapCritical(o Options) float64 {
	sums := make([][]float64, len(j.means))
	for c, m := range j.means {
		sums[c] = m.deviations // sums less size·mean: their weighted mean is the deviation of the mean
	}
	var farthest []float64
	eachResample(j.count(), o.Seed, func(times []float64) {
		farthest = append(farthest, j.farthest(func(c int) float64 { return weightedMean(times, sums[c], j.sizes) }))
	})
	slices.Sort(farthest)
	return quantile6(farthest, 1-o.Alpha)
}

// StepDown is what a candidate's difference to the baseline comes to when
// several are tested.
type StepDown struct {
	T        Opt `json:"t"`        // of CR2; absent without variation
	P        Opt `json:"p"`        // of this candidate alone
	Adjusted Opt `json:"adjusted"` // below Alpha: differs, with all candidates allowed for
}

// WestfallYoung tests which of several candidates differ from a baseline, by
// step-down max-t (Westfall and Young 1993; Romano and Wolf 2005): the p-values
// to show beside [MaxT]. One sign pattern of the clusters is used for all
// candidates at once, so that it knows that prompts on the same rows vary
// together; twins cost nothing. With |t| in descending order, Adjusted is the
// largest so far of the share of patterns under which the largest t of this and
// all candidates with a smaller t is at least as large. All patterns of up to
// 20 clusters that differ are tried, else 9,999 drawn from Seed.
//
// differences, clusters and errors are those of [MaxT].
func WestfallYoung(differences [][]float64, clusters []string, o Options) ([]StepDown, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	g, samples, err := manySamples("testing several candidates", differences, clusters)
	if err != nil {
		return nil, err
	}
	results := make([]StepDown, len(samples))
	if g.count() < 2 {
		return results, nil
	}
	w := newStepDown(g, samples)
	eachSignPattern(len(w.moved), o.Seed, w.count)
	p := func(exceedances int) Opt { return some(signShare(exceedances, len(w.moved))) }
	for c, m := range newJoint(g, samples).means {
		results[c].T = some(m.mean / math.Sqrt(m.cr2()))
		results[c].P = p(w.alone[c])
	}
	most := 0
	for rank, c := range w.order {
		most = max(most, w.joint[rank])
		results[c].Adjusted = p(most)
	}
	return results, nil
}

// stepDown counts the patterns that go as far as the observed one.
type stepDown struct {
	moved    []int
	tests    []flipT
	observed []float64 // squared t of each candidate
	order    []int     // the candidates by descending observed
	alone    []int     // patterns at least as far, of each candidate
	joint    []int     // the same of the largest from each rank on
}

func newStepDown(g grouped, samples [][]float64) *stepDown {
	w := &stepDown{alone: make([]int, len(samples)), joint: make([]int, len(samples))}
	sums := make([][]float64, len(samples))
	for c, sample := range samples {
		sums[c] = rounded(g.sums(sample))
		w.order = append(w.order, c)
	}
	w.moved = movedClusters(g.count(), sums...)
	for _, s := range sums {
		f := newFlipT(g, s, w.moved, func(k int) float64 { return 1 / (1 - g.share(k)) })
		w.tests = append(w.tests, f)
		w.observed = append(w.observed, f.squared(observedPattern(len(w.moved))))
	}
	slices.SortStableFunc(w.order, func(a, b int) int { return cmp.Compare(w.observed[b], w.observed[a]) })
	return w
}

func (w *stepDown) count(pattern []byte) {
	most := 0.0
	for rank, c := range slices.Backward(w.order) {
		t := w.tests[c].squared(pattern)
		most = max(most, t)
		if notBelow(t, w.observed[c]) {
			w.alone[c]++
		}
		if notBelow(most, w.observed[c]) {
			w.joint[rank]++
		}
	}
}
