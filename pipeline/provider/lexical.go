package provider

import (
	"context"
	"fmt"
	"strings"

	"evalrun/pipeline"
)

// lexicalName is what the baseline calls itself in replies.
const lexicalName = "lexical-baseline"

// Lexical is a word-overlap baseline, not a language model. It has no weights and
// understands nothing: it follows the few forms of sentence that it knows from
// the instruction, and otherwise does as the worked example did whose words are
// nearest to the question's. That is enough to answer differently when the
// instruction or the examples change, which is what demonstrations and sweeps
// need. A request has one answer, always.
//
// It reads the request as a model would. The instruction is the system text and
// the system and developer messages; the question is the last user message; the
// worked examples are the user messages before it that an assistant message
// follows, earlier turns among them. The answer is, in this order:
//
//  1. what the first rule says that holds for the question;
//  2. the answer of the worked example nearest to the question, of those whose
//     answer is among the choices;
//  3. the first of the choices, or a fixed value that fits.
//
// Near is the cosine between the counts of words: a word is a run of letters and
// digits, case apart, and no word weighs more than another. Of equally near
// examples the earliest is taken, and one that shares no word is not near.
//
// The sentences it takes for rules are listed in docs/models.md. The reply has the
// form the request asks for: marks, headers, a JSON object, or plain text. Further outputs get
// the example's values where an example gave the answer; else a text says how
// the answer came about, and anything but text gets a fixed value that fits.
// The zero Lexical is ready to use.
type Lexical struct{}

// Generate answers from the words of the request.
func (Lexical) Generate(ctx context.Context, req *pipeline.Request) (*pipeline.Reply, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	question, examples := conversation(req)
	if question == "" {
		return nil, pipeline.Failf(pipeline.TypeRefusal, "no-question", "the request has no user message with text; the lexical baseline answers the last one")
	}
	said := instruction(req)
	form := readForm(said, req.Config)
	values := form.decide(said, examples, readFields(question))
	return &pipeline.Reply{
		Text:   stopped(form.write(values), req.Config["stop"]),
		Finish: "stop", Model: lexicalName, Provider: "lexical",
	}, nil
}

// pair is a worked example: what a user said and what was answered.
type pair struct{ asked, answered string }

// conversation splits the messages into the question and the worked examples.
func conversation(req *pipeline.Request) (question string, examples []pair) {
	for _, m := range req.Messages {
		switch text := messageText(m); m.Role {
		case "user":
			question = text
		case "assistant":
			if question != "" {
				examples = append(examples, pair{question, text})
			}
			question = ""
		}
	}
	return question, examples
}

// instruction is all that tells the model what to do.
func instruction(req *pipeline.Request) string {
	said := req.System
	for _, m := range req.Messages {
		if m.Role == "system" || m.Role == "developer" {
			said += "\n\n" + messageText(m)
		}
	}
	return said
}

func messageText(m pipeline.Message) string {
	if len(m.Parts) == 1 {
		return m.Parts[0].Text
	}
	var b strings.Builder
	for _, p := range m.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// decide returns the value of each output, as text.
func (f *form) decide(instruction string, examples []pair, question []field) []string {
	answer := f.slots[len(f.slots)-1]
	for i, r := range readRules(instruction) {
		if value, ok := answer.accepts(r.answer); ok && r.holds(question) {
			return f.fill(value, fmt.Sprintf("Rule %d of the instruction: %s.", i+1, r.text), nil)
		}
	}
	if i, values := f.nearest(examples, question); values != nil {
		return f.fill(values[len(values)-1], fmt.Sprintf("Worked example %d of %d has the nearest words.", i+1, len(examples)), values)
	}
	return f.fill(answer.fixed("I do not know."), "No rule and no worked example fits.", nil)
}

// fill puts the answer last and something that fits before it: what the example
// had there, or why.
func (f *form) fill(answer, why string, example []string) []string {
	values := make([]string, len(f.slots))
	for i, s := range f.slots {
		values[i] = s.fixed(why)
		if example != nil && example[i] != "" {
			values[i] = example[i]
		}
	}
	values[len(values)-1] = answer
	return values
}

// nearest returns the place of the worked example whose words are nearest to the
// question's, and its outputs in the order of the form; nil when none is near.
func (f *form) nearest(examples []pair, question []field) (place int, values []string) {
	asked := map[string]int{}
	for _, fd := range question {
		for _, w := range fd.words {
			asked[w]++
		}
	}
	best := 0.0
	counts := map[string]int{}
	for i, e := range examples {
		clear(counts)
		for _, fd := range readFields(e.asked) {
			for _, w := range fd.words {
				counts[w]++
			}
		}
		shared, length := 0, 0
		for w, n := range counts {
			shared += n * asked[w]
			length += n * n
		}
		// The cosine's square, without the question's own length, which is the
		// same for all.
		near := 0.0
		if shared > 0 {
			near = float64(shared) * float64(shared) / float64(length)
		}
		if near <= best {
			continue
		}
		if v, ok := f.read(e.answered); ok {
			best, place, values = near, i, v
		}
	}
	return place, values
}
