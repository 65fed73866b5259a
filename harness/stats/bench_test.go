package stats

import (
	"math/rand/v2"
	"testing"
)

// Time must grow with the rows and no faster. Scores are partial, so that
// signs are drawn, which is what takes the time.

func benchmarkScores(n int) (base, cand []float64) {
	rng := rand.New(rand.NewPCG(uint64(n), 0))
	base, cand = make([]float64, n), make([]float64, n)
	for i := range n {
		base[i] = rng.Float64()
		cand[i] = base[i] + 0.3*rng.NormFloat64()
	}
	return base, cand
}

var sizes = []struct {
	name string
	n    int
}{{"1k", 1_000}, {"10k", 10_000}}

func BenchmarkPaired(b *testing.B) {
	for _, s := range sizes {
		base, cand := benchmarkScores(s.n)
		b.Run(s.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Paired(base, cand, Options{Seed: 1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPairedBinary(b *testing.B) {
	for _, s := range sizes {
		base, cand := pairs(s.n/8, s.n/10, s.n/2, s.n/4)
		b.Run(s.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Paired(base, cand, Options{Binary: true}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRange(b *testing.B) {
	for _, s := range sizes {
		_, cand := benchmarkScores(s.n)
		b.Run(s.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Range(cand); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
