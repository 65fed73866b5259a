// Package metrics has the metrics that come with evalrun.
//
// [New] makes the metrics a spec names. A user's own metric is any
// [harness.Metric]; it needs nothing of this package.
//
//	exact_match      1 when every output that a right answer is known for equals it, else 0
//	<output>_match   the same for one output
//
// What counts as equal is the same in every implementation of the FunctAI
// contract. A text is compared with its runs of white space made one space, its
// ends trimmed, and its case folded in full (ß is ss); a number by its value
// (1 is 1.0); a list and an object by their members, texts in them exactly and
// numbers by value. An output nobody knows the right answer of counts for
// nothing. A row without any right answer cannot be scored.
package metrics

import (
	"fmt"
	"slices"
	"strings"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/internal/conf"
	"evalrun/pipeline"
)

// exactMatchName is the metric over all outputs; matchSuffix ends the names of
// those over one.
const (
	exactMatchName = "exact_match"
	matchSuffix    = "_match"
)

// New makes the metrics of these names, in order. answers are the outputs that
// rows have right answers for: see [Answers]. When there are several,
// exact_match brings the metric of each along, unless it is named as well. An
// unknown name is an error that says which there are.
func New(names, answers []string) ([]harness.Metric, error) {
	var all []harness.Metric
	for _, name := range names {
		m, err := one(name, answers)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
		if name != exactMatchName || len(answers) < 2 {
			continue
		}
		for _, output := range answers {
			if match := output + matchSuffix; !slices.Contains(names, match) {
				all = append(all, exactMatch{match, output})
			}
		}
	}
	return all, nil
}

func one(name string, answers []string) (harness.Metric, error) {
	if name == exactMatchName {
		return exactMatch{name: name}, nil
	}
	known := []string{exactMatchName}
	for _, output := range answers {
		if name == output+matchSuffix {
			return exactMatch{name, output}, nil
		}
		known = append(known, output+matchSuffix)
	}
	if near := conf.Suggest(name, known); near != "" {
		return nil, fmt.Errorf("there is no metric %q; did you mean %s?", name, near)
	}
	return nil, fmt.Errorf("there is no metric %q; there are %s", name, strings.Join(known, ", "))
}

// Answers returns the outputs of a program that every row has a right answer
// for, in the program's order. It reads rows until none is left to rule out.
func Answers(rows datasets.Source, p *pipeline.Program) ([]string, error) {
	var answers []string
	for _, output := range p.Outputs() {
		answers = append(answers, output.Name)
	}
	if rows.Len() == 0 {
		return nil, nil
	}
	for row, err := range datasets.All(rows) {
		if err != nil {
			return nil, err
		}
		answers = slices.DeleteFunc(answers, func(name string) bool { return row.Labels[name].IsZero() })
		if len(answers) == 0 {
			break
		}
	}
	return answers, nil
}
