package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"evalrun/pipeline"
)

// ErrSpent ends a run whose budget has no room for the next request. What was
// answered is valid; with a larger budget the run goes on.
var ErrSpent = errors.New("the budget is spent")

// Allowance is what may be used in all; 0 is no bound.
type Allowance struct {
	Money  float64 // in the currency of the prices
	Tokens int64   // input and output together
	Calls  int64   // requests that reach a service, those that fail included
	Time   time.Duration
}

// Budget bounds what the models of a run use together, and keeps account of it.
// Before each request the most it can use is set aside, and what is left over is
// given back with the answer: so the budget is never exceeded, whatever is in
// flight. It is safe for concurrent use.
type Budget struct {
	allowed Allowance
	now     func() time.Time
	began   time.Time

	mu       sync.Mutex
	used     amount // answers, and what is doubtful at its most
	reserved amount // set aside for requests in flight
	inFlight int
	changed  chan struct{}                         // closed when something is given back
	accounts map[pipeline.Account]*pipeline.Amount // of this process
	restored map[pipeline.Account]*pipeline.Amount // of those before it
}

// amount is what counts against an allowance.
type amount struct {
	money  float64
	tokens int64
	calls  int64
}

func (a amount) plus(b amount) amount {
	return amount{a.money + b.money, a.tokens + b.tokens, a.calls + b.calls}
}

func (a amount) minus(b amount) amount {
	return amount{a.money - b.money, a.tokens - b.tokens, a.calls - b.calls}
}

// times is the amount of a request that may use that share of it; a share up to 1
// changes nothing.
func (a amount) times(share float64) amount {
	if share > 1 {
		a.money *= share
		a.tokens = int64(math.Ceil(float64(a.tokens) * share))
	}
	return a
}

// NewBudget makes a budget. Its time begins now.
func NewBudget(a Allowance, now func() time.Time) (*Budget, error) {
	if !(a.Money >= 0 && a.Money <= 1e12) || a.Tokens < 0 || a.Calls < 0 || a.Time < 0 {
		return nil, errors.New("a budget is of amounts above 0")
	}
	if now == nil {
		return nil, errors.New("a budget needs a clock")
	}
	return &Budget{allowed: a, now: now, began: now(), changed: make(chan struct{}), accounts: map[pipeline.Account]*pipeline.Amount{}, restored: map[pipeline.Account]*pipeline.Amount{}}, nil
}

// Bill says how a model's requests are charged.
type Bill struct {
	Price     *pipeline.Price // nil: not known, which a budget of money does not see
	MaxTokens int64           // most output tokens of a request that does not say so itself
	Warn      func(string)    // told once when the service counts more than that; may be nil
}

// Within returns a model that asks m, which asks what [Budget.Model] returned however
// often, until the budget's time is over: whatever the request waits for then ends, a
// try on the wire is cut off and in doubt, and the error is a [pipeline.Fatal] of
// [ErrSpent].
func (b *Budget) Within(m pipeline.Model) pipeline.Model {
	if b.allowed.Time == 0 {
		return m
	}
	return &timed{b, m}
}

type timed struct {
	budget *Budget
	model  pipeline.Model
}

func (m *timed) Generate(ctx context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
	b := m.budget
	over := b.timeIsOver()
	ctx, cancel := context.WithTimeoutCause(ctx, b.allowed.Time-b.now().Sub(b.began), over)
	defer cancel()
	reply, err := m.model.Generate(ctx, req)
	f, failed := errors.AsType[*pipeline.Failure](err)
	if failed && f.Type == pipeline.TypeCancelled && errors.Is(context.Cause(ctx), ErrSpent) {
		tries := f.Attempts
		if f.Code != unsent && f.Code != awaited { // nobody knows whether it was answered
			tries = append(slices.Clone(tries), pipeline.Attempt{Failure: &pipeline.Failure{Type: f.Type, Message: f.Message}})
		}
		return nil, &pipeline.Fatal{Err: over, Attempts: tries}
	}
	return reply, err
}

func (b *Budget) timeIsOver() error {
	return fmt.Errorf("%w: the time of %s is over", ErrSpent, b.allowed.Time)
}

// Model returns a model that asks m within the budget. A request for which there
// is no room waits while others are in flight, since those give back what they do
// not use; else the error is a [pipeline.Fatal] of [ErrSpent].
func (b *Budget) Model(m pipeline.Model, bill Bill) pipeline.Model {
	return &billed{budget: b, model: m, bill: bill}
}

type billed struct {
	budget *Budget
	model  pipeline.Model
	bill   Bill
	excess float64 // the largest share of what a request was taken to use at most that one used; 0: none used more
}

// most is the most a request can use, as far as the service has kept to that before.
func (m *billed) most(req *pipeline.Request) amount {
	m.budget.mu.Lock()
	defer m.budget.mu.Unlock()
	return m.bill.most(req).times(m.excess)
}

// learn takes in that a request used more than was set aside for it: the service
// counts what is not in the request, or does not heed max_tokens. Later ones get as
// much more.
func (m *billed) learn(req *pipeline.Request, used amount) {
	first := m.bill.most(req)
	over := float64(used.tokens) / float64(max(1, first.tokens))
	if first.money > 0 {
		over = max(over, used.money/first.money)
	}
	m.budget.mu.Lock()
	known := m.excess
	m.excess = max(known, over)
	m.budget.mu.Unlock()
	if known == 0 && over > 1 && m.bill.Warn != nil {
		m.bill.Warn(fmt.Sprintf("model %s: its service counted %d tokens for a request that has %d at most with its max_tokens: a budget may be exceeded by what it counts more; from now on as much more is set aside",
			req.Model, used.tokens, first.tokens))
	}
}

func (m *billed) Generate(ctx context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
	most := m.most(req)
	if err := m.budget.reserve(ctx, most); err != nil {
		return nil, err
	}
	settled := false
	defer func() {
		if !settled { // the model panicked
			m.budget.settle(accountOf(req.Site, req.Model, len(triesBefore(ctx))), most, most, pipeline.Amount{Requests: 1, Doubtful: 1})
		}
	}()
	reply, err := m.model.Generate(ctx, req)
	settled = true
	used, booked := m.bill.charge(most, reply, err)
	m.budget.settle(accountOf(req.Site, req.Model, len(triesBefore(ctx))), most, used, booked)
	if err == nil {
		m.learn(req, used)
	}
	return reply, err
}

// most is the most a request can use: no token is shorter than a byte, and the
// canonical request has more than the words in it.
func (b Bill) most(req *pipeline.Request) amount {
	output := b.MaxTokens
	if n := req.MaxTokens(); n != nil {
		output = *n
	}
	return b.bound(int64(req.Size()), output)
}

func (b Bill) bound(input, output int64) amount {
	most := amount{tokens: input + output, calls: 1}
	if cost := b.Price.Cost(pipeline.Usage{Input: &input, Output: &output}); cost != nil {
		most.money = *cost
	}
	return most
}

// charge is what a request used, as it counts against the allowance and as it is
// booked. What is not known, and what may have been charged without an answer,
// counts at its most.
func (b Bill) charge(most amount, reply *pipeline.Reply, err error) (amount, pipeline.Amount) {
	var u pipeline.Usage
	if err == nil {
		u = reply.Usage
	} else {
		f, ok := errors.AsType[*pipeline.Failure](err)
		switch {
		case ok && f.Usage != (pipeline.Usage{}):
			u = f.Usage // it was charged all the same
		case ok && (f.Code == outageCode || f.Code == unsent || f.Code == awaited), errors.Is(err, ErrBatched):
			return amount{}, pipeline.Amount{}
		case ok && free(f):
			return amount{calls: 1}, pipeline.Amount{Requests: 1}
		default:
			return most, pipeline.Amount{Requests: 1, Doubtful: 1}
		}
	}
	used, booked := amount{calls: 1}, pipeline.Amount{Requests: 1}
	if u.Input == nil || u.Output == nil {
		used.tokens, booked.Unknown, booked.Uncounted = most.tokens, 1, 1
	} else {
		used.tokens = *u.Input + *u.Output
		booked.Tokens = used.tokens
	}
	cost := b.Price.Cost(u)
	switch {
	case cost != nil:
		used.money, booked.Money = *cost, *cost
	case booked.Unknown == 0:
		booked.Unknown = 1
		fallthrough
	default:
		used.money = most.money
	}
	return used, booked
}

// free reports whether a request that failed cannot have been charged: the service
// refused it or failed. One that was cut off or timed out may have been answered on
// the other side, and an answer that cannot be read may be charged as any other.
func free(f *pipeline.Failure) bool {
	switch f.Type {
	case pipeline.TypeRateLimit, pipeline.TypeRefusal:
		return true
	case pipeline.TypeServer:
		return f.Code != "connection" && f.Code != "unreadable-answer" && f.Code != "too-long"
	}
	return false
}

// accountOf is what a request is booked under, after so many tries of it failed.
func accountOf(site pipeline.Site, model string, tries int) pipeline.Account {
	a := pipeline.Account{Purpose: site.Purpose, Cause: "first", Model: model}
	if site.Inside != "" {
		a.Purpose = "tool"
	}
	switch {
	case tries > 0:
		a.Cause = "retry"
	case site.Try > 0:
		a.Cause = "repair"
	}
	return a
}

// triesKey is the key under which a context has the tries of its request that
// failed before.
type triesKey struct{}

func triedBefore(ctx context.Context, failed []pipeline.Attempt) context.Context {
	if len(failed) == 0 {
		return ctx
	}
	return context.WithValue(ctx, triesKey{}, failed)
}

func triesBefore(ctx context.Context) []pipeline.Attempt {
	failed, _ := ctx.Value(triesKey{}).([]pipeline.Attempt)
	return failed
}

// reserve sets aside the most a request can use.
func (b *Budget) reserve(ctx context.Context, most amount) error {
	for {
		b.mu.Lock()
		err := b.room(most)
		if err == nil {
			b.reserved = b.reserved.plus(most)
			b.inFlight++
			b.mu.Unlock()
			return nil
		}
		if b.inFlight == 0 || b.overTime() {
			b.mu.Unlock()
			return &pipeline.Fatal{Err: err}
		}
		wait := b.changed
		b.mu.Unlock()
		resume := pipeline.Waiting(ctx)
		select {
		case <-wait:
		case <-ctx.Done():
		}
		resume()
		if err := ended(ctx); err != nil {
			return err
		}
	}
}

// room says what leaves no room for a request; nil when nothing does.
func (b *Budget) room(most amount) error {
	a, all := b.allowed, b.used.plus(b.reserved).plus(most)
	switch {
	case b.overTime():
		return b.timeIsOver()
	case a.Calls > 0 && all.calls > a.Calls:
		return fmt.Errorf("%w: %d of %d calls are made", ErrSpent, b.used.calls, a.Calls)
	case a.Tokens > 0 && all.tokens > a.Tokens:
		return fmt.Errorf("%w: %d of %d tokens are used, and the next request may take up to %d; %s", ErrSpent, b.used.tokens, a.Tokens, most.tokens, lever)
	case a.Money > 0 && all.money > a.Money:
		return fmt.Errorf("%w: %s of %s are spent, and the next request may cost up to %s; %s", ErrSpent, sum(b.used.money), sum(a.Money), sum(most.money), lever)
	}
	return nil
}

// lever says what makes the most that is set aside for a request smaller.
const lever = "a smaller max_tokens of the model leaves room for more requests"

// sum writes an amount of money with the digits that matter, and no exponent.
func sum(money float64) string {
	digits := 2
	if money > 0 && money < 0.1 {
		digits = 1 - int(math.Floor(math.Log10(money)))
	}
	return "USD " + strconv.FormatFloat(money, 'f', digits, 64)
}

func (b *Budget) overTime() bool {
	return b.allowed.Time > 0 && b.now().Sub(b.began) >= b.allowed.Time
}

// settle gives back what a request had set aside and did not use.
func (b *Budget) settle(under pipeline.Account, most, used amount, booked pipeline.Amount) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reserved = b.reserved.minus(most)
	b.inFlight--
	b.used = b.used.plus(used)
	book(b.accounts, under, booked)
	close(b.changed)
	b.changed = make(chan struct{})
}

func book(accounts map[pipeline.Account]*pipeline.Amount, under pipeline.Account, a pipeline.Amount) {
	if a == (pipeline.Amount{}) {
		return // nothing was sent
	}
	to := accounts[under]
	if to == nil {
		to = &pipeline.Amount{}
		accounts[under] = to
	}
	to.Add(a)
}

// Restore books what earlier processes of the run have used.
func (b *Budget) Restore(past pipeline.Sent, bill Bill) {
	output := bill.MaxTokens
	if past.MaxTokens != nil {
		output = *past.MaxTokens
	}
	most := bill.bound(past.Size, output)
	b.mu.Lock()
	defer b.mu.Unlock()
	try := func(n int, reply *pipeline.Reply, err error) {
		used, booked := bill.charge(most, reply, err)
		b.used = b.used.plus(used)
		book(b.restored, accountOf(past.Site, past.Model, n), booked)
	}
	for n, t := range past.Failed {
		try(n, nil, t.Failure)
	}
	switch {
	case past.Reply != nil:
		try(len(past.Failed), past.Reply, nil)
	case past.Doubt:
		try(len(past.Failed), nil, errors.New("in doubt"))
	}
}

// Bookings returns the accounts, what was restored among them, in the order of
// their names.
func (b *Budget) Bookings() []pipeline.Booking {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[pipeline.Account]*pipeline.Amount{}
	for _, accounts := range []map[pipeline.Account]*pipeline.Amount{b.accounts, b.restored} {
		for under, a := range accounts {
			book(all, under, *a)
		}
	}
	return bookings(all)
}

// Sitting returns the accounts of this process, and those that were restored from
// the processes before it.
func (b *Budget) Sitting() (own, before []pipeline.Booking) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bookings(b.accounts), bookings(b.restored)
}

func bookings(accounts map[pipeline.Account]*pipeline.Amount) []pipeline.Booking {
	var list []pipeline.Booking
	for under, a := range accounts {
		list = append(list, pipeline.Booking{Account: under, Amount: *a})
	}
	slices.SortFunc(list, func(x, y pipeline.Booking) int {
		return cmp.Or(cmp.Compare(x.Purpose, y.Purpose), cmp.Compare(x.Model, y.Model), cmp.Compare(x.Cause, y.Cause))
	})
	return list
}
