package par

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func count(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// collect drains results; the error is the last pair's.
func collect[R any](t *testing.T, results iter.Seq2[R, error]) ([]R, error) {
	t.Helper()
	var got []R
	var last error
	for r, err := range results {
		if last != nil {
			t.Fatalf("a pair follows the one with the error %v", last)
		}
		if err != nil {
			last = err
			continue
		}
		got = append(got, r)
	}
	return got, last
}

// sleeper does a task by sleeping, and returns the task.
func sleeper(d func(i int) time.Duration) func(context.Context, int) (int, error) {
	return func(ctx context.Context, i int) (int, error) {
		select {
		case <-time.After(d(i)):
			return i, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func TestMapOrder(t *testing.T) {
	for _, workers := range []int{0, 1, 3, 16, 200} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var at, most atomic.Int32
				do := func(ctx context.Context, i int) (int, error) {
					most.Store(max(most.Load(), at.Add(1)))
					defer at.Add(-1)
					return sleeper(func(i int) time.Duration { return time.Duration((i*7)%13) * time.Millisecond })(ctx, i)
				}
				got, err := collect(t, Map(t.Context(), count(100), Limits{Workers: workers}, do))
				if err != nil || !slices.Equal(got, slices.Collect(count(100))) {
					t.Errorf("got %v, %v; want 0 to 99 in order", got, err)
				}
				if n := int(most.Load()); n > max(1, workers) {
					t.Errorf("%d tasks at once; want at most %d", n, workers)
				}
			})
		})
	}
}

func TestMapOfNothing(t *testing.T) {
	got, err := collect(t, Map(t.Context(), count(0), Limits{}, sleeper(nil)))
	if err != nil || got != nil {
		t.Errorf("got %v, %v; want nothing", got, err)
	}
}

// One slow task holds up the results, not the work: the others go on until the
// window is full, and then wait.
func TestMapWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var started atomic.Int32
		do := func(ctx context.Context, i int) (int, error) {
			started.Add(1)
			return sleeper(func(i int) time.Duration {
				if i == 0 {
					return time.Hour
				}
				return time.Second
			})(ctx, i)
		}
		var got []int
		done := Go(t.Context(), func(context.Context) {
			for i, err := range Map(t.Context(), count(100), Limits{Workers: 4, Window: 30}, do) {
				if err != nil {
					t.Error(err)
				}
				got = append(got, i)
			}
		})
		time.Sleep(30 * time.Minute)
		if n := started.Load(); n != 30 {
			t.Errorf("%d tasks started while the first was awaited; want the window, 30", n)
		}
		begun := time.Now()
		done() // cancels only its own context, which nothing above uses
		if took := time.Since(begun); took > 31*time.Minute {
			t.Errorf("the rest took %v; want it to be done soon after the slow task", took)
		}
		if len(got) != 100 {
			t.Errorf("%d results; want 100", len(got))
		}
	})
}

// A window as large as the workers still keeps order and ends.
func TestMapSmallestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, l := range []Limits{{Workers: 1, Window: 1}, {Workers: 5, Window: 1}} {
			got, err := collect(t, Map(t.Context(), count(50), l, sleeper(func(i int) time.Duration { return time.Duration(50-i) * time.Millisecond })))
			if err != nil || !slices.Equal(got, slices.Collect(count(50))) {
				t.Errorf("%+v: got %v, %v", l, got, err)
			}
		}
	})
}

// Tasks 0, 1, 2, … take a second each, four at once, so that after 2.5 seconds
// eight are done and four are at work.
func second(int) time.Duration { return time.Second }

func TestMapStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		time.AfterFunc(2500*time.Millisecond, func() { close(stop) })
		got, err := collect(t, Map(t.Context(), count(100), Limits{Workers: 4, Stop: stop}, sleeper(second)))
		if !errors.Is(err, ErrStopped) {
			t.Errorf("error %v; want ErrStopped", err)
		}
		if !slices.Equal(got, slices.Collect(count(12))) {
			t.Errorf("got %v; want 0 to 11: those at work are finished, nothing more is started", got)
		}
	})
}

func TestMapStoppedBefore(t *testing.T) {
	stop := make(chan struct{})
	close(stop)
	for range 100 {
		got, err := collect(t, Map(t.Context(), count(3), Limits{Workers: 2, Stop: stop}, func(context.Context, int) (int, error) {
			t.Error("a task was started")
			return 0, nil
		}))
		if !errors.Is(err, ErrStopped) || got != nil {
			t.Fatalf("got %v, %v; want nothing and ErrStopped", got, err)
		}
	}
}

// Stopping when everything was started already leaves nothing to report.
func TestMapStopTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		time.AfterFunc(500*time.Millisecond, func() { close(stop) })
		got, err := collect(t, Map(t.Context(), count(4), Limits{Workers: 4, Stop: stop}, sleeper(second)))
		if err != nil || len(got) != 4 {
			t.Errorf("got %v, %v; want all four and no error", got, err)
		}
	})
}

func TestMapCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(2500*time.Millisecond, func() { cancel(why) })
		// The first task is slow, so that later ones are done when it is not.
		slow := sleeper(func(i int) time.Duration {
			if i == 0 {
				return time.Hour
			}
			return time.Second
		})
		got, err := collect(t, Map(ctx, count(100), Limits{Workers: 4}, slow))
		if !errors.Is(err, why) {
			t.Errorf("error %v; want the cause", err)
		}
		if !slices.Equal(got, []int{1, 2, 3, 4, 5, 6}) {
			t.Errorf("got %v; want what was finished, without the first", got)
		}
	})
}

// The error is that of the first failed task in their order, not in time, and
// what was at work when the first one failed is finished.
func TestMapError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		do := func(ctx context.Context, i int) (int, error) {
			time.Sleep(time.Duration(10-i) * time.Second)
			if i == 2 || i == 4 {
				return 0, fmt.Errorf("task %d is broken", i)
			}
			return i, nil
		}
		got, err := collect(t, Map(t.Context(), count(100), Limits{Workers: 6}, do))
		if err == nil || err.Error() != "task 2 is broken" {
			t.Errorf("error %v; want that of task 2", err)
		}
		// Task 5 is done after 5 s and a seventh begins; task 4 fails after 6 s.
		if !slices.Equal(got, []int{0, 1, 3, 5, 6}) {
			t.Errorf("got %v; want 0, 1, 3, 5 and 6", got)
		}
	})
}

// When the consumer breaks off, tasks at work are canceled and nothing is left
// running: synctest fails a test that leaves a goroutine behind.
func TestMapBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var canceled atomic.Int32
		begun := time.Now()
		for i, err := range Map(t.Context(), count(100), Limits{Workers: 4}, func(ctx context.Context, i int) (int, error) {
			r, err := sleeper(second)(ctx, i)
			if err != nil {
				canceled.Add(1)
			}
			return r, err
		}) {
			if err != nil {
				t.Error(err)
			}
			if i == 5 {
				time.Sleep(100 * time.Millisecond)
				break
			}
		}
		if took := time.Since(begun); took > 2200*time.Millisecond {
			t.Errorf("took %v; want tasks at work to be canceled", took)
		}
		if canceled.Load() != 4 {
			t.Errorf("%d tasks were canceled; want 4", canceled.Load())
		}
	})
}

func TestMapTwice(t *testing.T) {
	results := Map(t.Context(), count(5), Limits{Workers: 2}, func(_ context.Context, i int) (int, error) { return i * i, nil })
	for range 2 {
		if got, err := collect(t, results); err != nil || !slices.Equal(got, []int{0, 1, 4, 9, 16}) {
			t.Errorf("got %v, %v", got, err)
		}
	}
}

func panicOf(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

// A panic comes out where it can be recovered, with the place it came from.
func TestMapPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := panicOf(func() {
			for range Map(t.Context(), count(100), Limits{Workers: 3}, func(_ context.Context, i int) (int, error) {
				if i == 7 {
					panic("task seven")
				}
				return i, nil
			}) {
			}
		})
		text := fmt.Sprint(v)
		if !strings.Contains(text, "task seven") || !strings.Contains(text, "par_test.go") {
			t.Errorf("panic %q; want the task's own, with its place", text)
		}
		v = panicOf(func() {
			for range Map(t.Context(), func(func(int) bool) { panic("the tasks") }, Limits{}, sleeper(second)) {
			}
		})
		if !strings.Contains(fmt.Sprint(v), "the tasks") {
			t.Errorf("panic %v; want that of the tasks", v)
		}
	})
}

// The results that wait are bounded by the window, not by the number of tasks.
func TestMapMemory(t *testing.T) {
	const size, window = 1 << 20, 8
	var most uint64
	for i := range Map(t.Context(), count(200), Limits{Workers: 2, Window: window}, func(_ context.Context, i int) ([]byte, error) {
		return make([]byte, size), nil
	}) {
		_ = i
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapAlloc)
	}
	if limit := uint64(size) * (window + 16); most > limit {
		t.Errorf("%d MiB held at once; want at most %d", most>>20, limit>>20)
	}
}

func TestGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ticks, ended := 0, false
		stop := Go(t.Context(), func(ctx context.Context) {
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					ticks++
				case <-ctx.Done():
					time.Sleep(time.Second) // a last word takes time
					ended = true
					return
				}
			}
		})
		time.Sleep(3500 * time.Millisecond)
		stop()
		if ticks != 3 || !ended {
			t.Errorf("%d ticks, ended %v; want 3 ticks and an end that stop waits for", ticks, ended)
		}
		stop()
	})
	if v := panicOf(Go(t.Context(), func(context.Context) { panic("background") })); !strings.Contains(fmt.Sprint(v), "background") {
		t.Errorf("panic %v; want that of the background task", v)
	}
}

// What one task costs beyond its own work.
func BenchmarkMap(b *testing.B) {
	for _, workers := range []int{1, 16} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			b.ReportAllocs()
			for range Map(b.Context(), count(b.N), Limits{Workers: workers}, func(_ context.Context, i int) (int, error) { return i, nil }) {
			}
		})
	}
}
