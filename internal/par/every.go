package par

import (
	"sync"
	"time"
)

// Every calls f after d, and again and again, until stop is called. When stop has
// returned f is not at work. It costs no goroutine before d has passed.
func Every(d time.Duration, f func()) (stop func()) {
	var mu sync.Mutex
	stopped := false
	var timer *time.Timer
	mu.Lock()
	timer = time.AfterFunc(d, func() {
		mu.Lock()
		defer mu.Unlock()
		if !stopped {
			f()
			timer.Reset(d)
		}
	})
	mu.Unlock()
	return func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}
