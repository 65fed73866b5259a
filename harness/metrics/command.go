package metrics

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/internal/proc"
	"evalrun/pipeline"
)

// maxScore is how many bytes a command may write as its score.
const maxScore = 1 << 20

// turns has a place for each process that may run at once: however many rows are at
// work, more than there are CPUs would only make each other late.
var turns = make(chan struct{}, runtime.GOMAXPROCS(0))

// command is a program of the user's own, run for every answer.
type command struct {
	named
	directed
	Argv    []string      `conf:"argv"`
	Timeout time.Duration `conf:"timeout"`
}

func newCommand(b *builder) (harness.Metric, error) {
	m := &command{}
	if err := b.decode(m, &m.AsName); err != nil {
		return nil, err
	}
	if err := b.better(&m.directed); err != nil {
		return nil, err
	}
	if len(m.Argv) == 0 || m.Argv[0] == "" {
		return nil, b.at("argv", "command needs the program and its arguments: {command: {argv: [./score.py]}}")
	}
	if !b.AllowExec {
		return nil, b.Errorf("the metric %s runs a program, and programs are not run here; a starlark metric may be", m.AsName)
	}
	if strings.ContainsRune(m.Argv[0], '/') { // else it is looked for in PATH
		if m.Argv[0] = b.file(m.Argv[0]); !filepath.IsAbs(m.Argv[0]) {
			m.Argv[0] = "." + string(filepath.Separator) + m.Argv[0]
		}
	}
	if m.Timeout == 0 {
		m.Timeout = ownTimeout
	}
	return m, nil
}

func (m *command) Score(ctx context.Context, row datasets.Row, call *pipeline.Call) (harness.Score, error) {
	about, err := callValue(call)
	if err != nil {
		return harness.Score{}, err
	}
	told := datasets.Values{"row": rowValue(row), "call": about}.Object()
	out, err := m.run(ctx, append([]byte(told.JSON()), '\n'))
	if err != nil {
		return harness.Score{}, err
	}
	v, err := datasets.ParseValue(out.Stdout)
	if err != nil {
		return harness.Score{}, fmt.Errorf("%s wrote %q, which is no score: %w", m.Argv[0], clip(string(out.Stdout)), err)
	}
	return scoreOf(v)
}

// run runs the program when its turn has come. Only then its time begins.
func (m *command) run(ctx context.Context, stdin []byte) (proc.Output, error) {
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
	case <-ctx.Done():
		return proc.Output{}, context.Cause(ctx)
	}
	ctx, cancel := limited(ctx, m.Argv[0], m.Timeout)
	defer cancel()
	return proc.Run(ctx, m.Argv, stdin, maxScore)
}
