package pipeline

import (
	"slices"
	"strings"

	"evalrun/internal/conf"
)

// applySettings takes the settings that shape a request.
func (p *Program) applySettings(s *settings, at conf.Node) error {
	if s.ShowName != nil {
		p.showName = *s.ShowName
	}
	switch module, _ := s.Module.Text(); {
	case s.Module.IsZero() || s.Module.Kind() == conf.Null || module == "predict":
	case module == "cot":
		p.cot = true
	default:
		return s.Module.Errorf("settings.module is cot, for reasoning, or predict")
	}
	template := !s.Template.IsZero() && s.Template.Kind() != conf.Null
	switch {
	case s.Adapter != nil && template:
		return at.Errorf("settings has an adapter and a template; a template is a layout of its own: leave one out")
	case s.Adapter != nil:
		l, f := layoutNamed(*s.Adapter)
		if f != nil {
			return at.Member("adapter").Wrap(f)
		}
		p.layout, p.adapter = l, *s.Adapter
	case template:
		l, err := parseLayout(s.Template)
		if err != nil {
			return err
		}
		p.layout, p.template = l, value(s.Template)
	}
	if s.Reader != nil {
		pattern, ok := s.Reader.Pattern.Text()
		if !ok {
			return s.Reader.Pattern.Errorf("settings.reader.pattern must be text")
		}
		r, f := newPatternReader(pattern, value(at.Member("reader")))
		if f != nil {
			return s.Reader.Pattern.Wrap(f)
		}
		p.reader = r
	}
	return p.applyCapabilities(s.Capabilities)
}

func (p *Program) applyCapabilities(n conf.Node) error {
	if n.IsZero() || n.Kind() == conf.Null {
		return nil
	}
	if n.Kind() != conf.Map {
		return n.Errorf("settings.capabilities must be a map of what the model can do, such as {native_reasoning: true}")
	}
	for _, m := range n.Members() {
		if factNamed(&Facts{}, m.Key) == nil {
			if near := conf.Suggest(m.Key, factNames); near != "" {
				return m.Errorf("unknown capability %q; did you mean %q?", m.Key, near)
			}
			return m.Errorf("unknown capability %q; known are %s", m.Key, strings.Join(factNames, ", "))
		}
		if m.Value.Kind() != conf.Bool {
			return m.Value.Errorf("the capability %s is true or false", m.Key)
		}
	}
	p.capabilities = value(n)
	return nil
}

// factNames are the facts as definitions spell them.
var factNames = []string{
	"instruct", "native_structured_output", "native_function_calling", "stop_sequences", "native_reasoning", "assistant_prefill",
}

func factNamed(f *Facts, name string) *bool {
	fields := []*bool{&f.Instruct, &f.StructuredOutput, &f.ToolCalling, &f.StopSequences, &f.Reasoning, &f.Prefill}
	if i := slices.Index(factNames, name); i >= 0 {
		return fields[i]
	}
	return nil
}

// capable is what a model can do, where the definition does not know better.
func (p *Program) capable(f Facts) Facts {
	for name, v := range p.capabilities.Members() {
		if fact := factNamed(&f, name); fact != nil {
			*fact, _ = v.AsBool()
		}
	}
	return f
}

// parseLayout reads a template: a list of {role, text} and at most one
// {directive: turns}.
func parseLayout(n conf.Node) (*Layout, error) {
	if n.Kind() != conf.List || len(n.Items()) == 0 {
		return nil, n.Errorf("a template is a list of messages, each {role, text}, and at most one {directive: turns}")
	}
	l := &Layout{name: "template", turns: -1}
	for i, item := range n.Items() {
		if directive := item.Member("directive"); !directive.IsZero() {
			name, _ := directive.Text()
			if name != "turns" || len(item.Members()) != 1 {
				return nil, item.Errorf("the one directive is {directive: turns}: the place of worked examples and earlier turns")
			}
			if l.turns >= 0 {
				return nil, item.Errorf("a second {directive: turns}; they have one place")
			}
			l.turns = len(l.messages)
			continue
		}
		m, err := parseMessage(item, i+1)
		if err != nil {
			return nil, err
		}
		if m.role == "system" && (l.turns >= 0 || len(l.messages) > 0 && l.messages[len(l.messages)-1].role != "system") {
			return nil, item.Errorf("system messages come first")
		}
		l.messages = append(l.messages, m)
	}
	if len(l.messages) == 0 {
		return nil, n.Errorf("the template has no message")
	}
	if last := len(l.messages) - 1; l.messages[last].role == "assistant" {
		return nil, n.Items()[len(n.Items())-1].Errorf("the last message is the assistant's: beginning its reply for it is not supported")
	}
	if l.turns < 0 {
		l.turns = len(l.messages)
		for i, m := range slices.Backward(l.messages) {
			if m.role == "user" {
				l.turns = i
				break
			}
		}
	}
	return l, nil
}

var roles = []string{"system", "developer", "user", "assistant"}

func parseMessage(n conf.Node, number int) (layoutMessage, error) {
	var d struct {
		Role string `conf:"role,required"`
		Text string `conf:"text,required"`
	}
	if err := conf.Decode(n, &d); err != nil {
		return layoutMessage{}, err
	}
	if !slices.Contains(roles, d.Role) {
		return layoutMessage{}, n.Member("role").Errorf("the role %q is none of %s", d.Role, strings.Join(roles, ", "))
	}
	pieces, f := parseTemplate(d.Text)
	if f != nil {
		return layoutMessage{}, n.Member("text").Wrap(layoutMessage{number: number}.fault(f).why)
	}
	return layoutMessage{d.Role, pieces, number, n.Member("text")}, nil
}
