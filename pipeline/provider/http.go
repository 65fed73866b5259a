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
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"evalrun/pipeline"
)

// maxResponse is the most a service may answer to a request, in bytes.
const maxResponse = 64 << 20

// service asks one service over HTTP. It is safe for concurrent use.
type service struct {
	model   string // as the run calls it, for messages
	base    string // address without a slash at its end, and without the query
	query   string // of every request
	host    string // for messages
	http    *http.Client
	headers http.Header // of every request; the key is among them
	key     Secret
	keyFrom string   // where the key comes from, for messages
	secrets []string // never to be shown
	now     func() time.Time
	most    int64 // that it may answer, in bytes
}

// newService makes the client of the service at o.BaseURL, or else at base.
func newService(o Options, base string) (*service, error) {
	if o.BaseURL != "" {
		base = o.BaseURL
	}
	at, err := parseBase(base)
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		return nil, errors.New("a service needs a clock")
	}
	if strings.ContainsFunc(string(o.Key), unicode.IsControl) {
		return nil, errors.New("the key has a line break or another control character in it")
	}
	transport, err := newTransport(o)
	if err != nil {
		return nil, err
	}
	s := &service{
		model: o.Name, base: at.Scheme + "://" + at.Host + strings.TrimRight(at.EscapedPath(), "/"), query: at.RawQuery, host: at.Host,
		http:    &http.Client{Transport: transport, CheckRedirect: stay},
		headers: http.Header{}, key: o.Key, keyFrom: o.KeyFrom, now: o.Now, most: maxResponse,
	}
	s.conceal("key", string(o.Key))
	if proxy, err := url.Parse(o.Proxy); err == nil && proxy.User != nil {
		password, _ := proxy.User.Password()
		s.conceal("password", password)
	}
	for name, values := range at.Query() {
		for _, v := range values {
			s.conceal(name, v)
		}
	}
	for name, value := range o.Headers {
		if !headerNames.MatchString(name) {
			return nil, fmt.Errorf("headers: %q is no name of a header", name)
		}
		if strings.ContainsFunc(value, unicode.IsControl) {
			return nil, fmt.Errorf("headers: the value of %s has a line break or another control character in it", name)
		}
		s.headers.Set(name, value)
		s.conceal(name, value)
	}
	return s, nil
}

// headerNames are the names a header may have (RFC 9110, 5.6.2).
var headerNames = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// parseBase reads a base_url. Its errors show none of it: it may hold a key.
func parseBase(base string) (*url.URL, error) {
	at, err := url.Parse(strings.TrimSpace(base))
	switch {
	case err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "":
		return nil, errors.New("base_url is no address: write https://host/path")
	case at.User != nil:
		return nil, errors.New("base_url has a user or password in it; give them as a header, or the key as the key")
	case at.Fragment != "":
		return nil, errors.New("base_url has a # in it, and what follows is never sent: leave it out")
	}
	return at, nil
}

// stay keeps a redirect from being followed: the key would go wherever it points.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// withKey adds the key, unless a person gave that header themselves.
func withKey(h http.Header, name, key string) http.Header {
	switch {
	case h.Get(name) != "":
	case name == "Authorization":
		h.Set(name, "Bearer "+key)
	default:
		h.Set(name, key)
	}
	return h
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
		if err != nil || proxy.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, proxy.Scheme) {
			return nil, errors.New("proxy is no address: write http://host:port, or https or socks5") // it may hold a password
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

// explanation reads a service's own words out of an answer that is no success,
// and may change the failure it stands for.
type explanation func(status int, body []byte, f *pipeline.Failure)

// answer is what a service answered with success, and what that took.
type answer struct {
	body   []byte
	header http.Header
	wire   time.Duration
}

// post sends a JSON body to a path below the address. What is not answered with
// success is a *pipeline.Failure of the type its status stands for; explain may
// be nil.
func (s *service) post(ctx context.Context, path string, body []byte, explain explanation) (*answer, error) {
	return s.do(ctx, http.MethodPost, path, "application/json", body, explain)
}

func (s *service) do(ctx context.Context, method, path, contentType string, body []byte, explain explanation) (*answer, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, s.at(path), bytes.NewReader(body))
	if err != nil {
		return nil, s.failf(pipeline.TypeServer, "connection", "no request can be made: %v", err)
	}
	req.Header = s.headers.Clone()
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	began := s.now()
	resp, err := s.http.Do(req)
	if err != nil {
		return nil, s.lost(ctx, "cannot be reached", err)
	}
	defer resp.Body.Close()
	data, err := readAll(io.LimitReader(resp.Body, s.most+1), resp.ContentLength)
	if err != nil {
		return nil, s.lost(ctx, "broke off its answer", err)
	}
	wire := s.now().Sub(began)
	if int64(len(data)) > s.most {
		return nil, s.failf(pipeline.TypeServer, "too-long", "answered more than %d MB", s.most>>20)
	}
	// A service, or what stands before it, may say back what it was sent.
	for _, secret := range s.secrets {
		if bytes.Contains(data, []byte(secret)) {
			data = bytes.ReplaceAll(data, []byte(secret), []byte(hidden))
		}
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, s.refused(resp, data, explain)
	}
	return &answer{data, resp.Header, wire}, nil
}

// readAll reads what is said to be so long; -1 is not said.
func readAll(r io.Reader, length int64) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(min(max(length, 0), 1<<20)) + bytes.MinRead)
	_, err := b.ReadFrom(r)
	return b.Bytes(), err
}

// at is the address of a path, which may have a query of its own.
func (s *service) at(path string) string {
	switch {
	case s.query == "":
		return s.base + path
	case strings.Contains(path, "?"):
		return s.base + path + "&" + s.query
	}
	return s.base + path + "?" + s.query
}
