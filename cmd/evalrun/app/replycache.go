package app

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/internal/conf"
	"evalrun/pipeline"
	"evalrun/replay/cache"
)

// cacheMode is what the reply cache is used for.
type cacheMode cache.Mode

func (m *cacheMode) DecodeConf(n conf.Node) error {
	word, ok := n.Text()
	if !ok {
		return n.Errorf("it is off, read, write or rw")
	}
	mode, err := cache.ParseMode(word)
	if err != nil {
		return n.Errorf("%v", err)
	}
	*m = cacheMode(mode)
	return nil
}

// replyCache is the reply cache of a run. It is opened when somebody first asks, so
// that a plan writes nothing. The zero value is none.
type replyCache struct {
	mode cache.Mode
	dir  string
	warn func(string)

	once sync.Once
	open *cache.Cache
	err  error

	looking sync.Once
	look    *cache.Cache // to look into alone: nothing is made
	blind   error
}

// cacheDir is where a run's reply cache is: where the spec says, else beside the
// folder of runs.
func (s *spec) cacheDir(runs string) string {
	if s.CacheDir != "" {
		return beside(s.file, s.CacheDir)
	}
	return filepath.Join(filepath.Dir(runs), ".evalrun", "cache")
}

// through returns a model that is asked through the cache.
func (c *replyCache) through(live pipeline.Model, ref harness.ModelRef) pipeline.Model {
	if c == nil || c.mode == cache.Off || c.mode == "" {
		return live
	}
	return &cachedModel{c, live, cache.Identity(ref.Provider, ref.Settings)}
}

func (c *replyCache) close() error {
	if c == nil {
		return nil
	}
	var errs []error
	for _, opened := range []*cache.Cache{c.open, c.look} {
		if opened != nil {
			errs = append(errs, opened.Close())
		}
	}
	return errors.Join(errs...)
}

// cachedModel is a [pipeline.Knower].
type cachedModel struct {
	cache    *replyCache
	live     pipeline.Model
	identity datasets.Values
}

func (m *cachedModel) Generate(ctx context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
	c := m.cache
	c.once.Do(func() { c.open, c.err = cache.Open(c.dir, c.mode, c.warn) })
	if c.err != nil {
		return nil, &pipeline.Fatal{Err: c.err}
	}
	return c.open.Model(m.live, m.identity).Generate(ctx, req)
}

// Known is the reply that the cache has, where it is read.
func (m *cachedModel) Known(ctx context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
	c := m.cache
	if c.mode == cache.Write {
		return nil, nil
	}
	c.looking.Do(func() { c.look, c.blind = cache.Open(c.dir, cache.Read, c.warn) })
	if c.blind != nil {
		return nil, c.blind
	}
	return c.look.Model(m.live, m.identity).(pipeline.Knower).Known(ctx, req)
}
