package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/harness/metrics"
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
	models  map[string]*openModel
	sources map[string]replay.Source
	loader  *plugins.Loader
	loaded  map[*pipeline.Plugin]plugins.LoadInfo
}

// openModel is a model of the spec, ready to be asked.
type openModel struct {
	lm    pipeline.LM
	ref   harness.ModelRef
	price *harness.Price
}

func (e *env) wire(s *spec) *wiring {
	return &wiring{
		env: e, spec: s, models: map[string]*openModel{}, sources: map[string]replay.Source{},
		loader: e.loader(), loaded: map[*pipeline.Plugin]plugins.LoadInfo{},
	}
}

// loader loads plugins from files, as the command's flags allow.
func (e *env) loader() *plugins.Loader {
	return plugins.NewLoader(plugins.LoadOptions{AllowExec: !e.noExec, Stderr: e.Err})
}

func (w *wiring) close() error {
	errs := []error{w.loader.Close()}
	for _, s := range w.sources {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// plans makes a plan of each evaluation. Nothing is asked and nothing written.
func (w *wiring) plans(ctx context.Context) ([]*harness.Checked, error) {
	var plans []*harness.Checked
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
	return plans, nil
}

// harnessError gives an error of the harness its exit code.
func harnessError(err error) error {
	switch {
	case errors.Is(err, harness.ErrPlan):
		return exit(ExitUsage, err)
	case errors.Is(err, harness.ErrRows), errors.Is(err, harness.ErrNoRows), errors.Is(err, harness.ErrLedger):
		return exit(ExitData, err)
	case errors.Is(err, harness.ErrStopped), errors.Is(err, context.Canceled):
		return exit(ExitInterrupted, err)
	}
	return err
}

func (w *wiring) plan(ctx context.Context, e *evaluationSpec) (*harness.Plan, error) {
	p := &harness.Plan{
		Name: e.Name, Baseline: e.Baseline.s, Repeats: int(e.Repeats), Pair: e.Rows.pair(),
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
	program := firstProgram(p)
	q := replay.Query{}
	if program != nil {
		q.Interface, q.Signature = program.Interface(), program.Signature()
	}
	var err error
	if p.Rows, p.Intake, err = w.rows(ctx, e, e.Program.s, q); err != nil {
		return nil, err
	}
	if p.Pair != "" {
		if err := w.pair(ctx, e, p); err != nil {
			return nil, err
		}
	}
	p.Metrics, err = w.metrics(e, p.Rows, program)
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
	m, err := w.model(c.Model.s)
	if err != nil {
		return out, at(c.Model, err)
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
		{Kind: pipeline.ProcessLayer, Plugins: process},
	}
	for _, p := range pipeline.Order(layers) {
		out.Plugins = append(out.Plugins, harness.PluginRef{Name: p.Name(), Version: p.Version(), Content: w.loaded[p].Hash})
	}
	out.Program = program.WithPlugins(own...)
	out.Model, out.Price = m.ref, m.price
	out.Caller = &pipeline.Caller{
		LM: m.lm, Conversation: layers[1], Process: layers[2], Timeout: w.spec.Limits.Timeout, Retries: 1,
		Lookup: func(name string) (pipeline.LM, error) {
			other, err := w.model(name)
			if err != nil {
				return pipeline.LM{}, err
			}
			return other.lm, nil
		},
		Now: w.env.now, NewID: w.env.newID,
	}
	if len(w.env.tools) > 0 {
		out.Caller.Tools = w.env.tools
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

func (w *wiring) model(name string) (*openModel, error) {
	if m, ok := w.models[name]; ok {
		return m, nil
	}
	spec, err := w.spec.model(name)
	if err != nil {
		return nil, err
	}
	m := &openModel{ref: harness.ModelRef{Name: name, Provider: spec.Provider.s, Settings: spec.settings()}}
	if spec.Price != nil {
		m.price = &harness.Price{Input: spec.Price.Input, Output: spec.Price.Output}
	}
	if own, ok := w.env.models[spec.Provider.s]; ok {
		m.lm = pipeline.LM{Name: name, Model: own, Config: m.ref.Settings, Baked: spec.Baked}
	} else {
		m.lm, err = provider.Open(spec.Provider.s, provider.Options{
			Name: name, Replies: spec.Replies, BaseDir: filepath.Dir(w.spec.file), Config: m.ref.Settings, Baked: spec.Baked,
		})
		if err != nil {
			return nil, spec.Provider.errorf("%v", err)
		}
	}
	if spec.Replies != "" {
		if m.ref.Content, err = hashFile(beside(w.spec.file, spec.Replies)); err != nil {
			return nil, err
		}
	}
	w.models[name] = m
	return m, nil
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

// plugins finds the plugins a spec names: those the command was built with, by
// name, and those in files, by path.
func (w *wiring) plugins(ctx context.Context, names []text) ([]*pipeline.Plugin, error) {
	var out []*pipeline.Plugin
	for _, name := range names {
		p, ok := w.env.plugins[name.s]
		if !ok {
			path := beside(w.spec.file, name.s)
			if _, err := os.Stat(path); err != nil && filepath.Base(name.s) == name.s && filepath.Ext(name.s) == "" {
				return nil, exit(ExitUsage, name.errorf("plugin-load: there is no plugin %q: this evalrun was built with %s, and no file has that path", name.s, orNone(sortedKeys(w.env.plugins))))
			}
			var info plugins.LoadInfo
			var err error
			if p, info, err = w.loader.Load(ctx, path); err != nil {
				return nil, at(name, err)
			}
			w.env.sayRun(w.loaded[p] == info, info)
			w.loaded[p] = info
		}
		out = append(out, p)
	}
	return out, nil
}

// sayRun tells that a plugin's program was started, once.
func (e *env) sayRun(known bool, info plugins.LoadInfo) {
	if info.Kind == "process" && !known {
		fmt.Fprintf(e.Err, "evalrun: running the plugin %s (--no-exec-plugins refuses programs)\n", visible(info.Path))
	}
}

// metrics makes the metrics a spec names: the command's own, and those it was
// built with.
func (w *wiring) metrics(e *evaluationSpec, rows datasets.Source, p *pipeline.Program) ([]harness.Metric, error) {
	names := e.Metrics
	if len(names) == 0 {
		names = []text{{s: "exact_match"}}
	}
	var answers []string
	if p != nil {
		var err error
		if answers, err = metrics.Answers(rows, p); err != nil {
			return nil, exit(ExitData, err)
		}
	}
	var out []harness.Metric
	for _, name := range names {
		if m, ok := w.env.metrics[name.s]; ok {
			out = append(out, m)
			continue
		}
		ours, err := metrics.New([]string{name.s}, answers)
		if err != nil {
			return nil, at(name, err)
		}
		for _, m := range ours {
			if !slices.ContainsFunc(out, func(o harness.Metric) bool { return o.Name() == m.Name() }) {
				out = append(out, m)
			}
		}
	}
	return out, nil
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
