package app

import (
	"context"
	"maps"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/harness/metrics"
	"evalrun/internal/conf"
	"evalrun/pipeline"
)

// judgeTokens is how long a judge's reply may be when neither the judge nor its
// model says: a model that thinks spends most of it before the verdict.
const judgeTokens = 8192

// judge is what a judge is asked with: a model of the spec and its own plugins,
// and none of those around candidates.
func (w *wiring) judge(ctx context.Context, a metrics.Asking) (metrics.Environment, error) {
	var env metrics.Environment
	var name text
	if err := conf.Decode(a.Model, &name); err != nil {
		return env, err
	}
	m, err := w.models.find(name.s)
	if err != nil {
		return env, at(name, err)
	}
	var own []pluginSpec
	for _, n := range a.Plugins {
		var p pluginSpec
		if err := conf.Decode(n, &p); err != nil {
			return env, err
		}
		own = append(own, p)
	}
	if env.Plugins, err = w.plugins(ctx, own); err != nil {
		return env, err
	}
	for _, p := range pipeline.Order([]pipeline.Layer{{Kind: pipeline.ProgramLayer, Plugins: env.Plugins}}) {
		env.Refs = append(env.Refs, harness.PluginRef{Name: p.Name(), Version: p.Version(), Content: w.loaded[p].Hash})
	}
	lm, ref := m.lm, m.ref
	if most := w.judgeTokens(name.s, a.MaxTokens, lm); most > 0 {
		lm.Config = withValue(lm.Config, "max_tokens", datasets.Int(most))
		ref.Settings = withValue(ref.Settings, "max_tokens", datasets.Int(most))
	}
	env.Model = ref
	env.Caller = &pipeline.Caller{
		LM: lm, Timeout: w.spec.Limits.Timeout, Retries: 1, HandlerTime: w.spec.Limits.PluginTimeout,
		Now: w.env.now, NewID: w.env.newID, Warn: w.env.warnOnce(),
	}
	if r := w.spec.Limits.Retries; r != nil {
		env.Caller.Retries = *r
	}
	return env, nil
}

// judgeTokens is the bound that a judge's replies are given; 0 leaves the model's.
// Recorded replies are to requests as they were.
func (w *wiring) judgeTokens(model string, stated int64, lm pipeline.LM) int64 {
	if stated > 0 || lm.Deterministic {
		return stated
	}
	if spec, err := w.spec.model(model); err != nil || !spec.MaxTokens.IsZero() {
		return 0
	}
	return judgeTokens
}

func withValue(values datasets.Values, name string, v datasets.Value) datasets.Values {
	all := datasets.Values{}
	maps.Copy(all, values)
	all[name] = v
	return all
}
