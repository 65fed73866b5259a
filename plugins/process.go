package plugins

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"evalrun/datasets"
	"evalrun/internal/conf"
	"evalrun/internal/proc"
	"evalrun/pipeline"
)

const (
	protocol   = 1        // the version of the protocol spoken with programs
	maxLine    = 16 << 20 // how long a line may be, either way
	maxCrashes = 3        // how often in a row a program may end badly before it is not started again
	maxAsked   = 20       // how often one handler may ask a person
)

// process is a plugin that is a program of its own, told events as lines of JSON.
// One event is with it at a time.
type process struct {
	loader *Loader
	path   string
	argv   []string
	stderr *printed
	hello  hello
	busy   chan struct{} // holds one token while an event is with the program

	// Held by the token.
	child   *proc.Child // nil when it is not running
	id      int64       // of the last event since it was started
	crashes int         // since an event was last answered
	last    error       // of the last crash
	closed  bool
}

// hello is what a program says of itself when it is started.
type hello struct {
	Protocol    int      `json:"evalrun_plugin"`
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	API         int      `json:"api"`
	Description string   `json:"description"`
	Hooks       []string `json:"hooks"`
}

func (h hello) same(o hello) bool {
	return h.Name == o.Name && h.Version == o.Version && h.API == o.API && strings.Join(h.Hooks, " ") == strings.Join(o.Hooks, " ")
}

// loadProcess starts a program and makes a plugin of what it says of itself.
func (l *Loader) loadProcess(ctx context.Context, path, abs string) (*pipeline.Plugin, error) {
	p := &process{loader: l, path: path, argv: []string{abs}, busy: make(chan struct{}, 1)}
	p.stderr = &printed{w: l.opts.Stderr, name: filepath.Base(path)} // until it has said its name
	if strings.EqualFold(filepath.Ext(abs), ".py") {
		// Unbuffered, so that an answer that was printed is an answer that was sent.
		p.argv = []string{"python3", "-u", abs}
	}
	child, said, err := p.start(ctx)
	if err != nil {
		return nil, loadFailed("%s: %v", path, err)
	}
	p.child, p.hello = child, said
	l.closing = append(l.closing, p.close)

	opts := []pipeline.Option{pipeline.Description(said.Description), pipeline.RequireAPI(said.API)}
	if said.Version != "" {
		opts = append(opts, pipeline.Version(said.Version))
	}
	for _, hook := range said.Hooks {
		opts = append(opts, pipeline.On(hook, p.handle))
	}
	made, err := pipeline.NewPlugin(said.Name, opts...)
	if err != nil {
		p.close()
		return nil, at(path, err)
	}
	return made, nil
}

// start starts the program and shakes hands.
func (p *process) start(ctx context.Context) (*proc.Child, hello, error) {
	child, err := proc.Start(p.argv, maxLine, p.stderr)
	if err != nil {
		return nil, hello{}, err
	}
	said, err := shakeHands(ctx, child)
	if err != nil {
		child.Kill()
		p.stderr.end()
		return nil, hello{}, withStderr(err, child)
	}
	if said.Name != "" {
		p.stderr.called(said.Name)
	}
	return child, said, nil
}

func shakeHands(ctx context.Context, child *proc.Child) (hello, error) {
	if err := child.Send(ctx, fmt.Appendf(nil, `{"evalrun_plugin":%d,"api":%d}`, protocol, pipeline.API)); err != nil {
		return hello{}, err
	}
	line, err := child.Receive(ctx)
	if err != nil {
		return hello{}, err
	}
	return parseHello(line)
}

func parseHello(line []byte) (hello, error) {
	said := hello{API: pipeline.API}
	if err := parseLine(line, &said); err != nil {
		return hello{}, fmt.Errorf("its first line is no handshake: %w", err)
	}
	switch {
	case said.Protocol != protocol:
		return hello{}, fmt.Errorf(`its handshake says "evalrun_plugin": %d; this is protocol %d`, said.Protocol, protocol)
	case said.Hooks == nil:
		return hello{}, errors.New(`its handshake names no "hooks"`)
	}
	for i, hook := range said.Hooks {
		if slices.Contains(said.Hooks[:i], hook) {
			return hello{}, fmt.Errorf("its handshake names the hook %q twice", hook)
		}
	}
	return said, nil
}

// answer is a line of a program that handles an event: how it ends (a change, a
// request, an error, or nothing), or something it asks for on the way.
type answer struct {
	ID      int64          `json:"id"`
	Change  datasets.Value `json:"change"`
	Request datasets.Value `json:"request"`
	Error   *string        `json:"error"`

	Entries  *string `json:"entries"`
	Remember *note   `json:"remember"`
	Ask      *string `json:"ask"`
}

type note struct {
	Kind string         `json:"kind"`
	Data datasets.Value `json:"data"`
}

// parseAnswer reads the answer to event id.
func parseAnswer(line []byte, id int64) (answer, error) {
	var a answer
	if err := parseLine(line, &a); err != nil {
		return a, err
	}
	if a.ID != id {
		return a, fmt.Errorf("it answered event %d; it was told event %d", a.ID, id)
	}
	n := 0
	for _, is := range []bool{given(a.Change), given(a.Request), a.Error != nil, a.Entries != nil, a.Remember != nil, a.Ask != nil} {
		if is {
			n++
		}
	}
	if n > 1 {
		return a, errors.New("it answered with more than one of change, request, error, entries, remember and ask")
	}
	return a, nil
}

// ends reports whether the program is done with the event, and asks for nothing.
func (a answer) ends() bool { return a.Entries == nil && a.Remember == nil && a.Ask == nil }

func given(v datasets.Value) bool { return !v.IsZero() && !v.IsNull() }

// parseLine reads one line of the protocol: a JSON object with no unknown names.
func parseLine(line []byte, to any) error {
	v, err := datasets.ParseValue(line)
	if err == nil {
		err = json.Unmarshal([]byte(v.JSON()), to, json.RejectUnknownMembers(true), jsontext.AllowInvalidUTF8(true))
	}
	switch {
	case err == nil:
		return nil
	case v.Kind() == '{': // it meant to answer
		return fmt.Errorf("it wrote %.200q: %s", line, conf.ExplainJSON(err, to))
	}
	return fmt.Errorf("it wrote %.200q: %s (standard output is for the protocol alone; print to standard error)", line, conf.ExplainJSON(err, to))
}

// crash is an error after which the program cannot be spoken with any more.
type crash struct{ err error }

func (c *crash) Error() string { return c.err.Error() }
func (c *crash) Unwrap() error { return c.err }

// handle is the handler of each of the plugin's hooks.
func (p *process) handle(ctx context.Context, e pipeline.Event) (datasets.Value, error) {
	if err := p.take(ctx); err != nil {
		return datasets.Value{}, err
	}
	defer func() { <-p.busy }()
	v, err := p.event(ctx, e)
	if c, ok := errors.AsType[*crash](err); ok {
		if p.child != nil {
			p.child.Kill() // first, so that its standard error is all there
			p.stderr.end()
			err = fmt.Errorf("%s: %w", p.path, withStderr(c.err, p.child))
			p.child = nil
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			if !late(err) {
				return datasets.Value{}, err // somebody stopped the call: that says nothing of the program
			}
		}
		p.crashes++
		p.last = err
		return datasets.Value{}, err
	}
	return v, err
}

// take waits for the events before this one. No time counts meanwhile: they are
// not this handler's.
func (p *process) take(ctx context.Context) error {
	select {
	case p.busy <- struct{}{}:
	default:
		defer pipeline.Waiting(ctx)()
		select {
		case p.busy <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if ctx.Err() != nil { // both may have been so
		<-p.busy
		return context.Cause(ctx)
	}
	return nil
}

// late reports whether a context ended for this cause because a time was over:
// that of the handler, or of its call.
func late(cause error) bool {
	f, ok := errors.AsType[*pipeline.Failure](cause)
	return ok && f.Type == pipeline.TypeTimeout || errors.Is(cause, context.DeadlineExceeded)
}

// event tells the program one event and serves it until it has answered.
func (p *process) event(ctx context.Context, e pipeline.Event) (datasets.Value, error) {
	limited, cancel := p.loader.limited(ctx, "its handler of "+string(e.Hook()))
	defer func() { cancel() }()
	if err := p.revive(limited); err != nil {
		return datasets.Value{}, err
	}
	p.id++
	line, err := eventLine(p.id, e)
	if err != nil {
		return datasets.Value{}, fmt.Errorf("%s: %w", p.path, err)
	}
	if err := p.child.Send(limited, line); err != nil {
		return datasets.Value{}, &crash{err}
	}
	can := abilitiesOf(e)
	var stopped error // what the handler cannot go on after, whatever it answers then
	for asked := 0; ; {
		line, err := p.child.Receive(limited)
		if err != nil {
			return datasets.Value{}, &crash{err}
		}
		a, err := parseAnswer(line, p.id)
		if err != nil {
			return datasets.Value{}, &crash{err}
		}
		if a.ends() {
			p.crashes = 0
		}
		var reply datasets.Value
		switch {
		case a.Entries != nil:
			reply, err = readEntries(can, e.Hook(), *a.Entries)
		case a.Remember != nil:
			reply, err = keep(can, e.Hook(), *a.Remember)
			if _, fatal := errors.AsType[*pipeline.Fatal](err); fatal {
				stopped = err
			}
		case a.Ask != nil:
			if asked++; asked > maxAsked {
				return datasets.Value{}, &crash{fmt.Errorf("it asked a person more than %d times about one tool call", maxAsked)}
			}
			reply, err = askPerson(ctx, can, e.Hook(), *a.Ask)
			if err != nil && can.ask != nil {
				stopped = err
			}
			cancel()
			limited, cancel = p.loader.limited(ctx, "its handler of "+string(e.Hook()))
		case stopped != nil:
			return datasets.Value{}, stopped
		case a.Error != nil:
			return datasets.Value{}, fmt.Errorf("%s: %s", p.path, *a.Error)
		default:
			return p.change(e.Hook(), a)
		}
		text := reply.JSON()
		if err != nil {
			text = datasets.Values{"error": datasets.Text(err.Error())}.Object().JSON()
		}
		if err := p.child.Send(limited, fmt.Appendf(nil, `{"id":%d,%s`, p.id, text[1:])); err != nil {
			return datasets.Value{}, &crash{err}
		}
	}
}

// change is the change that an answer asks for. What cannot be one is refused here,
// where the program's path is known.
func (p *process) change(hook pipeline.Hook, a answer) (datasets.Value, error) {
	refuse := func(why string) (datasets.Value, error) {
		return datasets.Value{}, changeFailed(p.hello.Name, hook, p.path+": "+why)
	}
	switch isRequest := hook == pipeline.HookRequest; {
	case given(a.Request) && !isRequest:
		return refuse(fmt.Sprintf("a handler of %s answers with a change, not with a request", hook))
	case given(a.Request):
		if _, err := pipeline.ParseRequest(a.Request); err != nil {
			return refuse(err.Error())
		}
		return datasets.Values{"request": a.Request}.Object(), nil
	case given(a.Change) && isRequest:
		return refuse(`a handler of request answers with the whole request, {"request": …}, not with a change`)
	case given(a.Change):
		if _, err := pipeline.ParseChange(a.Change); err != nil {
			return datasets.Value{}, at(p.path, err)
		}
	}
	return a.Change, nil
}

// revive starts the program again when it ended, unless that happens too often.
func (p *process) revive(ctx context.Context) error {
	switch {
	case p.closed:
		return fmt.Errorf("%s: the plugins' loader is closed", p.path)
	case p.child != nil:
		return nil
	case p.crashes >= maxCrashes:
		return fmt.Errorf("it ended badly %d times in a row and is not started again; the last time: %v", p.crashes, p.last)
	}
	child, said, err := p.start(ctx)
	if err != nil {
		return &crash{fmt.Errorf("%s: starting it again: %w", p.path, err)}
	}
	if !said.same(p.hello) {
		child.Close()
		return &crash{fmt.Errorf("%s: started again, it says it is %s %s, and was %s %s when it was loaded", p.path, said.Name, said.Version, p.hello.Name, p.hello.Version)}
	}
	p.child, p.id = child, 0
	return nil
}

// close stops the program for good, after the event that is with it.
func (p *process) close() {
	p.busy <- struct{}{}
	defer func() { <-p.busy }()
	p.closed = true
	if p.child != nil {
		p.child.Close()
		p.child = nil
		p.stderr.end()
	}
}

func eventLine(id int64, e pipeline.Event) ([]byte, error) {
	fields := datasets.Values{}
	for _, name := range e.Fields() {
		fields[name] = e.Field(name)
	}
	line := fmt.Appendf(nil, `{"id":%d,"hook":%q,"event":%s}`, id, e.Hook(), fields.Object().JSON())
	if len(line) > maxLine {
		return nil, fmt.Errorf("the event has %d bytes; a program is told at most %d", len(line), maxLine)
	}
	v := jsontext.Value(line) // a recorded value may be written over several lines
	if err := v.Compact(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, err
	}
	return v, nil
}

func readEntries(can abilities, hook pipeline.Hook, kind string) (datasets.Value, error) {
	if can.entries == nil {
		return datasets.Value{}, fmt.Errorf("a %s handler has no entries to read", hook)
	}
	// Joined as they are kept: no decoding, and nothing of them is lost.
	var list []string
	for _, e := range can.entries(kind) {
		list = append(list, e.JSON().JSON())
	}
	return datasets.RawValue(`{"entries":[` + strings.Join(list, ",") + `]}`), nil
}

func keep(can abilities, hook pipeline.Hook, n note) (datasets.Value, error) {
	if can.remember == nil {
		return datasets.Value{}, fmt.Errorf("a %s handler keeps nothing", hook)
	}
	if n.Data.IsZero() {
		n.Data = datasets.Null
	}
	return datasets.RawValue(`{"remembered":true}`), can.remember(n.Kind, n.Data)
}

func askPerson(ctx context.Context, can abilities, hook pipeline.Hook, reason string) (datasets.Value, error) {
	if can.ask == nil {
		return datasets.Value{}, fmt.Errorf("a %s handler asks nobody; tool_call does", hook)
	}
	a, err := can.ask(ctx, reason)
	return datasets.Values{"allowed": datasets.Bool(a.Allowed), "reason": datasets.Text(a.Reason)}.Object(), err
}

// withStderr adds what the program wrote to its standard error, where the error
// does not have it already.
func withStderr(err error, child *proc.Child) error {
	if _, has := errors.AsType[*proc.ExitError](err); has {
		return err
	}
	if text := strings.TrimSpace(child.Stderr()); text != "" {
		return fmt.Errorf("%w; its standard error:\n%s", err, text)
	}
	return err
}
