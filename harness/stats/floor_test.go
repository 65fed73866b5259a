package stats

import (
	"math"
	"testing"
)

func TestFloorOf(t *testing.T) {
	for _, tt := range []struct {
		name         string
		first, again []float64
		alpha        float64
		changed      int
		diff, floor  any // nil: absent
	}{
		{"no rows", nil, nil, 0, 0, nil, nil},
		{"nothing changed", []float64{1, 0, 1}, []float64{1, 0, 1}, 0, 0, 0.0, 0.0},
		// one up and one down: √2/4, times 1.96
		{"both ways", []float64{1, 0, 1, 0}, []float64{0, 1, 1, 0}, 0, 2, 0.0, 1.959963984540054 * math.Sqrt2 / 4},
		// √(0.25 + 0.01)/2, times the quantile of 1 − 0.1/2
		{"another alpha", []float64{0.5, 0.2}, []float64{1, 0.1}, 0.1, 2, 0.2, 1.6448536269514722 * math.Sqrt(0.26) / 2},
	} {
		got, err := FloorOf(tt.first, tt.again, Options{Alpha: tt.alpha})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got.N != len(tt.first) || got.Changed != tt.changed {
			t.Errorf("%s: %+v", tt.name, got)
		}
		check(t, tt.name+": diff", got.Diff, tt.diff, 1e-12)
		check(t, tt.name+": floor", got.Floor, tt.floor, 1e-12)
	}
	if _, err := FloorOf([]float64{1}, nil, Options{}); err == nil {
		t.Error("samples of different length were compared")
	}
	if _, err := FloorOf(nil, nil, Options{Alpha: 2}); err == nil {
		t.Error("an alpha of 2 was taken")
	}
}
