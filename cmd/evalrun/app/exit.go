package app

import (
	"context"
	"errors"
	"fmt"
)

// The exit codes, the same for every command.
const (
	ExitOK           = 0
	ExitGate         = 1   // a gate failed: a regression
	ExitUsage        = 2   // asked wrongly: flags, files, configuration
	ExitInconclusive = 3   // a gate could not decide
	ExitIncomplete   = 4   // more failed rows than allowed, or every answer failed
	ExitBudget       = 5   // the budget is spent; what there is, is valid
	ExitData         = 6   // the data was refused
	ExitCannot       = 7   // could not be done: disk, permissions, a provider
	ExitBug          = 70  // a bug of evalrun's
	ExitInterrupted  = 130 // interrupted; what there is, is valid
)

var meaning = map[int]string{
	ExitOK:           "done",
	ExitGate:         "the gate failed: a regression",
	ExitUsage:        "asked wrongly; nothing was run or written",
	ExitInconclusive: "the gate could not decide",
	ExitIncomplete:   "incomplete: too many rows failed",
	ExitBudget:       "the budget is spent; what there is, is valid",
	ExitData:         "the data was refused",
	ExitCannot:       "it could not be done",
	ExitBug:          "a bug of evalrun's; please report it",
	ExitInterrupted:  "interrupted; what there is, is valid",
}

// exitError is an error that knows its exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// exit gives an error its code; an error that has one keeps it.
func exit(code int, err error) error {
	if err == nil {
		return nil
	}
	if has, ok := errors.AsType[*exitError](err); ok {
		return has
	}
	return &exitError{code, err}
}

func usagef(format string, args ...any) error {
	return &exitError{ExitUsage, fmt.Errorf(format, args...)}
}

func dataf(format string, args ...any) error {
	return &exitError{ExitData, fmt.Errorf(format, args...)}
}

// exitCode is the one place where errors become codes. An error that nobody
// gave a code could not be done.
func exitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	if errors.Is(err, context.Canceled) {
		return ExitInterrupted
	}
	return ExitCannot
}

// said marks an error whose object was printed already, so that --json prints
// no second one.
func (e *env) said(err error) error {
	e.json = false
	return err
}
