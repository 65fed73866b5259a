package stats

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

// alternating makes n differences of ±step, half of them each.
func alternating(n int, step float64) (base, cand []float64) {
	base, cand = make([]float64, n), make([]float64, n)
	for i := range n {
		base[i] = 0.5
		cand[i] = 0.5 + step*float64(1-2*(i%2))
	}
	return base, cand
}

// shifted makes n rows over [0, 0.9], all of them with the same gain.
func shifted(n int, gain float64) (base, cand []float64) {
	base, cand = make([]float64, n), make([]float64, n)
	for i := range n {
		base[i] = float64(i%10) / 10
		cand[i] = base[i] + gain
	}
	return base, cand
}

func TestPairedDecisions(t *testing.T) {
	type in struct{ base, cand []float64 }
	rates := func(onlyCand, onlyBase, bothRight, bothWrong int) in {
		b, c := pairs(onlyCand, onlyBase, bothRight, bothWrong)
		return in{b, c}
	}
	scores := func(base, cand []float64) in { return in{base, cand} }
	binary := Options{Binary: true}
	binaryMargin := func(m float64) Options { return Options{Binary: true, Margin: m} }

	tests := []struct {
		name     string
		in       in
		o        Options
		decision Decision
		method   string
		pMethod  string
		rows     int      // needed
		warnings []string // a part of each, in order
	}{
		{"no rows", in{}, binaryMargin(1), Invalid, "none", "none", 0, []string{"no rows"}},
		{"no rows of any kind", in{}, Options{}, Invalid, "none", "none", 0, []string{"no rows"}},
		{
			"one row", scores([]float64{0.2}, []float64{0.9}),
			Options{Margin: 2},
			TooFewRows, "none", "sign-flip", 0,
			[]string{"one row has no range", "1 of 1, and fewer than 6"},
		},
		{
			"one 0/1 row", rates(1, 0, 0, 0), binaryMargin(0.1), TooFewRows, "none", "mcnemar-midp", 0,
			[]string{"one row has no range", "1 of 1, and fewer than 5"},
		},

		// 0/1 rows. Vectors give [.061, .345] and .0074; [-.517, -.026] and .039; [-.027, .390].
		{"better", rates(12, 2, 20, 16), binary, Better, "tango", "mcnemar-midp", 0, nil},
		{"worse", rates(1, 7, 1, 12), binary, Worse, "tango", "mcnemar-midp", 0, nil},
		{
			"undecided, rows for the observed difference", rates(9, 3, 4, 16), binary, TooFewRows, "tango", "mcnemar-midp", 82,
			[]string{"about 82 rows would show a difference of 0.188", "no margin was given"},
		},
		// Two rates alike: ±z²/(n+z²) with z = 1.645 is ±0.0634.
		{"inside the margin", rates(0, 0, 30, 10), binaryMargin(0.064), NoDifference, "tango", "mcnemar-midp", 0, nil},
		{
			"scores that no margin is of", scores(shifted(200, 0)),
			Options{Margin: 0.0134, Unmargined: true},
			TooFewRows, "student-t", "sign-flip", 0,
			[]string{"all 200 differences are equal", "0 of 200, and fewer than 6"},
		},
		{
			"not inside the margin", rates(0, 0, 30, 10), binaryMargin(0.063), TooFewRows, "tango", "mcnemar-midp", 123,
			[]string{"0 of 40, and fewer than 5", "about 123 rows would show a difference of 0.063"},
		},
		{
			"the same without a margin is not equal", rates(0, 0, 30, 10), binary, TooFewRows, "tango", "mcnemar-midp", 0,
			[]string{"0 of 40, and fewer than 5", "no margin was given"},
		},
		{
			"four of four better", rates(4, 0, 30, 10), binary, TooFewRows, "tango", "mcnemar-midp", 84,
			[]string{"4 of 44, and fewer than 5", "disagree", "about 84 rows", "no margin was given"},
		},
		{"five of five better", rates(5, 0, 30, 10), binary, Better, "tango", "mcnemar-midp", 0, nil},
		// 434 rows would show the margin, but there are 500: what is hard to tell is 0.032.
		{
			"enough rows for the margin", rates(58, 42, 200, 200), binaryMargin(0.06), TooFewRows, "tango", "mcnemar-midp", 1531,
			[]string{"about 1531 rows would show a difference of 0.032"},
		},
		// A difference that is real and smaller than the margin is still one.
		{"better within the margin", rates(90, 40, 500, 500), binaryMargin(0.2), Better, "tango", "mcnemar-midp", 0, nil},

		// Scores: sd .1005, se .01005; t(99) is 1.6604 for 90 % and 1.9842 for 95 %.
		{"inside the margin at 90 %", scores(alternating(100, 0.1)), Options{Margin: 0.0168}, NoDifference, "student-t", "sign-flip-sampled", 0, nil},
		{
			"not inside the margin", scores(alternating(100, 0.1)),
			Options{Margin: 0.0166},
			TooFewRows, "student-t", "sign-flip-sampled", 288,
			[]string{"about 288 rows would show a difference of 0.0166"},
		},
		{
			"no difference and no margin", scores(alternating(100, 0.1)),
			Options{},
			TooFewRows, "student-t", "sign-flip-sampled", 0,
			[]string{"no margin was given"},
		},

		// Equal differences have no spread; up to 1-.05^(1/n) of the rows may differ by the 0.9 that scores span.
		{
			"all the same, 200 rows", scores(shifted(200, 0)),
			Options{Margin: 0.0134},
			NoDifference, "student-t", "sign-flip", 0,
			[]string{"all 200 differences are equal"},
		},
		{
			"all the same, 20 rows", scores(shifted(20, 0)),
			Options{Margin: 0.1},
			TooFewRows, "student-t", "sign-flip", 0,
			[]string{"all 20 differences are equal", "0 of 20, and fewer than 6"},
		},
		{
			"all the same score", scores(alternating(200, 0)),
			Options{Margin: 0.1},
			TooFewRows, "student-t", "sign-flip", 0,
			[]string{"all 200 differences are equal", "0 of 200, and fewer than 6"},
		},
		{
			"constant gain, 5 rows", scores(shifted(5, 0.2)),
			Options{},
			TooFewRows, "student-t", "sign-flip", 6,
			[]string{"only 5 rows", "all 5 differences are equal", "5 of 5, and fewer than 6", "disagree", "about 6 rows", "no margin was given"},
		},
		{
			"constant gain, 6 rows", scores(shifted(6, 0.2)),
			Options{},
			Better, "student-t", "sign-flip", 0,
			[]string{"only 6 rows", "all 6 differences are equal"},
		},
		{
			"constant loss, 30 rows", scores(shifted(30, -0.2)),
			Options{},
			Worse, "student-t", "sign-flip-sampled", 0,
			[]string{"all 30 differences are equal"},
		},
		// One large gain among small ones: nine signs speak, the range does not.
		{
			"range and p disagree", scores(make([]float64, 10), []float64{.01, .01, .01, .01, .01, .01, .01, .01, .01, 1}),
			Options{},
			TooFewRows, "student-t", "sign-flip", 65,
			[]string{"only 10 rows", "disagree", "about 65 rows", "no margin was given"},
		},
		{
			"0/1 scores not stated to be", rates(12, 2, 20, 16),
			Options{},
			Better, "student-t", "sign-flip", 0,
			[]string{"state that the metric is binary"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Paired(tt.in.base, tt.in.cand, tt.o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Decision != tt.decision || r.Method != tt.method || r.PMethod != tt.pMethod {
				t.Errorf("%s by %s and %s, want %s by %s and %s", r.Decision, r.Method, r.PMethod, tt.decision, tt.method, tt.pMethod)
			}
			if r.RowsNeeded != tt.rows {
				t.Errorf("%d rows needed, want %d", r.RowsNeeded, tt.rows)
			}
			if r.Units != len(tt.in.base) || r.Better+r.Worse+r.Same != r.Units {
				t.Errorf("%d rows of which %d better, %d worse, %d same, want %d", r.Units, r.Better, r.Worse, r.Same, len(tt.in.base))
			}
			plan := fmt.Sprintf("about %d rows would show a difference of %s", r.RowsNeeded, number(r.RowsFor))
			var warnings []string
			for _, want := range tt.warnings {
				if !strings.HasPrefix(want, "about ") {
					warnings = append(warnings, want)
				} else if !strings.Contains(plan, want) {
					t.Errorf("%s, want %s", plan, want)
				}
			}
			if len(r.Warnings) != len(warnings) {
				t.Fatalf("warnings %q, want %q", r.Warnings, warnings)
			}
			for i, want := range warnings {
				if !strings.Contains(r.Warnings[i], want) {
					t.Errorf("warning %q does not say %q", r.Warnings[i], want)
				}
			}
			if r.Decision == Better || r.Decision == Worse {
				// The mirror image comes to the opposite.
				opposite := map[Decision]Decision{Better: Worse, Worse: Better}[r.Decision]
				if m, err := Paired(tt.in.cand, tt.in.base, tt.o); err != nil || m.Decision != opposite {
					t.Errorf("the other way round it is %s (%v), want %s", m.Decision, err, opposite)
				}
			}
		})
	}
}

func TestPairedNumbers(t *testing.T) {
	base, cand := pairs(9, 3, 4, 16)
	r, err := Paired(base, cand, Options{Binary: true})
	if err != nil {
		t.Fatal(err)
	}
	// Tango 1998; McNemar mid-p of 3 in 12 is 2·299/4096 - 220/4096.
	check(t, "diff", r.Diff, 0.1875, 1e-15)
	check(t, "low", r.Low, -0.027090464503980435, 1e-9)
	check(t, "high", r.High, 0.3896974871387834, 1e-9)
	check(t, "p", r.P, 378.0/4096, 1e-15)
	check(t, "df", r.DF, nil, 0)
	check(t, "detectable", r.Detectable, 0.29223668981184936, 1e-9) // Connor 1987, solved apart
	if r.Better != 9 || r.Worse != 3 || r.Same != 20 {
		t.Errorf("%d better, %d worse, %d same, want 9, 3, 20", r.Better, r.Worse, r.Same)
	}

	// Without any disagreement something would still have been seen.
	base, cand = pairs(0, 0, 30, 10)
	if r, err = Paired(base, cand, Options{Binary: true}); err != nil {
		t.Fatal(err)
	}
	check(t, "detectable", r.Detectable, 0.18493135050770038, 1e-9)
	check(t, "p", r.P, 1.0, 0)

	// Four rows could not have shown anything, however they came out.
	base, cand = pairs(0, 0, 4, 0)
	if r, err = Paired(base, cand, Options{Binary: true}); err != nil {
		t.Fatal(err)
	}
	check(t, "detectable", r.Detectable, nil, 0)

	base, cand = alternating(100, 0.1)
	if r, err = Paired(base, cand, Options{}); err != nil {
		t.Fatal(err)
	}
	check(t, "diff", r.Diff, 0.0, 0)
	check(t, "high", r.High, 1.9842169515864174*math.Sqrt(0.01/99), 1e-12)
	check(t, "df", r.DF, 99.0, 0)
	check(t, "detectable", r.Detectable, 0.028156990868747605, 1e-12)
	check(t, "p", r.P, 1.0, 0)

	// Other levels: the range covers 1-Alpha. t(99) at 90 %.
	if r, err = Paired(base, cand, Options{Alpha: 0.1}); err != nil {
		t.Fatal(err)
	}
	check(t, "high", r.High, 1.6603911560169928*math.Sqrt(0.01/99), 1e-9)
}

// An undecided result must never read as "no change".
func TestNoDifferenceNeedsMargin(t *testing.T) {
	for n := range 300 {
		base, cand := pairs(0, 0, n/2, n-n/2)
		for _, o := range []Options{{Binary: true}, {}} {
			r, err := Paired(base, cand, o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Decision == NoDifference {
				t.Fatalf("%d equal rows without a margin come to %s", n, r.Decision)
			}
		}
	}
}

func TestPairedSameBytes(t *testing.T) {
	base, cand := make([]float64, 500), make([]float64, 500)
	for i := range base {
		base[i], cand[i] = float64(i*7%11)/10, float64(i*5%13)/12
	}
	var texts []string
	for range 3 {
		r, err := Paired(base, cand, Options{Seed: 42, Margin: 0.01})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	if texts[0] != texts[1] || texts[0] != texts[2] {
		t.Errorf("the same scores give\n%s\n%s\n%s", texts[0], texts[1], texts[2])
	}
}

func TestPairedLeavesInputAlone(t *testing.T) {
	base, cand := []float64{0.1, 0.2, 0.3}, []float64{0.3, 0.2, 0.1}
	if _, err := Paired(base, cand, Options{}); err != nil {
		t.Fatal(err)
	}
	if base[0] != 0.1 || base[2] != 0.3 || cand[0] != 0.3 || cand[2] != 0.1 {
		t.Errorf("scores became %v and %v", base, cand)
	}
}

func TestSingle(t *testing.T) {
	tests := []struct {
		name          string
		scores        []float64
		o             Options
		method        string
		mean, low, hi any
		df            any
		warnings      []string
	}{
		{"no rows", nil, Options{}, "none", nil, nil, nil, nil, []string{"no rows"}},
		{"one row", []float64{0.3}, Options{}, "none", 0.3, nil, nil, nil, []string{"one row"}},
		{"one right row", []float64{1}, Options{Binary: true}, "none", 1.0, nil, nil, nil, []string{"one row"}},
		{"8 of 10", rightOf(8, 10), Options{Binary: true}, "wilson", 0.8, 0.4901624715366417, 0.9433178485456247, nil, []string{"only 10 rows"}},
		{"3 of 7 at 90 %", rightOf(3, 7), Options{Binary: true, Alpha: 0.1}, "wilson", 3.0 / 7, 0.18644319036395599, 0.7105229089864071, nil, []string{"only 7 rows"}},
		{"30 of 30", rightOf(30, 30), Options{Binary: true}, "wilson", 1.0, 30 / (30 + 3.841458820694124), 1.0, nil, nil},
		{"three scores", []float64{0.5, 0.75, 1}, Options{}, "student-t", 0.75, 0.12896557206241724, 1.3710344279375828, 2.0, []string{"only 3 rows"}},
		{"equal scores", []float64{0.25, 0.25}, Options{}, "student-t", 0.25, 0.25, 0.25, 1.0, []string{"only 2 rows", "all 2 scores are equal"}},
		{"0/1 not stated", rightOf(1, 2), Options{}, "student-t", 0.5, 0.5 - 12.706204736174705/2, 0.5 + 12.706204736174705/2, 1.0, []string{"only 2 rows", "state that the metric is binary"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := Single(tt.scores, tt.o)
			if err != nil {
				t.Fatal(err)
			}
			if e.Method != tt.method || e.Units != len(tt.scores) {
				t.Errorf("%q of %d, want %q of %d", e.Method, e.Units, tt.method, len(tt.scores))
			}
			check(t, "mean", e.Mean, tt.mean, 1e-12)
			check(t, "low", e.Low, tt.low, 1e-9)
			check(t, "high", e.High, tt.hi, 1e-9)
			check(t, "df", e.DF, tt.df, 0)
			if len(e.Warnings) != len(tt.warnings) {
				t.Fatalf("warnings %q, want %q", e.Warnings, tt.warnings)
			}
			for i, want := range tt.warnings {
				if !strings.Contains(e.Warnings[i], want) {
					t.Errorf("warning %q does not say %q", e.Warnings[i], want)
				}
			}
		})
	}
}
