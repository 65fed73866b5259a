package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"evalrun/harness"
	"evalrun/reports"
)

func (e *env) reportCommand() *cli.Command {
	return &cli.Command{
		Name:      "report",
		Usage:     "write reports of a finished run again, from its stored results",
		ArgsUsage: "RUN",
		Description: "evalrun report runs/20260102T030405Z_bbh_1f2e --format json,md,html,csv,junit\n" +
			"evalrun report latest                     # of the newest run under runs/",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Value: "json,md,html", Usage: "`names` of formats, joined by commas: " + strings.Join(formatNames(), ", ")},
			&cli.StringFlag{Name: "runs", Value: "runs", Usage: "the `folder` that latest looks in"},
		},
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, 1, "one run folder")
			if err != nil {
				return err
			}
			run, evaluations, err := openRun(args[0], c.String("runs"))
			if err != nil {
				return err
			}
			var formats []text
			for name := range strings.SplitSeq(c.String("format"), ",") {
				name = strings.TrimSpace(name)
				if _, err := reports.FindFormat(name); err != nil {
					return usagef("--format: %v", err)
				}
				formats = append(formats, text{s: name})
			}
			facts, err := reports.StoredFacts(run.Dir)
			if err != nil {
				return exit(ExitData, err)
			}
			report, err := e.writeReports(run, evaluations, facts, formats)
			if err != nil {
				return err
			}
			return e.printReport(report, run.Dir)
		},
	}
}

// formatNames are the formats a report can be written in.
func formatNames() []string {
	var names []string
	for _, f := range reports.Formats() {
		names = append(names, f.Name)
	}
	return names
}

// checkFormats refuses the name of a format there is not.
func checkFormats(formats []text) error {
	for _, f := range formats {
		if _, err := reports.FindFormat(f.s); err != nil {
			return at(f, err)
		}
	}
	return nil
}

// openRun opens a finished run by its folder, or the newest one as "latest".
func openRun(name, root string) (*harness.Run, []*harness.Evaluation, error) {
	run, err := findRun(name, root)
	if err != nil {
		return nil, nil, err
	}
	evaluations, err := run.Evaluations()
	if err != nil {
		return nil, nil, exit(ExitData, fmt.Errorf("%s: %w", run.Dir, err))
	}
	return run, evaluations, nil
}

// findRun opens a run by its folder, or the newest one as "latest".
func findRun(name, root string) (*harness.Run, error) {
	dir := name
	if name == "latest" {
		entries, err := os.ReadDir(root)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		// Their names begin with the time, so the last one is the newest.
		for _, entry := range entries {
			if entry.IsDir() {
				dir = filepath.Join(root, entry.Name())
			}
		}
		if dir == name {
			return nil, usagef("there is no run under %s", root)
		}
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, usageFile("run", err)
	}
	run, err := harness.OpenRun(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("%s is no run: %v", dir, err)
	}
	return run, exit(ExitData, err)
}
