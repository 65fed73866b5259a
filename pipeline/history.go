package pipeline

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"evalrun/datasets"
)

// record is one record of a conversation. Which members it has depends on its
// kind; readers leave alone what they do not know.
type record struct {
	Format int    `json:"functai_conversation"`
	Kind   string `json:"kind"`
	At     string `json:"at"`
	Seq    int    `json:"seq"` // its position
	Turn   string `json:"turn,omitzero"`

	// program: one that answers turns; turn: a turn begins. A tool that is done has
	// changes too.
	Program   string          `json:"program,omitzero"` // its version
	Name      string          `json:"name,omitzero"`    // its name; of a tool call, the tool's
	Signature string          `json:"signature,omitzero"`
	Interface string          `json:"interface,omitzero"`
	Parent    datasets.Value  `json:"parent,omitzero"`
	Inputs    datasets.Values `json:"inputs,omitzero"`
	RequestID string          `json:"request_id,omitzero"`
	Settings  *turnSettings   `json:"settings,omitzero"`
	Context   *shownRecord    `json:"context,omitzero"`
	Changes   []changeRecord  `json:"changes,omitzero"`
	MadeBy    string          `json:"made_by,omitzero"` // who holds its first lease

	// lease
	Holder  string `json:"holder,omitzero"`
	Until   string `json:"until,omitzero"`
	Attempt int    `json:"attempt,omitzero"`

	// ended
	State   string           `json:"state,omitzero"` // of a tool: started, done, given or rerun
	Outputs datasets.Values  `json:"outputs,omitzero"`
	Value   datasets.Value   `json:"value,omitzero"` // the answer
	Steps   []datasets.Value `json:"steps,omitzero"`
	Saw     []sawRecord      `json:"saw,omitzero"`
	Error   *errorRecord     `json:"error,omitzero"`
	Model   string           `json:"model,omitzero"`
	Usage   *Usage           `json:"usage,omitzero"`
	Seconds *float64         `json:"seconds,omitzero"`

	// waiting, approval, tool
	Invocation *int           `json:"invocation,omitzero"`
	ID         string         `json:"id,omitzero"` // the model's id of the tool call
	Input      datasets.Value `json:"input,omitzero"`
	Output     *string        `json:"output,omitzero"`
	Effects    string         `json:"effects,omitzero"`
	Path       string         `json:"path,omitzero"`
	Plugin     string         `json:"plugin,omitzero"`
	Question   string         `json:"question,omitzero"`
	Verdict    string         `json:"verdict,omitzero"` // yes or no
	By         string         `json:"by,omitzero"`
	Reason     string         `json:"reason,omitzero"`

	// entry
	Entry string         `json:"entry,omitzero"`
	Data  datasets.Value `json:"data,omitzero"`

	// reply
	Key   string       `json:"key,omitzero"`
	Reply *replyRecord `json:"reply,omitzero"`

	// call
	Call    string `json:"call,omitzero"`
	Started string `json:"started,omitzero"`
}

// turnSettings are the settings that a turn had of its own, or that resuming it
// needs.
type turnSettings struct {
	Last           *int           `json:"last,omitzero"` // the context rule it was begun under
	Without        []string       `json:"without,omitzero"`
	Plugins        []pluginRecord `json:"plugins,omitzero"` // that stood in the place of the conversation's
	ProgramPlugins *bool          `json:"program_plugins,omitzero"`
}

type pluginRecord struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// shownRecord is what context handlers left to be shown.
type shownRecord struct {
	Turns    []string            `json:"turns"`
	Without  map[string][]string `json:"without"`
	Sections []string            `json:"sections"`
}

type changeRecord struct {
	Plugin  string         `json:"plugin"`
	Version string         `json:"version"`
	Hook    Hook           `json:"hook"`
	Change  datasets.Value `json:"change,omitzero"`
}

type sawRecord struct {
	Call    string   `json:"call,omitzero"`
	SawOf   string   `json:"saw_of,omitzero"`
	Steps   bool     `json:"steps,omitzero"`
	Without []string `json:"without,omitzero"`
}

type errorRecord struct {
	Type    string `json:"type"`
	Message string `json:"message,omitzero"`
	Code    string `json:"code,omitzero"`
	Plugin  string `json:"plugin,omitzero"`
	Hook    Hook   `json:"hook,omitzero"`
}

const conversationFormat = 1

const recordTime = "2006-01-02T15:04:05.000000Z"

func timeText(t time.Time) string { return t.UTC().Format(recordTime) }

func parseTime(s string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, s)
	return t
}

// asWritten takes values as they were recorded, whatever other programs wrote in
// them.
var asWritten = json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

func (r *record) value() (datasets.Value, error) {
	b, err := marshal(r)
	return datasets.RawValue(string(b)), err
}

// parseRecord reads a record; a kind or a member it does not know is left alone.
func parseRecord(v datasets.Value) (*record, error) {
	// The version first: of another, nothing else may be assumed.
	if format, ok := v.Member("functai_conversation").AsInt(); !ok {
		return nil, fmt.Errorf("it is no conversation's record")
	} else if format != conversationFormat {
		return nil, Failf(TypeConversation, "conversation-format",
			"its format is %d and this version reads %d; use a later version", format, conversationFormat)
	}
	r := new(record)
	if err := json.Unmarshal([]byte(v.JSON()), r, asWritten); err != nil {
		return nil, err
	}
	return r, nil
}

// history is what a conversation's records come to, in order.
type history struct {
	n        int // records seen
	programs map[string]*record
	turns    map[string]*turn
	order    []*turn
	requests map[string]*turn // by request id
	calls    map[string]*turn // by the turn's call
	entries  []*record
	head     string // "" is before every turn
	doubts   []string
}

// turn is what is known of a turn.
type turn struct {
	made     *record
	parent   string
	holder   string
	until    time.Time
	attempt  int
	call     string
	started  time.Time // of its call
	began    int       // position of the record that says so
	waits    []*record // since the last lease
	answers  map[askedOf]Answer
	tools    map[int]*KeptTool
	replies  map[string][]*Reply // by request key
	stopping bool
	ended    *record
}

// askedOf is what a person was asked: by which plugin about which tool call.
type askedOf struct {
	invocation int
	plugin     string
}

func newHistory() *history {
	return &history{
		programs: map[string]*record{}, turns: map[string]*turn{},
		requests: map[string]*turn{}, calls: map[string]*turn{},
	}
}

// add takes the next record in. One that cannot be read keeps its position and
// is doubted, so that one bad line does not take a conversation away; only a
// later format is an error.
func (h *history) add(v datasets.Value) error {
	at := h.n
	h.n++
	r, err := parseRecord(v)
	if f, ok := err.(*Failure); ok {
		return f
	}
	if err == nil {
		r.Seq = at
		err = h.take(r)
	}
	if err != nil {
		h.doubts = append(h.doubts, fmt.Sprintf("record %d is left out: %v", at, err))
	}
	return nil
}

func (h *history) take(r *record) error {
	switch r.Kind {
	case "program":
		h.programs[r.Program] = r
		return nil
	case "entry":
		if r.Turn != "" && h.turns[r.Turn] == nil {
			return fmt.Errorf("there is no turn %q", r.Turn)
		}
		h.entries = append(h.entries, r)
		return nil
	case "head":
		if r.Turn != "" && h.turns[r.Turn] == nil {
			return fmt.Errorf("there is no turn %q", r.Turn)
		}
		h.head = r.Turn
		return nil
	case "turn":
		return h.takeTurn(r)
	case "lease", "ended", "waiting", "approval", "tool", "reply", "call", "stop":
	default:
		return nil
	}
	t := h.turns[r.Turn]
	if t == nil {
		return fmt.Errorf("there is no turn %q", r.Turn)
	}
	if r.Invocation == nil && (r.Kind == "waiting" || r.Kind == "approval" || r.Kind == "tool") {
		return fmt.Errorf("it does not say which tool call it is about")
	}
	switch r.Kind {
	case "lease":
		t.holder, t.until, t.attempt, t.waits = r.Holder, parseTime(r.Until), r.Attempt, nil
	case "ended":
		if t.ended == nil { // the first one stands
			t.ended = r
		}
	case "waiting":
		t.waits = append(t.waits, r)
	case "approval":
		t.answers[askedOf{*r.Invocation, r.Plugin}] = Answer{Allowed: r.Verdict == "yes", Reason: r.Reason, By: r.By}
	case "tool":
		t.takeTool(r)
	case "reply":
		if r.Reply != nil {
			t.replies[r.Key] = append(t.replies[r.Key], r.Reply.reply())
		}
	case "call":
		if t.call == "" {
			t.call, t.started, t.began = r.Call, parseTime(r.Started), r.Seq
			h.calls[r.Call] = t
		}
	case "stop":
		t.stopping = true
	}
	return nil
}

func (h *history) takeTurn(r *record) error {
	parent, _ := r.Parent.AsText()
	switch {
	case r.Turn == "":
		return fmt.Errorf("the turn has no id")
	case h.turns[r.Turn] != nil:
		return fmt.Errorf("there is a turn %q already", r.Turn)
	case parent != "" && h.turns[parent] == nil:
		return fmt.Errorf("the turn continues %q, which is not there", parent)
	}
	t := &turn{
		made: r, parent: parent, holder: r.MadeBy, attempt: 1,
		// Until its lease is written, which comes right after, the turn is its
		// maker's: nobody may take it for left behind.
		until:   parseTime(r.At).Add(leaseFor),
		answers: map[askedOf]Answer{}, tools: map[int]*KeptTool{}, replies: map[string][]*Reply{},
	}
	h.turns[r.Turn] = t
	h.order = append(h.order, t)
	if r.RequestID != "" && h.requests[r.RequestID] == nil {
		h.requests[r.RequestID] = t
	}
	h.head = r.Turn
	return nil
}

func (t *turn) takeTool(r *record) {
	k := t.tools[*r.Invocation]
	if k == nil {
		k = new(KeptTool)
		t.tools[*r.Invocation] = k
	}
	switch r.State {
	case "started":
		k.Started = true
	case "given":
		k.Output, k.Changes = r.Output, nil
	case "done":
		k.Output, k.Changes = r.Output, []Applied{}
		for _, ch := range r.Changes {
			k.Changes = append(k.Changes, Applied(ch))
		}
	case "rerun":
		*k = KeptTool{}
	}
}

func (t *turn) id() string { return t.made.Turn }

// state says how the turn stands at a time.
func (t *turn) state(now time.Time) TurnState {
	switch {
	case t.ended != nil:
		return TurnState(t.ended.State)
	case len(t.waits) > 0:
		return TurnWaiting
	case now.Before(t.until):
		return TurnRunning
	}
	return TurnInterrupted
}

func (t *turn) done() bool { return t.ended != nil && TurnState(t.ended.State) == TurnDone }

// held reports whether the holder's attempt is the turn's last and goes on.
func (t *turn) held(holder string, attempt int) bool {
	return t.ended == nil && t.holder == holder && t.attempt == attempt
}

// unanswered are the questions that the turn waits for.
func (t *turn) unanswered() []*record {
	var open []*record
	for _, w := range t.waits {
		if _, ok := t.answers[askedOf{*w.Invocation, w.Plugin}]; !ok {
			open = append(open, w)
		}
	}
	return open
}

// unfinished are the tool calls that may have run, by invocation.
func (t *turn) unfinished() []int {
	var list []int
	for n, k := range t.tools {
		if k.Started && k.Output == nil {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list
}

// branch is the path from the first turn to this one; nil for "".
func (h *history) branch(id string) []*turn {
	var path []*turn
	for t := h.turns[id]; t != nil; t = h.turns[t.parent] {
		path = append(path, t)
	}
	slices.Reverse(path)
	return path
}

// doneOn are the done turns of a branch.
func (h *history) doneOn(id string) []*turn {
	return slices.DeleteFunc(h.branch(id), func(t *turn) bool { return !t.done() })
}

// nearestDone is the turn itself when it is done, else its nearest ancestor that
// is; "" when there is none.
func (h *history) nearestDone(id string) string {
	for t := h.turns[id]; t != nil; t = h.turns[t.parent] {
		if t.done() {
			return t.id()
		}
	}
	return ""
}

// entriesOn are a plugin's entries of a kind on a branch, oldest first.
func (h *history) entriesOn(branch, plugin, kind string) []Entry {
	return h.entriesBefore(h.n, branch, plugin, kind)
}

// entriesBefore are those whose records are before a position.
func (h *history) entriesBefore(position int, branch, plugin, kind string) []Entry {
	on := map[string]bool{"": true}
	for _, t := range h.branch(branch) {
		on[t.id()] = true
	}
	var list []Entry
	for _, e := range h.entries {
		if e.Seq < position && e.Plugin == plugin && e.Entry == kind && on[e.Turn] {
			list = append(list, Entry{Turn: e.Turn, Data: e.Data, At: parseTime(e.At)})
		}
	}
	return list
}

// signature is that of the program which answered the turn; "" when it is not
// known.
func (h *history) signature(t *turn) string {
	if p := h.programs[t.made.Program]; p != nil {
		return p.Signature
	}
	return ""
}

// sawBy is everything that a turn's call saw, one entry a call.
func (h *history) sawBy(t *turn) []sawRecord {
	if t == nil || t.ended == nil {
		return nil
	}
	var list []sawRecord
	for i, s := range t.ended.Saw {
		if s.SawOf == "" {
			list = append(list, s)
			continue
		}
		// A turn cannot have seen what came after it, and what it saw of another
		// comes first: a file that says otherwise is not followed.
		if other := h.calls[s.SawOf]; i == 0 && other != nil && other.made.Seq < t.made.Seq {
			list = append(list, h.sawBy(other)...)
		}
	}
	return list
}
