package pipeline

import (
	"time"

	"evalrun/datasets"
)

// Call is one asking of a program: a finished fact, failure included.
type Call struct {
	ID, Parent, Root string // UUIDv7s; Parent is "" for an outermost call
	Program          *Program
	Site             Site
	Started          time.Time
	Seconds          float64 // wall clock
	Inputs           datasets.Values
	Outputs          datasets.Values // nil when the call failed before an answer
	Failure          *Failure        // nil when it was answered
	LM               string          // the model that was asked
	Model            string          // the model that answered, as it says; else LM
	Exchanges        []Exchange      // every model request in order, failed ones included
	SawOf            string          // the rated call whose earlier turns it was shown; "" when it saw none
	Sections         []string        // what its conversation gave it
	Changes          []Applied       // what plugins changed, in order
	Tags             datasets.Values // who called
	Steps            []datasets.Step // the model's and the tools' steps in order, as records keep them; nil for a plain call that ran no tool
	Inside           []*Call         // the calls its tools made, in order
	Turn             *TurnCall       // the conversation's turn it answered; nil for a plain call
}

// Journal remembers calls across processes.
type Journal interface {
	// Begin gives the call at a site its id and start: those it had when it was
	// begun before, else the ones offered. An error is Fatal.
	Begin(site Site, id string, started time.Time) (string, time.Time, error)
}

// Exchange is one request and what came of it.
type Exchange struct {
	Request  *Request
	Hash     string // the request's hash; "" when a plugin replaced the request
	Reply    *Reply // nil when it failed
	Failure  *Failure
	Started  time.Time
	Seconds  float64
	Cost     *float64 // price of the reply's tokens; nil when it is not known
	Replaced bool     // a request handler replaced the request
}

// Replayable reports whether the call's requests could be built again: no
// request handler replaced one.
func (c *Call) Replayable() bool {
	for _, x := range c.Exchanges {
		if x.Replaced {
			return false
		}
	}
	return true
}

// Usage sums the tokens of the call's own exchanges. A count that one of the
// answered exchanges does not know is unknown.
func (c *Call) Usage() Usage {
	var u Usage
	first := true
	for _, x := range c.Exchanges {
		if x.Reply != nil {
			u.Add(x.Reply.Usage, first)
			first = false
		}
	}
	return u
}

// Cached reports whether the call asked something and every answer was there
// before: see [Reply.Cached].
func (c *Call) Cached() bool {
	for _, x := range c.Exchanges {
		if x.Reply == nil || !x.Reply.Cached {
			return false
		}
	}
	return len(c.Exchanges) > 0
}
