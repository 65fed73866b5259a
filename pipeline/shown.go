package pipeline

import (
	"context"
	"maps"
	"slices"

	"evalrun/datasets"
)

// chosen is what a turn is to be shown, before it is begun.
type chosen struct {
	record  *shownRecord // nil when no plugin has a say
	changes []Applied
}

// choosing is the choice on its way through the context handlers.
type choosing struct {
	done     []*turn // of the branch, in its order: all that can be shown
	keep     map[string]bool
	without  map[string][]string // by turn, sorted; of turns that are not shown too
	sections []string
}

// choose lets the context handlers choose among the done turns of a branch,
// beginning with what the conversation's own rule picks.
func (c *Conversation) choose(ctx context.Context, plugins []*Plugin, parent string) (chosen, error) {
	if !slices.ContainsFunc(plugins, func(p *Plugin) bool { return len(p.context) > 0 }) {
		return chosen{}, nil
	}
	var x *choosing
	err := c.locked(ctx, func(h *history) error {
		x = h.pick(parent, c.o.Last, c.o.Without)
		return nil
	})
	if err != nil {
		return chosen{}, err
	}
	book := &turnNotes{c: c, ctx: context.WithoutCancel(ctx), branch: parent}
	var changes []Applied
	var handlings handlings
	for _, p := range plugins {
		for _, handle := range p.context {
			change, err := handle(handlings.begin(ctx, c.caller), &ContextEvent{
				Conversation: c.id, Parent: parent, Program: c.program.Name(), notes: notes{book, p.name},
				turns: x.turns(), sections: x.sections, done: x.done,
			})
			if err = handlings.end(err); err != nil {
				return chosen{}, p.handlerFailed(ctx, HookContext, err)
			}
			if change == nil || len(change.fields()) == 0 {
				continue
			}
			f := change.check(p, HookContext)
			if f == nil {
				f = x.apply(p, change)
			}
			if f != nil {
				f.Hook = HookContext
				return chosen{}, f
			}
			changes = append(changes, p.applied(HookContext, change.object()))
		}
	}
	return chosen{x.result(), changes}, nil
}

// pick is the choice that a rule makes: the last n done turns of a branch, or
// all of them, without the named fields that they have.
func (h *history) pick(parent string, last *int, without []string) *choosing {
	x := &choosing{done: h.doneOn(parent), keep: map[string]bool{}, without: map[string][]string{}}
	picked := x.done
	if last != nil {
		picked = picked[len(picked)-min(*last, len(picked)):]
	}
	for _, t := range picked {
		x.keep[t.id()] = true
	}
	// A handler may show a turn that the rule did not pick: the rule's fields are
	// left out of that one as well.
	for _, t := range x.done {
		for _, name := range without {
			if !t.made.Inputs[name].IsZero() || !t.ended.Outputs[name].IsZero() {
				x.leaveOut(t.id(), []string{name})
			}
		}
	}
	return x
}

func (x *choosing) leaveOut(turn string, names []string) {
	if len(names) > 0 {
		x.without[turn] = sortedUnion(x.without[turn], names)
	}
}

// shown are the turns shown as the choice stands, in the branch's order.
func (x *choosing) shown() []*turn {
	return slices.DeleteFunc(slices.Clone(x.done), func(t *turn) bool { return !x.keep[t.id()] })
}

func (x *choosing) turns() []ShownTurn {
	var list []ShownTurn
	for _, t := range x.shown() {
		list = append(list, t.asShown(x.without[t.id()]))
	}
	return list
}

func (t *turn) asShown(without []string) ShownTurn {
	return ShownTurn{ID: t.id(), Inputs: t.made.Inputs, Outputs: t.ended.Outputs, Without: without}
}

// apply checks the values of a context change and makes it.
func (x *choosing) apply(p *Plugin, change *Change) *Failure {
	keep := map[string]bool{}
	for _, id := range change.Keep {
		if !slices.ContainsFunc(x.done, func(t *turn) bool { return t.id() == id }) {
			return p.failf("plugin-change", "keep: %q is no done turn of this branch", id)
		}
		keep[id] = true
	}
	everywhere, byTurn, f := parseWithout(p, change.Without)
	if f != nil {
		return f
	}
	if change.Keep != nil {
		x.keep = keep
	}
	for _, t := range x.shown() {
		x.leaveOut(t.id(), everywhere)
	}
	for id, names := range byTurn {
		x.leaveOut(id, names)
	}
	for _, section := range change.Sections {
		if !blank(section) {
			x.sections = append(x.sections, section)
		}
	}
	return nil
}

// parseWithout reads fields to leave out: of every turn shown, as a list of
// names, or by turn.
func parseWithout(p *Plugin, v datasets.Value) (everywhere []string, byTurn map[string][]string, f *Failure) {
	bad := func() ([]string, map[string][]string, *Failure) {
		return nil, nil, p.failf("plugin-change", "without is a list of field names, or such a list for each turn's id, not %s", v.JSON())
	}
	switch v.Kind() {
	case 0:
		return nil, nil, nil
	case '[':
		names, ok := textsIn(v)
		if !ok {
			return bad()
		}
		return names, nil, nil
	case '{':
		byTurn = map[string][]string{}
		for id, list := range v.Members() {
			names, ok := textsIn(list)
			if !ok {
				return bad()
			}
			byTurn[id] = names
		}
		return nil, byTurn, nil
	}
	return bad()
}

// textsIn are the elements of a list of texts.
func textsIn(v datasets.Value) (list []string, ok bool) {
	if v.Kind() != '[' {
		return nil, false
	}
	for e := range v.Elements() {
		s, ok := e.AsText()
		if !ok {
			return nil, false
		}
		list = append(list, s)
	}
	return list, true
}

func (x *choosing) result() *shownRecord {
	r := &shownRecord{Turns: []string{}, Without: map[string][]string{}, Sections: x.sections}
	if r.Sections == nil {
		r.Sections = []string{}
	}
	for _, t := range x.shown() {
		r.Turns = append(r.Turns, t.id())
	}
	maps.Copy(r.Without, x.without)
	maps.DeleteFunc(r.Without, func(id string, _ []string) bool { return !slices.Contains(r.Turns, id) })
	return r
}

// shownTo is what a recorded turn is shown, as its call is given it and as
// records say it: what its context handlers left when they were asked, else what
// the rule it was begun under picks.
func (h *history) shownTo(t *turn, conversation string, p *Program) (datasets.Context, []Saw) {
	r := t.made.Context
	if r == nil {
		var last *int
		var without []string
		if s := t.made.Settings; s != nil {
			last, without = s.Last, s.Without
		}
		r = h.pick(t.parent, last, without).result()
	}
	shown := datasets.Context{Sections: r.Sections, Conversation: conversation}
	if len(shown.Sections) == 0 {
		shown.Sections = nil
	}
	var saw []Saw
	for _, id := range r.Turns {
		e := h.turns[id]
		if e == nil || e.ended == nil {
			continue // a record that another version wrote: keep what can be shown
		}
		without := r.Without[id]
		one := datasets.Turn{Inputs: withoutFields(e.made.Inputs, without), Outputs: withoutFields(e.ended.Outputs, without)}
		// Steps are in the form of the program that took them; with other fields,
		// or without some, only the values can be shown.
		if len(without) == 0 && len(e.ended.Steps) > 0 && h.signature(e) == p.Signature() {
			one.Steps, one.Signature = e.ended.Steps, p.Signature()
		}
		shown.Earlier = append(shown.Earlier, one)
		saw = append(saw, Saw{Call: e.call, Steps: one.Steps != nil, Without: without})
	}
	return shown, h.shorten(t, saw)
}

func withoutFields(vs datasets.Values, names []string) datasets.Values {
	rest := cloneValues(vs)
	for _, name := range names {
		delete(rest, name)
	}
	return rest
}

// shorten says what a turn saw as all that its parent saw, and the parent, when
// that is what it is: else the records of a conversation would grow with the
// square of its turns.
func (h *history) shorten(t *turn, saw []Saw) []Saw {
	parent := h.turns[t.parent]
	n := len(saw) - 1
	if parent == nil || n < 1 || saw[n].Call != parent.call {
		return saw
	}
	before := h.sawBy(parent)
	if !slices.EqualFunc(before, saw[:n], func(r sawRecord, s Saw) bool {
		return r.Call == s.Call && r.Steps == s.Steps && slices.Equal(r.Without, s.Without)
	}) {
		return saw
	}
	return []Saw{{SawOf: parent.call}, saw[n]}
}
