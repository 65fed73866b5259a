package provider

import (
	"math"
	"time"

	"evalrun/pipeline"
)

// tokenBucket is a token bucket: it fills at a rate, and holds what may be taken at
// once. A nil one has always enough.
//
// It holds a second's worth, one at least, and fills at the rate that makes a
// full one and a minute's filling the limit, so that no minute has more. It
// begins full: the first to come does not wait.
type tokenBucket struct {
	perSecond   float64
	size, level float64
	at          time.Time // when it had that level
}

func newTokenBucket(perMinute int, now time.Time) *tokenBucket {
	if perMinute == 0 {
		return nil
	}
	size := max(1, float64(perMinute)/60)
	return &tokenBucket{perSecond: (float64(perMinute) - size + 1) / 60, size: size, level: size, at: now}
}

// when is when n can be taken. More than it holds can be taken when it is full,
// and is then owed.
func (b *tokenBucket) when(n float64, now time.Time) time.Time {
	if b == nil {
		return now
	}
	b.fill(now)
	const close = 1e-6 // as near as floating point comes
	lacks := min(n, b.size) - b.level
	if lacks < close {
		return now
	}
	return now.Add(time.Duration(math.Ceil(lacks / b.perSecond * float64(time.Second))))
}

func (b *tokenBucket) take(n float64, now time.Time) {
	if b != nil {
		b.fill(now)
		b.level -= n
	}
}

func (b *tokenBucket) give(n float64) {
	if b != nil {
		b.level = min(b.size, b.level+n)
	}
}

func (b *tokenBucket) fill(now time.Time) {
	if d := now.Sub(b.at); d > 0 {
		b.level = min(b.size, b.level+b.perSecond*d.Seconds())
		b.at = now
	}
}

// outputs are the lengths of the outputs so far, in tokens.
type outputs struct {
	n, sum float64
}

func (o *outputs) add(tokens *int64) {
	if tokens != nil {
		o.n++
		o.sum += float64(*tokens)
	}
}

// unknownOutput is what an output is taken to need when nothing is known of it.
const unknownOutput = 500

// expected is their mean, and before there are any what the request allows.
func (o *outputs) expected(req *pipeline.Request) float64 {
	most := math.Inf(1)
	for _, name := range []string{"max_tokens", "max_completion_tokens"} {
		if n, ok := req.Config[name].AsFloat(); ok && n > 0 {
			most = n
		}
	}
	switch {
	case o.n > 0:
		return min(most, o.sum/o.n)
	case math.IsInf(most, 1):
		return unknownOutput
	}
	return most
}

// bytesPerToken is what texts have, roughly.
const bytesPerToken = 4

// estimate is how many tokens a try is taken to need, input and output, before it
// is known.
func (l *Limiter) estimate(req *pipeline.Request) float64 {
	if l.tokens == nil {
		return 0
	}
	bytes := len(req.System)
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			bytes += len(p.Text) + len(p.Raw.JSON())
		}
	}
	for _, t := range req.Tools {
		bytes += len(t.Name) + len(t.Description) + len(t.Parameters.JSON())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return float64(bytes)/bytesPerToken + l.outputs.expected(req)
}

// tokensOf is how many tokens an answer took; estimated where it does not say.
func tokensOf(u pipeline.Usage, estimated float64) float64 {
	switch {
	case u.Total != nil:
		return float64(*u.Total)
	case u.Input != nil && u.Output != nil:
		return float64(*u.Input + *u.Output)
	}
	return estimated
}
