package replay

import (
	"time"

	"evalrun/datasets"
	"evalrun/internal/columnar"
)

// row is the record as columns.
func (r *Record) row() callRow {
	p := &r.Program
	row := callRow{
		ID: r.ID, Format: int32(r.Format), Parent: r.Parent, Root: r.Root, Started: micros(r.Started),
		ProgramName: p.Name, ProgramKind: p.Kind, ProgramModule: p.Module, ProgramVersion: p.Version,
		ProgramSignature: p.Signature, ProgramInterface: p.Interface, ProgramAnswer: p.Answer, ProgramFile: p.File,
		ProgramLine: p.Line, ProgramSaved: p.Saved.JSON(), ProgramRemote: p.Remote.JSON(), ProgramExtra: extraOf(p.Extra, false),
		Seconds: r.Seconds, Content: r.Content, Omitted: r.Omitted.JSON(),
		Inputs: r.Inputs.JSON(), Outputs: jsonOrNull(r.Outputs), Returned: r.Returned.JSON(), Sizes: r.Sizes.JSON(),
		Model: r.Model, Usage: jsonOrNull(r.Usage), Confidence: r.Confidence,
		Probabilities: r.Probabilities.JSON(), Escalated: r.Escalated.JSON(),
		Exchanges: rowsOf(r.Exchanges, (*Exchange).row), Saw: rowsOf(r.Saw, (*Saw).row), Sections: r.Sections,
		Changes: rowsOf(r.Changes, (*Change).row), Replayable: r.Replayable, Steps: rowsOf(r.Steps, stepOf),
		Described: r.Described.JSON(), Journal: r.Journal.JSON(), Invocation: r.Invocation, Writer: r.Writer,
		Truncated: r.Truncated.JSON(), Process: r.Process.JSON(), Absent: r.Absent, Extra: extraOf(r.Extra, false),
	}
	if e := r.Error; e != nil {
		row.ErrorType, row.ErrorCode, row.ErrorMessage = e.Type, e.Code, e.Message
		row.ErrorExtra = extraOf(e.Extra, e.Type == "" && e.Code == "" && e.Message == "")
	}
	if c := r.Conversation; c != nil {
		row.ConversationID, row.ConversationTurn, row.ConversationParent = c.ID, c.Turn, c.Parent
		row.ConversationExtra = extraOf(c.Extra, c.ID == "" && c.Turn == "" && c.Parent == "")
	}
	if c := r.Caller; c != nil {
		row.CallerKind, row.CallerUser, row.CallerNotebook, row.CallerCell = c.Kind, c.User, c.Notebook, c.Cell
		row.CallerConversation, row.CallerEvaluation = c.Conversation, c.Evaluation
		row.CallerOptimization, row.CallerCompaction = c.Optimization, c.Compaction
		row.CallerExtra = extraOf(c.Extra, row.callerIsEmpty())
	}
	if row.Started == 0 && !r.Started.IsZero() { // 1970 to the microsecond: a zero is stored as NULL
		row.Extra = extraOf(with(r.Extra, "started", r.Started), false)
	}
	return row
}

func (row *callRow) callerIsEmpty() bool {
	return row.CallerKind == "" && row.CallerUser == "" && row.CallerNotebook == "" && row.CallerCell == "" &&
		row.CallerConversation == "" && row.CallerEvaluation == "" && row.CallerOptimization == "" && row.CallerCompaction == ""
}

func (x *Exchange) row() exchangeRow {
	row := exchangeRow{
		Model: x.Model, Provider: x.Provider, Started: micros(x.Started), Seconds: x.Seconds, Cached: x.Cached,
		Finish: x.Finish, Usage: x.Usage.JSON(), Request: x.Request.JSON(), Response: x.Response.JSON(),
		RequestHash: x.RequestHash, Error: x.Error.JSON(), Streamed: x.Streamed, FirstDelta: x.FirstDelta,
		Extra: extraOf(x.Extra, false),
	}
	if row.Started == 0 && !x.Started.IsZero() {
		row.Extra = extraOf(with(x.Extra, "started", x.Started), false)
	}
	return row
}

func (s *Saw) row() sawRow {
	return sawRow{s.Call, s.SawOf, s.Steps, s.Without, s.Slot.JSON(), extraOf(s.Extra, false)}
}

func (c *Change) row() changeRow {
	return changeRow{c.Plugin, c.Version, c.Hook, c.Change.JSON(), extraOf(c.Extra, false)}
}

// stepOf spreads a step, which is an object, over columns.
func stepOf(s *datasets.Step) stepRow {
	var row stepRow
	var extra datasets.Values
	c := enter(s.JSON())
	for name, v, ok := c.member(); ok; name, v, ok = c.member() {
		taken := true
		switch name {
		case "kind":
			taken = setText(&row.Kind, v)
		case "id":
			taken = setText(&row.ID, v)
		case "name":
			taken = setText(&row.Name, v)
		case "output":
			row.Output = v
		case "children":
			row.Children = v
		case "outputs":
			row.Outputs = v
		case "message":
			row.Message = v
		case "request":
			row.Request = v
		case "calls_field":
			taken = setText(&row.CallsField, v)
		default:
			taken = false
		}
		if !taken {
			put(&extra, name, v)
		}
	}
	row.Extra = extraOf(extra, false)
	return row
}

// row is the rating as columns.
func (r *Rating) row() ratingRow {
	row := ratingRow{
		ID: r.ID, Format: int32(r.Format), Call: r.Call, At: micros(r.At), By: r.By, Account: r.Account,
		Verdict: r.Verdict, Answer: r.Answer.JSON(), Outputs: r.Outputs.JSON(), Reasons: r.Reasons.JSON(),
		Note: r.Note, Origin: r.Origin, Sample: r.Sample, Absent: r.Absent, Extra: extraOf(r.Extra, false),
	}
	if row.At == 0 && !r.At.IsZero() {
		row.Extra = extraOf(with(r.Extra, "at", r.At), false)
	}
	return row
}

// rowsOf turns a list into rows and keeps a missing one apart from an empty one.
func rowsOf[T, R any](list []T, row func(*T) R) []R {
	if list == nil {
		return nil
	}
	rows := make([]R, len(list))
	for i := range list {
		rows[i] = row(&list[i])
	}
	return rows
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// with is extra and a time that no column could hold.
func with(extra datasets.Values, name string, t time.Time) datasets.Values {
	all := datasets.Values{name: datasets.Text(timeText(t, datasets.Value{}))}
	for name, v := range extra {
		all[name] = v
	}
	return all
}

// jsonOrNull is for a key whose null is NULL.
func jsonOrNull(v datasets.Value) columnar.JSON {
	if v.IsNull() {
		return ""
	}
	return v.JSON()
}

// extraOf is an object of what no column holds; NULL when there is nothing,
// unless it must show that the object is there.
func extraOf(extra datasets.Values, force bool) columnar.JSON {
	if len(extra) == 0 && !force {
		return ""
	}
	return extra.Object().JSON()
}
