package conversations_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/replay/conversations"
)

const clerkYAML = `
name: clerk
inputs:
  - {name: message, shape: {type: string}}
outputs:
  - {name: reply, shape: {type: string}}
`

// version1 is a conversation in a folder of the test's own, written in version 1
// of the format: every kind of record is in it, one of a kind that is not known,
// and a member that is not.
func version1(t *testing.T) (file []byte, folder string) {
	t.Helper()
	file, err := os.ReadFile("testdata/v1/conversations/ada.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	folder = t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("testdata/v1")); err != nil {
		t.Fatal(err)
	}
	return file, folder
}

// reopened opens that conversation as another process does, an hour later.
func reopened(t *testing.T, s pipeline.Store) *pipeline.Conversation {
	t.Helper()
	p, err := pipeline.ParseProgram("clerk.yaml", []byte(clerkYAML))
	if err != nil {
		t.Fatal(err)
	}
	c := &pipeline.Caller{
		Now:   func() time.Time { return time.Date(2026, 1, 2, 4, 0, 0, 0, time.UTC) },
		NewID: func() string { return "h2" },
	}
	chat, err := c.Converse(p, "ada", s, pipeline.ConversationOptions{Warn: func(doubt string) { t.Errorf("warned: %s", doubt) }})
	if err != nil {
		t.Fatal(err)
	}
	return chat
}

// Every record of version 1 is read as it was written.
func TestVersion1Records(t *testing.T) {
	file, folder := version1(t)
	lines := strings.Split(strings.TrimSuffix(string(file), "\n"), "\n")
	records := read(t, open(t, folder))
	if len(records) != len(lines) {
		t.Fatalf("%d records in %d lines", len(records), len(lines))
	}
	kinds := map[string]bool{}
	for i, r := range records {
		if r.JSON() != lines[i] {
			t.Errorf("record %d is read as\n%s\nwant\n%s", i, r.JSON(), lines[i])
		}
		kind, _ := r.Member("kind").AsText()
		if state, ok := r.Member("state").AsText(); ok && kind == "tool" {
			kind += " " + state
		}
		kinds[kind] = true
	}
	for _, kind := range []string{
		"program", "turn", "lease", "call", "reply", "tool started", "tool done", "tool given", "tool rerun",
		"waiting", "approval", "entry", "ended", "stop", "head", "mood",
	} {
		if !kinds[kind] {
			t.Errorf("the file has no record of kind %s", kind)
		}
	}
}

// What the records come to.
func TestVersion1Turns(t *testing.T) {
	_, folder := version1(t)
	chat := reopened(t, open(t, folder))
	turns, err := chat.Turns(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range turns {
		failed := ""
		if v.Failure != nil {
			failed = v.Failure.Code
		}
		got = append(got, fmt.Sprintf("%s after %q: %s, call %q, %s %s", v.ID, v.Parent, v.State, v.Call, v.Outputs.Object().JSON(), failed))
	}
	want := []string{
		`t1 after "": done, call "c1", {"reply":"A new hinge is on its way."} `,
		`t2 after "t1": waiting, call "c2", {} `,
		`t3 after "t1": interrupted, call "", {} `,
		`t4 after "": stopped, call "", {} `,
		`t5 after "t1": failed, call "", {} parse-missing`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the turns are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if v := turns[0]; v.RequestID != "r1" || v.Program != "sha256:p1" || v.Attempt != 1 || v.Inputs["photo"].String() != "a.png" {
		t.Errorf("t1 is %+v", v)
	}
	if w := turns[1].Waiting; len(w) != 1 || w[0].Plugin != "approval" || w[0].Name != "pay" || w[0].Input.JSON() != `{"cents":500}` ||
		w[0].Effects != pipeline.EffectsChange || w[0].Path != "clerk/pay" || w[0].Reason != "it changes something" ||
		*w[0].Answer != (pipeline.Answer{Reason: "too dear", By: "kim"}) {
		t.Errorf("t2 waits for %+v", w)
	}
	// The first is known, the second is to run again, of the third nobody knows.
	if doubt, err := chat.Unfinished(t.Context(), "t3"); err != nil || !slices.Equal(doubt, []int{2}) {
		t.Errorf("in doubt are %v (%v), want tool call 2", doubt, err)
	}
	if head, err := chat.Head(t.Context()); err != nil || head != "t1" {
		t.Errorf("the head is %q (%v)", head, err)
	}
	for turn, want := range map[string]string{
		"t2": `[t1 {"name":"brief","strength":0.50}] [ "everywhere"] `,
		"t4": `[ "everywhere"] `,
	} {
		entries, err := chat.Entries(t.Context(), turn, "modes", "mode")
		var got strings.Builder
		for _, e := range entries {
			fmt.Fprintf(&got, "[%s %s] ", e.Turn, e.Data.JSON())
		}
		if err != nil || got.String() != want {
			t.Errorf("on the branch of %s the entries are %s(%v), want %s", turn, &got, err, want)
		}
	}
}

// Going on with a conversation leaves every byte of it where it was.
func TestVersion1GoesOn(t *testing.T) {
	file, folder := version1(t)
	chat := reopened(t, open(t, folder))
	if err := chat.Remember(t.Context(), "t1", "modes", "mode", datasets.Text("careful")); err != nil {
		t.Fatal(err)
	}
	now, err := os.ReadFile(folder + "/conversations/ada.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	added, ok := bytes.CutPrefix(now, file)
	want := `{"functai_conversation":1,"kind":"entry","at":"2026-01-02T04:00:00.000000Z","seq":28,"turn":"t1","plugin":"modes","entry":"mode","data":"careful"}` + "\n"
	if !ok || string(added) != want {
		t.Errorf("added was\n%s, want\n%s; what was there stayed: %v", added, want, ok)
	}
}

// A record of a later version is refused: what it means is not known.
func TestLaterVersion(t *testing.T) {
	_, folder := version1(t)
	s, err := conversations.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), "ada", 28, datasets.RawValue(`{"functai_conversation":2,"kind":"head","turn":"t5"}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := reopened(t, s).Head(t.Context()); err == nil || !strings.Contains(err.Error(), "conversation-format") {
		t.Errorf("error %v, want conversation-format", err)
	}
}
