package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// templated is a program of one input q, two if more is set, and one output r,
// whose layout is a template.
func templated(messages string) string {
	return "name: f\ninputs:\n  - {name: q, shape: {type: string}, desc: the question}\n  - {name: n, shape: {type: integer}}\noutputs: [{name: r, shape: {enum: [a, b]}, desc: the letter}]\nsettings:\n  template: " + messages + "\n"
}

func user(text string) string {
	return fmt.Sprintf("[{role: user, text: %q}]", text)
}

func TestTemplate(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"{q}", "why?"},
		{"Q: {q}\nA:", "Q: why?\nA:"},
		{"{q}{n}{q}", "why?7why?"},
		{"{{q}} {{{q}}} }}{{ {{% for %}}", "{q} {why?} }{ {% for %}"},
		{"{instruction}\n\n{q}", "Do it.\n\nwhy?"},
		{"{% for f in inputs %}[{f.name}|{f.desc}|{f.value}]{% endfor %}", "[q|the question|why?][n||7]"},
		{"{%for x in inputs%}{x.value} {%endfor%}", "why? 7 "},
		{"{% for f in outputs %}{f.name} ({f.desc}) {f.value};{% endfor %}{q}", "r (the letter) one of: a, b;why?"},
		{"{% for f in inputs %}{instruction}{q}{f.name}{% endfor %}", "Do it.why?qDo it.why?n"},
		{"{% for f in inputs %}{% endfor %}{q}", "why?"},
		{"ü {q}\r\n\t", "ü why?\r\n\t"},
		{"$HOME ${{HOME}} {{ env.KEY }} file:///etc/passwd {q}", "$HOME ${HOME} { env.KEY } file:///etc/passwd why?"},
	} {
		p, err := pipeline.ParseProgram("p.yaml", []byte(templated(user(tt.text))))
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		r, err := p.Render(pipeline.Rendering{
			Inputs:      datasets.Values{"q": datasets.Text("why?"), "n": datasets.Int(7)},
			Instruction: "Do it.", Model: "m", Facts: pipeline.ProbeFacts,
		})
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		if got := r.Messages[0].Parts[0].Text; got != tt.want || len(r.Messages) != 1 || r.System != "" {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
	}
}

// A value is data: what looks like a template in it is not one.
func TestTemplateValuesAreData(t *testing.T) {
	p := parse(t, templated(user("{q}")))
	for _, text := range []string{"{q}", "{instruction}", "{{n}}", "{% for f in inputs %}", "${HOME}", "{"} {
		r, err := p.Render(pipeline.Rendering{Inputs: datasets.Values{"q": datasets.Text(text)}, Instruction: "Do it."})
		if err != nil || r.Messages[0].Parts[0].Text != text {
			t.Errorf("%q became %v, %v", text, r, err)
		}
	}
}

func TestTemplateSyntax(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"a { b", "line 1, column 3 of the text: a { that opens no slot; write {{"},
		{"a } b", "line 1, column 3 of the text: a } alone; write }}"},
		{"ü\nüü {qq}", "line 2, column 4 of the text: {qq} is no input; did you mean {q}?"},
		{"{zzzzzz}", "line 1, column 1 of the text: {zzzzzz} is no input; there are {instruction}, {q}, {n}"},
		{"{ q }", "line 1, column 1 of the text: { q } is no slot"},
		{"{r}", "line 1, column 1 of the text: {r} is an output; show outputs in a loop"},
		{"{}", "line 1, column 1 of the text: {} is no slot"},
		{"{q", "line 1, column 1 of the text: a { that opens no slot"},
		{"{q\n}", "line 1, column 1 of the text: a { that opens no slot"},
		{"{f.value}", "line 1, column 1 of the text: {f.value} is outside the loop of f"},
		{"{% for f in inputs %}{g.value}{% endfor %}", "line 1, column 22 of the text: {g.value} is outside the loop of g"},
		{"{% for f in inputs %}{f.shape}{% endfor %}", "line 1, column 22 of the text: {f.shape}: a field has name, desc and value, not shape"},
		{"{% for f in inputs %}", "line 1, column 1 of the text: {% for f in inputs %} is not closed by {% endfor %}"},
		{"x\n{% endfor %}", "line 2, column 1 of the text: {% endfor %} closes no loop"},
		{"{% for f in rows %}{% endfor %}", "line 1, column 1 of the text: {% for f in rows %}: a loop goes over inputs or outputs, not rows"},
		{"{% for f in inputs %}{% for g in outputs %}{% endfor %}{% endfor %}", "line 1, column 22 of the text: {% for g in outputs %}: a loop inside a loop"},
		{"{% if q %}", "line 1, column 1 of the text: {% if q %} is not known"},
		{"{% for 1 in inputs %}{% endfor %}", "line 1, column 1 of the text: {% for 1 in inputs %} is not known"},
		{"{% for f in inputs", "line 1, column 1 of the text: {% is not closed by %}"},
		{"{{{q}", ""},
		{"{q}}", "line 1, column 4 of the text: a } alone"},
		{"{% for f in outputs %}{q}: {f.value}{% endfor %}", "not-readable"},
		{"{% for f in outputs %}{f.value} {f.value}{% endfor %}", "not-readable"},
		{"{% for f in outputs %}<{f.value}>{% endfor %}{% for f in outputs %}({f.value}){% endfor %}", "not-readable"},
	} {
		_, err := pipeline.ParseProgram("p.yaml", []byte(templated(user(tt.text))))
		if tt.want == "" {
			if err != nil {
				t.Errorf("%q: %v", tt.text, err)
			}
			continue
		}
		code, want := "template-syntax", "message 1, "+tt.want
		if tt.want == "not-readable" {
			code, want = tt.want, "of the text: "
		}
		wantFailure(t, err, pipeline.TypeProgram, code)
		if err != nil && (!strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "p.yaml:7:")) {
			t.Errorf("%q:\n got %v\nwant %s", tt.text, err, want)
		}
	}
}

func TestTemplateMessages(t *testing.T) {
	for _, tt := range []struct{ messages, want string }{
		{"[]", "p.yaml:7:13: a template is a list of messages"},
		{"text", "p.yaml:7:13: a template is a list of messages"},
		{"[{directive: turns}]", "p.yaml:7:13: the template has no message"},
		{"[{directive: turn}, {role: user, text: x}]", "p.yaml:7:14: the one directive is {directive: turns}"},
		{"[{directive: turns, slot: x}, {role: user, text: x}]", "p.yaml:7:14: the one directive is {directive: turns}"},
		{"[{directive: turns}, {directive: turns}, {role: user, text: x}]", "p.yaml:7:34: a second {directive: turns}"},
		{"[{role: person, text: x}]", `p.yaml:7:21: the role "person" is none of system, developer, user, assistant`},
		{"[{role: user}]", "p.yaml:7:14: text is missing"},
		{"[{role: user, txt: x}]", `p.yaml:7:27: unknown key "txt"; did you mean "text"?`},
		{"[{role: user, text: x}, {role: system, text: y}]", "p.yaml:7:37: system messages come first"},
		{"[{directive: turns}, {role: system, text: y}]", "p.yaml:7:34: system messages come first"},
		{"[{role: user, text: x}, {role: assistant, text: y}]", "p.yaml:7:37: the last message is the assistant's"},
	} {
		_, err := pipeline.ParseProgram("p.yaml", []byte(templated(tt.messages)))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s:\n got %v\nwant %s", tt.messages, err, tt.want)
		}
	}
}

// Without marks a reply can hold one output.
func TestNotReadable(t *testing.T) {
	const two = "name: f\ninputs: [{name: q, shape: {type: string}}]\noutputs: [{name: a, shape: {type: string}}, {name: b, shape: {type: string}}]\nsettings: {template: [{role: user, text: %q}]%s}\n"
	for _, tt := range []struct{ text, more, want string }{
		{"{q}", "", "the template shows no form of the reply, so it can hold one output, not 2 (a, b)"},
		{"{q}{% for f in outputs %}{f.value}\n{% endfor %}", "", "the template shows no form of the reply"},
		{"{q}{% for f in outputs %}Answer: {f.value}\n{% endfor %}", "", `the outputs a and b have the same opening mark "Answer:"`},
		{"{q}{% for f in outputs %}{f.name}: {f.value}\n{% endfor %}", ", reader: {pattern: '(.*)'}", "a pattern reads one output, and the reply holds 2: a, b"},
	} {
		_, err := pipeline.ParseProgram("p.yaml", fmt.Appendf(nil, two, tt.text, tt.more))
		wantFailure(t, err, pipeline.TypeProgram, "not-readable")
		if err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got %v", tt.text, err)
		}
	}
	if _, err := pipeline.ParseProgram("p.yaml", fmt.Appendf(nil, two, "{q}{% for f in outputs %}{f.name}: {f.value}\n{% endfor %}", "")); err != nil {
		t.Error(err)
	}
}
