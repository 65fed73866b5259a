package harness

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/replay/journal"
)

// How a part of a run stands against what it would be now.
const (
	Current = "current"
	Stale   = "stale"  // it is not as it was
	New     = "new"    // it was not there
	Gone    = "gone"   // it is not there any more
	Unsure  = "unsure" // it may not be as it was
)

// Part is a part of a run, and how it stands.
type Part struct {
	Part  string `json:"part"`           // spec, tools, seed, rows, candidate, metrics, comparison, evaluation
	Name  string `json:"name,omitempty"` // of the candidate or the evaluation
	State string `json:"state"`
	Why   string `json:"why,omitempty"` // why it is not current
}

// Compare says of each part of a run how it stands against the run that would be
// made now.
func (m *Manifest) Compare(now *Manifest) []Part {
	list := []Part{
		part("spec", "", m.Spec == now.Spec, "the spec file is not the one that was run"),
		part("tools", "", m.Tools == now.Tools, "%s, and now %s", m.Tools, now.Tools),
		part("seed", "", m.Seed == now.Seed, "%d, and now %d", m.Seed, now.Seed),
	}
	for i := range now.Evaluations {
		e := &now.Evaluations[i]
		at := slices.IndexFunc(m.Evaluations, func(had EvaluationManifest) bool { return had.Name == e.Name })
		if at < 0 {
			list = append(list, Part{"evaluation", e.Name, New, "the run has no such evaluation"})
			continue
		}
		list = append(list, m.Evaluations[at].compare(e, m.Spec == now.Spec)...)
	}
	for _, had := range m.Evaluations {
		if !slices.ContainsFunc(now.Evaluations, func(e EvaluationManifest) bool { return e.Name == had.Name }) {
			list = append(list, Part{"evaluation", had.Name, Gone, "the spec has it no more"})
		}
	}
	return list
}

func part(what, name string, current bool, why string, args ...any) Part {
	if current {
		return Part{what, name, Current, ""}
	}
	return Part{what, name, Stale, fmt.Sprintf(why, args...)}
}

func (m *EvaluationManifest) compare(now *EvaluationManifest, sameSpec bool) []Part {
	rows := part("rows", m.Name, m.Rows.Fingerprint == now.Rows.Fingerprint && m.Repeats == now.Repeats, "%s", m.rowsChanged(now))
	list := []Part{rows}
	for i := range now.Candidates {
		c := &now.Candidates[i]
		at := slices.IndexFunc(m.Candidates, func(had CandidateFacts) bool { return had.Name == c.Name })
		if at < 0 {
			list = append(list, Part{"candidate", titleOf(now.Name, c.Name), New, "the run has no such candidate"})
			continue
		}
		changed := m.Candidates[at].changed(c)
		list = append(list, part("candidate", titleOf(now.Name, c.Name), changed == nil, "%s", strings.Join(changed, "; ")))
	}
	for _, had := range m.Candidates {
		if !slices.ContainsFunc(now.Candidates, func(c CandidateFacts) bool { return c.Name == had.Name }) {
			list = append(list, Part{"candidate", titleOf(m.Name, had.Name), Gone, "the spec has it no more"})
		}
	}
	metrics := part("metrics", m.Name, slices.Equal(m.Metrics, now.Metrics) && reflect.DeepEqual(m.Judges, now.Judges),
		"%s, and now %s", strings.Join(m.Metrics, ", "), strings.Join(now.Metrics, ", "))
	if metrics.State == Stale && slices.Equal(m.Metrics, now.Metrics) {
		metrics.Why = "a judge changed"
	}
	if metrics.State == Current && !sameSpec {
		metrics.State, metrics.Why = Unsure, "they have the same names, and the spec file changed"
	}
	how := part("comparison", m.Name, m.Baseline == now.Baseline && m.Compare == now.Compare && m.Stats == now.Stats,
		"the baseline, what is compared with, or the margin is another")
	return append(list, metrics, how)
}

func (m *EvaluationManifest) rowsChanged(now *EvaluationManifest) string {
	switch {
	case m.Rows.Fingerprint == now.Rows.Fingerprint:
		return fmt.Sprintf("%d answers to each, and now %d", m.Repeats, now.Repeats)
	case m.Rows.Asked != now.Rows.Asked:
		return fmt.Sprintf("%d rows, and now %d", m.Rows.Asked, now.Rows.Asked)
	}
	return fmt.Sprintf("some of the %d rows, or their order, changed", now.Rows.Asked)
}

// changed lists what is not as it was.
func (c *CandidateFacts) changed(now *CandidateFacts) []string {
	var list []string
	say := func(same bool, format string, args ...any) {
		if !same {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	say(c.Program == now.Program, "the program was %s and is %s", c.Program, now.Program)
	say(c.ProgramVersion == now.ProgramVersion, "its program sends something else: version %s, and now %s", shortHash(c.ProgramVersion), shortHash(now.ProgramVersion))
	say(c.ProgramVersion != now.ProgramVersion || c.Definition == now.Definition, "its program's definition changed")
	say(c.Recorded == now.Recorded, "it was recorded, or is now, and not asked")
	say(c.Outputs == now.Outputs, "its recorded outputs changed")
	list = append(list, c.Model.changed(now.Model)...)
	for _, p := range now.Plugins {
		at := slices.IndexFunc(c.Plugins, func(had PluginRef) bool { return had.Name == p.Name })
		switch {
		case at < 0:
			say(false, "the plugin %s is new", p.Name)
		case c.Plugins[at].Version != p.Version:
			say(false, "the plugin %s was version %s and is %s", p.Name, c.Plugins[at].Version, p.Version)
		default:
			say(c.Plugins[at].Content == p.Content, "the plugin %s changed", p.Name)
		}
	}
	for _, had := range c.Plugins {
		say(slices.ContainsFunc(now.Plugins, func(p PluginRef) bool { return p.Name == had.Name }), "the plugin %s is gone", had.Name)
	}
	say(list != nil || slices.Equal(c.Plugins, now.Plugins), "its plugins run in another order")
	return list
}

func (m *ModelRef) changed(now *ModelRef) []string {
	switch {
	case m == nil || now == nil:
		if m != now {
			return []string{"it has a model, or has none any more"}
		}
		return nil
	case m.Name != now.Name || m.Provider != now.Provider:
		return []string{fmt.Sprintf("the model was %s of %s and is %s of %s", m.Name, m.Provider, now.Name, now.Provider)}
	}
	var list []string
	for _, name := range datasets.Values.Names(union(m.Settings, now.Settings)) {
		was, is := m.Settings[name], now.Settings[name]
		if !was.Equal(is) {
			list = append(list, fmt.Sprintf("the model's %s was %s and is %s", name, orUnset(was), orUnset(is)))
		}
	}
	if m.Content != now.Content {
		list = append(list, "the model's replies changed")
	}
	return list
}

func union(a, b datasets.Values) datasets.Values {
	all := datasets.Values{}
	for _, vs := range []datasets.Values{a, b} {
		for name, v := range vs {
			all[name] = v
		}
	}
	return all
}

func orUnset(v datasets.Value) string {
	if v.IsZero() {
		return "unset"
	}
	return v.JSON()
}

func shortHash(s string) string {
	s = strings.TrimPrefix(s, "sha256:")
	return s[:min(len(s), 12)]
}

// Foresee is the run that [StartRun] would make or go on with. Nothing is written,
// and it cannot be carried out.
func Foresee(root string, info RunInfo, plans ...*Checked) (*Run, error) {
	r, err := newRun(root, info, plans)
	if err != nil {
		return nil, err
	}
	return r, r.takeUp()
}

// ToAsk is how many calls of a candidate a run would begin with a request that no
// journal or cache knows.
type ToAsk struct {
	Candidate string `json:"candidate"`
	Calls     int    `json:"calls"`
	Of        int    `json:"of"` // calls in all
}

// ToAsk counts the calls that the run would have to ask. Of a call that makes
// several requests the first one counts. Models whose replies can be had again at
// any time are not counted. Nothing is asked, and nothing written; plugins run.
func (r *Run) ToAsk(ctx context.Context) ([]ToAsk, error) {
	j, err := r.known()
	if err != nil {
		return nil, err
	}
	defer j.Close()
	var list []ToAsk
	for _, c := range r.plans {
		for k := range c.plan.Candidates {
			cand := &c.plan.Candidates[k]
			if cand.Recorded || cand.Caller.LM.Deterministic {
				continue
			}
			n := ToAsk{Candidate: c.plan.title(cand)}
			for row := range c.plan.Rows.Len() {
				_, asks, err := c.toAsk(ctx, j, row, k)
				if err != nil {
					return nil, err
				}
				n.Calls += asks
				n.Of += c.plan.repeats()
			}
			list = append(list, n)
		}
	}
	return list, nil
}

// known is what the run's journal, and earlier runs it takes answers from, know. It
// is only read.
func (r *Run) known() (*journal.Journal, error) {
	dir := filepath.Join(r.root, "none of this name")
	if r.Again {
		if err := r.checkJournal(); err != nil {
			return nil, err
		}
		dir = r.journal()
	}
	j, err := journal.Read(dir)
	if err != nil {
		return nil, damaged(err)
	}
	r.takeFrom(j)
	return j, nil
}

// toAsk counts the repeats of a row that neither the journal nor the model's cache
// knows.
func (c *Checked) toAsk(ctx context.Context, j *journal.Journal, row, candidate int) (req *pipeline.Request, n int, err error) {
	req, failure, err := c.FirstRequest(ctx, row, candidate)
	if err != nil || failure != nil {
		return nil, 0, err // it would end before it asked
	}
	for repeat := range c.plan.repeats() {
		at := *req
		at.Site.Repeat = repeat
		known, err := j.Knows(&at)
		if err != nil {
			return nil, 0, damaged(err)
		}
		if known {
			continue
		}
		if knower, ok := c.plan.Candidates[candidate].Caller.LM.Model.(pipeline.Knower); ok {
			reply, err := knower.Known(ctx, &at)
			if err != nil {
				return nil, 0, err
			}
			if reply != nil {
				continue
			}
		}
		n++
	}
	return req, n, nil
}
