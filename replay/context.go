package replay

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"evalrun/datasets"
)

// contexts finds what rated calls were shown of their conversations.
type contexts struct {
	ctx   context.Context
	src   Source
	links map[string]*link     // of the rated calls, of calls inside them, and of those that what they saw leads through
	shown map[string]bool      // the calls that were shown; true: somewhere with their steps
	kept  map[string]*keptCall // their values
	made  map[string]*madeTurn
}

// addContexts gives the rows what their calls were shown. When no row was shown
// anything, nothing more is read. A call that was shown something which cannot
// be shown again is left out: never a row with a part of its turns.
func addContexts(ctx context.Context, src Source, out *Rated, calls []*ratedCall) error {
	x := &contexts{
		ctx: ctx, src: src,
		links: map[string]*link{}, shown: map[string]bool{},
		kept: map[string]*keptCall{}, made: map[string]*madeTurn{},
	}
	roots := map[string]bool{}
	for _, c := range calls {
		if c.left == nil {
			x.links[c.link.id] = c.link
			if c.isModule() {
				roots[c.link.root] = true
			}
		}
	}
	inside, err := x.insideOf(roots)
	if err != nil {
		return err
	}
	var start []*link
	for _, c := range calls {
		if c.left != nil {
			continue
		}
		if c.isModule() {
			c.inside = inside.helpersOf(c.link)
		}
		if c.needsContext() {
			start = append(start, c.link)
			for _, h := range c.inside {
				start = append(start, h.link)
			}
		}
	}
	if len(start) == 0 {
		return nil
	}
	out.context = true
	if err := x.reach(start); err != nil {
		return err
	}
	if err := x.read(calls); err != nil {
		return err
	}
	for _, c := range calls {
		if c.left == nil && c.needsContext() {
			x.give(c)
		}
	}
	return nil
}

// helper is a call made inside a rated module's call that was shown something.
type helper struct {
	link *link
	nth  int // its place among the calls of its program inside the rated call
}

// isModule reports whether calls may be made inside the call.
func (c *ratedCall) isModule() bool { return c.program.Kind == "module" }

// needsContext reports whether the call answered after something it was shown,
// or takes part in a conversation.
func (c *ratedCall) needsContext() bool {
	return c.link.shown() || c.link.inConversation || len(c.inside) > 0
}

// forest are the calls made inside others: by root, then by parent.
type forest map[string]map[string][]*link

// insideOf reads the trees of calls under these roots.
func (x *contexts) insideOf(roots map[string]bool) (forest, error) {
	f := forest{}
	if len(roots) == 0 {
		return f, nil
	}
	err := x.each(Want{Roots: roots, Parts: LinkParts}, func(r *Record) {
		l := x.add(r)
		if l.parent == "" {
			return
		}
		tree := f[l.root]
		if tree == nil {
			tree = map[string][]*link{}
			f[l.root] = tree
		}
		tree[l.parent] = append(tree[l.parent], l)
	})
	return f, err
}

// helpersOf are the calls inside a call that were shown something, in the order
// in which they started.
func (f forest) helpersOf(call *link) []helper {
	tree := f[call.root]
	var all []*link
	seen := map[*link]bool{call: true}
	for todo := []*link{call}; len(todo) > 0; {
		l := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, child := range tree[l.id] {
			if !seen[child] {
				seen[child] = true
				all = append(all, child)
				todo = append(todo, child)
			}
		}
	}
	slices.SortFunc(all, func(a, b *link) int {
		return cmp.Or(cmp.Compare(a.started, b.started), cmp.Compare(a.id, b.id))
	})
	var helpers []helper
	calls := map[string]int{}
	for _, l := range all {
		if l.shown() {
			helpers = append(helpers, helper{l, calls[l.name]})
		}
		calls[l.name]++
	}
	return helpers
}

// add returns the link of a record's call.
func (x *contexts) add(r *Record) *link {
	l := x.links[r.ID]
	if l == nil {
		l = linkOf(r)
		x.links[l.id] = l
	}
	return l
}

func (x *contexts) each(w Want, do func(*Record)) error {
	for r, err := range x.src.Calls(w) {
		if err := cmp.Or(err, x.ctx.Err()); err != nil {
			return err
		}
		do(r)
	}
	return nil
}

// reach finds every call that what these calls saw leads through, and notes the
// calls that were shown.
//
// When a call is missing, all turns of the conversations at hand are asked for
// at once, and the second time also all calls made in these turns: in a
// conversation of a thousand turns, each of which saw what the one before it
// saw, a thousand readings would find one call each. Where that does not find
// all, because records name no conversation, who saw what whom saw is read of
// every call, and then all that are missing are asked for at once. So the number
// of readings is bounded, however long a chain is.
func (x *contexts) reach(todo []*link) error {
	var (
		want    = Want{Conversations: map[string]bool{}} // what to read next
		asked   = map[string]bool{}                      // conversations
		turns   = map[string]bool{}                      // calls of these conversations
		absent  = map[string]bool{}                      // calls that are not here
		talking = func(l *link) {
			if l.conversation != "" && !asked[l.conversation] {
				want.Conversations[l.conversation] = true
			}
		}
	)
	for _, l := range todo {
		talking(l)
	}
	for round := 0; ; round++ {
		want.IDs = map[string]bool{}
		for len(todo) > 0 {
			l := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if l.reached {
				continue
			}
			l.reached = true
			for _, e := range l.entries {
				x.shown[e.call] = x.shown[e.call] || e.steps
			}
			if l.sawOf == "" {
				continue
			}
			if next := x.links[l.sawOf]; next != nil {
				todo = append(todo, next)
			} else if !absent[l.sawOf] {
				want.IDs[l.sawOf] = true
				talking(l)
			}
		}
		if len(want.IDs) == 0 {
			return nil
		}
		switch round {
		case 0:
		case 1:
			want.Roots = turns
		default:
			want.Conversations = nil
			if err := x.below(want.IDs); err != nil {
				return err
			}
		}
		want.Parts = LinkParts
		maps.Copy(asked, want.Conversations)
		err := x.each(want, func(r *Record) {
			if l := x.add(r); asked[l.conversation] {
				turns[l.id] = true
			}
		})
		if err != nil {
			return err
		}
		for id := range want.IDs {
			if l := x.links[id]; l != nil {
				todo = append(todo, l)
			} else {
				absent[id] = true
			}
		}
		want = Want{Conversations: map[string]bool{}}
	}
}

// below adds the calls that what these calls saw leads through. It holds two ids
// of every call of the source that saw what another call saw, for as long as it
// takes.
func (x *contexts) below(ids map[string]bool) error {
	sawOf := map[string]string{}
	err := x.each(Want{Following: true, Parts: LinkParts}, func(r *Record) {
		if len(r.Saw) > 0 && r.Saw[0].SawOf != "" { // anywhere else it is of no known form
			sawOf[strings.Clone(r.ID)] = strings.Clone(r.Saw[0].SawOf)
		}
	})
	if err != nil {
		return err
	}
	passed := map[string]bool{}
	for _, id := range slices.Collect(maps.Keys(ids)) {
		for id != "" && !passed[id] {
			passed[id] = true
			if x.links[id] == nil {
				ids[id] = true
			}
			id = sawOf[id]
		}
	}
	return nil
}

// read reads the values of the calls that were shown.
func (x *contexts) read(calls []*ratedCall) error {
	if len(x.shown) == 0 {
		return nil
	}
	// A call may be both a row and shown in a later one.
	known := map[string]*content{}
	for _, c := range calls {
		if c.content != nil {
			known[c.id] = c.content
		}
	}
	ids := maps.Clone(x.shown)
	for id := range ids {
		ids[id] = true
	}
	return x.each(Want{IDs: ids, Parts: RowParts}, func(r *Record) {
		x.kept[r.ID] = keep(r, known[r.ID], x.shown[r.ID])
	})
}

// give gives a row what its call was shown, or leaves it out.
func (x *contexts) give(c *ratedCall) {
	own := x.follow(c.link.id)
	if why := own.refusal(); why != nil {
		c.leave(LeftNoContext, why.why, why.detail)
		return
	}
	row := c.whole
	row.row.Context.Earlier, row.earlier = own.turns()
	row.row.Context.Sections = c.link.sections
	for _, h := range c.inside {
		saw := x.follow(h.link.id)
		if why := saw.refusal(); why != nil {
			c.leave(LeftNoContext, why.why, "in the call "+h.link.id+" of "+h.link.name+" made inside: "+why.detail)
			return
		}
		turns, orders := saw.turns()
		row.row.Context.Helpers = append(row.row.Context.Helpers, datasets.Helper{
			Program: h.link.name, Call: h.link.id, Nth: h.nth, Earlier: turns, Sections: h.link.sections,
		})
		row.helpers = append(row.helpers, orders)
	}
}

// turns are the turns of the chain. They may be kept as they are: a thread's
// beginning never changes.
func (c *chain) turns() ([]datasets.Turn, []turnOrder) {
	return c.on.turns[:c.n:c.n], c.on.orders[:c.n:c.n]
}
