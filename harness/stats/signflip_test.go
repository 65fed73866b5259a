package stats

import (
	"math"
	"testing"
)

// All patterns, counted by a plain loop over integers.
func TestSignFlipAgainstLoop(t *testing.T) {
	for _, whole := range [][]int{
		{1}, {3, -1}, {1, 1, 2}, {5, 2, -2, 7, 5, 10}, {1, 1, 1, 1, 1, -1, -1, 4}, {7, 6, 5, 4, 3, 2, 1, -9, 8, 8, 1, 1, -2},
	} {
		observed := 0
		d := make([]float64, len(whole))
		for i, w := range whole {
			observed += w
			d[i] = float64(w) / 3 // thirds, whose sums tie only up to a last digit
		}
		far := 0
		for pattern := range 1 << len(whole) {
			s := 0
			for i, w := range whole {
				if pattern>>i&1 == 1 {
					w = -w
				}
				s += w
			}
			if max(s, -s) >= max(observed, -observed) {
				far++
			}
		}
		want := float64(far) / math.Ldexp(1, len(whole))
		// Zeros between the differences change nothing.
		withZeros := append(append([]float64{0, 0}, d...), 0)
		if method, p := signFlip(withZeros, 0); p != want || method != "sign-flip" {
			t.Errorf("%v: p %v by %q, want %v by all patterns", whole, p, method, want)
		}
	}
}

func TestSignFlipLimit(t *testing.T) {
	d := make([]float64, 21)
	for i := range d {
		d[i] = 1
	}
	// 20 rows one way: 2 patterns of 2^20.
	if method, p := signFlip(d[:20], 7); method != "sign-flip" || p != math.Ldexp(2, -20) {
		t.Errorf("20 rows: p %v by %q", p, method)
	}
	// 21 rows: in all likelihood none of 9,999 draws, and p is 1/10,000.
	if method, p := signFlip(d, 7); method != "sign-flip-sampled" || p != 1e-4 {
		t.Errorf("21 rows: p %v by %q, want 0.0001 by sign-flip-sampled", p, method)
	}
	if p := monteCarloP(0, signDraws); p != 1e-4 {
		t.Errorf("p without exceedances is %v, want 0.0001", p)
	}
}

// Drawn patterns must come out as often as counting all of them says, for
// lengths that do and do not fill the last four.
func TestSignFlipDraws(t *testing.T) {
	for _, n := range []int{16, 17, 18, 19} {
		d := make([]float64, n)
		for i := range d {
			d[i] = float64(i%7) - 2.2
		}
		all, _ := signFlipAll(d)
		const draws = 40000
		sd := math.Sqrt(all * (1 - all) / draws)
		for seed := range uint64(10) {
			have := float64(signFlipExceedances(d, draws, seed)) / draws
			if math.Abs(have-all) > 4.5*sd {
				t.Errorf("%d rows, seed %d: %v of the draws, want %v ± %v", n, seed, have, all, sd)
			}
		}
	}
}

// Past one word of random bits, signs of all rows must still be drawn: with
// one difference far larger than the rest together, the two-sided share is 1
// only if its sign varies alone; with equal ones it is that of a fair coin.
func TestSignFlipManyRows(t *testing.T) {
	for _, n := range []int{64, 65, 100, 1000} {
		d := make([]float64, n)
		up := n/2 + int(math.Sqrt(float64(n))) // about two standard deviations
		for i := range d {
			d[i] = -0.25
			if i < up {
				d[i] = 0.25
			}
		}
		tail, _ := coinTail(n, n-up)
		want := 2 * tail
		_, p := signFlip(d, 3)
		if sd := math.Sqrt(want * (1 - want) / signDraws); math.Abs(p-want) > 4.5*sd+1e-4 {
			t.Errorf("%d rows: p %v, want %v ± %v", n, p, want, sd)
		}
	}
}

func TestSignFlipSeed(t *testing.T) {
	d := make([]float64, 30)
	for i := range d {
		d[i] = float64(i) - 11
	}
	draws := map[float64]bool{}
	for seed := range uint64(20) {
		_, first := signFlip(d, seed)
		_, again := signFlip(d, seed)
		if first != again {
			t.Errorf("seed %d gives %v and then %v", seed, first, again)
		}
		draws[first] = true
	}
	if len(draws) < 2 {
		t.Error("the seed does not matter")
	}
}
