package provider

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"evalrun/pipeline"
)

// Secret is a key: whatever prints it prints that there is one.
type Secret string

// String hides the secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "[secret]"
}

// GoString hides the secret.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// maxResponse is the most a service may answer, in bytes.
const maxResponse = 64 << 20

// service asks one service over HTTP. It is safe for concurrent use.
type service struct {
	model   string // as the run calls it, for messages
	base    string // address without a slash at its end
	http    *http.Client
	headers http.Header // of every request; the key is among them
	key     Secret
	now     func() time.Time
}

// newService makes the client of the service at o.BaseURL, or else at base.
func newService(o Options, base string) (*service, error) {
	if o.BaseURL != "" {
		base = o.BaseURL
	}
	at, err := url.Parse(base)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return nil, fmt.Errorf("base_url %q is no address: write https://host/path", base)
	}
	if o.Now == nil {
		return nil, errors.New("a service needs a clock")
	}
	transport, err := newTransport(o)
	if err != nil {
		return nil, err
	}
	s := &service{
		model: o.Name, base: strings.TrimRight(base, "/"), http: &http.Client{Transport: transport},
		headers: http.Header{"Content-Type": {"application/json"}}, key: o.Key, now: o.Now,
	}
	for name, value := range o.Headers {
		s.headers.Set(name, value)
	}
	return s, nil
}

// newTransport keeps as many connections open as there may be requests in flight:
// opening one again for each request costs several times the request.
func newTransport(o Options) (*http.Transport, error) {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConns: 4096, MaxIdleConnsPerHost: 4096, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, DisableCompression: true, ForceAttemptHTTP2: true,
		ReadBufferSize: 16 << 10, WriteBufferSize: 16 << 10,
	}
	if o.Proxy != "" {
		proxy, err := url.Parse(o.Proxy)
		if err != nil || proxy.Host == "" {
			return nil, errors.New("proxy is no address: write http://host:port") // it may hold a password
		}
		t.Proxy = http.ProxyURL(proxy)
	}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.path(o.CAFile))
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca_file %s has no certificate in PEM form", o.CAFile)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return t, nil
}

// answer is what a service answered with status 200, and what that took.
type answer struct {
	body   []byte
	header http.Header
	wire   time.Duration
}

// post sends a JSON body to a path below the address. What is not answered with
// status 200 is a *pipeline.Failure of the type its status stands for; explain
// reads the service's own words out of such a body, and may change the failure.
func (s *service) post(ctx context.Context, path string, body []byte, explain func(status int, body []byte, f *pipeline.Failure)) (*answer, error) {
	return s.do(ctx, http.MethodPost, path, "application/json", body, explain)
}

func (s *service) do(ctx context.Context, method, path, contentType string, body []byte, explain func(status int, body []byte, f *pipeline.Failure)) (*answer, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, pipeline.Failf(pipeline.TypeServer, "connection", "model %s: %s", s.model, s.hide(err.Error()))
	}
	req.Header = s.headers.Clone()
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	began := s.now()
	resp, err := s.http.Do(req)
	if err != nil {
		return nil, s.unreachable(ctx, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err != nil {
		return nil, s.unreachable(ctx, err)
	}
	if len(data) > maxResponse {
		return nil, pipeline.Failf(pipeline.TypeServer, "too-long", "model %s: the service answered more than %d MB", s.model, maxResponse>>20)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, s.refused(resp, data, explain)
	}
	return &answer{data, resp.Header, s.now().Sub(began)}, nil
}

// unreachable is the failure of a request that got no whole answer.
func (s *service) unreachable(ctx context.Context, err error) error {
	if over := ended(ctx); over != nil {
		return over
	}
	// The address is in the message, and might hold a key a person put there.
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return pipeline.Failf(pipeline.TypeServer, "connection", "model %s: %s cannot be reached: %s", s.model, hostOf(s.base), s.hide(err.Error()))
}

// refused is the failure of an answer that is not 200.
func (s *service) refused(resp *http.Response, body []byte, explain func(int, []byte, *pipeline.Failure)) error {
	f := pipeline.Failf(typeOf(resp.StatusCode), "http-"+strconv.Itoa(resp.StatusCode), "%s", http.StatusText(resp.StatusCode))
	f.RetryAfter = retryAfter(resp.Header, s.now())
	if explain != nil {
		explain(resp.StatusCode, body, f)
	}
	f.Message = fmt.Sprintf("model %s: %s answered %d: %s", s.model, hostOf(s.base), resp.StatusCode, s.hide(shorten(f.Message)))
	return f
}

// typeOf is the type of failure a status stands for: what may be different another
// time is a limit, a timeout or the server's failing; all else is the service's
// word on this request.
func typeOf(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return pipeline.TypeRateLimit
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout:
		return pipeline.TypeTimeout
	case status >= 500, status == http.StatusConflict, status == http.StatusTooEarly:
		return pipeline.TypeServer
	case status < 400: // nobody asked for a redirect, or for less than an answer
		return pipeline.TypeServer
	}
	return pipeline.TypeRefusal
}

// retryAfter is how long a service asks to be left alone: in seconds or until a
// date (RFC 9110, 10.2.3), or in milliseconds as some services have it.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	text := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil && s >= 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// hide takes the key out of a text that came from elsewhere.
func (s *service) hide(text string) string {
	if s.key == "" {
		return text
	}
	return strings.ReplaceAll(text, string(s.key), s.key.String())
}

func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Host
	}
	return address
}

// shorten cuts a service's words to what a message can hold.
func shorten(s string) string {
	const most = 500
	if r := []rune(strings.Join(strings.Fields(s), " ")); len(r) > most {
		return string(r[:most]) + "…"
	} else {
		return string(r)
	}
}
