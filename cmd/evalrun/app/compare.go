package app

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"evalrun/harness"
	"evalrun/harness/stats"
	"evalrun/reports"
)

func (e *env) compareCommand() *cli.Command {
	return &cli.Command{
		Name:      "compare",
		Usage:     "compare candidates of finished runs on the rows they have in common",
		ArgsUsage: "BASE CAND [CAND...]",
		Description: "evalrun compare runs/A:direct runs/B:cot       # RUN:CANDIDATE\n" +
			"evalrun compare runs/A runs/B                  # a run's only candidate, or its baseline\n" +
			"evalrun compare latest:direct latest:cot --strict",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "strict", Usage: "rows that are not common are an error"},
			&cli.StringFlag{Name: "margin", Usage: "the smallest `difference` that would matter (default: the baseline's run's)"},
			&cli.StringFlag{Name: "runs", Value: "runs", Usage: "the `folder` that latest looks in"},
		},
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 2, -1, "a baseline and at least one candidate, each RUN or RUN:CANDIDATE")
			if err != nil {
				return err
			}
			var sides []*side
			for _, arg := range args {
				s, err := openSide(arg, c.String("runs"))
				if err != nil {
					return err
				}
				sides = append(sides, s)
			}
			name(sides)
			o := harness.CompareOptions{Strict: c.Bool("strict"), Stats: sides[0].stats}
			if text := c.String("margin"); text != "" {
				if o.Stats.Margin, err = strconv.ParseFloat(text, 64); err != nil || !(o.Stats.Margin > 0) {
					return usagef("--margin: %q is no positive difference", text)
				}
			}
			evaluations, err := compareSides(sides, o)
			if err != nil {
				return err
			}
			report, err := reports.New(nil, evaluations, reports.Facts{Exit: reports.Exit{Code: ExitOK, Meaning: meaning[ExitOK]}, Stats: o.Stats})
			if err != nil {
				return err
			}
			return e.printReport(report, "")
		},
	}
}

// side is one of the things that are compared: a candidate in each evaluation of
// a run that has it.
type side struct {
	name     string // as reports call it
	run      string // the run's id
	stats    stats.Options
	outcomes map[string]*harness.Outcome
	order    []string // names of the evaluations
	evals    map[string]*harness.Evaluation
}

// openSide opens RUN or RUN:CANDIDATE. Without a candidate it is the run's only
// one, or its baseline.
func openSide(arg, root string) (*side, error) {
	dir, candidate := arg, ""
	for i := range arg {
		// Both halves may hold colons: the run is the first part that is there.
		if _, err := os.Stat(arg); err == nil || arg[i] != ':' {
			continue
		}
		if _, err := os.Stat(arg[:i]); err == nil || arg[:i] == "latest" {
			dir, candidate = arg[:i], arg[i+1:]
			break
		}
	}
	run, evaluations, err := openRun(dir, root)
	if err != nil {
		return nil, err
	}
	s := &side{run: run.Manifest.ID, stats: run.Manifest.Evaluations[0].Stats, outcomes: map[string]*harness.Outcome{}, evals: map[string]*harness.Evaluation{}}
	var known []string
	for _, ev := range evaluations {
		want := candidate
		if want == "" {
			want = ev.Baseline
		}
		for _, o := range ev.Candidates {
			known = append(known, o.Name)
		}
		if o := ev.Outcome(want); o != nil {
			s.outcomes[ev.Name], s.evals[ev.Name] = o, ev
			s.order = append(s.order, ev.Name)
			s.name = o.Name
		}
	}
	if len(s.order) == 0 {
		return nil, usagef("the run %s has no candidate %q%s", dir, candidate, suggestion(candidate, known))
	}
	return s, nil
}

// name calls sides by their candidates' names where these tell them apart, and
// by run and candidate where they do not.
func name(sides []*side) {
	times := map[string]int{}
	for _, s := range sides {
		times[s.name]++
	}
	for _, s := range sides {
		if times[s.name] > 1 {
			s.name = s.run + ":" + s.name
		}
	}
}

// compareSides compares the first side with each other one, evaluation by
// evaluation of the first.
func compareSides(sides []*side, o harness.CompareOptions) ([]*harness.Evaluation, error) {
	base := sides[0]
	var all []*harness.Evaluation
	for _, name := range base.order {
		before := base.renamed(name)
		from := base.evals[name]
		ev := &harness.Evaluation{
			Name: name, Metrics: from.Metrics, Lower: from.Lower, Units: from.Units, Baseline: before.Name, Repeats: from.Repeats, Rows: from.Rows,
			Candidates: []*harness.Outcome{before},
			Ledger:     harness.Ledger{Input: from.Ledger.Input, LeftOut: from.Ledger.LeftOut, Asked: from.Ledger.Asked},
		}
		ev.Ledger.Candidates = append(ev.Ledger.Candidates, base.ledger(name))
		for _, s := range sides[1:] {
			if s.outcomes[name] == nil {
				continue
			}
			after := s.renamed(name)
			ev.Candidates = append(ev.Candidates, after)
			ev.Ledger.Candidates = append(ev.Ledger.Candidates, s.ledger(name))
			comparisons, err := harness.Compare(before, after, o)
			if err != nil {
				return nil, harnessError(err)
			}
			ev.Comparisons = append(ev.Comparisons, comparisons...)
		}
		if len(ev.Comparisons) == 0 {
			continue
		}
		all = append(all, ev)
	}
	if all == nil {
		return nil, usagef("the runs have no evaluation in common: %s has %s", base.name, strings.Join(quoted(base.order), ", "))
	}
	return all, nil
}

// renamed is the outcome of an evaluation under the name it was asked for by, so
// that two runs' candidates of one name stay apart.
func (s *side) renamed(evaluation string) *harness.Outcome {
	o := *s.outcomes[evaluation]
	o.Name = s.name
	return &o
}

func (s *side) ledger(evaluation string) harness.CandidateLedger {
	for _, l := range s.evals[evaluation].Ledger.Candidates {
		if l.Candidate == s.outcomes[evaluation].Name {
			l.Candidate = s.name
			return l
		}
	}
	return harness.CandidateLedger{Candidate: s.name}
}

func quoted(names []string) []string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = fmt.Sprintf("%q", n)
	}
	return q
}
