package star_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"evalrun/internal/star"
)

var hooks = []string{"turn_start", "context", "before_call", "request", "tool_call", "tool_result", "turn_end"}

func load(t testing.TB, source string, limits star.Limits) *star.Plugin {
	t.Helper()
	p, err := star.Load(context.Background(), "p.star", []byte(source), star.Options{Hooks: hooks, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// event is an event with one field, x.
func event(x string) *star.Event {
	return &star.Event{
		Fields: func() []string { return []string{"x", "inputs"} },
		Field: func(name string) string {
			if name == "x" {
				return x
			}
			return ""
		},
	}
}

func TestLoad(t *testing.T) {
	p := load(t, `
def first(call):
    return Change(sections = ["a"])

plugin = Plugin("modes", version = "1.0.0", description = "What it does.", api = 1, before_call = first)
on(plugin, "tool_call", lambda t: None)
on(plugin, hook = "before_call", handler = lambda call: Change(lm = "b"))
`, star.Limits{})
	if p.Name != "modes" || p.Version != "1.0.0" || p.Description != "What it does." || p.API != 1 || p.At != "p.star:5:16" {
		t.Errorf("%+v", p)
	}
	var got []string
	for _, h := range p.Handlers {
		got = append(got, h.Hook+" "+h.At)
	}
	if want := "before_call p.star:2:1, tool_call p.star:6:25, before_call p.star:7:44"; strings.Join(got, ", ") != want {
		t.Errorf("handlers %s, want %s", strings.Join(got, ", "), want)
	}
}

func TestLoadRefuses(t *testing.T) {
	for _, c := range []struct{ source, code, want string }{
		{"", "", "p.star: it defines no plugin"},
		{"plugin = 3", "", "p.star: its plugin is an int, not a Plugin"},
		{"plugin = ", "", "p.star:1:10: got end of file"},
		{"x = 1\nplugin = Plugn('a')", "", "p.star:2:10: undefined: Plugn"},
		{"plugin = Plugin('a', befor_call = lambda c: None)", "plugin-hook", `p.star:1:16: Plugin: there is no hook "befor_call"; did you mean "before_call"?`},
		{"plugin = Plugin('a')\non(plugin, 'tool_cal', lambda c: None)", "plugin-hook", `p.star:2:3: on: there is no hook "tool_cal"; did you mean "tool_call"?`},
		{"plugin = Plugin(3)", "plugin-name", "a plugin's name is text, not an int"},
		{"plugin = Plugin()", "plugin-name", "a plugin has a name"},
		{"plugin = Plugin('a', name = 'b')", "", "two names"},
		{"plugin = Plugin('a', '1.0')", "", "everything else by name"},
		{"plugin = Plugin('a', version = 1)", "", "p.star:1:16: Plugin: version is text, not an int"},
		{"plugin = Plugin('a', api = 'x')", "", "api is a whole number, not a string"},
		{"plugin = Plugin('a', api = 1 << 40)", "plugin-api", "there is no plugin API 1099511627776"},
		{"json.decode('[' * 8000000)", "", "json.decode: it is nested more than 200 deep"},
		{"plugin = Plugin('a', request = 3)", "", "the handler of request is a function, not an int"},
		{"plugin = Plugin('a', request = lambda: None)", "", "is given one event, and lambda takes 0 arguments"},
		{"plugin = Plugin('a', request = lambda a, b: None)", "", "takes 2 arguments"},
		{"on('a', 'request', lambda c: None)", "", "the first argument is the plugin, not a string"},
		{"def f():\n    return 1 // 0\nf()", "", "p.star:2:14: in f: floored division by zero"},
		{"load('other.star', 'x')", "", "p.star:1:1: cannot load other.star: load is not available: a file stands by itself"},
		{"open('x')", "", "undefined: open"},
		{"def f(): f()\nf()", "", "p.star:1:10: in f: function f called recursively"},
		{"while True: pass", "", "does not support while loops"},
		{"range(1000000000)", "", "1000000000 elements are too many"},
		{"for i in range(10000000):\n  for j in range(10000000): pass", "", "stopped after 20000000 steps"},
		{"fail('no')", "", "p.star:1:5: fail: no"},
		{"plugin = Plugin('a')\nplugin.x = 3", "", "can't assign to .x field of Plugin"},
	} {
		_, err := star.Load(context.Background(), "p.star", []byte(c.source), star.Options{Hooks: hooks})
		e, ok := errors.AsType[*star.Error](err)
		if !ok || e.Code != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want %q %q", c.source, err, c.code, c.want)
		}
	}
}

// What a tool answered is decoded no deeper than other values are; a text that is
// too deep is as one that is no JSON.
func TestDecode(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`[`, n) + strings.Repeat(`]`, n) }
	for _, c := range []struct{ text, want, says string }{
		{deep(200), deep(200), ""},
		{deep(201), "", "nested more than 200 deep"},
		{strings.Repeat("[", 2_000_000), "", "nested more than 200 deep"},
		{strings.Repeat(`{"a":`, 2_000_000), "", "nested more than 200 deep"},
		{`"\"` + strings.Repeat("[", 300) + `"`, `"\"` + strings.Repeat("[", 300) + `"`, ""},
		{`["\\", [1]]`, `["\\",[1]]`, ""},
		{`[1`, "", "json.decode: at offset 2"},
	} {
		h := load(t, "plugin = Plugin('a', before_call = lambda e: {'is': json.encode(json.decode(e.x))})", star.Limits{}).Handlers[0]
		got, _, err := h.Call(t.Context(), event(quoted(t, c.text)))
		if want := `{"is":` + quoted(t, c.want) + `}`; c.says == "" && (err != nil || got != want) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%.40s: %.100s, %v", c.text, got, err)
		}
		h = load(t, "plugin = Plugin('a', before_call = lambda e: {'is': json.decode(e.x, 'none') == 'none'})", star.Limits{}).Handlers[0]
		if got, _, err := h.Call(t.Context(), event(quoted(t, c.text))); err != nil || (got == `{"is":true}`) != (c.says != "") {
			t.Errorf("%.40s with a default: %.100s, %v", c.text, got, err)
		}
	}
}

func quoted(t testing.TB, text string) string {
	t.Helper()
	b, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestCall(t *testing.T) {
	for _, c := range []struct{ body, x, want string }{
		{"None", `1`, ``},
		{"Change()", `1`, `{}`},
		{"Change(sections = ['a' + e.x], lm = None)", `"b"`, `{"sections":["ab"]}`},
		{"Change(block = '', settings = {'temperature': 0.5})", `1`, `{"block":"","settings":{"temperature":0.5}}`},
		{"Change(keep = [], without = ('a', 'b'))", `1`, `{"keep":[],"without":["a","b"]}`},
		{"Change(without = {'t1': ['a']})", `1`, `{"without":{"t1":["a"]}}`},
		{"e.x", `{"b":1,"a":2}`, `{"b":1,"a":2}`},
		// Reading twice gives two copies.
		{"[e.x.update(y = 1), e.x][1]", `{"a":2}`, `{"a":2}`},
		{"{'type': type(e), 'has': [hasattr(e, 'x'), hasattr(e, 'z')]}", `1`, `{"type":"before_call event","has":[true,false]}`},
		{"{'n': json.decode(json.encode(e.x))}", `[1,{"a":null}]`, `{"n":[1,{"a":null}]}`},
	} {
		h := load(t, "plugin = Plugin('a', before_call = lambda e: "+c.body+")", star.Limits{}).Handlers[0]
		got, isChange, err := h.Call(t.Context(), event(c.x))
		if err != nil || got != c.want || isChange != strings.HasPrefix(c.body, "Change") {
			t.Errorf("%s of %s = %s, %v, %v; want %s", c.body, c.x, got, isChange, err, c.want)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	h := load(t, "plugin = Plugin('a', request = lambda e: {'v': e.x})", star.Limits{}).Handlers[0]
	for _, c := range []struct{ in, out string }{
		{`null`, ``},
		{`true`, ``},
		{`-12`, ``},
		{`9007199254740993`, ``},
		{`123456789012345678901234567890`, ``},
		{`-9223372036854775809`, ``},
		{`0.1`, ``},
		{`1e-7`, ``},
		{`5.0`, `5`},
		{`1.5E3`, `1500`},
		{`1e300`, `1e+300`},
		{`"naïve 日本語 😀"`, ``},
		{`"a\"b\\c\n\u0001\u007f"`, "\"a\\\"b\\\\c\\n\\u0001\u007f\""},
		{`"\u00e9"`, `"é"`},
		{`"\u0000"`, ``},
		{`"<>&"`, ``},
		{`[]`, ``},
		{`{}`, ``},
		{`[1,[2,{"z":[],"a":{}}]]`, ``},
		{`{"a":1,"a":2}`, `{"a":2}`},
	} {
		if c.out == "" {
			c.out = c.in
		}
		got, _, err := h.Call(t.Context(), event(c.in))
		if want := `{"v":` + c.out + `}`; err != nil || got != want {
			t.Errorf("%s came back as %s, %v; want %s", c.in, got, err, want)
		}
	}
}

func TestCallRefuses(t *testing.T) {
	limits := star.Limits{Bytes: 1000, Steps: 100_000}
	for _, c := range []struct{ body, code, want string }{
		{"e.inptus", "", "p.star:2:13: in f: before_call event has no .inptus field or method (did you mean .inputs?)"},
		{"3", "plugin-change", "p.star:1:1: in f: it returned an int, not a Change or None"},
		{"'text'", "plugin-change", "it returned a string"},
		{"Change(section = ['a'])", "plugin-change", `p.star:2:18: in f: Change: there is no field "section"; did you mean "sections"?`},
		{"Change(sections = 'a')", "plugin-change", "Change: sections is a list of texts, not a string"},
		{"Change(sections = [1])", "plugin-change", "sections is a list of texts"},
		{"Change(tools = {'a': 1})", "plugin-change", "tools is a list of texts, not a dict"},
		{"Change(lm = 3)", "plugin-change", "lm is a text, not an int"},
		{"Change(without = 'photo')", "plugin-change", "without is a list or dict, not a string"},
		{"Change(inputs = ['a'])", "plugin-change", "inputs is a dict, not a list"},
		{"Change(['a'])", "", "takes its fields by name"},
		{"Change(settings = {'a': {1: 2}})", "plugin-change", "settings: an int is a key; in JSON keys are texts"},
		{"Change(settings = {'a': float('nan')})", "plugin-change", "the float nan has no JSON form"},
		{"Change(settings = {'a': set([1])})", "plugin-change", "a set has no JSON form"},
		{"Change(settings = {'a': len})", "plugin-change", "a builtin_function_or_method has no JSON form"},
		{"Change(lm = 'é'[:1])", "plugin-change", "is not UTF-8"},
		{"Change(lm = 'x' * 1001)", "plugin-change", "a text of 1001 bytes is too long"},
		{"{'v': [0] * 1000}", "plugin-change", "larger than 1000 bytes"},
		{"{'v': 1 << 500 << 500 << 500}", "plugin-change", ""},
		{"{'v': nest(300)}", "plugin-change", "nested more than 200 deep"},
		{"Plugin('b')", "", "when its file is loaded"},
		{"on(plugin, 'request', f)", "", "when the file is loaded"},
		{"table.append(1)", "", "cannot append to frozen list"},
		{"[i for i in range(100000)]", "", "stopped after 100000 steps, the most it may take"},
		{"entries(e, 'k')", "", "entries: a before_call handler has none to read"},
		{"remember(e, 'k', 1)", "", "remember: a before_call handler keeps nothing"},
		{"ask(e, 'why')", "", "ask: a before_call handler asks nobody; tool_call does"},
		{"entries('k', 'e')", "", "the first argument is the event, not a string"},
		{"{}['k']", "", `p.star:2:14: in f: key "k" not in dict`},
	} {
		source := "def f(e):\n    return " + c.body + "\ndef nest(n):\n    v = []\n    for i in range(n):\n        v = [v]\n    return v\ntable = []\nplugin = Plugin('a', before_call = f)"
		if c.want == "" { // a large whole number that still crosses
			if _, _, err := load(t, source, limits).Handlers[0].Call(t.Context(), event("1")); err != nil {
				t.Errorf("%s: %v", c.body, err)
			}
			continue
		}
		_, _, err := load(t, source, limits).Handlers[0].Call(t.Context(), event("1"))
		e, ok := errors.AsType[*star.Error](err)
		if !ok || e.Code != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q %q", c.body, err, c.code, c.want)
		}
	}
	h := load(t, "plugin = Plugin('a', before_call = lambda e: e.x)", limits).Handlers[0]
	for _, c := range []struct{ x, want string }{
		{`"` + strings.Repeat("x", 1000) + `"`, "x: 1002 bytes as JSON are too many"},
		{strings.Repeat("[", 300) + strings.Repeat("]", 300), "nested more than 200 deep"},
		{"1e999", "too large"},
	} {
		if _, _, err := h.Call(t.Context(), event(c.x)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.20s: %v; want %q", c.x, err, c.want)
		}
	}
}

func TestHostFunctions(t *testing.T) {
	var kept []string
	e := event(`{"n":1}`)
	e.Entries = func(kind string) ([]string, error) { return []string{`{"turn":"t1","data":"` + kind + `"}`}, nil }
	e.Remember = func(kind, data string) error { kept = append(kept, kind+" "+data); return nil }
	h := load(t, `
def f(e):
    for entry in entries(e, "mode"):
        remember(e, "seen", entry["data"])
    remember(e, "x", e.x)
    return None
plugin = Plugin("a", turn_end = f)`, star.Limits{}).Handlers[0]
	if _, _, err := h.Call(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(kept, ", "); got != `seen "mode", x {"n":1}` {
		t.Errorf("it kept %s", got)
	}

	// A host's error comes out as it is, with its place.
	waits := errors.New("the turn waits")
	h = load(t, `
def f(e):
    if not ask(e, "may it?"):
        return Change(block = "no")
plugin = Plugin("a", tool_call = f)`, star.Limits{}).Handlers[0]
	e.Ask = func(reason string) (bool, error) { return false, waits }
	if _, _, err := h.Call(t.Context(), e); !errors.Is(err, waits) || err.Error() != "p.star:3:15: in f: the turn waits" {
		t.Errorf("the error of ask is %v", err)
	}
	e.Ask = func(reason string) (bool, error) { return reason == "may it?", nil }
	if got, _, err := h.Call(t.Context(), e); got != "" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}

func TestTimeIsUp(t *testing.T) {
	late := errors.New("too late")
	endless := "def f(e):\n    for i in range(10000000):\n        for j in range(10000000):\n            pass\n"
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, late)
	defer cancel()
	h := load(t, endless+"plugin = Plugin('a', before_call = f)", star.Limits{Steps: 1 << 60}).Handlers[0]
	began := time.Now()
	_, _, err := h.Call(ctx, event("1"))
	if !errors.Is(err, late) || !strings.HasPrefix(err.Error(), "p.star:") || !strings.HasSuffix(err.Error(), "in f: too late") {
		t.Errorf("an endless handler: %v", err)
	}
	_, err = star.Load(ctx, "p.star", []byte(endless+"f(1)"), star.Options{Hooks: hooks, Limits: star.Limits{Steps: 1 << 60}})
	if !errors.Is(err, late) {
		t.Errorf("an endless file: %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("stopping took %s", took)
	}

	// The time in which a person is asked is not the handler's.
	ctx, cancel = context.WithTimeoutCause(t.Context(), 20*time.Millisecond, late)
	defer cancel()
	e := event("1")
	e.Ask = func(string) (bool, error) { <-ctx.Done(); return true, nil }
	e.Fresh = func() context.Context { return t.Context() }
	h = load(t, "def f(e):\n    ask(e, '')\n    for i in range(100000):\n        pass\nplugin = Plugin('a', tool_call = f)", star.Limits{}).Handlers[0]
	if _, _, err := h.Call(ctx, e); err != nil {
		t.Errorf("after a person was asked: %v", err)
	}
}

func TestPrint(t *testing.T) {
	var out bytes.Buffer
	p, err := star.Load(t.Context(), "p.star", []byte("print('a', 1)\nplugin = Plugin('a', request = lambda e: print(e.x), before_call = print)"), star.Options{Hooks: hooks, Print: &out})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range p.Handlers {
		if _, _, err := h.Call(t.Context(), event(`"x"`)); err != nil {
			t.Fatal(err)
		}
	}
	if want := "p.star:1:6: a 1\np.star:2:47: x\np.star: event of before_call\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

func TestConcurrent(t *testing.T) {
	h := load(t, `
greeting = {"hello": ["a", "b"]}
def f(e):
    words = greeting["hello"] + [e.x]
    return Change(sections = words)
plugin = Plugin("a", before_call = f)`, star.Limits{}).Handlers[0]
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 100 {
				if got, _, err := h.Call(context.Background(), event(`"c"`)); err != nil || got != `{"sections":["a","b","c"]}` {
					t.Errorf("%s, %v", got, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// Whatever a file holds, loading it and calling its handlers ends, without a panic.
func FuzzLoad(f *testing.F) {
	for _, s := range []string{
		`plugin = Plugin("modes", version = "1.0.0", before_call = lambda call: Change(sections = ["a"]))`,
		"plugin = Plugin('a')\ndef f(e):\n    return e.x\non(plugin, 'request', f)",
		"plugin = Plugin('a', tool_call = lambda e: Change(block = str(e.x)))",
		"x = [i for i in range(10)]\nplugin = Plugin('b', **{'request': len})",
		"plugin = Plugin('a', request = Plugin)", "plugin = 3", "def", "(", "plugin = Plugin(*[plugin])",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if len(source) > 2000 || strings.ContainsAny(source, "*+") {
			return // what these build is not bounded
		}
		p, err := star.Load(context.Background(), "p.star", []byte(source), star.Options{Hooks: hooks, Limits: star.Limits{Steps: 10_000, Bytes: 10_000}})
		if err != nil {
			if _, ok := errors.AsType[*star.Error](err); !ok {
				t.Fatalf("the error is a %T: %v", err, err)
			}
			return
		}
		for _, h := range p.Handlers {
			_, _, _ = h.Call(context.Background(), event(`{"a":[1,2.5,null,"é"]}`))
		}
	})
}

func TestFunction(t *testing.T) {
	load := func(source string) (*star.Function, error) {
		return star.LoadFunction(t.Context(), "m.star", []byte(source), "score", 2, star.Options{Limits: star.Limits{Steps: 10_000}})
	}
	f, err := load("def score(row, call):\n    row['seen'] = True\n    return {'value': len(call['answer']) / row['n'], 'row': row}\n")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // each call has values of its own
		got, err := f.Call(t.Context(), `{"n":4}`, `{"answer":"ab"}`)
		if want := `{"value":0.5,"row":{"n":4,"seen":true}}`; err != nil || got != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	for source, want := range map[string]string{
		"x = 1":                       "m.star: it defines no function score",
		"score = 1":                   "m.star: its score is an int, not a function",
		"def score(row):\n    pass\n": "m.star:1:1: in score: it is given 2 arguments, and takes 1",
		"def score(row, call):\n    return 1 +\n":    "m.star:2:15: got newline, want primary expression",
		"def score(row, call):\n    return nosuch\n": "m.star:2:12: undefined: nosuch",
	} {
		if _, err := load(source); err == nil || err.Error() != want {
			t.Errorf("%q: %v; want %s", source, err, want)
		}
	}
	for source, want := range map[string]string{
		"    return 1 / 0":                           "m.star:2:14: in score: floating-point division by zero",
		"    for i in range(1000000):\n        pass": "m.star:2:5: in score: stopped after 10000 steps, the most it may take",
		"    return set([1])":                        "m.star:1:1: in score: what it returned: a set has no JSON form",
	} {
		f, err := load("def score(row, call):\n" + source + "\n")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Call(t.Context(), "{}", "{}"); err == nil || err.Error() != want {
			t.Errorf("%q: %v; want %s", source, err, want)
		}
	}
}
