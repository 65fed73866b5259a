package provider_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"evalrun/pipeline"
	"evalrun/pipeline/provider"
)

// answering is a model that answers after a while with a usage.
type answering struct {
	wait   time.Duration
	answer func() (pipeline.Usage, error)
}

func (m *answering) Generate(ctx context.Context, _ *pipeline.Request) (*pipeline.Reply, error) {
	if m.wait > 0 {
		timer := time.NewTimer(m.wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	u, err := m.answer()
	if err != nil {
		return nil, err
	}
	return &pipeline.Reply{Usage: u}, nil
}

func uses(in, out int64) *answering {
	return &answering{answer: func() (pipeline.Usage, error) { return pipeline.Usage{Input: &in, Output: &out}, nil }}
}

func fails(typ, code string) *answering {
	return &answering{answer: func() (pipeline.Usage, error) { return pipeline.Usage{}, pipeline.Failf(typ, code, "no") }}
}

func asked(purpose string, try int) *pipeline.Request {
	return &pipeline.Request{
		Model: "m", Messages: []pipeline.Message{pipeline.TextMessage("user", "Where is my card?")},
		Site: pipeline.Site{Purpose: purpose, Try: try},
	}
}

func newBudget(t testing.TB, a provider.Allowance) *provider.Budget {
	t.Helper()
	b, err := provider.NewBudget(a, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Whatever is in flight, no more is used than allowed, and what others do not use
// is there for those that wait.
func TestBudgetIsNeverExceeded(t *testing.T) {
	const in, out = 20, 5
	price := &pipeline.Price{Input: 1e6 / in, Output: 1e6 / out} // an answer costs 2
	for _, c := range []struct {
		name    string
		allowed provider.Allowance
		most    int // answers it has room for, were each request only what it uses
	}{
		{"calls", provider.Allowance{Calls: 100}, 100},
		{"tokens", provider.Allowance{Tokens: 100 * (in + out)}, 100},
		{"money", provider.Allowance{Money: 200}, 100},
		{"the tightest of them", provider.Allowance{Calls: 50, Money: 200}, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBudget(t, c.allowed)
				slow := uses(in, out)
				slow.wait = time.Second
				m := b.Model(slow, provider.Bill{Price: price, MaxTokens: 8})
				var mu sync.Mutex
				var group sync.WaitGroup
				answered, spent := 0, 0
				for range 256 {
					group.Go(func() {
						_, err := m.Generate(t.Context(), asked("candidate", 0))
						mu.Lock()
						defer mu.Unlock()
						var fatal *pipeline.Fatal
						switch {
						case err == nil:
							answered++
						case errors.As(err, &fatal) && errors.Is(err, provider.ErrSpent):
							spent++
						default:
							t.Error(err)
						}
					})
				}
				group.Wait()
				// The last requests find no room for the most they could use.
				if answered+spent != 256 || answered > c.most || answered < c.most*8/10 {
					t.Errorf("%d were answered and %d found no room, of at most %d", answered, spent, c.most)
				}
			})
		})
	}
}

func TestBudgetBooks(t *testing.T) {
	price := &pipeline.Price{Input: 1e6, Output: 1e6}
	unsaid := &answering{answer: func() (pipeline.Usage, error) { return pipeline.Usage{}, nil }}
	account := func(purpose, cause string) pipeline.Account {
		return pipeline.Account{Purpose: purpose, Cause: cause, Model: "m"}
	}
	for _, c := range []struct {
		name  string
		model *answering
		price *pipeline.Price
		req   *pipeline.Request
		under pipeline.Account
		want  pipeline.Amount
	}{
		{"an answer", uses(10, 2), price, asked("candidate", 0), account("candidate", "first"), pipeline.Amount{Requests: 1, Tokens: 12, Money: 12}},
		{"a repair", uses(10, 2), price, asked("judge", 1), account("judge", "repair"), pipeline.Amount{Requests: 1, Tokens: 12, Money: 12}},
		{"an unpriced model is unknown, not free", uses(10, 2), nil, asked("candidate", 0), account("candidate", "first"), pipeline.Amount{Requests: 1, Tokens: 12, Unknown: 1}},
		{"a free model costs nothing", uses(10, 2), &pipeline.Price{}, asked("candidate", 0), account("candidate", "first"), pipeline.Amount{Requests: 1, Tokens: 12}},
		{"a usage that is not said", unsaid, price, asked("candidate", 0), account("candidate", "first"), pipeline.Amount{Requests: 1, Unknown: 1, Uncounted: 1}},
		{"a refusal is free", fails(pipeline.TypeRefusal, "http-400"), price, asked("candidate", 0), account("candidate", "first"), pipeline.Amount{Requests: 1}},
		{"a time-out is doubtful", fails(pipeline.TypeTimeout, ""), price, asked("candidate", 0), account("candidate", "first"), pipeline.Amount{Requests: 1, Doubtful: 1}},
		{"a cut connection is doubtful", fails(pipeline.TypeServer, "connection"), price, asked("candidate", 0), account("candidate", "first"), pipeline.Amount{Requests: 1, Doubtful: 1}},
		{"an answer that cannot be read is doubtful", fails(pipeline.TypeServer, "unreadable-answer"), price, asked("candidate", 0), account("candidate", "first"), pipeline.Amount{Requests: 1, Doubtful: 1}},
		{"one that is too long is doubtful", fails(pipeline.TypeServer, "too-long"), price, asked("candidate", 0), account("candidate", "first"), pipeline.Amount{Requests: 1, Doubtful: 1}},
		{"a service's failing is free", fails(pipeline.TypeServer, "http-500"), price, asked("candidate", 0), account("candidate", "first"), pipeline.Amount{Requests: 1}},
	} {
		b := newBudget(t, provider.Allowance{})
		_, _ = b.Model(c.model, provider.Bill{Price: c.price, MaxTokens: 100}).Generate(t.Context(), c.req)
		want := pipeline.Booking{Account: c.under, Amount: c.want}
		if got := b.Bookings(); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %+v, want %+v", c.name, got, want)
		}
	}
}

// What is doubtful counts at its most: it may have been charged.
func TestBudgetCountsDoubt(t *testing.T) {
	b := newBudget(t, provider.Allowance{Tokens: 2000})
	m := b.Model(fails(pipeline.TypeTimeout, ""), provider.Bill{MaxTokens: 800})
	var tries int
	for ; tries < 10; tries++ {
		if _, err := m.Generate(t.Context(), asked("candidate", 0)); errors.Is(err, provider.ErrSpent) {
			break
		}
	}
	if tries != 2 {
		t.Errorf("%d requests that may have taken 800 tokens and more each were made, of 2000", tries)
	}
}

func TestBudgetTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(t, provider.Allowance{Time: time.Minute})
		slow := uses(1, 1)
		slow.wait = 40 * time.Second
		m := b.Model(slow, provider.Bill{})
		for i, want := range []error{nil, nil, provider.ErrSpent} {
			if _, err := m.Generate(t.Context(), asked("candidate", 0)); !errors.Is(err, want) {
				t.Errorf("request %d: %v, want %v", i, err, want)
			}
		}
	})
}

// When a budget's time is over everything ends: the try on the wire, which is in
// doubt, and whatever waits in the queue, between tries or for a service that is down.
func TestBudgetTimeEndsWaiting(t *testing.T) {
	for _, c := range []struct {
		name  string
		model *answering
		doubt int64
	}{
		{"a service that hangs", &answering{wait: time.Hour, answer: uses(1, 1).answer}, 2},
		{"one that fails", fails(pipeline.TypeServer, "http-500"), 0},
		{"one that throttles", fails(pipeline.TypeRateLimit, "http-429"), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBudget(t, provider.Allowance{Time: 10 * time.Second})
				l := newLimiter(t, func(l *provider.Limits) { l.Concurrency = 2 })
				m := b.Within(l.Retry(b.Model(l.Limit(c.model), provider.Bill{})))
				for i, s := range askAll(t.Context(), m, 8, 8) {
					if _, fatal := errors.AsType[*pipeline.Fatal](s.err); !fatal || !errors.Is(s.err, provider.ErrSpent) || s.at != 10*time.Second {
						t.Errorf("request %d ended after %s with %v", i, s.at, s.err)
					}
				}
				var doubt int64
				for _, booked := range b.Bookings() {
					doubt += booked.Doubtful
				}
				if doubt != c.doubt {
					t.Errorf("%d requests are in doubt, want %d", doubt, c.doubt)
				}
			})
		})
	}
}

// A service that counts more than a request has is known from then on: the budget is
// exceeded by one request at most, and that is said once.
func TestBudgetLearnsWhatServicesCount(t *testing.T) {
	b := newBudget(t, provider.Allowance{Tokens: 10_000})
	var said []string
	m := b.Model(uses(2000, 100), provider.Bill{MaxTokens: 100, Warn: func(s string) { said = append(said, s) }})
	n := 0
	for ; n < 20; n++ {
		if _, err := m.Generate(t.Context(), asked("candidate", 0)); errors.Is(err, provider.ErrSpent) {
			break
		}
	}
	if n != 4 { // a fifth may take 2100 again
		t.Errorf("%d requests of 2100 tokens were made, of 10000", n)
	}
	if len(said) != 1 || !strings.Contains(said[0], "2100 tokens") {
		t.Errorf("said %q", said)
	}
}

// What is left no room for says what to do, in money and not in powers of ten.
func TestBudgetSaysWhatToDo(t *testing.T) {
	b := newBudget(t, provider.Allowance{Money: 0.00001})
	_, err := b.Model(uses(1, 1), provider.Bill{Price: &pipeline.Price{Input: 1, Output: 1}, MaxTokens: 4096}).Generate(t.Context(), asked("candidate", 0))
	if err == nil || !strings.Contains(err.Error(), "USD 0.00 of USD 0.000010 are spent") || !strings.Contains(err.Error(), "max_tokens") {
		t.Error(err)
	}
}

// What a run used before it was interrupted counts when it goes on: tries that
// failed as they did, an answer as it was charged, a request in doubt at its most.
func TestBudgetRestores(t *testing.T) {
	b := newBudget(t, provider.Allowance{Calls: 6})
	bill := provider.Bill{Price: &pipeline.Price{Input: 1e6, Output: 1e6}, MaxTokens: 10}
	kept, err := uses(3, 4).Generate(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	site := pipeline.Site{Purpose: "candidate"}
	throttled := pipeline.Attempt{Failure: pipeline.Failf(pipeline.TypeRateLimit, "", "slow down")}
	unsent := pipeline.Attempt{Failure: pipeline.Failf(pipeline.TypeServer, "outage", "it is down")}
	b.Restore(pipeline.Sent{Site: site, Model: "m", Size: 100, Failed: []pipeline.Attempt{throttled}, Reply: kept}, bill)
	b.Restore(pipeline.Sent{Site: site, Model: "m", Size: 100, Doubt: true}, bill)
	b.Restore(pipeline.Sent{Site: site, Model: "m", Size: 100, Failed: []pipeline.Attempt{throttled, unsent}}, bill)
	account := func(cause string) pipeline.Account {
		return pipeline.Account{Purpose: "candidate", Cause: cause, Model: "m"}
	}
	want := []pipeline.Booking{
		{Account: account("first"), Amount: pipeline.Amount{Requests: 3, Doubtful: 1}},
		{Account: account("retry"), Amount: pipeline.Amount{Requests: 1, Tokens: 7, Money: 7}},
	}
	if got := b.Bookings(); !slices.Equal(got, want) {
		t.Errorf("booked %+v, want %+v", got, want)
	}
	m := b.Model(uses(1, 1), bill)
	for i, want := range []error{nil, nil, provider.ErrSpent} { // four of six are made
		if _, err := m.Generate(t.Context(), asked("candidate", 0)); !errors.Is(err, want) {
			t.Errorf("request %d: %v, want %v", i, err, want)
		}
	}
	own, before := b.Sitting()
	if here := []pipeline.Booking{{Account: account("first"), Amount: pipeline.Amount{Requests: 2, Tokens: 4, Money: 4}}}; !slices.Equal(own, here) || !slices.Equal(before, want) {
		t.Errorf("this process booked %+v, want %+v; those before it %+v, want %+v", own, here, before, want)
	}
}

// A request in doubt counts at its most: what it stated, else what its model may.
func TestBudgetRestoresAtMost(t *testing.T) {
	bill := provider.Bill{MaxTokens: 10}
	for _, c := range []struct {
		stated *int64
		fits   int64 // tokens that are left
	}{{nil, 890}, {new(int64(60)), 840}} {
		b := newBudget(t, provider.Allowance{Tokens: 1000})
		b.Restore(pipeline.Sent{Model: "m", Size: 100, MaxTokens: c.stated, Doubt: true}, bill)
		size := int64(len(asked("candidate", 0).Canonical("m")))
		for bound, want := range map[int64]error{c.fits: nil, c.fits + 1: provider.ErrSpent} {
			m := b.Model(fails(pipeline.TypeRefusal, ""), provider.Bill{MaxTokens: bound - size})
			if _, err := m.Generate(t.Context(), asked("candidate", 0)); errors.Is(err, provider.ErrSpent) != (want != nil) {
				t.Errorf("a request of up to %d tokens, with %d left: %v, want %v", bound, c.fits, err, want)
			}
		}
	}
}

func TestBudgetRefuses(t *testing.T) {
	for _, a := range []provider.Allowance{{Money: -1}, {Money: math.NaN()}, {Money: math.Inf(1)}, {Tokens: -1}, {Calls: -1}, {Time: -1}} {
		if _, err := provider.NewBudget(a, time.Now); err == nil {
			t.Errorf("%+v is taken", a)
		}
	}
	if _, err := provider.NewBudget(provider.Allowance{}, nil); err == nil {
		t.Error("a budget without a clock is made")
	}
}

// A request that waits for room ends with its context.
func TestBudgetWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(t, provider.Allowance{Calls: 1})
		slow := uses(1, 1)
		slow.wait = time.Hour
		m := b.Model(slow, provider.Bill{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var group sync.WaitGroup
		group.Go(func() { _, _ = m.Generate(ctx, asked("candidate", 0)) })
		synctest.Wait()
		_, err := m.Generate(ctx, asked("candidate", 0))
		var f *pipeline.Failure
		if !errors.As(err, &f) || f.Type != pipeline.TypeTimeout {
			t.Errorf("%v", err)
		}
		group.Wait()
	})
}
