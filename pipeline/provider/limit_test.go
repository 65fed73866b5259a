package provider_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/pipeline/provider"
	"evalrun/pipeline/provider/providertest"
)

func newLimiter(t testing.TB, change func(*provider.Limits)) *provider.Limiter {
	t.Helper()
	limits := provider.DefaultLimits()
	if change != nil {
		change(&limits)
	}
	l, err := provider.NewLimiter("m", limits, time.Now, 1)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// limitedBy is the model as a run asks it.
func limitedBy(l *provider.Limiter, m pipeline.Model) pipeline.Model { return l.Retry(l.Limit(m)) }

// served is what became of one request.
type served struct {
	reply *pipeline.Reply
	err   error
	at    time.Duration // when, after the first was asked
}

// askAll asks n requests, so many at once.
func askAll(ctx context.Context, m pipeline.Model, n, workers int) []served {
	began, list := time.Now(), make([]served, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				reply, err := m.Generate(ctx, route(fmt.Sprint(i)))
				list[i-1] = served{reply, err, time.Since(began)}
			}
		})
	}
	wg.Wait()
	return list
}

func failureIn(t *testing.T, err error) *pipeline.Failure {
	t.Helper()
	f, ok := errors.AsType[*pipeline.Failure](err)
	if !ok {
		t.Fatalf("the error is %v, want a *pipeline.Failure", err)
	}
	return f
}

func allAnswered(t *testing.T, list []served) {
	t.Helper()
	for i, s := range list {
		if s.err != nil {
			t.Fatalf("request %d: %v", i, s.err)
		}
	}
}

// busy is a service that takes a while, and knows how many ask it at once.
type busy struct {
	takes  time.Duration
	bears  int                                  // more than these at once are too many; 0 is any number
	after  time.Duration                        // what it then asks to be left alone for
	answer func(n int) (*pipeline.Reply, error) // of the nth request; nil says "yes"

	mu             sync.Mutex
	n, asking, top int
	sent           []time.Time
}

func (s *busy) Generate(ctx context.Context, _ *pipeline.Request) (*pipeline.Reply, error) {
	s.mu.Lock()
	s.n++
	n := s.n
	s.asking++
	s.top = max(s.top, s.asking)
	tooMany := s.bears > 0 && s.asking > s.bears
	s.sent = append(s.sent, time.Now())
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.asking--
		s.mu.Unlock()
	}()
	if tooMany {
		f := pipeline.Failf(pipeline.TypeRateLimit, "http-429", "too many")
		f.RetryAfter = s.after
		return nil, f
	}
	if s.takes > 0 {
		select {
		case <-time.After(s.takes):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if s.answer != nil {
		return s.answer(n)
	}
	return &pipeline.Reply{Text: "yes", Provider: "busy"}, nil
}

func whys(l *provider.Limiter) (list []string) {
	for _, e := range l.History() {
		list = append(list, fmt.Sprintf("%s %d", e.Why, e.Limit))
	}
	return list
}

func TestLimitsRefused(t *testing.T) {
	for _, c := range []struct {
		change func(*provider.Limits)
		want   string
	}{
		{func(l *provider.Limits) { l.Concurrency = -1 }, "concurrency is -1"},
		{func(l *provider.Limits) { l.Start = 0 }, "start is 0"},
		{func(l *provider.Limits) { l.Most = -5 }, "most is -5"},
		{func(l *provider.Limits) { l.Start, l.Most = 20, 10 }, "start is 20 and most is 10"},
		{func(l *provider.Limits) { l.RequestsPerMinute = -1 }, "requests_per_minute is -1"},
		{func(l *provider.Limits) { l.TokensPerMinute = -1 }, "tokens_per_minute is -1"},
		{func(l *provider.Limits) { l.MaxRetries = -1 }, "max_retries is -1"},
		{func(l *provider.Limits) { l.RetryFor = 0 }, "retry_for is 0s"},
		{func(l *provider.Limits) { l.Timeout = -time.Second }, "timeout is -1s"},
		{func(l *provider.Limits) { l.OutageFor = 0 }, "outage_for is 0s"},
	} {
		limits := provider.DefaultLimits()
		c.change(&limits)
		l, err := provider.NewLimiter("m", limits, time.Now, 1)
		if err == nil || l != nil || !strings.HasPrefix(err.Error(), "limits of model m: "+c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	if _, err := provider.NewLimiter("m", provider.DefaultLimits(), nil, 1); err == nil {
		t.Error("a limiter was made without a clock")
	}
}

// TestLimitedModel: a model within limits keeps every promise of a model.
func TestLimitedModel(t *testing.T) {
	script := provider.NewScript(
		provider.Line{Has: "fails", Err: pipeline.Failf(pipeline.TypeRefusal, "http-400", "no")},
		provider.Line{Has: "hangs", Wait: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		provider.Line{Text: "yes"},
	)
	l := newLimiter(t, func(l *provider.Limits) { l.Concurrency = 3 })
	err := providertest.Check(limitedBy(l, script), providertest.Case{
		Answers: []*pipeline.Request{route("a"), route("b")},
		Fails:   []*pipeline.Request{route("fails")},
		Waits:   route("hangs"),
	})
	if err != nil {
		t.Error(err)
	}
}

func TestFixedConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &busy{takes: time.Second}
		l := newLimiter(t, func(l *provider.Limits) { l.Concurrency = 5 })
		list := askAll(t.Context(), limitedBy(l, s), 50, 20)
		allAnswered(t, list)
		if s.top != 5 {
			t.Errorf("%d were in flight at once, want 5", s.top)
		}
		if last := slices.MaxFunc(list, func(a, b served) int { return int(a.at - b.at) }); last.at != 10*time.Second {
			t.Errorf("50 requests of 1 s, 5 at once, took %s, want 10s", last.at)
		}
		if got := whys(l); !slices.Equal(got, []string{"start 5"}) {
			t.Errorf("the history is %q", got)
		}
	})
}

// TestQueueIsNotWire: the wait for a turn is Waited, and never Wire.
func TestQueueIsNotWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, func(l *provider.Limits) { l.Concurrency = 1 })
		list := askAll(t.Context(), limitedBy(l, &busy{takes: 20 * time.Millisecond}), 10, 10)
		allAnswered(t, list)
		var waits []time.Duration
		for _, s := range list {
			if s.reply.Wire != 20*time.Millisecond {
				t.Errorf("the wire took %s, want 20ms", s.reply.Wire)
			}
			waits = append(waits, s.reply.Waited)
		}
		slices.Sort(waits)
		for i, w := range waits {
			if w != time.Duration(i)*20*time.Millisecond {
				t.Errorf("who came as number %d waited %s", i, w)
			}
		}
		if c := l.Counts(); c.Waited != 900*time.Millisecond || c.Requests != 10 || c.Tries != 10 {
			t.Errorf("counted %+v", c)
		}
	})
}

// httpModel asks a real server.
type httpModel struct{ url string }

func (m httpModel) Generate(ctx context.Context, _ *pipeline.Request) (*pipeline.Reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, strings.NewReader("{}"))
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, pipeline.Failf(pipeline.TypeServer, "connection", "%v", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return nil, pipeline.Failf(pipeline.TypeServer, "connection", "%v", err)
	case resp.StatusCode == http.StatusTooManyRequests:
		return nil, pipeline.Failf(pipeline.TypeRateLimit, "http-429", "%s", text)
	case resp.StatusCode != http.StatusOK:
		return nil, pipeline.Failf(pipeline.TypeServer, "http-5xx", "%s", text)
	}
	return &pipeline.Reply{Text: string(text), Provider: "http"}, nil
}

// TestQueueIsNotWireOfServer: one at a time, what the wire took cannot overlap, so
// that it adds up to no more than the time there was.
func TestQueueIsNotWireOfServer(t *testing.T) {
	var asking, top atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n := asking.Add(1); n > top.Load() {
			top.Store(n)
		}
		time.Sleep(20 * time.Millisecond)
		asking.Add(-1)
		io.WriteString(w, "yes")
	}))
	defer server.Close()
	l := newLimiter(t, func(l *provider.Limits) { l.Concurrency = 1 })
	began := time.Now()
	list := askAll(t.Context(), limitedBy(l, httpModel{server.URL}), 10, 10)
	took := time.Since(began)
	allAnswered(t, list)
	var wire time.Duration
	waited := 0
	for _, s := range list {
		wire += s.reply.Wire
		if s.reply.Waited > 0 {
			waited++
		}
		if s.reply.Wire < 20*time.Millisecond || s.reply.Wire+s.reply.Waited > s.at {
			t.Errorf("wire %s and wait %s of %s", s.reply.Wire, s.reply.Waited, s.at)
		}
	}
	if wire > took || waited < 9 || top.Load() != 1 {
		t.Errorf("the wire took %s of %s, %d of 10 waited, %d at once", wire, took, waited, top.Load())
	}
}

func TestSlowStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &busy{takes: time.Second}
		l := newLimiter(t, func(l *provider.Limits) { l.Start, l.Most = 4, 50 })
		allAnswered(t, askAll(t.Context(), limitedBy(l, s), 1000, 200))
		if got, want := whys(l), []string{"start 4", "grew 8", "grew 16", "grew 32", "grew 50"}; !slices.Equal(got, want) {
			t.Errorf("the history is %q, want %q", got, want)
		}
		if s.top != 50 {
			t.Errorf("%d were in flight at once, want 50", s.top)
		}
	})
}

// TestUnusedLimitStays: answers say nothing about a limit that is not reached.
func TestUnusedLimitStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, nil)
		allAnswered(t, askAll(t.Context(), limitedBy(l, &busy{takes: time.Second}), 1000, 7))
		if got := whys(l); !slices.Equal(got, []string{"start 8"}) {
			t.Errorf("the history is %q", got)
		}
	})
}

// TestEpisodes: the limit is cut once an episode, however many were refused, and
// grows slowly from then on.
func TestEpisodes(t *testing.T) {
	for _, after := range []time.Duration{0, 40 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &busy{takes: time.Second, bears: 50, after: after}
				l := newLimiter(t, func(l *provider.Limits) { l.MaxRetries, l.RetryFor = 1000, time.Hour })
				allAnswered(t, askAll(t.Context(), limitedBy(l, s), 10_000, 100))
				var last provider.LimitEvent
				ended, episodes, grew := -time.Hour, 0, 0
				for _, e := range l.History() {
					switch e.Why {
					case provider.WhyRateLimited:
						if e.Limit != last.Limit*4/5 {
							t.Errorf("an episode cut the limit from %d to %d", last.Limit, e.Limit)
						}
						if e.At < ended {
							t.Errorf("an episode at %s within one that lasts until %s", e.At, ended)
						}
						ended = e.At + max(15*time.Second, after)
						episodes++
					case provider.WhyGrew:
						if e.At < ended {
							t.Errorf("the limit grew at %s, in an episode until %s", e.At, ended)
						}
						want := last.Limit * 2
						if episodes > 0 {
							grew++
							want = last.Limit + last.Limit/20
						}
						if e.Limit != want {
							t.Errorf("the limit grew from %d to %d, want %d", last.Limit, e.Limit, want)
						}
					}
					last = e
				}
				if episodes < 3 || grew < 3 || l.Counts().Episodes != int64(episodes) {
					t.Errorf("%d episodes (%d counted) and %d times growth after the first: too little to see anything in\n%q", episodes, l.Counts().Episodes, grew, whys(l))
				}
			})
		})
	}
}

// TestServerErrorStopsGrowth, and cuts nothing.
func TestServerErrorStopsGrowth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &busy{takes: time.Second, answer: func(n int) (*pipeline.Reply, error) {
			if n == 20 || n == 21 {
				return nil, pipeline.Failf(pipeline.TypeServer, "http-500", "oh")
			}
			return &pipeline.Reply{}, nil
		}}
		l := newLimiter(t, nil)
		allAnswered(t, askAll(t.Context(), limitedBy(l, s), 1000, 300))
		h := l.History()
		if got := whys(l); len(got) < 4 || !slices.Equal(got[:4], []string{"start 8", "grew 16", "server_error 16", "grew 32"}) {
			t.Fatalf("the history is %q", got)
		}
		if pause := h[3].At - h[2].At; pause < 15*time.Second {
			t.Errorf("the limit grew %s after the service failed", pause)
		}
	})
}

// inAnyMinute is the most of the amounts that any minute has.
func inAnyMinute(at []time.Time, amount func(i int) int) (most int) {
	sum, first := 0, 0
	for i := range at {
		sum += amount(i)
		for ; at[i].Sub(at[first]) >= time.Minute; first++ {
			sum -= amount(first)
		}
		most = max(most, sum)
	}
	return most
}

func TestRequestsPerMinute(t *testing.T) {
	for _, c := range []struct {
		perMinute, atOnce, asked int
		least                    time.Duration // between two after those
	}{
		{6, 1, 20, 9 * time.Second},
		{60, 1, 200, 999 * time.Millisecond},
		{600, 10, 2000, 100 * time.Millisecond},
		{12_000, 200, 40_000, 5 * time.Millisecond},
	} {
		t.Run(fmt.Sprint(c.perMinute), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &busy{}
				l := newLimiter(t, func(l *provider.Limits) { l.Concurrency, l.RequestsPerMinute = 16, c.perMinute })
				began := time.Now()
				allAnswered(t, askAll(t.Context(), limitedBy(l, s), c.asked, 16))
				if most := inAnyMinute(s.sent, func(int) int { return 1 }); most > c.perMinute {
					t.Errorf("%d in a minute", most)
				}
				// The bucket is full at first, and never again.
				rate := float64(c.perMinute-c.atOnce+1) / 60
				if want := time.Duration(float64(c.asked-c.atOnce) / rate * float64(time.Second)); time.Since(began) > want+time.Second {
					t.Errorf("it took %s, want about %s", time.Since(began), want)
				}
				if s.sent[c.atOnce-1] != began {
					t.Errorf("of the first %d one waited %s", c.atOnce, s.sent[c.atOnce-1].Sub(began))
				}
				for i := c.atOnce; i < len(s.sent); i++ {
					if gap := s.sent[i].Sub(s.sent[i-1]); gap < c.least {
						t.Fatalf("request %d came %s after the one before it", i, gap)
					}
				}
			})
		})
	}
}

// TestTokensPerMinute: estimates are settled with what was used, so that wrong
// ones neither break the limit for long nor leave it unused.
func TestTokensPerMinute(t *testing.T) {
	const perMinute = 60_000
	for _, c := range []struct {
		name      string
		maxTokens int64
		takes     time.Duration
		usage     pipeline.Usage
		tokens    int
	}{
		{"allowed more", 4000, 100 * time.Millisecond, pipeline.Usage{Total: new(int64(1500)), Output: new(int64(1400))}, 1500},
		{"nothing said", 0, 100 * time.Millisecond, pipeline.Usage{Input: new(int64(100)), Output: new(int64(50))}, 150},
		{"large inputs", 100, 2 * time.Second, pipeline.Usage{Input: new(int64(3000)), Output: new(int64(50))}, 3050},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &busy{takes: c.takes, answer: func(int) (*pipeline.Reply, error) {
					return &pipeline.Reply{Usage: c.usage}, nil
				}}
				l := newLimiter(t, func(l *provider.Limits) { l.Concurrency, l.TokensPerMinute = 4, perMinute })
				m := modelFunc(func(ctx context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
					if c.maxTokens > 0 {
						req.Config = datasets.Values{"max_tokens": datasets.Int(c.maxTokens)}
					}
					return limitedBy(l, s).Generate(ctx, req)
				})
				began, n := time.Now(), 5*perMinute/c.tokens
				allAnswered(t, askAll(t.Context(), m, n, 4))
				// What is in flight is not known yet.
				if most := inAnyMinute(s.sent, func(int) int { return c.tokens }); most > perMinute+4*c.tokens {
					t.Errorf("%d tokens in a minute", most)
				}
				if took := time.Since(began); took > 5*time.Minute+30*time.Second {
					t.Errorf("five minutes' worth of tokens took %s", took)
				}
			})
		})
	}
}

type modelFunc func(ctx context.Context, req *pipeline.Request) (*pipeline.Reply, error)

func (f modelFunc) Generate(ctx context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
	return f(ctx, req)
}

// TestCanceled: wherever a request is when its time is over, it ends then, and
// what it held is there for others.
func TestCanceled(t *testing.T) {
	hang := func(ctx context.Context) (*pipeline.Reply, error) { <-ctx.Done(); return nil, ctx.Err() }
	fails := func(typ string) func(context.Context) (*pipeline.Reply, error) {
		return func(context.Context) (*pipeline.Reply, error) { return nil, pipeline.Failf(typ, "", "no") }
	}
	for _, c := range []struct {
		name   string
		limits func(*provider.Limits)
		first  int // requests asked before the one that is looked at
		does   func(context.Context) (*pipeline.Reply, error)
	}{
		{"on the wire", nil, 0, hang},
		{"in the queue", func(l *provider.Limits) { l.Concurrency = 1 }, 1, hang},
		{"behind others in the queue", func(l *provider.Limits) { l.Concurrency = 1 }, 5, hang},
		{"in a limit on requests", func(l *provider.Limits) { l.RequestsPerMinute = 1 }, 1, fails(pipeline.TypeRefusal)},
		{"in a limit on tokens", func(l *provider.Limits) { l.TokensPerMinute = 60 }, 1, fails(pipeline.TypeRefusal)},
		{"in back-off", nil, 0, func(context.Context) (*pipeline.Reply, error) {
			f := pipeline.Failf(pipeline.TypeServer, "", "no")
			f.RetryAfter = time.Minute
			return nil, f
		}},
		{"in an outage", nil, 20, fails(pipeline.TypeServer)},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, deadline := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					l := newLimiter(t, c.limits)
					var well atomic.Bool
					m := limitedBy(l, modelFunc(func(ctx context.Context, _ *pipeline.Request) (*pipeline.Reply, error) {
						if well.Load() {
							return &pipeline.Reply{}, nil
						}
						return c.does(ctx)
					}))
					others, stop := context.WithCancel(t.Context())
					defer stop()
					var wg sync.WaitGroup
					for range c.first {
						wg.Go(func() { m.Generate(others, route("other")) })
					}
					synctest.Wait()
					ctx, cancel := context.WithCancel(t.Context())
					want := pipeline.TypeCancelled
					if deadline {
						ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
						want = pipeline.TypeTimeout
					} else {
						time.AfterFunc(300*time.Millisecond, cancel)
					}
					defer cancel()
					began := time.Now()
					reply, err := m.Generate(ctx, route("this"))
					if took := time.Since(began); reply != nil || failureIn(t, err).Type != want || took != 300*time.Millisecond {
						t.Errorf("after %s: %v, %v; want %s after 300ms", took, reply, err, want)
					}
					well.Store(true)
					stop()
					wg.Wait()
					if _, err := m.Generate(t.Context(), route("later")); err != nil {
						t.Errorf("a later request: %v", err)
					}
				})
			}
		})
	}
}

// TestCanceledIsNotSent: a request that was over before it was sent takes nothing
// from a limit, and whoever stood behind it goes when it would have gone.
func TestCanceledIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, func(l *provider.Limits) { l.RequestsPerMinute = 6 })
		s := &busy{}
		m := limitedBy(l, s)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := m.Generate(over, route("a")); failureIn(t, err).Type != pipeline.TypeCancelled {
			t.Error(err)
		}
		began := time.Now()
		allAnswered(t, askAll(t.Context(), m, 1, 1))
		head, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		var wg sync.WaitGroup
		wg.Go(func() { m.Generate(head, route("b")) })
		synctest.Wait()
		wg.Go(func() { m.Generate(t.Context(), route("c")) })
		wg.Wait()
		if len(s.sent) != 2 || s.sent[0] != began || s.sent[1].Sub(began).Round(time.Millisecond) != 10*time.Second {
			t.Errorf("sent at %v, want at once and after 10s", s.sent)
		}
		if c := l.Counts(); c.Tries != 2 || c.Requests != 4 {
			t.Errorf("counted %+v", c)
		}
	})
}

// TestPanicFreesPlace: a model that panics holds no place afterwards.
func TestPanicFreesPlace(t *testing.T) {
	l := newLimiter(t, func(l *provider.Limits) { l.Concurrency = 1 })
	script := provider.ScriptFunc(func(_ context.Context, n int, _ *pipeline.Request) (*pipeline.Reply, error) {
		if n == 1 {
			panic("oh")
		}
		return &pipeline.Reply{}, nil
	})
	m := limitedBy(l, script)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was lost")
			}
		}()
		m.Generate(t.Context(), route("a"))
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := m.Generate(ctx, route("b")); err != nil {
		t.Error(err)
	}
}

// BenchmarkLimit is what limits cost a request of a model that answers at once,
// asked by 32 at once on two cores; none is the model alone.
func BenchmarkLimit(b *testing.B) {
	model := modelFunc(func(context.Context, *pipeline.Request) (*pipeline.Reply, error) { return &pipeline.Reply{}, nil })
	req := route("a")
	for _, c := range []struct {
		name   string
		limits func(*provider.Limits)
	}{
		{"none", nil},
		{"fixed", func(l *provider.Limits) { l.Concurrency = 32 }},
		{"adaptive", func(*provider.Limits) {}},
		{"queued", func(l *provider.Limits) { l.Concurrency = 1 }},
		{"rates", func(l *provider.Limits) { l.RequestsPerMinute, l.TokensPerMinute = 1e12, 1e12 }},
	} {
		b.Run(c.name, func(b *testing.B) {
			var m pipeline.Model = model
			if c.limits != nil {
				m = limitedBy(newLimiter(b, c.limits), model)
			}
			b.ReportAllocs()
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := m.Generate(b.Context(), req); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// Once a run is stopped nothing more is sent: what waits ends at once as canceled,
// and what is on the wire is finished.
func TestStopped(t *testing.T) {
	for _, c := range []struct {
		name  string
		model pipeline.Model
		most  int // answered: what was on the wire
		last  time.Duration
	}{
		{"in a queue", &answering{wait: 8 * time.Second, answer: uses(1, 1).answer}, 2, 8 * time.Second},
		{"between tries, then paused", fails(pipeline.TypeServer, "http-500"), 0, 5 * time.Second},
		{"asked to wait", &answering{answer: func() (pipeline.Usage, error) {
			f := pipeline.Failf(pipeline.TypeRateLimit, "http-429", "no")
			f.RetryAfter = 2 * time.Minute
			return pipeline.Usage{}, f
		}}, 0, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stop := make(chan struct{})
				l := newLimiter(t, func(l *provider.Limits) { l.Concurrency = 2 })
				l.StopOn(stop)
				time.AfterFunc(5*time.Second, func() { close(stop) })
				answered := 0
				for i, s := range askAll(t.Context(), limitedBy(l, c.model), 8, 8) {
					if s.err == nil {
						answered++
					} else if f := failureOf(s.err); f == nil || f.Type != pipeline.TypeCancelled || s.at != 5*time.Second {
						t.Errorf("request %d ended after %s with %v", i, s.at, s.err)
					}
					if s.at > c.last {
						t.Errorf("request %d ended after %s", i, s.at)
					}
				}
				if answered != c.most {
					t.Errorf("%d were answered, want %d", answered, c.most)
				}
			})
		})
	}
}

func failureOf(err error) *pipeline.Failure {
	f, _ := errors.AsType[*pipeline.Failure](err)
	return f
}
