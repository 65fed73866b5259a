package conf_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"evalrun/internal/conf"
)

func TestParseKeepsOrderAndSpelling(t *testing.T) {
	for _, tt := range []struct{ file, text, want string }{
		{"a.yaml", "b: 1.0\na: [1e-7, -0, 12345678901234567890123]\n", `{"b":1.0,"a":[1e-7,-0,12345678901234567890123]}`},
		{"a.yaml", "t: yes\nu: on\nv: true\nw: FALSE\nx: ~\ny:\nz: null", `{"t":"yes","u":"on","v":true,"w":false,"x":null,"y":null,"z":null}`},
		{"a.yaml", "a: '5'\nb: \"0123\"\nc: !!str 007\nd: 2026-01-02\ne: 1.2.3", `{"a":"5","b":"0123","c":"007","d":"2026-01-02","e":"1.2.3"}`},
		{"a.yaml", "a: |-\n  one\n   two\n  three\nb: |+\n  x\n\nc: >\n  y\n  z\n", `{"a":"one\n two\nthree","b":"x\n\n","c":"y z\n"}`},
		{"a.yaml", "a: &x {p: 1}\nb: *x\nc: [*x, *x]", `{"a":{"p":1},"b":{"p":1},"c":[{"p":1},{"p":1}]}`},
		{"a.yaml", "\ufeffa: ü \U0001F44B", `{"a":"ü 👋"}`},
		{"a.yaml", "---\na: 1\n...\n", `{"a":1}`},
		{"a.yaml", "just text", `"just text"`},
		{"a.yaml", "a: ${HOME} {{ env.KEY }} file://x", `{"a":"${HOME} {{ env.KEY }} file://x"}`},
		{"a.yaml", `{"a": "\ud83d\udc4b", "b": "\/"}`, `{"a":"👋","b":"/"}`}, // JSON in a YAML file
		{"a.yaml", "{a: 1, b: [x, y]}", `{"a":1,"b":["x","y"]}`},
		{"a.json", "\t{\"b\": 1.50,\n\t\"a\": {\"z\": null, \"y\": [true, \"<&>\"]}}\n", `{"b":1.50,"a":{"z":null,"y":[true,"<&>"]}}`},
	} {
		n, err := conf.Parse(tt.file, []byte(tt.text))
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		if got := string(n.JSON()); got != tt.want {
			t.Errorf("%q:\n got %s\nwant %s", tt.text, got, tt.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'i'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 10), ","))
	}
	for _, tt := range []struct{ file, text, want string }{
		{"a.yaml", "", "a.yaml: the file is empty"},
		{"a.yaml", "# only a comment\n", "a.yaml: the file is empty"},
		{"a.yaml", "a: 1\nb:\n  c: 2\n  c: 3\n", `a.yaml:4:3: the key "c" is written twice`},
		{"a.yaml", "a: 1\n---\nb: 2\n", "a.yaml:2:1: a second document; a file holds one"},
		{"a.yaml", "a: .nan", "a.yaml:1:4: .nan could be a number or a text: write a number in plain decimal digits, a text in quotes"},
		{"a.yaml", "a: -.inf", "a.yaml:1:4: -.inf could be"},
		{"a.yaml", "a: 1e999", "a.yaml:1:4: the number 1e999 is too large"},
		{"a.yaml", "a: 0123", "a.yaml:1:4: 0123 could be a number or a text"},
		{"a.yaml", "a: 1_000", "a.yaml:1:4: 1_000 could be"},
		{"a.yaml", "a: 0x1F", "a.yaml:1:4: 0x1F could be"},
		{"a.yaml", "1: x", "a.yaml:1:1: the key is number 1; a key is text: write it in quotes"},
		{"a.yaml", "true: x", "a.yaml:1:1: the key is boolean true; a key is text"},
		{"a.yaml", "? [a]\n: x", "a.yaml:1:3: the key is a list; a key is text"},
		{"a.yaml", "a: &x {p: 1}\nb: {<<: *x}", "a.yaml:2:5: merge keys (<<) are not read; write the keys out"},
		{"a.yaml", "a: !!int \"3\"", "a.yaml:1:4: the tag !!int is not read; leave it out"},
		{"a.yaml", "a: !mine {b: 1}", "a.yaml:1:4: the tag !mine is not read; leave it out"},
		{"a.yaml", "a: !!binary aGk=", "a.yaml:1:4: the tag !!binary is not read"},
		{"a.yaml", "a: &x [*x]", "a.yaml:1:8: the alias *x lies in what it stands for"},
		{"a.yaml", "a: *nobody", "a.yaml: not YAML: unknown anchor 'nobody' referenced"},
		{"a.yaml", "a: [1, 2", "a.yaml:2: not YAML: did not find expected"},
		{"a.yaml", "a: 'open", "a.yaml:1: not YAML: found unexpected end of stream"},
		{"a.yaml", "a: b: c", "a.yaml:1: not YAML: mapping values are not allowed in this context"},
		{"a.yaml", "a: \xff", "a.yaml:1:4: not UTF-8 text"},
		{"a.yaml", bomb, "a.yaml:1:1: its aliases make it"},
		{"a.json", "{\"a\": 1,\n \"a\": 2}", `a.json:2:2: the key "a" is written twice`},
		{"a.json", "{\"a\": 1,}", "a.json:1:8: not JSON: "},
		{"a.json", "{\"a\": [1", "a.json:1:9: not JSON: it ends too early"},
		{"a.json", "{\"a\": NaN}", "a.json:1:7: not JSON: "},
		{"a.json", "{} {}", "a.json:1:4: text after the JSON value"},
		{"a.json", "{\"a\":\n 1e999}", "a.json:2:2: the number 1e999 is too large"},
		{"a.json", "a: 1", "a.json:1:1: not JSON: "},
	} {
		_, err := conf.Parse(tt.file, []byte(tt.text))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%q:\n got %v\nwant %s", shorten(tt.text), err, tt.want)
			continue
		}
		var placed *conf.Error
		if !errors.As(err, &placed) || placed.File != tt.file {
			t.Errorf("%q: the error is a %T without the file", shorten(tt.text), err)
		}
	}
}

func shorten(s string) string { return s[:min(len(s), 80)] }

func TestPlaces(t *testing.T) {
	for _, tt := range []struct{ file, text string }{
		{"p.yaml", "a:\n  - ü: [1,\n      two]\n"},
		{"p.json", "{\"a\":\n  [{\"ü\": [1,\n      \"two\"]}]}"},
	} {
		n, err := conf.Parse(tt.file, []byte(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		two := n.Member("a").Items()[0].Member("ü").Items()[1]
		if s, _ := two.Text(); s != "two" || two.Line() != 3 || two.Col() != 7 || two.File() != tt.file {
			t.Errorf("%s: found %q at %s:%d:%d", tt.file, s, two.File(), two.Line(), two.Col())
		}
		if !n.Member("b").IsZero() || n.Member("b").Kind() != conf.Missing {
			t.Errorf("%s: a member that is not there was found", tt.file)
		}
	}
}

// A long file on one line is read in time proportional to its length.
func TestLongLine(t *testing.T) {
	text := `{"a": [` + strings.TrimSuffix(strings.Repeat(`{"b": 1}, `, 100_000), ", ") + `]}`
	start := time.Now()
	n, err := conf.Parse("a.json", []byte(text))
	if err != nil || len(n.Member("a").Items()) != 100_000 {
		t.Fatal(err)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("it took %v", d)
	}
	if last := n.Member("a").Items()[99_999]; last.Col() != len(text)-len(`{"b": 1}]}`)+1 {
		t.Errorf("the last item is said to be at column %d", last.Col())
	}
}

// raw is a type that reads JSON, as values of rows do.
type raw struct{ text string }

func (r *raw) UnmarshalJSON(b []byte) error {
	if !json.Valid(b) {
		return errors.New("not JSON")
	}
	r.text = string(b)
	return nil
}

// percent reads itself.
type percent float64

func (p *percent) DecodeConf(n conf.Node) error {
	s, _ := n.Text()
	if _, err := fmt.Sscanf(s, "%g%%", (*float64)(p)); err != nil {
		return n.Errorf("must be a percentage")
	}
	return nil
}

type shared struct {
	Name string `conf:"name,required"`
}

type spec struct {
	shared
	Limit    int                    `conf:"limit"`
	Small    int8                   `conf:"small"`
	Count    uint                   `conf:"count"`
	Rate     float64                `conf:"rate"`
	On       bool                   `conf:"on"`
	Off      *bool                  `conf:"off"`
	Timeout  time.Duration          `conf:"timeout"`
	Metrics  []string               `conf:"metrics"`
	Rows     *rows                  `conf:"rows"`
	Models   conf.Pairs[model]      `conf:"models"`
	Env      map[string]string      `conf:"env"`
	Open     conf.Node              `conf:"open"`
	Value    raw                    `conf:"value"`
	Errors   percent                `conf:"max_errors"`
	Table    map[string][]float64   `conf:"table"`
	Options  conf.Pairs[conf.Node]  `conf:"options"`
	Inner    []conf.Pairs[[]string] `conf:"inner"`
	Untagged string
	Hidden   string `conf:"-"`
}

type rows struct {
	By    string `conf:"by"`
	Limit *int   `conf:"limit"`
}

type model struct {
	Provider string `conf:"provider,required"`
}

func decode(text string) (spec, error) {
	n, err := conf.Parse("s.yaml", []byte(text))
	if err != nil {
		return spec{}, err
	}
	var s spec
	return s, conf.Decode(n, &s)
}

func TestDecode(t *testing.T) {
	s, err := decode(`
name: x
limit: 250
small: -5
count: 7
rate: 0.5
on: true
off: false
timeout: 1m30s
metrics: [a, b]
rows: {by: ann, limit: 3}
models:
  zeta: {provider: recorded}
  alpha: {provider: openai}
env: {A: b}
open: {p: [1, 2.50]}
value: {q: 1.0}
max_errors: 5%
table: {r: [1, 2]}
options: {z: 1, a: x}
inner: [{k: [v]}]
`)
	if err != nil {
		t.Fatal(err)
	}
	no, three := false, 3
	if diff := cmp.Diff(rows{"ann", &three}, *s.Rows); diff != "" {
		t.Error(diff)
	}
	if s.Name != "x" || s.Limit != 250 || s.Small != -5 || s.Count != 7 || s.Rate != 0.5 || !s.On || *s.Off != no ||
		s.Timeout != 90*time.Second || len(s.Metrics) != 2 || s.Env["A"] != "b" || s.Errors != 5 || s.Table["r"][1] != 2 {
		t.Errorf("got %+v", s)
	}
	if s.Models[0].Key != "zeta" || s.Models[1].Value.Provider != "openai" || s.Models[1].At.Line() != 14 {
		t.Errorf("models %+v", s.Models)
	}
	if m, ok := s.Models.Get("alpha"); !ok || m.Provider != "openai" {
		t.Errorf("alpha is %+v, %v", m, ok)
	}
	if _, ok := s.Models.Get("beta"); ok {
		t.Error("a model that is not there was found")
	}
	if string(s.Open.JSON()) != `{"p":[1,2.50]}` || s.Value.text != `{"q":1.0}` {
		t.Errorf("open values: %s %s", s.Open.JSON(), s.Value.text)
	}
	if v, _ := s.Inner[0].Get("k"); len(v) != 1 || v[0] != "v" {
		t.Errorf("inner %+v", s.Inner)
	}
}

func TestDecodeNothing(t *testing.T) {
	s, err := decode("name: x\nmetrics:\nrows:\nmodels:\nenv:\noff:\n")
	if err != nil {
		t.Fatal(err)
	}
	if s.Metrics != nil || s.Rows != nil || s.Models != nil || s.Env != nil || s.Off != nil {
		t.Errorf("got %+v", s)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"name: x\nmetrcs: [a]", `s.yaml:2:1: unknown key "metrcs"; did you mean "metrics"?`},
		{"name: x\nrows:\n  bye: ann", `s.yaml:3:3: unknown key "bye" in rows; did you mean "by"?`},
		{"name: x\nrows: {colour: 1}", `s.yaml:2:8: unknown key "colour" in rows; known are by, limit`},
		{"name: x\nUntagged: y", `s.yaml:2:1: unknown key "Untagged"; known are name, limit,`},
		{"limit: 3", "s.yaml:1:1: name is missing"},
		{"name: x\nmodels: {m: {}}", "s.yaml:2:13: models.m.provider is missing"},
		{"name: x\nlimit: ten", `s.yaml:2:8: limit must be a whole number, found text "ten"`},
		{"name: x\nlimit: 2.5", `s.yaml:2:8: limit must be a whole number, found number 2.5`},
		{"name: x\nlimit:", `s.yaml:2:7: limit must be a whole number, found nothing; leave the key out when it is not meant`},
		{"name: x\nlimit: 99999999999999999999", `s.yaml:2:8: limit must be a whole number of 64 bits, found number 99999999999999999999`},
		{"name: x\nsmall: 200", `s.yaml:2:8: small must be a whole number of 8 bits`},
		{"name: x\ncount: -1", `s.yaml:2:8: count must be a whole number of at least 0, found number -1`},
		{"name: x\nrate: fast", `s.yaml:2:7: rate must be a number, found text "fast"`},
		{"name: x\non: yes", `s.yaml:2:5: on must be true or false, found text "yes"`},
		{"name: 5", `s.yaml:1:7: name must be text, found number 5; write it in quotes`},
		{"name: true", `s.yaml:1:7: name must be text, found boolean true; write it in quotes`},
		{"name: [a]", `s.yaml:1:7: name must be text, found a list`},
		{"name: x\ntimeout: 60", `s.yaml:2:10: timeout must be a time such as 500ms, 60s or 5m, found number 60`},
		{"name: x\ntimeout: -5s", `s.yaml:2:10: timeout must be a time such as`},
		{"name: x\nmetrics: a", `s.yaml:2:10: metrics must be a list, found text "a"`},
		{"name: x\nmetrics: [a, 5]", `s.yaml:2:14: metrics[1] must be text, found number 5; write it in quotes`},
		{"name: x\nrows: [a]", `s.yaml:2:7: rows must be a map, found a list`},
		{"name: x\nmodels: [a]", `s.yaml:2:9: models must be a map, found a list`},
		{"name: x\nenv: {A: 1}", `s.yaml:2:10: env.A must be text, found number 1; write it in quotes`},
		{"name: x\nmax_errors: some", `s.yaml:2:13: must be a percentage`},
		{"- a", "s.yaml:1:1: the value must be a map, found a list"},
	} {
		_, err := decode(tt.text)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%q:\n got %v\nwant %s", tt.text, err, tt.want)
		}
	}
}

func TestExpand(t *testing.T) {
	lookup := func(name string) (string, bool) {
		v, ok := map[string]string{"KEY": "s3cret", "RATE": "0.25", "ON": "true", "N": "12", "NESTED": "${KEY}"}[name]
		return v, ok
	}
	n, err := conf.Parse("s.yaml", []byte("name: a${KEY}b\nrate: ${RATE}\non: ${ON}\nlimit: ${N}\nmetrics: ['$${KEY}', '$KEY', '${NESTED}']\nenv: {'${KEY}': x}"))
	if err != nil {
		t.Fatal(err)
	}
	before := string(n.JSON())
	e, err := conf.Expand(n, lookup)
	if err != nil {
		t.Fatal(err)
	}
	var s spec
	if err := conf.Decode(e, &s); err != nil {
		t.Fatal(err)
	}
	if s.Name != "as3cretb" || s.Rate != 0.25 || !s.On || s.Limit != 12 {
		t.Errorf("got %+v", s)
	}
	if diff := cmp.Diff([]string{"${KEY}", "$KEY", "${KEY}"}, s.Metrics); diff != "" {
		t.Error(diff)
	}
	if s.Env["${KEY}"] != "x" {
		t.Error("a key was expanded")
	}
	if string(n.JSON()) != before {
		t.Error("the node that was given changed")
	}
	for _, tt := range []struct{ text, want string }{
		{"a:\n  - ${NOBODY}", "s.yaml:2:5: the environment variable NOBODY is not set"},
		{"a: ${KEY", `s.yaml:1:4: "${KEY" is no reference`},
		{"a: ${1}", `s.yaml:1:4: "${1}" is no reference`},
		{"a: ${A-B}", `s.yaml:1:4: "${A-B}" is no reference`},
	} {
		n, err := conf.Parse("s.yaml", []byte(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conf.Expand(n, lookup); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%q:\n got %v\nwant %s", tt.text, err, tt.want)
		}
	}
}

func TestSuggest(t *testing.T) {
	known := []string{"metrics", "models", "name", "rows", "max_errors", "by"}
	for word, want := range map[string]string{
		"metrcs": "metrics", "mertics": "metrics", "METRICS": "metrics", "modles": "models", "nam": "name",
		"row": "rows", "max-errors": "max_errors", "bye": "by", "zzz": "", "": "", "interface": "", "naem": "name", "n": "",
	} {
		if got := conf.Suggest(word, known); got != want {
			t.Errorf("Suggest(%q) = %q, want %q", word, got, want)
		}
	}
	if got := conf.Suggest("x", nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"a: 1", "a: &x [*x]", "? [a]\n: b", "a: |\n  x\n", "{\"a\": [1, 2]}", "- - - x", "a: !!str 5", "\t", "%YAML 1.2\n---\na", "a: ${X}", "a: 'x", "<<: *a",
	} {
		f.Add("a.yaml", s)
		f.Add("a.json", s)
	}
	f.Fuzz(func(t *testing.T, file, text string) {
		n, err := conf.Parse(file, []byte(text))
		if err != nil {
			var placed *conf.Error
			if !errors.As(err, &placed) {
				t.Fatalf("the error is a %T", err)
			}
			return
		}
		b := n.JSON()
		if !json.Valid(b) {
			t.Fatalf("not JSON: %s", b)
		}
		// What it means does not change when it is written and read again.
		again, err := conf.Parse("again.json", b)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if string(again.JSON()) != string(b) {
			t.Fatalf("%s became %s", b, again.JSON())
		}
		var s spec
		_ = conf.Decode(n, &s)
		_, _ = conf.Expand(n, func(string) (string, bool) { return "x", true })
	})
}
