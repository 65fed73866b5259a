package reports

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/harness/stats"
	"evalrun/pipeline"
)

// A stage is an evaluation made up by hand: what each candidate answered to each
// row. Every number of the evaluation is computed from that by the functions of
// harness/stats.
type stage struct {
	name     string
	metrics  []string
	baseline string
	repeats  int
	left     map[string]int
	stats    stats.Options
	warnings []string
	lanes    []*lane
	rows     int
	row      func(i int) (id string, inputs datasets.Value)
	tell     func(*harness.Evaluation) // what else is known of it
}

type lane struct {
	harness.CandidateFacts
	reply func(row, repeat int) reply
}

// reply is one answer: its text, a score for each metric, or why it failed.
type reply struct {
	text     string
	outputs  datasets.Value
	scores   []float64
	feedback string
	failed   *harness.Failed
	lost     bool // for a reason that is not the candidate's
}

// play gives the evaluation, its results and the inputs of its calls.
func (s *stage) play(t testing.TB) (*harness.Evaluation, []harness.Result, map[string]datasets.Value) {
	t.Helper()
	s.repeats = max(1, s.repeats)
	left := 0
	for _, n := range s.left {
		left += n
	}
	if s.left == nil {
		s.left = map[string]int{}
	}
	e := &harness.Evaluation{
		Name: s.name, Metrics: s.metrics, Baseline: s.baseline, Repeats: s.repeats, Warnings: s.warnings,
		Rows:        harness.RowCounts{Input: s.rows + left, Rated: s.rows + left, LeftOut: s.left, Asked: s.rows, Fingerprint: "sha256:" + strings.Repeat("5a", 32)},
		Comparisons: []harness.Comparison{},
		Ledger:      harness.Ledger{Input: s.rows + left, LeftOut: s.left, Asked: s.rows},
	}
	var (
		results []harness.Result
		inputs  = map[string]datasets.Value{}
		table   = map[string][][]float64{} // candidate → metric → row
		lost    = map[string][]bool{}
	)
	for n, l := range s.lanes {
		out := &harness.Outcome{CandidateFacts: l.CandidateFacts, N: s.rows, Failures: map[string]int{}, Metrics: map[string]harness.Summary{}}
		by := make([][]float64, len(s.metrics))
		for m := range by {
			by[m] = make([]float64, s.rows)
		}
		lost[l.Name] = make([]bool, s.rows)
		var tokensIn, tokensOut int64
		for i := range s.rows {
			id, in := s.row(i)
			class := ""
			for k := range s.repeats {
				r := l.reply(i, k)
				res := harness.Result{Evaluation: s.name, Row: id, Candidate: l.Name, Repeat: k, Failed: r.failed, Outputs: r.outputs}
				if r.text != "" {
					res.Answer = datasets.Text(r.text)
				}
				if r.failed == nil {
					for m, name := range s.metrics {
						v := r.scores[m]
						by[m][i] += v / float64(s.repeats)
						res.Scores = append(res.Scores, harness.Scored{Metric: name, Value: &v, Feedback: r.feedback})
					}
				} else if class == "" {
					class = r.failed.Class
				}
				lost[l.Name][i] = lost[l.Name][i] || r.lost
				out.Measured.Answers++
				if !l.Recorded {
					in64, out64 := int64(200+len(in.JSON())), int64(4+len(r.text)/4)
					tokensIn, tokensOut = tokensIn+in64, tokensOut+out64
					res.Call = fmt.Sprintf("%s/%s/%s/%d", s.name, l.Name, id, k)
					res.Requests, res.Seconds = 1, 0.25+float64(i%9)/16
					res.Usage = pipeline.Usage{Input: &in64, Output: &out64}
					res.RequestHash = fmt.Sprintf("sha256:%064x", 1000*n+i)
					inputs[res.Call] = in
					out.Measured.Asked++
				}
				results = append(results, res)
			}
			if class != "" {
				out.Failed++
				out.Failures[class]++
			}
		}
		for _, p := range l.Plugins {
			out.Kept++
			out.Tools = map[string]int{"exact": 1200, "canonical": 3, "stub": 2, "live": 1, "never_recorded": 4}
			out.ToolErrors = map[string]harness.ToolErrors{"search": {Errors: 1, Calls: 7}}
			out.PluginUse = append(out.PluginUse, harness.PluginUse{Plugin: p.Name, Version: p.Version, Hook: "before_call", Changed: s.rows, Instruction: 1, Blocked: 2, Failed: 1})
		}
		for m, name := range s.metrics {
			r, err := stats.Range(by[m])
			if err != nil {
				t.Fatal(err)
			}
			out.Metrics[name] = harness.Summary{Interval: r, Failed: out.Failed}
		}
		if !l.Recorded {
			out.Usage.InputTokens, out.Usage.OutputTokens = &tokensIn, &tokensOut
			if p := l.Price; p != nil {
				cost := (float64(tokensIn)*p.Input + float64(tokensOut)*p.Output) / 1e6
				out.Usage.Cost = &cost
				out.Measured.Spent = &cost
			}
			out.Measured.Latency = harness.Latency{N: out.Measured.Asked, Median: 0.5, P95: 0.75, Max: 0.75, Total: 0.5 * float64(out.Measured.Asked)}
		}
		table[l.Name] = by
		e.Candidates = append(e.Candidates, out)
		e.Ledger.Candidates = append(e.Ledger.Candidates, harness.CandidateLedger{Candidate: l.Name, Scored: s.rows - out.Failed, Failed: out.Failures})
	}
	if err := e.Ledger.Check(); err != nil {
		t.Fatal(err)
	}
	for _, l := range s.lanes {
		if l.Name == s.baseline || len(s.lanes) == 1 {
			continue
		}
		for m, metric := range s.metrics {
			e.Comparisons = append(e.Comparisons, s.compare(t, metric, l.Name, table[s.baseline][m], table[l.Name][m], lost[s.baseline], lost[l.Name]))
		}
	}
	if s.tell != nil {
		s.tell(e)
	}
	// The order of a run: row by row, the repeats, the candidates interleaved.
	at := map[string]int{}
	for i := range s.rows {
		id, _ := s.row(i)
		at[id] = i
	}
	slices.SortStableFunc(results, func(a, b harness.Result) int {
		return cmp.Or(at[a.Row]-at[b.Row], a.Repeat-b.Repeat)
	})
	return e, results, inputs
}

func (s *stage) compare(t testing.TB, metric, candidate string, before, after []float64, lostBefore, lostAfter []bool) harness.Comparison {
	t.Helper()
	d, err := stats.Compare(before, after)
	if err != nil {
		t.Fatal(err)
	}
	x, _ := stats.Range(before)
	y, _ := stats.Range(after)
	c := harness.Comparison{
		Metric: metric, Baseline: s.baseline, Candidate: candidate, N: d.N, Before: x.Mean, After: y.Mean,
		Diff: d.Diff, Low: d.Low, High: d.High, Better: d.Better, Worse: d.Worse, Same: d.Same, Changed: []harness.Change{},
	}
	var a, b []float64
	worst, best, n := 0.0, 0.0, 0
	for i := range before {
		if before[i] != after[i] {
			id, _ := s.row(i)
			c.Changed = append(c.Changed, harness.Change{Row: id, Before: before[i], After: after[i]})
		}
		w, z := after[i]-before[i], after[i]-before[i]
		if lostBefore[i] || lostAfter[i] {
			n++
			if lostAfter[i] {
				w, z = 0-before[i], 1-before[i]
			}
			if lostBefore[i] {
				w, z = w-1+before[i], z+before[i]
			}
		} else {
			a, b = append(a, before[i]), append(b, after[i])
		}
		worst, best = worst+w/float64(d.N), best+z/float64(d.N)
	}
	if n > 0 {
		c.Lost = &harness.Lost{Rows: n, Worst: worst, Best: best}
		c.Warnings = append(c.Warnings, fmt.Sprintf("answers to %d rows were lost to the world around the candidates: p and the decision are without these rows", n))
	}
	o := s.stats
	o.Binary = stats.AllBinary(a, b)
	if c.Added, err = stats.Paired(a, b, o); err != nil {
		t.Fatal(err)
	}
	c.P, c.Method, c.Detectable, c.Decision = c.Added.P, c.Added.PMethod, c.Added.Detectable, c.Added.Decision
	return c
}

// report makes the report of a run of these stages.
func report(t testing.TB, name string, facts Facts, stages ...*stage) *Report {
	t.Helper()
	return reportOf(t, name, facts, nil, stages...)
}

// reportOf is report of a run that had these sittings.
func reportOf(t testing.TB, name string, facts Facts, sittings []harness.Sitting, stages ...*stage) *Report {
	t.Helper()
	m := &material{
		sittings: sittings,
		dir:      "runs/20260302T091500Z_" + name + "_4be19c02",
		manifest: &harness.Manifest{
			Schema: 1, ID: "20260302T091500Z_" + name + "_4be19c02", Identity: "sha256:4be19c02" + strings.Repeat("77", 28), Name: name,
			Started: time.Date(2026, 3, 2, 9, 15, 0, 0, time.UTC), Spec: "sha256:" + strings.Repeat("c3", 32), Records: []string{"records"},
			Seed: 7, Tools: "recorded", Versions: map[string]string{"evalrun": "0.1.0", "go": "go1.26.0"}, Host: map[string]string{"os": "linux", "cpus": "8"},
		},
	}
	var (
		evals   []*harness.Evaluation
		results []harness.Result
		inputs  = map[string]datasets.Value{}
	)
	for _, s := range stages {
		e, res, in := s.play(t)
		evals = append(evals, e)
		results = append(results, res...)
		for id, v := range in {
			inputs[id] = v
		}
		m.manifest.Evaluations = append(m.manifest.Evaluations, harness.EvaluationManifest{Name: s.name, Stats: s.stats})
	}
	m.results = func() iter.Seq2[harness.Result, error] {
		return func(yield func(harness.Result, error) bool) {
			for _, r := range results {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
	m.inputs = func(calls map[string]bool) (map[string]datasets.Value, error) {
		found := map[string]datasets.Value{}
		for id := range calls {
			if v, ok := inputs[id]; ok {
				found[id] = v
			}
		}
		return found, nil
	}
	r, err := build(m, evals, facts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The rows of a made-up shop's help desk.

var (
	queues   = []string{"billing", "delivery", "returns", "account"}
	messages = []string{
		"I was charged twice for order %d and would like one of the payments back.",
		"Parcel %d has been \"out for delivery\" since Tuesday. Can you find out where it is?",
		"The kettle from order %d arrived with a cracked lid. How do I send it back?",
		"Since I changed my e-mail address I cannot log in any more. My customer number is %d.",
		"Please send the invoice for order %d to our new office, the old address is no longer valid.",
		"Order %d: two of the three lamps are missing from the box.",
		"I returned the shoes of order %d three weeks ago and still have not got my money.",
		"How do I delete my account %d and everything you keep about me?",
	}
)

func ticket(i int) (string, datasets.Value) {
	in := datasets.Values{"message": datasets.Text(fmt.Sprintf(messages[i%len(messages)], 48000+37*i))}
	return fmt.Sprintf("0195c2a4-%04x-7000-8000-%012x", i, 7919*i+11), in.Object()
}

func queue(i int) string { return queues[i%len(queues)] }

// choose answers right or with the next queue.
func choose(right bool, i int) reply {
	r := reply{text: queue(i), scores: []float64{1}}
	if !right {
		r.text, r.scores[0] = queue(i+1), 0
		r.feedback = "expected " + queue(i)
	}
	return r
}

func think(right bool, i int) reply {
	r := choose(right, i)
	why := fmt.Sprintf("The customer writes about case %d. What they want settled first is a matter of %s: nothing in the message needs another queue before that is done. So the message goes to %s.", 48000+37*i, r.text, r.text)
	r.outputs = datasets.Values{"reasoning": datasets.Text(why), "queue": datasets.Text(r.text)}.Object()
	return r
}

func unreadable(why string) reply {
	return reply{failed: &harness.Failed{Class: "unreadable", Type: pipeline.TypeReply, Code: "parse-missing", Message: why}}
}

func timedOut() reply {
	return reply{lost: true, failed: &harness.Failed{Class: "timeout", Type: pipeline.TypeTimeout, Message: "no answer within 60s, three times"}}
}

func model(name, provider string) *harness.ModelRef {
	return &harness.ModelRef{Name: name, Provider: provider}
}

// betterStage is decided: 69 rows better, 10 worse, 171 the same.
func betterStage() *stage {
	// Of 250 rows both have 149 right, direct alone 10, cot alone 69.
	direct := func(i int) bool { return i%250 < 159 }
	cot := func(i int) bool { return i%250 >= 10 && i%250 < 228 }
	spread := func(i int) int { return i * 101 % 250 } // so that they do not come in blocks
	return &stage{
		metrics: []string{"exact_match"}, baseline: "direct", rows: 250, row: ticket,
		left: map[string]int{"no_answer": 41, "other_signature": 9, "disputed": 3},
		lanes: []*lane{
			{
				harness.CandidateFacts{Name: "direct", Program: "shop:route", ProgramVersion: "sha256:" + strings.Repeat("1d", 32), Model: model("small", "openai"), Price: &pipeline.Price{Input: 0.4, Output: 1.6}},
				func(i, _ int) reply { return choose(direct(spread(i)), i) },
			},
			{
				harness.CandidateFacts{Name: "cot", Program: "shop:route", ProgramVersion: "sha256:" + strings.Repeat("2e", 32), Definition: "sha256:" + strings.Repeat("2d", 32), Model: model("small", "openai"), Plugins: []harness.PluginRef{{Name: "trim", Version: "1.0.0"}}, Price: &pipeline.Price{Input: 0.4, Output: 1.6}},
				func(i, _ int) reply {
					switch spread(i) { // rows that both have wrong anyway
					case 231, 240:
						return unreadable("the reply has no <queue> section: it ends after 512 tokens")
					case 249:
						return unreadable("the queue is \"complaints\", which is none of billing, delivery, returns, account")
					}
					return think(cot(spread(i)), i)
				},
			},
		},
	}
}

// The three stages of a suite: several candidates with a recorded lane, a metric
// with partial credit and repeats, and equality within a margin.

func routeStage() *stage {
	spread := func(i int) int { return i * 37 % 96 }
	return &stage{
		name: "route", metrics: []string{"exact_match"}, baseline: "today", rows: 96, row: ticket, left: map[string]int{"no_answer": 12},
		lanes: []*lane{
			{harness.CandidateFacts{Name: "today", Program: "shop:route", Recorded: true}, func(i, _ int) reply { return choose(spread(i) < 61, i) }},
			{harness.CandidateFacts{Name: "cot", Program: "shop:route", Model: model("small", "openai")}, func(i, _ int) reply { return think(spread(i) >= 4 && spread(i) < 85, i) }},
			{harness.CandidateFacts{Name: "terse", Program: "shop:route", Model: model("tiny", "lexical")}, func(i, _ int) reply {
				if i%31 == 8 {
					return timedOut()
				}
				return choose(spread(i) >= 26 && spread(i) < 66, i)
			}},
		},
	}
}

func urgencyStage() *stage {
	return &stage{
		name: "urgency", metrics: []string{"closeness", "exact_match"}, baseline: "today", repeats: 2, rows: 24, row: ticket,
		warnings: []string{"6 of the rows come from 3 conversations that have several: they depend on each other, and the ranges, which take rows as independent, are too narrow"},
		lanes: []*lane{
			{harness.CandidateFacts{Name: "today", Program: "shop:urgency", Model: model("small", "openai")}, func(i, k int) reply { return grade(i, (i+k)%3) }},
			{harness.CandidateFacts{Name: "cot", Program: "shop:urgency", Model: model("small", "openai")}, func(i, k int) reply {
				if i == 5 && k == 1 {
					return unreadable("the urgency is \"very\", which is no number")
				}
				return grade(i, (i+k*i)%3)
			}},
		},
	}
}

// grade answers with an urgency that is off by so much.
func grade(i, off int) reply {
	right := 1 + i%5
	r := reply{text: fmt.Sprint(right + off), scores: []float64{1 - float64(off)/4, 0}}
	if off == 0 {
		r.scores[1] = 1
	} else {
		r.feedback = fmt.Sprintf("off by %d", off)
	}
	return r
}

func languageStage() *stage {
	name := func(right bool) reply {
		if right {
			return reply{text: "Deutsch", scores: []float64{1}}
		}
		return reply{text: "English", scores: []float64{0}, feedback: "expected Deutsch"}
	}
	return &stage{
		name: "language", metrics: []string{"exact_match"}, baseline: "today", rows: 400, row: ticket, stats: stats.Options{Margin: 0.03},
		lanes: []*lane{
			{harness.CandidateFacts{Name: "today", Program: "shop:language", Recorded: true}, func(i, _ int) reply { return name(i%20 != 3) }},
			{harness.CandidateFacts{Name: "cot", Program: "shop:language", Model: model("small", "openai")}, func(i, _ int) reply { return name(i%20 != 3 && i != 40 && i != 222 || i == 183) }},
		},
	}
}

func aloneStage() *stage {
	s := betterStage()
	s.lanes = s.lanes[1:]
	s.baseline = "cot"
	return s
}

// hostileStage has names and texts that want to be more than text.
func hostileStage() *stage {
	nasty := []string{
		`<script>alert("1")</script><img src=x onerror=alert(2)>`,
		"{{.}} {{ env.KEY }} ${KEY} {{define \"words\"}}",
		"| a | b |\n|---|---|\n[click](https://example.com) @somebody #1 `code` **bold**",
		"مرحبا بالعالم \u202Eevil\u202C 👩‍👩‍👧 日本語のとても長い文",
		"line one\r\nline two\x1b[31m red \x1b[0m\x00 end",
		"=HYPERLINK(\"https://example.com\",\"x\"),\"quoted\"",
		strings.Repeat("A very long answer that goes on and on. ", 160),
		strings.Repeat("Q", 900),
		"</textarea></style></script><!-- ]]> &amp; &lt;",
		"javascript:alert(3)//\" onmouseover=\"alert(4)",
	}
	return &stage{
		name: "<b>ev|al</b>", metrics: []string{"<i>exact</i>|match"}, baseline: "`base`|{{.}}", rows: 30,
		warnings: []string{"<script>alert(5)</script> | [link](https://example.com) @somebody"},
		left:     map[string]int{"<u>why</u>": 2},
		row: func(i int) (string, datasets.Value) {
			in := datasets.Values{"<q>|`": datasets.Text(nasty[i%len(nasty)]), "list": datasets.RawValue(`[1, {"a": "</script>"}]`)}
			return fmt.Sprintf("row-%d-%s", i, []string{"<b>", "|", "`", "\u202E"}[i%4]), in.Object()
		},
		lanes: []*lane{
			{harness.CandidateFacts{Name: "`base`|{{.}}", Model: model("<m>", "p\"")}, func(i, _ int) reply {
				return reply{text: nasty[(i+1)%len(nasty)], scores: []float64{float64(i % 2)}, feedback: nasty[(i+2)%len(nasty)]}
			}},
			{harness.CandidateFacts{Name: "<script>alert(6)</script>", Model: model("<m>", "p\"")}, func(i, _ int) reply {
				if i%7 == 1 {
					return reply{failed: &harness.Failed{Class: "<class>", Type: "T<>", Code: "<code>", Message: nasty[i%len(nasty)]}}
				}
				return reply{text: nasty[(i+3)%len(nasty)], scores: []float64{float64(i / 3 % 2)}, outputs: datasets.Values{"<o>": datasets.Text(nasty[i%len(nasty)])}.Object()}
			}},
		},
	}
}

// servedStage asked services, one of them without a price, and lost a row to each
// kind of trouble.
func servedStage() *stage {
	s := betterStage()
	s.rows = 40
	s.lanes[1].Model, s.lanes[1].Price = model("big|er", "openai"), nil
	for i, class := range []string{"rate_limited", "rate_limited", "server"} {
		before := s.lanes[1].reply
		s.lanes[1].reply = func(row, k int) reply {
			if row == 3*i+1 {
				return reply{lost: true, failed: &harness.Failed{Class: class, Type: pipeline.TypeServer, Message: "HTTP status 503"}}
			}
			return before(row, k)
		}
	}
	s.tell = func(e *harness.Evaluation) {
		for i, out := range e.Candidates {
			m := &out.Measured
			m.Latency.Of, m.Waited, m.Retries = harness.OfWire, 12.5*float64(i+1), 3+i
			m.Cached, m.Latency.N = 10, 30
			m.Reused = pipeline.Amount{Requests: 10, Tokens: 2400, Unknown: 10}
			if out.Price != nil {
				m.Reused.Money, m.Reused.Unknown = 0.00123, 0
			}
		}
	}
	return s
}

// servedSittings are a sitting that was killed and one that went on: rate limited,
// down for a while, and given up by one model.
func servedSittings() []harness.Sitting {
	began := time.Date(2026, 3, 2, 9, 15, 0, 0, time.UTC)
	ended := began.Add(10 * time.Minute)
	events := func(list ...any) (history []harness.LimitEvent) {
		for i := 0; i < len(list); i += 3 {
			history = append(history, harness.LimitEvent{At: float64(list[i].(int)), Limit: list[i+1].(int), Why: list[i+2].(string)})
		}
		return history
	}
	booking := func(cause, model string, s pipeline.Amount) pipeline.Booking {
		return pipeline.Booking{Account: pipeline.Account{Purpose: "candidate", Cause: cause, Model: model}, Amount: s}
	}
	return []harness.Sitting{
		{Started: began, Models: []harness.Limited{{Name: "small", History: events(0, 8, "start")}}, Bookings: []pipeline.Booking{}, Before: []pipeline.Booking{}},
		{
			Started: began.Add(4 * time.Minute), Ended: &ended,
			Models: []harness.Limited{
				{
					Name: "big|er", Requests: 30, Tries: 51, Retries: map[string]int64{"rate_limited": 4, "server": 2}, Pauses: 1, LongestPause: 180, Waited: 4000,
					History: events(0, 8, "start", 20, 8, "server_error", 150, 8, "paused", 151, 8, "probe", 153, 8, "probe", 330, 8, "gave_up"),
				},
				{
					Name: "small", Requests: 1200, Tries: 1214, Retries: map[string]int64{"rate_limited": 9, "timeout": 5}, Episodes: 2, Pauses: 1, LongestPause: 31, Waited: 640,
					History: events(0, 8, "start", 4, 16, "grew", 9, 32, "grew", 15, 64, "grew", 40, 51, "rate_limited", 80, 53, "grew", 120, 42, "rate_limited",
						200, 42, "paused", 201, 42, "probe", 231, 42, "probe", 231, 21, "resumed", 240, 42, "grew", 350, 44, "grew"),
				},
			},
			Bookings: []pipeline.Booking{
				booking("first", "big|er", pipeline.Amount{Requests: 27, Tokens: 6000, Unknown: 26, Doubtful: 1}),
				booking("first", "small", pipeline.Amount{Requests: 30, Tokens: 7400, Money: 0.0042}),
				booking("retry", "small", pipeline.Amount{Requests: 14, Unknown: 2, Uncounted: 2}),
			},
			Before: []pipeline.Booking{booking("first", "small", pipeline.Amount{Requests: 10, Tokens: 2400, Money: 0.00123})},
		},
	}
}

var facts = Facts{
	Exit:   Exit{0, "done"},
	Limits: datasets.Values{"concurrency": datasets.Int(16), "timeout": datasets.Text("60s"), "retries": datasets.Int(3)},
}

// fixtures are the reports that tests look at, by name.
func fixtures(t testing.TB) map[string]*Report {
	across := func() *Report {
		e, _, _ := betterStage().play(t)
		e.Name = "shop"
		r, err := New(nil, []*harness.Evaluation{e}, Facts{Exit: Exit{0, "done"}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	incomplete := facts
	incomplete.Exit = Exit{4, "incomplete: more failed rows than allowed"}
	incomplete.Warnings = []string{"more than 2% of the rows of an evaluation failed"}
	return map[string]*Report{
		"better":  report(t, "ticket-routing", facts, betterStage()),
		"suite":   report(t, "help-desk", incomplete, routeStage(), urgencyStage(), languageStage()),
		"alone":   report(t, "ticket-routing", facts, aloneStage()),
		"hostile": report(t, "<script>alert(0)</script>", facts, hostileStage()),
		"across":  across(),
		"served":  reportOf(t, "served", facts, servedSittings(), servedStage()),
		"lanes":   report(t, "lanes", facts, lanesStage(t)),
		"metrics": report(t, "metrics", facts, metricsStage(11)),
		"judges":  report(t, "judges", facts, judgesStage(t)),
	}
}
