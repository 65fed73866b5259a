package harness

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/replay"
)

// asking runs a tool that asks a program as often as it is told.
type asking struct {
	program *pipeline.Program
	times   int
}

func (a asking) Run(ctx context.Context, in pipeline.Invocation, input datasets.Value) (string, error) {
	var said []string
	for range a.times {
		call, err := in.Ask(ctx, a.program, pipeline.Ask{Inputs: datasets.ValuesOf(input)})
		if err != nil {
			return "", err
		}
		text, err := call.ToolResult()
		if err != nil {
			return "", err
		}
		said = append(said, text)
	}
	return strings.Join(said, " "), nil
}

type toolbox map[string]pipeline.ToolRunner

func (b toolbox) Tool(name string) (pipeline.ToolRunner, bool) { r, ok := b[name]; return r, ok }

// nested is a candidate whose tool asks the program research twice, whose tool
// asks the program look once. A call that uses a tool makes two requests.
func nested(t *testing.T, answer func(path string) *pipeline.Reply) Candidate {
	t.Helper()
	withTool := func(name, tool string) *pipeline.Program {
		definition := strings.Replace(answerProgram, "name: answer", "name: "+name, 1)
		if tool != "" {
			definition += "tools:\n  - {name: " + tool + ", description: Ask., effects: reads, parameters: {type: object}}\n"
		}
		return program(t, definition)
	}
	c := Candidate{Name: "nested", Program: withTool("answer", "research")}
	c.Caller = caller(modelFunc(func(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
		reply := answer(r.Site.Path)
		if len(r.Tools) == 1 && r.Messages[len(r.Messages)-1].Role != "tool" {
			reply.Text, reply.Finish = "", "tool_calls"
			reply.Calls = []pipeline.ToolCall{{ID: "x", Name: r.Tools[0].Name, Input: datasets.RawValue(`{"question":"?"}`)}}
		}
		return reply, nil
	}))
	c.Caller.Tools = toolbox{
		"research": asking{withTool("research", "look"), 2},
		"look":     asking{withTool("look", ""), 1},
	}
	c.Tools.Live = []string{"research", "look"}
	return c
}

// Calls that tools make are in the run's calls, each after the call it lies
// inside, and what they took is in the row's result.
func TestCallsInside(t *testing.T) {
	cand := nested(t, func(string) *pipeline.Reply { return reply("fine") })
	cand.Caller.LM.Price = &pipeline.Price{Input: 1e5, Output: 1e6} // a request of 10 and 2 tokens: 1 + 2
	r := mustCreate(t, mustCheck(t, Plan{Rows: quiz(2), Metrics: []Metric{match{}}, Candidates: []Candidate{cand}}))
	var results []Result
	_, err := r.Evaluate(t.Context(), Options{Observe: func(res Result, _ *pipeline.Call) error {
		results = append(results, res)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	src, err := replay.Open(filepath.Join(r.Dir, CallsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var got []string
	var ids []string
	names := map[string]string{"": "none"}
	for rec, err := range src.Calls(replay.Want{All: true}) {
		if err != nil {
			t.Fatal(err)
		}
		names[rec.ID] = rec.Program.Name
		got = append(got, fmt.Sprintf("%s in %s, root %s, %d requests", rec.Program.Name, names[rec.Parent], names[rec.Root], len(rec.Exchanges)))
		if rec.Parent == "" {
			ids = append(ids, rec.ID)
		}
		if rec.Caller == nil || rec.Caller.Evaluation != r.Manifest.ID {
			t.Errorf("the call of %s is not of the run: %+v", rec.Program.Name, rec.Caller)
		}
	}
	research := []string{"research in answer, root answer, 2 requests", "look in research, root answer, 1 requests"}
	row := slices.Concat([]string{"answer in none, root answer, 2 requests"}, research, research)
	if want := slices.Concat(row, row); !slices.Equal(got, want) {
		t.Errorf("the calls are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	results = append(results, stored(t, r.Dir)...)
	if len(results) != 4 {
		t.Fatalf("%d results, want 2 and the same as stored", len(results))
	}
	for i, res := range results {
		// 2 of its own, and twice 2 of research and 1 of look.
		if res.Requests != 8 || *res.Usage.Input != 80 || *res.Usage.Output != 16 || *res.Usage.Total != 96 || *res.Cost != 24 || res.Cached || res.Call != ids[i%2] {
			t.Errorf("row %s: %d requests, usage %v, cost %v, call %s", res.Row, res.Requests, asJSON(t, res.Usage), *res.Cost, res.Call)
		}
	}
}

// What a call inside does not know, or had to ask, is so for the row.
func TestCallsInsideUnknown(t *testing.T) {
	for _, c := range []struct {
		name    string
		inner   func(*pipeline.Reply)
		outer   bool // the outer calls are answered from a cache
		unknown bool
		cached  bool
	}{
		{"a count unknown", func(r *pipeline.Reply) { r.Usage.Output = nil }, false, true, false},
		{"asked inside", func(*pipeline.Reply) {}, true, false, false},
		{"all from a cache", func(r *pipeline.Reply) { r.Cached = true }, true, false, true},
	} {
		cand := nested(t, func(path string) *pipeline.Reply {
			one := reply("fine")
			if strings.HasSuffix(path, "look") {
				c.inner(one)
			} else {
				one.Cached = c.outer
			}
			return one
		})
		cand.Caller.LM.Price = &pipeline.Price{Input: 1, Output: 1}
		_, err := Evaluate(t.Context(), Plan{Rows: quiz(1), Metrics: []Metric{match{}}, Candidates: []Candidate{cand}}, Options{
			Observe: func(r Result, _ *pipeline.Call) error {
				if (r.Usage.Output == nil) != c.unknown || (r.Cost == nil) != c.unknown || r.Cached != c.cached || *r.Usage.Input != 80 {
					t.Errorf("%s: usage %s, cost %v, cached %v", c.name, asJSON(t, r.Usage), r.Cost, r.Cached)
				}
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
