package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// saved is the functai.json another implementation would write of a vector's
// program, with the hashes the vectors say it must have.
func saved(v vector) string {
	def := v.Definition
	member := func(v datasets.Value, name, otherwise string) string {
		if m := v.Member(name); !m.IsZero() {
			return m.JSON()
		}
		return otherwise
	}
	var fields, inputs []string
	field := func(direction, name, shape, purpose, desc string) {
		fields = append(fields, fmt.Sprintf(`{"name":%s,"direction":%q,"shape":%s,"purpose":%q,"type":null,"desc":%s}`, name, direction, shape, purpose, desc))
	}
	for f := range def.Member("inputs").Elements() {
		shape := f.Member("shape").JSON()
		inputs = append(inputs, fmt.Sprintf(`{"name":%s,"shape":%s,"optional":%s}`, f.Member("name").JSON(), shape, member(f, "optional", "false")))
		shape = strings.Replace(compactJSON(shape), `"default":"kind",`, "", 1)
		field("input", f.Member("name").JSON(), shape, "plain", member(f, "desc", "null"))
	}
	if v.Name == "reasoning" {
		field("output", `"reasoning"`, `{"type":"string"}`, "reasoning", "null")
	}
	for f := range def.Member("outputs").Elements() {
		field("output", f.Member("name").JSON(), f.Member("shape").JSON(), "plain", "null")
	}
	return fmt.Sprintf(`{"functai_saved": 1, "language": "python", "entry": "shop:it", "created": "2026-01-02T03:04:05+00:00", "new_key": [1],
 "nodes": {"shop:it": {"kind": "ai", "module": "shop", "name": %s,
  "interface": {"description": "Words.", "inputs": [%s], "outputs": %s},
  "ai": {"settings": %s, "config": {"temperature": 0}, "template": null, "tools": [], "teacher": null, "requires": [],
   "state": %s, "signature": {"instructions": %s, "fields": [%s]},
   "probes": [%s], "fingerprints": {"requests": [%q]}, "body": null, "version": %q}}}}`,
		def.Member("name").JSON(), strings.Join(inputs, ","), def.Member("outputs").JSON(),
		def.Member("settings").JSON(), def.Member("state").JSON(), datasets.Text(v.Expect.Instructions).JSON(), strings.Join(fields, ","),
		v.Expect.Sample.JSON(), v.Expect.RequestHash, v.Expect.Version)
}

func compactJSON(text string) string { return datasets.RawValue(text).Canonical() }

// A function saved by another implementation loads as the program it was.
func TestSaved(t *testing.T) {
	for _, v := range vectors(t) {
		if v.Name == "tool" {
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			text := saved(v)
			p, err := pipeline.ParseSaved("dir/functai.json", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if p.Version() != v.Expect.Version || p.Signature() != v.Expect.Signature || p.Interface() != v.Expect.Interface || p.Instruction() != v.Expect.Instructions {
				t.Errorf("it has version %s, signature %s, instruction %q", p.Version(), p.Signature(), p.Instruction())
			}
			if p.Module() != "shop" || p.Name() != v.Definition.Member("name").String() || p.Description() != "Words." || !strings.HasPrefix(p.Saved(), "sha256:") {
				t.Errorf("it is %s:%s, %q, saved %q", p.Module(), p.Name(), p.Description(), p.Saved())
			}
			again, err := pipeline.ParseProgram("again.json", []byte(p.Definition().JSON()))
			if err != nil || again.Version() != p.Version() || again.Interface() != p.Interface() {
				t.Errorf("its definition is another program: %v, %v", again, err)
			}
		})
	}
}

// An optional input and its default come from the interface.
func TestSavedDefaults(t *testing.T) {
	for _, v := range vectors(t) {
		if v.Name != "default" {
			continue
		}
		p, err := pipeline.ParseSaved("functai.json", []byte(saved(v)))
		if err != nil {
			t.Fatal(err)
		}
		bound, err := p.Bind(datasets.Values{"ticket": datasets.Text("x")})
		if err != nil || bound["tone"].String() != "kind" {
			t.Errorf("bound %v, %v", bound, err)
		}
		// A default that was computed counts by its expression.
		text := strings.Replace(saved(v), `"ai": {`, `"defaults": {"tone": {"code": "mood()"}}, "ai": {`, 1)
		want := datasets.RawValue(`{"defaults":{"tone":{"code":"mood()"}},"request":"` + v.Expect.RequestHash + `"}`).Hash()
		p, err = pipeline.ParseSaved("functai.json", []byte(strings.Replace(text, v.Expect.Version, want, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := pipeline.ParseProgram("again.json", []byte(p.Definition().JSON())); err != nil || again.Version() != want {
			t.Errorf("its definition is another program: %v", err)
		}
	}
}

// A template of the saved function's own.
func TestSavedTemplate(t *testing.T) {
	template := `[{"role":"user","text":"{instruction} {ticket}"}]`
	p := parse(t, "name: it\ninputs: [{name: ticket, shape: {type: string}}]\noutputs: [{name: result, shape: {type: string}}]\nsettings: {template: "+template+"}\n")
	text := fmt.Sprintf(`{"functai_saved": 1, "entry": "m:it", "nodes": {"m:it": {"kind": "ai", "module": "m", "name": "it", "ai": {
  "settings": {"adapter": "chat", "retries": 2, "lm": "gpt-4.1"}, "config": {}, "template": %s, "tools": [], "state": {"instructions": null, "demos": []},
  "signature": {"instructions": "Function: it", "fields": [{"name":"ticket","direction":"input","shape":{"type":"string"},"type":"str"},{"name":"result","direction":"output","shape":{"type":"string"},"type":"str"}]},
  "probes": [{"ticket": "example text"}], "fingerprints": {"signature": %q, "requests": [%q]}, "body": null, "version": %q}}}}`,
		template,
		datasets.RawValue(`[{"direction":"input","name":"ticket","purpose":"plain","shape":{"type":"string"},"type":"str"},{"direction":"output","name":"result","purpose":"plain","shape":{"type":"string"},"type":"str"}]`).Hash(),
		sampleRequest(t, p).Hash(), p.Version())
	q, err := pipeline.ParseSaved("functai.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if q.Version() != p.Version() || !q.InstructionReaches() {
		t.Error("it is another program")
	}
	_, err = pipeline.ParseSaved("functai.json", []byte(strings.Replace(text, `{instruction} {ticket}`, `{% if ticket %}`, 1)))
	wantFailure(t, err, pipeline.TypeProgram, "template-syntax")
}

func TestSavedRefuses(t *testing.T) {
	text := saved(vectors(t)[0])
	for _, tt := range []struct{ what, from, to, code, want string }{
		{"no JSON", "{", "", "saved-malformed", "functai.json:1:"},
		{"another format", `"functai_saved": 1`, `"functai_saved": 2`, "saved-format", "it is of format 2, and format 1 is read here"},
		{"no format", `"functai_saved": 1,`, ``, "saved-format", "it is of format nothing"},
		{"no entry", `"entry": "shop:it"`, `"entry": "shop:other"`, "saved-malformed", "its entry names none of its nodes"},
		{"a module", `"kind": "ai"`, `"kind": "module"`, "saved-not-ai", "shop:it: it is a module, code in python"},
		{"no ai", `"ai": {`, `"was": {`, "saved-malformed", "it has no ai"},
		{"code", `"body": null`, `"body": {"code": "sha256:x"}`, "saved-code", "code of its own, written in python, runs beside the model"},
		{"a body that is not said", `"body": null,`, ``, "saved-code", "code of its own"},
		{"tools", `"tools": []`, `"tools": ["shop:look"]`, "saved-tools", `it has tools (the first is "shop:look")`},
		{"a field of tools", `"purpose":"plain"`, `"purpose":"tools"`, "saved-tools", "its field ticket (tools) needs tools"},
		{"a baked model", `"settings": {`, `"settings": {"lm": {"baked": "small"}`, "saved-model", `its setting lm is {"baked":"small"}`},
		{"a model that is a function", `"settings": {`, `"settings": {"lm": {"node": "shop:x"}`, "saved-model", `its setting lm is {"node":"shop:x"}`},
		{"a layout of its own", `"settings": {`, `"settings": {"adapter": {"name": "x"}`, "saved-layout", "its adapter is a layout of its own"},
		{"an unknown layout", `"settings": {`, `"settings": {"adapter": "yaml"`, "adapter-unknown", `there is no adapter "yaml"`},
		{"another instruction", `Say what the customer wants done.`, `Say what they want.`, "saved-differs", "the request for probe 0"},
		{"another setting", `"settings": {`, `"settings": {"adapter": "chat"`, "saved-differs", "the request for probe 0"},
		{"another probe", `"ticket": "example text"`, `"ticket": "other text"`, "saved-differs", "the request for probe 0"},
		{"a probe without the input", `"ticket": "example text"`, ``, "saved-differs", "the request for probe 0"},
		{"another version", `"version": "sha256:5`, `"version": "sha256:6`, "saved-differs", "its version here is sha256:5"},
		{"another fingerprint", `"fingerprints": {`, `"fingerprints": {"signature": "sha256:0",`, "saved-differs", "its signature's fingerprint"},
		{"another interface", `"inputs": [{"name":"ticket"`, `"inputs": [{"name":"letter"`, "saved-differs", "its interface describes other data"},
		{"no signature", `"signature": {"instructions"`, `"signature": {"words"`, "saved-malformed", "it needs a name"},
		{"no output", `"direction":"output"`, `"direction":"input"`, "saved-malformed", "it has no output"},
		{"a bad shape", `"direction":"input","shape":{`, `"direction":"input","shape":{"minLength":-1,`, "saved-malformed", `its field "ticket" cannot be read: minLength`},
		{"a bad worked example", `"demos": []`, `"demos": [{"inputs": {}}]`, "saved-malformed", "worked example 1 is not inputs and outputs"},
	} {
		changed := strings.Replace(text, tt.from, tt.to, 1)
		if changed == text {
			changed = strings.Replace(compactMembers(text), compactMembers(tt.from), compactMembers(tt.to), 1)
		}
		if compactMembers(changed) == compactMembers(text) {
			t.Fatalf("%s: nothing was changed", tt.what)
		}
		_, err := pipeline.ParseSaved("dir/functai.json", []byte(changed))
		wantFailure(t, err, pipeline.TypeProgram, tt.code)
		if err != nil && (!strings.HasPrefix(err.Error(), "dir/functai.json: "+tt.code+": ") || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %s", tt.what, err, tt.want)
		}
	}
}

// compactMembers writes "a": 1 as "a":1.
func compactMembers(text string) string {
	return strings.NewReplacer("\": ", "\":", ", \"", ",\"").Replace(text)
}
