package replay

import (
	"slices"
	"strconv"

	"evalrun/datasets"
	"evalrun/internal/canon"
)

// The keys that rows have beside their data.
const (
	keyEarlier      = "earlier"      // the turns the call was shown
	keyConversation = "conversation" // the id of its conversation, or null
	keySections     = "sections"     // what its conversation's context hooks gave it
	keyHelpers      = "helpers"      // what calls made inside a module's call were shown
	keyCall         = "call"         // the rated call
	keyVersion      = "version"      // of its program
	keyRating       = "rating"       // right or wrong
	keyRatedBy      = "rated_by"     // the person, or null
	keyOrigin       = "origin"       // review or edit
	keySample       = "sample"       // the random draw the rating belongs to, or null
	keyDisputed     = "disputed"     // whether ratings disagree
)

// ratingKeys are in the order in which a row has them, after its context.
var ratingKeys = []string{keyCall, keyVersion, keyRating, keyRatedBy, keyOrigin, keySample, keyDisputed}

// AppendRowJSON appends row i as one JSON object on one line: the inputs in
// recorded order, the right answer and other right outputs, what the call was
// shown (when some row was shown something), then what is known of the rating.
// Data keeps its names: another key that is taken gets underscores in front
// until it is free, and so does an output named like an input.
func (r *Rated) AppendRowJSON(dst []byte, i int) []byte {
	row := r.held(i)
	start := len(dst)
	dst = append(dst, '{')
	taken := make(map[string]bool, 24)
	add := func(p part, key string) {
		if len(dst) > start+1 {
			dst = append(dst, ',')
		}
		dst = canon.AppendString(dst, free(taken, key))
		dst = append(dst, ':')
		dst = row.appendPart(dst, p, key)
	}
	for _, name := range row.inputs {
		add(partInput, name)
	}
	for _, name := range row.labels {
		add(partLabel, name)
	}
	for _, key := range row.contextKeys(r.context) {
		add(partAdded, key)
	}
	for _, key := range ratingKeys {
		add(partAdded, key)
	}
	dst = append(dst, '}')
	// Recorded text may be spread over lines; inside a string no line ends.
	for i, c := range dst[start:] {
		if c == '\n' || c == '\r' {
			dst[start+i] = ' '
		}
	}
	return dst
}

// free takes the key, with as many underscores in front as it needs.
func free(taken map[string]bool, key string) string {
	for taken[key] {
		key = "_" + key
	}
	taken[key] = true
	return key
}

// contextKeys are the keys the row has for what its call was shown. Once any row
// has some, every row says what it was shown, if only that it was nothing.
func (row *ratedRow) contextKeys(wanted bool) []string {
	if !wanted {
		return nil
	}
	keys := []string{keyEarlier, keyConversation}
	if len(row.row.Context.Sections) > 0 {
		keys = append(keys, keySections)
	}
	if row.module {
		keys = append(keys, keyHelpers)
	}
	return keys
}

// part says which of a row's values a key is for.
type part byte

const (
	partInput part = iota
	partLabel
	partAdded
)

// appendPart appends a value of the row; null when there is none.
func (row *ratedRow) appendPart(dst []byte, p part, key string) []byte {
	shown, verdict := &row.row.Context, &row.row.Verdict
	switch p {
	case partInput:
		return append(dst, row.row.Inputs[key].JSON()...)
	case partLabel:
		return append(dst, row.row.Labels[key].JSON()...)
	}
	switch key {
	case keyEarlier:
		return appendTurns(dst, shown.Earlier, row.earlier)
	case keyConversation:
		return appendTextOrNull(dst, shown.Conversation)
	case keySections:
		return appendTexts(dst, shown.Sections)
	case keyHelpers:
		return row.appendHelpers(dst)
	case keyCall:
		return canon.AppendString(dst, row.row.ID)
	case keyVersion:
		version, _ := row.row.Meta["version"].AsText()
		return appendTextOrNull(dst, version)
	case keyRating:
		return canon.AppendString(dst, verdict.Verdict)
	case keyRatedBy:
		return appendTextOrNull(dst, verdict.By)
	case keyOrigin:
		return canon.AppendString(dst, verdict.Origin)
	case keySample:
		return appendTextOrNull(dst, verdict.Sample)
	case keyDisputed:
		return strconv.AppendBool(dst, verdict.Disputed)
	}
	return append(dst, "null"...)
}

func appendTextOrNull(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return canon.AppendString(dst, s)
}

func appendTexts(dst []byte, texts []string) []byte {
	dst = append(dst, '[')
	for i, s := range texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = canon.AppendString(dst, s)
	}
	return append(dst, ']')
}

func appendTurns(dst []byte, turns []datasets.Turn, orders []turnOrder) []byte {
	dst = append(dst, '[')
	for i, t := range turns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"inputs":`...)
		dst = appendMembers(dst, orders[i].inputs, t.Inputs)
		dst = append(dst, `,"outputs":`...)
		dst = appendMembers(dst, orders[i].outputs, t.Outputs)
		if orders[i].steps != nil {
			dst = append(dst, `,"steps":[`...)
			for j, s := range orders[i].steps {
				if j > 0 {
					dst = append(dst, ',')
				}
				dst = append(dst, s.JSON()...)
			}
			dst = append(dst, `],"signature":`...)
			dst = appendTextOrNull(dst, t.Signature)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

func (row *ratedRow) appendHelpers(dst []byte) []byte {
	dst = append(dst, '[')
	for i, h := range row.row.Context.Helpers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"program":`...)
		dst = canon.AppendString(dst, h.Program)
		dst = append(dst, `,"call":`...)
		dst = canon.AppendString(dst, h.Call)
		dst = append(dst, `,"earlier":`...)
		dst = appendTurns(dst, h.Earlier, row.helpers[i])
		if len(h.Sections) > 0 {
			dst = append(dst, `,"sections":`...)
			dst = appendTexts(dst, h.Sections)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// AppendLeftOutJSON appends how many rated calls were left out, by reason, as
// one JSON object.
func (r *Rated) AppendLeftOutJSON(dst []byte) []byte {
	n := r.LeftOut()
	w := writer{append(dst, '{')}
	for _, reason := range []string{LeftOtherSignature, LeftNoContent, LeftNoAnswer, LeftNoContext} {
		w.int(reason, int64(n[reason]))
	}
	return append(w.b, '}')
}

// Column is a column of the rows as a table.
type Column struct {
	Name string
	part part
	key  string
}

// Columns are the columns of the rows as a table: the data, what the calls were
// shown, then rating, rated_by, origin, disputed, sample, version and call. A
// table has one set of columns, so a name that any row's data has is taken in
// all of them.
func (r *Rated) Columns() []Column {
	var columns []Column
	taken := map[string]bool{}
	add := func(p part, key string) { columns = append(columns, Column{free(taken, key), p, key}) }
	union := func(p part, names func(*ratedRow) []string) {
		seen := map[string]bool{}
		for i := range r.rows {
			for _, name := range names(r.held(i)) {
				if !seen[name] {
					seen[name] = true
					add(p, name)
				}
			}
		}
	}
	union(partInput, func(row *ratedRow) []string { return row.inputs })
	union(partLabel, func(row *ratedRow) []string { return row.labels })
	has := map[string]bool{}
	for i := range r.rows {
		for _, key := range r.held(i).contextKeys(r.context) {
			has[key] = true
		}
	}
	for _, key := range []string{keyEarlier, keyConversation, keySections, keyHelpers} {
		if has[key] {
			add(partAdded, key)
		}
	}
	for _, key := range []string{keyRating, keyRatedBy, keyOrigin, keyDisputed, keySample, keyVersion, keyCall} {
		add(partAdded, key)
	}
	return columns
}

// Cell is row i's value in a column; no value, which is not null, when the row
// has none.
func (r *Rated) Cell(i int, c Column) datasets.Value {
	row := r.held(i)
	switch c.part {
	case partInput:
		return row.row.Inputs[c.key]
	case partLabel:
		return row.row.Labels[c.key]
	}
	if !slices.Contains(ratingKeys, c.key) && !slices.Contains(row.contextKeys(r.context), c.key) {
		return datasets.Value{}
	}
	return datasets.RawValue(string(row.appendPart(nil, c.part, c.key)))
}
