package plugins_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"evalrun/datasets"
	"evalrun/internal/star"
	"evalrun/pipeline"
	"evalrun/plugins"
)

const careful = "../examples/plugins/careful.py"

func needsPython(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not there: plugins in Python are not tested")
	}
}

// shellPlugin is a plugin in shell: it shakes hands with hello, and does body for each
// event, whose number is $id and whose line is $line.
func shellPlugin(t testing.TB, hello, body string) string {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("there is no /bin/sh: plugins that are programs are not tested")
	}
	if hello == "" {
		hello = `{"evalrun_plugin":1,"name":"sh","version":"1.0.0","hooks":["before_call"]}`
	}
	text := "#!/bin/sh\nread -r hello\necho '" + hello + "'\nid=0\nwhile read -r line; do\nid=$((id+1))\n" + body + "\ndone\n"
	return write(t, "plugin", text, 0o755)
}

func execLoader(t testing.TB, o plugins.LoadOptions) *plugins.Loader {
	o.AllowExec = true
	if o.Timeout == 0 {
		o.Timeout = 20 * time.Second
	}
	return newLoader(t, o)
}

func TestPython(t *testing.T) {
	needsPython(t)
	source, err := os.ReadFile(careful)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(source, []byte("\n")); n > 60 {
		t.Errorf("the example has %d lines", n)
	}
	l := execLoader(t, plugins.LoadOptions{})
	p, info, err := l.Load(t.Context(), careful)
	if err != nil {
		t.Fatal(err)
	}
	if info.Kind != "process" || info.Path != careful || p.String() != `Plugin("careful", 1.0.0: before_call, tool_call)` {
		t.Errorf("%+v, %s", info, p)
	}
	if again := loadFile(t, l, careful); again != p {
		t.Error("the same file gave another plugin")
	}
	call := asked(t, &deskModel{wishes: []pipeline.ToolCall{wish("send_mail", `{}`), wish("delete_file", `{}`)}}, p, nil)
	want := `careful 1.0.0 before_call {"sections":["Answer carefully. Cite the file you read."]}
careful 1.0.0 tool_call {"block":"deleting is not allowed here"}`
	if call.Failure != nil || changes(call) != want {
		t.Errorf("%v\n%s", call.Failure, changes(call))
	}
	call = asked(t, &deskModel{}, p, &book{})
	if want := `careful 1.0.0 before_call {"sections":["Answer in one sentence."]}`; call.Failure != nil || changes(call) != want {
		t.Errorf("with an entry: %v\n%s", call.Failure, changes(call))
	}
}

func TestPythonConcurrent(t *testing.T) {
	needsPython(t)
	p := loadFile(t, execLoader(t, plugins.LoadOptions{}), careful)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 5 {
				call := asked(t, &deskModel{}, p, &book{})
				if want := `careful 1.0.0 before_call {"sections":["Answer in one sentence."]}`; call.Failure != nil || changes(call) != want {
					t.Errorf("%v, %s", call.Failure, changes(call))
				}
			}
		})
	}
	wg.Wait()
}

// A Python handler gets values of every kind, and gives them back.
func TestPythonRoundTrip(t *testing.T) {
	needsPython(t)
	path := write(t, "echo.py", `
import json, sys
def say(x): print(json.dumps(x), flush=True)
json.loads(sys.stdin.readline())
say({"evalrun_plugin": 1, "name": "echo", "hooks": ["tool_call"]})
for line in sys.stdin:
    told = json.loads(line)
    say({"id": told["id"], "change": {"inputs": {"back": told["event"]["input"]}}})
`, 0o644)
	p := loadFile(t, execLoader(t, plugins.LoadOptions{}), path)
	in := `{"a":null,"b":[true,-1,0.5,123456789012345678901234567890],"c":"naïve 日本語 😀 \u0000\n\"","d":{}}`
	call := asked(t, &deskModel{wishes: []pipeline.ToolCall{wish("send_mail", in)}}, p, nil)
	if call.Failure != nil || len(call.Changes) != 1 {
		t.Fatalf("%v, %s", call.Failure, changes(call))
	}
	if back := call.Changes[0].Change.Member("inputs").Member("back"); !back.Equal(datasets.RawValue(in)) {
		t.Errorf("%s came back as %s", in, back.JSON())
	}
}

func TestProcessLoadRefuses(t *testing.T) {
	hello := func(text string) string { return shellPlugin(t, text, "echo") }
	for _, c := range []struct{ path, code, want string }{
		{hello("no"), "plugin-load", `plugin: its first line is no handshake: it wrote "no": not a JSON value`},
		{hello("[]"), "plugin-load", "its first line is no handshake"},
		{hello(`{"evalrun_plugin":2,"name":"a","hooks":[]}`), "plugin-load", `its handshake says "evalrun_plugin": 2; this is protocol 1`},
		{hello(`{"evalrun_plugin":1,"name":"a"}`), "plugin-load", `its handshake names no "hooks"`},
		{hello(`{"evalrun_plugin":1,"name":"a","hooks":[],"more":1}`), "plugin-load", `unknown key "more"; known are evalrun_plugin, name, version, api, description, hooks`},
		{hello(`{"evalrun_plugin":1,"name":"a","hoks":[]}`), "plugin-load", `unknown key "hoks"; did you mean "hooks"?`},
		{hello(`{"evalrun_plugin":1,"name":"a","hooks":"request"}`), "plugin-load", `hooks must be a list of texts, not text`},
		{hello(`{"evalrun_plugin":1,"name":"a","hooks":["request","request"]}`), "plugin-load", `the hook "request" twice`},
		{hello(`{"evalrun_plugin":1,"name":"A","hooks":[]}`), "plugin-name", `plugin: the name "A" does not match`},
		{hello(`{"evalrun_plugin":1,"name":"a","api":2,"hooks":[]}`), "plugin-api", "it asks for plugin API 2"},
		{hello(`{"evalrun_plugin":1,"name":"a","hooks":["befor_call"]}`), "plugin-hook", `there is no hook "befor_call"; did you mean "before_call"?`},
		{write(t, "p", "#!/bin/sh\necho the reason >&2\nexit 3\n", 0o755), "plugin-load", "ended: exit status 3; its standard error:\nthe reason"},
		{write(t, "p", "no program", 0o755), "plugin-load", "exec format error"},
		{write(t, "p", "#!/bin/sh\nexec sleep 600\n", 0o755), "plugin-load", "stopped: loading it took longer than 300ms"},
	} {
		l := plugins.NewLoader(plugins.LoadOptions{AllowExec: true, Timeout: 300 * time.Millisecond})
		if !strings.Contains(c.want, "300ms") {
			l = plugins.NewLoader(plugins.LoadOptions{AllowExec: true})
		}
		p, _, err := l.Load(t.Context(), c.path)
		f, ok := errors.AsType[*pipeline.Failure](err)
		if !ok || f.Code != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, %v; want %s %q", p, err, c.code, c.want)
		}
		_ = l.Close()
	}
}

// What a program did wrong, and that it is told the next event all the same.
func TestProcessFails(t *testing.T) {
	for _, c := range []struct{ body, code, want string }{
		{`echo oops`, "plugin-failed", `it wrote "oops": not a JSON value`},
		{`echo '{"id":7}'`, "plugin-failed", "it answered event 7; it was told event 1"},
		{`echo '{"id":'$id',"change":{},"error":"x"}'`, "plugin-failed", "more than one of change, request"},
		{`echo '{"id":'$id',"chnge":{}}'`, "plugin-failed", `plugin sh, before_call: $: it wrote "{\"id\":1,\"chnge\":{}}": unknown key "chnge"; did you mean "change"?`},
		{`echo '{"id":'$id',"error":3}'`, "plugin-failed", "error must be text, not the number"},
		{`echo '{"id":'$id',"change":{"settings":{"temperature":1e999}}}'`, "plugin-failed", "too large"},
		{`echo '{"id":'$id',"error":"no luck"}'`, "plugin-failed", "plugin sh, before_call: $: no luck"},
		{`echo '{"id":'$id',"change":3}'`, "plugin-change", "plugin sh, before_call: $: not a change: the value must be an object, not the number"},
		{`echo '{"id":'$id',"change":{"sectoins":[]}}'`, "plugin-change", `plugin sh, before_call: $: not a change: unknown key "sectoins"; did you mean "sections"?`},
		{`echo '{"id":'$id',"change":{"sections":"x"}}'`, "plugin-change", "$: not a change: sections must be a list of texts, not text"},
		{`echo '{"id":'$id',"change":{"settings":{"temprature":1}}}'`, "plugin-change", `"temprature" is not a model's setting; did you mean "temperature"?`},
		{`echo '{"id":'$id',"change":{"block":"x"}}'`, "plugin-change", "before_call does not take block"},
		{`echo '{"id":'$id',"request":{}}'`, "plugin-change", "$: a handler of before_call answers with a change, not with a request"},
		{`echo the reason >&2; exit 3`, "plugin-failed", "ended: exit status 3; its standard error:\nthe reason"},
		{`echo the reason >&2; echo oops`, "plugin-failed", "its standard error:\nthe reason"},
		{`head -c 17000000 /dev/zero | tr '\0' x`, "plugin-failed", "wrote more than 16777216 bytes as a line"},
		{`echo '{"id":'$id',"ask":"x"}'; read -r a; echo "{\"id\":$id,\"error\":\"told $(echo "$a" | cut -d'"' -f6)\"}"`, "plugin-failed", "told a before_call handler asks nobody"},
	} {
		path := shellPlugin(t, "", c.body)
		p := loadFile(t, execLoader(t, plugins.LoadOptions{}), path)
		for range 2 { // the second time as it is, or started again
			m := &deskModel{}
			f := asked(t, m, p, nil).Failure
			want := strings.ReplaceAll(c.want, "$", path)
			if f == nil || f.Code != c.code || !strings.Contains(f.Error(), want) {
				t.Errorf("%s: %v; want %s %q", c.body, f, c.code, want)
			}
			if len(m.sent) > 0 {
				t.Errorf("%s: a request was sent", c.body)
			}
		}
	}
}

// A program that ends badly is started again for the next event, and after three
// times in a row no more.
func TestProcessRestarts(t *testing.T) {
	// It dies on every event but where the file says otherwise.
	alive := filepath.Join(t.TempDir(), "alive")
	p := loadFile(t, execLoader(t, plugins.LoadOptions{}), shellPlugin(t, "", fmt.Sprintf(
		`[ -e '%s' ] || exit 3; echo "{\"id\":$id,\"change\":{\"sections\":[\"$id\"]}}"`, alive)))
	fails := func() string {
		if f := asked(t, &deskModel{}, p, nil).Failure; f != nil {
			return f.Error()
		}
		return ""
	}
	for range 2 {
		if got := fails(); !strings.Contains(got, "exit status 3") {
			t.Fatalf("a program that died: %q", got)
		}
	}
	if err := os.WriteFile(alive, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1", "2"} {
		if call := asked(t, &deskModel{}, p, nil); call.Failure != nil || !strings.Contains(changes(call), `["`+want+`"]`) {
			t.Fatalf("started again: %v, %s", call.Failure, changes(call))
		}
	}
	if err := os.Remove(alive); err != nil {
		t.Fatal(err)
	}
	for range 3 { // the count began anew
		if got := fails(); !strings.Contains(got, "exit status 3") || strings.Contains(got, "in a row") {
			t.Fatalf("a program that died: %q", got)
		}
	}
	if got := fails(); !strings.Contains(got, "it ended badly 3 times in a row and is not started again; the last time: ") {
		t.Errorf("after three times: %q", got)
	}
}

func TestProcessNeverAnswers(t *testing.T) {
	l := execLoader(t, plugins.LoadOptions{Timeout: 500 * time.Millisecond})
	p := loadFile(t, l, shellPlugin(t, "", "exec sleep 600"))
	began := time.Now()
	f := asked(t, &deskModel{}, p, nil).Failure
	if f == nil || f.Code != "plugin-failed" || !strings.Contains(f.Message, "stopped: its handler of before_call took longer than 500ms") {
		t.Errorf("the failure is %v", f)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("stopping took %s", took)
	}
}

func TestProcessStderr(t *testing.T) {
	var out bytes.Buffer
	l := execLoader(t, plugins.LoadOptions{Stderr: &out})
	p := loadFile(t, l, shellPlugin(t, "", `echo "event $id" >&2; echo "{\"id\":$id}"`))
	for range 2 {
		if call := asked(t, &deskModel{}, p, nil); call.Failure != nil || len(call.Changes) > 0 {
			t.Errorf("%v, %s", call.Failure, changes(call))
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if out.String() != "sh: event 1\nsh: event 2\n" {
		t.Errorf("its standard error is %q", out.String())
	}
	if f := asked(t, &deskModel{}, p, nil).Failure; f == nil || !strings.Contains(f.Message, "the plugins' loader is closed") {
		t.Errorf("a plugin of a closed loader: %v", f)
	}
}

// Asking a person where there is none is the call's failure; the program is told,
// and may not go on as if it had been answered.
func TestProcessAsks(t *testing.T) {
	p := loadFile(t, execLoader(t, plugins.LoadOptions{}), shellPlugin(t,
		`{"evalrun_plugin":1,"name":"sh","hooks":["tool_call"]}`,
		`echo "{\"id\":$id,\"ask\":\"may it?\"}"; read -r answer; echo "{\"id\":$id}"`))
	for range 2 {
		call := asked(t, &deskModel{wishes: []pipeline.ToolCall{wish("send_mail", `{}`)}}, p, nil)
		if call.Failure == nil || call.Failure.Code != "approval-required" {
			t.Errorf("the call's failure is %v", call.Failure)
		}
	}
}

func TestProcessRemembers(t *testing.T) {
	p := loadFile(t, execLoader(t, plugins.LoadOptions{}), shellPlugin(t, "",
		`echo "{\"id\":$id,\"remember\":{\"kind\":\"seen\",\"data\":[1,null]}}"; read -r answer; echo "{\"id\":$id,\"change\":{\"sections\":[\"$(echo "$answer" | tr -d '"')\"]}}"`))
	notes := &book{}
	call := asked(t, &deskModel{}, p, notes)
	if want := `sh 1.0.0 before_call {"sections":["{id:1,remembered:true}"]}`; call.Failure != nil || changes(call) != want {
		t.Errorf("%v, %s", call.Failure, changes(call))
	}
	if len(notes.kept) != 1 || notes.kept[0] != `sh seen [1,null]` {
		t.Errorf("kept %q", notes.kept)
	}
	if call := asked(t, &deskModel{}, p, nil); call.Failure != nil || !strings.Contains(changes(call), "error:there is no conversation") {
		t.Errorf("outside a conversation: %v, %s", call.Failure, changes(call))
	}
}

func TestProcessLoadIsCanceled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, _, err := execLoader(t, plugins.LoadOptions{}).Load(ctx, write(t, "p", "#!/bin/sh\nexec sleep 600\n", 0o755))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
}

// What a program writes to its standard error comes in whole lines with a name in
// front: the file's, until the plugin has said its own.
func TestProcessPrints(t *testing.T) {
	var out bytes.Buffer
	l := execLoader(t, plugins.LoadOptions{Stderr: &out})
	path := write(t, "p", `#!/bin/sh
read -r hello
echo starting >&2
echo '{"evalrun_plugin":1,"name":"sh","hooks":["before_call"]}'
read -r line
printf 'one\ntw' >&2
printf 'o\nthree' >&2
echo '{"id":1}'
read -r line
`, 0o755)
	p := loadFile(t, l, path)
	if f := asked(t, &deskModel{}, p, nil).Failure; f != nil {
		t.Fatal(f)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	got := strings.Replace(out.String(), "p: starting", "sh: starting", 1) // whichever was first
	if want := "sh: starting\nsh: one\nsh: two\nsh: three\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

// What is no request is refused with the file's name, in words of the format.
func TestProcessRequestFails(t *testing.T) {
	for _, c := range []struct{ answer, want string }{
		{`"request":{"model":"m","messages":[{"rol":"user","parts":[]}]}`, `plugin sh, request: $: not a request: unknown key "rol" in messages[0]; did you mean "role"?`},
		{`"request":{"modl":"m"}`, `$: not a request: unknown key "modl"; did you mean "model"?`},
		{`"request":{"model":"m","messages":{}}`, "$: not a request: messages must be a list, not an object"},
		{`"request":{"model":"m","messages":[],"config":3}`, "$: not a request: config must be an object, not the number"},
		{`"request":{"model":"m","messages":[],"tools":[{"nme":"a"}]}`, `$: not a request: unknown key "nme" in tools[0]`},
		{`"change":{"sections":[]}`, `$: a handler of request answers with the whole request, {"request": …}, not with a change`},
	} {
		path := shellPlugin(t, `{"evalrun_plugin":1,"name":"sh","hooks":["request"]}`, `echo '{"id":'$id',`+c.answer+`}'`)
		m := &deskModel{}
		f := asked(t, m, loadFile(t, execLoader(t, plugins.LoadOptions{}), path), nil).Failure
		if f == nil || f.Code != "plugin-change" || !strings.Contains(f.Error(), strings.ReplaceAll(c.want, "$", path)) {
			t.Errorf("%s: %v; want %q", c.answer, f, c.want)
		}
		if len(m.sent) > 0 {
			t.Errorf("%s: a request was sent", c.answer)
		}
	}
}

// A field that is null is not asked for, whichever it is.
func TestProcessNullFields(t *testing.T) {
	fields := ""
	for _, name := range star.ChangeFields() {
		if name != "sections" {
			fields += `,"` + name + `":null`
		}
	}
	p := loadFile(t, execLoader(t, plugins.LoadOptions{}), shellPlugin(t, "", `echo '{"id":'$id',"change":{"sections":["x"]`+fields+`}}'`))
	call := asked(t, &deskModel{}, p, nil)
	if want := `sh 1.0.0 before_call {"sections":["x"]}`; call.Failure != nil || changes(call) != want {
		t.Errorf("%v, %s", call.Failure, changes(call))
	}
}

// A program that answers, if only with an error, has not ended badly: the count of
// those in a row begins anew. Asking for something is no answer yet.
func TestProcessAnsweredBetween(t *testing.T) {
	// It dies on every other event, and remembers across its lives.
	died := filepath.Join(t.TempDir(), "died")
	flips := fmt.Sprintf(`if [ -e '%[1]s' ]; then rm '%[1]s'; else touch '%[1]s'; exit 3; fi; `, died)
	p := loadFile(t, execLoader(t, plugins.LoadOptions{}), shellPlugin(t, "", flips+`echo '{"id":'$id',"error":"no"}'`))
	for i := range 10 {
		want := "exit status 3"
		if i%2 == 1 {
			want = ": no"
		}
		if f := asked(t, &deskModel{}, p, nil).Failure; f == nil || !strings.Contains(f.Message, want) || strings.Contains(f.Message, "in a row") {
			t.Fatalf("event %d: %v, want %q", i, f, want)
		}
	}
	p = loadFile(t, execLoader(t, plugins.LoadOptions{}), shellPlugin(t, "", `echo '{"id":'$id',"entries":"k"}'; read -r list; exit 3`))
	for range 3 {
		asked(t, &deskModel{}, p, nil)
	}
	if f := asked(t, &deskModel{}, p, nil).Failure; f == nil || !strings.Contains(f.Message, "3 times in a row") {
		t.Errorf("after three bad ends: %v", f)
	}
}
