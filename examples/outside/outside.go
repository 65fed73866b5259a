// Package outside has copies of three built-in plugins, written as somebody outside
// evalrun would write them: in a module of its own, with public packages alone. Its
// test puts them in the places of the built-in ones and finds the same records.
package outside

import (
	"context"
	"crypto/sha256"
	"errors"
	"evalrun/datasets"
	"evalrun/pipeline"
	"fmt"
	"slices"
	"strings"
)

// ownApproval asks about tools that may change something.
func ownApproval(decide pipeline.Decide) (*pipeline.Plugin, error) {
	return pipeline.NewPlugin("approval", pipeline.Version("1.0.0"),
		pipeline.OnToolCall(func(ctx context.Context, e *pipeline.ToolCallEvent) (*pipeline.Change, error) {
			if e.Effects == pipeline.EffectsRead {
				return nil, nil
			}
			_, err := e.Ask(ctx, "it may change something", decide)
			return nil, err
		}))
}

// ownCompaction keeps two turns and folds every two.
func ownCompaction() (*pipeline.Plugin, error) {
	const keep, every = 2, 2
	latest := func(entries []pipeline.Entry, branch []string) (text string, turns int64, covered int) {
		if len(entries) == 0 {
			return "", 0, 0
		}
		data := entries[len(entries)-1].Data
		through, _ := data.Member("through").AsText()
		if covered = slices.Index(branch, through) + 1; covered > 0 {
			text, _ = data.Member("text").AsText()
			turns, _ = data.Member("turns").AsInt()
		}
		return text, turns, covered
	}
	return pipeline.NewPlugin("compaction", pipeline.Version("1.0.0"),
		pipeline.OnTurnEnd(func(ctx context.Context, e *pipeline.TurnEndEvent) error {
			if e.State != pipeline.TurnDone {
				return nil
			}
			var branch []string
			var rows []datasets.Values
			for _, t := range e.Turns() {
				branch = append(branch, t.ID)
				row := t.Inputs
				for name, v := range t.Outputs {
					row[name] = v
				}
				rows = append(rows, row)
			}
			text, turns, covered := latest(e.Entries("summary"), branch)
			if len(rows)-covered <= keep+every {
				return nil
			}
			end := len(rows) - keep
			text, err := folds(ctx, text, rows[covered:end])
			if err == nil && strings.TrimSpace(text) == "" {
				err = errors.New("blank")
			}
			if err != nil {
				return err
			}
			return e.Remember("summary", datasets.Values{
				"through": datasets.Text(branch[end-1]), "text": datasets.Text(text), "turns": datasets.Int(turns + int64(end-covered)),
			}.Object())
		}),
		pipeline.OnContext(func(_ context.Context, e *pipeline.ContextEvent) (*pipeline.Change, error) {
			text, turns, covered := latest(e.Entries("summary"), e.Branch())
			if covered == 0 {
				return nil, nil
			}
			change := &pipeline.Change{
				Keep:     []string{},
				Sections: []string{fmt.Sprintf("Earlier in this conversation (%d turns, summarized):\n%s", turns, text)},
			}
			for _, t := range e.Turns() {
				if slices.Index(e.Branch(), t.ID) >= covered {
					change.Keep = append(change.Keep, t.ID)
				}
			}
			return change, nil
		}))
}

// ownDelegate asks research in a conversation of its own.
type ownDelegate struct {
	caller  *pipeline.Caller
	program *pipeline.Program
}

func (d ownDelegate) Effects() pipeline.Effects { return d.program.AsTool().Effects }

func (d ownDelegate) Run(ctx context.Context, in pipeline.Invocation, input datasets.Value) (string, error) {
	name := d.program.Name()
	outer, _, inTurn := pipeline.TurnOf(ctx)
	if !inTurn {
		call, err := in.Ask(ctx, d.program, pipeline.Ask{Inputs: datasets.ValuesOf(input)})
		if err != nil {
			return "", err
		}
		return call.ToolResult()
	}
	id := outer.ID() + "." + name
	if len(id) > 200 {
		id = fmt.Sprintf("%.150s.%.8x", outer.ID(), sha256.Sum256([]byte(id)))
	}
	inner, err := d.caller.Converse(d.program, id, outer.Store(), pipeline.ConversationOptions{})
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256([]byte(input.Canonical()))
	o := pipeline.SendOptions{
		RequestID: fmt.Sprintf("%s.%d.%.8x", in.Turn(), in.Site().Invocation, hash),
		Anew:      true, Nested: true, Turn: pipeline.TurnOptions{Site: in.Site(), Inside: in},
	}
	if places := in.Notes().Entries("delegate", name); len(places) > 0 {
		o.From, o.Anew = places[len(places)-1].Data.Member("turn").String(), false
	}
	turn, err := inner.Send(ctx, datasets.ValuesOf(input), o)
	if err != nil {
		return "", err
	}
	if turn.State != pipeline.TurnDone {
		return "", turn.Failure
	}
	if err := in.Notes().Remember("delegate", name, datasets.Values{"turn": datasets.Text(turn.ID)}.Object()); err != nil {
		return "", err
	}
	return turn.Record.ToolResult()
}
