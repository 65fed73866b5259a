package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// HTTP is a service as a tool: the input is posted to its address as JSON, and the
// body of its answer is the result. An answer whose status is not 2xx is an
// error, with the beginning of its body; redirections are not followed, since an
// input should go where it was meant to and nowhere else.
type HTTP struct {
	URL     string
	Header  http.Header   // sent along; for keys
	Timeout time.Duration // 0 means DefaultTimeout
	Limit   int           // the most bytes of the body; more is an error; 0 means DefaultLimit
	Client  *http.Client  // nil means a plain one
}

// errorBody is how much of the body of a refusal is told.
const errorBody = 500

// Run posts the input.
func (h HTTP) Run(ctx context.Context, _ pipeline.Invocation, input datasets.Value) (string, error) {
	timeout, limit := limits(h.Timeout, h.Limit)
	ctx, cancel := within(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, strings.NewReader(input.JSON()))
	if err != nil {
		return "", failed("the tool's address cannot be used: %v", err)
	}
	for name, values := range h.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := h.client().Do(req)
	if err != nil {
		return "", unanswered(ctx, err)
	}
	defer resp.Body.Close()
	// One byte more, to see whether there is more.
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return "", failed("%s answered %s%s", req.URL.Host, resp.Status, beginning(body))
	}
	if err != nil {
		return "", unanswered(ctx, err)
	}
	if len(body) > limit {
		return "", failed("%s answered with more than %d bytes", req.URL.Host, limit)
	}
	return said(body), nil
}

func (h HTTP) client() *http.Client {
	c := http.Client{}
	if h.Client != nil {
		c = *h.Client
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// unanswered is why there is no answer: the tool's time, the call's end, or what
// the network says, without the address, which may hold a key.
func unanswered(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err
	}
	return failed("the service cannot be reached: %v", err)
}

func beginning(body []byte) string {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return ""
	}
	if len(body) > errorBody {
		body = append(body[:errorBody:errorBody], "…"...)
	}
	return fmt.Sprintf(": %s", strings.ToValidUTF8(string(body), "\uFFFD"))
}
