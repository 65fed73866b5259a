package stats

import (
	"math"
	"strconv"
)

// Decision is what a comparison comes to. It is what a gate should read, not p.
type Decision string

// The decisions.
const (
	Better       Decision = "better"        // the range lies above 0, and p < Alpha
	Worse        Decision = "worse"         // the range lies below 0, and p < Alpha
	NoDifference Decision = "no-difference" // equal but for less than Margin
	TooFewRows   Decision = "too-few-rows"  // not decided; not the same as no difference
	Invalid      Decision = "invalid"       // there are no rows
)

// Test is the added layer's view of two candidates on the same rows. Diff is
// the mean of candidate minus baseline, in the units of the score.
type Test struct {
	Method  string `json:"method"` // of the range: "tango", "bonett-price", "student-t", "none"
	Diff    Opt    `json:"diff"`   // absent without rows
	Low     Opt    `json:"low"`    // covers 1-Alpha; absent under two rows
	High    Opt    `json:"high"`
	P       Opt    `json:"p"`        // two-sided; absent without rows
	PMethod string `json:"p_method"` // "mcnemar-midp", "sign-flip", "sign-flip-sampled", "none"
	Units   int    `json:"units"`    // independent units: rows
	DF      Opt    `json:"df,omitzero"`

	// Detectable is the smallest difference that so many rows, varying as
	// these do, show with probability Power. It is what an undecided result
	// has to be read with. Absent if the rows do not tell.
	Detectable Opt `json:"detectable,omitzero"`

	Better int `json:"better"` // rows with a higher score, past 1e-12
	Worse  int `json:"worse"`
	Same   int `json:"same"`

	Decision Decision `json:"decision"`

	// RowsNeeded is set for too-few-rows: about how many rows in all would
	// show a difference of Margin, if one was given, else one like the
	// observed. 0 if that cannot be said.
	RowsNeeded int `json:"rows_needed,omitzero"`
	RowsFor    Opt `json:"rows_for,omitzero"` // the difference that RowsNeeded would show

	Warnings []string `json:"warnings,omitempty"`
}

// Paired compares a candidate with a baseline on the same rows in the same
// order, one score a row, 0 for a row that failed.
//
// If Binary is stated, the range is Tango's (1998) and p McNemar's mid-p
// (Fagerland and others 2013). Otherwise the range is Student's (1908) on the
// differences, and p comes from flipping their signs (Fisher 1935): all
// patterns of up to 20 rows that differ, else 9,999 drawn from Seed.
//
// The decision is better or worse when the range excludes 0 and p < Alpha;
// no-difference when a Margin was given and the range that covers 1-2·Alpha
// lies inside ±Margin (two one-sided tests, Schuirmann 1987); invalid without
// rows; and else too-few-rows. Differences that are all equal have a range
// without width, which shows no equivalence: there, a row that differs by as
// much as scores were seen to differ is allowed for, at the largest rate that
// no such row fits with.
//
// Samples of different length, scores that are not finite or beyond ±1e100,
// Binary stated of other scores, and options without meaning are errors.
func Paired(base, cand []float64, o Options) (Test, error) {
	o, err := o.forPair(base, cand)
	if err != nil {
		return Test{}, err
	}

	n := len(base)
	t := Test{Method: none, PMethod: none, Units: n, Decision: Invalid}
	warnRows(&t.Warnings, n)
	if n == 0 {
		return t, nil
	}
	d := differences(base, cand)
	t.Better, t.Worse, t.Same = signs(d)
	if o.Binary {
		t.decide(t.judgeRates(o), o)
	} else {
		if n > 1 && AllBinary(base, cand) {
			warn(&t.Warnings, "every score is 0 or 1: state that the metric is binary to get a range that does not collapse")
		}
		t.decide(t.judgeScores(d, spread(base, cand), o), o)
	}
	return t, nil
}

// Turned is the test for scores of which less is better: Better and Worse, and
// the decision, change sides. The numbers stay candidate minus baseline.
func (t Test) Turned() Test {
	t.Better, t.Worse = t.Worse, t.Better
	switch t.Decision {
	case Better:
		t.Decision = Worse
	case Worse:
		t.Decision = Better
	}
	return t
}

// A prospect is what a method knows beyond the fields of the Test.
type prospect struct {
	equalLow, equalHigh Opt // the range that must lie inside the margin

	// rows returns about how many rows in all would show a difference, by
	// the method's planning formula.
	rows func(diff float64) float64

	// fewest is the number of rows that must change before p can fall below
	// Alpha.
	fewest int
}

// judgeRates fills in the fields for 0/1 scores, of which Better, Worse and
// Units say everything.
func (t *Test) judgeRates(o Options) prospect {
	tab := table{candidate: t.Better, baseline: t.Worse, rows: t.Units}
	disagree := float64(tab.disagreements()) / float64(tab.rows)
	t.Diff = some(tab.diff())
	t.PMethod, t.P = "mcnemar-midp", some(tab.mcnemar().midP)
	pr := prospect{
		rows:   func(diff float64) float64 { return rowsForBinary(max(disagree, diff), diff, o) },
		fewest: fewestRows(1, o.Alpha),
	}
	if t.Units > 1 {
		method, low, high := tab.interval(o.zAlpha())
		t.Method, t.Low, t.High = method, some(low), some(high)
		if method != "tango" {
			warn(&t.Warnings, "the tango range could not be found: the range is bonett-price's, a little wider")
		}
		_, low, high = tab.interval(normalQuantile(1 - o.Alpha))
		pr.equalLow, pr.equalHigh = some(low), some(high)
	}
	if t.Units >= pr.fewest {
		if diff, ok := detectableBinary(disagree, t.Units, o); ok {
			t.Detectable = some(diff)
		}
	}
	return pr
}

// judgeScores fills in the fields for scores of any kind. span is how far
// apart scores were seen.
func (t *Test) judgeScores(d []float64, span float64, o Options) prospect {
	m := meanOf(d)
	method, p := signFlip(d, o.Seed)
	t.Diff = some(m.mean)
	t.PMethod, t.P = method, some(p)
	pr := prospect{
		rows:   func(diff float64) float64 { return rowsForDiff(m.sd*m.sd, diff, o) },
		fewest: fewestRows(2, o.Alpha),
	}
	if t.Units == 1 {
		return pr
	}
	low, high := m.interval(1 - o.Alpha)
	t.Method, t.Low, t.High, t.DF = "student-t", some(low), some(high), some(m.df)
	if m.sd > 0 {
		low, high = m.interval(1 - 2*o.Alpha)
		pr.equalLow, pr.equalHigh = some(low), some(high)
		t.Detectable = some(detectableDiff(m.sd*m.sd, t.Units, o))
		return pr
	}
	warn(&t.Warnings, "all %d differences are equal: the range has no width and says nothing about other rows; add rows that vary", t.Units)
	if span > 0 {
		unseen := span * zeroEventsUpper(t.Units, o.Alpha)
		pr.equalLow, pr.equalHigh = some(m.mean-unseen), some(m.mean+unseen)
	}
	return pr
}

// decide sets the decision, and what goes with an open one.
func (t *Test) decide(pr prospect, o Options) {
	low, ranged := t.Low.Get()
	high, _ := t.High.Get()
	p, _ := t.P.Get()
	away := ranged && (low > 0 || high < 0)
	switch {
	case away && p < o.Alpha && low > 0:
		t.Decision = Better
	case away && p < o.Alpha:
		t.Decision = Worse
	case inside(pr.equalLow, pr.equalHigh, o.Margin):
		t.Decision = NoDifference
	default:
		t.Decision = TooFewRows
		t.askForRows(pr, o, away != (p < o.Alpha))
	}
}

// inside reports whether a range lies strictly within ±margin. None lies
// within a margin of 0.
func inside(low, high Opt, margin float64) bool {
	l, ok := low.Get()
	h, _ := high.Get()
	return ok && -margin < l && h < margin
}

// askForRows says what would settle an open comparison.
func (t *Test) askForRows(pr prospect, o Options, disagree bool) {
	if changed := t.Better + t.Worse; changed < pr.fewest {
		warn(&t.Warnings, "too few rows changed to tell: %d of %d, and fewer than %d cannot show a difference; add rows", changed, t.Units, pr.fewest)
	}
	if t.Units == 1 {
		return // one row says nothing about how rows vary, so nothing can be planned
	}
	if disagree {
		warn(&t.Warnings, "the range and the p-value (%s) disagree about a difference of 0: take it as not decided, and add rows", number(t.P))
	}
	// Planning for the margin may give no more rows than there are: the run
	// was large enough, but the truth seems to lie near the margin or near
	// half of it. Then the observed difference is what is hard to tell.
	diff, _ := t.Diff.Get()
	for _, target := range []float64{o.Margin, math.Abs(diff)} {
		if target == 0 {
			continue
		}
		rows, err := countRows(max(pr.rows(target), float64(pr.fewest)), target)
		if err != nil || rows <= t.Units {
			continue
		}
		t.RowsNeeded, t.RowsFor = rows, some(target)
		break
	}
	if o.Margin == 0 && !o.Unmargined {
		warn(&t.Warnings, "no margin was given: state the smallest difference that would matter, to learn whether the two are as good as equal")
	}
}

// number writes a value for a sentence.
func number(o Opt) string { return strconv.FormatFloat(o.v, 'g', 3, 64) }

// spread returns the largest score less the smallest one.
func spread(samples ...[]float64) float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, scores := range samples {
		for _, x := range scores {
			low, high = min(low, x), max(high, x)
		}
	}
	return high - low
}

// forPair completes the options, and refuses scores of two candidates that are no
// pair or contradict them.
func (o Options) forPair(base, cand []float64) (Options, error) {
	o, err := o.withDefaults()
	if err != nil {
		return o, err
	}
	if err := checkPair(base, cand); err != nil {
		return o, err
	}
	if err := checkBinary("baseline", base, o); err != nil {
		return o, err
	}
	return o, checkBinary("candidate", cand, o)
}
