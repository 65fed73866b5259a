package stats

import "math"

// NoiseFloor says how much a mean score moves when nothing is repeated but the asking.
type NoiseFloor struct {
	N       int `json:"n"`       // rows
	Diff    Opt `json:"diff"`    // the second mean less the first
	Changed int `json:"changed"` // rows whose score changed
	Floor   Opt `json:"floor"`   // of differences that asking again makes, 1-Alpha are no larger; absent without rows
}

// FloorOf compares two askings of one and the same thing, row by row.
//
// Floor is z·√(Σd²)/n for the rows' differences d and the normal quantile z of
// 1-Alpha/2. Where nothing but chance tells the askings apart, each difference
// could as well have had the other sign, and √(Σd²)/n is the standard deviation
// of their mean over all signs (the sign-flip test's, Fisher 1935). It is 0 when
// no score changed.
func FloorOf(first, again []float64, o Options) (NoiseFloor, error) {
	o, err := o.withDefaults()
	if err != nil {
		return NoiseFloor{}, err
	}
	if err := checkPair(first, again); err != nil {
		return NoiseFloor{}, err
	}
	n := NoiseFloor{N: len(first)}
	if n.N == 0 {
		return n, nil
	}
	sum, squares := 0.0, 0.0
	for i := range first {
		d := again[i] - first[i]
		if d != 0 {
			n.Changed++
		}
		sum += d
		squares += d * d
	}
	rows := float64(n.N)
	n.Diff, n.Floor = some(sum/rows), some(o.zAlpha()*math.Sqrt(squares)/rows)
	return n, nil
}
