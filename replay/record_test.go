package replay

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"evalrun/internal/canon"
)

// canonical is the form in which two records are compared.
func canonical(t testing.TB, text []byte) string {
	t.Helper()
	b, err := canon.Append(nil, text)
	if err != nil {
		t.Fatalf("%v: %.200s", err, text)
	}
	return string(b)
}

// parseAny reads a line of either kind and returns its way back.
func parseAny(line []byte) (interface{ AppendJSON([]byte) []byte }, error) {
	text, what, err := usable(line)
	switch {
	case err != nil:
		return nil, err
	case what.call:
		return parseRecord(text, what)
	default:
		return parseRating(text, what)
	}
}

func testLines(t testing.TB) [][]byte {
	t.Helper()
	b, err := os.ReadFile("testdata/records.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"))
}

func TestRecordsAreWrittenAsRead(t *testing.T) {
	for i, line := range testLines(t) {
		r, err := parseAny(line)
		if err != nil {
			t.Errorf("line %d: %v", i+1, err)
			continue
		}
		got := r.AppendJSON(nil)
		if canonical(t, got) != canonical(t, line) {
			t.Errorf("line %d:\nread    %s\nwritten %s", i+1, line, got)
		}
		if again, err := parseAny(got); err != nil || !bytes.Equal(again.AppendJSON(nil), got) {
			t.Errorf("line %d is not written the same a second time: %v", i+1, err)
		}
	}
}

func TestRecordFields(t *testing.T) {
	r, err := ParseRecord(testLines(t)[1])
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case r.Format != 2, r.ID != "0190b3c4-0000-7000-8000-000000000002", r.Parent != r.Root,
		r.StartedText() != "2025-01-02T03:04:05.123457Z", *r.Seconds != 0, r.Whole(),
		!r.Outputs.IsZero(), r.Error.Code != "parse-missing", r.Model != "", *r.Confidence != 0.5,
		r.Exchanges == nil, len(r.Saw) != 3, r.Saw[0].SawOf == "", !*r.Saw[1].Steps, r.Saw[1].Without[0] != "reasoning",
		len(r.Saw[2].Extra) != 1, len(r.Sections) != 3, r.Changes[0].Hook != "before_call", !r.Changes[1].Change.IsZero(),
		*r.Replayable, r.Conversation.Parent != "t1", r.WriterRank() != 2, r.Absent != nil, r.Extra != nil:
		t.Errorf("read as %s", r.AppendJSON(nil))
	}
	if r.Inputs.JSON() != "{}" {
		t.Errorf("inputs %s", r.Inputs.JSON())
	}
	r, err = ParseRecord(testLines(t)[0])
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.Inputs.JSON(), `{"z":"last first","a":1.50,"n":12345678901234567890}`; got != want {
		t.Errorf("inputs %s, want the recorded text %s", got, want)
	}
	r, err = ParseRecord(testLines(t)[2])
	if err != nil {
		t.Fatal(err)
	}
	if !r.Started.IsZero() || r.StartedText() != "2025-01-02T03:04:05Z" || r.Seconds != nil || r.Saw != nil {
		t.Errorf("a value of another form was taken: %s", r.AppendJSON(nil))
	}
	if got := strings.Join(r.Absent, " "); got != "parent program model usage confidence" {
		t.Errorf("absent: %s", got)
	}
}

func TestALiteralRecordHasItsNulls(t *testing.T) {
	r := Record{Format: 2, ID: "x"}
	want := `{"functai_call":2,"id":"x","parent":null,"program":{},"outputs":null,"error":null,"model":null,"usage":null,"confidence":null}`
	if got := string(r.AppendJSON(nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestUnusableLines(t *testing.T) {
	for _, c := range []struct{ line, reason string }{
		{"", SkipNotJSON},
		{"   ", SkipNotJSON},
		{`{"functai_call":2,"id":"x"`, SkipNotJSON},
		{`{"functai_call":2,"id":"x"} {}`, SkipNotJSON},
		{`{"functai_call":2,"id":"x",}`, SkipNotJSON},
		{`{"functai_call":2,"id":NaN}`, SkipNotJSON},
		{"{\"functai_call\":2,\"id\":\"\xff\"}", SkipNotUTF8},
		{`[{"functai_call":2,"id":"x"}]`, SkipNotObject},
		{`null`, SkipNotObject},
		{`{}`, SkipNoFormat},
		{`{"id":"x","call":{"functai_call":2}}`, SkipNoFormat},
		{`{"functai_conversation":1,"id":"x"}`, SkipNoFormat},
		{`{"functai_call":3,"id":"x"}`, SkipFormat},
		{`{"functai_call":0,"id":"x"}`, SkipFormat},
		{`{"functai_call":"2","id":"x"}`, SkipFormat},
		{`{"functai_call":null,"id":"x"}`, SkipFormat},
		{`{"functai_call":1.5,"id":"x"}`, SkipFormat},
		{`{"functai_rating":2,"id":"x"}`, SkipFormat},
		{`{"functai_call":2}`, SkipNoID},
		{`{"functai_call":2,"id":""}`, SkipNoID},
		{`{"functai_call":2,"id":7}`, SkipNoID},
		{`{"functai_rating":1,"id":null}`, SkipNoID},
	} {
		_, err := parseAny([]byte(c.line))
		skip, ok := errors.AsType[*SkipError](err)
		if !ok || skip.Reason != c.reason {
			t.Errorf("%s: %v, want %s", c.line, err, c.reason)
		}
	}
	if _, err := ParseRecord([]byte(`{"functai_rating":1,"id":"x"}`)); err == nil {
		t.Error("a rating was read as a call")
	}
	if _, err := ParseRating([]byte(`{"functai_call":1,"id":"x"}`)); err == nil {
		t.Error("a call was read as a rating")
	}
}

func FuzzParse(f *testing.F) {
	for _, line := range testLines(f) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := parseAny(line)
		if err != nil {
			if _, ok := errors.AsType[*SkipError](err); !ok {
				t.Fatalf("%v is no reason to skip", err)
			}
			return
		}
		want, err := canon.Append(nil, line)
		if err != nil {
			return // a number no float64 can hold has no canonical form
		}
		if got := r.AppendJSON(nil); canonical(t, got) != string(want) || bytes.ContainsAny(got, "\r\n") {
			t.Fatalf("read    %s\nwritten %s", line, got)
		}
		checkHead(t, line, r)
	})
}

// checkHead compares what is seen of a call at a glance with what is read of it.
func checkHead(t *testing.T, line []byte, record any) {
	t.Helper()
	r, ok := record.(*Record)
	if !ok {
		return
	}
	want := head{call: true, id: r.ID, root: r.Root, writer: r.WriterRank()}
	if r.Conversation != nil {
		want.conversation = r.Conversation.ID
	}
	got := peek(strings.Trim(string(line), " \t\r\n"))
	if slices.ContainsFunc(r.Saw, func(s Saw) bool { return s.SawOf != "" }) && !got.follows {
		t.Fatalf("not seen that %s saw what another call saw", line)
	}
	if got.follows = false; got != want {
		t.Fatalf("seen %+v of %s\nwant %+v", got, line, want)
	}
}

// Nothing that a scanner is given makes it read out of bounds.
func FuzzScanner(f *testing.F) {
	for _, s := range []string{`{"a":1`, `{"a\`, `{"a":"\"`, `[1,[`, `{"a"`, `{]`, `"`, `{"":}`, `{"a"::,1}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		peek(s)
		formatOf(s)
		lastOnly(s)
		c := enter(s)
		for _, ok := c.element(); ok; _, ok = c.element() {
		}
	})
}

func BenchmarkParseRecord(b *testing.B) {
	line := testLines(b)[0]
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseRecord(line); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendRecord(b *testing.B) {
	line := testLines(b)[0]
	r, err := ParseRecord(line)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(line)))
	var buf []byte
	for b.Loop() {
		buf = r.AppendJSON(buf[:0])
	}
}
