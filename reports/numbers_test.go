package reports

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"evalrun/harness/stats"
)

// opt makes an optional number the way the package stats reads one.
func opt(v float64) stats.Opt {
	var o stats.Opt
	if err := json.Unmarshal([]byte(strconv.FormatFloat(v, 'g', -1, 64)), &o); err != nil {
		panic(err)
	}
	return o
}

func TestDifferencesKeepTwoDigitsOfHalfTheirRange(t *testing.T) {
	for _, c := range []struct {
		rate           bool
		v, low, high   float64
		diff, between  string
		mean, meanEnds string
	}{
		// The half-width in the unit shown is 7.1, so one digit after the point.
		{true, 0.236, 0.164, 0.306, "+23.6", "+16.4 to +30.6", "23.6%", "16.4 to 30.6"},
		{true, 0.2, 0.05, 0.35, "+20", "+5 to +35", "20%", "5 to 35"},          // 15
		{true, 0.0123, 0.0051, 0.0195, "+1.23", "+0.51 to +1.95", "1.23%", ""}, // 0.72
		{true, -0.0123, -0.0195, -0.0051, "−1.23", "−1.95 to −0.51", "−1.23%", ""},
		{true, 0, -0.0995, 0.0995, "0", "−10 to +10", "0%", ""}, // 9.95 rounds to 10, which has two digits already
		{false, 0.0156, -0.0458, 0.0770, "+0.016", "−0.046 to +0.077", "0.016", ""},
		{false, 1234.5, 1100, 1369, "+1230", "+1100 to +1370", "1230", ""}, // 134.5
		{false, -0.001, -0.31, 0.31, "0.00", "−0.31 to +0.31", "0.00", ""}, // no minus before nothing
	} {
		s := scale{rate: c.rate}
		v, low, high := opt(c.v), opt(c.low), opt(c.high)
		if got := s.diff(v, low, high); got != c.diff {
			t.Errorf("difference %v (%v to %v) is %q, want %q", c.v, c.low, c.high, got, c.diff)
		}
		if got := s.diffBetween(v, low, high); got != c.between {
			t.Errorf("range %v to %v is %q, want %q", c.low, c.high, got, c.between)
		}
		if got := s.mean(v, low, high); got != c.mean {
			t.Errorf("mean %v (%v to %v) is %q, want %q", c.v, c.low, c.high, got, c.mean)
		}
		if got := s.between(v, low, high); c.meanEnds != "" && got != c.meanEnds {
			t.Errorf("range of a mean %v to %v is %q, want %q", c.low, c.high, got, c.meanEnds)
		}
	}
}

// Whatever the range, half its width never shows a third digit.
func TestNoThirdDigit(t *testing.T) {
	for i := range 2000 {
		half := math.Pow(10, -4+float64(i)/300)
		s := scale{rate: i%2 == 0}
		place := s.place(opt(1), opt(1-half), opt(1+half))
		text := strings.TrimLeft(strings.ReplaceAll(rounded(s.shown(half), place), ".", ""), "0")
		if digits := len(strings.TrimRight(text, "0")); digits > 2 {
			t.Fatalf("half a width of %v is written with %d digits: %s", s.shown(half), digits, text)
		}
	}
}

func TestNumbersWithoutARange(t *testing.T) {
	var none stats.Opt
	for _, c := range []struct{ got, want string }{
		{scale{rate: true}.mean(opt(0.5), none, none), "50.0%"},
		{scale{rate: false}.mean(opt(0.123456), none, none), "0.123"},
		{scale{rate: false}.mean(none, none, none), ""},
		{scale{rate: true}.between(opt(0.5), none, none), ""},
		{scale{rate: true}.diff(none, none, none), ""},
		{scale{rate: true}.mean(opt(0.5), opt(0.5), opt(0.5)), "50.0%"}, // a range without width
		{probability(opt(0.00012)), "<0.001"},
		{probability(opt(0.0391)), "0.039"},
		{probability(opt(0.512)), "0.51"},
		{probability(none), ""},
		{count(0), "0"},
		{count(999), "999"},
		{count(1000), "1,000"},
		{count(1234567), "1,234,567"},
		{count(-4321), "-4,321"},
		{about(7), "7"},
		{about(99), "99"},
		{about(101), "110"},
		{about(3402), "3,500"},
		{about(12000), "12,000"},
		{plural(1, "row"), "1 row"},
		{plural(1200, "row"), "1,200 rows"},
		{score(1), "1"},
		{score(0.33333), "0.333"},
		{score(-2.5), "−2.5"},
		{money(0), "0 USD"},
		{money(0.0628472), "0.0628 USD"},
		{money(12.3456), "12.35 USD"},
		{money(1234.5), "1234.50 USD"},
		{seconds(0), "0 s"},
		{seconds(0.00002), "<1 ms"},
		{seconds(0.2534), "250 ms"},
		{seconds(2.345), "2.3 s"},
		{seconds(312.4), "312 s"},
		{scale{rate: true}.size(0.01), "1.0 points"},
		{scale{rate: true}.stated(0.01), "1 point"},
		{scale{rate: true}.stated(0.025), "2.5 points"},
		{scale{rate: false}.stated(0.3), "0.3"},
		{scale{rate: true}.size(0.052), "5.2 points"},
		{scale{rate: false}.size(0.0821), "0.082"},
		{level(stats.Options{Alpha: 0.05}), "95%"},
		{level(stats.Options{Alpha: 0.001}), "99.9%"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestPlotsShareAnAxis(t *testing.T) {
	// One range is far wider than the others: it is cut off, and marked so.
	drawn := func(name string, diff, low, high float64) line {
		c := comparison(diff, low, high)
		c.Candidate = name
		return line{Candidate: name, Scale: scale{rate: true}, Versus: newVersus(c, scale{rate: true})}
	}
	plots := forests([]line{drawn("a", 0.02, -0.01, 0.05), drawn("b", 0.03, 0.01, 0.05), drawn("wide", 0.01, -0.9, 0.92), drawn("c", -0.02, -0.04, 0)}, stats.Options{Alpha: 0.05}, false)
	if len(plots) != 1 || len(plots[0].Rows) != 4 {
		t.Fatalf("got %d plots", len(plots))
	}
	for _, r := range plots[0].Rows {
		if wide := r.Candidate == "wide"; r.OffLow != wide || r.OffHigh != wide {
			t.Errorf("%s is cut off: %v and %v", r.Candidate, r.OffLow, r.OffHigh)
		}
		if !r.HasMark {
			t.Errorf("%s has no mark: every difference is on the axis", r.Candidate)
		}
		for _, x := range []string{r.X, r.Mark, r.Width} {
			var v float64
			if _, err := fmt.Sscanf(x, "%f%%", &v); err != nil || v < 0 || v > 100 {
				t.Errorf("%s lies at %q", r.Candidate, x)
			}
		}
	}
	if n := len(plots[0].Ticks); n < 3 || n > 12 {
		t.Errorf("%d ticks", n)
	}
	zero := false
	for _, tick := range plots[0].Ticks {
		zero = zero || tick.X == plots[0].Zero && tick.Text == "0"
	}
	if !zero {
		t.Errorf("no tick at 0: %v", plots[0].Ticks)
	}
	// A line without anything to draw, and an axis without any extent.
	if plots := forests([]line{{Candidate: "base"}}, stats.Options{Alpha: 0.05}, false); plots != nil {
		t.Errorf("a plot of nothing: %v", plots)
	}
	if plots := forests([]line{drawn("same", 0, 0, 0)}, stats.Options{Alpha: 0.05}, false); len(plots) != 1 {
		t.Errorf("no plot of a difference of 0")
	}
}

// A message that is long loses its middle or its end: of several lines the last one
// says why.
func TestShortened(t *testing.T) {
	trace := "p.py ended: exit status 1; its standard error:\nTraceback (most recent call last):\n" +
		strings.Repeat("  File \"p.py\", line 3, in handle\n", 12) + "ValueError: no such mode\n"
	for _, c := range []struct{ message, begins, ends string }{
		{"short", "short", "short"},
		{"two\nlines", "two lines", "lines"},
		{strings.Repeat("long ", 60), "long long", "…"},
		{trace, "p.py ended: exit status 1; its standard error: Traceback", "… ValueError: no such mode"},
		{"a\n" + strings.Repeat("b", 400), "a bbb", "bbb…"},
		{strings.Repeat("a", 400) + "\n" + strings.Repeat("b", 400), "aaa", "bbb…"},
		{strings.Repeat("a", 400) + "\nb", "aaa", "a… b"},
	} {
		got := shortened(c.message)
		if n := len([]rune(got)); n > 160 || !strings.HasPrefix(got, c.begins) || !strings.HasSuffix(got, c.ends) {
			t.Errorf("%q, %d characters; want %q … %q", got, n, c.begins, c.ends)
		}
	}
}
