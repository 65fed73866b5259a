package replay

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// shaping are the hooks that change what a call's first request is made of beside
// its inputs and what it was shown.
var shaping = []string{string(pipeline.HookBeforeCall), string(pipeline.HookRequest)}

// sentBy is what the record tells of the call's first request.
func sentBy(r *Record) datasets.Sent {
	s := datasets.Sent{Shaped: r.Replayable != nil && !*r.Replayable}
	for i := range r.Changes {
		s.Shaped = s.Shaped || slices.Contains(shaping, r.Changes[i].Hook)
	}
	if len(r.Exchanges) > 0 {
		first := &r.Exchanges[0]
		s.Hash, s.Model = strings.Clone(first.RequestHash), strings.Clone(cmp.Or(first.Model, r.Model))
	}
	return s
}

// Requests gives the first request of each of the calls that kept it to each, in
// the order of the source. One at a time is held. A request of another form than
// this package knows is not given. An error of the source or of each ends it.
func Requests(ctx context.Context, src Source, ids map[string]bool, each func(id string, req *pipeline.Request) error) error {
	if len(ids) == 0 {
		return nil
	}
	for rec, err := range src.Calls(Want{IDs: ids}) {
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		if len(rec.Exchanges) == 0 || !isSet(rec.Exchanges[0].Request) {
			continue
		}
		req, err := pipeline.ParseRequest(rec.Exchanges[0].Request)
		if err != nil {
			continue
		}
		if err := each(rec.ID, req); err != nil {
			return err
		}
	}
	return nil
}
