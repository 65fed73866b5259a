package star

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// plugin is a Plugin as a file has it.
type plugin struct {
	made   Plugin
	frozen bool
}

func (p *plugin) String() string       { return fmt.Sprintf("Plugin(%q)", p.made.Name) }
func (p *plugin) Type() string         { return "Plugin" }
func (p *plugin) Truth() starlark.Bool { return true }
func (p *plugin) Hash() (uint32, error) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(p.made.Name))
	return h.Sum32(), nil
}

func (p *plugin) Freeze() {
	if p.frozen {
		return
	}
	p.frozen = true
	for _, h := range p.made.Handlers {
		h.fn.Freeze()
	}
}

// newPlugin is Plugin(name, version=, description=, api=, <hook>=handler…).
func newPlugin(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	r := runOf(t)
	if !r.loading {
		return nil, errors.New("a plugin is made when its file is loaded, not in a handler")
	}
	if len(args) > 1 {
		return nil, errors.New("a Plugin takes its name, and everything else by name: Plugin(\"modes\", version = \"1.0.0\")")
	}
	p := &plugin{made: Plugin{At: t.CallFrame(1).Pos.String()}}
	if len(args) == 1 {
		kwargs = append([]starlark.Tuple{{starlark.String("name"), args[0]}}, kwargs...)
	}
	named := false
	for _, kw := range kwargs {
		key, v := string(kw[0].(starlark.String)), kw[1]
		var ok bool
		switch key {
		case "name":
			if named {
				return nil, errors.New("Plugin is given two names")
			}
			named = true
			if p.made.Name, ok = starlark.AsString(v); !ok {
				return nil, codef("plugin-name", "a plugin's name is text, not %s", a(v))
			}
		case "version", "description":
			text, ok := starlark.AsString(v)
			if !ok {
				return nil, fmt.Errorf("Plugin: %s is text, not %s", key, a(v))
			}
			if key == "version" {
				p.made.Version = text
			} else {
				p.made.Description = text
			}
		case "api":
			n, ok := v.(starlark.Int)
			if !ok {
				return nil, fmt.Errorf("Plugin: api is a whole number, not %s", a(v))
			}
			api, err := starlark.AsInt32(n)
			if err != nil {
				return nil, codef("plugin-api", "Plugin: there is no plugin API %s", n)
			}
			if api == 0 {
				api = -1 // 0 stands for none stated
			}
			p.made.API = api
		default:
			if !slices.Contains(r.opts.Hooks, key) {
				known := append([]string{"version", "description", "api"}, r.opts.Hooks...)
				return nil, codef("plugin-hook", "Plugin: %s", unknown("hook", key, known))
			}
			if err := p.handle(r, key, v); err != nil {
				return nil, err
			}
		}
	}
	if !named {
		return nil, codef("plugin-name", "a plugin has a name: Plugin(\"modes\")")
	}
	return p, nil
}

// on is on(plugin, hook, handler).
func on(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	r := runOf(t)
	var to, handler starlark.Value
	var hook string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "plugin", &to, "hook", &hook, "handler", &handler); err != nil {
		return nil, err
	}
	p, ok := to.(*plugin)
	switch {
	case !ok:
		return nil, fmt.Errorf("on: the first argument is the plugin, not %s", a(to))
	case p.frozen:
		return nil, errors.New("on: handlers are registered when the file is loaded, not in a handler")
	case !slices.Contains(r.opts.Hooks, hook):
		return nil, codef("plugin-hook", "on: %s", unknown("hook", hook, r.opts.Hooks))
	}
	return starlark.None, p.handle(r, hook, handler)
}

func (p *plugin) handle(r *run, hook string, v starlark.Value) error {
	fn, ok := v.(starlark.Callable)
	if !ok {
		return fmt.Errorf("the handler of %s is a function, not %s", hook, a(v))
	}
	at := r.path
	if f, ok := fn.(*starlark.Function); ok {
		at = f.Position().String()
		if n := f.NumParams() - f.NumKwonlyParams(); n != 1 && !f.HasVarargs() {
			return fmt.Errorf("the handler of %s is given one event, and %s takes %d arguments", hook, f.Name(), n)
		}
	}
	p.made.Handlers = append(p.made.Handlers, &Handler{Hook: hook, At: at, fn: fn})
	return nil
}

// change is a Change as a file has it: its fields as JSON, in the order given.
type change struct{ json string }

func (c *change) String() string        { return "Change(" + c.json + ")" }
func (c *change) Type() string          { return "Change" }
func (c *change) Truth() starlark.Bool  { return true }
func (c *change) Hash() (uint32, error) { return 0, errors.New("a Change cannot be a key") }
func (c *change) Freeze()               {}

// changeFields are the fields of a Change and what each is.
var changeFields = []struct{ name, is string }{
	{"instruction", "text"},
	{"sections", "list of texts"},
	{"lm", "text"},
	{"settings", "dict"},
	{"tools", "list of texts"},
	{"keep", "list of texts"},
	{"without", "list or dict"},
	{"inputs", "dict"},
	{"block", "text"},
	{"output", "text"},
}

// ChangeFields names the fields of a Change.
func ChangeFields() []string {
	names := make([]string, len(changeFields))
	for i, f := range changeFields {
		names[i] = f.name
	}
	return names
}

// newChange is Change(<field>=value…). A field that is None is not asked for.
func newChange(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) > 0 {
		return nil, errors.New(`a Change takes its fields by name: Change(sections = ["…"])`)
	}
	var b strings.Builder
	for _, kw := range kwargs {
		key, v := string(kw[0].(starlark.String)), kw[1]
		i := slices.Index(ChangeFields(), key)
		if i < 0 {
			return nil, codef("plugin-change", "Change: %s", unknown("field", key, ChangeFields()))
		}
		if v == starlark.None {
			continue
		}
		if is := changeFields[i].is; !fits(v, is) {
			return nil, codef("plugin-change", "Change: %s is a %s, not %s", key, is, a(v))
		}
		text, err := encode(v, runOf(t).opts.Limits.Bytes)
		if err != nil {
			return nil, codef("plugin-change", "Change: %s: %w", key, err)
		}
		sep := byte(',')
		if b.Len() == 0 {
			sep = '{'
		}
		b.WriteByte(sep)
		fmt.Fprintf(&b, "%q:%s", key, text)
	}
	if b.Len() == 0 {
		return &change{"{}"}, nil
	}
	return &change{b.String() + "}"}, nil
}

func fits(v starlark.Value, is string) bool {
	_, text := v.(starlark.String)
	_, dict := v.(*starlark.Dict)
	seq, list := v.(starlark.Sequence)
	if _, set := v.(*starlark.Set); set || dict {
		list = false
	}
	switch is {
	case "text":
		return text
	case "dict":
		return dict
	case "list or dict":
		return list || dict
	}
	if list {
		for e := range starlark.Elements(seq) {
			if _, text := e.(starlark.String); !text {
				return false
			}
		}
	}
	return list
}
