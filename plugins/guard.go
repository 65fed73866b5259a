package plugins

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// GuardRule says which tool calls are blocked, and why. A call must match all
// that the rule sets.
type GuardRule struct {
	Tools     []string          // by name, path, or path ending; none means every tool
	Arguments map[string]string // RE2 patterns by argument: a name, or a JSON pointer such as /file/path
	Reason    string            // what the model is told; "" means "it is not allowed here"
}

// Guard returns the plugin "guard", which blocks the tool calls that match one of
// the rules, of which there must be one; the first that matches gives the reason.
//
// A pattern is searched for in the argument's text, or in the JSON of an argument
// that is no text; write ^ and $ to match all of it. An argument that was not
// given matches nothing. Where an object names a member twice, each is looked
// at: what the tool will read is not known.
func Guard(rules ...GuardRule) (*pipeline.Plugin, error) {
	if len(rules) == 0 {
		return nil, errors.New("guard: it has no rule, so it would block nothing; give it at least one")
	}
	var compiled []guardRule
	for i, r := range rules {
		c, err := r.compile()
		if err != nil {
			return nil, fmt.Errorf("guard: rule %d: %w", i+1, err)
		}
		compiled = append(compiled, c)
	}
	return pipeline.NewPlugin("guard", pipeline.Version("1.0.0"),
		pipeline.Description("Blocks tools by name, path or argument."),
		pipeline.OnToolCall(func(_ context.Context, e *pipeline.ToolCallEvent) (*pipeline.Change, error) {
			for _, r := range compiled {
				if r.matches(e) {
					return &pipeline.Change{Block: &r.reason}, nil
				}
			}
			return nil, nil
		}))
}

type guardRule struct {
	tools     []string
	arguments []argument
	reason    string
}

type argument struct {
	path    []string // member names and list positions from the input down
	pattern *regexp.Regexp
}

func (r GuardRule) compile() (guardRule, error) {
	c := guardRule{tools: slices.Clone(r.Tools), reason: r.Reason}
	if c.reason == "" {
		c.reason = "it is not allowed here"
	}
	if len(r.Tools) == 0 && len(r.Arguments) == 0 {
		return c, errors.New("it names neither tools nor arguments, so it would block every tool; to offer none, set the tools of calls to an empty list")
	}
	if err := checkNames(r.Tools); err != nil {
		return c, err
	}
	for _, name := range slices.Sorted(maps.Keys(r.Arguments)) {
		pattern, err := regexp.Compile(r.Arguments[name])
		if err != nil {
			return c, fmt.Errorf("the pattern of %q: %w", name, err)
		}
		path := []string{name}
		if rest, ok := strings.CutPrefix(name, "/"); ok {
			path = strings.Split(rest, "/")
			for i, token := range path {
				path[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
			}
		}
		c.arguments = append(c.arguments, argument{path, pattern})
	}
	return c, nil
}

func (r *guardRule) matches(e *pipeline.ToolCallEvent) bool {
	if len(r.tools) > 0 && !anyNames(r.tools, e) {
		return false
	}
	for _, a := range r.arguments {
		if !a.in(e.Input, a.path) {
			return false
		}
	}
	return true
}

// in reports whether the pattern matches a value at the path below v.
func (a *argument) in(v datasets.Value, path []string) bool {
	if len(path) == 0 {
		return a.pattern.MatchString(v.String())
	}
	for name, member := range v.Members() {
		if name == path[0] && a.in(member, path[1:]) {
			return true
		}
	}
	i := 0
	for element := range v.Elements() {
		if strconv.Itoa(i) == path[0] {
			return a.in(element, path[1:])
		}
		i++
	}
	return false
}
