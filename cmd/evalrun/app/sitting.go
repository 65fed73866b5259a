package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"evalrun/harness"
	"evalrun/pipeline/provider"
)

// carryOut carries out a run, and keeps in its folder what the services took: when
// they are about to be asked, so that a process that is killed leaves a sign, and
// at the end.
func (w *wiring) carryOut(ctx context.Context, run *harness.Run) ([]*harness.Evaluation, error) {
	aside, why, err := run.SetSittingsAside()
	if err != nil {
		return nil, err
	}
	if aside != "" {
		w.env.warn(fmt.Sprintf("%v; it is kept as %s, and the run goes on without it", why, aside))
	}
	started := w.env.now().UTC()
	keep := func(ended *time.Time) error {
		if len(w.models.limiters()) == 0 {
			return nil
		}
		return run.KeepSitting(w.models.sitting(started, ended))
	}
	if err := keep(nil); err != nil {
		return nil, err
	}
	var progress harness.Progress
	done := w.env.showProgress(ctx, &progress, w.models)
	inFlight := w.models.inFlight()
	evaluations, err := run.Evaluate(ctx, harness.Options{
		Executor: harness.Local{Workers: rowsAtWork(inFlight)},
		InFlight: inFlight,
		Stop:     w.env.stop,
		TooMany:  w.spec.Limits.MaxErrors.exceeded,
		Progress: &progress,
		Past:     w.models.past,
	})
	done()
	ended := w.env.now().UTC()
	if unkept := keep(&ended); unkept != nil {
		err = errors.Join(err, unkept)
	}
	return evaluations, err
}

// rowsAtWork is how many rows are at work for so many requests in flight: while one
// of two is asked, the other is made ready, scored or written down.
func rowsAtWork(inFlight int) int {
	if inFlight == 1 {
		return 1 // one row after the other, as whoever wants that expects
	}
	return min(2*inFlight, max(inFlight, mostWaiting))
}

// sitting is what this process took of the services of the spec, until now. One
// that has not ended says so.
func (ms *models) sitting(started time.Time, ended *time.Time) harness.Sitting {
	s := harness.Sitting{Started: started, Ended: ended, Models: []harness.Limited{}}
	limiters := ms.limiters()
	for _, name := range sortedKeys(limiters) {
		s.Models = append(s.Models, limited(name, limiters[name]))
	}
	own, before := ms.budget.Sitting()
	s.Bookings, s.Before = own, before
	return s
}

func limited(name string, l *provider.Limiter) harness.Limited {
	c := l.Counts()
	m := harness.Limited{
		Name: name, Requests: c.Requests, Tries: c.Tries, Retries: c.Retries, Episodes: c.Episodes, Pauses: c.Pauses,
		LongestPause: c.LongestPause.Seconds(), Waited: c.Waited.Seconds(),
	}
	for _, e := range l.History() {
		m.History = append(m.History, harness.LimitEvent{At: e.At.Seconds(), Limit: e.Limit, Why: e.Why})
	}
	return m
}
