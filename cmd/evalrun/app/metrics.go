package app

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/harness/metrics"
	"evalrun/pipeline"
)

// metrics makes the metrics a spec names: the command's own, and those it was
// built with.
func (w *wiring) metrics(ctx context.Context, e *evaluationSpec, rows datasets.Source, p *pipeline.Program) ([]harness.Metric, error) {
	specs := e.Metrics
	if len(specs) == 0 {
		specs = []metrics.Spec{metrics.Named("exact_match")}
	}
	o := metrics.Options{
		Own: sortedKeys(w.env.metrics), Dir: filepath.Dir(w.spec.file), AllowExec: !w.env.noExec, Stderr: w.env.Err, Judge: w.judge,
	}
	if p != nil {
		for _, output := range p.Outputs() {
			o.Outputs = append(o.Outputs, output.Name)
		}
		var err error
		if o.Answers, err = metrics.Answers(rows, p); err != nil {
			return nil, exit(ExitData, err)
		}
	}
	var all []harness.Metric
	for _, s := range specs {
		made, err := w.metric(ctx, s, o)
		if err != nil {
			return nil, exit(ExitUsage, err)
		}
		for _, m := range made {
			known := slices.ContainsFunc(all, func(o harness.Metric) bool { return o.Name() == m.Name() })
			switch {
			case !known:
				all = append(all, m)
			case !s.Plain() || m.Name() == s.Kind && !strings.HasSuffix(s.Kind, "_match"):
				return nil, exit(ExitUsage, s.Errorf("two metrics are called %q: give one of them another name", m.Name()))
			}
		}
	}
	return all, nil
}

// metric makes the metrics of one spec.
func (w *wiring) metric(ctx context.Context, s metrics.Spec, o metrics.Options) ([]harness.Metric, error) {
	if m, ok := w.env.metrics[s.Kind]; ok {
		if !s.Plain() {
			return nil, s.Errorf("the metric %s was built into the command and takes no options", s.Kind)
		}
		return []harness.Metric{m}, nil
	}
	if s.Kind == "command" && !w.env.noExec {
		w.env.notice("a metric runs a command for every answer (--no-exec-plugins refuses programs)")
	}
	return metrics.New(ctx, s, o)
}

// shareKinds are metrics whose scores lie between 0 and 1 whatever their options.
var shareKinds = []string{
	"exact_match", "contains", "regex", "number", "json", "list", "f1", "rouge_l", "bleu", "classification", "json_schema", "tool_calls",
}

// shares reports whether all scores lie between 0 and 1.
func shares(specs []metrics.Spec) bool {
	return !slices.ContainsFunc(specs, func(s metrics.Spec) bool {
		return !slices.Contains(shareKinds, s.Kind) && !strings.HasSuffix(s.Kind, "_match")
	})
}
