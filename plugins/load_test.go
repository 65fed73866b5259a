package plugins_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"evalrun/datasets"
	"evalrun/internal/canon"
	"evalrun/internal/star"
	"evalrun/pipeline"
	"evalrun/plugins"
)

// write makes a file of a folder of the test's own.
func write(t testing.TB, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func newLoader(t testing.TB, o plugins.LoadOptions) *plugins.Loader {
	t.Helper()
	l := plugins.NewLoader(o)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func loadFile(t testing.TB, l *plugins.Loader, path string) *pipeline.Plugin {
	t.Helper()
	p, _, err := l.Load(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// loadText loads a Starlark plugin from text.
func loadText(t testing.TB, text string) *pipeline.Plugin {
	t.Helper()
	return loadFile(t, newLoader(t, plugins.LoadOptions{}), write(t, "p.star", text, 0o644))
}

// deskModel wishes for each of its tool calls in turn, and then answers.
type deskModel struct {
	mu     sync.Mutex
	wishes []pipeline.ToolCall
	sent   []*pipeline.Request
}

func (m *deskModel) Generate(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent = append(m.sent, r)
	if n := len(m.sent) - 1; n < len(m.wishes) {
		return &pipeline.Reply{Calls: m.wishes[n : n+1], Finish: "tool_calls"}, nil
	}
	return &pipeline.Reply{Text: "<result>\ndone\n</result>", Finish: "stop"}, nil
}

const desk = `
name: desk
description: Answer at the front desk.
inputs: [{name: question, shape: {type: string}}]
outputs: [{name: result, shape: {type: string}}]
`

const deskWithTools = desk + `tools:
  - {name: send_mail, effects: changes, parameters: {type: object}}
  - {name: delete_file, parameters: {type: object}}
`

// deskBox runs tools by saying what they were given.
type deskBox struct{}

func (deskBox) Tool(name string) (pipeline.ToolRunner, bool) {
	return pipeline.ToolFunc(func(_ context.Context, _ pipeline.Invocation, input datasets.Value) (string, error) {
		return name + " of " + input.JSON(), nil
	}), true
}

// asked asks the desk with the plugin as the host's.
func asked(t testing.TB, m *deskModel, p *pipeline.Plugin, notes pipeline.Notebook) *pipeline.Call {
	t.Helper()
	yaml := desk
	if m.wishes != nil {
		yaml = deskWithTools
	}
	program, err := pipeline.ParseProgram("desk.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	c := &pipeline.Caller{
		LM: pipeline.LM{Name: "probe", Model: m}, Tools: deskBox{}, Process: pipeline.Layer{Plugins: []*pipeline.Plugin{p}},
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }, NewID: func() string { return "call" },
	}
	call, err := c.Ask(context.Background(), program, pipeline.Ask{Inputs: datasets.Values{"question": datasets.Text("Is 3 free?")}, Notes: notes})
	if err != nil {
		t.Fatal(err)
	}
	return call
}

func wish(name, input string) pipeline.ToolCall {
	return pipeline.ToolCall{ID: "id", Name: name, Input: datasets.RawValue(input)}
}

// changes are a call's changes, a line each.
func changes(call *pipeline.Call) string {
	var list []string
	for _, c := range call.Changes {
		list = append(list, fmt.Sprintf("%s %s %s %s", c.Plugin, c.Version, c.Hook, c.Change.JSON()))
	}
	return strings.Join(list, "\n")
}

// book is a notebook in memory.
type book struct{ kept []string }

func (b *book) Entries(plugin, kind string) []pipeline.Entry {
	return []pipeline.Entry{{Turn: "t1", Data: datasets.Text("brief"), At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
}

func (b *book) Remember(plugin, kind string, data datasets.Value) error {
	b.kept = append(b.kept, plugin+" "+kind+" "+data.JSON())
	return nil
}

const modes = `plugin = Plugin("modes", version = "1.0.0", before_call = lambda call: Change(sections = ["Answer carefully. Cite the file you read."]))` + "\n"

func TestLoadStarlark(t *testing.T) {
	path := write(t, "modes.star", modes, 0o644)
	l := newLoader(t, plugins.LoadOptions{})
	p, info, err := l.Load(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if want := (plugins.LoadInfo{Path: path, Hash: canon.Hash([]byte(modes)), Kind: "starlark"}); info != want {
		t.Errorf("the info is %+v, want %+v", info, want)
	}
	if p.String() != `Plugin("modes", 1.0.0: before_call)` {
		t.Errorf("it is %s", p)
	}
	call := asked(t, &deskModel{}, p, nil)
	if want := `modes 1.0.0 before_call {"sections":["Answer carefully. Cite the file you read."]}`; call.Failure != nil || changes(call) != want {
		t.Errorf("%v, changes %s", call.Failure, changes(call))
	}
	if text := call.Exchanges[0].Request.JSON().JSON(); !strings.Contains(text, "Cite the file you read.") {
		t.Errorf("the section is not in the request: %s", text)
	}

	// The same unchanged file is the same plugin, whatever it is called by.
	t.Chdir(filepath.Dir(path))
	if again, info2, _ := l.Load(t.Context(), "modes.star"); again != p || info2 != info {
		t.Error("the same file gave another plugin")
	}
	if err := os.WriteFile(path, []byte(modes+"# edited\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	edited, info2, err := l.Load(t.Context(), path)
	if err != nil || edited == p || info2.Hash == info.Hash {
		t.Errorf("an edited file gave the same plugin: %v, %v", info2, err)
	}
	other := write(t, "modes.star", modes, 0o644)
	if copied := loadFile(t, l, other); copied == p {
		t.Error("a copy of the file gave the same plugin")
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\necho no\n"
	for _, c := range []struct {
		path, code, want string
	}{
		{filepath.Join(dir, "missing.star"), "plugin-load", "missing.star: no such file"},
		{dir, "plugin-load", "it is not a file"},
		{write(t, "modes.jl", "x", 0o644), "plugin-load", "modes.jl: it is no plugin: a plugin is a Starlark file (.star), a Python program (.py), or another program that may be executed"},
		{write(t, "p.py", "x", 0o644), "plugin-load", "p.py: it is a program, and plugins that are programs are not run here"},
		{write(t, "p", script, 0o755), "plugin-load", "are not run here"},
		{write(t, "p.star", strings.Repeat("#", 1<<20+1), 0o644), "plugin-load", "1048577 bytes are too many"},
		{write(t, "p.star", "", 0o755), "plugin-load", "p.star: it defines no plugin"},
		{write(t, "p.star", "plugin = 3", 0o644), "plugin-load", "p.star: its plugin is an int, not a Plugin"},
		{write(t, "p.star", "x = 1\nx y", 0o644), "plugin-load", "p.star:2:4: got identifier"},
		{write(t, "p.star", "x = 1\ny = [][0]", 0o644), "plugin-load", "p.star:2:7: index 0 out of range"},
		{write(t, "p.star", "x = 1\nplugin = Plugin('Modes')", 0o644), "plugin-name", `p.star:2:16: the name "Modes" does not match`},
		{write(t, "p.star", "plugin = Plugin(3)", 0o644), "plugin-name", `p.star:1:16: `},
		{write(t, "p.star", "plugin = Plugin('a', api = 2)", 0o644), "plugin-api", `p.star:1:16: it asks for plugin API 2; this is API 1`},
		{write(t, "p.star", "plugin = Plugin('a', api = 0)", 0o644), "plugin-api", `p.star:1:16: `},
		{write(t, "p.star", "plugin = Plugin('a', befor_call = lambda c: None)", 0o644), "plugin-hook", `p.star:1:16: Plugin: there is no hook "befor_call"; did you mean "before_call"?`},
	} {
		p, _, err := newLoader(t, plugins.LoadOptions{}).Load(t.Context(), c.path)
		f, ok := errors.AsType[*pipeline.Failure](err)
		if !ok || f.Code != c.code || f.Type != pipeline.TypePlugin || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %s %q", filepath.Base(c.path), p, err, c.code, c.want)
		}
	}
	l := newLoader(t, plugins.LoadOptions{})
	_ = l.Close()
	if _, _, err := l.Load(t.Context(), write(t, "p.star", modes, 0o644)); err == nil {
		t.Error("a closed loader loads")
	}
}

// What a handler did wrong, with its code, file, line and hook.
func TestStarlarkFails(t *testing.T) {
	for _, c := range []struct{ hook, body, code, want string }{
		{"before_call", "e.inptus", "plugin-failed", "plugin a, before_call: $:2:13: in f: before_call event has no .inptus field or method (did you mean .inputs?)"},
		{"before_call", "'text'", "plugin-change", "plugin a, before_call: $:1:1: in f: it returned a string, not a Change or None"},
		{"before_call", "{'sections': []}", "plugin-change", "plugin a, before_call: $:1:1: it returned a dict, not a Change or None"},
		{"before_call", "Change(sectoins = [])", "plugin-change", `plugin a, before_call: $:2:18: in f: Change: there is no field "sectoins"; did you mean "sections"?`},
		{"before_call", "Change(sections = 'text')", "plugin-change", "plugin a, before_call: $:2:18: in f: Change: sections is a list of texts, not a string"},
		{"before_call", "Change(block = 'x')", "plugin-change", "plugin a, before_call: before_call does not take block"},
		{"before_call", "Change(instruction = ' ')", "plugin-change", "plugin a, before_call: the instruction is blank"},
		{"before_call", "remember(e, 'k', 1)", "plugin-failed", "plugin a, before_call: $:2:20: in f: there is no conversation to keep an entry in"},
		{"before_call", "fail('no luck')", "plugin-failed", "plugin a, before_call: $:2:16: in f: fail: no luck"},
		{"before_call", "[0 for i in range(9000000) for j in range(9000000)]", "plugin-failed", "stopped after 20000000 steps"},
		{"request", "Change(sections = [])", "", "the whole request, as a dict, or None; not a Change"},
		{"request", "{'model': 1}", "", ""},
		{"request", "entries(e, 'k')", "plugin-failed", "entries: a request handler has none to read"},
	} {
		path := write(t, "p.star", "def f(e):\n    return "+c.body+"\nplugin = Plugin('a', "+c.hook+" = f)", 0o644)
		m := &deskModel{}
		call := asked(t, m, loadFile(t, newLoader(t, plugins.LoadOptions{}), path), nil)
		want := strings.ReplaceAll(c.want, "$", path)
		switch {
		case call.Failure == nil || c.code != "" && call.Failure.Code != c.code || !strings.Contains(call.Failure.Error(), want):
			t.Errorf("%s: %v; want %s %q", c.body, call.Failure, c.code, want)
		case len(m.sent) > 0:
			t.Errorf("%s: a request was sent", c.body)
		}
	}
}

// The fields that a Starlark Change has are those there are.
func TestStarlarkChangeFields(t *testing.T) {
	text := "x"
	full := pipeline.Change{
		Instruction: &text, Sections: []string{}, LM: &text, Settings: datasets.Values{}, Tools: []string{}, Keep: []string{},
		Without: datasets.Null, Inputs: datasets.Values{}, Block: &text, Output: &text,
	}
	v, err := datasets.ValueOf(full)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range v.Members() {
		names = append(names, name)
	}
	got := star.ChangeFields()
	slices.Sort(names)
	slices.Sort(got)
	if !slices.Equal(got, names) {
		t.Errorf("Starlark's are %v, the fields are %v", got, names)
	}
}

func TestStarlarkHooks(t *testing.T) {
	p := loadText(t, `
plugin = Plugin("all", version = "2.0.0")

def before_call(call):
    mode = [entry["data"] for entry in entries(call, "mode")]
    remember(call, "seen", {"tools": call.tools, "n": 12345678901234567890})
    call.inputs["question"] = "changed" # a copy
    call.tools.clear()
    return Change(sections = mode + [call.inputs["question"], call.function])

def request(e):
    r = e.request
    r["config"]["temperature"] = 0.5
    return r if e.function == "desk" else None

def tool_call(t):
    t.input["to"] = "nobody" # a copy
    if t.name == "delete_file":
        return Change(block = "not here")
    return Change(inputs = {"cc": [t.id, t.invocation, t.effects]})

on(plugin, "before_call", before_call)
on(plugin, "request", request)
on(plugin, "tool_call", tool_call)
on(plugin, "tool_result", lambda r: Change(output = r.output.upper() + json.encode(r.input)))
`)
	m := &deskModel{wishes: []pipeline.ToolCall{wish("send_mail", `{"to":"ann"}`), wish("delete_file", `{}`)}}
	notes := &book{}
	call := asked(t, m, p, notes)
	want := `all 2.0.0 before_call {"sections":["brief","Is 3 free?","desk"]}
all 2.0.0 request {"request":"replaced"}
all 2.0.0 tool_call {"inputs":{"cc":["id",0,"changes"]}}
all 2.0.0 tool_result {"output":"SEND_MAIL OF {\"TO\":\"ANN\",\"CC\":[\"ID\",0,\"CHANGES\"]}{\"cc\":[\"id\",0,\"changes\"],\"to\":\"ann\"}"}
all 2.0.0 request {"request":"replaced"}
all 2.0.0 tool_call {"block":"not here"}
all 2.0.0 request {"request":"replaced"}`
	if call.Failure != nil || changes(call) != want {
		t.Errorf("%v\n%s\nwant\n%s", call.Failure, changes(call), want)
	}
	if want := `all seen {"tools":["send_mail","delete_file"],"n":12345678901234567890}`; len(notes.kept) != 1 || notes.kept[0] != want {
		t.Errorf("kept %q, want %s", notes.kept, want)
	}
	if got := m.sent[0].Config["temperature"].JSON(); got != "0.5" {
		t.Errorf("the temperature sent is %s", got)
	}
}

// Asking a person where there is none is the call's failure, not the plugin's.
func TestStarlarkAsks(t *testing.T) {
	p := loadText(t, "plugin = Plugin('asks', tool_call = lambda t: None if ask(t, 'may it?') else None)")
	call := asked(t, &deskModel{wishes: []pipeline.ToolCall{wish("send_mail", `{}`)}}, p, nil)
	if call.Failure == nil || call.Failure.Code != "approval-required" {
		t.Errorf("the call's failure is %v", call.Failure)
	}
}

func TestStarlarkNeverReturns(t *testing.T) {
	// Each comparison of these lists is one step, and takes long.
	slow := "x = [0] * 100000\nplugin = Plugin('slow', before_call = lambda c: Change(sections = [str(len([1 for i in range(9000000) if x == x[:]]))]))"
	l := newLoader(t, plugins.LoadOptions{Timeout: 50 * time.Millisecond})
	path := write(t, "p.star", slow, 0o644)
	began := time.Now()
	call := asked(t, &deskModel{}, loadFile(t, l, path), nil)
	if f := call.Failure; f == nil || f.Code != "plugin-failed" || !strings.Contains(f.Message, "stopped: its handler at "+path+":2:") || !strings.Contains(f.Message, "took longer than 50ms") {
		t.Errorf("the failure is %v", f)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("stopping took %s", took)
	}

	// The end of the call is the call's own.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := l.Load(ctx, write(t, "p.star", "x = [i for i in range(100000)]", 0o644)); !errors.Is(err, context.Canceled) {
		t.Errorf("loading in a context that ended: %v", err)
	}
}

func TestStarlarkConcurrent(t *testing.T) {
	var printed bytes.Buffer
	l := newLoader(t, plugins.LoadOptions{Stderr: &printed})
	path := write(t, "p.star", `
known = {"a": ["b"]}
def f(call):
    print("called")
    return Change(sections = known["a"] + [call.inputs["question"]])
plugin = Plugin("shared", before_call = f)`, 0o644)
	p := loadFile(t, l, path)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 20 {
				call := asked(t, &deskModel{}, p, nil)
				if want := `shared 0.0.0 before_call {"sections":["b","Is 3 free?"]}`; call.Failure != nil || changes(call) != want {
					t.Errorf("%v, %s", call.Failure, changes(call))
					return
				}
				if again, _, err := l.Load(context.Background(), path); again != p || err != nil {
					t.Errorf("loaded again: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := strings.Count(printed.String(), path+":4:10: called\n"); n != 320 {
		t.Errorf("%d of 320 lines were printed whole", n)
	}
}

// Ten plugins with one handler each, as a call meets them.
func BenchmarkTenStarlarkPlugins(b *testing.B) {
	var ten []*pipeline.Plugin
	for i := range 10 {
		ten = append(ten, loadText(b, fmt.Sprintf(`plugin = Plugin("p%d", before_call = lambda call: Change(sections = ["Answer carefully."]))`, i)))
	}
	program, err := pipeline.ParseProgram("desk.yaml", []byte(desk))
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{0, 10} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			c := &pipeline.Caller{
				LM: pipeline.LM{Name: "probe", Model: answering{}}, Process: pipeline.Layer{Plugins: ten[:n]},
				Now: func() time.Time { return time.Time{} }, NewID: func() string { return "call" },
			}
			for b.Loop() {
				call, err := c.Ask(context.Background(), program, pipeline.Ask{Inputs: datasets.Values{"question": datasets.Text("x")}})
				if err != nil || call.Failure != nil {
					b.Fatal(err, call.Failure)
				}
			}
		})
	}
}

type answering struct{}

func (answering) Generate(context.Context, *pipeline.Request) (*pipeline.Reply, error) {
	return &pipeline.Reply{Text: "<result>\ndone\n</result>", Finish: "stop"}, nil
}
