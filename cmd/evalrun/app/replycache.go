package app

import (
	"context"
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
	if c == nil || c.open == nil {
		return nil
	}
	return c.open.Close()
}

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
