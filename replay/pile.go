package replay

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"time"

	"evalrun/internal/canon"
	"evalrun/internal/columnar"
)

// jsonRecord is a call or a rating.
type jsonRecord interface{ AppendJSON([]byte) []byte }

// pile holds records of one kind, T, until there are enough to write them as a
// file with rows R.
type pile[T jsonRecord, R any] struct {
	im      *importer
	kind    string // begins the files' names
	schema  columnar.Schema
	opts    []columnar.Option
	written *int64

	id    func(T) string
	order func(a, b T) int
	known func(ids map[string]bool) (sums, error) // what the store has of them
	row   func(T) R

	list  []T
	bytes int
}

func (p *pile[T, R]) add(r T, size int) error {
	p.list = append(p.list, r)
	p.bytes += size
	if p.bytes < p.im.bytes && len(p.list) < p.im.rows {
		return nil
	}
	return p.flush()
}

// flush writes the records that are new to a file of their own.
func (p *pile[T, R]) flush() error {
	if len(p.list) == 0 {
		return nil
	}
	if err := p.im.begin(); err != nil {
		return err
	}
	fresh, err := p.fresh()
	p.list, p.bytes = nil, 0
	if err != nil || len(fresh) == 0 {
		return err
	}
	path, err := p.im.nextFile(p.kind)
	if err != nil {
		return err
	}
	rows := func(yield func(R, error) bool) {
		for _, r := range fresh {
			if !yield(p.row(r), p.im.ctx.Err()) {
				return
			}
		}
	}
	err = columnar.Write(path, p.schema, rows, p.opts...)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: another program writes to this store; import again when it is done", err)
	}
	if err != nil {
		return err
	}
	*p.written += int64(len(fresh))
	p.im.done.Files = append(p.im.done.Files, filepath.Base(path))
	return p.im.store.addFile(path)
}

// fresh sorts the records and takes out those that the store, or the pile, has
// already.
func (p *pile[T, R]) fresh() ([]T, error) {
	slices.SortStableFunc(p.list, p.order)
	ids := make(map[string]bool, len(p.list))
	for _, r := range p.list {
		ids[p.id(r)] = true
	}
	has, err := p.known(ids)
	if err != nil {
		return nil, err
	}
	repeated := len(ids) < len(p.list)
	fresh := p.list[:0]
	for _, r := range p.list {
		// Only where an id occurs again can the whole record do so.
		if has[p.id(r)] != nil || repeated {
			sum := sumOf(r)
			if has[p.id(r)][sum] {
				p.im.done.Known++
				continue
			}
			if has[p.id(r)] != nil {
				p.im.done.Other++
			}
			has.add(p.id(r), sum)
		}
		fresh = append(fresh, r)
	}
	return fresh, nil
}

// timeColumn is what a column of times is sorted by: NULL comes first.
func timeColumn(t time.Time) int64 {
	if us := micros(t); us != 0 {
		return us
	}
	return math.MinInt64
}

// sums are the sums of records by id.
type sums map[string]map[[sha256.Size]byte]bool

func (s sums) add(id string, sum [sha256.Size]byte) {
	if s[id] == nil {
		s[id] = map[[sha256.Size]byte]bool{}
	}
	s[id][sum] = true
}

// sumOf names a record by its canonical JSON.
func sumOf(r jsonRecord) [sha256.Size]byte {
	text := r.AppendJSON(nil)
	canonical, err := canon.Append(nil, text)
	if err != nil { // a number that no float64 holds: its own text names it
		canonical = text
	}
	return sha256.Sum256(canonical)
}
