package providertest

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Dialect answers a request as some service does. It may be called by several
// goroutines at once. The same body should get the same answer, so that what
// asks it can be held to [Check].
type Dialect func(r *http.Request, body []byte) (status int, header http.Header, response []byte)

// Service is a local HTTP server that stands for a model's service. It answers
// in a dialect, counts and keeps what it was asked, and fails as it is told to.
type Service struct {
	URL string // its address, without a slash at its end

	server  *httptest.Server
	dialect Dialect
	closed  chan struct{}

	mu      sync.Mutex
	faults  []Fault
	count   int
	most    int
	open    int
	asked   []Received
	applied []int // how often each fault was
}

// Received is a request that the service got.
type Received struct {
	Method string
	Path   string // with the query, if there was one
	Header http.Header
	Body   []byte
}

// mostReceived is how many requests are kept; later ones are only counted.
const mostReceived = 10_000

// Fault is something that goes wrong with the requests that both Nth and Has
// fit. Of several that fit, the first counts.
type Fault struct {
	Nth   int     // the request's place among those the service got, from 1; 0 is any
	Has   string  // a text that its body must hold; "" is any
	Times int     // how many requests it happens to at most; 0 is any number
	Do    Trouble // what happens
}

// Trouble is what happens to a request instead of an answer.
type Trouble func(s *Service, w http.ResponseWriter, r *http.Request, usual Usual)

// Usual gives what the service would have answered.
type Usual func() (status int, header http.Header, response []byte)

// NewService starts a service that answers in a dialect. It is to be closed.
func NewService(d Dialect, faults ...Fault) *Service {
	s := &Service{dialect: d, closed: make(chan struct{})}
	s.Fail(faults...)
	s.server = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.server.URL
	return s
}

// Close ends what hangs, and stops the server.
func (s *Service) Close() {
	close(s.closed)
	s.server.CloseClientConnections()
	s.server.Close()
}

// Fail has these faults happen from now on, instead of those before.
func (s *Service) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults, s.applied = slices.Clone(faults), make([]int, len(faults))
}

// Count is the number of requests the service got.
func (s *Service) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// MostAtOnce is the most requests that were with the service at one time.
func (s *Service) MostAtOnce() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// Received are the requests the service got, in the order they came; the first
// 10,000 of them.
func (s *Service) Received() []Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func (s *Service) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // whoever asked is gone
	}
	trouble := s.take(r, body)
	defer s.leave()
	usual := func() (int, http.Header, []byte) { return s.dialect(r, body) }
	if trouble != nil {
		trouble(s, w, r, usual)
		return
	}
	write(w, usual)
}

// take counts a request and finds what goes wrong with it.
func (s *Service) take(r *http.Request, body []byte) Trouble {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	s.open++
	s.most = max(s.most, s.open)
	if len(s.asked) < mostReceived {
		s.asked = append(s.asked, Received{r.Method, r.URL.RequestURI(), r.Header.Clone(), body})
	}
	for i, f := range s.faults {
		if f.Nth != 0 && f.Nth != s.count || f.Has != "" && !strings.Contains(string(body), f.Has) || f.Times != 0 && s.applied[i] >= f.Times {
			continue
		}
		s.applied[i]++
		return f.Do
	}
	return nil
}

func (s *Service) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}

func write(w http.ResponseWriter, usual Usual) {
	status, header, response := usual()
	send(w, status, header, response)
}

func send(w http.ResponseWriter, status int, header http.Header, response []byte) {
	for name, values := range header {
		w.Header()[name] = values
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(response)))
	w.WriteHeader(status)
	_, _ = w.Write(response) // whoever asked may be gone
}

// Answer answers with a status and body; header has names and values in turn.
func Answer(status int, body string, header ...string) Trouble {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return func(_ *Service, w http.ResponseWriter, _ *http.Request, _ Usual) {
		send(w, status, h, []byte(body))
	}
}

// Page answers with a status and an HTML page, as what stands between a client
// and a service does.
func Page(status int) Trouble {
	return Answer(status, "<!DOCTYPE html>\n<html><head><title>Oops</title></head>\n<body><h1>"+http.StatusText(status)+"</h1></body></html>\n",
		"Content-Type", "text/html; charset=utf-8")
}

// Hang never answers: it holds the request until whoever asked is gone or the
// service is closed.
func Hang() Trouble {
	return func(s *Service, _ http.ResponseWriter, r *http.Request, _ Usual) {
		s.pause(r.Context())
		panic(http.ErrAbortHandler)
	}
}

// Slow answers as the service would, after a while.
func Slow(after time.Duration) Trouble {
	return func(s *Service, w http.ResponseWriter, r *http.Request, usual Usual) {
		ctx, cancel := context.WithTimeout(r.Context(), after)
		defer cancel()
		s.pause(ctx)
		write(w, usual)
	}
}

// pause waits for a context to end, no longer than the service is open.
func (s *Service) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.closed:
	}
}

// Torn answers with status 200 and half of what the service would have said, as
// if that were all.
func Torn() Trouble {
	return func(_ *Service, w http.ResponseWriter, _ *http.Request, usual Usual) {
		_, header, response := usual()
		send(w, http.StatusOK, header, response[:len(response)/2])
	}
}

// Drop closes the connection without a word.
func Drop() Trouble {
	return func(*Service, http.ResponseWriter, *http.Request, Usual) {
		panic(http.ErrAbortHandler)
	}
}

// Reset sends half of the answer and resets the connection.
func Reset() Trouble {
	return func(_ *Service, w http.ResponseWriter, _ *http.Request, usual Usual) {
		status, _, response := usual()
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer conn.Close()
		head := "HTTP/1.1 " + strconv.Itoa(status) + " " + http.StatusText(status) +
			"\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(response)) + "\r\n\r\n"
		_, _ = conn.Write(append([]byte(head), response[:len(response)/2]...))
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // closing then resets
		}
	}
}
