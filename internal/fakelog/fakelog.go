// Package fakelog makes simulated call logs for tests and benchmarks: their
// shape is that of a real log, their content is invented. Nothing measured on
// them says anything about a program or a model.
//
// A log of n calls has, in order of their start: calls of four programs of a
// made-up shop in three versions each, with inputs of 1 to 2 KB in words that
// are drawn as words of a language are (a few often, most rarely); conversations
// of several turns, each shown the earlier ones, some with sections; calls made
// inside a module's call; changes of plugins; requests and responses; failures;
// replays of earlier turns by an evaluation; and ratings of a tenth of the
// calls. The same n and seed give the same bytes.
package fakelog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"evalrun/internal/canon"
)

// Module is the module of the programs in a log.
const Module = "shop"

// Triage is the definition of the program shop:triage, of which a log has most
// calls. Reply is that of the conversations' program.
const (
	Triage = `{"name": "triage", "module": "shop", "description": "Say what the customer wants.",
 "inputs": [{"name": "ticket", "shape": {"type": "string"}}],
 "outputs": [{"name": "label", "shape": {"enum": ["refund", "repair", "question", "praise"], "type": "string"}}]}`
	Reply = `{"name": "reply", "module": "shop", "description": "Answer the customer.",
 "inputs": [{"name": "message", "shape": {"type": "string"}}],
 "outputs": [{"name": "answer", "shape": {"type": "string"}}]}`
)

// Write writes a log of n calls and their ratings as JSON lines.
func Write(w io.Writer, n int, seed uint64) error {
	buf := bufio.NewWriterSize(w, 1<<20)
	for line := range Lines(n, seed) {
		_, _ = buf.Write(line.Text) // the error is kept until Flush
		_ = buf.WriteByte('\n')
	}
	return buf.Flush()
}

// WriteFolder writes a log as a folder of day folders, each with a file for each
// of two writing processes.
func WriteFolder(folder string, n int, seed uint64) (err error) {
	var day string
	var files [2]*bufio.Writer
	var opened []*os.File
	end := func() error {
		var errs []error
		for i, f := range opened {
			errs = append(errs, files[i].Flush(), f.Close())
		}
		opened = nil
		return errors.Join(errs...)
	}
	defer func() { err = errors.Join(err, end()) }()
	i := 0
	for line := range Lines(n, seed) {
		if d := line.At.Format(time.DateOnly); d != day {
			if err := end(); err != nil {
				return err
			}
			day = d
			if err := os.MkdirAll(filepath.Join(folder, day), 0o700); err != nil {
				return err
			}
			for p := range files {
				f, err := os.OpenFile(filepath.Join(folder, day, fmt.Sprintf("worker-%d.jsonl", p+1)), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
				if err != nil {
					return err
				}
				opened = append(opened, f)
				files[p] = bufio.NewWriterSize(f, 1<<18)
			}
		}
		_, _ = files[i%2].Write(line.Text)
		_ = files[i%2].WriteByte('\n')
		i++
	}
	return nil
}

// Line is one line of a log.
type Line struct {
	Text []byte    // without the line's end; valid until the next line
	At   time.Time // when it was written
}

// Lines yields the lines of a log of n calls and their ratings.
func Lines(n int, seed uint64) iter.Seq[Line] {
	return func(yield func(Line) bool) {
		g := newGenerator(seed)
		for g.calls < n {
			g.step(n)
			for i := range g.ready {
				if !yield(g.ready[i]) {
					return
				}
			}
			g.ready = g.ready[:0]
		}
	}
}

// program is what records say of one.
type program struct {
	name, kind, answer, signature string
	versions                      [3]string
}

type generator struct {
	r             *rand.Rand
	words         []string // as often as they are drawn
	now           time.Time
	calls         int
	ready         []Line
	conversations []conversation // open ones
	triage, reply program
	brief, desk   program
	lastTurn      string // a conversation's turn that an evaluation replays
	b             []byte
	inputs        []byte
}

type conversation struct {
	id    string
	turns []string // ids of the calls so far
	left  int
}

func newGenerator(seed uint64) *generator {
	r := rand.New(rand.NewPCG(seed, 0x5eed))
	g := &generator{
		r: r, now: time.Date(2025, 3, 3, 8, 0, 0, 0, time.UTC),
		triage: newProgram("triage", "ai", "label", `[{"direction":"input","name":"ticket","purpose":"plain","shape":{"type":"string"},"type":""},{"direction":"output","name":"label","purpose":"plain","shape":{"enum":["refund","repair","question","praise"],"type":"string"},"type":""}]`),
		reply:  newProgram("reply", "ai", "answer", `[{"direction":"input","name":"message","purpose":"plain","shape":{"type":"string"},"type":""},{"direction":"output","name":"answer","purpose":"plain","shape":{"type":"string"},"type":""}]`),
		brief:  newProgram("brief", "ai", "summary", "brief"),
		desk:   newProgram("desk", "module", "reply", "desk"),
	}
	syllables := []string{"ba", "ce", "dil", "fo", "gan", "hu", "ki", "lor", "me", "nas", "o", "pra", "qui", "ren", "su", "tav", "ul", "ve", "wo", "zy", "né", "ß"}
	vocabulary := make([]string, 5000)
	for i := range vocabulary {
		for range 1 + r.IntN(4) {
			vocabulary[i] += syllables[r.IntN(len(syllables))]
		}
	}
	// Drawing by Zipf's law is slow; a word drawn from many draws is as good.
	zipf := rand.NewZipf(r, 1.15, 3, uint64(len(vocabulary)-1))
	for range 1 << 14 {
		g.words = append(g.words, vocabulary[zipf.Uint64()])
	}
	return g
}

func newProgram(name, kind, answer, fields string) program {
	p := program{name: name, kind: kind, answer: answer, signature: canon.Hash([]byte(fields))}
	for i := range p.versions {
		p.versions[i] = canon.Hash(fmt.Append(nil, name, i))
	}
	return p
}

// step makes what happens next: a call, a turn, or a module's call with two
// inside.
func (g *generator) step(n int) {
	g.now = g.now.Add(time.Duration(1+g.r.IntN(6_000_000)) * time.Microsecond)
	switch x := g.r.IntN(100); {
	case x < 25:
		g.turn()
	case x < 30 && g.calls+3 <= n:
		g.module()
	case x < 32 && g.lastTurn != "":
		g.call(callSpec{p: &g.reply, sawOf: g.lastTurn, evaluation: "run-2025-03"})
	case x < 50:
		g.call(callSpec{p: &g.brief})
	default:
		g.call(callSpec{p: &g.triage})
	}
}

// turn takes an open conversation on, or begins one.
func (g *generator) turn() {
	i := g.r.IntN(8)
	if i >= len(g.conversations) {
		g.conversations = append(g.conversations, conversation{id: "c-" + g.id(), left: 2 + g.r.IntN(5)})
		i = len(g.conversations) - 1
	}
	c := &g.conversations[i]
	id := g.call(callSpec{p: &g.reply, conversation: c})
	if len(c.turns) > 0 {
		g.lastTurn = id
	}
	c.turns = append(c.turns, id)
	if c.left--; c.left == 0 {
		g.conversations = append(g.conversations[:i], g.conversations[i+1:]...)
	}
}

// module makes a module's call, recorded when it ends, after those inside it.
func (g *generator) module() {
	id, started := g.id(), g.now
	g.now = g.now.Add(20 * time.Millisecond)
	g.call(callSpec{p: &g.triage, parent: id})
	g.call(callSpec{p: &g.brief, parent: id})
	g.call(callSpec{p: &g.desk, id: id, started: started})
}

type callSpec struct {
	p            *program
	id, parent   string
	started      time.Time
	conversation *conversation
	sawOf        string
	evaluation   string
}

// id is a UUIDv7 of the present moment.
func (g *generator) id() string {
	ms := uint64(g.now.UnixMilli())
	a, b := g.r.Uint64(), g.r.Uint64()
	return fmt.Sprintf("%08x-%04x-7%03x-%04x-%012x", ms>>16, ms&0xffff, a&0xfff, 0x8000|a>>12&0x3fff, b&0xffffffffffff)
}

// text appends about n bytes of words as a JSON string.
func (g *generator) text(b []byte, n int) []byte {
	b = append(b, '"')
	for i, start := 0, len(b); len(b)-start < n; i++ {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, g.word()...)
		switch g.r.IntN(40) {
		case 0:
			b = append(b, ".\\n"...)
		case 1:
			b = append(b, ` \"`...)
			b = append(b, g.word()...)
			b = append(b, `\",`...)
		}
	}
	return append(b, '"')
}

func (g *generator) word() string { return g.words[g.r.Uint32()&(1<<14-1)] }

func (g *generator) chance(percent int) bool { return g.r.IntN(100) < percent }

const timeForm = "2006-01-02T15:04:05.000000Z"

var labels = [...]string{"refund", "repair", "question", "praise"}

// call makes a call's record and, of a tenth of them, a rating. It returns the
// call's id.
func (g *generator) call(s callSpec) string {
	g.calls++
	if s.id == "" {
		s.id, s.started = g.id(), g.now
	}
	root := s.id
	if s.parent != "" {
		root = s.parent
	}
	failed := g.chance(2)
	b := append(g.b[:0], `{"functai_call":2,"id":"`...)
	b = append(b, s.id...)
	b = append(b, `","parent":`...)
	if s.parent == "" {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendQuote(b, s.parent)
	}
	b = fmt.Appendf(b, `,"root":"%s","program":{"name":"%s","kind":"%s","module":"%s","version":"%s"`, root, s.p.name, s.p.kind, Module, s.p.versions[min(g.calls/20_000, 2)])
	if s.p.kind == "ai" {
		b = fmt.Appendf(b, `,"signature":"%s"`, s.p.signature)
	}
	seconds := 0.3 + float64(g.r.IntN(4_000_000))/1e6
	b = fmt.Appendf(b, `,"interface":"%s","answer":"%s"},"started":"%s","seconds":%.6f,"content":true,"inputs":`,
		s.p.signature, s.p.answer, s.started.Format(timeForm), seconds)
	g.inputs = g.inputs[:0]
	input, output := "ticket", ""
	switch s.p.name {
	case "reply":
		input = "message"
		output = string(g.text(nil, 150))
	case "brief":
		input = "document"
		output = string(g.text(nil, 200))
	case "desk":
		input = "case"
		output = string(g.text(nil, 80))
	default:
		output = `"` + labels[g.r.IntN(len(labels))] + `"`
	}
	g.inputs = append(g.inputs, `{"`...)
	g.inputs = append(g.inputs, input...)
	g.inputs = append(g.inputs, `":`...)
	text := len(g.inputs)
	g.inputs = g.text(g.inputs, 1000+g.r.IntN(1000))
	body := g.inputs[text+1 : len(g.inputs)-1]
	g.inputs = append(g.inputs, '}')
	b = append(b, g.inputs...)
	if failed {
		b = append(b, `,"outputs":null`...)
	} else {
		b = fmt.Appendf(b, `,"outputs":{"%s":%s}`, s.p.answer, output)
	}
	b = fmt.Appendf(b, `,"sizes":{"inputs":{"%s":%d}}`, input, len(body))
	if failed {
		b = append(b, `,"error":{"type":"ReplyError","message":"the reply has no closing mark","code":"parse-missing"},"model":null`...)
	} else {
		b = append(b, `,"error":null,"model":"small-1"`...)
	}
	in, out := len(body)/4, len(output)/4
	b = fmt.Appendf(b, `,"usage":{"input_tokens":%d,"output_tokens":%d},"confidence":null`, in, out)
	b = g.exchanges(b, &s, body, output, seconds, failed)
	b = g.context(b, &s)
	if g.chance(30) {
		b = append(b, `,"changes":[{"plugin":"modes","version":"1.2.0","hook":"before_call","change":{"instruction":"Be brief and kind.","settings":{"temperature":0.2}}}`...)
		if g.chance(30) {
			b = append(b, `,{"plugin":"catalogue","version":"0.4.1","hook":"before_call","change":{"sections":[`...)
			b = append(g.text(b, 60), `]}}`...)
		}
		b = append(b, ']')
	}
	b = append(b, `,"caller":{"kind":"script","user":"shop"`...)
	if s.evaluation != "" {
		b = fmt.Appendf(b, `,"evaluation":"%s"`, s.evaluation)
	}
	b = append(b, `},"process":{"host":"h1","pid":4711,"user":"shop","language":"python","runtime":"3.12.4","library":"0.9.0"}}`...)
	g.b = b
	g.emit(b, g.now.Add(time.Duration(seconds*1e9)))
	if !failed && s.parent == "" && s.evaluation == "" && g.chance(12) { // a tenth of all
		g.rating(&s, output)
	}
	return s.id
}

func (g *generator) exchanges(b []byte, s *callSpec, body []byte, output string, seconds float64, failed bool) []byte {
	b = append(b, `,"exchanges":[`...)
	if s.p.kind != "ai" {
		return append(b, ']')
	}
	b = fmt.Appendf(b, `{"model":"small-1","provider":"acme","started":"%s","seconds":%.6f,"cached":false,"finish":"stop","usage":{"input_tokens":%d,"output_tokens":%d},"request":{"config":{"stop":["</%s>"]},"messages":[{"parts":[{"text":"`,
		s.started.Add(1500*time.Microsecond).Format(timeForm), seconds-0.002, len(body)/4, len(output)/4, s.p.answer)
	b = append(b, body...)
	b = fmt.Appendf(b, `","type":"text"}],"role":"user"}],"model":"small-1","system":"Function: %s\n\nReply in exactly this form."},"response":{"text":`, s.p.name)
	if failed {
		b = append(b, `"I am sorry"`...)
	} else {
		b = append(b, output...)
	}
	return fmt.Appendf(b, `},"request_hash":"%s"}]`, canon.Hash(body))
}

// context appends what a call was shown.
func (g *generator) context(b []byte, s *callSpec) []byte {
	b = append(b, `,"saw":[`...)
	c := s.conversation
	switch {
	case s.sawOf != "":
		b = fmt.Appendf(b, `{"saw_of":"%s"}`, s.sawOf)
	case c != nil:
		for i, turn := range c.turns {
			if i > 0 {
				b = append(b, ',')
			}
			b = fmt.Appendf(b, `{"call":"%s"}`, turn)
		}
	}
	b = append(b, ']')
	if c == nil {
		return b
	}
	if g.chance(30) {
		b = append(b, `,"sections":[`...)
		b = append(g.text(b, 100), ']')
	}
	parent := "null"
	if n := len(c.turns); n > 0 {
		parent = fmt.Sprintf(`"t%d"`, n)
	}
	return fmt.Appendf(b, `,"conversation":{"id":"%s","turn":"t%d","parent":%s}`, c.id, len(c.turns)+1, parent)
}

var people = [...]string{"ada", "bo", "chi", "dee", "eve"}

func (g *generator) rating(s *callSpec, output string) {
	at := g.now.Add(time.Duration(1+g.r.IntN(600)) * time.Second)
	b := fmt.Appendf(nil, `{"functai_rating":1,"id":"%s","call":"%s","at":"%s","by":"%s","verdict":`, g.id(), s.id, at.Format(timeForm), people[g.r.IntN(len(people))])
	switch {
	case g.chance(70):
		b = append(b, `"right"`...)
	case s.p.name == "triage":
		b = fmt.Appendf(b, `"wrong","answer":"%s"`, labels[g.r.IntN(len(labels))])
	default:
		b = append(b, `"wrong","answer":`...)
		b = g.text(b, len(output))
	}
	if g.chance(10) {
		b = append(b, `,"note":`...)
		b = g.text(b, 40)
	}
	b = append(b, `,"origin":"review"`...)
	if g.chance(40) {
		b = append(b, `,"sample":"march"`...)
	}
	g.emit(append(b, '}'), at)
}

func (g *generator) emit(b []byte, at time.Time) {
	g.ready = append(g.ready, Line{append([]byte(nil), b...), at})
}
