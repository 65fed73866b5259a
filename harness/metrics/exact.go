package metrics

import (
	"context"
	"math/big"
	"strings"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/pipeline"
)

// exactMatch compares one output with its right answer, or all that have one.
type exactMatch struct {
	name    string
	output  string // "" for all
	against string // recorded for what was recorded, else the label
}

// exactMatches are exact_match and, when there are several answers, the metric of
// each.
func exactMatches(answers []string) []harness.Metric {
	all := []harness.Metric{exactMatch{name: exactMatchName}}
	if len(answers) > 1 {
		for _, output := range answers {
			all = append(all, exactMatch{name: output + matchSuffix, output: output})
		}
	}
	return all
}

func newExactMatch(b *builder) (harness.Metric, error) {
	var o comparing
	if err := b.decode(&o, &o.AsName); err != nil {
		return nil, err
	}
	if err := b.compare(&o); err != nil {
		return nil, err
	}
	return exactMatch{o.AsName, o.Output, o.Against}, nil
}

func (m exactMatch) Name() string { return m.name }

func (m exactMatch) Score(_ context.Context, row datasets.Row, call *pipeline.Call) (harness.Score, error) {
	right := row.Labels
	if m.against == againstRecorded {
		right = row.Recorded
	}
	outputs := call.Outputs.Names()
	if m.output != "" {
		outputs = []string{m.output}
	}
	compared := 0
	var wrong []string
	for _, name := range outputs {
		label, answer := right[name], call.Outputs[name]
		if label.IsZero() || answer.IsZero() {
			continue
		}
		compared++
		if !equal(label, answer) {
			wrong = append(wrong, name)
		}
	}
	switch {
	case compared == 0:
		return missing(right, call, strings.Join(outputs, ", ")), nil
	case wrong == nil:
		return harness.Score{Value: 1}, nil
	}
	return harness.Score{Feedback: feedback(right, wrong, compared)}, nil
}

// feedback tells what would have been right.
func feedback(right datasets.Values, wrong []string, compared int) string {
	if compared == 1 {
		return "wrong: the right answer is " + right[wrong[0]].String()
	}
	var parts []string
	for _, name := range wrong {
		parts = append(parts, "the right "+name+" is "+right[name].String())
	}
	return "wrong: " + strings.Join(parts, "; ")
}

// missing says why there is nothing to compare.
func missing(right datasets.Values, call *pipeline.Call, wanted string) harness.Score {
	if len(right) == 0 {
		return harness.Score{Missing: "the row has no right answer for " + wanted}
	}
	return harness.Score{Missing: "the row has right answers for " + strings.Join(right.Names(), ", ") +
		", the call has " + strings.Join(call.Outputs.Names(), ", ") + "; nothing to compare for " + wanted}
}

// equal compares an output with its right answer.
func equal(label, answer datasets.Value) bool {
	if a, ok := label.AsText(); ok {
		b, ok := answer.AsText()
		return ok && (a == b || normalize(a) == normalize(b))
	}
	return same(label, answer)
}

// same compares two values: texts exactly, numbers by value, lists and objects
// by their members.
func same(a, b datasets.Value) bool {
	if a.Equal(b) {
		return true
	}
	if a.Kind() != b.Kind() {
		return false
	}
	switch a.Kind() {
	case '0':
		return sameNumber(a.Canonical(), b.Canonical())
	case '[':
		var left, right []datasets.Value
		for v := range a.Elements() {
			left = append(left, v)
		}
		for v := range b.Elements() {
			right = append(right, v)
		}
		if len(left) != len(right) {
			return false
		}
		for i := range left {
			if !same(left[i], right[i]) {
				return false
			}
		}
		return true
	case '{':
		left, right := datasets.ValuesOf(a), datasets.ValuesOf(b)
		if len(left) != len(right) {
			return false
		}
		for name, v := range left {
			if w, ok := right[name]; !ok || !same(v, w) {
				return false
			}
		}
		return true
	}
	return false
}

// sameNumber compares two canonical numbers that are spelled differently. They
// are equal only where one is an integer in full and the other has an exponent,
// as floats have from 1e21 on: 1000000000000000000000 and 1e+21.
func sameNumber(a, b string) bool {
	x, okX := exact(a)
	y, okY := exact(b)
	return okX && okY && x.Cmp(y) == 0
}

// exact is the value of a canonical number: an integer as it is written, any
// other as the float64 it stands for.
func exact(number string) (*big.Float, bool) {
	if strings.ContainsAny(number, ".e") {
		f, ok := datasets.RawValue(number).AsFloat()
		return big.NewFloat(f), ok
	}
	n, ok := new(big.Int).SetString(number, 10)
	if !ok {
		return nil, false
	}
	return new(big.Float).SetInt(n), true
}
