package stats

import (
	"fmt"
	"math"
)

// PairedCounts counts the rows of two candidates whose scores are 0 or 1, for
// who wants a range by another method than the one [Paired] picks, to compare
// it with what was published or computed elsewhere. Each method gives the
// difference candidate minus baseline; negative counts and options without
// meaning are errors.
type PairedCounts struct {
	BothRight     int `json:"both_right"`
	OnlyCandidate int `json:"only_candidate"`
	OnlyBaseline  int `json:"only_baseline"`
	BothWrong     int `json:"both_wrong"`
}

// AgrestiMin returns the range of Agresti and Min (2005), method "agresti-min":
// half a row is added to each of the four counts, then the usual formula, cut
// to [-1, 1]. Value is the observed difference; the range has its own centre.
// It is the one to work out by hand; under 30 rows it covers less than Tango's.
func (c PairedCounts) AgrestiMin(o Options) (Statistic, error) {
	o, s, err := c.begin("agresti-min", o)
	if err != nil || s.Rows == 0 {
		return s, err
	}
	center, se := c.agrestiMin()
	half := o.zAlpha() * se
	s.SE = some(se)
	s.Low, s.High = some(max(-1, center-half)), some(min(1, center+half))
	return s, nil
}

func (c PairedCounts) agrestiMin() (center, se float64) {
	n := float64(c.rows()) + 2
	gap := float64(c.OnlyCandidate - c.OnlyBaseline)
	return gap / n, math.Sqrt(float64(c.OnlyCandidate+c.OnlyBaseline+1)-gap*gap/n) / n
}

// Newcombe returns the range of method 10 of Newcombe (1998), "newcombe-10":
// the two rates' Wilson ranges, put together with their correlation φ, from
// whose numerator n/2 is taken when it is positive. It is the one to set beside
// a published Newcombe range, after finding out that it is this one.
func (c PairedCounts) Newcombe(o Options) (Statistic, error) {
	return c.newcombe("newcombe-10", float64(c.rows())/2, o)
}

// NewcombeUncorrected returns the range of method 8 of Newcombe (1998),
// "newcombe-8": method 10 without the correction of φ. Many packages call this
// one Newcombe's. It is somewhat too narrow.
func (c PairedCounts) NewcombeUncorrected(o Options) (Statistic, error) {
	return c.newcombe("newcombe-8", 0, o)
}

func (c PairedCounts) newcombe(method string, correction float64, o Options) (Statistic, error) {
	o, s, err := c.begin(method, o)
	if err != nil || s.Rows == 0 {
		return s, err
	}
	n, z := c.rows(), o.zAlpha()
	cand, base := c.BothRight+c.OnlyCandidate, c.BothRight+c.OnlyBaseline
	p1, p2 := float64(cand)/float64(n), float64(base)/float64(n)
	l1, u1 := wilson(cand, n, z)
	l2, u2 := wilson(base, n, z)
	phi := c.phi(correction)
	diff := s.Value.v
	s.Low = some(diff - correlated(p1-l1, u2-p2, phi))
	s.High = some(diff + correlated(u1-p1, p2-l2, phi))
	return s, nil
}

// correlated is the length of the difference of two deviations with correlation
// phi.
func correlated(a, b, phi float64) float64 {
	return math.Sqrt(max(0, a*a-2*phi*a*b+b*b))
}

// phi is the correlation of the two candidates' scores, 0 where one of them is
// always the same.
func (c PairedCounts) phi(correction float64) float64 {
	a, b := float64(c.BothRight), float64(c.OnlyCandidate)
	d, e := float64(c.OnlyBaseline), float64(c.BothWrong)
	margins := (a + b) * (d + e) * (a + d) * (b + e)
	if margins == 0 {
		return 0
	}
	numerator := a*e - b*d
	if numerator > 0 {
		numerator = max(0, numerator-correction)
	}
	return numerator / math.Sqrt(margins)
}

func (c PairedCounts) rows() int {
	return c.BothRight + c.OnlyCandidate + c.OnlyBaseline + c.BothWrong
}

// begin checks, and fills in what all methods have.
func (c PairedCounts) begin(method string, o Options) (Options, Statistic, error) {
	o, err := o.withDefaults()
	if err != nil {
		return o, Statistic{}, err
	}
	if min(c.BothRight, c.OnlyCandidate, c.OnlyBaseline, c.BothWrong) < 0 {
		return o, Statistic{}, fmt.Errorf("comparing two rates: %+v has a negative count: give counts of rows", c)
	}
	s := Statistic{Method: none, Rows: c.rows(), Units: c.rows()}
	warnRows(&s.Warnings, s.Rows)
	if s.Rows > 0 {
		s.Method = method
		s.Value = some(float64(c.OnlyCandidate-c.OnlyBaseline) / float64(s.Rows))
	}
	return o, s, nil
}
