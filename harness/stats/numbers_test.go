package stats

import (
	"encoding/json"
	"math"
	"testing"
)

func TestOpt(t *testing.T) {
	type fields struct {
		A, B, C Opt
		D       Opt `json:"D,omitzero"`
		E       Opt `json:"E,omitzero"`
	}
	in := fields{A: some(0.1), B: some(math.Copysign(0, -1)), E: some(0)}
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"A":0.1,"B":0,"C":null,"E":0}`; string(text) != want {
		t.Errorf("written as %s, want %s", text, want)
	}
	var back fields
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if back != in {
		t.Errorf("read back as %v, want %v", back, in)
	}
	if err := json.Unmarshal([]byte(`{"A":"x"}`), &back); err == nil {
		t.Error("no error for text in place of a number")
	}
	if in.A.String() != "0.1" || in.C.String() != "none" {
		t.Errorf("shown as %v and %v", in.A, in.C)
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if o := some(v); !o.IsZero() {
			t.Errorf("%v is taken for a number", v)
		}
	}
}

func TestSum(t *testing.T) {
	tests := []struct {
		xs   []float64
		want float64
	}{
		{nil, 0},
		{[]float64{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, 1},
		{[]float64{1, 1e100, 1, -1e100}, 2},
	}
	for _, tt := range tests {
		var s, neg sum
		for _, x := range tt.xs {
			s.add(x)
			neg.add(-x)
		}
		if s.value() != tt.want || neg.value() != -tt.want {
			t.Errorf("sum of %v is %v, negated %v, want ±%v", tt.xs, s.value(), neg.value(), tt.want)
		}
	}
}

func TestRounder(t *testing.T) {
	tenth, million := 0.1, 1e6 // variables: the compiler is exact with constants
	tests := []struct {
		largest, x, want float64
	}{
		{1, 3*tenth - tenth, 0.2},
		{1, 4e-13, 0},
		{1, 6e-13, 1e-12},
		{1, -6e-13, -1e-12},
		{1e6, (million + tenth) - million, 0.1}, // 0.09999999997671694: a step of 1e-6
		{1e100, 2e100, 2e100},
	}
	for _, tt := range tests {
		if have := rounder(tt.largest)(tt.x); math.Abs(have-tt.want) > 1e-15*math.Abs(tt.want) {
			t.Errorf("%v rounds to %v among scores up to %v, want %v", tt.x, have, tt.largest, tt.want)
		}
	}
	if l := largest([]float64{0.2}, []float64{-30, 4}); l != 30 {
		t.Errorf("largest is %v, want 30", l)
	}
	if l := largest([]float64{0.2}); l != 1 {
		t.Errorf("largest is %v, want 1 at least", l)
	}
}

func TestAllBinary(t *testing.T) {
	if !AllBinary() || !AllBinary([]float64{0, 1, math.Copysign(0, -1)}, []float64{1}) {
		t.Error("0/1 scores are not taken for binary")
	}
	if AllBinary([]float64{0, 1}, []float64{0.5}) || AllBinary([]float64{math.NaN()}) {
		t.Error("other scores are taken for binary")
	}
}
