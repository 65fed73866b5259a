package metrics

import (
	"fmt"
	"math"
	"slices"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/internal/conf"
)

// scale is a judge's menu, and what each verdict scores.
type scale struct {
	menu   datasets.Value // as the program's output has it
	words  []string       // in the menu's order
	scores map[string]float64
	right  []string // those that say of an answer that it is right
}

// defaultScale is right or wrong.
func defaultScale() scale {
	s := scale{scores: map[string]float64{"right": 1, "wrong": 0}, words: []string{"right", "wrong"}, right: []string{"right"}}
	s.menu = textList(s.words...)
	return s
}

// readScale reads a list of numbers, or a map of verdicts to numbers. Of a scale of
// one's own a verdict says right when its score is at least right_from, or else
// above the middle of the scale.
func (m *judge) readScale(b *builder) error {
	switch {
	case m.Mode == harness.JudgePairwise:
		if !m.Scale.IsZero() || m.RightFrom != nil {
			return b.at("scale", "a pairwise judge says better, worse or tie, which is 1, 0 or 0.5: leave scale and right_from out")
		}
		m.scale = pairScale()
		return nil
	case m.Scale.IsZero():
		m.scale = defaultScale()
		if m.RightFrom != nil {
			return b.at("right_from", "right_from is for a scale of your own: right is right")
		}
		return nil
	}
	m.scale = scale{scores: map[string]float64{}}
	var verdicts []datasets.Value
	add := func(verdict datasets.Value, score conf.Node) error {
		f, ok := datasets.RawValue(string(score.JSON())).AsFloat()
		if !ok || math.IsInf(f, 0) {
			return score.Errorf("scale: %s is no number; a scale is a list of numbers, or a map of verdicts to numbers: {good: 1, fair: 0.5, bad: 0}", score.JSON())
		}
		word := verdict.String()
		if _, twice := m.scale.scores[word]; twice || word == "" {
			return score.Errorf("scale: the verdict %q is empty, or there twice", word)
		}
		verdicts = append(verdicts, verdict)
		m.scale.words = append(m.scale.words, word)
		m.scale.scores[word] = f
		return nil
	}
	for _, n := range m.Scale.Items() {
		if err := add(datasets.RawValue(string(n.JSON())), n); err != nil {
			return err
		}
	}
	for _, member := range m.Scale.Members() {
		if err := add(datasets.Text(member.Key), member.Value); err != nil {
			return err
		}
	}
	if len(verdicts) < 2 {
		return m.Scale.Errorf("scale: there must be at least two verdicts: [1, 2, 3], or {good: 1, bad: 0}")
	}
	m.scale.menu = menuOf(verdicts)
	return m.scale.divide(m.RightFrom, func(format string, args ...any) error { return b.at("right_from", format, args...) })
}

// divide finds the verdicts that say right.
func (s *scale) divide(from *float64, wrong func(format string, args ...any) error) error {
	least, most := math.Inf(1), math.Inf(-1)
	for _, f := range s.scores {
		least, most = min(least, f), max(most, f)
	}
	for _, word := range s.words {
		f := s.scores[word]
		if from == nil && f > least/2+most/2 || from != nil && f >= *from {
			s.right = append(s.right, word)
		}
	}
	if len(s.right) == 0 || len(s.right) == len(s.words) {
		if from == nil {
			return wrong("scale: all verdicts have the same score")
		}
		return wrong("right_from: %v leaves no verdict on one side; the scores go from %v to %v", *from, least, most)
	}
	return nil
}

// mostOf is the word that is there most often; of several, the one that scores
// least.
func (s *scale) mostOf(words []string) string {
	best, most := "", 0
	for _, word := range s.words {
		n := 0
		for _, w := range words {
			if w == word {
				n++
			}
		}
		if n > most || n == most && n > 0 && s.scores[word] < s.scores[best] {
			best, most = word, n
		}
	}
	return best
}

func textList(words ...string) datasets.Value {
	var values []datasets.Value
	for _, w := range words {
		values = append(values, datasets.Text(w))
	}
	return menuOf(values)
}

func menuOf(values []datasets.Value) datasets.Value {
	v, err := datasets.ValueOf(slices.Clone(values))
	if err != nil {
		panic(fmt.Sprintf("metrics: a list of values has no JSON form: %v", err))
	}
	return v
}
