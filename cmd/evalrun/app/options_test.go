package app

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/pipeline"
)

type ownModel struct{}

func (ownModel) Generate(context.Context, *pipeline.Request) (*pipeline.Reply, error) {
	return nil, pipeline.Failf(pipeline.TypeServer, "", "it answers nothing")
}

type ownMetric struct{ name string }

func (m ownMetric) Name() string { return m.name }
func (ownMetric) Score(context.Context, datasets.Row, *pipeline.Call) (harness.Score, error) {
	return harness.Score{}, nil
}

func ownPlugin(t *testing.T, name string) *pipeline.Plugin {
	t.Helper()
	p, err := pipeline.NewPlugin(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Options that cannot be are the builder's mistakes: Main says all of them and does
// nothing.
func TestOptions(t *testing.T) {
	var noMetric *ownMetric
	for _, c := range []struct {
		name string
		opts []Option
		want []string // none: the options are fine
	}{
		{"fine", []Option{WithPlugin(ownPlugin(t, "goplug")), WithModel("own", ownModel{}), WithMetric(ownMetric{"own"})}, nil},
		{"two plugins of a name", []Option{WithPlugin(ownPlugin(t, "p")), WithPlugin(ownPlugin(t, "p"))}, []string{`WithPlugin: a plugin called "p" is given twice`}},
		{"no plugin", []Option{WithPlugin(nil)}, []string{"WithPlugin was given no plugin"}},
		{"no model", []Option{WithModel("own", nil)}, []string{`WithModel("own") was given no model`}},
		{"a model without a name", []Option{WithModel("", ownModel{})}, []string{"WithModel: a model has no name"}},
		{"a provider's name", []Option{WithModel("lexical", ownModel{})}, []string{`WithModel: the provider "lexical" comes with evalrun`}},
		{"no tool", []Option{WithTool("search", nil)}, []string{`WithTool("search") was given no tool`}},
		{"no metric", []Option{WithMetric(nil)}, []string{"WithMetric was given no metric"}},
		{"a pointer to no metric", []Option{WithMetric(noMetric)}, []string{"WithMetric was given no metric"}},
		{"no option", []Option{nil}, []string{"option 1 is nil"}},
		{"several", []Option{WithPlugin(nil), WithMetric(nil)}, []string{"WithPlugin was given no plugin; WithMetric was given no metric"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, said bytes.Buffer
			code := Main(t.Context(), []string{"evalrun", "version"}, Stdio{strings.NewReader(""), &out, &said}, c.opts...)
			if c.want == nil {
				if code != ExitOK {
					t.Errorf("exit %d: %s", code, said.String())
				}
				return
			}
			if code != ExitUsage || out.Len() > 0 {
				t.Errorf("exit %d, wrote %q", code, out.String())
			}
			for _, want := range append(c.want, "this evalrun was built wrongly: ", "exit 2: asked wrongly") {
				if !strings.Contains(said.String(), want) {
					t.Errorf("said %q, want %q", said.String(), want)
				}
			}
		})
	}
}

// A misspelt name of a plugin that was built in is told from it.
func TestPluginSuggestion(t *testing.T) {
	spec := filepath.Join(t.TempDir(), "spec.yaml")
	text := "version: 1\nplugins: [goplg]\nrecords: log\nprogram: a\nmodels: {m: {provider: lexical}}\ncandidates: [{name: c, program: p.yaml, model: m}]\n"
	program := "name: a\ninputs: [{name: q, shape: {type: string}}]\noutputs: [{name: r, shape: {type: string}}]\n"
	for name, text := range map[string]string{spec: text, filepath.Join(filepath.Dir(spec), "p.yaml"): program} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, said bytes.Buffer
	code := Main(t.Context(), []string{"evalrun", "run", spec}, Stdio{strings.NewReader(""), &out, &said}, WithPlugin(ownPlugin(t, "goplug")))
	if want := `spec.yaml:2:11: plugin-load: there is no plugin "goplg"; did you mean "goplug"?`; code != ExitUsage || !strings.Contains(said.String(), want) {
		t.Errorf("exit %d, said %q", code, said.String())
	}
}

// A name that two things have is refused: nobody could say which is meant.
func TestAmbiguousNames(t *testing.T) {
	spec := filepath.Join(t.TempDir(), "spec.yaml")
	program := "name: a\ninputs: [{name: q, shape: {type: string}}]\noutputs: [{name: r, shape: {type: string}}]\n"
	if err := os.WriteFile(filepath.Join(filepath.Dir(spec), "p.yaml"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	clock := pipeline.ToolFunc(func(context.Context, pipeline.Invocation, datasets.Value) (string, error) { return "noon", nil })
	for key, want := range map[string]string{
		"plugins: [guard]": `spec.yaml:2:11: plugin-load: "guard" is a built-in plugin, and one that this evalrun was built with`,
		"tools: {run: {clock: {url: http://a.example}}}": `spec.yaml:2:22: this evalrun was built with a tool "clock"`,
	} {
		text := "version: 1\n" + key + "\nrecords: log\nprogram: a\nmodels: {m: {provider: lexical}}\ncandidates: [{name: c, program: p.yaml, model: m}]\n"
		if err := os.WriteFile(spec, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, said bytes.Buffer
		code := Main(t.Context(), []string{"evalrun", "run", spec}, Stdio{strings.NewReader(""), &out, &said}, WithPlugin(ownPlugin(t, "guard")), WithTool("clock", clock))
		if code != ExitUsage || !strings.Contains(said.String(), want) {
			t.Errorf("%s: exit %d, said %q", key, code, said.String())
		}
	}
}

// What is written while a line of progress is shown takes its place.
func TestConsole(t *testing.T) {
	var b bytes.Buffer
	c := &console{w: &b}
	c.progress("1/2 answers", 16)
	if _, err := c.Write([]byte("loud: a line\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("loud: another\n")); err != nil {
		t.Fatal(err)
	}
	c.progress("2/2 answers", 16)
	c.progress("", 16)
	erased := "\r" + strings.Repeat(" ", 15) + "\r"
	want := "\r1/2 answers    " + erased + "loud: a line\nloud: another\n\r2/2 answers    " + erased
	if b.String() != want {
		t.Errorf("wrote %q, want %q", b.String(), want)
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		line  string
		width int
		want  string
	}{
		{"short\n", 20, "short\n"},
		{"  one two three\n", 9, "  one two\n    three\n"},
		{"averyverylongword b\n", 5, "averyverylongword\n  b\n"},
		{"é é é", 3, "é é\n  é"},
		{"\n", 5, "\n"},
	} {
		var b strings.Builder
		if wrap(&b, c.line, c.width); b.String() != c.want {
			t.Errorf("%q at %d: %q, want %q", c.line, c.width, b.String(), c.want)
		}
	}
}
