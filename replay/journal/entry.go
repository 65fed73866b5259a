package journal

import (
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// kept is the JSON of a frame.
type kept struct {
	Site string `json:"site,omitzero"`

	Call *callEntry `json:"call,omitzero"`
	Sent *sentEntry `json:"sent,omitzero"` // a request is about to be sent
	Lost bool       `json:"lost,omitzero"` // nothing came of it; it will be asked anew
	Tool *toolEntry `json:"tool,omitzero"`

	Hash     string              `json:"hash,omitzero"` // of the request
	Text     string              `json:"text,omitzero"`
	Calls    []pipeline.ToolCall `json:"calls,omitzero"`
	Finish   string              `json:"finish,omitzero"`
	Model    string              `json:"model,omitzero"`
	By       string              `json:"provider,omitzero"`
	System   string              `json:"system,omitzero"`
	Usage    pipeline.Usage      `json:"usage,omitzero"`
	Reply    datasets.Value      `json:"response,omitzero"`
	From     pipeline.Origin     `json:"from,omitzero"`
	Attempts []attemptEntry      `json:"attempts,omitzero"`
	Waited   int64               `json:"waited_ns,omitzero"`
	Wire     int64               `json:"wire_ns,omitzero"`
	Failure  *failureEntry       `json:"failure,omitzero"`

	Forget []Answer `json:"forget,omitzero"` // what was known of these counts no more
}

type callEntry struct {
	ID      string    `json:"id"`
	Started time.Time `json:"started"`
}

// sentEntry says of a request what it may take, and why it is made. Before a
// further try it says only how the one before it failed.
type sentEntry struct {
	Model     string        `json:"model,omitzero"`
	Purpose   string        `json:"purpose,omitzero"`
	Try       int           `json:"try,omitzero"`
	Inside    string        `json:"inside,omitzero"`
	Size      int64         `json:"size,omitzero"`
	MaxTokens *int64        `json:"max_tokens,omitzero"`
	Failed    *attemptEntry `json:"failed,omitzero"`
}

// attemptEntry is a try that failed.
type attemptEntry struct {
	failureEntry
	Waited int64 `json:"waited_ns,omitzero"`
	Wire   int64 `json:"wire_ns,omitzero"`
}

type failureEntry struct {
	Type    string         `json:"type"`
	Code    string         `json:"code,omitzero"`
	Message string         `json:"message,omitzero"`
	Usage   pipeline.Usage `json:"usage,omitzero"`
}

// answers reports whether the entry is something that is given again.
func (e *kept) answers() bool { return e.Forget == nil && e.Sent == nil && !e.Lost }

// take fills in a reply.
func (e *kept) take(r *pipeline.Reply) {
	e.Text, e.Calls, e.Finish, e.Model, e.By, e.System = r.Text, r.Calls, r.Finish, r.Model, r.Provider, r.System
	e.Usage, e.Reply, e.From, e.Waited, e.Wire = r.Usage, r.Response, r.From, int64(r.Waited), int64(r.Wire)
	e.Attempts = attemptEntries(r.Attempts)
}

// reply is the reply that was kept; nil when it was none.
func (e *kept) reply() *pipeline.Reply {
	if e.Failure != nil {
		return nil
	}
	return &pipeline.Reply{
		Text: e.Text, Calls: e.Calls, Finish: e.Finish, Model: e.Model, Provider: e.By, System: e.System,
		Usage: e.Usage, Response: e.Reply, From: e.From, Cached: e.From != pipeline.Asked, Waited: time.Duration(e.Waited), Wire: time.Duration(e.Wire),
		Attempts: attempts(e.Attempts),
	}
}

// fail fills in a failure.
func (e *kept) fail(f *pipeline.Failure) {
	e.Failure = newFailure(f)
	e.Attempts = attemptEntries(f.Attempts)
}

// failure is the failure that was kept; nil when it was none.
func (e *kept) failure() *pipeline.Failure {
	if e.Failure == nil {
		return nil
	}
	f := e.Failure.failure()
	f.Attempts = attempts(e.Attempts)
	return f
}

func newFailure(f *pipeline.Failure) *failureEntry {
	return &failureEntry{f.Type, f.Code, f.Message, f.Usage}
}

func (f *failureEntry) failure() *pipeline.Failure {
	return &pipeline.Failure{Type: f.Type, Code: f.Code, Message: f.Message, Usage: f.Usage}
}

func newAttempt(a pipeline.Attempt) attemptEntry {
	return attemptEntry{*newFailure(a.Failure), int64(a.Waited), int64(a.Wire)}
}

func (a *attemptEntry) attempt() pipeline.Attempt {
	return pipeline.Attempt{Failure: a.failure(), Waited: time.Duration(a.Waited), Wire: time.Duration(a.Wire)}
}

func attemptEntries(list []pipeline.Attempt) []attemptEntry {
	var out []attemptEntry
	for _, a := range list {
		out = append(out, newAttempt(a))
	}
	return out
}

func attempts(list []attemptEntry) []pipeline.Attempt {
	var out []pipeline.Attempt
	for i := range list {
		out = append(out, list[i].attempt())
	}
	return out
}
