package reports

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"evalrun/harness"
	"evalrun/harness/stats"
)

// tame makes control characters, which a terminal would obey, and line ends
// blanks, and leaves out the characters that turn the direction of what follows.
func tame(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case unicode.IsControl(c), c == '\u2028', c == '\u2029':
			return ' '
		case c >= '\u202a' && c <= '\u202e', c >= '\u2066' && c <= '\u2069':
			return -1
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// oneLine is tame text with single blanks between its words.
func oneLine(s string) string { return strings.Join(strings.Fields(tame(s)), " ") }

// upper begins a sentence.
func upper(s string) string {
	c, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(c)) + s[n:]
}

// legend explains the letters and signs that the tables of evaluations really
// have.
func legend(evals []*Evaluation) string {
	letters := map[string]bool{}
	decided := map[stats.Decision]bool{}
	apart := false
	var lower []string
	for _, e := range evals {
		for _, metric := range e.Lower {
			if !slices.Contains(lower, metric) {
				lower = append(lower, metric)
			}
		}
		for _, l := range e.lines {
			letters[l.Method] = true
			if l.Versus != nil {
				decided[l.Versus.Decision] = true
			}
			apart = apart || l.apart
		}
	}
	var parts []string
	add := func(when bool, text string) {
		if when {
			parts = append(parts, text)
		}
	}
	add(letters["W"], "W: Wilson's range, for scores of 0 and 1")
	add(letters["t"], "t: Student's range")
	add(decided[stats.TooFewRows], "~: not decided, which is not the same as no difference")
	add(decided[harness.TrendOnly], "?: by a judge that is not known to agree with people, which decides nothing")
	add(decided[stats.NoDifference], "=: equal but for less than the margin")
	add(lower != nil, "less is better of "+strings.Join(lower, ", "))
	add(true, "failed rows count 0")
	add(apart, apartNote)
	add(len(evals) > 1, "every line is judged by itself: of 20 without a difference, about one will seem to have one")
	return upper(strings.Join(parts, "; ")) + "."
}

// origin says where the report comes from, and how to write it again.
func (r *Report) origin() phrase {
	var p phrase
	if r.dir == "" {
		p.say("A comparison of finished runs.")
		return p
	}
	p.say("Run ")
	p.name(r.Measured.Run)
	if t := r.Measured.Started; !t.IsZero() {
		p.say(", started %s", t.Format("2006-01-02 15:04:05 UTC"))
	}
	if r.Question != nil {
		p.say(", seed %d", r.Question.Seed)
	}
	if v := r.Measured.Versions["evalrun"]; v != "" {
		p.say(", evalrun %s", v)
	}
	p.say(". Written again from the stored answers by ")
	p.name("evalrun report " + r.dir)
	p.say(".")
	return p
}

// fact is one of the facts a reader needs to judge the rest.
type fact struct{ Name, Value string }

// facts says what was measured on what.
func (r *Report) facts() []fact {
	var (
		input, asked, left int
		answers            []string
		candidates         []string
		models             []string
		failed             []string
		failures           = map[string]int{}
	)
	add := func(list *[]string, s string) {
		for _, have := range *list {
			if have == s {
				return
			}
		}
		*list = append(*list, s)
	}
	for _, e := range r.Evaluations {
		input += e.Ledger.Input
		asked += e.Ledger.Asked
		for _, n := range e.Ledger.LeftOut {
			left += n
		}
		add(&answers, count(e.Repeats))
		for _, out := range e.Candidates {
			add(&candidates, out.Name)
			failures[out.Name] += out.Failed
			switch {
			case out.Recorded:
				add(&models, "recorded outputs")
			case out.Model != nil && out.Model.Provider != "" && out.Model.Provider != out.Model.Name:
				add(&models, out.Model.Name+" ("+out.Model.Provider+")")
			case out.Model != nil:
				add(&models, out.Model.Name)
			}
		}
	}
	for _, name := range candidates {
		if n := failures[name]; n > 0 {
			failed = append(failed, name+" "+count(n))
		}
	}
	if failed == nil {
		failed = []string{"none"}
	}
	rows := count(asked)
	if left > 0 {
		rows += " of " + count(input)
	}
	list := []fact{{"rows asked", rows}}
	if left > 0 {
		list = append(list, fact{"left out", count(left)})
	}
	list = append(list,
		fact{"candidates", fmt.Sprintf("%d: %s", len(candidates), strings.Join(candidates, ", "))},
		fact{"answers to a row", strings.Join(answers, ", ")},
		fact{"failed rows", strings.Join(failed, ", ")},
		fact{"models", strings.Join(models, ", ")})
	list = append(list, r.price()...)
	if r.Question != nil {
		list = append(list, fact{"seed", fmt.Sprint(r.Question.Seed)}, fact{"tools", r.Question.Tools})
	}
	return list
}

// cost is what all answers cost, cached ones included, as far as it is known.
func (r *Report) cost() string {
	sum, known, unknown, asked := 0.0, 0, 0, false
	for _, e := range r.Evaluations {
		for _, out := range e.Candidates {
			if out.Recorded {
				continue
			}
			asked = true
			if out.Usage.Cost == nil {
				unknown++
				continue
			}
			sum += *out.Usage.Cost
			known++
			if out.Usage.Unknown > 0 {
				unknown++
			}
		}
	}
	switch {
	case !asked:
		return "nothing was asked"
	case known == 0:
		return "unknown"
	case unknown > 0:
		return "at least " + money(sum)
	}
	return money(sum)
}

// price is what the run spent, and what its answers cost when they were asked.
func (r *Report) price() []fact {
	if !r.served() {
		return []fact{{"cost", r.cost()}}
	}
	list := []fact{{"spent", least(money(r.total().Money), r.total().Money > 0, r.missing())}}
	if r.cached() > 0 {
		list = append(list, fact{"cost of the answers", r.cost()})
	}
	return list
}

// method is one statistic that the report rests on.
type method struct{ Name, Why string }

// methods are the statistics that were used, each with why and where it is from.
func (r *Report) methods() []method {
	used := map[string]bool{}
	lost, unscored := false, false
	for _, e := range r.Evaluations {
		for i := range e.Judges {
			used["judge"] = used["judge"] || e.Judges[i].Calibrate
			used["orders"] = used["orders"] || e.Judges[i].Position != nil
		}
		for _, out := range e.Candidates {
			for _, m := range out.Metrics {
				used["one "+m.Method] = true
			}
		}
		for i := range e.Comparisons {
			unscored = unscored || e.Comparisons[i].Unscored > 0
			t := &e.Comparisons[i].Added
			used["two "+t.Method], used[t.PMethod], used[string(t.Decision)] = true, true, true
			lost = lost || e.Comparisons[i].Lost != nil
		}
	}
	var list []method
	for _, m := range []struct{ when, name, why string }{
		{"one wilson", "Range of a score, W", "Wilson's score interval (1927), because every score is 0 or 1: it keeps its width near 0% and 100%, where mean ± standard error does not."},
		{"one student-t", "Range of a score, t", "Student's interval of the mean (1908), because scores take other values than 0 and 1. It may pass the ends of the scale."},
		{"two tango", "Range of a difference", "Tango's score interval for paired rates (1998), because both candidates answered the same rows with scores of 0 and 1: it does not collapse when few rows changed, and agrees with McNemar's test."},
		{"two bonett-price", "Range of a difference", "Bonett and Price's interval for paired rates (2012), where Tango's could not be found: a little wider."},
		{"two student-t", "Range of a difference", "Student's interval on the rows' differences (1908): both candidates answered the same rows, so each row is compared with itself."},
		{"mcnemar-midp", "p", "McNemar's test, mid-p form (Fagerland, Lydersen and Laake 2013), on the rows that one candidate has right and the other wrong."},
		{"sign-flip", "p", "Sign-flip test (Fisher 1935): every pattern of signs of the differences; without a difference, each could as well have had the other sign."},
		{"sign-flip-sampled", "p", "Sign-flip test (Fisher 1935) on 9,999 random patterns of signs, the observed one counted with them (Phipson and Smyth 2010)."},
		{string(stats.NoDifference), "Equal", "Two one-sided tests (Schuirmann 1987): the range lies inside the margin."},
		{string(stats.TooFewRows), "Could have seen", "The smallest difference that so many rows, varying as these do, show with the wanted chance: Connor (1987) for scores of 0 and 1, else the normal formula for paired means."},
		{"judge", "Agreement of judge and people", "Cohen's kappa (1960) asks for more agreement than guessing with these shares gives, and is what a judge is held to; Gwet's AC1 (2008) hardly moves with the shares. Ranges by the large-sample standard errors. Neither says that the judge is unbiased."},
		{"orders", "Order of a pair", "Every pair is judged in both orders; verdicts that differ are a tie. Share with Wilson's range; sign test on those that went by the place."},
	} {
		if used[m.when] {
			list = append(list, method{m.name, m.why})
		}
	}
	if len(r.Evaluations) > 0 && len(r.Evaluations[0].Verdicts) > 0 {
		list = append(list, method{"Verdict", "Better or worse when the range of the difference excludes 0 and p is below " + fmt.Sprint(r.Evaluations[0].Statistics.Alpha) +
			". Overlapping ranges of two scores say nothing about their difference and are not used."})
	}
	list = append(list, method{"Failed rows", "They count 0. Leaving them out would favor the candidate that fails on hard rows."})
	if lost {
		list = append(list, method{"Lost rows", "Rows with an answer lost to an outage, or never recorded, say nothing of a candidate: they leave both sides of the verdict, and the difference is bounded by the worst and the best they could have been (Manski 1989)."})
	}
	if unscored {
		list = append(list, method{"Rows that were not scored", "Where a metric itself fails, that says nothing of a candidate: the row leaves both sides of the verdict, and there is none when that is more than one row in ten."})
	}
	return list
}
