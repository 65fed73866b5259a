package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"evalrun/pipeline"
	"evalrun/replay/journal"
)

// RetryAll names all classes of failures at once.
const RetryAll = "all"

// RetryFailed has answers asked anew that failed when the run was carried out
// before, under one of these classes; [RetryAll] is all of them. It is called
// between [StartRun] and [Run.Evaluate], and says how many answers those are.
//
// Without it a run that is carried out again asks only what was lost to an outage:
// a candidate's own failures stand, as its answers do.
func (r *Run) RetryFailed(classes ...string) (int, error) {
	if err := CheckClasses(classes...); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrPlan, err)
	}
	dir := filepath.Join(r.Dir, JournalDir)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return 0, nil // nothing is kept: everything is asked anyway
	}
	titles := map[[2]string]string{} // of a candidate of an evaluation, where it asks
	rated := map[string]string{}     // of an evaluation, where judges ask about rated answers
	for _, c := range r.plans {
		rated[c.plan.Name] = c.plan.ratedTitle()
		for i := range c.plan.Candidates {
			cand := &c.plan.Candidates[i]
			titles[[2]string{c.plan.Name, cand.Name}] = c.plan.title(cand)
		}
	}
	var again []journal.Answer
	for res, err := range r.Results() {
		if errors.Is(err, fs.ErrNotExist) {
			return 0, nil // the run was cut off: what it did not finish is asked anyway
		}
		if err != nil {
			return 0, err
		}
		title, known := titles[[2]string{res.Evaluation, res.Candidate}]
		wanted := func(class string) bool { return slices.Contains(classes, RetryAll) || slices.Contains(classes, class) }
		switch f := res.Failed; {
		case !known:
			continue
		case f != nil && f.Class == ClassJudge && wanted(ClassJudge): // the answer stands
			again = append(again, journal.Answer{Candidate: title, Row: res.Row, Repeat: res.Repeat, Purpose: judgePurpose})
		case f != nil && res.Call != "" && wanted(f.Class):
			again = append(again, journal.Answer{Candidate: title, Row: res.Row, Repeat: res.Repeat})
		}
		if wanted(ClassJudge) && slices.ContainsFunc(res.Judged, func(k Judged) bool { return k.Rated && k.Missing != "" }) {
			again = append(again, journal.Answer{Candidate: rated[res.Evaluation], Row: res.Row, Purpose: judgePurpose})
		}
	}
	if len(again) == 0 {
		return 0, nil
	}
	j, err := journal.Open(dir, nil)
	if err != nil {
		return 0, err
	}
	_, err = j.Forget(again...)
	return len(again), errors.Join(err, j.Close())
}

// CheckClasses refuses a word that is no class of failures.
func CheckClasses(classes ...string) error {
	known := append(pipeline.Classes(), ClassMetric, ClassJudge, RetryAll)
	for _, class := range classes {
		if !slices.Contains(known, class) {
			return fmt.Errorf("%q is no class of failures%s; there are %s", class, didYouMean(class, known), strings.Join(known, ", "))
		}
	}
	return nil
}
