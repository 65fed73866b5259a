package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"evalrun/harness"
	"evalrun/pipeline"
)

// causeCached is the cause of what a cache or another run answered.
const causeCached = "cached"

// served reports whether the run asked services.
func (r *Report) served() bool {
	return slices.ContainsFunc(r.Measured.Sittings, func(s harness.Sitting) bool { return len(s.Models) > 0 })
}

// spending adds up what the sittings booked, by purpose, model and cause, and
// after each purpose and model what a cache or another run answered. A sitting that
// was cut off booked nothing; what the next one found of it in the journal is the
// least it took.
func (r *Report) spending() []pipeline.Booking {
	sums := map[pipeline.Account]*pipeline.Amount{}
	under := func(a pipeline.Account) *pipeline.Amount {
		if sums[a] == nil {
			sums[a] = &pipeline.Amount{}
		}
		return sums[a]
	}
	for _, s := range r.Measured.Sittings {
		for _, b := range s.Before {
			under(b.Account).AtLeast(b.Amount)
		}
		for _, b := range s.Bookings {
			under(b.Account).Add(b.Amount)
		}
	}
	for _, e := range r.Evaluations {
		for _, out := range e.Candidates {
			if reused := out.Measured.Reused; reused != (pipeline.Amount{}) && out.Model != nil {
				under(pipeline.Account{Purpose: "candidate", Cause: causeCached, Model: out.Model.Name}).Add(reused)
			}
		}
	}
	var list []pipeline.Booking
	for a, s := range sums {
		list = append(list, pipeline.Booking{Account: a, Amount: *s})
	}
	causes := []string{"first", "retry", "repair", causeCached}
	slices.SortFunc(list, func(x, y pipeline.Booking) int {
		return cmp.Or(cmp.Compare(x.Purpose, y.Purpose), cmp.Compare(x.Model, y.Model),
			slices.Index(causes, x.Cause)-slices.Index(causes, y.Cause), cmp.Compare(x.Cause, y.Cause))
	})
	return list
}

// spendTable is the spending in words.
type spendTable struct {
	Caption string
	Lines   []spendLine
	Total   *spendLine
}

type spendLine struct{ Purpose, Cause, Model, Requests, Tokens, Money, Unknown, Doubtful string }

// spendTable lays out what was spent. The total is without what a cache or
// another run answered.
func (r *Report) spendTable() spendTable {
	t := spendTable{Caption: "Requests that reached a service. A sum of which a part is not known is what it is at least."}
	total := r.total()
	cached := false
	for _, b := range r.Measured.Spending {
		l := spent(b.Amount)
		l.Purpose, l.Cause, l.Model = b.Purpose, b.Cause, b.Model
		t.Lines = append(t.Lines, l)
		cached = cached || b.Cause == causeCached
	}
	if t.Lines == nil {
		return t
	}
	l := spent(total)
	l.Purpose = "total"
	if cached {
		l.Purpose = "total, without cached"
		t.Caption += " Cached: answered by a cache or another run, at what it took when it was asked."
	}
	if total.Unknown > 0 {
		t.Caption += " Unknown: answered requests of which tokens or price are not known."
	}
	if total.Doubtful > 0 {
		t.Caption += " In doubt: requests that got no answer and may have been charged all the same."
	}
	t.Total = &l
	return t
}

func spent(s pipeline.Amount) spendLine {
	return spendLine{
		Requests: count(s.Requests), Unknown: count(s.Unknown), Doubtful: count(s.Doubtful),
		Tokens: least(count(s.Tokens), s.Tokens > 0, s.Uncounted+s.Doubtful), Money: least(money(s.Money), s.Money > 0, s.Unknown+s.Doubtful),
	}
}

// least writes a sum of which so many parts are not known.
func least(sum string, something bool, missing int64) string {
	switch {
	case missing == 0:
		return sum
	case something:
		return "at least " + sum
	}
	return "unknown"
}

// took says what a run against services took as a whole.
func (r *Report) took() []phrase {
	list := []phrase{plain("%s.", upper(r.effort())), r.lost()}
	if cut := r.cutOff(); cut != nil {
		list = append(list, cut)
	}
	return list
}

// total is what was spent, without what a cache or another run answered.
func (r *Report) total() (sum pipeline.Amount) {
	for _, b := range r.Measured.Spending {
		if b.Cause != causeCached {
			sum.Add(b.Amount)
		}
	}
	return sum
}

// missing is how many parts of what was spent are not known: answered requests,
// requests of which nobody knows whether they were answered, and processes that
// were cut off.
func (r *Report) missing() int64 {
	sum := r.total()
	return sum.Unknown + sum.Doubtful + int64(r.Measured.InDoubt+r.cutSittings())
}

// cached is how many calls a cache or another run answered.
func (r *Report) cached() (n int) {
	for _, e := range r.Evaluations {
		for _, out := range e.Candidates {
			n += out.Measured.Cached
		}
	}
	return n
}

// effort is the run in one line: calls, and what was spent on them and on all else,
// which is what a cache or another run did not answer: requests, tokens, money, time,
// retries.
func (r *Report) effort() string {
	calls := 0
	for _, e := range r.Evaluations {
		for _, out := range e.Candidates {
			calls += out.Measured.Asked
		}
	}
	sum, cached := r.total(), r.cached()
	parts := []string{plural(calls, "call")}
	if cached > 0 {
		parts[0] += fmt.Sprintf(" (%s from a cache or another run)", count(cached))
	}
	requests := count(sum.Requests) + " requests"
	if sum.Requests == 1 {
		requests = "1 request"
	}
	parts = append(parts, requests)
	if tokens := least(count(sum.Tokens), sum.Tokens > 0, sum.Uncounted+r.missing()-sum.Unknown); tokens == "unknown" {
		parts = append(parts, "tokens unknown")
	} else {
		parts = append(parts, tokens+" tokens")
	}
	parts = append(parts, r.moneyInWords())
	var took float64
	var retries int64
	for _, s := range r.Measured.Sittings {
		if s.Ended != nil {
			took += s.Ended.Sub(s.Started).Seconds()
		}
		for _, m := range s.Models {
			for _, n := range m.Retries {
				retries += n
			}
		}
	}
	parts = append(parts, span(took), retried(retries))
	if doubt := sum.Doubtful + int64(r.Measured.InDoubt); doubt > 0 {
		parts = append(parts, count(doubt)+" in doubt")
	}
	return strings.Join(parts, ", ")
}

func retried(n int64) string {
	if n == 1 {
		return "1 retry"
	}
	return count(n) + " retries"
}

// moneyInWords is what was spent, why that is not known, and what the answers cost
// when that is another sum.
func (r *Report) moneyInWords() string {
	spent := least(money(r.total().Money), r.total().Money > 0, r.missing())
	if spent == "unknown" {
		return "cost unknown" + r.noPrice()
	}
	spent += " spent"
	if r.cached() > 0 {
		if cost := r.cost(); cost != "unknown" {
			spent += " (the answers cost " + cost + " when they were asked)"
		}
	}
	return spent
}

// noPrice says that a model has no price.
func (r *Report) noPrice() string {
	for _, e := range r.Evaluations {
		for _, out := range e.Candidates {
			if !out.Recorded && out.Price == nil {
				return " (no price)"
			}
		}
	}
	return ""
}

// lost says whether limits or failures of services cost rows.
func (r *Report) lost() phrase {
	limited := 0
	var p, others phrase
	add := func(to *phrase, e *Evaluation, candidate string, n int, class string) {
		if len(*to) > 0 {
			to.say(", ")
		}
		if len(r.Evaluations) > 1 {
			to.say("%s ", e.Name)
		}
		to.name(candidate)
		to.say(" %s %s", count(n), strings.ReplaceAll(class, "_", " "))
	}
	for _, e := range r.Evaluations {
		for _, out := range e.Candidates {
			if n := out.Failures["rate_limited"]; n > 0 {
				limited += n
				add(&p, e, out.Name, n, "rate_limited")
			}
			for _, class := range []string{"server", "timeout"} {
				if n := out.Failures[class]; n > 0 {
					add(&others, e, out.Name, n, class)
				}
			}
		}
	}
	var s phrase
	switch {
	case limited == 0:
		s.say("No row was lost to limits")
	case limited == 1:
		s.say("1 row was lost to limits: ")
	default:
		s.say("%s rows were lost to limits: ", count(limited))
	}
	s = append(s, p...)
	if len(others) > 0 {
		s.say("; lost to failures of a service: ")
		s = append(s, others...)
	}
	s.say(".")
	return s
}

// cutOff tells of processes that ended before they could say what they took.
func (r *Report) cutOff() phrase {
	n := r.cutSittings()
	switch n {
	case 0:
		return nil
	case 1:
		return plain("1 of %s was cut off: of what it spent, only what the run's journal has is known.", plural(len(r.Measured.Sittings), "sitting"))
	}
	return plain("%s of %s were cut off: of what they spent, only what the run's journal has is known.", count(n), plural(len(r.Measured.Sittings), "sitting"))
}

func (r *Report) cutSittings() (n int) {
	for _, s := range r.Measured.Sittings {
		if s.Ended == nil {
			n++
		}
	}
	return n
}
