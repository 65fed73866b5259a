package stats

import (
	"math"
	"testing"
)

// The Student quantile has closed forms at 1, 2 and 4 degrees of freedom
// (Shaw 2006).
func TestStudentQuantileClosedForms(t *testing.T) {
	for _, p := range []float64{0.6, 0.8, 0.9, 0.95, 0.975, 0.995, 0.9995} {
		a := 4 * p * (1 - p)
		q4 := math.Cos(math.Acos(math.Sqrt(a))/3) / math.Sqrt(a)
		for df, want := range map[float64]float64{
			1: math.Tan(math.Pi * (p - 0.5)),
			2: (2*p - 1) * math.Sqrt(2/a),
			4: 2 * math.Sqrt(q4-1),
		} {
			for _, sign := range []float64{1, -1} {
				have := studentQuantile(0.5+sign*(p-0.5), df)
				if math.Abs(have-sign*want) > 1e-10*want {
					t.Errorf("quantile of %v, %v degrees of freedom: %v, want %v", 0.5+sign*(p-0.5), df, have, sign*want)
				}
			}
		}
	}
	if q := studentQuantile(0.5, 3); q != 0 {
		t.Errorf("the median is %v, want 0", q)
	}
}

// The two formulas meet at ten thousand degrees of freedom, and the quantile
// goes to the normal one.
func TestStudentQuantileLargeDF(t *testing.T) {
	for _, p := range []float64{0.9, 0.975, 0.9995} {
		below, above := studentQuantile(p, 1e4), studentQuantile(p, 1e4+1e-6)
		if math.Abs(below-above) > 1e-10 {
			t.Errorf("p %v: %v and %v on the two sides of 1e4", p, below, above)
		}
		if q := studentQuantile(p, 1e12); math.Abs(q-normalQuantile(p)) > 1e-11 {
			t.Errorf("p %v: %v at 1e12 degrees of freedom, want the normal %v", p, q, normalQuantile(p))
		}
	}
}

func TestStudentTwoSidedInvertsQuantile(t *testing.T) {
	for _, df := range []float64{1, 2, 5, 14.5, 30, 400, 1e5} {
		for _, p := range []float64{0.2, 0.05, 0.001} {
			have := studentTwoSided(studentQuantile(1-p/2, df), df)
			if math.Abs(have-p) > 1e-9*p {
				t.Errorf("%v degrees of freedom: p %v comes back as %v", df, p, have)
			}
		}
	}
}

func TestMeanTest(t *testing.T) {
	// A constant gain has no spread: 0.3-0.1 and 0.2-0 differ in floats.
	d := differences([]float64{0.1, 0, 0.7}, []float64{0.3, 0.2, 0.9})
	m := meanOf(d)
	if m.sd != 0 || m.mean != 0.2 {
		t.Errorf("mean %v and sd %v, want 0.2 and exactly 0", m.mean, m.sd)
	}
	if stat, p := m.test(); stat != (Opt{}) || p != (Opt{}) {
		t.Errorf("t %v and p %v of a constant gain, want none", stat, p)
	}
	low, high := m.interval(0.95)
	if low != 0.2 || high != 0.2 {
		t.Errorf("range [%v, %v], want [0.2, 0.2]", low, high)
	}
}

func TestZeroEventsUpper(t *testing.T) {
	// (1-u)^n = alpha by definition.
	for _, n := range []int{1, 3, 59, 300, 1e6} {
		u, err := ZeroEventsUpper(n, Options{Alpha: 0.1})
		if err != nil {
			t.Fatal(err)
		}
		if back := math.Exp(float64(n) * math.Log1p(-u)); math.Abs(back-0.1) > 1e-12 {
			t.Errorf("%d rows: bound %v gives none with probability %v, want 0.1", n, u, back)
		}
	}
	if _, err := ZeroEventsUpper(0, Options{}); err == nil {
		t.Error("no error without rows")
	}
}
