package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"evalrun/pipeline"
)

// failf makes a failure that says which model and service it is about.
func (s *service) failf(typ, code, format string, args ...any) *pipeline.Failure {
	return pipeline.Failf(typ, code, "model %s: %s %s", s.model, s.host, s.hide(shorten(fmt.Sprintf(format, args...))))
}

// lost is the failure of a request that got no whole answer.
func (s *service) lost(ctx context.Context, what string, err error) error {
	if over := ended(ctx); over != nil {
		return over
	}
	// The address is in the message, and might hold a key a person put there.
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return s.failf(pipeline.TypeServer, "connection", "%s: %v", what, err)
}

// unreadable is the failure of an answer that is not of the service's form.
func (s *service) unreadable(body []byte, why string) *pipeline.Failure {
	switch words := plainWords(body); {
	case len(bytes.TrimSpace(body)) == 0:
		why = "the answer is empty"
	case isPage(body):
		why = "it is an HTML page (" + words + "); is base_url the service's?"
	case words != "":
		why += "; it begins: " + clip(words, 100)
	}
	return s.failf(pipeline.TypeServer, "unreadable-answer", "answered what cannot be read: %s", why)
}

// refused is the failure of an answer that is no success.
func (s *service) refused(resp *http.Response, body []byte, explain explanation) error {
	status := resp.StatusCode
	f := pipeline.Failf(typeOf(status), "http-"+strconv.Itoa(status), "%s", plainWords(body))
	f.RetryAfter = retryAfter(resp.Header, s.now())
	if explain != nil {
		explain(status, body, f)
	}
	if f.Message == "" {
		f.Message = http.StatusText(status)
	}
	words := shorten(f.Message)
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		words += s.keyHint()
	case status == http.StatusNotFound && strings.HasSuffix(s.base, "//"+s.host):
		words += "; base_url has no path, and most services want one such as /v1"
	case status >= 300 && status < 400:
		words += "; it sends requests on to another address, which base_url should be"
	}
	f.Message = fmt.Sprintf("model %s: %s answered %d: %s", s.model, s.host, status, s.hide(words))
	return f
}

// keyHint says where the key is from that was not good enough.
func (s *service) keyHint() string {
	switch {
	case s.key == "" && s.keyFrom == "":
		return "; no key was sent"
	case s.key == "":
		return "; no key was sent: " + s.keyFrom + " has none"
	case s.keyFrom == "":
		return ""
	}
	return "; the key is that of " + s.keyFrom
}

// typeOf is the type of failure a status stands for: what may be different another
// time is a limit, a timeout or the server's failing, and so is a key that the
// service does not know, which says nothing of what was asked; all else is the
// service's word on this request.
func typeOf(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return pipeline.TypeRateLimit
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout:
		return pipeline.TypeTimeout
	case status >= 500, status == http.StatusUnauthorized, status == http.StatusConflict, status == http.StatusTooEarly, status < 200:
		return pipeline.TypeServer
	}
	return pipeline.TypeRefusal
}

// retryAfter is how long a service asks to be left alone: in seconds or until a
// date (RFC 9110, 10.2.3), or in milliseconds as some services have it; 0 when
// it does not say so that it can be read.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if d, ok := pauseOf(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	text := h.Get("Retry-After")
	if d, ok := pauseOf(text, time.Second); ok {
		return d
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// pauseOf reads a number of units, of which a day is the most.
func pauseOf(text string, unit time.Duration) (d time.Duration, ok bool) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || !(n >= 0) {
		return 0, false
	}
	return time.Duration(min(n*float64(unit), float64(longestAfter))), true
}

// isPage reports whether a body is an HTML page.
func isPage(body []byte) bool {
	head := bytes.ToLower(bytes.TrimSpace(body[:min(len(body), 512)]))
	return bytes.HasPrefix(head, []byte("<!doctype html")) || bytes.HasPrefix(head, []byte("<html"))
}

var titles = regexp.MustCompile(`(?is)<title>(.*?)</title>`)

// plainWords are the words of a body that is not JSON: a page's title, or a text
// as it is; "" when it has none.
func plainWords(body []byte) string {
	switch body = bytes.TrimSpace(body); {
	case isPage(body):
		if title := titles.FindSubmatch(body); title != nil {
			return shorten(html.UnescapeString(string(title[1])))
		}
		return "an HTML page"
	case !utf8.Valid(body):
		return ""
	}
	return shorten(string(body))
}

// shorten cuts a service's words to what a message can hold.
func shorten(s string) string { return clip(strings.Join(strings.Fields(s), " "), 500) }

// clip cuts a text to a number of characters.
func clip(s string, most int) string {
	n := 0
	for i := range s {
		if n == most {
			return s[:i] + "…"
		}
		n++
	}
	return s
}
