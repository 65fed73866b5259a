package stats

import "testing"

// By hand: 8 of 10 agree; shares (.6, .4) and (.6, .4), so chance is .52 and kappa
// .28/.48. AC1: chance 2·.6·.4 = .48, so .32/.52.
func TestAgreeByHand(t *testing.T) {
	a, err := Agree([][]int{{5, 1}, {1, 3}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what      string
		have      Opt
		want, off float64
	}{{"observed", a.Observed.Value, 0.8, 1e-12}, {"kappa", a.Kappa.Value, 0.28 / 0.48, 1e-12}, {"AC1", a.AC1.Value, 0.32 / 0.52, 1e-12}} {
		if v, ok := c.have.Get(); !ok || v-c.want > c.off || c.want-v > c.off {
			t.Errorf("%s is %v, want %v", c.what, c.have, c.want)
		}
	}
	low, _ := a.Kappa.Low.Get()
	high, _ := a.Kappa.High.Get()
	if !(low < 0.28/0.48 && 0.28/0.48 < high && high <= 1) {
		t.Errorf("the range of kappa is %v to %v", low, high)
	}
}

func TestAgreeShowsNothing(t *testing.T) {
	same, err := Agree([][]int{{7, 0}, {0, 0}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if same.Kappa != (Coefficient{}) || same.AC1 != (Coefficient{}) || same.Observed.Value != some(1) {
		t.Errorf("every rating the same: %+v", same)
	}
	none, err := Agree([][]int{{0, 0}, {0, 0}}, Options{})
	if err != nil || none != (Agreement{}) {
		t.Errorf("no rating: %+v, %v", none, err)
	}
	full, err := Agree([][]int{{3, 0}, {0, 2}}, Options{})
	if err != nil || full.Kappa.Value != some(1) || full.Kappa.Low != (Opt{}) {
		t.Errorf("full agreement has no range: %+v, %v", full, err)
	}
	for _, bad := range [][][]int{{{1, 2}}, {{1, -1}, {0, 1}}} {
		if _, err := Agree(bad, Options{}); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}

func TestPositionBias(t *testing.T) {
	b, err := Orders{Same: 6, First: 3, Tied: 1}.Bias(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if b.Flipped.Value != some(0.4) || b.ToFirst.Value != some(1) || b.P != some(0.25) {
		t.Errorf("%+v", b)
	}
}
