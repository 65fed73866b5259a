package provider

import (
	"bytes"
	"strings"
	"testing"

	"evalrun/pipeline"
)

func FuzzReadLines(f *testing.F) {
	one := &pipeline.Request{Model: "m", System: "s", Messages: []pipeline.Message{pipeline.TextMessage("user", "q")}}
	f.Add([]byte(`{"evalrun_replies":1}` + "\n" + `{"request_hash":"` + one.ProbeHash() + `","reply":"x","replicate":1,"usage":{"input_tokens":3}}`))
	f.Add([]byte(`{"request":` + one.JSON().JSON() + `,"response":{"message":{"parts":[{"type":"text","text":"x"}]}},"finish":null}` + "\n\n"))
	f.Add([]byte(`{"request":{"messages":[{"role":"user","parts":[{"type":"image"}]}],"tools":[{}],"config":{"a":1e2}},"reply":""}`))
	f.Add([]byte(`{"evalrun_replies":2}`))
	f.Add([]byte("\uFEFF{\"reply\":\"\\ud800\",\"reply\":1}"))
	f.Fuzz(func(t *testing.T, content []byte) {
		m, err := newRecorded("folder/in.jsonl", ":", readLines(bytes.NewReader(content), "folder/in.jsonl"))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "folder/in.jsonl:") {
				t.Errorf("the error does not name the file: %v", err)
			}
			return
		}
		if m.Len() == 0 {
			t.Error("a file without replies was taken")
		}
		// Whatever was taken can be missed, and be written and read again.
		if _, err := m.Generate(t.Context(), &pipeline.Request{System: "never asked"}); err == nil {
			t.Error("a request that is in no file was answered")
		}
		var again bytes.Buffer
		if err := writeLines(&again, func(yield func(RecordedReply, error) bool) {
			for row, err := range readLines(bytes.NewReader(content), "in") {
				if !yield(row.RecordedReply, err) {
					return
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
		m2, err := newRecorded("again", ":", readLines(&again, "again"))
		if err != nil {
			t.Fatalf("written again it is refused: %v", err)
		}
		for key, i := range m.byKey {
			j, ok := m2.byKey[key]
			if !ok || m.replies[i].otherwise(&m2.replies[j]) != "" {
				t.Errorf("written again a reply differs: %+v, %+v", m.replies[i], m2.replies[j])
			}
		}
	})
}
