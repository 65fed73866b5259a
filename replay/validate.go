package replay

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/uuid"

	"evalrun/datasets"
	"evalrun/internal/columnar"
)

// Problem is something wrong with records at rest.
type Problem struct {
	Where string `json:"where"` // FILE, FILE:LINE or FILE: row N, from 0; "" when What says it
	Field string `json:"field"` // the record's field; "" when it is about the whole
	What  string `json:"what"`
	Minor bool   `json:"minor"` // nothing is lost or left out by it
}

// String is one line for a person.
func (p Problem) String() string {
	s := p.What
	if p.Field != "" {
		s = p.Field + ": " + s
	}
	if p.Where != "" {
		s = p.Where + ": " + s
	}
	return s
}

// Validate looks at every record of the paths, as [Open] takes them, and passes
// on what is wrong, until report says that it is enough: files that cannot be
// used, lines that are skipped, values that are not what their field holds,
// records of one id, and rows out of order. It returns how many records it saw.
// An error means that it could not look. It holds the records' ids in memory.
func Validate(paths []string, report func(Problem) bool) (calls, ratings int64, err error) {
	v := &validator{report: report, writers: map[string]int64{}, ratings: map[string]bool{}}
	for _, path := range paths {
		names, err := filesOf(path)
		if err != nil {
			return v.seen[0], v.seen[1], err
		}
		for _, name := range names {
			l := &library{counted: map[file]bool{}}
			if err := v.opened(l.addFile(name)); err != nil {
				return v.seen[0], v.seen[1], err
			}
			for _, f := range l.files {
				v.file(f)
			}
			_ = l.Close()
			if v.enough {
				return v.seen[0], v.seen[1], nil
			}
		}
	}
	return v.seen[0], v.seen[1], nil
}

type validator struct {
	report  func(Problem) bool
	enough  bool
	seen    [2]int64
	writers map[string]int64 // highest writer by call
	ratings map[string]bool
}

func (v *validator) problem(p Problem) {
	if !v.enough {
		v.enough = !v.report(p)
	}
}

// opened reports a Parquet file that cannot be used as a problem of it; any
// other error is returned.
func (v *validator) opened(err error) error {
	if bad, ok := errors.AsType[*columnar.Error](err); ok {
		v.problem(unusable(bad))
		return nil
	}
	return err
}

func unusable(bad *columnar.Error) Problem {
	what := bad.Problem
	if bad.Err != nil {
		what += ": " + bad.Err.Error()
	}
	return Problem{Where: bad.Path, What: what}
}

func (v *validator) file(f file) {
	var last *Record
	_, sorted := f.(*callsFile)
	err := f.each(func(nr int64, call *Record, rating *Rating) bool {
		at := f.where(nr)
		if rating != nil {
			v.seen[1]++
			v.rating(at, rating)
			return !v.enough
		}
		v.seen[0]++
		v.call(at, call)
		if sorted && last != nil {
			if a, b := timeColumn(last.Started), timeColumn(call.Started); a > b || a == b && last.ID > call.ID {
				v.problem(Problem{Where: at, Field: "started", What: "the file is not sorted by (started, id), as it says"})
				sorted = false
			}
		}
		last = call
		return !v.enough
	}, func(line int64, err error) {
		v.problem(Problem{Where: f.where(line), What: "skipped: " + err.Error()})
	})
	if err != nil {
		if bad, ok := errors.AsType[*columnar.Error](err); ok {
			v.problem(unusable(bad))
		} else {
			v.problem(Problem{What: err.Error()})
		}
	}
}

func (v *validator) call(at string, r *Record) {
	if has, ok := v.writers[r.ID]; ok {
		v.problem(Problem{at, "id", fmt.Sprintf("there is another record of %s; the one of the highest writer counts (here %d and %d)", r.ID, has, r.WriterRank()), has != r.WriterRank()})
	}
	v.writers[r.ID] = max(v.writers[r.ID], r.WriterRank())
	v.id(at, "id", r.ID)
	v.extra(at, "", r.Extra, callNames)
	v.extra(at, "program.", r.Program.Extra, programNames)
	if r.Error != nil {
		v.extra(at, "error.", r.Error.Extra, errorNames)
	}
	if r.Conversation != nil {
		v.extra(at, "conversation.", r.Conversation.Extra, conversationNames)
	}
	if r.Caller != nil {
		v.extra(at, "caller.", r.Caller.Extra, callerNames)
	}
	for i := range r.Exchanges {
		v.extra(at, fmt.Sprintf("exchanges[%d].", i), r.Exchanges[i].Extra, exchangeNames)
	}
	for i := range r.Saw {
		v.extra(at, fmt.Sprintf("saw[%d].", i), r.Saw[i].Extra, sawNames)
	}
	for i := range r.Changes {
		v.extra(at, fmt.Sprintf("changes[%d].", i), r.Changes[i].Extra, changeNames)
	}
	v.object(at, "inputs", r.Inputs)
	v.object(at, "outputs", r.Outputs)
	if r.Format == 2 && r.Started.IsZero() && r.Extra["started"].IsZero() {
		v.problem(Problem{at, "started", "missing: the call comes before all that have a time", true})
	}
}

func (v *validator) rating(at string, r *Rating) {
	if v.ratings[r.ID] {
		v.problem(Problem{at, "id", fmt.Sprintf("there is another rating %s; the first counts", r.ID), false})
	}
	v.ratings[r.ID] = true
	v.id(at, "id", r.ID)
	v.extra(at, "", r.Extra, ratingNames)
	v.object(at, "outputs", r.Outputs)
	if r.Call == "" && r.Extra["call"].IsZero() {
		v.problem(Problem{at, "call", "missing: the rating is of no call", false})
	}
	if r.Verdict != "" && r.Verdict != "right" && r.Verdict != "wrong" {
		v.problem(Problem{at, "verdict", fmt.Sprintf("%.40q says nothing; it is right, wrong or null", r.Verdict), false})
	}
}

func (v *validator) id(at, field, id string) {
	if _, err := uuid.Parse(id); err != nil {
		v.problem(Problem{at, field, fmt.Sprintf("%.60q is no UUID; it is kept as it is", id), true})
	}
}

func (v *validator) object(at, field string, value datasets.Value) {
	if !value.IsZero() && value.Kind() != '{' {
		v.problem(Problem{at, field, fmt.Sprintf("%.40s where an object belongs", value.JSON()), false})
	}
}

// extra reports known keys that no field could take, and unknown ones.
func (v *validator) extra(at, object string, extra datasets.Values, known map[string]bool) {
	for _, name := range extra.Names() {
		switch value := extra[name]; {
		case !known[name]:
			v.problem(Problem{at, object + name, "unknown key; it is kept", true})
		case value.IsNull() || value.JSON() == `""`:
		default:
			v.problem(Problem{at, object + name, fmt.Sprintf("%.40s is not what belongs here%s; it is kept and not used", value.JSON(), expected(object+name)), false})
		}
	}
}

// expected says what a key holds, where it is not plain.
func expected(key string) string {
	switch key[strings.LastIndexByte(key, '.')+1:] {
	case "started", "at":
		return " (a time such as 2025-01-31T12:00:00.123456Z, UTC with six fraction digits, does)"
	case "seconds", "confidence", "first_delta":
		return " (a number does)"
	case "content", "cached", "streamed", "replayable", "steps":
		return " (true or false does)"
	}
	return ""
}

// The names of the keys that fields hold, taken from the columns.
var (
	callNames         = names("", callRow{}, "functai_call", "program", "error", "conversation", "caller")
	programNames      = names("program_", callRow{})
	errorNames        = names("error_", callRow{})
	conversationNames = names("conversation_", callRow{})
	callerNames       = names("caller_", callRow{})
	exchangeNames     = names("", exchangeRow{})
	sawNames          = names("", sawRow{})
	changeNames       = names("", changeRow{})
	ratingNames       = names("", ratingRow{}, "functai_rating")
)

// names are the names of a row's columns that begin with the prefix, without it.
func names(prefix string, row any, more ...string) map[string]bool {
	set := map[string]bool{}
	for _, name := range more {
		set[name] = true
	}
	t := reflect.TypeOf(row)
	for i := range t.NumField() {
		column, _, _ := strings.Cut(t.Field(i).Tag.Get("parquet"), ",")
		if name, ok := strings.CutPrefix(column, prefix); ok && name != "extra" && name != "absent" && name != "format" {
			set[name] = true
		}
	}
	return set
}

// Schema lists the columns of a file of a store, or of the first file of each
// kind of a store's folder.
func Schema(path string) ([]FileSchema, error) {
	l := &library{counted: map[file]bool{}}
	defer l.Close()
	if err := l.add(path); err != nil {
		return nil, err
	}
	var list []FileSchema
	for _, f := range l.files {
		var file *columnar.File
		switch f := f.(type) {
		case *callsFile:
			file = f.file
		case *ratingsFile:
			file = f.file
		default:
			continue
		}
		s := file.Schema()
		if slices.ContainsFunc(list, func(has FileSchema) bool { return has.Schema == s.Name && has.Version == s.Version }) {
			continue
		}
		list = append(list, FileSchema{file.Path(), s.Name, s.Version, file.Columns()})
	}
	if list == nil {
		return nil, refusedf("%s is a call log, which has no columns; make a store of it with 'evalrun import'", path)
	}
	return list, nil
}

// FileSchema is what a Parquet file says of its columns.
type FileSchema struct {
	File    string            `json:"file"`
	Schema  string            `json:"schema"` // evalrun.calls or evalrun.ratings
	Version int               `json:"version"`
	Columns []columnar.Column `json:"columns"`
}
