package pipeline_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// Any text is a template or is refused with a place; one that is a template can
// be written and read.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{
		"{q}", "{{q}}", "{% for f in inputs %}{f.name}{f.value}{% endfor %}", "{% for f in outputs %}<{f.name}>{f.value}</{f.name}>{% endfor %}END\nx",
		"{", "}", "{%", "{% endfor %}", "{instruction}", "{% for f in outputs %}{f.value}{% endfor %}", "{{% %}}",
	} {
		f.Add(s, "<r>a</r>")
	}
	f.Fuzz(func(t *testing.T, text, reply string) {
		messages := fmt.Sprintf(`[{"role":"user","text":%s}]`, datasets.Text(text).JSON())
		p, err := pipeline.ParseProgram("p.yaml", []byte(templated(messages)))
		if err != nil {
			if strings.Contains(err.Error(), "template-syntax") && !strings.Contains(err.Error(), "line ") {
				t.Fatalf("no place: %v", err)
			}
			return
		}
		if !strings.HasPrefix(p.Version(), "sha256:") {
			t.Fatal("no version")
		}
		if _, err := p.Read(reply, "stop", pipeline.ProbeFacts); err != nil {
			wantReplyFailure(t, err)
		}
	})
}

func wantReplyFailure(t *testing.T, err error) {
	t.Helper()
	var f *pipeline.Failure
	if !errors.As(err, &f) || f.Type != pipeline.TypeReply || !strings.HasPrefix(f.Code, "parse-") && f.Code != "format-read-error" {
		t.Fatalf("an unread reply is said by a %T, %v", err, err)
	}
}

// readers are programs of each way of reading a reply.
var readers = map[string]string{
	"xml":     "",
	"chat":    "settings: {adapter: chat}\n",
	"json":    "settings: {adapter: json}\n",
	"cot":     "settings: {module: cot}\n",
	"label":   "settings: {template: [{role: user, text: \"{% for f in outputs %}{f.name}: {f.value}\\n{% endfor %}done\"}]}\n",
	"pattern": "settings: {template: [{role: user, text: x}], reader: {pattern: '(?m)is (.*?)\\.?$'}}\n",
	"whole":   "settings: {template: [{role: user, text: x}]}\n",
}

const fuzzFields = "name: f\noutputs:\n  - {name: parts, shape: {type: array, items: {type: string}}}\n  - {name: kind, shape: {enum: [a, b, 1]}}\n  - {name: result, shape: {type: string}}\n"

func readerProgram(t testing.TB, name string) *pipeline.Program {
	if name == "pattern" || name == "whole" {
		return parse(t, readers[name]+oneText)
	}
	return parse(t, readers[name]+fuzzFields)
}

// Any reply is read whole or not at all, and what is read fits its shape.
func FuzzRead(f *testing.F) {
	programs := map[string]*pipeline.Program{}
	for name := range readers {
		programs[name] = readerProgram(f, name)
	}
	for _, s := range []string{
		"<parts>[]</parts><kind>a</kind><result>x</result>", "<parts>[\"a\"]</parts><result>x</result><kind>1", "<reasoning>r</reasoning><parts>[]</parts><kind>b</kind><result>",
		"[[ ## parts ## ]]\n[]\n[[ ## kind ## ]]\na\n[[ ## result ## ]]\nx\n[[ ## completed ## ]]", `{"parts": [], "kind": 1, "result": "x"}`, "```json\n{}\n```",
		"parts: []\nkind: a\nresult: x\ndone", "it is so.", "", "<result>", "\xff", "```", "```\n```", "{\"parts\":[],\"kind\":\"a\",\"result\":null}",
	} {
		f.Add(s, "stop")
		f.Add(s, "length")
	}
	f.Fuzz(func(t *testing.T, text, finish string) {
		for name, p := range programs {
			got, err := p.Read(text, finish, pipeline.ProbeFacts)
			if err != nil {
				if got != nil {
					t.Fatalf("%s: an unread reply gave %v", name, got)
				}
				wantReplyFailure(t, err)
				continue
			}
			for _, o := range p.Outputs() {
				v := got[o.Name]
				if v.IsZero() {
					t.Fatalf("%s: no %s", name, o.Name)
				}
				if _, err := datasets.ParseValue(v.JSON()); err != nil {
					t.Fatalf("%s: %s is no JSON: %s", name, o.Name, v.JSON())
				}
			}
		}
	})
}

// Outputs written as a worked example's reply read back as what they were.
func FuzzRoundTrip(f *testing.F) {
	programs := map[string]*pipeline.Program{}
	for name := range readers {
		if name != "pattern" {
			programs[name] = readerProgram(f, name)
		}
	}
	for _, s := range []string{"x", "9", "true", "null", `"x"`, "a\nb", "{}", "ü \U0001F44B", "\\", "```", "1e5", "-0", "a: b", "[1]", "12345678901234567890"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) || strings.TrimFunc(text, space) != text {
			return
		}
		for _, mark := range []string{"<", "[[", "parts:", "kind:", "result:", "done"} {
			if strings.Contains(text, mark) {
				return
			}
		}
		values := datasets.Values{
			"parts": datasets.RawValue("[" + datasets.Text(text).JSON() + "]"), "kind": datasets.Int(1),
			"result": datasets.Text(text), "reasoning": datasets.Text(text),
		}
		for name, p := range programs {
			q := p.WithDemos([]pipeline.Demo{{Outputs: values}})
			r, err := q.Render(pipeline.Rendering{Instruction: q.Instruction(), Facts: pipeline.ProbeFacts})
			if err != nil {
				t.Fatal(err)
			}
			reply := ""
			for _, m := range r.Messages {
				if m.Role == "assistant" {
					reply = m.Parts[0].Text
				}
			}
			got, err := p.Read(reply, "stop", pipeline.ProbeFacts)
			if err != nil {
				t.Fatalf("%s: %q, written for %q: %v", name, reply, text, err)
			}
			for output, v := range got {
				if !v.Equal(values[output]) && !sameNumber(name, text, v, values[output]) {
					t.Fatalf("%s: %s was %s and is read as %s from %q", name, output, values[output].JSON(), v.JSON(), reply)
				}
			}
		}
	})
}

// sameNumber: a text that reads as JSON is embedded in the json layout's object
// as that JSON, spelled as canonical.
func sameNumber(reader, text string, got, want datasets.Value) bool {
	if reader != "json" {
		return false
	}
	v, err := datasets.ParseValue(text)
	if err != nil || v.Kind() == '"' {
		return false
	}
	w, err := datasets.ParseValue(got.String())
	return err == nil && v.Equal(w)
}

func space(r rune) bool {
	return strings.ContainsRune("\t\n\v\f\r\x1c\x1d\x1e\x1f \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000", r)
}

// Any file is a program or is refused, and a program's definition is that
// program.
func FuzzDefinition(f *testing.F) {
	b, err := os.ReadFile("testdata/programs.json")
	if err != nil {
		f.Fatal(err)
	}
	for v := range datasets.RawValue(string(b)).Member("cases").Elements() {
		f.Add(v.Member("definition").JSON())
	}
	f.Add(routeYAML)
	f.Add(plan)
	f.Add(templated(user("{q}{% for f in outputs %}{f.name}{f.value}{% endfor %}")))
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = pipeline.ParseSaved("functai.json", []byte(text))
		p, err := pipeline.ParseProgram("p.yaml", []byte(text))
		if err != nil {
			return
		}
		p.Warnings()
		_, _ = p.Bind(p.Sample())
		again, err := pipeline.ParseProgram("again.json", []byte(p.Definition().JSON()))
		if err != nil {
			t.Fatalf("its definition %s: %v", p.Definition().JSON(), err)
		}
		if again.Version() != p.Version() || again.Signature() != p.Signature() || again.Interface() != p.Interface() {
			t.Fatalf("its definition %s is another program", p.Definition().JSON())
		}
	})
}

// FuzzSaved changes a saved folder's file: it loads as what it was or is refused.
func FuzzSaved(f *testing.F) {
	for _, v := range vectors(f)[:6] {
		f.Add(saved(v))
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := pipeline.ParseSaved("functai.json", []byte(text))
		if err == nil && p.Version() == "" {
			t.Fatal("no version")
		}
	})
}

func BenchmarkRender(b *testing.B) {
	long := strings.Repeat("Q: {{ [ ( What comes next?\nA: ) ] }}\n\n", 60)
	for name, text := range map[string]string{
		"prompt 2 KB": "name: f\ninputs: [{name: q, shape: {type: string}}]\noutputs: [{name: r, shape: {type: string}}]\nsettings: {template: [{role: user, text: " + fmt.Sprintf("%q", long+"Q: {q}\nA:") + "}]}\n",
		"xml":         "inputs: [{name: q, shape: {type: string}}]\n" + fuzzFields,
	} {
		p := parse(b, text)
		q := datasets.Values{"q": datasets.Text(strings.Repeat("Is it so?\n", 20))}
		r := pipeline.Rendering{Inputs: q, Instruction: p.Instruction(), Model: "m", Facts: pipeline.ProbeFacts}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Render(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	for name, reply := range map[string]string{
		"xml":     "<parts>[\"a\",\"b\"]</parts>\n<kind>a</kind>\n<result>" + strings.Repeat("so ", 300) + "</result>",
		"json":    `{"parts": ["a", "b"], "kind": "a", "result": "` + strings.Repeat("so ", 300) + `"}`,
		"whole":   strings.Repeat("so ", 300),
		"pattern": strings.Repeat("so ", 300) + "\nit is done.",
	} {
		p := readerProgram(b, name)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Read(reply, "stop", pipeline.ProbeFacts); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
