package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"evalrun/datasets"
	"evalrun/internal/columnar"
	"evalrun/internal/disk"
	"evalrun/pipeline"
	"evalrun/replay"
	"evalrun/replay/journal"
)

// The files of a run's folder that a Run writes. Reports come beside them.
const (
	CallsFile   = "calls.jsonl"     // the record of every call, as a call log has it
	ResultsFile = "results.parquet" // a line for each answer
	JournalDir  = "journal"         // what cannot be computed again
)

// Run is a run's folder: a manifest, the calls, the results.
type Run struct {
	Dir      string
	Manifest Manifest
	Again    bool // the folder was there: the run goes on, or is scored again

	// Before is the newest run of the same name, as it was; when the run goes on,
	// that is this one. nil when there is none.
	Before *Manifest

	// InDoubt is how many requests earlier processes of the run had sent, and were
	// killed before they knew what became of them. Evaluate finds out.
	InDoubt int

	root    string       // the folder of runs
	lock    *flock.Flock // held until the run is carried out
	plans   []*Checked   // nil when the run was opened to be read
	process datasets.Value
}

// RunInfo is what only the edge of the program knows of a run.
type RunInfo struct {
	Name     string
	Started  time.Time
	Spec     string   // hash of the spec file
	SpecFile string   // its path
	Records  []string // the stores that rows came from
	Seed     uint64
	Tools    string // policy of every candidate, in words, with the hash of the file it names; "" means recorded
	Versions map[string]string
	Host     map[string]string
	Process  datasets.Value // the process that calls, for every call's record; no value leaves it out
	Fresh    bool           // start over, whatever runs there are
}

// StartRun makes the folder of a run of these plans under root, named by start,
// name and identity, and writes its manifest. When root has a run of that name
// that asks the same question, it is that run again: what its journal knows is
// not asked again, and what else changed, such as a metric, is computed anew.
func StartRun(root string, info RunInfo, plans ...*Checked) (*Run, error) {
	r, err := newRun(root, info, plans)
	if err != nil {
		return nil, err
	}
	m := &r.Manifest
	if err := r.takeUp(); err != nil {
		return nil, err
	}
	if r.Again {
		if err := r.acquire(); err != nil {
			return nil, err
		}
		return r, m.write(r.Dir)
	}
	for had := range newest(root, "") {
		if had.Name == m.Name {
			r.Before = had
			break
		}
	}
	m.ID = m.folder()
	r.Dir = filepath.Join(root, m.ID)
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, err
	}
	if err := os.Mkdir(r.Dir, 0o700); errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s is there already: the same run was started in the same second", r.Dir)
	} else if err != nil {
		return nil, err
	}
	err = r.acquire()
	if err == nil {
		err = m.write(r.Dir)
	}
	if err != nil { // nothing is in it yet, and nobody could make use of it
		return nil, errors.Join(err, r.Close(), os.RemoveAll(r.Dir))
	}
	return r, nil
}

// newRun is a run that has no folder yet.
func newRun(root string, info RunInfo, plans []*Checked) (*Run, error) {
	r := &Run{root: root, plans: plans, process: info.Process, Manifest: Manifest{
		Schema: manifestSchema, Name: info.Name, Started: info.Started.UTC(), Fresh: info.Fresh, Spec: info.Spec, SpecFile: info.SpecFile, Records: info.Records,
		Seed: info.Seed, Tools: info.Tools, Versions: info.Versions, Host: info.Host,
	}}
	m := &r.Manifest
	if m.Tools == "" {
		m.Tools = "recorded"
	}
	if len(plans) == 0 {
		return nil, fmt.Errorf("%w: a run without evaluations asks nothing", ErrPlan)
	}
	names := map[string]bool{}
	for _, c := range plans {
		if names[c.plan.Name] {
			return nil, fmt.Errorf("%w: two evaluations are called %q: give each a name of its own", ErrPlan, c.plan.Name)
		}
		names[c.plan.Name] = true
		m.Evaluations = append(m.Evaluations, c.manifest())
	}
	var err error
	m.Identity, err = m.identity()
	return r, err
}

// acquire locks the run's folder: two processes that carry out one run would ask
// everything twice and write over each other. The lock ends with the process.
func (r *Run) acquire() error {
	r.lock = flock.New(filepath.Join(r.Dir, ".lock"))
	got, err := r.lock.TryLock()
	if err != nil {
		return fmt.Errorf("locking the run: %w", err)
	}
	if !got {
		return fmt.Errorf("%w: %s: wait for it, or start over with --fresh", ErrBusy, r.Dir)
	}
	return nil
}

// Close gives the folder free for other processes. Evaluate does so as well.
func (r *Run) Close() error {
	if r.lock == nil {
		return nil
	}
	return r.lock.Unlock()
}

// takeUp looks for the newest run under root that asks the same question, and
// makes this run that one, unless it is to start over.
func (r *Run) takeUp() error {
	m := &r.Manifest
	if m.Fresh {
		return nil
	}
	for dir := range folders(r.root, m.suffix()) {
		had, err := readRun(dir)
		if err != nil {
			return err
		}
		if had != nil && had.ID == filepath.Base(dir) && had.Identity == m.Identity && had.Name == m.Name {
			r.Dir, r.Again, r.Before = dir, true, had
			m.ID, m.Started, m.Fresh = had.ID, had.Started, had.Fresh
			return nil
		}
	}
	return nil
}

// errNotWritten tells an evaluation that its results are not taken any more; the
// reason is the table's.
var errNotWritten = errors.New("results could not be written")

// Evaluate carries out the run's plans, one after the other, and writes calls
// and results as they come. Options.Run is the run's id.
//
// The folder is valid whatever happens: when the run is stopped or canceled, or
// fails, the results of what was finished are in it, and come with the error. An
// evaluation in which every answer failed does not keep the next from being
// carried out.
func (r *Run) Evaluate(ctx context.Context, o Options) ([]*Evaluation, error) {
	if r.plans == nil {
		return nil, errors.New("a run that was opened to be read cannot be carried out again")
	}
	if err := r.clear(); err != nil {
		return nil, err
	}
	// The calls of a run that goes on are all written again: those that the
	// journal knows have the ids they had.
	calls, err := os.OpenFile(filepath.Join(r.Dir, CallsFile), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer calls.Close()
	kept, err := r.openJournal(o)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if kept != nil {
		defer kept.Close() // every answer was on disk before it was used
		r.InDoubt = kept.InDoubt()
	}

	o.Run, o.halt = r.Manifest.ID, &halt{journal: kept, stop: o.Stop}
	for _, c := range r.plans {
		o.Progress.expect(c.Tasks())
	}
	var evals []*Evaluation
	var runErr error
	lines := func(yield func(resultLine, error) bool) {
		evals, runErr = r.carryOut(ctx, o, calls, func(l resultLine) bool { return yield(l, nil) })
	}
	err = columnar.Write(filepath.Join(r.Dir, ResultsFile), resultsSchema, lines)
	if !errors.Is(runErr, errNotWritten) {
		err = errors.Join(runErr, err)
	}
	if sized := r.sizeJournal(kept); err == nil {
		err = sized
	}
	return evals, errors.Join(err, calls.Sync())
}

// clear removes the results of before, and what a killed process left of writing
// files: until the new results are there, a folder must not show both.
func (r *Run) clear() error {
	old := []string{filepath.Join(r.Dir, ResultsFile)}
	for _, name := range []string{ResultsFile, MeasuredFile} {
		left, err := filepath.Glob(disk.Temporary(filepath.Join(r.Dir, name)))
		if err != nil {
			return err
		}
		old = append(old, left...)
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// openJournal opens the run's journal and has every candidate ask through it.
// Models whose replies can be had again at any time need none: without others,
// and without tools that run, there is no journal.
func (r *Run) openJournal(o Options) (*journal.Journal, error) {
	asks := func(c *Candidate) bool { // a plugin may name another model
		return c.Caller != nil && (!c.Caller.LM.Deterministic || c.Caller.Lookup != nil && len(c.Plugins) > 0 || len(c.Tools.Live) > 0)
	}
	judges := func(c *pipeline.Caller) bool { return !c.LM.Deterministic || c.Lookup != nil }
	if !slices.ContainsFunc(r.plans, func(c *Checked) bool {
		return slices.ContainsFunc(c.plan.Candidates, func(c Candidate) bool { return asks(&c) }) ||
			slices.ContainsFunc(slices.Collect(maps.Values(c.judges)), judges)
	}) {
		return nil, nil
	}
	if err := r.checkJournal(); err != nil {
		return nil, err
	}
	j, err := journal.Open(r.journal(), o.Past)
	if err != nil {
		return nil, damaged(err)
	}
	r.takeFrom(j)
	if o.InFlight > 0 {
		j.Bound(o.InFlight)
	}
	for i, c := range r.plans {
		checked := *c
		checked.plan.Candidates = slices.Clone(c.plan.Candidates)
		for k := range checked.plan.Candidates {
			cand := &checked.plan.Candidates[k]
			if !asks(cand) {
				continue
			}
			cand.Caller = journaled(cand.Caller, j)
			if len(cand.Tools.Live) > 0 {
				cand.Caller.Tools = j.Toolbox(cand.Caller.Tools)
			}
		}
		checked.judges = maps.Clone(c.judges)
		for at, caller := range checked.judges {
			if judges(caller) {
				checked.judges[at] = journaled(caller, j)
			}
		}
		r.plans[i] = &checked
	}
	return j, nil
}

// journaled is a caller that asks through a journal.
func journaled(caller *pipeline.Caller, j *journal.Journal) *pipeline.Caller {
	through := func(lm pipeline.LM) pipeline.LM {
		if !lm.Deterministic {
			lm.Model = j.Model(lm.Model)
		}
		return lm
	}
	c := *caller
	c.Journal, c.LM = j, through(c.LM)
	if lookup := c.Lookup; lookup != nil {
		c.Lookup = func(name string) (pipeline.LM, error) {
			lm, err := lookup(name)
			return through(lm), err
		}
	}
	return &c
}

// carryOut evaluates the plans, and gives every result to keep, until that
// returns false. When the asking has ended, the evaluations after it still give what
// is known; once an error has ended the run, what was not begun is unfinished, and
// accounted for.
func (r *Run) carryOut(ctx context.Context, o Options, calls io.Writer, keep func(resultLine) bool) ([]*Evaluation, error) {
	observe := o.Observe
	o.record = func(call *pipeline.Call) (lines []byte) {
		for c := range within(call) {
			lines = append(replay.FromCall(c, r.process).AppendJSON(lines), '\n')
		}
		return lines
	}
	o.Observe = func(res Result, call *pipeline.Call) error {
		if res.record != nil {
			if _, err := calls.Write(res.record); err != nil {
				return err
			}
			res.record = nil
		}
		if !keep(res.line()) {
			return errNotWritten
		}
		if observe != nil {
			return observe(res, call)
		}
		return nil
	}
	var evals []*Evaluation
	var ended, noRows error
	for _, c := range r.plans {
		var eval *Evaluation
		var err error
		if ended == nil || o.halt.is(ended) {
			eval, err = c.evaluate(ctx, o)
		} else {
			eval, err = newTally(c.blank(), c.plan.Stats).finish()
		}
		evals = append(evals, eval)
		if errors.Is(err, ErrNoRows) {
			noRows = errors.Join(noRows, err)
		} else if err != nil && (ended == nil || !o.halt.is(err)) {
			ended = err
		}
	}
	if ended != nil {
		return evals, ended
	}
	return evals, noRows
}

// OpenRun opens a run's folder to be read.
func OpenRun(dir string) (*Run, error) {
	m, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	return &Run{Dir: dir, Manifest: *m}, nil
}

// Results yields the run's results, in the order of the tasks. An error ends it.
func (r *Run) Results() iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		path := filepath.Join(r.Dir, ResultsFile)
		for line, err := range columnar.Read[resultLine](path, resultsSchema) {
			var res Result
			if err == nil {
				if res, err = line.result(); err != nil {
					err = fmt.Errorf("%s: %w", path, err)
				}
			}
			if !yield(res, err) || err != nil {
				return
			}
		}
	}
}

// Evaluations computes the run's evaluations from its results: the same that
// carrying it out gave.
func (r *Run) Evaluations() ([]*Evaluation, error) {
	tallies := map[string]*tally{}
	var order []*tally
	for i := range r.Manifest.Evaluations {
		m := &r.Manifest.Evaluations[i]
		t := newTally(m.blank(), m.Stats)
		tallies[m.Name] = t
		order = append(order, t)
	}
	for res, err := range r.Results() {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s has no results: the run was cut off before it could write them: %w", r.Dir, err)
		}
		if err != nil {
			return nil, err
		}
		t := tallies[res.Evaluation]
		if t == nil {
			return nil, fmt.Errorf("%s: %w: a result belongs to the evaluation %q, which the manifest does not have", r.Dir, ErrLedger, res.Evaluation)
		}
		if err := t.check(&res); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Dir, err)
		}
		t.add(&res)
	}
	var evals []*Evaluation
	for _, t := range order {
		e, err := t.finish()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Dir, err)
		}
		evals = append(evals, e)
	}
	return evals, nil
}
