package replay

import (
	"bytes"
	"encoding/binary"

	"evalrun/datasets"
)

// folded is a row that was shown nothing, in one text: of a hundred thousand rows
// the maps and headers would take more than what is in them.
//
// It is a sequence of texts and counts. A text is its length and itself, or when
// it is written before, as answers and labels often are, where that is.
type folded string

// foldable reports whether the row fits a folded one.
func (row *ratedRow) foldable() bool {
	c := &row.row.Context
	return !row.module && row.earlier == nil && row.helpers == nil && row.row.Steps == nil && row.row.Weight == 0 &&
		c.Conversation == "" && c.Earlier == nil && c.Sections == nil && c.Helpers == nil
}

func (row *ratedRow) fold() folded {
	var f folder
	r := &row.row
	for _, s := range []string{r.Verdict.Verdict, r.Verdict.By, r.Verdict.Origin, r.Verdict.Sample, r.Sent.Hash, r.Sent.Model} {
		f.text(s)
	}
	f.flags(r.Verdict.Disputed, r.Sent.Shaped, r.Recorded != nil)
	f.values(row.inputs, r.Inputs)
	f.values(row.labels, r.Labels)
	f.values(r.Recorded.Names(), r.Recorded)
	f.values(r.Meta.Names(), r.Meta)
	return folded(f.b)
}

// unfold is the row of that id, which many keep: it is no part of the text, which
// nobody may keep for a few bytes of it.
func (f folded) unfold(id string) *ratedRow {
	u := unfolder{whole: string(f)}
	row := &ratedRow{}
	r := &row.row
	r.ID, r.Context.Of = id, id
	for _, s := range []*string{&r.Verdict.Verdict, &r.Verdict.By, &r.Verdict.Origin, &r.Verdict.Sample, &r.Sent.Hash, &r.Sent.Model} {
		*s = u.text()
	}
	flags := u.count()
	r.Verdict.Disputed, r.Sent.Shaped = flags&1 != 0, flags&2 != 0
	row.inputs, r.Inputs = u.values()
	row.labels, r.Labels = u.values()
	if _, r.Recorded = u.values(); flags&4 == 0 {
		r.Recorded = nil
	}
	_, r.Meta = u.values()
	return row
}

type folder struct{ b []byte }

func (f *folder) count(n int) { f.b = binary.AppendUvarint(f.b, uint64(n)) }

func (f *folder) flags(set ...bool) {
	n := 0
	for i, s := range set {
		if s {
			n |= 1 << i
		}
	}
	f.count(n)
}

// worthIt is from which length on a text is looked for in what is before it.
const worthIt = 16

// text writes an even number, twice the length, before a text that follows, and an
// odd one before the place of one that is there.
func (f *folder) text(s string) {
	if len(s) >= worthIt {
		if at := bytes.Index(f.b, []byte(s)); at >= 0 {
			f.count(2*len(s) + 1)
			f.count(at)
			return
		}
	}
	f.count(2 * len(s))
	f.b = append(f.b, s...)
}

func (f *folder) values(names []string, values datasets.Values) {
	f.count(len(names))
	for _, name := range names {
		f.text(name)
		f.text(values[name].JSON())
	}
}

type unfolder struct {
	whole string
	at    int
}

func (u *unfolder) count() int {
	n, shift := 0, 0
	for {
		c := u.whole[u.at]
		u.at++
		n |= int(c&0x7f) << shift
		if c < 0x80 {
			return n
		}
		shift += 7
	}
}

func (u *unfolder) text() string {
	n := u.count()
	size := n / 2
	if n%2 == 1 {
		at := u.count()
		return u.whole[at : at+size]
	}
	u.at += size
	return u.whole[u.at-size : u.at]
}

func (u *unfolder) values() ([]string, datasets.Values) {
	n := u.count()
	names, values := make([]string, n), make(datasets.Values, n)
	for i := range names {
		names[i] = u.text()
		values[names[i]] = datasets.RawValue(u.text())
	}
	return names, values
}
