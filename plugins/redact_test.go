package plugins_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/plugins"
)

var redactKey = []byte("0123456789abcdef")

func redactor(t testing.TB, o plugins.RedactOptions) *plugins.Redactor {
	t.Helper()
	if o.Key == nil {
		o.Key = redactKey
	}
	return must(plugins.Redact(o))(t)
}

var placeholder = regexp.MustCompile(`\[([a-z]+):[a-p]{12}\]`)

// What is found, per kind. Card numbers are the networks' published test numbers.
func TestRedactFinds(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"nothing here", "nothing here"},
		{"write to ann.lee+x@mail.example.com, or bob@ex.org.", "write to <email>, or <email>."},
		{"Jürgen: jürgen@müller.example", "Jürgen: <email>"},
		{"a @ b, a@b, @ann", "a @ b, a@b, @ann"},

		{"card 4111111111111111!", "card <card>!"},
		{"4111 1111 1111 1111 and 5555-5555-5555-4444", "<card> and <card>"},
		{"3782 822463 10005", "<card>"},
		{"in 2024 4111 1111 1111 1111", "in 2024 <card>"},
		{"4111 1111 1111 1112 fails the check", "4111 1111 1111 1112 fails the check"},
		{"1234567812345670 begins with no network's digit", "1234567812345670 begins with no network's digit"},
		{"order 411111111111", "order 411111111111"},

		{"+49 30 1234567, (030) 1234 5678, 0171 2345678, 555-010-1234", "<phone>, <phone>, <phone>, <phone>"},
		{"+1 (555) 010-1234", "<phone>"},
		{"on 2026-05-09 at 10:30, 192.168.100.200, 1.234.567,89", "on 2026-05-09 at 10:30, 192.168.100.200, 1.234.567,89"},
		{"room 1234, +5 points, 3.14159265", "room 1234, +5 points, 3.14159265"},

		{"sk-proj-abcdefghijklmnop1234", "<key>"},
		{"AKIAIOSFODNN7EXAMPLE", "<key>"},
		{"ghp_abcdefghijklmnopqrstuvwxyz0123456789", "<key>"},
		{"Authorization: Bearer abcdefghijklmnopqrst.uvw", "Authorization: Bearer <key>"},
		{`api_key = "s3cretvalue"`, `api_key = "<key>"`},
		{"-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----", "<key>"},
		{"a skeleton key, task-sk-1", "a skeleton key, task-sk-1"},
	} {
		r := redactor(t, plugins.RedactOptions{})
		hidden := must(r.Hide(c.text))(t)
		if got := placeholder.ReplaceAllString(hidden, "<$1>"); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
		if back := r.Restore(hidden); back != c.text {
			t.Errorf("%q came back as %q", c.text, back)
		}
		if again := must(r.Hide(hidden))(t); again != hidden {
			t.Errorf("hiding %q twice gives %q", hidden, again)
		}
	}
}

func TestRedactOptions(t *testing.T) {
	own := redactor(t, plugins.RedactOptions{
		Kinds:    []string{"email"},
		Patterns: map[string]string{"customer": `customer (\d+)`, "badge": `B-\d+`},
		Except:   []string{"help@shop.example"},
	})
	const text = "customer 77, B-12, ann@mail.example, help@shop.example, 4111111111111111"
	hidden := must(own.Hide(text))(t)
	if got, want := placeholder.ReplaceAllString(hidden, "<$1>"), "customer <customer>, <badge>, <email>, help@shop.example, 4111111111111111"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// The same key makes the same placeholders, in another process too; another
	// key others, and a redactor knows only what it hid itself.
	same := redactor(t, plugins.RedactOptions{Kinds: []string{"email"}})
	other := redactor(t, plugins.RedactOptions{Kinds: []string{"email"}, Key: []byte("another key, as long")})
	one, two, three := must(own.Hide("ann@mail.example"))(t), must(same.Hide("ann@mail.example"))(t), must(other.Hide("ann@mail.example"))(t)
	if one != two || one == three {
		t.Errorf("placeholders %s, %s (same key), %s (another key)", one, two, three)
	}
	if got := redactor(t, plugins.RedactOptions{}).Restore(one); got != one {
		t.Errorf("a redactor that hid nothing restored %q", got)
	}

	for _, c := range []struct {
		o   plugins.RedactOptions
		say string
	}{
		{plugins.RedactOptions{}, "key of at least 16"},
		{plugins.RedactOptions{Key: redactKey, Kinds: []string{"mail"}}, `no kind "mail"`},
		{plugins.RedactOptions{Key: redactKey, Kinds: []string{}}, "hide nothing"},
		{plugins.RedactOptions{Key: redactKey, Patterns: map[string]string{"x": "("}}, `the pattern "x"`},
		{plugins.RedactOptions{Key: redactKey, Patterns: map[string]string{"x": "a*"}}, "empty text"},
		{plugins.RedactOptions{Key: redactKey, Patterns: map[string]string{"email": "a"}}, "built in"},
		{plugins.RedactOptions{Key: redactKey, Patterns: map[string]string{"My Kind": "a"}}, "its name"},
	} {
		if _, err := plugins.Redact(c.o); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("Redact(%+v): %v, want an error that says %q", c.o, err, c.say)
		}
	}
}

// A plain call: the model is sent placeholders, tools are given and return
// placeholders, and the call can no longer be replayed.
func TestRedactCall(t *testing.T) {
	const ann, bob = "ann@mail.example", "bob@mail.example"
	r := redactor(t, plugins.RedactOptions{})
	m := callsOnce(toolCall("send_email", `{"to":["`+bob+`",{"`+bob+`":1}],"cards":[4111111111111111,12],"n":1}`))
	caller := scriptCaller(m)
	box := &toolbox{output: "sent to " + bob}
	caller.Tools = box
	call := askWith(t, caller, parseYAML(t, assistantYAML), "I am "+ann, r.Plugin())
	if call.Failure != nil {
		t.Fatal(call.Failure)
	}
	hiddenAnn, hiddenBob := must(r.Hide(ann))(t), must(r.Hide(bob))(t)
	card := must(r.Hide("4111111111111111"))(t)
	equalLists(t, "ran", box.ran, []string{`send_email {"to":["` + hiddenBob + `",{"` + hiddenBob + `":1}],"cards":["` + card + `",12],"n":1}`})
	equalLists(t, "told", m.told(), []string{"sent to " + hiddenBob})
	for i, req := range m.sent {
		text := req.JSON().JSON()
		if strings.Contains(text, ann) || strings.Contains(text, bob) || !strings.Contains(text, hiddenAnn) {
			t.Errorf("request %d: %s", i, text)
		}
	}
	if call.Replayable() {
		t.Error("a call whose request was replaced says it can be replayed")
	}
	if all := strings.Join(changesOf(call), "\n"); strings.Contains(all, ann) || strings.Contains(all, bob) || strings.Contains(all, "4111") {
		t.Errorf("the changes keep what was hidden: %s", all)
	}
	if got := r.Restore("Dear " + hiddenAnn); got != "Dear "+ann {
		t.Errorf("restored %q", got)
	}
}

// Nothing to hide: nothing is changed, and the call can be replayed.
func TestRedactNothing(t *testing.T) {
	call := askWith(t, scriptCaller(callsOnce(toolCall("search", `{"q":"x"}`))), parseYAML(t, assistantYAML), "hello", redactor(t, plugins.RedactOptions{}).Plugin())
	if call.Failure != nil || call.Changes != nil || !call.Replayable() {
		t.Errorf("failure %v, changes %v, replayable %v", call.Failure, changesOf(call), call.Replayable())
	}
}

// An input that is no object cannot be changed, so the tool does not get it.
func TestRedactOtherInput(t *testing.T) {
	m := callsOnce(toolCall("search", `"ann@mail.example"`))
	caller := scriptCaller(m)
	askWith(t, caller, parseYAML(t, assistantYAML), "x", redactor(t, plugins.RedactOptions{}).Plugin())
	if told := m.told(); !strings.HasPrefix(told[0], "This call was blocked (redact): ") || caller.Tools.(*toolbox).ran != nil {
		t.Errorf("told %q, ran %q", told, caller.Tools.(*toolbox).ran)
	}
}

// In a conversation the inputs are hidden before the turn is recorded: no record
// has them, and the requests stay what the records say.
func TestRedactConversation(t *testing.T) {
	const ann = "ann@mail.example"
	r := redactor(t, plugins.RedactOptions{})
	store := pipeline.NewMemoryStore()
	caller := scriptCaller(says("fine"))
	chat := must(caller.Converse(plainProgram(t), "alex", store, pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{r.Plugin()}}))(t)
	turn := send(t, chat, "I am "+ann, pipeline.SendOptions{})
	send(t, chat, "Who am I?", pipeline.SendOptions{})
	if !turn.Record.Replayable() {
		t.Error("the turn's call cannot be replayed")
	}
	records := must(store.Read(t.Context(), "alex", 0))(t)
	if slices.ContainsFunc(records, func(v datasets.Value) bool { return strings.Contains(v.JSON(), ann) }) {
		t.Error("a record has what was hidden")
	}
	if got, _ := turn.Inputs["message"].AsText(); r.Restore(got) != "I am "+ann {
		t.Errorf("the turn's input is %q", got)
	}
}

// Hiding never loses or adds anything, whatever the text.
func FuzzRedact(f *testing.F) {
	for _, s := range []string{"", "a@b.cc", "[email:abcdefghijkl]", "4111 1111 1111 1111", "+49 30 1234567 x", "\xff@b.cc"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := redactor(t, plugins.RedactOptions{})
		hidden := must(r.Hide(text))(t)
		if back := r.Restore(hidden); back != text && !placeholder.MatchString(text) {
			t.Errorf("%q became %q and came back as %q", text, hidden, back)
		}
		if again := must(r.Hide(hidden))(t); again != hidden {
			t.Errorf("%q: hidden once %q, twice %q", text, hidden, again)
		}
	})
}

// What members of one name hide, or a member's name, no tool gets either.
func TestRedactMembers(t *testing.T) {
	const bob = "bob@mail.example"
	r := redactor(t, plugins.RedactOptions{})
	hidden := must(r.Hide(bob))(t)
	for input, want := range map[string]string{
		`{"to":"` + bob + `","to":"ok","n":1}`: `search {"to":"ok","n":1}`,
		`{"to":"ok","to":"` + bob + `"}`:       `search {"to":"` + hidden + `"}`,
		`{"n":1,"` + bob + `":1}`:              "",
		`{"n":1,"n":2}`:                        `search {"n":1,"n":2}`,
	} {
		m := callsOnce(toolCall("search", input))
		caller := scriptCaller(m)
		call := askWith(t, caller, parseYAML(t, assistantYAML), "x", r.Plugin())
		ran := strings.Join(caller.Tools.(*toolbox).ran, "; ")
		if call.Failure != nil || ran != want || want == "" && !strings.HasPrefix(m.told()[0], "This call was blocked (redact): ") {
			t.Errorf("%s: ran %q, want %q; told %q, %v", input, ran, want, m.told(), call.Failure)
		}
	}
}
