package metrics

import (
	"context"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/harness/stats"
)

// What a judge says of a pair, and what that makes of a candidate.
const (
	saidFirst  = "first"
	saidSecond = "second"
	tie        = harness.VerdictTie
	better     = harness.VerdictBetter
	worse      = harness.VerdictWorse
)

func pairMenu() datasets.Value { return textList(saidFirst, saidSecond, tie) }

// pairScale is of a candidate against the baseline: a tie is half a win.
func pairScale() scale {
	return scale{words: []string{better, worse, tie}, scores: map[string]float64{better: 1, worse: 0, tie: 0.5}}
}

// compare judges an answer against the baseline's, in both orders. Equal answers
// are a tie that nobody need be asked about.
func (m *judge) compare(ctx context.Context, j *harness.Judging, answer datasets.Value, inputs datasets.Values) (harness.Verdict, error) {
	if j.Against == nil {
		return noVerdict("no_baseline", "the baseline has no answer to this row"), nil
	}
	other, missing := m.answer(j.Against)
	if missing != "" {
		return noVerdict("no_baseline", "of the baseline: "+missing), nil
	}
	if other.Equal(answer) {
		return harness.Verdict{Word: tie, Score: harness.Score{Value: 0.5}}, nil
	}
	mine, theirs := fenced(answer.String()), fenced(other.String())
	return m.judgings(func(draw int) (harness.Verdict, error) {
		inputs["first"], inputs["second"] = mine, theirs
		one, reason, none, err := m.ask(ctx, j, inputs, draw)
		if err != nil || one == "" {
			return none, err
		}
		inputs["first"], inputs["second"] = theirs, mine
		two, _, none, err := m.ask(ctx, j, inputs, draw)
		if err != nil || two == "" {
			return none, err
		}
		v := harness.Verdict{Orders: ordersOf(one, two)}
		switch {
		case one == saidFirst && two == saidSecond:
			v.Word = better
		case one == saidSecond && two == saidFirst:
			v.Word = worse
		default:
			v.Word = tie
		}
		v.Value, v.Feedback = m.scale.scores[v.Word], v.Word+" than the baseline's"+reason
		if v.Word == tie {
			v.Feedback = "no better and no worse than the baseline's: " + one + " when it came first, " + two + " when it came second" + reason
		}
		return v, nil
	})
}

// ordersOf says what became of a verdict when the order was turned. The candidate's
// answer is the first one in the one order, and the second in the other.
func ordersOf(one, two string) stats.Orders {
	switch {
	case one == tie && two == tie, one != tie && two != tie && one != two:
		return stats.Orders{Same: 1}
	case one == tie || two == tie:
		return stats.Orders{Tied: 1}
	case one == saidFirst:
		return stats.Orders{First: 1}
	}
	return stats.Orders{Second: 1}
}
