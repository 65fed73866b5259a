package metrics

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/internal/conf"
	"evalrun/pipeline"
)

// made is the metric of a spec as a file has it.
func made(t testing.TB, text string, o Options) (harness.Metric, error) {
	t.Helper()
	n, err := conf.Parse("spec.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var s Spec
	if err := s.DecodeConf(n); err != nil {
		return nil, err
	}
	all, err := New(t.Context(), s, o)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

func mustMake(t testing.TB, text string, o Options) harness.Metric {
	t.Helper()
	m, err := made(t, text, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// scores is what a metric gives an answer: a number, or why there is none.
func scores(t testing.TB, m harness.Metric, right, answer string) (float64, harness.Score) {
	t.Helper()
	s, err := m.Score(t.Context(), datasets.Row{Labels: datasets.Values{"result": datasets.RawValue(right)}},
		&pipeline.Call{Outputs: datasets.Values{"result": datasets.RawValue(answer)}})
	if err != nil {
		t.Fatal(err)
	}
	if s.Missing != "" {
		return math.NaN(), s
	}
	return s.Value, s
}

var none = math.NaN()

// Scores by the definitions of docs/metrics.md.
func TestScores(t *testing.T) {
	for _, c := range []struct {
		spec, right, answer string
		want                float64 // NaN: missing
	}{
		{`exact_match: {name: x}`, `"Paris"`, `"PARIS "`, 1},

		{`contains: {}`, `"New York"`, `"I love new  YORK!"`, 1},
		{`contains: {}`, `"Paris"`, `"Lyon"`, 0},
		{`contains: {}`, `["a","b"]`, `"b and a"`, 1},
		{`contains: {}`, `["a","z"]`, `"b and a"`, 0},
		{`contains: {any: true}`, `["a","z"]`, `"b and a"`, 1},
		{`contains: {any: true}`, `["y","z"]`, `"b and a"`, 0},
		{`contains: {texts: [sorry]}`, `"x"`, `"I am SORRY."`, 1},
		{`contains: {}`, `3`, `"it is 34"`, 1},

		{`regex: {pattern: '^yes\b'}`, `"-"`, `"yes, it is"`, 1},
		{`regex: {pattern: '^yes\b'}`, `"-"`, `"Yes"`, 0},
		{`regex: {pattern: '(?i)^yes\b'}`, `"-"`, `"Yes"`, 1},
		{`regex: {pattern: 'answer is (\w+)', extract: true}`, `"Blue"`, `"So the answer is blue."`, 1},
		{`regex: {pattern: 'answer is (\w+)', extract: true}`, `"Blue"`, `"blue"`, 0},
		{`regex: {pattern: '\d+', extract: true}`, `42`, `"It is 42, not 43"`, 1},

		{`number`, `1`, `1.0`, 1},
		{`number`, `1234`, `"1,234"`, 1},
		{`number`, `-5`, `"−5"`, 1},
		{`number`, `1`, `"one"`, 0},
		{`number`, `"one"`, `1`, none},
		{`number`, `true`, `1`, none},
		{`number`, `0.3`, `0.30000000000000004`, 0},
		{`number`, `9007199254740993`, `9007199254740992`, 0},
		{`number: {tolerance: 0.01}`, `1`, `1.01`, 1}, // off by more than 0.01 as float64
		{`number: {tolerance: 0.01}`, `1`, `1.0100001`, 0},
		{`number: {relative: 0.05}`, `-200`, `-210`, 1},
		{`number: {relative: 0.05}`, `-200`, `-210.1`, 0},
		{`number: {relative: 0.05, tolerance: 3}`, `10`, `13`, 1}, // the larger allowance counts
		{`number: {relative: 0.05}`, `0`, `0.001`, 0},
		{`number`, `42`, `"The answer is 42."`, 0},
		{`number: {find: last}`, `42`, `"7 times 6 is 42."`, 1},
		{`number: {find: first}`, `7`, `"7 times 6 is 42."`, 1},
		{`number: {find: last}`, `1234.5`, `"$1,234.50"`, 1},
		{`number: {find: last}`, `5`, `"pages 3-5"`, 1},
		{`number: {find: last}`, `-5`, `"it fell to -5"`, 1},
		{`number: {find: last}`, `5`, `"none"`, 0},

		{`json`, `{"a":1,"b":"x"}`, `{"b":" X","a":1.0}`, 1},
		{`json`, `{"a":1,"b":"x","c":true,"d":null}`, `{"a":1,"b":"y","d":null,"e":5}`, 0.5},
		{`json`, `{"a":1}`, `"{\"a\": 1}"`, 1},
		{`json`, `"{\"a\": 1}"`, `{"a":1}`, 1},
		{`json`, `{"a":1}`, `"no object"`, 0},
		{`json`, `[1]`, `{"a":1}`, none},
		{`json`, `{}`, `{}`, none},
		{`json: {strict: true}`, `{"a":1}`, `{"a":1,"b":2,"c":3}`, 1.0 / 3},
		{`json: {strict: true}`, `{}`, `{}`, 1},
		{`json: {fields: [a]}`, `{"a":1,"b":2}`, `{"a":1,"b":3}`, 1},
		{`json: {fields: [z]}`, `{"a":1}`, `{"a":1}`, none},

		{`list`, `["a","b"]`, `["B","a","a"]`, 1},
		{`list`, `["a","b","c"]`, `["a","x"]`, 2.0 / 5},
		{`list`, `[]`, `[]`, 1},
		{`list`, `[]`, `["a"]`, 0},
		{`list`, `[1,{"k":2}]`, `[{"k":2.0},1.0]`, 1},
		{`list: {exact: true}`, `["a","b"]`, `["a"]`, 0},
		{`list: {ordered: true}`, `["a","b","c"]`, `["b","c","a"]`, 2.0 / 3},
		{`list: {ordered: true}`, `["a","a"]`, `["a"]`, 2.0 / 3},
		{`list: {ordered: true}`, `["a","b"]`, `["a","b"]`, 1},
		{`list: {separator: ","}`, `["red","green"]`, `"Green, red"`, 1},
		{`list`, `["a"]`, `"a"`, 0},
		{`list`, `"a"`, `["a"]`, none},

		// SQuAD: lower case, no punctuation, no articles, white space fixed.
		{`f1`, `"the capital of France"`, `"Paris, the capital of France."`, 6.0 / 7},
		{`f1`, `"The Eiffel-Tower"`, `"eiffeltower"`, 1},
		{`f1`, `"to be or not to be"`, `"to be"`, 0.5},
		{`f1`, `["Paris","the city of light"]`, `"City of Light"`, 1},
		{`f1`, `"the"`, `"a"`, 1},
		{`f1`, `"the"`, `"cat"`, 0},
		{`f1`, `"the—cat"`, `"— —cat"`, 2.0 / 3}, // \b stands between a dash and an article
		{`f1`, `"élan"`, `"ÉLAN"`, 1},

		// Lin 2004, section 3.1: the reference is S1.
		{`rouge_l`, `"police killed the gunman"`, `"police kill the gunman"`, 0.75},
		{`rouge_l`, `"police killed the gunman"`, `"the gunman kill police"`, 0.5},
		{`rouge_l`, `"police killed the gunman"`, `"the gunman police killed"`, 0.5},
		{`rouge_l: {beta: 2}`, `"police killed the gunman"`, `"Police, gunman."`, 2.5 / 4.5},
		{`rouge_l`, `["x","police killed"]`, `"police killed"`, 1},
		{`rouge_l`, `""`, `"."`, 1},
		{`rouge_l`, `"a"`, `""`, 0},

		// By hand: (4/5 · (2+1)/(4+1) · (0+1)/(3+1) · (0+1)/(2+1))^¼ = 0.04^¼.
		{`bleu`, `"a b x d e"`, `"a b c d e"`, math.Sqrt(0.2)},
		{`bleu`, `"The cat sat down"`, `"the cat sat"`, math.Exp(1 - 4.0/3)},
		{`bleu`, `"x y z"`, `"x y z"`, 1},
		{`bleu`, `"x"`, `"x"`, 1},
		{`bleu`, `"x y"`, `"a b"`, 0},
		{`bleu`, `"x"`, `""`, 0},
		{`bleu`, `""`, `""`, 1},
		{`bleu: {order: 1}`, `["The cat is on the mat","There is a cat on the mat"]`, `"the the the the the the the"`, 2.0 / 7},
		// References of 3 and 5 words are as close to 4: the shorter one counts.
		{`bleu: {order: 1}`, `["a b c d e","a b c"]`, `"a b c d"`, 1},

		{`edit_distance`, `"kitten"`, `"sitting"`, 1 - 3.0/7},
		{`edit_distance: {as: distance}`, `"kitten"`, `"sitting"`, 3},
		{`edit_distance`, `"naïve"`, `"naive"`, 0.8},
		{`edit_distance`, `""`, `""`, 1},
		{`edit_distance`, `["saturday","sunday"]`, `"sunday"`, 1},

		{`classification`, `"Spam"`, `"spam "`, 1},
		{`classification`, `"spam"`, `"ham"`, 0},
		{`classification: {labels: [spam, ham]}`, `"eggs"`, `"eggs"`, none},

		{`json_schema: {schema: {type: object, required: [a]}}`, `"-"`, `{"a":1}`, 1},
		{`json_schema: {schema: {type: object, required: [a]}}`, `"-"`, `"{\"a\":1}"`, 1},
		{`json_schema: {schema: {type: object, required: [a]}}`, `"-"`, `{"b":1}`, 0},
		{`json_schema: {schema: {type: string}}`, `"-"`, `"42"`, 1},
		{`json_schema: {schema: {multipleOf: 0.1}}`, `"-"`, `1e-999999999`, 1}, // not worked out digit by digit

		{`length`, `"-"`, `"héllo wörld"`, 11},
		{`length: {of: words}`, `"-"`, `" two\u00a0words "`, 2},
		{`length: {of: tokens}`, `"-"`, `"x"`, none},
	} {
		got, s := scores(t, mustMake(t, c.spec, Options{}), c.right, c.answer)
		if math.IsNaN(c.want) != math.IsNaN(got) || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %s for %s scores %v (%+v); want %v", c.spec, c.answer, c.right, got, s, c.want)
		}
		if s.Value == 1 && s.Feedback != "" && !strings.HasPrefix(c.spec, "json") {
			t.Errorf("%s: %s for %s is right, and the feedback is %q", c.spec, c.answer, c.right, s.Feedback)
		}
	}
}

// Papineni and others 2002, sections 2.1 and 2.1.1: the modified precisions of
// their examples.
func TestModifiedPrecision(t *testing.T) {
	refs := [][]string{
		markTokens("It is a guide to action that ensures that the military will forever heed Party commands"),
		markTokens("It is the guiding principle which guarantees the military forces always being under the command of the Party"),
		markTokens("It is the practical guide for the army always to heed the directions of the party"),
	}
	for _, c := range []struct {
		candidate    string
		n, hits, all int
	}{
		{"It is a guide to action which ensures that the military always obeys the commands of the party", 1, 17, 18},
		{"It is a guide to action which ensures that the military always obeys the commands of the party", 2, 10, 17},
		{"It is to insure the troops forever hearing the activity guidebook that party direct", 1, 8, 14},
		{"It is to insure the troops forever hearing the activity guidebook that party direct", 2, 1, 13},
	} {
		if hits, all := clipped(markTokens(c.candidate), refs, c.n); hits != c.hits || all != c.all {
			t.Errorf("%.20s…, %d-grams: %d of %d; want %d of %d", c.candidate, c.n, hits, all, c.hits, c.all)
		}
	}
}

func TestFeedbackTellsWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ spec, right, answer, want string }{
		{`json`, `{"a":1,"b":"x","c":2}`, `{"a":2,"b":"x","d":0}`, "wrong: a is 2, right is 1; missing: c; extra: d"},
		{`list`, `["a","b"]`, `["b","c"]`, `missing: "a"; extra: "c"`},
		{`list: {ordered: true}`, `["a","b"]`, `["b","a"]`, "the same elements in another order or number"},
		{`contains`, `["a","z"]`, `"a"`, "the answer lacks: z"},
		{`regex: {pattern: '^\d+$'}`, `""`, `"x"`, `the answer does not match ^\d+$`},
		{`regex: {pattern: '\d+', extract: true}`, `1`, `"2 3"`, "found 2; the right answer is 1"},
		{`number`, `1`, `"x"`, "the answer is no number; the right answer is 1"},
		{`edit_distance`, `"ab"`, `"ac"`, "1 edits; the right answer is ab"},
		{`json_schema: {schema: {type: object, required: [a], properties: {b: {type: string}}}}`, `""`, `{"b":1}`, "the answer does not satisfy the schema: /: missing property 'a'; /b: got number, want string"},
	} {
		if _, s := scores(t, mustMake(t, c.spec, Options{}), c.right, c.answer); s.Feedback != c.want {
			t.Errorf("%s: %s for %s: %q; want %q", c.spec, c.answer, c.right, s.Feedback, c.want)
		}
	}
}

// Which output is looked at, and what it is compared with.
func TestSubject(t *testing.T) {
	row := datasets.Row{
		Labels:   datasets.Values{"city": datasets.Text("Paris"), "country": datasets.Text("France")},
		Recorded: datasets.Values{"city": datasets.Text("Lyon")},
	}
	two := &pipeline.Call{Outputs: datasets.Values{"city": datasets.Text("Lyon"), "country": datasets.Text("France")}}
	for spec, want := range map[string]string{
		`f1: {output: country}`:                             "1",
		`f1: {output: city}`:                                "0",
		`f1: {output: city, against: recorded}`:             "1",
		`exact_match: {output: city, against: recorded}`:    "1",
		`exact_match: {against: recorded}`:                  "1",
		`f1: {output: country, against: recorded}`:          "the row has no recorded output country",
		`f1: {output: river}`:                               "the call has no output river",
		`f1`:                                                "the call has the outputs city, country, and nothing says which is the answer; name one as output",
		`classification: {output: city}`:                    "0",
		`classification: {output: city, against: recorded}`: "1",
	} {
		s, err := mustMake(t, spec, Options{}).Score(t.Context(), row, two)
		if err != nil {
			t.Fatal(err)
		}
		got := s.Missing
		if got == "" {
			got = fmt.Sprint(s.Value)
		}
		if got != want {
			t.Errorf("%s: %s; want %s", spec, got, want)
		}
	}
}

// What is asked wrongly is an error at its place.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"loop.star": "def score(row, call):\n    pass\nfor i in range(10000000):\n    pass\n", "none.star": "x = 1\n",
		"calls.yaml": "r1: [search]\nr2: [{input: {}}]\n", "list.yaml": "[1]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Dir: dir, Outputs: []string{"reasoning", "city"}}
	for spec, want := range map[string]string{
		`{a: {}, b: {}}`:             "spec.yaml:1:1: a metric is a name, or a map of one name to its options",
		`3`:                          "spec.yaml:1:1: a metric is a name, or a map of one name",
		`f1: 3`:                      "spec.yaml:1:5: the options of f1 must be a map",
		`blue: {}`:                   `spec.yaml:1:1: there is no metric "blue"; did you mean bleu?`,
		`number: {tolerence: 1}`:     `spec.yaml:1:10: unknown key "tolerence"; did you mean "tolerance"?`,
		`number: {tolerance: -1}`:    "spec.yaml:1:21: tolerance: -1 is less than 0",
		`number: {tolerance: small}`: `tolerance must be a number, found text "small"`,
		`number: {find: lst}`:        `spec.yaml:1:16: find: there is no "lst"; did you mean "last"?`,
		`f1: {output: cty}`:          `spec.yaml:1:14: output: there is no "cty"; did you mean "city"?`,
		`f1: {against: gold}`:        `against: there is no "gold"; there are label, recorded`,
		`latency: {output: city}`:    `unknown key "output"`,
		`regex`:                      "regex needs a pattern",
		`regex: {pattern: '('}`:      "spec.yaml:1:18: pattern: error parsing regexp: missing closing ): `(`",
		`regex: {pattern: '(a)(b)', extract: true}`:           "it has 2 groups",
		`contains: {texts: ['']}`:                             "an empty text is in every answer",
		`bleu: {order: 0}`:                                    "order: 0 is not from 1 to 10",
		`rouge_l: {beta: 0}`:                                  "beta: 0 is no number above 0",
		`edit_distance: {as: ratio}`:                          `as: there is no "ratio"; there are similarity, distance`,
		`classification: {labels: [a, A]}`:                    `labels: "A" is there twice`,
		`json_schema`:                                         "json_schema needs one of schema",
		`json_schema: {schema: {type: 3}}`:                    "it is no JSON Schema: /type",
		`json_schema: {schema: {$ref: "http://127.0.0.1/x"}}`: "nothing is fetched",
		`json_schema: {file: nosuch.json}`:                    "nosuch.json",
		`tool_calls: {label: a, meta: b}`:                     "one of label, meta and file",
		`tool_calls: {file: calls.yaml}`:                      "calls.yaml:2:5: row r2: an expected call has no name",
		`tool_calls: {file: list.yaml}`:                       "list.yaml:1:1: what is expected is a map of row ids",
		`tokens: {of: all}`:                                   `of: there is no "all"; there are total, input, output`,
		`length: {better: shorter}`:                           `better: there is no "shorter"`,
		`length: {of: tokens, output: city}`:                  "tokens are counted of the whole reply",
		`starlark`:                                            "starlark needs a file",
		`starlark: {file: nosuch.star}`:                       "nosuch.star",
		`starlark: {file: none.star}`:                         "none.star: it defines no function score",
		`starlark: {file: loop.star}`:                         "loop.star:3:1: stopped after 20000000 steps",
		`command`:                                             "command needs the program",
		`command: {argv: [x]}`:                                "programs are not run here",
	} {
		if _, err := made(t, spec, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", spec, err, want)
		}
	}
}

func TestDirection(t *testing.T) {
	for spec, want := range map[string]bool{
		`latency`: true, `cost`: true, `tokens`: true, `f1`: false, `edit_distance`: false, `edit_distance: {as: distance}`: true,
		`length`: false, `length: {better: lower}`: true, `length: {better: higher}`: false,
	} {
		d, ok := mustMake(t, spec, Options{}).(harness.Directed)
		if got := ok && d.LowerIsBetter(); got != want {
			t.Errorf("%s: lower is better: %v; want %v", spec, got, want)
		}
	}
}

func TestEffort(t *testing.T) {
	seconds, cost := 0.25, 0.003
	in, out, total := int64(10), int64(5), int64(17)
	for _, c := range []struct {
		spec string
		took harness.Result
		want float64
	}{
		{`latency`, harness.Result{Call: "c", Latency: &seconds}, 0.25},
		{`latency`, harness.Result{Call: "c", Seconds: 3}, none},
		{`cost`, harness.Result{Call: "c", Cost: &cost}, 0.003},
		{`cost`, harness.Result{Call: "c"}, none},
		{`cost`, harness.Result{Cost: &cost}, none}, // the recorded lane
		{`tokens`, harness.Result{Call: "c", Usage: pipeline.Usage{Input: &in, Output: &out}}, 15},
		{`tokens`, harness.Result{Call: "c", Usage: pipeline.Usage{Input: &in, Output: &out, Total: &total}}, 17},
		{`tokens`, harness.Result{Call: "c", Usage: pipeline.Usage{Input: &in}}, none},
		{`tokens: {of: input}`, harness.Result{Call: "c", Usage: pipeline.Usage{Input: &in}}, 10},
		{`tokens: {of: output}`, harness.Result{Call: "c", Usage: pipeline.Usage{Output: &out}}, 5},
	} {
		s, err := mustMake(t, c.spec, Options{}).(harness.Effort).ScoreEffort(datasets.Row{}, &c.took)
		if err != nil || (s.Missing != "") != math.IsNaN(c.want) || s.Missing == "" && s.Value != c.want {
			t.Errorf("%s of %+v: %+v, %v; want %v", c.spec, c.took, s, err, c.want)
		}
	}
}

func TestClass(t *testing.T) {
	row := func(label string) datasets.Row {
		return datasets.Row{Labels: datasets.Values{"a": datasets.RawValue(label)}}
	}
	call := func(answer string) *pipeline.Call {
		return &pipeline.Call{Outputs: datasets.Values{"a": datasets.RawValue(answer)}}
	}
	plain, listed := mustMake(t, `classification`, Options{}), mustMake(t, `classification: {labels: [Spam, ham]}`, Options{Outputs: []string{"why", "a"}})
	for _, c := range []struct {
		m                   harness.Metric
		row                 datasets.Row
		call                *pipeline.Call
		expected, predicted string
	}{
		{plain, row(`"Spam"`), call(`" SPAM"`), "spam", "spam"},
		{plain, row(`"Spam"`), nil, "spam", ""},
		{plain, row(`1`), call(`1.0`), "1", "1"},
		{plain, row(`""`), call(`"x"`), "(empty)", "x"},
		{plain, datasets.Row{}, call(`"x"`), "", ""},
		{listed, row(`"spam"`), call(`"HAM"`), "Spam", "ham"},
		{listed, row(`"spam"`), nil, "Spam", ""},
		{listed, row(`"eggs"`), call(`"ham"`), "", ""},
	} {
		expected, predicted := c.m.(harness.Classifier).Class(c.row, c.call)
		if expected != c.expected || predicted != c.predicted {
			t.Errorf("%v, %v: %q, %q; want %q, %q", c.row.Labels, c.call, expected, predicted, c.expected, c.predicted)
		}
	}
}

func TestToolCalls(t *testing.T) {
	steps := func(calls string) []datasets.Step {
		return []datasets.Step{
			datasets.RawValue(`{"kind":"model","outputs":{"calls":` + calls + `}}`),
			datasets.RawValue(`{"kind":"tool","id":"1","name":"search","output":"…"}`),
			datasets.RawValue(`{"kind":"model","outputs":{"answer":"x"}}`),
		}
	}
	const both = `[{"id":"1","name":"search","input":{"q":"a"}},{"id":"2","name":"read","input":{"n":1}}]`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "calls.yaml"), []byte("r1: [{name: search, input: {q: a}}, read]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		spec, expected, made string
		want                 float64
		feedback             string
	}{
		{`tool_calls: {meta: calls}`, both, both, 1, ""},
		{`tool_calls: {meta: calls}`, `["read","search"]`, both, 1, ""},
		{`tool_calls: {meta: calls, ordered: true}`, `["read","search"]`, both, 0.5, "the calls were made in another order"},
		{`tool_calls: {meta: calls}`, `[{"name":"search","arguments":"{\"q\":\"a\"}"}]`, both, 2.0 / 3, `extra: read{"n":1}`},
		{`tool_calls: {meta: calls}`, `[{"name":"search","input":{"q":"A"}},"read"]`, both, 0.5, `missing: search{"q":"A"}; extra: search{"q":"a"}`},
		{`tool_calls: {meta: calls, arguments: false}`, `[{"name":"search","input":{"q":"A"}},"read"]`, both, 1, ""},
		{`tool_calls: {meta: calls}`, `["search",{"name":"search","input":{"q":"a"}}]`, `[{"name":"search","input":{"q":"a"}},{"name":"search","input":{"q":"b"}}]`, 1, ""},
		{`tool_calls: {meta: calls}`, `[]`, `[]`, 1, ""},
		{`tool_calls: {meta: calls}`, `["read"]`, `[]`, 0, "missing: read"},
		{`tool_calls: {meta: calls}`, `{"name":"read"}`, both, none, ""},
		{`tool_calls: {meta: nosuch}`, both, both, none, ""},
		{`tool_calls: {label: calls}`, both, both, none, ""},
		{`tool_calls: {file: calls.yaml}`, `[]`, both, 1, ""},
		{`tool_calls`, `[]`, both, 1, ""},
		{`tool_calls`, `[]`, `[]`, 0, `missing: search{"q":"a"}, read{"n":1}`},
	} {
		row := datasets.Row{ID: "r1", Meta: datasets.Values{"calls": datasets.RawValue(c.expected)}, Steps: steps(both)}
		s, err := mustMake(t, c.spec, Options{Dir: dir}).Score(t.Context(), row, &pipeline.Call{Steps: steps(c.made)})
		if err != nil || (s.Missing != "") != math.IsNaN(c.want) || s.Missing == "" && (math.Abs(s.Value-c.want) > 1e-12 || s.Feedback != c.feedback) {
			t.Errorf("%s, %s for %s: %+v, %v; want %v, %q", c.spec, c.made, c.expected, s, err, c.want, c.feedback)
		}
	}
}

func FuzzNumberOf(f *testing.F) {
	for _, s := range []string{"1,234.50", "−5", "3-5", "1e-999", ".5", "$12", "1,2,3", "e5", "+.e1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := datasets.Text(s)
		whole, ok := numberOf(v, "whole")
		if !ok {
			return
		}
		for _, find := range []string{"first", "last"} {
			if found, ok := numberOf(v, find); !ok || found.Cmp(whole) != 0 {
				t.Errorf("%q is the number %s, and its %s is %v", s, whole, find, found)
			}
		}
	})
}

// Likenesses stay between 0 and 1, are 1 for a text itself, and depend on nothing
// but the texts.
func FuzzLikeness(f *testing.F) {
	f.Add("the cat", "a the—cat")
	f.Add("", " ")
	f.Add("ẞ ŉ", "ss")
	all := map[string]func(a string, refs []string) (float64, bool){
		"f1":      squadF1,
		"rouge_l": func(a string, refs []string) (float64, bool) { return rougeL(a, refs, 1) },
		"bleu": func(a string, refs []string) (float64, bool) {
			return bleu(markTokens(a), [][]string{markTokens(refs[0])}, 4), true
		},
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		for name, of := range all {
			if v, _ := of(a, []string{b}); !(v >= 0 && v <= 1+1e-12) {
				t.Errorf("%s of %q and %q is %v", name, a, b, v)
			}
			if v, ok := of(a, []string{a}); ok && math.Abs(v-1) > 1e-12 {
				t.Errorf("%s of %q and itself is %v", name, a, v)
			}
		}
	})
}
