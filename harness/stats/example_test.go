package stats_test

import (
	"encoding/json"
	"fmt"

	"evalrun/harness/stats"
)

// Two prompts answered the same 40 rows. The new one has 12 rows right that
// the old one had wrong, and lost 2.
func twoPrompts() (base, cand []float64) {
	for i := range 40 {
		b, c := 1.0, 1.0
		switch {
		case i < 12:
			b = 0
		case i < 14:
			c = 0
		case i < 20:
			b, c = 0, 0
		}
		base, cand = append(base, b), append(cand, c)
	}
	return base, cand
}

func ExamplePaired() {
	base, cand := twoPrompts()
	test, err := stats.Paired(base, cand, stats.Options{Binary: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := json.MarshalIndent(test, "", "  ")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(text))
	// Output:
	// {
	//   "method": "tango",
	//   "diff": 0.25,
	//   "low": 0.07582509000750115,
	//   "high": 0.4194333408823222,
	//   "p": 0.00738525390625,
	//   "p_method": "mcnemar-midp",
	//   "units": 40,
	//   "detectable": 0.2544129962830027,
	//   "better": 12,
	//   "worse": 2,
	//   "same": 26,
	//   "decision": "better"
	// }
}

// Ten rows are not enough to tell, and the result says what would be.
func ExamplePaired_tooFewRows() {
	base := []float64{0.5, 0.25, 0.75, 1, 0, 0.5, 0.5, 0.25, 1, 0.75}
	cand := []float64{0.75, 0.5, 0.75, 1, 0.5, 0.25, 0.75, 0.25, 1, 0.5}
	test, err := stats.Paired(base, cand, stats.Options{Margin: 0.05})
	if err != nil {
		fmt.Println(err)
		return
	}
	low, _ := test.Low.Get()
	high, _ := test.High.Get()
	fmt.Printf("%s: %v, range %.2f to %.2f\n", test.Decision, test.Diff, low, high)
	for _, w := range test.Warnings {
		fmt.Println("-", w)
	}
	// Output:
	// too-few-rows: 0.075, range -0.09 to 0.24
	// - only 10 rows: take the range as a rough guide, or add rows (20 or more)
}

func ExampleRange() {
	scores := make([]float64, 80)
	for i := range 72 {
		scores[i] = 1
	}
	r, err := stats.Range(scores)
	if err != nil {
		fmt.Println(err)
		return
	}
	low, _ := r.Low.Get()
	high, _ := r.High.Get()
	fmt.Printf("%v of %d rows, %.7f to %.7f by %s\n", r.Mean, r.N, low, high, r.Method)
	// Output: 0.9 of 80 rows, 0.8148931 to 0.9484524 by wilson
}

func ExampleCompare() {
	base, cand := twoPrompts()
	c, err := stats.Compare(base, cand)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := json.Marshal(c)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(text))
	// Output: {"n":40,"diff":0.25,"low":0.07633722000775645,"high":0.42366277999224355,"better":12,"worse":2,"same":26}
}

func ExampleSingle() {
	e, err := stats.Single([]float64{0.5, 0.75, 1}, stats.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	low, _ := e.Low.Get()
	high, _ := e.High.Get()
	fmt.Printf("%v, range %.3f to %.3f by %s\n", e.Mean, low, high, e.Method)
	fmt.Println(e.Warnings[0])
	// Output:
	// 0.75, range 0.129 to 1.371 by student-t
	// only 3 rows: take the range as a rough guide, or add rows (20 or more)
}

// How many rows does a gain of three points take, if the true differences of
// rows have a variance of 1/9? (Miller 2024)
func ExampleRowsForDiff() {
	noise := stats.Noise{Rows: 1.0 / 9}
	rows, err := stats.RowsForDiff(noise.Variance(), 0.03, stats.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rows)
	// Output: 969
}

// If two prompts disagree on three rows of ten, a gain of ten points takes
// 234 rows. (Connor 1987)
func ExampleRowsForBinary() {
	rows, err := stats.RowsForBinary(0.3, 0.1, stats.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rows)
	// Output: 234
}

func ExampleDetectableDiff() {
	diff, err := stats.DetectableDiff(0.25, 200, stats.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.3f\n", diff)
	// Output: 0.099
}

// No disaster on 300 rows: at most about one row in a hundred is one.
func ExampleZeroEventsUpper() {
	rate, err := stats.ZeroEventsUpper(300, stats.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.4f\n", rate)
	// Output: 0.0099
}
