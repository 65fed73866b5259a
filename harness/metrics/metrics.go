// Package metrics has the metrics that come with evalrun.
//
// [New] makes the metrics a spec names; docs/metrics.md has the formula, the range
// and the options of each. A user's own metric is any [harness.Metric]; it needs
// nothing of this package.
//
//	exact_match      1 when every output that a right answer is known for equals it, else 0
//	<output>_match   the same for one output
//	contains         1 when the answer contains the right one, or given texts
//	regex            1 when the answer matches a pattern, or what the pattern takes out of it is right
//	number           1 when the number is right within a tolerance
//	json             share of an object's fields that are right
//	list             how much two lists have in common, as sets or in order
//	f1               F1 of the words in common, as SQuAD has it
//	rouge_l          F of the longest common subsequence of words
//	bleu             BLEU of a sentence, smoothed
//	edit_distance    likeness by Levenshtein's distance
//	classification   1 when the class is right; and a table of the classes
//	json_schema      1 when the answer satisfies a JSON Schema
//	tool_calls       F1 of the tool calls made and those expected
//	latency, cost, tokens   what the answer took
//	length           how long the answer is
//	starlark, command       the user's own
//	judge            a model's verdict
//
// What counts as equal is the same in every implementation of the FunctAI
// contract. A text is compared with its runs of white space made one space, its
// ends trimmed, and its case folded in full (ß is ss); a number by its value
// (1 is 1.0); a list and an object by their members, texts in them exactly and
// numbers by value. An output nobody knows the right answer of counts for
// nothing. A row without any right answer cannot be scored.
package metrics

import (
	"slices"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/pipeline"
)

// exactMatchName is the metric over all outputs; matchSuffix ends the names of
// those over one.
const (
	exactMatchName = "exact_match"
	matchSuffix    = "_match"
)

// kinds make the metrics there are, by the name that a spec gives.
var kinds = map[string]func(*builder) (harness.Metric, error){
	exactMatchName:   newExactMatch,
	"contains":       newContains,
	"regex":          newRegex,
	"number":         newNumber,
	"json":           newFields,
	"list":           newList,
	"f1":             newF1,
	"rouge_l":        newRougeL,
	"bleu":           newBleu,
	"edit_distance":  newEditDistance,
	"classification": newClassification,
	"json_schema":    newJSONSchema,
	"tool_calls":     newToolCalls,
	"latency":        newLatency,
	"cost":           newCost,
	"tokens":         newTokens,
	"length":         newLength,
	"starlark":       newStarlark,
	"command":        newCommand,
	"judge":          newJudge,
}

// names are those of kinds, in the order of the package's documentation.
var names = []string{
	exactMatchName, "contains", "regex", "number", "json", "list", "f1", "rouge_l", "bleu", "edit_distance",
	"classification", "json_schema", "tool_calls", "latency", "cost", "tokens", "length", "starlark", "command", "judge",
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
