package pipeline

import "evalrun/datasets"

// Effects says what a tool may do besides answering.
type Effects string

// The effects a tool can declare. Undeclared ("") counts as EffectsChanges
// wherever it matters.
const (
	EffectsRead   Effects = "reads"   // it changes nothing
	EffectsChange Effects = "changes" // it may change anything
)

// TurnState says how a conversation's turn stands.
type TurnState string

// The states of a turn.
const (
	TurnDone        TurnState = "done"
	TurnFailed      TurnState = "failed"
	TurnStopped     TurnState = "stopped"
	TurnAbandoned   TurnState = "abandoned"
	TurnWaiting     TurnState = "waiting"     // for a person
	TurnRunning     TurnState = "running"     // while its lease lasts
	TurnInterrupted TurnState = "interrupted" // its lease is over and it did not end
)

// TurnLog keeps what a turn's own call did, so that the turn can be resumed: the
// pipeline reads and writes it while it asks. Errors end the call.
type TurnLog interface {
	// Reply returns the next kept reply to the request of that key, in the order
	// they were kept; ok is false when there is none left.
	Reply(key string) (r *Reply, ok bool)
	KeepReply(key string, r *Reply) error

	// Tool returns what is known of a tool call.
	Tool(invocation int) KeptTool
	ToolStarted(invocation int, id, name string, input datasets.Value) error
	ToolDone(invocation int, output string, changes []Applied) error

	// ToolAgain takes back that a tool call was started: it did nothing yet, and
	// runs again when the turn is resumed.
	ToolAgain(invocation int) error

	// Approval returns a person's recorded answer; ok is false when there is none.
	// Wait records that the turn waits for one, and returns the error that ends
	// the asking: a *Failure of code turn-waiting.
	Approval(invocation int, plugin string) (a Answer, ok bool)

	// Refused returns a person's recorded no to a tool call, whoever had asked: it
	// stands when the plugin that asked is not there any more.
	Refused(invocation int) (a Answer, ok bool)
	Wait(e *ToolCallEvent, plugin, reason string) error
}

// KeptTool is what a turn's log knows of a tool call.
type KeptTool struct {
	Output  *string   // its result as the model was shown it; nil when it is not known
	Changes []Applied // what plugins changed about it; nil when that is not known
	Started bool      // it was started: without an output it may have run
}
