package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/pipeline/tools"
)

// TestMain is the command that the command tools of these tests run.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "tool" {
		os.Exit(command(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func command(args []string) int {
	in, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 3
	}
	switch args[0] {
	case "upper":
		var input struct{ Text string }
		if err := json.Unmarshal(in, &input); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		_ = json.NewEncoder(os.Stdout).Encode(strings.ToUpper(input.Text))
	case "echo":
		fmt.Printf("%s|%s", strings.Join(args[1:], ","), in)
	case "object":
		fmt.Println(`{"free": true}`)
	case "fail":
		fmt.Fprintln(os.Stderr, "no such room")
		return 2
	case "flood":
		for range 10000 {
			fmt.Println(strings.Repeat("x", 100))
		}
	case "sleep":
		time.Sleep(time.Minute)
	}
	return 0
}

func self(args ...string) []string { return append([]string{os.Args[0], "tool"}, args...) }

func input(text string) datasets.Value { return datasets.RawValue(text) }

// outcome is the text of a run, or its failure.
func outcome(ctx context.Context, r pipeline.ToolRunner, in string) string {
	text, err := r.Run(ctx, nil, input(in))
	if err == nil {
		return text
	}
	if f, ok := err.(*pipeline.Failure); ok {
		return f.Type + ": " + f.Message
	}
	return "unexpected " + err.Error()
}

func TestCommand(t *testing.T) {
	for _, tt := range []struct {
		tool tools.Command
		in   string
		want string // of an outcome that differs from machine to machine, a part
	}{
		{tools.Command{Argv: self("upper")}, `{"text":"a \"b\"\nc"}`, "A \"B\"\nC"},
		{tools.Command{Argv: self("object")}, `{}`, `{"free": true}`},
		{tools.Command{Argv: self("echo", "$HOME;ls", "*")}, `{"a":"$(ls)"}`, "$HOME;ls,*|{\"a\":\"$(ls)\"}"},
		{tools.Command{Argv: self("fail")}, `{}`, "ended: exit status 2; its standard error:\nno such room"},
		{tools.Command{Argv: self("flood"), Limit: 1000}, `{}`, "wrote more than 1000 bytes"},
		{tools.Command{Argv: self("sleep"), Timeout: 100 * time.Millisecond}, `{}`, "TimeoutError: the tool gave no answer within 100ms"},
		{tools.Command{Argv: []string{"./no-such-command-here"}}, `{}`, "ToolError: "},
		{tools.Command{}, `{}`, "ToolError: there is no command to run"},
	} {
		got := outcome(t.Context(), tt.tool, tt.in)
		if ok := got == tt.want || strings.Contains(got, "Error: ") && strings.Contains(got, tt.want); !ok {
			t.Errorf("%v: got %q, want %q", tt.tool.Argv, got, tt.want)
		}
	}
	// The call's own end is not the tool's.
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if got := outcome(ctx, tools.Command{Argv: self("sleep")}, `{}`); got != "unexpected context deadline exceeded" {
		t.Errorf("got %q", got)
	}
}

func TestHTTP(t *testing.T) {
	var asked []string
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.Header.Get("Content-Type")+" "+r.Header.Get("X-Key")+" "+string(body))
		fmt.Fprint(w, `"it is\nfree"`)
	})
	mux.HandleFunc("/text", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "free\n") })
	mux.HandleFunc("/none", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no such room", http.StatusNotFound) })
	mux.HandleFunc("/big", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, strings.Repeat("x", 2000)) })
	mux.HandleFunc("/bigno", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, strings.Repeat("x", 2000))
	})
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/echo", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // without it the end of the client is not seen
		<-r.Context().Done()
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	tool := func(path string) tools.HTTP { return tools.HTTP{URL: server.URL + path, Limit: 1000} }

	keyed := tool("/echo")
	keyed.Header = http.Header{"X-Key": {"k"}}
	slow := tool("/slow")
	slow.Timeout = 100 * time.Millisecond
	for _, tt := range []struct {
		tool tools.HTTP
		want string
	}{
		{keyed, "it is\nfree"},
		{tool("/text"), "free"},
		{tool("/none"), "ToolError: " + host + " answered 404 Not Found: no such room"},
		{tool("/big"), "ToolError: " + host + " answered with more than 1000 bytes"},
		{tool("/bigno"), "ToolError: " + host + " answered 500 Internal Server Error: " + strings.Repeat("x", 500) + "…"},
		{tool("/away"), "ToolError: " + host + " answered 307 Temporary Redirect"},
		{slow, "TimeoutError: the tool gave no answer within 100ms"},
		{tools.HTTP{URL: "::"}, "ToolError: the tool's address cannot be used: "},
	} {
		if got := outcome(t.Context(), tt.tool, `{"room":3}`); got != tt.want && (tt.tool.URL != "::" || !strings.HasPrefix(got, tt.want)) {
			t.Errorf("%s: got %q, want %q", tt.tool.URL, got, tt.want)
		}
	}
	if len(asked) != 1 || asked[0] != `POST application/json k {"room":3}` {
		t.Errorf("asked %q", asked)
	}
	// Where nobody listens: the address, which may hold a key, is not told.
	server.Close()
	gone := tool("/text?key=secret")
	if got := outcome(t.Context(), gone, `{}`); !strings.HasPrefix(got, "ToolError: the service cannot be reached: ") || strings.Contains(got, "secret") {
		t.Errorf("got %q", got)
	}
}

type model func(req *pipeline.Request) *pipeline.Reply

func (m model) Generate(_ context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
	return m(req), nil
}

func program(t *testing.T, text string) *pipeline.Program {
	t.Helper()
	p, err := pipeline.ParseProgram("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// An AI function, a command and a Go function as the tools of one program.
func TestProgram(t *testing.T) {
	lawyer := program(t, "name: lawyer\ninputs: [{name: question, shape: {type: string}}]\noutputs: [{name: result, shape: {type: string}}, {name: sure, shape: {type: boolean}}]\n")
	desk, err := program(t, "name: desk\noutputs: [{name: result, shape: {type: string}}]\n").WithTools(
		lawyer.AsTool(),
		pipeline.ToolDefinition{Tool: pipeline.Tool{Name: "upper", Parameters: input(`{"type":"object"}`)}},
		pipeline.ToolDefinition{Tool: pipeline.Tool{Name: "go", Parameters: input(`{"type":"object"}`)}},
	)
	if err != nil {
		t.Fatal(err)
	}
	calls := []pipeline.ToolCall{
		{ID: "1", Name: "lawyer", Input: input(`{"question":"May I?"}`)},
		{ID: "2", Name: "lawyer", Input: input(`{"query":"May I?"}`)},
		{ID: "3", Name: "lawyer", Input: input(`"May I?"`)},
		{ID: "4", Name: "upper", Input: input(`{"text":"x"}`)},
		{ID: "5", Name: "go", Input: input(`{}`)},
	}
	var told []string
	m := model(func(req *pipeline.Request) *pipeline.Reply {
		if strings.Contains(req.System, "lawyer") {
			return &pipeline.Reply{Text: "<result>\nYes.\n</result>\n<sure>\ntrue\n</sure>"}
		}
		if len(req.Messages) == 0 {
			return &pipeline.Reply{Calls: calls}
		}
		for _, p := range req.Messages[len(req.Messages)-1].Parts {
			_, text, _ := p.ToolResult()
			told = append(told, text)
		}
		return &pipeline.Reply{Text: "<result>\nok\n</result>"}
	})
	n := 0
	caller := &pipeline.Caller{
		LM: pipeline.LM{Name: "m", Model: m}, Now: func() time.Time { return time.Unix(0, 0) },
		NewID: func() string { n++; return fmt.Sprint("call-", n) },
		Tools: tools.Map{
			"lawyer": tools.Program(lawyer), "upper": tools.Command{Argv: self("upper")},
			"go": pipeline.ToolFunc(func(context.Context, pipeline.Invocation, datasets.Value) (string, error) { return "went", nil }),
		},
	}
	call, err := caller.Ask(t.Context(), desk, pipeline.Ask{})
	if err != nil || call.Failure != nil {
		t.Fatal(err, call.Failure)
	}
	want := []string{
		`{"result":"Yes.","sure":true}`,
		"error: InterfaceError: input query: the program lawyer has no such input",
		"error: InterfaceError: the input must be an object of lawyer's inputs, not string",
		"X", "went",
	}
	if strings.Join(told, "\n") != strings.Join(want, "\n") {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
	if e := tools.Program(lawyer).Effects(); e != pipeline.EffectsRead {
		t.Errorf("the effects are %q", e)
	}
	if _, ok := (tools.Map{"nil": nil}).Tool("nil"); ok {
		t.Error("no runner is one")
	}
}
