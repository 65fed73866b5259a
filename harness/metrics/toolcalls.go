package metrics

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/internal/conf"
	"evalrun/pipeline"
)

// toolCalls compares the tool calls a model asked for with those it should have.
type toolCalls struct {
	named
	Label     string `conf:"label"` // the right answer that lists them
	Meta      string `conf:"meta"`  // or the meta field
	File      string `conf:"file"`  // or the file, by row; none of them: the rated call's own
	Arguments *bool  `conf:"arguments"`
	Ordered   bool   `conf:"ordered"`

	names  bool                      // arguments count for nothing
	byRow  map[string]datasets.Value // of the file
	source string                    // in messages
}

func newToolCalls(b *builder) (harness.Metric, error) {
	m := &toolCalls{}
	if err := b.decode(m, &m.AsName); err != nil {
		return nil, err
	}
	m.names = m.Arguments != nil && !*m.Arguments
	given := 0
	m.source = "the recorded steps"
	for _, from := range []struct{ name, what string }{{m.Label, "the right answer "}, {m.Meta, "the meta field "}, {m.File, "the file "}} {
		if from.name != "" {
			given++
			m.source = from.what + from.name
		}
	}
	if given > 1 {
		return nil, b.Errorf("tool_calls takes what is expected from one of label, meta and file")
	}
	if m.File == "" {
		return m, nil
	}
	data, err := os.ReadFile(b.file(m.File))
	if err != nil {
		return nil, b.at("file", "file: %v", err)
	}
	n, err := conf.Parse(b.file(m.File), data)
	if err != nil {
		return nil, err
	}
	if n.Kind() != conf.Map {
		return nil, n.Errorf("what is expected is a map of row ids to lists of calls, not %s", n.Kind())
	}
	m.byRow = map[string]datasets.Value{}
	for _, row := range n.Members() {
		v := datasets.RawValue(string(row.Value.JSON()))
		if _, err := expectedCalls(v); err != nil {
			return nil, row.Value.Errorf("row %s: %v", row.Key, err)
		}
		m.byRow[row.Key] = v
	}
	return m, nil
}

// wanted is a call that is expected: with any input when it has none.
type wanted struct {
	name  string
	input datasets.Value
}

func (w wanted) String() string {
	if w.input.IsZero() {
		return w.name
	}
	return w.name + w.input.Canonical()
}

// expectedCalls reads a list of calls: each a name, or an object with name and,
// where they count, input or arguments.
func expectedCalls(v datasets.Value) ([]wanted, error) {
	v = parsed(v)
	if v.Kind() != '[' {
		return nil, fmt.Errorf("the expected calls are no list")
	}
	var all []wanted
	for e := range v.Elements() {
		if name, ok := e.AsText(); ok {
			all = append(all, wanted{name: name})
			continue
		}
		var w wanted
		for key, value := range e.Members() {
			switch key {
			case "name":
				w.name, _ = value.AsText()
			case "input", "arguments":
				w.input = parsed(value)
			case "id":
			default:
				return nil, fmt.Errorf("an expected call has name and input, not %q", key)
			}
		}
		if w.name == "" {
			return nil, fmt.Errorf("an expected call has no name: write \"search\" or {\"name\": \"search\", \"input\": {…}}")
		}
		all = append(all, w)
	}
	return all, nil
}

// expected are the row's calls, or why they are not known.
func (m *toolCalls) expected(row datasets.Row) (calls []wanted, missing string) {
	var v datasets.Value
	switch {
	case m.Label != "":
		v = row.Labels[m.Label]
	case m.Meta != "":
		v = row.Meta[m.Meta]
	case m.File != "":
		v = m.byRow[row.ID]
	default:
		if row.Recorded == nil && row.Steps == nil {
			return nil, "the row has no recorded call"
		}
		return called(row.Steps), ""
	}
	if v.IsZero() {
		return nil, m.source + " has no expected calls for the row"
	}
	calls, err := expectedCalls(v)
	if err != nil {
		return nil, m.source + ": " + err.Error()
	}
	return calls, ""
}

// called are the calls that steps ask for.
func called(steps []datasets.Step) []wanted {
	var all []wanted
	for _, s := range steps {
		for _, c := range pipeline.StepCalls(s) {
			all = append(all, wanted{c.Name, c.Input})
		}
	}
	return all
}

func (m *toolCalls) Score(_ context.Context, row datasets.Row, call *pipeline.Call) (harness.Score, error) {
	want, missing := m.expected(row)
	if missing != "" {
		return missed(missing)
	}
	have := called(call.Steps)
	lacking, extra := m.unmatched(want, have)
	common := len(want) - len(lacking)
	if m.Ordered {
		if len(want)*len(have) > maxCells {
			return missed("the calls are too many to be compared in order")
		}
		common = longestCommon(want, have, m.fits)
	}
	var said []string
	if len(lacking) > 0 {
		said = append(said, "missing: "+listed(lacking))
	}
	if len(extra) > 0 {
		said = append(said, "extra: "+listed(extra))
	}
	if said == nil {
		said = []string{"the calls were made in another order"}
	}
	return graded(dice(common, len(want), len(have)), strings.Join(said, "; "))
}

// fits reports whether a call is one that is expected.
func (m *toolCalls) fits(w, c wanted) bool {
	return w.name == c.name && (m.names || w.input.IsZero() || same(w.input, c.input))
}

// unmatched pairs each expected call with one that was made, those first that say
// their input, and returns what is left on both sides.
func (m *toolCalls) unmatched(want, have []wanted) (lacking, extra []wanted) {
	extra = slices.Clone(have)
	for _, stated := range []bool{true, false} {
		for _, w := range want {
			if w.input.IsZero() == stated {
				continue
			}
			if i := slices.IndexFunc(extra, func(c wanted) bool { return m.fits(w, c) }); i >= 0 {
				extra = slices.Delete(extra, i, i+1)
			} else {
				lacking = append(lacking, w)
			}
		}
	}
	return lacking, extra
}

func listed(calls []wanted) string {
	parts := make([]string, len(calls))
	for i, c := range calls {
		parts[i] = c.String()
	}
	return clip(strings.Join(parts, ", "))
}
