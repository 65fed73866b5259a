package app

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"evalrun/harness"
	"evalrun/pipeline/provider"
)

func TestProgressLine(t *testing.T) {
	status := func(name string, s provider.LimitStatus) modelStatus { return modelStatus{name, s} }
	for _, c := range []struct {
		name     string
		services []modelStatus
		want     string
	}{
		{"no service", nil, "0/0 answers"},
		{"in flight", []modelStatus{status("gpt", provider.LimitStatus{InFlight: 7, Limit: 16}), status("own", provider.LimitStatus{InFlight: 1, Limit: 8})}, "0/0 answers, 8 of 24 in flight"},
		{
			"rate limited",
			[]modelStatus{status("gpt", provider.LimitStatus{Limit: 16, Paused: "rate_limited", ProbeIn: 11*time.Second + time.Millisecond})},
			"0/0 answers, paused: gpt is rate limited, trying again in 12 s, 0 of 16 in flight",
		},
		{
			"a probe in flight",
			[]modelStatus{status("gpt", provider.LimitStatus{InFlight: 1, Limit: 16, Paused: "timeout"})},
			"0/0 answers, paused: gpt does not answer, trying again now, 1 of 16 in flight",
		},
		{
			"given up",
			[]modelStatus{status("g\u202ept", provider.LimitStatus{Limit: 16, Paused: "server", GaveUp: true})},
			"0/0 answers, given up: g?pt fails, 0 of 16 in flight",
		},
	} {
		if got := progressLine(&harness.Progress{}, time.Minute, c.services); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Where standard error is no terminal there is a line every 30 seconds, and with
// --quiet none.
func TestProgressWithoutTerminal(t *testing.T) {
	for _, c := range []struct {
		name  string
		quiet bool
		want  int
	}{{"a line every 30 s", false, 2}, {"none", true, 0}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				e := &env{console: &console{w: &out}, now: time.Now, quiet: c.quiet}
				e.Err = e.console
				e.logs = newLogging(e.Err)
				done := e.showProgress(t.Context(), &harness.Progress{}, &models{env: e})
				time.Sleep(65 * time.Second)
				done()
				if got := strings.Count(out.String(), "evalrun: 0/0 answers\n"); got != c.want || c.want == 0 && out.Len() > 0 {
					t.Errorf("after 65 s: %q", out.String())
				}
			})
		})
	}
}
