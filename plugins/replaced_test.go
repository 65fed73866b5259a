package plugins_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
	"evalrun/plugins"
)

// The built-in plugins use nothing that others could not. Here are copies of
// three of them as somebody outside would write them, shorter and with fixed
// options; in the place of the built-in ones they do the same.

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

// recordsOf are all records of conversations, and what the model was sent.
func recordsOf(t *testing.T, store pipeline.Store, m *script, ids ...string) []string {
	t.Helper()
	var list []string
	for _, id := range ids {
		records := must(store.Read(t.Context(), id, 0))(t)
		if len(records) == 0 {
			t.Errorf("there is no conversation %s", id)
		}
		for _, v := range records {
			list = append(list, v.JSON())
		}
	}
	for _, r := range m.sent {
		list = append(list, r.JSON().JSON())
	}
	return list
}

func TestReplacedApproval(t *testing.T) {
	for name, decide := range map[string]func(*[]string) pipeline.Decide{
		"allowed": allow, "refused": refuse,
		"later": func(*[]string) pipeline.Decide { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			run := func(p *pipeline.Plugin) []string {
				m := allTools()
				caller := scriptCaller(m)
				caller.Approval = p
				store := pipeline.NewMemoryStore()
				chat := must(caller.Converse(parseYAML(t, assistantYAML), "alex", store, pipeline.ConversationOptions{}))(t)
				turn := send(t, chat, "x", pipeline.SendOptions{})
				for turn.State == pipeline.TurnWaiting {
					for _, q := range turn.Waiting {
						if err := chat.Answer(t.Context(), turn.ID, q.Invocation, q.Plugin, pipeline.Answer{Allowed: q.Name == "file", By: "kim"}); err != nil {
							t.Fatal(err)
						}
					}
					turn = must(chat.Resume(t.Context(), turn.ID, pipeline.TurnOptions{}))(t)
				}
				return append(recordsOf(t, store, m, "alex"), caller.Tools.(*toolbox).ran...)
			}
			var asked, askedByOwn []string
			builtin := run(must(plugins.Approval(plugins.AboutChanges(), decide(&asked)))(t))
			own := run(must(ownApproval(decide(&askedByOwn)))(t))
			equalLists(t, "the copy's records", own, builtin)
			equalLists(t, "the copy asked", askedByOwn, asked)
		})
	}
}

func TestReplacedCompaction(t *testing.T) {
	run := func(p *pipeline.Plugin) []string {
		m := says("fine")
		store := pipeline.NewMemoryStore()
		o := pipeline.ConversationOptions{Plugins: []*pipeline.Plugin{p}}
		chat := must(scriptCaller(m).Converse(plainProgram(t), "alex", store, o))(t)
		var third string
		for i := range 12 {
			turn := send(t, chat, string(rune('a'+i)), pipeline.SendOptions{})
			if i == 2 {
				third = turn.ID
			}
		}
		for i := range 6 {
			o := pipeline.SendOptions{}
			if i == 0 {
				o.From = third
			}
			send(t, chat, string(rune('A'+i)), o)
		}
		return recordsOf(t, store, m, "alex")
	}
	builtin := run(must(plugins.Compaction(plugins.CompactionOptions{Keep: new(2), Every: 2, Summarize: folds}))(t))
	if !strings.Contains(strings.Join(builtin, "\n"), `"kind":"entry"`) {
		t.Fatal("nothing was folded")
	}
	equalLists(t, "the copy's records", run(must(ownCompaction())(t)), builtin)
}

func TestReplacedDelegate(t *testing.T) {
	long := strings.Repeat("x", 195)
	for id, inner := range map[string]string{"alex": "alex.research", long: long[:150] + ".9d1490f66c2af21a"} {
		run := func(own bool) []string {
			caller, m := delegating(t, plugins.DelegateOptions{})
			if own {
				caller.Tools = only{"research": ownDelegate{caller, parseYAML(t, researchYAML)}}
			}
			store := pipeline.NewMemoryStore()
			chat := must(caller.Converse(parseYAML(t, outerYAML), id, store, pipeline.ConversationOptions{}))(t)
			one := send(t, chat, "a", pipeline.SendOptions{})
			send(t, chat, "b", pipeline.SendOptions{})
			send(t, chat, "fail", pipeline.SendOptions{})
			send(t, chat, "c", pipeline.SendOptions{From: one.ID})
			plain := askWith(t, caller, parseYAML(t, outerYAML), "p")
			return append(recordsOf(t, store, m, id, inner), plain.Outputs.Object().JSON())
		}
		equalLists(t, "the copy's records", run(true), run(false))
	}
}
