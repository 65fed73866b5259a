package stats

import (
	"math"
	"strings"
	"testing"
)

func TestRange(t *testing.T) {
	tests := []struct {
		name            string
		scores          []float64
		method          string
		mean, low, high any // float64, or nil for absent
	}{
		{"no rows", nil, "none", nil, nil, nil},
		{"one row", []float64{0.4}, "none", 0.4, nil, nil},
		{"one right row", []float64{1}, "none", 1.0, nil, nil},
		// The contract's published anchors.
		{"72 of 80", rightOf(72, 80), "wilson", 0.9, 0.8148931, 0.9484524},
		{"71 of 80", rightOf(71, 80), "wilson", 0.8875, 0.7998178, 0.9396731},
		// Wilson at k = 0 is z²/(n+z²): 3.84145888/13.84145888.
		{"none right of 10", rightOf(0, 10), "wilson", 0.0, 0.0, 0.2775328},
		// Almost 0/1 is not 0/1. Mean and se ½: 0.5 ± 12.706/2.
		{"two rows", []float64{0, 1.0000001}, "student-t", 0.50000005, -5.8530006, 6.8530007},
		{"not clamped", []float64{1, 1, 0.5, 1}, "student-t", 0.875, 0.875 - 3.182*0.125, 0.875 + 3.182*0.125},
		{"no variation", []float64{0.1, 0.1, 0.1}, "student-t", 0.1, 0.1, 0.1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Range(tt.scores)
			if err != nil {
				t.Fatal(err)
			}
			if r.N != len(tt.scores) || r.Method != tt.method {
				t.Errorf("n %d by %q, want %d by %q", r.N, r.Method, len(tt.scores), tt.method)
			}
			check(t, "mean", r.Mean, tt.mean, 1e-7)
			check(t, "low", r.Low, tt.low, 1e-7)
			check(t, "high", r.High, tt.high, 1e-7)
		})
	}
}

func TestRangeEndsAreExact(t *testing.T) {
	for n := 2; n < 400; n++ {
		none, err := Range(rightOf(0, n))
		if err != nil {
			t.Fatal(err)
		}
		all, err := Range(rightOf(n, n))
		if err != nil {
			t.Fatal(err)
		}
		if none.Low != some(0) || all.High != some(1) {
			t.Fatalf("of %d rows: none right gives low %v, all right high %v, want exactly 0 and 1", n, none.Low, all.High)
		}
	}
}

func TestCompare(t *testing.T) {
	tests := []struct {
		name                string
		better, worse, same int // 0/1 rows
		diff, low, high     any
	}{
		// Published with the contract.
		{"4 better of 40", 4, 0, 36, 0.1, 0.0028352, 0.1971648},
		{"3 better and 2 worse of 80", 3, 2, 75, 0.0125, -0.0434156, 0.0684156},
		{"8 better and 3 worse of 39", 8, 3, 28, 0.1282051, -0.0410412, 0.2974514},
		{"2 better of 4", 2, 0, 2, 0.5, -0.4185643, 1.4185643},
		{"all better", 5, 0, 0, 1.0, 1.0, 1.0},
		{"all the same", 0, 0, 7, 0.0, 0.0, 0.0},
		{"one row", 0, 1, 0, -1.0, nil, nil},
		{"no rows", 0, 0, 0, nil, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before, after := pairs(tt.better, tt.worse, tt.same, 0)
			c, err := Compare(before, after)
			if err != nil {
				t.Fatal(err)
			}
			if c.N != len(before) || c.Better != tt.better || c.Worse != tt.worse || c.Same != tt.same {
				t.Errorf("counts %+v", c)
			}
			check(t, "diff", c.Diff, tt.diff, 1e-7)
			check(t, "low", c.Low, tt.low, 1e-7)
			check(t, "high", c.High, tt.high, 1e-7)
		})
	}
}

// The contract counts exactly; the added layer takes 1e-12 for the same.
func TestCompareCountsExactly(t *testing.T) {
	tenth, fifth := 0.1, 0.2 // as constants they would add up to exactly 0.3
	before, after := []float64{0.3, 0.5}, []float64{tenth + fifth, 0.5}
	c, err := Compare(before, after)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Paired(before, after, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Better != 1 || c.Same != 1 {
		t.Errorf("contract: %d better, %d same, want 1 and 1", c.Better, c.Same)
	}
	if p.Better != 0 || p.Same != 2 {
		t.Errorf("added: %d better, %d same, want 0 and 2", p.Better, p.Same)
	}
}

func TestInputErrors(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	ok := []float64{0, 1, 1}
	single := func(scores []float64, o Options) error { _, err := Single(scores, o); return err }
	paired := func(b, c []float64, o Options) error { _, err := Paired(b, c, o); return err }
	rng := func(scores []float64) error { _, err := Range(scores); return err }
	compare := func(b, c []float64) error { _, err := Compare(b, c); return err }
	tests := []struct {
		name string
		err  error
		want string // a part of the message
	}{
		{"range of NaN", rng([]float64{1, nan}), "candidate scores: row 1 has NaN"},
		{"range of infinity", rng([]float64{-inf}), "row 0 has -Inf"},
		{"range of what squares to infinity", rng([]float64{1e200, 0}), "row 0 has 1e+200"},
		{"single of NaN", single([]float64{nan}, Options{}), "row 0 has NaN"},
		{"single of not binary", single([]float64{1, 0.5}, Options{Binary: true}), "row 1 has 0.5"},
		{"compare lengths", compare(ok, ok[1:]), "3 baseline rows and 2 candidate rows"},
		{"compare NaN before", compare([]float64{nan}, []float64{1}), "baseline scores: row 0"},
		{"compare NaN after", compare([]float64{1}, []float64{nan}), "candidate scores: row 0"},
		{"paired lengths", paired(ok, nil, Options{}), "3 baseline rows and 0 candidate rows"},
		{"paired infinity", paired([]float64{0, 0, inf}, ok, Options{}), "baseline scores: row 2 has +Inf"},
		{"paired baseline not binary", paired([]float64{0, 2, 1}, ok, Options{Binary: true}), "baseline scores: row 1 has 2"},
		{"paired candidate not binary", paired(ok, []float64{0, 1, -1}, Options{Binary: true}), "candidate scores: row 2 has -1"},
		{"alpha", paired(ok, ok, Options{Alpha: 0.5}), "alpha is 0.5"},
		{"alpha NaN", single(ok, Options{Alpha: nan}), "alpha is NaN"},
		{"power below alpha", paired(ok, ok, Options{Power: 0.05}), "power is 0.05"},
		{"power of 1", paired(ok, ok, Options{Power: 1}), "power is 1"},
		{"margin", paired(ok, ok, Options{Margin: -0.1}), "margin is -0.1"},
		{"margin infinite", paired(ok, ok, Options{Margin: inf}), "margin is +Inf"},
	}
	for _, tt := range tests {
		if tt.err == nil {
			t.Errorf("%s: no error", tt.name)
		} else if !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("%s: %q does not say %q", tt.name, tt.err, tt.want)
		}
	}
}

// check compares an optional number with a wanted float64, or nil for absent.
func check(t *testing.T, field string, have Opt, want any, tolerance float64) {
	t.Helper()
	v, ok := have.Get()
	w, wantOK := want.(float64)
	if ok != wantOK || math.Abs(v-w) > tolerance {
		t.Errorf("%s is %v, want %v", field, have, want)
	}
}

// pairs makes 0/1 scores of two candidates from the counts of their table.
func pairs(onlyCandidate, onlyBaseline, bothRight, bothWrong int) (base, cand []float64) {
	add := func(n int, b, c float64) {
		for range n {
			base, cand = append(base, b), append(cand, c)
		}
	}
	add(onlyCandidate, 0, 1)
	add(onlyBaseline, 1, 0)
	add(bothRight, 1, 1)
	add(bothWrong, 0, 0)
	return base, cand
}
