package provider_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/pipeline/provider"
	"evalrun/pipeline/provider/providertest"
)

func lexical(t testing.TB, r *pipeline.Request) string {
	t.Helper()
	reply, err := provider.Lexical{}.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return reply.Text
}

// asking is a request in the xml layout: a choice among labels, with worked
// examples given as question, answer, question, answer, …
func asking(instruction string, choices []string, question string, examples ...string) *pipeline.Request {
	r := &pipeline.Request{
		Model:  "lexical",
		System: instruction + "\n\nReply in exactly this form:\n<result>\none of: " + strings.Join(choices, ", ") + "\n</result>\n",
		Config: datasets.Values{"stop": datasets.RawValue(`["</result>"]`)},
	}
	for i := 0; i+1 < len(examples); i += 2 {
		r.Messages = append(r.Messages,
			pipeline.TextMessage("user", "<ticket>\n"+examples[i]+"\n</ticket>\n"),
			pipeline.TextMessage("assistant", "<result>\n"+examples[i+1]+"\n</result>"))
	}
	r.Messages = append(r.Messages, pipeline.TextMessage("user", "<ticket>\n"+question+"\n</ticket>\n"))
	return r
}

// answer is the reply to such a request, taken out of its form.
func answer(t testing.TB, r *pipeline.Request) string {
	t.Helper()
	reply := lexical(t, r)
	value, ok := strings.CutPrefix(reply, "<result>\n")
	if !ok {
		t.Fatalf("the reply is not in the form: %q", reply)
	}
	return strings.TrimSuffix(value, "\n")
}

var ticketChoices = []string{"question", "refund", "repair"}

// TestLexicalLearns: the instruction and the examples decide the answer.
func TestLexicalLearns(t *testing.T) {
	const ask = "My money is gone and the hinge is bent."
	examples := []string{"When do you open?", "question", "Where is my money? I want it back.", "refund"}
	if got := answer(t, asking("Say what is wanted.", ticketChoices, ask)); got != "question" {
		t.Errorf("with nothing to go by: %q, want the first choice", got)
	}
	if got := answer(t, asking("Say what is wanted.", ticketChoices, ask, examples...)); got != "refund" {
		t.Errorf("by the nearest example: %q, want refund", got)
	}
	more := append(slices.Clone(examples), "The hinge is bent and loose.", "repair")
	if got := answer(t, asking("Say what is wanted.", ticketChoices, ask, more...)); got != "repair" {
		t.Errorf("an example more: %q, want repair", got)
	}
	rule := "Say what is wanted. Choose refund when the ticket mentions money."
	if got := answer(t, asking(rule, ticketChoices, ask, more...)); got != "refund" {
		t.Errorf("a rule: %q, want refund", got)
	}
	two := "Say what is wanted. Choose repair when the ticket mentions hinge. Choose refund when the ticket mentions money."
	if got := answer(t, asking(two, ticketChoices, ask, more...)); got != "repair" {
		t.Errorf("the first rule that holds: %q, want repair", got)
	}
}

func TestLexicalNearest(t *testing.T) {
	for _, c := range []struct {
		name, question, want string
		examples             []string
	}{
		{"a tie goes to the earliest", "a b", "refund", []string{"a c", "refund", "b c", "repair"}},
		{"length counts", "a b", "repair", []string{"a b c d e f g", "refund", "a b c", "repair"}},
		{"case and punctuation do not", "A, B!", "repair", []string{"c d", "refund", "a-b", "repair"}},
		{"no shared word is not near", "x", "question", []string{"a", "refund"}},
		{"the names of fields are no words", "ticket", "question", []string{"a", "refund"}},
		{"an answer that is no choice is passed over", "a b", "repair", []string{"a b", "complaint", "a", "repair"}},
		{"a choice is spelled as offered", "a", "repair", []string{"a", "Repair"}},
		{"letters of any script", "Où est l’hôtel", "repair", []string{"ou hotel", "refund", "HÔTEL", "repair"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := answer(t, asking("", ticketChoices, c.question, c.examples...)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestLexicalRules has what docs/models.md says of sentences beside its table.
func TestLexicalRules(t *testing.T) {
	const fits, not = "refund", "question"
	for _, c := range []struct{ name, instruction, question, want string }{
		{"no rule", "Refund when money is mentioned.", "money", not},
		{"if", "Choose refund if it mentions money.", "my money", fits},
		{"whenever", "Pick refund whenever it mentions money.", "my money", fits},
		{"case", "CHOOSE refund WHEN it MENTIONS Money.", "MONEY!", fits},
		{"whole words", "Choose refund when it mentions card.", "cards", not},
		{"several words", "Choose refund when it mentions money back.", "Money, back!", fits},
		{"several words apart", "Choose refund when it mentions money back.", "money is back", not},
		{"comma before or", "Choose refund when it mentions money, cash, or coins.", "coins", fits},
		{"all, one is missing", "Choose refund when it mentions money and back.", "money", not},
		{"all", "Choose refund when it mentions money, cash and back.", "back, cash, money", fits},
		{"or and and together are no rule", "Choose refund when it mentions money and cash or back.", "money cash back", not},
		{"not", "Choose refund when it does not mention money or cash.", "coins", fits},
		{"not, but it does", "Choose refund when it does not mention money or cash.", "cash", not},
		{"not with and is no rule", "Choose refund when it does not mention money and cash.", "coins", not},
		{"plural subject", "Choose refund when the words mention money.", "money", fits},
		{"quoted key with or", `Choose refund when it mentions "trial or error".`, "by trial or error", fits},
		{"quoted key with or, in part", `Choose refund when it mentions "trial or error".`, "error", not},
		{"contains inside a word", `Choose refund when it contains "fund".`, "Refunds?", fits},
		{"contains punctuation", `Choose refund when it contains "?!" or "...".`, "what?!", fits},
		{"does not contain", `Choose refund when it does not contain "?".`, "what?", not},
		{"curly quotes", "Choose refund when it contains “money back”.", "money back", fits},
		{"a quote left open is no rule", `Choose refund when it contains "money.`, "money", not},
		{"quoted answer", `Answer "refund" when it mentions money.`, "money", fits},
		{"answer in another case", "Choose Refund when it mentions money.", "money", fits},
		{"answer that is no choice", "Choose payment when it mentions money. Choose refund when it mentions money.", "money", fits},
		{"a full stop inside quotes", `Choose refund when it contains "e.g. money". Choose repair otherwise.`, "e.g. money", fits},
		{"otherwise first", "Otherwise, choose refund.", "x", fits},
		{"otherwise ends it", "Choose question otherwise. Choose refund when it mentions money.", "money", not},
		{"list", "Rules:\n- Choose repair when it mentions hinge\n- Choose refund when it mentions money\n", "money", fits},
		{"numbered list", "1. Choose repair when it mentions hinge\n2. Choose refund when it mentions money\n", "money", fits},
		{"guidance", "Output guidance:\n- result: Choose refund when it mentions money.", "money", fits},
		{"lines", "Choose repair when it mentions hinge\nChoose refund when it mentions money\n", "money", fits},
		{"wrapped line", "Choose refund when it\nmentions hinge or\nmoney. Be kind.", "money", fits},
		{"blank line ends a sentence", "Choose refund when it mentions hinge\n\nmoney is not all.", "money", not},
		{"inside a sentence it is no rule", "You may not choose refund when it mentions money.", "money", not},
		{"the question gives no rules", "Be kind.", "Choose refund when it mentions money.", not},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := answer(t, asking(c.instruction, ticketChoices, c.question)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestLexicalFields: a subject that names an input looks at that input alone.
func TestLexicalFields(t *testing.T) {
	for _, form := range []string{
		"<subject_line>\nmoney\n</subject_line>\n<body>\nhinge\n</body>\n",
		"[[ ## subject_line ## ]]\nmoney\n\n[[ ## body ## ]]\nhinge\n\n",
	} {
		for _, c := range []struct{ instruction, want string }{
			{"Choose refund when the body mentions money.", "question"},
			{"Choose refund when the subject line mentions money.", "refund"},
			{"Choose refund when the message mentions money.", "refund"},
			{"Choose refund when it mentions body.", "question"},
		} {
			r := asking(c.instruction, ticketChoices, "")
			r.Messages[0] = pipeline.TextMessage("user", form)
			if got := answer(t, r); got != c.want {
				t.Errorf("%q of %q: %q, want %q", c.instruction, form, got, c.want)
			}
		}
	}
}

// TestLexicalForms: the reply has the form that is asked for, in each layout.
func TestLexicalForms(t *testing.T) {
	schema := func(format string) datasets.Values {
		return datasets.Values{"response_format": datasets.RawValue(format)}
	}
	const rule = "Choose repair when it mentions hinge."
	turn := func(asked, answered string) []pipeline.Message {
		return []pipeline.Message{pipeline.TextMessage("user", asked), pipeline.TextMessage("assistant", answered)}
	}
	for _, c := range []struct {
		name, system string
		config       datasets.Values
		earlier      []pipeline.Message
		question     string
		want         string
	}{
		{"tags", rule + "\n\nReply in exactly this form:\n<result>\none of: refund, repair\n</result>\n", nil, nil, "hinge", "<result>\nrepair\n</result>"},
		{
			"reasoning before the answer", rule + "\n\nReply in exactly this form:\n<reasoning>\n...\n</reasoning>\n<result>\none of: refund, repair\n</result>\n\n\nReason step by step in the 'reasoning' section before writing any other section.", nil, nil, "hinge",
			"<reasoning>\nRule 1 of the instruction: Choose repair when it mentions hinge.\n</reasoning>\n<result>\nrepair\n</result>",
		},
		{
			"an example's further outputs", "Reply in exactly this form:\n<reasoning>\n...\n</reasoning>\n<hours>\n(integer)\n</hours>\n<result>\none of: refund, repair\n</result>\n", nil,
			turn("bent hinge", "<reasoning>\nIt is bent.\n</reasoning>\n<hours>\n2\n</hours>\n<result>\nrepair"), "hinge",
			"<reasoning>\nIt is bent.\n</reasoning>\n<hours>\n2\n</hours>\n<result>\nrepair\n</result>",
		},
		{
			"an example without further outputs", "Reply in exactly this form:\n<reasoning>\n...\n</reasoning>\n<hours>\n(integer)\n</hours>\n<result>\none of: refund, repair\n</result>\n", nil,
			turn("bent hinge", "<result>\nrepair\n</result>"), "hinge",
			"<reasoning>\nWorked example 1 of 1 has the nearest words.\n</reasoning>\n<hours>\n0\n</hours>\n<result>\nrepair\n</result>",
		},
		{
			"shapes", "Reply in exactly this form:\n<list>\nJSON matching this schema: {\"type\": \"array\", \"items\": {}}\n</list>\n<thing>\nJSON matching this schema: {\"type\": \"object\", \"properties\": {\"n\": {\"type\": [\"null\", \"integer\"]}, \"ok\": {\"type\": \"boolean\"}}}\n</thing>\n<result>\n(number)\n</result>\n", nil, nil, "x",
			"<list>\n[]\n</list>\n<thing>\n{\"n\":null,\"ok\":false}\n</thing>\n<result>\n0\n</result>",
		},
		{"an example with tags is no form", "Write <b>\nbold\n</b> words.\n<note>\n...\n</note>\n\nReply in exactly this form:\n<result>\n...\n</result>\n", nil, nil, "x", "<result>\nI do not know.\n</result>"},
		{
			"headers", rule + "\n\nRespond with the corresponding output fields, each under its header, then end with [[ ## completed ## ]]:\n\n[[ ## reasoning ## ]]\n...\n\n[[ ## result ## ]]\none of: refund, repair\n\n[[ ## completed ## ]]",
			datasets.Values{"stop": datasets.RawValue(`["[[ ## completed ## ]]"]`)},
			nil, "[[ ## ticket ## ]]\nhinge\n\n",
			"[[ ## reasoning ## ]]\nRule 1 of the instruction: Choose repair when it mentions hinge.\n\n[[ ## result ## ]]\nrepair\n\n",
		},
		{
			"headers, by example, no stop", "[[ ## result ## ]]\none of: refund, repair\n\n[[ ## completed ## ]]", nil,
			turn("[[ ## ticket ## ]]\nbent hinge\n\n", "[[ ## result ## ]]\nrepair\n\n[[ ## completed ## ]]"), "[[ ## ticket ## ]]\nhinge\n\n",
			"[[ ## result ## ]]\nrepair\n\n[[ ## completed ## ]]",
		},
		{
			"an object", rule, schema(`{"type":"json_schema","schema":{"type":"object","properties":{"why":{"type":"string"},"result":{"enum":["refund","repair"],"type":"string"}}}}`), nil, "hinge",
			`{"why": "Rule 1 of the instruction: Choose repair when it mentions hinge.", "result": "repair"}`,
		},
		{
			"an object, one level deeper, by example", "", schema(`{"type":"json_schema","json_schema":{"schema":{"properties":{"n":{"type":"integer"},"result":{"type":"string"}}}}}`),
			turn("bent hinge", "{\n  \"n\": 7,\n  \"result\": \"re\\\"pair\"\n}"), "hinge", `{"n": 7, "result": "re\"pair"}`,
		},
		{
			"an object of an object", "", schema(`{"schema":{"properties":{"result":{"type":"object","properties":{"street":{"type":"string"},"number":{"type":"integer"}}}}}}`), nil, "x",
			`{"result": {"number":0,"street":""}}`,
		},
		{"choices of any kind", "Choose 3 otherwise.", schema(`{"schema":{"properties":{"result":{"enum":[1,3,"3"]}}}}`), nil, "x", `{"result": 3}`},
		{"plain", "Answer the question.", nil, nil, "x", "I do not know."},
		{"plain, by example", "", nil, turn("Q: two and two\nA:", " four\n"), "Q: two and three\nA:", "four"},
		{"plain with choices", "Answer with one of: yes, no.", nil, nil, "x", "yes"},
		{"plain with a rule", "Answer no when it mentions never. Answer with one of: yes, no.", nil, nil, "Never!", "no"},
		{"plain with a stop", `Choose "a STOP b" otherwise.`, datasets.Values{"stop": datasets.Text("STOP")}, nil, "x", "a "},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &pipeline.Request{System: c.system, Config: c.config, Messages: append(c.earlier, pipeline.TextMessage("user", c.question))}
			if got := lexical(t, r); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestLexicalReadsEverywhere: instruction in a developer message, question in
// several parts.
func TestLexicalReadsEverywhere(t *testing.T) {
	r := &pipeline.Request{Messages: []pipeline.Message{
		pipeline.TextMessage("developer", "Choose repair when it mentions hinge.\n<result>one of: refund, repair</result>"),
		{Role: "user", Parts: []pipeline.Part{{Text: "A bent "}, {Raw: datasets.RawValue(`{"type":"image"}`)}, {Text: "hinge"}}},
	}}
	if got := lexical(t, r); got != "<result>\nrepair\n</result>" {
		t.Errorf("got %q", got)
	}
}

// TestLexicalSaysWhatItIs: a user is never led to think it a language model.
func TestLexicalSaysWhatItIs(t *testing.T) {
	reply, err := provider.Lexical{}.Generate(t.Context(), asking("", ticketChoices, "x"))
	if err != nil {
		t.Fatal(err)
	}
	if reply.Provider != "lexical" || reply.Model != "lexical-baseline" || reply.Finish != "stop" || reply.Usage != (pipeline.Usage{}) {
		t.Errorf("got provider %q, model %q, finish %q, usage %v", reply.Provider, reply.Model, reply.Finish, reply.Usage)
	}
}

func TestLexicalKeepsPromises(t *testing.T) {
	image := pipeline.Message{Role: "user", Parts: []pipeline.Part{{Raw: datasets.RawValue(`{"type":"image"}`)}}}
	if err := providertest.Check(provider.Lexical{}, providertest.Case{
		Answers: []*pipeline.Request{
			asking("Choose refund when it mentions money.", ticketChoices, "money", "hinge", "repair"),
			asking("", ticketChoices, "bent hinge", "hinge", "repair", "money", "refund"),
		},
		Fails: []*pipeline.Request{{System: "x"}, {Messages: []pipeline.Message{image}}},
	}); err != nil {
		t.Error(err)
	}
}

// TestLexicalBanking77 measures the baseline on real questions: three worked
// examples for each of eight intents, the other questions asked.
func TestLexicalBanking77(t *testing.T) {
	const path = "../../../shared/data/banking77/train_sample.jsonl.gz" // beside the repository
	f, err := os.Open(path)
	if err != nil {
		t.Skipf("the full data set is not beside the repository: %v", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	byLabel := map[string][]string{}
	for lines := bufio.NewScanner(z); lines.Scan(); {
		var row struct{ Text, Label string }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		byLabel[row.Label] = append(byLabel[row.Label], row.Text)
	}
	labels := []string{"age_limit", "atm_support", "card_arrival", "change_pin", "exchange_rate", "lost_or_stolen_phone", "terminate_account", "verify_my_identity"}
	var examples []string
	for i := range 3 {
		for _, l := range labels {
			examples = append(examples, byLabel[l][i], l)
		}
	}
	right, asked := 0, 0
	for _, l := range labels {
		for _, q := range byLabel[l][3:] {
			asked++
			if answer(t, asking("Say what the customer wants to know.", labels, q, examples...)) == l {
				right++
			}
		}
	}
	share := float64(right) / float64(asked)
	t.Logf("%d of %d right (%.3f); chance is %.3f", right, asked, share, 1/float64(len(labels)))
	if share < 0.5 {
		t.Errorf("%.3f right is not clearly above chance", share)
	}
}

func FuzzLexical(f *testing.F) {
	f.Add("Choose a when it mentions \"b\".\n<r>\none of: a, c\n</r>", "<t>\nb\n</t>", "<r>\nc\n</r>", `{"schema":{"properties":{"r":{"enum":["a"]}}}}`)
	f.Add("[[ ## r ## ]]\n...\n[[ ## completed ## ]]", "[[ ## t ## ]]", "[[ ## r ## ]] x", `null`)
	f.Add("- a: Otherwise, pick \"", "", "{\"r\":1}", `{"schema":{"properties":{"r":{"anyOf":[{"type":["object"],"properties":{}}]}}}}`)
	f.Fuzz(func(t *testing.T, system, question, example, format string) {
		v, err := datasets.ParseValue(format)
		if err != nil {
			return
		}
		for _, config := range []datasets.Values{nil, {"response_format": v}} {
			r := &pipeline.Request{System: system, Config: config, Messages: []pipeline.Message{
				pipeline.TextMessage("user", question), pipeline.TextMessage("assistant", example), pipeline.TextMessage("user", question+" x"),
			}}
			got := lexical(t, r)
			if got != lexical(t, r) {
				t.Error("the same request got two answers")
			}
			if strings.HasPrefix(got, "{") && config != nil {
				if v, err := datasets.ParseValue(got); err == nil && v.Kind() != '{' {
					t.Errorf("no object: %s", got)
				}
			}
		}
	})
}

func BenchmarkLexical(b *testing.B) {
	var examples []string
	for i := range 12 {
		examples = append(examples, fmt.Sprintf("Where is card number %d that was sent to my home last week?", i), ticketChoices[i%3])
	}
	r := asking("Choose refund when the ticket mentions money or cash.\nBe kind.", ticketChoices, "Where is the card?", examples...)
	for b.Loop() {
		lexical(b, r)
	}
}
