package replay

import "strings"

// Why what a call was shown cannot be shown again.
const (
	SawMissingCall = "missing-call" // a call it was shown is not here
	SawNotRecorded = "not-recorded" // its record does not say what it was shown
	SawUnknownKey  = "unknown-key"  // it was shown something in a form this version does not know
	SawCycle       = "saw-cycle"    // following what it was shown comes back to a call already followed
	SawTurnInvalid = "turn-invalid" // a call was shown in a form that no call can be shown in
	SawNotKept     = "not-kept"     // the values of a call it was shown are not here as data
)

// refusal is one of these, with what is at fault.
type refusal struct{ why, detail string }

// link is what a record says a call was shown, and where the call stands: what
// must be known of every call on the way to what a row was shown.
type link struct {
	id, parent, root, name, started string

	conversation   string // its id; "" when there is none, or it has none
	inConversation bool
	sections       []string
	recorded       bool    // the record says what the call saw
	unknown        bool    // it says so in a form this version does not know
	sawOf          string  // the call saw all that this call saw, before entries
	entries        []entry // the calls it was shown, in order

	reached   bool // some row was shown what this call saw
	following bool // on the way of the call that is being followed
	chain     *chain
}

// entry is one call that was shown.
type entry struct {
	call    string
	steps   bool
	without []string // fields that were left out
}

// linkOf reads what a record says the call was shown, and keeps nothing else of
// the record.
func linkOf(r *Record) *link {
	l := &link{
		id: strings.Clone(r.ID), parent: strings.Clone(r.Parent), root: strings.Clone(r.rootID()),
		name: strings.Clone(r.Program.Name), started: strings.Clone(r.StartedText()),
		sections: cloneTexts(r.Sections), recorded: r.Saw != nil,
	}
	// What Extra has under a known key is in a form that no field could take.
	if r.Conversation != nil || isSet(r.Extra["conversation"]) {
		l.inConversation = true
	}
	if r.Conversation != nil {
		l.conversation = strings.Clone(r.Conversation.ID)
	}
	if isSet(r.Extra["saw"]) {
		l.recorded, l.unknown = true, true
	}
	if isSet(r.Extra["sections"]) {
		l.unknown = true
	}
	for i, s := range r.Saw {
		switch {
		case len(s.Extra) > 0 || s.Call != "" && s.SawOf != "":
			l.unknown = true
		case s.Call != "":
			l.entries = append(l.entries, entry{strings.Clone(s.Call), s.Steps != nil && *s.Steps, cloneTexts(s.Without)})
		case s.SawOf != "" && i == 0 && s.Steps == nil && s.Without == nil && s.Slot.IsZero():
			l.sawOf = strings.Clone(s.SawOf)
		default:
			l.unknown = true
		}
	}
	return l
}

// shown reports whether the call itself was shown anything: earlier turns or
// sections.
func (l *link) shown() bool {
	return l.unknown || l.sawOf != "" || len(l.entries) > 0 || len(l.sections) > 0
}

func cloneTexts(list []string) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strings.Clone(s)
	}
	return out
}

// chain is what a call saw: the first n turns of a thread, or why it is not
// known (read) or cannot be shown again (show).
type chain struct {
	on   *thread
	n    int
	read *refusal
	show *refusal
}

func (c *chain) refusal() *refusal {
	if c.read != nil {
		return c.read
	}
	return c.show
}

// follow returns what the call of that id saw. Along a conversation every call
// saw what the one before it saw, and that one: their chains share one thread,
// so that all of them together take the room of the longest.
func (x *contexts) follow(id string) *chain {
	var path []*link
	var below *chain
	for next := id; below == nil; {
		l := x.links[next]
		switch {
		case l == nil:
			below = &chain{read: &refusal{SawMissingCall, "call " + next + " is not here"}}
		case l.chain != nil:
			below = l.chain
		case l.following:
			path, below = closeCycle(path, l)
		case !l.recorded:
			l.chain = &chain{read: &refusal{SawNotRecorded, "the record of call " + next + " does not say what it saw"}}
			below = l.chain
		default:
			l.following = true
			path = append(path, l)
			next = l.sawOf
			if next == "" {
				below = &chain{on: &thread{}}
			}
		}
	}
	for i := len(path) - 1; i >= 0; i-- {
		l := path[i]
		l.following = false
		below = x.extend(below, l)
		l.chain = below
	}
	return below
}

// closeCycle settles the calls of a cycle, which l has just closed, and returns
// what is left of the path and what lies below it.
func closeCycle(path []*link, l *link) ([]*link, *chain) {
	for {
		last := path[len(path)-1]
		path = path[:len(path)-1]
		last.following = false
		last.chain = &chain{read: &refusal{SawCycle, "what call " + last.id + " saw leads back to itself"}}
		if last == l {
			return path, last.chain
		}
	}
}

// extend returns what l saw, given what the call that it names in saw_of saw.
func (x *contexts) extend(below *chain, l *link) *chain {
	if below.read != nil {
		why := *below.read
		if why.why == SawNotRecorded {
			// What l saw is recorded; what is missing is a call it refers to.
			why.why = SawMissingCall
		}
		return &chain{read: &why}
	}
	if l.unknown {
		return &chain{read: &refusal{SawUnknownKey, "call " + l.id + " was shown something in a form that is not known"}}
	}
	c := &chain{on: below.on, n: below.n, show: below.show}
	if c.show != nil || len(l.entries) == 0 {
		return c
	}
	if len(c.on.turns) != c.n { // another branch goes on from here
		c.on = c.on.fork(c.n)
	}
	for _, e := range l.entries {
		turn, order, refused := x.turn(e)
		if refused != nil {
			c.on.cut(below.n)
			c.show = refused
			return c
		}
		c.on.add(turn, order)
	}
	c.n = len(c.on.turns)
	return c
}
