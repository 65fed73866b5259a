package metrics

import (
	"context"
	"errors"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/pipeline"
)

// effort is a metric of what an answer took.
type effort struct {
	named
	of      func(*harness.Result) *float64
	unknown string // why there may be none
	timed   bool   // by the clock
	unit    string
}

func (effort) LowerIsBetter() bool { return true }
func (m effort) Timed() bool       { return m.timed }
func (m effort) Unit() string      { return m.unit }

// Score is never asked: see [harness.Effort].
func (effort) Score(context.Context, datasets.Row, *pipeline.Call) (harness.Score, error) {
	return harness.Score{}, errors.New("what an answer took is known to a run alone")
}

func (m effort) ScoreEffort(_ datasets.Row, took *harness.Result) (harness.Score, error) {
	if took.Call == "" {
		return missed("the recorded lane makes no call")
	}
	v := m.of(took)
	if v == nil {
		return missed(m.unknown)
	}
	return harness.Score{Value: *v}, nil
}

func newLatency(b *builder) (harness.Metric, error) {
	m := effort{timed: true, unit: "s", of: func(r *harness.Result) *float64 { return r.Latency }, unknown: "nobody measured how long the answer was on the wire"}
	err := b.decode(&m.named, &m.AsName)
	return m, err
}

func newCost(b *builder) (harness.Metric, error) {
	m := effort{unit: "USD", of: func(r *harness.Result) *float64 { return r.Cost }, unknown: "the cost is not known: the model has no price, or did not say how many tokens it took"}
	err := b.decode(&m.named, &m.AsName)
	return m, err
}

func newTokens(b *builder) (harness.Metric, error) {
	options := struct {
		named
		Of string `conf:"of"`
	}{}
	if err := b.decode(&options, &options.AsName); err != nil {
		return nil, err
	}
	if err := b.oneOf("of", &options.Of, "total", "input", "output"); err != nil {
		return nil, err
	}
	return effort{named: options.named, unit: "tokens", unknown: "the model did not say how many tokens it took", of: func(r *harness.Result) *float64 {
		switch options.Of {
		case "input":
			return float(r.Usage.Input)
		case "output":
			return float(r.Usage.Output)
		}
		if r.Usage.Total == nil && r.Usage.Input != nil && r.Usage.Output != nil {
			sum := *r.Usage.Input + *r.Usage.Output
			return float(&sum)
		}
		return float(r.Usage.Total)
	}}, nil
}

func float(n *int64) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}
