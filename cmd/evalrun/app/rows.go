package app

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"evalrun/internal/columnar"
	"evalrun/replay"
)

var rowFormats = []string{"jsonl", "table", "json", "arrow"}

func (e *env) rowsCommand() *cli.Command {
	return &cli.Command{
		Name:      "rows",
		Usage:     "the rated calls of a program as rows, and what was left out and why",
		ArgsUsage: "RECORDS",
		Description: "evalrun rows records --program shop:route             # a JSON object a line\n" +
			"evalrun rows records --program shop:route --format table\n" +
			"evalrun rows log/ --program route --by ada --json        # {\"rows\": […], \"left_out\": {…}}\n" +
			"evalrun rows records --program shop:route --format arrow > rows.arrows",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "program", Usage: "whose calls: `MODULE:NAME`, or the name alone"},
			&cli.StringFlag{Name: "by", Usage: "only this `person`'s ratings"},
			&cli.StringFlag{Name: "signature", Usage: "only calls with this `hash` of all fields"},
			&cli.StringFlag{Name: "interface", Usage: "only calls with this `hash` of the plain fields"},
			&cli.StringFlag{Name: "file", Usage: "only calls of the program defined in this `file`"},
			&cli.StringFlag{Name: "format", Value: "jsonl", Usage: "`one` of " + strings.Join(rowFormats, ", ")},
		},
		Action: func(c *cli.Context) error {
			files, err := arguments(c, 1, -1, "a store, Parquet files, a call-log folder or a .jsonl file")
			if err != nil {
				return err
			}
			if c.String("program") == "" {
				return usagef("evalrun rows needs --program MODULE:NAME: whose rated calls")
			}
			format := c.String("format")
			if e.json {
				if c.IsSet("format") && format != "json" {
					return usagef("--json prints one JSON object; leave it out for --format %s", format)
				}
				format = "json"
			}
			write, ok := map[string]func(io.Writer, *replay.Rated) error{
				"jsonl": writeRowLines, "table": e.writeRowTable, "json": writeRowObject, "arrow": writeRowArrow,
			}[format]
			if !ok {
				return unknown("format", format, rowFormats, "")
			}
			src, err := openRecords(files)
			if err != nil {
				return err
			}
			defer src.Close()
			q := replay.Query{By: c.String("by"), Signature: c.String("signature"), Interface: c.String("interface"), File: c.String("file")}
			q.Module, q.Program = replay.ParseProgram(c.String("program"))
			rated, err := replay.Rows(c.Context, src, q)
			if err != nil {
				return refused(err)
			}
			out := bufio.NewWriter(e.Out)
			if err := write(out, rated); err != nil {
				return err
			}
			if err := out.Flush(); err != nil {
				return err
			}
			if format != "json" {
				fmt.Fprintf(e.Err, "evalrun: %d rows\n", rated.Len()) // what was left out is a warning
			}
			for _, warning := range rated.Warnings {
				e.warn(warning)
			}
			printSkipped(e.Err, src.Skipped())
			if err := rated.Empty(); err != nil {
				return e.said(exit(ExitData, err))
			}
			return nil
		},
	}
}

// printSkipped says what of the records was not read.
func printSkipped(w io.Writer, skipped []replay.Skip) {
	for _, s := range skipped {
		fmt.Fprintf(w, "evalrun: %s\n", s)
	}
}

func writeRowLines(w io.Writer, rated *replay.Rated) error {
	var b []byte
	for i := range rated.Len() {
		b = append(rated.AppendRowJSON(b[:0], i), '\n')
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

func writeRowObject(w io.Writer, rated *replay.Rated) error {
	b := []byte("{\"rows\": [")
	for i := range rated.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		b = rated.AppendRowJSON(append(b, "\n  "...), i)
		if _, err := w.Write(b); err != nil {
			return err
		}
		b = b[:0]
	}
	b = rated.AppendLeftOutJSON(append(b, "\n], \"left_out\": "...))
	_, err := w.Write(append(b, "}\n"...))
	return err
}

// cellWidth is how many characters of a value a table shows.
const cellWidth = 24

// writeRowTable shows the rows to a person: a line a row, long values cut.
func (e *env) writeRowTable(w io.Writer, rated *replay.Rated) error {
	columns := rated.Columns()
	lines := [][]string{nil}
	for _, c := range columns {
		lines[0] = append(lines[0], c.Name)
	}
	for i := range rated.Len() {
		var line []string
		for _, c := range columns {
			line = append(line, clip(rated.Cell(i, c).String(), cellWidth))
		}
		lines = append(lines, line)
	}
	widths := make([]int, len(columns))
	for _, line := range lines {
		for j, cell := range line {
			widths[j] = max(widths[j], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range lines {
		var b strings.Builder
		for j, cell := range line {
			if j > 0 {
				b.WriteString("  ")
			}
			b.WriteString(cell)
			if j < len(line)-1 {
				b.WriteString(strings.Repeat(" ", widths[j]-utf8.RuneCountInString(cell)))
			}
		}
		if _, err := io.WriteString(w, strings.TrimRight(b.String(), " ")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// clip makes a value fit in a cell: on one line, without control characters, cut.
func clip(s string, width int) string {
	// A row of a long conversation is long: no more is looked at than can be shown.
	s = s[:min(len(s), utf8.UTFMax*(width+1))]
	s = visible(strings.NewReplacer("\n", " ", "\t", " ", "\r", " ").Replace(s))
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}

// writeRowArrow writes the rows as an Arrow IPC stream, every cell as the text of
// its JSON: one column may hold values of several kinds.
func writeRowArrow(w io.Writer, rated *replay.Rated) error {
	columns := rated.Columns()
	described := make([]columnar.ArrowColumn, len(columns))
	for j, c := range columns {
		described[j] = columnar.ArrowColumn{Name: c.Name, Type: columnar.ArrowText}
		for i := range rated.Len() {
			if v := rated.Cell(i, c); !v.IsZero() && !v.IsNull() && v.Kind() != '"' {
				described[j].Type = columnar.ArrowJSON
				break
			}
		}
	}
	var rows iter.Seq2[[]any, error] = func(yield func([]any, error) bool) {
		for i := range rated.Len() {
			row := make([]any, len(columns))
			for j, c := range columns {
				v := rated.Cell(i, c)
				switch {
				case v.IsZero():
				case described[j].Type == columnar.ArrowJSON:
					row[j] = v.JSON()
				case !v.IsNull():
					row[j] = v.String()
				}
			}
			if !yield(row, nil) {
				return
			}
		}
	}
	return columnar.WriteArrow(w, described, rows)
}
