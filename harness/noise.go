package harness

import (
	"math"
	"slices"

	"evalrun/harness/stats"
)

// Noise is how much the score of a metric moves when only the asking is repeated:
// the A/A lane against the baseline, on the rows that decide.
type Noise struct {
	Metric string `json:"metric"`
	stats.NoiseFloor
}

// noise fills in the noise of every metric, and which differences lie within it.
func (e *Evaluation) noise(o stats.Options) error {
	base := e.Outcome(e.Baseline)
	for _, again := range e.Candidates {
		if !again.AA || base == nil {
			continue
		}
		pairing, err := Pair(base, again)
		if err != nil {
			return err
		}
		for _, metric := range e.Metrics {
			before, after := pairing.decisive(metric, base.scores, again.scores)
			n, err := stats.FloorOf(before, after, o)
			if err != nil {
				return err
			}
			e.Noise = append(e.Noise, Noise{metric, n})
		}
	}
	for i := range e.Comparisons {
		c := &e.Comparisons[i]
		at := slices.IndexFunc(e.Noise, func(n Noise) bool { return n.Metric == c.Metric })
		if at < 0 || e.isNoise(c) {
			continue
		}
		diff, known := c.Added.Diff.Get()
		floor, some := e.Noise[at].Floor.Get()
		c.WithinNoise = known && some && math.Abs(diff) <= floor
	}
	return nil
}

// isNoise reports whether a comparison is that of the baseline and its A/A lane.
func (e *Evaluation) isNoise(c *Comparison) bool {
	again := AgainName(e.Baseline)
	return c.Candidate == again && c.Baseline == e.Baseline || c.Candidate == e.Baseline && c.Baseline == again
}

// decisive are a metric's scores of both sides of each pair that decides.
func (p *Pairing) decisive(metric string, a, b *scoreTable) (before, after []float64) {
	p = p.judged(metric, a, b)
	before, after = p.scores(metric, a, b)
	lower, lacks, unscored := slices.Contains(a.lower, metric), p.lacks(metric, a, b), p.unscored(metric, a, b)
	var kept []int
	for i, at := range p.pairs {
		if !a.lost[at[0]] && !b.lost[at[1]] && !unscored[i] && !(lower && lacks[i]) {
			kept = append(kept, i)
		}
	}
	return at(before, kept), at(after, kept)
}
