package pipeline

import (
	"context"
	"time"

	"evalrun/datasets"
)

// Model answers requests. Implementations are safe for concurrent use. An error
// is a *Failure where the model knows what went wrong; any other error counts as
// a ServerError. Abilities (a journal, a cache, retries, a budget, limits) are
// Models around Models.
type Model interface {
	Generate(ctx context.Context, req *Request) (*Reply, error)
}

// Reply is a model's answer to one request.
type Reply struct {
	Text     string         // what it said
	Calls    []ToolCall     // the tools it called natively, in order
	Finish   string         // why it stopped: stop, length, tool_calls, …; "" unknown
	Model    string         // the model that served it, as the provider says; "" unknown
	System   string         // fingerprint of the system that served it, as the provider says; "" unknown
	Provider string         // who answered: recorded, lexical, openai, …
	Usage    Usage          // token counts; unknown ones are absent, never zero
	Cached   bool           // it was there before it was asked for: no new evidence, no new cost
	From     Origin         // who had it
	Response datasets.Value // the provider's response as records keep it; no value when Text is all there was
	Attempts []Attempt      // tries that failed before this one, in order
	Waited   time.Duration  // in queues, limits and back-off before this one, what Attempts waited apart
	Wire     time.Duration  // what the answer took on the wire; 0 when nobody measured it
}

// Origin says who had a reply. One that a journal has of a cache's or of another
// run's stays theirs.
type Origin string

// Where replies come from.
const (
	Asked       Origin = ""        // the model was asked
	FromJournal Origin = "journal" // an earlier process of the run asked, and the run paid for it: it is not Cached
	FromCache   Origin = "cache"   // a cache that runs share
	FromRun     Origin = "run"     // another run
)

// Attempt is one failed try at a request.
type Attempt struct {
	Failure *Failure
	Waited  time.Duration // in queues, limits and back-off before it
	Wire    time.Duration // on the wire
}

// Usage counts tokens. A nil count is unknown.
type Usage struct {
	Input     *int64 `json:"input_tokens,omitempty"`
	Output    *int64 `json:"output_tokens,omitempty"`
	Total     *int64 `json:"total_tokens,omitempty"`
	Cached    *int64 `json:"cached_input_tokens,omitempty"`
	Reasoning *int64 `json:"reasoning_tokens,omitempty"`
}

// Add adds another usage; a count that only one of them knows is unknown in the
// sum, except that adding to the zero Usage with first set copies it.
func (u *Usage) Add(v Usage, first bool) {
	if first {
		*u = v
		return
	}
	add := func(a **int64, b *int64) {
		if *a == nil || b == nil {
			*a = nil
			return
		}
		sum := **a + *b
		*a = &sum
	}
	add(&u.Input, v.Input)
	add(&u.Output, v.Output)
	add(&u.Total, v.Total)
	add(&u.Cached, v.Cached)
	add(&u.Reasoning, v.Reasoning)
}

// LM is a model as a call meets it: a name, the model behind it, and how it is
// to be asked.
type LM struct {
	Name          string
	Model         Model
	Config        datasets.Values // sampling settings: temperature, max_tokens, …
	Price         *Price          // what its tokens cost; nil when it is not known
	Baked         bool            // reads only the message it was trained on: an instruction cannot reach it
	Deterministic bool            // the same request always gets the same reply: it is not asked again about one that could not be read, and a journal has no use for it
}

// Facts are what a model can do, where a request depends on it.
type Facts struct {
	Instruct         bool
	StructuredOutput bool // native
	ToolCalling      bool // native
	StopSequences    bool
	Reasoning        bool // native
	Prefill          bool
}

// ProbeFacts are the fixed facts under which a program's version is computed.
var ProbeFacts = Facts{Instruct: true, StructuredOutput: true, ToolCalling: true, StopSequences: true}
