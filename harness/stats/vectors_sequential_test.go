package stats

import (
	"math"
	"testing"
)

// anytimeInput has scores that are looked at as they come in.
type anytimeInput struct {
	X, Bets []float64
	Null    float64 `json:"null_mean"`
	Alpha   float64
}

// ppiInput has a person's ratings and a judge's.
type ppiInput struct {
	Human      []float64
	Judged     []float64 `json:"judge_on_human"`
	Rest       []float64 `json:"judge_on_rest"`
	Less       float64   `json:"ddof"`
	Confidence float64
}

// ppiVector takes the vectors' normal range and either divisor; with n-1 it compares
// the estimate with what the method says as well.
func ppiVector(method func(human, judged, rest []float64, o Options) (Judged, error), lambda func(predicted) float64) func(*testing.T, vectorInput) got {
	return ownInput(func(t *testing.T, in ppiInput) got {
		p := predicted{in.Human, in.Judged, in.Rest, in.Less}
		weight := lambda(p)
		value, se := p.mean(weight)
		z := normalQuantile((1 + in.Confidence) / 2)
		j := must(method(in.Human, in.Judged, in.Rest, confident(in.Confidence)))(t)
		if in.Less == 1 && (j.Value != some(value) || j.SE != some(se) || j.Lambda != some(weight)) {
			t.Errorf("the steps give %v, %v, %v and the method %+v", value, se, weight, j)
		}
		return got{"lam": weight, "lam_unclipped": p.lambda(), "est": value, "se": se, "lo": value - z*se, "hi": value + z*se}
	})
}

// scheduleVector has rounds as pairs of candidates and rows.
func scheduleVector(rounds []Round) [][]int {
	var pairs [][]int
	for _, r := range rounds {
		pairs = append(pairs, []int{r.Candidates, r.Rows})
	}
	return pairs
}

func init() {
	dispatchers["betting_capital"] = ownInput(func(t *testing.T, in anytimeInput) got {
		return got{"capital": must(BettingCapital(in.X, in.Bets, in.Null))(t)}
	})
	dispatchers["confseq_predictable_empirical_bernstein"] = ownInput(func(t *testing.T, in anytimeInput) got {
		o := Options{Alpha: in.Alpha}
		var looks []Statistic
		var bets []float64
		plugIn := newPlugIn(in.Alpha)
		for i, x := range in.X {
			bets = append(bets, min(maxBernsteinBet, plugIn.bet()))
			plugIn.add(x)
			looks = append(looks, must(PredictableBernstein(in.X[:i+1], o))(t))
		}
		last, all := looks[len(looks)-1], must(InAllLooks(looks))(t)
		return got{
			"bets_first5": bets[:5], "lo_last": last.Low, "hi_last": last.High,
			"lo_running_max": all.Low, "hi_running_min": all.High,
		}
	})
	dispatchers["confseq_hedged_capital"] = ownInput(func(t *testing.T, in anytimeInput) got {
		s := must(HedgedCapital(in.X, Options{Alpha: in.Alpha}))(t)
		return got{"lo_last": s.Low, "hi_last": s.High}
	})
	dispatchers["normal_mixture_boundary_two_sided"] = ownInput(func(t *testing.T, in struct {
		V     float64
		Best  float64 `json:"v_opt"`
		Alpha float64
	},
	) got {
		b := must(MixtureBoundary(in.V, in.Best, Options{Alpha: in.Alpha}))(t)
		return got{"rho": mixtureRho(in.Best, in.Alpha), "boundary": b}
	})
	dispatchers["poly_stitched_boundary"] = ownInput(func(t *testing.T, in struct {
		V      float64
		Least  float64 `json:"v_min"`
		C      float64
		S, Eta float64
		Alpha  float64
	},
	) got {
		if in.S != 1.4 || in.Eta != 2 {
			t.Fatalf("s %v and η %v, which are fixed at 1.4 and 2", in.S, in.Eta)
		}
		return got{"boundary": must(StitchedBoundary(in.V, in.Least, in.C, Options{Alpha: in.Alpha}))(t)}
	})
	dispatchers["sign_test_evalue_two_sided"] = ownInput(func(t *testing.T, in struct{ Wins, Losses int }) got {
		e := must(SignEvidence(in.Wins, in.Losses))(t)
		return got{"e": e.Either, "e_one_sided": e.Greater}
	})
	dispatchers["e_benjamini_hochberg"] = ownInput(func(t *testing.T, in struct {
		E     []float64
		Alpha float64
	},
	) got {
		return got{"rejected_indices": must(EBenjaminiHochberg(in.E, Options{Alpha: in.Alpha}))(t)}
	})

	dispatchers["deviation_radii"] = ownInput(func(_ *testing.T, in struct {
		N            int
		Variance     float64 `json:"variance_sample"`
		Range, Delta float64
	},
	) got {
		r := radii(in.N, in.Variance, in.Range, in.Delta)
		return got{
			"hoeffding": r.Hoeffding, "empirical_bernstein_audibert": r.Bernstein,
			"empirical_bernstein_maurer_two_sided": r.Sample,
		}
	})
	dispatchers["lucb_beta"] = ownInput(func(t *testing.T, in struct {
		Pulls, Round, Arms int
		Delta              float64
	},
	) got {
		return got{"beta": must(LUCBRadius(in.Pulls, in.Round, in.Arms, Options{Alpha: in.Delta}))(t)}
	})
	dispatchers["prob_beta_greater"] = ownInput(func(t *testing.T, in struct{ A1, B1, A2, B2 float64 }) got {
		return got{"p": must(ProbGreater(Beta{in.A1, in.B1}, Beta{in.A2, in.B2}))(t)}
	})
	dispatchers["sequential_halving_schedule"] = ownInput(func(t *testing.T, in struct{ Arms, Budget int }) got {
		plan := must(Halving(in.Arms, in.Budget))(t)
		calls, left := 0, in.Arms
		for _, r := range plan {
			calls += r.Calls()
			left = (r.Candidates + 1) / 2
		}
		return got{"rounds": scheduleVector(plan), "final": left, "pulls": calls}
	})
	dispatchers["successive_rejects_schedule"] = ownInput(func(t *testing.T, in struct{ Arms, Budget int }) got {
		plan := must(SuccessiveRejects(in.Arms, in.Budget))(t)
		return got{"logbar": rejectsLog(in.Arms), "n_k": plan.Rows, "pulls": plan.Calls}
	})
	dispatchers["hyperband_brackets"] = ownInput(func(t *testing.T, in struct{ R, Eta int }) got {
		var brackets [][][]int
		for _, b := range must(Hyperband(in.R, in.Eta))(t) {
			brackets = append(brackets, scheduleVector(b))
		}
		return got{"brackets": brackets}
	})
	dispatchers["pass_at_k"] = ownInput(func(t *testing.T, in struct{ Answers, Right, K int }) got {
		p := must(PassK(in.Answers, in.Right, in.K))(t)
		return got{"pass_at_k": p.Any, "pass_hat_k": p.All}
	})

	dispatchers["krippendorff_alpha"] = ownInput(func(t *testing.T, in struct {
		Units [][]*float64
		Level Level
	},
	) got {
		units := make([][]float64, len(in.Units))
		for u, ratings := range in.Units {
			for _, x := range ratings {
				if x != nil {
					units[u] = append(units[u], *x)
				}
			}
		}
		a := must(Krippendorff(units, in.Level))(t)
		return got{"alpha": a.Alpha, "n_pairable": a.Ratings, "Do": a.Observed, "De": a.Expected}
	})
	dispatchers["cohen_kappa_quadratic"] = func(t *testing.T, in vectorInput) got {
		a := must(AgreeOrdered(in.Table, Options{}))(t)
		return got{"pa": a.Observed, "pe": a.Chance, "kappa": a.Kappa.Value, "se": a.Kappa.SE}
	}
	dispatchers["corp_reliability"] = ownInput(func(t *testing.T, in struct{ P, Y []float64 }) got {
		r := must(Calibrate(in.P, in.Y))(t)
		return got{"brier": r.Brier, "mcb": r.Miscalibration, "dsc": r.Discrimination, "unc": r.Uncertainty, "calibrated": r.Calibrated}
	})
	dispatchers["ece_equal_width"] = ownInput(func(t *testing.T, in struct {
		P, Y []float64
		Bins int
	},
	) got {
		return got{"ece": must(CalibrationError(in.P, in.Y, in.Bins))(t)}
	})
	dispatchers["judge_length_bias_logit"] = ownInput(func(t *testing.T, in struct {
		Difference []float64 `json:"length_difference_sd"`
		Preferred  []float64 `json:"judge_prefers_candidate"`
	},
	) got {
		b := must(PreferLonger(in.Difference, in.Preferred, Options{}))(t)
		return got{
			"intercept": b.Intercept.Value, "se_intercept": b.Intercept.SE, "slope": b.Slope.Value, "se_slope": b.Slope.SE,
			"z_slope": b.Z, "p_slope": b.P, "win_rate_at_equal_length": b.AtEqualLength.Value,
		}
	})
	dispatchers["judge_rate_corrected"] = ownInput(func(t *testing.T, in struct {
		Rate        float64 `json:"judge_rate"`
		Specificity float64
		Sensitivity float64
		N           int
		Wrong       int `json:"m_negative"`
		Right       int `json:"m_positive"`
		Confidence  float64
	},
	) got {
		count := func(rate float64, of int) int { return int(math.Round(rate * float64(of))) }
		check := JudgeCheck{
			Right: in.Right, Accepted: count(in.Sensitivity, in.Right),
			Wrong: in.Wrong, Rejected: count(in.Specificity, in.Wrong),
		}
		o := must(confident(in.Confidence).withDefaults())(t)
		s := must(CorrectRate(count(in.Rate, in.N), in.N, check, o))(t)
		center, _, _ := check.corrected(in.Rate, float64(in.N), o.zAlpha())
		return got{"est": s.Value, "center": center, "se": s.SE, "lo": s.Low, "hi": s.High}
	})
	dispatchers["ppi_mean"] = ppiVector(PPI, func(predicted) float64 { return 1 })
	dispatchers["ppi_plus_plus_mean"] = ppiVector(PPIPlusPlus, func(p predicted) float64 { return min(1, max(0, p.lambda())) })
}
