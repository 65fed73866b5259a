package replay

import (
	"slices"
	"time"

	"evalrun/datasets"
)

// Rating is what a person, or an account, said of a call: one rating record of
// a call log, of format 1. What was said of [Record] about keys, null and zero
// values holds here; the one key that may be null is verdict.
type Rating struct {
	Format  int            // of the rating record: 1
	ID      string         // a UUIDv7; never ""
	Call    string         // the rated call's id
	At      time.Time      // UTC, to the microsecond
	By      string         // the person; "" for an account's rating
	Account string         // the operating-system account: names nobody
	Verdict string         // "right" or "wrong"; "" takes the person's earlier rating back; any other word says nothing
	Answer  datasets.Value // with "wrong": what the answer should have been; may be null, which is a value
	Outputs datasets.Value // an object: right values of other outputs, in the rating's order
	Reasons datasets.Value
	Note    string
	Origin  string          // review or edit; "" is review
	Sample  string          // id of the random draw the rating belongs to
	Absent  []string        // "verdict" when it is missing, or in Extra
	Extra   datasets.Values // everything else, by key
}

// AtText is the rating's time as it was written, whether or not it is a time:
// ratings are put in order by it. It is "" when there is none.
func (r *Rating) AtText() string { return timeText(r.At, r.Extra["at"]) }

func (r *Rating) lacks(key string) bool { return slices.Contains(r.Absent, key) }
