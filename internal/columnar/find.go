package columnar

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"

	"github.com/parquet-go/parquet-go"
)

// Hit is a row that holds a key.
type Hit struct {
	Row int64
	Key string
}

// Find looks keys up in a column of texts and returns the rows that hold one, in
// ascending order. It reads only the pages of that column whose bounds, in the
// page index, allow one of the keys, and passes over groups of rows whose filter
// says that they hold none.
func (f *File) Find(column string, keys map[string]bool) (hits []Hit, err error) {
	defer guard(f.path, &err)
	leaf, ok := f.file.Schema().Lookup(column)
	if !ok {
		return nil, nil // a file from before there was such a column
	}
	if leaf.Node.Type().Kind() != parquet.ByteArray {
		return nil, &Error{f.path, fmt.Sprintf("has a column %s of type %s, where text belongs", column, typeName(leaf.Node)), adviceDamaged, nil}
	}
	sorted := slices.Sorted(maps.Keys(keys))
	var first int64 // row of the group
	for _, g := range f.file.RowGroups() {
		hits, err = findInGroup(hits, g.ColumnChunks()[leaf.ColumnIndex], first, g.NumRows(), sorted, keys)
		if err != nil {
			return nil, damaged(f.path, err)
		}
		first += g.NumRows()
	}
	return hits, nil
}

func findInGroup(hits []Hit, chunk parquet.ColumnChunk, first, rows int64, sorted []string, keys map[string]bool) ([]Hit, error) {
	bounds, err := chunk.ColumnIndex()
	if err != nil {
		return nil, err
	}
	offsets, err := chunk.OffsetIndex()
	if err != nil {
		return nil, err
	}
	// The bounds come first: where ids follow the time, they rule out all but the
	// files of that time, and nothing is read.
	between := within(sorted, bounds)
	if len(between) == 0 {
		return hits, nil
	}
	if between, err = maybe(chunk, between); err != nil || len(between) == 0 {
		return hits, err
	}
	pages := chunk.Pages()
	defer pages.Close()
	next := int64(-1) // the row that reading on would give
	for p := range bounds.NumPages() {
		if bounds.NullPage(p) || !mayHold(between, bounds.MinValue(p).ByteArray(), bounds.MaxValue(p).ByteArray()) {
			continue
		}
		start, end := offsets.FirstRowIndex(p), rows
		if p+1 < bounds.NumPages() {
			end = offsets.FirstRowIndex(p + 1)
		}
		if start != next {
			if err := pages.SeekToRow(start); err != nil {
				return nil, err
			}
		}
		if hits, err = scan(hits, pages, first, start, end, keys); err != nil {
			return nil, err
		}
		next = end
	}
	return hits, nil
}

// within returns the sorted keys that lie between the lowest and the highest
// bound of all pages.
func within(sorted []string, bounds parquet.ColumnIndex) []string {
	var low, high []byte
	some := false
	for p := range bounds.NumPages() {
		if bounds.NullPage(p) {
			continue
		}
		a, b := bounds.MinValue(p).ByteArray(), bounds.MaxValue(p).ByteArray()
		if !some || bytes.Compare(a, low) < 0 {
			low = a
		}
		if !some || bytes.Compare(b, high) > 0 {
			high = b
		}
		some = true
	}
	if !some {
		return nil
	}
	from := sort.SearchStrings(sorted, string(low))
	n := sort.Search(len(sorted)-from, func(i int) bool { return above(sorted[from+i], high) })
	return sorted[from : from+n]
}

// scan reads the values of the rows from start to end, counted in the group.
func scan(hits []Hit, pages parquet.Pages, first, start, end int64, keys map[string]bool) ([]Hit, error) {
	values := make([]parquet.Value, 512)
	for row := start; row < end; {
		page, err := pages.ReadPage()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		before := row
		for r := page.Values(); ; {
			n, err := r.ReadValues(values)
			for _, v := range values[:n] {
				if !v.IsNull() && keys[string(v.ByteArray())] {
					hits = append(hits, Hit{first + row, string(v.ByteArray())})
				}
				row++
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				parquet.Release(page)
				return nil, err
			}
		}
		parquet.Release(page)
		if row == before {
			return nil, io.ErrUnexpectedEOF
		}
	}
	return hits, nil
}

// maybe returns the keys that the group's filter does not rule out; all of them
// when it has no filter.
func maybe(chunk parquet.ColumnChunk, sorted []string) ([]string, error) {
	filter := chunk.BloomFilter()
	if filter == nil {
		return sorted, nil
	}
	var left []string
	for _, key := range sorted {
		ok, err := filter.Check(parquet.ByteArrayValue([]byte(key)))
		if err != nil {
			return nil, err
		}
		if ok {
			left = append(left, key)
		}
	}
	return left, nil
}

// mayHold reports whether one of the sorted keys can lie between the bounds.
func mayHold(sorted []string, low, high []byte) bool {
	i := sort.SearchStrings(sorted, string(low))
	return i < len(sorted) && !above(sorted[i], high)
}

// above reports whether a key is higher than an upper bound. The bound may have
// been cut short; only as much of the key is compared with it.
func above(key string, high []byte) bool {
	return key[:min(len(key), len(high))] > string(high)
}
