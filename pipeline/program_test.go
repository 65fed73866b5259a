package pipeline_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// vector is one case of testdata/programs.json.
type vector struct {
	Name       string         `json:"name"`
	Definition datasets.Value `json:"definition"`
	Expect     struct {
		Instructions string         `json:"instructions"`
		Sample       datasets.Value `json:"sample"`
		Request      datasets.Value `json:"request"`
		RequestHash  string         `json:"request_hash"`
		Version      string         `json:"version"`
		Signature    string         `json:"signature"`
		Interface    string         `json:"interface"`
	} `json:"expect"`
}

func vectors(t testing.TB) []vector {
	t.Helper()
	b, err := os.ReadFile("testdata/programs.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []vector `json:"cases"`
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) != 13 {
		t.Fatalf("there are %d cases", len(file.Cases))
	}
	return file.Cases
}

func parse(t testing.TB, text string) *pipeline.Program {
	t.Helper()
	p, err := pipeline.ParseProgram("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sampleRequest is the request for a program's sample under fixed facts.
func sampleRequest(t testing.TB, p *pipeline.Program, tools ...string) *pipeline.Request {
	t.Helper()
	r, err := p.Render(pipeline.Rendering{
		Inputs: p.Sample(), Instruction: p.Instruction(), Tools: tools, Model: pipeline.ProbeModel, Facts: pipeline.ProbeFacts,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestVectors(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			p, err := pipeline.ParseProgram("v.json", []byte(v.Definition.JSON()))
			if err != nil {
				t.Fatal(err)
			}
			check := func(what, got, want string) {
				if got != want {
					t.Errorf("%s:\n got %s\nwant %s", what, got, want)
				}
			}
			var tools []string
			for tool := range v.Definition.Member("tools").Elements() {
				tools = append(tools, tool.Member("name").String())
			}
			r := sampleRequest(t, p, tools...)
			check("instruction", p.Instruction(), v.Expect.Instructions)
			check("sample", p.Sample().Object().Canonical(), v.Expect.Sample.Canonical())
			check("request", string(r.Canonical("probe")), v.Expect.Request.Canonical())
			check("request hash", r.Hash(), v.Expect.RequestHash)
			check("signature", p.Signature(), v.Expect.Signature)
			check("interface", p.Interface(), v.Expect.Interface)
			check("version", p.Version(), v.Expect.Version)
			if r, err := p.SampleRequest(); err != nil || r.Hash() != v.Expect.RequestHash {
				t.Errorf("sample request %v, %v", r, err)
			}
			// The order of a schema's members reaches the provider, though the
			// hash does not see it.
			check("response format", r.Config["response_format"].JSON(),
				compact(t, v.Expect.Request.Member("config").Member("response_format").JSON()))
			if w := p.Warnings(); w != nil && v.Name != "examples" {
				t.Errorf("warnings %q", w)
			}

			again, err := pipeline.ParseProgram("again.json", []byte(p.Definition().JSON()))
			if err != nil {
				t.Fatalf("its definition %s: %v", p.Definition().JSON(), err)
			}
			check("version of its definition", again.Version(), v.Expect.Version)
			check("definition of its definition", again.Definition().JSON(), p.Definition().JSON())
		})
	}
}

func compact(t testing.TB, text string) string {
	t.Helper()
	if text == "" {
		return ""
	}
	v := jsontext.Value(text)
	if err := v.Compact(); err != nil {
		t.Fatal(err)
	}
	return string(v)
}

// A definition may be written in YAML, in any order, with names and texts that
// JSON writes otherwise.
func TestYAMLDefinition(t *testing.T) {
	p := parse(t, `
# who writes the code decides where a ticket goes
outputs:
  - name: result
    shape: {type: string, enum: [refund, repair, question]}
inputs:
  - name: ticket
    shape: {type: string}
description: |
  Say what the customer wants done.
name: route
module: support
`)
	if want := vectors(t)[0].Expect.Version; p.Version() != want {
		t.Errorf("version %s, want %s", p.Version(), want)
	}
	if p.Name() != "route" || p.Module() != "support" || p.Answer() != "result" || len(p.Inputs()) != 1 || len(p.Outputs()) != 1 {
		t.Errorf("got %s, %s, %s", p.Name(), p.Module(), p.Answer())
	}
	if p.Saved() != "" {
		t.Error("it was never saved")
	}
}

const plan = `
name: plan
description: Plan the visit.
inputs:
  - {name: ticket, shape: {type: string}}
  - {name: floor, shape: {type: integer, minimum: 0, default: 0}, optional: true}
outputs:
  - {name: parts, shape: {type: array, items: {type: string}}}
  - {name: result, shape: {type: number}, desc: hours}
`

func TestWith(t *testing.T) {
	p := parse(t, plan)
	version, own := p.Version(), p.Instruction()
	q := p.WithInstruction("  Be brief.\n")
	if q.Instruction() != "Be brief." || q.Version() == version || q.Signature() != p.Signature() || q.Interface() != p.Interface() {
		t.Errorf("instruction %q, version %s", q.Instruction(), q.Version())
	}
	d := p.WithDemos([]pipeline.Demo{{
		Inputs:  datasets.Values{"ticket": datasets.Text("The lamp is broken.")},
		Outputs: datasets.Values{"result": datasets.Int(2)},
	}})
	if d.Version() == version || len(d.Demos()) != 1 {
		t.Error("a worked example changes what is sent, and so the version")
	}
	if both := d.WithInstruction("Be brief."); both.Version() == d.Version() || both.Version() == q.Version() {
		t.Error("an instruction and a worked example are a version of their own")
	}
	if p.WithPlugins().Version() != version {
		t.Error("plugins are not part of a version")
	}
	if p.Version() != version || p.Instruction() != own || p.Demos() != nil {
		t.Error("the program itself changed")
	}
	if again := q.WithInstruction(own); again.Version() != version {
		t.Error("the same instruction again is the same version again")
	}
}

// What counts in the version, the signature and the interface.
func TestHashes(t *testing.T) {
	base := parse(t, plan)
	for _, tt := range []struct {
		what, from, to                 string
		version, signature, interface_ bool // which of them change
	}{
		{"a description", "Plan the visit.", "Plan it.", true, false, false},
		{"words on an output", "desc: hours", "desc: minutes", true, false, false},
		{"the name", "name: plan", "name: plot", true, false, false},
		{"a default", "default: 0", "default: 1", true, false, false},
		{"an input's shape", "shape: {type: string}", "shape: {type: string, maxLength: 9}", false, true, true},
		{"an output's shape", "{type: number}", "{type: integer}", true, true, true},
		{"reasoning", "name: plan", "settings: {module: cot}\nname: plan", true, true, false},
		{"the layout", "name: plan", "settings: {adapter: chat}\nname: plan", true, false, false},
		{"the module", "name: plan", "module: m\nname: plan", false, false, false},
		{"capabilities", "name: plan", "settings: {capabilities: {stop_sequences: false}}\nname: plan", false, false, false},
	} {
		p := parse(t, strings.Replace(plan, tt.from, tt.to, 1))
		if got := p.Version() != base.Version(); got != tt.version {
			t.Errorf("%s: version changed: %v", tt.what, got)
		}
		if got := p.Signature() != base.Signature(); got != tt.signature {
			t.Errorf("%s: signature changed: %v", tt.what, got)
		}
		if got := p.Interface() != base.Interface(); got != tt.interface_ {
			t.Errorf("%s: interface changed: %v", tt.what, got)
		}
	}
}

// A default inside a record is part of no signature: what data looks like does
// not depend on it. A property that is called default is data.
func TestNestedDefaults(t *testing.T) {
	shape := func(s string) *pipeline.Program {
		return parse(t, "name: visit\ninputs: [{name: v, shape: "+s+"}]\noutputs: [{name: result, shape: {type: string}}]\n")
	}
	plain := shape("{type: object, properties: {day: {type: string}}}")
	if p := shape("{type: object, properties: {day: {type: string, default: monday}}}"); p.Signature() != plain.Signature() || p.Interface() != plain.Interface() {
		t.Error("a nested default counted")
	}
	if p := shape("{type: object, properties: {day: {type: string}, default: {type: string}}}"); p.Signature() == plain.Signature() {
		t.Error("a property called default was left out")
	}
}

func TestVersionOfPattern(t *testing.T) {
	text := "name: f\ninputs: [{name: q, shape: {type: string}}]\noutputs: [{name: result, shape: {type: string}}]\nsettings: {template: [{role: user, text: '{q}'}]%s}\n"
	plain := parse(t, fmt.Sprintf(text, ""))
	p := parse(t, fmt.Sprintf(text, ", reader: {pattern: 'is (.*)'}"))
	request := sampleRequest(t, p).Hash()
	if request != sampleRequest(t, plain).Hash() {
		t.Error("the pattern is in the request")
	}
	code := datasets.RawValue(`{"pattern":"is (.*)"}`).Hash()
	want := datasets.RawValue(`{"code":"` + code + `","request":"` + request + `"}`).Hash()
	if p.Version() != want {
		t.Errorf("version %s, want %s", p.Version(), want)
	}
	if want := datasets.RawValue(`{"request":"` + request + `"}`).Hash(); plain.Version() != want {
		t.Errorf("without it %s, want %s", plain.Version(), want)
	}
}

// A program whose sample cannot be rendered has a version all the same, which
// says so; asking it fails for the same reason.
func TestVersionOfRefused(t *testing.T) {
	p := parse(t, `
name: f
inputs: [{name: q, shape: {type: string}}]
outputs: [{name: result, shape: {type: string}}]
settings: {template: [{role: user, text: "{q}"}]}
state: {demos: [{inputs: {}, outputs: {result: x}}]}
`)
	if want := datasets.RawValue(`{"request":"refused:missing-input"}`).Hash(); p.Version() != want {
		t.Errorf("version %s, want %s", p.Version(), want)
	}
	if w := p.Warnings(); len(w) != 1 || !strings.Contains(w[0], "missing-input: worked example 1: there is no value for the input q") {
		t.Errorf("warnings %q", w)
	}
	_, err := p.Render(pipeline.Rendering{Inputs: p.Sample(), Instruction: p.Instruction(), Facts: pipeline.ProbeFacts})
	wantFailure(t, err, pipeline.TypeProgram, "missing-input")
}

func TestFields(t *testing.T) {
	p := parse(t, "tools: [{name: look, parameters: {type: object}}]\nsettings: {module: cot}"+plan)
	var got []string
	for f := range p.Fields().Elements() {
		got = append(got, f.Member("direction").String()+" "+f.Member("name").String()+" "+f.Member("purpose").String()+" "+f.Member("desc").String())
	}
	want := []string{"input ticket plain ", "input floor plain ", "input tools tools ", "output reasoning reasoning ", "output calls tools.calls ", "output parts plain ", "output result plain hours"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAdapterNames(t *testing.T) {
	for name, like := range map[string]string{
		"XML": "xml", "default": "xml", "Tags": "xml", "Chat": "chat", "chat-adapter": "chat", "ChatAdapter": "chat", "JSON": "json", "json_adapter": "json", "x m l": "xml",
	} {
		a, b := parse(t, "settings: {adapter: "+name+"}\n"+plan), parse(t, "settings: {adapter: "+like+"}\n"+plan)
		if a.Version() != b.Version() {
			t.Errorf("%s is not %s", name, like)
		}
	}
	if parse(t, plan).Version() != parse(t, "settings: {adapter: xml}\n"+plan).Version() {
		t.Error("xml is not what there is without an adapter")
	}
}

func wantFailure(t testing.TB, err error, typ, code string) {
	t.Helper()
	var f *pipeline.Failure
	if !errors.As(err, &f) || f.Type != typ || f.Code != code {
		t.Errorf("got %v, want a %s %s", err, typ, code)
	}
}

func TestInstruction(t *testing.T) {
	const fields = "inputs: [{name: a, shape: {type: string}%s}]\noutputs: [{name: b, shape: {type: string}%s}]\n"
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "settings: {include_fn_name_in_instructions: false}\n" + fmt.Sprintf(fields, "", ""), ""},
		{"a blank description", "description: ' \u3000\u2028'\n" + fmt.Sprintf(fields, "", ""), "Function: f"},
		{"both guidances", fmt.Sprintf(fields, ", desc: one", ", desc: two"), "Function: f\n\nParameter guidance:\n- a: one\n\nOutput guidance:\n- b: two"},
		{"white space that is none", "description: \"\\u200bx\\ufeff\"\n" + fmt.Sprintf(fields, "", ""), "Function: f\n\n\u200bx\ufeff"},
		{"a blank improvement", "state: {instructions: '  '}\n" + fmt.Sprintf(fields, ", desc: one", ""), ""},
		{"null", "description: null\nstate: {instructions: null}\n" + fmt.Sprintf(fields, ", desc: null", ""), "Function: f"},
	} {
		if got := parse(t, "name: f\n"+tt.text).Instruction(); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestBind(t *testing.T) {
	p := parse(t, plan)
	got, err := p.Bind(datasets.Values{"ticket": datasets.Text("x")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"floor":0,"ticket":"x"}`, got.Object().JSON()); diff != "" {
		t.Error(diff)
	}
	got, err = p.Bind(datasets.Values{"ticket": datasets.Text("x"), "floor": datasets.RawValue("5.0")})
	if err != nil || got["floor"].JSON() != "5.0" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, tt := range []struct {
		in   datasets.Values
		want string
	}{
		{datasets.Values{"floor": datasets.Int(1)}, "interface-input: input ticket: it is required and was left out"},
		{datasets.Values{"ticket": datasets.Text("x"), "zz": datasets.Null, "aa": datasets.Null}, "interface-input: input aa: the program plan has no such input"},
		{datasets.Values{"zz": datasets.Null}, "interface-input: input zz:"}, // before the one that is missing
		{datasets.Values{"ticket": datasets.Int(5), "floor": datasets.Int(-1)}, "interface-input: input ticket: must be text, found 5"},
		{datasets.Values{"ticket": datasets.Null}, "interface-input: input ticket: must be text, found null"}, // null is a value
		{datasets.Values{"ticket": datasets.Text("x"), "floor": datasets.Int(-1)}, "interface-input: input floor: must be at least 0, found -1"},
		{datasets.Values{"ticket": datasets.Text("x"), "floor": datasets.Null}, "interface-input: input floor: must be a whole number, found null"},
	} {
		_, err := p.Bind(tt.in)
		wantFailure(t, err, pipeline.TypeInterface, "interface-input")
		if err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%v: got %v, want %s", tt.in, err, tt.want)
		}
	}
}

func TestInstructionReaches(t *testing.T) {
	for text, want := range map[string]bool{
		"{q}":                 false,
		"{{instruction}} {q}": false,
		"{instruction} {q}":   true,
		"{% for f in inputs %}{instruction}{f.value}{% endfor %}": true,
		"{% for f in inputs %}{f.value}{% endfor %}":              false,
	} {
		p := parse(t, "name: f\ninputs: [{name: q, shape: {type: string}}]\noutputs: [{name: r, shape: {type: string}}]\nsettings:\n  template:\n    - {role: user, text: '"+text+"'}\n")
		if got := p.InstructionReaches(); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	for _, adapter := range []string{"xml", "chat", "json"} {
		if p := parse(t, "settings: {adapter: "+adapter+"}"+plan); !p.InstructionReaches() {
			t.Errorf("%s: it does not", adapter)
		}
	}
}

// What this version cannot ask is refused before anything is sent.
func TestUnsupported(t *testing.T) {
	for _, tt := range []struct{ text, typ, want string }{
		{"tools: [{name: look, parameters: {type: object}}]", pipeline.TypeTool, "tools-unsupported: the program route has tools, and nothing is given to run them"},
		{"inputs: [{name: ticket, shape: {media: image}}]", pipeline.TypeProgram, `media-unsupported: the field ticket of the program route is of media "image", and only text is sent yet`},
	} {
		m := &model{}
		text := routeYAML + tt.text
		if strings.HasPrefix(tt.text, "inputs") {
			text = strings.Replace(routeYAML, "inputs:\n  - {name: ticket, shape: {type: string}}", tt.text, 1)
		}
		call := ask(t, caller(m), parse(t, text), pipeline.Ask{Inputs: ticket("x")})
		if call.Failure == nil || call.Failure.Type != tt.typ || !strings.HasPrefix(call.Failure.Error(), tt.want) {
			t.Errorf("got %v, want %s", call.Failure, tt.want)
		}
		if len(m.sent) != 0 {
			t.Error("something was sent")
		}
	}
}

func TestDefinitionRefuses(t *testing.T) {
	const io = "inputs: [{name: q, shape: {type: string}}]\noutputs: [{name: r, shape: {type: string}}]\n"
	for _, tt := range []struct{ text, want string }{
		{"", "p.yaml: the file is empty"},
		{"- a", "p.yaml:1:1: the value must be a map, found a list"},
		{io, "p.yaml:1:1: name is missing"},
		{"name: ' '\n" + io, "p.yaml:1:7: name is blank"},
		{"name: f", "p.yaml:1:1: outputs is missing"},
		{"name: f\noutputs: []", "p.yaml:2:10: outputs is empty"},
		{"nmae: f\n" + io, `p.yaml:1:1: unknown key "nmae"; did you mean "name"?`},
		{"name: f\ntemperature: 0\n" + io, `p.yaml:2:1: unknown key "temperature"; known are name, module,`},
		{"name: f\nsettings: {adaptor: xml}\n" + io, `p.yaml:2:12: unknown key "adaptor" in settings; did you mean "adapter"?`},
		{"name: f\nstate: {demo: []}\n" + io, `p.yaml:2:9: unknown key "demo" in state; did you mean "demos"?`},
		{"name: f\nstate: {demos: [{input: {}}]}\n" + io, `p.yaml:2:18: unknown key "input"; did you mean "inputs"?`},
		{"name: f\nsettings: {adapter: yaml}\n" + io, `p.yaml:2:21: adapter-unknown: there is no adapter "yaml"; those are xml, chat and json, or give a template`},
		{"name: f\nsettings: {module: cat}\n" + io, `p.yaml:2:20: settings.module is cot, for reasoning, or predict`},
		{"name: f\nsettings: {capabilities: {native_resoning: true}}\n" + io, `p.yaml:2:27: unknown capability "native_resoning"; did you mean "native_reasoning"?`},
		{"name: f\nsettings: {capabilities: {instruct: 1}}\n" + io, `p.yaml:2:37: the capability instruct is true or false`},
		{"name: f\nsettings: {adapter: xml, template: [{role: user, text: x}]}\n" + io, `p.yaml:2:11: settings has an adapter and a template`},
		{"name: f\noutputs: [{name: 1r, shape: {type: string}}]", `p.yaml:2:18: interface-malformed: the name "1r" is no identifier`},
		{"name: f\ninputs: [{name: r, shape: {}}]\noutputs: [{name: r, shape: {}}]", `p.yaml:3:18: interface-malformed: two fields are called r`},
		{"name: f\noutputs: [{name: r}]", `p.yaml:2:11: shape is missing`},
		{"name: f\noutputs: [{name: r, shape: text}]", `p.yaml:2:28: interface-malformed: the shape of r: a shape is an object`},
		{"name: f\noutputs: [{name: r, shape: {type: text}}]", `p.yaml:2:28: interface-malformed: the shape of r: type: the text "text" is no type`},
		{"name: f\noutputs: [{name: r, shape: {type: []}}]", `p.yaml:2:28: interface-malformed: the shape of r: type: must name at least one type`},
		{"name: f\noutputs: [{name: r, shape: {type: [string, string]}}]", `p.yaml:2:28: interface-malformed: the shape of r: type: string is listed twice`},
		{"name: f\noutputs: [{name: r, shape: {anyOf: []}}]", `p.yaml:2:28: interface-malformed: the shape of r: anyOf: must be a list of at least one shape`},
		{"name: f\noutputs: [{name: r, shape: {anyOf: [{}, {items: 5}]}}]", `p.yaml:2:28: interface-malformed: the shape of r: anyOf: [1]: items: a shape is an object, found 5`},
		{"name: f\noutputs: [{name: r, shape: {properties: [a]}}]", `p.yaml:2:28: interface-malformed: the shape of r: properties: must be an object of shapes`},
		{"name: f\noutputs: [{name: r, shape: {properties: {a: 1}}}]", `p.yaml:2:28: interface-malformed: the shape of r: properties: a: a shape is an object, found 1`},
		{"name: f\noutputs: [{name: r, shape: {required: a}}]", `p.yaml:2:28: interface-malformed: the shape of r: required: must be a list of names`},
		{"name: f\noutputs: [{name: r, shape: {required: [a, a]}}]", `p.yaml:2:28: interface-malformed: the shape of r: required: must be a list of names, each once`},
		{"name: f\noutputs: [{name: r, shape: {uniqueItems: 1}}]", `p.yaml:2:28: interface-malformed: the shape of r: uniqueItems: must be true or false, found 1`},
		{"name: f\noutputs: [{name: r, shape: {minimum: low}}]", `p.yaml:2:28: interface-malformed: the shape of r: minimum: must be a number, found the text "low"`},
		{"name: f\noutputs: [{name: r, shape: {$defs: []}}]", `p.yaml:2:28: interface-malformed: the shape of r: $defs: must be an object of shapes`},
		{"name: f\noutputs: [{name: r, shape: {enum: []}}]", `p.yaml:2:28: interface-malformed: the shape of r: enum: must be a list of at least one value`},
		{"name: f\noutputs: [{name: r, shape: {type: array, items: {minItems: -1}}}]", `p.yaml:2:28: interface-malformed: the shape of r: items: minItems: must be a whole number of at least 0`},
		{"name: f\noutputs: [{name: r, shape: {$ref: '#/$defs/A'}}]", `p.yaml:2:28: interface-malformed: the shape of r: $ref: the text "#/$defs/A" names none`},
		{"name: f\noutputs: [{name: r, shape: {$defs: {A: {$ref: '#/$defs/B'}, B: {anyOf: [{type: string}, {$ref: '#/$defs/A'}]}}}}]", `p.yaml:2:28: interface-malformed: the shape of r: $defs.A: refers to itself without end`},
		{"name: f\noutputs: [{name: r, shape: {}, optional: true}]", `p.yaml:2:32: unknown key "optional"; known are name, shape, desc`},
		{"name: f\ninputs: [{name: q, shape: {}, optional: true}]\noutputs: [{name: r, shape: {}}]", `p.yaml:2:10: interface-malformed: the input q is optional and its shape has no default`},
		{"name: f\ninputs: [{name: q, shape: {default: 1}}]\noutputs: [{name: r, shape: {}}]", `p.yaml:2:10: interface-malformed: the input q has a default and is not optional`},
		{"name: f\ninputs: [{name: q, shape: {type: string, default: 1}, optional: true}]\noutputs: [{name: r, shape: {}}]", `p.yaml:2:10: interface-malformed: the default of q must be text, found 1`},
		{"name: f\ntools: [{name: t, parameters: []}]\n" + io, `p.yaml:2:31: the parameters of t must be a JSON Schema of an object`},
		{"name: f\ntools: [{name: t, parameters: {}}, {name: t, parameters: {}}]\n" + io, `p.yaml:2:36: two tools are called t`},
		{"name: f\ntools: [{name: t, parameters: {}}]\noutputs: [{name: calls, shape: {}}]", `p.yaml:2:9: a program with tools has fields tools and calls of its own`},
		{"name: f\nsettings: {reader: {pattern: '('}}\n" + io, "p.yaml:2:30: reader-pattern: missing closing ): `(`"},
		{"name: f\nsettings: {reader: {pattern: 'a'}}\n" + io, `p.yaml:2:30: reader-pattern: the pattern has 0 groups; it needs exactly one`},
		{"name: f\nsettings: {reader: {pattern: '(a)(b)'}}\n" + io, `p.yaml:2:30: reader-pattern: the pattern has 2 groups`},
		{"name: f\nsettings: {reader: {pattern: '(?=a)(b)'}}\n" + io, "p.yaml:2:30: reader-pattern: invalid or unsupported Perl syntax"},
		{"name: f\nsettings: {reader: {patern: '(a)'}}\n" + io, `p.yaml:2:21: unknown key "patern" in settings.reader; did you mean "pattern"?`},
		{"name: f\nsettings: {reader: {}}\n" + io, `p.yaml:2:20: settings.reader.pattern is missing`},
		{"name: f\nsettings: {module: cot, reader: {pattern: '(a)'}}\n" + io, `p.yaml:2:11: not-readable: a pattern reads one output, and the reply holds 2: reasoning, r`},
	} {
		_, err := pipeline.ParseProgram("p.yaml", []byte(tt.text))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s\n got %v\nwant %s", tt.text, err, tt.want)
		}
	}
}

func ExampleParseProgram() {
	p, err := pipeline.ParseProgram("route.yaml", []byte(`
name: route
description: Say what the customer wants done.
inputs:
  - {name: ticket, shape: {type: string}}
outputs:
  - {name: result, shape: {enum: [refund, repair, question]}}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	inputs, err := p.Bind(datasets.Values{"ticket": datasets.Text("The hinge is bent.")})
	if err != nil {
		fmt.Println(err)
		return
	}
	request, err := p.Render(pipeline.Rendering{
		Inputs: inputs, Instruction: p.Instruction(), Model: "any", Facts: pipeline.ProbeFacts,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(request.System)
	fmt.Print(request.Messages[0].Parts[0].Text)

	outputs, err := p.Read("<result>\nrepair\n</result>", "stop", pipeline.ProbeFacts)
	fmt.Println(outputs["result"], err)
	// Output:
	// Function: route
	//
	// Say what the customer wants done.
	//
	// Reply in exactly this form:
	// <result>
	// one of: refund, repair, question
	// </result>
	// <ticket>
	// The hinge is bent.
	// </ticket>
	// repair <nil>
}
