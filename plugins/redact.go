package plugins

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// RedactOptions say what is hidden.
type RedactOptions struct {
	// Key is the secret that placeholders are made with, at least 16 bytes. The
	// same text has the same placeholder in every run with the same key, so that
	// requests stay the same from run to run. There is no key of its own accord: a
	// phone number can be guessed from a placeholder that was made without a
	// secret.
	Key []byte

	Kinds    []string          // of "email", "phone", "card" and "key"; nil means all four
	Patterns map[string]string // the user's own kinds, as RE2 patterns by name; of a pattern with groups, the first is hidden
	Except   []string          // texts that are never hidden, such as one's own support address
}

// Redactor hides texts behind placeholders such as [email:bdfkcaapmnoh], and
// knows what it hid. What it knows is in its memory alone: no record has it. It is
// safe for concurrent use.
type Redactor struct {
	key     []byte
	finders []finder
	except  []string
	plugin  *pipeline.Plugin

	// What can be a placeholder of this redactor is left alone, so that hiding
	// twice is hiding once, also of what another process hid with the same key.
	placeholder *regexp.Regexp

	mu     sync.Mutex
	hidden map[string]string // what was hidden, by placeholder
}

// finder finds the texts of a kind: the places [begin, end) in a text.
type finder struct {
	kind string
	find func(text string) [][]int
}

var kindName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

// Redact returns a redactor; its Plugin hides, in this order of a turn,
//
//   - in the inputs of a conversation's turn, before it is recorded,
//   - in requests: system text and messages, those of earlier turns included,
//   - in what tools are given, and in what they return.
//
// A plain call has no hook that could change its inputs: the model is not sent
// what is hidden, but the call's record keeps the inputs as they were given. A
// request that was changed makes its call not replayable. Neither happens in a
// conversation, whose turns are hidden from before anything else sees them.
//
// Finding is by patterns. They miss what is spelled otherwise, names of people
// above all, and take some innocent numbers for telephone numbers.
func Redact(o RedactOptions) (*Redactor, error) {
	r := &Redactor{key: slices.Clone(o.Key), except: slices.Clone(o.Except), hidden: map[string]string{}}
	if len(o.Key) < 16 {
		return nil, errors.New("redact: it needs a key of at least 16 bytes that others do not know")
	}
	for _, name := range slices.Sorted(maps.Keys(o.Patterns)) {
		f, err := ownFinder(name, o.Patterns[name])
		if err != nil {
			return nil, fmt.Errorf("redact: the pattern %q: %w", name, err)
		}
		r.finders = append(r.finders, f)
	}
	for _, kind := range o.Kinds {
		if !slices.ContainsFunc(builtinFinders, func(f finder) bool { return f.kind == kind }) {
			return nil, fmt.Errorf("redact: there is no kind %q; there are email, phone, card and key, and own Patterns", kind)
		}
	}
	for _, f := range builtinFinders {
		if o.Kinds == nil || slices.Contains(o.Kinds, f.kind) {
			r.finders = append(r.finders, f)
		}
	}
	if r.finders == nil {
		return nil, errors.New("redact: it has neither kinds nor patterns, so it would hide nothing")
	}
	var kinds []string
	for _, f := range r.finders {
		kinds = append(kinds, f.kind)
	}
	r.placeholder = regexp.MustCompile(`\[(?:` + strings.Join(kinds, "|") + `):[a-p]{12}\]`)
	var err error
	r.plugin, err = pipeline.NewPlugin("redact", pipeline.Version("1.0.0"),
		pipeline.Description("Hides addresses, numbers and keys from models and tools."),
		pipeline.OnTurnStart(r.turnStart), pipeline.OnRequest(r.request),
		pipeline.OnToolCall(r.toolCall), pipeline.OnToolResult(r.toolResult))
	return r, err
}

func ownFinder(name, pattern string) (finder, error) {
	if !kindName.MatchString(name) {
		return finder{}, errors.New("its name must match " + kindName.String())
	}
	if slices.ContainsFunc(builtinFinders, func(f finder) bool { return f.kind == name }) {
		return finder{}, errors.New("a kind of that name is built in; give it another name")
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return finder{}, err
	}
	if re.MatchString("") {
		return finder{}, errors.New("it matches the empty text")
	}
	return patterns(name, re), nil
}

// Plugin is the plugin "redact".
func (r *Redactor) Plugin() *pipeline.Plugin { return r.plugin }

// Hide returns the text with placeholders for what is to be hidden.
func (r *Redactor) Hide(text string) (string, error) {
	for _, f := range r.finders {
		var err error
		if text, err = r.hideOf(f, text); err != nil {
			return "", err
		}
	}
	return text, nil
}

// Restore returns the text with what is behind each placeholder that this
// redactor made. Placeholders it does not know stay.
func (r *Redactor) Restore(text string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.placeholder.ReplaceAllStringFunc(text, func(p string) string {
		if original, ok := r.hidden[p]; ok {
			return original
		}
		return p
	})
}

// hideOf hides the texts of one kind between the placeholders that are there.
func (r *Redactor) hideOf(f finder, text string) (string, error) {
	var b strings.Builder
	at := 0
	hide := func(piece string) error {
		from := 0
		for _, place := range f.find(piece) {
			found := piece[place[0]:place[1]]
			if slices.Contains(r.except, found) {
				continue
			}
			p, err := r.placeholderOf(f.kind, found)
			if err != nil {
				return err
			}
			b.WriteString(piece[from:place[0]])
			b.WriteString(p)
			from = place[1]
		}
		b.WriteString(piece[from:])
		return nil
	}
	for _, place := range r.placeholder.FindAllStringIndex(text, -1) {
		if err := hide(text[at:place[0]]); err != nil {
			return "", err
		}
		b.WriteString(text[place[0]:place[1]])
		at = place[1]
	}
	err := hide(text[at:])
	return b.String(), err
}

// placeholderOf is [kind:letters]. The letters are a keyed hash, four bits each,
// and no digits, in which a finder could find something again.
func (r *Redactor) placeholderOf(kind, found string) (string, error) {
	mac := hmac.New(sha256.New, r.key)
	mac.Write([]byte(kind + "\x00" + found))
	letters := make([]byte, 0, 12)
	for _, b := range mac.Sum(nil)[:6] {
		letters = append(letters, 'a'+b>>4, 'a'+b&15)
	}
	p := "[" + kind + ":" + string(letters) + "]"
	r.mu.Lock()
	defer r.mu.Unlock()
	if other, ok := r.hidden[p]; ok && other != found {
		return "", fmt.Errorf("two texts have the placeholder %s; use another key", p)
	}
	r.hidden[p] = found
	return p, nil
}

// value hides in a value's texts, member names and numbers, in order; it returns
// v itself when there is nothing to hide.
func (r *Redactor) value(v datasets.Value) (datasets.Value, error) {
	switch v.Kind() {
	case '"', '0':
		text := v.String()
		hidden, err := r.Hide(text)
		if err != nil || hidden == text {
			return v, err
		}
		return datasets.Text(hidden), nil
	case '[', '{':
		return r.nested(v)
	}
	return v, nil
}

// nested hides in a list or an object, apart from the members to keep.
func (r *Redactor) nested(v datasets.Value, keep ...string) (datasets.Value, error) {
	isObject := v.Kind() == '{'
	parts := []string{}
	changed := false
	for name, part := range partsOf(v) {
		hidden := part
		if !slices.Contains(keep, name) {
			var err error
			if hidden, err = r.value(part); err != nil {
				return v, err
			}
		}
		changed = changed || hidden.JSON() != part.JSON()
		text := hidden.JSON()
		if isObject {
			key, err := r.Hide(name)
			if err != nil {
				return v, err
			}
			changed = changed || key != name
			text = datasets.Text(key).JSON() + ":" + text
		}
		parts = append(parts, text)
	}
	switch {
	case !changed:
		return v, nil
	case isObject:
		return datasets.RawValue("{" + strings.Join(parts, ",") + "}"), nil
	}
	return datasets.RawValue("[" + strings.Join(parts, ",") + "]"), nil
}

// partsOf yields an object's members, or a list's elements under no name.
func partsOf(v datasets.Value) iter.Seq2[string, datasets.Value] {
	if v.Kind() == '{' {
		return v.Members()
	}
	return func(yield func(string, datasets.Value) bool) {
		for element := range v.Elements() {
			if !yield("", element) {
				return
			}
		}
	}
}

// values hides in the values and returns those that changed; nil when none did.
func (r *Redactor) values(vs datasets.Values) (datasets.Values, error) {
	var changed datasets.Values
	for _, name := range vs.Names() {
		hidden, err := r.value(vs[name])
		if err != nil {
			return nil, err
		}
		if hidden.JSON() == vs[name].JSON() {
			continue
		}
		if changed == nil {
			changed = datasets.Values{}
		}
		changed[name] = hidden
	}
	return changed, nil
}

func (r *Redactor) turnStart(_ context.Context, e *pipeline.TurnStartEvent) (*pipeline.Change, error) {
	inputs, err := r.values(e.Inputs())
	if err != nil || inputs == nil {
		return nil, err
	}
	return &pipeline.Change{Inputs: inputs}, nil
}

func (r *Redactor) request(_ context.Context, e *pipeline.RequestEvent) (*pipeline.Request, error) {
	req := e.Request
	changed := false
	text := func(s *string) error {
		hidden, err := r.Hide(*s)
		changed = changed || hidden != *s
		*s = hidden
		return err
	}
	if err := text(&req.System); err != nil {
		return nil, err
	}
	for _, m := range req.Messages {
		for i := range m.Parts {
			part := &m.Parts[i]
			if part.Raw.IsZero() {
				if err := text(&part.Text); err != nil {
					return nil, err
				}
				continue
			}
			// Not in what says what the part is and ties a tool's result to its call.
			hidden, err := r.nested(part.Raw, "type", "id", "name")
			if err != nil {
				return nil, err
			}
			changed = changed || hidden.JSON() != part.Raw.JSON()
			part.Raw = hidden
		}
	}
	if !changed {
		return nil, nil
	}
	return req, nil
}

func (r *Redactor) toolCall(_ context.Context, e *pipeline.ToolCallEvent) (*pipeline.Change, error) {
	if e.Input.Kind() != '{' {
		// Only an object's members can be replaced.
		hidden, err := r.value(e.Input)
		if err != nil || hidden.JSON() == e.Input.JSON() {
			return nil, err
		}
		return &pipeline.Change{Block: new("its input has something that must not be passed on; give it as an object")}, nil
	}
	var inputs datasets.Values
	for name, v := range e.Input.Members() {
		// Members can be replaced, not renamed.
		if hidden, err := r.Hide(name); err != nil {
			return nil, err
		} else if hidden != name {
			return &pipeline.Change{Block: new("the name of a member of its input must not be passed on; give it as a value")}, nil
		}
		hidden, err := r.value(v)
		if err != nil {
			return nil, err
		}
		// Of members of one name the last counts, and replacing takes the others away.
		if _, again := inputs[name]; again || hidden.JSON() != v.JSON() {
			if inputs == nil {
				inputs = datasets.Values{}
			}
			inputs[name] = hidden
		}
	}
	if inputs == nil {
		return nil, nil
	}
	return &pipeline.Change{Inputs: inputs}, nil
}

func (r *Redactor) toolResult(_ context.Context, e *pipeline.ToolResultEvent) (*pipeline.Change, error) {
	hidden, err := r.Hide(e.Output)
	if err != nil || hidden == e.Output {
		return nil, err
	}
	return &pipeline.Change{Output: &hidden}, nil
}
