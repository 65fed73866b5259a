package metrics

import (
	"context"
	"regexp"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/pipeline"
)

// regex looks for a pattern in an answer, or takes a part of it by a pattern and
// compares that.
type regex struct {
	comparing
	Pattern string `conf:"pattern"`
	Extract bool   `conf:"extract"`

	compiled *regexp.Regexp
}

func newRegex(b *builder) (harness.Metric, error) {
	m := &regex{}
	if err := b.decode(m, &m.AsName); err != nil {
		return nil, err
	}
	if m.Pattern == "" {
		return nil, b.at("pattern", "regex needs a pattern: {regex: {pattern: '^yes'}}")
	}
	var err error
	if m.compiled, err = regexp.Compile(m.Pattern); err != nil {
		return nil, b.at("pattern", "pattern: %v", err)
	}
	if m.Extract && m.compiled.NumSubexp() > 1 {
		return nil, b.at("pattern", "pattern: it has %d groups; what is taken out is one: write the others as (?:…)", m.compiled.NumSubexp())
	}
	return m, b.compare(&m.comparing)
}

func (m *regex) Score(_ context.Context, row datasets.Row, call *pipeline.Call) (harness.Score, error) {
	answer, missing := m.answer(call)
	if missing != "" {
		return missed(missing)
	}
	found := m.compiled.FindStringSubmatch(answer.String())
	if !m.Extract {
		return verdict(found != nil, "the answer does not match "+m.Pattern)
	}
	_, right, missing := m.both(row, call)
	switch {
	case missing != "":
		return missed(missing)
	case found == nil:
		return harness.Score{Feedback: "nothing in the answer matches " + m.Pattern + "; " + rightIs(right)}, nil
	}
	part := found[len(found)-1] // the group, or all of the match
	return verdict(normalize(part) == normalize(right.String()), "found "+clip(part)+"; "+rightIs(right))
}
