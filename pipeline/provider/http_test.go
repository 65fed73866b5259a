package provider

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/pipeline/provider/providertest"
)

const aKey = "sk-0123456789abcdef"

var clock = time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC)

func newTestService(t testing.TB, o Options) *service {
	t.Helper()
	o.Name = "m"
	if o.Now == nil {
		o.Now = func() time.Time { return clock }
	}
	s, err := newService(o, "http://unused.test")
	if err != nil {
		t.Fatal(err)
	}
	if o.Key != "" {
		withKey(s.headers, "Authorization", string(o.Key))
	}
	return s
}

// echo answers with a status and all the headers it got.
func echo(status int) providertest.Dialect {
	return func(r *http.Request, _ []byte) (int, http.Header, []byte) {
		return status, nil, fmt.Appendf(nil, "%v %s", r.Header, r.URL)
	}
}

func serve(t testing.TB, d providertest.Dialect, faults ...providertest.Fault) *providertest.Service {
	t.Helper()
	s := providertest.NewService(d, faults...)
	t.Cleanup(s.Close)
	return s
}

func failed(t testing.TB, err error) *pipeline.Failure {
	t.Helper()
	f, ok := err.(*pipeline.Failure)
	if !ok {
		t.Fatalf("the error is %v, a %T", err, err)
	}
	return f
}

func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		header, value string
		want          time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second},
		{"Retry-After", "0.25", 250 * time.Millisecond},
		{"Retry-After", "0", 0},
		{"Retry-After", "-3", 0},
		{"Retry-After", "soon", 0},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "1000000", 24 * time.Hour}, // more than a day is a day
		{"Retry-After", "1e300", 24 * time.Hour},
		{"Retry-After", strings.Repeat("9", 400), 24 * time.Hour},
		{"Retry-After-Ms", "1000000000", 24 * time.Hour},
		{"Retry-After", "Tue, 04 Mar 2025 05:06:37 GMT", 30 * time.Second},
		{"Retry-After", "Tuesday, 04-Mar-25 05:06:37 GMT", 30 * time.Second},
		{"Retry-After", "Tue Mar  4 05:06:37 2025", 30 * time.Second},
		{"Retry-After", "Tue, 04 Mar 2025 05:00:00 GMT", 0}, // is over
		{"Retry-After-Ms", "1500", 1500 * time.Millisecond},
		{"Retry-After-Ms", "x", 0},
		{"X-Other", "7", 0},
	} {
		if got := retryAfter(http.Header{c.header: {c.value}}, clock); got != c.want {
			t.Errorf("%s: %s is %s, want %s", c.header, c.value, got, c.want)
		}
	}
}

func TestServiceStatuses(t *testing.T) {
	for status, want := range map[int]string{
		400: pipeline.TypeRefusal, 401: pipeline.TypeServer, 403: pipeline.TypeRefusal, 404: pipeline.TypeRefusal,
		408: pipeline.TypeTimeout, 409: pipeline.TypeServer, 413: pipeline.TypeRefusal, 422: pipeline.TypeRefusal,
		425: pipeline.TypeServer, 429: pipeline.TypeRateLimit, 500: pipeline.TypeServer, 502: pipeline.TypeServer,
		503: pipeline.TypeServer, 504: pipeline.TypeTimeout, 529: pipeline.TypeServer,
		301: pipeline.TypeRefusal, 308: pipeline.TypeRefusal,
	} {
		s := newTestService(t, Options{BaseURL: serve(t, echo(status)).URL})
		_, err := s.post(t.Context(), "/x", nil, nil)
		if f := failed(t, err); f.Type != want || f.Code != fmt.Sprintf("http-%d", status) || !strings.Contains(f.Message, fmt.Sprintf("answered %d: ", status)) {
			t.Errorf("%d: %s, %+v", status, f.Type, f)
		}
	}
	for _, status := range []int{200, 201, 202} {
		got, err := newTestService(t, Options{BaseURL: serve(t, echo(status)).URL}).post(t.Context(), "/x", nil, nil)
		if err != nil || len(got.body) == 0 {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// TestServiceSaysWhereTheKeyIsFrom: a key that is not good enough is one that
// somebody has to find.
func TestServiceSaysWhereTheKeyIsFrom(t *testing.T) {
	url := serve(t, echo(http.StatusUnauthorized)).URL
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "; no key was sent"},
		{Options{KeyFrom: "the environment variable A_KEY"}, "; no key was sent: the environment variable A_KEY has none"},
		{Options{Key: aKey, KeyFrom: "the file key.txt"}, "; the key is that of the file key.txt"},
	} {
		c.o.BaseURL = url
		_, err := newTestService(t, c.o).post(t.Context(), "/x", nil, nil)
		if f := failed(t, err); f.Code != "http-401" || !strings.HasSuffix(f.Message, c.want) {
			t.Errorf("got %s, want %s", f.Message, c.want)
		}
	}
}

func TestServiceAddress(t *testing.T) {
	for _, c := range []struct{ base, path, want string }{
		{"", "/x", "/x"},
		{"/", "/x", "/x"},
		{"/v1", "/x", "/v1/x"},
		{"/v1//", "/x", "/v1/x"},
		{"/a%20b/v1", "/x", "/a%20b/v1/x"},
		{"/v1?api-version=2", "/x", "/v1/x?api-version=2"},
		{"/v1/?api-version=2", "/x?y=1", "/v1/x?y=1&api-version=2"},
		{"?", "/x", "/x"},
	} {
		s := serve(t, echo(http.StatusOK))
		if _, err := newTestService(t, Options{BaseURL: " " + s.URL + c.base}).post(t.Context(), c.path, nil, nil); err != nil {
			t.Fatal(err)
		}
		if got := s.Received()[0].Path; got != c.want {
			t.Errorf("%q and %q: %s, want %s", c.base, c.path, got, c.want)
		}
	}
}

func TestNewServiceRefuses(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return clock }
	for _, c := range []struct {
		name, want string
		o          Options
	}{
		{"no scheme", "base_url is no address", Options{BaseURL: "localhost:8000/" + aKey, Now: now}},
		{"another scheme", "base_url is no address", Options{BaseURL: "ftp://" + aKey, Now: now}},
		{"no host", "base_url is no address", Options{BaseURL: "http:///" + aKey, Now: now}},
		{"no URL", "base_url is no address", Options{BaseURL: "http://[" + aKey, Now: now}},
		{"a password", "base_url has a user or password", Options{BaseURL: "http://u:" + aKey + "@h/v1", Now: now}},
		{"a fragment", "base_url has a #", Options{BaseURL: "http://h/v1#" + aKey, Now: now}},
		{"a key with its line's end", "the key has a line break", Options{Key: aKey + "\n", Now: now}},
		{"a header's name", `headers: "x y" is no name`, Options{Headers: map[string]string{"x y": aKey}, Now: now}},
		{"a header's value", "headers: the value of X-Key has a line break", Options{Headers: map[string]string{"X-Key": aKey + "\r\nX: y"}, Now: now}},
		{"a proxy without scheme", "proxy is no address", Options{Proxy: "u:" + aKey + "@localhost:3128", Now: now}},
		{"a proxy of another kind", "proxy is no address", Options{Proxy: "ftp://u:" + aKey + "@localhost:3128", Now: now}},
		{"no such ca_file", "ca_file: open ", Options{CAFile: "none.pem", BaseDir: t.TempDir(), Now: now}},
		{"no certificate", "has no certificate in PEM form", Options{CAFile: empty, Now: now}},
		{"no clock", "a service needs a clock", Options{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := newService(c.o, "http://unused.test")
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), aKey) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestServiceHidesSecrets has services say back all they were sent.
func TestServiceHidesSecrets(t *testing.T) {
	o := Options{Key: aKey, Headers: map[string]string{"X-Gateway-Token": "gw-abcdefgh", "Cookie": "session-1234", "X-Team": "team-of-12345", "X-Title": "white-rabbit"}}
	shown := func(text string) {
		t.Helper()
		for _, secret := range []string{aKey, "gw-abcdefgh", "session-1234", "sig-1234567", "team-of-12345"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s is in %s", secret, text)
			}
		}
	}
	for _, status := range []int{200, 302, 400, 401, 500} {
		o.BaseURL = serve(t, echo(status)).URL + "/v1?sig=sig-1234567&api-version=white-rabbit"
		s := newTestService(t, o)
		var explained string
		got, err := s.post(t.Context(), "/x", nil, func(_ int, body []byte, f *pipeline.Failure) {
			explained = string(body)
			f.Message = "wrong key " + aKey
		})
		shown(explained)
		if err != nil {
			shown(fmt.Sprintf("%+v", *failed(t, err)))
			continue
		}
		shown(string(got.body))
		if !strings.Contains(string(got.body), "white-rabbit") || !strings.Contains(string(got.body), "Bearer [secret]") {
			t.Errorf("what is no secret is to stay: %s", got.body)
		}
	}
	o.BaseURL = "http://127.0.0.1:1/v1?key=" + aKey
	_, err := newTestService(t, o).post(t.Context(), "/x?key="+aKey, nil, nil)
	shown(failed(t, err).Error())
}

// TestServiceLeavesPlaceholders: what local servers are given for a key is a word
// that a reply may have.
func TestServiceLeavesPlaceholders(t *testing.T) {
	s := serve(t, func(*http.Request, []byte) (int, http.Header, []byte) { return 200, nil, []byte("the glass is EMPTY") })
	got, err := newTestService(t, Options{BaseURL: s.URL, Key: "EMPTY"}).post(t.Context(), "/x", nil, nil)
	if err != nil || string(got.body) != "the glass is EMPTY" {
		t.Errorf("%s, %v", got.body, err)
	}
}

// TestServiceStays: a redirect would send the key wherever it points.
func TestServiceStays(t *testing.T) {
	other := serve(t, echo(http.StatusOK))
	s := serve(t, func(*http.Request, []byte) (int, http.Header, []byte) {
		return http.StatusTemporaryRedirect, http.Header{"Location": {other.URL}}, nil
	})
	_, err := newTestService(t, Options{BaseURL: s.URL, Key: aKey}).post(t.Context(), "/x", []byte("{}"), nil)
	if f := failed(t, err); f.Code != "http-307" || other.Count() != 0 {
		t.Errorf("%+v, and %d requests went on", f, other.Count())
	}
}

func TestSecret(t *testing.T) {
	o := Options{Key: aKey}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		if text := fmt.Sprintf(verb+" "+verb, o.Key, o); strings.Contains(text, aKey) || strings.Contains(text, fmt.Sprintf("%x", aKey)) {
			t.Errorf("%s prints %s", verb, text)
		}
	}
	if b, err := json.Marshal(o.Key); err != nil || string(b) != `"[secret]"` {
		t.Errorf("%s, %v", b, err)
	}
	if text := fmt.Sprint(Secret("")); text != "" {
		t.Errorf("no key prints %q", text)
	}
}

// TestServiceProxy asks a service that only the proxy can reach.
func TestServiceProxy(t *testing.T) {
	proxy := serve(t, func(r *http.Request, _ []byte) (int, http.Header, []byte) {
		return http.StatusOK, nil, []byte(r.RequestURI)
	})
	at := strings.Replace(proxy.URL, "http://", "http://ann:proxy-password@", 1)
	s := newTestService(t, Options{BaseURL: "http://service.test/v1", Proxy: at})
	got, err := s.post(t.Context(), "/x", nil, nil)
	if err != nil || string(got.body) != "http://service.test/v1/x" {
		t.Fatalf("%v, %v", got, err)
	}
	if auth := proxy.Received()[0].Header.Get("Proxy-Authorization"); !strings.HasPrefix(auth, "Basic ") {
		t.Errorf("the proxy was told %q", auth)
	}
	gone := newTestService(t, Options{BaseURL: "http://service.test/v1", Proxy: "http://ann:proxy-password@127.0.0.1:1"})
	_, err = gone.post(t.Context(), "/x", nil, nil)
	if f := failed(t, err); f.Code != "connection" || strings.Contains(f.Message, "proxy-password") {
		t.Errorf("%+v", f)
	}
}

func TestServiceCAFile(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hi")) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	dir := t.TempDir()
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), cert, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := newTestService(t, Options{BaseURL: server.URL}).post(t.Context(), "/x", nil, nil)
	if f := failed(t, err); f.Code != "connection" || !strings.Contains(f.Message, "certificate") {
		t.Errorf("%+v", f)
	}
	got, err := newTestService(t, Options{BaseURL: server.URL, CAFile: "ca.pem", BaseDir: dir}).post(t.Context(), "/x", nil, nil)
	if err != nil || string(got.body) != "hi" {
		t.Errorf("%v, %v", got, err)
	}
}

// TestServiceBodies are bodies that a service may not answer.
func TestServiceBodies(t *testing.T) {
	long := strings.Repeat("x", maxResponse)
	most := serve(t, func(*http.Request, []byte) (int, http.Header, []byte) { return 200, nil, []byte(long) })
	if got, err := newTestService(t, Options{BaseURL: most.URL}).post(t.Context(), "/x", nil, nil); err != nil || len(got.body) != maxResponse {
		t.Errorf("the most that a service may answer: %v", err)
	}
	for _, c := range []struct {
		name, typ, code, want string
		do                    providertest.Trouble
	}{
		{"too much", pipeline.TypeServer, "too-long", "more than 64 MB", providertest.Answer(200, long+"x")},
		{"reset", pipeline.TypeServer, "connection", "broke off its answer", providertest.Reset()},
		{"dropped", pipeline.TypeServer, "connection", "cannot be reached", providertest.Drop()},
		{"a page", pipeline.TypeServer, "http-502", "answered 502: Oops", providertest.Page(502)},
		{"no text", pipeline.TypeServer, "http-500", "answered 500: Internal Server Error", providertest.Answer(500, "\xff\xfe")},
		{"much to say", pipeline.TypeRefusal, "http-400", strings.Repeat("é", 500) + "…", providertest.Answer(400, strings.Repeat("é", 501))},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, echo(http.StatusOK), providertest.Fault{Do: c.do})
			_, err := newTestService(t, Options{BaseURL: s.URL}).post(t.Context(), "/x", nil, nil)
			if f := failed(t, err); f.Type != c.typ || f.Code != c.code || !strings.Contains(f.Message, c.want) {
				t.Errorf("got %s, %s: %s", f.Type, f.Code, clip(f.Message, 200))
			}
		})
	}
}

// TestServiceEnds: a request ends with its context, however the service hangs.
func TestServiceEnds(t *testing.T) {
	half := func(s *providertest.Service, w http.ResponseWriter, r *http.Request, usual providertest.Usual) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("half"))
		_ = http.NewResponseController(w).Flush()
		providertest.Hang()(s, w, r, usual)
	}
	for name, do := range map[string]providertest.Trouble{"before its answer": providertest.Hang(), "inside its answer": half} {
		s := newTestService(t, Options{BaseURL: serve(t, echo(http.StatusOK), providertest.Fault{Do: do}).URL})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if f := failedPost(ctx, t, s); f.Type != pipeline.TypeTimeout {
			t.Errorf("%s: %+v", name, f)
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if f := failedPost(canceled, t, s); f.Type != pipeline.TypeCancelled {
			t.Errorf("%s, canceled: %+v", name, f)
		}
	}
}

func failedPost(ctx context.Context, t testing.TB, s *service) *pipeline.Failure {
	t.Helper()
	_, err := s.post(ctx, "/x", nil, nil)
	return failed(t, err)
}

// FuzzOpenAIReply: whatever a service answers becomes a reply or a failure that
// says so, and nothing in between.
func FuzzOpenAIReply(f *testing.F) {
	for _, body := range []string{
		`{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`,
		`{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]}}]}`,
		`{"choices":[{"message":{"content":[{"type":"text","text":"\ud800"}],"audio":{}}}]}`,
		`{"choices":[{"message":{"x":{"a":1,"a":1e999},"tool_calls":[{"function":{"arguments":"{\"a\":1,\"a\":\"\\udc00\"}"}}]}}]}`,
		`{"error":{"code":429,"message":"x"}}`, `{"choices":null}`, `[]`, ``, `<html><title>x</title>`, "{\"choices\":[{\"message\":{\"content\":\"\xff\"}}]}",
	} {
		f.Add(body)
	}
	m := &openAI{service: newTestService(f, Options{}), name: "m", untaken: newUntaken(Options{})}
	f.Fuzz(func(t *testing.T, body string) {
		reply, err := m.read(&answer{body: []byte(body), wire: time.Second})
		if err != nil {
			if fail := failed(t, err); fail.Class() == "other" || fail.Message == "" || reply != nil {
				t.Fatalf("%+v beside %+v", fail, reply)
			}
			readServiceError([]byte(body)).explain(failed(t, err))
			return
		}
		checkRead(t, reply)
	})
}

// checkRead checks what is true of any reply that was read.
func checkRead(t *testing.T, reply *pipeline.Reply) {
	t.Helper()
	texts := []string{reply.Text, reply.Finish, reply.Model, reply.System}
	values := []datasets.Value{reply.Response}
	for _, c := range reply.Calls {
		texts = append(texts, c.ID, c.Name)
		values = append(values, c.Input)
	}
	for _, text := range texts {
		if !utf8.ValidString(text) {
			t.Fatalf("%q is no text", text)
		}
	}
	for _, v := range values {
		if _, err := datasets.ValueOf(v); err != nil {
			t.Fatalf("%s cannot be written again: %v", v.JSON(), err)
		}
	}
	u := reply.Usage
	for _, n := range []*int64{u.Input, u.Output, u.Total, u.Cached, u.Reasoning} {
		if n != nil && *n < 0 {
			t.Fatalf("%d tokens", *n)
		}
	}
	if reply.Wire != time.Second {
		t.Fatalf("%s on the wire", reply.Wire)
	}
}

// A secret is hidden in whatever form a service says it back.
func TestServiceHidesEscapedSecrets(t *testing.T) {
	const secret = `a&b<c>d"e\f/g h+i`
	for _, said := range []string{
		secret, `a\u0026b\u003cc\u003ed\"e\\f/g h+i`, `a\u0026b\u003Cc\u003Ed\"e\\f\/g h+i`, `a&b<c>d\"e\\f/g h+i`,
		`a&amp;b&lt;c&gt;d&#34;e\f/g h+i`, `a&amp;b&lt;c&gt;d&quot;e\f/g h+i`,
		`a%26b%3Cc%3Ed%22e%5Cf%2Fg+h%2Bi`, `a%26b%3cc%3ed%22e%5cf%2fg+h%2bi`,
	} {
		at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "it said "+said+".") }))
		s := newTestService(t, Options{BaseURL: at.URL, Headers: map[string]string{"X-Pass": secret}})
		got, err := s.post(t.Context(), "/x", nil, nil)
		at.Close()
		if err != nil || string(got.body) != "it said [secret]." {
			t.Errorf("%s: %v, %v", said, got, err)
		}
	}
}

// The password of a proxy is as secret as a key.
func TestServiceHidesProxyPassword(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
		_, _ = io.WriteString(w, "you are "+password)
	}))
	defer proxy.Close()
	s := newTestService(t, Options{BaseURL: "http://model.invalid", Proxy: strings.Replace(proxy.URL, "//", "//me:open-sesame@", 1)})
	got, err := s.post(t.Context(), "/x", nil, nil)
	if err != nil || string(got.body) != "you are [secret]" {
		t.Errorf("%v, %v", got, err)
	}
}
