package replay

import (
	"slices"
	"time"

	"evalrun/datasets"
)

// Record is a call at rest: one record of a call log, of format 1 or 2.
//
// Reading loses nothing. A key this package does not know, and a known key whose
// value is not what its field holds (a number where text belongs, a time not
// written to the microsecond, an empty text, a null), travels in Extra as it was
// written, so that a record read and written again is equal as canonical JSON.
// A field with its zero value therefore means that the record has nothing usable
// under that key.
//
// Six keys are in every record of format 2, with null for "none": parent,
// outputs, error, model, usage and confidence. Their zero value is that null,
// unless Absent names the key.
type Record struct {
	Format int    // of the call log: 1 or 2
	ID     string // a UUIDv7, made when the call starts; never ""

	Parent  string // the call it ran inside; "" for an outermost call
	Root    string // the outermost call
	Program Program
	Started time.Time // UTC, to the microsecond
	Seconds *float64  // wall clock

	Content  *bool          // true: every value is here; false: some or all were left out
	Omitted  datasets.Value // {"inputs": […], "outputs": […]}, the names left out; format 2 has it exactly when content is false
	Inputs   datasets.Value // an object: values by name
	Outputs  datasets.Value // an object; none when the call failed before an answer
	Returned datasets.Value // what the program's own code returned, when it changed the answer
	Sizes    datasets.Value // code points of each field's canonical JSON
	Error    *Error         // nil when the call was answered

	Model         string         // the model that answered
	Usage         datasets.Value // token counts summed over the call's own exchanges
	Confidence    *float64
	Probabilities datasets.Value
	Escalated     datasets.Value

	Exchanges    []Exchange      // every model request in order, failed ones and cache hits included
	Saw          []Saw           // the earlier calls it was shown; empty: none; nil: not recorded
	Sections     []string        // what its conversation's context hooks gave it
	Changes      []Change        // what plugins changed, in order
	Replayable   *bool           // false: a request handler replaced a request
	Steps        []datasets.Step // its model and tool steps, objects
	Conversation *Conversation   // set for a conversation's turn

	Described  datasets.Value // the values that are descriptions and not data
	Journal    datasets.Value // state of a journal
	Invocation *int64         // number of the tool call that made this call
	Writer     int64          // of several records of one id, the highest counts; 0 is absent and counts as 1
	Truncated  datasets.Value // set when the record was cut to fit
	Caller     *Caller        // who called
	Process    datasets.Value // host, pid, user, language, runtime, library versions

	Absent []string        // of the six keys, "program" and "conversation.parent": those that are missing, or in Extra
	Extra  datasets.Values // everything else, by key; no key that a field holds
}

// Program is what a record says of the program that was called.
type Program struct {
	Name      string
	Kind      string // ai, module or remote
	Module    string
	Version   string
	Signature string // hash over all fields; AI functions only
	Interface string // hash over the plain fields
	Answer    string // name of the answer output
	File      string
	Line      int64
	Saved     datasets.Value
	Remote    datasets.Value
	Extra     datasets.Values
}

// Error is why a call failed.
type Error struct {
	Type    string
	Message string // not kept when content is not whole
	Code    string
	Extra   datasets.Values
}

// Exchange is one model request and what came of it. Request, response and
// request hash are there only when the record's content is whole.
type Exchange struct {
	Model       string
	Provider    string
	Started     time.Time // UTC, to the microsecond
	Seconds     *float64
	Cached      *bool
	Finish      string
	Usage       datasets.Value
	Request     datasets.Value
	Response    datasets.Value
	RequestHash string
	Error       datasets.Value
	Streamed    *bool
	FirstDelta  *float64
	Extra       datasets.Values
}

// Saw is one earlier call that a call was shown, or, as the first entry only,
// SawOf: everything that call saw.
type Saw struct {
	Call    string
	SawOf   string
	Steps   *bool    // true: shown with its steps
	Without []string // fields left out when shown
	Slot    datasets.Value
	Extra   datasets.Values // a key here is a form of showing that this version does not know
}

// Change is one change a plugin made.
type Change struct {
	Plugin  string
	Version string
	Hook    string
	Change  datasets.Value // not kept when content is not whole
	Extra   datasets.Values
}

// Conversation places a call that was a conversation's turn. Its parent is null
// when Parent is "", unless the record's Absent names "conversation.parent".
type Conversation struct {
	ID     string
	Turn   string
	Parent string
	Extra  datasets.Values
}

// Caller says who called.
type Caller struct {
	Kind         string
	User         string
	Notebook     string
	Cell         string
	Conversation string
	Evaluation   string // a run's id: the call was no use
	Optimization string
	Compaction   string
	Extra        datasets.Values
}

// Whole reports whether every value of the call is in the record.
func (r *Record) Whole() bool { return r.Content != nil && *r.Content }

// WriterRank is the record's writer as records of one id are ranked: the highest
// counts.
func (r *Record) WriterRank() int64 {
	if r.Writer == 0 {
		return 1
	}
	return r.Writer
}

// StartedText is the record's start as it was written, whether or not it is a
// time: calls are put in order by it. It is "" when there is none.
func (r *Record) StartedText() string { return timeText(r.Started, r.Extra["started"]) }

// lacks reports whether the record has no such key, of those that may be null.
func (r *Record) lacks(key string) bool { return slices.Contains(r.Absent, key) }

// timeForm is how records write times: UTC with exactly six fraction digits.
const timeForm = "2006-01-02T15:04:05.000000Z"

func timeText(t time.Time, other datasets.Value) string {
	if !t.IsZero() {
		return t.UTC().Format(timeForm)
	}
	s, _ := other.AsText()
	return s
}
