package harness

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/replay"
)

// Fidelity says whether the baseline's program, given what the rated calls were
// given, sends what they sent. Rows that the program's own version made are
// compared, by the hash of a call's first request. A row is in one of the counts.
type Fidelity struct {
	Same          int            `json:"same"`
	Different     int            `json:"different"`
	ByPart        map[string]int `json:"by_part"`                  // of the different ones, by what differs: system, messages, config, tools, or unknown; a row may be in several
	First         string         `json:"first_different,omitzero"` // the first row that differs
	NotComparable map[string]int `json:"not_comparable"`           // by reason: one of the Incomparable constants
}

// The reasons for which a row's request is not compared, in the order in which
// they are looked for.
const (
	IncomparableShaped  = "shaped"        // plugins of its host changed the call, or replaced its request
	IncomparableNoHash  = "no_hash"       // no request's hash was recorded
	IncomparableVersion = "other_version" // another version of the program made the call, or nobody knows which
	IncomparableRender  = "not_rendered"  // the program makes no request of the row
)

// PartUnknown is what differs when the recorded request was not kept, or is not
// the one that its hash is of.
const PartUnknown = "unknown"

// Rows is how many rows there were.
func (f *Fidelity) Rows() int { return f.Same + f.Different + total(f.NotComparable) }

// fidelity compares the baseline's requests with the recorded ones. It is nil when
// the baseline is not asked, or the rows are of no recorded calls.
func (c *Checked) fidelity() (*Fidelity, error) {
	p := &c.plan
	i := slices.IndexFunc(p.Candidates, func(cand Candidate) bool { return cand.Name == p.baseline() })
	if i < 0 || p.Candidates[i].Recorded {
		return nil, nil
	}
	k := &fidelityCheck{
		Fidelity: &Fidelity{ByPart: map[string]int{}, NotComparable: map[string]int{}},
		cand:     &p.Candidates[i], rows: p.Rows, versions: map[string]int{}, unlike: map[string]int{},
	}
	for i := range p.Rows.Len() {
		row, err := p.Rows.At(i)
		if err != nil {
			return nil, err
		}
		k.row(i, &row)
	}
	if p.Records == nil && k.NotComparable[IncomparableNoHash] == p.Rows.Len() {
		return nil, nil
	}
	if err := k.explain(p.Records); err != nil {
		return nil, err
	}
	c.warnings = append(c.warnings, k.warnings()...)
	return k.Fidelity, nil
}

type fidelityCheck struct {
	*Fidelity
	cand     *Candidate
	rows     datasets.Source
	versions map[string]int // calls of other versions, by version
	unlike   map[string]int // rows whose hash differs → position
}

// row counts the row, unless its hash differs: why is then looked for.
func (k *fidelityCheck) row(i int, row *datasets.Row) {
	version, _ := row.Meta["version"].AsText()
	other := version != k.cand.Program.Version()
	if other && version != "" {
		k.versions[version]++
	}
	switch {
	case row.Sent.Shaped:
		k.NotComparable[IncomparableShaped]++
		return
	case row.Sent.Hash == "":
		k.NotComparable[IncomparableNoHash]++
		return
	case other:
		k.NotComparable[IncomparableVersion]++
		return
	}
	req, err := k.request(row, row.Sent.Model)
	if err != nil {
		k.NotComparable[IncomparableRender]++
		return
	}
	// A record may name the model that answered, and the program's model be
	// called otherwise today: neither makes a request another one.
	for _, model := range []string{row.Sent.Model, k.cand.Caller.LM.Name} {
		req.Model = model
		if req.Hash() == row.Sent.Hash {
			k.Same++
			return
		}
	}
	k.unlike[row.ID] = i
}

func (k *fidelityCheck) request(row *datasets.Row, model string) (*pipeline.Request, error) {
	return k.cand.Caller.Request(k.cand.Program, k.cand.Program.Own(row.Inputs), row.Context, model)
}

// explain reads the recorded requests of the rows that differ, one at a time, and
// finds the parts in which they do.
func (k *fidelityCheck) explain(records replay.Source) error {
	ids := make(map[string]bool, len(k.unlike))
	for id := range k.unlike {
		ids[id] = true
	}
	if records != nil {
		err := replay.Requests(context.Background(), records, ids, func(id string, was *pipeline.Request) error {
			row, err := k.rows.At(k.unlike[id])
			if err != nil {
				return err
			}
			is, err := k.request(&row, was.Model)
			if err != nil {
				return err
			}
			if is.Hash() == row.Sent.Hash {
				k.Same++
				delete(k.unlike, id)
				return nil
			}
			parts := map[string]bool{}
			a, b := pipeline.Portray(was), pipeline.Portray(is)
			a.Compare(&b, func(d pipeline.Difference) { parts[d.Part] = true })
			for part := range parts {
				k.ByPart[part]++
			}
			if len(parts) > 0 {
				ids[id] = false // explained
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	first := -1
	for id, i := range k.unlike {
		k.Different++
		if ids[id] {
			k.ByPart[PartUnknown]++
		}
		if first < 0 || i < first {
			first, k.First = i, id
		}
	}
	return nil
}

// warnings are what a reader of the numbers should know.
func (k *fidelityCheck) warnings() []string {
	var list []string
	if n := total(k.versions); n > 0 {
		list = append(list, fmt.Sprintf("the baseline %s is version %s of its program, and %d of %d rated calls were made by %s: what was rated is not what the baseline sends",
			k.cand.Name, brief(k.cand.Program.Version()), n, k.rows.Len(), versionsText(k.versions)))
	}
	if k.Different > 0 {
		list = append(list, fmt.Sprintf("the baseline %s sends another request than was recorded for %d of the %d rows that its version made (%s); the first is row %s",
			k.cand.Name, k.Different, k.Same+k.Different, reasons(k.ByPart), k.First))
	}
	return list
}

// versionsText lists versions, those of most calls first.
func versionsText(versions map[string]int) string {
	const most = 3
	names := slices.SortedFunc(maps.Keys(versions), func(a, b string) int {
		return cmp.Or(cmp.Compare(versions[b], versions[a]), cmp.Compare(a, b))
	})
	var parts []string
	for i, name := range names {
		if i == most {
			parts = append(parts, fmt.Sprintf("%d more", len(names)-most))
			break
		}
		parts = append(parts, fmt.Sprintf("%s (%d)", brief(name), versions[name]))
	}
	if len(names) == 1 {
		return "version " + brief(names[0])
	}
	return "versions " + strings.Join(parts, ", ")
}

// brief is the head of a version, which is a hash.
func brief(version string) string {
	version = strings.TrimPrefix(version, "sha256:")
	return version[:min(len(version), 12)]
}
