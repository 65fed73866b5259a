package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"evalrun/harness"
	"evalrun/harness/stats"
	"evalrun/internal/conf"
	"evalrun/pipeline"
	"evalrun/pipeline/provider"
	"evalrun/plugins"
	"evalrun/replay"
)

// wiring turns a spec into plans: it opens what the spec names, once each.
type wiring struct {
	env     *env
	spec    *spec
	models  *models
	sources map[string]replay.Source
	loader  *plugins.Loader
	loaded  map[*pipeline.Plugin]plugins.LoadInfo
	tools   *toolPolicy

	approves *pipeline.Plugin // asks a person about tool calls; nil when the spec does not say
}

func (e *env) wire(s *spec) (*wiring, error) {
	budget, err := provider.NewBudget(s.Limits.Budget.allowance(), e.now)
	if err != nil {
		return nil, exit(ExitUsage, fmt.Errorf("limits.budget: %w", err))
	}
	return &wiring{
		env: e, spec: s, sources: map[string]replay.Source{},
		models: &models{env: e, spec: s, budget: budget, open: map[string]*openModel{}},
		loader: e.loader(s.Limits.PluginTimeout), loaded: map[*pipeline.Plugin]plugins.LoadInfo{},
	}, nil
}

// loader loads plugins from files, as the command's flags allow. One that takes
// longer than limit, or 30 seconds when that is 0, is stopped.
func (e *env) loader(limit time.Duration) *plugins.Loader {
	return plugins.NewLoader(plugins.LoadOptions{AllowExec: !e.noExec, Stderr: e.Err, Timeout: limit})
}

func (w *wiring) close() error {
	errs := []error{w.loader.Close(), w.models.cache.close()}
	for _, s := range w.sources {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// plans makes a plan of each evaluation. Nothing is asked and nothing written.
func (w *wiring) plans(ctx context.Context) ([]*harness.Checked, error) {
	var plans []*harness.Checked
	var err error
	if w.tools, err = w.toolPolicy(); err != nil {
		return nil, err
	}
	for i := range w.spec.Evaluations {
		p, err := w.plan(ctx, &w.spec.Evaluations[i])
		if err != nil {
			return nil, err
		}
		checked, err := harness.Check(*p)
		if err != nil {
			return nil, harnessError(err)
		}
		plans = append(plans, checked)
	}
	return plans, cmp.Or(w.tools.check(), w.checkApproval())
}

// harnessError gives an error of the harness its exit code.
func harnessError(err error) error {
	switch {
	case errors.Is(err, harness.ErrPlan):
		return exit(ExitUsage, err)
	case errors.Is(err, provider.ErrSpent):
		return exit(ExitBudget, err)
	case errors.Is(err, harness.ErrStopped), errors.Is(err, context.Canceled), errors.Is(err, provider.ErrBatched):
		return exit(ExitInterrupted, err)
	case errors.Is(err, harness.ErrFailed), errors.Is(err, harness.ErrTooMany):
		return exit(ExitIncomplete, err)
	case errors.Is(err, harness.ErrOutage):
		return exit(ExitCannot, err)
	case errors.Is(err, harness.ErrRows), errors.Is(err, harness.ErrNoRows), errors.Is(err, harness.ErrLedger), errors.Is(err, harness.ErrFolder):
		return exit(ExitData, err)
	}
	return err
}

func (w *wiring) plan(ctx context.Context, e *evaluationSpec) (*harness.Plan, error) {
	p := &harness.Plan{
		Name: e.Name, Baseline: e.Baseline.s, Repeats: int(e.Repeats), Pair: e.Rows.pair(),
		AA: e.AA != nil && *e.AA, Compare: e.Compare.s,
		Stats: stats.Options{Margin: float64(e.Margin)},
	}
	if len(w.spec.Evaluations) == 1 {
		p.Name = ""
	}
	if e.Seed != nil {
		p.Stats.Seed = *e.Seed
	}
	for i := range e.Candidates {
		c, err := w.candidate(ctx, &e.Candidates[i], p.Pair != "")
		if err != nil {
			return nil, err
		}
		p.Candidates = append(p.Candidates, c)
	}
	var err error
	if p.Entries, err = w.entries(e.Records); err != nil {
		return nil, err
	}
	program := firstProgram(p)
	q := replay.Query{Aside: true}
	if program != nil {
		q.Interface, q.Signature = program.Interface(), program.Signature()
	}
	if p.Records, err = w.records(e.Records); err != nil {
		return nil, err
	}
	if p.Rows, p.Intake, err = w.rows(ctx, e, e.Program.s, q); err != nil {
		return nil, err
	}
	if p.Pair != "" {
		if err := w.pair(ctx, e, p); err != nil {
			return nil, err
		}
	}
	p.Metrics, err = w.metrics(ctx, e, p.Rows, program)
	return p, err
}

// firstProgram is the program whose interface the rows must have: the
// baseline's, or where that is recorded alone, the first there is.
func firstProgram(p *harness.Plan) *pipeline.Program {
	var first *pipeline.Program
	for _, c := range p.Candidates {
		if c.Program != nil && (first == nil || c.Name == p.Baseline) {
			first = c.Program
		}
	}
	return first
}

// candidate makes one of the things that are compared.
func (w *wiring) candidate(ctx context.Context, c *candidateSpec, paired bool) (harness.Candidate, error) {
	out := harness.Candidate{Name: c.Name.s, Recorded: c.Recorded}
	if c.Recorded && (c.Program.s == "" || paired) {
		return out, nil
	}
	program, err := loadProgram(beside(w.spec.file, c.Program.s))
	if err != nil {
		return out, at(c.Program, err)
	}
	if c.Recorded {
		out.Program = program
		return out, nil
	}
	m, err := w.models.find(c.Model[0].s)
	if err != nil {
		return out, at(c.Model[0], err)
	}
	own, err := w.plugins(ctx, c.Plugins)
	if err != nil {
		return out, err
	}
	conversation, err := w.plugins(ctx, w.spec.ConversationPlugins)
	if err != nil {
		return out, err
	}
	process, err := w.plugins(ctx, w.spec.Plugins)
	if err != nil {
		return out, err
	}
	layers := []pipeline.Layer{
		{Kind: pipeline.ProgramLayer, Plugins: own},
		{Kind: pipeline.ConversationLayer, Plugins: conversation},
		{Kind: pipeline.ProcessLayer, Plugins: process, ProgramPlugins: w.spec.ProgramPlugins},
	}
	approval, err := w.approval()
	if err != nil {
		return out, err
	}
	around := pipeline.Order(layers)
	if approval != nil {
		around = append(around, approval) // it runs last
	}
	for _, p := range around {
		out.Plugins = append(out.Plugins, harness.PluginRef{Name: p.Name(), Version: p.Version(), Content: w.loaded[p].Hash})
	}
	out.Program = program.WithPlugins(own...)
	out.Model = m.ref
	out.Caller = &pipeline.Caller{
		LM: m.lm, Conversation: layers[1], Process: layers[2], Approval: approval, Timeout: w.spec.Limits.Timeout, Retries: 1,
		HandlerTime: w.spec.Limits.PluginTimeout, MaxSteps: int(w.spec.Limits.MaxSteps),
		Lookup: func(name string) (pipeline.LM, error) {
			other, err := w.models.find(name)
			if err != nil {
				return pipeline.LM{}, err
			}
			return other.lm, nil
		},
		Now: w.env.now, NewID: w.env.newID, Warn: w.env.warnOnce(),
	}
	if err := w.tools.give(&out); err != nil {
		return out, err
	}
	if r := w.spec.Limits.Retries; r != nil {
		out.Caller.Retries = *r
	}
	return out, nil
}

// at puts the place in the spec before an error.
func at(t text, err error) error {
	if _, placed := errors.AsType[*conf.Error](err); placed {
		return exit(ExitUsage, err)
	}
	if code := exitCode(err); code != ExitCannot {
		return &exitError{code, t.errorf("%v", err)}
	}
	return exit(ExitUsage, t.errorf("%v", err))
}

// loadProgram reads a program file, or a saved folder with functai.json.
func loadProgram(file string) (*pipeline.Program, error) {
	saved := false
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		file, saved = filepath.Join(file, "functai.json"), true
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, usageFile("program", err)
	}
	parse := pipeline.ParseProgram
	if saved || filepath.Base(file) == "functai.json" {
		parse = pipeline.ParseSaved
	}
	p, err := parse(file, data)
	return p, exit(ExitUsage, err)
}

func hashFile(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// plugins finds the plugins a spec names: built-in ones and those the command was
// built with, by name, and those in files, by path.
func (w *wiring) plugins(ctx context.Context, specs []pluginSpec) ([]*pipeline.Plugin, error) {
	var out []*pipeline.Plugin
	for i := range specs {
		p, err := w.plugin(ctx, &specs[i])
		if err != nil {
			return nil, exit(ExitUsage, err)
		}
		out = append(out, p)
	}
	return out, nil
}

func (w *wiring) plugin(ctx context.Context, spec *pluginSpec) (*pipeline.Plugin, error) {
	own, isOwn := w.env.plugins[spec.s]
	_, isBuiltin := builtins[spec.s]
	switch {
	case isOwn && isBuiltin:
		return nil, spec.errorf("plugin-load: %q is a built-in plugin, and one that this evalrun was built with (app.WithPlugin): give that one another name", spec.s)
	case isBuiltin:
		return w.builtin(spec)
	case !isOwn && notNamed[spec.s] != "":
		return nil, spec.errorf("plugin-load: the built-in plugin %s cannot be named here: %s", spec.s, notNamed[spec.s])
	case !spec.options.IsZero():
		if !isOwn && filepath.Ext(spec.s) == "" {
			return nil, spec.errorf("plugin-load: %s", w.noPlugin(spec.s))
		}
		return nil, spec.options.Errorf("plugin-load: %s takes no options: only built-in plugins do", spec.s)
	case isOwn:
		return own, nil
	}
	path := beside(w.spec.file, spec.s)
	if _, err := os.Stat(path); err != nil && filepath.Base(spec.s) == spec.s && filepath.Ext(spec.s) == "" {
		return nil, spec.errorf("plugin-load: %s", w.noPlugin(spec.s))
	}
	p, info, err := w.loader.Load(ctx, path)
	if err != nil {
		return nil, at(spec.text, err)
	}
	w.env.sayRun(w.loaded[p] == info, info)
	w.loaded[p] = info
	return p, nil
}

// sayRun tells that a plugin's program was started, once.
func (e *env) sayRun(known bool, info plugins.LoadInfo) {
	if info.Kind == "process" && !known {
		e.notice("running the plugin %s (--no-exec-plugins refuses programs)", info.Path)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
