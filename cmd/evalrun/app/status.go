package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"evalrun/harness"
	"evalrun/replay/cache"
	"evalrun/reports"
)

func (e *env) statusCommand() *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "say what of a run is current and what is stale, and what running again would ask",
		ArgsUsage: "RUN [SPEC]",
		Description: "evalrun status latest                      # against the spec file that the run was made of\n" +
			"evalrun status runs/20260102T030405Z_bbh_1f2e other.yaml",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "runs", Value: "runs", Usage: "the `folder` that latest looks in"},
			e.noExecFlag(),
		},
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, 2, "a run folder, and a spec file if it is another than the run's")
			if err != nil {
				return err
			}
			run, err := findRun(args[0], c.String("runs"))
			if err != nil {
				return err
			}
			file := run.Manifest.SpecFile
			if len(args) == 2 {
				file = args[1]
			}
			s, err := loadSpec(file, os.LookupEnv)
			if err != nil {
				return err
			}
			return e.status(c.Context, run, s)
		},
	}
}

// runStatus is what the command prints.
type runStatus struct {
	Run   string          `json:"run"`
	Spec  string          `json:"spec"`
	Parts []harness.Part  `json:"parts"`
	Again string          `json:"again,omitzero"` // the run that running again would go on with; none: a new one
	Calls int             `json:"calls"`          // that it would ask
	ToAsk []harness.ToAsk `json:"to_ask"`
}

func (e *env) status(ctx context.Context, run *harness.Run, s *spec) (err error) {
	w, err := e.wire(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	w.models.cache = &replyCache{mode: cache.Mode(s.Cache), dir: s.cacheDir(filepath.Dir(run.Dir)), warn: e.warnOnce()}
	plans, err := w.plans(ctx)
	if err != nil {
		return err
	}
	info := e.runInfo(s)
	info.Tools = w.tools.String()
	next, err := harness.Foresee(filepath.Dir(run.Dir), info, plans...)
	if err != nil {
		return harnessError(err)
	}
	st := runStatus{Run: run.Dir, Spec: s.file, Parts: run.Manifest.Compare(&next.Manifest)}
	if next.Again {
		st.Again = next.Dir
	}
	results, err := resultsPart(run.Dir)
	if err != nil {
		return err
	}
	st.Parts = append(st.Parts, results)
	written, err := reportParts(run.Dir, texts(s.Report.Formats))
	if err != nil {
		return err
	}
	st.Parts = append(st.Parts, written...)
	if st.ToAsk, err = next.ToAsk(ctx); err != nil {
		return harnessError(err)
	}
	for _, c := range st.ToAsk {
		st.Calls += c.Calls
	}
	if e.json {
		return e.printJSON(st)
	}
	return e.printStatus(&st)
}

func (e *env) printStatus(st *runStatus) error {
	for _, p := range st.Parts {
		if err := e.print(e.wrapped(partLine(p) + "\n")); err != nil {
			return err
		}
	}
	where := "in a run of its own"
	if st.Again != "" {
		where = "going on in " + st.Again
	}
	if err := e.print(fmt.Sprintf("running again would ask %d calls, %s\n", st.Calls, where)); err != nil {
		return err
	}
	for _, c := range st.ToAsk {
		if err := e.print(fmt.Sprintf("  %s: %d of %d calls\n", c.Candidate, c.Calls, c.Of)); err != nil {
			return err
		}
	}
	return nil
}

func partLine(p harness.Part) string {
	line := p.Part
	if p.Name != "" {
		line += " " + p.Name
	}
	line += ": " + p.State
	if p.Why != "" {
		line += " (" + p.Why + ")"
	}
	return line
}

// resultsPart says whether the run came to results.
func resultsPart(dir string) (harness.Part, error) {
	_, err := os.Stat(filepath.Join(dir, harness.ResultsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return harness.Part{Part: "results", State: harness.Gone, Why: "the run was cut off before it could write them"}, nil
	}
	return harness.Part{Part: "results", State: harness.Current}, err
}

// reportParts say of the run's reports whether they are of its results.
func reportParts(dir string, wanted []string) ([]harness.Part, error) {
	if len(wanted) == 0 {
		wanted = standardFormats
	}
	results, err := os.Stat(filepath.Join(dir, harness.ResultsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var list []harness.Part
	for _, f := range reports.Formats() {
		p := harness.Part{Part: "report", Name: f.File, State: harness.Current}
		switch written, err := os.Stat(filepath.Join(dir, f.File)); {
		case errors.Is(err, fs.ErrNotExist):
			if !slices.Contains(wanted, f.Name) {
				continue
			}
			p.State, p.Why = harness.Gone, "it was not written: evalrun report writes it"
		case err != nil:
			return nil, err
		case written.ModTime().Before(results.ModTime()):
			p.State, p.Why = harness.Stale, "the results are newer"
		}
		list = append(list, p)
	}
	return list, nil
}

// sayChanges tells what is not as it was in the newest run of the same name, and
// whose answers are taken from runs before.
func (e *env) sayChanges(run *harness.Run) {
	if run.Before != nil {
		for _, p := range run.Before.Compare(&run.Manifest) {
			if p.State != harness.Current && p.State != harness.Unsure && p.Part != "spec" { // what of it matters has a part of its own
				e.notice("since %s: %s", run.Before.ID, partLine(p))
			}
		}
	}
	if run.Again {
		return
	}
	for _, t := range run.Reuse() {
		e.notice("%s did not change since %s: its answers to the same rows are taken from there (--fresh asks anew)", title(t.Evaluation, t.Candidate), t.Run)
	}
}
