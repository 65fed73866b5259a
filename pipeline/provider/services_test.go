package provider_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/pipeline/provider"
	"evalrun/pipeline/provider/providertest"
)

// parted are the providers whose services answer in parts, each with its simulated
// service and a model of it that takes all settings.
var parted = []struct {
	name, model string
	dialect     providertest.Dialect
}{
	{"anthropic", "claude", providertest.Anthropic},
	{"gemini", "gemini-3", providertest.Gemini},
}

// simulated is a model of a simulated service.
type simulated struct {
	pipeline.Model
	*providertest.Service
	warnings
}

func simulate(t testing.TB, name, model string, dialect providertest.Dialect, faults ...providertest.Fault) *simulated {
	t.Helper()
	s := &simulated{Service: service(t, dialect, faults...)}
	lm, err := provider.Open(name, provider.Options{Name: "asked", Model: model, BaseURL: s.URL, Key: testKey, Now: time.Now, Warn: s.warn})
	if err != nil {
		t.Fatal(err)
	}
	s.Model = lm.Model
	return s
}

// body is what the service was asked last.
func (s *simulated) body(t testing.TB) datasets.Value {
	t.Helper()
	received := s.Received()
	v, err := datasets.ParseValue(received[len(received)-1].Body)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// ask has the model answer.
func (s *simulated) ask(t testing.TB, req *pipeline.Request) *pipeline.Reply {
	t.Helper()
	reply, err := s.Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func said(text string) *pipeline.Request {
	return &pipeline.Request{Model: "asked", Messages: []pipeline.Message{pipeline.TextMessage("user", text)}}
}

func with(text, object string) *pipeline.Request {
	r := said(text)
	r.Config = config(object)
	return r
}

var look = pipeline.Tool{Name: "look", Description: "Looks.", Parameters: raw(`{"type":"object","properties":{"q":{"type":"string"}}}`)}

// looked is a request in the middle of a loop of tools, after two calls at once.
func looked(ids ...string) *pipeline.Request {
	r := said("Where is it?")
	r.Tools = []pipeline.Tool{look}
	calls := []pipeline.Part{{Text: "I look."}}
	var results []pipeline.Part
	for i, id := range ids {
		calls = append(calls, pipeline.Part{Raw: raw(fmt.Sprintf(`{"type":"tool_call","id":%q,"name":"look","input":{"q":"%d"}}`, id, i))})
		results = append(results, pipeline.Part{Raw: raw(fmt.Sprintf(`{"type":"tool_result","id":%q,"text":"found %d"}`, id, i))})
	}
	r.Messages = append(r.Messages, pipeline.Message{Role: "assistant", Parts: calls}, pipeline.Message{Role: "tool", Parts: results})
	return r
}

// equalJSON compares JSON whatever the order of members.
func equalJSON(t *testing.T, what string, got datasets.Value, want string) {
	t.Helper()
	if w, err := datasets.ParseValue(want); err != nil {
		t.Fatalf("%s: %v in %s", what, err, want)
	} else if !got.Equal(w) {
		t.Errorf("%s:\n got %s\nwant %s", what, got.Canonical(), w.Canonical())
	}
}

func usage(in, out, total, cached, reasoning int64) pipeline.Usage {
	n := func(v int64) *int64 {
		if v < 0 {
			return nil
		}
		return &v
	}
	return pipeline.Usage{Input: n(in), Output: n(out), Total: n(total), Cached: n(cached), Reasoning: n(reasoning)}
}

// checkReply asks a service that answers with a body and compares what is read.
func checkReply(t *testing.T, name, body string, want pipeline.Reply) {
	t.Helper()
	s := simulate(t, name, "", providertest.Anthropic, providertest.Fault{Do: providertest.Answer(200, body)})
	got := s.ask(t, said("hi"))
	if got.Wire <= 0 {
		t.Error("the time on the wire is missing")
	}
	equal := got.Response.Equal(want.Response)
	response := got.Response
	got.Wire, got.Response, want.Response = 0, datasets.Value{}, datasets.Value{}
	want.Provider = name
	if !equal || !reflect.DeepEqual(*got, want) {
		t.Errorf("%s\n got %+v\nwant %+v\nresponse %s", body, *got, want, response.JSON())
	}
}

const record = `{"response_format":{"type":"json_schema","schema":{"type":"object","properties":{"answer":{"type":"string"},"sure":{"type":"integer"}},"required":["answer","sure"],"additionalProperties":false}}}`

func TestPartedConform(t *testing.T) {
	for _, p := range parted {
		t.Run(p.name, func(t *testing.T) {
			s := simulate(t, p.name, p.model, p.dialect, providertest.Fault{Has: "hold on", Do: providertest.Hang()})
			tools := said("Where is it?")
			tools.Tools = []pipeline.Tool{look}
			err := providertest.Check(s, providertest.Case{
				Answers: []*pipeline.Request{
					said("How are you?"), tools, looked("a", "b"), with("Be brief.", record), with("one two three", `{"max_tokens":2,"temperature":0.5,"stop":"x"}`),
					with("Think.", `{"reasoning":{"effort":"low"},"max_tokens":9000}`),
				},
				Fails:  []*pipeline.Request{said("something forbidden"), with("too hot", `{"temperature":9}`), with("odd", `{"reasoning":{"effort":"odd"}}`)},
				Waits:  said("hold on"),
				Secret: testKey,
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// Each fault of a service, and the failure it stands for.
func TestPartedFaults(t *testing.T) {
	reply := map[string]string{
		"anthropic": `{"content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}`,
		"gemini":    `{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}`,
	}
	for _, p := range parted {
		for _, c := range []struct {
			name      string
			do        providertest.Trouble
			typ, code string
			says      string
		}{
			{"torn", providertest.Torn(), pipeline.TypeServer, "unreadable-answer", "cannot be read"},
			{"empty", providertest.Answer(200, ""), pipeline.TypeServer, "unreadable-answer", "empty"},
			{"a page", providertest.Page(200), pipeline.TypeServer, "unreadable-answer", "HTML page"},
			{"a list", providertest.Answer(200, "[]"), pipeline.TypeServer, "unreadable-answer", "cannot be read"},
			{"nothing said", providertest.Answer(200, "{}"), pipeline.TypeServer, "unreadable-answer", "it has no c"},
			{"another form", providertest.Answer(200, strings.ReplaceAll(reply[p.name], `{"t`, `7,{"t`)), pipeline.TypeServer, "unreadable-answer", "content is not of"},
			{"dropped", providertest.Drop(), pipeline.TypeServer, "connection", "cannot be reached"},
			{"reset", providertest.Reset(), pipeline.TypeServer, "connection", "127.0.0.1"},
			{"bad gateway", providertest.Page(502), pipeline.TypeServer, "http-502", "answered 502: Oops"},
			{"unavailable", providertest.Answer(503, ""), pipeline.TypeServer, "http-503", "Service Unavailable"},
			{"gateway timeout", providertest.Page(504), pipeline.TypeTimeout, "http-504", "504"},
			{"request timeout", providertest.Answer(408, ""), pipeline.TypeTimeout, "http-408", "408"},
			{"conflict", providertest.Answer(409, ""), pipeline.TypeServer, "http-409", "409"},
			{"too many", providertest.Answer(429, ""), pipeline.TypeRateLimit, "http-429", "429"},
			{"forbidden", providertest.Answer(403, ""), pipeline.TypeRefusal, "http-403", "403"},
			{"too large", providertest.Page(413), pipeline.TypeRefusal, "http-413", "413"},
		} {
			t.Run(p.name+", "+c.name, func(t *testing.T) {
				s := simulate(t, p.name, p.model, p.dialect, providertest.Fault{Do: c.do})
				_, err := s.Generate(t.Context(), said("hi"))
				f, ok := errors.AsType[*pipeline.Failure](err)
				if !ok || f.Type != c.typ || f.Code != c.code || !strings.Contains(f.Message, c.says) || !strings.Contains(f.Message, "model asked") {
					t.Fatalf("got %#v, want %s %s: …%s…", err, c.typ, c.code, c.says)
				}
				s.Fail()
				if s.ask(t, said("hi")).Text != "hi" {
					t.Error("the fault has an effect on the next request")
				}
			})
		}
	}
}

// A request whose time is over is a timeout, however the service hangs.
func TestPartedHang(t *testing.T) {
	for _, p := range parted {
		s := simulate(t, p.name, p.model, p.dialect, providertest.Fault{Do: providertest.Hang()})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		_, err := s.Generate(ctx, said("hi"))
		cancel()
		if f, ok := errors.AsType[*pipeline.Failure](err); !ok || f.Type != pipeline.TypeTimeout {
			t.Errorf("%s: %v", p.name, err)
		}
	}
}

// A service may say back the key, or what was sent with it.
func TestPartedKey(t *testing.T) {
	for _, p := range parted {
		says := func(w string) string {
			return fmt.Sprintf(`{"type":"error","error":{"type":"t","status":"s","message":"%s %s"},"content":[{"type":"text","text":"%[2]s"},{"type":"more","more":"%[2]s"}],
				"candidates":[{"content":{"parts":[{"text":"%[2]s"},{"more":"%[2]s"}]}}]}`, w, testKey)
		}
		s := simulate(t, p.name, p.model, p.dialect,
			providertest.Fault{Nth: 1, Do: providertest.Answer(401, says("wrong key"))},
			providertest.Fault{Nth: 2, Do: providertest.Answer(400, says("temperature is not supported with"))},
			providertest.Fault{Nth: 3, Do: providertest.Answer(200, says(""))})
		_, err := s.Generate(t.Context(), said("hi"))
		reply := s.ask(t, with("hi", `{"temperature":0}`))
		all := fmt.Sprintf("%v %+v %v", err, reply, s.said)
		if strings.Contains(all, testKey) || !strings.Contains(reply.Text, "[secret]") || !strings.Contains(reply.Response.JSON(), "[secret]") || len(s.said) != 1 {
			t.Errorf("%s: %s", p.name, all)
		}
		for _, r := range s.Received() {
			if strings.Contains(r.Path, testKey) || strings.Contains(string(r.Body), testKey) {
				t.Errorf("%s: the key is in %s or its body", p.name, r.Path)
			}
		}
	}
}

// A setting that the service says its model does not take is left out from then on,
// and told once, however many ask at once.
func TestPartedLearn(t *testing.T) {
	for _, p := range parted {
		s := simulate(t, p.name, p.model, func(r *http.Request, body []byte) (int, http.Header, []byte) {
			for _, name := range []string{"temperature", "service_tier"} {
				if strings.Contains(string(body), `"`+name+`"`) {
					return 400, nil, []byte(`{"type":"error","error":{"type":"invalid_request_error","message":"` + name + ` is not supported for this model"}}`)
				}
			}
			return p.dialect(r, body)
		})
		req := with("hi", `{"temperature":0,"service_tier":"x"}`)
		s.ask(t, req)
		if s.ask(t, req); s.Count() != 4 {
			t.Errorf("%s: %d requests, want two refused and two answered", p.name, s.Count())
		}
		if err := providertest.Check(s, providertest.Case{Answers: []*pipeline.Request{req}}); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
		slices.Sort(s.said)
		if len(s.said) != 2 || !strings.Contains(s.said[0], "service_tier is left out") || !strings.Contains(s.said[1], "temperature is left out") {
			t.Errorf("%s: %q", p.name, s.said)
		}
		for _, w := range s.said {
			if !strings.Contains(w, "is not supported for this model") {
				t.Errorf("%s: the service's words are missing: %s", p.name, w)
			}
		}
	}
}

// What a service goes on refusing is not asked for ever.
func TestPartedStubborn(t *testing.T) {
	for _, p := range parted {
		s := simulate(t, p.name, p.model, p.dialect, providertest.Fault{Do: providertest.Answer(400, `{"error":{"message":"temperature, top_p and top_k are not supported"}}`)})
		_, err := s.Generate(t.Context(), with("hi", `{"temperature":0.5,"top_k":4}`))
		if f, ok := errors.AsType[*pipeline.Failure](err); !ok || f.Type != pipeline.TypeRefusal || s.Count() != 3 {
			t.Errorf("%s: %v after %d requests", p.name, err, s.Count())
		}
	}
}

// A value that is out of bounds is not left out: whoever wrote it is to mend it.
func TestPartedBounds(t *testing.T) {
	for _, p := range parted {
		s := simulate(t, p.name, p.model, p.dialect)
		_, err := s.Generate(t.Context(), with("hi", `{"temperature":9}`))
		if f, ok := errors.AsType[*pipeline.Failure](err); !ok || f.Type != pipeline.TypeRefusal || f.Code != "http-400" || !strings.Contains(f.Message, "temperature") || s.said != nil || s.Count() != 1 {
			t.Errorf("%s: %v, warnings %q", p.name, err, s.said)
		}
	}
}

func TestPartedOpen(t *testing.T) {
	for _, p := range parted {
		for _, c := range []struct {
			want string
			o    provider.Options
		}{
			{"takes no replies", provider.Options{Replies: "r.jsonl"}},
			{"tools is no setting of a model: requests say it themselves", provider.Options{Config: datasets.Values{"tools": raw(`[]`)}}},
			{"base_url is no address", provider.Options{BaseURL: "there"}},
		} {
			c.o.Name, c.o.Now = "asked", time.Now
			if _, err := provider.Open(p.name, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %q", p.name, err, c.want)
			}
		}
	}
}

// A base_url may have the version at its end.
func TestPartedVersion(t *testing.T) {
	for name, paths := range map[string][2]string{
		"anthropic": {"/v1/messages", "/gateway/v2/messages"},
		"gemini":    {"/v1beta/models/m:generateContent", "/gateway/v2/models/m:generateContent"},
	} {
		var got []string
		service := providertest.NewService(func(r *http.Request, _ []byte) (int, http.Header, []byte) {
			got = append(got, r.URL.Path)
			return 500, nil, nil
		})
		for _, at := range []string{"", "/gateway/v2/"} {
			lm, err := provider.Open(name, provider.Options{Name: "m", BaseURL: service.URL + at, Now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = lm.Model.Generate(t.Context(), said("hi"))
		}
		service.Close()
		if !slices.Equal(got, paths[:]) {
			t.Errorf("%s: asked at %q, want %q", name, got, paths)
		}
	}
}

const finder = `
name: finder
inputs:
  - {name: thing, shape: {type: string}}
outputs:
  - {name: place, shape: {type: string}}
tools:
  - {name: look, description: Looks., parameters: {type: object}, effects: reads}
  - {name: ask, description: Asks., parameters: {type: object}, effects: reads}
settings: {adapter: json, module: cot, capabilities: {native_reasoning: true}}
`

// toolbox runs any tool with one function.
type toolbox struct{ pipeline.ToolFunc }

func (b toolbox) Tool(string) (pipeline.ToolRunner, bool) { return b.ToolFunc, true }

// A program that reasons, calls two tools and answers by a schema, whichever model
// it is, and whose replies can be served from a replies file.
func TestPartedPrograms(t *testing.T) {
	p, err := pipeline.ParseProgram("finder.yaml", []byte(finder))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, model string
		dialect     providertest.Dialect
	}{
		{"anthropic", "claude", providertest.Anthropic},
		{"anthropic", "older", providertest.Anthropic},
		{"anthropic", "newer", providertest.Anthropic},
		{"gemini", "gemini-3", providertest.Gemini},
		{"gemini", "gemini-2.5", providertest.Gemini},
		{"gemini", "gemini-1.5", providertest.Gemini},
	} {
		s := simulate(t, c.name, c.model, c.dialect)
		ask := func(m pipeline.Model) *pipeline.Call {
			caller := &pipeline.Caller{
				LM:  pipeline.LM{Name: "asked", Model: m, Config: config(`{"temperature":0}`)},
				Now: time.Now, NewID: func() string { return "call" },
				Tools: toolbox{func(_ context.Context, _ pipeline.Invocation, input datasets.Value) (string, error) {
					return "in the hall", nil
				}},
			}
			call, err := caller.Ask(t.Context(), p, pipeline.Ask{Inputs: datasets.Values{"thing": datasets.Text("the key")}})
			if err != nil || call.Failure != nil {
				t.Fatalf("%s: %v, %+v", c.model, err, call.Failure)
			}
			return call
		}
		call := ask(s)
		if place, _ := call.Outputs["place"].AsText(); !strings.Contains(place, "in the hall") {
			t.Errorf("%s: %s", c.model, call.Outputs.Object().JSON())
		}
		if u := call.Usage(); u.Input == nil || *u.Input == 0 || u.Output == nil || *u.Output == 0 {
			t.Errorf("%s: usage %+v", c.model, u)
		}
		var kept []provider.RecordedReply
		for _, x := range call.Exchanges {
			r := provider.RecordedReply{Request: x.Request.JSON(), Response: x.Reply.Response, Usage: x.Reply.Usage}
			if r.Response.IsZero() {
				r.Reply, r.Finish = &x.Reply.Text, x.Reply.Finish
			}
			kept = append(kept, r)
		}
		path := t.TempDir() + "/replies.jsonl"
		if err := provider.WriteReplies(path, replies(kept...)); err != nil {
			t.Fatal(err)
		}
		if again := ask(open(t, path)); !again.Outputs.Object().Equal(call.Outputs.Object()) {
			t.Errorf("%s: from its replies %s, before %s", c.model, again.Outputs.Object().JSON(), call.Outputs.Object().JSON())
		}
	}
}

// TestRefusedYetCharged: a service that refuses and says what that took has its
// tokens in the failure, and the budget has them.
func TestRefusedYetCharged(t *testing.T) {
	for _, c := range []struct{ name, body string }{
		{"openai", `{"choices":[{"message":{"refusal":"no"}}],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}`},
		{"openai", `{"choices":[{"message":{"content":"so"},"finish_reason":"content_filter"}],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}`},
		{"openai", `{"choices":[{"message":{"content":"so"},"finish_reason":"error"}],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}`},
		{"anthropic", `{"content":[],"stop_reason":"refusal","usage":{"input_tokens":7,"output_tokens":2}}`},
		{"gemini", `{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":7,"totalTokenCount":9}}`},
		{"gemini", `{"candidates":[{"finishReason":"SAFETY"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":2,"totalTokenCount":9}}`},
	} {
		s := simulate(t, c.name, "", providertest.OpenAI, providertest.Fault{Do: providertest.Answer(200, c.body)})
		b := newBudget(t, provider.Allowance{})
		_, err := b.Model(s, provider.Bill{Price: &pipeline.Price{Input: 1e6, Output: 1e6}}).Generate(t.Context(), said("hi"))
		if f, want := failureIn(t, err), usage(7, 2, 9, -1, -1); !reflect.DeepEqual(f.Usage, want) {
			t.Errorf("%s: the failure has the usage %+v, want %+v", c.body, f.Usage, want)
		}
		if got := b.Bookings(); len(got) != 1 || got[0].Amount != (pipeline.Amount{Requests: 1, Tokens: 9, Money: 9}) {
			t.Errorf("%s: booked %+v", c.body, got)
		}
	}
}
