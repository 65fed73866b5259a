// Package app is the evalrun command as a library: a team with plugins, metrics
// or models of its own calls [Main] with them from a main of ten lines.
//
// The package wires and does nothing else: it reads flags, the environment and
// spec files, opens what they name, calls the packages below, and turns errors
// into exit codes. It is the only place that reads the clock and the
// environment.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/joho/godotenv"
	"github.com/urfave/cli/v2"

	"evalrun/harness"
	"evalrun/internal/conf"
	"evalrun/internal/par"
	"evalrun/pipeline"
	"evalrun/pipeline/tools"
)

// Stdio are the streams a command reads and writes: results go to Out, progress
// and messages to Err.
type Stdio struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// env is what a command works in.
type env struct {
	Stdio
	console *console // what Err is
	logs    logging
	plugins map[string]*pipeline.Plugin
	metrics map[string]harness.Metric
	models  map[string]pipeline.Model
	tools   tools.Map
	now     func() time.Time
	newID   func() string
	stop    <-chan struct{} // closed at the first interrupt: start nothing more
	json    bool
	noExec  bool // plugins that are programs are refused
	quiet   bool
}

// Main runs the command and returns its exit code. It never panics and never
// exits the process.
func Main(ctx context.Context, args []string, stdio Stdio, opts ...Option) (code int) {
	e := &env{
		Stdio: stdio, plugins: map[string]*pipeline.Plugin{}, metrics: map[string]harness.Metric{}, models: map[string]pipeline.Model{}, tools: tools.Map{},
		now: time.Now, newID: newID,
	}
	e.console = &console{w: stdio.Err}
	e.Err = e.console
	e.logs = newLogging(e.Err)
	defer func() {
		if p := recover(); p != nil {
			if e.json {
				_ = e.printJSON(map[string]any{"error": map[string]any{"message": fmt.Sprint(p)}, "exit": map[string]any{"code": ExitBug, "meaning": meaning[ExitBug]}})
			}
			fmt.Fprintf(e.Err, "evalrun: %v\n\n%s\nevalrun: exit %d: %s\n", p, debug.Stack(), ExitBug, meaning[ExitBug])
			code = ExitBug
		}
	}()
	// A failure is an object too, also one that happens before flags are read.
	e.json = slices.Contains(args, "--json")
	if err := e.apply(opts); err != nil {
		return e.finish(err)
	}
	if err := loadDotEnv(); err != nil {
		return e.finish(exit(ExitUsage, err))
	}
	ctx, release := e.interruptible(ctx)
	defer release()
	app := e.app()
	return e.finish(app.RunContext(ctx, permute(app, args)))
}

// loadDotEnv reads .env in the working directory. It never overrides the real
// environment.
func loadDotEnv() error {
	err := godotenv.Load()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		// The library's message quotes the file, which holds secrets.
		return errors.New("the file .env in the working directory is not lines of NAME=VALUE: mend it or take it away")
	}
	return nil
}

// newID makes a UUIDv7, whose order is that of time.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// interruptible returns a context that the second interrupt cancels, as do being
// told to end and losing the terminal, so that no program that was started is left
// behind; the first interrupt closes e.stop.
func (e *env) interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	boundFiles()
	signals := make(chan os.Signal, 2)
	stop := make(chan struct{})
	e.stop = stop
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signal.Notify(signals, syscall.SIGHUP)
	}
	end := par.Go(context.WithoutCancel(ctx), func(watching context.Context) {
		for stopping := false; ; stopping = true {
			select {
			case s := <-signals:
				if stopping || s != os.Interrupt {
					signal.Stop(signals) // one more ends the process, whatever hangs
					cancel()
					return
				}
				if !e.logs.json() {
					fmt.Fprintln(e.Err) // the terminal shows ^C
				}
				e.notice("interrupted: finishing what is in flight; interrupt again to stop now")
				close(stop)
			case <-watching.Done():
				return
			}
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		end()
		cancel()
	}
}

// finish reports err and returns its exit code. The last line on standard error
// says in words what the code means.
func (e *env) finish(err error) int {
	code := exitCode(err)
	if err == nil {
		return code
	}
	if e.json {
		_ = e.printJSON(map[string]any{"error": map[string]any{"message": err.Error()}, "exit": map[string]any{"code": code, "meaning": meaning[code]}})
	}
	e.last(code, err)
	return code
}

func (e *env) app() *cli.App {
	app := &cli.App{
		Name:  "evalrun",
		Usage: "is the new version really better? measure programs that ask language models, on rated calls",
		UsageText: "evalrun COMMAND [FLAGS] [ARGUMENTS]\n\n" +
			"evalrun run examples/bbh/evalrun.yaml     # the main job, offline\n" +
			"evalrun rows records --program shop:route # the rated calls of a program",
		Description: "Exit codes: 0 done; 1 a gate failed; 2 asked wrongly; 3 a gate could not decide; 4 more failed rows\n" +
			"than allowed; 5 budget spent; 6 data refused; 7 could not be done; 70 a bug; 130 interrupted.\n" +
			"Every flag can be set as EVALRUN_<LONG_FLAG>.",
		Version:                   Version(),
		HideVersion:               false,
		EnableBashCompletion:      true,
		DisableSliceFlagSeparator: true,
		Reader:                    e.In,
		Writer:                    e.Out,
		ErrWriter:                 e.Err,
		ExitErrHandler:            func(*cli.Context, error) {}, // codes are finish's alone
		OnUsageError:              usageError,
		Flags:                     []cli.Flag{cli.HelpFlag}, // the library adds none beside a help command of our own
		Commands: []*cli.Command{
			e.runCommand(), e.compareCommand(), e.reportCommand(), e.statusCommand(),
			e.importCommand(), e.rowsCommand(), e.recordsCommand(), e.programsCommand(), e.pluginsCommand(), e.versionCommand(), e.helpCommand(),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return cli.ShowAppHelp(c)
			}
			var known []string
			for _, cmd := range c.App.Commands {
				known = append(known, cmd.Name)
			}
			return unknown("command", c.Args().First(), known, "evalrun help lists them")
		},
	}
	for _, cmd := range app.Commands {
		e.prepare(cmd)
	}
	return app
}

// prepare gives a command and its subcommands what all of them share.
func (e *env) prepare(cmd *cli.Command) {
	cmd.OnUsageError = usageError
	cmd.HideHelpCommand = true
	if len(cmd.Subcommands) > 0 {
		var known []string
		for _, sub := range cmd.Subcommands {
			e.prepare(sub)
			known = append(known, sub.Name)
		}
		name := cmd.Name
		cmd.Action = func(c *cli.Context) error {
			if c.NArg() == 0 {
				return usagef("%s needs one of: %s", name, strings.Join(known, ", "))
			}
			return unknown(name+" command", c.Args().First(), known, "")
		}
		return
	}
	cmd.Flags = append(cmd.Flags,
		&cli.BoolFlag{Name: "json", Usage: "print one JSON object on standard output and nothing else there", Destination: &e.json},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no progress", Destination: &e.quiet},
	)
	cmd.Flags = append(cmd.Flags, e.logs.flags()...)
	cmd.Before = func(*cli.Context) error { return e.logs.open(e.Err) }
	for _, f := range cmd.Flags {
		fromEnvironment(f)
	}
}

// fromEnvironment lets every flag be set as EVALRUN_<LONG_FLAG>.
func fromEnvironment(f cli.Flag) {
	name := []string{"EVALRUN_" + strings.ToUpper(strings.ReplaceAll(f.Names()[0], "-", "_"))}
	switch f := f.(type) {
	case *cli.StringFlag:
		f.EnvVars = name
	case *cli.BoolFlag:
		f.EnvVars = name
	case *cli.IntFlag:
		f.EnvVars = name
	case *cli.StringSliceFlag:
		f.EnvVars = name
	case *cli.DurationFlag:
		f.EnvVars = name
	default:
		panic(fmt.Sprintf("app: a flag of type %T has no environment variable", f))
	}
}

func usageError(c *cli.Context, err error, _ bool) error {
	name := "evalrun"
	if c.Command != nil && c.Command.Name != "" && c.Command.Name != "evalrun" {
		name = c.Command.HelpName
	}
	return usagef("%v (see %s --help)", err, name)
}

// unknown is the error for a word that is not one of the known ones.
func unknown(what, word string, known []string, hint string) error {
	s := fmt.Sprintf("unknown %s %q", what, word)
	if near := conf.Suggest(word, known); near != "" {
		s += fmt.Sprintf("; did you mean %q?", near)
	} else {
		s += "; there are " + strings.Join(known, ", ")
	}
	if hint != "" {
		s += " (" + hint + ")"
	}
	return usagef("%s", s)
}

// arguments checks the number of arguments; most < 0 is any number.
func arguments(c *cli.Context, least, most int, want string) ([]string, error) {
	args := c.Args().Slice()
	if len(args) < least || most >= 0 && len(args) > most {
		return nil, usagef("%s takes %s, and was given %d (see %s --help)", c.Command.HelpName, want, len(args), c.Command.HelpName)
	}
	return args, nil
}

// printJSON writes v as one JSON object on standard output.
func (e *env) printJSON(v any) error {
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return e.printRaw(string(b) + "\n")
}

// print writes text for a person: what came from data cannot steer a terminal.
func (e *env) print(s string) error { return e.printRaw(visible(s)) }

func (e *env) printRaw(s string) error {
	_, err := io.WriteString(e.Out, s)
	return err
}

// warnOnce returns a warning function that says nothing twice.
func (e *env) warnOnce() func(string) {
	var said sync.Map
	return func(s string) {
		if _, again := said.LoadOrStore(s, true); !again {
			e.warn(s)
		}
	}
}

// visible writes control characters, and those that turn the direction of text,
// as what they are: names and messages come from anywhere.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
			return '\uFFFD'
		}
		return r
	}, s)
}

// Version says which evalrun this is.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

func (e *env) versionCommand() *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "what this is",
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0, "no argument"); err != nil {
				return err
			}
			if e.json {
				return e.printJSON(map[string]any{"version": Version(), "plugin_api": pipeline.API})
			}
			return e.print(fmt.Sprintf("evalrun %s\n", Version()))
		},
	}
}

// beside resolves a path that a file names: relative to that file.
func beside(file, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}
