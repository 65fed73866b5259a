package stats

import (
	"math"
	"testing"
)

func TestNoiseVariance(t *testing.T) {
	tests := []struct {
		n    Noise
		want float64
	}{
		{Noise{Rows: 0.1}, 0.1},
		{Noise{Rows: 0.1, Baseline: 0.2, Candidate: 0.4}, 0.7},
		{Noise{Rows: 0.1, Baseline: 0.2, Candidate: 0.4, BaselineAnswers: 2, CandidateAnswers: 8}, 0.25},
	}
	for _, tt := range tests {
		if v := tt.n.Variance(); math.Abs(v-tt.want) > 1e-15 {
			t.Errorf("%+v has variance %v, want %v", tt.n, v, tt.want)
		}
	}
}

// Rows and difference are solved from the same equation.
func TestPlanRoundTrip(t *testing.T) {
	for _, rows := range []int{10, 157, 4000} {
		diff, err := DetectableDiff(0.2, rows, Options{})
		if err != nil {
			t.Fatal(err)
		}
		back, err := RowsForDiff(0.2, -diff*(1+1e-12), Options{})
		if err != nil || back != rows {
			t.Errorf("%d rows detect %v, which takes %d rows (%v)", rows, diff, back, err)
		}
		for _, share := range []float64{0, 0.02, 0.3, 1} {
			o, err := Options{}.withDefaults()
			if err != nil {
				t.Fatal(err)
			}
			diff, ok := detectableBinary(share, rows, o)
			if !ok {
				t.Fatalf("%d rows detect nothing", rows)
			}
			back, err := RowsForBinary(max(share, diff), diff*(1+1e-12), o)
			if share < diff { // the difference, made larger, passes the share
				back, err = RowsForBinary(diff*(1+1e-12), diff*(1+1e-12), o)
			}
			if err != nil || back != rows {
				t.Errorf("%d rows detect %v at %v, which takes %d rows (%v)", rows, diff, share, back, err)
			}
		}
	}
}

// Three rows cannot show even that all changed: (1.96)² = 3.84.
func TestDetectableBinaryTooFewRows(t *testing.T) {
	o, err := Options{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if diff, ok := detectableBinary(1, 3, o); ok {
		t.Errorf("three rows detect %v", diff)
	}
	if _, ok := detectableBinary(1, 4, o); !ok {
		t.Error("four rows do not detect a difference of 1")
	}
}

func TestPlanErrors(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	detectable := func(v float64, n int) error { _, err := DetectableDiff(v, n, Options{}); return err }
	forDiff := func(v, d float64) error { _, err := RowsForDiff(v, d, Options{}); return err }
	forBinary := func(s, d float64) error { _, err := RowsForBinary(s, d, Options{}); return err }
	for name, err := range map[string]error{
		"detectable, negative variance": detectable(-1, 10),
		"detectable, NaN":               detectable(nan, 10),
		"detectable, no rows":           detectable(1, 0),
		"rows, infinite variance":       forDiff(inf, 0.1),
		"rows, no difference":           forDiff(0.2, 0),
		"rows, no variance either":      forDiff(0, 0),
		"rows, tiny difference":         forDiff(0.2, 1e-12),
		"rows, infinite difference":     forDiff(0.2, inf),
		"rows, NaN":                     forDiff(0.2, nan),
		"binary, no difference":         forBinary(0.3, 0),
		"binary, share too small":       forBinary(0.1, -0.2),
		"binary, share too large":       forBinary(1.1, 0.2),
		"binary, NaN":                   forBinary(0.3, nan),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	// Options are read by every function.
	bad := Options{Alpha: 2}
	_, e1 := DetectableDiff(1, 10, bad)
	_, e2 := RowsForDiff(1, 1, bad)
	_, e3 := RowsForBinary(1, 1, bad)
	_, e4 := ZeroEventsUpper(10, bad)
	_, e5 := Single([]float64{1}, bad)
	for i, err := range []error{e1, e2, e3, e4, e5} {
		if err == nil {
			t.Errorf("function %d takes an alpha of 2", i+1)
		}
	}
	if n, err := RowsForDiff(0, 0.1, Options{}); err != nil || n != 1 {
		t.Errorf("without variance %d rows (%v), want 1", n, err)
	}
}
