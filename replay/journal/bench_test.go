package journal

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"evalrun/pipeline"
)

// The cost of an exchange that is journaled, with a model that answers at once.
func BenchmarkModel(b *testing.B) {
	text := strings.Repeat("What is the right answer to this one? ", 40)
	for _, workers := range []int{1, 32} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			j, err := Open(b.TempDir(), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			m := j.Model(sends{reply: &pipeline.Reply{Text: text, Finish: "stop"}})
			var next atomic.Int64
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for range workers {
				wg.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						if _, err := m.Generate(b.Context(), request(fmt.Sprint(i), text)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}

// The cost of an answer that is given again, opening the journal included.
func BenchmarkAgain(b *testing.B) {
	const n = 1000
	text := strings.Repeat("What is the right answer to this one? ", 40)
	dir := b.TempDir()
	ask := func() {
		j, err := Open(dir, nil)
		if err != nil {
			b.Fatal(err)
		}
		m := j.Model(sends{reply: &pipeline.Reply{Text: text, Finish: "stop"}})
		for i := range n {
			if _, err := m.Generate(b.Context(), request(fmt.Sprint(i), text)); err != nil {
				b.Fatal(err)
			}
		}
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
	}
	ask()
	for b.Loop() {
		ask()
	}
}
