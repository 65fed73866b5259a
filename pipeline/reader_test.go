package pipeline_test

import (
	"errors"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
)

const (
	oneText   = "name: f\noutputs: [{name: result, shape: {type: string}}]\n"
	twoFields = "name: f\noutputs: [{name: parts, shape: {type: string}}, {name: result, shape: {type: integer}}]\n"
)

func one(shape string) string {
	return "name: f\noutputs: [{name: result, shape: " + shape + "}]\n"
}

// reads is what a reply is read as: the outputs as JSON, or a code.
type reads struct{ text, want string }

func checkReads(t *testing.T, definition, finish string, cases []reads) {
	t.Helper()
	p := parse(t, definition)
	for _, tt := range cases {
		got, err := p.Read(tt.text, finish, pipeline.ProbeFacts)
		if err != nil {
			if got != nil {
				t.Errorf("%q: an unread reply gave %v", tt.text, got)
			}
			var f *pipeline.Failure
			if !errors.As(err, &f) || f.Type != pipeline.TypeReply || f.Code != tt.want {
				t.Errorf("%q: got %v, want %s", tt.text, err, tt.want)
			}
			continue
		}
		if got := got.Object().JSON(); got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.text, got, tt.want)
		}
	}
}

func TestReadXML(t *testing.T) {
	checkReads(t, oneText, "stop", []reads{
		{"<result>\nrepair\n</result>", `{"result":"repair"}`},
		{"<result>repair", `{"result":"repair"}`}, // the provider stopped at the closing mark
		{"<result>\u00a0 a\n\n b \u3000</result>", `{"result":"a\n\n b"}`},
		{"Sure!\n<result>\nx\n</result>\nAnything else?", `{"result":"x"}`},
		{"<result></result>", `{"result":""}`},
		{"<result>\n<b>bold</b>\n", `{"result":"<b>bold</b>"}`},
		{"<result>5</result>", `{"result":"5"}`},
		{"<result>null</result>", `{"result":"null"}`},
		{"repair", "parse-missing"},
		{"", "parse-missing"},
		{"<Result>x</Result>", "parse-missing"},
		{"</result>", "parse-missing"},
		{"<result>a</result> or <result>b</result>", "parse-ambiguous"},
		{"<result>a <result>b</result>", "parse-ambiguous"},
		{"<result>write </result> to end</result>", "parse-ambiguous"},
	})
	checkReads(t, twoFields, "stop", []reads{
		{"<parts>\nhinge\n</parts>\n<result>\n2\n</result>\n", `{"parts":"hinge","result":2}`},
		{"<result>2</result><parts>hinge</parts>", `{"parts":"hinge","result":2}`},
		{"<parts>put <result> here</parts><result>2", `{"parts":"put <result> here","result":2}`},
		{"<parts>hinge\n<result>2</result>", "parse-missing"}, // only the last output may be left open
		{"<parts>hinge</parts>", "parse-missing"},
		{"<result>2</result>", "parse-missing"},
		{"<result>2</result><parts>hinge", "parse-missing"},
		{"<parts>hinge</parts><result>two</result>", "parse-json"},
	})
}

func TestReadChat(t *testing.T) {
	chat := "settings: {adapter: chat}\n"
	checkReads(t, chat+twoFields, "stop", []reads{
		{"[[ ## parts ## ]]\nhinge\n\n[[ ## result ## ]]\n2\n\n[[ ## completed ## ]]", `{"parts":"hinge","result":2}`},
		{"[[ ## parts ## ]]\nhinge\n\n[[ ## result ## ]]\n2\n\n", `{"parts":"hinge","result":2}`},
		{"[[ ## result ## ]]\n2\n[[ ## parts ## ]]\nhinge\n[[ ## completed ## ]]", `{"parts":"hinge","result":2}`},
		{"[[ ## parts ## ]]\n\n[[ ## result ## ]]\n2", `{"parts":"","result":2}`},
		{"[[ ## parts ## ]]\nhinge\n[[ ## result ## ]]\n2\n[[ ## completed ## ]]\n[[ ## parts ## ]] more", `{"parts":"hinge","result":2}`},
		{"[[ ## parts ## ]]\nhinge\n[[ ## completed ## ]]\n[[ ## result ## ]]\n2", "parse-missing"},
		{"[[ ## parts ## ]]\na\n[[ ## parts ## ]]\nb\n[[ ## result ## ]]\n2", "parse-ambiguous"},
		{"[[## parts ##]]\nhinge", "parse-missing"},
	})
}

func TestReadJSONLayout(t *testing.T) {
	layout := "settings: {adapter: json}\n"
	checkReads(t, layout+twoFields, "stop", []reads{
		{`{"parts": "hinge", "result": 2}`, `{"parts":"hinge","result":2}`},
		{"```json\n{\"parts\": \" a \", \"result\": 2}\n```", `{"parts":" a ","result":2}`},
		{`{"parts": "hinge", "result": 2, "more": [1]}`, `{"parts":"hinge","result":2}`},
		{`{"parts": 9, "result": "2"}`, `{"parts":"9","result":2}`},
		{`{"parts": "hinge"}`, "parse-missing"},
		{`{"parts": "hinge", "result": null}`, "parse-shape"},
		{`{"parts": null, "result": 2}`, "parse-shape"},
		{`{"parts": "hinge", "result": 2.5}`, "parse-shape"},
		{`{"parts": "hinge", "result": "two"}`, "parse-json"},
		{`{"parts": "a", "parts": "b", "result": 2}`, "parse-json"},
		{`{"parts": "hinge", "result": 2,}`, "parse-json"},
		{`{"parts": "hinge", "result": NaN}`, "parse-json"},
		{`{"parts": "hinge", "result": 2} {}`, "parse-json"},
		{`Sure: {"parts": "hinge", "result": 2}`, "parse-json"},
		{`// comment` + "\n" + `{"parts": "hinge", "result": 2}`, "parse-json"},
		{`["hinge", 2]`, "parse-json"},
		{``, "parse-json"},
	})
	checkReads(t, layout+one("{type: object, properties: {a: {type: integer}}}"), "stop", []reads{
		{`{"result": {"a": 1}}`, `{"result":{"a": 1}}`},
		{`{"result": "{\"a\": 1}"}`, `{"result":{"a": 1}}`},
		{`{"result": {"a": "x"}}`, "parse-shape"},
		{`{"result": {"a": 1, "b": 2}}`, "parse-shape"},
		{`{"result": "a"}`, "format-read-error"},
	})
	checkReads(t, layout+one("{type: [string, 'null']}"), "stop", []reads{
		{`{"result": null}`, `{"result":null}`},
		{`{"result": "x"}`, `{"result":"x"}`},
	})
}

func TestReadShapes(t *testing.T) {
	in := func(s string) string { return "<result>\n" + s + "\n</result>" }
	for _, tt := range []struct {
		shape string
		cases []reads
	}{
		{"{enum: [refund, repair it, 1, true], type: string}", []reads{
			{in("refund"), `{"result":"refund"}`},
			{in("repair it"), `{"result":"repair it"}`},
			{in("Refund"), "parse-choice"},
			{in("refund."), "parse-choice"},
			{in(""), "parse-choice"},
			{in("refund, repair it"), "parse-choice"},
		}},
		{"{enum: [1, 2, true]}", []reads{{in("1"), `{"result":1}`}, {in("1.0"), `{"result":1}`}, {in("true"), `{"result":true}`}, {in("3"), "parse-choice"}, {in(`"1"`), "parse-choice"}}},
		{"{enum: [a, null]}", []reads{{in("null"), `{"result":null}`}, {in("a"), `{"result":"a"}`}}},
		{"{type: integer, minimum: 0}", []reads{
			{in("5"), `{"result":5}`},
			{in("5.0"), `{"result":5.0}`},
			{in("```\n5\n```"), `{"result":5}`},
			{in("123456789012345678901234567890"), `{"result":123456789012345678901234567890}`},
			{in("-1"), "parse-shape"},
			{in("5.5"), "parse-shape"},
			{in("five"), "parse-json"},
			{in("+5"), "parse-json"},
			{in("05"), "parse-json"},
			{in("5 hours"), "parse-json"},
			{in(`"5"`), "parse-shape"},
			{in("true"), "parse-shape"},
			{in("1e999"), "parse-json"},
		}},
		{"{type: number}", []reads{{in("2.50"), `{"result":2.50}`}, {in("-1e-3"), `{"result":-1e-3}`}, {in("NaN"), "parse-json"}, {in("Infinity"), "parse-json"}, {in("1,000"), "parse-json"}, {in(".5"), "parse-json"}}},
		{"{type: boolean}", []reads{{in("true"), `{"result":true}`}, {in("True"), "parse-json"}, {in("yes"), "parse-json"}, {in("1"), "parse-shape"}}},
		{"{type: ['null', integer]}", []reads{{in("null"), `{"result":null}`}, {in("5"), `{"result":5}`}, {in("None"), "parse-json"}}},
		{"{type: array, items: {type: string}, uniqueItems: true}", []reads{
			{in(`["a", "b"]`), `{"result":["a", "b"]}`},
			{in("```json\n[\"a\"]\n```"), `{"result":["a"]}`},
			{in("[]"), `{"result":[]}`},
			{in("a, b"), "format-read-error"},
			{in(`["a",]`), "format-read-error"},
			{in("['a']"), "format-read-error"},
			{in(`["a"] // one`), "format-read-error"},
			{in(`["a", 1]`), "parse-shape"},
			{in(`["a", "a"]`), "parse-shape"},
			{in(`{"a": 1}`), "parse-shape"},
			{in("```\n[1]\n```\n```\n[2]\n```"), "format-read-error"},
		}},
		{"{type: object, properties: {a: {type: integer}}, required: [a]}", []reads{
			{in(`{"a": 1}`), `{"result":{"a": 1}}`}, {in(`{}`), "parse-shape"}, {in(`{"a": 1, "b": 2}`), "parse-shape"}, {in(`{"a": 1, "a": 2}`), "format-read-error"},
		}},
		{"{type: string, minLength: 2, maxLength: 3}", []reads{{in("👋👋"), `{"result":"👋👋"}`}, {in("a"), "parse-shape"}, {in("abcd"), "parse-shape"}}},
		{"{}", []reads{{in(`"x"`), `{"result":"x"}`}, {in(`x`), "format-read-error"}}},
	} {
		checkReads(t, one(tt.shape), "stop", tt.cases)
	}
}

// A reply that was cut off is said to be, unless all of it had come.
func TestReadCutOff(t *testing.T) {
	checkReads(t, twoFields, "length", []reads{
		{"<parts>hinge</parts><result>2", "parse-truncated"},
		{"<parts>hinge", "parse-truncated"},
		{"<parts>hinge</parts>", "parse-truncated"},
		{"", "parse-truncated"},
		{"<parts>hinge</parts><result>2</result> and then", `{"parts":"hinge","result":2}`},
		{"<parts>a</parts><parts>b</parts><result>2", "parse-ambiguous"},
	})
	checkReads(t, "settings: {adapter: chat}\n"+twoFields, "length", []reads{
		{"[[ ## parts ## ]]\nhinge\n[[ ## result ## ]]\n2", "parse-truncated"},
		{"[[ ## parts ## ]]\nhinge\n[[ ## result ## ]]\n2\n[[ ## completed ## ]]", `{"parts":"hinge","result":2}`},
	})
	checkReads(t, "settings: {adapter: json}\n"+oneText, "length", []reads{
		{`{"result": "a`, "parse-truncated"},
		{`{"result": "a"}`, `{"result":"a"}`},
	})
	checkReads(t, "settings: {template: [{role: user, text: x}]}\n"+oneText, "length", []reads{{"half an answ", "parse-truncated"}})
	checkReads(t, "settings: {template: [{role: user, text: x}], reader: {pattern: 'is (\\w+)'}}\n"+oneText, "length", []reads{
		{"it is hal", "parse-truncated"}, {"it", "parse-truncated"}, {"it is half. Now", `{"result":"half"}`},
	})
}

func TestReadTemplates(t *testing.T) {
	template := func(text string) string {
		return "settings:\n  template:\n    - role: user\n      text: |-\n        " + strings.ReplaceAll(text, "\n", "\n        ") + "\n"
	}
	// No form: the whole reply.
	checkReads(t, template("answer")+oneText, "stop", []reads{{" \n(B)\n", `{"result":"(B)"}`}, {"", `{"result":""}`}})
	checkReads(t, template("answer")+one("{type: integer}"), "stop", []reads{{" 5\n", `{"result":5}`}, {"It is 5", "parse-json"}})
	// A hint alone is no mark.
	checkReads(t, template("Say {% for f in outputs %}{f.value}{% endfor %}")+one("{enum: [a, b]}"), "stop", []reads{{"a", `{"result":"a"}`}})
	// A label before the value.
	label := template("{% for f in outputs %}{f.name}: {f.value}\n{% endfor %}")
	checkReads(t, label+twoFields, "stop", []reads{
		{"parts: hinge\nresult: 2", `{"parts":"hinge","result":2}`},
		{"result: 2\nparts: hinge", `{"parts":"hinge","result":2}`},
		{"parts: my result: 2", `{"parts":"my","result":2}`},
		{"parts: hinge", "parse-missing"},
	})
	// One mark inside another: the longer is meant where both begin.
	checkReads(t, template("{% for f in outputs %}{f.desc}: {f.value}\n{% endfor %}")+
		"name: f\noutputs: [{name: a, shape: {type: string}, desc: Answer}, {name: b, shape: {type: string}, desc: Final Answer}]\n", "stop", []reads{
		{"Answer: x\nFinal Answer: y", `{"a":"x","b":"y"}`},
	})
	// An end mark on the loop's last line; what follows on later lines is none.
	end := template("{% for f in outputs %}({f.name}) {f.value}\n{% endfor %}=== done\nThank you.")
	checkReads(t, end+twoFields, "stop", []reads{
		{"(parts) a\n(result) 2\n=== done\n(parts) b", `{"parts":"a","result":2}`},
		{"(parts) === done (result) 2", "parse-missing"},
	})
	if stop := sampleRequest(t, parse(t, end+twoFields)).Config["stop"].JSON(); stop != `["=== done"]` {
		t.Errorf("it stops at %s", stop)
	}
	// The same mark before and after.
	checkReads(t, template("{% for f in outputs %}|{f.value}|{% endfor %}")+oneText, "stop", []reads{{"|a|", `{"result":"a"}`}, {"|a", `{"result":"a"}`}, {"|a|b|", "parse-ambiguous"}})
}

func TestReadPattern(t *testing.T) {
	pattern := func(p string) string {
		return "settings: {template: [{role: user, text: x}], reader: {pattern: '" + p + "'}}\n"
	}
	checkReads(t, pattern(`the answer is (.*)$`)+oneText, "stop", []reads{
		{"the answer is a\nmore", "parse-pattern"}, // $ is the end of the text unless (?m)
		{"more\nthe answer is a", `{"result":"a"}`},
	})
	checkReads(t, pattern(`(?m)the answer is (.*?)\.?$`)+oneText, "stop", []reads{
		{"the answer is  a . \nthe answer is b.", `{"result":"a ."}`},
		{"the answer is \u00a0(B).", `{"result":"(B)"}`},
		{"The Answer Is b", "parse-pattern"},
		{"the answer is", "parse-pattern"},
		{"the answer is .", `{"result":""}`},
	})
	checkReads(t, pattern(`x|(y)`)+oneText, "stop", []reads{{"x", "parse-pattern"}, {"y", `{"result":"y"}`}})
	checkReads(t, pattern(`#### (.*)`)+one("{type: integer}"), "stop", []reads{{"2+2\n#### 4", `{"result":4}`}, {"#### four", "parse-json"}})
	// Beside the default layout, whose form it does not need.
	checkReads(t, "settings: {reader: {pattern: 'is (\\w+)'}}\n"+oneText, "stop", []reads{{"it is so", `{"result":"so"}`}})
}

// The reasoning is read where the model writes it.
func TestReadReasoning(t *testing.T) {
	text := "settings: {module: cot}\n" + oneText
	checkReads(t, text, "stop", []reads{
		{"<reasoning>\nbecause\n</reasoning>\n<result>x</result>", `{"reasoning":"because","result":"x"}`},
		{"<result>x</result>", "parse-missing"},
	})
	native := pipeline.ProbeFacts
	native.Reasoning = true
	got, err := parse(t, text).Read("<result>x</result>", "stop", native)
	if err != nil || got.Object().JSON() != `{"result":"x"}` {
		t.Errorf("got %v, %v", got, err)
	}
}

// What the reply lacks is said in words the model can use.
func TestReadHints(t *testing.T) {
	for _, tt := range []struct{ definition, text, want string }{
		{oneText, "x", "the reply has no <result>"},
		{twoFields, "<parts>x", "the reply has no </parts> after <parts>"},
		{oneText, "<result>a</result><result>b</result>", "the reply has <result> twice"},
		{one("{enum: [a, b]}"), "<result>c</result>", `result must be one of a, b, found "c"`},
		{one("{type: integer}"), "<result>c</result>", `result must be a whole number, found "c"`},
		{one("{type: object}"), "<result>c</result>", `result must be JSON: it does not read as JSON`},
		{one("{type: object}"), "<result>{} x</result>", `result must be JSON: text follows the JSON`},
		{one("{type: object}"), "<result></result>", `result must be JSON: it is empty`},
		{one(`{type: array, items: {type: object, properties: {a: {type: integer}}}}`), `<result>[{"a": 1}, {"a": "x"}]</result>`, `result at [1].a, must be a whole number, found the text "x"`},
		{"settings: {adapter: json}\n" + oneText, "[]", "the reply is not one JSON object: it must be an object, found a list"},
		{"settings: {adapter: json}\n" + oneText, `{"result":"a","result":"b"}`, "the reply is not one JSON object: it has a member twice"},
		{"settings: {adapter: json}\n" + oneText, `{}`, `the reply's object has no member "result"`},
	} {
		_, err := parse(t, tt.definition).Read(tt.text, "stop", pipeline.ProbeFacts)
		var f *pipeline.Failure
		if !errors.As(err, &f) || f.Message != tt.want {
			t.Errorf("%q: got %v, want %s", tt.text, err, tt.want)
		}
	}
}

// A reply that was cut where the request set no limit is asked again with twice the
// room that it took, where that is known.
func TestAskAgainWithoutLimit(t *testing.T) {
	for _, tt := range []struct {
		took *int64
		want string
	}{{new(int64(4096)), "8192"}, {nil, ""}} {
		m := &model{answer: func(n int, r *pipeline.Request) (*pipeline.Reply, error) {
			return []*pipeline.Reply{
				{Text: "<result>rep", Finish: "length", Usage: pipeline.Usage{Output: tt.took}},
				{Text: "<result>repair</result>", Finish: "stop"},
			}[n], nil
		}}
		c := caller(m)
		c.Retries = 1
		if call := ask(t, c, parse(t, routeYAML), pipeline.Ask{Inputs: ticket("x")}); call.Failure != nil {
			t.Fatal(call.Failure)
		}
		if first, second := m.sent[0].Config["max_tokens"].JSON(), m.sent[1].Config["max_tokens"].JSON(); first != "" || second != tt.want {
			t.Errorf("the requests have room for %q and %q tokens, want none and %q", first, second, tt.want)
		}
	}
}

// An unread reply is asked about again: with what was wrong, or with more room.
func TestAskAgain(t *testing.T) {
	m := &model{answer: func(n int, r *pipeline.Request) (*pipeline.Reply, error) {
		return []*pipeline.Reply{
			{Text: "repair", Finish: "stop"},
			{Text: "<result>rep", Finish: "length"},
			{Text: "", Finish: "stop"},
			{Text: "<result>repair</result>", Finish: "stop"},
		}[n], nil
	}}
	c := caller(m)
	c.Retries = 3
	c.LM.Config = datasets.Values{"max_tokens": datasets.Int(5)}
	call := ask(t, c, parse(t, routeYAML), pipeline.Ask{Inputs: ticket("x")})
	if call.Failure != nil || call.Outputs["result"].String() != "repair" {
		t.Fatalf("got %v, %v", call.Outputs, call.Failure)
	}
	const first = "user \"<ticket>\\nx\\n</ticket>\\n\"\n"
	const second = first + "assistant \"repair\"\nuser \"Your reply could not be read: the reply has no <result>. Reply again, in exactly the form the instructions give.\"\n"
	const fourth = second + "user \"Your reply could not be read: the reply has no <result>. Reply again, in exactly the form the instructions give.\"\n"
	for i, want := range []struct{ chat, room string }{{first, "5"}, {second, "5"}, {second, "10"}, {fourth, "10"}} {
		_, got, _ := strings.Cut(chat(m.sent[i]), "\nuser ")
		if got := "user " + got; got != want.chat {
			t.Errorf("request %d:\n got %s\nwant %s", i, got, want.chat)
		}
		if got := m.sent[i].Config["max_tokens"].JSON(); got != want.room {
			t.Errorf("request %d has room for %s tokens, want %s", i, got, want.room)
		}
	}
}
