package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"

	"evalrun/datasets"
)

// A fingerprint names rows by their order and by all that is in them: whatever a
// candidate is shown and a metric may look at. Texts count as they read, other
// values as canonical JSON.
//
// What is hashed is a list of items, each a name, the length of its text and the
// text, so that no two rows give the same bytes. An item that is not there is
// left out; a field that rows get later then leaves old fingerprints as they are.
type fingerprint struct {
	hash hash.Hash
	buf  []byte
}

func newFingerprint() *fingerprint { return &fingerprint{hash: sha256.New()} }

func (f *fingerprint) sum() string { return "sha256:" + hex.EncodeToString(f.hash.Sum(nil)) }

// add takes in one more row.
func (f *fingerprint) add(row *datasets.Row) {
	f.item("row", row.ID)
	f.values("input", row.Inputs)
	f.values("label", row.Labels)
	f.values("recorded", row.Recorded)
	f.steps(row.Steps)
	f.values("meta", row.Meta)
	if row.Weight != 0 {
		f.item("weight", datasets.Float(row.Weight).JSON())
	}
	c := &row.Context
	f.text("of", c.Of)
	f.text("conversation", c.Conversation)
	f.turns("earlier", c.Earlier)
	f.texts("section", c.Sections)
	for i := range c.Helpers {
		h := &c.Helpers[i]
		f.item("helper", h.Program)
		f.item("nth", strconv.Itoa(h.Nth))
		f.text("call", h.Call)
		f.turns("earlier", h.Earlier)
		f.texts("section", h.Sections)
	}
	v := &row.Verdict
	f.text("verdict", v.Verdict)
	f.text("by", v.By)
	f.text("origin", v.Origin)
	f.text("sample", v.Sample)
	if v.Disputed {
		f.item("disputed", "true")
	}
	f.flush()
}

// outputs takes in outputs that were recorded for a row elsewhere.
func (f *fingerprint) outputs(row *datasets.Row, outputs datasets.Values) {
	f.item("row", row.ID)
	f.values("recorded", outputs)
	f.flush()
}

func (f *fingerprint) flush() {
	f.hash.Write(f.buf)
	f.buf = f.buf[:0]
}

func (f *fingerprint) turns(name string, turns []datasets.Turn) {
	for i := range turns {
		t := &turns[i]
		f.item(name, t.Signature)
		f.values("input", t.Inputs)
		f.values("output", t.Outputs)
		f.steps(t.Steps)
	}
}

func (f *fingerprint) steps(steps []datasets.Step) {
	for _, step := range steps {
		f.item("step", step.Canonical())
	}
}

func (f *fingerprint) values(kind string, vs datasets.Values) {
	for _, name := range vs.Names() {
		f.item(kind, name)
		if s, ok := vs[name].AsText(); ok {
			f.item("text", s)
		} else {
			f.item("value", vs[name].Canonical())
		}
	}
}

func (f *fingerprint) texts(name string, list []string) {
	for _, s := range list {
		f.item(name, s)
	}
}

func (f *fingerprint) text(name, s string) {
	if s != "" {
		f.item(name, s)
	}
}

func (f *fingerprint) item(name, s string) {
	f.buf = append(f.buf, name...)
	f.buf = append(f.buf, ' ')
	f.buf = strconv.AppendInt(f.buf, int64(len(s)), 10)
	f.buf = append(f.buf, ' ')
	f.buf = append(f.buf, s...)
	f.buf = append(f.buf, '\n')
}
