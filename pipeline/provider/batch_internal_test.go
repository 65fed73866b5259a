package provider

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"evalrun/datasets"
	"evalrun/pipeline"
)

func newBatched(t testing.TB) *batched {
	t.Helper()
	now := func() time.Time { return clock }
	lm, err := Open("openai", Options{Name: "m", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLimiter("m", DefaultLimits(), now, 0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := l.Batch(lm.Model, BatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m.(*batched)
}

// TestBatchBounds: a batch has no more requests and bytes than the service takes,
// and each line of its file is JSON, whatever is in it.
func TestBatchBounds(t *testing.T) {
	for _, c := range []struct {
		most, mostBytes int
		want            []int // requests in the batches
	}{
		{100, 1 << 20, []int{7}},
		{3, 1 << 20, []int{3, 3, 1}},
		{100, 600, []int{2, 2, 2, 1}},
		{100, 1, []int{1, 1, 1, 1, 1, 1, 1}}, // more than it takes, alone
	} {
		m := newBatched(t)
		m.most, m.mostBytes, m.found = c.most, c.mostBytes, true
		for i := range 7 {
			m.enter(&pipeline.Request{
				Messages: []pipeline.Message{pipeline.TextMessage("user", fmt.Sprintf("%d\nand \"more\"", i))},
				Config:   datasets.Values{"stop": datasets.RawValue("[\n \"x\",\r\n\"y\"]")},
			}, clock.Add(-time.Hour))
		}
		for i := 0; ; i++ {
			entries, file := m.gather()
			if len(entries) == 0 {
				if i != len(c.want) {
					t.Errorf("most %d, %d bytes: %d batches, want %d", c.most, c.mostBytes, i, len(c.want))
				}
				break
			}
			lines := bytes.Split(bytes.TrimSuffix(file, []byte("\n")), []byte("\n"))
			if i < len(c.want) && len(entries) != c.want[i] || len(lines) != len(entries) {
				t.Errorf("most %d, %d bytes: batch %d has %d requests on %d lines", c.most, c.mostBytes, i, len(entries), len(lines))
			}
			for _, line := range lines {
				if !jsontext.Value(line).IsValid() {
					t.Errorf("the line %q is no JSON", line)
				}
			}
		}
	}
}

// FuzzBatchResults: whatever a service writes into the file of a batch's answers, a
// request ends with an answer that can be read, a failure of a known type, or is
// sent again.
func FuzzBatchResults(f *testing.F) {
	id := batchID(&pipeline.Request{})
	for _, line := range []string{
		`{"custom_id":"ID","response":{"status_code":200,"body":{"choices":[{"message":{"content":"x"}}]}},"error":null}`,
		`{"custom_id":"ID","response":{"status_code":400,"body":{"error":{"message":"no","code":"unsupported_parameter","param":"top_p"}}}}`,
		`{"custom_id":"ID","response":{"status_code":-7,"body":"\ud800"},"error":{"code":"batch_expired"}}`,
		`{"custom_id":"ID","response":null,"error":{"code":"batch_expired","message":"late"}}`,
		"{}\n[]\n\n{\"custom_id\":7}",
	} {
		f.Add([]byte(strings.ReplaceAll(line, "ID", id)))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		m := newBatched(t)
		m.found = true
		e := m.enter(&pipeline.Request{Config: datasets.Values{"top_p": datasets.Int(1)}}, clock.Add(-time.Hour))
		e.id = id
		m.open = map[string]*batchEntry{id: e}
		m.gather()
		b := &batch{id: "b", ids: []string{id}}
		m.watch(b)
		m.finish(b, &batchObject{ID: "b", Status: "completed"}, readResults(file))
		closed := false
		select {
		case <-e.done:
			closed = true
		default:
		}
		switch {
		case closed == e.queued:
			t.Errorf("the request has ended: %v; it is to be sent again: %v", closed, e.queued)
		case e.failure != nil:
			if e.failure.Class() == "other" || e.failure.Message == "" {
				t.Errorf("the failure is %+v", e.failure)
			}
		case closed:
			if reply, err := m.read(&answer{body: e.answer, wire: time.Second}); err == nil {
				checkRead(t, reply)
			}
		}
	})
}
