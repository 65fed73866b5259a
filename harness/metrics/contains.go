package metrics

import (
	"context"
	"strings"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/pipeline"
)

// contains looks for texts in an answer, white space and case apart.
type contains struct {
	comparing
	Texts []string `conf:"texts"` // nil for the right answer
	Any   bool     `conf:"any"`
}

func newContains(b *builder) (harness.Metric, error) {
	m := &contains{}
	if err := b.decode(m, &m.AsName); err != nil {
		return nil, err
	}
	for _, text := range m.Texts {
		if normalize(text) == "" {
			return nil, b.at("texts", "texts: an empty text is in every answer")
		}
	}
	return m, b.compare(&m.comparing)
}

func (m *contains) Score(_ context.Context, row datasets.Row, call *pipeline.Call) (harness.Score, error) {
	texts := m.Texts
	answer, missing := m.answer(call)
	if texts == nil && missing == "" {
		var right datasets.Value
		answer, right, missing = m.both(row, call)
		texts = references(right, answer)
	}
	if missing != "" {
		return missed(missing)
	}
	in := normalize(answer.String())
	var lacks []string
	for _, text := range texts {
		if !strings.Contains(in, normalize(text)) {
			lacks = append(lacks, text)
		}
	}
	if m.Any {
		return verdict(len(lacks) < len(texts), "the answer has none of: "+clip(strings.Join(lacks, "; ")))
	}
	return verdict(lacks == nil, "the answer lacks: "+clip(strings.Join(lacks, "; ")))
}
