package replay

import "evalrun/internal/columnar"

// The kinds of files of a store. docs/formats.md describes their columns; a file
// of each version is in testdata and must stay readable.
var (
	callsSchema   = columnar.Schema{Name: "evalrun.calls", Version: 1}
	ratingsSchema = columnar.Schema{Name: "evalrun.ratings", Version: 1}
)

// callRow is a call as columns. A column of text, of a number or of a time holds
// a record's field; NULL is a field that is not set. Open values are the JSON
// text of the record. What a record keeps in Extra is in extra, and in
// program_extra and so on for the objects that are spread over columns.
//
// An object whose columns are all NULL is not in the record, or null; if it is
// there and empty, its extra column is {}. (The program is there unless absent
// names it.)
type callRow struct {
	ID      string `parquet:"id"`
	Format  int32  `parquet:"format"`
	Parent  string `parquet:"parent,optional"`
	Root    string `parquet:"root,optional"`
	Started int64  `parquet:"started,optional,timestamp(microsecond:utc)"`

	ProgramName      string        `parquet:"program_name,optional,dict"`
	ProgramKind      string        `parquet:"program_kind,optional,dict"`
	ProgramModule    string        `parquet:"program_module,optional,dict"`
	ProgramVersion   string        `parquet:"program_version,optional,dict"`
	ProgramSignature string        `parquet:"program_signature,optional,dict"`
	ProgramInterface string        `parquet:"program_interface,optional,dict"`
	ProgramAnswer    string        `parquet:"program_answer,optional,dict"`
	ProgramFile      string        `parquet:"program_file,optional,dict"`
	ProgramLine      int64         `parquet:"program_line,optional"`
	ProgramSaved     columnar.JSON `parquet:"program_saved,json,optional"`
	ProgramRemote    columnar.JSON `parquet:"program_remote,json,optional"`
	ProgramExtra     columnar.JSON `parquet:"program_extra,json,optional"`

	Seconds       *float64      `parquet:"seconds,optional"`
	Content       *bool         `parquet:"content,optional"`
	Omitted       columnar.JSON `parquet:"omitted,json,optional"`
	Inputs        columnar.JSON `parquet:"inputs,json,optional"`
	Outputs       columnar.JSON `parquet:"outputs,json,optional"`
	Returned      columnar.JSON `parquet:"returned,json,optional"`
	Sizes         columnar.JSON `parquet:"sizes,json,optional"`
	ErrorType     string        `parquet:"error_type,optional,dict"`
	ErrorCode     string        `parquet:"error_code,optional,dict"`
	ErrorMessage  string        `parquet:"error_message,optional"`
	ErrorExtra    columnar.JSON `parquet:"error_extra,json,optional"`
	Model         string        `parquet:"model,optional,dict"`
	Usage         columnar.JSON `parquet:"usage,json,optional"`
	Confidence    *float64      `parquet:"confidence,optional"`
	Probabilities columnar.JSON `parquet:"probabilities,json,optional"`
	Escalated     columnar.JSON `parquet:"escalated,json,optional"`

	Exchanges  []exchangeRow `parquet:"exchanges,list,optional"`
	Saw        []sawRow      `parquet:"saw,list,optional"`
	Sections   []string      `parquet:"sections,list,optional"`
	Changes    []changeRow   `parquet:"changes,list,optional"`
	Replayable *bool         `parquet:"replayable,optional"`
	Steps      []stepRow     `parquet:"steps,list,optional"`

	ConversationID     string        `parquet:"conversation_id,optional"`
	ConversationTurn   string        `parquet:"conversation_turn,optional"`
	ConversationParent string        `parquet:"conversation_parent,optional"`
	ConversationExtra  columnar.JSON `parquet:"conversation_extra,json,optional"`

	Described  columnar.JSON `parquet:"described,json,optional"`
	Journal    columnar.JSON `parquet:"journal,json,optional"`
	Invocation *int64        `parquet:"invocation,optional"`
	Writer     int64         `parquet:"writer,optional"`
	Truncated  columnar.JSON `parquet:"truncated,json,optional"`

	CallerKind         string        `parquet:"caller_kind,optional,dict"`
	CallerUser         string        `parquet:"caller_user,optional,dict"`
	CallerNotebook     string        `parquet:"caller_notebook,optional,dict"`
	CallerCell         string        `parquet:"caller_cell,optional"`
	CallerConversation string        `parquet:"caller_conversation,optional"`
	CallerEvaluation   string        `parquet:"caller_evaluation,optional,dict"`
	CallerOptimization string        `parquet:"caller_optimization,optional,dict"`
	CallerCompaction   string        `parquet:"caller_compaction,optional"`
	CallerExtra        columnar.JSON `parquet:"caller_extra,json,optional"`

	Process columnar.JSON `parquet:"process,json,optional"`
	Absent  []string      `parquet:"absent,list,optional"`
	Extra   columnar.JSON `parquet:"extra,json,optional"`
}

type exchangeRow struct {
	Model       string        `parquet:"model,optional,dict"`
	Provider    string        `parquet:"provider,optional,dict"`
	Started     int64         `parquet:"started,optional,timestamp(microsecond:utc)"`
	Seconds     *float64      `parquet:"seconds,optional"`
	Cached      *bool         `parquet:"cached,optional"`
	Finish      string        `parquet:"finish,optional,dict"`
	Usage       columnar.JSON `parquet:"usage,json,optional"`
	Request     columnar.JSON `parquet:"request,json,optional"`
	Response    columnar.JSON `parquet:"response,json,optional"`
	RequestHash string        `parquet:"request_hash,optional"`
	Error       columnar.JSON `parquet:"error,json,optional"`
	Streamed    *bool         `parquet:"streamed,optional"`
	FirstDelta  *float64      `parquet:"first_delta,optional"`
	Extra       columnar.JSON `parquet:"extra,json,optional"`
}

type sawRow struct {
	Call    string        `parquet:"call,optional"`
	SawOf   string        `parquet:"saw_of,optional"`
	Steps   *bool         `parquet:"steps,optional"`
	Without []string      `parquet:"without,list,optional"`
	Slot    columnar.JSON `parquet:"slot,json,optional"`
	Extra   columnar.JSON `parquet:"extra,json,optional"`
}

type changeRow struct {
	Plugin  string        `parquet:"plugin,optional,dict"`
	Version string        `parquet:"version,optional,dict"`
	Hook    string        `parquet:"hook,optional,dict"`
	Change  columnar.JSON `parquet:"change,json,optional"`
	Extra   columnar.JSON `parquet:"extra,json,optional"`
}

// stepRow is a model step or a tool step; a record keeps either as JSON.
type stepRow struct {
	Kind       string        `parquet:"kind,optional,dict"`
	ID         string        `parquet:"id,optional"`
	Name       string        `parquet:"name,optional,dict"`
	Output     columnar.JSON `parquet:"output,json,optional"`
	Children   columnar.JSON `parquet:"children,json,optional"`
	Outputs    columnar.JSON `parquet:"outputs,json,optional"`
	Message    columnar.JSON `parquet:"message,json,optional"`
	Request    columnar.JSON `parquet:"request,json,optional"`
	CallsField string        `parquet:"calls_field,optional,dict"`
	Extra      columnar.JSON `parquet:"extra,json,optional"`
}

// ratingRow is a rating as columns.
type ratingRow struct {
	ID      string        `parquet:"id"`
	Format  int32         `parquet:"format"`
	Call    string        `parquet:"call,optional"`
	At      int64         `parquet:"at,optional,timestamp(microsecond:utc)"`
	By      string        `parquet:"by,optional,dict"`
	Account string        `parquet:"account,optional,dict"`
	Verdict string        `parquet:"verdict,optional,dict"`
	Answer  columnar.JSON `parquet:"answer,json,optional"`
	Outputs columnar.JSON `parquet:"outputs,json,optional"`
	Reasons columnar.JSON `parquet:"reasons,json,optional"`
	Note    string        `parquet:"note,optional"`
	Origin  string        `parquet:"origin,optional,dict"`
	Sample  string        `parquet:"sample,optional,dict"`
	Absent  []string      `parquet:"absent,list,optional"`
	Extra   columnar.JSON `parquet:"extra,json,optional"`
}
