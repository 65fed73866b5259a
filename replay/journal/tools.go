package journal

import (
	"context"
	"errors"
	"sync/atomic"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// toolEntry is a tool call: begun, and once it has ended also done.
type toolEntry struct {
	Name   string  `json:"name"`
	Output *string `json:"output,omitzero"` // its result; nil when there is none yet, or it is the entry's failure
}

// The kinds of sites that are tool calls.
const (
	readingTool  = "reading"
	changingTool = "tool"
)

// Tool runs a tool at a site, or gives the result that is kept of it: the tool of
// a site runs once. What the model is told of a tool's error is a result too; any
// other error, and one of a call that is over, is not kept.
//
// A tool that only reads may also run again when nobody knows what came of it, and
// when run says so: what it rests on is kept then, each call it made. Of any other
// it is on disk first that it was begun; when there is no result then, it fails with
// type [pipeline.TypeTool] and code "tool-unfinished": it may have done what it
// does, and is not run again in silence.
func (j *Journal) Tool(ctx context.Context, site pipeline.Site, name string, input datasets.Value, effects pipeline.Effects, run func() (output string, again bool, err error)) (string, error) {
	kind := changingTool
	if effects == pipeline.EffectsRead {
		kind = readingTool
	}
	key := siteKey(kind, site)
	hash := datasets.Values{"name": datasets.Text(name), "input": input}.Object().Hash()
	e, ok, err := j.find(key)
	switch {
	case err != nil:
		return "", err
	case ok && e.Hash != hash:
		return "", pipeline.Failf(pipeline.TypeDiverged, "diverged",
			"the journal has another tool call at this place: something that shapes tool calls changed or is not deterministic; start over with --fresh")
	case ok && e.Failure != nil:
		return "", e.failure()
	case ok && e.Tool != nil && e.Tool.Output != nil:
		return *e.Tool.Output, nil
	case ok:
		return "", pipeline.Failf(pipeline.TypeTool, "tool-unfinished",
			"the tool %s was begun before the run was cut off, and may have done what it does; see whether it did, undo it if need be, and ask the row again with --fresh", name)
	}
	if j.out == nil {
		return "", notAnswered("result of the tool " + name + " here")
	}
	if refusal := j.refusal(); refusal != nil {
		return "", refusal
	}
	entry := kept{Site: key, Hash: hash, Tool: &toolEntry{Name: name}}
	if effects != pipeline.EffectsRead {
		if err := j.keep(entry); err != nil {
			return "", err
		}
	}
	output, again, err := run()
	switch {
	case again && effects == pipeline.EffectsRead:
		return output, err
	case err == nil:
		entry.Tool = &toolEntry{name, &output}
	case ctx.Err() == nil && pipeline.ToldToModel(err):
		f, ok := errors.AsType[*pipeline.Failure](err)
		if !ok {
			f = pipeline.Failf(pipeline.TypeTool, "", "%v", err)
		}
		entry.Failure = newFailure(f)
	default:
		return "", err
	}
	if kept := j.keep(entry); kept != nil {
		return "", kept
	}
	return output, err
}

// Toolbox is a box of tools whose results are kept. A tool that only asks programs
// is as it was: what these were answered is kept.
func (j *Journal) Toolbox(live pipeline.Toolbox) pipeline.Toolbox { return &toolbox{j, live} }

type toolbox struct {
	journal *Journal
	live    pipeline.Toolbox
}

func (b *toolbox) Tool(name string) (pipeline.ToolRunner, bool) {
	live, ok := b.live.Tool(name)
	if !ok {
		return nil, false
	}
	if asks, ok := live.(interface{ OnlyAsks() bool }); ok && asks.OnlyAsks() {
		return live, true
	}
	return &journaledTool{b.journal, name, live}, true
}

type journaledTool struct {
	journal *Journal
	name    string
	live    pipeline.ToolRunner
}

func (t *journaledTool) Effects() pipeline.Effects { return pipeline.RunnerEffects(t.live) }

func (t *journaledTool) Run(ctx context.Context, in pipeline.Invocation, input datasets.Value) (string, error) {
	return t.journal.Tool(ctx, in.Site(), t.name, input, in.Effects(), func() (string, bool, error) {
		watched := &asks{Invocation: in}
		output, err := t.live.Run(ctx, watched, input)
		return output, watched.any.Load(), err
	})
}

// asks is an invocation that knows whether its tool asked a program.
type asks struct {
	pipeline.Invocation
	any atomic.Bool
}

func (a *asks) Ask(ctx context.Context, p *pipeline.Program, in pipeline.Ask) (*pipeline.Call, error) {
	a.any.Store(true)
	return a.Invocation.Ask(ctx, p, in)
}
