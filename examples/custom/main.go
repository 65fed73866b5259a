// Command custom is evalrun with a plugin, a metric, a tool and a model of one's own:
//
//	go run ./examples/custom run SPEC
//
// SPEC then knows plugins: [careful], metrics: [starts_alike] and models: {echo:
// {provider: echo}}; a program that declares the tool clock can call it where the
// spec says tools: {live: [clock]}.
package main

import (
	"context"
	"os"
	"strings"

	"evalrun/cmd/evalrun/app"
	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/pipeline"
)

func main() {
	careful, err := pipeline.NewPlugin("careful", pipeline.Version("1.0.0"), pipeline.OnBeforeCall(
		func(context.Context, *pipeline.CallEvent) (*pipeline.Change, error) {
			return &pipeline.Change{Sections: []string{"Answer carefully."}}, nil
		}))
	if err != nil {
		panic(err)
	}
	os.Exit(app.Main(context.Background(), os.Args, app.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr},
		app.WithPlugin(careful), app.WithMetric(startsAlike{}), app.WithTool("clock", pipeline.ToolFunc(clock)), app.WithModel("echo", echo{})))
}

// clock is a tool that says what time it is in a made-up city.
func clock(context.Context, pipeline.Invocation, datasets.Value) (string, error) { return "noon", nil }

// echo is a model that answers with the last thing it was told.
type echo struct{}

func (echo) Generate(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
	last := r.Messages[len(r.Messages)-1]
	return &pipeline.Reply{Text: last.Parts[0].Text, Finish: "stop", Provider: "echo"}, nil
}

// startsAlike is 1 when the answer begins with the first word of the right one.
type startsAlike struct{}

func (startsAlike) Name() string { return "starts_alike" }

func (startsAlike) Score(_ context.Context, row datasets.Row, call *pipeline.Call) (harness.Score, error) {
	for output, answer := range call.Outputs {
		if words := strings.Fields(row.Labels[output].String()); len(words) > 0 {
			if strings.HasPrefix(answer.String(), words[0]) {
				return harness.Score{Value: 1}, nil
			}
			return harness.Score{Feedback: "should begin with " + words[0]}, nil
		}
	}
	return harness.Score{Missing: "the row has no right answer"}, nil
}
