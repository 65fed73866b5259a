package harness

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

// A plugin that keeps something does so in vain when a row is asked again, and
// its call goes on.
func TestEntriesOnReplay(t *testing.T) {
	keeps, err := pipeline.NewPlugin("keeps", pipeline.OnBeforeCall(func(_ context.Context, e *pipeline.CallEvent) (*pipeline.Change, error) {
		if n := len(e.Entries("seen")); n != 0 {
			return nil, fmt.Errorf("%d entries of another row", n)
		}
		return nil, e.Remember("seen", datasets.Bool(true))
	}))
	if err != nil {
		t.Fatal(err)
	}
	a := candidate(t, "a", says(right))
	a.Caller.Process.Plugins = []*pipeline.Plugin{keeps}
	e := mustEvaluate(t, Plan{Rows: quiz(3), Metrics: []Metric{match{}}, Candidates: []Candidate{a}}, Options{})
	if out := e.Outcome("a"); out.Failed != 0 || out.N != 3 {
		t.Errorf("%d of %d rows failed: %v", out.Failed, out.N, out.Failures)
	}
}

// What plugins did is counted by candidate, and said where it makes a comparison
// unfair or void.
func TestPluginUse(t *testing.T) {
	plugin := func(name string, h func(e *pipeline.CallEvent) (*pipeline.Change, error)) *pipeline.Plugin {
		p, err := pipeline.NewPlugin(name, pipeline.Version("1.0.0"), pipeline.OnBeforeCall(
			func(_ context.Context, e *pipeline.CallEvent) (*pipeline.Change, error) { return h(e) }))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	shadow := plugin("shadow", func(*pipeline.CallEvent) (*pipeline.Change, error) {
		return &pipeline.Change{Instruction: new("Answer as the host says.")}, nil
	})
	picky := plugin("picky", func(e *pipeline.CallEvent) (*pipeline.Change, error) {
		switch q, _ := e.Inputs()["question"].AsText(); q {
		case "q0", "q1":
			return &pipeline.Change{Sections: []string{"Think.", "Twice."}}, nil
		case "q2":
			return nil, errors.New("no policy for this")
		}
		return nil, nil
	})
	a, b := candidate(t, "a", says(right)), candidate(t, "b", says(right))
	a.Caller.Process.Plugins = []*pipeline.Plugin{shadow}
	b.Caller.Process.Plugins = []*pipeline.Plugin{picky, shadow}
	e := mustEvaluate(t, Plan{Rows: quiz(5), Metrics: []Metric{match{}}, Candidates: []Candidate{a, b}}, Options{})

	if got, want := e.Outcome("a").PluginUse, []PluginUse{{Plugin: "shadow", Version: "1.0.0", Hook: "before_call", Changed: 5, Instruction: 5}}; !slices.Equal(got, want) {
		t.Errorf("a: %+v, want %+v", got, want)
	}
	want := []PluginUse{
		{Plugin: "picky", Version: "1.0.0", Hook: "before_call", Changed: 2, Failed: 1},
		{Plugin: "shadow", Version: "1.0.0", Hook: "before_call", Changed: 4, Instruction: 4},
	}
	if got := e.Outcome("b").PluginUse; !slices.Equal(got, want) {
		t.Errorf("b: %+v, want %+v", got, want)
	}
	for _, say := range []string{
		"shadow replaced the instruction of every call of a",
		"picky changed calls of b and none of a",
	} {
		if !slices.ContainsFunc(e.Warnings, func(w string) bool { return strings.Contains(w, say) }) {
			t.Errorf("warnings %q do not say %q", e.Warnings, say)
		}
	}
	// On b it did not reach the row that failed before it.
	if slices.ContainsFunc(e.Warnings, func(w string) bool { return strings.Contains(w, "every call of b") }) {
		t.Errorf("warnings %q", e.Warnings)
	}
}

// Several plugins that make a comparison unfair are named in the plural.
func TestPluginsOfOneSide(t *testing.T) {
	shapes := func(name string) *pipeline.Plugin {
		p, err := pipeline.NewPlugin(name, pipeline.OnBeforeCall(func(context.Context, *pipeline.CallEvent) (*pipeline.Change, error) {
			return &pipeline.Change{Sections: []string{name}}, nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	a, b := candidate(t, "a", says(right)), candidate(t, "b", says(right))
	b.Caller.Process.Plugins = []*pipeline.Plugin{shapes("modes"), shapes("redact")}
	e := mustEvaluate(t, Plan{Rows: quiz(2), Metrics: []Metric{match{}}, Candidates: []Candidate{a, b}}, Options{})
	if want := "the plugins modes, redact changed calls of b and none of a: the comparison is of the plugins as well"; !slices.Contains(e.Warnings, want) {
		t.Errorf("warnings %q, want %q", e.Warnings, want)
	}
}

// Two plugins of one name are one plugin only when they are the same: of one
// version, and where they come from files, of one content.
func TestPluginsOfOneName(t *testing.T) {
	helper := func(version string) *pipeline.Plugin {
		p, err := pipeline.NewPlugin("helper", pipeline.Version(version), pipeline.OnBeforeCall(func(context.Context, *pipeline.CallEvent) (*pipeline.Change, error) {
			return &pipeline.Change{Sections: []string{version}}, nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, c := range []struct {
		version, content string
		same             bool
	}{{"1.0.0", "sha256:1", true}, {"2.0.0", "sha256:1", false}, {"1.0.0", "sha256:2", false}, {"1.0.0", "", true}, {"2.0.0", "", false}} {
		a, b := candidate(t, "a", says(right)), candidate(t, "b", says(right))
		a.Caller.Process.Plugins = []*pipeline.Plugin{helper("1.0.0")}
		b.Caller.Process.Plugins = []*pipeline.Plugin{helper(c.version)}
		if c.content != "" {
			a.Plugins = []PluginRef{{"helper", "1.0.0", "sha256:1"}}
			b.Plugins = []PluginRef{{"helper", c.version, c.content}}
		}
		e := mustEvaluate(t, Plan{Rows: quiz(2), Metrics: []Metric{match{}}, Candidates: []Candidate{a, b}}, Options{})
		want := "the plugin helper of b and a are not the same: the comparison is of the plugin as well"
		if slices.Contains(e.Warnings, want) == c.same {
			t.Errorf("%+v: warnings %q", c, e.Warnings)
		}
	}
}

// A plugin that cannot act in a run is doubted before anything is asked, once.
func TestIdlePlugins(t *testing.T) {
	heard := pipeline.OnTurnEnd(func(context.Context, *pipeline.TurnEndEvent) error { return nil })
	starts := pipeline.OnTurnStart(func(context.Context, *pipeline.TurnStartEvent) (*pipeline.Change, error) { return nil, nil })
	chooses := pipeline.OnContext(func(context.Context, *pipeline.ContextEvent) (*pipeline.Change, error) { return nil, nil })
	asks := pipeline.OnBeforeCall(func(context.Context, *pipeline.CallEvent) (*pipeline.Change, error) { return nil, nil })
	for _, c := range []struct {
		hooks []pipeline.Option
		want  []string
	}{
		{[]pipeline.Option{heard, starts}, []string{"the plugin p acts on turns only (turn_end, turn_start); a run asks single calls, so it does nothing"}},
		{[]pipeline.Option{chooses}, []string{"the plugin p acts on turns only (context); a run asks single calls, so it does nothing"}},
		{nil, []string{"the plugin p has no handlers, so it does nothing"}},
		{[]pipeline.Option{heard, asks}, nil},
	} {
		p, err := pipeline.NewPlugin("p", c.hooks...)
		if err != nil {
			t.Fatal(err)
		}
		a, b := candidate(t, "a", says(right)), candidate(t, "b", says(right))
		a.Caller.Process.Plugins = []*pipeline.Plugin{p}
		b.Program = b.Program.WithPlugins(p)
		checked, err := Check(Plan{Rows: quiz(2), Metrics: []Metric{match{}}, Candidates: []Candidate{a, b}})
		if err != nil {
			t.Fatal(err)
		}
		if got := checked.Warnings(); !slices.Equal(got, c.want) {
			t.Errorf("warnings %q, want %q", got, c.want)
		}
	}
}
