package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Failure is why a call, or something on the way to one, could not be done. It
// is data: a failed call is a finished fact that is recorded and counted, not a
// Go error that ends a run. It is an error as well, so that the functions that
// refuse something can return it.
type Failure struct {
	Type    string // one of the Type constants
	Code    string // a stable code such as "plugin-change" or "parse-missing"; "" when there is none
	Message string // what was wrong and what to do, in lower case
	Plugin  string // the plugin it is about; "" when none
	Hook    Hook   // the hook it is about; "" when none

	Usage      Usage         // tokens that were charged all the same; unknown ones are absent
	RetryAfter time.Duration // how long the provider asked to be left alone; 0 when it did not say
	Attempts   []Attempt     // tries of the same request that failed before this one, in order
}

// The types of failures, as records spell them.
const (
	TypePlugin       = "PluginError"       // a plugin was refused or failed
	TypeInterface    = "InterfaceError"    // inputs that do not fit the program
	TypeProgram      = "ProgramError"      // a definition that cannot be used
	TypeReply        = "ReplyError"        // a reply that could not be read
	TypeTool         = "ToolError"         // a tool that could not be used
	TypeStepLimit    = "StepLimit"         // more requests than the call may make
	TypeApproval     = "ApprovalError"     // a person's approval was needed and not to be had
	TypeConversation = "ConversationError" // a conversation, or its turn, could not do what was asked of it
	TypeRateLimit    = "RateLimitError"    // the provider throttled
	TypeServer       = "ServerError"       // the provider failed
	TypeTimeout      = "TimeoutError"      // no answer in time
	TypeRefusal      = "RefusalError"      // the provider refused the request
	TypeNotRecorded  = "NotRecordedError"  // a recorded model was asked what it never answered
	TypeToolUnknown  = "ToolNotRecorded"   // a tool was called as it never was in the record that stands for it
	TypeDiverged     = "DivergedError"     // the journal has an answer to another request at this place
	TypeCancelled    = "Cancelled"         // the call was cancelled
)

// The codes of failures of a request that was not sent, or not once more.
const (
	CodeOutage  = "outage"  // the service was given up
	CodeUnsent  = "unsent"  // the request's time was over before it was its turn
	CodeAwaited = "awaited" // the request is left to a batch, which is found again
)

// UnsentCode reports whether a failure of the code is of a request that was not sent
// after the tries that failed before.
func UnsentCode(code string) bool {
	return code == CodeOutage || code == CodeUnsent || code == CodeAwaited
}

// Error is the message, after the code and the plugin and hook when there are any.
func (f *Failure) Error() string {
	s := f.Message
	if f.Plugin != "" {
		where := "plugin " + f.Plugin
		if f.Hook != "" {
			where += ", " + string(f.Hook)
		}
		s = where + ": " + s
	}
	if f.Code != "" {
		s = f.Code + ": " + s
	}
	return s
}

// Class says in one word how reports group the failure: "unreadable",
// "refused", "tool", "plugin", "interface", "rate_limited", "timeout",
// "server", "never_recorded", "tool_never_recorded", "diverged", "canceled",
// "program", "steps", "approval" or "conversation".
func (f *Failure) Class() string {
	if c, ok := classes[f.Type]; ok {
		return c
	}
	return "other"
}

var classes = map[string]string{
	TypePlugin: "plugin", TypeInterface: "interface", TypeProgram: "program", TypeReply: "unreadable",
	TypeTool: "tool", TypeStepLimit: "steps", TypeApproval: "approval", TypeConversation: "conversation", TypeRateLimit: "rate_limited",
	TypeServer: "server", TypeTimeout: "timeout", TypeRefusal: "refused",
	TypeNotRecorded: "never_recorded", TypeToolUnknown: "tool_never_recorded", TypeDiverged: "diverged", TypeCancelled: "canceled",
}

// Classes are what failures may be grouped under, sorted.
func Classes() []string {
	return slices.Sorted(maps.Values(classes))
}

// Failf makes a Failure of a type and code.
func Failf(typ, code, format string, args ...any) *Failure {
	return &Failure{Type: typ, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Fatal is an error that ends a run and not only a call: what was answered could
// not be kept.
type Fatal struct {
	Err      error
	Attempts []Attempt // tries of the request that failed before, in order
}

func (f *Fatal) Error() string { return f.Err.Error() }
func (f *Fatal) Unwrap() error { return f.Err }
