package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"evalrun/harness"
	"evalrun/reports"
)

// estimate is what a run will ask, in all.
type estimate struct {
	Candidates   []harness.Estimate `json:"candidates"`
	Calls        int                `json:"calls"`
	InputTokens  int64              `json:"input_tokens"`
	OutputTokens int64              `json:"output_tokens"`
	Cost         *float64           `json:"cost,omitzero"`     // of the models that have a price; absent when none has
	Unpriced     []string           `json:"unpriced,omitzero"` // models whose price is not known
	Seconds      *float64           `json:"seconds,omitzero"`  // absent when the records do not say how long calls take
	JudgeCalls   int                `json:"judge_calls"`       // at most, and in none of the others
	Bounded      []string           `json:"bounded,omitzero"`  // models whose max_tokens comes from the budget
}

// foresee estimates the run that a spec would make or go on with. It is nil when
// nothing has to be asked of a service.
func (w *wiring) foresee(ctx context.Context, root string, info harness.RunInfo, plans []*harness.Checked) (*estimate, error) {
	run, err := harness.Foresee(root, info, plans...)
	if err != nil {
		return nil, harnessError(err)
	}
	list, err := run.Estimate(ctx)
	if err != nil {
		return nil, harnessError(err)
	}
	total := &estimate{Candidates: list, Unpriced: w.models.unpriced(), Bounded: w.models.bounded()}
	for _, p := range plans {
		for _, j := range p.JudgeCalls() {
			total.JudgeCalls += j.Calls
		}
	}
	var seconds float64
	timed := true
	for _, e := range list {
		total.Calls += e.Calls
		total.InputTokens += e.InputTokens
		total.OutputTokens += e.OutputTokens
		if e.Cost != nil {
			if total.Cost == nil {
				total.Cost = new(float64)
			}
			*total.Cost += *e.Cost
		}
		if e.Seconds == nil {
			timed = timed && e.Calls == 0
			continue
		}
		seconds += float64(e.Calls) * *e.Seconds
	}
	if total.Calls == 0 {
		return nil, nil
	}
	if timed {
		seconds /= float64(w.spec.inFlight())
		total.Seconds = &seconds
	}
	return total, nil
}

// usualInFlight is how many requests an estimate takes to be in flight where that
// adapts to the service.
const usualInFlight = 32

func (s *spec) inFlight() int {
	if n := int(s.Limits.Concurrency); n > 0 {
		return n
	}
	return usualInFlight
}

// words say the estimate in a line.
func (t *estimate) words(s *spec) string {
	calls := "1 call"
	if t.Calls != 1 {
		calls = reports.Count(int64(t.Calls)) + " calls"
	}
	text := fmt.Sprintf("about %s, %s tokens in and %s out", calls, reports.Count(round(t.InputTokens)), reports.Count(round(t.OutputTokens)))
	switch {
	case t.Cost == nil:
		text += ", cost unknown (no price for " + strings.Join(t.Unpriced, ", ") + ")"
	case len(t.Unpriced) > 0:
		text += fmt.Sprintf(", USD %s and what %s costs, which has no price", money(*t.Cost), strings.Join(t.Unpriced, ", "))
	default:
		text += ", USD " + money(*t.Cost)
	}
	if t.Seconds != nil {
		text += fmt.Sprintf(", %s at %d in flight", spoken(*t.Seconds), s.inFlight())
	}
	if t.JudgeCalls > 0 {
		text += fmt.Sprintf("; and at most %s calls of judges, which are not in it", reports.Count(int64(t.JudgeCalls)))
	}
	return text
}

// cautions are what a person should know of the budget before anything is asked.
func (t *estimate) cautions(s *spec) []string {
	b := &s.Limits.Budget
	var list []string
	if len(t.Bounded) > 0 {
		list = append(list, fmt.Sprintf("max_tokens of %s is %d because there is a budget (limits.budget.max_tokens), and that much is set aside for each request; adding or removing the budget asks everything anew. Give models.%s.max_tokens to choose it",
			strings.Join(t.Bounded, ", "), b.maxTokens(), t.Bounded[0]))
	}
	switch {
	case b.USD > 0 && t.Cost != nil && *t.Cost > float64(b.USD):
		list = append(list, fmt.Sprintf("the budget of USD %s will not suffice, by the estimate", money(float64(b.USD))))
	case b.Tokens > 0 && t.InputTokens+t.OutputTokens > int64(b.Tokens):
		list = append(list, fmt.Sprintf("the budget of %s tokens will not suffice, by the estimate", reports.Count(int64(b.Tokens))))
	case b.Calls > 0 && t.Calls > int(b.Calls):
		list = append(list, fmt.Sprintf("the budget of %s calls will not suffice, by the estimate", reports.Count(int64(b.Calls))))
	}
	return list
}

// round keeps two digits: an estimate has no more.
func round(n int64) int64 {
	if n < 100 {
		return n
	}
	unit := int64(math.Pow10(int(math.Log10(float64(n))) - 1))
	return (n + unit/2) / unit * unit
}

// money writes an amount with the digits that matter.
func money(f float64) string {
	if f >= 0.995 || f == 0 {
		return fmt.Sprintf("%.2f", f)
	}
	return strconv.FormatFloat(f, 'f', 1-int(math.Floor(math.Log10(f))), 64) // without an exponent
}

// spoken is a time as people say it.
func spoken(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < 90*time.Second:
		return fmt.Sprintf("%.0f s", max(1, d.Seconds()))
	case d < 90*time.Minute:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}

// affordable refuses what a budget of money cannot see, and on a terminal asks a
// person before much is spent.
func (e *env) affordable(s *spec, t *estimate, flags runFlags) error {
	if t == nil {
		return nil
	}
	if s.Limits.Budget.USD > 0 && len(t.Unpriced) > 0 && !flags.unpriced {
		return usagef("limits.budget.usd bounds money, and the price of %s is not known: give its price (models.%s.price), or run with --allow-unpriced", strings.Join(t.Unpriced, ", "), t.Unpriced[0])
	}
	e.notice("%s", t.words(s))
	for _, caution := range t.cautions(s) {
		e.warn(caution)
	}
	if len(flags.retry) > 0 {
		e.notice("the answers that --retry-failed asks anew come on top")
	}
	above := float64(s.Limits.ConfirmAbove)
	if above == 0 {
		above = defaultConfirmAbove
	}
	much := t.Cost != nil && *t.Cost > above || len(t.Unpriced) > 0 && t.Calls > unpricedCalls
	in, isFile := e.In.(*os.File)
	if !much || flags.yes || !isFile || !term.IsTerminal(int(in.Fd())) {
		return nil
	}
	fmt.Fprint(e.Err, "evalrun: go on? (y/N; --yes does not ask) ")
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		return nil
	}
	return exit(ExitInterrupted, errors.New("nothing was asked, as you said"))
}

// A run that is estimated to cost more, or without a price to make more calls, is
// asked about on a terminal.
const (
	defaultConfirmAbove = 5.0
	unpricedCalls       = 1000
)
