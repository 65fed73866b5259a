package columnar

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// Read yields the rows of a file of that schema, in its version or an earlier
// one. A column that the file does not have is left zero; one that T does not
// have is not read. An error ends it; it is of type *[Error] when the file
// cannot be used.
func Read[T any](path string, s Schema) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		f, err := Open(path, s)
		if err != nil {
			yield(*new(T), err)
			return
		}
		defer f.Close()
		for row, err := range All[T](f) {
			if !yield(row, err) {
				return
			}
		}
	}
}

// All yields every row of an open file. An error ends it.
func All[T any](f *File) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		r, err := newRowReader[T](f)
		if err != nil {
			yield(*new(T), err)
			return
		}
		defer r.close()
		every := func(int64) bool { return true }
		if err := r.each(0, f.NumRows(), every, func(row T) bool { return yield(row, nil) }); err != nil {
			yield(*new(T), err)
		}
	}
}

// nearRows is how many rows it is cheaper to read past than to seek over: a seek
// decodes a page of every column again.
const nearRows = 500

// Rows yields the rows at these positions, which are in ascending order without
// doubles. It reads only the pages they lie in. An error ends it.
func Rows[T any](f *File, at []int64) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if len(at) == 0 {
			return
		}
		r, err := newRowReader[T](f)
		if err != nil {
			yield(*new(T), err)
			return
		}
		defer r.close()
		for len(at) > 0 {
			// A run of positions near each other is read in one go.
			n := 1
			for n < len(at) && at[n]-at[n-1] <= nearRows {
				n++
			}
			run := at[:n]
			at = at[n:]
			if err := r.seek(run[0]); err != nil {
				yield(*new(T), err)
				return
			}
			stopped := false
			err := r.each(run[0], run[n-1]+1, func(row int64) bool {
				if row != run[0] {
					return false
				}
				run = run[1:]
				return true
			}, func(v T) bool {
				stopped = !yield(v, nil)
				return !stopped
			})
			if err != nil {
				yield(*new(T), err)
				return
			}
			if stopped {
				return
			}
		}
	}
}

// rowReader reads rows as structs of type T.
type rowReader[T any] struct {
	path  string
	r     *parquet.GenericReader[T]
	batch []parquet.Row // valid until the next is read
}

func newRowReader[T any](f *File) (r *rowReader[T], err error) {
	defer guard(f.path, &err)
	if err := sameTypes(f, parquet.SchemaOf(new(T))); err != nil {
		return nil, err
	}
	return &rowReader[T]{path: f.path, r: parquet.NewGenericReader[T](f.file), batch: make([]parquet.Row, batchRows)}, nil
}

// sameTypes refuses a column whose type is not the one expected: the library
// would convert it silently, a number to a text for instance.
func sameTypes(f *File, want *parquet.Schema) error {
	for _, path := range want.Columns() {
		has, ok := f.file.Schema().Lookup(path...)
		if !ok {
			continue
		}
		leaf, _ := want.Lookup(path...)
		if !parquet.EqualTypes(has.Node.Type(), leaf.Node.Type()) || has.MaxRepetitionLevel != leaf.MaxRepetitionLevel {
			return &Error{f.path, fmt.Sprintf("has a column %s of type %s, where %s belongs",
				columnName(path), typeName(has.Node), typeName(leaf.Node)), adviceDamaged, nil}
		}
	}
	return nil
}

// each reads on from row first to before row end, and passes those on that are
// wanted, until take says that it is enough. Only they are put together.
func (r *rowReader[T]) each(first, end int64, wanted func(row int64) bool, take func(T) bool) error {
	for first < end {
		n, err := r.next(end - first)
		for i := range n {
			if !wanted(first + int64(i)) {
				continue
			}
			row, err := r.row(i)
			if err != nil {
				return err
			}
			if !take(row) {
				return nil
			}
		}
		if err != nil {
			return err
		}
		first += int64(n)
	}
	return nil
}

// next fills the batch with up to n rows.
func (r *rowReader[T]) next(n int64) (got int, err error) {
	defer guard(r.path, &err)
	got, err = r.r.ReadRows(r.batch[:min(n, int64(len(r.batch)))])
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return got, damaged(r.path, err)
	case got == 0:
		return 0, damaged(r.path, errors.New("it ends before its last row"))
	}
	return got, nil
}

// row puts a row of the batch together; it shares no memory with it.
func (r *rowReader[T]) row(i int) (row T, err error) {
	defer guard(r.path, &err)
	if err := r.r.Schema().Reconstruct(&row, r.batch[i]); err != nil {
		return row, damaged(r.path, err)
	}
	return row, nil
}

func (r *rowReader[T]) seek(row int64) (err error) {
	defer guard(r.path, &err)
	if err := r.r.SeekToRow(row); err != nil {
		return damaged(r.path, err)
	}
	return nil
}

func (r *rowReader[T]) close() {
	var err error
	defer guard(r.path, &err)
	_ = r.r.Close()
}

// columnName is a column's path as a person writes it: the levels that Parquet
// puts inside a list are left out.
func columnName(path []string) string {
	var names []string
	for i := 0; i < len(path); i++ {
		if path[i] == "list" && i+1 < len(path) && path[i+1] == "element" {
			i++
			names[len(names)-1] += "[]"
			continue
		}
		names = append(names, path[i])
	}
	return strings.Join(names, ".")
}
