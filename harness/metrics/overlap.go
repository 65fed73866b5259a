package metrics

import (
	"context"
	"fmt"
	"math"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/pipeline"
)

// likeness is a metric that compares a text with reference texts.
type likeness struct {
	comparing

	// of scores an answer against all references. It is not defined for texts
	// that are too long to compare.
	of func(answer string, references []string) (score float64, ok bool)
}

func (m *likeness) Score(_ context.Context, row datasets.Row, call *pipeline.Call) (harness.Score, error) {
	answer, right, missing := m.both(row, call)
	if missing != "" {
		return missed(missing)
	}
	score, ok := m.of(answer.String(), references(right, answer))
	if !ok {
		return missed("the texts are too long to be compared")
	}
	return graded(score, rightIs(right))
}

func newF1(b *builder) (harness.Metric, error) {
	m := &likeness{of: squadF1}
	if err := b.decode(&m.comparing, &m.AsName); err != nil {
		return nil, err
	}
	return m, b.compare(&m.comparing)
}

// squadF1 is the best token F1 over the references. When a side has no tokens it
// is 1 if both have none, else 0.
func squadF1(answer string, references []string) (float64, bool) {
	have, best := squadTokens(answer), 0.0
	for _, ref := range references {
		want := squadTokens(ref)
		best = max(best, dice(overlap(want, have), len(want), len(have)))
	}
	return best, true
}

func newRougeL(b *builder) (harness.Metric, error) {
	m := &likeness{}
	options := struct {
		comparing
		Beta *float64 `conf:"beta"`
	}{}
	if err := b.decode(&options, &options.AsName); err != nil {
		return nil, err
	}
	beta := 1.0
	if options.Beta != nil {
		if beta = *options.Beta; beta <= 0 || beta > 1e6 {
			return nil, b.at("beta", "beta: %v is no number above 0", beta)
		}
	}
	m.comparing = options.comparing
	m.of = func(answer string, references []string) (float64, bool) { return rougeL(answer, references, beta) }
	return m, b.compare(&m.comparing)
}

// rougeL is the best ROUGE-L over the references (Lin 2004, equations 2 to 4): R =
// LCS/m, P = LCS/n, F = (1+β²)·R·P/(R+β²·P). Without any token on both sides it is
// 1, on one side 0.
func rougeL(answer string, references []string, beta float64) (float64, bool) {
	have, best := wordTokens(answer), 0.0
	for _, ref := range references {
		want := wordTokens(ref)
		if len(want)*len(have) > maxCells {
			return 0, false
		}
		if len(want)+len(have) == 0 {
			return 1, true
		}
		common := float64(longestCommon(want, have, alike))
		if common == 0 {
			continue
		}
		r, p := common/float64(len(want)), common/float64(len(have))
		best = max(best, (1+beta*beta)*r*p/(r+beta*beta*p))
	}
	return best, true
}

func newBleu(b *builder) (harness.Metric, error) {
	m := &likeness{}
	options := struct {
		comparing
		Order *int `conf:"order"`
	}{}
	if err := b.decode(&options, &options.AsName); err != nil {
		return nil, err
	}
	order := 4
	if options.Order != nil {
		if order = *options.Order; order < 1 || order > 10 {
			return nil, b.at("order", "order: %d is not from 1 to 10", order)
		}
	}
	m.comparing = options.comparing
	m.of = func(answer string, references []string) (float64, bool) {
		var refs [][]string
		for _, ref := range references {
			refs = append(refs, markTokens(ref))
		}
		return bleu(markTokens(answer), refs, order), true
	}
	return m, b.compare(&m.comparing)
}

// bleu is the BLEU score of one sentence (Papineni and others 2002) with the
// smoothing of Lin and Och (2004): for orders above 1, one is added to the matches
// and to the n-grams that could match. The brevity penalty takes the reference
// whose length is the closest, of two the shorter one.
func bleu(have []string, refs [][]string, order int) float64 {
	if len(have) == 0 {
		for _, ref := range refs {
			if len(ref) == 0 {
				return 1
			}
		}
		return 0
	}
	logs := 0.0
	for n := 1; n <= order; n++ {
		hits, all := clipped(have, refs, n)
		if n > 1 {
			hits, all = hits+1, all+1
		}
		if hits == 0 {
			return 0
		}
		logs += math.Log(float64(hits) / float64(all))
	}
	closest := len(refs[0])
	for _, ref := range refs {
		off, best := abs(len(ref)-len(have)), abs(closest-len(have))
		if off < best || off == best && len(ref) < closest {
			closest = len(ref)
		}
	}
	penalty := min(0, 1-float64(closest)/float64(len(have)))
	return math.Exp(penalty + logs/float64(order))
}

// clipped counts an answer's n-grams, and those of them that match: each at most
// as often as one reference has it.
func clipped(have []string, refs [][]string, n int) (hits, all int) {
	most := map[string]int{}
	for _, ref := range refs {
		for gram, k := range counts(grams(ref, n)) {
			most[gram] = max(most[gram], k)
		}
	}
	for gram, k := range counts(grams(have, n)) {
		hits += min(k, most[gram])
		all += k
	}
	return hits, all
}

// grams are the runs of n tokens. No token has a blank in it.
func grams(tokens []string, n int) []string {
	var all []string
	for i := range len(tokens) - n + 1 {
		gram := tokens[i]
		for _, t := range tokens[i+1 : i+n] {
			gram += " " + t
		}
		all = append(all, gram)
	}
	return all
}

func abs(n int) int { return max(n, -n) }

// editDistance is Levenshtein's distance in code points, or the likeness it makes.
type editDistance struct {
	comparing
	As string `conf:"as"` // similarity or distance
}

func newEditDistance(b *builder) (harness.Metric, error) {
	m := &editDistance{}
	if err := b.decode(m, &m.AsName); err != nil {
		return nil, err
	}
	if err := b.oneOf("as", &m.As, "similarity", "distance"); err != nil {
		return nil, err
	}
	return m, b.compare(&m.comparing)
}

func (m *editDistance) LowerIsBetter() bool { return m.As == "distance" }

func (m *editDistance) Unit() string {
	if m.LowerIsBetter() {
		return "edits"
	}
	return ""
}

func (m *editDistance) Score(_ context.Context, row datasets.Row, call *pipeline.Call) (harness.Score, error) {
	answer, right, missing := m.both(row, call)
	if missing != "" {
		return missed(missing)
	}
	have := []rune(answer.String())
	best, distance := 0.0, math.MaxInt
	for _, ref := range references(right, answer) {
		want := []rune(ref)
		if len(want)*len(have) > maxCells {
			return missed("the texts are too long to be compared")
		}
		d := edits(want, have)
		distance = min(distance, d)
		if longer := max(len(want), len(have)); longer == 0 {
			best = 1
		} else {
			best = max(best, 1-float64(d)/float64(longer))
		}
	}
	s := harness.Score{Value: best}
	if m.LowerIsBetter() {
		s.Value = float64(distance)
	}
	if distance > 0 {
		s.Feedback = fmt.Sprintf("%d edits; %s", distance, rightIs(right))
	}
	return s, nil
}
