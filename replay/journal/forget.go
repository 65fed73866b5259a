package journal

import (
	"strconv"
	"strings"
)

// Answer names all that happened to get one answer: of a candidate, as sites call
// it, about a row, at one of the repeats; with a purpose, only what was asked for
// that, such as judge.
type Answer struct {
	Candidate string `json:"candidate"`
	Row       string `json:"row"`
	Repeat    int    `json:"repeat"`
	Purpose   string `json:"purpose,omitzero"`
}

// in reports whether the answer, or all of it that has another purpose too, is in a
// set.
func (a Answer) in(set map[Answer]bool) bool {
	whole := a
	whole.Purpose = ""
	return set[a] || set[whole]
}

// Forget drops what the journal knows of these answers, so that they are asked
// anew. That they are forgotten is on disk when it returns: a process that is
// killed while it asks does not leave half of an old answer beside half of a new
// one. It says how many entries were dropped. What tools did that may change
// something was done, whatever becomes of the answer: it is not forgotten, and not
// done again.
func (j *Journal) Forget(answers ...Answer) (int, error) {
	if len(answers) == 0 {
		return 0, nil
	}
	j.mu.Lock()
	n, err := j.forget(answers)
	j.mu.Unlock()
	if n == 0 || err != nil {
		return 0, err
	}
	return n, j.keep(kept{Forget: answers})
}

// forget drops entries; the lock is held. Whose they are is in their frames.
func (j *Journal) forget(answers []Answer) (int, error) {
	dropped := make(map[Answer]bool, len(answers))
	for _, a := range answers {
		dropped[a], j.forgotten[a] = true, true
	}
	if j.out != nil {
		if err := j.flush(); err != nil { // our own frames may be in the buffer
			return 0, err
		}
	}
	n := 0
	for sum, at := range j.known {
		e, err := j.readFrame(at)
		if err != nil {
			return n, err
		}
		if a, ok := answerAt(e.Site); ok && a.in(dropped) && !strings.HasPrefix(e.Site, changingTool+" ") {
			delete(j.known, sum)
			n++
		}
	}
	return n, nil
}

// answerAt reads the answer that a site belongs to from its key: see siteKey.
func answerAt(site string) (a Answer, ok bool) {
	_, rest, ok := strings.Cut(site, " ")
	if !ok {
		return a, false
	}
	for _, to := range []*string{&a.Candidate, &a.Row} {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return a, false
		}
		if *to, err = strconv.Unquote(quoted); err != nil {
			return a, false
		}
		rest = strings.TrimPrefix(rest[len(quoted):], " ")
	}
	number, rest, _ := strings.Cut(rest, " ")
	repeat, err := strconv.Atoi(number)
	if err != nil {
		return a, false
	}
	a.Repeat = repeat
	path, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return a, false
	}
	if parts := strings.SplitN(rest[len(path):], " ", 5); len(parts) == 5 { // step, try and invocation
		if quoted, err := strconv.QuotedPrefix(parts[4]); err == nil {
			a.Purpose, err = strconv.Unquote(quoted)
			return a, err == nil
		}
	}
	return a, false
}
