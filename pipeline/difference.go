package pipeline

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"evalrun/datasets"
)

// Portrait is a request as it is compared with others: its parts as texts, "" for
// none. What its model is called is not in it.
type Portrait struct {
	System   string
	Messages []Said
	Config   string // canonical JSON object
	Tools    string // canonical JSON list
}

// Said is a message of a portrait. One that is not a single text is canonical
// JSON of its parts.
type Said struct{ Role, Text string }

// Portray makes a request comparable.
func Portray(req *Request) Portrait {
	p := Portrait{System: req.System, Config: req.Config.Object().Canonical()}
	for _, m := range req.Messages {
		text := ""
		if len(m.Parts) == 1 && m.Parts[0].Raw.IsZero() {
			text = m.Parts[0].Text
		} else {
			text = canonicalOf(m.Parts)
		}
		p.Messages = append(p.Messages, Said{m.Role, text})
	}
	if len(req.Tools) > 0 {
		p.Tools = canonicalOf(req.Tools)
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

// The parts of a request, as differences name them.
const (
	PartSystem   = "system"
	PartMessages = "messages"
	PartConfig   = "config"
	PartTools    = "tools"
)

// Difference is one thing in which two requests differ.
type Difference struct {
	Part  string // one of the Part constants
	Place string // in words: "the system text", "message 2 (user)"
	Was   string // in the recorded request; "" for nothing
	Is    string // in the other one
}

// Compare calls report for everything in which asked differs from the recorded p.
func (p *Portrait) Compare(asked *Portrait, report func(Difference)) {
	if p.System != asked.System {
		report(Difference{PartSystem, "the system text", p.System, asked.System})
	}
	was, is := p.Messages, asked.Messages
	if len(was) != len(is) {
		// Where messages were put in or left out, pairing by place would call
		// all that follow different.
		from := 0
		for from < min(len(was), len(is)) && was[from] == is[from] {
			from++
		}
		report(Difference{PartMessages, "the number of messages", fmt.Sprint(len(was)), fmt.Sprint(len(is))})
		was, is = was[:min(len(was), from+1)], is[:min(len(is), from+1)]
	}
	for i := range min(len(was), len(is)) {
		if was[i].Role != is[i].Role {
			report(Difference{PartMessages, fmt.Sprintf("the role of message %d", i+1), was[i].Role, is[i].Role})
		}
		if was[i].Text != is[i].Text {
			report(Difference{PartMessages, fmt.Sprintf("message %d (%s)", i+1, is[i].Role), was[i].Text, is[i].Text})
		}
	}
	if p.Config != asked.Config {
		was, is := datasets.ValuesOf(datasets.RawValue(p.Config)), datasets.ValuesOf(datasets.RawValue(asked.Config))
		for _, key := range slices.Compact(slices.Sorted(slices.Values(append(was.Names(), is.Names()...)))) {
			if was[key] != is[key] {
				report(Difference{PartConfig, "config " + key, was[key].JSON(), is[key].JSON()})
			}
		}
	}
	if p.Tools != asked.Tools {
		report(Difference{PartTools, "the tools", p.Tools, asked.Tools})
	}
}

// String is the place, and both texts from a little before where they part.
func (d Difference) String() string {
	at := commonPrefix(d.Was, d.Is)
	where := ""
	if at > 0 {
		where = fmt.Sprintf("from character %d: ", utf8.RuneCountInString(d.Is[:at])+1)
	}
	return fmt.Sprintf("%s (%srecorded %s, asked %s)", d.Place, where, excerpt(d.Was, at), excerpt(d.Is, at))
}

// Size is the number of bytes of both texts outside what they begin and end with
// alike.
func (d Difference) Size() int {
	n := commonPrefix(d.Was, d.Is)
	a, b := d.Was[n:], d.Is[n:]
	const step = 64
	for len(a) >= step && len(b) >= step && a[len(a)-step:] == b[len(b)-step:] {
		a, b = a[:len(a)-step], b[:len(b)-step]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) + len(b)
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
