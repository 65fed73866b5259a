package app

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"evalrun/datasets"
	"evalrun/internal/canon"
	"evalrun/internal/conf"
	"evalrun/pipeline"
	"evalrun/plugins"
)

// pluginSpec is a plugin as a spec names it: by the name of one the command has or
// the path of a file, or as a map whose one key is the name of a built-in one and
// whose value are its options.
type pluginSpec struct {
	text
	options conf.Node // none when they were not given
}

func (p *pluginSpec) DecodeConf(n conf.Node) error {
	if n.Kind() != conf.Map {
		return p.text.DecodeConf(n)
	}
	members := n.Members()
	if len(members) != 1 {
		return n.Errorf("a plugin is a name, a file, or a map of one name to its options: {guard: {tools: [delete_file]}}")
	}
	p.text = text{members[0].Key, n}
	if o := members[0].Value; o.Kind() != conf.Null {
		p.options = o
	}
	return nil
}

// decode fills a struct of options, when there are any.
func (p *pluginSpec) decode(dst any) error {
	if p.options.IsZero() {
		return nil
	}
	return conf.Decode(p.options, dst)
}

// builtins make the built-in plugins that a spec can name. What each is made of
// comes with it, for the run's identity.
var builtins = map[string]func(w *wiring, p *pluginSpec) (*pipeline.Plugin, datasets.Values, error){
	"guard": guard, "redact": redact, "modes": modes,
}

// notNamed says why a built-in plugin cannot be named, and what there is instead.
var notNamed = map[string]string{
	"approval":   "a spec says whom to ask at its top: approval: changes, all, or a list of tools",
	"budget":     "it acts on turns only, and a run asks single calls, so it would do nothing",
	"compaction": "it acts on turns only, and a run asks single calls, so it would do nothing",
}

// builtin makes a built-in plugin. The same options are the same plugin.
func (w *wiring) builtin(p *pluginSpec) (*pipeline.Plugin, error) {
	made, of, err := builtins[p.s](w, p)
	if err != nil {
		return nil, at(p.text, err)
	}
	hash := datasets.Values{p.s: of.Object()}.Object().Hash()
	for known, info := range w.loaded {
		if info.Kind == kindBuiltin && info.Hash == hash {
			return known, nil
		}
	}
	w.loaded[made] = plugins.LoadInfo{Path: "built in", Hash: hash, Kind: kindBuiltin}
	return made, nil
}

const kindBuiltin = "built-in"

// guardRule is a rule as a spec writes it.
type guardRule struct {
	Tools     names             `conf:"tools"`
	Arguments map[string]string `conf:"arguments"`
	Reason    string            `conf:"reason"`
}

// guard takes one rule, or a list of them.
func guard(_ *wiring, p *pluginSpec) (*pipeline.Plugin, datasets.Values, error) {
	list := make([]guardRule, 1)
	var err error
	switch {
	case p.options.IsZero():
		list = nil
	case p.options.Kind() == conf.List:
		err = p.decode(&list)
	default:
		err = p.decode(&list[0])
	}
	if err != nil {
		return nil, nil, err
	}
	rules := make([]plugins.GuardRule, len(list))
	for i, r := range list {
		rules[i] = plugins.GuardRule{Tools: texts(r.Tools), Arguments: r.Arguments, Reason: r.Reason}
	}
	made, err := plugins.Guard(rules...)
	if err != nil {
		return nil, nil, err
	}
	of, err := datasets.ValueOf(rules)
	return made, datasets.Values{"rules": of}, err
}

// redact takes its key from the environment or from a file. A run is another one
// under another key, since requests are.
func redact(w *wiring, p *pluginSpec) (*pipeline.Plugin, datasets.Values, error) {
	var o struct {
		KeyEnv   text              `conf:"key_env"`
		KeyFile  text              `conf:"key_file"`
		Kinds    names             `conf:"kinds"`
		Patterns map[string]string `conf:"patterns"`
		Except   names             `conf:"except"`
	}
	if err := p.decode(&o); err != nil {
		return nil, nil, err
	}
	key, _, err := (&modelSpec{KeyEnv: o.KeyEnv, KeyFile: o.KeyFile}).key(w.spec.file)
	switch {
	case err != nil:
		return nil, nil, err
	case key == "":
		return nil, nil, p.errorf("redact: it needs a key that others do not know: give key_env, the environment variable that has it, or key_file")
	}
	options := plugins.RedactOptions{Key: []byte(key), Patterns: o.Patterns, Except: texts(o.Except)}
	if o.Kinds != nil {
		options.Kinds = texts(o.Kinds)
	}
	redactor, err := plugins.Redact(options)
	if err != nil {
		return nil, nil, err
	}
	options.Key = nil
	of, err := datasets.ValueOf(options)
	return redactor.Plugin(), datasets.Values{"key": datasets.Text(canon.Hash([]byte(key))), "options": of}, err
}

// modes takes the section of each mode, and the mode of calls whose conversation
// has none.
func modes(_ *wiring, p *pluginSpec) (*pipeline.Plugin, datasets.Values, error) {
	var o struct {
		Sections map[string]string `conf:"sections,required"`
		Initial  string            `conf:"initial"`
	}
	if p.options.IsZero() {
		return nil, nil, p.errorf("modes: it has no mode: {modes: {sections: {brief: Answer in one sentence.}, initial: brief}}")
	}
	if err := p.decode(&o); err != nil {
		return nil, nil, err
	}
	made, err := plugins.Modes(o.Sections, o.Initial)
	if err != nil {
		return nil, nil, err
	}
	of, err := datasets.ValueOf(o.Sections)
	return made, datasets.Values{"sections": of, "initial": datasets.Text(o.Initial)}, err
}

// approvalSpec says which tool calls a person is asked about: changes, all, or the
// tools named.
type approvalSpec struct {
	at   conf.Node // none when nobody is asked
	rule plugins.Rule
}

func (a *approvalSpec) DecodeConf(n conf.Node) error {
	a.at = n
	words := []string{"changes", "all"}
	if word, ok := n.Text(); ok && !slices.Contains(words, word) {
		return n.Errorf("approval is %s or a list of tools, not %q%s", strings.Join(words, ", "), word, didYouMean(word, words))
	}
	v, err := datasets.ParseValue(n.JSON())
	if err == nil {
		a.rule, err = plugins.ParseRule(v)
	}
	if err != nil {
		return n.Errorf("approval: %v", err)
	}
	return nil
}

// approval makes the plugin that asks a person; nil when the spec does not say.
func (w *wiring) approval() (*pipeline.Plugin, error) {
	a := &w.spec.Approval
	if w.approves != nil || a.at.IsZero() || a.at.Kind() == conf.Null {
		return w.approves, nil
	}
	made, err := plugins.Approval(a.rule, nil)
	if err != nil {
		return nil, exit(ExitUsage, a.at.Errorf("%v", err))
	}
	w.approves = made
	w.loaded[made] = plugins.LoadInfo{Path: "built in", Hash: canon.Hash(a.at.JSON()), Kind: kindBuiltin}
	return made, nil
}

// checkApproval refuses a rule about a tool that no candidate has: nobody would be
// asked about it. A tool may be named by the end of its path.
func (w *wiring) checkApproval() error {
	for _, n := range w.spec.Approval.at.Items() {
		name, _ := n.Text()
		tool := name[strings.LastIndexByte(name, '/')+1:]
		if !w.tools.known[tool] {
			return exit(ExitUsage, n.Errorf("approval: no candidate's program has a tool %q%s", tool, didYouMean(tool, sortedKeys(w.tools.known))))
		}
	}
	return nil
}

// noPlugin says that a word is neither a plugin's name nor a file.
func (w *wiring) noPlugin(word string) string {
	known := slices.Sorted(maps.Keys(builtins))
	s := fmt.Sprintf("there is no plugin %q%s (built in are %s", word, didYouMean(word, append(sortedKeys(w.env.plugins), known...)), strings.Join(known, ", "))
	if own := sortedKeys(w.env.plugins); own != nil {
		s += "; this evalrun was built with " + strings.Join(own, ", ")
	}
	return s + "; and no file has that path)"
}
