package plugins

import (
	"os"
	"strings"
	"testing"

	"evalrun/datasets"
)

// The lines that the manual shows are lines of the protocol.
func TestManualProtocol(t *testing.T) {
	b, err := os.ReadFile("../docs/plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(b), "\n```text\n")
	block, _, _ = strings.Cut(block, "\n```\n")
	var id int64
	answers, shaken := 0, false
	for line := range strings.SplitSeq(block, "\n") {
		kind, text := line[:2], line[2:]
		switch v, err := datasets.ParseValue(text); {
		case err != nil:
			t.Errorf("%s: %v", text, err)
		case kind == "> ":
			if n, ok := v.Member("id").AsInt(); ok {
				id = n
			}
		case !shaken:
			shaken = true
			if _, err := parseHello([]byte(text)); err != nil {
				t.Error(err)
			}
		default:
			answers++
			if _, err := parseAnswer([]byte(text), id); err != nil {
				t.Error(err)
			}
		}
	}
	if answers != 5 {
		t.Errorf("there are %d answers", answers)
	}
}

// Whatever a program writes, reading it ends, without a panic, and what is read
// as an answer is one.
func FuzzParseAnswer(f *testing.F) {
	for _, s := range []string{
		`{"id":1}`, `{"id":1,"change":{"sections":["a"]}}`, `{"id":1,"request":{"model":"m","messages":[]}}`, `{"id":1,"error":"x"}`,
		`{"id":1,"entries":"mode"}`, `{"id":1,"remember":{"kind":"k","data":null}}`, `{"id":1,"ask":""}`, `{"id":2}`, `{"id":1,"id":1}`,
		`{"evalrun_plugin":1,"name":"a","version":"1","api":1,"description":"","hooks":["request"]}`, `[]`, `null`, `{"id":1e0}`, "\xff", `{"id":1,"change":"\ud800"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if a, err := parseAnswer(line, 1); err == nil && a.ID != 1 {
			t.Errorf("%q was read as an answer to event %d", line, a.ID)
		}
		if h, err := parseHello(line); err == nil && (h.Protocol != protocol || h.Hooks == nil) {
			t.Errorf("%q was read as the handshake %+v", line, h)
		}
	})
}
