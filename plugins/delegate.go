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
// place is kept as an entry at the asking turn once it has answered. Outside a
// turn it is asked plainly.
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
	send := pipeline.SendOptions{Anew: true, Nested: true, Turn: pipeline.TurnOptions{Site: site}}
	if places := in.Notes().Entries(delegatePlugin, name); len(places) > 0 {
		send.From, _ = places[len(places)-1].Data.Member("turn").AsText()
		send.Anew = send.From == ""
	}
	turn, err := inner.Send(ctx, inputs, send)
	if err != nil {
		return "", err
	}
	if turn.State != pipeline.TurnDone {
		if turn.Failure == nil {
			return "", pipeline.Failf(pipeline.TypeConversation, "", "the turn %s of %s is %s", turn.ID, inner.ID(), turn.State)
		}
		return "", turn.Failure
	}
	place := datasets.Values{"turn": datasets.Text(turn.ID)}.Object()
	if err := in.Notes().Remember(delegatePlugin, name, place); err != nil {
		if f, ok := errors.AsType[*pipeline.Failure](err); ok {
			return "", f
		}
		// The next answer would not know of this one: nothing a model can mend.
		return "", &pipeline.Fatal{Err: err}
	}
	return turn.Record.ToolResult()
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
