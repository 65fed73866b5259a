package library

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/pipeline"
	"evalrun/pipeline/tools"
	"evalrun/plugins"
	"evalrun/replay"
	"evalrun/replay/conversations"
	"evalrun/reports"
)

const shopYAML = `
name: shop
description: Answer the customer.
inputs: [{name: message, shape: {type: string}}]
outputs: [{name: reply, shape: {type: string}}]
tools:
  - {name: stock, description: How many there are., effects: reads, parameters: {type: object}}
  - {name: order, description: Orders one., effects: changes, parameters: {type: object}}
`

func newCaller(model pipeline.Model) *pipeline.Caller {
	return &pipeline.Caller{
		LM: pipeline.LM{Name: "small", Model: model},
		Tools: tools.Map{
			"stock": pipeline.ToolFunc(stock),
			"order": tools.Command{Argv: []string{"echo", "ordered"}, Timeout: 10 * time.Second},
		},
		Now:   time.Now,
		NewID: func() string { return uuid.Must(uuid.NewV7()).String() },
	}
}

// stock is a tool: it is given the input that the model wrote, and answers with the
// text that the model is told. So is its error.
func stock(_ context.Context, _ pipeline.Invocation, input datasets.Value) (string, error) {
	item, ok := input.Member("item").AsText()
	if !ok {
		return "", fmt.Errorf("item is missing: what is looked for")
	}
	return map[string]string{"tea": "3"}[item], nil
}

// clerk is a model. It looks for tea when it is asked of it, and says what it was told.
type clerk struct{}

func (clerk) Generate(_ context.Context, r *pipeline.Request) (*pipeline.Reply, error) {
	said := r.Messages[len(r.Messages)-1].Parts[0]
	if _, result, ok := said.ToolResult(); ok {
		return &pipeline.Reply{Text: "<reply>\nThe shop says: " + result + "\n</reply>", Finish: "stop"}, nil
	}
	tool := "stock"
	if strings.Contains(said.Text, "Order") {
		tool = "order"
	}
	call := pipeline.ToolCall{ID: "1", Name: tool, Input: datasets.RawValue(`{"item":"tea"}`)}
	return &pipeline.Reply{Calls: []pipeline.ToolCall{call}, Finish: "tool_calls"}, nil
}

func ask(ctx context.Context, caller *pipeline.Caller) error {
	shop, err := pipeline.ParseProgram("shop.yaml", []byte(shopYAML))
	if err != nil {
		return err // with the line, and what may have been meant
	}
	call, err := caller.Ask(ctx, shop, pipeline.Ask{Inputs: message("Is there tea?")})
	if err != nil {
		return err // ctx ended first: there is no call
	}
	if call.Failure != nil {
		return call.Failure // the model was down, its reply could not be read, …
	}
	fmt.Println(call.Outputs["reply"], len(call.Exchanges))
	return nil
}

func message(text string) datasets.Values {
	return datasets.Values{"message": datasets.Text(text)}
}

func converse(ctx context.Context, caller *pipeline.Caller, shop *pipeline.Program, folder string) error {
	store, err := conversations.Open(folder) // <folder>/conversations/<id>.jsonl
	if err != nil {
		return err
	}
	chat, err := caller.Converse(shop, "ada", store, pipeline.ConversationOptions{Last: new(20)})
	if err != nil {
		return err
	}
	first, err := chat.Send(ctx, message("Is there tea?"), pipeline.SendOptions{RequestID: "web-1"})
	if err != nil {
		return err
	}
	if _, err := chat.Send(ctx, message("And milk?"), pipeline.SendOptions{}); err != nil {
		return err // it continues the turn before
	}
	other, err := chat.Send(ctx, message("And coffee?"), pipeline.SendOptions{From: first.ID})
	if err != nil {
		return err // a second branch, after the first turn
	}
	branch, err := chat.Branch(ctx, other.ID)
	if err != nil {
		return err
	}
	turns, err := chat.Turns(ctx)
	fmt.Println(len(turns), "turns,", len(branch), "on the branch;", other.State)
	return err
}

func waits(ctx context.Context, caller *pipeline.Caller, shop *pipeline.Program, store pipeline.Store) error {
	var err error
	if caller.Approval, err = plugins.Approval(plugins.AboutChanges(), nil); err != nil {
		return err
	}
	chat, err := caller.Converse(shop, "bob", store, pipeline.ConversationOptions{})
	if err != nil {
		return err
	}
	turn, err := chat.Send(ctx, message("Order tea"), pipeline.SendOptions{})
	if err != nil {
		return err
	}
	fmt.Println(turn.State)

	// Later, and in another process if need be: Converse with the same id and store.
	turn, err = chat.Turn(ctx, turn.ID)
	if err != nil {
		return err
	}
	for _, q := range turn.Waiting {
		fmt.Println(q.Plugin, "asks about", q.Name, q.Input)
		yes := pipeline.Answer{Allowed: true, By: "bob"}
		if err := chat.Answer(ctx, turn.ID, q.Invocation, q.Plugin, yes); err != nil {
			return err
		}
	}
	turn, err = chat.Resume(ctx, turn.ID, pipeline.TurnOptions{})
	if err != nil {
		return err
	}
	fmt.Println(turn.State, turn.Outputs["reply"])
	return nil
}

func around(key []byte) (*pipeline.Caller, error) {
	guard, err := plugins.Guard(plugins.GuardRule{Tools: []string{"order"}, Arguments: map[string]string{"item": "^gold"}, Reason: "gold is not ordered here"})
	if err != nil {
		return nil, err
	}
	redactor, err := plugins.Redact(plugins.RedactOptions{Key: key, Kinds: []string{"email", "phone"}})
	if err != nil {
		return nil, err
	}
	modes, err := plugins.Modes(map[string]string{"brief": "Answer in one sentence."}, "brief")
	if err != nil {
		return nil, err
	}
	budget, err := plugins.Budget(plugins.BudgetOptions{Size: 4000, Whole: 2})
	if err != nil {
		return nil, err
	}
	caller := newCaller(clerk{})
	compaction, err := plugins.Compaction(plugins.CompactionOptions{Keep: new(10), Caller: caller})
	if err != nil {
		return nil, err
	}
	caller.Conversation = pipeline.Layer{Kind: pipeline.ConversationLayer, Plugins: []*pipeline.Plugin{modes, budget, compaction}}
	caller.Process = pipeline.Layer{Kind: pipeline.ProcessLayer, Plugins: []*pipeline.Plugin{guard, redactor.Plugin()}}
	return caller, nil
}

func run(ctx context.Context, shop *pipeline.Program, log, root string) error {
	calls, err := replay.Open(log)
	if err != nil {
		return err
	}
	defer calls.Close()
	rows, err := replay.Rows(ctx, calls, replay.Query{Program: shop.Name(), Interface: shop.Interface(), Signature: shop.Signature()})
	if err != nil {
		return err
	}
	kind := shop.WithInstruction("Answer the customer kindly.")
	plan := harness.Plan{
		Rows: rows,
		Candidates: []harness.Candidate{
			{Name: "today", Program: shop, Caller: newCaller(clerk{})},
			{Name: "kind", Program: kind, Caller: newCaller(clerk{}), Tools: replay.ToolPolicy{Live: []string{"stock"}}},
		},
		Metrics: []harness.Metric{polite{}},
	}
	checked, err := harness.Check(plan) // what is wrong with the question, before anything is asked
	if err != nil {
		return err
	}
	run, err := harness.StartRun(root, harness.RunInfo{Name: "kind", Started: time.Now(), Tools: "kind: live stock"}, checked)
	if err != nil {
		return err
	}
	defer run.Close()
	evaluations, err := run.Evaluate(ctx, harness.Options{Executor: harness.Local{Workers: 4}})
	if err != nil {
		return err
	}
	report, err := reports.New(run, evaluations, reports.Facts{})
	if err != nil {
		return err
	}
	if _, err := reports.Write(run.Dir, report, []string{"json", "html"}); err != nil {
		return err
	}
	return reports.Text(os.Stdout, report, 80, false)
}

// polite is a metric: 1 when the answer speaks for the shop.
type polite struct{}

func (polite) Name() string { return "polite" }

func (polite) Score(_ context.Context, _ datasets.Row, call *pipeline.Call) (harness.Score, error) {
	if strings.HasPrefix(call.Outputs["reply"].String(), "The shop says") {
		return harness.Score{Value: 1}, nil
	}
	return harness.Score{Feedback: "does not speak for the shop"}, nil
}
