package replay

import (
	"testing"

	"evalrun/internal/fakelog"
)

// BenchmarkRows makes the rated rows of the three kinds of programs: plain
// calls, conversations, and a module with helpers.
func BenchmarkRows(b *testing.B) {
	log, _ := benchLog(b)
	store := imported(b, log)
	for _, c := range []struct{ name, path string }{{"store", store}, {"log", log}} {
		for _, program := range []string{"triage", "reply", "desk"} {
			b.Run(c.name+"/"+program, func(b *testing.B) {
				b.ReportAllocs()
				var r *Rated
				for b.Loop() {
					var err error
					if r, err = Rows(b.Context(), open(b, c.path), Query{Program: program, Module: fakelog.Module}); err != nil {
						b.Fatal(err)
					}
					if err := r.Empty(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(r.Len()), "rows")
				b.ReportMetric(float64(len(r.Left)), "left")
			})
		}
	}
}

// BenchmarkRatedCalls is the plainest loop that reads the same calls of a store:
// those that were rated, whole, with nothing made of them.
func BenchmarkRatedCalls(b *testing.B) {
	store, _ := benchStore(b)
	for b.Loop() {
		src := open(b, store)
		ids := map[string]bool{}
		for r, err := range src.Ratings() {
			if err != nil {
				b.Fatal(err)
			}
			ids[r.Call] = true
		}
		count(b, src.Calls(Want{IDs: ids}))
	}
}

// BenchmarkRowJSON writes rows as JSON lines.
func BenchmarkRowJSON(b *testing.B) {
	store, _ := benchStore(b)
	r, err := Rows(b.Context(), open(b, store), Query{Program: "reply", Module: fakelog.Module})
	if err != nil {
		b.Fatal(err)
	}
	var buf []byte
	var size int64
	for b.Loop() {
		size = 0
		for i := range r.Len() {
			buf = r.AppendRowJSON(buf[:0], i)
			size += int64(len(buf))
		}
	}
	b.SetBytes(size)
}
