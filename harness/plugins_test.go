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
