package reports

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"evalrun/harness"
)

// limitPlot draws the limit on the requests in flight of one model in one sitting:
// a line of steps over time, bands in which nothing was sent, and below it marks
// for what happened.
type limitPlot struct {
	Model, Sitting string
	Words          string
	Most           string // the largest limit, which is the plot's top
	Path           string // of the steps, in a square of 100 by 100
	Ticks          []tick
	Pauses         []limitBand
	Events         []limitEvent
}

type limitBand struct{ X, Width string }

type limitEvent struct{ X, Why, Path string }

// limitMark is what a sign in a plot stands for.
type limitMark struct{ Why, Words, Path string }

// limitMarks are the signs. What has no path is a band.
var limitMarks = []limitMark{
	{"rate_limited", "rate limited", "M-5 -4 L5 -4 L0 5 Z"},
	{"server_error", "server error", "M-3.5 0 A3.5 3.5 0 1 0 3.5 0 A3.5 3.5 0 1 0 -3.5 0"},
	{"paused", "paused, nothing sent", ""},
	{"probe", "probe", "M0 -5 L0 5"},
	{"resumed", "resumed", "M-4 -5 L5 0 L-4 5 Z"},
	{"gave_up", "given up", "M-4 -4 L4 4 M-4 4 L4 -4"},
}

// limitPlots draws every model that was asked in every sitting, and returns the
// signs that are used.
func limitPlots(sittings []harness.Sitting) (plots []limitPlot, used []limitMark) {
	seen := map[string]bool{}
	for i, s := range sittings {
		for j := range s.Models {
			m := &s.Models[j]
			if m.Tries == 0 || len(m.History) == 0 {
				continue
			}
			end := m.History[len(m.History)-1].At
			if s.Ended != nil {
				end = max(end, s.Ended.Sub(s.Started).Seconds())
			}
			p := newLimitPlot(m, end)
			if len(sittings) > 1 {
				p.Sitting = fmt.Sprintf("sitting %d of %d", i+1, len(sittings))
			}
			plots = append(plots, p)
			for _, e := range m.History {
				seen[e.Why] = true
			}
		}
	}
	for _, m := range limitMarks {
		if seen[m.Why] {
			used = append(used, m)
		}
	}
	return plots, used
}

func newLimitPlot(m *harness.Limited, end float64) limitPlot {
	if end <= 0 {
		end = 1
	}
	a := axis{0, end}
	most := 1
	for _, e := range m.History {
		most = max(most, e.Limit)
	}
	p := limitPlot{Model: m.Name, Words: limitWords(m), Most: count(most), Ticks: timeTicks(a)}
	var path strings.Builder
	to := func(how string, at float64, limit int) {
		fmt.Fprintf(&path, "%s%s %s", how, coordinate(a.at(at)), coordinate(100-100*float64(limit)/float64(most)))
	}
	paused := -1.0
	hold := func(until float64) {
		if paused >= 0 {
			p.Pauses = append(p.Pauses, limitBand{percent(a.at(paused)), percent(max(0.2, a.at(until)-a.at(paused)))})
			paused = -1
		}
	}
	for i, e := range m.History {
		if i == 0 {
			to("M", e.At, e.Limit)
		} else if before := m.History[i-1].Limit; before != e.Limit {
			to("L", e.At, before)
			to("L", e.At, e.Limit)
		}
		switch e.Why {
		case "paused":
			paused = e.At
		case "resumed":
			hold(e.At)
		}
		if at := slices.IndexFunc(limitMarks, func(k limitMark) bool { return k.Why == e.Why }); at >= 0 && limitMarks[at].Path != "" {
			p.Events = append(p.Events, limitEvent{percent(a.at(e.At)), e.Why, limitMarks[at].Path})
		}
	}
	hold(end)
	to("L", end, m.History[len(m.History)-1].Limit)
	p.Path = path.String()
	return p
}

// limitWords says in numbers how the limits of a service went.
func limitWords(m *harness.Limited) string {
	var retries int64
	for _, n := range m.Retries {
		retries += n
	}
	parts := []string{count(m.Requests) + " requests in " + count(m.Tries) + " tries", retried(retries)}
	if m.Episodes > 0 {
		parts = append(parts, plural(int(m.Episodes), "episode")+" of rate limiting")
	}
	if m.Pauses > 0 {
		parts = append(parts, plural(int(m.Pauses), "pause")+", the longest "+span(m.LongestPause))
	}
	if m.Waited > 0 {
		parts = append(parts, span(m.Waited)+" waited by all requests together")
	}
	return strings.Join(parts, ", ")
}

func coordinate(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

// timeTicks are ticks in seconds, minutes or hours since the beginning.
func timeTicks(a axis) []tick {
	unit, name := 1.0, " s"
	switch {
	case a.high >= 2*3600:
		unit, name = 3600, " h"
	case a.high >= 120:
		unit, name = 60, " min"
	}
	var ticks []tick
	step := niceStep(a.high / unit / 5)
	place := int(math.Floor(math.Log10(step) + 1e-9))
	for v := 0.0; v <= a.high/unit+step*1e-9; v += step {
		text := rounded(v, place)
		if v == 0 {
			text = "0"
		}
		ticks = append(ticks, tick{percent(a.at(v * unit)), text + name})
	}
	return ticks
}
