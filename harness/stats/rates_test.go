package stats

import (
	"math"
	"math/big"
	"testing"
)

// coinTail against exact fractions, on both sides of where logarithms start.
func TestCoinTail(t *testing.T) {
	for _, m := range []int{1, 2, 5, 31, 64, 300, 1000, 1001, 3000} {
		for _, k := range []int{0, m / 5, m * 9 / 20, m / 2} {
			all := new(big.Int).Lsh(big.NewInt(1), uint(m))
			term, total := new(big.Int), new(big.Int)
			for j := 0; j <= k; j++ {
				total.Add(total, term.Binomial(int64(m), int64(j)))
			}
			wantTail, _ := new(big.Rat).SetFrac(total, all).Float64()
			wantPoint, _ := new(big.Rat).SetFrac(term, all).Float64()
			tail, point := coinTail(m, k)
			if math.Abs(tail-wantTail) > 1e-11*wantTail || math.Abs(point-wantPoint) > 1e-11*wantPoint {
				t.Errorf("%d of %d: tail %v and point %v, want %v and %v", k, m, tail, point, wantTail, wantPoint)
			}
		}
	}
}

func TestMcNemarSmallestP(t *testing.T) {
	// All disagreements one way: mid-p is 2^-m, exact 2^(1-m). So mid-p needs
	// 5 of them to fall below 0.05, the exact test 6.
	for m := 1; m < 12; m++ {
		p := table{m, 0, 30}.mcnemar()
		if p.midP != math.Ldexp(1, -m) || p.exact != math.Ldexp(2, -m) {
			t.Errorf("%d one way: mid-p %v, exact %v, want 2^-%d and twice that", m, p.midP, p.exact, m)
		}
	}
	for alpha, want := range map[float64][2]int{0.05: {5, 6}, 0.01: {7, 8}, 0.25: {3, 4}, 0.2: {3, 4}} {
		have := [2]int{fewestRows(1, alpha), fewestRows(2, alpha)}
		if have != want {
			t.Errorf("at %v mid-p and sign-flip need %v rows, want %v", alpha, have, want)
		}
	}
}

// Both sides alike: everything is at least as extreme, and mid-p takes the
// probability of what was seen, P(3 of 6) = 20/64, away.
func TestMcNemarEqualSides(t *testing.T) {
	p := table{3, 3, 30}.mcnemar()
	if p.exact != 1 || p.midP != 44.0/64 || p.asymptotic != 1 {
		t.Errorf("3 against 3: %+v, want exact 1, mid-p 44/64, asymptotic 1", p)
	}
}

func TestMcNemarManyRows(t *testing.T) {
	p := table{50500, 49500, 1e6}.mcnemar()
	// chi² = 1000²/100000 = 10, whose p is 0.0015654.
	if math.Abs(p.asymptotic-0.0015654) > 1e-7 || math.Abs(p.midP-p.asymptotic) > 1e-6 {
		t.Errorf("mid-p %v and asymptotic %v, want both near 0.0015654", p.midP, p.asymptotic)
	}
	if p := (table{1e6, 0, 1e6}).mcnemar(); p.midP < 0 || p.midP > 1e-300 {
		t.Errorf("mid-p %v of a million one way", p.midP)
	}
}

// Without disagreements the limits have a closed form, ±z²/(n+z²): q is 0 on
// one side, and Z² = nΔ²/(Δ(1-Δ)).
func TestTangoNoDisagreement(t *testing.T) {
	for _, n := range []int{2, 10, 40, 1000, 1e6} {
		z := normalQuantile(0.975)
		low, high, ok := table{0, 0, n}.tango(z)
		want := z * z / (float64(n) + z*z)
		if !ok || math.Abs(high-want) > 1e-9 || low != -high {
			t.Errorf("%d rows: [%v, %v], want ±%v", n, low, high, want)
		}
	}
}

func TestTangoEnds(t *testing.T) {
	z := normalQuantile(0.975)
	if low, high, ok := (table{0, 9, 9}).tango(z); !ok || low != -1 || high >= 0 {
		t.Errorf("all worse: [%v, %v], want from exactly -1 to below 0", low, high)
	}
	if low, high, ok := (table{9, 0, 9}).tango(z); !ok || high != 1 || low <= 0 {
		t.Errorf("all better: [%v, %v], want from above 0 to exactly 1", low, high)
	}
}

// Every table of up to 25 rows: the range holds the difference, is the mirror
// image of the swapped one, and has the statistic z at its limits.
func TestTangoAllSmallTables(t *testing.T) {
	z := normalQuantile(0.975)
	for n := 1; n <= 25; n++ {
		for b := 0; b <= n; b++ {
			for c := 0; b+c <= n; c++ {
				tab := table{b, c, n}
				low, high, ok := tab.tango(z)
				if !ok || low < -1 || high > 1 || low > tab.diff() || high < tab.diff() {
					t.Fatalf("%v: [%v, %v] %v about %v", tab, low, high, ok, tab.diff())
				}
				swapLow, swapHigh, _ := tab.swapped().tango(z)
				if swapLow != -high || swapHigh != -low {
					t.Fatalf("%v: [%v, %v], swapped [%v, %v]", tab, low, high, swapLow, swapHigh)
				}
				if c < n && math.Abs(tab.tangoZ(low)-z) > 1e-6 {
					t.Fatalf("%v: the statistic at %v is %v, want %v", tab, low, tab.tangoZ(low), z)
				}
				// At 0 it is McNemar's.
				if b+c > 0 {
					if have, want := tab.tangoZ(0), float64(b-c)/math.Sqrt(float64(b+c)); math.Abs(have-want) > 1e-12 {
						t.Fatalf("%v: the statistic at 0 is %v, want %v", tab, have, want)
					}
				}
			}
		}
	}
}

// The statistic of many rows and few disagreements, where the root could lose
// digits, against 200 bits.
func TestTangoManyRows(t *testing.T) {
	num := func(x float64) *big.Float { return new(big.Float).SetPrec(200).SetFloat64(x) }
	op := func(f func(z, x, y *big.Float) *big.Float, x, y *big.Float) *big.Float {
		return f(new(big.Float).SetPrec(200), x, y)
	}
	add, sub, mul, quo := (*big.Float).Add, (*big.Float).Sub, (*big.Float).Mul, (*big.Float).Quo
	for _, tab := range []table{{3, 1, 1e9}, {40, 60, 1e8}, {1, 0, 1e7}} {
		for _, delta := range []float64{1e-8, 1e-3, 0.5, -1e-8, -0.5} {
			b, c, n, d := num(float64(tab.candidate)), num(float64(tab.baseline)), num(float64(tab.rows)), num(delta)
			dd := op(mul, d, op(sub, num(1), d)) // Δ(1-Δ)
			A := op(mul, num(2), n)
			B := op(sub, op(mul, op(add, op(sub, A, b), c), d), op(add, b, c))
			C := op(sub, num(0), op(mul, c, dd))
			disc := op(sub, op(mul, B, B), op(mul, num(4), op(mul, A, C)))
			root := new(big.Float).SetPrec(200).Sqrt(disc)
			q := op(quo, op(sub, root, B), op(mul, num(2), A))
			variance := op(mul, n, op(add, op(mul, num(2), q), dd))
			top := op(sub, op(sub, b, c), op(mul, n, d))
			want, _ := op(quo, top, new(big.Float).SetPrec(200).Sqrt(variance)).Float64()
			if have := tab.tangoZ(delta); math.Abs(have-want) > 1e-12*math.Abs(want) {
				t.Errorf("%v at %v: %v, want %v", tab, delta, have, want)
			}
		}
	}
}

// If Tango's limits cannot be found the closed form takes over, and says so.
// No table of counts is known to need it, so the test asks for a level that is
// not a number.
func TestRatesFallback(t *testing.T) {
	tab := table{4, 2, 30}
	if method, _, _ := tab.interval(math.NaN()); method != "bonett-price" {
		t.Errorf("without a root the method is %q", method)
	}
	if method, _, _ := tab.interval(1.96); method != "tango" {
		t.Errorf("with a root the method is %q", method)
	}
	for _, tab := range []table{tab, {9, 0, 9}, {0, 9, 9}} {
		low, high := tab.bonettPrice(1.96)
		if low < -1 || high > 1 || low > high {
			t.Errorf("%v: [%v, %v] is no range within [-1, 1]", tab, low, high)
		}
	}
}
