package provider

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// untaken are the settings that a model's service does not take: they are left
// out of its requests, and that is said once of each. It is safe for concurrent use.
type untaken struct {
	model string // as the run calls it
	warn  func(string)

	mu      sync.Mutex
	told    map[string]bool
	refused map[string]string // what the service does not take, and its words for it
}

func newUntaken(o Options) *untaken {
	return &untaken{model: o.Name, warn: o.Warn, told: map[string]bool{}, refused: map[string]string{}}
}

// leave says that a setting is left out, the first time.
func (u *untaken) leave(setting, why string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.told[setting] && u.warn != nil {
		u.warn(fmt.Sprintf("model %s: %s is left out of its requests: %s", u.model, setting, why))
	}
	u.told[setting] = true
}

// refuses reports whether the service said that its model does not take this.
func (u *untaken) refuses(what string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.refused[what] != ""
}

// leaves reports whether a setting is to be left out because the service said so,
// and says it.
func (u *untaken) leaves(setting string) bool {
	u.mu.Lock()
	words := u.refused[setting]
	u.mu.Unlock()
	if words != "" {
		u.leave(setting, words)
	}
	return words != ""
}

// refusable is a part of a request that some models of a service do not take, and
// the words by which the service names it when it says so.
type refusable struct {
	what  string
	names []string
}

// refusableSetting is a setting that a service may know by another name. A name
// that may be a word of the language as well counts in quotes, or before a colon.
func refusableSetting(name, sent string) refusable {
	r := refusable{what: name}
	for _, n := range []string{name, sent} {
		if low := strings.ToLower(n); low != n || strings.ContainsAny(n, "_0123456789") || n == "temperature" {
			r.names = append(r.names, low)
		} else {
			r.names = append(r.names, "`"+n+"`", "'"+n+"'", `"`+n+`"`, n+":")
		}
	}
	return r
}

// notTaken are the words of services about what a model does not take at all. A
// value that is out of bounds is put otherwise: that is for whoever wrote it.
var notTaken = []string{
	"deprecated for this model", "not support", "unsupported", "not enabled", "cannot both be specified",
	"does not match any of the expected tags", "extra inputs are not permitted", "cannot find field",
}

// asking asks, and again as long as the answer says of something that was sent
// that the model does not take it. What was sent is what ask says.
func (u *untaken) asking(ask func() (a *answer, sent []refusable, err error)) (*answer, error) {
	for again := 0; ; again++ {
		a, sent, err := ask()
		if err == nil || again == mostLearned || !u.learn(err, sent) {
			return a, err
		}
	}
}

// learn reports whether an error says that the model does not take one of the
// parts that were sent, and remembers the first such: the request can then be
// sent again without it.
func (u *untaken) learn(err error, sent []refusable) bool {
	f, ok := errors.AsType[*pipeline.Failure](err)
	if !ok || f.Code != "http-400" {
		return false
	}
	said := strings.ToLower(f.Message)
	in := func(word string) bool { return strings.Contains(said, word) }
	if !slices.ContainsFunc(notTaken, in) {
		return false
	}
	i := slices.IndexFunc(sent, func(r refusable) bool { return slices.ContainsFunc(r.names, in) })
	if i < 0 {
		return false
	}
	_, words, _ := strings.Cut(f.Message, "answered 400: ")
	u.refuse(sent[i].what, "the service says: "+words)
	return true
}

// refuse remembers that the model does not take this, in the service's words.
func (u *untaken) refuse(what, words string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.refused[what] = words
}

// mostLearned is how often one request is sent again because of what the service
// said it does not take.
const mostLearned = 16

// noSetting is why a setting is left out that is known from other services.
const noSetting = "the service has no such setting"

// stops are the stop sequences of a setting: one text, or a list of them.
func stops(v datasets.Value) []string {
	if s, ok := v.AsText(); ok {
		return []string{s}
	}
	var list []string
	for e := range v.Elements() {
		if s, ok := e.AsText(); ok {
			list = append(list, s)
		}
	}
	return list
}

// replyForm is what a response_format asks for: a schema, with or without a
// wrapping json_schema; or any JSON at all.
func replyForm(v datasets.Value) (schema datasets.Value, anyJSON bool) {
	switch kind, _ := v.Member("type").AsText(); kind {
	case "json_schema":
		if schema = v.Member("schema"); schema.IsZero() {
			schema = v.Member("json_schema").Member("schema")
		}
	case "json_object":
		anyJSON = true
	}
	return schema, anyJSON
}

// toolChoice is what a tool_choice asks for, in the words of chat completions: auto,
// none, required, or a tool's name; "" when it is in a form of its own.
func toolChoice(v datasets.Value) (word, tool string) {
	if word, ok := v.AsText(); ok {
		return word, ""
	}
	tool, _ = v.Member("function").Member("name").AsText()
	return "", tool
}

// thinking is how much a model is to reason before it answers.
type thinking struct {
	effort string // one of efforts; "" when tokens says it
	tokens int64  // at most so many tokens
}

// efforts are the words for how hard to reason, and how many tokens they stand
// for where a service counts tokens.
var efforts = []struct {
	word   string
	tokens int64
}{{"none", 0}, {"minimal", 1024}, {"low", 2048}, {"medium", 8192}, {"high", 16384}, {"xhigh", 24576}, {"max", 24576}}

// readThinking reads the setting reasoning: {effort: …}, {budget_tokens: …}, or the
// effort alone, which may be called reasoning_effort too. set is false when there
// is none.
func readThinking(config datasets.Values, u *untaken) (t thinking, set bool, err error) {
	setting := given(config["reasoning"])
	if setting.IsZero() {
		setting = given(config["reasoning_effort"])
	}
	if setting.IsZero() {
		return t, false, nil
	}
	t.effort, _ = setting.AsText()
	for name, v := range setting.Members() {
		switch name {
		case "effort":
			t.effort = v.String()
		case "budget_tokens":
			n, ok := v.AsInt()
			if !ok || n < 0 {
				return t, true, wrongSetting("reasoning.budget_tokens is %s; it is a number of tokens", v.JSON())
			}
			return thinking{tokens: n}, true, nil
		default:
			u.leave("reasoning."+name, noSetting)
		}
	}
	words := make([]string, len(efforts))
	for i, e := range efforts {
		if words[i] = e.word; e.word == t.effort {
			t.tokens = e.tokens
			return t, true, nil
		}
	}
	return t, true, wrongSetting("reasoning is %s; write {effort: …} with one of %s, or {budget_tokens: …}", setting.JSON(), strings.Join(words, ", "))
}

// off reports whether the model is not to reason.
func (t thinking) off() bool { return t.tokens == 0 }

// wrongSetting is the failure of a request with a setting that cannot be sent.
func wrongSetting(format string, args ...any) error {
	return pipeline.Failf(pipeline.TypeRefusal, "setting", format, args...)
}

// ownMembers refuses settings that are no settings: what requests say themselves.
func (o Options) ownMembers(own map[string]string) error {
	for _, name := range o.Config.Names() {
		if instead, is := own[name]; is {
			return fmt.Errorf("%s is no setting of a model: %s", name, instead)
		}
	}
	return nil
}
