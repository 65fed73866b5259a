package replay

import (
	"fmt"
	"path/filepath"
	"testing"
)

// work counts what is done with a source's files.
type work struct {
	passes  int // over a file, or its indexes
	fetches int // times that places of a file were read
	calls   int // that were read
}

type countedFile struct {
	file
	work *work
}

func (c countedFile) locate(w *Want, found func(place)) error {
	c.work.passes++
	return c.file.locate(w, found)
}

func (c countedFile) ratings(take func(*Rating) bool, skip func(int64, error)) error {
	c.work.passes++
	return c.file.ratings(take, skip)
}

func (c countedFile) fetch(places []place, parts Parts, take func(*Record) bool) error {
	c.work.fetches++
	return c.file.fetch(places, parts, func(r *Record) bool {
		c.work.calls++
		return take(r)
	})
}

// chainLog is n calls of which each saw what the one before it saw, and that
// one. Nothing else ties them together. The last is rated, and every nth other.
func chainLog(t testing.TB, n, nth int) string {
	var lines []string
	for i := range n {
		saw := ""
		if i > 0 {
			saw = fmt.Sprintf(`{"saw_of":"t%06d"},{"call":"t%06d"}`, i-1, i-1)
		}
		lines = append(lines,
			fmt.Sprintf(`{"functai_call":2,"id":"t%06d","program":{"name":"team","answer":"result"},"started":"2026-01-01T00:00:00.%06dZ","content":true,"inputs":{"m":%d},"outputs":{"result":"x"},"saw":[%s]}`, i, i+1, i, saw),
			fmt.Sprintf(`{"functai_call":2,"id":"u%06d","program":{"name":"team","answer":"result"},"content":true,"inputs":{"m":%d},"outputs":{"result":"x"},"saw":[]}`, i, i))
		if i == n-1 || nth > 0 && i%nth == 0 {
			lines = append(lines, fmt.Sprintf(`{"functai_rating":1,"id":"r%d","call":"t%06d","verdict":"right"}`, i, i))
		}
	}
	return writeLines(t, filepath.Join(t.TempDir(), "chain.jsonl"), lines...)
}

// A chain of calls that only saw_of ties together takes as many readings
// however long it is, and work that grows as it does.
func TestChainsAreReadInFewPasses(t *testing.T) {
	const links = 100
	for _, kind := range []string{"log", "store"} {
		for _, nth := range []int{0, 1, 7} {
			t.Run(fmt.Sprintf("%s/%d", kind, nth), func(t *testing.T) {
				read := func(n int) work {
					path := chainLog(t, n, nth)
					if kind == "store" {
						path = imported(t, path)
					}
					src := open(t, path)
					var w work
					for i, f := range src.(*library).files {
						src.(*library).files[i] = countedFile{f, &w}
					}
					r, err := Rows(t.Context(), src, Query{Program: "team"})
					if err != nil || len(r.Left) > 0 {
						t.Fatalf("%v, %+v", err, r)
					}
					last, _ := r.At(r.Len() - 1)
					if got := len(last.Context.Earlier); got != n-1 {
						t.Fatalf("the last call was shown %d calls, want %d", got, n-1)
					}
					return w
				}
				short, long := read(links), read(4*links)
				if long.passes != short.passes || long.fetches != short.fetches || long.passes > 16 {
					t.Errorf("%d links: %+v; %d links: %+v", links, short, 4*links, long)
				}
				if long.calls > 5*short.calls {
					t.Errorf("%d links: %d calls read; %d links: %d", links, short.calls, 4*links, long.calls)
				}
			})
		}
	}
}
