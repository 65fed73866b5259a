package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"evalrun/harness"
	"evalrun/internal/par"
)

// showProgress keeps one line of progress on a terminal, and is silent
// elsewhere. The returned function ends it.
func (e *env) showProgress(ctx context.Context, p *harness.Progress) (done func()) {
	width, ok := terminal(e.Err)
	if !ok || e.quiet || e.json {
		return func() {}
	}
	started := e.now()
	stop := par.Go(ctx, func(ctx context.Context) {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				fmt.Fprintf(e.Err, "\r%s", fit(progressLine(p, e.now().Sub(started)), width))
			}
		}
	})
	return func() {
		stop()
		fmt.Fprintf(e.Err, "\r%s\r", fit("", width))
	}
}

// progressLine says how far a run is: answers, rate, failures, time left.
func progressLine(p *harness.Progress, took time.Duration) string {
	done, failed, total := p.Counts()
	line := fmt.Sprintf("%d/%d answers", done, total)
	if seconds := took.Seconds(); done > 0 && seconds > 0 {
		rate := float64(done) / seconds
		left := time.Duration(float64(total-done) / rate * float64(time.Second)).Round(time.Second)
		line += fmt.Sprintf(", %.0f/s, %s left", rate, left)
	}
	if failed > 0 {
		line += fmt.Sprintf(", %d failed", failed)
	}
	return line
}

// fit cuts or pads a line of ASCII to a terminal's width, so that nothing of a
// longer one before it stays.
func fit(line string, width int) string {
	if len(line) >= width {
		return line[:width-1]
	}
	return line + strings.Repeat(" ", width-1-len(line))
}
