package replay

import "evalrun/internal/columnar"

// Parts says how much of a record is wanted. A Source may always give more, and
// a record that lacks parts must not be written.
type Parts int

const (
	AllParts  Parts = iota // the whole record
	RowParts               // what rated rows are made of: no requests, no more of an exchange than whether it was answered
	LinkParts              // what ties calls together: id, parent, root, program's name, start, conversation, saw, sections
)

// linkRow are the columns of LinkParts.
type linkRow struct {
	ID                 string        `parquet:"id"`
	Format             int32         `parquet:"format"`
	Parent             string        `parquet:"parent,optional"`
	Root               string        `parquet:"root,optional"`
	Started            int64         `parquet:"started,optional,timestamp(microsecond:utc)"`
	ProgramName        string        `parquet:"program_name,optional,dict"`
	Saw                []sawRow      `parquet:"saw,list,optional"`
	Sections           []string      `parquet:"sections,list,optional"`
	ConversationID     string        `parquet:"conversation_id,optional"`
	ConversationTurn   string        `parquet:"conversation_turn,optional"`
	ConversationParent string        `parquet:"conversation_parent,optional"`
	ConversationExtra  columnar.JSON `parquet:"conversation_extra,json,optional"`
	Extra              columnar.JSON `parquet:"extra,json,optional"`
}

func (r *linkRow) call() callRow {
	return callRow{
		ID: r.ID, Format: r.Format, Parent: r.Parent, Root: r.Root, Started: r.Started, ProgramName: r.ProgramName,
		Saw: r.Saw, Sections: r.Sections, ConversationID: r.ConversationID, ConversationTurn: r.ConversationTurn,
		ConversationParent: r.ConversationParent, ConversationExtra: r.ConversationExtra, Extra: r.Extra,
	}
}

// rowRow are the columns of RowParts.
type rowRow struct {
	linkRow
	ProgramKind        string        `parquet:"program_kind,optional,dict"`
	ProgramModule      string        `parquet:"program_module,optional,dict"`
	ProgramVersion     string        `parquet:"program_version,optional,dict"`
	ProgramSignature   string        `parquet:"program_signature,optional,dict"`
	ProgramInterface   string        `parquet:"program_interface,optional,dict"`
	ProgramAnswer      string        `parquet:"program_answer,optional,dict"`
	ProgramFile        string        `parquet:"program_file,optional,dict"`
	Seconds            *float64      `parquet:"seconds,optional"`
	Content            *bool         `parquet:"content,optional"`
	Omitted            columnar.JSON `parquet:"omitted,json,optional"`
	Inputs             columnar.JSON `parquet:"inputs,json,optional"`
	Outputs            columnar.JSON `parquet:"outputs,json,optional"`
	Sizes              columnar.JSON `parquet:"sizes,json,optional"`
	ErrorType          string        `parquet:"error_type,optional,dict"`
	ErrorCode          string        `parquet:"error_code,optional,dict"`
	ErrorMessage       string        `parquet:"error_message,optional"`
	ErrorExtra         columnar.JSON `parquet:"error_extra,json,optional"`
	Model              string        `parquet:"model,optional,dict"`
	Usage              columnar.JSON `parquet:"usage,json,optional"`
	Exchanges          []answeredRow `parquet:"exchanges,list,optional"`
	Changes            []changeRow   `parquet:"changes,list,optional"`
	Replayable         *bool         `parquet:"replayable,optional"`
	Steps              []stepRow     `parquet:"steps,list,optional"`
	Described          columnar.JSON `parquet:"described,json,optional"`
	Truncated          columnar.JSON `parquet:"truncated,json,optional"`
	CallerUser         string        `parquet:"caller_user,optional,dict"`
	CallerEvaluation   string        `parquet:"caller_evaluation,optional,dict"`
	CallerOptimization string        `parquet:"caller_optimization,optional,dict"`
}

// answeredRow are the columns of an exchange that say whether it can be shown
// again, and whether it would be asked the same.
type answeredRow struct {
	Model       string        `parquet:"model,optional,dict"`
	Finish      string        `parquet:"finish,optional,dict"`
	Response    columnar.JSON `parquet:"response,json,optional"`
	RequestHash string        `parquet:"request_hash,optional"`
	Extra       columnar.JSON `parquet:"extra,json,optional"`
}

func (r *rowRow) call() callRow {
	c := r.linkRow.call()
	c.ProgramKind, c.ProgramModule, c.ProgramVersion, c.ProgramSignature = r.ProgramKind, r.ProgramModule, r.ProgramVersion, r.ProgramSignature
	c.ProgramInterface, c.ProgramAnswer, c.ProgramFile = r.ProgramInterface, r.ProgramAnswer, r.ProgramFile
	c.Seconds, c.Content, c.Omitted, c.Inputs, c.Outputs, c.Sizes = r.Seconds, r.Content, r.Omitted, r.Inputs, r.Outputs, r.Sizes
	c.ErrorType, c.ErrorCode, c.ErrorMessage, c.ErrorExtra = r.ErrorType, r.ErrorCode, r.ErrorMessage, r.ErrorExtra
	c.Model, c.Usage, c.Changes, c.Replayable, c.Steps = r.Model, r.Usage, r.Changes, r.Replayable, r.Steps
	c.Described, c.Truncated = r.Described, r.Truncated
	c.CallerUser, c.CallerEvaluation, c.CallerOptimization = r.CallerUser, r.CallerEvaluation, r.CallerOptimization
	if r.Exchanges != nil {
		c.Exchanges = make([]exchangeRow, len(r.Exchanges))
		for i, x := range r.Exchanges {
			c.Exchanges[i] = exchangeRow{Model: x.Model, Finish: x.Finish, Response: x.Response, RequestHash: x.RequestHash, Extra: x.Extra}
		}
	}
	return c
}
