package replay

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"evalrun/internal/fakelog"
)

// benchCalls is the size of the simulated log that is measured. With
// EVALRUN_BENCH_CALLS=100000 the figures are those of docs/performance.md.
var benchCalls = sync.OnceValue(func() int {
	n := 5000
	if s := os.Getenv("EVALRUN_BENCH_CALLS"); s != "" {
		if _, err := fmt.Sscan(s, &n); err != nil {
			panic(err)
		}
	}
	return n
})

func benchLog(b *testing.B) (path string, size int64) {
	b.Helper()
	path = filepath.Join(b.TempDir(), "log.jsonl")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	if err := fakelog.Write(f, benchCalls(), 1); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	return path, info.Size()
}

func benchStore(b *testing.B) (folder string, logSize int64) {
	b.Helper()
	log, size := benchLog(b)
	return imported(b, log), size
}

// memory reports what the Go heap and all else of the runtime take.
func heapBytes() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}

func BenchmarkImport(b *testing.B) {
	log, size := benchLog(b)
	b.SetBytes(size)
	var written int64
	for b.Loop() {
		folder := filepath.Join(b.TempDir(), "store")
		done, err := Import(b.Context(), []string{log}, folder)
		if err != nil || done.Calls != int64(benchCalls()) {
			b.Fatal(done, err)
		}
		written = 0
		for _, name := range done.Files {
			if info, err := os.Stat(filepath.Join(folder, name)); err == nil {
				written += info.Size()
			}
		}
	}
	b.ReportMetric(float64(written)/1e6, "MB-written")
	b.ReportMetric(float64(heapBytes())/1e6, "MB-memory")
}

// plainCall is a call for BenchmarkImportPlain: what is flat in typed columns, all
// else as text.
type plainCall struct {
	ID        string         `json:"id" parquet:"id"`
	Root      string         `json:"root" parquet:"root"`
	Started   time.Time      `json:"started" parquet:"started,timestamp(microsecond)"`
	Seconds   float64        `json:"seconds" parquet:"seconds"`
	Model     string         `json:"model" parquet:"model,dict"`
	Content   bool           `json:"content" parquet:"content"`
	Program   jsontext.Value `json:"program" parquet:"program"`
	Inputs    jsontext.Value `json:"inputs" parquet:"inputs"`
	Outputs   jsontext.Value `json:"outputs" parquet:"outputs"`
	Exchanges jsontext.Value `json:"exchanges" parquet:"exchanges"`
	Changes   jsontext.Value `json:"changes" parquet:"changes"`
	Saw       jsontext.Value `json:"saw" parquet:"saw"`
}

// BenchmarkImportPlain is the plainest loop that makes a Parquet file of a log with
// the same libraries: every line decoded into a struct, the structs sorted and
// written. It keeps less (no unknown keys, no nulls apart from absence, nothing
// nested in columns of its own), and holds the log in memory.
func BenchmarkImportPlain(b *testing.B) {
	log, size := benchLog(b)
	b.SetBytes(size)
	for b.Loop() {
		text, err := os.ReadFile(log)
		if err != nil {
			b.Fatal(err)
		}
		var calls []plainCall
		for line := range bytes.Lines(text) {
			if !bytes.HasPrefix(line, []byte(`{"functai_call"`)) {
				continue
			}
			var c plainCall
			if err := json.Unmarshal(line, &c); err != nil {
				b.Fatal(err)
			}
			calls = append(calls, c)
		}
		if len(calls) != benchCalls() {
			b.Fatal(len(calls))
		}
		slices.SortFunc(calls, func(a, b plainCall) int { return a.Started.Compare(b.Started) })
		f, err := os.Create(filepath.Join(b.TempDir(), "calls.parquet"))
		if err != nil {
			b.Fatal(err)
		}
		w := parquet.NewGenericWriter[plainCall](f, parquet.Compression(&zstd.Codec{}), parquet.MaxRowsPerRowGroup(50_000))
		if _, err := w.Write(calls); err != nil {
			b.Fatal(err)
		}
		if err := errors.Join(w.Close(), f.Close()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParse is what reading the log alone takes.
func BenchmarkParse(b *testing.B) {
	log, size := benchLog(b)
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		l := &logFile{log}
		n := 0
		if err := l.each(func(int64, *Record, *Rating) bool { n++; return true }, func(nr int64, err error) { b.Fatal(nr, err) }); err != nil || n < benchCalls() {
			b.Fatal(n, err)
		}
	}
}

// BenchmarkLines is the plainest loop over a log: finding its lines.
func BenchmarkLines(b *testing.B) {
	log, size := benchLog(b)
	b.SetBytes(size)
	for b.Loop() {
		text, err := os.ReadFile(log)
		if err != nil {
			b.Fatal(err)
		}
		for range bytes.Lines(text) {
		}
	}
}

func count[T any](b *testing.B, list iter.Seq2[T, error]) (n int) {
	for _, err := range list {
		if err != nil {
			b.Fatal(err)
		}
		n++
	}
	return n
}

func BenchmarkReadStore(b *testing.B) {
	folder, size := benchStore(b)
	b.SetBytes(size)
	for b.Loop() {
		s := open(b, folder)
		if n := count(b, s.Calls(Want{All: true})); n != benchCalls() {
			b.Fatal(n)
		}
	}
}

// BenchmarkLookup looks a tenth of the calls up, spread over the store as rated
// calls are.
func BenchmarkLookup(b *testing.B) {
	log, _ := benchLog(b)
	store := imported(b, log)
	ids := map[string]bool{}
	for r, err := range open(b, store).Ratings() {
		if err != nil {
			b.Fatal(err)
		}
		ids[r.Call] = true
	}
	for name, path := range map[string]string{"store": store, "log": log} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s := open(b, path)
				if n := count(b, s.Calls(Want{IDs: ids})); n != len(ids) {
					b.Fatal(n, len(ids))
				}
			}
			b.ReportMetric(float64(len(ids)), "calls")
		})
	}
}
