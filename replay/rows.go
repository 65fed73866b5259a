package replay

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"evalrun/datasets"
	"evalrun/internal/disk"
)

// Query says which rated calls become rows.
type Query struct {
	Program string // the program's name; required
	Module  string // its module; "" takes calls of every module
	File    string // the file it is defined in, which tells apart programs of a script or notebook; "" takes calls of every file
	AnyFile bool   // take calls of every file, whatever File says, and do not warn when they come from several
	By      string // read only this person's ratings

	// Aside keeps the rows that were shown nothing in a temporary file, so that
	// memory does not grow with what is in them. Only At reads them then.
	Aside bool

	// A call has the data that is asked for when its interface is Interface, or
	// its signature is Signature. With neither, every call has it.
	Interface string
	Signature string
}

// ParseProgram splits MODULE:NAME at its last colon. Without a colon it is a
// name alone.
func ParseProgram(text string) (module, name string) {
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		return text[:i], text[i+1:]
	}
	return "", text
}

// The reasons for which a rated call is left out, in the order in which they
// are looked for: a call has the first that applies.
const (
	LeftOtherSignature = "other_signature" // it has other data than was asked for
	LeftNoContent      = "no_content"      // not every input is in its record, as data
	LeftNoAnswer       = "no_answer"       // no rating that counts says what is right
	LeftNoContext      = "no_context"      // what it was shown of its conversation cannot be shown again
)

// Left is a rated call that became no row.
type Left struct {
	Call   string // its id
	Reason string // one of the Left constants
	Why    string // with no_context, one of the Saw constants
	Detail string // what was found, for a person
}

// Rated are the rows of the rated calls of a program, in the order of the
// calls: by start, then id. It is a [datasets.Source].
//
// Every rated call of the program is a row or is in Left. A call is rated when
// at least one rating of it counts.
//
// A row's Meta holds, as far as they are known: version, module, file, model,
// started, seconds, usage (of the recorded call); error and error_code (when it
// failed); purpose (use, evaluation or optimization) and user (who called);
// conversation; rating, rated_by, origin, sample, disputed (of the rating that
// gave the labels); changes (what plugins changed, as recorded: for reading,
// never applied again) and replayable (false when a plugin replaced a request).
type Rated struct {
	Left      []Left   // in the order of the calls
	Disputed  int      // rows whose ratings disagree
	Withdrawn int      // calls of the program whose ratings were all taken back: they are not rated
	Unknown   int      // ratings of calls that the source does not have
	Warnings  []string // doubts about the rows, a sentence each

	query    Query
	rows     []storedRow
	latest   atomic.Pointer[unfolded]
	aside    disk.Aside
	context  bool           // some row needs its context, so all rows have the context's columns
	programs map[string]int // rated calls by program, for the message when there is no row
}

// ratedRow is a row, and the order in which records hold what the row holds by
// name.
type ratedRow struct {
	row     datasets.Row
	inputs  []string
	labels  []string
	earlier []turnOrder
	helpers [][]turnOrder // of each helper
	module  bool          // a module's call: it may have helpers
}

// storedRow is a row as it is held.
type storedRow struct {
	id     string
	whole  *ratedRow // nil when it is folded
	folded folded
	aside  disk.Place // of the folded one, with [Query.Aside]
}

// row is row i. It is not to be changed.
func (r *Rated) row(i int) (*ratedRow, error) {
	s := &r.rows[i]
	if s.whole != nil {
		return s.whole, nil
	}
	if last := r.latest.Load(); last != nil && last.i == i {
		return last.row, nil
	}
	text := s.folded
	if r.query.Aside {
		t, err := r.aside.Get(s.aside)
		if err != nil {
			return nil, fmt.Errorf("row %s: %w", s.id, err)
		}
		text = folded(t)
	}
	row := text.unfold(s.id)
	r.latest.Store(&unfolded{i, row})
	return row, nil
}

// held is row i of rows that are not kept aside.
func (r *Rated) held(i int) *ratedRow {
	row, err := r.row(i)
	if err != nil {
		panic("replay: of rows that are kept aside only At is for reading: " + err.Error())
	}
	return row
}

// unfolded is a row that was looked at: the next look is often at the same.
type unfolded struct {
	i   int
	row *ratedRow
}

var _ datasets.Source = (*Rated)(nil)

// Len is the number of rows.
func (r *Rated) Len() int { return len(r.rows) }

// ID is the id of the rated call that row i is made of.
func (r *Rated) ID(i int) string { return r.rows[i].id }

// At returns row i. Its values and maps are shared: they are not to be changed.
func (r *Rated) At(i int) (datasets.Row, error) {
	row, err := r.row(i)
	if err != nil {
		return datasets.Row{}, err
	}
	return row.row, nil
}

// LeftOut counts the calls left out by reason. Every reason is there.
func (r *Rated) LeftOut() map[string]int {
	n := map[string]int{LeftOtherSignature: 0, LeftNoContent: 0, LeftNoAnswer: 0, LeftNoContext: 0}
	for _, l := range r.Left {
		n[l.Reason]++
	}
	return n
}

// NoContext counts the calls left out for their context, by why.
func (r *Rated) NoContext() map[string]int {
	n := map[string]int{}
	for _, l := range r.Left {
		if l.Reason == LeftNoContext {
			n[l.Why]++
		}
	}
	return n
}

// Empty is the error of having no rows, saying what was found instead; nil when
// there are rows.
func (r *Rated) Empty() error {
	switch {
	case len(r.rows) > 0:
		return nil
	case len(r.Left) > 0:
		return fmt.Errorf("no row of %s: %s%s", r.query.name(), r.leftText(), r.advice())
	case r.Withdrawn > 0:
		return fmt.Errorf("no row of %s: the ratings of its %d calls were all taken back", r.query.name(), r.Withdrawn)
	case len(r.programs) > 0:
		return fmt.Errorf("no rated call of %s; there are rated calls of %s", r.query.name(), listed(r.programs, 5))
	case r.Unknown > 0:
		return fmt.Errorf("no rated call of %s: all %d ratings are of calls that these records do not have", r.query.name(), r.Unknown)
	case r.query.By != "":
		return fmt.Errorf("no rated call of %s: there is no rating by %s", r.query.name(), r.query.By)
	}
	return fmt.Errorf("no rated call of %s: there are no ratings", r.query.name())
}

// advice says what to do when the calls have other data than was asked for.
func (r *Rated) advice() string {
	i := slices.IndexFunc(r.Left, func(l Left) bool { return l.Reason == LeftOtherSignature })
	if i < 0 {
		return ""
	}
	want := cmp.Or(r.query.Interface, r.query.Signature)
	return fmt.Sprintf("; rows with the interface %s were asked for, and of the first call left out for it, %s; 'evalrun programs show' shows a program's interface, which its calls carry as program.interface",
		want, r.Left[i].Detail)
}

// leftText is what was left out, for a person.
func (r *Rated) leftText() string {
	n := r.LeftOut()
	maps.DeleteFunc(n, func(_ string, n int) bool { return n == 0 })
	text := fmt.Sprintf("%d of %d rated calls were left out: %s", len(r.Left), len(r.rows)+len(r.Left), listed(n, len(n)))
	if why := r.NoContext(); len(why) > 0 {
		text += "; the context was lacking for " + listed(why, len(why))
	}
	return text
}

// listed writes counts, the largest first, at most n of them.
func listed(counts map[string]int, n int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var parts []string
	for i, name := range names {
		if i == n {
			parts = append(parts, fmt.Sprintf("and %d more", len(names)-n))
			break
		}
		parts = append(parts, fmt.Sprintf("%s (%d)", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}

// Rows makes the rated calls of a program into rows.
//
// The ratings are read first; then only the calls they name; then, when one of
// these was shown something of a conversation, what it was shown; and for a
// module's calls the calls made inside. What is held at a time are the ratings
// and the data of these calls, so that memory does not grow with the calls
// nobody rated. What ties a chain of calls together that saw what another saw is
// found in a few readings, however long it is: by its conversations, and where
// records name none, by reading who saw what whom saw of all calls. That takes
// about 600 bytes for every call of the source that saw what another call saw.
//
// An error means that the source could not be read, or ctx ended. A rated call
// that cannot become a row is not an error; it is in Left.
func Rows(ctx context.Context, src Source, q Query) (*Rated, error) {
	if q.Program == "" {
		return nil, fmt.Errorf("rated rows are those of one program: its name is missing")
	}
	ratings, err := currentRatings(ctx, src, q.By)
	if err != nil {
		return nil, err
	}
	out := &Rated{query: q, programs: map[string]int{}}
	calls, err := out.ratedCalls(ctx, src, ratings)
	if err != nil {
		return nil, err
	}
	if err := addContexts(ctx, src, out, calls); err != nil {
		return nil, err
	}
	out.rows = make([]storedRow, 0, len(calls))
	for _, c := range calls {
		if c.left != nil {
			out.Left = append(out.Left, *c.left)
			continue
		}
		out.rows = append(out.rows, c.storedRow)
		if c.disputed {
			out.Disputed++
		}
	}
	out.warn(calls)
	return out, nil
}

// ratedCall is a rated call of the program on its way to becoming a row.
type ratedCall struct {
	storedRow
	left     *Left // why it will be none
	started  string
	program  *Program // what rows need of it; calls of one program share it
	content  *content // nil when nobody needs it any more
	link     *link    // what it saw; nil once left is set
	inside   []helper // calls made inside that were shown something; of a module's call
	disputed bool
}

func (c *ratedCall) leave(reason, why, detail string) {
	c.left = &Left{c.id, reason, why, detail}
	c.link, c.storedRow = nil, storedRow{id: c.id}
}

// ratedCalls reads the calls that have ratings and keeps those of the program
// that are rated, in order.
func (r *Rated) ratedCalls(ctx context.Context, src Source, ratings map[string][]*Rating) ([]*ratedCall, error) {
	want := make(map[string]bool, len(ratings))
	for id, list := range ratings {
		want[id] = true
		r.Unknown += len(list) // until the call is found
	}
	var calls []*ratedCall
	programs := map[programFacts]*Program{}
	if len(want) == 0 {
		return nil, nil
	}
	for rec, err := range src.Calls(Want{IDs: want, Parts: RowParts}) {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
		current := ratings[rec.ID]
		delete(ratings, rec.ID)
		r.Unknown -= len(current)
		said := slices.DeleteFunc(slices.Clone(current), func(x *Rating) bool { return !counts(x) })
		if len(said) > 0 {
			r.programs[rec.Program.title()]++
		}
		if !r.query.matches(&rec.Program) {
			continue
		}
		if len(said) == 0 {
			r.Withdrawn++
			continue
		}
		c := r.query.judge(rec, said, programs)
		if r.query.Aside && c.folded != "" {
			if c.aside, err = r.aside.Put([]byte(c.folded)); err != nil {
				return nil, fmt.Errorf("keeping rows aside: %w", err)
			}
			c.folded = ""
		}
		calls = append(calls, c)
	}
	slices.SortFunc(calls, func(a, b *ratedCall) int {
		return cmp.Or(cmp.Compare(a.started, b.started), cmp.Compare(a.id, b.id))
	})
	return calls, nil
}

// matches reports whether a call is one of the program asked for.
func (q *Query) matches(p *Program) bool {
	return p.Name == q.Program &&
		(q.Module == "" || p.Module == q.Module) &&
		(q.File == "" || q.AnyFile || p.File == q.File)
}

// sameData reports whether a call has the data asked for. A record of format 1
// names no interface; its signature stands in for it, which is the same for a
// program with neither reasoning nor tools.
func (q *Query) sameData(p *Program) bool {
	if q.Interface == "" && q.Signature == "" {
		return true
	}
	own := cmp.Or(p.Interface, p.Signature)
	return q.Interface != "" && own == q.Interface || q.Signature != "" && p.Signature == q.Signature
}

// judge makes a rated call of its record and the ratings that count. programs are
// those of the calls before it.
func (q *Query) judge(rec *Record, said []*Rating, programs map[programFacts]*Program) *ratedCall {
	c := &ratedCall{started: strings.Clone(rec.StartedText())}
	c.id = strings.Clone(rec.ID)
	c.program = rec.Program.shared(programs)
	if !q.sameData(c.program) {
		c.leave(LeftOtherSignature, "", fmt.Sprintf("its interface is %s and its signature %s",
			cmp.Or(c.program.Interface, "not recorded"), cmp.Or(c.program.Signature, "not recorded")))
		return c
	}
	call := readContent(rec)
	if detail := call.lacking(); detail != "" {
		c.leave(LeftNoContent, "", detail)
		return c
	}
	verdict, ok := decide(said, call)
	if !ok {
		c.leave(LeftNoAnswer, "", "no rating says what is right")
		return c
	}
	c.link = linkOf(rec)
	c.disputed = verdict.disputed
	row := c.newRow(rec, call, &verdict)
	if row.foldable() && !c.link.shown() && !c.link.inConversation {
		c.folded = row.fold()
	} else {
		c.whole, c.content = row, call
	}
	return c
}

// newRow is the row of a call without what its call was shown.
func (c *ratedCall) newRow(rec *Record, call *content, verdict *verdict) *ratedRow {
	row := &ratedRow{module: c.program.Kind == "module", inputs: call.inputs.names, labels: verdict.labels.names}
	r := &row.row
	r.ID, r.Inputs, r.Labels = c.id, call.inputs.values, verdict.labels.values
	r.Context = datasets.Context{Of: c.id, Conversation: c.link.conversation}
	r.Recorded = call.recorded()
	r.Verdict = datasets.Verdict{
		Verdict: verdict.rating.Verdict, By: strings.Clone(verdict.rating.By),
		Origin: strings.Clone(cmp.Or(verdict.rating.Origin, "review")), Sample: strings.Clone(verdict.rating.Sample),
		Disputed: verdict.disputed,
	}
	r.Meta = metaOf(rec, r)
	r.Sent = sentBy(rec)
	r.Steps = toolSteps(rec)
	return row
}

// topLevel are the modules that every script or notebook of a language has, so
// that only the file tells its programs apart.
var topLevel = []string{"__main__", "Main", "R_GlobalEnv"}

// warn adds what is doubtful about the rows.
func (r *Rated) warn(calls []*ratedCall) {
	add := func(format string, args ...any) { r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...)) }
	if len(r.rows) > 0 && len(r.Left) > 0 {
		add("%s", r.leftText())
	}
	if r.Unknown > 0 {
		add("ratings of calls that these records do not have: %d", r.Unknown)
	}
	modules, files, data := map[string]int{}, map[string]int{}, map[string]int{}
	unsaid := 0
	for _, c := range calls {
		if c.left != nil {
			continue
		}
		modules[c.program.Module]++
		if slices.Contains(topLevel, c.program.Module) {
			files[cmp.Or(c.program.File, "no file")]++
		}
		data[cmp.Or(c.program.Interface, c.program.Signature, "none recorded")]++
		if r.context && !c.link.recorded {
			unsaid++
		}
	}
	if len(modules) > 1 {
		add("the rows are those of %d programs, one a module: %s; name one as MODULE:NAME", len(modules), listed(modules, 5))
	}
	if len(files) > 1 && !r.query.AnyFile {
		add("the rows come from %d scripts or notebooks: %s; choose one by its file", len(files), listed(files, 5))
	}
	if len(data) > 1 && len(modules) == 1 {
		add("the rows have %d different interfaces: %s; choose one by its interface", len(data), listed(data, 5))
	}
	if unsaid > 0 {
		add("rows whose record does not say what the call was shown, taken as shown nothing: %d", unsaid)
	}
}

// name is the program asked for, as users write it.
func (q *Query) name() string { return (&Program{Name: q.Program, Module: q.Module}).title() }

// title is the program as users write it: MODULE:NAME.
func (p *Program) title() string {
	if p.Module == "" {
		return strings.Clone(p.Name)
	}
	return p.Module + ":" + p.Name
}

// programFacts are what rows need of a program.
type programFacts struct{ name, kind, module, signature, iface, file string }

// shared is what rows need of the program, once for all of its calls, so that the
// rest of the record can be let go.
func (p *Program) shared(programs map[programFacts]*Program) *Program {
	f := programFacts{p.Name, p.Kind, p.Module, p.Signature, p.Interface, p.File}
	if known := programs[f]; known != nil {
		return known
	}
	for _, s := range []*string{&f.name, &f.kind, &f.module, &f.signature, &f.iface, &f.file} {
		*s = strings.Clone(*s)
	}
	own := &Program{Name: f.name, Kind: f.kind, Module: f.module, Signature: f.signature, Interface: f.iface, File: f.file}
	programs[f] = own
	return own
}

// rootID is the id of the outermost call.
func (r *Record) rootID() string { return cmp.Or(r.Root, r.ID) }
