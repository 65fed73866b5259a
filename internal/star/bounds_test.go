package star_test

import (
	"context"
	"strings"
	"testing"

	"evalrun/internal/star"
)

// nest is a function that nests v in itself n times.
const nest = `
def nest(v, wrap, n):
    for _ in range(n):
        v = wrap(v)
    return v
tuples = lambda v: (v,)
lists = lambda v: [v]
dicts = lambda v: {"a": v}
`

// A value that is nested so deep that to go through it would end the process is
// refused, whatever is about to go through it, while a file is loaded or later.
func TestNestedTooDeep(t *testing.T) {
	for _, body := range []string{
		"str(nest((), tuples, 2000000))",
		"repr(nest([], lists, 2000000))",
		"'%s' % nest({}, dicts, 2000000)",
		"'{}'.format(nest({}, dicts, 2000000))",
		"json.encode(nest({}, dicts, 2000000))",
		"json.encode(nest({}, dicts, 300))",
		"{nest((), tuples, 2000000): 1}",
		"set([nest((), tuples, 2000000)])",
		"print(nest([], lists, 12000))",
		"fail(nest([], lists, 12000))",
	} {
		_, err := star.Load(context.Background(), "p.star", []byte(nest+"x = "+body+"\nplugin = Plugin('a')"), star.Options{Hooks: hooks})
		if err == nil || !strings.Contains(err.Error(), "nested more than") {
			t.Errorf("loading %s: %v", body, err)
		}
		h := load(t, nest+"plugin = Plugin('a', before_call = lambda e: {'is': "+body+"})", star.Limits{}).Handlers[0]
		if _, _, err := h.Call(context.Background(), event(`1`)); err == nil || !strings.Contains(err.Error(), "nested more than") {
			t.Errorf("%s: %v", body, err)
		}
	}
	// What a file defines is frozen, which goes through it: the whole of it, or in
	// pieces that each look shallow from outside.
	for _, top := range []string{
		"x = nest([], lists, 12000)",
		"x = nest((), tuples, 12000)",
		"x = nest(None, lambda v: (lambda y = v: y), 12000)",
		"def f():\n    v = None\n    for _ in range(220): v = " + strings.Repeat("[", 50) + "v" + strings.Repeat("]", 50) + "\n    return v\nx = f()",
		"x = [[] for _ in range(12000)]\nfor i in range(11999): x[11998 - i].append(x[11999 - i])",
	} {
		_, err := star.Load(context.Background(), "p.star", []byte(nest+top+"\nplugin = Plugin('a')"), star.Options{Hooks: hooks})
		if err == nil || !strings.Contains(err.Error(), "a value is nested more than 10000 deep") {
			t.Errorf("%.80s: %v", top, err)
		}
	}
}

// What is not too deep goes through, and so does what lies within itself, or in many
// places at once.
func TestNestedDeepEnough(t *testing.T) {
	for body, want := range map[string]string{
		"len(str(nest((), tuples, 5000)))":                "15002",
		"json.encode(nest(1, lists, 199)).count('[')":     "199",
		"len({nest((), tuples, 5000): 1})":                "1",
		"str(within())":                                   `"[[...]]"`,
		"len([nest([], lists, 100) for _ in range(900)])": "900",
	} {
		h := load(t, nest+"def within():\n    x = []\n    x.append(x)\n    return x\nplugin = Plugin('a', before_call = lambda e: {'is': "+body+"})", star.Limits{}).Handlers[0]
		got, _, err := h.Call(context.Background(), event(`1`))
		if err != nil || got != `{"is":`+want+`}` {
			t.Errorf("%s: %s, %v", body, got, err)
		}
	}
}

// Memory that a run builds up is bounded, and so is one repetition.
func TestMemory(t *testing.T) {
	for body, says := range map[string]string{
		"[str(i) + 'x' * 1000000 for i in range(10000)]": "memory grew by more than 64 MiB",
		"[0] * 1000000000":              "repeating 1 elements 1000000000 times is too much; there may be 10000000",
		"(1, 2) * 6000000":              "there may be 10000000",
		"1000000000 * 'x'":              "repeating 1 bytes",
		"'x' * 1000000000 * 1000000000": "repeating 1 bytes",
		"b'x' * 100000000":              "repeating 1 bytes",
		"'x' * (1 << 90)":               "repeating 1 bytes",
		"grown()":                       "repeating 1000 bytes",
	} {
		h := load(t, `
def grown():
    x = ["x" * 1000]
    x[0] *= 2
    x[0] = x[0][:1000]
    y = x[0]
    y *= 100000
    return y
plugin = Plugin('a', before_call = lambda e: {'is': `+body+`})`, star.Limits{Memory: 64 << 20}).Handlers[0]
		if _, _, err := h.Call(context.Background(), event(`1`)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// Products are the language's own.
func TestProducts(t *testing.T) {
	h := load(t, `
def f(e):
    a, b, c = 3, [1], {"n": 2.5}
    a *= 4 + 1
    b *= 2
    c["n"] *= 2
    for i in range(3): b[i * 0] *= i + 1
    return {"is": [a, b, c["n"] + 0.5, -2 * 3, 2 * "ab", "ab" * 0, "ab" * -1, () * 3, 10000000000 * 10000000000, 0 * 5 * 4]}
plugin = Plugin('a', before_call = f)`, star.Limits{}).Handlers[0]
	got, _, err := h.Call(context.Background(), event(`1`))
	if want := `{"is":[15,[6,1],5.5,-6,"abab","","",[],100000000000000000000,0]}`; err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	for source, says := range map[string]string{
		"f = lambda: 1\nx = [1]\nx[f()] *= 2":     "p.star:3:8: *= needs something plain on its left",
		"x = {} * 2":                              "p.star:1:8: unknown binary op: dict * int",
		"def f():\n    y *= 2\n    return y\nf()": "p.star:2:5: in f: local variable y referenced before assignment",
	} {
		_, err := star.Load(context.Background(), "p.star", []byte(source+"\nplugin = Plugin('a')"), star.Options{Hooks: hooks})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", source, err, says)
		}
	}
}
