package provider_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/pipeline/provider"
	"evalrun/pipeline/provider/providertest"
)

// batching is a batch API and how a model asks it.
type batching struct {
	*providertest.Batches
	service *providertest.Service
	warnings
}

func newBatching(t testing.TB, b *providertest.Batches, faults ...providertest.Fault) *batching {
	t.Helper()
	return &batching{Batches: b, service: service(t, b.Answer, faults...)}
}

// model asks in batches as a process of the run does, again where that helps.
func (b *batching) model(t testing.TB, o provider.BatchOptions) pipeline.Model {
	t.Helper()
	lm, err := provider.Open("openai", provider.Options{Name: "asked", Model: "gpt-x", BaseURL: b.service.URL + "/v1", Key: testKey, Now: time.Now, Warn: b.warn})
	if err != nil {
		t.Fatal(err)
	}
	l := newLimiter(t, func(l *provider.Limits) { l.MaxRetries = 3 })
	o.Look = time.Millisecond
	if o.Quiet == 0 {
		o.Quiet = 20 * time.Millisecond
	}
	m, err := l.Batch(lm.Model, o)
	if err != nil {
		t.Fatal(err)
	}
	return l.Retry(m)
}

// row is the request of a row.
func row(i int, text string) *pipeline.Request {
	r := said(text)
	r.Site = pipeline.Site{Candidate: "a", Row: fmt.Sprint(i), Purpose: "candidate"}
	return r
}

func rowsOf(texts ...string) (list []*pipeline.Request) {
	for i, text := range texts {
		list = append(list, row(i, text))
	}
	return list
}

// together asks all requests at once; what came is in their order.
func together(ctx context.Context, m pipeline.Model, requests []*pipeline.Request) []served {
	list := make([]served, len(requests))
	var group sync.WaitGroup
	for i, r := range requests {
		group.Go(func() { list[i].reply, list[i].err = m.Generate(ctx, r) })
	}
	group.Wait()
	return list
}

// outcomes are the texts of replies, or the types and codes of failures.
func outcomes(t *testing.T, list []served) (all []string) {
	t.Helper()
	for _, s := range list {
		if s.err != nil {
			f := failureIn(t, s.err)
			all = append(all, f.Type+" "+f.Code)
			continue
		}
		all = append(all, s.reply.Text)
	}
	return all
}

func TestBatchConforms(t *testing.T) {
	b := newBatching(t, &providertest.Batches{Stays: "hold on"})
	if err := providertest.Check(b.model(t, provider.BatchOptions{Quiet: time.Millisecond}), providertest.Case{
		Answers: rowsOf("hello", "two words"), Fails: []*pipeline.Request{with("x", `{"response_format":{"type":"json_schema"}}`)}, Waits: row(9, "hold on"), Secret: testKey,
	}); err != nil {
		t.Error(err)
	}
}

// All that is asked while nothing is sent goes into one batch, tagged.
func TestBatchGathers(t *testing.T) {
	b := newBatching(t, &providertest.Batches{Looks: 2})
	var texts []string
	for i := range 40 {
		texts = append(texts, fmt.Sprintf("text %d\nand more", i))
	}
	list := together(t.Context(), b.model(t, provider.BatchOptions{Run: &provider.BatchRun{ID: "run-1"}}), rowsOf(texts...))
	if got := outcomes(t, list); !slices.Equal(got, texts) {
		t.Fatalf("got %q", got)
	}
	r := list[0].reply
	if r.Model != "gpt-x-2025-01-01" || r.Provider != "openai" || r.Usage.Total == nil || r.Wire != 0 || r.Waited <= 0 {
		t.Errorf("the reply is %+v", r)
	}
	if b.Made() != 1 {
		t.Errorf("%d batches were made", b.Made())
	}
	i := slices.IndexFunc(b.service.Received(), func(r providertest.Received) bool { return r.Method == "POST" && r.Path == "/v1/batches" })
	made := raw(string(b.service.Received()[i].Body))
	equalJSON(t, "the tags", made.Member("metadata"), `{"evalrun_run":"run-1","evalrun_model":"asked"}`)
}

// What a batch does not answer is asked again in the next, within the retries;
// what it refuses is not.
func TestBatchFates(t *testing.T) {
	const refused, failed = "RefusalError ", "ServerError "
	var shaky atomic.Int64
	dialect := func(r *http.Request, body []byte) (int, http.Header, []byte) {
		text := string(body)
		switch {
		case strings.Contains(text, "wrong"):
			return 400, nil, []byte(`{"error":{"message":"wrong"}}`)
		case strings.Contains(text, "shaky") && shaky.Add(1) == 1, strings.Contains(text, "broken"):
			return 500, nil, []byte(`{"error":{"message":"broken"}}`)
		}
		return providertest.OpenAI(r, body)
	}
	create := `"completion_window"`
	for _, c := range []struct {
		name    string
		fates   []providertest.Fate
		fault   providertest.Fault
		texts   []string
		want    []string
		batches int
		most    int // batches that any request was in
	}{
		{"one is refused", nil, providertest.Fault{}, []string{"a", "wrong"}, []string{"a", refused + "http-400"}, 1, 1},
		{"one fails once", nil, providertest.Fault{}, []string{"a", "shaky"}, []string{"a", "shaky"}, 2, 2},
		{"one fails for ever", nil, providertest.Fault{}, []string{"a", "broken"}, []string{"a", failed + "http-500"}, 4, 4},
		{"expires", []providertest.Fate{providertest.Expires}, providertest.Fault{}, []string{"a", "a"}, []string{"a", "a"}, 2, 2},
		{"is cancelled", []providertest.Fate{providertest.Cancelled}, providertest.Fault{}, []string{"a"}, []string{"a"}, 2, 2},
		{"expires for ever", []providertest.Fate{"expired", "expired", "expired", "expired"}, providertest.Fault{}, []string{"a"}, []string{failed + "batch-expired"}, 4, 4},
		{"fails", []providertest.Fate{providertest.Fails}, providertest.Fault{}, []string{"a"}, []string{refused + "batch-failed"}, 1, 0},
		{"is too large", []providertest.Fate{providertest.Overflows}, providertest.Fault{}, []string{"a", "b", "c", "d"}, []string{"a", "b", "c", "d"}, 3, 1},
		{"too many at once", nil, providertest.Fault{Has: create, Times: 1, Do: providertest.Answer(429, "slow down")}, []string{"a"}, []string{"a"}, 1, 1},
		{"upload fails", nil, providertest.Fault{Has: "custom_id", Times: 1, Do: providertest.Drop()}, []string{"a"}, []string{"a"}, 1, 1},
		{"is made, and nobody hears of it", nil, providertest.Fault{Has: create, Times: 1, Do: deaf}, []string{"a", "b"}, []string{"a", "b"}, 1, 1},
		{"cannot be listed", nil, providertest.Fault{Nth: 1, Do: providertest.Answer(403, "no")}, []string{"a"}, []string{failed + "outage"}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var faults []providertest.Fault
			if c.fault.Do != nil {
				faults = append(faults, c.fault)
			}
			b := newBatching(t, &providertest.Batches{Dialect: dialect, Fates: c.fates, Looks: 1}, faults...)
			list := together(t.Context(), b.model(t, provider.BatchOptions{Run: &provider.BatchRun{ID: "run-1"}, Quiet: 60 * time.Millisecond}), rowsOf(c.texts...))
			if got := outcomes(t, list); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			most := 0
			for n := range maps.Values(b.Sent()) {
				most = max(most, n)
			}
			if b.Made() < c.batches || most != c.most {
				t.Errorf("%d batches, a request was in %d; want %d and %d", b.Made(), most, c.batches, c.most)
			}
			for _, s := range list {
				if f, ok := errors.AsType[*pipeline.Failure](s.err); ok && strings.Contains(f.Message, testKey) {
					t.Error("the key is in a failure")
				}
			}
		})
	}
}

// deaf does what is asked and says nothing.
func deaf(_ *providertest.Service, _ http.ResponseWriter, _ *http.Request, usual providertest.Usual) {
	usual()
	panic(http.ErrAbortHandler)
}

// A service that has no room is sent nothing until it has finished a batch.
func TestBatchWaitsForRoom(t *testing.T) {
	b := newBatching(t, &providertest.Batches{Fates: []providertest.Fate{providertest.Completes, providertest.Overflows}})
	b.Hold(true)
	m := b.model(t, provider.BatchOptions{})
	var list [2][]served
	var group sync.WaitGroup
	for i := range list {
		group.Go(func() { list[i] = together(t.Context(), m, []*pipeline.Request{row(2*i, "a"), row(2*i+1, "b")}) })
		for b.Made() == i {
			time.Sleep(time.Millisecond)
		}
	}
	for len(b.Sent()) != 2 { // the second has failed
		time.Sleep(time.Millisecond)
	}
	for looks := b.service.Count(); b.service.Count() < looks+3; {
		time.Sleep(time.Millisecond)
	}
	if b.Made() != 2 {
		t.Errorf("%d batches were made while there was no room", b.Made())
	}
	b.Hold(false)
	group.Wait()
	for _, l := range list {
		if got := outcomes(t, l); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("got %q", got)
		}
	}
	if b.Made() != 3 {
		t.Errorf("%d batches were made, want 3", b.Made())
	}
}

// A batch that cannot be fetched is left, and its requests are not sent again.
func TestBatchNotFetched(t *testing.T) {
	for _, status := range []int{403, 500} {
		batches := &providertest.Batches{}
		s := service(t, func(r *http.Request, body []byte) (int, http.Header, []byte) {
			if strings.HasSuffix(r.URL.Path, "/content") {
				return status, nil, []byte(`{"error":{"message":"no"}}`)
			}
			return batches.Answer(r, body)
		})
		lm, err := provider.Open("openai", provider.Options{Name: "asked", BaseURL: s.URL + "/v1", Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		l := newLimiter(t, func(l *provider.Limits) { l.OutageFor = 50 * time.Millisecond })
		m, err := l.Batch(lm.Model, provider.BatchOptions{Quiet: time.Millisecond, Look: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		_, err = l.Retry(m).Generate(t.Context(), row(1, "a"))
		if f := failureIn(t, err); f.Type != pipeline.TypeServer || f.Code != "outage" || batches.Made() != 1 {
			t.Errorf("%d: %v, %d batches", status, f, batches.Made())
		}
	}
}

// A setting that the model does not take is left out of the next batch, and costs
// no retry.
func TestBatchLearns(t *testing.T) {
	b := newBatching(t, &providertest.Batches{})
	lm, err := provider.Open("openai", provider.Options{Name: "asked", Model: "reasoning", BaseURL: b.service.URL + "/v1", Now: time.Now, Warn: b.warn})
	if err != nil {
		t.Fatal(err)
	}
	m, err := newLimiter(t, nil).Batch(lm.Model, provider.BatchOptions{Quiet: 20 * time.Millisecond, Look: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	requests := rowsOf("a", "b", "c")
	for _, r := range requests {
		r.Config = config(`{"temperature":0}`)
	}
	list := together(t.Context(), m, requests)
	if got := outcomes(t, list); !slices.Equal(got, []string{"a", "b", "c"}) || len(b.said) != 1 {
		t.Errorf("got %q, with the warnings %q", got, b.said)
	}
}

// A run that goes on finds its batches, whatever became of them meanwhile.
func TestBatchFoundAgain(t *testing.T) {
	for _, c := range []struct {
		name     string
		fates    []providertest.Fate
		finished bool // while nobody looked
		again    provider.BatchRun
		sent     int // how often every request was sent in the end
	}{
		{"still there", nil, false, provider.BatchRun{ID: "run-1"}, 1},
		{"finished meanwhile", nil, true, provider.BatchRun{ID: "run-1"}, 1},
		{"of another run", nil, false, provider.BatchRun{ID: "run-2"}, 2},
		{"cancelled meanwhile", []providertest.Fate{providertest.Completes, providertest.Cancelled}, true, provider.BatchRun{ID: "run-1"}, 2},
		{"asked anew, still there", nil, false, provider.BatchRun{ID: "run-1", Anew: true}, 1},
		{"asked anew", nil, true, provider.BatchRun{ID: "run-1", Anew: true}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBatching(t, &providertest.Batches{Fates: c.fates, Page: 1})
			together(t.Context(), b.model(t, provider.BatchOptions{Run: &provider.BatchRun{ID: "other"}}), rowsOf("x"))
			b.Hold(true)
			requests := rowsOf("a", "b", "c")
			ctx, cancel := context.WithCancel(t.Context())
			var group sync.WaitGroup
			group.Go(func() {
				together(ctx, b.model(t, provider.BatchOptions{Run: &provider.BatchRun{ID: "run-1"}}), requests)
			})
			for b.Made() < 2 {
				time.Sleep(time.Millisecond)
			}
			cancel()
			group.Wait()
			together(t.Context(), b.model(t, provider.BatchOptions{Run: &provider.BatchRun{ID: "nobody"}, Stop: closed()}), rowsOf("y"))
			// A look that was on its way when the run ended would finish the batch.
			for n := -1; n != b.service.Count(); time.Sleep(20 * time.Millisecond) {
				n = b.service.Count()
			}
			b.Hold(false)
			if c.finished {
				if r, err := http.Get(b.service.URL + "/v1/batches/batch_2"); err != nil {
					t.Fatal(err)
				} else {
					r.Body.Close()
				}
			}
			// The first asks alone: what is in the batch besides is kept for the others.
			m := b.model(t, provider.BatchOptions{Run: &c.again})
			list := append(together(t.Context(), m, requests[:1]), together(t.Context(), m, requests[1:])...)
			if got := outcomes(t, list); !slices.Equal(got, []string{"a", "b", "c"}) {
				t.Errorf("got %q", got)
			}
			sent := b.Sent()
			if len(sent) != 4 {
				t.Errorf("%d requests are known, want 4", len(sent))
			}
			most := 0
			for _, n := range sent {
				most = max(most, n)
			}
			if most != c.sent {
				t.Errorf("a request was sent %d times, want %d", most, c.sent)
			}
		})
	}
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// A run that is to stop waits no more, and its batches stay.
func TestBatchStops(t *testing.T) {
	b := newBatching(t, &providertest.Batches{})
	b.Hold(true)
	stop := make(chan struct{})
	m := b.model(t, provider.BatchOptions{Run: &provider.BatchRun{ID: "run-1"}, Stop: stop})
	var list []served
	var group sync.WaitGroup
	group.Go(func() { list = together(t.Context(), m, rowsOf("a", "b")) })
	for b.Made() == 0 {
		time.Sleep(time.Millisecond)
	}
	close(stop)
	group.Wait()
	for _, s := range list {
		_, fatal := errors.AsType[*pipeline.Fatal](s.err)
		if !fatal || !errors.Is(s.err, provider.ErrBatched) || !strings.Contains(s.err.Error(), "1 of them with 2 requests") {
			t.Errorf("the error is %v", s.err)
		}
	}
	budget := newBudget(t, provider.Allowance{})
	_, err := budget.Model(m, provider.Bill{}).Generate(t.Context(), row(9, "c"))
	if booked := budget.Bookings(); len(booked) != 0 {
		t.Errorf("what nobody waited for is booked: %+v", booked)
	}
	if !errors.Is(err, provider.ErrBatched) || b.Made() != 1 {
		t.Errorf("after the stop: %v, %d batches", err, b.Made())
	}
}

// The time of a call stands still while its request is in a batch.
func TestBatchTakesNoTime(t *testing.T) {
	b := newBatching(t, &providertest.Batches{})
	b.Hold(true)
	p, err := pipeline.ParseProgram("route.yaml", fmt.Appendf(nil, routeProgram, "Sort.", "{}"))
	if err != nil {
		t.Fatal(err)
	}
	c := &pipeline.Caller{LM: pipeline.LM{Name: "asked", Model: b.model(t, provider.BatchOptions{})}, Timeout: 50 * time.Millisecond, Now: time.Now, NewID: func() string { return "0190b3c4-0000-7000-8000-000000000001" }}
	time.AfterFunc(200*time.Millisecond, func() { b.Hold(false) })
	call, err := c.Ask(t.Context(), p, pipeline.Ask{Inputs: datasets.Values{"ticket": datasets.Text("x"), "floor": datasets.Int(7)}})
	if err != nil || len(call.Exchanges) != 1 || call.Exchanges[0].Reply == nil {
		t.Errorf("%v, %+v", err, call)
	}
}

func TestBatchRefuses(t *testing.T) {
	if _, err := newLimiter(t, nil).Batch(provider.Lexical{}, provider.BatchOptions{}); err == nil {
		t.Error("a model without a batch API asks in batches")
	}
}
