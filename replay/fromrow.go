package replay

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"evalrun/datasets"
	"evalrun/internal/columnar"
)

// fromRow reads what a row's columns say. Files come from disks and from other
// hands, so that nothing is taken for JSON, or for a number, unseen; the first
// column that is none is kept as the error.
type fromRow struct{ err error }

func (f *fromRow) record(row *callRow) *Record {
	r := &Record{
		Format: int(row.Format), ID: row.ID, Parent: row.Parent, Root: row.Root, Started: timeOf(row.Started),
		Program: Program{
			Name: row.ProgramName, Kind: row.ProgramKind, Module: row.ProgramModule, Version: row.ProgramVersion,
			Signature: row.ProgramSignature, Interface: row.ProgramInterface, Answer: row.ProgramAnswer,
			File: row.ProgramFile, Line: row.ProgramLine, Saved: f.value("program_saved", row.ProgramSaved),
			Remote: f.value("program_remote", row.ProgramRemote), Extra: f.extra("program_extra", row.ProgramExtra),
		},
		Seconds: f.number("seconds", row.Seconds), Content: row.Content, Omitted: f.value("omitted", row.Omitted),
		Inputs: f.value("inputs", row.Inputs), Outputs: f.value("outputs", row.Outputs),
		Returned: f.value("returned", row.Returned), Sizes: f.value("sizes", row.Sizes),
		Model: row.Model, Usage: f.value("usage", row.Usage), Confidence: f.number("confidence", row.Confidence),
		Probabilities: f.value("probabilities", row.Probabilities), Escalated: f.value("escalated", row.Escalated),
		Exchanges: rowsOf(row.Exchanges, f.exchange), Saw: rowsOf(row.Saw, f.saw), Sections: row.Sections,
		Changes: rowsOf(row.Changes, f.change), Replayable: row.Replayable, Steps: rowsOf(row.Steps, f.step),
		Described: f.value("described", row.Described), Journal: f.value("journal", row.Journal),
		Invocation: row.Invocation, Writer: row.Writer, Truncated: f.value("truncated", row.Truncated),
		Process: f.value("process", row.Process), Absent: row.Absent, Extra: f.extra("extra", row.Extra),
	}
	if row.ErrorType != "" || row.ErrorCode != "" || row.ErrorMessage != "" || row.ErrorExtra != "" {
		r.Error = &Error{row.ErrorType, row.ErrorMessage, row.ErrorCode, f.extra("error_extra", row.ErrorExtra)}
	}
	if row.ConversationID != "" || row.ConversationTurn != "" || row.ConversationParent != "" || row.ConversationExtra != "" {
		r.Conversation = &Conversation{
			row.ConversationID, row.ConversationTurn, row.ConversationParent,
			f.extra("conversation_extra", row.ConversationExtra),
		}
	}
	if !row.callerIsEmpty() || row.CallerExtra != "" {
		r.Caller = &Caller{
			row.CallerKind, row.CallerUser, row.CallerNotebook, row.CallerCell, row.CallerConversation,
			row.CallerEvaluation, row.CallerOptimization, row.CallerCompaction, f.extra("caller_extra", row.CallerExtra),
		}
	}
	if r.ID == "" || row.Format < 1 || row.Format > latestCall {
		f.fail("format and id", fmt.Errorf("a call of format %d with id %q", row.Format, r.ID))
	}
	return r
}

func (f *fromRow) exchange(row *exchangeRow) Exchange {
	return Exchange{
		Model: row.Model, Provider: row.Provider, Started: timeOf(row.Started), Seconds: f.number("exchanges[].seconds", row.Seconds),
		Cached: row.Cached, Finish: row.Finish, Usage: f.value("exchanges[].usage", row.Usage),
		Request: f.value("exchanges[].request", row.Request), Response: f.value("exchanges[].response", row.Response),
		RequestHash: row.RequestHash, Error: f.value("exchanges[].error", row.Error), Streamed: row.Streamed,
		FirstDelta: f.number("exchanges[].first_delta", row.FirstDelta), Extra: f.extra("exchanges[].extra", row.Extra),
	}
}

func (f *fromRow) saw(row *sawRow) Saw {
	return Saw{row.Call, row.SawOf, row.Steps, row.Without, f.value("saw[].slot", row.Slot), f.extra("saw[].extra", row.Extra)}
}

func (f *fromRow) change(row *changeRow) Change {
	return Change{row.Plugin, row.Version, row.Hook, f.value("changes[].change", row.Change), f.extra("changes[].extra", row.Extra)}
}

func (f *fromRow) step(row *stepRow) datasets.Step {
	var w writer
	w.open()
	w.text("kind", row.Kind)
	w.text("id", row.ID)
	w.text("name", row.Name)
	w.value("output", f.value("steps[].output", row.Output))
	w.value("children", f.value("steps[].children", row.Children))
	w.value("outputs", f.value("steps[].outputs", row.Outputs))
	w.value("message", f.value("steps[].message", row.Message))
	w.value("request", f.value("steps[].request", row.Request))
	w.text("calls_field", row.CallsField)
	w.close(f.extra("steps[].extra", row.Extra))
	return datasets.RawValue(string(w.b))
}

func (f *fromRow) rating(row *ratingRow) *Rating {
	r := &Rating{
		Format: int(row.Format), ID: row.ID, Call: row.Call, At: timeOf(row.At), By: row.By, Account: row.Account,
		Verdict: row.Verdict, Answer: f.value("answer", row.Answer), Outputs: f.value("outputs", row.Outputs),
		Reasons: f.value("reasons", row.Reasons), Note: row.Note, Origin: row.Origin, Sample: row.Sample,
		Absent: row.Absent, Extra: f.extra("extra", row.Extra),
	}
	if r.ID == "" || row.Format < 1 || row.Format > latestRating {
		f.fail("format and id", fmt.Errorf("a rating of format %d with id %q", row.Format, r.ID))
	}
	return r
}

func (f *fromRow) fail(column string, err error) {
	if f.err == nil {
		f.err = fmt.Errorf("column %s: %w", column, err)
	}
}

func (f *fromRow) value(column string, text columnar.JSON) datasets.Value {
	if text == "" {
		return datasets.Value{}
	}
	if !utf8.ValidString(text) || !validJSON([]byte(text)) {
		f.fail(column, fmt.Errorf("%.40q is no JSON value", text))
		return datasets.Value{}
	}
	return datasets.RawValue(strings.Trim(text, " \t\r\n"))
}

func (f *fromRow) extra(column string, text columnar.JSON) datasets.Values {
	v := f.value(column, text)
	if v.IsZero() {
		return nil
	}
	if v.Kind() != '{' {
		f.fail(column, fmt.Errorf("%.40q is no JSON object", text))
		return nil
	}
	var extra datasets.Values
	c := enter(v.JSON())
	for name, v, ok := c.member(); ok; name, v, ok = c.member() {
		put(&extra, name, v)
	}
	return extra
}

func (f *fromRow) number(column string, n *float64) *float64 {
	if n != nil && (math.IsNaN(*n) || math.IsInf(*n, 0)) {
		f.fail(column, fmt.Errorf("%v is no number", *n))
		return nil
	}
	return n
}

func timeOf(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
