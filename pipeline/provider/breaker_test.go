package provider_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"evalrun/pipeline"
	"evalrun/pipeline/provider"
)

// down fails until a while after it is first asked.
type down struct {
	busy
	until func(asked time.Duration) error // nil: it is up
	hangs bool
	first time.Time
	late  []time.Duration // when it was asked while it was down
}

func (d *down) Generate(ctx context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
	d.mu.Lock()
	if d.first.IsZero() {
		d.first = time.Now()
	}
	at := time.Since(d.first)
	err := d.until(at)
	if err != nil {
		d.late = append(d.late, at)
	}
	d.mu.Unlock()
	if err == nil {
		return d.busy.Generate(ctx, req)
	}
	if d.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, err
}

func always(err error) func(time.Duration) error { return func(time.Duration) error { return err } }

func tooMany(after time.Duration) *pipeline.Failure {
	f := pipeline.Failf(pipeline.TypeRateLimit, "http-429", "slow down")
	f.RetryAfter = after
	return f
}

// TestOutageIsBounded: a service that never answers costs tries and seconds in
// all, however many rows there are.
func TestOutageIsBounded(t *testing.T) {
	const timeout, outage = 2 * time.Minute, 5 * time.Minute
	for _, c := range []struct {
		name  string
		err   error
		hangs bool
		most  time.Duration
		typ   string
	}{
		{"429", tooMany(0), false, outage + time.Minute, pipeline.TypeRateLimit},
		{"429 that asks for a minute", tooMany(time.Minute), false, outage + 3*time.Minute, pipeline.TypeRateLimit},
		{"429 that asks for a day", tooMany(24 * time.Hour), false, outage + time.Minute, pipeline.TypeRateLimit},
		{"500", pipeline.Failf(pipeline.TypeServer, "http-500", "oh"), false, outage + time.Minute, pipeline.TypeServer},
		{"hang", context.DeadlineExceeded, true, 3*timeout + time.Minute + outage + timeout, pipeline.TypeTimeout},
	} {
		for _, workers := range []int{1, 2, 5, 64, 1000} {
			for _, concurrency := range []int{0, 1, 64} {
				t.Run(fmt.Sprintf("%s/%d workers/concurrency %d", c.name, workers, concurrency), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := &down{until: always(c.err), hangs: c.hangs}
						l := newLimiter(t, func(l *provider.Limits) { l.Concurrency = concurrency })
						began := time.Now()
						list := askAll(t.Context(), limitedBy(l, s), 1000, workers)
						if took := time.Since(began); took > c.most {
							t.Errorf("it took %s, want at most %s", took, c.most)
						}
						// Ten in a row, those in flight then, and the probes.
						if tries := len(s.late); tries > 10+max(8, concurrency)+15 || int64(tries) != l.Counts().Tries {
							t.Errorf("%d tries (%d counted)", tries, l.Counts().Tries)
						}
						outages := 0
						for _, s := range list {
							f := failureIn(t, s.err)
							if f.Type != c.typ {
								t.Fatalf("a row failed with %s, want %s", f.Type, c.typ)
							}
							if f.Code == "outage" {
								outages++
							}
						}
						if outages < 1000-10-max(8, concurrency) {
							t.Errorf("%d of 1000 rows failed for the outage", outages)
						}
						if h := l.History(); h[len(h)-1].Why != provider.WhyGaveUp {
							t.Errorf("the history ends with %q", h[len(h)-1].Why)
						}
						if c := l.Counts(); c.LongestPause < outage || c.Pauses != 1 {
							t.Errorf("counted %+v", c)
						}
					})
				})
			}
		}
	}
}

// TestOutageEnds: who waited is answered when the service is back, and no row
// fails or spends its tries on the outage.
func TestOutageEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		after  time.Duration
		probes []time.Duration // when they are sent, from the pause on
	}{
		{"server", 0, []time.Duration{1, 3, 7, 15, 31, 61, 91, 121}},
		{"that asks to be left alone", 50 * time.Second, []time.Duration{50, 100}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &down{until: func(at time.Duration) error {
					if at >= 4*time.Second && at < 104*time.Second {
						f := pipeline.Failf(pipeline.TypeServer, "http-503", "down")
						f.RetryAfter = c.after
						return f
					}
					return nil
				}}
				s.takes = time.Second
				l := newLimiter(t, func(l *provider.Limits) { l.MaxRetries = 1 })
				list := askAll(t.Context(), limitedBy(l, s), 1000, 300) // somebody waits at any time
				allAnswered(t, list)
				var paused, probes []provider.LimitEvent
				var resumed provider.LimitEvent
				for _, e := range l.History() {
					switch e.Why {
					case provider.WhyPaused:
						paused = append(paused, e)
					case provider.WhyProbe:
						probes = append(probes, e)
					case provider.WhyResumed:
						resumed = e
					}
				}
				if len(paused) == 0 || resumed.Limit != paused[len(paused)-1].Limit/2 {
					t.Fatalf("the history is %q", whys(l))
				}
				pause := paused[len(paused)-1] // until the last answer from before the outage there may be one more
				for i, p := range probes {
					if at := p.At - pause.At; i >= len(c.probes) || at != c.probes[i]*time.Second {
						t.Errorf("probe %d was sent %s after the pause, want %v s", i, at, c.probes)
					}
				}
				sent := s.sent[slices.IndexFunc(s.sent, func(at time.Time) bool { return at.Sub(s.first) >= 104*time.Second }):]
				if early := sent[1].Sub(sent[0]); early < time.Second {
					t.Errorf("the second request was sent %s after the probe, which had no answer yet", early)
				}
				if got := l.Counts(); got.Pauses != int64(len(paused)) || got.LongestPause != resumed.At-pause.At {
					t.Errorf("counted %+v", got)
				}
			})
		})
	}
}

// TestLimitStatus: a pause says what it is for and when it ends at the earliest,
// and whoever observes hears of what the history has.
func TestLimitStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &down{until: func(at time.Duration) error {
			if at < 2*time.Second {
				return tooMany(5 * time.Second)
			}
			return nil
		}}
		s.takes = time.Second
		l := newLimiter(t, nil)
		var heard []string
		l.Observe(func(e provider.LimitEvent) { heard = append(heard, fmt.Sprintf("%s %d", e.Why, e.Limit)) })
		if got, want := l.Status(), (provider.LimitStatus{Limit: 8}); got != want {
			t.Errorf("before it was asked: %+v, want %+v", got, want)
		}
		var wg sync.WaitGroup
		wg.Go(func() { allAnswered(t, askAll(t.Context(), limitedBy(l, s), 40, 20)) })
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := l.Status(); got.Paused != "rate_limited" || got.ProbeIn != 3*time.Second || got.InFlight != 0 || got.GaveUp {
			t.Errorf("2 s into a pause of 5 s: %+v", got)
		}
		wg.Wait()
		if got := l.Status(); got.Paused != "" || got.InFlight != 0 {
			t.Errorf("after all was answered: %+v", got)
		}
		if want := whys(l)[1:]; !slices.Equal(heard, want) { // the start was before anybody listened
			t.Errorf("heard of %q, the history is %q", heard, want)
		}
	})
}

// TestOneProbe: while the service is down it is asked by one at a time.
func TestOneProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &busy{takes: 10 * time.Second, answer: func(int) (*pipeline.Reply, error) {
			return nil, pipeline.Failf(pipeline.TypeServer, "http-500", "oh")
		}}
		l := newLimiter(t, func(l *provider.Limits) { l.Concurrency = 20 })
		askAll(t.Context(), limitedBy(l, s), 200, 100)
		late := s.sent[slices.IndexFunc(s.sent, func(at time.Time) bool { return at.Sub(s.sent[0]) > 10*time.Second }):]
		if len(late) < 5 {
			t.Fatalf("%d probes", len(late))
		}
		for i := 1; i < len(late); i++ {
			if gap := late[i].Sub(late[i-1]); gap < 12*time.Second {
				t.Errorf("probe %d was sent %s after the one before it, which took 10s", i, gap)
			}
		}
	})
}

// TestSomeFailures: what fails now and then is no outage.
func TestSomeFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &busy{takes: time.Second, answer: func(n int) (*pipeline.Reply, error) {
			if n%4 == 0 || n >= 300 && n <= 308 { // nine in a row
				return nil, pipeline.Failf(pipeline.TypeServer, "http-500", "oh")
			}
			return &pipeline.Reply{}, nil
		}}
		l := newLimiter(t, func(l *provider.Limits) { l.Concurrency = 32 })
		askAll(t.Context(), limitedBy(l, s), 1000, 64)
		if c := l.Counts(); c.Pauses != 0 {
			t.Errorf("counted %+v", c)
		}
	})
}

// TestQuotaExhausted: where nothing but money helps, nobody waits.
func TestQuotaExhausted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &down{until: always(pipeline.Failf(pipeline.TypeRateLimit, "quota-exhausted", "pay first"))}
		l := newLimiter(t, nil)
		began := time.Now()
		list := askAll(t.Context(), limitedBy(l, s), 1000, 100)
		if took := time.Since(began); took != 0 || len(s.late) > 18 {
			t.Errorf("%d tries in %s", len(s.late), took)
		}
		for _, r := range list {
			if f := failureIn(t, r.err); f.Type != pipeline.TypeRateLimit || f.Code != "outage" && f.Code != "quota-exhausted" {
				t.Fatalf("a row failed with %v", f)
			}
		}
	})
}

// TestCanceledProbe: a probe that is canceled says nothing, and another is sent.
func TestCanceledProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &down{hangs: true, until: func(at time.Duration) error {
			if at < 200*time.Second {
				return context.DeadlineExceeded
			}
			return nil
		}}
		l := newLimiter(t, func(l *provider.Limits) { l.Concurrency = 4 })
		m := limitedBy(l, s)
		var list []served
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(200*time.Second, cancel) // the probe is out since 121 s
		askAll(ctx, m, 4, 4)
		list = askAll(t.Context(), m, 20, 20)
		allAnswered(t, list)
		if got := whys(l); !slices.Contains(got, "resumed 2") {
			t.Errorf("the history is %q", got)
		}
	})
}

// TestTooManyAtOnce: a burst that is refused is no outage as long as what was sent
// before it is answered.
func TestTooManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &busy{takes: 10 * time.Second, bears: 40}
		l := newLimiter(t, nil)
		allAnswered(t, askAll(t.Context(), limitedBy(l, s), 1000, 200))
		paused := provider.LimitEvent{}
		for _, e := range l.History() {
			if e.Why == provider.WhyPaused {
				paused = e
			}
			if e.Why == provider.WhyResumed && (e.Limit != paused.Limit || e.At-paused.At > 10*time.Second) {
				t.Errorf("after %s sent nothing, the limit is %d, was %d", e.At-paused.At, e.Limit, paused.Limit)
			}
		}
		if c := l.Counts(); c.Episodes == 0 || c.Tries > 1300 {
			t.Errorf("counted %+v", c)
		}
	})
}
