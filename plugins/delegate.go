package plugins

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// DelegateOptions say what tool a program becomes.
type DelegateOptions struct {
	Program     *pipeline.Program // who answers
	Caller      *pipeline.Caller  // asks it inside a conversation; not needed with Forget
	Name        string            // the tool's; "" means the program's
	Description string            // "" means the program's, else "Ask <program>."
	Effects     pipeline.Effects  // "" means what the program's own tools come to
	Forget      bool              // ask anew each time, with no conversation

	Conversation pipeline.ConversationOptions // of its own conversations
}

// DelegateTool is a program as a tool that remembers. It is safe for concurrent
// use.
type DelegateTool struct {
	definition pipeline.ToolDefinition
	o          DelegateOptions
}

// delegatePlugin is the name under which a delegate's place is kept.
const delegatePlugin = "delegate"

// Delegate makes another program a tool. Asked inside a conversation's turn, it
// answers in a conversation of its own, <conversation>.<tool> in the same store,
// which follows the branch of the turn that asked: it goes on after what it last
// answered on that branch, and begins anew where it answered nothing yet. Its
// place is kept as an entry at the asking turn once it has answered. Its call is
// recorded inside the tool's. When the asking turn is resumed, a question that was
// answered before is not asked again. Outside a turn it is asked plainly.
//
// The asking turn's plugins apply to it too: a conversation's plugins are around
// all that is called inside. A program that is only replayed asks its delegates
// plainly, since no turn is running.
func Delegate(o DelegateOptions) (*DelegateTool, error) {
	if o.Program == nil {
		return nil, errors.New("delegate: there is no program")
	}
	d := o.Program.AsTool()
	if o.Name != "" {
		d.Name = o.Name
	}
	if o.Description != "" {
		d.Description = o.Description
	}
	if o.Effects != "" {
		d.Effects = o.Effects
	}
	if o.Caller == nil && !o.Forget {
		return nil, fmt.Errorf("delegate %s: it needs a caller for its conversations; without them, say that it forgets", d.Name)
	}
	if err := pipeline.CheckConversationID("c." + d.Name); err != nil {
		return nil, fmt.Errorf("delegate: the tool's name becomes part of a conversation's: %w", err)
	}
	return &DelegateTool{d, o}, nil
}

// Definition is the tool as the programs that use it declare it.
func (t *DelegateTool) Definition() pipeline.ToolDefinition { return t.definition }

// Effects are those of the definition.
func (t *DelegateTool) Effects() pipeline.Effects { return t.definition.Effects }

// Run asks the program.
func (t *DelegateTool) Run(ctx context.Context, in pipeline.Invocation, input datasets.Value) (string, error) {
	if input.Kind() != '{' {
		return "", pipeline.Failf(pipeline.TypeInterface, "interface-input",
			"the input must be an object of %s's inputs, not %s", t.definition.Name, input.JSON())
	}
	inputs := datasets.ValuesOf(input)
	outer, _, inTurn := pipeline.TurnOf(ctx)
	if t.o.Forget || !inTurn || in.Notes() == nil {
		call, err := in.Ask(ctx, t.o.Program, pipeline.Ask{Inputs: inputs})
		if err != nil {
			return "", err
		}
		return call.ToolResult()
	}
	return t.goOn(ctx, outer, in, inputs)
}

// goOn asks the program in its own conversation, where it stopped on this branch.
func (t *DelegateTool) goOn(ctx context.Context, outer *pipeline.Conversation, in pipeline.Invocation, inputs datasets.Values) (string, error) {
	name := t.definition.Name
	inner, err := t.o.Caller.Converse(t.o.Program, delegateID(outer.ID(), name), outer.Store(), t.o.Conversation)
	if err != nil {
		return "", err
	}
	site := in.Site()
	if strings.Count(site.Inside, "/") >= deepest {
		return "", pipeline.Failf(pipeline.TypeTool, "", "calls lie %d deep inside calls: delegates ask each other in a circle", deepest)
	}
	if site.Inside != "" {
		site.Inside += "/"
	}
	site.Inside += strconv.Itoa(site.Invocation) + ".0"
	asking := pipeline.TurnOptions{Site: site, Inside: in}
	send := pipeline.SendOptions{RequestID: requestID(in, inputs), Anew: true, Nested: true, Turn: asking}
	last := ""
	if places := in.Notes().Entries(delegatePlugin, name); len(places) > 0 {
		last, _ = places[len(places)-1].Data.Member("turn").AsText()
		send.From, send.Anew = last, last == ""
	}
	turn, err := inner.Send(ctx, inputs, send)
	if err == nil && turn.Record == nil && (turn.State == pipeline.TurnInterrupted || turn.State == pipeline.TurnWaiting) {
		// It was begun before the asking turn was cut off.
		turn, err = inner.Resume(ctx, turn.ID, asking)
	}
	if err != nil {
		return "", err
	}
	if turn.State != pipeline.TurnDone {
		if turn.Failure == nil {
			return "", pipeline.Failf(pipeline.TypeConversation, "", "the turn %s of %s is %s", turn.ID, inner.ID(), turn.State)
		}
		return "", turn.Failure
	}
	if turn.ID != last {
		place := datasets.Values{"turn": datasets.Text(turn.ID)}.Object()
		if err := in.Notes().Remember(delegatePlugin, name, place); err != nil {
			if f, ok := errors.AsType[*pipeline.Failure](err); ok {
				return "", f
			}
			// The next answer would not know of this one: nothing a model can mend.
			return "", &pipeline.Fatal{Err: err}
		}
	}
	answered := &pipeline.Call{Program: t.o.Program, Outputs: turn.Outputs}
	return answered.ToolResult()
}

// requestID names what a tool call asks, and is the same when the asking turn is
// resumed: <turn>.<invocation>, with where in the turn's call that is when a
// helper makes it, and a hash of the inputs, since a tool may ask twice.
func requestID(in pipeline.Invocation, inputs datasets.Values) string {
	site := in.Site()
	place := strconv.Itoa(site.Invocation)
	if site.Inside != "" {
		place = site.Inside + "/" + place
	}
	sum := sha256.Sum256([]byte(inputs.Object().Canonical()))
	return in.Turn() + "." + place + "." + hex.EncodeToString(sum[:8])
}

// deepest is how deep delegates may ask delegates: in a circle, they would for ever.
const deepest = 16

// longestID is how long a conversation's id may be.
const longestID = 200

// delegateID names a delegate's conversation. What would be too long for an id
// keeps its beginning, for people, and the hash of the whole, to be its own.
func delegateID(outer, tool string) string {
	id := outer + "." + tool
	if len(id) <= longestID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return outer[:min(150, len(outer))] + "." + hex.EncodeToString(sum[:8])
}
