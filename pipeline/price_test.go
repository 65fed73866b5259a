package pipeline_test

import (
	"math"
	"testing"

	"evalrun/pipeline"
)

func TestPrice(t *testing.T) {
	n := func(i int64) *int64 { return &i }
	plain := &pipeline.Price{Input: 2, Output: 10}
	cached := &pipeline.Price{Input: 2, Output: 10, CachedInput: new(0.5)}
	for _, c := range []struct {
		name  string
		price *pipeline.Price
		usage pipeline.Usage
		want  float64 // -1: unknown
	}{
		{"no price", nil, pipeline.Usage{Input: n(1), Output: n(1)}, -1},
		{"no input count", plain, pipeline.Usage{Output: n(1)}, -1},
		{"no output count", plain, pipeline.Usage{Input: n(1)}, -1},
		{"a free model is not an unknown one", &pipeline.Price{}, pipeline.Usage{Input: n(5), Output: n(5)}, 0},
		{"both", plain, pipeline.Usage{Input: n(1_000_000), Output: n(100_000)}, 3},
		{"reasoning is output already", plain, pipeline.Usage{Input: n(0), Output: n(100_000), Reasoning: n(90_000)}, 1},
		{"cached as other input", plain, pipeline.Usage{Input: n(1_000_000), Output: n(0), Cached: n(400_000)}, 2},
		{"cached at its own price", cached, pipeline.Usage{Input: n(1_000_000), Output: n(0), Cached: n(400_000)}, 1.4},
		{"more cached than there was", cached, pipeline.Usage{Input: n(100), Output: n(0), Cached: n(400_000)}, 0.00005},
	} {
		got := c.price.Cost(c.usage)
		if (got == nil) != (c.want == -1) || got != nil && math.Abs(*got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	for _, bad := range []pipeline.Price{{Input: -1}, {Output: math.NaN()}, {Input: math.Inf(1)}, {CachedInput: new(-0.1)}} {
		if bad.Sane() {
			t.Errorf("%+v is a price", bad)
		}
	}
}
