package par_test

import (
	"testing"
	"testing/synctest"
	"time"

	"evalrun/internal/par"
)

// Every calls again and again, and not once it is stopped.
func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		stop := par.Every(time.Second, func() { n++ })
		time.Sleep(3500 * time.Millisecond)
		stop()
		if n != 3 {
			t.Errorf("called %d times in 3.5 s", n)
		}
		time.Sleep(time.Minute)
		if stop(); n != 3 {
			t.Errorf("called %d times, after it was stopped", n)
		}
	})
}
