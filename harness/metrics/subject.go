package metrics

import (
	"strings"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/pipeline"
)

// named are the options of every metric.
type named struct {
	AsName string `conf:"name"` // "" for the metric's own
}

func (n named) Name() string { return n.AsName }

// directed are the options of metrics that are good or bad only for whoever asks.
type directed struct {
	Better string `conf:"better"` // higher or lower
}

func (d directed) LowerIsBetter() bool { return d.Better == "lower" }

// better checks the option.
func (b *builder) better(d *directed) error { return b.oneOf("better", &d.Better, "higher", "lower") }

// looking are the options of metrics that look at one output.
type looking struct {
	named
	Output string `conf:"output"` // "" for the answer
}

// comparing are the options of metrics that compare one output with what is right.
type comparing struct {
	looking
	Against string `conf:"against"` // label or recorded
}

// Whom an output is compared with.
const (
	againstLabel    = "label"
	againstRecorded = "recorded"
)

// look checks the options of a metric that looks at one output.
func (b *builder) look(l *looking) error {
	if l.Output == "" || b.Outputs == nil {
		return nil
	}
	return b.oneOf("output", &l.Output, b.Outputs...)
}

// compare checks the options of a metric that compares one output.
func (b *builder) compare(c *comparing) error {
	if err := b.look(&c.looking); err != nil {
		return err
	}
	return b.oneOf("against", &c.Against, againstLabel, againstRecorded)
}

// answerName is the output that a metric looks at; "" when the call does not say
// which is the answer.
func answerName(call *pipeline.Call, output string) string {
	switch {
	case output != "":
		return output
	case call.Program != nil:
		return call.Program.Answer()
	case len(call.Outputs) == 1:
		return call.Outputs.Names()[0]
	}
	return ""
}

// answer is the output that is looked at, or why there is none.
func (l looking) answer(call *pipeline.Call) (v datasets.Value, missing string) {
	name := answerName(call, l.Output)
	if v = call.Outputs[name]; !v.IsZero() {
		return v, ""
	}
	if name == "" {
		return v, "the call has the outputs " + strings.Join(call.Outputs.Names(), ", ") + ", and nothing says which is the answer; name one as output"
	}
	return v, "the call has no output " + name
}

// both are the output and what is right, or why one of them is missing.
func (c comparing) both(row datasets.Row, call *pipeline.Call) (answer, right datasets.Value, missing string) {
	if answer, missing = c.answer(call); missing != "" {
		return answer, right, missing
	}
	name := answerName(call, c.Output)
	if c.Against == againstRecorded {
		if right = row.Recorded[name]; right.IsZero() {
			missing = "the row has no recorded output " + name
		}
	} else if right = row.Labels[name]; right.IsZero() {
		missing = "the row has no right answer for " + name
	}
	return answer, right, missing
}

// missed is the score of a row that cannot be scored.
func missed(why string) (harness.Score, error) { return harness.Score{Missing: why}, nil }

// verdict is 1, or 0 with what was wrong.
func verdict(right bool, wrong string) (harness.Score, error) {
	if right {
		return harness.Score{Value: 1}, nil
	}
	return harness.Score{Feedback: wrong}, nil
}

// graded is a score, with what was wrong when it is not full.
func graded(score float64, wrong string) (harness.Score, error) {
	if score == 1 {
		return harness.Score{Value: 1}, nil
	}
	return harness.Score{Value: score, Feedback: wrong}, nil
}

// rightIs tells what would have been right.
func rightIs(right datasets.Value) string { return "the right answer is " + clip(right.String()) }

// clip is the beginning of a text that feedback quotes.
func clip(s string) string {
	const most = 500
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// references are the texts that an answer may be compared with: each element of a
// list of texts, when the answer is no list itself; else what is right as text.
func references(right, answer datasets.Value) []string {
	if right.Kind() != '[' || answer.Kind() == '[' {
		return []string{right.String()}
	}
	var list []string
	for v := range right.Elements() {
		s, ok := v.AsText()
		if !ok {
			return []string{right.String()}
		}
		list = append(list, s)
	}
	if list == nil {
		return []string{right.String()}
	}
	return list
}
