package provider

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"evalrun/datasets"
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

// portrait is a request as explanations compare it: its parts as texts, "" for
// none.
type portrait struct {
	row      int32
	system   string
	messages []said
	config   string // canonical JSON object
	tools    string // canonical JSON list
	question string // text of the last user message
}

type said struct{ role, text string }

func portray(req *pipeline.Request) portrait {
	p := portrait{system: req.System, config: req.Config.Object().Canonical()}
	for _, m := range req.Messages {
		text := ""
		if len(m.Parts) == 1 && m.Parts[0].Raw.IsZero() {
			text = m.Parts[0].Text
		} else {
			text = canonicalOf(m.Parts)
		}
		p.messages = append(p.messages, said{m.Role, text})
		if m.Role == "user" {
			p.question = messageText(m)
		}
	}
	if len(req.Tools) > 0 {
		p.tools = canonicalOf(req.Tools)
	}
	return p
}

func canonicalOf(v any) string {
	value, err := datasets.ValueOf(v)
	if err != nil {
		return ""
	}
	return value.Canonical()
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
	p.system, p.config, p.tools, p.question = ps.one(p.system), ps.one(p.config), ps.one(p.tools), ps.one(p.question)
	for i, m := range p.messages {
		p.messages[i] = said{ps.one(m.role), ps.one(m.text)}
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
		put(x.bySystem, hashOf(all[i].system), int32(i))
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
		p.compare(&asked, func(_, was, is string) {
			parts++
			bytes += differing(was, is)
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
		if b := x.bySystem[hashOf(asked.system)]; b != nil {
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

// compare calls report for every part in which asked differs from the recorded p,
// with the part's name and its two texts.
func (p *portrait) compare(asked *portrait, report func(part, was, is string)) {
	if p.system != asked.system {
		report("the system text", p.system, asked.system)
	}
	was, is := p.messages, asked.messages
	if len(was) != len(is) {
		// Where messages were put in or left out, pairing by place would call
		// all that follow different.
		from := 0
		for from < min(len(was), len(is)) && was[from] == is[from] {
			from++
		}
		report("the number of messages", fmt.Sprint(len(was)), fmt.Sprint(len(is)))
		was, is = was[:min(len(was), from+1)], is[:min(len(is), from+1)]
	}
	for i := range min(len(was), len(is)) {
		name := fmt.Sprintf("message %d (%s)", i+1, is[i].role)
		if was[i].role != is[i].role {
			report(fmt.Sprintf("the role of message %d", i+1), was[i].role, is[i].role)
		}
		if was[i].text != is[i].text {
			report(name, was[i].text, is[i].text)
		}
	}
	if p.config != asked.config {
		was, is := datasets.ValuesOf(datasets.RawValue(p.config)), datasets.ValuesOf(datasets.RawValue(asked.config))
		for _, key := range slices.Compact(slices.Sorted(slices.Values(append(was.Names(), is.Names()...)))) {
			if was[key] != is[key] {
				report("config "+key, was[key].JSON(), is[key].JSON())
			}
		}
	}
	if p.tools != asked.tools {
		report("the tools", p.tools, asked.tools)
	}
}

// differs says in words in what req differs from the recorded p.
func (p *portrait) differs(req *pipeline.Request) string {
	asked := portray(req)
	var found []string
	p.compare(&asked, func(part, was, is string) {
		found = append(found, part+" "+difference(was, is))
	})
	more := ""
	if n := len(found) - mostListed; n > 0 {
		found, more = found[:mostListed], fmt.Sprintf("; and %d more", n)
	}
	return "differs in " + strings.Join(found, "; ") + more
}

// difference shows two texts from a little before where they part.
func difference(was, is string) string {
	at := commonPrefix(was, is)
	where := ""
	if at > 0 {
		where = fmt.Sprintf("from character %d: ", utf8.RuneCountInString(is[:at])+1)
	}
	return fmt.Sprintf("(%srecorded %s, asked %s)", where, excerpt(was, at), excerpt(is, at))
}

// excerpt quotes the text around byte at, which must begin a character.
func excerpt(text string, at int) string {
	if text == "" {
		return "none"
	}
	const before, after = 16, 40 // characters
	from := at
	for range before {
		_, size := utf8.DecodeLastRuneInString(text[:from])
		from -= size
	}
	to := at
	for range after {
		_, size := utf8.DecodeRuneInString(text[to:])
		to += size
	}
	cut := text[from:to]
	if from > 0 {
		cut = "…" + cut
	}
	if to < len(text) {
		cut += "…"
	}
	return fmt.Sprintf("%q", cut)
}

// commonPrefix is the number of bytes that a and b begin with alike, cut back to
// whole characters.
func commonPrefix(a, b string) int {
	const step = 64
	n, most := 0, min(len(a), len(b))
	for n+step <= most && a[n:n+step] == b[n:n+step] {
		n += step
	}
	for n < most && a[n] == b[n] {
		n++
	}
	for n > 0 && (n < len(a) && !utf8.RuneStart(a[n]) || n < len(b) && !utf8.RuneStart(b[n])) {
		n--
	}
	return n
}

// differing is the number of bytes of a and b outside what they begin and end
// with alike.
func differing(a, b string) int {
	n := commonPrefix(a, b)
	a, b = a[n:], b[n:]
	const step = 64
	for len(a) >= step && len(b) >= step && a[len(a)-step:] == b[len(b)-step:] {
		a, b = a[:len(a)-step], b[:len(b)-step]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) + len(b)
}
