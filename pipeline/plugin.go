package pipeline

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"evalrun/datasets"
	"evalrun/internal/conf"
)

// Hook names a fixed point of a call or of a conversation's turn.
type Hook string

// The seven hooks.
const (
	HookTurnStart  Hook = "turn_start"  // a conversation's turn is about to be recorded
	HookContext    Hook = "context"     // the turn's earlier turns are being chosen
	HookBeforeCall Hook = "before_call" // an AI function is about to be asked
	HookRequest    Hook = "request"     // a provider request is about to be sent
	HookToolCall   Hook = "tool_call"   // a tool is about to run
	HookToolResult Hook = "tool_result" // a tool just ran
	HookTurnEnd    Hook = "turn_end"    // a turn ended
)

// Hooks lists the seven hooks in the order a turn meets them.
func Hooks() []Hook {
	return []Hook{HookTurnStart, HookContext, HookBeforeCall, HookRequest, HookToolCall, HookToolResult, HookTurnEnd}
}

// API is the version of the plugin interface this package speaks.
const API = 1

// Plugin is a named, versioned set of hooks. It is immutable once made; two
// plugins are the same only when they are the same pointer, whatever their names.
type Plugin struct {
	name        string
	version     string
	description string
	api         int
	warned      *warned // what was told of it already

	// Handlers by hook, in the order registered.
	turnStart  []func(context.Context, *TurnStartEvent) (*Change, error)
	context    []func(context.Context, *ContextEvent) (*Change, error)
	beforeCall []func(context.Context, *CallEvent) (*Change, error)
	request    []func(context.Context, *RequestEvent) (*Request, error)
	toolCall   []func(context.Context, *ToolCallEvent) (*Change, error)
	toolResult []func(context.Context, *ToolResultEvent) (*Change, error)
	turnEnd    []func(context.Context, *TurnEndEvent) error
}

// Option is one part of a plugin's making: its version, or a handler.
type Option func(*Plugin) error

var pluginName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

// NewPlugin makes a plugin. It refuses a name that does not match
// [a-z][a-z0-9_-]{0,63} (plugin-name), an API other than 1 (plugin-api) and a
// hook that does not exist (plugin-hook): a misspelt hook would otherwise never
// run. The errors are *Failure.
func NewPlugin(name string, opts ...Option) (*Plugin, error) {
	p := &Plugin{name: name, version: "0.0.0", api: API, warned: new(warned)}
	if !pluginName.MatchString(name) {
		return nil, p.failf("plugin-name", "the name %q does not match [a-z][a-z0-9_-]{0,63}", name)
	}
	for _, opt := range opts {
		if err := opt(p); err != nil {
			return nil, err
		}
	}
	if p.api != API {
		return nil, p.failf("plugin-api", "it asks for plugin API %d; this is API %d", p.api, API)
	}
	return p, nil
}

// Version sets the plugin's version; without it, it is "0.0.0".
func Version(version string) Option {
	return func(p *Plugin) error { p.version = version; return nil }
}

// Description says what the plugin does.
func Description(text string) Option {
	return func(p *Plugin) error { p.description = text; return nil }
}

// RequireAPI states the plugin API the plugin was written for.
func RequireAPI(api int) Option {
	return func(p *Plugin) error { p.api = api; return nil }
}

// OnTurnStart registers a handler of turn_start.
func OnTurnStart(h func(context.Context, *TurnStartEvent) (*Change, error)) Option {
	return func(p *Plugin) error { p.turnStart = append(p.turnStart, safely(h)); return nil }
}

// OnContext registers a handler of context.
func OnContext(h func(context.Context, *ContextEvent) (*Change, error)) Option {
	return func(p *Plugin) error { p.context = append(p.context, safely(h)); return nil }
}

// OnBeforeCall registers a handler of before_call.
func OnBeforeCall(h func(context.Context, *CallEvent) (*Change, error)) Option {
	return func(p *Plugin) error { p.beforeCall = append(p.beforeCall, safely(h)); return nil }
}

// OnRequest registers a handler of request. It returns a whole replacement
// request, or nil to leave the request as it is.
func OnRequest(h func(context.Context, *RequestEvent) (*Request, error)) Option {
	return func(p *Plugin) error { p.request = append(p.request, safely(h)); return nil }
}

// OnToolCall registers a handler of tool_call.
func OnToolCall(h func(context.Context, *ToolCallEvent) (*Change, error)) Option {
	return func(p *Plugin) error { p.toolCall = append(p.toolCall, safely(h)); return nil }
}

// OnToolResult registers a handler of tool_result.
func OnToolResult(h func(context.Context, *ToolResultEvent) (*Change, error)) Option {
	return func(p *Plugin) error { p.toolResult = append(p.toolResult, safely(h)); return nil }
}

// OnTurnEnd registers a handler of turn_end, which only hears.
func OnTurnEnd(h func(context.Context, *TurnEndEvent) error) Option {
	return func(p *Plugin) error {
		heard := safely(func(ctx context.Context, e *TurnEndEvent) (struct{}, error) { return struct{}{}, h(ctx, e) })
		p.turnEnd = append(p.turnEnd, func(ctx context.Context, e *TurnEndEvent) error {
			_, err := heard(ctx, e)
			return err
		})
		return nil
	}
}

// safely turns a handler's panic into its error: it fails one call, not the
// process.
func safely[E, R any](h func(context.Context, E) (R, error)) func(context.Context, E) (R, error) {
	return func(ctx context.Context, e E) (r R, err error) {
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("it panicked: %v", v)
			}
		}()
		return h(ctx, e)
	}
}

// On registers a handler of a hook whose name comes as text, from a file or a
// configuration. The hook must be one of the seven (plugin-hook). The handler is
// of the hook's type, or a [DataHandler], which is told events as data.
func On(hook string, handler any) Option {
	return func(p *Plugin) error {
		var opt Option
		switch h := handler.(type) {
		case func(context.Context, Event) (datasets.Value, error):
			opt = onData(Hook(hook), h)
		case DataHandler:
			opt = onData(Hook(hook), h)
		case func(context.Context, *TurnStartEvent) (*Change, error):
			opt = match(hook, HookTurnStart, OnTurnStart(h))
		case func(context.Context, *ContextEvent) (*Change, error):
			opt = match(hook, HookContext, OnContext(h))
		case func(context.Context, *CallEvent) (*Change, error):
			opt = match(hook, HookBeforeCall, OnBeforeCall(h))
		case func(context.Context, *RequestEvent) (*Request, error):
			opt = match(hook, HookRequest, OnRequest(h))
		case func(context.Context, *ToolCallEvent) (*Change, error):
			opt = match(hook, HookToolCall, OnToolCall(h))
		case func(context.Context, *ToolResultEvent) (*Change, error):
			opt = match(hook, HookToolResult, OnToolResult(h))
		case func(context.Context, *TurnEndEvent) error:
			opt = match(hook, HookTurnEnd, OnTurnEnd(h))
		}
		switch {
		case !slices.Contains(Hooks(), Hook(hook)):
			f := p.failf("plugin-hook", "there is no hook %q%s; the hooks are %s", hook, nearHook(hook), joinHooks(Hooks()))
			f.Hook = Hook(hook)
			return f
		case opt == nil:
			return fmt.Errorf("plugin %s: a handler of %s cannot be a %T", p.name, hook, handler)
		}
		return opt(p)
	}
}

// match is opt when the handler's hook is the one that was named.
func match(named string, is Hook, opt Option) Option {
	if Hook(named) != is {
		return nil
	}
	return opt
}

// Name is the plugin's name.
func (p *Plugin) Name() string { return p.name }

// Version is the plugin's version.
func (p *Plugin) Version() string { return p.version }

// Manifest is what a plugin says of itself.
type Manifest struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	API         int    `json:"api"`
	Description string `json:"description"`
	Hooks       []Hook `json:"hooks"` // sorted by name
}

// Describe returns the plugin's manifest.
func (p *Plugin) Describe() Manifest {
	var hooks []Hook
	for hook, n := range map[Hook]int{
		HookTurnStart: len(p.turnStart), HookContext: len(p.context), HookBeforeCall: len(p.beforeCall), HookRequest: len(p.request),
		HookToolCall: len(p.toolCall), HookToolResult: len(p.toolResult), HookTurnEnd: len(p.turnEnd),
	} {
		if n > 0 {
			hooks = append(hooks, hook)
		}
	}
	slices.Sort(hooks)
	return Manifest{p.name, p.version, p.api, p.description, hooks}
}

// String prints the plugin as Plugin("modes", 1.0.0: before_call).
func (p *Plugin) String() string {
	return fmt.Sprintf("Plugin(%q, %s: %s)", p.name, p.version, joinHooks(p.Describe().Hooks))
}

func (p *Plugin) failf(code, format string, args ...any) *Failure {
	return &Failure{Type: TypePlugin, Code: code, Plugin: p.name, Message: fmt.Sprintf(format, args...)}
}

// nearHook suggests the hook that a misspelt one most likely means.
func nearHook(hook string) string {
	var names []string
	for _, h := range Hooks() {
		names = append(names, string(h))
	}
	if near := conf.Suggest(hook, names); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

func joinHooks(hooks []Hook) string {
	names := make([]string, len(hooks))
	for i, h := range hooks {
		names[i] = string(h)
	}
	return strings.Join(names, ", ")
}
