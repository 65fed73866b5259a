package journal

import "evalrun/pipeline"

// sentRequests puts together, from the entries of one segment, what became of the
// requests that its process sent. One of which only the sending is known is in
// doubt: the process was killed before it knew.
type sentRequests struct {
	tell func(pipeline.Sent) // nil when nobody asks
	open map[string]pipeline.Sent
}

// take takes in an entry.
func (s *sentRequests) take(e *kept) {
	if e.Sent != nil {
		r, again := s.open[e.Site]
		if !again {
			r = e.Sent.sent()
		}
		if e.Sent.Failed != nil {
			r.Failed = append(r.Failed, e.Sent.Failed.attempt())
		}
		s.open[e.Site] = r
		return
	}
	r, sent := s.open[e.Site]
	if !sent {
		return // nothing was sent for it
	}
	delete(s.open, e.Site)
	if s.tell == nil {
		return
	}
	r.Reply = nil
	r.Failed = attempts(e.Attempts)
	switch {
	case e.Failure != nil:
		r.Failed = append(r.Failed, pipeline.Attempt{Failure: e.Failure.failure()})
	case !e.Lost:
		r.Reply = e.reply()
	}
	s.tell(r)
}

// finish tells of those in doubt, and says how many these are.
func (s *sentRequests) finish() int {
	if s.tell != nil {
		for _, r := range s.open {
			r.Doubt = true
			s.tell(r)
		}
	}
	return len(s.open)
}

func newSent(req *pipeline.Request, size int) *sentEntry {
	return &sentEntry{
		Model: req.Model, Purpose: req.Site.Purpose, Try: req.Site.Try, Inside: req.Site.Inside,
		Size: int64(size), MaxTokens: req.MaxTokens(),
	}
}

func (e *sentEntry) sent() pipeline.Sent {
	return pipeline.Sent{
		Site:  pipeline.Site{Purpose: e.Purpose, Try: e.Try, Inside: e.Inside},
		Model: e.Model, Size: e.Size, MaxTokens: e.MaxTokens,
	}
}
