package harness

import (
	"maps"
	"slices"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// Classification is what a candidate answered where which class was right,
// counted over answers: a row that is asked several times counts as often. Its
// classes are those that are right for some row. An answer that failed stays in
// every denominator that its row is in.
//
// With TP, FP and FN of a class, precision is TP/(TP+FP), recall TP/(TP+FN), and
// F1 their harmonic mean, 2·TP/(2·TP+FP+FN) (van Rijsbergen 1979).
type Classification struct {
	N         int       `json:"n"`         // answers to rows whose right class is known
	Accuracy  float64   `json:"accuracy"`  // share of them that named it
	MacroF1   float64   `json:"macro_f1"`  // mean of the classes' F1
	Labels    []string  `json:"labels"`    // the classes, in code point order
	Confusion [][]int   `json:"confusion"` // right class × answered class, both in the order of labels
	Other     []int     `json:"other"`     // by right class: answers that named none of the classes
	Failed    []int     `json:"failed"`    // by right class: answers that failed or named nothing
	PerClass  []OfClass `json:"per_class"` // in the order of labels
}

// OfClass is what came of one class.
type OfClass struct {
	Label     string   `json:"label"`
	N         int      `json:"n"`         // answers for which it was right
	Predicted int      `json:"predicted"` // answers that named it
	Precision *float64 `json:"precision"` // null when no answer named it
	Recall    float64  `json:"recall"`
	F1        float64  `json:"f1"` // 0 when no answer named it
}

// classify asks the classifiers. What a row's right class is, is known of a failed
// answer too; without it the row would be missing from the class's recall.
func (r *Result) classify(metrics []Metric, row datasets.Row, call *pipeline.Call) {
	if r.Failed != nil && len(r.Scores) == 0 {
		call = nil
	}
	for _, m := range metrics {
		if c, ok := m.(Classifier); ok {
			expected, predicted := classOf(c, row, call)
			if expected != "" {
				r.Classes = append(r.Classes, Classed{m.Name(), expected, predicted})
			}
		}
	}
}

// classOf asks a classifier. One that panics names nothing: its score, which comes
// of the same reading, says so.
func classOf(c Classifier, row datasets.Row, call *pipeline.Call) (expected, predicted string) {
	defer func() {
		if recover() != nil {
			expected, predicted = "", ""
		}
	}()
	return c.Class(row, call)
}

// classifications makes the table of each metric that classed some answer; nil
// when none did.
func classifications(metrics []string, answers map[Classed]int) map[string]*Classification {
	all := map[string]*Classification{}
	for _, metric := range metrics {
		of := map[Classed]int{}
		for c, n := range answers {
			if c.Metric == metric {
				of[c] = n
			}
		}
		if len(of) > 0 {
			all[metric] = classification(of)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

func classification(answers map[Classed]int) *Classification {
	at := map[string]int{}
	for c := range answers {
		at[c.Expected] = 0
	}
	t := &Classification{Labels: slices.Sorted(maps.Keys(at))}
	k := len(t.Labels)
	t.Confusion, t.Other, t.Failed = make([][]int, k), make([]int, k), make([]int, k)
	for i, label := range t.Labels {
		at[label] = i
		t.Confusion[i] = make([]int, k)
	}
	for c, n := range answers {
		i := at[c.Expected]
		t.N += n
		switch j, known := at[c.Predicted]; {
		case c.Predicted == "":
			t.Failed[i] += n
		case !known:
			t.Other[i] += n
		default:
			t.Confusion[i][j] += n
		}
	}
	t.sumUp()
	return t
}

// sumUp computes what follows from the counts.
func (t *Classification) sumUp() {
	right := 0
	for i, label := range t.Labels {
		c := OfClass{Label: label, N: t.Other[i] + t.Failed[i]}
		for j := range t.Labels {
			c.N += t.Confusion[i][j]
			c.Predicted += t.Confusion[j][i]
		}
		hit := t.Confusion[i][i]
		right += hit
		if c.Predicted > 0 {
			precision := float64(hit) / float64(c.Predicted)
			c.Precision = &precision
		}
		c.Recall = float64(hit) / float64(c.N)
		c.F1 = 2 * float64(hit) / float64(c.N+c.Predicted)
		t.MacroF1 += c.F1
		t.PerClass = append(t.PerClass, c)
	}
	t.MacroF1 /= float64(len(t.Labels))
	t.Accuracy = float64(right) / float64(t.N)
}
