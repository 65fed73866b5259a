package plugins

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// Rule says which tool calls a person is asked about. The zero Rule asks about
// none.
type Rule struct {
	about about
	names []string
}

type about int

const (
	nothing about = iota
	changes
	everything
	listed
)

// AboutChanges asks about every tool that may change something: all but those
// whose effects are declared to be "reads".
func AboutChanges() Rule { return Rule{about: changes} }

// AboutAll asks about every tool call.
func AboutAll() Rule { return Rule{about: everything} }

// AboutTools asks about the tools named: by name, path, or path ending. There must
// be one.
func AboutTools(names ...string) Rule { return Rule{listed, slices.Clone(names)} }

// ParseRule reads a rule as configurations spell it: "changes", "all", a list of
// names, or null for none.
func ParseRule(v datasets.Value) (Rule, error) {
	switch word, _ := v.AsText(); {
	case v.IsZero() || v.IsNull():
		return Rule{}, nil
	case word == "changes":
		return AboutChanges(), nil
	case word == "all":
		return AboutAll(), nil
	case v.Kind() != '[':
		return Rule{}, fmt.Errorf(`an approval rule is "changes", "all" or a list of tools, not %s`, v.JSON())
	}
	r := AboutTools()
	for name := range v.Elements() {
		s, ok := name.AsText()
		if !ok {
			return Rule{}, fmt.Errorf("an approval rule lists tools by name or path, not %s", name.JSON())
		}
		r.names = append(r.names, s)
	}
	return r, r.check()
}

func (r Rule) check() error {
	if r.about == listed && len(r.names) == 0 {
		return errors.New("it names no tool, so nobody would be asked about any; name at least one")
	}
	return checkNames(r.names)
}

// covers reports whether the rule asks about a tool call.
func (r Rule) covers(e *pipeline.ToolCallEvent) bool {
	switch r.about {
	case changes:
		return e.Effects != pipeline.EffectsRead
	case everything:
		return true
	}
	return anyNames(r.names, e)
}

// reason says why a person is asked.
func (r Rule) reason() string {
	switch r.about {
	case changes:
		return "it may change something"
	case everything:
		return "every tool call is asked about"
	}
	return "it is one of those to ask about"
}

// Approval returns the plugin "approval", which asks a person about the tool
// calls its rule covers, or has decide answer for one. Without a decide, a
// conversation's turn waits for the person, and a plain call, where nobody can be
// asked, fails with approval-required.
func Approval(rule Rule, decide pipeline.Decide) (*pipeline.Plugin, error) {
	if err := rule.check(); err != nil {
		return nil, fmt.Errorf("approval: %w", err)
	}
	return pipeline.NewPlugin("approval", pipeline.Version("1.0.0"),
		pipeline.Description("Asks a person before a tool runs."),
		pipeline.OnToolCall(func(ctx context.Context, e *pipeline.ToolCallEvent) (*pipeline.Change, error) {
			if !rule.covers(e) {
				return nil, nil
			}
			_, err := e.Ask(ctx, rule.reason(), decide)
			return nil, err
		}))
}

// names reports whether a name given by a person names the tool call: its tool's
// name, its path, or an ending of the path in whole segments.
func names(name string, e *pipeline.ToolCallEvent) bool {
	return name == e.Name || name == e.Path || strings.HasSuffix(e.Path, "/"+name)
}

func anyNames(list []string, e *pipeline.ToolCallEvent) bool {
	return slices.ContainsFunc(list, func(name string) bool { return names(name, e) })
}

func checkNames(list []string) error {
	for _, name := range list {
		if strings.Trim(name, " /") != name || name == "" {
			return fmt.Errorf("%q names no tool: give its name, a path such as assistant/search, or the end of one", name)
		}
	}
	return nil
}
