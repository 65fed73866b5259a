package harness

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"

	"evalrun/replay/journal"
)

// TakesFrom says which run an unchanged candidate's answers are taken from first.
type TakesFrom struct {
	Evaluation string
	Candidate  string
	Run        string // its id
}

// Reuse says which candidates did not change since another run of the same folder,
// which has answers of theirs: those are taken, to rows that are the same. Of
// several runs the newest counts; where it has no answer, the one before it.
func (r *Run) Reuse() []TakesFrom {
	var list []TakesFrom
	r.earlier(func(evaluation, candidate string, runs []earlierRun) {
		list = append(list, TakesFrom{evaluation, candidate, runs[0].id})
	})
	return list
}

// takeFrom has the journal take what other runs know, and what judges said there of
// rated answers.
func (r *Run) takeFrom(j *journal.Journal) {
	rated := map[string][]journal.Earlier{}
	r.earlier(func(evaluation, candidate string, runs []earlierRun) {
		var from []journal.Earlier
		for _, run := range runs {
			from = append(from, journal.Earlier{Dir: run.journal, Candidate: run.title})
			if e := (journal.Earlier{Dir: run.journal, Candidate: run.rated}); !slices.Contains(rated[evaluation], e) {
				rated[evaluation] = append(rated[evaluation], e)
			}
		}
		j.TakeFrom(titleOf(evaluation, candidate), from...)
	})
	for evaluation, from := range rated {
		j.TakeFrom(titleOf(evaluation, ratedName), from...)
	}
}

// earlierRun is another run in which a candidate was asked.
type earlierRun struct {
	id, journal, title, rated string
}

// earlier tells of each candidate that other runs asked, and by which, the newest
// first. A run that is to start over takes nothing.
func (r *Run) earlier(tell func(evaluation, candidate string, runs []earlierRun)) {
	if r.Manifest.Fresh {
		return
	}
	found := map[[2]string][]earlierRun{}
	for had := range newest(r.root, "") {
		dir := filepath.Join(r.root, had.ID, JournalDir)
		if _, err := os.Stat(dir); err != nil || had.ID == r.Manifest.ID || had.Tools != r.Manifest.Tools {
			continue
		}
		for i := range r.Manifest.Evaluations {
			e := &r.Manifest.Evaluations[i]
			for k := range had.Evaluations {
				if had.Evaluations[k].Name != e.Name && len(had.Evaluations)+len(r.Manifest.Evaluations) > 2 {
					continue
				}
				for name, before := range same(e.Candidates, had.Evaluations[k].Candidates) {
					at := [2]string{e.Name, name}
					found[at] = append(found[at], earlierRun{had.ID, dir, titleOf(had.Evaluations[k].Name, before), titleOf(had.Evaluations[k].Name, ratedName)})
				}
			}
		}
	}
	for _, e := range r.Manifest.Evaluations {
		for _, c := range e.Candidates {
			if runs := found[[2]string{e.Name, c.Name}]; runs != nil {
				tell(e.Name, c.Name, runs)
			}
		}
	}
}

// same finds, for candidates by their names, what they were called before. Those
// of the same name are found first; no two are found in one, since the answers of
// two are two draws.
func same(now, before []CandidateFacts) map[string]string {
	found := map[string]string{}
	taken := map[string]bool{}
	for _, byName := range []bool{true, false} {
		for i := range now {
			if found[now[i].Name] != "" || now[i].Model == nil {
				continue
			}
			at := slices.IndexFunc(before, func(c CandidateFacts) bool {
				return (!byName || c.Name == now[i].Name) && !taken[c.Name] && c.AA == now[i].AA && c.question() == now[i].question()
			})
			if at >= 0 {
				found[now[i].Name] = before[at].Name
				taken[before[at].Name] = true
			}
		}
	}
	return found
}

// question is what the candidate's answers depend on, whatever it is called.
func (c *CandidateFacts) question() string {
	q := c.asked()
	q.Name = ""
	text, err := json.Marshal(q, json.Deterministic(true))
	if err != nil { // texts and JSON values have a JSON form
		panic("harness: a candidate has no JSON form: " + err.Error())
	}
	return string(text)
}
