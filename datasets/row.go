// Package datasets owns rows: what a program is asked, what is known to be
// right, and the ways to choose among them.
//
// A [Row] is one example. Its Inputs and Context are what a program is given;
// its Labels are right answers, which no program ever sees; its Meta are facts
// to slice results by. Values are JSON, kept as recorded ([Value]). Rows come
// from a [Source], which reads them by range, so that a data set need not fit
// in memory. The package knows no file format and no model.
package datasets

import "iter"

// Turn is one earlier turn of a conversation, as a call was shown it.
type Turn struct {
	Inputs    Values
	Outputs   Values
	Steps     []Step // model and tool steps, when the turn was shown with them
	Signature string // the signature of the program that answered it; "" when shown by its values alone
}

// Step is one model or tool step of a turn, as recorded: a JSON object.
type Step = Value

// Context is what a call was shown of its conversation. It is part of a call's
// input and travels with a rated call, unlike the host's shaping of the call.
type Context struct {
	Of           string   // the call that was shown this; "" for none
	Earlier      []Turn   // in order
	Sections     []string // what context hooks gave, in order
	Helpers      []Helper // contexts of calls made inside, in order
	Conversation string   // groups rows that depend on each other; "" when none
}

// Helper is the context of a call made inside the row's call.
type Helper struct {
	Program  string // its name
	Call     string // the recorded call's id
	Nth      int    // its place among the calls of that program inside the row's call, from 0, counting those that saw nothing
	Earlier  []Turn
	Sections []string
}

// Verdict is what people said of the recorded output. It says nothing about any
// other output.
type Verdict struct {
	Verdict  string // "right" or "wrong"; "" when the row was not rated
	By       string // the person; "" for an account's rating
	Origin   string // "review" or "edit"
	Sample   string // id of the random draw the rating belongs to; "" when the call was chosen
	Disputed bool   // counting ratings disagree
}

// Sent is what is known of the first request that a recorded call made. It is no
// part of the example: it only tells whether a program still sends the same.
type Sent struct {
	Hash   string // of the request, with its model's name; "" when it was not recorded, or a plugin replaced the request
	Model  string // the model, as the record names it: the one asked, or the one that answered
	Shaped bool   // plugins of the host changed the call before it was sent, or replaced a request
}

// Row is one example.
type Row struct {
	ID       string // unique within its source; the rated call's id
	Inputs   Values
	Context  Context
	Labels   Values // right answers by output name; no program ever sees them
	Verdict  Verdict
	Recorded Values  // the recorded output, for the recorded lane; nil when there is none
	Steps    []Step  // the recorded call's model and tool steps: what its tools were asked and answered; nil when it called none
	Meta     Values  // facts to slice by: version, model, started, …
	Sent     Sent    // how the recorded call asked
	Weight   float64 // 0 means 1
}

// Source is a fixed sequence of rows, read by position. Implementations are
// safe for concurrent use.
type Source interface {
	Len() int
	ID(i int) string       // the id of row i, without reading the row
	At(i int) (Row, error) // row i; the error names the row and where it lies
}

// Rows is a Source held in memory.
type Rows []Row

// Len is the number of rows.
func (r Rows) Len() int { return len(r) }

// ID returns the id of row i.
func (r Rows) ID(i int) string { return r[i].ID }

// At returns row i.
func (r Rows) At(i int) (Row, error) { return r[i], nil }

// All yields the rows of a source in order, each with its position. An error
// ends it.
func All(s Source) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for i := range s.Len() {
			row, err := s.At(i)
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}
