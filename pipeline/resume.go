package pipeline

import (
	"context"
	"fmt"
	"strings"

	"evalrun/internal/par"
)

// Resume goes on with a turn that was interrupted, or that waited for a person
// and has the answers. It is shown what it was shown, and no turn_start or
// context handler runs again; replies that were kept are taken in their order,
// and tools that are known to have run do not run again. A turn that ended is
// returned as it is.
//
// It refuses a turn that is running (conversation-busy), one that still waits
// (turn-waiting), and one with a tool call that may have run (turn-unfinished):
// say what came of it (GiveResult), or that it is to run again (Rerun).
func (c *Conversation) Resume(ctx context.Context, turn string, o TurnOptions) (*Turn, error) {
	attempt := 0
	var made *record
	err := c.append(ctx, func(h *history) (*record, error) {
		attempt = 0
		t, err := h.known(turn)
		if err != nil {
			return nil, err
		}
		switch state := t.state(c.caller.Now()); state {
		case TurnInterrupted, TurnWaiting:
		case TurnRunning:
			return nil, c.isRunning(turn)
		default:
			return nil, nil
		}
		if open := t.unanswered(); len(open) > 0 {
			return nil, waitingFor(turn, open[0].Name)
		}
		if doubt := t.unfinished(); len(doubt) > 0 {
			return nil, Failf(TypeConversation, "turn-unfinished",
				"turn %s was interrupted while tools ran (tool call %s), which may have taken effect; give their results, or have them run again",
				turn, strings.Trim(fmt.Sprint(doubt), "[]"))
		}
		attempt, made = t.attempt+1, t.made
		return c.lease(turn, attempt), nil
	})
	if err != nil {
		return nil, err
	}
	if attempt == 0 {
		return c.Turn(ctx, turn)
	}
	if made.Program != c.program.Version() {
		c.warn(fmt.Sprintf("conversation %s: turn %s was begun with version %s of its program and is resumed with %s",
			c.id, turn, made.Program, c.program.Version()))
	}
	if s := made.Settings; s != nil && s.Plugins != nil && o.Plugins == nil {
		c.warn(fmt.Sprintf("conversation %s: turn %s was begun with plugins of its own and is resumed with the conversation's", c.id, turn))
	}
	o = made.options(o)
	return c.attempt(c.layer(ctx, o), turn, attempt, o, nil)
}

// options are those to go on with a turn with: where o does not say, as the turn
// was begun, as far as its record has them.
func (r *record) options(o TurnOptions) TurnOptions {
	if r.Settings != nil && o.ProgramPlugins == nil {
		o.ProgramPlugins = r.Settings.ProgramPlugins
	}
	return o
}

func (c *Conversation) isRunning(turn string) *Failure {
	return Failf(TypeConversation, "conversation-busy", "turn %s of conversation %s is running", turn, c.id)
}

// Answer records what a person says to a question of a waiting turn, which is
// known by the tool call's number and the plugin that asks. The turn goes on when
// it is resumed. An answer that is there already stands, and another is refused.
func (c *Conversation) Answer(ctx context.Context, turn string, invocation int, plugin string, a Answer) error {
	return c.append(ctx, func(h *history) (*record, error) {
		t, err := h.known(turn)
		if err != nil {
			return nil, err
		}
		if given, ok := t.answers[askedOf{invocation, plugin}]; ok && t.ended == nil {
			if given == a {
				return nil, nil
			}
			return nil, Failf(TypeConversation, "", "the question about tool call %d of turn %s is answered already", invocation, turn)
		}
		for _, w := range t.unanswered() {
			if t.ended == nil && *w.Invocation == invocation && w.Plugin == plugin {
				verdict := "no"
				if a.Allowed {
					verdict = "yes"
				}
				return &record{
					Kind: "approval", Turn: turn, Invocation: &invocation, Plugin: plugin, Verdict: verdict, By: a.By, Reason: a.Reason,
				}, nil
			}
		}
		return nil, Failf(TypeConversation, "", "turn %s waits for no answer to the plugin %s about tool call %d", turn, plugin, invocation)
	})
}

// GiveResult says what came of a tool call that may have run: the turn goes on
// with that when it is resumed.
func (c *Conversation) GiveResult(ctx context.Context, turn string, invocation int, output string) error {
	return c.tell(ctx, turn, invocation, &record{Kind: "tool", State: "given", Output: &output})
}

// Rerun says that a tool call that may have run is to run, or run again, when the
// turn is resumed.
func (c *Conversation) Rerun(ctx context.Context, turn string, invocation int) error {
	return c.tell(ctx, turn, invocation, &record{Kind: "tool", State: "rerun"})
}

func (c *Conversation) tell(ctx context.Context, turn string, invocation int, r *record) error {
	r.Turn, r.Invocation = turn, &invocation
	return c.append(ctx, func(h *history) (*record, error) {
		t, err := h.known(turn)
		if err != nil {
			return nil, err
		}
		if t.state(c.caller.Now()) == TurnRunning {
			return nil, c.isRunning(turn)
		}
		if k := t.tools[invocation]; t.ended != nil || k == nil || !k.Started || k.Output != nil {
			return nil, Failf(TypeConversation, "", "nothing is in doubt about tool call %d of turn %s", invocation, turn)
		}
		return r, nil
	})
}

// Unfinished are the numbers of a turn's tool calls that may have run, in order.
func (c *Conversation) Unfinished(ctx context.Context, turn string) (list []int, err error) {
	err = c.locked(ctx, func(h *history) error {
		t, err := h.known(turn)
		if err == nil && t.ended == nil && t.state(c.caller.Now()) != TurnRunning {
			list = t.unfinished()
		}
		return err
	})
	return list, err
}

// Stop stops a turn. One that is answered here stops at once, one in another
// process when its lease is next renewed; one that nobody is answering ends here.
// A turn that ended stays as it is.
func (c *Conversation) Stop(ctx context.Context, turn string) error {
	running, attempt := false, 0
	err := c.append(ctx, func(h *history) (*record, error) {
		running = false
		t, err := h.known(turn)
		if err != nil || t.ended != nil {
			return nil, err
		}
		running, attempt = t.state(c.caller.Now()) == TurnRunning, t.attempt
		if t.stopping {
			return nil, nil
		}
		return &record{Kind: "stop", Turn: turn}, nil
	})
	if err != nil {
		return err
	}
	if running {
		c.mu.Lock()
		end := c.running[turnAttempt{turn, attempt}]
		c.mu.Unlock()
		if end != nil {
			end(errStopped)
		}
		return nil
	}
	return c.finish(ctx, turn, TurnStopped)
}

// Abandon ends a turn that was interrupted or waits, which nobody is to go on
// with. No turn_end handler hears of it.
func (c *Conversation) Abandon(ctx context.Context, turn string) error {
	return c.finish(ctx, turn, TurnAbandoned)
}

// finish ends a turn that nobody is answering.
func (c *Conversation) finish(ctx context.Context, turn string, state TurnState) error {
	attempt := 0
	var made *record
	err := c.append(ctx, func(h *history) (*record, error) {
		attempt = 0
		t, err := h.known(turn)
		if err != nil || t.ended != nil {
			return nil, err
		}
		if t.state(c.caller.Now()) == TurnRunning {
			return nil, c.isRunning(turn)
		}
		attempt, made = t.attempt+1, t.made
		return c.lease(turn, attempt), nil
	})
	if err != nil || attempt == 0 {
		return err
	}
	lasting := context.WithoutCancel(ctx)
	if state == TurnStopped {
		defer par.Go(lasting, func(ctx context.Context) { c.renew(ctx, turn, attempt, func(error) {}) })()
		if err := c.turnEnd(c.layer(ctx, made.options(TurnOptions{})), turn, state, nil); err != nil {
			return err
		}
	}
	return c.append(lasting, func(h *history) (*record, error) {
		if !h.turns[turn].held(c.holder, attempt) {
			return nil, turnLost(turn)
		}
		return &record{Kind: "ended", Turn: turn, State: string(state), Attempt: attempt, Saw: []sawRecord{}}, nil
	})
}
