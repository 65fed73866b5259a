package pipeline_test

import (
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// The request that a call begins with is the one that is sent, when no plugin
// changes anything.
func TestRequestIsWhatIsSent(t *testing.T) {
	m := &model{}
	c := caller(m)
	c.LM.Config = datasets.Values{"temperature": datasets.Int(0)}
	p := program(t, routeYAML)
	shown := datasets.Context{
		Sections: []string{"Be brief."},
		Earlier:  []datasets.Turn{{Inputs: ticket("The lamp is dark."), Outputs: datasets.Values{"result": datasets.Text("repair")}}},
	}
	ask(t, c, p, pipeline.Ask{Inputs: ticket("The hinge is bent."), Context: shown})
	if len(m.sent) != 1 {
		t.Fatalf("%d requests were sent", len(m.sent))
	}
	req, err := c.Request(p, ticket("The hinge is bent."), shown, c.LM.Name)
	if err != nil || req.Hash() != m.sent[0].Hash() {
		t.Errorf("%v\n%s\nwas to be\n%s", err, req.JSON(), m.sent[0].JSON())
	}
	if other, err := c.Request(p, ticket("The hinge is bent."), shown, "another"); err != nil || other.Model != "another" || other.ProbeHash() != req.ProbeHash() {
		t.Errorf("for another model: %+v, %v", other, err)
	}
	if c.LM.Name != "probe" || len(m.sent) != 1 {
		t.Errorf("the caller was changed, or asked something: %s, %d", c.LM.Name, len(m.sent))
	}
	if _, err := c.Request(p, datasets.Values{}, shown, "m"); err == nil {
		t.Error("a row without its input has a request")
	}
}

// Compare names every part in which requests differ, and none else.
func TestCompareRequests(t *testing.T) {
	was := &pipeline.Request{
		Model: "a", System: "Answer.", Config: datasets.Values{"stop": datasets.RawValue(`["x"]`), "seed": datasets.Int(1)},
		Messages: []pipeline.Message{pipeline.TextMessage("user", "Is it red?"), pipeline.TextMessage("assistant", "No.")},
	}
	for _, tt := range []struct {
		name   string
		change func(*pipeline.Request)
		want   []pipeline.Difference
	}{
		{"the model alone", func(r *pipeline.Request) { r.Model = "b" }, nil},
		{"spelling of a number", func(r *pipeline.Request) { r.Config["seed"] = datasets.RawValue("1.0") }, nil},
		{"system", func(r *pipeline.Request) { r.System = "" }, []pipeline.Difference{{Part: "system", Place: "the system text", Was: "Answer."}}},
		{"a message", func(r *pipeline.Request) { r.Messages[0] = pipeline.TextMessage("user", "Is it blue?") }, []pipeline.Difference{
			{Part: "messages", Place: "message 1 (user)", Was: "Is it red?", Is: "Is it blue?"},
		}},
		{"a role", func(r *pipeline.Request) { r.Messages[1].Role = "user" }, []pipeline.Difference{
			{Part: "messages", Place: "the role of message 2", Was: "assistant", Is: "user"},
		}},
		{"one message less", func(r *pipeline.Request) { r.Messages = r.Messages[:1] }, []pipeline.Difference{
			{Part: "messages", Place: "the number of messages", Was: "2", Is: "1"},
		}},
		{"config and tools", func(r *pipeline.Request) {
			delete(r.Config, "seed")
			r.Config["top_p"] = datasets.Int(1)
			r.Tools = []pipeline.Tool{{Name: "look", Description: "Looks."}}
		}, []pipeline.Difference{
			{Part: "config", Place: "config seed", Was: "1"},
			{Part: "config", Place: "config top_p", Is: "1"},
			{Part: "tools", Place: "the tools", Is: `[{"description":"Looks.","name":"look","type":"function"}]`},
		}},
	} {
		is := was.Clone()
		tt.change(is)
		a, b := pipeline.Portray(was), pipeline.Portray(is)
		var got []pipeline.Difference
		a.Compare(&b, func(d pipeline.Difference) { got = append(got, d) })
		if len(got) != len(tt.want) {
			t.Errorf("%s: %q", tt.name, got)
			continue
		}
		for i := range got {
			if got[i] != tt.want[i] {
				t.Errorf("%s: %q, want %q", tt.name, got[i], tt.want[i])
			}
		}
	}
	d := pipeline.Difference{Place: "message 1 (user)", Was: "Is it red?", Is: "Is it blue?"}
	if got, want := d.String(), `message 1 (user) (from character 7: recorded "Is it red?", asked "Is it blue?")`; got != want || d.Size() != 7 {
		t.Errorf("%s, %d; want %s", got, d.Size(), want)
	}
}
