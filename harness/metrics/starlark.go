package metrics

import (
	"context"
	"fmt"
	"os"
	"time"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/internal/par"
	"evalrun/internal/star"
	"evalrun/pipeline"
)

const (
	ownTimeout  = 30 * time.Second // of one score
	maxStarlark = 1 << 20          // bytes of a file
)

// starlark is a function of the user's own, in a Starlark file.
type starlark struct {
	named
	directed
	File string `conf:"file"`

	score *star.Function
}

func newStarlark(b *builder) (harness.Metric, error) {
	m := &starlark{}
	if err := b.decode(m, &m.AsName); err != nil {
		return nil, err
	}
	if err := b.better(&m.directed); err != nil {
		return nil, err
	}
	if m.File == "" {
		return nil, b.at("file", "starlark needs a file that defines score(row, call): {starlark: {file: score.star}}")
	}
	path := b.file(m.File)
	info, err := os.Stat(path)
	if err != nil {
		return nil, b.at("file", "file: %v", err)
	}
	if info.Size() > maxStarlark {
		return nil, b.at("file", "file: %d bytes are too many; there may be %d", info.Size(), maxStarlark)
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, b.at("file", "file: %v", err)
	}
	ctx, cancel := limited(b.ctx, "loading it", ownTimeout)
	defer cancel()
	o := star.Options{}
	if b.Stderr != nil {
		o.Print = par.Writer(b.Stderr)
	}
	if m.score, err = star.LoadFunction(ctx, path, source, "score", 2, o); err != nil {
		return nil, b.at("file", "file: %v", err)
	}
	return m, nil
}

func (m *starlark) Score(ctx context.Context, row datasets.Row, call *pipeline.Call) (harness.Score, error) {
	about, err := callValue(call)
	if err != nil {
		return harness.Score{}, err
	}
	ctx, cancel := limited(ctx, "it", ownTimeout)
	defer cancel()
	text, err := m.score.Call(ctx, rowValue(row).JSON(), about.JSON())
	if err != nil {
		return harness.Score{}, err
	}
	s, err := scoreOf(datasets.RawValue(text))
	if err != nil {
		return s, fmt.Errorf("%s: %w", m.score.At, err)
	}
	return s, nil
}

// limited is ctx with a time limit, whose passing is an error of the metric.
func limited(ctx context.Context, what string, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("stopped: %s took longer than %s", what, limit))
}
