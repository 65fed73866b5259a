package stats

import "fmt"

// Passes says how a row does when it is asked k times.
type Passes struct {
	Any float64 `json:"any"` // chance that one of k answers is right, pass@k
	All float64 `json:"all"` // chance that all k are, pass^k
}

// PassK returns both chances for a row with so many answers, of which so many
// are right, without bias: 1 - C(n-r, k)/C(n, k) (Chen and others 2021) and
// C(r, k)/C(n, k) (Yao and others 2024). Any is the one where something picks a
// right answer, such as tests or a person who retries; All where each answer
// goes to a user. Average either over the rows, and treat that as scores with
// partial credit, [Single] and [Paired]; the mean with one k says nothing about
// another.
//
// k outside 1 to the number of answers, and more right than answers are errors.
func PassK(answers, right, k int) (Passes, error) {
	if right < 0 || right > answers {
		return Passes{}, fmt.Errorf("finding pass@k: %d right of %d answers: give counts, of which the first is no larger", right, answers)
	}
	if k < 1 || k > answers {
		return Passes{}, fmt.Errorf("finding pass@k: k is %d with %d answers: give a number from 1 to the answers", k, answers)
	}
	return Passes{Any: 1 - allOf(k, answers-right, answers), All: allOf(k, right, answers)}, nil
}

// allOf is the chance C(marked, k)/C(of, k) that k drawn without replacement
// are all marked.
func allOf(k, marked, of int) float64 {
	chance := 1.0
	for i := range min(k, marked+1) { // is 0 from marked on
		chance *= float64(marked-i) / float64(of-i)
	}
	return chance
}
