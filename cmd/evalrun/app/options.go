package app

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"evalrun/harness"
	"evalrun/pipeline"
	"evalrun/pipeline/provider"
)

// Option adds something of the user's own to the command. One that cannot be, such
// as a second plugin of a name, makes [Main] say so and return [ExitUsage].
type Option func(*env) error

// WithPlugin lets spec files name a plugin written in Go.
func WithPlugin(p *pipeline.Plugin) Option {
	return func(e *env) error {
		if p == nil {
			return fmt.Errorf("WithPlugin was given no plugin")
		}
		return add("WithPlugin: a plugin", e.plugins, p.Name(), p)
	}
}

// WithMetric lets spec files name a metric written in Go.
func WithMetric(m harness.Metric) Option {
	return func(e *env) error {
		if absent(m) {
			return fmt.Errorf("WithMetric was given no metric")
		}
		return add("WithMetric: a metric", e.metrics, m.Name(), m)
	}
}

// WithModel lets spec files name a model written in Go, as provider: name. The name
// is none of a provider that comes with evalrun.
func WithModel(name string, m pipeline.Model) Option {
	return func(e *env) error {
		switch {
		case absent(m):
			return fmt.Errorf("WithModel(%q) was given no model", name)
		case slices.Contains(provider.Names(), name):
			return fmt.Errorf("WithModel: the provider %q comes with evalrun; give the model another name than %s", name, strings.Join(provider.Names(), ", "))
		}
		return add("WithModel: a model", e.models, name, m)
	}
}

// WithTool gives programs that declare a tool of that name something to run it
// with. It runs when a spec's tools say so (live), and only then: rated calls are
// answered from their records. What runs really runs: let tools run that only read,
// or that act on something made for the run.
func WithTool(name string, t pipeline.ToolRunner) Option {
	return func(e *env) error {
		if absent(t) {
			return fmt.Errorf("WithTool(%q) was given no tool", name)
		}
		return add("WithTool: a tool", e.tools, name, t)
	}
}

// add puts something of the user's own under its name, which nothing else has.
func add[V any](what string, to map[string]V, name string, v V) error {
	if name == "" {
		return fmt.Errorf("%s has no name", what)
	}
	if _, twice := to[name]; twice {
		return fmt.Errorf("%s called %q is given twice: a spec could name only one", what, name)
	}
	to[name] = v
	return nil
}

// absent reports whether an interface holds nothing, or a pointer to nothing.
func absent(v any) bool {
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func, reflect.Map:
		return r.IsNil()
	}
	return false
}

// apply takes the options, and says of all that cannot be what is wrong.
func (e *env) apply(opts []Option) error {
	var wrong []string
	for i, opt := range opts {
		if opt == nil {
			wrong = append(wrong, fmt.Sprintf("option %d is nil", i+1))
		} else if err := opt(e); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	if wrong == nil {
		return nil
	}
	return usagef("this evalrun was built wrongly: %s", strings.Join(wrong, "; "))
}
