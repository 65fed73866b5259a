package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
)

func codeOf(err error) string {
	var f *pipeline.Failure
	if errors.As(err, &f) {
		return f.Code
	}
	return fmt.Sprint(err)
}

func none(context.Context, *pipeline.CallEvent) (*pipeline.Change, error) { return nil, nil }

func plugin(t testing.TB, name string, opts ...pipeline.Option) *pipeline.Plugin {
	t.Helper()
	p, err := pipeline.NewPlugin(name, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNewPlugin(t *testing.T) {
	for _, c := range []struct {
		name string
		opts []pipeline.Option
		code string
	}{
		{"modes", nil, ""},
		{"a" + strings.Repeat("b", 63), nil, ""},
		{"no-deletes_2", nil, ""},
		{"", nil, "plugin-name"},
		{"Modes", nil, "plugin-name"},
		{"2modes", nil, "plugin-name"},
		{"mo des", nil, "plugin-name"},
		{"modes\n", nil, "plugin-name"},
		{"a" + strings.Repeat("b", 64), nil, "plugin-name"},
		{"modes", []pipeline.Option{pipeline.RequireAPI(2)}, "plugin-api"},
		{"modes", []pipeline.Option{pipeline.RequireAPI(0)}, "plugin-api"},
		{"modes", []pipeline.Option{pipeline.On("befor_call", none)}, "plugin-hook"},
		{"modes", []pipeline.Option{pipeline.On("before_call", none)}, ""},
		// A handler of another hook's type is a plain error, not a plugin error.
		{"modes", []pipeline.Option{pipeline.On("request", none)}, "plugin modes: a handler of request cannot be a func(context.Context, *pipeline.CallEvent) (*pipeline.Change, error)"},
	} {
		p, err := pipeline.NewPlugin(c.name, c.opts...)
		switch {
		case c.code == "" && err != nil:
			t.Errorf("NewPlugin(%q): %v", c.name, err)
		case c.code != "" && (err == nil || codeOf(err) != c.code):
			t.Errorf("NewPlugin(%q) = %v, %v; want %s", c.name, p, err, c.code)
		}
	}
}

func TestPluginPrints(t *testing.T) {
	p := plugin(t, "modes", pipeline.Version("1.0.0"), pipeline.OnBeforeCall(none))
	if got, want := p.String(), `Plugin("modes", 1.0.0: before_call)`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := plugin(t, "quiet").Version(); got != "0.0.0" {
		t.Errorf("the default version is %q, want 0.0.0", got)
	}
}

// TestOrder: the program's own first, the process's last; a plugin in several
// layers once, in its outermost; sameness is identity, not the name.
func TestOrder(t *testing.T) {
	named := func(names ...string) []*pipeline.Plugin {
		var ps []*pipeline.Plugin
		for _, n := range names {
			ps = append(ps, plugin(t, n))
		}
		return ps
	}
	ps := named("mine", "host-mode", "conversation", "outer-block", "audit", "mine")
	mine, hostMode, conversation, outer, audit, twin := ps[0], ps[1], ps[2], ps[3], ps[4], ps[5]
	no, yes := false, true

	layer := func(kind pipeline.LayerKind, programPlugins *bool, plugins ...*pipeline.Plugin) pipeline.Layer {
		return pipeline.Layer{Kind: kind, Plugins: plugins, ProgramPlugins: programPlugins}
	}
	const program, conv, block, process = pipeline.ProgramLayer, pipeline.ConversationLayer, pipeline.BlockLayer, pipeline.ProcessLayer
	for _, c := range []struct {
		name   string
		layers []pipeline.Layer
		want   []*pipeline.Plugin
	}{
		{"none", nil, nil},
		{
			"four layers",
			[]pipeline.Layer{layer(program, nil, mine, hostMode), layer(block, nil, conversation), layer(block, nil, outer), layer(process, nil, hostMode, audit)},
			[]*pipeline.Plugin{mine, conversation, outer, hostMode, audit},
		},
		{
			"a host drops the program's own, but keeps its own copy of one",
			[]pipeline.Layer{layer(program, nil, mine, hostMode), layer(block, nil, conversation), layer(block, nil, outer), layer(process, &no, hostMode, audit)},
			[]*pipeline.Plugin{conversation, outer, hostMode, audit},
		},
		{
			"a conversation drops them too",
			[]pipeline.Layer{layer(program, nil, mine), layer(conv, &no, conversation)},
			[]*pipeline.Plugin{conversation},
		},
		{
			"said in the program's own layer it does nothing",
			[]pipeline.Layer{layer(program, &no, mine), layer(process, &yes, audit)},
			[]*pipeline.Plugin{mine, audit},
		},
		{
			"two objects of one name both run",
			[]pipeline.Layer{layer(program, nil, mine), layer(process, nil, twin)},
			[]*pipeline.Plugin{mine, twin},
		},
		{
			"twice in one layer is once",
			[]pipeline.Layer{layer(process, nil, audit, audit)},
			[]*pipeline.Plugin{audit},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := pipeline.Order(c.layers); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// A handler that panics fails its call, and no other.
func TestHandlerPanics(t *testing.T) {
	m := &model{}
	wild := plugin(t, "wild", pipeline.OnBeforeCall(func(context.Context, *pipeline.CallEvent) (*pipeline.Change, error) {
		panic("no such policy")
	}))
	call := ask(t, caller(m), program(t, routeYAML).WithPlugins(wild), pipeline.Ask{Inputs: ticket("x")})
	if f := call.Failure; f == nil || f.Code != "plugin-failed" || f.Plugin != "wild" || !strings.Contains(f.Message, "it panicked: no such policy") || len(m.sent) > 0 {
		t.Errorf("got %+v with %d requests, want plugin-failed and none", f, len(m.sent))
	}
}

// A handler that returns data which is no change is refused, by name.
func TestDataHandlerRefused(t *testing.T) {
	for hook, data := range map[string]string{"before_call": `{"instrction":"x"}`, "request": `{"sections":[]}`} {
		m := &model{}
		p, err := pipeline.NewPlugin("data", pipeline.On(hook, pipeline.DataHandler(
			func(context.Context, pipeline.Event) (datasets.Value, error) { return datasets.RawValue(data), nil })))
		if err != nil {
			t.Fatal(err)
		}
		call := ask(t, caller(m), program(t, routeYAML).WithPlugins(p), pipeline.Ask{Inputs: ticket("x")})
		if f := call.Failure; f == nil || f.Code != "plugin-change" || f.Plugin != "data" || string(f.Hook) != hook || len(m.sent) > 0 {
			t.Errorf("%s: got %+v with %d requests, want plugin-change and none", hook, f, len(m.sent))
		}
	}
}
