package stats

import (
	"math"
	"strings"
	"testing"
)

// What has no meaning is refused, with words that say what and where.
func TestMeaninglessInputIsRefused(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	bad := Options{Alpha: 2}
	half := []float64{0.5, 0.5}
	check := JudgeCheck{Right: 5, Accepted: 4, Wrong: 5, Rejected: 4}
	refusal := func(_ any, err error) error { return err }
	for _, c := range []struct {
		err  error
		says string
	}{
		{refusal(BettingCapital([]float64{0, nan}, half, 0.5)), "row 1 has NaN"},
		{refusal(BettingCapital([]float64{0, -0.1}, half, 0.5)), "row 1 has -0.1"},
		{refusal(BettingCapital(half, half[:1], 0.5)), "1 bets on 2 scores"},
		{refusal(BettingCapital(half, half, 1)), "against is 1"},
		{refusal(BettingCapital(half, half, nan)), "against is NaN"},
		{refusal(BettingCapital(half, []float64{0, 2.1}, 0.5)), "bet 1 is 2.1"},
		{refusal(BettingCapital(half, []float64{nan, 0}, 0.5)), "bet 0 is NaN"},
		{refusal(PredictableBernstein([]float64{1.01}, Options{})), "row 0 has 1.01"},
		{refusal(HedgedCapital([]float64{inf}, Options{})), "row 0 has +Inf"},
		{refusal(PredictableBernstein(half, bad)), "alpha"},
		{refusal(HedgedCapital(half, bad)), "alpha"},
		{refusal(InAllLooks(nil)), "none"},
		{refusal(InAllLooks([]Statistic{{Method: "a", Low: some(0), High: some(1)}, {Method: "b", Low: some(0), High: some(1)}})), "look 1 is by b"},
		{refusal(MixtureBoundary(-1, 1, Options{})), "variance is -1"},
		{refusal(MixtureBoundary(1, 0, Options{})), "best variance is 0"},
		{refusal(MixtureBoundary(1, 1, bad)), "alpha"},
		{refusal(StitchedBoundary(nan, 1, 0, Options{})), "variance is NaN"},
		{refusal(StitchedBoundary(1, inf, 0, Options{})), "least variance is +Inf"},
		{refusal(StitchedBoundary(1, 1, -1, Options{})), "scale is -1"},
		{refusal(StitchedBoundary(1, 1, 0, bad)), "alpha"},
		{refusal(SignEvidence(-1, 0)), "-1 wins"},
		{refusal(SignEvidence(0, -1)), "-1 losses"},
		{refusal(EBenjaminiHochberg([]float64{1, -1}, Options{})), "number 1 is -1"},
		{refusal(EBenjaminiHochberg([]float64{nan}, Options{})), "number 0 is NaN"},
		{refusal(EBenjaminiHochberg(nil, bad)), "alpha"},
		{refusal(Halving(0, 10)), "0 candidates"},
		{refusal(Halving(8, 23)), "budget of 23"},
		{refusal(SuccessiveRejects(1, 10)), "1 candidates"},
		{refusal(SuccessiveRejects(4, 4)), "budget of 4"},
		{refusal(Hyperband(0, 3)), "0 rows"},
		{refusal(Hyperband(maxHyperbandRows+1, 3)), "1000000001 rows"},
		{refusal(Hyperband(9, 1)), "one of 1"},
		{refusal(Deviation([]float64{0, 2}, Scale{}, Options{})), "row 1 has 2"},
		{refusal(Deviation([]float64{nan}, Scale{}, Options{})), "row 0 has NaN"},
		{refusal(Deviation(nil, Scale{1, 0}, Options{})), "scale"},
		{refusal(Deviation(nil, Scale{}, bad)), "alpha"},
		{refusal(LUCBRadius(0, 1, 1, Options{})), "0 rows"},
		{refusal(LUCBRadius(1, 0, 1, Options{})), "round 0"},
		{refusal(LUCBRadius(1, 1, 0, Options{})), "0 candidates"},
		{refusal(LUCBRadius(1, 1, 1, bad)), "alpha"},
		{refusal(ProbGreater(Beta{0, 1}, Beta{1, 1})), "number 0 is a beta of 0 and 1"},
		{refusal(ProbGreater(Beta{1, 1}, Beta{1, nan})), "number 1 is a beta of 1 and NaN"},
		{refusal(PassK(3, 4, 1)), "4 right of 3"},
		{refusal(PassK(3, -1, 1)), "-1 right of 3"},
		{refusal(PassK(3, 1, 0)), "k is 0"},
		{refusal(PassK(3, 1, 4)), "k is 4"},
		{refusal(AgreeOrdered([][]int{{1, 2}, {3}}, Options{})), "row 1 has 1 cells"},
		{refusal(AgreeOrdered([][]int{{-1}}, Options{})), "cell 0, 0 is -1"},
		{refusal(AgreeOrdered(nil, bad)), "alpha"},
		{refusal(Krippendorff([][]float64{{1, 2}, {1, nan}}, NominalLevel)), "unit 1, rating 1 is NaN"},
		{refusal(Krippendorff([][]float64{{1, 2}}, "ratio")), `level is "ratio"`},
		{refusal(Calibrate(half, half[:1])), "2 rows and 1"},
		{refusal(Calibrate([]float64{1.5}, []float64{1})), "confidence of 1.5"},
		{refusal(Calibrate([]float64{0.5}, []float64{0.5})), "right by 0.5"},
		{refusal(CalibrationError([]float64{nan}, []float64{1}, 5)), "confidence of NaN"},
		{refusal(CalibrationError(nil, nil, 0)), "0 bins"},
		{refusal(CalibrationError(nil, nil, maxBins+1)), "1000001 bins"},
		{refusal(PreferLonger(half, half[:1], Options{})), "2 differences of length and 1"},
		{refusal(PreferLonger([]float64{inf}, []float64{1}, Options{})), "difference 0 is +Inf"},
		{refusal(PreferLonger([]float64{1}, []float64{0.5}, Options{})), "verdict 0 is 0.5"},
		{refusal(PreferLonger(nil, nil, bad)), "alpha"},
		{refusal(PPI(half, half[:1], half, Options{})), "2 human ratings and 1"},
		{refusal(PPI(half[:1], half[:1], half, Options{})), "1 human ratings"},
		{refusal(PPIPlusPlus(half, half, half[:1], Options{})), "1 judge's scores of other rows"},
		{refusal(PPIPlusPlus([]float64{0, nan}, half, half, Options{})), "human rating 1 is NaN"},
		{refusal(PPIPlusPlus(half, half, []float64{inf, 0}, Options{})), "rest, 0 is +Inf"},
		{refusal(PPI(half, half, half, bad)), "alpha"},
		{refusal(CorrectRate(3, 2, check, Options{})), "accepted of rows are 3 of 2"},
		{refusal(CorrectRate(0, 0, check, Options{})), "accepted of rows are 0 of 0"},
		{refusal(CorrectRate(1, 2, JudgeCheck{Wrong: 1}, Options{})), "accepted of right answers are 0 of 0"},
		{refusal(CorrectRate(1, 2, JudgeCheck{Right: 1, Wrong: 1, Rejected: 2}, Options{})), "rejected of wrong answers are 2 of 1"},
		{refusal(CorrectRate(1, 2, check, bad)), "alpha"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.says) || !strings.Contains(c.err.Error(), "give") {
			t.Errorf("want a refusal with %q, got %v", c.says, c.err)
		}
	}
}
