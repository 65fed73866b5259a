package provider_test

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/pipeline/provider"
	"evalrun/pipeline/provider/providertest"
)

// route is the request that a program sends for one ticket.
func route(ticket string) *pipeline.Request {
	return &pipeline.Request{
		Model:    "some-model",
		System:   "Say what the customer wants done.\n\nReply in exactly this form:\n<result>\none of: refund, repair, question\n</result>\n",
		Messages: []pipeline.Message{pipeline.TextMessage("user", "<ticket>\n"+ticket+"\n</ticket>\n")},
		Config:   datasets.Values{"stop": datasets.RawValue(`["</result>"]`)},
	}
}

func changed(r *pipeline.Request, change func(*pipeline.Request)) *pipeline.Request {
	r = r.Clone()
	change(r)
	return r
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// lines is a file of JSON lines with these replies to the tickets.
func lines(t *testing.T, keepRequests bool, tickets ...string) string {
	t.Helper()
	var b strings.Builder
	for _, ticket := range tickets {
		r := route(ticket)
		request := ""
		if keepRequests {
			request = `"request":` + r.JSON().JSON() + ","
		}
		fmt.Fprintf(&b, "{%s\"request_hash\":%q,\"reply\":%s}\n", request, r.ProbeHash(), datasets.Text("reply to "+ticket).JSON())
	}
	return write(t, "replies.jsonl", b.String())
}

func open(t *testing.T, path string) *provider.Recorded {
	t.Helper()
	m, err := provider.OpenRecorded(path)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func failure(t *testing.T, m pipeline.Model, r *pipeline.Request) *pipeline.Failure {
	t.Helper()
	reply, err := m.Generate(t.Context(), r)
	var f *pipeline.Failure
	if !errors.As(err, &f) {
		t.Fatalf("got reply %v and error %v, want a failure", reply, err)
	}
	return f
}

func TestRecordedServes(t *testing.T) {
	// Written by hand: no header, no hash, a response in place of a text, a
	// blank line, a byte order mark, line ends of another system.
	verbatim := "{{ env.KEY }} ${KEY} file:///etc/passwd <result>\n\trefund "
	one, two, three := route("one"), route("two"), route("three")
	three.Model = "probe"
	path := write(t, "replies.jsonl", "\uFEFF"+
		`{"request":`+one.JSON().JSON()+`,"reply":`+datasets.Text(verbatim).JSON()+`,"finish":"length","model":"served-1","usage":{"input_tokens":7}}`+"\r\n\n"+
		`{"evalrun_replies":1}`+"\n"+
		`{"request_hash":"`+two.ProbeHash()+`","response":{"message":{"role":"assistant","parts":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]},"finish_reason":"stop"},"request":null}`+"\n"+
		`{"request_hash":"`+three.Hash()+`","reply":"","replicate":2}`)
	m := open(t, path)
	if m.Len() != 3 {
		t.Errorf("Len() = %d, want 3", m.Len())
	}
	two.Model = "another-name"
	three.Site.Repeat = 2
	for _, c := range []struct {
		req  *pipeline.Request
		want pipeline.Reply
	}{
		{one, pipeline.Reply{Text: verbatim, Finish: "length", Model: "served-1", Usage: pipeline.Usage{Input: new(int64(7))}}},
		{two, pipeline.Reply{Text: "ab", Finish: "stop"}},
		{three, pipeline.Reply{}},
	} {
		got, err := m.Generate(t.Context(), c.req)
		if err != nil {
			t.Errorf("%s: %v", c.req.Messages[0].Parts[0].Text, err)
			continue
		}
		c.want.Provider = "recorded"
		c.want.Response = got.Response
		if diff := cmp.Diff(&c.want, got, cmp.Comparer(datasets.Value.Equal)); diff != "" {
			t.Errorf("want -, got +:\n%s", diff)
		}
	}
}

// The tools that a recorded response called are called again, with or without a text
// beside them, and however the reply's text is given.
func TestRecordedToolCalls(t *testing.T) {
	calls := `{"type":"tool_call","id":"a","name":"look","input":{"n": 1.0}},{"type":"tool_call","id":"b","name":"find","input":{}}`
	want := []pipeline.ToolCall{{ID: "a", Name: "look", Input: datasets.RawValue(`{"n": 1.0}`)}, {ID: "b", Name: "find", Input: datasets.RawValue(`{}`)}}
	for _, c := range []struct{ name, row, text string }{
		{"calls alone", `"response":{"message":{"parts":[` + calls + `]},"finish_reason":"tool_calls"}`, ""},
		{"beside a text", `"response":{"message":{"parts":[{"type":"text","text":"So:"},` + calls + `]},"finish_reason":"tool_calls"}`, "So:"},
		{"with the reply's text", `"reply":"So:","finish":"tool_calls","response":{"message":{"parts":[` + calls + `]}}`, "So:"},
	} {
		path := write(t, "replies.jsonl", `{"request_hash":"`+route("one").ProbeHash()+`",`+c.row+"}\n")
		m, err := provider.OpenRecorded(path)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, err := m.Generate(t.Context(), route("one"))
		if err != nil || got.Text != c.text || got.Finish != "tool_calls" || !slices.Equal(got.Calls, want) {
			t.Errorf("%s: got %+v (%v), want %q and %v", c.name, got, err, c.text, want)
		}
	}
}

func TestRecordedRefuses(t *testing.T) {
	good := route("one")
	hash := good.ProbeHash()
	request := good.JSON().JSON()
	row := fmt.Sprintf(`{"request_hash":%q,"reply":"x"}`, hash) + "\n"
	for _, c := range []struct{ name, content, want string }{
		{"empty", "", "replies.jsonl: no reply in it"},
		{"header alone", "{\"evalrun_replies\":1}\n\n", "replies.jsonl: no reply in it"},
		{"later version", `{"evalrun_replies":2,"more":true}` + "\n" + row, "replies.jsonl:1: a replies file of version 2; this evalrun reads versions up to 1"},
		{"later version, other key first", `{"more":true,"evalrun_replies":2}` + "\n" + row, "version 2"},
		{"no version", `{"evalrun_replies":"one"}` + "\n", `replies.jsonl:1: evalrun_replies is the format's version, a whole number from 1, not "one"`},
		{"header with more", `{"evalrun_replies":1,"reply":"x"}`, "a header holds evalrun_replies alone"},
		{"unknown key", row + `{"request_hash":"` + hash + `","reply":"y","replcate":1}`, `replies.jsonl:2: unknown key "replcate"; did you mean "replicate"?`},
		{"unknown key unlike any", `{"reply":"x","zzzzzzzz":1}`, `unknown key "zzzzzzzz"`},
		{"unknown usage key", `{"request_hash":"` + hash + `","reply":"y","usage":{"input_token":1}}`, `unknown key "usage.input_token"; did you mean "input_tokens"?`},
		{"twice the same key", `{"reply":"x","reply":"y"}`, `replies.jsonl:1:14: the key "reply" occurs twice`},
		{"cut off", row + `{"request_hash":"` + hash + `","re`, "replies.jsonl:2:94: not a JSON object on a line"},
		{"more on the line", `{"reply":"x"} {}`, "replies.jsonl:1:15: not a JSON object on a line"},
		{"a list", `["x"]`, "replies.jsonl:1: a row is a JSON object, not a list"},
		{"reply is no text", `{"reply":{"a":1}}`, "replies.jsonl:1: reply is text, not an object"},
		{"model is no text", `{"model":7}`, "model is text, not a number"},
		{"usage is no object", `{"usage":"7"}`, "usage is a JSON object, not text"},
		{"replicate is no number", `{"replicate":"1"}`, "replicate is a whole number, not text"},
		{"replicate is a fraction", `{"replicate":1.5}`, "replicate is a whole number"},
		{"replicate below 0", `{"request_hash":"` + hash + `","reply":"x","replicate":-1}`, "replies.jsonl:1: replicate is -1"},
		{"no reply", `{"request_hash":"` + hash + `","reply":null}`, "replies.jsonl:1: neither reply nor response"},
		{"no text in the response", `{"request_hash":"` + hash + `","response":{"choices":[]}}`, "replies.jsonl:1: the response has neither text nor tool calls at message.parts"},
		{"no request", `{"reply":"x"}`, "neither request_hash nor request"},
		{"hash of another kind", `{"request_hash":"md5:00","reply":"x"}`, `request_hash "md5:00" is not sha256: and 64 hex digits`},
		{"hash in upper case", `{"request_hash":"sha256:` + strings.ToUpper(hash[7:]) + `","reply":"x"}`, "64 hex digits in lower case"},
		{"hash too short", `{"request_hash":"` + hash[:70] + `","reply":"x"}`, "64 hex digits"},
		{"hash with the model's own name", `{"request_hash":"` + good.Hash() + `","request":` + request + `,"reply":"x"}`, `replies.jsonl:1: request_hash is the request's hash with its model "some-model"; replies are kept under the hash with model "probe", which is ` + hash},
		{"hash of another request", `{"request_hash":"` + route("two").ProbeHash() + `","request":` + request + `,"reply":"x"}`, "but the request beside it has " + hash},
		{"no request at all", `{"request":{"prompt":"x"},"reply":"x"}`, "replies.jsonl:1: request: not a request"},
		{"two replies", row + "\n" + strings.Replace(row, "x", "y", 1), "replies.jsonl:3: another reply than replies.jsonl:1 has for the same request and replicate 0"},
		{"two finishes", row + strings.Replace(row, "}", `,"finish":"stop"}`, 1), "another finish than replies.jsonl:1 has"},
		{"two usages", row + strings.Replace(row, "}", `,"usage":{"total_tokens":1}}`, 1), "another usage than replies.jsonl:1 has"},
		{"negative usage", `{"request_hash":"` + hash + `","reply":"x","usage":{"total_tokens":-1}}`, "usage counts -1 tokens"},
		{"not UTF-8", "{\"reply\":\"\xff\"}", "replies.jsonl:1:11: not a JSON object on a line: invalid UTF-8"},
		{"Parquet cut off", "PAR1 and then nothing", "replies.jsonl: is damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, "replies.jsonl", c.content)
			m, err := provider.OpenRecorded(path)
			if err == nil {
				t.Fatalf("read %d replies, want an error with %q", m.Len(), c.want)
			}
			if !strings.HasPrefix(err.Error(), path) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	if _, err := provider.OpenRecorded(filepath.Join(t.TempDir(), "none.jsonl")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// TestRecordedDuplicates: the same row twice is no contradiction.
func TestRecordedDuplicates(t *testing.T) {
	path := lines(t, true, "one", "two", "one")
	if m := open(t, path); m.Len() != 2 {
		t.Errorf("Len() = %d, want 2", m.Len())
	}
}

// TestRecordedRepeats: the reply to one repeat is never served for another.
func TestRecordedRepeats(t *testing.T) {
	hash := route("one").ProbeHash()
	path := write(t, "r.jsonl", fmt.Sprintf(`{"request_hash":%[1]q,"reply":"first"}
{"request_hash":%[1]q,"reply":"second","replicate":1}
{"request_hash":%[2]q,"reply":"alone","replicate":3}
{"request_hash":%[3]q,"reply":"a","replicate":0}
{"request_hash":%[3]q,"reply":"b","replicate":4}
`, hash, route("two").ProbeHash(), route("three").ProbeHash()))
	m := open(t, path)
	for repeat, want := range []string{"first", "second"} {
		reply, err := m.Generate(t.Context(), changed(route("one"), func(r *pipeline.Request) { r.Site.Repeat = repeat }))
		if err != nil || reply.Text != want {
			t.Errorf("repeat %d: %v, %v; want %s", repeat, reply, err, want)
		}
	}
	for ticket, want := range map[string]string{
		"one":   "never recorded: r.jsonl has no reply to repeat 2 of this request; it has replicates 0 to 1",
		"two":   "never recorded: r.jsonl has no reply to repeat 2 of this request; it has replicate 3 alone",
		"three": "never recorded: r.jsonl has no reply to repeat 2 of this request; it has 2 replicates from 0 to 4",
	} {
		f := failure(t, m, changed(route(ticket), func(r *pipeline.Request) { r.Site.Repeat = 2 }))
		if f.Message != want {
			t.Errorf("%s: %s", ticket, f.Message)
		}
	}
}

// TestRecordedMiss: a miss says which recorded request is nearest and what differs.
func TestRecordedMiss(t *testing.T) {
	path := lines(t, true, "The hinge is bent.", "I want my money back.", "When do you open?")
	m := open(t, path)
	tool := pipeline.Tool{Name: "room_status", Description: "Say whether a room is free.", Parameters: datasets.RawValue(`{"type":"object"}`)}
	for _, c := range []struct {
		name   string
		change func(*pipeline.Request)
		want   string
	}{
		{
			"system", func(r *pipeline.Request) { r.System = strings.Replace(r.System, "customer wants", "client wants", 1) },
			`the system text (from character 15: recorded "Say what the customer wants done.\n\nReply in exactly th…", asked "Say what the client wants done.\n\nReply in exactly this…")`,
		},
		{
			"no system", func(r *pipeline.Request) { r.System = "" },
			`the system text (recorded "Say what the customer wants done.\n\nReply…", asked none)`,
		},
		{
			"white space in the question", func(r *pipeline.Request) { r.Messages[0].Parts[0].Text = "<ticket>\nI want my money back.\n</ticket>" },
			`message 1 (user) (from character 41: recorded "… back.\n</ticket>\n", asked "… back.\n</ticket>")`,
		},
		{
			"another layout", func(r *pipeline.Request) {
				r.Messages[0].Parts[0].Text = "[[ ## ticket ## ]]\nI want my money back.\n\n"
			},
			`message 1 (user) (recorded "<ticket>\nI want my money back.\n</ticket>…", asked "[[ ## ticket ## ]]\nI want my money back.…")`,
		},
		{
			"role", func(r *pipeline.Request) { r.Messages[0].Role = "developer" },
			`the role of message 1 (recorded "user", asked "developer")`,
		},
		{
			"messages", func(r *pipeline.Request) {
				r.Messages = append([]pipeline.Message{pipeline.TextMessage("user", "q"), pipeline.TextMessage("assistant", "a")}, r.Messages...)
			},
			`the number of messages (recorded "1", asked "3"); message 1 (user) (recorded "<ticket>`,
		},
		{
			"config", func(r *pipeline.Request) { r.Config["temperature"] = datasets.Float(0.5) },
			`config temperature (recorded none, asked "0.5")`,
		},
		{
			"config value", func(r *pipeline.Request) { r.Config["stop"] = datasets.RawValue(`["</answer>"]`) },
			`config stop (from character 5: recorded "[\"</result>\"]", asked "[\"</answer>\"]")`,
		},
		{
			"tools", func(r *pipeline.Request) { r.Tools = []pipeline.Tool{tool} },
			`the tools (recorded none, asked "[{\"description\":`,
		},
		{
			"a part that is no text", func(r *pipeline.Request) {
				r.Messages[0].Parts = append(r.Messages[0].Parts, pipeline.Part{Raw: datasets.RawValue(`{"type":"image"}`)})
			},
			`message 1 (user) (recorded "<ticket>\nI want`,
		},
		{
			"much", func(r *pipeline.Request) {
				r.System = ""
				r.Config = datasets.Values{"a": datasets.Int(1), "b": datasets.Int(2), "c": datasets.Int(3)}
			},
			`; config c (recorded none, asked "3"); and 1 more`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := changed(route("I want my money back."), c.change)
			f := failure(t, m, asked)
			if f.Type != pipeline.TypeNotRecorded || f.Code != "never-recorded" || f.Class() != "never_recorded" {
				t.Errorf("the failure is %s, %s", f.Type, f.Code)
			}
			want := "never recorded: replies.jsonl has no reply to this request. The nearest of those it has (replies.jsonl:2) differs in "
			if !strings.HasPrefix(f.Message, want) {
				t.Errorf("got  %s\nwant %s…", f.Message, want)
			}
			if !strings.Contains(f.Message, c.want) {
				t.Errorf("got  %s\nwant …%s…", f.Message, c.want)
			}
			if !strings.HasSuffix(f.Message, asked.ProbeHash()) {
				t.Errorf("the message does not name the request's hash: %s", f.Message)
			}
		})
	}
}

// TestRecordedMissWithoutRequests: a file that keeps no requests explains nothing.
func TestRecordedMissWithoutRequests(t *testing.T) {
	asked := route("three")
	f := failure(t, open(t, lines(t, false, "one", "two")), asked)
	want := "never recorded: replies.jsonl has no reply to this request, and keeps no requests, so that nothing can be said of what differs; its hash is " + asked.ProbeHash()
	if f.Message != want {
		t.Errorf("got %s\nwant %s", f.Message, want)
	}
}

// TestRecordedMissFindsTheQuestion: among many requests that share a long
// prompt, the one with the same question is the nearest, though the prompt
// before it changed and another request differs by fewer bytes.
func TestRecordedMissFindsTheQuestion(t *testing.T) {
	prompt := func(first string, i int) *pipeline.Request {
		r := route("")
		r.System = ""
		r.Messages[0].Parts[0].Text = first + strings.Repeat("Q: What is two and two?\nA: four\n\n", 40) +
			fmt.Sprintf("Q: How old is person number %d?\nA:", i)
		return r
	}
	var b strings.Builder
	for i := range 500 {
		fmt.Fprintf(&b, "{\"request\":%s,\"reply\":\"x\"}\n", prompt("Answer.\n", i).JSON().JSON())
	}
	m := open(t, write(t, "replies.jsonl", b.String()))
	f := failure(t, m, prompt("Please answer.\n", 437))
	if want := `(replies.jsonl:438) differs in message 1 (user) (recorded "Answer.\nQ: What is`; !strings.Contains(f.Message, want) {
		t.Errorf("got %s\nwant …%s…", f.Message, want)
	}
	// A question nobody asked is compared with some request of the same kind.
	if f := failure(t, m, prompt("Answer.\n", 5000)); !strings.Contains(f.Message, `person number `) {
		t.Errorf("got %s", f.Message)
	}
}

func replies(list ...provider.RecordedReply) iter.Seq2[provider.RecordedReply, error] {
	return func(yield func(provider.RecordedReply, error) bool) {
		for _, r := range list {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// TestWriteReplies: what is written is served, in both forms alike.
func TestWriteReplies(t *testing.T) {
	one, two := route("one"), route("two ☃")
	list := []provider.RecordedReply{
		{Request: one.JSON(), Reply: new("<result>\nrefund\n</result>"), Finish: "stop", Model: "m", Usage: pipeline.Usage{Input: new(int64(3)), Output: new(int64(0))}},
		{Request: one.JSON(), Reply: new(""), Replicate: 1},
		{RequestHash: two.ProbeHash(), Response: datasets.RawValue(`{"message":{"parts":[{"type":"text","text":"hi"}]},"big":12345678901234567890123,"b":1.0,"a":2}`), Finish: "length"},
		{RequestHash: one.ProbeHash(), Reply: new(""), Replicate: 1}, // again
	}
	for _, name := range []string{"replies.parquet", "replies.jsonl"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			if err := provider.WriteReplies(path, replies(list...)); err != nil {
				t.Fatal(err)
			}
			m := open(t, path)
			if m.Len() != 3 {
				t.Errorf("%d replies came back, want 3", m.Len())
			}
			for i, r := range list {
				req := one
				if i == 2 {
					req = two
				}
				got, err := m.Generate(t.Context(), changed(req, func(q *pipeline.Request) { q.Site.Repeat = r.Replicate }))
				if err != nil {
					t.Fatal(err)
				}
				want := &pipeline.Reply{Finish: r.Finish, Model: r.Model, Provider: "recorded", Usage: r.Usage, Response: r.Response}
				if want.Text = "hi"; r.Reply != nil {
					want.Text = *r.Reply
				}
				// The recorded text of a response, not only its value, comes back.
				if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b datasets.Value) bool { return a == b })); diff != "" {
					t.Errorf("reply %d: want -, got +:\n%s", i, diff)
				}
			}
			if f := failure(t, m, route("three")); !strings.Contains(f.Message, name+map[string]string{"replies.parquet": ": row 1", "replies.jsonl": ":2"}[name]) {
				t.Errorf("the miss names no row: %s", f.Message)
			}
		})
	}
}

func TestWriteRepliesRefuses(t *testing.T) {
	one := route("one")
	broken := errors.New("the source broke off")
	for _, c := range []struct {
		name, file, want string
		rows             iter.Seq2[provider.RecordedReply, error]
	}{
		{"nothing", "r.parquet", "no replies to write", replies()},
		{"another kind of file", "r.csv", "a replies file's name ends in .parquet or .jsonl", replies()},
		{"contradiction", "r.parquet", "r.parquet: reply 2: another reply than r.parquet: reply 1 has", replies(
			provider.RecordedReply{Request: one.JSON(), Reply: new("a")}, provider.RecordedReply{Request: one.JSON(), Reply: new("b")})},
		{"no reply", "r.jsonl", "r.jsonl: reply 1: neither reply nor response", replies(provider.RecordedReply{Request: one.JSON()})},
		{"not UTF-8", "r.parquet", "not UTF-8", replies(provider.RecordedReply{Request: one.JSON(), Reply: new("\xff")})},
		{"a source that breaks off", "r.jsonl", "the source broke off", func(yield func(provider.RecordedReply, error) bool) {
			if yield(provider.RecordedReply{Request: one.JSON(), Reply: new("a")}, nil) {
				yield(provider.RecordedReply{}, broken)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, c.file)
			if err := os.WriteFile(path, []byte("as it was"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := provider.WriteReplies(path, c.rows); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if b, _ := os.ReadFile(path); string(b) != "as it was" {
				t.Error("the file that was there is gone")
			}
			if left, _ := os.ReadDir(dir); len(left) != 1 {
				t.Errorf("%d files are left", len(left))
			}
		})
	}
}

func TestRecordedKeepsPromises(t *testing.T) {
	m := open(t, lines(t, true, "one", "two"))
	if err := providertest.Check(m, providertest.Case{
		Answers: []*pipeline.Request{route("one"), route("two")},
		Fails:   []*pipeline.Request{route("three"), changed(route("one"), func(r *pipeline.Request) { r.Site.Repeat = 1 })},
	}); err != nil {
		t.Error(err)
	}
}
