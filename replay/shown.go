package replay

import (
	"slices"
	"strings"

	"evalrun/datasets"
	"evalrun/internal/canon"
)

// thread is a growing list of turns. It is only ever added to at its end, by
// the one call whose turns end there, so that others may keep its beginning.
type thread struct {
	turns  []datasets.Turn
	orders []turnOrder
}

// turnOrder is what a turn as recorded has beside its values: the order of its
// fields, and its steps before fields were taken out of them.
type turnOrder struct {
	inputs, outputs []string
	steps           []datasets.Step
}

func (t *thread) add(turn datasets.Turn, order turnOrder) {
	t.turns = append(t.turns, turn)
	t.orders = append(t.orders, order)
}

// cut takes off what is after the first n turns.
func (t *thread) cut(n int) { t.turns, t.orders = t.turns[:n], t.orders[:n] }

// fork is a new thread that begins with the first n turns.
func (t *thread) fork(n int) *thread {
	return &thread{slices.Clone(t.turns[:n]), slices.Clone(t.orders[:n])}
}

// keptCall is what is left of the record of a call that was shown.
type keptCall struct {
	*content
	signature string
	steps     []datasets.Step // nil when they are not there
	noData    bool            // some step is not data
	replies   bool            // content is whole, and every exchange has its request's hash and its reply
}

// keep reads the record of a shown call; steps says whether it was shown with
// its steps anywhere.
func keep(r *Record, values *content, steps bool) *keptCall {
	if values == nil {
		values = readContent(r)
	}
	k := &keptCall{content: values, signature: strings.Clone(r.Program.Signature)}
	if !steps {
		return k
	}
	k.replies = r.Whole()
	for i := range r.Exchanges {
		x := &r.Exchanges[i]
		answered := x.Finish != "" || isSet(x.Extra["finish"])
		if x.RequestHash == "" || answered && !isSet(x.Response) {
			k.replies = false
		}
	}
	if isSet(r.Extra["exchanges"]) {
		k.replies = false
	}
	if r.Steps != nil {
		k.steps = make([]datasets.Step, len(r.Steps))
		for i, s := range r.Steps {
			if k.steps[i] = cloneValue(s); !isData(s) {
				k.noData = true
			}
		}
	}
	return k
}

// madeTurn is a turn as an entry shows it, made once for all calls that were
// shown it.
type madeTurn struct {
	turn    datasets.Turn
	order   turnOrder
	refused *refusal
}

// turn is the turn that an entry stands for.
func (x *contexts) turn(e entry) (datasets.Turn, turnOrder, *refusal) {
	key := e.key()
	m := x.made[key]
	if m == nil {
		m = new(madeTurn)
		if m.refused = x.refuse(e); m.refused == nil {
			m.turn, m.order = x.kept[e.call].shown(e)
		}
		x.made[key] = m
	}
	return m.turn, m.order, m.refused
}

func (e entry) key() string {
	b := []byte(e.call)
	if e.steps {
		b = append(b, " steps"...)
	}
	for _, name := range e.without {
		b = canon.AppendString(b, name)
	}
	return string(b)
}

// refuse says why an entry cannot be shown again; nil when it can.
func (x *contexts) refuse(e entry) *refusal {
	if e.steps && slices.Contains(e.without, "calls") {
		return &refusal{SawTurnInvalid, "call " + e.call + " was shown with its steps and without its tool calls"}
	}
	k := x.kept[e.call]
	if k == nil {
		return &refusal{SawMissingCall, "call " + e.call + ", which it was shown, is not here"}
	}
	notKept := func(what string) *refusal {
		return &refusal{SawNotKept, "call " + e.call + ", which it was shown: " + what}
	}
	left := func(name string) bool { return !slices.Contains(e.without, name) }
	switch {
	case k.truncated:
		return notKept("its record was cut to fit")
	case k.unsaid:
		return notKept("values were left out of its record")
	case slices.ContainsFunc(k.inputsLacking, left) || slices.ContainsFunc(k.outputsLacking, left):
		return notKept("not all its values are in its record as data")
	case e.steps && !k.replies:
		return notKept("its record lacks a request's hash or a reply")
	case e.steps && k.steps == nil:
		return notKept("its record has no steps")
	case e.steps && k.noData:
		return notKept("its steps are not all in its record as data")
	}
	for _, s := range k.steps {
		if field, ok := s.Member("calls_field").AsText(); ok && e.steps && slices.Contains(e.without, field) {
			return &refusal{SawTurnInvalid, "call " + e.call + " was shown with its steps and without its tool calls"}
		}
	}
	return nil
}

// shown is the call as a turn, without the fields that were left out.
func (k *keptCall) shown(e entry) (datasets.Turn, turnOrder) {
	inputs, outputs := k.inputs.without(e.without), k.outputs.without(e.without)
	turn := datasets.Turn{Inputs: inputs.values, Outputs: outputs.values}
	order := turnOrder{inputs: inputs.names, outputs: outputs.names}
	if e.steps {
		order.steps = k.steps
		turn.Steps = stepsWithout(k.steps, e.without)
		turn.Signature = k.signature
	}
	return turn, order
}

func (m members) without(names []string) members {
	if len(names) == 0 && m.values != nil {
		return m
	}
	rest := members{values: datasets.Values{}}
	for _, name := range m.names {
		if !slices.Contains(names, name) {
			rest.set(name, m.values[name])
		}
	}
	return rest
}

// stepsWithout takes fields out of the outputs of model steps. Such a step loses
// the message it was recorded with, which would show the field all the same.
func stepsWithout(steps []datasets.Step, names []string) []datasets.Step {
	if len(names) == 0 {
		return steps
	}
	out := make([]datasets.Step, len(steps))
	for i, s := range steps {
		out[i] = s
		if kind, _ := s.Member("kind").AsText(); kind != "model" {
			continue
		}
		all := readMembers(s.Member("outputs"))
		rest := all.without(names)
		if len(rest.names) == len(all.names) {
			continue
		}
		step := readMembers(s)
		step.set("outputs", rest.object())
		out[i] = step.without([]string{"message"}).object()
	}
	return out
}

// object is the JSON object of the members, in their order.
func (m members) object() datasets.Value {
	return datasets.RawValue(string(appendMembers(nil, m.names, m.values)))
}

func appendMembers(dst []byte, names []string, values datasets.Values) []byte {
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = canon.AppendString(dst, name)
		dst = append(dst, ':')
		dst = append(dst, values[name].JSON()...)
	}
	return append(dst, '}')
}
