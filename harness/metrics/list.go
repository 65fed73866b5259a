package metrics

import (
	"context"
	"slices"
	"strings"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/pipeline"
)

// list compares two lists, as sets or in their order.
type list struct {
	comparing
	Ordered   bool   `conf:"ordered"`
	Exact     bool   `conf:"exact"`     // all or nothing
	Separator string `conf:"separator"` // splits a text that is no JSON list
}

func newList(b *builder) (harness.Metric, error) {
	m := &list{}
	if err := b.decode(m, &m.AsName); err != nil {
		return nil, err
	}
	return m, b.compare(&m.comparing)
}

func (m *list) Score(_ context.Context, row datasets.Row, call *pipeline.Call) (harness.Score, error) {
	answer, right, missing := m.both(row, call)
	if missing != "" {
		return missed(missing)
	}
	want, ok := m.elements(right)
	if !ok {
		return missed("the right answer is no list")
	}
	have, ok := m.elements(answer)
	if !ok {
		return harness.Score{Feedback: "the answer is no list; " + rightIs(right)}, nil
	}
	var common int
	if m.Ordered {
		if len(want)*len(have) > maxCells {
			return missed("the lists are too long to be compared in order")
		}
		common = longestCommon(want, have, alike)
	} else {
		want, have = distinct(want), distinct(have)
		for _, v := range want {
			if slices.Contains(have, v) {
				common++
			}
		}
	}
	score := dice(common, len(want), len(have))
	if m.Exact && score < 1 {
		score = 0
	}
	return graded(score, m.feedback(want, have))
}

// dice is 2·common/(a+b), the harmonic mean of precision and recall; 1 when there
// is nothing on either side.
func dice(common, a, b int) float64 {
	if a+b == 0 {
		return 1
	}
	return 2 * float64(common) / float64(a+b)
}

// elements are a list's, each in a form that is the same for equal ones.
func (m *list) elements(v datasets.Value) ([]string, bool) {
	in := parsed(v)
	if in.Kind() == '[' {
		var all []string
		for e := range in.Elements() {
			all = append(all, form(e))
		}
		return all, true
	}
	text, ok := v.AsText()
	if !ok || m.Separator == "" {
		return nil, false
	}
	var all []string
	for part := range strings.SplitSeq(text, m.Separator) {
		if part = normalize(part); part != "" {
			all = append(all, form(datasets.Text(part)))
		}
	}
	return all, true
}

// form is the same for values that are equal: see [equal]. What is an integer in
// full and what a float with an exponent is the same only where they are spelled
// alike.
func form(v datasets.Value) string {
	if s, ok := v.AsText(); ok {
		return datasets.Text(normalize(s)).Canonical()
	}
	return v.Canonical()
}

func distinct(list []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool {
		had := seen[s]
		seen[s] = true
		return had
	})
}

func (m *list) feedback(want, have []string) string {
	lacking := slices.DeleteFunc(distinct(want), func(s string) bool { return slices.Contains(have, s) })
	extra := slices.DeleteFunc(distinct(have), func(s string) bool { return slices.Contains(want, s) })
	var said []string
	if len(lacking) > 0 {
		said = append(said, "missing: "+clip(strings.Join(lacking, ", ")))
	}
	if len(extra) > 0 {
		said = append(said, "extra: "+clip(strings.Join(extra, ", ")))
	}
	if said == nil {
		return "the same elements in another order or number"
	}
	return strings.Join(said, "; ")
}
