// Package star runs files of plugins and metrics written in Starlark, a small
// language that looks like Python. It is the one place of the module that knows
// Starlark, and it speaks JSON text and its own types with the rest.
//
// [Load] runs a file once and takes what it defined as plugin. [Handler.Call]
// gives one event to one of its handlers. [LoadFunction] takes one function of a
// file, which [Function.Call] calls. Everything a file defined is frozen once it
// is loaded, so that its functions may run in any number of goroutines and keep
// nothing from one call to the next but what the host keeps for them.
//
// A file sees nothing but what it is given: no other file (load is refused), no
// network, no clock, no chance. Time and size are bounded:
//
//   - a run takes at most Limits.Steps steps, and ends with the step that it is at
//     soon after its context does, which is looked at every millisecond;
//
//   - a value that crosses into a handler or out of it has at most Limits.Bytes
//     bytes as JSON, and is nested at most 200 deep; so deep is what json.decode
//     makes as well;
//
//   - a range has at most ten million elements, so that no single step runs
//     through more than a file could have built itself;
//
//   - functions may not call themselves, and there is no while.
//
//   - a run ends soon after the memory of the whole process has grown by
//     Limits.Memory bytes since it began, which is looked at every millisecond;
//     what others take meanwhile counts as well, and garbage does not;
//
//   - a repetition (x * n) makes at most 16 MiB of text or ten million elements;
//
//   - a value is nested at most ten thousand deep: that is looked at every 20,000
//     steps, or seldomer where there are many values (at most half a million), when
//     a value is made text or JSON (there 200 deep), and before what a file defined
//     is frozen. A variable that an inner function uses is only seen while that
//     function is there.
//
// What is not bounded is a single step: one that makes a large thing of large things
// ("".join of many long texts, x + x) has all its memory before anybody looks, and
// one that goes through a list which the file's own loop put a million times into
// another is not stopped halfway. A file is code its user trusts not to do that.
package star

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"evalrun/internal/conf"
)

// Limits bound a run of a file's code. The zero value of a field is its default.
type Limits struct {
	Steps  uint64 // of one load or one event; default 20 million, a tenth of a second of plain loops
	Bytes  int    // of one value in or out, as JSON; default 16 MiB
	Memory uint64 // by how many bytes the process's memory may grow during one load or one event; default 256 MiB
}

func (l Limits) orDefault() Limits {
	if l.Steps == 0 {
		l.Steps = 20_000_000
	}
	if l.Bytes == 0 {
		l.Bytes = 16 << 20
	}
	if l.Memory == 0 {
		l.Memory = 256 << 20
	}
	return l
}

// Options are what a file is run with.
type Options struct {
	Limits Limits
	Hooks  []string  // the hooks there are; another one refuses plugin-hook
	Print  io.Writer // where print writes, one line with its place at a time; nil drops it
}

// Plugin is what a file defined.
type Plugin struct {
	Name        string
	Version     string // "" when the file states none
	Description string
	API         int // 0 when the file states none
	At          string
	Handlers    []*Handler // in the order registered
}

// Handler is a function of a file that handles one hook's events. It is safe
// for concurrent use.
type Handler struct {
	Hook string
	At   string // where it is defined: file:line:column

	fn   starlark.Callable
	path string
	opts Options
}

// Error is what went wrong in a file, and where.
type Error struct {
	Code string // "plugin-hook", "plugin-name", "plugin-api" or "plugin-change" when it is one of these; else ""
	At   string // file:line:column; the file alone when there is no place in it
	In   string // the function it happened in; "" at the top of the file
	Err  error
}

// Error is one line: the place, the function, what was wrong.
func (e *Error) Error() string {
	s := e.At
	if e.In != "" {
		s += ": in " + e.In
	}
	return s + ": " + e.Err.Error()
}

// Unwrap gives the error of a host's function that the file called, or the cause
// of the end of the run's context.
func (e *Error) Unwrap() error { return e.Err }

// coded is an error that has a code.
type coded struct {
	code string
	err  error
}

func (c *coded) Error() string { return c.err.Error() }
func (c *coded) Unwrap() error { return c.err }

func codef(code, format string, args ...any) error {
	return &coded{code, fmt.Errorf(format, args...)}
}

// dialect: functions may not call themselves, so that every run's depth is
// bounded by the file's length.
var dialect = &syntax.FileOptions{Set: true, TopLevelControl: true}

// Load runs a file and returns the plugin it defined. The errors are *Error.
func Load(ctx context.Context, path string, source []byte, o Options) (*Plugin, error) {
	o.Limits = o.Limits.orDefault()
	defined, err := define(ctx, path, source, o)
	if err != nil {
		return nil, err
	}
	v, ok := defined["plugin"]
	if !ok {
		return nil, &Error{At: path, Err: errors.New(`it defines no plugin; write plugin = Plugin("name", …)`)}
	}
	p, ok := v.(*plugin)
	if !ok {
		return nil, &Error{At: path, Err: fmt.Errorf("its plugin is %s, not a Plugin", a(v))}
	}
	made := p.made
	for _, h := range made.Handlers {
		h.path, h.opts = path, o
	}
	return &made, nil
}

// define runs a file once and returns what it defined, frozen.
func define(ctx context.Context, path string, source []byte, o Options) (starlark.StringDict, error) {
	globals := builtins()
	file, err := dialect.Parse(path, source, 0)
	if err == nil {
		err = boundRepeats(file)
	}
	if err != nil {
		return nil, placed(path, err)
	}
	program, err := starlark.FileProgram(file, globals.Has)
	if err != nil {
		return nil, placed(path, err)
	}
	r := newRun(ctx, path, o)
	r.loading = true
	t, stop := r.thread("load")
	defer stop()
	defined, err := program.Init(t, globals)
	if err != nil {
		return nil, r.failed(err)
	}
	d := depths{limit: maxNested, known: map[any]int{}}
	for name, v := range defined {
		if err := d.check(v); err != nil {
			return nil, &Error{At: path, Err: fmt.Errorf("%s: %w", name, err)}
		}
	}
	defined.Freeze()
	return defined, nil
}

// A run is one execution of a file's code: its loading, or one event.
type run struct {
	ctx     context.Context // changes only while the scale is away
	path    string
	opts    Options
	loading bool
	event   *Event
	over    bool  // the step limit was reached
	deep    error // a value was nested too deep
	looking uint64
	scale   scale
}

func newRun(ctx context.Context, path string, o Options) *run {
	return &run{ctx: ctx, path: path, opts: o, looking: lookEvery, scale: scale{most: o.Limits.Memory}}
}

// slice is how many steps pass between two looks at the context.
const slice = 5000

// thread makes the thread of the run; stop is called when it has ended.
func (r *run) thread(name string) (t *starlark.Thread, stop func()) {
	t = &starlark.Thread{Name: name, Print: r.print, Load: func(*starlark.Thread, string) (starlark.StringDict, error) {
		return nil, errors.New("load is not available: a file stands by itself")
	}}
	t.SetLocal(runKey, r)
	t.SetMaxExecutionSteps(min(slice, r.opts.Limits.Steps))
	t.OnMaxSteps = func(t *starlark.Thread) {
		switch {
		case r.ctx.Err() != nil:
			t.Cancel("the time is up")
		case t.Steps >= r.opts.Limits.Steps:
			r.over = true
			t.Cancel("too many steps")
		case t.Steps >= r.looking:
			again, err := r.look(t)
			if r.deep = err; err != nil {
				t.Cancel("too deep")
			}
			r.looking = t.Steps + again
			fallthrough
		default:
			t.SetMaxExecutionSteps(min(t.Steps+slice, r.opts.Limits.Steps))
		}
	}
	return t, r.watch(t)
}

const runKey = "run"

func runOf(t *starlark.Thread) *run { return t.Local(runKey).(*run) }

func (r *run) print(t *starlark.Thread, text string) {
	if r.opts.Print == nil {
		return
	}
	at := r.path
	if t.CallStackDepth() > 1 { // else print is itself the handler
		at = t.CallFrame(1).Pos.String()
	}
	fmt.Fprintf(r.opts.Print, "%s: %s\n", at, text)
}

// failed says where a run failed. A run that was stopped because its context
// ended failed for the cause of that.
func (r *run) failed(err error) *Error {
	e := placed(r.path, err)
	switch {
	case r.over:
		e.Err = fmt.Errorf("stopped after %d steps, the most it may take", r.opts.Limits.Steps)
	case r.deep != nil:
		e.Err = fmt.Errorf("stopped: %w", r.deep)
	case r.ctx.Err() != nil:
		e.Err = context.Cause(r.ctx)
	case r.scale.isOver():
		e.Err = fmt.Errorf("stopped: the process's memory grew by more than %d MiB meanwhile", r.opts.Limits.Memory>>20)
	}
	return e
}

// placed finds an error's place in the file.
func placed(path string, err error) *Error {
	e := &Error{At: path, Err: err}
	if c, ok := errors.AsType[*coded](err); ok {
		e.Code, e.Err = c.code, c.err
	}
	if syn, ok := errors.AsType[syntax.Error](err); ok {
		e.At, e.Err = syn.Pos.String(), errors.New(syn.Msg)
		return e
	}
	if list, ok := errors.AsType[resolve.ErrorList](err); ok && len(list) > 0 {
		e.At, e.Err = list[0].Pos.String(), errors.New(list[0].Msg)
		return e
	}
	eval, ok := errors.AsType[*starlark.EvalError](err)
	if !ok {
		return e
	}
	if e.Code == "" {
		if e.Err = eval.Unwrap(); e.Err == nil {
			e.Err = errors.New(eval.Msg)
		}
	}
	// The innermost frame of the file: a builtin has no place of its own.
	for _, frame := range slices.Backward([]starlark.CallFrame(eval.CallStack)) {
		if frame.Pos.Filename() == path {
			e.At = frame.Pos.String()
			if frame.Name != "<toplevel>" {
				e.In = frame.Name
			}
			break
		}
	}
	return e
}

// maxRange is how many elements a range may have.
const maxRange = 10_000_000

// builtins are the names a file has besides Starlark's own.
func builtins() starlark.StringDict {
	return starlark.StringDict{
		"Plugin":   starlark.NewBuiltin("Plugin", newPlugin),
		"on":       starlark.NewBuiltin("on", on),
		"Change":   starlark.NewBuiltin("Change", newChange),
		"entries":  starlark.NewBuiltin("entries", entries),
		"remember": starlark.NewBuiltin("remember", remember),
		"ask":      starlark.NewBuiltin("ask", ask),
		"range":    starlark.NewBuiltin("range", boundedRange),
		"str":      shallow(starlark.Universe["str"], maxNested),
		"repr":     shallow(starlark.Universe["repr"], maxNested),
		"print":    shallow(starlark.Universe["print"], maxNested),
		"fail":     shallow(starlark.Universe["fail"], maxNested),
		repeatName: starlark.NewBuiltin(repeatName, repeat),
		"json":     jsonModule,
	}
}

func boundedRange(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	v, err := starlark.Call(t, starlark.Universe["range"], args, kwargs)
	if err != nil {
		return nil, err
	}
	if n := starlark.Len(v); n > maxRange {
		return nil, fmt.Errorf("range: %d elements are too many; there may be %d", n, maxRange)
	}
	return v, nil
}

// a names a value's type in a sentence.
func a(v starlark.Value) string {
	name := v.Type()
	if strings.ContainsRune("aeiou", rune(name[0])) {
		return "an " + name
	}
	return "a " + name
}

// unknown says that there is no such name, and which one may have been meant.
func unknown(what, name string, list []string) string {
	s := fmt.Sprintf("there is no %s %q", what, name)
	if near := conf.Suggest(name, list); near != "" {
		return s + fmt.Sprintf("; did you mean %q?", near)
	}
	return s + "; there are " + strings.Join(list, ", ")
}
