package journal

import (
	"sync"

	"evalrun/pipeline"
)

// Earlier is where the journal of another run may know a candidate's answers.
type Earlier struct {
	Dir       string // the journal's folder
	Candidate string // as sites of that run call it
}

// another is the journal of another run, which is read when somebody first looks
// for something in it. One that cannot be read knows nothing.
type another struct {
	once    sync.Once
	journal *Journal
}

func (a *another) read(dir string) *Journal {
	a.once.Do(func() { a.journal, _ = Read(dir) })
	return a.journal
}

// TakeFrom has the answers of a candidate, as sites call it, taken from other
// runs where these have them: to the same request, about the same row, at the same
// place. The first that has one counts. Answers that were to be asked anew are not
// taken. It is called before anything is asked.
func (j *Journal) TakeFrom(candidate string, earlier ...Earlier) {
	j.earlier[candidate] = earlier
	for _, e := range earlier {
		if j.others[e.Dir] == nil {
			j.others[e.Dir] = &another{}
		}
	}
}

// earlierAnswer finds what another run knows.
func (j *Journal) earlierAnswer(site pipeline.Site, hash string) (kept, bool, error) {
	list := j.earlier[site.Candidate]
	if len(list) == 0 || (Answer{site.Candidate, site.Row, site.Repeat, site.Purpose}).in(j.forgotten) {
		return kept{}, false, nil
	}
	for _, other := range list {
		from := j.others[other.Dir].read(other.Dir)
		if from == nil {
			continue
		}
		at := site
		at.Candidate = other.Candidate
		e, ok, err := from.find(siteKey("exchange", at))
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
