package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// chat prints a request's messages, one a line.
func chat(r *pipeline.Request) string {
	var b strings.Builder
	if r.System != "" {
		fmt.Fprintf(&b, "system %q\n", r.System)
	}
	for _, m := range r.Messages {
		fmt.Fprintf(&b, "%s %q\n", m.Role, m.Parts[0].Text)
	}
	return b.String()
}

const tickets = `
name: route
description: Say what is wanted.
inputs: [{name: ticket, shape: {type: string}}]
outputs:
  - {name: parts, shape: {type: array, items: {type: string}}}
  - {name: result, shape: {type: integer}}
`

var (
	sections = pipeline.Rendering{
		Inputs: datasets.Values{"ticket": datasets.Text("now")}, Instruction: "Do it.", Sections: []string{"One.", "Two."},
		Earlier: []datasets.Turn{{
			Inputs:  datasets.Values{"ticket": datasets.Text("before"), "gone": datasets.Int(1)},
			Outputs: datasets.Values{"parts": datasets.RawValue(`["a",{"b":1.50}]`), "result": datasets.Int(2), "other": datasets.Int(3)},
		}},
		Model: "m", Facts: pipeline.ProbeFacts,
	}
	demos = "state: {demos: [{inputs: {ticket: example}, outputs: {result: 1}}, {inputs: {ticket: none}, outputs: {other: 1}}, {inputs: {}, outputs: {result: 5}}]}\n"
)

// Examples come first, then earlier turns, then the call; sections follow the
// instruction before the layout's own words.
func TestTurns(t *testing.T) {
	for _, tt := range []struct{ adapter, want string }{
		{"xml", `system "Do it.\n\nOne.\n\nTwo.\n\nReply in exactly this form:\n<parts>\nJSON matching this schema: {\"type\": \"array\", \"items\": {\"type\": \"string\"}}\n</parts>\n<result>\n(integer)\n</result>\n"
user "<ticket>\nexample\n</ticket>\n"
assistant "<result>\n1\n</result>"
assistant "<result>\n5\n</result>"
user "<ticket>\nbefore\n</ticket>\n"
assistant "<parts>\n[\n  \"a\",\n  {\n    \"b\": 1.5\n  }\n]\n</parts>\n<result>\n2\n</result>"
user "<ticket>\nnow\n</ticket>\n"
`},
		{"chat", `system "Do it.\n\nOne.\n\nTwo.\n\nRespond with the corresponding output fields, each under its header, then end with [[ ## completed ## ]]:\n\n[[ ## parts ## ]]\nJSON matching this schema: {\"type\": \"array\", \"items\": {\"type\": \"string\"}}\n\n[[ ## result ## ]]\n(integer)\n\n[[ ## completed ## ]]"
user "[[ ## ticket ## ]]\nexample\n\n"
assistant "[[ ## result ## ]]\n1\n\n[[ ## completed ## ]]"
assistant "[[ ## result ## ]]\n5\n\n[[ ## completed ## ]]"
user "[[ ## ticket ## ]]\nbefore\n\n"
assistant "[[ ## parts ## ]]\n[\n  \"a\",\n  {\n    \"b\": 1.5\n  }\n]\n\n[[ ## result ## ]]\n2\n\n[[ ## completed ## ]]"
user "[[ ## ticket ## ]]\nnow\n\n"
`},
		{"json", `system "Do it.\n\nOne.\n\nTwo."
user "<ticket>\nexample\n</ticket>\n"
assistant "{\n  \"result\": 1\n}"
assistant "{\n  \"result\": 5\n}"
user "<ticket>\nbefore\n</ticket>\n"
assistant "{\n  \"parts\": [\n    \"a\",\n    {\n      \"b\": 1.5\n    }\n  ],\n  \"result\": 2\n}"
user "<ticket>\nnow\n</ticket>\n"
`},
	} {
		p := parse(t, "settings: {adapter: "+tt.adapter+"}\n"+demos+tickets)
		r, err := p.Render(sections)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, chat(r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.adapter, diff)
		}
	}
}

// Turns go where the template says, else before the last user message; only
// user messages are written for them; empty messages are left out.
func TestTurnsPlace(t *testing.T) {
	const text = `
name: f
inputs: [{name: q, shape: {type: string}}]
outputs: [{name: r, shape: {type: string}}]
state: {demos: [{inputs: {q: e}, outputs: {r: x}}]}
settings:
  template:
`
	for _, tt := range []struct{ messages, want string }{
		{"    - {role: user, text: 'Q {q}'}\n", "user \"Q e\"\nassistant \"x\"\nuser \"Q now\"\n"},
		{"    - {role: system, text: A}\n    - {role: system, text: B}\n    - {role: user, text: 'Q {q}'}\n", "system \"AB\"\nuser \"Q e\"\nassistant \"x\"\nuser \"Q now\"\n"},
		{"    - {role: developer, text: D}\n    - {role: assistant, text: hello}\n    - {role: user, text: 'Q {q}'}\n", "developer \"D\"\nassistant \"hello\"\nuser \"Q e\"\nassistant \"x\"\nuser \"Q now\"\n"},
		{"    - {directive: turns}\n    - {role: developer, text: D}\n    - {role: user, text: 'Q {q}'}\n", "user \"Q e\"\nassistant \"x\"\ndeveloper \"D\"\nuser \"Q now\"\n"},
		{"    - {role: user, text: 'Q {q}'}\n    - {directive: turns}\n", "user \"Q now\"\nuser \"Q e\"\nassistant \"x\"\n"},
		{"    - {role: system, text: 'S {q}'}\n", "system \"S now\"\nassistant \"x\"\n"},
		{"    - {role: developer, text: ''}\n    - {role: user, text: 'Q {q}'}\n", "user \"Q e\"\nassistant \"x\"\nuser \"Q now\"\n"},
		{"    - {role: user, text: '{instruction} {q}'}\n", "user \"I e\"\nassistant \"x\"\nuser \"I now\"\n"},
	} {
		p := parse(t, text+tt.messages)
		r, err := p.Render(pipeline.Rendering{Inputs: datasets.Values{"q": datasets.Text("now")}, Instruction: "I", Facts: pipeline.ProbeFacts})
		if err != nil {
			t.Errorf("%s: %v", tt.messages, err)
			continue
		}
		if diff := cmp.Diff(tt.want, chat(r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.messages, diff)
		}
	}
}

func TestTurnsThatCannotBeShown(t *testing.T) {
	p := parse(t, tickets)
	r := sections
	r.Earlier = []datasets.Turn{r.Earlier[0], {Inputs: datasets.Values{"ticket": datasets.Text("x")}, Outputs: datasets.Values{"other": datasets.Int(1)}}}
	_, err := p.Render(r)
	wantFailure(t, err, pipeline.TypeInterface, "turn-invalid")
	if err != nil && !strings.Contains(err.Error(), "earlier turn 2 has no output of the program route") {
		t.Error(err)
	}

	p = parse(t, templated(user("{q}")))
	r = pipeline.Rendering{Inputs: datasets.Values{"q": datasets.Text("x")}, Earlier: []datasets.Turn{{Outputs: datasets.Values{"r": datasets.Text("a")}}}}
	_, err = p.Render(r)
	wantFailure(t, err, pipeline.TypeInterface, "missing-input")
	if err != nil && !strings.Contains(err.Error(), "earlier turn 1: there is no value for the input q") {
		t.Error(err)
	}
	_, err = p.Render(pipeline.Rendering{})
	wantFailure(t, err, pipeline.TypeInterface, "missing-input")
}

// A turn is shown by its values, whatever steps it had.
func TestTurnsWithSteps(t *testing.T) {
	p := parse(t, tickets)
	plain, err := p.Render(sections)
	if err != nil {
		t.Fatal(err)
	}
	r := sections
	turn := r.Earlier[0]
	turn.Steps, turn.Signature = []datasets.Step{datasets.RawValue(`{"kind":"model","outputs":{}}`)}, p.Signature()
	r.Earlier = []datasets.Turn{turn}
	stepped, err := p.Render(r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(chat(plain), chat(stepped)); diff != "" {
		t.Error(diff)
	}
}

func TestSpelledValues(t *testing.T) {
	for _, tt := range []struct{ shape, value, want string }{
		{"{type: string}", `"<a> & {b}\n"`, "<a> & {b}\n"},
		{"{type: string}", `{"z":1,"a":[]}`, "{\n  \"z\": 1,\n  \"a\": []\n}"},
		{"{type: string}", `5`, "5"},
		{"{type: integer}", `5.0`, "5"},
		{"{type: number}", `1e-07`, "1e-7"},
		{"{type: number}", `1e21`, "1e+21"},
		{"{type: integer}", `123456789012345678901234567890`, "123456789012345678901234567890"},
		{"{type: boolean}", `true`, "true"},
		{"{type: [string, 'null']}", `null`, "null"},
		{"{type: array}", `[]`, "[]"},
		{"{type: object}", `{}`, "{}"},
		{"{type: array}", `[[1,{"b":"ü\u0001\/","a":null}],{}]`, "[\n  [\n    1,\n    {\n      \"b\": \"ü\\u0001/\",\n      \"a\": null\n    }\n  ],\n  {}\n]"},
		{"{}", `"text"`, `"text"`},
		{"{enum: [a, 1]}", `"a"`, "a"},
		{"{anyOf: [{enum: [a]}, {type: 'null'}]}", `"a"`, "a"},
	} {
		p := parse(t, "name: f\ninputs: [{name: q, shape: "+tt.shape+"}]\noutputs: [{name: r, shape: {type: string}}]\nsettings: {template: [{role: user, text: '{q}'}]}\n")
		r, err := p.Render(pipeline.Rendering{Inputs: datasets.Values{"q": datasets.RawValue(tt.value)}})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Messages[0].Parts[0].Text; got != tt.want {
			t.Errorf("%s of %s: got %q, want %q", tt.value, tt.shape, got, tt.want)
		}
	}
}

func TestHints(t *testing.T) {
	for _, tt := range []struct{ shape, want string }{
		{"{type: string}", "..."},
		{"{type: string, maxLength: 5}", "..."},
		{"{enum: [b, a, 1, true]}", "one of: b, a, 1, true"},
		{"{type: integer}", "(integer)"},
		{"{type: number}", "(number)"},
		{"{type: boolean}", "(boolean)"},
		{"{type: ['null', integer]}", "(integer)"},
		{"{anyOf: [{type: 'null'}, {enum: [x, y]}]}", "one of: x, y"},
		{"{anyOf: [{type: string}, {type: 'null'}]}", "..."},
		{"{anyOf: [{type: string}, {type: integer}]}", `JSON matching this schema: {"anyOf": [{"type": "string"}, {"type": "integer"}]}`},
		{"{type: object, properties: {z: {type: string}, a: {type: array, items: {}}}, required: [z]}", `JSON matching this schema: {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "array", "items": {}}}, "required": ["z"]}`},
		{"{}", `JSON matching this schema: {}`},
	} {
		p := parse(t, "name: f\noutputs: [{name: r, shape: "+tt.shape+"}]\n")
		r := sampleRequest(t, p)
		want := "Function: f\n\nReply in exactly this form:\n<r>\n" + tt.want + "\n</r>\n"
		if r.System != want {
			t.Errorf("%s:\n got %q\nwant %q", tt.shape, r.System, want)
		}
	}
}

func TestSamples(t *testing.T) {
	for _, tt := range []struct{ shape, want string }{
		{"{const: 7}", `7`},
		{"{$defs: {A: {enum: [z, y]}}, $ref: '#/$defs/A'}", `"z"`},
		{"{anyOf: [{type: 'null'}, {type: ['null', boolean]}]}", `true`},
		{"{type: 'null'}", `null`},
		{"{properties: {a: {}}}", `{}`},
		{"{}", `"example text"`},
		{"{$defs: {A: {type: array, items: {$ref: '#/$defs/A'}}}, $ref: '#/$defs/A'}", `[]`},
	} {
		p := parse(t, "name: f\ninputs: [{name: q, shape: "+tt.shape+"}]\noutputs: [{name: r, shape: {type: string}}]\n")
		if got := p.Sample()["q"].JSON(); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.shape, got, tt.want)
		}
	}
}

func TestConfig(t *testing.T) {
	config := func(settings string, facts pipeline.Facts, given string) string {
		t.Helper()
		p := parse(t, settings+"\n"+routeYAML)
		r, err := p.Render(pipeline.Rendering{Inputs: ticket("x"), Config: datasets.ValuesOf(datasets.RawValue(given)), Facts: facts})
		if err != nil {
			t.Fatal(err)
		}
		return r.Config.Object().Canonical()
	}
	all, native := pipeline.ProbeFacts, pipeline.ProbeFacts
	native.Reasoning = true
	for _, tt := range []struct {
		what, settings string
		facts          pipeline.Facts
		given, want    string
	}{
		{"a stop sequence", "", all, `{"temperature":0}`, `{"stop":["</result>"],"temperature":0}`},
		{"none, for who knows none", "", pipeline.Facts{}, `{}`, `{}`},
		{"none, as the program knows", "settings: {capabilities: {stop_sequences: false}}", all, `{}`, `{}`},
		{"given ones join", "", all, `{"stop":["\n\n","</result>"]}`, `{"stop":["</result>","\n\n"]}`},
		{"a given text joins", "", all, `{"stop":"END"}`, `{"stop":["</result>","END"]}`},
		{"given ones alone", "", pipeline.Facts{}, `{"stop":["END"]}`, `{"stop":["END"]}`},
		{"the end mark", "settings: {adapter: chat}", all, `{}`, `{"stop":["[[ ## completed ## ]]"]}`},
		{"reasoning in its own channel", "settings: {module: cot}", native, `{}`, `{"reasoning":{"effort":"medium"},"stop":["</result>"]}`},
		{"as much as is given", "settings: {module: cot}", native, `{"reasoning":{"effort":"low"}}`, `{"reasoning":{"effort":"low"},"stop":["</result>"]}`},
		{"reasoning in the reply", "settings: {module: cot}", all, `{}`, `{"stop":["</result>"]}`},
		{"no reasoning asked", "", native, `{}`, `{"stop":["</result>"]}`},
		{"no form, no stop", "settings: {template: [{role: user, text: '{ticket}'}]}", all, `{}`, `{}`},
		{"a pattern changes nothing", "settings: {reader: {pattern: '(.)'}}", all, `{}`, `{"stop":["</result>"]}`},
	} {
		if got := config(tt.settings, tt.facts, tt.given); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.what, got, tt.want)
		}
	}
}

// What a handler or a model's settings gave is not written into.
func TestConfigIsNotShared(t *testing.T) {
	given := datasets.Values{"temperature": datasets.Int(0)}
	if _, err := parse(t, routeYAML).Render(pipeline.Rendering{Inputs: ticket("x"), Config: given, Facts: pipeline.ProbeFacts}); err != nil {
		t.Fatal(err)
	}
	if len(given) != 1 {
		t.Errorf("it now is %v", given)
	}
}

func TestCapabilities(t *testing.T) {
	json := parse(t, "settings: {adapter: json}"+routeYAML)
	_, err := json.Render(pipeline.Rendering{Inputs: ticket("x")})
	wantFailure(t, err, pipeline.TypeProgram, "capability-missing")
	if _, err := parse(t, "settings: {adapter: json, capabilities: {native_structured_output: true}}"+routeYAML).Render(pipeline.Rendering{Inputs: ticket("x")}); err != nil {
		t.Error(err)
	}
	tool := parse(t, "tools: [{name: look, parameters: {type: object}}]"+routeYAML)
	if req, err := tool.Render(pipeline.Rendering{Inputs: ticket("x"), Tools: []string{"look"}}); err != nil || req.Tools != nil || !strings.Contains(req.System, "```tool") {
		t.Errorf("without native tool calling, tools are offered in the text: %v", err)
	}
	tool = parse(t, "tools: [{name: look, parameters: {type: object}}]\nsettings: {adapter: json, capabilities: {native_structured_output: true}}"+routeYAML)
	_, err = tool.Render(pipeline.Rendering{Inputs: ticket("x"), Tools: []string{"look"}})
	wantFailure(t, err, pipeline.TypeTool, "capability-missing")
	r, err := tool.Render(pipeline.Rendering{Inputs: ticket("x")})
	if err != nil || len(r.Tools) != 0 {
		t.Errorf("a tool that is not offered: %v, %v", r, err)
	}
}

// A model that reasons in its own channel is neither told to nor shown how, and
// worked examples leave their reasoning out.
func TestReasoning(t *testing.T) {
	p := parse(t, "settings: {module: cot}\nstate: {demos: [{inputs: {ticket: t}, outputs: {reasoning: why, result: repair}}]}"+routeYAML)
	native := pipeline.ProbeFacts
	native.Reasoning = true
	for _, tt := range []struct {
		facts pipeline.Facts
		want  string
	}{
		{pipeline.ProbeFacts, `system "I\n\nReply in exactly this form:\n<reasoning>\n...\n</reasoning>\n<result>\none of: refund, repair, question\n</result>\n\n\nReason step by step in the 'reasoning' section before writing any other section."
user "<ticket>\nt\n</ticket>\n"
assistant "<reasoning>\nwhy\n</reasoning>\n<result>\nrepair\n</result>"
user "<ticket>\nnow\n</ticket>\n"
`},
		{native, `system "I\n\nReply in exactly this form:\n<result>\none of: refund, repair, question\n</result>\n"
user "<ticket>\nt\n</ticket>\n"
assistant "<result>\nrepair\n</result>"
user "<ticket>\nnow\n</ticket>\n"
`},
	} {
		r, err := p.Render(pipeline.Rendering{Inputs: ticket("now"), Instruction: "I", Facts: tt.facts})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, chat(r)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	own := parse(t, "settings: {module: cot}\nname: f\ninputs: [{name: reasoning, shape: {type: string}}]\noutputs: [{name: r, shape: {type: string}}]\n")
	if r := sampleRequest(t, own); strings.Contains(r.System, "Reason step by step") || own.Signature() != own.Interface() {
		t.Error("a field of its own called reasoning takes the place of the added one")
	}
}

// The prompts of a published benchmark, as programs.
func TestBBHPrograms(t *testing.T) {
	const prefix = "Complete the sequence.\n\nQ: { [ (\nA: ) ] }\n\n"
	escaped := strings.NewReplacer("{", "{{", "}", "}}").Replace(prefix)
	program := func(suffix, reader string) *pipeline.Program {
		return parse(t, fmt.Sprintf("name: bbh\ninputs: [{name: question, shape: {type: string}}]\noutputs: [{name: answer, shape: {type: string}}]\nsettings:\n  template: [{role: user, text: %q}]\n%s",
			escaped+"Q: {question}\nA:"+suffix, reader))
	}
	direct := program("", "")
	cot := program(" Let's think step by step.", `  reader: {pattern: '(?m)the answer is (.*?)\.?$'}`)
	q := datasets.Values{"question": datasets.Text("{ ( Is {x} right? ${HOME}")}
	for p, want := range map[*pipeline.Program]string{
		direct: prefix + "Q: { ( Is {x} right? ${HOME}\nA:",
		cot:    prefix + "Q: { ( Is {x} right? ${HOME}\nA: Let's think step by step.",
	} {
		r, err := p.Render(pipeline.Rendering{Inputs: q, Instruction: p.Instruction(), Model: "codex", Facts: pipeline.ProbeFacts})
		if err != nil {
			t.Fatal(err)
		}
		if r.System != "" || len(r.Messages) != 1 || r.Messages[0].Role != "user" || r.Messages[0].Parts[0].Text != want || len(r.Config) != 0 {
			t.Errorf("got %s", chat(r))
		}
	}
	for _, tt := range []struct {
		p          *pipeline.Program
		text, want string
	}{
		{direct, " (B)\n", "(B)"},
		{cot, "It is 12/25. So the answer is (B).\n\nQ: more the answer is (C).", "(B)"},
		{cot, "So the answer is } ] >.", "} ] >"},
		{cot, "So the answer is 3.5.", "3.5"},
		{cot, "So the answer is no", "no"},
	} {
		got, err := tt.p.Read(tt.text, "stop", pipeline.ProbeFacts)
		if err != nil || got["answer"].String() != tt.want {
			t.Errorf("%q: got %v, %v", tt.text, got, err)
		}
	}
	_, err := cot.Read("I do not know.", "stop", pipeline.ProbeFacts)
	wantFailure(t, err, pipeline.TypeReply, "parse-pattern")
}
