package metrics

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"evalrun/harness"
	"evalrun/internal/conf"
)

// Spec is a metric as a spec file names it: by its name alone, or as a map whose
// one key is the name and whose value are options.
type Spec struct {
	Kind    string
	at      conf.Node
	options conf.Node // none when they were not given
}

// Named is the metric of that name without options.
func Named(kind string) Spec { return Spec{Kind: kind} }

// DecodeConf reads a spec from its place in a file.
func (s *Spec) DecodeConf(n conf.Node) error {
	*s = Spec{at: n}
	if name, ok := n.Text(); ok {
		s.Kind = name
		return nil
	}
	members := n.Members()
	if len(members) != 1 {
		return n.Errorf("a metric is a name, or a map of one name to its options: {number: {tolerance: 0.01}}")
	}
	s.Kind = members[0].Key
	switch options := members[0].Value; options.Kind() {
	case conf.Null:
	case conf.Map:
		s.options = options
	default:
		return options.Errorf("the options of %s must be a map: {%s: {name: …}}", s.Kind, s.Kind)
	}
	return nil
}

// Plain reports whether the spec is a name alone.
func (s Spec) Plain() bool { return s.options.IsZero() }

// Errorf is an error at the spec's place in its file.
func (s Spec) Errorf(format string, args ...any) error {
	if s.at.IsZero() {
		return fmt.Errorf(format, args...)
	}
	return s.at.Errorf(format, args...)
}

// Options are what metrics are made with.
type Options struct {
	Outputs []string // the program's outputs; nil when they are not known
	Answers []string // those that every row has a right answer for: see [Answers]
	Own     []string // names of metrics that are known elsewhere, for suggestions
	Dir     string   // the folder that files named by options are relative to

	// AllowExec allows metrics that are commands. Each is run for every answer,
	// with this process's rights.
	AllowExec bool

	// Judge finds what a judge is asked with; nil where no model can be asked.
	Judge func(ctx context.Context, a Asking) (Environment, error)

	Stderr io.Writer // where Starlark prints; nil drops it
}

// New makes the metrics of a spec. Without options exact_match brings the metric
// of each answer along when there are several; all others are one metric. An
// error names what is wrong, its place, and the names there are.
func New(ctx context.Context, s Spec, o Options) ([]harness.Metric, error) {
	if s.Plain() {
		switch output, isMatch := strings.CutSuffix(s.Kind, matchSuffix); {
		case s.Kind == exactMatchName:
			return exactMatches(o.Answers), nil
		case isMatch && slices.Contains(o.Answers, output):
			return []harness.Metric{exactMatch{name: s.Kind, output: output}}, nil
		}
	}
	build, ok := kinds[s.Kind]
	if !ok {
		return nil, s.unknown(o)
	}
	m, err := build(&builder{ctx, s, o})
	if err != nil {
		return nil, err
	}
	return []harness.Metric{m}, nil
}

// unknown says that there is no such metric.
func (s Spec) unknown(o Options) error {
	known := slices.Clone(names)
	for _, output := range o.Answers {
		known = append(known, output+matchSuffix)
	}
	known = append(known, o.Own...)
	if near := conf.Suggest(s.Kind, known); near != "" {
		return s.Errorf("there is no metric %q; did you mean %s?", s.Kind, near)
	}
	return s.Errorf("there is no metric %q; there are %s", s.Kind, strings.Join(known, ", "))
}

// A builder makes one metric of a spec.
type builder struct {
	ctx context.Context
	Spec
	Options
}

// decode fills a struct of options, and gives it a name when it has none.
func (b *builder) decode(dst any, name *string) error {
	if !b.options.IsZero() {
		if err := conf.Decode(b.options, dst); err != nil {
			return err
		}
	}
	if *name == "" {
		*name = b.Kind
	}
	return nil
}

// at is an error about an option, at its place.
func (b *builder) at(option, format string, args ...any) error {
	if n := b.options.Member(option); !n.IsZero() {
		return n.Errorf(format, args...)
	}
	return b.Errorf(format, args...)
}

// oneOf refuses an option's value that is none of those there are. The first one
// stands for "".
func (b *builder) oneOf(option string, value *string, values ...string) error {
	if *value == "" {
		*value = values[0]
	}
	if slices.Contains(values, *value) {
		return nil
	}
	if near := conf.Suggest(*value, values); near != "" {
		return b.at(option, "%s: there is no %q; did you mean %q?", option, *value, near)
	}
	return b.at(option, "%s: there is no %q; there are %s", option, *value, strings.Join(values, ", "))
}

// file is the path of a file that an option names.
func (b *builder) file(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(b.Dir, name)
}
