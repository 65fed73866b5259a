package pipeline

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
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

	// Handlers by hook, in the order registered.
	beforeCall []func(context.Context, *CallEvent) (*Change, error)
	request    []func(context.Context, *RequestEvent) (*Request, error)
}

// Option is one part of a plugin's making: its version, or a handler.
type Option func(*Plugin) error

var pluginName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

// NewPlugin makes a plugin. It refuses a name that does not match
// [a-z][a-z0-9_-]{0,63} (plugin-name), an API other than 1 (plugin-api) and a
// hook that does not exist (plugin-hook): a misspelt hook would otherwise never
// run. The errors are *Failure.
func NewPlugin(name string, opts ...Option) (*Plugin, error) {
	p := &Plugin{name: name, version: "0.0.0", api: API}
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

// OnBeforeCall registers a handler of before_call.
func OnBeforeCall(h func(context.Context, *CallEvent) (*Change, error)) Option {
	return func(p *Plugin) error { p.beforeCall = append(p.beforeCall, h); return nil }
}

// OnRequest registers a handler of request. It returns a whole replacement
// request, or nil to leave the request as it is.
func OnRequest(h func(context.Context, *RequestEvent) (*Request, error)) Option {
	return func(p *Plugin) error { p.request = append(p.request, h); return nil }
}

// On registers a handler of a hook whose name comes as text, from a file or a
// configuration. The name must be one of the seven hooks (plugin-hook) and the
// handler of that hook's type.
func On(hook string, handler any) Option {
	return func(p *Plugin) error {
		switch Hook(hook) {
		case HookBeforeCall:
			if h, ok := handler.(func(context.Context, *CallEvent) (*Change, error)); ok {
				return OnBeforeCall(h)(p)
			}
		case HookRequest:
			if h, ok := handler.(func(context.Context, *RequestEvent) (*Request, error)); ok {
				return OnRequest(h)(p)
			}
		default:
			f := p.failf("plugin-hook", "there is no hook %q; the hooks are %s", hook, joinHooks(Hooks()))
			if slices.Contains(Hooks(), Hook(hook)) {
				f = p.failf("plugin-hook", "the hook %q is not run by this version of evalrun", hook)
			}
			f.Hook = Hook(hook)
			return f
		}
		return fmt.Errorf("plugin %s: a handler of %s cannot be a %T", p.name, hook, handler)
	}
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
	if len(p.beforeCall) > 0 {
		hooks = append(hooks, HookBeforeCall)
	}
	if len(p.request) > 0 {
		hooks = append(hooks, HookRequest)
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

func joinHooks(hooks []Hook) string {
	names := make([]string, len(hooks))
	for i, h := range hooks {
		names[i] = string(h)
	}
	return strings.Join(names, ", ")
}
