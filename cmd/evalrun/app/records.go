package app

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"evalrun/datasets"
	"evalrun/internal/columnar"
	"evalrun/replay"
)

func (e *env) importCommand() *cli.Command {
	return &cli.Command{
		Name:      "import",
		Usage:     "call logs → a store of Parquet records",
		ArgsUsage: "SRC...",
		Description: "evalrun import ~/.functai/log -o records     # a call-log folder\n" +
			"evalrun import calls.jsonl more.jsonl -o records",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Usage: "the store's `folder`; it is made, or added to"},
		},
		Action: func(c *cli.Context) error {
			sources, err := arguments(c, 1, -1, "call-log folders, .jsonl files, stores or Parquet files")
			if err != nil {
				return err
			}
			folder := c.String("out")
			if folder == "" {
				return usagef("evalrun import needs -o DIR: the store's folder")
			}
			if err := exist("source", sources); err != nil {
				return err
			}
			done, err := replay.Import(c.Context, sources, folder)
			if err != nil {
				return refused(err)
			}
			if e.json {
				err = e.printJSON(done)
			} else {
				printSkipped(e.Err, done.Skipped)
				if done.Other > 0 {
					fmt.Fprintf(e.Err, "evalrun: warning: %d records have the id of another record and differ from it: of calls the one of the highest writer counts, and the first of equal ones; to correct a call, write it with a higher \"writer\"\n", done.Other)
				}
				err = e.print(fmt.Sprintf("%d calls and %d ratings written to %s; %d records were there already\n", done.Calls, done.Ratings, folder, done.Known))
			}
			if err != nil {
				return err
			}
			if done.Calls+done.Ratings+done.Known == 0 {
				return e.said(dataf("there is no record in %s", strings.Join(sources, ", ")))
			}
			return nil
		},
	}
}

// refused gives an error of reading records the code of refused data when that
// is what it is. Anything else, such as a file that may not be read, could not be
// done.
func refused(err error) error {
	_, records := errors.AsType[*replay.DataError](err)
	_, file := errors.AsType[*columnar.Error](err)
	if records || file {
		return exit(ExitData, err)
	}
	return err
}

func (e *env) recordsCommand() *cli.Command {
	const paths = "a store, Parquet files, a call-log folder or a .jsonl file"
	return &cli.Command{
		Name:  "records",
		Usage: "look at stored records",
		Subcommands: []*cli.Command{
			{
				Name: "head", Usage: "the first records, as the log writes them", ArgsUsage: "RECORDS",
				Description: "evalrun records head records -n 3",
				Flags: []cli.Flag{
					&cli.IntFlag{Name: "number", Aliases: []string{"n"}, Value: 5, Usage: "how `many`"},
					&cli.BoolFlag{Name: "ratings", Usage: "ratings, not calls"},
				},
				Action: func(c *cli.Context) error { return e.recordsHead(c, paths) },
			},
			{
				Name: "stats", Usage: "which programs, versions, plugins, models; how many rated; from when to when", ArgsUsage: "RECORDS",
				Description: "evalrun records stats records",
				Action:      func(c *cli.Context) error { return e.recordsStats(c, paths) },
			},
			{
				Name: "validate", Usage: "what is wrong with records: exit 6 when anything is lost by it", ArgsUsage: "RECORDS",
				Description: "evalrun records validate records log/",
				Action:      func(c *cli.Context) error { return e.recordsValidate(c, paths) },
			},
			{
				Name: "schema", Usage: "the columns of Parquet records", ArgsUsage: "RECORDS",
				Description: "evalrun records schema records",
				Action:      func(c *cli.Context) error { return e.recordsSchema(c, paths) },
			},
		},
	}
}

func (e *env) recordsHead(c *cli.Context, paths string) (err error) {
	files, err := arguments(c, 1, -1, paths)
	if err != nil {
		return err
	}
	n := c.Int("number")
	if n < 1 {
		return usagef("--number is %d; give 1 or more", n)
	}
	src, err := openRecords(files)
	if err != nil {
		return err
	}
	defer src.Close()
	var lines []datasets.Value
	keep := func(line []byte) bool {
		lines = append(lines, datasets.RawValue(string(line)))
		return len(lines) < n
	}
	if c.Bool("ratings") {
		for r, err := range src.Ratings() {
			if err != nil {
				return refused(err)
			}
			if !keep(r.AppendJSON(nil)) {
				break
			}
		}
	} else {
		for r, err := range src.Calls(replay.Want{All: true}) {
			if err != nil {
				return refused(err)
			}
			if !keep(r.AppendJSON(nil)) {
				break
			}
		}
	}
	if len(lines) > 0 && e.json {
		return e.printJSON(map[string]any{"records": lines})
	}
	for _, line := range lines {
		if err := e.printRaw(line.JSON() + "\n"); err != nil {
			return err
		}
	}
	if len(lines) == 0 {
		return dataf("there is no such record in %s", strings.Join(files, ", "))
	}
	return nil
}

func (e *env) recordsStats(c *cli.Context, paths string) error {
	files, err := arguments(c, 1, -1, paths)
	if err != nil {
		return err
	}
	src, err := openRecords(files)
	if err != nil {
		return err
	}
	defer src.Close()
	s, err := replay.ReadStats(src)
	if err != nil {
		return refused(err)
	}
	if e.json {
		return e.printJSON(s)
	}
	printSkipped(e.Err, s.Skipped)
	return writeStats(e.Out, s)
}

func writeStats(w io.Writer, s *replay.Stats) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d calls, %d of them with ratings; %d ratings (%d of calls that are not here)\n", s.Calls, s.Rated, s.Ratings, s.Unknown)
	if s.First != "" {
		fmt.Fprintf(&b, "from %s to %s\n", s.First, s.Last)
	}
	fmt.Fprintf(&b, "with their whole content %d, failed %d, conversations %d, made by evaluations %d, not replayable %d\n",
		s.Whole, s.Failed, s.Conversations, s.Evaluation, s.NotReplayable)
	for _, p := range s.Programs {
		name := p.Name
		if p.Module != "" {
			name = p.Module + ":" + name
		}
		fmt.Fprintf(&b, "program %s: %d calls, rated %d, failed %d, versions %d\n", name, p.Calls, p.Rated, p.Failed, len(p.Versions))
		for _, v := range p.Versions {
			fmt.Fprintf(&b, "  version %s: %d\n", orUnknown(v.Name), v.Count)
		}
	}
	for _, list := range []struct {
		name   string
		counts []replay.Count
	}{{"model", s.Models}, {"plugin", s.Plugins}, {"verdict", s.Verdicts}, {"format", s.Formats}} {
		for _, c := range list.counts {
			fmt.Fprintf(&b, "%s %s: %d\n", list.name, orUnknown(c.Name), c.Count)
		}
	}
	_, err := io.WriteString(w, visible(b.String()))
	return err
}

func orUnknown(name string) string {
	if name == "" {
		return "(none)"
	}
	return name
}

// shownProblems is how many problems are printed; more are counted.
const shownProblems = 1000

func (e *env) recordsValidate(c *cli.Context, paths string) error {
	files, err := arguments(c, 1, -1, paths)
	if err != nil {
		return err
	}
	if err := exist("records", files); err != nil {
		return err
	}
	problems := []replay.Problem{}
	total, serious := 0, 0
	calls, ratings, err := replay.Validate(files, func(p replay.Problem) bool {
		total++
		if !p.Minor {
			serious++
		}
		if len(problems) < shownProblems {
			problems = append(problems, p)
		}
		return true
	})
	if err != nil {
		return refused(err)
	}
	if e.json {
		err = e.printJSON(map[string]any{"calls": calls, "ratings": ratings, "problems": problems, "total": total, "serious": serious})
	} else {
		for _, p := range problems {
			if err := e.print(p.String() + "\n"); err != nil {
				return err
			}
		}
		if total > len(problems) {
			err = e.print(fmt.Sprintf("… and %d more\n", total-len(problems)))
		}
		if err == nil {
			err = e.print(fmt.Sprintf("%d calls, %d ratings, %d problems (%d of them lose something)\n", calls, ratings, total, serious))
		}
	}
	switch {
	case err != nil:
		return err
	case serious > 0:
		return e.said(dataf("%d problems lose something", serious))
	case calls+ratings == 0:
		return e.said(dataf("there is no record in %s", strings.Join(files, ", ")))
	}
	return nil
}

func (e *env) recordsSchema(c *cli.Context, paths string) error {
	files, err := arguments(c, 1, -1, paths)
	if err != nil {
		return err
	}
	if err := exist("records", files); err != nil {
		return err
	}
	var schemas []replay.FileSchema
	for _, f := range files {
		of, err := replay.Schema(f)
		if err != nil {
			return refused(err)
		}
		schemas = append(schemas, of...)
	}
	if e.json {
		return e.printJSON(map[string]any{"files": schemas})
	}
	for _, s := range schemas {
		if err := e.print(fmt.Sprintf("%s: %s version %d\n", s.File, s.Schema, s.Version)); err != nil {
			return err
		}
		for _, col := range s.Columns {
			if err := e.print(fmt.Sprintf("  %-28s %s\n", col.Name, col.Type)); err != nil {
				return err
			}
		}
	}
	return nil
}
