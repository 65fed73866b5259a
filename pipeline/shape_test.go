package pipeline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
)

func TestShapes(t *testing.T) {
	const tree = `{$defs: {Node: {type: object, properties: {v: {type: integer}, kids: {type: array, items: {$ref: '#/$defs/Node'}}}, required: [v]}}, $ref: '#/$defs/Node'}`
	for _, tt := range []struct {
		shape string
		fit   []string
		not   map[string]string // value: part of why
	}{
		{"{}", []string{`null`, `1`, `"a"`, `[]`, `{"a":1}`}, nil},
		{"{type: integer}", []string{`5`, `5.0`, `-0`, `1e3`, `1e300`, `12345678901234567890123`}, map[string]string{`5.5`: "must be a whole number, found 5.5", `true`: "found true", `"5"`: `found the text "5"`, `null`: "found null"}},
		{"{type: number}", []string{`5`, `5.5`}, map[string]string{`true`: "must be a number, found true"}},
		{"{type: boolean}", []string{`true`, `false`}, map[string]string{`0`: "must be true or false"}},
		{"{type: [string, 'null']}", []string{`"a"`, `null`}, map[string]string{`1`: "must be text or null, found 1"}},
		{"{enum: [1, a, [1, {b: 2}]]}", []string{`1`, `1.0`, `"a"`, `[1,{"b":2.0}]`}, map[string]string{`true`: "must be one of 1, a,", `"A"`: "must be one of"}},
		{"{const: 1}", []string{`1`, `1.0`}, map[string]string{`true`: "must be 1, found true", `"1"`: "must be 1"}},
		{"{anyOf: [{type: integer}, {type: array}]}", []string{`1`, `[]`}, map[string]string{`"a"`: "must fit one of 2 shapes"}},
		{"{type: array, items: {type: integer}, minItems: 1, maxItems: 2}", []string{`[1]`, `[1,2]`}, map[string]string{`[]`: "at least 1 items, found 0", `[1,2,3]`: "at most 2 items, found 3", `[1,"a"]`: "at [1], must be a whole number"}},
		{"{prefixItems: [{type: string}], items: {type: integer}}", []string{`[]`, `["a"]`, `["a",1,2]`}, map[string]string{`[1]`: "at [0], must be text", `["a","b"]`: "at [1], must be a whole number"}},
		{"{uniqueItems: true}", []string{`[1,2]`, `[]`}, map[string]string{`[1,1.0]`: "at [1], is listed twice"}},
		{"{type: object, properties: {a: {type: integer}}}", []string{`{}`, `{"a":1}`}, map[string]string{`{"b":1}`: `has a member "b" its shape does not name`, `{"a":"x"}`: "at .a, must be"}},
		{"{type: object, properties: {}}", []string{`{}`}, map[string]string{`{"b":1}`: `has a member "b"`}},
		{"{type: object, properties: {a: {}}, additionalProperties: true}", []string{`{"b":1}`}, nil},
		{"{type: object, properties: {a: {}}, additionalProperties: {type: string}}", []string{`{"b":"x","a":1}`}, map[string]string{`{"b":1}`: "at .b, must be text"}},
		{"{type: object, additionalProperties: false}", []string{`{}`}, map[string]string{`{"b":1}`: `has a member "b"`}},
		{"{type: object, additionalProperties: {type: integer}}", []string{`{"z":1}`}, map[string]string{`{"z":1,"y":"a","x":"b"}`: "at .x,"}},
		{"{type: object, required: [a, b]}", []string{`{"a":null,"b":1,"c":2}`}, map[string]string{`{"a":1}`: `must have "b"`}},
		{"{minLength: 2, maxLength: 2}", []string{`"üü"`, `"👋👋"`, `5`}, map[string]string{`"ü"`: "at least 2 characters, found 1", `"abc"`: "at most 2 characters, found 3"}},
		{"{minimum: 1, maximum: 2.5}", []string{`1`, `1.0`, `2.5`, `"a"`}, map[string]string{`0.99`: "must be at least 1", `2.51`: "must be at most 2.5"}},
		{"{exclusiveMinimum: 1, exclusiveMaximum: 2}", []string{`1.5`}, map[string]string{`1`: "must be above 1", `2.0`: "must be below 2"}},
		{"{maximum: 9007199254740992}", []string{`9007199254740992`}, map[string]string{`9007199254740993`: "must be at most"}},
		{"{minimum: 0}", []string{`1e-999999999`}, nil},
		{tree, []string{`{"v":1}`, `{"v":1,"kids":[{"v":2,"kids":[]}]}`}, map[string]string{`{"kids":[]}`: `must have "v"`, `{"v":1,"kids":[{"v":2},{"v":"x"}]}`: "at .kids[1].v, must be a whole number", `[]`: "must be an object"}},
		{"{type: string, pattern: '^a', format: email, oneOf: [{}], title: T}", []string{`"b"`}, nil}, // said to providers, never checked
	} {
		p := parse(t, "name: f\ninputs: [{name: q, shape: "+tt.shape+"}]\noutputs: [{name: r, shape: {type: string}}]\n")
		for _, v := range tt.fit {
			if _, err := p.Bind(datasets.Values{"q": datasets.RawValue(v)}); err != nil {
				t.Errorf("%s of %s: %v", v, tt.shape, err)
			}
		}
		for v, why := range tt.not {
			_, err := p.Bind(datasets.Values{"q": datasets.RawValue(v)})
			if err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("%s of %s: got %v, want %s", v, tt.shape, err, why)
			}
		}
	}
}

// Many references may lead to one shape by way of each other. The work grows
// with the shape and with the value, not with the number of ways.
func TestShapesOfManyWays(t *testing.T) {
	var doubling strings.Builder
	doubling.WriteString("{$defs: {")
	for i := range 64 {
		fmt.Fprintf(&doubling, "a%d: {anyOf: [{$ref: '#/$defs/a%d'}, {$ref: '#/$defs/a%d'}]}, ", i, i+1, i+1)
	}
	doubling.WriteString("a64: {type: integer}}, $ref: '#/$defs/a0'}")
	const (
		deep   = `{$defs: {N: {anyOf: [{type: array, items: {$ref: '#/$defs/N'}}, {type: array, items: {$ref: '#/$defs/N'}}, {type: integer}]}}, $ref: '#/$defs/N'}`
		beside = `{$defs: {B: {items: {$ref: '#/$defs/N'}}, N: {type: [array, integer], $ref: '#/$defs/B', items: {$ref: '#/$defs/N'}}}, $ref: '#/$defs/N'}`
	)
	nested := func(inner string) string { return strings.Repeat("[", 200) + inner + strings.Repeat("]", 200) }
	done := make(chan bool)
	time.AfterFunc(20*time.Second, func() {
		select {
		case <-done:
		default:
			panic("a shape took more than 20 seconds")
		}
	})
	for _, tt := range []struct{ shape, fit, not, why string }{
		{doubling.String(), `1`, `"x"`, `must fit one of 2 shapes, found the text "x" (of the first: must fit one of 2 shapes`},
		{deep, nested("1"), nested(`"x"`), "must fit one of 3 shapes, found a list"},
		{beside, nested("1"), nested(`"x"`), "must be a list or a whole number"},
	} {
		p := parse(t, "name: f\ninputs: [{name: q, shape: "+tt.shape+"}]\noutputs: [{name: r, shape: {type: string}}]\n")
		if _, err := p.Bind(datasets.Values{"q": datasets.RawValue(tt.fit)}); err != nil {
			t.Errorf("%.60s: %.200v", tt.shape, err)
		}
		if _, err := p.Bind(datasets.Values{"q": datasets.RawValue(tt.not)}); err == nil || !strings.Contains(err.Error(), tt.why) || len(err.Error()) > 2000 {
			t.Errorf("%.60s: got %.200v, want %s", tt.shape, err, tt.why)
		}
	}
	close(done)
}

// A shape that leads back to itself is found among many ways that do not.
func TestEndlessShapes(t *testing.T) {
	const shape = `{$defs: {D: {anyOf: [{$ref: '#/$defs/C'}, {$ref: '#/$defs/C'}]}, C: {type: array, items: {$ref: '#/$defs/D'}}, A: {anyOf: [{$ref: '#/$defs/C'}, {$ref: '#/$defs/A'}]}}, $ref: '#/$defs/D'}`
	_, err := pipeline.ParseProgram("p.yaml", []byte("name: f\noutputs: [{name: r, shape: "+shape+"}]\n"))
	if err == nil || !strings.Contains(err.Error(), "$defs.A: refers to itself without end") {
		t.Errorf("got %v", err)
	}
}

// The schema a provider is to enforce has every record closed, at any depth,
// and what says otherwise is left as it is.
func TestClosedSchema(t *testing.T) {
	for _, tt := range []struct{ shape, want string }{
		{"{type: string}", `{"type":"string"}`},
		{
			"{type: object, properties: {b: {}, a: {type: array, items: {properties: {c: {}}}}}, required: [a]}",
			`{"type":"object","properties":{"b":{},"a":{"type":"array","items":{"properties":{"c":{}},"required":["c"],"additionalProperties":false}}},"required":["b","a"],"additionalProperties":false}`,
		},
		{"{type: object, additionalProperties: {properties: {c: {}}}}", `{"type":"object","additionalProperties":{"properties":{"c":{}},"required":["c"],"additionalProperties":false}}`},
		{"{properties: {c: {}}, additionalProperties: true}", `{"properties":{"c":{}},"additionalProperties":true}`},
		{"{anyOf: [{properties: {c: {}}}, {type: 'null'}]}", `{"anyOf":[{"properties":{"c":{}},"required":["c"],"additionalProperties":false},{"type":"null"}]}`},
		{"{enum: [{properties: {c: 1}}]}", `{"enum":[{"properties":{"c":1}}]}`}, // a value, not a shape
	} {
		p := parse(t, "settings: {adapter: json}\nname: f\noutputs: [{name: r, shape: "+tt.shape+"}]\n")
		got := sampleRequest(t, p).Config["response_format"].Member("schema").Member("properties").Member("r").JSON()
		if got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.shape, got, tt.want)
		}
	}
}
