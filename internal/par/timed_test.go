package par_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"evalrun/internal/par"
)

func TestTimed(t *testing.T) {
	over := errors.New("over")
	for _, c := range []struct {
		name string
		do   func(s *par.Stopwatch)
		want time.Duration // when the context of ten seconds ends
	}{
		{"no pause", func(*par.Stopwatch) {}, 10 * time.Second},
		{"a pause", func(s *par.Stopwatch) {
			time.Sleep(3 * time.Second)
			resume := s.Pause()
			time.Sleep(time.Hour)
			resume()
			resume() // once is enough
		}, time.Hour + 10*time.Second},
		{"pauses at once", func(s *par.Stopwatch) {
			one, two := s.Pause(), s.Pause()
			time.Sleep(time.Minute)
			one()
			time.Sleep(time.Minute)
			two()
		}, 2*time.Minute + 10*time.Second},
		{"one pause after the other", func(s *par.Stopwatch) {
			for range 3 {
				time.Sleep(2 * time.Second)
				resume := s.Pause()
				time.Sleep(time.Minute)
				resume()
			}
		}, 3*time.Minute + 10*time.Second},
		{"a pause that comes too late", func(s *par.Stopwatch) {
			time.Sleep(11 * time.Second)
			s.Pause()()
		}, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ctx, watch := par.Timed(t.Context(), 10*time.Second, over, time.Now)
				defer watch.Stop()
				var took time.Duration
				stop := par.Go(t.Context(), func(context.Context) { <-ctx.Done(); took = time.Since(began) })
				c.do(watch)
				<-ctx.Done()
				stop()
				if context.Cause(ctx) != over || took != c.want {
					t.Errorf("it ended after %s with %v, want %s", took, context.Cause(ctx), c.want)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, watch := par.Timed(t.Context(), time.Second, over, time.Now)
		resume := watch.Pause()
		watch.Stop()
		resume()
		time.Sleep(time.Minute)
		if context.Cause(ctx) == over {
			t.Error("a stopped time was over")
		}
	})
}
