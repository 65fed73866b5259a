package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"

	"evalrun/pipeline"
)

// Recorded is a model that gives back the replies of a replies file, word for
// word. What the file does not hold it does not answer: such a request fails
// with type [pipeline.TypeNotRecorded] and code "never-recorded", and the
// message says in what it differs from the nearest request that was recorded.
type Recorded struct {
	file     string // the file's name, for messages
	before   string // what stands between that name and a row's number
	replies  []keptReply
	byKey    map[replyKey]int32 // indexes into replies
	requests map[[32]byte]*replicates
	asked    *portraits // nil where nobody asks
}

// replicates says how many replies one request has, and whether it is portrayed.
type replicates struct {
	n, low, high int32
	portrayed    bool
}

// OpenRecorded reads a replies file, Parquet or JSON lines, into memory. A file
// that it cannot wholly make sense of is refused; the error names the row.
func OpenRecorded(path string) (*Recorded, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var magic [4]byte
	if n, err := f.ReadAt(magic[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	} else if string(magic[:n]) == parquetMagic {
		return newRecorded(path, ": row ", readParquet(path))
	}
	return newRecorded(path, ":", readLines(f, path))
}

func emptyRecorded(path, before string) *Recorded {
	return &Recorded{
		file: filepath.Base(path), before: before,
		byKey: map[replyKey]int32{}, requests: map[[32]byte]*replicates{},
	}
}

func newRecorded(path, before string, rows iter.Seq2[numbered, error]) (*Recorded, error) {
	m := emptyRecorded(path, before)
	m.asked = &portraits{texts: map[string]string{}}
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		if _, _, err := m.add(row); err != nil {
			return nil, fmt.Errorf("%s%s%d: %w", path, before, row.at, err)
		}
	}
	if len(m.replies) == 0 {
		return nil, fmt.Errorf("%s: no reply in it; a replies file has a row for each recorded reply", path)
	}
	m.asked.complete()
	return m, nil
}

// add takes in a row. It is not fresh when the same reply to the same request
// was there already.
func (m *Recorded) add(row numbered) (c checked, fresh bool, err error) {
	c, err = row.check()
	if err != nil {
		return c, false, err
	}
	if row.at > math.MaxInt32 {
		return c, false, errors.New("more rows than a replies file may have")
	}
	c.reply.row = int32(row.at)
	if i, seen := m.byKey[c.key]; seen {
		first := &m.replies[i]
		if what := c.reply.otherwise(first); what != "" {
			return c, false, fmt.Errorf("another %s than %s has for the same request and replicate %d; give each further reply to a request a replicate of its own",
				what, m.place(first.row), c.key.replicate)
		}
		return c, false, nil
	}
	m.byKey[c.key] = int32(len(m.replies))
	m.replies = append(m.replies, c.reply)

	r := m.requests[c.key.hash]
	if r == nil {
		r = &replicates{low: c.key.replicate, high: c.key.replicate}
		m.requests[c.key.hash] = r
	}
	r.n++
	r.low, r.high = min(r.low, c.key.replicate), max(r.high, c.key.replicate)
	if c.request != nil && m.asked != nil && !r.portrayed {
		r.portrayed = true
		m.asked.add(c.reply.row, c.request)
	}
	return c, true, nil
}

func (m *Recorded) place(row int32) string { return fmt.Sprintf("%s%s%d", m.file, m.before, row) }

// Len is the number of replies.
func (m *Recorded) Len() int { return len(m.replies) }

// Generate returns what was recorded for the request: replicate n where the
// request is repeat n of its row.
func (m *Recorded) Generate(ctx context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	hash := req.ProbeHash()
	key := replyKey{replicate: int32(req.Site.Repeat)}
	key.setHash(hash)
	i, ok := m.byKey[key]
	if !ok {
		return nil, m.miss(key, hash, req)
	}
	r := &m.replies[i]
	return &pipeline.Reply{
		Text: r.text, Calls: slices.Clone(r.calls), Finish: r.finish, Model: r.model, Provider: "recorded", Usage: r.usage, Response: r.response,
	}, nil
}

// miss is the failure of a request that has no reply here.
func (m *Recorded) miss(key replyKey, hash string, req *pipeline.Request) *pipeline.Failure {
	never := func(format string, args ...any) *pipeline.Failure {
		return pipeline.Failf(pipeline.TypeNotRecorded, "never-recorded", "never recorded: "+format, args...)
	}
	if r := m.requests[key.hash]; r != nil {
		return never("%s has no reply to repeat %d of this request; it has %s", m.file, req.Site.Repeat, r)
	}
	lacks := fmt.Sprintf("%s has no reply to this request", m.file)
	found, ok := m.asked.nearest(req)
	if !ok {
		return never("%s, and keeps no requests, so that nothing can be said of what differs; its hash is %s", lacks, hash)
	}
	return never("%s. The nearest of those it has (%s) %s. The hash of this one is %s", lacks, m.place(found.row), found.differs(req), hash)
}

// String says it in words: "replicate 0", "replicates 0 to 4", "3 replicates from 0 to 7".
func (r *replicates) String() string {
	switch {
	case r.n == 1:
		return fmt.Sprintf("replicate %d alone", r.low)
	case r.high-r.low+1 == r.n:
		return fmt.Sprintf("replicates %d to %d", r.low, r.high)
	}
	return fmt.Sprintf("%d replicates from %d to %d", r.n, r.low, r.high)
}
