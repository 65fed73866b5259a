package star

import (
	"context"
	"fmt"

	"go.starlark.net/starlark"
)

// Function is a function of a file that is called by its name with JSON values.
// It is safe for concurrent use.
type Function struct {
	At string // where it is defined: file:line:column

	fn   starlark.Callable
	path string
	opts Options
}

// LoadFunction runs a file and returns the function of that name that it
// defined, which takes as many arguments. Options.Hooks count for nothing. The
// errors are *Error.
func LoadFunction(ctx context.Context, path string, source []byte, name string, arguments int, o Options) (*Function, error) {
	o.Limits = o.Limits.orDefault()
	defined, err := define(ctx, path, source, o)
	if err != nil {
		return nil, err
	}
	v, ok := defined[name]
	if !ok {
		return nil, &Error{At: path, Err: fmt.Errorf("it defines no function %s", name)}
	}
	fn, ok := v.(*starlark.Function)
	if !ok {
		return nil, &Error{At: path, Err: fmt.Errorf("its %s is %s, not a function", name, a(v))}
	}
	f := &Function{At: fn.Position().String(), fn: fn, path: path, opts: o}
	if n := fn.NumParams() - fn.NumKwonlyParams(); n != arguments && !fn.HasVarargs() {
		return nil, &Error{At: f.At, In: name, Err: fmt.Errorf("it is given %d arguments, and takes %d", arguments, n)}
	}
	return f, nil
}

// Call calls the function with JSON values, each a new one for it to change, and
// returns what it returned as JSON. The errors are *Error.
func (f *Function) Call(ctx context.Context, arguments ...string) (returned string, err error) {
	failed := func(err error) error { return &Error{At: f.At, In: f.fn.Name(), Err: err} }
	r := newRun(ctx, f.path, f.opts)
	args := make(starlark.Tuple, len(arguments))
	for i, text := range arguments {
		if args[i], err = decode(text, f.opts.Limits.Bytes); err != nil {
			return "", failed(fmt.Errorf("argument %d: %w", i+1, err))
		}
	}
	t, stop := r.thread(f.fn.Name())
	defer stop()
	v, err := starlark.Call(t, f.fn, args, nil)
	if err != nil {
		return "", r.failed(err)
	}
	text, err := encode(v, f.opts.Limits.Bytes)
	if err != nil {
		return "", failed(fmt.Errorf("what it returned: %w", err))
	}
	return text, nil
}
