package metrics

import (
	"context"
	"slices"
	"strings"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/pipeline"
)

// fields compares two objects field by field.
type fields struct {
	comparing
	Fields []string `conf:"fields"` // nil for all of the right answer
	Strict bool     `conf:"strict"` // fields that should not be there count as wrong
}

func newFields(b *builder) (harness.Metric, error) {
	m := &fields{}
	if err := b.decode(m, &m.AsName); err != nil {
		return nil, err
	}
	return m, b.compare(&m.comparing)
}

func (m *fields) Score(_ context.Context, row datasets.Row, call *pipeline.Call) (harness.Score, error) {
	answer, right, missing := m.both(row, call)
	if missing != "" {
		return missed(missing)
	}
	want, have := datasets.ValuesOf(parsed(right)), datasets.ValuesOf(parsed(answer))
	if want == nil {
		return missed("the right answer is no JSON object")
	}
	names := want.Names()
	if m.Fields != nil {
		names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(m.Fields, name) })
	}
	if len(names) == 0 && !m.Strict {
		return missed("the right answer has none of the fields that are compared")
	}
	if have == nil {
		return harness.Score{Feedback: "the answer is no JSON object; " + rightIs(right)}, nil
	}
	return m.compare(names, want, have)
}

func (m *fields) compare(names []string, want, have datasets.Values) (harness.Score, error) {
	var wrong, lacking, extra []string
	for _, name := range names {
		switch v, ok := have[name]; {
		case !ok:
			lacking = append(lacking, name)
		case !equal(want[name], v):
			wrong = append(wrong, name+" is "+clip(v.String())+", right is "+clip(want[name].String()))
		}
	}
	for _, name := range have.Names() {
		if _, ok := want[name]; !ok && (m.Fields == nil || slices.Contains(m.Fields, name)) {
			extra = append(extra, name)
		}
	}
	total := len(names)
	if m.Strict {
		total += len(extra)
	}
	score := 1.0
	if total > 0 {
		score = float64(len(names)-len(wrong)-len(lacking)) / float64(total)
	}
	var said []string
	for _, part := range []struct {
		what string
		list []string
	}{{"wrong", wrong}, {"missing", lacking}, {"extra", extra}} {
		if part.list != nil {
			said = append(said, part.what+": "+strings.Join(part.list, ", "))
		}
	}
	return harness.Score{Value: score, Feedback: strings.Join(said, "; ")}, nil
}

// parsed is a value, and the JSON value that a text holds when it holds one.
func parsed(v datasets.Value) datasets.Value {
	if text, ok := v.AsText(); ok {
		if inner, err := datasets.ParseValue(text); err == nil {
			return inner
		}
	}
	return v
}
