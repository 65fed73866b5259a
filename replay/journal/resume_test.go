package journal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// sends is a model that tells of each try that it sends, and then does what it is
// to do.
type sends struct {
	failed []pipeline.Attempt // tries before the last one
	reply  *pipeline.Reply
	err    error
	after  func() // once the last try is sent
}

func (m sends) Generate(ctx context.Context, _ *pipeline.Request) (*pipeline.Reply, error) {
	for n := range len(m.failed) + 1 {
		if err := pipeline.Sending(ctx, m.failed[:n]); err != nil {
			return nil, err
		}
	}
	if m.after != nil {
		m.after()
	}
	return m.reply, m.err
}

var throttled = pipeline.Attempt{
	Failure: pipeline.Failf(pipeline.TypeRateLimit, "slow", "too much"), Waited: 3 * time.Millisecond, Wire: 5 * time.Nanosecond,
}

// reply is one with everything that records and totals need.
func fullReply() *pipeline.Reply {
	in, out := int64(7), int64(0)
	return &pipeline.Reply{
		Text: "yes", Finish: "stop", Model: "served-1", System: "fp", Provider: "openai", Usage: pipeline.Usage{Input: &in, Output: &out},
		Response: datasets.RawValue(`{"b":1,"a":2}`), Attempts: []pipeline.Attempt{throttled},
		Waited: 1234567 * time.Nanosecond, Wire: 7654321 * time.Nanosecond,
	}
}

// A reply that is given again is the one that was given, in all that is recorded
// of it; so is a refusal.
func TestReplyReadsBack(t *testing.T) {
	refusal := pipeline.Failf(pipeline.TypeRefusal, "policy", "no")
	refusal.Usage, refusal.Attempts = fullReply().Usage, []pipeline.Attempt{throttled}
	dir := t.TempDir()
	j := openJournal(t, dir)
	if _, err := j.Model(sends{reply: fullReply()}).Generate(t.Context(), request("a", "x")); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Model(sends{err: refusal}).Generate(t.Context(), request("b", "x")); !errors.Is(err, refusal) {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = openJournal(t, dir)
	defer j.Close()
	got := answer(t, j.Model(nil), request("a", "x"))
	want := fullReply()
	want.From = pipeline.FromJournal
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read back it is\n%+v\nwant\n%+v", got, want)
	}
	if _, err := j.Model(nil).Generate(t.Context(), request("b", "x")); !reflect.DeepEqual(err, refusal) {
		t.Errorf("the refusal reads back as %+v, want %+v", err, refusal)
	}
}

// What a cache or another run had stays theirs, also in the process after.
func TestReplyStaysTheirs(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(t, dir)
	cached := fullReply()
	cached.From, cached.Cached = pipeline.FromCache, true
	answer(t, j.Model(scripted(*cached)), request("a", "x"))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	told := 0
	j, err := Open(dir, func(pipeline.Sent) { told++ })
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if got := answer(t, j.Model(nil), request("a", "x")); got.From != pipeline.FromCache || !got.Cached {
		t.Errorf("from %q, cached %v; want it to be the cache's", got.From, got.Cached)
	}
	if told != 0 || j.InDoubt() != 0 {
		t.Errorf("%d requests were sent and %d are in doubt; want none", told, j.InDoubt())
	}
}

// A process that goes on is told what the ones before it sent: what came of it, or
// that nobody knows.
func TestSentIsKnown(t *testing.T) {
	most := int64(100)
	req := func(row string) *pipeline.Request {
		r := request(row, "x")
		r.Site.Purpose, r.Site.Try, r.Site.Inside = "candidate", 2, "0.0"
		r.Config = datasets.Values{"max_tokens": datasets.Int(most)}
		return r
	}
	size := int64(len(req("a").Canonical("m")))
	down := pipeline.Failf(pipeline.TypeServer, "connection", "cut off")
	down.Attempts = []pipeline.Attempt{throttled}
	alone := func(f *pipeline.Failure) pipeline.Attempt { // it is among the tries itself
		last := *f
		last.Attempts = nil
		return pipeline.Attempt{Failure: &last}
	}
	spent := &pipeline.Fatal{Err: errors.New("spent"), Attempts: []pipeline.Attempt{throttled}}
	for _, c := range []struct {
		name  string
		model pipeline.Model
		want  pipeline.Sent
	}{
		{"answered", sends{failed: []pipeline.Attempt{throttled}, reply: fullReply()}, pipeline.Sent{Failed: []pipeline.Attempt{throttled}, Reply: fullReply()}},
		{"lost", sends{failed: []pipeline.Attempt{throttled}, err: down}, pipeline.Sent{Failed: []pipeline.Attempt{throttled, alone(down)}}},
		{"the run ended", sends{err: spent}, pipeline.Sent{Failed: []pipeline.Attempt{throttled}}},
		{"it does not tell", scripted(*fullReply()), pipeline.Sent{Failed: []pipeline.Attempt{throttled}, Reply: fullReply()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			j := openJournal(t, dir)
			_, _ = j.Model(c.model).Generate(t.Context(), req("a"))
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			var got []pipeline.Sent
			j, err := Open(dir, func(s pipeline.Sent) { got = append(got, s) })
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			c.want.Site = pipeline.Site{Purpose: "candidate", Try: 2, Inside: "0.0"}
			c.want.Model, c.want.Size, c.want.MaxTokens = "m", size, &most
			if len(got) != 1 || !reflect.DeepEqual(got[0], c.want) || j.InDoubt() != 0 {
				t.Errorf("%d in doubt, told of\n%+v\nwant\n%+v", j.InDoubt(), got, c.want)
			}
		})
	}
}

// A request is in doubt from before it is sent until its answer is on disk: a kill
// is a copy of the folder as the system has it at that moment.
func TestInDoubt(t *testing.T) {
	dir, killed := t.TempDir(), t.TempDir()
	j := openJournal(t, dir)
	defer j.Close()
	m := j.Model(sends{failed: []pipeline.Attempt{throttled}, reply: fullReply(), after: func() {
		if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
			t.Error(err)
		}
	}})
	answer(t, m, request("a", "x"))
	for range 2 { // it stays in doubt, however often the run is begun again
		var got []pipeline.Sent
		again, err := Open(killed, func(s pipeline.Sent) { got = append(got, s) })
		if err != nil {
			t.Fatal(err)
		}
		if again.InDoubt() != 1 || len(got) == 0 || !got[0].Doubt || got[0].Reply != nil || !reflect.DeepEqual(got[0].Failed, []pipeline.Attempt{throttled}) {
			t.Errorf("%d in doubt: %+v; want one, after a try that failed", again.InDoubt(), got)
		}
		answer(t, again.Model(sends{reply: fullReply()}), request("a", "x"))
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What was forgotten was paid for all the same.
func TestForgottenIsSent(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(t, dir)
	answer(t, j.Model(sends{reply: fullReply()}), request("a", "x"))
	if _, err := j.Forget(Answer{Row: "a"}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	told := 0
	j, err := Open(dir, func(pipeline.Sent) { told++ })
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if told != 1 {
		t.Errorf("told of %d requests, want 1", told)
	}
}

// Another run's answers are taken for the same request about the same row, and
// kept as that run's; not for another request, nor where an answer is to be new.
func TestTakeFrom(t *testing.T) {
	other := t.TempDir()
	j := openJournal(t, other)
	for _, row := range []string{"a", "b", "c"} {
		r := request(row, "x")
		r.Site.Candidate = "old"
		answer(t, j.Model(sends{reply: fullReply()}), r)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	j = openJournal(t, dir)
	if _, err := j.Forget(Answer{Candidate: "new", Row: "c"}); err != nil {
		t.Fatal(err)
	}
	j.TakeFrom("new", Earlier{other, "old"})
	live := &counting{}
	ask := func(row, text string) pipeline.Origin {
		r := request(row, text)
		r.Site.Candidate = "new"
		return answer(t, j.Model(live), r).From
	}
	for _, c := range []struct {
		row, text string
		want      pipeline.Origin
	}{
		{"a", "x", pipeline.FromRun},
		{"a", "x", pipeline.FromRun}, // from our own journal now, and theirs still
		{"b", "y", pipeline.Asked},
		{"c", "x", pipeline.Asked},
		{"d", "x", pipeline.Asked},
	} {
		if got := ask(c.row, c.text); got != c.want {
			t.Errorf("row %s, request %s: from %q, want %q", c.row, c.text, got, c.want)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = openJournal(t, dir)
	defer j.Close()
	if got := ask("a", "x"); got != pipeline.FromRun {
		t.Errorf("without the other run it is from %q", got)
	}
	if names, err := filepath.Glob(filepath.Join(other, "*")); err != nil || len(names) != 1 {
		t.Errorf("the other run's journal is written to: %v (%v)", names, err)
	}
}

// Journals of every version are read: this one was written by version 1.
func TestVersion1(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "v1"))); err != nil {
		t.Fatal(err)
	}
	told := 0
	j, err := Open(dir, func(pipeline.Sent) { told++ })
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	want := fullReply()
	want.From = pipeline.FromJournal
	if got := answer(t, j.Model(nil), request("a", "x")); !reflect.DeepEqual(got, want) {
		t.Errorf("the answer is\n%+v\nwant\n%+v", got, want)
	}
	if id, _, err := j.Begin(pipeline.Site{Row: "a"}, "two", time.Time{}); err != nil || id != "one" {
		t.Errorf("the call is %s (%v), want one", id, err)
	}
	if told != 3 || j.InDoubt() != 1 {
		t.Errorf("%d requests were sent, %d are in doubt; want 3 and 1", told, j.InDoubt())
	}
}
