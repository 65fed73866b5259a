package plugins

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// Summarize folds turns into a summary: earlier is the summary so far, "" for
// none, and each row is a turn's inputs and outputs by name.
type Summarize func(ctx context.Context, earlier string, rows []datasets.Values) (string, error)

// CompactionOptions say when a conversation's turns are folded, and by whom. One
// of Summarize and Caller is needed.
type CompactionOptions struct {
	Keep      *int      // the latest turns that stay whole; nil means 20
	Every     int       // how many more turns there are before they are folded; 0 means 10
	Summarize Summarize // nil asks the program of [Summarizer]
	Name      string    // the plugin's; "" means "compaction"

	// Of the program that is asked when Summarize is nil.

	Caller *pipeline.Caller     // asks it
	LM     string               // the model to ask instead of the caller's, as its Lookup knows it
	Asked  func(*pipeline.Call) // told each call, for who keeps records of them; nil tells nobody
}

// summaryEntry is the kind of entry that keeps a summary.
const summaryEntry = "summary"

// summary is what such an entry says.
type summary struct {
	through string // the last turn that it covers
	text    string
	turns   int // how many turns it covers
}

func (s summary) data() datasets.Value {
	return datasets.Values{
		"through": datasets.Text(s.through), "text": datasets.Text(s.text), "turns": datasets.Int(int64(s.turns)),
	}.Object()
}

func parseSummary(data datasets.Value) (s summary, err error) {
	var turns int64
	var ok [3]bool
	s.through, ok[0] = data.Member("through").AsText()
	s.text, ok[1] = data.Member("text").AsText()
	turns, ok[2] = data.Member("turns").AsInt()
	if ok != [3]bool{true, true, true} {
		return summary{}, fmt.Errorf("the entry %s is no summary, which is an object of through, text and turns", data.JSON())
	}
	s.turns = int(turns)
	return s, nil
}

// Compaction returns a plugin that keeps a long conversation short. When a turn
// is done and more than keep + every turns of its branch are in no summary, all
// but the last keep are folded into one, which is kept as an entry at that turn.
// The next turns are shown the summary as a section of the instruction, and only
// the turns after it. Each branch has its own summary; the turns stay in the
// conversation as they are.
//
// A summary that fails, or is blank, is reported and nothing is kept: the turns
// stay whole, and the next turn tries again. Entries are found by the plugin's
// name, so two compactions of one conversation need two names.
func Compaction(o CompactionOptions) (*pipeline.Plugin, error) {
	c := compaction{keep: 20, every: 10, summarize: o.Summarize}
	if o.Keep != nil {
		c.keep = *o.Keep
	}
	if o.Every != 0 {
		c.every = o.Every
	}
	name := o.Name
	if name == "" {
		name = "compaction"
	}
	switch {
	case c.keep < 0:
		return nil, fmt.Errorf("%s: it cannot keep %d turns; 0 or more", name, c.keep)
	case c.every < 1:
		return nil, fmt.Errorf("%s: it cannot fold every %d turns; 1 or more", name, c.every)
	case o.Summarize != nil && (o.Caller != nil || o.LM != "" || o.Asked != nil):
		return nil, fmt.Errorf("%s: a caller, a model and who is told of its calls belong to the program that summarizes, and there is a function that does", name)
	case o.Summarize == nil && o.Caller == nil:
		return nil, fmt.Errorf("%s: nobody summarizes; give a function, or a caller that asks the program for it", name)
	case o.Summarize == nil:
		var err error
		if c.summarize, err = o.ask(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return pipeline.NewPlugin(name, pipeline.Version("1.0.0"),
		pipeline.Description("Folds the old turns of a long conversation into a summary."),
		pipeline.OnContext(c.context), pipeline.OnTurnEnd(c.turnEnd))
}

type compaction struct {
	keep, every int
	summarize   Summarize
}

// last is the latest summary of the branch, and how many of its turns are
// covered: 0 when there is no summary, or its last turn is not on the branch.
func last(entries []pipeline.Entry, branch []string) (s summary, covered int, err error) {
	if len(entries) == 0 {
		return summary{}, 0, nil
	}
	if s, err = parseSummary(entries[len(entries)-1].Data); err != nil {
		return summary{}, 0, err
	}
	if covered = slices.Index(branch, s.through) + 1; covered == 0 {
		return summary{}, 0, nil
	}
	return s, covered, nil
}

func (c *compaction) context(_ context.Context, e *pipeline.ContextEvent) (*pipeline.Change, error) {
	branch := e.Branch()
	s, covered, err := last(e.Entries(summaryEntry), branch)
	if err != nil || covered == 0 {
		return nil, err
	}
	keep := []string{} // none is none, not all
	for _, t := range e.Turns() {
		if !slices.Contains(branch[:covered], t.ID) {
			keep = append(keep, t.ID)
		}
	}
	section := fmt.Sprintf("Earlier in this conversation (%d turns, summarized):\n%s", s.turns, s.text)
	return &pipeline.Change{Keep: keep, Sections: []string{section}}, nil
}

func (c *compaction) turnEnd(ctx context.Context, e *pipeline.TurnEndEvent) error {
	if e.State != pipeline.TurnDone {
		return nil
	}
	turns := e.Turns()
	branch := make([]string, len(turns))
	for i, t := range turns {
		branch[i] = t.ID
	}
	before, covered, err := last(e.Entries(summaryEntry), branch)
	if err != nil {
		return err
	}
	open := turns[covered:]
	if len(open) <= c.keep+c.every {
		return nil
	}
	folded := open[:len(open)-c.keep]
	rows := make([]datasets.Values, len(folded))
	for i, t := range folded {
		rows[i] = datasets.Values{}
		maps.Copy(rows[i], t.Inputs)
		maps.Copy(rows[i], t.Outputs)
	}
	text, err := c.summarize(context.WithValue(ctx, foldingKey{}, e.Turn), before.text, rows)
	if err != nil {
		return err
	}
	if strings.TrimSpace(text) == "" {
		return errors.New("the summary is blank; nothing was folded")
	}
	after := summary{folded[len(folded)-1].ID, text, before.turns + len(folded)}
	return e.Remember(summaryEntry, after.data())
}

// foldingKey is the context key of the turn at whose end turns are folded.
type foldingKey struct{}

// ask asks the default program, on the model that the options name.
func (o *CompactionOptions) ask() (Summarize, error) {
	caller := *o.Caller
	if o.LM != "" && o.LM != caller.LM.Name {
		if caller.Lookup == nil {
			return nil, fmt.Errorf("the caller knows no model %q", o.LM)
		}
		var err error
		if caller.LM, err = caller.Lookup(o.LM); err != nil {
			return nil, fmt.Errorf("lm %q: %w", o.LM, err)
		}
	}
	return AskSummarizer(&caller, Summarizer(), o.Asked)
}

// AskSummarizer makes a Summarize of a program: its first input is the summary so
// far, its second the list of rows, and its answer the summary. The calls are
// tagged with the turn at whose end they are made, as "compaction", and told to
// asked when that is not nil.
func AskSummarizer(c *pipeline.Caller, p *pipeline.Program, asked func(*pipeline.Call)) (Summarize, error) {
	inputs := p.Inputs()
	if len(inputs) < 2 {
		return nil, fmt.Errorf("the program %s cannot summarize: it needs an input for the summary so far and one for the new turns", p.Name())
	}
	for _, f := range inputs[2:] {
		if !f.Optional {
			return nil, fmt.Errorf("the program %s cannot summarize: nobody would give it the input %s", p.Name(), f.Name)
		}
	}
	return func(ctx context.Context, earlier string, rows []datasets.Values) (string, error) {
		list, err := datasets.ValueOf(rows)
		if err != nil {
			return "", err
		}
		in := pipeline.Ask{Inputs: datasets.Values{inputs[0].Name: datasets.Text(earlier), inputs[1].Name: list}}
		if turn, ok := ctx.Value(foldingKey{}).(string); ok {
			in.Tags = datasets.Values{"compaction": datasets.Text(turn)}
		}
		call, err := c.Ask(ctx, p, in)
		if err != nil {
			return "", err
		}
		if asked != nil {
			asked(call)
		}
		if call.Failure != nil {
			return "", call.Failure
		}
		return call.Outputs[p.Answer()].String(), nil
	}, nil
}

// Summarizer is the program that summarizes when nothing else does.
func Summarizer() *pipeline.Program {
	p, err := pipeline.ParseProgram("summarize_conversation.yaml", []byte(summarizerYAML))
	if err != nil {
		panic("plugins: " + err.Error()) // it is below
	}
	return p
}

const summarizerYAML = `
name: summarize_conversation
description: |-
  Bring the summary of a conversation up to date with its latest turns.

  Whoever goes on with the conversation reads your summary in the place of these
  turns. Keep every fact, name, number, decision, promise and open question that
  may still matter, and what the person wants and dislikes. Where a new turn
  corrects something, keep what holds now. Leave out greetings and repetition.
  Write plain short sentences, and nothing that neither the summary nor a turn says.
inputs:
  - {name: earlier_summary, desc: The summary so far; empty when there is none., shape: {type: string}}
  - {name: new_turns, desc: "The turns to fold into it, in order.", shape: {type: array, items: {type: object}}}
outputs:
  - {name: summary, shape: {type: string}}
`
