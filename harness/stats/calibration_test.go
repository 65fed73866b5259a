package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// isotonicByMeans is the regression at i by its other definition: the largest, over
// where to begin, of the smallest mean over where to end, with equals together.
func isotonicByMeans(x, y []float64, i int) float64 {
	best := math.Inf(-1)
	for _, from := range x {
		if from > x[i] {
			continue
		}
		least := math.Inf(1)
		for _, to := range x {
			if to < x[i] {
				continue
			}
			right, rows := 0.0, 0.0
			for j := range x {
				if x[j] >= from && x[j] <= to {
					right, rows = right+y[j], rows+1
				}
			}
			least = min(least, right/rows)
		}
		best = max(best, least)
	}
	return best
}

func TestCalibrate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 6))
	for run := range 100 {
		n := 1 + rng.IntN(25)
		p, lifted, y := make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range p {
			p[i] = float64(rng.IntN(11)) / 10
			if run%2 == 0 {
				p[i] = rng.Float64()
			}
			lifted[i] = math.Sqrt(p[i])
			if rng.Float64() < p[i] {
				y[i] = 1
			}
		}
		r := must(Calibrate(p, y))(t)
		if parts := r.Miscalibration.v - r.Discrimination.v + r.Uncertainty.v; math.Abs(parts-r.Brier.v) > 1e-12 {
			t.Errorf("%+v: the parts add up to %v", r, parts)
		}
		for i := range p {
			if want := isotonicByMeans(p, y, i); !closeTo(r.Calibrated[i], want) {
				t.Fatalf("confidence %v, right %v: row %d has %v, want %v", p, y, i, r.Calibrated[i], want)
			}
		}
		again := must(Calibrate(r.Calibrated, y))(t)
		if again.Miscalibration.v > 1e-12 || !closeTo(again.Discrimination.v, r.Discrimination.v) {
			t.Errorf("calibrated confidence is off: %+v after %+v", again, r)
		}
		other := must(Calibrate(lifted, y))(t)
		if other.Discrimination != r.Discrimination || other.Uncertainty != r.Uncertainty {
			t.Errorf("other confidence in the same order: %+v and %+v", r, other)
		}
	}
	if r := must(Calibrate(nil, nil))(t); !r.Brier.IsZero() || !r.Miscalibration.IsZero() || r.Rows != 0 {
		t.Errorf("no rows: %+v", r)
	}
}

func TestCalibrationError(t *testing.T) {
	for bins := 1; bins <= 300; bins++ {
		for k := range bins {
			low := float64(k) / float64(bins)
			if got := bin(low, bins); got != k {
				t.Fatalf("%d/%d is in bin %d", k, bins, got)
			}
			if below := math.Nextafter(low, -1); k > 0 && bin(below, bins) != k-1 {
				t.Fatalf("just below %d/%d is in bin %d", k, bins, bin(below, bins))
			}
		}
		if got := bin(1, bins); got != bins-1 {
			t.Fatalf("1 is in bin %d of %d", got, bins)
		}
	}
	at := func(p, y []float64, bins int) Opt { return must(CalibrationError(p, y, bins))(t) }
	if e := at([]float64{0.9, 0.6, 0.3}, []float64{1, 1, 0}, 1); !closeTo(e.v, 0.2/3) {
		t.Errorf("one bin: %v", e)
	}
	if e := at([]float64{1, 1, 0}, []float64{1, 1, 0}, maxBins); e != some(0) {
		t.Errorf("certain and right: %v", e)
	}
	if e := at([]float64{1, 0}, []float64{0, 1}, 10); e != some(1) {
		t.Errorf("certain and wrong: %v", e)
	}
	if e := at(nil, nil, 10); !e.IsZero() {
		t.Errorf("no rows: %v", e)
	}
}
