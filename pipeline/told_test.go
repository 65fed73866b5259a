package pipeline

import (
	"context"
	"errors"
	"testing"
)

// What a person said can be read from what the model was told.
func TestRecordedAnswer(t *testing.T) {
	for _, c := range []struct {
		told string
		want Answer
		ok   bool
	}{
		{(&Answer{}).told(), Answer{}, true},
		{(&Answer{Reason: "too dear"}).told(), Answer{Reason: "too dear"}, true},
		{"The person did not allow this call, as it says here.", Answer{Allowed: true}, true},
		{"bought", Answer{Allowed: true}, true},
		{"", Answer{Allowed: true}, true},
		{"error: ToolError: there is no such room", Answer{Allowed: true}, true},
		{"This call was blocked (guard): never on Sundays", Answer{}, false},
	} {
		if got, ok := RecordedAnswer(c.told); got != c.want || ok != c.ok {
			t.Errorf("%q: %+v, %v; want %+v, %v", c.told, got, ok, c.want, c.ok)
		}
	}
}

// The model is told of a tool's own failing, and of nothing else.
func TestToldToModel(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{errors.New("no such room"), true},
		{Failf(TypeTool, "", "no such room"), true},
		{Failf(TypeTimeout, "", "too slow"), true},
		{context.DeadlineExceeded, true}, // its own; a call that is over ends before it is asked
		{&Fatal{Err: errors.New("disk full")}, false},
		{Failf(TypeApproval, "approval-required", ""), false},
		{Failf(TypeToolUnknown, "tool-never-recorded", ""), false},
		{Failf(TypeNotRecorded, "", ""), false},
		{Failf(TypeCancelled, "", ""), false},
		{Failf(TypeTool, "turn-waiting", ""), false},
		{Failf(TypeTool, "turn-unfinished", ""), false},
		{Failf(TypeTool, "tool-unfinished", ""), false},
	} {
		if got := ToldToModel(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}
