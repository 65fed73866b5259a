package stats

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A vector is one case of statistics.json.
type vector struct {
	Name      string
	Method    string
	Input     json.RawMessage // read by method: others use the same names for other things
	Expect    map[string]any
	Tolerance float64
}

// vectorInput has the inputs of all methods; each reads its own.
type vectorInput struct {
	raw json.RawMessage // for methods that read it themselves, by ownInput

	P, DF, Z       float64
	Successes, N   int
	Scores, Values []float64
	Before, After  []float64
	Candidate      []float64
	Baseline       []float64
	Differences    []float64
	Confidence     float64

	BothRight     int `json:"both_right"`
	OnlyCandidate int `json:"only_candidate"`
	OnlyBaseline  int `json:"only_baseline"`
	BothWrong     int `json:"both_wrong"`

	Exceedances, Permutations int

	Omega2            float64
	Sigma2A           float64 `json:"sigma2_a"`
	Sigma2B           float64 `json:"sigma2_b"`
	KA                int     `json:"k_a"`
	KB                int     `json:"k_b"`
	Delta, Difference float64
	DiscordantRate    float64 `json:"discordant_rate"`
	Alpha, Power      float64

	Table      [][]int
	FlipsFirst int `json:"order_flips_to_first"`
	FlipsOther int `json:"order_flips_to_second"`
}

func (in vectorInput) table() table {
	return table{in.OnlyCandidate, in.OnlyBaseline, in.BothRight + in.OnlyCandidate + in.OnlyBaseline + in.BothWrong}
}

func (in vectorInput) z() float64 { return normalQuantile((1 + in.Confidence) / 2) }

func (in vectorInput) noise() Noise {
	return Noise{Rows: in.Omega2, Baseline: in.Sigma2A, Candidate: in.Sigma2B, BaselineAnswers: in.KA, CandidateAnswers: in.KB}
}

func (in vectorInput) options(t *testing.T) Options {
	o, err := Options{Alpha: in.Alpha, Power: in.Power}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// got holds what a method produced: float64, int, string, Opt, or slices of them.
type got map[string]any

// dispatchers run the vectors of each implemented method.
var dispatchers = map[string]func(t *testing.T, in vectorInput) got{
	"normal_quantile":    func(_ *testing.T, in vectorInput) got { return got{"q": normalQuantile(in.P)} },
	"student_t_quantile": func(_ *testing.T, in vectorInput) got { return got{"q": studentQuantile(in.P, in.DF)} },
	"contract_t":         func(_ *testing.T, in vectorInput) got { return got{"t": contractT(int(in.DF))} },
	"range_contract": func(t *testing.T, in vectorInput) got {
		r, err := Range(in.Scores)
		if err != nil {
			t.Fatal(err)
		}
		return got{"method": strings.TrimPrefix(r.Method, "student-"), "mean": r.Mean, "lo": r.Low, "hi": r.High}
	},
	"wilson_contract": func(t *testing.T, in vectorInput) got {
		r, err := Range(rightOf(in.Successes, in.N))
		if err != nil {
			t.Fatal(err)
		}
		center, _ := wilsonParts(in.Successes, in.N, contractZ)
		return got{"p": r.Mean, "lo": r.Low, "hi": r.High, "center": center}
	},
	"wilson": func(_ *testing.T, in vectorInput) got {
		low, high := wilson(in.Successes, in.N, in.Z)
		center, _ := wilsonParts(in.Successes, in.N, in.Z)
		return got{"p": float64(in.Successes) / float64(in.N), "lo": low, "hi": high, "center": center}
	},
	"student_t_mean": func(t *testing.T, in vectorInput) got {
		e, err := Single(in.Values, Options{Alpha: 1 - in.Confidence})
		if err != nil {
			t.Fatal(err)
		}
		m := meanOf(in.Values)
		return got{"mean": e.Mean, "lo": e.Low, "hi": e.High, "df": e.DF, "sd": m.sd, "se": m.se, "tcrit": studentQuantile((1+in.Confidence)/2, m.df)}
	},
	"zero_events_upper": func(t *testing.T, in vectorInput) got {
		u, err := ZeroEventsUpper(in.N, Options{Alpha: 1 - in.Confidence})
		if err != nil {
			t.Fatal(err)
		}
		return got{"upper_one_sided": u}
	},
	"compare_contract": func(t *testing.T, in vectorInput) got {
		c, err := Compare(in.Before, in.After)
		if err != nil {
			t.Fatal(err)
		}
		return got{"diff": c.Diff, "better": c.Better, "worse": c.Worse, "same": c.Same, "n": c.N, "lo": c.Low, "hi": c.High}
	},
	"paired_t": func(_ *testing.T, in vectorInput) got {
		d := differences(in.Baseline, in.Candidate)
		m := meanOf(d)
		low, high := m.interval(in.Confidence)
		stat, p := m.test()
		better, worse, same := signs(d)
		return got{
			"mean": m.mean, "sd": m.sd, "se": m.se, "df": m.df, "tcrit": studentQuantile((1+in.Confidence)/2, m.df),
			"lo": low, "hi": high, "t": stat, "p": p, "better": better, "worse": worse, "same": same,
		}
	},
	"bonett_price": func(_ *testing.T, in vectorInput) got {
		low, high := in.table().bonettPrice(in.z())
		center, se := in.table().bonettPriceParts()
		return got{"center": center, "se": se, "lo": low, "hi": high}
	},
	"tango_score": func(t *testing.T, in vectorInput) got {
		low, high, ok := in.table().tango(in.z())
		if !ok {
			t.Error("no root found")
		}
		return got{"diff": in.table().diff(), "lo": low, "hi": high}
	},
	"mcnemar": func(_ *testing.T, in vectorInput) got {
		p := in.table().mcnemar()
		return got{"exact": p.exact, "midp": p.midP, "asym": p.asymptotic, "chi2": p.chi2}
	},
	"paired_sign_flip_exact": func(t *testing.T, in vectorInput) got {
		method, p := signFlip(in.Differences, 0)
		if method != "sign-flip" {
			t.Errorf("method %q, want all patterns", method)
		}
		twoSided, greater := signFlipAll(in.Differences)
		if twoSided != p {
			t.Errorf("p is %v without the zeros and %v with them", p, twoSided)
		}
		return got{"p_two_sided": p, "p_greater": greater}
	},
	"monte_carlo_p_value": func(_ *testing.T, in vectorInput) got {
		return got{"p": monteCarloP(in.Exceedances, in.Permutations)}
	},
	"paired_sample_size": func(t *testing.T, in vectorInput) got {
		o := in.options(t)
		rows, err := RowsForDiff(in.noise().Variance(), in.Delta, o)
		if err != nil {
			t.Fatal(err)
		}
		return got{"n": rowsForDiff(in.noise().Variance(), in.Delta, o), "n_rows": rows}
	},
	"paired_mde": func(t *testing.T, in vectorInput) got {
		d, err := DetectableDiff(in.noise().Variance(), in.N, in.options(t))
		if err != nil {
			t.Fatal(err)
		}
		return got{"mde": d}
	},
	"mcnemar_sample_size": func(t *testing.T, in vectorInput) got {
		o := in.options(t)
		rows, err := RowsForBinary(in.DiscordantRate, in.Difference, o)
		if err != nil {
			t.Fatal(err)
		}
		return got{"n": rowsForBinary(in.DiscordantRate, in.Difference, o), "n_rows": rows}
	},
	"cohen_kappa": func(t *testing.T, in vectorInput) got {
		a, r := in.agreement(t)
		chance := 0.0
		for k := range r.row {
			chance += r.row[k] * r.col[k]
		}
		return got{"pa": a.Observed.Value, "pe": chance, "kappa": a.Kappa.Value, "se": a.Kappa.SE}
	},
	"gwet_ac1": func(t *testing.T, in vectorInput) got {
		a, r := in.agreement(t)
		chance := 0.0
		for k := range r.row {
			share := (r.row[k] + r.col[k]) / 2
			chance += share * (1 - share) / float64(len(r.row)-1)
		}
		return got{"pa": a.Observed.Value, "pe": chance, "ac1": a.AC1.Value, "se": a.AC1.SE}
	},
	"judge_position_bias": func(t *testing.T, in vectorInput) got {
		b, err := Orders{First: in.FlipsFirst, Second: in.FlipsOther}.Bias(Options{Alpha: math.Erfc(contractZ / math.Sqrt2)}) // its vectors have the contract's z
		if err != nil {
			t.Fatal(err)
		}
		return got{"p": b.P, "share_first": b.ToFirst.Value, "lo": b.ToFirst.Low, "hi": b.ToFirst.High}
	},
}

func (in vectorInput) agreement(t *testing.T) (Agreement, *ratings) {
	a, err := Agree(in.Table, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRatings(in.Table)
	if err != nil {
		t.Fatal(err)
	}
	return a, r
}

// notProduced are fields that vectors give for comparison only.
var notProduced = map[string]bool{
	"exact_t":       true, // beside contract_t
	"rule_of_three": true, // beside zero_events_upper
	"enumerations":  true, // counts patterns of zeros too, which are skipped here
}

func (v vector) run(t *testing.T) {
	var in vectorInput
	if err := json.Unmarshal(v.Input, &in); err != nil {
		t.Fatal(err)
	}
	out := dispatchers[v.Method](t, in)
	for field, want := range v.Expect {
		have, ok := out[field]
		if !ok {
			if !notProduced[field] {
				t.Errorf("%s is not produced", field)
			}
			continue
		}
		if have = plain(have); !matches(have, want, v.Tolerance) {
			t.Errorf("%s is %v, want %v", field, have, want)
		}
	}
}

func matches(have, want any, tolerance float64) bool {
	if list, ok := want.([]any); ok {
		haves, ok := have.([]any)
		return ok && slices.EqualFunc(haves, list, func(h, w any) bool { return matches(h, w, tolerance) })
	}
	h, okH := have.(float64)
	w, okW := want.(float64)
	if okH && okW {
		return math.Abs(h-w) <= tolerance*max(1, math.Abs(w))
	}
	return have == want
}

func readVectors(t *testing.T, path string) []vector {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatalf("reading %s: %v", path, err)
	}
	return vectors
}

func TestVectors(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range readVectors(t, "testdata/statistics.json") {
		t.Run(v.Name, func(t *testing.T) {
			if dispatchers[v.Method] == nil {
				t.Fatalf("method %s has no dispatcher", v.Method)
			}
			seen[v.Method] = true
			v.run(t)
		})
	}
	for method := range dispatchers {
		if !seen[method] {
			t.Errorf("method %s has a dispatcher and no vector", method)
		}
	}
}

// TestSharedVectors runs the project's own file, where it is at hand: a vector
// added there for a method that exists here must pass, copied or not.
func TestSharedVectors(t *testing.T) {
	path := filepath.Join("..", "..", "..", "shared", "cases", "statistics.json")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("the full data set of vectors (%s) is not here; testdata has those of what is implemented", path)
	}
	missing := map[string]int{}
	ran := 0
	for _, v := range readVectors(t, path) {
		if dispatchers[v.Method] == nil {
			missing[v.Method]++
			continue
		}
		ran++
		t.Run(v.Name, v.run)
	}
	t.Logf("%d vectors of %d methods ran", ran, len(dispatchers))
	for _, method := range slices.Sorted(maps.Keys(missing)) {
		t.Logf("not implemented yet: %s (%d vectors)", method, missing[method])
	}
}

// rightOf returns n scores of which the first k are 1.
func rightOf(k, n int) []float64 {
	scores := make([]float64, n)
	for i := range k {
		scores[i] = 1
	}
	return scores
}
