package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/urfave/cli/v2"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/internal/canon"
	"evalrun/pipeline/provider"
	"evalrun/replay/cache"
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
			"evalrun run evalrun.yaml                 # again: goes on where it was interrupted\n" +
			"evalrun run evalrun.yaml --retry-failed unreadable   # again, and asks anew what failed so\n" +
			"evalrun run evalrun.yaml --row ID        # asks one row, prints answers and scores, writes nothing\n" +
			"evalrun run evalrun.yaml --row ID --show-request     # what would be sent, beside what was recorded",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "runs", Value: "runs", Usage: "the `folder` that runs are written under"},
			&cli.BoolFlag{Name: "fresh", Usage: "start over, also when a run of the same question is there"},
			&cli.BoolFlag{Name: "accept-damaged-journal", Usage: "go on with a run whose journal is damaged: what is lost is asked again"},
			e.noExecFlag(),
			&cli.BoolFlag{Name: "dry-run", Usage: "check everything and print the plan; ask nothing, write nothing"},
			&cli.StringFlag{Name: "cache", Usage: "use the reply cache: `off|read|write|rw` (default: as the spec says, else off)"},
			&cli.StringFlag{Name: "max-errors", Usage: "exit 4 when more than `N or P%` of a candidate's rows fail"},
			&cli.StringSliceFlag{Name: "retry-failed", Usage: "ask anew the answers that failed under these `CLASS[,CLASS]`, or all"},
			&cli.StringFlag{Name: "row", Usage: "ask about the row of this `ID` alone, outside of any run"},
			&cli.StringFlag{Name: "candidate", Usage: "with --row: only this `candidate`"},
			&cli.BoolFlag{Name: "show-request", Usage: "with --row: show what would be sent, and ask nothing"},
			&cli.IntFlag{Name: "max-retries", Value: -1, Usage: "further `tries` of a request that a service failed (default: as the spec says, or 6)"},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask before much money is spent"},
			&cli.BoolFlag{Name: "allow-unpriced", Usage: "run with a budget of money although the price of a model is not known"},
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
			if c.IsSet("cache") {
				mode, err := cache.ParseMode(c.String("cache"))
				if err != nil {
					return usagef("--cache: %v", err)
				}
				s.Cache = cacheMode(mode)
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
			if n := c.Int("max-retries"); c.IsSet("max-retries") {
				if n < 0 {
					return usagef("--max-retries: %d is less than 0", n)
				}
				s.Limits.MaxRetries = &n
			}
			if c.String("row") != "" {
				if c.Bool("fresh") || c.Bool("dry-run") || c.IsSet("retry-failed") {
					return usagef("--row asks one row outside of any run: leave --fresh, --dry-run and --retry-failed out")
				}
				return e.oneRow(c.Context, s, oneRow{c.String("row"), c.String("candidate"), c.Bool("show-request")})
			}
			if c.IsSet("candidate") || c.Bool("show-request") {
				return usagef("--candidate and --show-request are about one row: name it with --row ID")
			}
			retry := splitList(c.StringSlice("retry-failed"))
			if c.IsSet("retry-failed") && len(retry) == 0 {
				return usagef("--retry-failed names no class of failures: name one, or all")
			}
			if err := harness.CheckClasses(retry...); err != nil {
				return exit(ExitUsage, fmt.Errorf("--retry-failed: %w", err))
			}
			if len(retry) > 0 && c.Bool("fresh") {
				return usagef("--retry-failed goes on with a run, --fresh starts over: leave one of the two out")
			}
			return e.run(c.Context, s, runFlags{c.String("runs"), c.Bool("fresh"), c.Bool("dry-run"), retry, c.Bool("yes"), c.Bool("allow-unpriced"), c.Bool("accept-damaged-journal")})
		},
	}
}

// runFlags are flags that say how a run is made.
type runFlags struct {
	root       string   // the folder of runs
	fresh, dry bool     // start over; ask nothing
	retry      []string // classes of failures to ask anew
	yes        bool     // ask nobody before money is spent
	unpriced   bool     // a budget of money may have models without a price
	damaged    bool     // a damaged journal is gone on with
}

// splitList reads a list whose items may be separated by commas.
func splitList(items []string) []string {
	var list []string
	for _, item := range items {
		for part := range strings.SplitSeq(item, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
	}
	return list
}

// run is the main job.
func (e *env) run(ctx context.Context, s *spec, flags runFlags) (err error) {
	w, err := e.wire(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	w.models.cache = &replyCache{mode: cache.Mode(s.Cache), dir: s.cacheDir(flags.root), warn: e.warnOnce()}
	w.models.batch = &provider.BatchRun{Anew: len(flags.retry) > 0}
	plans, err := w.plans(ctx)
	if err != nil {
		return err
	}
	info := e.runInfo(s)
	info.Tools = w.tools.String()
	info.Fresh = flags.fresh
	if flags.damaged && !flags.dry {
		if err := e.mendJournal(flags.root, info, plans); err != nil {
			return err
		}
	}
	estimate, err := w.foresee(ctx, flags.root, info, plans)
	if err != nil {
		return err
	}
	if flags.dry {
		return e.printPlan(s, plans, estimate)
	}
	if err := e.affordable(s, estimate, flags); err != nil {
		return err
	}
	run, err := harness.StartRun(flags.root, info, plans...)
	if err != nil {
		return harnessError(fmt.Errorf("the run's folder: %w", err))
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	w.models.batch.ID = run.Manifest.ID
	if run.Again {
		// The reports of before are of other results than those to come.
		for _, f := range reports.Formats() {
			if err := os.Remove(filepath.Join(run.Dir, f.File)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		e.notice("the same question as %s: going on there (--fresh starts over)", run.Dir)
		if err := e.retryFailed(run, flags.retry); err != nil {
			return err
		}
	} else if len(flags.retry) > 0 {
		e.warn("--retry-failed: there is no earlier run of the same question, so nothing had failed")
	}
	e.sayChanges(run)
	var told []string
	for _, p := range plans {
		for _, w := range p.Warnings() {
			e.warn(title(p.Plan().Name, w))
		}
		if e.logs.tells(slog.LevelWarn) {
			told = append(told, p.Warnings()...)
		}
	}
	evaluations, runErr := w.carryOut(ctx, run)
	runErr = harnessError(runErr)
	if failed := tooManyFailed(s.Limits.MaxErrors, evaluations); failed != nil && (runErr == nil || errors.Is(runErr, harness.ErrTooMany)) {
		runErr = failed
	}
	if runErr == nil {
		runErr = lostToOutage(w.models.givenUp(), evaluations)
	}
	runErr = interrupted(runErr, evaluations)
	if code := exitCode(runErr); code != ExitOK && code != ExitInterrupted && code != ExitIncomplete && len(evaluations) == 0 {
		return fmt.Errorf("%w; what was finished is in %s", runErr, run.Dir)
	}
	facts := s.facts(exitCode(runErr))
	facts.InDoubt = run.InDoubt
	report, err := e.writeReports(run, evaluations, facts, s.Report.Formats)
	if err != nil {
		return errors.Join(runErr, err)
	}
	report.Told(told)
	if err := e.printReport(report, run.Dir); err != nil {
		return errors.Join(runErr, err)
	}
	if runErr != nil {
		return e.said(runErr)
	}
	return nil
}

// mendJournal leaves out what is damaged of the journal of the run to go on with.
func (e *env) mendJournal(root string, info harness.RunInfo, plans []*harness.Checked) error {
	dir, lost, err := harness.MendJournal(root, info, plans...)
	if err != nil {
		return harnessError(err)
	}
	if lost > 0 {
		e.warn(fmt.Sprintf("%d bytes of the journal of %s cannot be read, and are left out: what they held is asked again; the damaged files are kept beside it", lost, dir))
	}
	return nil
}

// retryFailed has answers that failed before asked anew.
func (e *env) retryFailed(run *harness.Run, classes []string) error {
	if len(classes) == 0 {
		return nil
	}
	n, err := run.RetryFailed(classes...)
	if err != nil {
		return harnessError(err)
	}
	e.notice("asking anew %d answers that failed (%s)", n, strings.Join(classes, ", "))
	return nil
}

// runInfo is what only the command knows of a run.
func (e *env) runInfo(s *spec) harness.RunInfo {
	info := harness.RunInfo{
		Name: s.Name, Seed: s.seed(), Started: e.now().UTC(), Spec: canon.Hash(s.data), SpecFile: absolute(s.file),
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

// lostToOutage is the error of a run that lost rows because services were given up.
func lostToOutage(services []string, evaluations []*harness.Evaluation) error {
	lost := 0
	for _, ev := range evaluations {
		for _, c := range ev.Candidates {
			lost += c.Lost()
		}
	}
	if lost == 0 || len(services) == 0 {
		return nil
	}
	return exit(ExitCannot, fmt.Errorf("the service of %s was given up, and %s lost: the same command asks those again",
		strings.Join(services, ", "), plural(lost, "of the candidates' rows was", "of the candidates' rows were")))
}

// interrupted says of a run that was interrupted what is left.
func interrupted(err error, evaluations []*harness.Evaluation) error {
	if err == nil || err.Error() != harness.ErrStopped.Error() && err.Error() != context.Canceled.Error() {
		return err // another error says more
	}
	left := 0
	for _, ev := range evaluations {
		for _, c := range ev.Candidates {
			left += c.Unfinished
		}
	}
	return exit(ExitInterrupted, fmt.Errorf("interrupted: %s not finished; the same command goes on", plural(left, "of the candidates' rows is", "of the candidates' rows are")))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func title(evaluation, candidate string) string {
	if evaluation == "" {
		return candidate
	}
	return evaluation + "/" + candidate
}

// standardFormats are what a run writes when its spec does not say.
var standardFormats = []string{"json", "md", "html"}

// writeReports writes a finished run's reports into its folder.
func (e *env) writeReports(run *harness.Run, evaluations []*harness.Evaluation, facts reports.Facts, formats []text) (*reports.Report, error) {
	report, err := reports.New(run, evaluations, facts)
	if err != nil {
		return nil, err
	}
	names := texts(formats)
	if len(names) == 0 {
		names = standardFormats
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
	width, known := columns(e.Out)
	if !known {
		width = 100
	}
	_, isTerminal := terminal(e.Out)
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
	e.notice("the run is in %s%s", dir, see)
	return nil
}

// printPlan prints what a run would ask.
func (e *env) printPlan(s *spec, plans []*harness.Checked, foreseen *estimate) error {
	type candidate struct {
		Name    string   `json:"name"`
		Model   string   `json:"model,omitzero"`
		Version string   `json:"program_version,omitzero"`
		Calls   int      `json:"calls"`
		Plugins []string `json:"plugins,omitzero"`
		Tools   []string `json:"tools,omitzero"`
	}
	type judge struct {
		Metric string `json:"metric"`
		Model  string `json:"model"`
		Calls  int    `json:"calls"` // at most
	}
	type evaluation struct {
		Name       string            `json:"name"`
		Rows       int               `json:"rows"`
		LeftOut    map[string]int    `json:"left_out"`
		Repeats    int               `json:"repeats"`
		Candidates []candidate       `json:"candidates"`
		Baseline   string            `json:"baseline"`
		Metrics    []string          `json:"metrics"`
		Judges     []judge           `json:"judges,omitempty"`
		Compare    string            `json:"compare,omitzero"`
		Fidelity   *harness.Fidelity `json:"fidelity,omitzero"`
	}
	out := []evaluation{}
	calls, judging := 0, 0
	for _, checked := range plans {
		p, rows := checked.Plan(), checked.Rows()
		repeats := max(1, p.Repeats)
		ev := evaluation{Name: p.Name, Rows: rows.Asked, LeftOut: rows.LeftOut, Repeats: repeats, Baseline: p.Baseline}
		ev.Compare, ev.Fidelity = p.Compare, checked.Fidelity()
		for _, w := range checked.Warnings() {
			e.warn(title(p.Name, w))
		}
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
				cand.Plugins, cand.Tools = around(&c)
			}
			calls += cand.Calls
			ev.Candidates = append(ev.Candidates, cand)
		}
		for _, j := range checked.JudgeCalls() {
			ev.Judges = append(ev.Judges, judge{j.Metric, j.Model.Name, j.Calls})
			judging += j.Calls
		}
		out = append(out, ev)
	}
	if e.json {
		plan := map[string]any{"calls": calls, "judge_calls": judging, "evaluations": out}
		if foreseen != nil {
			plan["estimate"] = foreseen
		}
		return e.printJSON(plan)
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
			if c.Plugins != nil {
				what += "; plugins " + strings.Join(c.Plugins, ", ")
			}
			if c.Tools != nil {
				what += "; tools " + strings.Join(c.Tools, ", ")
			}
			if err := e.print(fmt.Sprintf("  %s: %s\n", c.Name, what)); err != nil {
				return err
			}
		}
		for _, j := range ev.Judges {
			if err := e.print(fmt.Sprintf("  judge %s: at most %d calls of %s\n", j.Metric, j.Calls, j.Model)); err != nil {
				return err
			}
		}
		if text := reports.Fidelity(ev.Fidelity); text != "" {
			if err := e.print("  " + text + "\n"); err != nil {
				return err
			}
		}
	}
	if foreseen != nil {
		if err := e.print("to ask: " + foreseen.words(s) + "\n"); err != nil {
			return err
		}
		for _, caution := range foreseen.cautions(s) {
			e.warn(caution)
		}
	}
	of := ""
	if judging > 0 {
		of = fmt.Sprintf(", and at most %d of judges", judging)
	}
	return e.print(fmt.Sprintf("%d calls in all%s; nothing was asked or written\n", calls, of))
}

// around names the plugins around a candidate, in the order they run, and the tools
// of its program.
func around(c *harness.Candidate) (plugins, tools []string) {
	for _, p := range c.Plugins {
		plugins = append(plugins, p.Name+" "+p.Version)
	}
	for _, t := range c.Program.Tools() {
		tools = append(tools, t.Name)
	}
	return plugins, tools
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
	if d := s.Limits.PluginTimeout; d > 0 {
		limits["plugin_timeout"] = datasets.Text(d.String())
	}
	if n := s.Limits.MaxSteps; n > 0 {
		limits["max_steps"] = datasets.Int(int64(n))
	}
	return reports.Facts{Exit: reports.Exit{Code: code, Meaning: meaning[code]}, Limits: limits}
}
