package replay

import (
	"fmt"
	"slices"

	"evalrun/internal/columnar"
)

// callsFile is a Parquet file of calls.
type callsFile struct {
	file   *columnar.File
	absent []string // keys whose columns the file is too old to have, of those whose NULL is null
}

func newCallsFile(f *columnar.File) *callsFile {
	c := &callsFile{file: f}
	columns := [...]string{"parent", "program_name", "outputs", "error_type", "model", "usage", "confidence", "conversation_parent"}
	for i, name := range keySetNames {
		if !f.Has(columns[i]) {
			c.absent = append(c.absent, name)
		}
	}
	return c
}

// ratingsFile is a Parquet file of ratings.
type ratingsFile struct{ file *columnar.File }

// recordAt turns a row into a record; the error names the file and the row.
func (c *callsFile) recordAt(row *callRow, nr int64) (*Record, error) {
	var f fromRow
	r := f.record(row)
	if c.absent != nil {
		r.Absent = append(r.Absent, c.absent...)
	}
	return r, rowError(c.file, nr, f.err)
}

func rowError(f *columnar.File, nr int64, err error) error {
	if err == nil {
		return nil
	}
	return refusedf("%s: row %d: %v; restore the file from a copy, or import its source again", f.Path(), nr, err)
}

// each passes every call on.
func (c *callsFile) each(take func(nr int64, call *Record, rating *Rating) bool, _ func(int64, error)) error {
	nr := int64(0)
	for row, err := range columnar.All[callRow](c.file) {
		if err != nil {
			return err
		}
		r, err := c.recordAt(&row, nr)
		if err != nil {
			return err
		}
		if !take(nr, r, nil) {
			return nil
		}
		nr++
	}
	return nil
}

func (c *callsFile) ratings(func(*Rating) bool, func(int64, error)) error { return nil }

// callKeyRow are the columns that say which of several records counts.
type callKeyRow struct {
	ID     string `parquet:"id"`
	Writer int64  `parquet:"writer,optional"`
}

func (k *callKeyRow) place(at int64) place {
	return place{at: at, id: k.ID, writer: max(k.Writer, 0)}
}

// sawKeyRow are the columns that say whom a call saw as much as.
type sawKeyRow struct {
	Saw []struct {
		SawOf string `parquet:"saw_of,optional"`
	} `parquet:"saw,list,optional"`
}

// following finds the rows of the calls that saw all that another call saw.
func (c *callsFile) following() (rows []int64, err error) {
	at := int64(0)
	for k, err := range columnar.All[sawKeyRow](c.file) {
		if err != nil {
			return nil, err
		}
		for _, s := range k.Saw {
			if s.SawOf != "" {
				rows = append(rows, at)
				break
			}
		}
		at++
	}
	return rows, nil
}

// locate finds the calls that are wanted, by the indexes of three columns; those
// that follow others by reading one column.
func (c *callsFile) locate(w *Want, found func(place)) error {
	if w.All {
		at := int64(0)
		for k, err := range columnar.All[callKeyRow](c.file) {
			if err != nil {
				return err
			}
			found(k.place(at))
			at++
		}
		return nil
	}
	var rows []int64
	for _, by := range []struct {
		column string
		keys   map[string]bool
	}{{"id", w.IDs}, {"id", w.Roots}, {"root", w.Roots}, {"conversation_id", w.Conversations}} {
		if len(by.keys) == 0 {
			continue
		}
		hits, err := c.file.Find(by.column, by.keys)
		if err != nil {
			return err
		}
		for _, h := range hits {
			rows = append(rows, h.Row)
		}
	}
	if w.Following {
		more, err := c.following()
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	slices.Sort(rows)
	rows = slices.Compact(rows)
	i := 0
	for k, err := range columnar.Rows[callKeyRow](c.file, rows) {
		if err != nil {
			return err
		}
		found(k.place(rows[i]))
		i++
	}
	return nil
}

func (c *callsFile) fetch(places []place, parts Parts, take func(*Record) bool) error {
	switch parts {
	case RowParts:
		return fetchCalls(c, places, (*rowRow).call, take)
	case LinkParts:
		return fetchCalls(c, places, (*linkRow).call, take)
	}
	return fetchCalls(c, places, func(row *callRow) callRow { return *row }, take)
}

// fetchCalls reads the columns that R has.
func fetchCalls[R any](c *callsFile, places []place, call func(*R) callRow, take func(*Record) bool) error {
	rows := make([]int64, len(places))
	for i, p := range places {
		rows[i] = p.at
	}
	i := 0
	for row, err := range columnar.Rows[R](c.file, rows) {
		if err != nil {
			return err
		}
		whole := call(&row)
		r, err := c.recordAt(&whole, rows[i])
		if err != nil {
			return err
		}
		if !take(r) {
			return nil
		}
		i++
	}
	return nil
}

func (c *callsFile) where(nr int64) string { return fmt.Sprintf("%s: row %d", c.file.Path(), nr) }

func (c *callsFile) close() error { return c.file.Close() }

func (t *ratingsFile) ratingAt(row *ratingRow, nr int64) (*Rating, error) {
	var f fromRow
	r := f.rating(row)
	return r, rowError(t.file, nr, f.err)
}

// find passes the ratings of these ids on.
func (t *ratingsFile) find(ids map[string]bool, found func(*Rating)) error {
	hits, err := t.file.Find("id", ids)
	if err != nil {
		return err
	}
	rows := make([]int64, len(hits))
	for i, h := range hits {
		rows[i] = h.Row
	}
	i := 0
	for row, err := range columnar.Rows[ratingRow](t.file, rows) {
		if err != nil {
			return err
		}
		r, err := t.ratingAt(&row, rows[i])
		if err != nil {
			return err
		}
		found(r)
		i++
	}
	return nil
}

// each passes every rating on.
func (t *ratingsFile) each(take func(nr int64, call *Record, rating *Rating) bool, _ func(int64, error)) error {
	nr := int64(0)
	for row, err := range columnar.All[ratingRow](t.file) {
		if err != nil {
			return err
		}
		r, err := t.ratingAt(&row, nr)
		if err != nil {
			return err
		}
		if !take(nr, nil, r) {
			return nil
		}
		nr++
	}
	return nil
}

func (t *ratingsFile) ratings(take func(*Rating) bool, skip func(int64, error)) error {
	return t.each(func(_ int64, _ *Record, r *Rating) bool { return take(r) }, skip)
}

func (t *ratingsFile) locate(*Want, func(place)) error                { return nil }
func (t *ratingsFile) fetch([]place, Parts, func(*Record) bool) error { return nil }
func (t *ratingsFile) where(nr int64) string                          { return fmt.Sprintf("%s: row %d", t.file.Path(), nr) }
func (t *ratingsFile) close() error                                   { return t.file.Close() }
