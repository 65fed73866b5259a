package journal

import (
	"context"
	"errors"

	"evalrun/pipeline"
)

// Model wraps a model so that its answers are kept, and answers that are kept
// are given again without asking. A request that differs from the one that was
// asked at its site is refused as diverged: it is never asked in silence.
//
// Of each try it is with the system that it is about to be sent, where the model
// says so with [pipeline.Sending]: so that after a kill it is known which requests
// are in doubt.
//
// A model that is a [pipeline.Knower] is still looked into when the asking has
// ended: see [Journal.Halt].
func (j *Journal) Model(live pipeline.Model) pipeline.Model {
	if _, ok := live.(pipeline.Knower); ok {
		j.knowers.Store(true)
	}
	return &journaled{j, live}
}

type journaled struct {
	journal *Journal
	live    pipeline.Model
}

func (m *journaled) Generate(ctx context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
	key := siteKey("exchange", req.Site)
	hash := req.Hash()
	switch e, ok, err := m.journal.find(key); {
	case err != nil:
		return nil, err
	case ok && e.Hash != hash:
		return nil, pipeline.Failf(pipeline.TypeDiverged, "diverged",
			"the journal has an answer to another request at this place: something that shapes requests changed or is not deterministic; start over with --fresh")
	case ok:
		return e.again()
	}
	switch e, ok, err := m.journal.earlierAnswer(req.Site, hash); {
	case err != nil:
		return nil, err
	case ok:
		e.Site, e.From = key, pipeline.FromRun
		if err := m.journal.note(e); err != nil {
			return nil, err
		}
		return e.again()
	case m.journal.out == nil:
		return nil, notAnswered("reply of the model " + req.Model + " here")
	}
	if refusal := m.journal.refusal(); refusal != nil {
		return m.unasked(ctx, req, key, hash, refusal)
	}
	return m.ask(ctx, req, key, hash, req.Size())
}

// again gives what was kept once more.
func (e *kept) again() (*pipeline.Reply, error) {
	if f := e.failure(); f != nil {
		return nil, f
	}
	reply := e.reply()
	if reply.From == pipeline.Asked {
		reply.From = pipeline.FromJournal
	}
	return reply, nil
}

// ask asks the model, and keeps what became of it.
func (m *journaled) ask(ctx context.Context, req *pipeline.Request, key, hash string, size int) (*pipeline.Reply, error) {
	leave, err := m.journal.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	told := false // that it is sent
	reply, err := m.live.Generate(pipeline.WithSending(ctx, func(failed []pipeline.Attempt) error {
		mark := &sentEntry{}
		if !told {
			mark = newSent(req, size)
		}
		if n := len(failed); n > 0 {
			mark.Failed = new(newAttempt(failed[n-1]))
		}
		told = true
		_, err := m.journal.hand(kept{Site: key, Sent: mark})
		return err
	}), req)
	e := kept{Site: key, Hash: hash}
	f, failed := errors.AsType[*pipeline.Failure](err)
	fatal, ends := errors.AsType[*pipeline.Fatal](err)
	switch {
	case err == nil:
		e.take(reply)
	case failed && f.Type == pipeline.TypeRefusal && !ends:
		// The provider's own word on this request.
		e.fail(f)
	default:
		// What may be different another time, an outage or a limit, is asked
		// again. What it took is known all the same.
		e.Lost = true
		switch {
		case ends:
			e.Attempts = attemptEntries(fatal.Attempts)
			m.journal.Halt(fatal.Err)
			err = &pipeline.Fatal{Err: &Halted{fatal.Err}, Attempts: fatal.Attempts}
		case failed:
			e.fail(f)
		default:
			e.fail(pipeline.Failf(pipeline.TypeServer, "", "%v", err))
		}
	}
	if !told && e.From == pipeline.Asked {
		if err := m.journal.note(kept{Site: key, Sent: newSent(req, size)}); err != nil {
			return nil, err
		}
	}
	if e.Lost {
		_ = m.journal.note(e) // when it cannot be written, the next one says so
		return nil, err
	}
	if kept := m.journal.keepLeaving(e, leave); kept != nil {
		return nil, kept
	}
	return reply, err
}
