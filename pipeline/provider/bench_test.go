package provider_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"evalrun/pipeline"
	"evalrun/pipeline/provider"
)

// long is a request of some 2 KB, most of which all share.
func long(i int) *pipeline.Request {
	return route(strings.Repeat("Someone wrote this before, and it was read. ", 30) + fmt.Sprintf("\n%d: where is card %d that was sent on day %d?", i, i*7919, i%365))
}

func manyReplies(b *testing.B, name string, n int) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), name)
	reply := strings.Repeat("The card is on its way. ", 40)
	if err := provider.WriteReplies(path, func(yield func(provider.RecordedReply, error) bool) {
		for i := range n {
			if !yield(provider.RecordedReply{Request: long(i).JSON(), Reply: new(fmt.Sprint(reply, i)), Finish: "stop", Model: "m"}, nil) {
				return
			}
		}
	}); err != nil {
		b.Fatal(err)
	}
	return path
}

// The time for each reply must not grow with their number.
func BenchmarkOpenRecorded(b *testing.B) {
	for _, name := range []string{"replies.jsonl", "replies.parquet"} {
		for _, n := range []int{2_500, 25_000} {
			b.Run(fmt.Sprintf("%s/%d", filepath.Ext(name)[1:], n), func(b *testing.B) {
				path := manyReplies(b, name, n)
				for b.Loop() {
					if _, err := provider.OpenRecorded(path); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/reply")
			})
		}
	}
}

// Nor must that of a miss, in a run where every request misses.
func BenchmarkMiss(b *testing.B) {
	for _, n := range []int{2_500, 25_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m, err := provider.OpenRecorded(manyReplies(b, "replies.parquet", n))
			if err != nil {
				b.Fatal(err)
			}
			i := 0
			for b.Loop() {
				asked := long(i % n)
				asked.System += " Be kind."
				if _, err := m.Generate(b.Context(), asked); err == nil {
					b.Fatal("answered")
				}
				i++
			}
		})
	}
}
