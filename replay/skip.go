package replay

import "fmt"

// The reasons for which a line of a call log is left out.
const (
	SkipTorn       = "torn"           // the last line of a file has no end: a writer may be in the middle of it
	SkipTooLong    = "too-long"       // longer than MaxLine
	SkipNotUTF8    = "not-utf8"       // not UTF-8 text
	SkipNotJSON    = "not-json"       // not one JSON value
	SkipNotObject  = "not-an-object"  // JSON, but no object
	SkipNoFormat   = "not-a-record"   // neither a call nor a rating: it has no functai_call and no functai_rating
	SkipFormat     = "unknown-format" // a call or rating of a format this version does not know
	SkipNoID       = "no-id"          // without a text as its id
	SkipSuperseded = "superseded"     // another record of the same id counts
)

// Skip counts what was left out for one reason.
type Skip struct {
	Reason string `json:"reason"` // one of the Skip constants
	Count  int64  `json:"count"`
	First  string `json:"first"` // where the first one lies, FILE:LINE, or which record it was
}

// String is one line for a person.
func (s Skip) String() string {
	return fmt.Sprintf("%d skipped: %s (first at %s)", s.Count, s.Reason, s.First)
}

// SkipError is why a line is no usable record.
type SkipError struct {
	Reason string // one of the Skip constants
	Detail string // what was found; "" when the reason says it all
}

func (e *SkipError) Error() string {
	if e.Detail == "" {
		return e.Reason
	}
	return e.Reason + ": " + e.Detail
}

// DataError is why something that was named as records is refused: it is none, or
// its content is wrong. What a file of Parquet itself has wrong is a
// columnar.Error. An error of the file system is neither.
type DataError struct{ problem string }

func (e *DataError) Error() string { return e.problem }

func refusedf(format string, args ...any) error {
	return &DataError{fmt.Sprintf(format, args...)}
}

// skips counts by reason, in the order the reasons were first met.
type skips struct {
	found []Skip
}

func (s *skips) add(reason, where string) {
	for i := range s.found {
		if s.found[i].Reason == reason {
			s.found[i].Count++
			return
		}
	}
	s.found = append(s.found, Skip{reason, 1, where})
}

// merge adds what another has counted.
func (s *skips) merge(other skips) {
	for _, o := range other.found {
		s.add(o.Reason, o.First)
		for i := range s.found {
			if s.found[i].Reason == o.Reason {
				s.found[i].Count += o.Count - 1
			}
		}
	}
}

func (s *skips) list() []Skip { return append([]Skip(nil), s.found...) }
