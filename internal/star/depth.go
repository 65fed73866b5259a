package star

import (
	"fmt"

	"go.starlark.net/starlark"
)

// maxNested is how deep a value may be nested while a file works on it. Starlark
// goes through values by calling itself, and one that is nested far deeper ends the
// process when it is printed, hashed or frozen.
const maxNested = 10_000

// Values are looked through for too deep ones after so many steps; later where
// there are many, so that looking takes no longer than the steps.
const (
	lookEvery  = 20_000
	lookAtMost = 500_000
)

// look looks for a value that is nested too deep in what the functions that are
// running have, and says after how many steps to look again.
func (r *run) look(t *starlark.Thread) (again uint64, err error) {
	d := depths{limit: maxNested, known: map[any]int{}}
	for i := range t.CallStackDepth() {
		frame := t.DebugFrame(i)
		f, ok := frame.Callable().(*starlark.Function)
		if !ok {
			continue
		}
		if err := d.check(f); err != nil {
			return 0, err
		}
		for j := range frame.NumLocals() {
			if _, v := frame.Local(j); v != nil {
				if err := d.check(v); err != nil {
					return 0, err
				}
			}
		}
		if r.loading && i == t.CallStackDepth()-1 { // later they are frozen
			for _, v := range f.Globals() {
				if err := d.check(v); err != nil {
					return 0, err
				}
			}
		}
	}
	return min(max(lookEvery, uint64(len(d.known))), lookAtMost), nil
}

// depths finds out how deep values are nested.
type depths struct {
	limit int
	known map[any]int // of values that have others in them; 0 while one is looked at
}

func (d *depths) check(v starlark.Value) error {
	if d.of(v, 0) > d.limit {
		return fmt.Errorf("a value is nested more than %d deep", d.limit)
	}
	return nil
}

// of is how many values lie in each other in v, itself included, and more than the
// limit where it is more than that.
func (d *depths) of(v starlark.Value, outside int) int {
	key := identity(v)
	if key == nil {
		return 1
	}
	if known, ok := d.known[key]; ok {
		return known
	}
	if outside > d.limit {
		return d.limit + 1
	}
	d.known[key] = 0
	deepest := 0
	inside := func(v starlark.Value) {
		if deepest <= d.limit && v != nil {
			deepest = max(deepest, d.of(v, outside+1))
		}
	}
	switch v := v.(type) {
	case starlark.Tuple:
		for _, e := range v {
			inside(e)
		}
	case *starlark.List:
		for i := range v.Len() {
			inside(v.Index(i))
		}
	case *starlark.Dict:
		for k, e := range v.Entries() {
			inside(k)
			inside(e)
		}
	case *starlark.Set:
		for e := range v.Elements() {
			inside(e)
		}
	case *starlark.Function:
		for i := range v.NumParams() {
			inside(v.ParamDefault(i))
		}
		for i := range v.NumFreeVars() {
			_, e := v.FreeVar(i)
			inside(e)
		}
	case *starlark.Builtin:
		inside(v.Receiver())
	}
	d.known[key] = deepest + 1
	return deepest + 1
}

// identity is what a value that has others in it is known by; nil for any other.
func identity(v starlark.Value) any {
	switch v := v.(type) {
	case starlark.Tuple:
		if len(v) > 0 {
			return &v[0]
		}
	case *starlark.List, *starlark.Dict, *starlark.Set, *starlark.Function, *starlark.Builtin:
		return v
	}
	return nil
}

// shallow is a builtin that is given nothing that is nested too deep.
func shallow(builtin starlark.Value, limit int) *starlark.Builtin {
	inner := builtin.(*starlark.Builtin)
	return starlark.NewBuiltin(inner.Name(), func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		d := depths{limit: limit, known: map[any]int{}}
		for _, v := range args {
			if err := d.check(v); err != nil {
				return nil, fmt.Errorf("%s: %w", inner.Name(), err)
			}
		}
		return inner.CallInternal(t, args, kwargs)
	})
}
