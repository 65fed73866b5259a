package journal

import (
	"fmt"
	"sync"

	"evalrun/pipeline"
)

// Earlier is where the journal of another run may know a candidate's answers.
type Earlier struct {
	Dir       string // the journal's folder
	Candidate string // as sites of that run call it
}

// another is the journal of another run, which is read when somebody first looks
// for something in it.
type another struct {
	once    sync.Once
	journal *Journal
	err     error
}

func (a *another) read(dir string) (*Journal, error) {
	a.once.Do(func() {
		if a.journal, a.err = Read(dir); a.err != nil {
			a.err = &pipeline.Fatal{Err: fmt.Errorf("taking answers from an earlier run: %w; or take the folder of that run away", a.err)}
		}
	})
	return a.journal, a.err
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
		from, err := j.others[other.Dir].read(other.Dir)
		if err != nil {
			return kept{}, false, err
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
