// Package providertest checks that a model keeps the promises of
// [pipeline.Model]. Whoever implements one calls [Check] in a test, the more
// usefully under the race detector:
//
//	if err := providertest.Check(model, providertest.Case{Answers: requests}); err != nil {
//		t.Error(err)
//	}
//
// The promises: a request is answered with a reply or an error, never both or
// neither; it is not changed; an error is a [pipeline.Failure] of a known type
// with a message, or the context's own; a request whose context is over is not
// answered, and one whose context ends while it waits ends with it; replies share
// nothing that their owners could change; any number of requests may be asked at
// once; a failure spoils nothing that comes later; a key is in nothing that comes
// back.
//
// A provider that asks a service over HTTP is tested against a [Service]: a local
// server that answers in the service's [Dialect] and fails in all the ways that
// services do.
package providertest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"evalrun/internal/par"
	"evalrun/pipeline"
)

// Case says what the model under test can be asked.
type Case struct {
	Answers []*pipeline.Request // it answers these; at least one
	Fails   []*pipeline.Request // it answers these with an error
	Waits   *pipeline.Request   // it would wait for long before it answers this one; nil where it never waits
	Varies  bool                // the same request may get different replies
	Secret  string              // never to be in an error or a reply; "" where it has none
}

// How hard a model is pressed.
const (
	workers  = 8
	rounds   = 25
	patience = 20 * time.Millisecond // before a request that waits is canceled
)

// Check asks the model and returns every promise it breaks, joined; nil when it
// keeps them. A model that ignores its context makes Check wait with it.
func Check(model pipeline.Model, c Case) error {
	if len(c.Answers) == 0 {
		return errors.New("a case needs requests that the model answers")
	}
	k := &checker{model: model, c: c}
	ctx := context.Background()
	for i, req := range c.Answers {
		k.answers = append(k.answers, k.ask(ctx, req, fmt.Sprintf("Answers[%d]", i), wantReply))
	}
	for i, req := range c.Fails {
		k.ask(ctx, req, fmt.Sprintf("Fails[%d]", i), wantError)
	}
	k.over()
	k.owned(ctx)
	k.together(ctx)
	return errors.Join(k.broken...)
}

type want string

const (
	wantReply want = "a reply"
	wantError want = "an error"
	wantOver  want = "an error, since the context was over"
)

type checker struct {
	model   pipeline.Model
	c       Case
	answers []*pipeline.Reply // to the Answers, asked one after the other
	broken  []error
}

func (k *checker) brokenf(format string, args ...any) {
	k.broken = append(k.broken, fmt.Errorf(format, args...))
}

// ask asks one request and checks what holds for every one.
func (k *checker) ask(ctx context.Context, req *pipeline.Request, name string, w want) *pipeline.Reply {
	reply, problems := k.check(ctx, req, w)
	for _, p := range problems {
		k.brokenf("%s: %s", name, p)
	}
	return reply
}

func (k *checker) check(ctx context.Context, req *pipeline.Request, w want) (reply *pipeline.Reply, problems []string) {
	before := req.Clone()
	reply, err := k.model.Generate(ctx, req)
	if !reflect.DeepEqual(before, req) {
		problems = append(problems, "the request was changed; clone it first")
	}
	switch {
	case reply == nil && err == nil:
		problems = append(problems, "neither a reply nor an error")
	case reply != nil && err != nil:
		problems = append(problems, fmt.Sprintf("both a reply and the error %q", err))
	case err != nil && w == wantReply, reply != nil && w != wantReply:
		problems = append(problems, fmt.Sprintf("want %s, got %s", w, outcome(reply, err)))
	case err != nil:
		problems = append(problems, checkError(err, w)...)
	default:
		problems = append(problems, checkReply(reply)...)
	}
	if k.c.Secret != "" && strings.Contains(everything(reply, err), k.c.Secret) {
		problems = append(problems, "the secret is in what came back")
	}
	return reply, problems
}

// everything is all that a reply and an error say.
func everything(reply *pipeline.Reply, err error) string {
	var all []any
	if reply != nil {
		all = append(all, *reply, reply.Response.JSON())
		for _, c := range reply.Calls {
			all = append(all, c.Input.JSON())
		}
	}
	if f, ok := errors.AsType[*pipeline.Failure](err); ok {
		all = append(all, *f)
	}
	return fmt.Sprintf("%+v %+v", all, err)
}

func outcome(reply *pipeline.Reply, err error) string {
	if err != nil {
		return fmt.Sprintf("the error %q", err)
	}
	return fmt.Sprintf("the reply %q", reply.Text)
}

func checkReply(r *pipeline.Reply) (problems []string) {
	if r.Provider == "" {
		problems = append(problems, "the reply does not say who answered: Provider is empty")
	}
	u := r.Usage
	for _, n := range []*int64{u.Input, u.Output, u.Total, u.Cached, u.Reasoning} {
		if n != nil && *n < 0 {
			problems = append(problems, fmt.Sprintf("the usage has %d tokens; a count that is not known is absent", *n))
		}
	}
	return problems
}

func checkError(err error, w want) (problems []string) {
	var f *pipeline.Failure
	if !errors.As(err, &f) {
		if w == wantOver && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
			return nil
		}
		return []string{fmt.Sprintf("the error %q is a %T, not a *pipeline.Failure", err, err)}
	}
	if f.Class() == "other" {
		problems = append(problems, fmt.Sprintf("the failure's type %q is none of pipeline's", f.Type))
	}
	if f.Message == "" {
		problems = append(problems, "the failure has no message")
	}
	if w == wantOver && f.Type != pipeline.TypeCancelled && f.Type != pipeline.TypeTimeout {
		problems = append(problems, fmt.Sprintf("the context was over, and the failure is a %s", f.Type))
	}
	return problems
}

// over asks with contexts that are over, or end while the model waits.
func (k *checker) over() {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	k.ask(canceled, k.c.Answers[0], "Answers[0] with a canceled context", wantOver)
	late, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	k.ask(late, k.c.Answers[0], "Answers[0] after its deadline", wantOver)
	if k.c.Waits != nil {
		soon, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		k.ask(soon, k.c.Waits, "Waits", wantOver)
		k.interrupted()
	}
}

// interrupted cancels a request while the model waits.
func (k *checker) interrupted() {
	ctx, cancel := context.WithCancel(context.Background())
	stop := par.Go(context.Background(), func(background context.Context) {
		soon, done := context.WithTimeout(background, patience)
		defer done()
		<-soon.Done()
		cancel()
	})
	defer stop()
	k.ask(ctx, k.c.Waits, "Waits, canceled", wantOver)
}

// owned writes over a reply and asks again.
func (k *checker) owned(ctx context.Context) {
	for i, req := range k.c.Answers {
		first := k.answers[i]
		if first == nil || k.c.Varies {
			continue
		}
		mine := *first
		*first = pipeline.Reply{Text: "written over by its owner"}
		again := k.ask(ctx, req, fmt.Sprintf("Answers[%d] again", i), wantReply)
		if again != nil && !same(&mine, again) {
			k.brokenf("Answers[%d]: the same request got %q, then %q; replies are shared or not repeatable", i, mine.Text, again.Text)
		}
		k.answers[i] = &mine
	}
}

// together asks all requests many times over at once.
func (k *checker) together(ctx context.Context) {
	type task struct{ request, round int }
	tasks := func(yield func(task) bool) {
		for round := range rounds {
			for i := range len(k.c.Answers) + len(k.c.Fails) {
				if !yield(task{i, round}) {
					return
				}
			}
		}
	}
	ask := func(ctx context.Context, t task) ([]string, error) {
		if i := t.request - len(k.c.Answers); i >= 0 {
			_, problems := k.check(ctx, k.c.Fails[i], wantError)
			return problems, nil
		}
		reply, problems := k.check(ctx, k.c.Answers[t.request], wantReply)
		if first := k.answers[t.request]; reply != nil && first != nil && !k.c.Varies && !same(first, reply) {
			problems = append(problems, fmt.Sprintf("%q when asked alone, %q here", first.Text, reply.Text))
		}
		return problems, nil
	}
	var seen []string
	for problems, err := range par.Map(ctx, tasks, par.Limits{Workers: workers}, ask) {
		if err != nil {
			k.brokenf("%d at once: %w", workers, err)
			return
		}
		for _, p := range problems {
			if !slices.Contains(seen, p) {
				seen = append(seen, p)
				k.brokenf("%d at once: %s", workers, p)
			}
		}
	}
}

func same(a, b *pipeline.Reply) bool {
	return a.Text == b.Text && a.Finish == b.Finish && a.Model == b.Model && a.System == b.System && a.Provider == b.Provider &&
		a.Cached == b.Cached && a.Response.Equal(b.Response) && reflect.DeepEqual(a.Usage, b.Usage) && reflect.DeepEqual(a.Calls, b.Calls)
}
