package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/plugins"
)

// timedCaller asks with times of its own.
func timedCaller(p *pipeline.Plugin, handler, call time.Duration) *pipeline.Caller {
	return &pipeline.Caller{
		LM: pipeline.LM{Name: "probe", Model: &deskModel{}}, Tools: deskBox{}, Process: pipeline.Layer{Plugins: []*pipeline.Plugin{p}},
		Now: time.Now, NewID: func() string { return "call" }, HandlerTime: handler, Timeout: call,
	}
}

func askDesk(t testing.TB, ctx context.Context, c *pipeline.Caller) (*pipeline.Call, error) {
	t.Helper()
	program, err := pipeline.ParseProgram("desk.yaml", []byte(desk))
	if err != nil {
		t.Fatal(err)
	}
	return c.Ask(ctx, program, pipeline.Ask{Inputs: datasets.Values{"question": datasets.Text("Is 3 free?")}})
}

// The time in which a call waits until the program is free is not the handler's, and
// not the call's: here each event takes a good part of both.
func TestQueueTakesNoTime(t *testing.T) {
	path := shellPlugin(t, "", `sleep 0.4; echo '{"id":'$id'}'`)
	p := loadFile(t, execLoader(t, plugins.LoadOptions{}), path)
	c := timedCaller(p, 2*time.Second, 2*time.Second)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if call, err := askDesk(t, t.Context(), c); err != nil || call.Failure != nil {
				t.Error(err, call.Failure)
			}
		})
	}
	wg.Wait()
}

// A program that never answers has crashed each time, whose ever the time was that
// was over, and is not started a fourth time in a row. Calls that somebody stopped
// say nothing of it.
func TestHangIsACrash(t *testing.T) {
	for name, times := range map[string]struct{ loader, handler, call time.Duration }{
		"the loader's":  {300 * time.Millisecond, time.Minute, 0},
		"the handler's": {time.Minute, 300 * time.Millisecond, 0},
		"the call's":    {time.Minute, time.Minute, 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			starts := filepath.Join(t.TempDir(), "starts")
			path := shellPlugin(t, "", "exec sleep 600")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text = []byte(strings.Replace(string(text), "read -r hello", "echo >> "+starts+"\nread -r hello", 1))
			if err := os.WriteFile(path, text, 0o755); err != nil {
				t.Fatal(err)
			}
			p := loadFile(t, execLoader(t, plugins.LoadOptions{Timeout: times.loader}), path)
			c := timedCaller(p, times.handler, times.call)
			stop := errors.New("stopped")
			for range 4 {
				ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, stop)
				if _, err := askDesk(t, ctx, timedCaller(p, time.Minute, 0)); !errors.Is(err, stop) {
					t.Fatal(err)
				}
				cancel()
			}
			for n := range 5 {
				call, err := askDesk(t, t.Context(), c)
				if err != nil || call.Failure == nil {
					t.Fatal(call, err)
				}
				if given := strings.Contains(call.Failure.Message, "3 times in a row and is not started again"); given != (n >= 3) {
					t.Errorf("event %d: %v", n, call.Failure)
				}
			}
			// Loading it, four calls that were stopped, and three that hang; each but the
			// first finds it gone.
			if got, _ := os.ReadFile(starts); len(got) != 7 {
				t.Errorf("it was started %d times", len(got))
			}
		})
	}
}

// A person takes no time of a handler in a file.
func TestPersonTakesNoTime(t *testing.T) {
	needsPython(t)
	for name, text := range map[string]string{
		"a.star": "def f(e):\n    ask(e, 'sure?')\n    n = 0\n    for i in range(100000):\n        n += i\nplugin = Plugin('a', tool_call = f)\n",
		"a.py": `import json, sys
def say(x): print(json.dumps(x), flush=True)
sys.stdin.readline()
say({"evalrun_plugin": 1, "name": "a", "hooks": ["tool_call"]})
for line in sys.stdin:
    id = json.loads(line)["id"]
    say({"id": id, "ask": "sure?"})
    sys.stdin.readline()
    say({"id": id})
`,
	} {
		p := loadFile(t, execLoader(t, plugins.LoadOptions{Timeout: 2 * time.Second}), write(t, name, text, 0o644))
		program, err := pipeline.ParseProgram("desk.yaml", []byte(deskWithTools))
		if err != nil {
			t.Fatal(err)
		}
		c := timedCaller(p, 2*time.Second, 0)
		c.LM.Model = &deskModel{wishes: []pipeline.ToolCall{wish("send_mail", `{}`)}}
		c.Approve = func(context.Context, *pipeline.ToolCallEvent) (pipeline.Answer, error) {
			time.Sleep(2500 * time.Millisecond)
			return pipeline.Answer{Allowed: true}, nil
		}
		c.Warn = func(text string) { t.Errorf("%s: %s", name, text) }
		call, err := c.Ask(t.Context(), program, pipeline.Ask{Inputs: datasets.Values{"question": datasets.Text("x")}})
		if err != nil || call.Failure != nil || len(call.Changes) > 0 {
			t.Errorf("%s: %v, %v, %s", name, err, call.Failure, changes(call))
		}
	}
}

// The memory that a Starlark file builds up is bounded, in a handler and while it is
// loaded.
func TestStarlarkMemory(t *testing.T) {
	const hoards = "[str(i) + 'x' * 1000000 for i in range(5000)]"
	l := newLoader(t, plugins.LoadOptions{Memory: 64 << 20})
	_, _, err := l.Load(t.Context(), write(t, "top.star", "x = "+hoards+"\nplugin = Plugin('a')\n", 0o644))
	if err == nil || !strings.Contains(fmt.Sprint(err), "memory grew by more than 64 MiB") {
		t.Errorf("loading: %v", err)
	}
	p := loadFile(t, l, write(t, "a.star", "plugin = Plugin('a', before_call = lambda e: Change(sections = "+hoards+"))\n", 0o644))
	if f := asked(t, &deskModel{}, p, nil).Failure; f == nil || f.Code != "plugin-failed" || !strings.Contains(f.Message, "memory grew by more than 64 MiB") {
		t.Errorf("a handler: %v", f)
	}
}
