package providertest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// post asks a service without any client of ours between.
func post(ctx context.Context, t *testing.T, s *Service, body string) (status int, header http.Header, response string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/x?y=1", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Asked-By", "test")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(b), err
}

// upper says back what it is told in capitals.
func upper(_ *http.Request, body []byte) (int, http.Header, []byte) {
	return http.StatusOK, http.Header{"X-Dialect": {"upper"}}, []byte(strings.ToUpper(string(body)))
}

func TestServiceAnswersAndCounts(t *testing.T) {
	s := NewService(upper)
	defer s.Close()
	status, header, response, err := post(t.Context(), t, s, "hello")
	if err != nil || status != 200 || response != "HELLO" || header.Get("X-Dialect") != "upper" || header.Get("Content-Type") != "application/json" {
		t.Errorf("%d, %v, %q, %v", status, header, response, err)
	}
	got := s.Received()
	if s.Count() != 1 || s.MostAtOnce() != 1 || len(got) != 1 || got[0].Method != "POST" || got[0].Path != "/v1/x?y=1" ||
		got[0].Header.Get("X-Asked-By") != "test" || string(got[0].Body) != "hello" {
		t.Errorf("%d requests, %d at once, %+v", s.Count(), s.MostAtOnce(), got)
	}
}

func TestServiceFails(t *testing.T) {
	for _, c := range []struct {
		name     string
		do       Trouble
		status   int
		response string
		header   string // Retry-After
		err      error
	}{
		{"answer", Answer(429, "no", "Retry-After", "3"), 429, "no", "3", nil},
		{"page", Page(503), 503, "<!DOCTYPE html>", "", nil},
		{"torn", Torn(), 200, "HELLO ", "", nil},
		{"slow", Slow(time.Millisecond), 200, "HELLO THERE", "", nil},
		{"drop", Drop(), 0, "", "", io.EOF},
		{"reset", Reset(), 200, "HELLO ", "", syscall.ECONNRESET},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := NewService(upper, Fault{Do: c.do})
			defer s.Close()
			status, header, response, err := post(t.Context(), t, s, "hello there!")
			// A reset may come before what was sent ahead of it is read.
			lost := c.err != nil && (errors.Is(err, c.err) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET))
			switch {
			case c.err != nil && !lost, c.err == nil && err != nil:
				t.Errorf("the error is %v, want %v", err, c.err)
			case c.err == nil && (status != c.status || !strings.HasPrefix(response, c.response) || header.Get("Retry-After") != c.header):
				t.Errorf("%d, %v, %q", status, header, response)
			}
		})
	}
}

func TestFaultsFit(t *testing.T) {
	s := NewService(upper,
		Fault{Nth: 2, Do: Answer(500, "second")},
		Fault{Has: "bad", Times: 2, Do: Answer(400, "bad")},
		Fault{Has: "worse", Do: Answer(401, "worse")})
	defer s.Close()
	for i, c := range []struct{ body, want string }{
		{"good", "GOOD"},
		{"bad", "second"}, // the first that fits
		{"bad", "bad"},
		{"bad and worse", "bad"},
		{"bad", "BAD"}, // twice was all
		{"bad and worse", "worse"},
	} {
		if _, _, got, err := post(t.Context(), t, s, c.body); err != nil || got != c.want {
			t.Errorf("request %d, %s: %q, %v; want %q", i+1, c.body, got, err, c.want)
		}
	}
	s.Fail(Fault{Nth: 7, Do: Answer(500, "seventh")})
	for _, want := range []string{"seventh", "BAD AND WORSE"} {
		if _, _, got, err := post(t.Context(), t, s, "bad and worse"); err != nil || got != want {
			t.Errorf("after the faults changed: %q, %v; want %q", got, err, want)
		}
	}
}

// TestHang: a request that hangs ends with whoever asked, or with the service.
func TestHang(t *testing.T) {
	s := NewService(upper, Fault{Do: Hang()})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, _, _, err := post(ctx, t, s, "hello"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	failed := make(chan error, 1)
	go func() {
		_, _, _, err := post(context.Background(), t, s, "hello")
		failed <- err
	}()
	for s.Count() < 2 {
		time.Sleep(time.Millisecond)
	}
	s.Close()
	if err := <-failed; err == nil {
		t.Error("a request that hung was answered")
	}
}
