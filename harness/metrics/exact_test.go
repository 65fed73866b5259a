package metrics

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/pipeline"
)

func values(t testing.TB, object string) datasets.Values {
	t.Helper()
	v, err := datasets.ParseValue(object)
	if err != nil {
		t.Fatal(err)
	}
	return datasets.ValuesOf(v)
}

// What counts as equal, as the contract words it.
func TestExactMatch(t *testing.T) {
	for _, c := range []struct{ name, label, answer, want string }{
		{"the same", `"Paris"`, `"Paris"`, "1"},
		{"another", `"Paris"`, `"Lyon"`, "0"},
		{"case", `"paris"`, `"PARIS"`, "1"},
		{"full folding", `"Straße"`, `"STRASSE"`, "1"},
		{"capital sharp s", `"ẞ"`, `"ss"`, "1"},
		{"final sigma", `"ὀδυσσεύς"`, `"ὈΔΥΣΣΕΎΣ"`, "1"},
		{"sigmas", `"ς"`, `"σ"`, "1"},
		{"ligature", `"ﬁn"`, `"FIN"`, "1"},
		{"dotted capital i is i and a dot", `"İ"`, `"i\u0307"`, "1"},
		{"dotless i is no i", `"ı"`, `"I"`, "0"},
		{"kelvin sign", `"\u212a"`, `"k"`, "1"},
		{"cherokee", `"Ꭰ"`, `"ꭰ"`, "1"},
		{"no normal forms: a letter and its parts differ", `"é"`, `"e\u0301"`, "0"},

		{"ends trimmed", `" Paris\n"`, `"Paris"`, "1"},
		{"runs are one space", `"New \t\r\n York"`, `"New York"`, "1"},
		{"a space is not nothing", `"New York"`, `"NewYork"`, "0"},
		{"no-break space", `"New\u00a0York"`, `"New York"`, "1"},
		{"em space", `"New\u2003York"`, `"New York"`, "1"},
		{"ideographic space", `"New\u3000York"`, `"New York"`, "1"},
		{"next line", `"New\u0085York"`, `"New York"`, "1"},
		{"information separators", `"New\u001c\u001d\u001e\u001fYork"`, `"New York"`, "1"},
		{"line and paragraph separators", `"New\u2028\u2029York"`, `"New York"`, "1"},
		{"byte order mark is no white space", `"\ufeffParis"`, `"Paris"`, "0"},
		{"byte order mark inside", `"New\ufeffYork"`, `"New York"`, "0"},
		{"zero width space is no white space", `"New\u200bYork"`, `"New York"`, "0"},
		{"only white space is nothing", `" \n"`, `""`, "1"},
		{"punctuation counts", `"(B)"`, `"B"`, "0"},

		{"numbers by value", `1`, `1.0`, "1"},
		{"exponent", `1000`, `1e3`, "1"},
		{"minus zero", `0`, `-0.0`, "1"},
		{"other numbers", `1`, `1.5`, "0"},
		{"large integers keep their digits", `9007199254740993`, `9007199254740992`, "0"},
		{"an integer next to a float", `9007199254740993`, `9007199254740992.0`, "0"},
		{"an integer in full and a float with an exponent", `1000000000000000000000`, `1e21`, "1"},
		{"an integer that no float is", `1000000000000000000001`, `1e21`, "0"},
		{"a number is no text", `1`, `"1"`, "0"},
		{"a text is no number", `"1"`, `1`, "0"},
		{"true is no number", `1`, `true`, "0"},
		{"true", `true`, `true`, "1"},
		{"true and false", `true`, `false`, "0"},
		{"null", `null`, `null`, "1"},
		{"null is no text", `null`, `"null"`, "0"},

		{"list", `["a", 1]`, `["a", 1.0]`, "1"},
		{"text in a list is exact: case", `["a"]`, `["A"]`, "0"},
		{"text in a list is exact: space", `["a b"]`, `["a  b"]`, "0"},
		{"order of a list", `["a","b"]`, `["b","a"]`, "0"},
		{"shorter list", `[1,2]`, `[1]`, "0"},
		{"large number in a list", `[[1000000000000000000000]]`, `[[1e21]]`, "1"},
		{"object, whatever the order", `{"a":1,"b":[2]}`, `{"b":[2.0],"a":1}`, "1"},
		{"text in an object is exact", `{"a":"x"}`, `{"a":"X"}`, "0"},
		{"large number in an object", `{"a":1000000000000000000000}`, `{"a":1e21}`, "1"},
		{"another member", `{"a":1}`, `{"b":1}`, "0"},
		{"a member more", `{"a":1}`, `{"a":1,"b":2}`, "0"},
		{"list and object", `[]`, `{}`, "0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, turn := range []struct{ label, answer string }{{c.label, c.answer}, {c.answer, c.label}} {
				got := score(t, exactMatch{name: exactMatchName}, `{"result":`+turn.label+`}`, `{"result":`+turn.answer+`}`)
				if got != c.want {
					t.Errorf("%s for %s: %s; want %s", turn.answer, turn.label, got, c.want)
				}
			}
		})
	}
}

// score is a metric's score as text, or why it has none.
func score(t testing.TB, m harness.Metric, labels, outputs string) string {
	t.Helper()
	s, err := m.Score(t.Context(), datasets.Row{Labels: values(t, labels)}, &pipeline.Call{Outputs: values(t, outputs)})
	if err != nil {
		t.Fatal(err)
	}
	if s.Missing != "" {
		return s.Missing
	}
	return fmt.Sprint(s.Value)
}

func TestOutputs(t *testing.T) {
	all, err := New(t.Context(), Named("exact_match"), Options{Answers: []string{"city", "country"}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range all {
		names = append(names, m.Name())
	}
	if want := []string{"exact_match", "city_match", "country_match"}; !cmp.Equal(names, want) {
		t.Fatalf("metrics %v; want %v", names, want)
	}
	const none = "the row has no right answer for "
	for _, c := range []struct {
		name, labels, outputs string
		want                  [3]string
	}{
		{"all right", `{"city":"Paris","country":"France"}`, `{"city":"paris","country":"FRANCE"}`, [3]string{"1", "1", "1"}},
		{"one wrong", `{"city":"Paris","country":"France"}`, `{"city":"Paris","country":"Italy"}`, [3]string{"0", "1", "0"}},
		{"an output more", `{"city":"Paris","country":"France"}`, `{"city":"Paris","country":"France","reasoning":"…"}`, [3]string{"1", "1", "1"}},
		{"a reasoning that is labelled is compared", `{"city":"Paris","country":"France","reasoning":"x"}`, `{"city":"Paris","country":"France","reasoning":"y"}`, [3]string{"0", "1", "1"}},
		{
			"one right answer known", `{"city":"Paris"}`, `{"city":"Paris","country":"Italy"}`,
			[3]string{"1", "1", "the row has right answers for city, the call has city, country; nothing to compare for country"},
		},
		{
			"an output less", `{"city":"Paris","country":"France"}`, `{"city":"Paris"}`,
			[3]string{"1", "1", "the row has right answers for city, country, the call has city; nothing to compare for country"},
		},
		{"no right answer", `{}`, `{"city":"Paris","country":"France"}`, [3]string{none + "city, country", none + "city", none + "country"}},
		{"other right answers", `{"river":"Seine"}`, `{"city":"Paris"}`, [3]string{
			"the row has right answers for river, the call has city; nothing to compare for city",
			"the row has right answers for river, the call has city; nothing to compare for city",
			"the row has right answers for river, the call has city; nothing to compare for country",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, m := range all {
				if got := score(t, m, c.labels, c.outputs); got != c.want[i] {
					t.Errorf("%s: %s; want %s", m.Name(), got, c.want[i])
				}
			}
		})
	}
}

func TestNew(t *testing.T) {
	const all = "exact_match, contains, regex, number, json, list, f1, rouge_l, bleu, edit_distance, classification, json_schema, tool_calls, latency, cost, tokens, length, starlark, command, judge"
	for _, c := range []struct {
		name    string
		answers []string
		want    string
	}{
		{"exact_match", nil, "exact_match"},
		{"exact_match", []string{"city"}, "exact_match"},
		{"exact_match", []string{"city", "country"}, "exact_match city_match country_match"},
		{"city_match", []string{"city"}, "city_match"},
		{"country_match", []string{"city", "country"}, "country_match"},
		{"f1", []string{"city"}, "f1"},
		{"exact_mach", nil, `there is no metric "exact_mach"; did you mean exact_match?`},
		{"exact-match", nil, `there is no metric "exact-match"; did you mean exact_match?`},
		{"blue", nil, `there is no metric "blue"; did you mean bleu?`},
		{"perplexity", []string{"city"}, `there is no metric "perplexity"; there are ` + all + `, city_match, own`},
		{"cty_match", []string{"city"}, `there is no metric "cty_match"; did you mean city_match?`},
		{"", nil, `there is no metric ""; there are ` + all + `, own`},
	} {
		made, err := New(t.Context(), Named(c.name), Options{Answers: c.answers, Own: []string{"own"}})
		var got []string
		for _, m := range made {
			got = append(got, m.Name())
		}
		text := strings.Join(got, " ")
		if err != nil {
			text = err.Error()
		}
		if text != c.want {
			t.Errorf("New(%v, %v) = %s; want %s", c.name, c.answers, text, c.want)
		}
	}
	if len(names) != len(kinds) {
		t.Errorf("%d names are listed of %d metrics", len(names), len(kinds))
	}
}

func FuzzEqual(f *testing.F) {
	for _, s := range []string{`"a B"`, `1.0`, `[1e21,{"a":null}]`, `"ß"`, `1000000000000000000000`, `{"a":1,"a":2}`} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, err := datasets.ParseValue(a)
		if err != nil {
			return
		}
		if !equal(x, x) {
			t.Errorf("%s does not equal itself", a)
		}
		if y, err := datasets.ParseValue(b); err == nil && equal(x, y) != equal(y, x) {
			t.Errorf("%s and %s: equal one way only", a, b)
		}
	})
}

func FuzzNormalize(f *testing.F) {
	f.Add(" Straße\u00a0ΣΑΣ\ufeff ")
	f.Add("Ꭰꭰ İı")
	f.Fuzz(func(t *testing.T, s string) {
		once := normalize(s)
		if twice := normalize(once); twice != once {
			t.Errorf("%q is normalized to %q and that to %q", s, once, twice)
		}
	})
}

// What was right is said where the answer was wrong, and only there.
func TestFeedback(t *testing.T) {
	for _, c := range []struct{ labels, outputs, want string }{
		{`{"a":"x"}`, `{"a":"X"}`, ""},
		{`{"a":"x"}`, `{"a":"y"}`, "wrong: the right answer is x"},
		{`{"a":"x","b":2}`, `{"a":"y","b":2,"c":3}`, "wrong: the right a is x"},
		{`{"a":"x","b":2}`, `{"a":"y","b":3}`, "wrong: the right a is x; the right b is 2"},
	} {
		ms, err := New(t.Context(), Named("exact_match"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		row := datasets.Row{Labels: datasets.ValuesOf(datasets.RawValue(c.labels))}
		got, err := ms[0].Score(t.Context(), row, &pipeline.Call{Outputs: datasets.ValuesOf(datasets.RawValue(c.outputs))})
		if err != nil || got.Feedback != c.want || (got.Value == 1) != (c.want == "") {
			t.Errorf("labels %s, outputs %s: %+v, %v; want feedback %q", c.labels, c.outputs, got, err, c.want)
		}
	}
}
