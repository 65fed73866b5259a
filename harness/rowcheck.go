package harness

import (
	"fmt"
	"strings"

	"evalrun/datasets"
	"evalrun/internal/conf"
	"evalrun/pipeline"
)

// A rowCheck looks at every row of a plan once: whether its id and key are its
// own, whether the candidates can be asked about it, and what the rows are
// called by content.
type rowCheck struct {
	plan       *Plan
	print      *fingerprint
	ids        map[string]int    // id → position
	pairs      map[string]string // key → id
	candidates []candidateCheck
	weighted   int // rows with a weight
	shaped     shaped
}

type candidateCheck struct {
	*Candidate
	fits     bool         // some row fits its program
	misfit   error        // why the first one did not
	recorded bool         // some row has a recorded output
	outputs  *fingerprint // of recorded outputs that are not the rows' own; else nil
}

// checkRows reads every row. Of what it finds wrong it says the kind as well.
func (c *Checked) checkRows() (kind, err error) {
	p := &c.plan
	k := &rowCheck{plan: p, print: newFingerprint(), ids: make(map[string]int, p.Rows.Len()), pairs: map[string]string{}}
	for i := range p.Candidates {
		cand := candidateCheck{Candidate: &p.Candidates[i]}
		if cand.Outputs != nil {
			cand.outputs = newFingerprint()
		}
		k.candidates = append(k.candidates, cand)
	}
	for i := range p.Rows.Len() {
		row, err := p.Rows.At(i)
		if err != nil {
			return ErrRows, err
		}
		if kind, err := k.row(i, &row); err != nil {
			return kind, err
		}
	}
	for i := range k.candidates {
		cand := &k.candidates[i]
		switch {
		case cand.Recorded && !cand.recorded:
			return ErrPlan, fmt.Errorf("candidate %s is the recorded lane, and no row has a recorded output", cand.Name)
		case !cand.Recorded && !cand.fits:
			return ErrPlan, fmt.Errorf("candidate %s: no row fits its program: %w", cand.Name, cand.misfit)
		}
		hash := ""
		if cand.outputs != nil {
			hash = cand.outputs.sum()
		}
		c.outputs = append(c.outputs, hash)
	}
	if k.weighted > 0 {
		c.warnings = append(c.warnings, fmt.Sprintf("%d of %d rows have a weight, and every row counts the same here", k.weighted, p.Rows.Len()))
	}
	if doubt := k.shaped.doubt(p); doubt != "" {
		c.warnings = append(c.warnings, doubt)
	}
	c.rows.Fingerprint = k.print.sum()
	return nil, nil
}

// row looks at the row at position i.
func (k *rowCheck) row(i int, row *datasets.Row) (kind, err error) {
	if row.ID == "" {
		return ErrRows, fmt.Errorf("row %d has no id", i)
	}
	if first, twice := k.ids[row.ID]; twice {
		return ErrRows, fmt.Errorf("rows %d and %d have the same id %s: an id occurs once", first, i, row.ID)
	}
	k.ids[row.ID] = i
	if field := k.plan.Pair; field != "" {
		key, err := PairKey(row, field)
		if err != nil {
			return ErrPlan, err
		}
		if first, twice := k.pairs[key]; twice {
			return ErrRows, fmt.Errorf("rows %s and %s both have %s %s: rows that are paired by a field have a value each of its own", first, row.ID, field, short(key))
		}
		k.pairs[key] = row.ID
	}
	for j := range k.candidates {
		if err := k.candidates[j].row(row); err != nil {
			return ErrPlan, fmt.Errorf("candidate %s %w", k.candidates[j].Name, err)
		}
	}
	if row.Weight != 0 && row.Weight != 1 {
		k.weighted++
	}
	k.shaped.look(row)
	k.print.add(row)
	return nil, nil
}

// row looks whether the candidate can be asked about the row. That the values of
// some rows do not fit is data, and no reason to refuse the plan.
func (c *candidateCheck) row(row *datasets.Row) error {
	if c.Recorded {
		outputs := c.recordedOutputs(row)
		c.recorded = c.recorded || outputs != nil
		if c.outputs != nil {
			c.outputs.outputs(row, outputs)
		}
		return nil
	}
	if c.fits {
		return nil
	}
	if err := required(c.Program, row); err != nil {
		if c.misfit == nil {
			c.misfit = err
		}
		return nil
	}
	_, err := c.Program.Bind(c.Program.Own(row.Inputs))
	if err == nil {
		c.fits = true
	} else if c.misfit == nil {
		c.misfit = fmt.Errorf("row %s: %w", row.ID, err)
	}
	return nil
}

// required refuses a row that lacks an input the program cannot do without.
func required(p *pipeline.Program, row *datasets.Row) error {
	for _, f := range p.Inputs() {
		if f.Optional {
			continue
		}
		if _, ok := row.Inputs[f.Name]; !ok {
			names := row.Inputs.Names()
			return fmt.Errorf("needs the input %q, which row %s does not have: it has %s%s",
				f.Name, row.ID, strings.Join(names, ", "), didYouMean(f.Name, names))
		}
	}
	return nil
}

// PairKey is what a row is paired by: the value of its input of that name, or else
// of its meta field. A text is taken as it is, any other value as canonical JSON.
// It is an error when the row has neither.
func PairKey(row *datasets.Row, field string) (string, error) {
	v, ok := row.Inputs[field]
	if !ok {
		v, ok = row.Meta[field]
	}
	if !ok {
		known := append(row.Inputs.Names(), row.Meta.Names()...)
		return "", fmt.Errorf("rows are paired by %q, which row %s has neither as an input nor as a fact: it has %s%s",
			field, row.ID, strings.Join(known, ", "), didYouMean(field, known))
	}
	if text, ok := v.AsText(); ok {
		return text, nil
	}
	return v.Canonical(), nil
}

func didYouMean(word string, known []string) string {
	if near := conf.Suggest(word, known); near != "" && near != word {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return ""
}

// short is a value as an error message quotes it.
func short(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
