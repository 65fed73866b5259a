package stats

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
)

// UnmarshalJSON keeps the text, and lets be what has another shape than here:
// some methods use the same names for other things, and read them with
// ownInput.
func (in *vectorInput) UnmarshalJSON(text []byte) error {
	type fields vectorInput
	var mistyped *json.UnmarshalTypeError
	if err := json.Unmarshal(text, (*fields)(in)); err != nil && !errors.As(err, &mistyped) {
		return err
	}
	in.raw = append(json.RawMessage(nil), text...)
	return nil
}

// ownInput makes a dispatcher of a method that has inputs of its own.
func ownInput[T any](run func(t *testing.T, in T) got) func(*testing.T, vectorInput) got {
	return func(t *testing.T, in vectorInput) got {
		var own T
		if err := json.Unmarshal(in.raw, &own); err != nil {
			t.Fatal(err)
		}
		return run(t, own)
	}
}

// plain turns what a method produced into what a vector's JSON has.
func plain(have any) any {
	switch v := have.(type) {
	case Opt:
		if value, present := v.Get(); present {
			return value
		}
		return nil
	case int:
		return float64(v)
	}
	v := reflect.ValueOf(have)
	if v.Kind() != reflect.Slice {
		return have
	}
	list := make([]any, v.Len())
	for i := range list {
		list[i] = plain(v.Index(i).Interface())
	}
	return list
}

// pairedInput is a table of two candidates' 0/1 scores.
type pairedInput struct {
	PairedCounts
	Confidence float64
}

// rowsInput has rows, with clusters or without.
type rowsInput struct {
	Values, Differences []float64
	Clusters            []string
	Confidence, Null    float64
}

// samplesInput has several candidates on the same rows.
type samplesInput struct {
	Differences [][]float64
	Scores      [][]float64 `json:"scores_by_candidate"`
	Confidence  float64
}

func confident(confidence float64) Options { return Options{Alpha: 1 - confidence} }

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// adjusts is the dispatcher of a way to adjust p-values.
func adjusts(adjust func([]float64) ([]float64, error)) func(*testing.T, vectorInput) got {
	return ownInput(func(t *testing.T, in struct{ P []float64 }) got {
		return got{"adjusted": must(adjust(in.P))(t)}
	})
}

// ofRate is the dispatcher of a range of a rate.
func ofRate(find func(right, rows int, o Options) (Statistic, error)) func(*testing.T, vectorInput) got {
	return func(t *testing.T, in vectorInput) got {
		s := must(find(in.Successes, in.N, confident(in.Confidence)))(t)
		return got{"lo": s.Low, "hi": s.High}
	}
}

func (b bca) got() got {
	return got{
		"p0": b.below, "z0": b.bias, "a": b.acceleration, "alpha1": b.pLow, "alpha2": b.pHigh,
		"lo": b.low, "hi": b.high,
	}
}

// bcaMeanVector compares the steps with what BCaMean says as well.
func bcaMeanVector(t *testing.T, in rowsInput) got {
	o := must(confident(in.Confidence).withDefaults())(t)
	g := must(group(in.Clusters, len(in.Values)))(t)
	s := must(BCaMean(in.Values, in.Clusters, o))(t)
	b, ok := g.bcaMean(in.Values, s.Value.v, o)
	if !ok || s.Method != "bca" {
		t.Errorf("method is %q, want all resamples", s.Method)
	}
	if s.Low != some(b.low) || s.High != some(b.high) {
		t.Errorf("the steps give [%v, %v] and BCaMean [%v, %v]", b.low, b.high, s.Low, s.High)
	}
	out := b.got()
	out["theta"] = s.Value
	resamples := 0
	eachResample(g.count(), 0, func([]float64) { resamples++ })
	out["resamples"] = resamples
	return out
}

func init() {
	for _, field := range []string{
		"se_naive", "se_miller", "lo_cr1", "hi_cr1", // beside CR2
		"single",     // single-step p beside step-down
		"se_fpc",     // finite population correction, not in the range
		"se_poisson", // the other design's standard error
	} {
		notProduced[field] = true
	}

	dispatchers["clopper_pearson"] = ofRate(ClopperPearson)
	dispatchers["jeffreys"] = ofRate(Jeffreys)
	dispatchers["agresti_min"] = ownInput(func(t *testing.T, in pairedInput) got {
		s := must(in.AgrestiMin(confident(in.Confidence)))(t)
		center, se := in.agrestiMin()
		return got{"center": center, "se": se, "lo": s.Low, "hi": s.High}
	})
	dispatchers["newcombe_method10"] = ownInput(func(t *testing.T, in pairedInput) got {
		s := must(in.Newcombe(confident(in.Confidence)))(t)
		return got{"diff": s.Value, "phi": in.phi(float64(in.rows()) / 2), "lo": s.Low, "hi": s.High}
	})
	dispatchers["newcombe_method8_uncorrected_phi"] = ownInput(func(t *testing.T, in pairedInput) got {
		s := must(in.NewcombeUncorrected(confident(in.Confidence)))(t)
		return got{"diff": s.Value, "phi": in.phi(0), "lo": s.Low, "hi": s.High}
	})

	dispatchers["cluster_robust_mean"] = ownInput(func(t *testing.T, in rowsInput) got {
		e := must(ClusterMean(in.Values, in.Clusters, confident(in.Confidence)))(t)
		m := must(group(in.Clusters, len(in.Values)))(t).mean(in.Values)
		count := float64(m.count())
		cr := func(power, factor float64) float64 { return math.Sqrt(m.sandwich(power) * factor) }
		return got{
			"mean": e.Value, "n": e.Rows, "G": e.Units, "se_cr2": e.SE, "df_cr2": e.DF, "lo_cr2": e.Low, "hi_cr2": e.High,
			"se_cr0": cr(0, 1), "se_cr1": cr(0, count/(count-1)), "se_cr3": cr(2, 1), "se_jackknife": cr(2, (count-1)/count),
		}
	})
	dispatchers["cluster_sign_flip_exact"] = ownInput(func(t *testing.T, in rowsInput) got {
		zeros := make([]float64, len(in.Differences))
		p := must(PairedClusters(zeros, in.Differences, in.Clusters, Options{}))(t)
		if p.PMethod != "cluster-sign-flip" {
			t.Errorf("method %q, want all patterns", p.PMethod)
		}
		g := must(group(in.Clusters, len(in.Differences)))(t)
		_, greater := signFlipAll(g.sums(in.Differences))
		return got{"p_two_sided": p.P, "p_greater": greater}
	})
	dispatchers["wild_cluster_restricted_exact"] = ownInput(func(t *testing.T, in rowsInput) got {
		w := must(WildCluster(in.Values, in.Clusters, in.Null, Options{}))(t)
		return got{"t": w.T, "p": w.P, "smallest_possible_p": w.Smallest}
	})
	dispatchers["icc_anova"] = ownInput(func(t *testing.T, in rowsInput) got {
		l := must(ICC(in.Values, in.Clusters))(t)
		return got{"icc": l.ICC, "n0": l.Size, "msb": l.Between, "msw": l.Within}
	})
	dispatchers["design_effect"] = ownInput(func(t *testing.T, in struct {
		Size   float64 `json:"mean_cluster_size"`
		ICC, N float64
	},
	) got {
		effect := must(DesignEffect(in.Size, in.ICC))(t)
		return got{"deff": effect, "n_eff": in.N / effect}
	})
	dispatchers["variance_components"] = ownInput(func(t *testing.T, in struct{ Answers [][]float64 }) got {
		c := must(VarianceComponents(in.Answers))(t)
		return got{
			"mean": c.Mean, "var_of_row_means": c.RowMeans, "within": c.Within, "between": c.Between,
			"se": c.SE, "se_if_k1": c.SEWith(1), "se_if_k_inf": c.Floor,
		}
	})

	dispatchers["missing_bounds"] = ownInput(func(t *testing.T, in struct {
		Observed []float64
		Missing  int
		Scale
	},
	) got {
		rows := make([]Outcome, in.Missing)
		for i := range rows {
			rows[i].Missing = true
		}
		for _, x := range in.Observed {
			rows = append(rows, Outcome{Score: x})
		}
		b := must(MissingBounds(rows, in.Scale, Options{}))(t)
		return got{"observed_mean": b.Observed, "failures_as_zero": b.AsZero, "lo": b.Low, "hi": b.High}
	})
	dispatchers["missing_bounds_paired"] = ownInput(func(t *testing.T, in struct {
		Pairs [][2]*float64
		Scale
	},
	) got {
		outcome := func(x *float64) Outcome {
			if x == nil {
				return Outcome{Missing: true}
			}
			return Outcome{Score: *x}
		}
		var base, cand []Outcome
		for _, p := range in.Pairs {
			cand, base = append(cand, outcome(p[0])), append(base, outcome(p[1]))
		}
		b := must(MissingBoundsPaired(base, cand, in.Scale, Options{}))(t)
		return got{
			"lo": b.Low, "hi": b.High, "failures_as_zero": b.AsZero,
			"complete_rows": b.Rows - b.Missing, "complete_case": b.Observed,
		}
	})
	dispatchers["imbens_manski_ci"] = ownInput(func(_ *testing.T, in struct {
		Low        float64 `json:"lo"`
		High       float64 `json:"hi"`
		SELow      float64 `json:"se_lo"`
		SEHigh     float64 `json:"se_hi"`
		Confidence float64
	},
	) got {
		c, low, high := imbensManski(in.Low, in.High, in.SELow, in.SEHigh, in.Confidence)
		return got{"C": c, "lo": low, "hi": high}
	})

	dispatchers["holm"] = adjusts(Holm)
	dispatchers["sidak_single_step"] = adjusts(Sidak)
	dispatchers["benjamini_hochberg"] = adjusts(BenjaminiHochberg)
	dispatchers["benjamini_yekutieli"] = adjusts(BenjaminiYekutieli)

	dispatchers["max_t_interval_given_replicates"] = ownInput(func(_ *testing.T, in struct {
		Estimates, SE []float64
		Replicates    [][]float64
		Confidence    float64
	},
	) got {
		j := joint{se: in.SE}
		var farthest []float64
		for _, replicate := range in.Replicates {
			farthest = append(farthest, j.farthest(func(c int) float64 { return replicate[c] - in.Estimates[c] }))
		}
		for _, x := range in.Estimates {
			j.means = append(j.means, clusterMean{mean: x})
		}
		return simultaneousVector(j, quantile6(slices.Sorted(slices.Values(farthest)), in.Confidence))
	})
	dispatchers["max_t_interval_signflip_exact"] = ownInput(func(t *testing.T, in samplesInput) got {
		g, samples, err := manySamples("testing", in.Differences, nil)
		if err != nil {
			t.Fatal(err)
		}
		j := newJoint(g, samples)
		return simultaneousVector(j, j.signFlipCritical(1-in.Confidence))
	})
	dispatchers["westfall_young_maxt_signflip_exact"] = ownInput(func(t *testing.T, in samplesInput) got {
		var stat, raw, step []Opt
		for _, r := range must(WestfallYoung(in.Differences, nil, Options{}))(t) {
			stat, raw, step = append(stat, r.T), append(raw, r.P), append(step, r.Adjusted)
		}
		return got{"t": stat, "raw": raw, "stepdown": step}
	})

	dispatchers["winner_bootstrap_optimism_enumerated"] = ownInput(func(t *testing.T, in samplesInput) got {
		w := must(WinnerOptimism(in.Scores, nil, Options{}))(t)
		if w.Method != "optimism" {
			t.Errorf("method %q, want all resamples", w.Method)
		}
		return got{"winner": w.Winner, "naive": w.Mean, "optimism": w.Optimism, "corrected": w.Corrected, "win_share": w.WinShare}
	})
	dispatchers["winner_conditional"] = ownInput(func(t *testing.T, in struct {
		Estimates  []float64
		Covariance [][]float64
		Confidence float64
	},
	) got {
		c := must(WinnerConditional(in.Estimates, in.Covariance, confident(in.Confidence)))(t)
		var below any = c.Below
		if c.Below.IsZero() {
			below = "inf"
		}
		return got{"winner": c.Winner, "L": c.Above, "U": below, "median": c.Value, "lo": c.Low, "hi": c.High}
	})

	dispatchers["slice_shrink_beta_binomial"] = ownInput(func(t *testing.T, in struct {
		Successes, N []int
		Mean         float64 `json:"prior_mean"`
		Rows         float64 `json:"prior_rows"`
	},
	) got {
		var mean, low, high []Opt
		for _, s := range must(ShrinkRates(in.Successes, in.N, Prior{Mean: in.Mean, Rows: in.Rows}, Options{}))(t) {
			mean, low, high = append(mean, s.Value), append(low, s.Low), append(high, s.High)
		}
		return got{"mean": mean, "lo": low, "hi": high}
	})
	dispatchers["slice_shrink_dersimonian_laird"] = ownInput(func(t *testing.T, in struct{ Estimate, SE []float64 }) got {
		s := must(ShrinkSlices(in.Estimate, in.SE))(t)
		var values, se []Opt
		for _, slice := range s.Slices {
			values, se = append(values, slice.Value), append(se, slice.SE)
		}
		return got{"Q": s.Different, "tau2": s.Variance, "mu": s.Common, "weight": s.Weights, "est": values, "se": se}
	})
	dispatchers["james_stein_to_mean"] = ownInput(func(t *testing.T, in struct {
		Estimates []float64
		SE        float64
	},
	) got {
		shrunk, factor, err := JamesStein(in.Estimates, in.SE)
		if err != nil {
			t.Fatal(err)
		}
		return got{"mean": meanOf(in.Estimates).mean, "factor": factor, "est": shrunk}
	})
	dispatchers["tweedie_given_marginal"] = ownInput(func(t *testing.T, in struct {
		Z, Sigma2 float64
		Prior     [][3]float64 `json:"prior_mixture"`
	},
	) got {
		var prior []Normal
		for _, p := range in.Prior {
			prior = append(prior, Normal{p[0], p[1], p[2]})
		}
		mean := must(Tweedie(in.Z, in.Sigma2, prior))(t)
		return got{"score": marginalScore(in.Z, in.Sigma2, prior), "posterior_mean": mean}
	})

	dispatchers["median_order_statistic_ci"] = func(_ *testing.T, in vectorInput) got {
		rank, coverage := medianRank(in.N, 1-in.Confidence)
		if rank == 0 {
			return got{"lo_rank": Opt{}, "hi_rank": Opt{}, "coverage": Opt{}}
		}
		return got{"lo_rank": rank, "hi_rank": in.N + 1 - rank, "coverage": coverage}
	}
	dispatchers["quantile_type6"] = func(t *testing.T, in vectorInput) got {
		return got{"q": must(Quantile(in.Values, in.P))(t)}
	}
	dispatchers["bca_given_replicates"] = ownInput(func(t *testing.T, in struct {
		Theta                 float64
		Replicates, Jackknife []float64
		Confidence            float64
	},
	) got {
		o := must(confident(in.Confidence).withDefaults())(t)
		s := must(BCa(in.Theta, in.Replicates, in.Jackknife, o))(t)
		b, _ := newBCa(in.Theta, in.Replicates, in.Jackknife, o.zAlpha())
		if s.Low != some(b.low) || s.High != some(b.high) {
			t.Errorf("the steps give [%v, %v] and BCa [%v, %v]", b.low, b.high, s.Low, s.High)
		}
		return b.got()
	})
	dispatchers["bca_mean_all_resamples"] = ownInput(bcaMeanVector)
	dispatchers["bca_cluster_mean_all_resamples"] = ownInput(bcaMeanVector)

	dispatchers["stratified_mean"] = ownInput(func(t *testing.T, in struct {
		Strata []struct {
			Population int
			Values     []float64
		}
		Confidence float64
	},
	) got {
		var strata []Stratum
		for _, s := range in.Strata {
			strata = append(strata, Stratum{s.Population, s.Values})
		}
		s := must(StratifiedMean(strata, confident(in.Confidence)))(t)
		return got{"est": s.Value, "se": s.SE, "df": s.DF, "lo": s.Low, "hi": s.High}
	})
	dispatchers["ipw_mean"] = ownInput(func(t *testing.T, in struct {
		Y       []float64
		Chances []float64 `json:"inclusion_probability"`
	},
	) got {
		e := must(WeightedMean(in.Y, in.Chances, Options{}))(t)
		return got{"hajek": e.Value, "se_wr": e.SE, "n_eff": e.Effective}
	})
	dispatchers["cost_per_point"] = ownInput(func(t *testing.T, in struct{ Cost, Score []float64 }) got {
		s := must(CostPerPoint(in.Cost, in.Score))(t)
		return got{"ratio": s.Value, "se": s.SE}
	})
	dispatchers["pareto_front"] = ownInput(func(t *testing.T, in struct{ Cost, Quality []float64 }) got {
		return got{"indices": must(ParetoFront(in.Cost, in.Quality))(t)}
	})
}

func simultaneousVector(j joint, critical float64) got {
	var mean, low, high []float64
	for c, m := range j.means {
		mean = append(mean, m.mean)
		low, high = append(low, m.mean-critical*j.se[c]), append(high, m.mean+critical*j.se[c])
	}
	return got{"crit": critical, "mean": mean, "se": j.se, "lo": low, "hi": high}
}
