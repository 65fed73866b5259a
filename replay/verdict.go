package replay

import (
	"cmp"
	"context"
	"slices"

	"evalrun/datasets"
)

// currentRatings returns each call's ratings that stand: of each person the
// latest, of accounts every one, because an account may be several people. They
// are in the order in which they were made. With by, only that person's are
// read. Those that say nothing are among them: they replaced what the person
// had said before.
func currentRatings(ctx context.Context, src Source, by string) (map[string][]*Rating, error) {
	type voice struct{ call, by, id string }
	latest := map[voice]*Rating{}
	for r, err := range src.Ratings() {
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
		if r.Format != latestRating || by != "" && r.By != by {
			continue
		}
		v := voice{call: r.Call, by: r.By}
		if r.By == "" {
			v.id = r.ID
		}
		if was := latest[v]; was == nil || laterRating(was, r) < 0 {
			latest[v] = r
		}
	}
	of := map[string][]*Rating{}
	for _, r := range latest {
		of[r.Call] = append(of[r.Call], r)
	}
	for _, list := range of {
		slices.SortFunc(list, laterRating)
	}
	return of, nil
}

// laterRating orders ratings by when they were made, then id. What they say
// comes last, so that two records of one id have an order too, whichever was
// read first.
func laterRating(a, b *Rating) int {
	return cmp.Or(
		cmp.Compare(a.AtText(), b.AtText()),
		cmp.Compare(a.ID, b.ID),
		cmp.Compare(a.Verdict, b.Verdict),
		cmp.Compare(a.Answer.Canonical(), b.Answer.Canonical()),
		cmp.Compare(a.Outputs.Canonical(), b.Outputs.Canonical()),
	)
}

// counts reports whether a rating that stands is a verdict. No verdict, and a
// word this version does not know, say nothing of the call.
func counts(r *Rating) bool { return r.Verdict == "right" || r.Verdict == "wrong" }

// verdict is what the ratings of a call come to.
type verdict struct {
	rating   *Rating // the latest that says what is right
	labels   members // what it says: the answer first, then other outputs in the rating's order
	disputed bool    // the ratings do not all say the same
}

// decide reads the ratings that count, in their order; ok is false when none of
// them says what is right.
func decide(said []*Rating, call *content) (v verdict, ok bool) {
	for _, r := range said {
		if r.Verdict != said[0].Verdict {
			v.disputed = true
		}
		says := call.saidBy(r)
		if len(says.names) == 0 {
			continue
		}
		if ok && !says.equal(v.labels) {
			v.disputed = true
		}
		v.rating, v.labels, ok = r, says, true
	}
	return v, ok
}

// saidBy is what a rating says is right: for "right" the answer the call gave,
// for "wrong" the corrections. It is empty when the rating does not say, or says
// what is no data.
func (c *content) saidBy(r *Rating) members {
	var says members
	if r.Verdict == "right" {
		if v, ok := c.outputs.values[c.answer]; ok && !slices.Contains(c.outputsLacking, c.answer) {
			says.set(c.answer, v)
		}
		return says
	}
	others := readMembers(r.Outputs)
	if v, ok := others.values[c.answer]; ok {
		says.set(c.answer, v)
	}
	if !r.Answer.IsZero() {
		says.set(c.answer, cloneValue(r.Answer))
	}
	for _, name := range others.names {
		if name != c.answer {
			says.set(name, others.values[name])
		}
	}
	if len(says.noData()) > 0 {
		return members{}
	}
	return says
}

// members are the members of an object, in recorded order.
type members struct {
	names  []string
	values datasets.Values
}

// readMembers reads an object; any other value has no members. Of members of
// one name the last counts. What it returns shares a copy of the object's text
// and nothing else, so that a record can be let go.
func readMembers(object datasets.Value) members {
	if object.Kind() != '{' {
		return members{}
	}
	m := members{values: datasets.Values{}}
	c := enter(cloneValue(object).JSON())
	for name, v, ok := c.member(); ok; name, v, ok = c.member() {
		m.set(name, datasets.RawValue(v))
	}
	return m
}

func (m *members) set(name string, v datasets.Value) {
	if m.values == nil {
		m.values = datasets.Values{}
	}
	if _, taken := m.values[name]; !taken {
		m.names = append(m.names, name)
	}
	m.values[name] = v
}

func (m members) equal(other members) bool {
	if len(m.values) != len(other.values) {
		return false
	}
	for name, v := range m.values {
		if w, ok := other.values[name]; !ok || !v.Equal(w) {
			return false
		}
	}
	return true
}
