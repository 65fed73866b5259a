package provider_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"evalrun/pipeline"
	"evalrun/pipeline/provider"
)

// failing fails the first n requests with an error, and takes a second for each.
func failing(n int, err error) *busy {
	return &busy{takes: time.Second, answer: func(i int) (*pipeline.Reply, error) {
		if i <= n {
			return nil, err
		}
		return &pipeline.Reply{Text: "yes"}, nil
	}}
}

func TestWhatIsRetried(t *testing.T) {
	fatal := &pipeline.Fatal{Err: errors.New("disk full")}
	for _, c := range []struct {
		name  string
		err   error
		tries int
		class string
	}{
		{"rate limit", pipeline.Failf(pipeline.TypeRateLimit, "http-429", "no"), 4, "rate_limited"},
		{"quota", pipeline.Failf(pipeline.TypeRateLimit, "quota-exhausted", "no"), 1, "rate_limited"},
		{"server", pipeline.Failf(pipeline.TypeServer, "http-500", "no"), 4, "server"},
		{"connection", pipeline.Failf(pipeline.TypeServer, "connection", "no"), 4, "server"},
		{"an error that is no failure", errors.New("no"), 4, "server"},
		{"timeout", pipeline.Failf(pipeline.TypeTimeout, "http-408", "no"), 4, "timeout"},
		{"refusal", pipeline.Failf(pipeline.TypeRefusal, "http-400", "no"), 1, "refused"},
		{"reply", pipeline.Failf(pipeline.TypeReply, "parse", "no"), 1, "unreadable"},
		{"never recorded", pipeline.Failf(pipeline.TypeNotRecorded, "", "no"), 1, "never_recorded"},
		{"canceled", pipeline.Failf(pipeline.TypeCancelled, "", "no"), 1, "canceled"},
		{"fatal", fatal, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := failing(1000, c.err)
				// Another request is answered between two tries: the service is not down.
				l := newLimiter(t, func(l *provider.Limits) { l.MaxRetries = 3 })
				between := l.Limit(&busy{})
				m := l.Retry(modelFunc(func(ctx context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
					if _, err := between.Generate(ctx, req); err != nil {
						t.Error(err)
					}
					return l.Limit(s).Generate(ctx, req)
				}))
				reply, err := m.Generate(t.Context(), route("a"))
				if reply != nil || err == nil || s.n != c.tries {
					t.Fatalf("got %v and %v after %d tries, want %d", reply, err, s.n, c.tries)
				}
				if c.class == "" {
					if !errors.Is(err, fatal.Err) {
						t.Errorf("got %v, want what is fatal", err)
					}
					return
				}
				f := failureIn(t, err)
				if f.Class() != c.class || len(f.Attempts) != c.tries-1 {
					t.Errorf("got %s after %d attempts, want %s after %d", f.Class(), len(f.Attempts), c.class, c.tries-1)
				}
				if got := l.Counts().Retries[c.class]; got != int64(c.tries-1) {
					t.Errorf("%d retries are counted for %s, want %d", got, c.class, c.tries-1)
				}
				if given, ok := errors.AsType[*pipeline.Failure](c.err); ok && given.Attempts != nil {
					t.Error("the model's own failure was changed")
				}
			})
		})
	}
}

// TestAttempts: a reply has each try that failed before it, what it waited and
// what it took.
func TestAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := pipeline.Failf(pipeline.TypeRateLimit, "http-429", "no")
		f.RetryAfter = 10 * time.Second
		l := newLimiter(t, nil)
		began := time.Now()
		reply, err := limitedBy(l, failing(2, f)).Generate(t.Context(), route("a"))
		if err != nil {
			t.Fatal(err)
		}
		if len(reply.Attempts) != 2 || reply.Wire != time.Second {
			t.Fatalf("got %+v", reply)
		}
		all := reply.Waited + reply.Wire
		for i, a := range reply.Attempts {
			all += a.Waited + a.Wire
			if a.Failure.Code != "http-429" || a.Wire != time.Second {
				t.Errorf("attempt %d: %+v", i, a)
			}
		}
		if first, second, third := reply.Attempts[0].Waited, reply.Attempts[1].Waited, reply.Waited; first != 0 ||
			second < 10*time.Second || second >= 11*time.Second || third < 10*time.Second || third >= 12*time.Second {
			t.Errorf("the tries waited %s, %s and %s", first, second, third)
		}
		if took := time.Since(began); all != took {
			t.Errorf("waits and wires are %s of %s", all, took)
		}
		if c := l.Counts(); c.Requests != 1 || c.Tries != 3 || c.Waited != all-3*time.Second {
			t.Errorf("counted %+v", c)
		}
	})
}

func TestRetryFor(t *testing.T) {
	for _, c := range []struct {
		name       string
		retryAfter time.Duration
		retryFor   time.Duration
		tries      int
		most       time.Duration
	}{
		{"asked for longer than there is", time.Hour, time.Minute, 1, time.Second},
		{"asked for longer than there will be", math.MaxInt64, time.Minute, 1, time.Second},
		{"spent in pauses", 20 * time.Second, time.Minute, 3, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := pipeline.Failf(pipeline.TypeServer, "http-503", "no")
				f.RetryAfter = c.retryAfter
				l := newLimiter(t, func(l *provider.Limits) { l.RetryFor = c.retryFor })
				began, s := time.Now(), failing(1000, f)
				_, err := limitedBy(l, s).Generate(t.Context(), route("a"))
				if took := time.Since(began); err == nil || s.n != c.tries || took > c.most {
					t.Errorf("%d tries in %s: %v", s.n, took, err)
				}
			})
		})
	}
}

// TestBackoffHoldsNoPlace: with one place, others are asked while one backs off.
func TestBackoffHoldsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := pipeline.Failf(pipeline.TypeServer, "http-503", "no")
		f.RetryAfter = time.Minute
		l := newLimiter(t, func(l *provider.Limits) { l.Concurrency = 1 })
		list := askAll(t.Context(), limitedBy(l, failing(1, f)), 10, 10)
		allAnswered(t, list)
		soon := 0
		for _, s := range list {
			if s.at <= 10*time.Second {
				soon++
			} else if len(s.reply.Attempts) != 1 || s.at < time.Minute {
				t.Errorf("answered after %s, %d attempts", s.at, len(s.reply.Attempts))
			}
		}
		if soon != 9 {
			t.Errorf("%d of 10 were answered while one backed off, want 9", soon)
		}
	})
}

// TestJitter: those that fail together do not come back together.
func TestJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := failing(9, pipeline.Failf(pipeline.TypeServer, "http-503", "no"))
		l := newLimiter(t, func(l *provider.Limits) { l.Concurrency = 100 })
		allAnswered(t, askAll(t.Context(), limitedBy(l, s), 100, 100))
		again := map[time.Time]bool{}
		for _, at := range s.sent[100:] {
			again[at] = true
		}
		if len(again) != 9 {
			t.Errorf("9 tries came again at %d moments", len(again))
		}
	})
}

func TestAttemptTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		l := newLimiter(t, func(l *provider.Limits) { l.Timeout = 30 * time.Second })
		reply, err := limitedBy(l, modelFunc(func(ctx context.Context, _ *pipeline.Request) (*pipeline.Reply, error) {
			if n++; n == 1 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return &pipeline.Reply{}, nil
		})).Generate(t.Context(), route("a"))
		if err != nil || len(reply.Attempts) != 1 {
			t.Fatalf("got %+v, %v", reply, err)
		}
		if a := reply.Attempts[0]; a.Failure.Type != pipeline.TypeTimeout || a.Wire != 30*time.Second {
			t.Errorf("the attempt was %s after %s", a.Failure.Type, a.Wire)
		}
	})
}

// TestFaultyServer: a real server that throttles, fails and hangs up is asked
// until it has answered every request.
func TestFaultyServer(t *testing.T) {
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch n.Add(1) % 25 {
		case 3:
			w.WriteHeader(http.StatusTooManyRequests)
		case 9:
			w.WriteHeader(http.StatusInternalServerError)
		case 17:
			panic(http.ErrAbortHandler)
		default:
			io.WriteString(w, "yes")
		}
	}))
	defer server.Close()
	l := newLimiter(t, func(l *provider.Limits) { l.Concurrency = 32 })
	list := askAll(t.Context(), limitedBy(l, httpModel{server.URL}), 200, 64)
	allAnswered(t, list)
	attempts := 0
	for _, s := range list {
		attempts += len(s.reply.Attempts)
	}
	if c := l.Counts(); c.Tries != n.Load() || c.Tries != 200+int64(attempts) || attempts == 0 {
		t.Errorf("%d tries counted, %d at the server, %d attempts failed", c.Tries, n.Load(), attempts)
	}
}
