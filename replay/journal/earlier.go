package journal

import "evalrun/pipeline"

// Earlier is what a journal of another run may know of a candidate.
type Earlier struct {
	Journal   *Journal
	Candidate string // as sites of that run call it
}

// TakeFrom has the answers of a candidate, as sites call it, taken from other
// runs where these have them: to the same request, about the same row, at the same
// place. The first that has one counts. Answers that were to be asked anew are not
// taken. It is called before anything is asked.
func (j *Journal) TakeFrom(candidate string, earlier ...Earlier) {
	if j.earlier == nil {
		j.earlier = map[string][]Earlier{}
	}
	j.earlier[candidate] = earlier
}

// earlierAnswer finds what another run knows.
func (j *Journal) earlierAnswer(site pipeline.Site, hash string) (kept, bool, error) {
	list := j.earlier[site.Candidate]
	if len(list) == 0 || j.forgotten[Answer{site.Candidate, site.Row, site.Repeat}] {
		return kept{}, false, nil
	}
	for _, other := range list {
		at := site
		at.Candidate = other.Candidate
		e, ok, err := other.Journal.find(siteKey("exchange", at))
		if err != nil || ok && e.Hash == hash {
			return e, ok, err
		}
	}
	return kept{}, false, nil
}

// Knows reports whether the request would be answered without asking a model.
func (j *Journal) Knows(req *pipeline.Request) (bool, error) {
	hash := req.Hash()
	e, ok, err := j.find(siteKey("exchange", req.Site))
	if err != nil || ok {
		return ok && e.Hash == hash, err
	}
	_, ok, err = j.earlierAnswer(req.Site, hash)
	return ok, err
}
