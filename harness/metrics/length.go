package metrics

import (
	"context"
	"strings"
	"unicode/utf8"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/pipeline"
)

// length is how long an output is.
type length struct {
	looking
	directed
	Of string `conf:"of"` // characters, words or tokens
}

func newLength(b *builder) (harness.Metric, error) {
	m := &length{}
	if err := b.decode(m, &m.AsName); err != nil {
		return nil, err
	}
	if err := b.oneOf("of", &m.Of, "characters", "words", "tokens"); err != nil {
		return nil, err
	}
	if m.Of == "tokens" && m.Output != "" {
		return nil, b.at("output", "output: tokens are counted of the whole reply, not of one output")
	}
	if err := b.better(&m.directed); err != nil {
		return nil, err
	}
	return m, b.look(&m.looking)
}

func (m *length) Unit() string {
	if m.Of == "characters" {
		return "chars"
	}
	return m.Of
}

func (m *length) Score(_ context.Context, _ datasets.Row, call *pipeline.Call) (harness.Score, error) {
	if m.Of == "tokens" {
		return replyTokens(call)
	}
	answer, missing := m.answer(call)
	if missing != "" {
		return missed(missing)
	}
	text := answer.String()
	if m.Of == "words" {
		return harness.Score{Value: float64(len(strings.FieldsFunc(text, isSpace)))}, nil
	}
	return harness.Score{Value: float64(utf8.RuneCountInString(text))}, nil
}

// replyTokens are the tokens of the last reply, which is the answer, as the
// provider counted them, without those of reasoning.
func replyTokens(call *pipeline.Call) (harness.Score, error) {
	var last *pipeline.Reply
	for _, x := range call.Exchanges {
		if x.Reply != nil {
			last = x.Reply
		}
	}
	if last == nil || last.Usage.Output == nil {
		return missed("the model did not say how many tokens its answer has")
	}
	n := *last.Usage.Output
	if r := last.Usage.Reasoning; r != nil {
		n -= *r
	}
	return harness.Score{Value: float64(n)}, nil
}
