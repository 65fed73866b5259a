package plugins_test

import (
	"context"
	"fmt"
	"strings"

	"evalrun/pipeline"
)

func noDeletes() (*pipeline.Plugin, error) {
	return pipeline.NewPlugin("no-deletes",
		pipeline.Version("1.0.0"),
		pipeline.OnBeforeCall(func(_ context.Context, call *pipeline.CallEvent) (*pipeline.Change, error) {
			return &pipeline.Change{Sections: []string{"Answer carefully. Cite the file you read."}}, nil
		}),
		pipeline.OnToolCall(func(_ context.Context, tool *pipeline.ToolCallEvent) (*pipeline.Change, error) {
			if !strings.HasPrefix(tool.Name, "delete_") {
				return nil, nil
			}
			reason := "deleting is not allowed here"
			return &pipeline.Change{Block: &reason}, nil
		}),
	)
}

// The manual's plugin in Go.
func Example_manual() {
	plugin, err := noDeletes()
	fmt.Println(plugin, err)
	// Output: Plugin("no-deletes", 1.0.0: before_call, tool_call) <nil>
}
