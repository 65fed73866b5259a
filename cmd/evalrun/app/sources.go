package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/pipeline"
	"evalrun/replay"
	"evalrun/replay/conversations"
)

// rows reads the rated rows of a program and chooses among them.
func (w *wiring) rows(ctx context.Context, e *evaluationSpec, program string, q replay.Query) (datasets.Source, harness.Intake, error) {
	src, err := w.records(e.Records)
	if err != nil {
		return nil, harness.Intake{}, err
	}
	q.Module, q.Program = replay.ParseProgram(program)
	if e.Rows != nil {
		q.By = e.Rows.By
	}
	rated, err := replay.Rows(ctx, src, q)
	if err != nil {
		return nil, harness.Intake{}, exit(ExitData, fmt.Errorf("%s: %w", strings.Join(e.Records, ", "), err))
	}
	if err := rated.Empty(); err != nil {
		return nil, harness.Intake{}, exit(ExitData, fmt.Errorf("%s: %w", strings.Join(e.Records, ", "), err))
	}
	left := rated.LeftOut()
	for reason, n := range left {
		if n == 0 {
			delete(left, reason)
		}
	}
	intake := harness.Intake{Input: rated.Len() + len(rated.Left), Rated: rated.Len(), LeftOut: left, Warnings: rated.Warnings}
	for _, skip := range src.Skipped() {
		intake.Warnings = append(intake.Warnings, "of the records "+skip.String())
	}
	filter := e.Rows
	if filter.pair() != "" {
		// The limit is of pairs: see pair.
		unlimited := *filter
		unlimited.Limit, filter = 0, &unlimited
	}
	rows, err := choose(rated, filter, intake.LeftOut)
	if err != nil {
		return nil, harness.Intake{}, err
	}
	if rows.Len() == 0 {
		return nil, harness.Intake{}, dataf("%s: the filters of rows leave none of the %d rated rows of %s", w.spec.file, rated.Len(), program)
	}
	return rows, intake, nil
}

// records opens where rows come from, once a run.
func (w *wiring) records(names []string) (replay.Source, error) {
	files := make([]string, len(names))
	for i, name := range names {
		files[i] = beside(w.spec.file, name)
	}
	key := strings.Join(files, "\n")
	if s, ok := w.sources[key]; ok {
		return s, nil
	}
	s, err := openRecords(files)
	if err != nil {
		return nil, err
	}
	w.sources[key] = s
	return s, nil
}

// openRecords opens a store, Parquet files, or a call log.
func openRecords(files []string) (replay.Source, error) {
	if err := exist("records", files); err != nil {
		return nil, err
	}
	s, err := replay.Open(files...)
	if err != nil {
		return nil, refused(err)
	}
	return s, nil
}

// chosen is a source of some rows of another.
type chosen struct {
	datasets.Source
	at []int
}

func (c chosen) Len() int                       { return len(c.at) }
func (c chosen) ID(i int) string                { return c.Source.ID(c.at[i]) }
func (c chosen) At(i int) (datasets.Row, error) { return c.Source.At(c.at[i]) }

// choose applies the filters of a spec, counting each row it leaves out under
// the filter's name.
func choose(rated *replay.Rated, f *rowsSpec, leftOut map[string]int) (datasets.Source, error) {
	if f == nil {
		return rated, nil
	}
	var at []int
	for i := range rated.Len() {
		row, err := rated.At(i)
		if err != nil {
			return nil, exit(ExitData, err)
		}
		started, _ := row.Meta["started"].AsText()
		switch {
		// Records write times in one form, so their text is in order of time.
		case !f.Since.IsZero() && started < recordTime(f.Since):
			leftOut["rows.since"]++
		case !f.Until.IsZero() && started >= recordTime(f.Until):
			leftOut["rows.until"]++
		case f.Sample != "" && row.Verdict.Sample != f.Sample:
			leftOut["rows.sample"]++
		case f.Limit > 0 && len(at) == int(f.Limit):
			leftOut["rows.limit"]++
		default:
			at = append(at, i)
		}
	}
	return chosen{rated, at}, nil
}

func recordTime(w when) string { return w.UTC().Format("2006-01-02T15:04:05.000000Z") }

// pair gives each candidate the recorded answers of its own program, on the rows
// whose field has a value that every program has.
func (w *wiring) pair(ctx context.Context, e *evaluationSpec, p *harness.Plan) error {
	lanes := make([]map[string]datasets.Values, len(p.Candidates)) // of each candidate, by key
	for i, c := range e.Candidates {
		program := c.Program.s
		if program == "" {
			program = e.Program.s
		}
		rows, _, err := w.rows(ctx, e, program, replay.Query{})
		if err != nil {
			return err
		}
		lanes[i] = map[string]datasets.Values{}
		for row, err := range datasets.All(rows) {
			if err != nil {
				return exit(ExitData, err)
			}
			key, err := harness.PairKey(&row, p.Pair)
			if err != nil {
				return exit(ExitData, err)
			}
			if _, twice := lanes[i][key]; twice {
				return dataf("%s: two rows of %s have %s %s: pair by a field that tells rows apart", w.spec.file, program, p.Pair, key)
			}
			lanes[i][key] = row.Recorded
		}
		lane := lanes[i]
		p.Candidates[i].Outputs = func(row datasets.Row) datasets.Values {
			key, err := harness.PairKey(&row, p.Pair)
			if err != nil {
				return nil
			}
			return lane[key]
		}
	}
	var common []int
	for i := range p.Rows.Len() {
		row, err := p.Rows.At(i)
		if err != nil {
			return exit(ExitData, err)
		}
		key, err := harness.PairKey(&row, p.Pair)
		if err != nil {
			return exit(ExitData, err)
		}
		if slices.ContainsFunc(lanes, func(lane map[string]datasets.Values) bool { _, has := lane[key]; return !has }) {
			p.Intake.LeftOut["rows.pair"]++
			continue
		}
		if e.Rows.Limit > 0 && len(common) == int(e.Rows.Limit) {
			p.Intake.LeftOut["rows.limit"]++
			continue
		}
		common = append(common, i)
	}
	if common == nil {
		return dataf("%s: no value of %s is common to the programs of all candidates", w.spec.file, p.Pair)
	}
	p.Rows = chosen{p.Rows, common}
	return nil
}

// exist refuses paths that are not there.
func exist(what string, paths []string) error {
	for _, p := range paths {
		if _, err := os.Stat(p); err != nil {
			return usageFile(what, err)
		}
	}
	return nil
}

// entries reads what plugins had kept in the conversations of the records: those
// of every folder that has conversations.
func (w *wiring) entries(records paths) (func(*datasets.Row) (func(plugin, kind string) []pipeline.Entry, error), error) {
	var stores []pipeline.Store
	for _, path := range records {
		path = beside(w.spec.file, path)
		if info, err := os.Stat(filepath.Join(path, "conversations")); err != nil || !info.IsDir() {
			continue
		}
		store, err := conversations.Open(path)
		if err != nil {
			return nil, err
		}
		stores = append(stores, store)
	}
	if stores == nil {
		return nil, nil
	}
	return func(row *datasets.Row) (func(plugin, kind string) []pipeline.Entry, error) {
		if pipeline.CheckConversationID(row.Context.Conversation) != nil {
			return nil, nil // no file can be called so
		}
		for _, s := range stores {
			read, err := pipeline.RecordedEntries(context.Background(), s, row.Context.Conversation, row.ID)
			if read != nil || err != nil {
				return read, err
			}
		}
		return nil, nil
	}, nil
}
