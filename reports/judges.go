package reports

import (
	"fmt"
	"strings"

	"evalrun/harness"
	"evalrun/harness/stats"
)

// judgeTable is a judge's verdicts beside what people said of the same answers,
// ready to be read.
type judgeTable struct {
	Words phrase
	Lines []judgeLine // none when it was not compared with people
}

type judgeLine struct{ Verdict, Right, Wrong string }

// judges has a table for each judge of the evaluation.
func (e *Evaluation) judges() []judgeTable {
	var list []judgeTable
	for i := range e.Judges {
		j := &e.Judges[i]
		t := judgeTable{Words: e.judgeWords(j)}
		for k, line := range j.Confusion {
			t.Lines = append(t.Lines, judgeLine{j.Verdicts[k], count(line[0]), count(line[1])})
		}
		list = append(list, t)
	}
	return list
}

// judgeWords say who judged, what its verdicts are worth, and what they took.
func (e *Evaluation) judgeWords(j *harness.JudgeReport) phrase {
	var p phrase
	p.say("Judge ")
	p.name(j.Metric)
	p.say(" (model ")
	p.name(j.Model.Name)
	p.say(")")
	switch {
	case j.Mode == harness.JudgePairwise:
		p.say(" compared answers with the baseline's in both orders")
		if position := positionWords(j.Position); position != "" {
			p.say(": %s", position)
		}
		if j.Pairs > 0 {
			p.say("; %s of %s are ties in all", count(j.Ties), plural(j.Pairs, "answer"))
		}
		p.say(". People rated single answers, so it is compared with none: trend only.")
	case !j.Calibrate:
		p.say(" was not compared with people: trend only.")
	default:
		p.say(" agrees with people on %s", agreementWords(j))
		if j.Missing > 0 {
			p.say("; it gave no verdict on %s of %s", count(j.Missing), count(j.N))
		}
		p.say(". %s.", upper(standingWords(j)))
	}
	if none := counted(j.NoVerdict); none != "" {
		p.say(" No verdict on answers of candidates: %s.", none)
	}
	cost := "unknown"
	if j.Usage.Cost != nil {
		cost = money(*j.Usage.Cost)
		if j.Usage.Unknown > 0 {
			cost = "at least " + cost
		}
	}
	p.say(" Its model answered %s, cost %s, which is in no candidate's.", plural(j.Requests, "request"), cost)
	return p
}

// standingWords say whether a judge's scores may decide.
func standingWords(j *harness.JudgeReport) string {
	least := share2(j.MinAgreement)
	kappa, ok := j.Kappa.Value.Get()
	switch {
	case j.Fit:
		return "kappa is at least the " + least + " that was asked for, so its scores may decide"
	case ok:
		return fmt.Sprintf("kappa %s is below the %s that was asked for: trend only", coefficientText(kappa), least)
	case j.N == j.Missing:
		return "there is no rated answer that it judged: trend only"
	}
	return "judge and people said the same of every answer, which shows nothing (no variation): trend only"
}

func agreementWords(j *harness.JudgeReport) string {
	n := j.N - j.Missing
	same, ok := j.Agreement.Value.Get()
	if !ok {
		return "0 answers"
	}
	text := fmt.Sprintf("%s of %s (%s)", rounded(100*same, 0)+"%", plural(n, "rated answer"), betweenWords(j.Agreement, true))
	for _, c := range []struct {
		name string
		of   stats.Coefficient
	}{{"Cohen's kappa", j.Kappa}, {"Gwet's AC1", j.AC1}} {
		v, ok := c.of.Value.Get()
		if !ok {
			continue
		}
		text += ", " + c.name + " " + coefficientText(v)
		if between := betweenWords(c.of, false); between != "" {
			text += " (" + between + ")"
		}
	}
	return text
}

// betweenWords is the range of a coefficient; "" when it has none.
func betweenWords(c stats.Coefficient, percent bool) string {
	low, okLow := c.Low.Get()
	high, okHigh := c.High.Get()
	switch {
	case !okLow || !okHigh:
		return ""
	case percent:
		return rounded(100*low, 0) + " to " + rounded(100*high, 0) + "%"
	}
	return coefficientText(low) + " to " + coefficientText(high)
}

func coefficientText(v float64) string { return rounded(v, -2) }

// positionWords say how often the order decided.
func positionWords(b *stats.PositionBias) string {
	flipped, ok := b.Flipped.Value.Get()
	if !ok {
		return ""
	}
	n := b.Same + b.First + b.Second + b.Tied
	text := fmt.Sprintf("the other order gave another verdict on %s of %s (%s, %s)", count(n-b.Same), plural(n, "pair"),
		rounded(100*flipped, 0)+"%", betweenWords(b.Flipped, true))
	if b.First+b.Second > 0 {
		p := probability(b.P)
		text += fmt.Sprintf(", %s for whichever came first and %s for the second (p %s)", count(b.First), count(b.Second), p)
	}
	return text
}

// trend says why the comparison by a judge decides nothing.
func (e *Evaluation) trend(p *phrase, c *harness.Comparison) {
	j := e.Judge(c.Metric)
	switch {
	case j == nil:
		p.say(" Its judge was not found to agree with people.")
	case j.Mode == harness.JudgePairwise, !j.Calibrate:
		p.say(" Its judge was not compared with people, so this decides nothing.")
	default:
		p.say(" Its judge's %s, so this decides nothing.", strings.TrimSuffix(standingWords(j), ": trend only"))
	}
}

// mdJudges writes what is to be said of judges.
func mdJudges(b *strings.Builder, e *Evaluation) {
	for _, t := range e.judges() {
		fmt.Fprintf(b, "%s\n\n", mdPhrase(t.Words))
		if len(t.Lines) == 0 {
			continue
		}
		b.WriteString("| judge | people: right | people: wrong |\n|---|--:|--:|\n")
		for _, l := range t.Lines {
			fmt.Fprintf(b, "| %s | %s | %s |\n", mdName(l.Verdict), l.Right, l.Wrong)
		}
		b.WriteString("\n")
	}
}

// judges writes what is to be said of judges, and a line for each verdict.
func (t *terminal) judges(e *Evaluation) {
	for _, j := range e.judges() {
		t.say("", "  ", j.Words)
		for _, l := range j.Lines {
			t.say("  ", "    ", plain("said %s: %s that people call right, %s that they call wrong", l.Verdict, l.Right, l.Wrong))
		}
	}
}
