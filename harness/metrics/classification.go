package metrics

import (
	"context"
	"slices"
	"strings"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/pipeline"
)

// classification is exact match of one output whose values are classes, and what
// the harness makes its table of.
type classification struct {
	comparing
	Labels []string `conf:"labels"` // the classes there are; nil for those that are right for some row
}

func newClassification(b *builder) (harness.Metric, error) {
	m := &classification{}
	if err := b.decode(m, &m.AsName); err != nil {
		return nil, err
	}
	if m.Output == "" && len(b.Outputs) > 0 {
		m.Output = b.Outputs[len(b.Outputs)-1] // a call that failed does not say which is the answer
	}
	for i, label := range m.Labels {
		if slices.ContainsFunc(m.Labels[:i], func(l string) bool { return normalize(l) == normalize(label) }) {
			return nil, b.at("labels", "labels: %q is there twice: white space and case count for nothing", label)
		}
	}
	return m, b.compare(&m.comparing)
}

func (m *classification) Score(_ context.Context, row datasets.Row, call *pipeline.Call) (harness.Score, error) {
	answer, right, missing := m.both(row, call)
	if missing != "" {
		return missed(missing)
	}
	if !m.known(right) {
		return missed("the right answer " + clip(right.String()) + " is none of the labels: " + strings.Join(m.Labels, ", "))
	}
	return verdict(equal(right, answer), "wrong: "+rightIs(right))
}

// Class names the right class and the answered one.
func (m *classification) Class(row datasets.Row, call *pipeline.Call) (expected, predicted string) {
	from := row.Labels
	if m.Against == againstRecorded {
		from = row.Recorded
	}
	name := m.Output
	switch {
	case name != "":
	case call != nil:
		name = answerName(call, "")
	case len(from) == 1:
		name = from.Names()[0]
	}
	right := from[name]
	if right.IsZero() || !m.known(right) {
		return "", ""
	}
	if call != nil {
		if answer := call.Outputs[name]; !answer.IsZero() {
			predicted = m.class(answer)
		}
	}
	return m.class(right), predicted
}

func (m *classification) known(right datasets.Value) bool {
	return m.Labels == nil || slices.Contains(m.Labels, m.class(right))
}

// class is the name of a value's class: the same for equal values, and as the spec
// spells it.
func (m *classification) class(v datasets.Value) string {
	text, ok := v.AsText()
	if !ok {
		text = v.Canonical()
	}
	name := normalize(text)
	for _, label := range m.Labels {
		if normalize(label) == name {
			return label
		}
	}
	if name == "" {
		return "(empty)"
	}
	return name
}
