package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"evalrun/harness/metrics"
	"evalrun/internal/conf"
)

// spec is a spec file: the question a run answers. The keys of an evaluation may
// stand at the top, for a run of one, or in the items of evaluations, which take
// from the top what they leave out.
type spec struct {
	Version int `conf:"version,required"`
	evaluationSpec
	Evaluations         []evaluationSpec      `conf:"evaluations"`
	Models              conf.Pairs[modelSpec] `conf:"models"`
	Plugins             []pluginSpec          `conf:"plugins"`              // the environment's own, outermost
	ConversationPlugins []pluginSpec          `conf:"conversation_plugins"` // between the program's and the environment's
	ProgramPlugins      *bool                 `conf:"program_plugins"`      // false drops the candidates' own
	Approval            approvalSpec          `conf:"approval"`
	Limits              limitsSpec            `conf:"limits"`
	Tools               toolsSpec             `conf:"tools"`
	Approve             approveSpec           `conf:"approve"`
	Report              reportSpec            `conf:"report"`
	Cache               cacheMode             `conf:"cache"`     // of replies: off, read, write or rw
	CacheDir            string                `conf:"cache_dir"` // its folder; "": beside the folder of runs

	file string
	data []byte // as it is on disk
}

// evaluationSpec is one question: which rows, which candidates, which metrics.
type evaluationSpec struct {
	Name       string          `conf:"name"`
	Records    paths           `conf:"records"`
	Program    text            `conf:"program"` // MODULE:NAME, whose rated calls are the rows
	Rows       *rowsSpec       `conf:"rows"`
	Candidates []candidateSpec `conf:"candidates"`
	Baseline   text            `conf:"baseline"`
	AA         *bool           `conf:"aa"`      // ask the baseline a second time
	Compare    text            `conf:"compare"` // what candidates are compared with: baseline, aa or recorded
	Metrics    []metrics.Spec  `conf:"metrics"`
	Repeats    positive        `conf:"repeats"`
	Seed       *uint64         `conf:"seed"`
	Margin     margin          `conf:"margin"`
}

// rowsSpec chooses among the rated rows.
type rowsSpec struct {
	By     string   `conf:"by"`     // one person's ratings
	Since  when     `conf:"since"`  // calls started at or after
	Until  when     `conf:"until"`  // calls started before
	Sample string   `conf:"sample"` // ratings of that random draw
	Limit  positive `conf:"limit"`  // the first so many
	Pair   text     `conf:"pair"`   // pair rows of several programs by this field
}

type candidateSpec struct {
	Name     text         `conf:"name,required"`
	Program  text         `conf:"program"` // a program file; with rows.pair, the MODULE:NAME whose recorded answers these are
	Model    names        `conf:"model"`   // several: a candidate each
	Recorded bool         `conf:"recorded"`
	Plugins  []pluginSpec `conf:"plugins"`
}

type reportSpec struct {
	Formats []text `conf:"formats"`
}

// text is a text that remembers its place.
type text struct {
	s  string
	at conf.Node
}

func (t *text) DecodeConf(n conf.Node) error {
	t.at = n
	return conf.Decode(n, &t.s)
}

func (t text) errorf(format string, args ...any) error { return t.at.Errorf(format, args...) }

// texts are the strings of a list.
func texts(list []text) []string {
	s := make([]string, len(list))
	for i, t := range list {
		s[i] = t.s
	}
	return s
}

// positive is a whole number from 1 to most; 0 when it is not given.
type positive int

const most = 1_000_000

func (c *positive) DecodeConf(n conf.Node) error {
	var i int
	if err := conf.Decode(n, &i); err != nil {
		return err
	}
	if i < 1 {
		return n.Errorf("%d is less than 1", i)
	}
	if i > most {
		return n.Errorf("%d is more than %d", i, most)
	}
	*c = positive(i)
	return nil
}

// workers is how many rows are asked at once; 0, or auto, when evalrun chooses.
type workers int

func (w *workers) DecodeConf(n conf.Node) error {
	if s, ok := n.Text(); ok && s == "auto" {
		return nil
	}
	if err := (*positive)(w).DecodeConf(n); err != nil {
		return err
	}
	if *w > mostWorkers {
		return n.Errorf("%d at once is more than %d", *w, mostWorkers)
	}
	return nil
}

const mostWorkers = 10_000

// margin is the smallest difference that would matter, in units of the score; 0
// when it is not given.
type margin float64

func (m *margin) DecodeConf(n conf.Node) error {
	var f float64
	if err := conf.Decode(n, &f); err != nil {
		return err
	}
	if f <= 0 {
		return n.Errorf("the margin %v is no positive difference", f)
	}
	*m = margin(f)
	return nil
}

// names are one name or several.
type names []text

func (l *names) DecodeConf(n conf.Node) error {
	if n.Kind() == conf.List {
		return conf.Decode(n, (*[]text)(l))
	}
	var one text
	if err := conf.Decode(n, &one); err != nil {
		return err
	}
	*l = names{one}
	return nil
}

// eachModel makes of a candidate with several models one with each.
func eachModel(list []candidateSpec) []candidateSpec {
	var all []candidateSpec
	for _, c := range list {
		if len(c.Model) < 2 {
			all = append(all, c)
			continue
		}
		for _, m := range c.Model {
			with := c
			with.Name.s, with.Model = c.Name.s+"@"+m.s, names{m}
			all = append(all, with)
		}
	}
	return all
}

// paths are one path or several.
type paths []string

func (p *paths) DecodeConf(n conf.Node) error {
	if n.Kind() == conf.List {
		return conf.Decode(n, (*[]string)(p))
	}
	var one string
	if err := conf.Decode(n, &one); err != nil {
		return err
	}
	*p = paths{one}
	return nil
}

// when is a day or a time.
type when struct{ time.Time }

func (w *when) DecodeConf(n conf.Node) error {
	var s string
	if err := conf.Decode(n, &s); err != nil {
		return err
	}
	for _, form := range []string{time.DateOnly, time.RFC3339Nano} {
		if t, err := time.Parse(form, s); err == nil {
			w.Time = t
			return nil
		}
	}
	return n.Errorf("%q is no day (2026-01-31) and no time (2026-01-31T12:00:00Z)", s)
}

// threshold is a number of rows or a share of them.
type threshold struct {
	set   bool
	n     int
	share float64 // of the asked rows; used when n is 0 and the share is not
}

func (t *threshold) DecodeConf(n conf.Node) error {
	var err error
	if *t, err = parseThreshold(string(n.JSON())); err != nil {
		return n.Errorf("%v", err)
	}
	return nil
}

func parseThreshold(s string) (threshold, error) {
	s = strings.Trim(s, `"`)
	if percent, ok := strings.CutSuffix(s, "%"); ok {
		f, err := strconv.ParseFloat(percent, 64)
		if err == nil && f >= 0 && f <= 100 {
			return threshold{set: true, share: f / 100}, nil
		}
	} else if n, err := strconv.Atoi(s); err == nil && n >= 0 {
		return threshold{set: true, n: n}, nil
	}
	return threshold{}, fmt.Errorf("%q is neither a number of rows (10) nor a share of them (5%%)", s)
}

// exceeded reports whether failed of asked rows are more than the threshold allows.
func (t threshold) exceeded(failed, asked int) bool {
	switch {
	case !t.set:
		return false
	case t.share > 0:
		return float64(failed) > t.share*float64(asked)
	}
	return failed > t.n
}

// loadSpec reads a spec file. Environment references in it are replaced from
// getenv; this is the only file in which they are.
func loadSpec(file string, getenv func(string) (string, bool)) (*spec, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, usageFile("spec", err)
	}
	node, err := conf.Parse(file, data)
	if err != nil {
		return nil, exit(ExitUsage, err)
	}
	if node, err = conf.Expand(node, getenv); err != nil {
		return nil, exit(ExitUsage, err)
	}
	s := &spec{file: file, data: data}
	if err := conf.Decode(node, s); err != nil {
		return nil, exit(ExitUsage, err)
	}
	if s.Version != 1 {
		return nil, exit(ExitUsage, node.Member("version").Errorf("version %d is not known; this evalrun reads version 1", s.Version))
	}
	if err := s.complete(node); err != nil {
		return nil, exit(ExitUsage, err)
	}
	return s, nil
}

// complete gives each evaluation what it takes from the top, and refuses what
// cannot be a question.
func (s *spec) complete(node conf.Node) error {
	if list := node.Member("evaluations"); !list.IsZero() && len(s.Evaluations) == 0 {
		return list.Errorf("evaluations is empty: list at least one, or leave the key out")
	}
	if err := checkFormats(s.Report.Formats); err != nil {
		return err
	}
	if len(s.Evaluations) == 0 {
		s.Evaluations = []evaluationSpec{s.evaluationSpec}
	}
	named := map[string]bool{}
	for i := range s.Evaluations {
		e, at := &s.Evaluations[i], node
		if list := node.Member("evaluations"); !list.IsZero() {
			at = list.Items()[i]
			e.inherit(&s.evaluationSpec)
		}
		switch {
		case len(s.Evaluations) > 1 && e.Name == "":
			return at.Errorf("an evaluation of a suite needs a name")
		case named[e.Name]:
			return at.Errorf("two evaluations are called %q", e.Name)
		case len(e.Records) == 0:
			return at.Errorf("records is missing: a store, Parquet files, or a call-log folder")
		case e.Program.s == "":
			return at.Errorf("program is missing: MODULE:NAME, whose rated calls are the rows")
		case len(e.Candidates) == 0:
			return at.Errorf("candidates is missing: what is to be measured")
		}
		named[e.Name] = true
		e.Candidates = eachModel(e.Candidates)
		if err := e.check(); err != nil {
			if _, placed := errors.AsType[*conf.Error](err); !placed {
				err = at.Errorf("%v", err)
			}
			return err
		}
	}
	return nil
}

// check refuses candidates that cannot be told apart or asked, and a baseline
// that is none of them.
func (e *evaluationSpec) check() error {
	var names []string
	for _, c := range e.Candidates {
		switch {
		case c.Name.s == "":
			return c.Name.errorf("a candidate's name is empty")
		case slices.Contains(names, c.Name.s):
			return c.Name.errorf("two candidates are called %q", c.Name.s)
		case c.Recorded && len(c.Model) > 0:
			return c.Model[0].errorf("the candidate %s is recorded: no model is asked, so it takes none", c.Name.s)
		case !c.Recorded && len(c.Model) == 0:
			return c.Name.errorf("the candidate %s has no model; name one of models, or say recorded: true", c.Name.s)
		case !c.Recorded && c.Program.s == "":
			return c.Name.errorf("the candidate %s has no program; give a program file", c.Name.s)
		case e.Rows.pair() != "" && !c.Recorded:
			return c.Name.errorf("rows.pair compares recorded answers; the candidate %s is asked", c.Name.s)
		}
		names = append(names, c.Name.s)
	}
	if e.Margin >= 1 && shares(e.Metrics) {
		return fmt.Errorf("the margin %v is of scores between 0 and 1: five points are 0.05", e.Margin)
	}
	if e.Baseline.s != "" && !slices.Contains(names, e.Baseline.s) {
		return e.Baseline.errorf("the baseline %q is no candidate%s", e.Baseline.s, suggestion(e.Baseline.s, names))
	}
	return nil
}

func (r *rowsSpec) pair() string {
	if r == nil {
		return ""
	}
	return r.Pair.s
}

// inherit takes from the top what the item leaves out.
func (e *evaluationSpec) inherit(top *evaluationSpec) {
	if e.Records == nil {
		e.Records = top.Records
	}
	if e.Program.s == "" {
		e.Program = top.Program
	}
	if e.Rows == nil {
		e.Rows = top.Rows
	}
	if e.Candidates == nil {
		e.Candidates = top.Candidates
	}
	if e.Baseline.s == "" {
		e.Baseline = top.Baseline
	}
	if e.AA == nil {
		e.AA = top.AA
	}
	if e.Compare.s == "" {
		e.Compare = top.Compare
	}
	if e.Metrics == nil {
		e.Metrics = top.Metrics
	}
	if e.Repeats == 0 {
		e.Repeats = top.Repeats
	}
	if e.Seed == nil {
		e.Seed = top.Seed
	}
	if e.Margin == 0 {
		e.Margin = top.Margin
	}
}

// model finds a model by the name a candidate or a plugin gives.
func (s *spec) model(name string) (modelSpec, error) {
	m, ok := s.Models.Get(name)
	if ok {
		return m, nil
	}
	var known []string
	for _, p := range s.Models {
		known = append(known, p.Key)
	}
	if known == nil {
		return m, fmt.Errorf("there is no model %q: the spec names no models", name)
	}
	return m, fmt.Errorf("there is no model %q%s", name, suggestion(name, known))
}

// suggestion ends a message about an unknown name.
func suggestion(word string, known []string) string {
	if near := conf.Suggest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return "; there are " + strings.Join(known, ", ")
}

// usageFile is the error for a file that a person named and that cannot be read.
func usageFile(what string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			return usagef("the %s %s does not exist", what, p.Path)
		}
	}
	return usagef("the %s cannot be read: %w", what, err)
}
