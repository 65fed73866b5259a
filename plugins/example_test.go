package plugins_test

import (
	"context"
	"fmt"
	"strings"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/plugins"
)

func ExampleApproval() {
	approval, err := plugins.Approval(plugins.AboutChanges(), func(_ context.Context, e *pipeline.ToolCallEvent) (pipeline.Answer, error) {
		return pipeline.Answer{Allowed: e.Name != "delete_file", Reason: "files stay"}, nil
	})
	if err != nil {
		panic(err)
	}
	caller := pipeline.Caller{Approval: approval} // and a model, a clock, ids
	fmt.Println(caller.Approval)
	// Output: Plugin("approval", 1.0.0: tool_call)
}

func ExampleGuard() {
	guard, err := plugins.Guard(
		plugins.GuardRule{Tools: []string{"delete_file"}, Reason: "deleting files is not allowed here"},
		plugins.GuardRule{Arguments: map[string]string{"/recipient/address": `@rival\.example$`}, Reason: "nothing is sent there"},
	)
	if err != nil {
		panic(err)
	}
	fmt.Println(guard)
	// Output: Plugin("guard", 1.0.0: tool_call)
}

func ExampleRedact() {
	redactor, err := plugins.Redact(plugins.RedactOptions{
		Key:      []byte("keep this one to yourself"),
		Patterns: map[string]string{"customer": `customer (\d+)`},
	})
	if err != nil {
		panic(err)
	}
	hidden, err := redactor.Hide("customer 4711, ann@mail.example")
	if err != nil {
		panic(err)
	}
	fmt.Println(strings.Contains(hidden, "4711"), strings.HasPrefix(hidden, "customer [customer:"))
	fmt.Println(redactor.Restore(hidden))
	fmt.Println(redactor.Plugin())
	// Output:
	// false true
	// customer 4711, ann@mail.example
	// Plugin("redact", 1.0.0: request, tool_call, tool_result, turn_start)
}

func ExampleCompaction() {
	compaction, err := plugins.Compaction(plugins.CompactionOptions{
		Keep: new(4), Every: 6,
		Summarize: func(_ context.Context, earlier string, rows []datasets.Values) (string, error) {
			for _, row := range rows {
				earlier += row["message"].String() + "\n"
			}
			return earlier, nil
		},
	})
	if err != nil {
		panic(err)
	}
	o := pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{compaction}}
	fmt.Println(o.Plugins[0])
	// Output: Plugin("compaction", 1.0.0: context, turn_end)
}

func ExampleDelegate() {
	research, err := pipeline.ParseProgram("research.yaml", []byte(`
name: research
description: Look things up in the notes.
inputs:
  - {name: question, shape: {type: string}}
outputs:
  - {name: answer, shape: {type: string}}
`))
	if err != nil {
		panic(err)
	}
	caller := &pipeline.Caller{} // and a model, a clock, ids
	tool, err := plugins.Delegate(plugins.DelegateOptions{Program: research, Caller: caller})
	if err != nil {
		panic(err)
	}
	d := tool.Definition()
	fmt.Println(d.Name, d.Effects, d.Parameters)
	// Output: research reads {"type":"object","properties":{"question":{"type":"string"}},"required":["question"]}
}

func ExampleBudget() {
	budget, err := plugins.Budget(plugins.BudgetOptions{Fields: []string{"photo"}, Size: 4000, Whole: 2})
	if err != nil {
		panic(err)
	}
	fmt.Println(budget)
	// Output: Plugin("budget", 1.0.0: context)
}

func ExampleModes() {
	modes, err := plugins.Modes(map[string]string{
		"careful": "Answer carefully. Cite the file you read.",
		"brief":   "Answer in one sentence.",
	}, "careful")
	if err != nil {
		panic(err)
	}
	fmt.Println(modes)
	// A host sets the mode of a conversation at a turn:
	//
	//	chat.Remember(ctx, turn.ID, plugins.ModesPlugin, plugins.ModeEntry, datasets.Text("brief"))

	// Output: Plugin("modes", 1.0.0: before_call)
}
