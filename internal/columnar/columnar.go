// Package columnar writes and reads Parquet files and writes Arrow streams. It
// is the only package that knows the libraries behind them; the others describe
// a row as a Go struct and name the file's schema.
//
// A row is a struct whose fields carry tags in the form of parquet-go, which
// the tests of this package show: `parquet:"name,optional"` for a column,
// "json,optional" on a [JSON], "timestamp(microsecond:utc)" on an int64,
// "list,optional" for a list that may be missing. An optional column that is no
// pointer stores its zero value as NULL. Leave compression out of the tags: it
// would override what [Write] sets.
//
// To write a file, give [Write] a sequence of rows. To read one, range over
// [Read]; or [Open] it, ask [File.Find] which rows hold some keys, and read
// those with [Rows]. A row read as a smaller or larger struct leaves out, or
// leaves zero, what the other does not have. (A list that is missing inside the
// structs of another list is read as empty, which is a fault of the library.)
//
// Every file names its schema and the schema's version in its metadata, and
// carries a checksum over all that is not data (data pages have their own). A
// file that is truncated, damaged, of another schema or of a later version is
// refused with an error that names it. The library underneath may panic on
// damaged data; nothing here does.
package columnar

import (
	"bufio"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"evalrun/internal/disk"
)

// Schema names the columns of a kind of file. The version counts changes that
// an older reader would misread; a column more is no such change.
type Schema struct {
	Name    string // such as "evalrun.calls"
	Version int    // from 1
}

// String is such as "evalrun.calls 1".
func (s Schema) String() string { return s.Name + " " + strconv.Itoa(s.Version) }

// JSON is the text of one JSON value, in a column with the tag "json"; "" is NULL
// in an optional one. It is stored as it is.
type JSON = string

// The keys of a file's metadata.
const (
	keyName    = "evalrun.schema"
	keyVersion = "evalrun.version"
	keyCheck   = "evalrun.check"
)

// What a file is made of. Larger groups cost memory when writing, smaller ones
// time when opening; larger pages pack better and are slower to look a row up in.
const (
	rowsPerGroup   = 50_000
	pageSize       = 256 << 10
	dictionarySize = 1 << 20 // per column and group, after which its values are written plainly
	keyIndexSize   = 64      // bytes of a key that the page index keeps: an id is not cut short
	batchRows      = 64
)

// Option is a property of a file that is written.
type Option func(*options)

type options struct {
	sorted []string
	bloom  []string
	unique bool
}

// SortedBy declares that the rows come sorted by these columns, ascending. It
// does not sort them.
func SortedBy(columns ...string) Option {
	return func(o *options) { o.sorted = columns }
}

// Bloom adds a filter for each of these columns, so that [File.Find] passes over
// groups of rows that do not hold a key. It is for columns whose values the
// order of the rows does not keep together.
func Bloom(columns ...string) Option {
	return func(o *options) { o.bloom = columns }
}

// NeverReplace keeps a file that is there: [Write] then fails with an error that
// is fs.ErrExist, whoever made it and however late.
func NeverReplace() Option {
	return func(o *options) { o.unique = true }
}

// Write writes rows to a new file at path, in the order they come, and replaces
// a file that is there, unless told otherwise. The file has its name only when it is whole and on disk:
// when a row comes with an error, or writing fails, there is no new file. It is
// readable by its owner alone, since records may be private.
func Write[T any](path string, s Schema, rows iter.Seq2[T, error], opts ...Option) error {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	write := disk.Write
	if o.unique {
		write = disk.WriteNew
	}
	return write(path, func(f *os.File) error { return writeRows(f, path, s, rows, &o) })
}

func writeRows[T any](f *os.File, path string, s Schema, rows iter.Seq2[T, error], o *options) error {
	buf := bufio.NewWriterSize(f, 1<<20)
	columns := parquet.SchemaOf(new(T))
	w := parquet.NewGenericWriter[T](buf, o.writer(s, columns)...)
	// Rows are taken apart here and not by the writer: given structs, it takes
	// some NULLs for values (zero, zero, one, one, zero, for instance), and
	// panics on optional JSON.
	batch := make([]parquet.Row, batchRows)
	n := 0
	for row, err := range rows {
		if err != nil {
			return err
		}
		batch[n] = columns.Deconstruct(batch[n][:0], &row)
		if n++; n == len(batch) {
			if _, err := w.WriteRows(batch); err != nil {
				return fmt.Errorf("writing %s: %w", path, err)
			}
			n = 0
		}
	}
	if _, err := w.WriteRows(batch[:n]); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := errors.Join(w.Close(), buf.Flush()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := stamp(f); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func (o *options) writer(s Schema, columns *parquet.Schema) []parquet.WriterOption {
	keys := slices.Concat(o.sorted, o.bloom)
	w := []parquet.WriterOption{
		parquet.Compression(pageCodec),
		parquet.MaxRowsPerRowGroup(rowsPerGroup),
		parquet.PageBufferSize(pageSize),
		parquet.DictionaryMaxBytes(dictionarySize),
		parquet.CreatedBy("evalrun", "1", ""), // the same bytes from every build
		parquet.KeyValueMetadata(keyName, s.Name),
		parquet.KeyValueMetadata(keyVersion, strconv.Itoa(s.Version)),
		parquet.KeyValueMetadata(keyCheck, noCheck),
		parquet.ColumnIndexSizeLimit(func(path []string) int {
			if len(path) == 1 && slices.Contains(keys, path[0]) {
				return keyIndexSize
			}
			return parquet.DefaultColumnIndexSizeLimit
		}),
	}
	var sorting []parquet.SortingColumn
	for _, c := range o.sorted {
		sorting = append(sorting, parquet.NullsFirst(parquet.Ascending(c)))
	}
	if sorting != nil {
		w = append(w, parquet.SortingWriterConfig(parquet.SortingColumns(sorting...)))
	}
	var filters []parquet.BloomFilterColumn
	for _, c := range o.bloom {
		filters = append(filters, parquet.SplitBlockFilter(10, c))
	}
	if filters != nil {
		w = append(w, parquet.BloomFilters(filters...))
	}
	// Nobody looks for a range of JSON texts.
	for _, path := range columns.Columns() {
		if leaf, ok := columns.Lookup(path...); ok && isJSON(leaf.Node) {
			w = append(w, parquet.SkipPageBounds(path...))
		}
	}
	return w
}

// isJSON reports whether a column is annotated as JSON.
func isJSON(n parquet.Node) bool {
	lt := n.Type().LogicalType()
	return lt != nil && lt.String() == "JSON"
}
