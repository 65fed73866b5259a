package app

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"evalrun/harness"
	"evalrun/internal/par"
	"evalrun/pipeline/provider"
)

// How often progress is told: on a terminal, and elsewhere.
const (
	progressShown  = 100 * time.Millisecond
	progressLogged = 30 * time.Second
)

// showProgress keeps one line of progress on a terminal, and elsewhere writes one
// now and then. The returned function ends it.
func (e *env) showProgress(ctx context.Context, p *harness.Progress, ms *models) (done func()) {
	if e.quiet {
		return func() {}
	}
	width, live := terminal(e.Err)
	live = live && !e.json && !e.logs.json()
	every := progressLogged
	if live {
		every = progressShown
	}
	started := e.now()
	stop := par.Go(ctx, func(ctx context.Context) {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				line := progressLine(p, e.now().Sub(started), ms.status())
				if live {
					e.console.progress(line, width)
				} else {
					e.notice("%s", line)
				}
			}
		}
	})
	return func() {
		stop()
		if live {
			e.console.progress("", width)
		}
	}
}

// modelStatus is how the limits of a model's service stand.
type modelStatus struct {
	name string
	provider.LimitStatus
}

func (ms *models) status() []modelStatus {
	limiters := ms.limiters()
	var list []modelStatus
	for _, name := range sortedKeys(limiters) {
		list = append(list, modelStatus{name, limiters[name].Status()})
	}
	return list
}

// paused says why a service is not asked; "" when it is.
func (m *modelStatus) paused() string {
	if m.Paused == "" {
		return ""
	}
	why := map[string]string{"rate_limited": "is rate limited", "timeout": "does not answer", "server": "fails"}[m.Paused]
	if why == "" {
		why = "fails (" + m.Paused + ")"
	}
	what := "trying again now"
	switch {
	case m.GaveUp:
		return fmt.Sprintf("given up: %s %s", ascii(m.name), why)
	case m.ProbeIn > 0:
		what = fmt.Sprintf("trying again in %.0f s", math.Ceil(m.ProbeIn.Seconds()))
	}
	return fmt.Sprintf("paused: %s %s, %s", ascii(m.name), why, what)
}

// ascii is a name whose characters each take one column.
func ascii(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}

// progressLine says how far a run is: answers, what keeps it, requests in flight
// of those that may be, rate, time left, failures. Of a terminal that is too
// narrow the end is not seen.
func progressLine(p *harness.Progress, took time.Duration, services []modelStatus) string {
	done, failed, total := p.Counts()
	line := fmt.Sprintf("%d/%d answers", done, total)
	inFlight, limit := 0, 0
	for _, m := range services {
		inFlight, limit = inFlight+m.InFlight, limit+m.Limit
		if why := m.paused(); why != "" {
			line += ", " + why
		}
	}
	if limit > 0 {
		line += fmt.Sprintf(", %d of %d in flight", inFlight, limit)
	}
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
