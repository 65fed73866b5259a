package stats

import (
	"fmt"
	"math"
	"math/bits"
)

// Round says how many candidates are run on how many rows.
type Round struct {
	Candidates int `json:"candidates"`
	Rows       int `json:"rows"` // for each of them
}

// Calls returns how many scores the round takes.
func (r Round) Calls() int { return r.Candidates * r.Rows }

// Halving returns the rounds of sequential halving (Karnin, Koren and Somekh
// 2013): ⌈log2 m⌉ rounds, in each of which every candidate left gets
// ⌊budget/(left·rounds)⌋ new rows, and the better half, rounded up, stays;
// after the last, one is left. It is the one for a hard limit of calls. Give
// all candidates the same rows, and judge them by all rows they have had. The
// schedule decides what to run; what the winner is worth has to be found on
// rows that did not choose it.
//
// Fewer than one candidate, and a budget too small for one row each in the
// first round are errors. One candidate needs no rounds.
func Halving(candidates, budget int) ([]Round, error) {
	if candidates < 1 {
		return nil, fmt.Errorf("planning halving: %d candidates: give at least 1", candidates)
	}
	rounds := bits.Len(uint(candidates - 1)) // ⌈log2⌉
	var plan []Round
	for left := candidates; left > 1; left = (left + 1) / 2 {
		plan = append(plan, Round{Candidates: left, Rows: budget / rounds / left})
	}
	if len(plan) > 0 && plan[0].Rows < 1 {
		return nil, fmt.Errorf("planning halving: a budget of %d calls is not one row for each of %d candidates in each of %d rounds: give more calls or fewer candidates", budget, candidates, rounds)
	}
	return plan, nil
}

// Rejects is a schedule that drops one candidate a phase.
type Rejects struct {
	Rows  []int `json:"rows"`  // that each candidate left has had by the end of each phase
	Calls int   `json:"calls"` // in all
}

// SuccessiveRejects returns the phases of successive rejects (Audibert, Bubeck
// and Munos 2010): by the end of phase k every candidate left has had
// ⌈(budget-m)/(L·(m+1-k))⌉ rows, L = ½ + Σ_{i=2..m} 1/i, and the worst goes. It
// is the one for a hard limit of calls and few candidates, up to about 8, one
// of which is expected to be hard to tell from the best; with more take
// [Halving].
//
// Fewer than two candidates, and a budget that is not above their number are
// errors.
func SuccessiveRejects(candidates, budget int) (Rejects, error) {
	if candidates < 2 {
		return Rejects{}, fmt.Errorf("planning successive rejects: %d candidates: give at least 2", candidates)
	}
	if budget <= candidates {
		return Rejects{}, fmt.Errorf("planning successive rejects: a budget of %d calls for %d candidates: give more calls than candidates", budget, candidates)
	}
	l := rejectsLog(candidates)
	plan, before := Rejects{}, 0
	for left := candidates; left > 1; left-- {
		share := float64(budget-candidates) / (l * float64(left))
		rows := int(math.Ceil(share * (1 - 1e-12))) // a whole number may have come out a last digit above
		plan.Rows = append(plan.Rows, rows)
		plan.Calls += left * (rows - before)
		before = rows
	}
	return plan, nil
}

func rejectsLog(candidates int) float64 {
	l := 0.5
	for i := 2; i <= candidates; i++ {
		l += 1 / float64(i)
	}
	return l
}

// maxHyperbandRows keeps the products below whole.
const maxHyperbandRows = 1_000_000_000

// Hyperband returns the brackets of Hyperband (Li and others 2018): for s from
// ⌊log_η rows⌋ down to 0 there is a bracket that begins with
// ⌈(s_max+1)·η^s/(s+1)⌉ new candidates on rows/η^s rows each, and keeps a share
// of 1/η, with η times the rows, until all rows are used. It is the one where
// candidates are made on the fly, so that it is open whether to try many on few
// rows or few on many: its brackets do both. With a fixed list take [Halving].
// Rows that would be a fraction are rounded down. (Some printed tables round
// the candidates down.)
//
// rows is the most that one candidate can get, up to 1e9, and keep is η, 2 or
// more; other numbers are errors.
func Hyperband(rows, keep int) ([][]Round, error) {
	if rows < 1 || rows > maxHyperbandRows {
		return nil, fmt.Errorf("planning Hyperband: %d rows at most: give a number from 1 to 1e9", rows)
	}
	if keep < 2 {
		return nil, fmt.Errorf("planning Hyperband: one of %d is kept: give 2 or more", keep)
	}
	powers := []int{1} // of keep, up to rows
	for last := 1; last <= rows/keep; {
		last *= keep
		powers = append(powers, last)
	}
	var brackets [][]Round
	for s := len(powers) - 1; s >= 0; s-- {
		first := (len(powers)*powers[s] + s) / (s + 1)
		var bracket []Round
		for i := range s + 1 {
			bracket = append(bracket, Round{Candidates: first / powers[i], Rows: rows / powers[s-i]})
		}
		brackets = append(brackets, bracket)
	}
	return brackets, nil
}
