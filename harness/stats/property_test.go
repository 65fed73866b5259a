package stats

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

// holds checks what must be true of any two samples, and fails the test with
// the samples if it is not.
func holds(t *testing.T, base, cand []float64, o Options) {
	t.Helper()
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf(format, args...)
		t.Fatalf("baseline %v, candidate %v, options %+v", base, cand, o)
	}
	c, err := Compare(base, cand)
	if err != nil {
		fail("compare: %v", err)
	}
	mirrored, err := Compare(cand, base)
	if err != nil {
		fail("mirrored: %v", err)
	}
	if m := mirrored; m.Diff != negated(c.Diff) || m.Low != negated(c.High) || m.High != negated(c.Low) ||
		m.Better != c.Worse || m.Worse != c.Better || m.Same != c.Same {
		fail("compare gives %+v and mirrored %+v", c, m)
	}
	p, err := Paired(base, cand, o)
	if err != nil {
		fail("paired: %v", err)
	}
	pm, err := Paired(cand, base, o)
	if err != nil {
		fail("paired mirrored: %v", err)
	}
	if pm.Diff != negated(p.Diff) || pm.Low != negated(p.High) || pm.High != negated(p.Low) ||
		pm.P != p.P || pm.Better != p.Worse || pm.Detectable != p.Detectable || pm.RowsNeeded != p.RowsNeeded {
		fail("paired gives %+v and mirrored %+v", p, pm)
	}
	r, err := Range(cand)
	if err != nil {
		fail("range: %v", err)
	}
	s, err := Single(cand, o)
	if err != nil {
		fail("single: %v", err)
	}
	n := len(base)
	ordered := func(what string, low, point, high Opt, rows int) {
		t.Helper()
		l, okL := low.Get()
		v, okV := point.Get()
		h, okH := high.Get()
		// A NaN or an infinity would have become an absent number.
		if okV != (n >= 1) || okL != (n >= rows) || okH != okL {
			fail("%s of %d rows: [%v, %v] about %v", what, n, low, high, point)
		}
		if okL && !(l <= v && v <= h) {
			fail("%s: [%v, %v] does not hold %v", what, low, high, point)
		}
	}
	ordered("compare", c.Low, c.Diff, c.High, 2)
	ordered("range", r.Low, r.Mean, r.High, 2)
	ordered("single", s.Low, s.Mean, s.High, 2)
	ordered("paired", p.Low, p.Diff, p.High, 2)
	if v, ok := p.P.Get(); ok != (n >= 1) || ok && !(v >= 0 && v <= 1) {
		fail("p is %v", p.P)
	}
	if v, ok := p.Detectable.Get(); ok && !(v > 0) {
		fail("detectable is %v", p.Detectable)
	}
	if p.RowsNeeded != 0 && (p.RowsNeeded <= n || p.Decision != TooFewRows) {
		fail("%s with %d rows needs %d", p.Decision, n, p.RowsNeeded)
	}
}

func negated(o Opt) Opt {
	if v, ok := o.Get(); ok {
		return some(-v)
	}
	return o
}

func TestProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	kinds := []func() float64{
		func() float64 { return float64(rng.IntN(2)) },
		func() float64 { return float64(rng.IntN(11)) / 10 },
		rng.Float64,
		func() float64 { return math.Round(rng.NormFloat64() * 1000) },
		func() float64 { return rng.NormFloat64() * math.Pow10(rng.IntN(200)-100) / 100 },
	}
	for i := range 600 {
		kind := i % len(kinds)
		n := rng.IntN(26)
		base, cand := make([]float64, n), make([]float64, n)
		for j := range n {
			base[j], cand[j] = kinds[kind](), kinds[kind]()
			if rng.IntN(3) == 0 {
				cand[j] = base[j]
			}
		}
		holds(t, base, cand, Options{Binary: kind == 0, Margin: 0.05, Seed: uint64(i)})
	}
}

// More evidence of the same kind cannot make p larger, nor the range wider.
func TestMoreRowsTellMore(t *testing.T) {
	lastP, lastWidth := 2.0, 3.0
	for k := 1; k <= 20; k++ {
		base, cand := pairs(3*k, k, 5*k, k)
		r, err := Paired(base, cand, Options{Binary: true})
		if err != nil {
			t.Fatal(err)
		}
		p, _ := r.P.Get()
		low, _ := r.Low.Get()
		high, _ := r.High.Get()
		if p >= lastP || high-low >= lastWidth {
			t.Fatalf("%d times the rows: p %v after %v, width %v after %v", k, p, lastP, high-low, lastWidth)
		}
		lastP, lastWidth = p, high-low
	}
}

// FuzzPaired feeds any bits as scores. What is refused must be refused by all.
func FuzzPaired(f *testing.F) {
	seed := func(xs ...float64) {
		var b []byte
		for _, x := range xs {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
		f.Add(b, 0.05)
	}
	seed()
	seed(1, 0)
	seed(0.1, 0.3, 0, 0.2, 0.7, 0.9)
	seed(1, 0, 0, 0, 0, 1, 1, 0)
	seed(1e100, -1e100, 1e-300, -5e-324)
	seed(math.NaN(), 0, math.Inf(1), 0)
	seed(1e101, 0)
	f.Fuzz(func(t *testing.T, b []byte, margin float64) {
		var base, cand []float64
		valid := true
		for ; len(b) >= 16 && len(base) < 64; b = b[16:] {
			x := math.Float64frombits(binary.LittleEndian.Uint64(b))
			y := math.Float64frombits(binary.LittleEndian.Uint64(b[8:]))
			valid = valid && math.Abs(x) <= maxScore && math.Abs(y) <= maxScore
			base, cand = append(base, x), append(cand, y)
		}
		if !(margin >= 0 && margin <= maxScore) {
			margin = 0
		}
		if !valid {
			if _, err := Compare(base, cand); err == nil {
				t.Fatalf("compare takes %v and %v", base, cand)
			}
			if _, err := Paired(base, cand, Options{}); err == nil {
				t.Fatalf("paired takes %v and %v", base, cand)
			}
			return
		}
		holds(t, base, cand, Options{Binary: AllBinary(base, cand), Margin: margin})
	})
}
