package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"evalrun/internal/conf"
	"evalrun/pipeline"
	"evalrun/pipeline/provider"
)

// logging is what a command tells of its work on standard error. As text, which
// is for people, warnings, notices and the last error are sentences and the rest
// is lines of log/slog; as JSON everything but progress is a record.
type logging struct {
	level, format string
	log           *slog.Logger
}

// The values of --log-level, from the most told to the least, and of --log-format.
var (
	logLevels  = []string{"debug", "info", "warn", "error"}
	logFormats = []string{"text", "json"}
)

// newLogging tells what a command tells that was not asked for another.
func newLogging(w io.Writer) logging {
	l := logging{level: "warn", format: "text"}
	if err := l.open(w); err != nil {
		panic(err)
	}
	return l
}

func (l *logging) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "log-level", Value: "warn", Usage: "what is told on standard error, from `LEVEL` on: " + strings.Join(logLevels, ", "), Destination: &l.level},
		&cli.StringFlag{Name: "log-format", Value: "text", Usage: "`FORMAT` of what is told: " + strings.Join(logFormats, ", "), Destination: &l.format},
	}
}

// open makes the logger that the flags ask for.
func (l *logging) open(w io.Writer) error {
	for _, f := range []struct {
		name, value string
		known       []string
	}{{"log-level", l.level, logLevels}, {"log-format", l.format, logFormats}} {
		if !slices.Contains(f.known, f.value) {
			hint := ""
			if near := conf.Suggest(f.value, f.known); near != "" {
				hint = fmt.Sprintf("; did you mean %q?", near)
			}
			return usagef("--%s: %q is none of %s%s", f.name, f.value, strings.Join(f.known, ", "), hint)
		}
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.level)); err != nil {
		return usagef("--log-level: %v", err)
	}
	o := &slog.HandlerOptions{Level: level}
	if l.format == "json" {
		l.log = slog.New(slog.NewJSONHandler(w, o))
	} else {
		l.log = slog.New(slog.NewTextHandler(w, o))
	}
	return nil
}

func (l *logging) json() bool { return l.format == "json" }

func (l *logging) tells(level slog.Level) bool { return l.log.Enabled(context.Background(), level) }

// warn tells a person of a doubt.
func (e *env) warn(s string) {
	switch {
	case e.logs.json():
		e.logs.log.Warn(visible(s))
	case e.logs.tells(slog.LevelWarn):
		fmt.Fprintf(e.Err, "evalrun: warning: %s\n", visible(s))
	}
}

// notice tells a person what is going on.
func (e *env) notice(format string, args ...any) {
	s := visible(fmt.Sprintf(format, args...))
	if e.logs.json() {
		e.logs.log.Info(s)
		return
	}
	fmt.Fprintf(e.Err, "evalrun: %s\n", s)
}

// last tells with what error a command ends, and in words what its code means.
func (e *env) last(code int, err error) {
	if e.logs.json() {
		e.logs.log.Error(visible(err.Error()), "exit", code, "meaning", meaning[code])
		return
	}
	fmt.Fprintf(e.Err, "evalrun: %s\nevalrun: exit %d: %s\n", visible(err.Error()), code, meaning[code])
}

// watched has the requests to a service and the events of its limits told, where
// the log is to have them. No key is ever in a request or a failure.
func (l *logging) watched(m pipeline.Model, name string, limiter *provider.Limiter) pipeline.Model {
	if l.tells(slog.LevelInfo) {
		limiter.Observe(func(e provider.LimitEvent) {
			l.log.Info("limit", "model", name, "why", e.Why, "limit", e.Limit, "at", e.At)
		})
	}
	if !l.tells(slog.LevelDebug) {
		return m
	}
	return &loggedModel{m, l.log.With("model", name)}
}

// loggedModel tells of each request and of its tries that failed.
type loggedModel struct {
	model pipeline.Model
	log   *slog.Logger
}

func (m *loggedModel) Generate(ctx context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
	reply, err := m.model.Generate(ctx, req)
	log := m.log.With(slog.Group("site",
		"candidate", req.Site.Candidate, "row", req.Site.Row, "repeat", req.Site.Repeat, "purpose", req.Site.Purpose, "step", req.Site.Step, "try", req.Site.Try))
	if err == nil {
		m.attempts(log, reply.Attempts)
		log.Debug("request", "status", "answered", "finish", reply.Finish, "served", reply.Model, "tries", 1+len(reply.Attempts), "waited", reply.Waited, "wire", reply.Wire)
		return reply, nil
	}
	f, ok := errors.AsType[*pipeline.Failure](err)
	if !ok {
		log.Debug("request", "status", "stopped", "error", err)
		return reply, err
	}
	m.attempts(log, f.Attempts)
	log.Debug("request", "status", f.Class(), "code", f.Code, "tries", 1+len(f.Attempts), "error", f.Message)
	return reply, err
}

func (m *loggedModel) attempts(log *slog.Logger, list []pipeline.Attempt) {
	for i, a := range list {
		log.Debug("try", "status", a.Failure.Class(), "code", a.Failure.Code, "n", i+1, "waited", a.Waited, "wire", a.Wire, "error", a.Failure.Message)
	}
}
