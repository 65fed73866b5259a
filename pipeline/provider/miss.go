package provider

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"unicode"

	"evalrun/pipeline"
)

// What explaining a miss may cost. A run in which every request misses must not
// take a time that grows with the square of its size, so a miss is compared
// with a bounded number of recorded requests, found through an index.
const (
	mostTexts    = 64 << 20 // bytes of requests' texts that are kept; further requests are served, but nothing is explained by them
	mostInBucket = 16       // recorded requests looked at under one key of the index
	mostCompared = 64       // recorded requests a miss is compared with
	linesIndexed = 8        // lines at the end of a question that it is found by
	shortestLine = 8        // bytes of letters and digits a line must have to be found by
	mostListed   = 4        // differences a message lists
)

// portrait is a recorded request as explanations compare it.
type portrait struct {
	pipeline.Portrait
	row      int32
	question string // text of the last user message
}

func portray(req *pipeline.Request) portrait {
	p := portrait{Portrait: pipeline.Portray(req)}
	for _, m := range req.Messages {
		if m.Role == "user" {
			p.question = messageText(m)
		}
	}
	return p
}

// portraits are the recorded requests, in the order of the file.
type portraits struct {
	all   []portrait
	texts map[string]string // one copy of each text, while they are added
	bytes int               // of all texts in texts
	index func() *portraitIndex
}

// add keeps a request unless too much is kept already. Texts that requests share,
// such as worked examples, are kept once.
func (ps *portraits) add(row int32, req *pipeline.Request) {
	if ps.bytes >= mostTexts {
		return
	}
	p := portray(req)
	p.row = row
	p.System, p.Config, p.Tools, p.question = ps.one(p.System), ps.one(p.Config), ps.one(p.Tools), ps.one(p.question)
	for i, m := range p.Messages {
		p.Messages[i] = pipeline.Said{Role: ps.one(m.Role), Text: ps.one(m.Text)}
	}
	ps.all = append(ps.all, p)
}

func (ps *portraits) one(text string) string {
	if same, ok := ps.texts[text]; ok {
		return same
	}
	text = strings.Clone(text) // it may be part of a whole line of the file
	ps.texts[text] = text
	ps.bytes += len(text)
	return text
}

// complete ends the adding. The index is built when the first request misses.
func (ps *portraits) complete() {
	ps.texts = nil
	ps.index = sync.OnceValue(func() *portraitIndex { return newPortraitIndex(ps.all) })
}

// portraitIndex finds recorded requests by what they share with another: the
// question, lines of it, or the system text.
type portraitIndex struct {
	byQuestion, byLine, bySystem map[uint64]*bucket
}

type bucket struct {
	in   []int32 // indexes of portraits, the first mostInBucket
	full bool    // there are more
}

func newPortraitIndex(all []portrait) *portraitIndex {
	x := &portraitIndex{map[uint64]*bucket{}, map[uint64]*bucket{}, map[uint64]*bucket{}}
	for i := range all {
		put(x.byQuestion, hashOf(all[i].question), int32(i))
		put(x.bySystem, hashOf(all[i].System), int32(i))
		for _, h := range lineHashes(all[i].question) {
			put(x.byLine, h, int32(i))
		}
	}
	return x
}

func put(m map[uint64]*bucket, h uint64, i int32) {
	b := m[h]
	switch {
	case b == nil:
		m[h] = &bucket{in: []int32{i}}
	case len(b.in) < mostInBucket:
		b.in = append(b.in, i)
	default:
		b.full = true
	}
}

func hashOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}

// lineHashes names the last lines of a text by their letters and digits alone, so
// that a change of layout, or of all that comes before, does not hide a question.
func lineHashes(text string) []uint64 {
	var hashes []uint64
	for len(text) > 0 && len(hashes) < linesIndexed {
		line := text
		if i := strings.LastIndexByte(text, '\n'); i >= 0 {
			line, text = text[i+1:], text[:i]
		} else {
			text = ""
		}
		folded := strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return unicode.ToLower(r)
			}
			return -1
		}, line)
		if len(folded) < shortestLine {
			continue
		}
		if h := hashOf(folded); !slices.Contains(hashes, h) {
			hashes = append(hashes, h)
		}
	}
	return hashes
}

// nearest returns the recorded request that a person would compare req with: one
// that asks the same question, else one that shares the most lines of it which
// few others have, else one of the same system text or of the file's first
// ones. Among these, the one with the fewest parts, then the fewest bytes, that
// differ; then the first.
func (ps *portraits) nearest(req *pipeline.Request) (*portrait, bool) {
	if len(ps.all) == 0 {
		return nil, false
	}
	asked := portray(req)
	var best *portrait
	bestParts, bestBytes := 0, 0
	for _, i := range ps.candidates(&asked) {
		p := &ps.all[i]
		parts, bytes := 0, 0
		p.Compare(&asked.Portrait, func(d pipeline.Difference) {
			parts++
			bytes += d.Size()
		})
		if best == nil || parts < bestParts || parts == bestParts && bytes < bestBytes {
			best, bestParts, bestBytes = p, parts, bytes
		}
	}
	return best, true
}

// candidates returns indexes of portraits worth comparing, in order.
func (ps *portraits) candidates(asked *portrait) []int32 {
	x := ps.index()
	if b := x.byQuestion[hashOf(asked.question)]; b != nil && asked.question != "" {
		return b.in
	}
	shared := map[int32]int{}
	most := 0
	for _, h := range lineHashes(asked.question) {
		// A line that many requests have says nothing about one of them.
		if b := x.byLine[h]; b != nil && !b.full {
			for _, i := range b.in {
				shared[i]++
				most = max(most, shared[i])
			}
		}
	}
	var found []int32
	for i, n := range shared {
		if n == most {
			found = append(found, i)
		}
	}
	if len(found) == 0 {
		if b := x.bySystem[hashOf(asked.System)]; b != nil {
			found = append(found, b.in...)
		}
		for i := range min(len(ps.all), mostInBucket) {
			found = append(found, int32(i))
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	return found[:min(len(found), mostCompared)]
}

// differs says in words in what req differs from the recorded p.
func (p *portrait) differs(req *pipeline.Request) string {
	asked := pipeline.Portray(req)
	var found []string
	p.Compare(&asked, func(d pipeline.Difference) { found = append(found, d.String()) })
	more := ""
	if n := len(found) - mostListed; n > 0 {
		found, more = found[:mostListed], fmt.Sprintf("; and %d more", n)
	}
	return "differs in " + strings.Join(found, "; ") + more
}
