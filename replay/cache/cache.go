// Package cache keeps models' replies for whoever asks the same again: the reply
// cache, which runs and processes share.
package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// Mode says what a cache is used for.
type Mode string

// The modes.
const (
	Off       Mode = "off"
	Read      Mode = "read"  // what is there is taken; nothing is kept
	Write     Mode = "write" // everything is asked and kept
	ReadWrite Mode = "rw"
)

var modes = []Mode{Off, Read, Write, ReadWrite}

// ParseMode reads a mode; "" is off.
func ParseMode(s string) (Mode, error) {
	if s == "" {
		return Off, nil
	}
	if m := Mode(s); slices.Contains(modes, m) {
		return m, nil
	}
	return Off, fmt.Errorf("%q is no use of a cache: it is off, read, write or rw", s)
}

func (m Mode) reads() bool  { return m == Read || m == ReadWrite }
func (m Mode) writes() bool { return m == Write || m == ReadWrite }

// Cache is a cache of replies, in a file. It is safe for concurrent use, and its
// file for the use of several processes.
type Cache struct {
	mode   Mode
	file   *file
	others *flights // of other processes; nil unless replies are both taken and kept

	mu      sync.Mutex
	flights map[key]chan struct{} // closed when the one who asks is done
}

// Open opens the cache in a folder, making both when they are not there and
// something is to be kept. What of it cannot be used is said to warn, and counts
// as not there.
func Open(dir string, mode Mode, warn func(string)) (*Cache, error) {
	f, err := openFile(dir, mode.writes(), warn)
	if err != nil {
		return nil, fmt.Errorf("the reply cache: %w", err)
	}
	c := &Cache{mode: mode, file: f, flights: map[key]chan struct{}{}}
	if mode == ReadWrite {
		if c.others, err = openFlights(f.path + ".flights"); err != nil {
			return nil, errors.Join(fmt.Errorf("the reply cache: %w", err), f.close())
		}
	}
	return c, nil
}

// Close ends the use of the cache.
func (c *Cache) Close() error { return errors.Join(c.file.close(), c.others.close()) }

// Key is the name of a reply: the hash of the canonical request, which of its
// independent answers this is (from 0), and which attempt at a readable one (from
// 0).
//
//	"sha256:" + SHA-256 of {"functai_reply":1,"replicate":REPLICATE,"request":REQUEST}
//
// in canonical JSON, with "try" after "request" where it is not 0.
func Key(request datasets.Value, replicate, try int) string {
	return keyOf([]byte(request.Canonical()), replicate, try).String()
}

func keyOf(canonical []byte, replicate, try int) key {
	b := make([]byte, 0, len(canonical)+64)
	b = append(b, `{"functai_reply":1,"replicate":`...)
	b = strconv.AppendInt(b, int64(replicate), 10)
	b = append(b, `,"request":`...)
	b = append(b, canonical...)
	if try > 0 {
		b = append(b, `,"try":`...)
		b = strconv.AppendInt(b, int64(try), 10)
	}
	return sum(append(b, '}'))
}

// Model returns a model that is asked through the cache. identity says which model
// it is, whatever a run calls it: who serves it, where, under what name; it takes
// the place of the model's name in the key.
//
// Who asks what another is asking right now, in this process or in another, waits
// for that one's reply. A failure is not kept. What is kept is given without asking:
// the model is a [pipeline.Knower].
func (c *Cache) Model(live pipeline.Model, identity datasets.Values) pipeline.Model {
	return &cached{c, live, string(identity.Object().Canonical())}
}

type cached struct {
	*Cache
	live     pipeline.Model
	identity string
}

func (m *cached) Generate(ctx context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
	k := m.key(req)
	if m.mode != ReadWrite {
		if reply := m.find(k); reply != nil {
			return reply, nil
		}
		return m.ask(ctx, req, k)
	}
	for {
		land, going := m.takeOff(k)
		if going == nil {
			defer land()
			return m.askAlone(ctx, req, k)
		}
		if err := wait(ctx, going); err != nil {
			return nil, err
		}
		if reply := m.find(k); reply != nil {
			return reply, nil
		}
	}
}

// Known is the reply that is kept.
func (m *cached) Known(_ context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
	return m.find(m.key(req)), nil
}

func (m *cached) key(req *pipeline.Request) key {
	return keyOf(req.Canonical(m.identity), req.Site.Repeat, req.Site.Try)
}

// askAlone asks unless the reply is there, and while no other process does.
func (m *cached) askAlone(ctx context.Context, req *pipeline.Request, k key) (*pipeline.Reply, error) {
	if reply := m.find(k); reply != nil {
		return reply, nil
	}
	land, err := m.others.takeOff(ctx, k)
	if err != nil {
		return nil, err
	}
	defer land()
	if reply := m.find(k); reply != nil { // the other process kept it
		return reply, nil
	}
	return m.ask(ctx, req, k)
}

// takeOff makes the caller the one who asks for a key, until it lands; or returns
// what is closed when the one who does has landed.
func (c *Cache) takeOff(k key) (land func(), going chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if going, ok := c.flights[k]; ok {
		return nil, going
	}
	flight := make(chan struct{})
	c.flights[k] = flight
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.flights, k)
		close(flight)
	}, nil
}

// wait waits for another's reply.
func wait(ctx context.Context, going chan struct{}) error {
	defer pipeline.Waiting(ctx)()
	select {
	case <-going:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ask asks the model, and keeps its reply.
func (m *cached) ask(ctx context.Context, req *pipeline.Request, k key) (*pipeline.Reply, error) {
	reply, err := m.live.Generate(ctx, req)
	if err != nil || !m.mode.writes() {
		return reply, err
	}
	if err := m.file.put(k, newEntry(reply)); err != nil {
		return nil, &pipeline.Fatal{Err: fmt.Errorf("writing the reply cache: %w", err)}
	}
	return reply, nil
}

// find returns a reply that is kept, or nil, also when none is to be taken.
func (m *cached) find(k key) *pipeline.Reply {
	if !m.mode.reads() {
		return nil
	}
	text := m.file.get(k)
	if text == nil {
		return nil
	}
	var e entry
	if err := json.Unmarshal(text, &e); err != nil {
		m.file.drop(k)
		return nil
	}
	return e.reply()
}

// entry is a reply at rest. What asking for it took is not in it.
type entry struct {
	Text     string              `json:"text"`
	Calls    []pipeline.ToolCall `json:"calls,omitzero"`
	Finish   string              `json:"finish,omitzero"`
	Model    string              `json:"model,omitzero"`
	Provider string              `json:"provider,omitzero"`
	System   string              `json:"system,omitzero"`
	Usage    pipeline.Usage      `json:"usage,omitzero"`
	Response datasets.Value      `json:"response,omitzero"`
}

func newEntry(r *pipeline.Reply) *entry {
	return &entry{r.Text, r.Calls, r.Finish, r.Model, r.Provider, r.System, r.Usage, r.Response}
}

func (e *entry) reply() *pipeline.Reply {
	return &pipeline.Reply{
		Text: e.Text, Calls: e.Calls, Finish: e.Finish, Model: e.Model, Provider: e.Provider, System: e.System,
		Usage: e.Usage, Response: e.Response, Cached: true, From: pipeline.FromCache,
	}
}

// Identity is what tells a model from others, for [Cache.Model].
func Identity(provider string, settings datasets.Values) datasets.Values {
	return datasets.Values{"provider": datasets.Text(provider), "settings": settings.Object()}
}
