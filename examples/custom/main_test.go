package main

import (
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// What the example gives the command does what it says.
func TestCustom(t *testing.T) {
	row := datasets.Row{Labels: datasets.Values{"answer": datasets.Text("blue sky")}}
	for answer, want := range map[string]float64{"blue sea": 1, "red": 0} {
		s, err := startsAlike{}.Score(t.Context(), row, &pipeline.Call{Outputs: datasets.Values{"answer": datasets.Text(answer)}})
		if err != nil || s.Value != want {
			t.Errorf("%s scores %+v, %v; want %v", answer, s, err, want)
		}
	}
	reply, err := echo{}.Generate(t.Context(), &pipeline.Request{Messages: []pipeline.Message{pipeline.TextMessage("user", "hello")}})
	if err != nil || reply.Text != "hello" {
		t.Errorf("echo says %+v, %v", reply, err)
	}
}
