package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/urfave/cli/v2"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/internal/canon"
	"evalrun/reports"
)

func (e *env) runCommand() *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "the main job: ask candidates about rated rows, score, compare, report",
		ArgsUsage: "SPEC",
		Description: "evalrun run evalrun.yaml                 # writes a folder under runs/ and prints the verdict\n" +
			"evalrun run evalrun.yaml --dry-run       # checks everything and prints the plan; asks nothing\n" +
			"evalrun run evalrun.yaml --max-errors 5% # exit 4 when more rows fail\n" +
			"evalrun run evalrun.yaml                 # again: goes on where it was interrupted",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "runs", Value: "runs", Usage: "the `folder` that runs are written under"},
			&cli.BoolFlag{Name: "fresh", Usage: "start over, also when a run of the same question is there"},
			e.noExecFlag(),
			&cli.BoolFlag{Name: "dry-run", Usage: "check everything and print the plan; ask nothing, write nothing"},
			&cli.StringFlag{Name: "max-errors", Usage: "exit 4 when more than `N or P%` of a candidate's rows fail"},
			&cli.IntFlag{Name: "concurrency", Usage: "`rows` asked at once (default: evalrun chooses)"},
		},
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, 1, "one spec file")
			if err != nil {
				return err
			}
			s, err := loadSpec(args[0], os.LookupEnv)
			if err != nil {
				return err
			}
			if text := c.String("max-errors"); text != "" {
				if s.Limits.MaxErrors, err = parseThreshold(text); err != nil {
					return usagef("--max-errors: %v", err)
				}
			}
			if n := c.Int("concurrency"); n < 0 || n > mostWorkers {
				return usagef("--concurrency: %d is not from 1 to %d", n, mostWorkers)
			} else if n > 0 {
				s.Limits.Concurrency = workers(n)
			}
			return e.run(c.Context, s, c.String("runs"), c.Bool("fresh"), c.Bool("dry-run"))
		},
	}
}

// run is the main job.
func (e *env) run(ctx context.Context, s *spec, root string, fresh, dry bool) (err error) {
	w := e.wire(s)
	defer func() { err = errors.Join(err, w.close()) }()
	plans, err := w.plans(ctx)
	if err != nil {
		return err
	}
	if dry {
		return e.printPlan(plans)
	}
	info := e.runInfo(s)
	info.Fresh = fresh
	run, err := harness.StartRun(root, info, plans...)
	if err != nil {
		return harnessError(fmt.Errorf("the run's folder: %w", err))
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	if run.Again {
		// The reports of before are of other results than those to come.
		for _, f := range reports.Formats() {
			if err := os.Remove(filepath.Join(run.Dir, f.File)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		fmt.Fprintf(e.Err, "evalrun: the same question as %s: going on there (--fresh starts over)\n", run.Dir)
	}
	for _, p := range plans {
		for _, w := range p.Warnings() {
			e.warn(title(p.Plan().Name, w))
		}
	}
	var progress harness.Progress
	done := e.showProgress(ctx, &progress)
	evaluations, runErr := run.Evaluate(ctx, harness.Options{
		Executor: harness.Local{Workers: int(s.Limits.Concurrency)},
		Stop:     e.stop,
		Progress: &progress,
	})
	done()
	runErr = harnessError(runErr)
	if runErr == nil {
		runErr = tooManyFailed(s.Limits.MaxErrors, evaluations)
	}
	if code := exitCode(runErr); code != ExitOK && code != ExitInterrupted && code != ExitIncomplete && len(evaluations) == 0 {
		return fmt.Errorf("%w; what was finished is in %s", runErr, run.Dir)
	}
	report, err := e.writeReports(run, evaluations, s.facts(exitCode(runErr)), s.Report.Formats)
	if err != nil {
		return errors.Join(runErr, err)
	}
	if err := e.printReport(report, run.Dir); err != nil {
		return errors.Join(runErr, err)
	}
	if runErr != nil {
		return e.said(runErr)
	}
	return nil
}

// runInfo is what only the command knows of a run.
func (e *env) runInfo(s *spec) harness.RunInfo {
	info := harness.RunInfo{
		Name: s.Name, Seed: s.seed(), Started: e.now().UTC(), Spec: canon.Hash(s.data), SpecFile: absolute(s.file), Tools: "recorded",
		Versions: map[string]string{"evalrun": Version(), "go": runtime.Version()},
		Host:     map[string]string{"os": runtime.GOOS, "arch": runtime.GOARCH},
	}
	for _, ev := range s.Evaluations {
		for _, r := range ev.Records {
			info.Records = append(info.Records, beside(s.file, r))
		}
	}
	return info
}

// seed is the run's: the one at the top, or of the first evaluation that has one.
func (s *spec) seed() uint64 {
	if s.Seed != nil {
		return *s.Seed
	}
	for _, e := range s.Evaluations {
		if e.Seed != nil {
			return *e.Seed
		}
	}
	return 0
}

// tooManyFailed is the error of a run of which more rows failed than allowed.
func tooManyFailed(most threshold, evaluations []*harness.Evaluation) error {
	for _, ev := range evaluations {
		for _, c := range ev.Candidates {
			if most.exceeded(c.Failed, c.N) {
				return exit(ExitIncomplete, fmt.Errorf("%s: %d of %d rows failed, more than max_errors allows", title(ev.Name, c.Name), c.Failed, c.N))
			}
		}
	}
	return nil
}

func title(evaluation, candidate string) string {
	if evaluation == "" {
		return candidate
	}
	return evaluation + "/" + candidate
}

// writeReports writes a finished run's reports into its folder.
func (e *env) writeReports(run *harness.Run, evaluations []*harness.Evaluation, facts reports.Facts, formats []text) (*reports.Report, error) {
	report, err := reports.New(run, evaluations, facts)
	if err != nil {
		return nil, err
	}
	names := texts(formats)
	if len(names) == 0 {
		names = []string{"json", "md", "html"}
	}
	_, err = reports.Write(run.Dir, report, names)
	return report, err
}

// printReport prints the report, and where to go on.
func (e *env) printReport(report *reports.Report, dir string) error {
	if e.json {
		format, err := reports.FindFormat("json")
		if err != nil {
			return err
		}
		return format.Write(e.Out, report)
	}
	width, isTerminal := terminal(e.Out)
	if !isTerminal {
		width = 100
	}
	if err := reports.Text(e.Out, report, width, isTerminal && os.Getenv("NO_COLOR") == ""); err != nil {
		return err
	}
	if dir == "" {
		return nil
	}
	see := ""
	if page := filepath.Join(dir, "report.html"); exist("page", []string{page}) == nil {
		see = "; open " + page + " to see the rows that changed"
	}
	fmt.Fprintf(e.Err, "evalrun: the run is in %s%s\n", dir, see)
	return nil
}

// printPlan prints what a run would ask.
func (e *env) printPlan(plans []*harness.Checked) error {
	type candidate struct {
		Name    string `json:"name"`
		Model   string `json:"model,omitzero"`
		Version string `json:"program_version,omitzero"`
		Calls   int    `json:"calls"`
	}
	type evaluation struct {
		Name       string         `json:"name"`
		Rows       int            `json:"rows"`
		LeftOut    map[string]int `json:"left_out"`
		Repeats    int            `json:"repeats"`
		Candidates []candidate    `json:"candidates"`
		Baseline   string         `json:"baseline"`
		Metrics    []string       `json:"metrics"`
	}
	out := []evaluation{}
	calls := 0
	for _, checked := range plans {
		p, rows := checked.Plan(), checked.Rows()
		repeats := max(1, p.Repeats)
		ev := evaluation{Name: p.Name, Rows: rows.Asked, LeftOut: rows.LeftOut, Repeats: repeats, Baseline: p.Baseline}
		if ev.Baseline == "" {
			ev.Baseline = p.Candidates[0].Name
		}
		for _, m := range p.Metrics {
			ev.Metrics = append(ev.Metrics, m.Name())
		}
		for _, c := range p.Candidates {
			cand := candidate{Name: c.Name, Model: c.Model.Name}
			if c.Program != nil {
				cand.Version = c.Program.Version()
			}
			if !c.Recorded {
				cand.Calls = rows.Asked * repeats
			}
			calls += cand.Calls
			ev.Candidates = append(ev.Candidates, cand)
		}
		out = append(out, ev)
	}
	if e.json {
		return e.printJSON(map[string]any{"calls": calls, "evaluations": out})
	}
	for _, ev := range out {
		name := ""
		if ev.Name != "" {
			name = ev.Name + ": "
		}
		left := ""
		for _, reason := range sortedKeys(ev.LeftOut) {
			left += fmt.Sprintf(", %d left out (%s)", ev.LeftOut[reason], reason)
		}
		if err := e.print(fmt.Sprintf("%s%d rows%s; baseline %s; metrics %s\n", name, ev.Rows, left, ev.Baseline, strings.Join(ev.Metrics, ", "))); err != nil {
			return err
		}
		for _, c := range ev.Candidates {
			what := fmt.Sprintf("%d calls of %s", c.Calls, c.Model)
			if c.Model == "" {
				what = "recorded answers, no call"
			}
			if err := e.print(fmt.Sprintf("  %s: %s\n", c.Name, what)); err != nil {
				return err
			}
		}
	}
	return e.print(fmt.Sprintf("%d calls in all; nothing was asked or written\n", calls))
}

// facts are what a run's report says beyond its results.
func (s *spec) facts(code int) reports.Facts {
	limits := datasets.Values{}
	if n := s.Limits.Concurrency; n > 0 {
		limits["concurrency"] = datasets.Int(int64(n))
	}
	if d := s.Limits.Timeout; d > 0 {
		limits["timeout"] = datasets.Text(d.String())
	}
	return reports.Facts{Exit: reports.Exit{Code: code, Meaning: meaning[code]}, Limits: limits}
}
