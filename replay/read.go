package replay

import (
	"evalrun/datasets"
	"evalrun/internal/canon"
)

// reader fills records from the text of JSON objects that are known to be valid.
// Every value goes to the field of its key when the field can hold it without
// loss, and to Extra otherwise.
type reader lineFacts

// open starts on an object's members.
func (rd reader) open(object string) scanner {
	if rd.twice {
		object = lastOnly(object)
	}
	return enter(object)
}

// lastOnly returns the object without the members that a later one of the same
// name replaces: the last one counts.
func lastOnly(object string) string {
	last := map[string]int{}
	n := 0
	c := enter(object)
	for name, _, ok := c.member(); ok; name, _, ok = c.member() {
		last[name] = n
		n++
	}
	b := []byte{'{'}
	n = 0
	c = enter(object)
	for name, v, ok := c.member(); ok; name, v, ok = c.member() {
		if last[name] == n {
			if len(b) > 1 {
				b = append(b, ',')
			}
			b = canon.AppendString(b, name)
			b = append(b, ':')
			b = append(b, v...)
		}
		n++
	}
	return string(append(b, '}'))
}

// keySet is a set of the keys whose zero value is not "missing".
type keySet uint8

const (
	hasParent keySet = 1 << iota
	hasProgram
	hasOutputs
	hasError
	hasModel
	hasUsage
	hasConfidence
	hasTurnParent
	hasAll = 1<<iota - 1
)

var keySetNames = [...]string{"parent", "program", "outputs", "error", "model", "usage", "confidence", "conversation.parent"}

// note adds a key when its value was taken, and passes that on.
func (s *keySet) note(key keySet, taken bool) bool {
	if taken {
		*s |= key
	}
	return taken
}

// missing names the keys that are not in the set.
func (s keySet) missing() []string {
	if s == hasAll {
		return nil
	}
	var names []string
	for i, name := range keySetNames {
		if s&(1<<i) == 0 {
			names = append(names, name)
		}
	}
	return names
}

func (rd reader) record(r *Record, text string) {
	has := hasTurnParent // until a conversation says otherwise
	c := rd.open(text)
	for name, v, ok := c.member(); ok; name, v, ok = c.member() {
		taken := false
		null := v == "null"
		switch name {
		case callKey:
			taken = true
		case "id":
			taken = setText(&r.ID, v)
		case "parent":
			taken = has.note(hasParent, null || setText(&r.Parent, v))
		case "root":
			taken = setText(&r.Root, v)
		case "program":
			taken = has.note(hasProgram, v[0] == '{')
			if taken {
				rd.program(&r.Program, v)
			}
		case "started":
			taken = setTime(&r.Started, v)
		case "seconds":
			taken = setFloat(&r.Seconds, v)
		case "content":
			taken = setBool(&r.Content, v)
		case "omitted":
			taken = setValue(&r.Omitted, v)
		case "inputs":
			taken = setValue(&r.Inputs, v)
		case "outputs":
			taken = has.note(hasOutputs, null || setValue(&r.Outputs, v))
		case "returned":
			taken = setValue(&r.Returned, v)
		case "sizes":
			taken = setValue(&r.Sizes, v)
		case "error":
			taken = has.note(hasError, null || v[0] == '{')
			if taken && !null {
				r.Error = new(Error)
				rd.err(r.Error, v)
			}
		case "model":
			taken = has.note(hasModel, null || setText(&r.Model, v))
		case "usage":
			taken = has.note(hasUsage, null || setValue(&r.Usage, v))
		case "confidence":
			taken = has.note(hasConfidence, null || setFloat(&r.Confidence, v))
		case "probabilities":
			taken = setValue(&r.Probabilities, v)
		case "escalated":
			taken = setValue(&r.Escalated, v)
		case "exchanges":
			taken = setObjects(&r.Exchanges, v, rd.exchange)
		case "saw":
			taken = setObjects(&r.Saw, v, rd.saw)
		case "sections":
			taken = setTexts(&r.Sections, v)
		case "changes":
			taken = setObjects(&r.Changes, v, rd.change)
		case "replayable":
			taken = setBool(&r.Replayable, v)
		case "steps":
			taken = setObjects(&r.Steps, v, rd.step)
		case "conversation":
			if taken = v[0] == '{'; taken {
				has &^= hasTurnParent
				r.Conversation = new(Conversation)
				rd.conversation(r.Conversation, v, &has)
			}
		case "described":
			taken = setValue(&r.Described, v)
		case "journal":
			taken = setValue(&r.Journal, v)
		case "invocation":
			taken = setIntPointer(&r.Invocation, v)
		case "writer":
			taken = setInt(&r.Writer, v)
		case "truncated":
			taken = setValue(&r.Truncated, v)
		case "caller":
			if taken = v[0] == '{'; taken {
				r.Caller = new(Caller)
				rd.caller(r.Caller, v)
			}
		case "process":
			taken = setValue(&r.Process, v)
		}
		if !taken {
			put(&r.Extra, name, v)
		}
	}
	r.Absent = has.missing()
}

func (rd reader) program(p *Program, text string) {
	c := rd.open(text)
	for name, v, ok := c.member(); ok; name, v, ok = c.member() {
		taken := false
		switch name {
		case "name":
			taken = setText(&p.Name, v)
		case "kind":
			taken = setText(&p.Kind, v)
		case "module":
			taken = setText(&p.Module, v)
		case "version":
			taken = setText(&p.Version, v)
		case "signature":
			taken = setText(&p.Signature, v)
		case "interface":
			taken = setText(&p.Interface, v)
		case "answer":
			taken = setText(&p.Answer, v)
		case "file":
			taken = setText(&p.File, v)
		case "line":
			taken = setInt(&p.Line, v)
		case "saved":
			taken = setValue(&p.Saved, v)
		case "remote":
			taken = setValue(&p.Remote, v)
		}
		if !taken {
			put(&p.Extra, name, v)
		}
	}
}

func (rd reader) err(e *Error, text string) {
	c := rd.open(text)
	for name, v, ok := c.member(); ok; name, v, ok = c.member() {
		taken := false
		switch name {
		case "type":
			taken = setText(&e.Type, v)
		case "message":
			taken = setText(&e.Message, v)
		case "code":
			taken = setText(&e.Code, v)
		}
		if !taken {
			put(&e.Extra, name, v)
		}
	}
}

func (rd reader) exchange(x *Exchange, text string) {
	c := rd.open(text)
	for name, v, ok := c.member(); ok; name, v, ok = c.member() {
		taken := false
		switch name {
		case "model":
			taken = setText(&x.Model, v)
		case "provider":
			taken = setText(&x.Provider, v)
		case "started":
			taken = setTime(&x.Started, v)
		case "seconds":
			taken = setFloat(&x.Seconds, v)
		case "cached":
			taken = setBool(&x.Cached, v)
		case "finish":
			taken = setText(&x.Finish, v)
		case "usage":
			taken = setValue(&x.Usage, v)
		case "request":
			taken = setValue(&x.Request, v)
		case "response":
			taken = setValue(&x.Response, v)
		case "request_hash":
			taken = setText(&x.RequestHash, v)
		case "error":
			taken = setValue(&x.Error, v)
		case "streamed":
			taken = setBool(&x.Streamed, v)
		case "first_delta":
			taken = setFloat(&x.FirstDelta, v)
		}
		if !taken {
			put(&x.Extra, name, v)
		}
	}
}

func (rd reader) saw(s *Saw, text string) {
	c := rd.open(text)
	for name, v, ok := c.member(); ok; name, v, ok = c.member() {
		taken := false
		switch name {
		case "call":
			taken = setText(&s.Call, v)
		case "saw_of":
			taken = setText(&s.SawOf, v)
		case "steps":
			taken = setBool(&s.Steps, v)
		case "without":
			taken = setTexts(&s.Without, v)
		case "slot":
			taken = setValue(&s.Slot, v)
		}
		if !taken {
			put(&s.Extra, name, v)
		}
	}
}

func (rd reader) change(ch *Change, text string) {
	c := rd.open(text)
	for name, v, ok := c.member(); ok; name, v, ok = c.member() {
		taken := false
		switch name {
		case "plugin":
			taken = setText(&ch.Plugin, v)
		case "version":
			taken = setText(&ch.Version, v)
		case "hook":
			taken = setText(&ch.Hook, v)
		case "change":
			taken = setValue(&ch.Change, v)
		}
		if !taken {
			put(&ch.Extra, name, v)
		}
	}
}

// step keeps a step as it is, with no member twice.
func (rd reader) step(s *datasets.Step, text string) {
	if rd.twice {
		text = lastOnly(text)
	}
	setValue(s, text)
}

func (rd reader) conversation(cv *Conversation, text string, has *keySet) {
	c := rd.open(text)
	for name, v, ok := c.member(); ok; name, v, ok = c.member() {
		taken := false
		switch name {
		case "id":
			taken = setText(&cv.ID, v)
		case "turn":
			taken = setText(&cv.Turn, v)
		case "parent":
			taken = has.note(hasTurnParent, v == "null" || setText(&cv.Parent, v))
		}
		if !taken {
			put(&cv.Extra, name, v)
		}
	}
}

func (rd reader) caller(cl *Caller, text string) {
	c := rd.open(text)
	for name, v, ok := c.member(); ok; name, v, ok = c.member() {
		taken := false
		switch name {
		case "kind":
			taken = setText(&cl.Kind, v)
		case "user":
			taken = setText(&cl.User, v)
		case "notebook":
			taken = setText(&cl.Notebook, v)
		case "cell":
			taken = setText(&cl.Cell, v)
		case "conversation":
			taken = setText(&cl.Conversation, v)
		case "evaluation":
			taken = setText(&cl.Evaluation, v)
		case "optimization":
			taken = setText(&cl.Optimization, v)
		case "compaction":
			taken = setText(&cl.Compaction, v)
		}
		if !taken {
			put(&cl.Extra, name, v)
		}
	}
}

func (rd reader) rating(r *Rating, text string) {
	hasVerdict := false
	c := rd.open(text)
	for name, v, ok := c.member(); ok; name, v, ok = c.member() {
		taken := false
		switch name {
		case ratingKey:
			taken = true
		case "id":
			taken = setText(&r.ID, v)
		case "call":
			taken = setText(&r.Call, v)
		case "at":
			taken = setTime(&r.At, v)
		case "by":
			taken = setText(&r.By, v)
		case "account":
			taken = setText(&r.Account, v)
		case "verdict":
			taken = v == "null" || setText(&r.Verdict, v)
			hasVerdict = taken
		case "answer":
			taken = setValue(&r.Answer, v)
		case "outputs":
			taken = setValue(&r.Outputs, v)
		case "reasons":
			taken = setValue(&r.Reasons, v)
		case "note":
			taken = setText(&r.Note, v)
		case "origin":
			taken = setText(&r.Origin, v)
		case "sample":
			taken = setText(&r.Sample, v)
		}
		if !taken {
			put(&r.Extra, name, v)
		}
	}
	if !hasVerdict {
		r.Absent = []string{"verdict"}
	}
}
