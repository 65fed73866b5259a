package tools

import (
	"context"
	"errors"
	"time"

	"evalrun/datasets"
	"evalrun/internal/proc"
	"evalrun/pipeline"
)

// Command is a command as a tool: the input is its standard input, as JSON, and
// its standard output is the result. One that exits with another code than 0 is
// an error, with the end of what it wrote to its standard error.
type Command struct {
	Argv    []string      // the command and its arguments; no shell reads them, and nothing of an input is among them
	Timeout time.Duration // 0 means DefaultTimeout
	Limit   int           // the most bytes of standard output; more is an error; 0 means DefaultLimit
}

// Run runs the command.
func (c Command) Run(ctx context.Context, _ pipeline.Invocation, input datasets.Value) (string, error) {
	timeout, limit := limits(c.Timeout, c.Limit)
	ctx, cancel := within(ctx, timeout)
	defer cancel()
	out, err := proc.Run(ctx, c.Argv, append([]byte(input.JSON()), '\n'), limit)
	if err == nil {
		return said(out.Stdout), nil
	}
	if f, ok := errors.AsType[*pipeline.Failure](err); ok {
		return "", f
	}
	if ctx.Err() != nil {
		return "", err
	}
	return "", failed("%v", err)
}
