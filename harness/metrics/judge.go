package metrics

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/internal/conf"
	"evalrun/pipeline"
)

// The programs that judge when a spec names none. MENU stands for the verdicts.
var (
	//go:embed judge.yaml
	judgeProgram string
	//go:embed judge_pair.yaml
	pairProgram string
)

// Asking is what a judge wants to be asked with.
type Asking struct {
	Model     conf.Node   // its name
	MaxTokens int64       // of a reply; 0 when the judge does not say
	Plugins   []conf.Node // names or files, around its calls and around no other
}

// Environment is what a judge is asked with.
type Environment struct {
	Caller  *pipeline.Caller
	Model   harness.ModelRef
	Plugins []*pipeline.Plugin
	Refs    []harness.PluginRef // of Plugins, in the order they run
}

// judge is a metric whose scores a model gives: see [harness.Judge].
type judge struct {
	looking
	Model        conf.Node   `conf:"model"`
	Rubric       string      `conf:"rubric"`
	Program      string      `conf:"program"` // a file; "" for the built-in one
	Mode         string      `conf:"mode"`
	Scale        conf.Node   `conf:"scale"`
	RightFrom    *float64    `conf:"right_from"` // the score from which a verdict says "right"
	Reference    *bool       `conf:"reference"`
	Calibrate    string      `conf:"calibrate"`
	MinAgreement *float64    `conf:"min_agreement"`
	MaxTokens    int64       `conf:"max_tokens"`
	Repeats      int         `conf:"repeats"`
	Plugins      []conf.Node `conf:"plugins"`

	scale   scale
	program *pipeline.Program
	env     Environment
	facts   harness.JudgeFacts
}

// calibrateRatings is the one thing a judge is calibrated on.
const calibrateRatings = "ratings"

// defaultAgreement is the kappa from which a judge's scores may decide: where
// agreement begins to be called substantial (Landis and Koch 1977).
const defaultAgreement = 0.6

// mostJudgings bounds repeats.
const mostJudgings = 25

func newJudge(b *builder) (harness.Metric, error) {
	m := &judge{}
	if err := b.decode(m, &m.AsName); err != nil {
		return nil, err
	}
	if m.Model.IsZero() {
		return nil, b.Errorf("judge needs a model: {judge: {model: NAME}}, one of the spec's models")
	}
	for _, check := range []func(*builder) error{m.checkOptions, m.readScale, m.readProgram, m.findEnvironment} {
		if err := check(b); err != nil {
			return nil, err
		}
	}
	m.facts = harness.JudgeFacts{
		Metric: m.AsName, Mode: m.Mode, Model: m.env.Model, Program: m.program.Name(), ProgramVersion: m.program.Version(), Plugins: m.env.Refs,
		Verdicts: m.scale.words, Right: m.scale.right, Calibrate: m.Calibrate != "", Repeats: m.Repeats, MinAgreement: *m.MinAgreement,
	}
	return m, nil
}

func (m *judge) checkOptions(b *builder) error {
	if err := b.look(&m.looking); err != nil {
		return err
	}
	if err := b.oneOf("mode", &m.Mode, harness.JudgePointwise, harness.JudgePairwise); err != nil {
		return err
	}
	if m.Calibrate != "" {
		if err := b.oneOf("calibrate", &m.Calibrate, calibrateRatings); err != nil {
			return err
		}
		switch {
		case m.Mode == harness.JudgePairwise:
			return b.at("calibrate", "people rated single answers, and a pairwise judge compares two: judge pointwise, or leave calibrate out")
		case m.Reference != nil && *m.Reference:
			return b.at("reference", "where people said right, the right answer is the very answer they rated, so that any judge who is shown it agrees: leave reference or calibrate out")
		}
	}
	if m.Reference == nil {
		m.Reference = new(m.Calibrate == "")
	}
	if m.MinAgreement == nil {
		m.MinAgreement = new(defaultAgreement)
	}
	if a := *m.MinAgreement; !(a >= -1 && a <= 1) {
		return b.at("min_agreement", "min_agreement is a kappa, from -1 to 1, not %v", a)
	}
	if m.Repeats == 0 {
		m.Repeats = 1
	}
	if m.Repeats < 1 || m.Repeats > mostJudgings {
		return b.at("repeats", "repeats is how often each answer is judged, from 1 to %d", mostJudgings)
	}
	if m.MaxTokens < 0 {
		return b.at("max_tokens", "max_tokens is a number of tokens, from 1")
	}
	return nil
}

// readProgram finds the judge's program and sees that it can be one.
func (m *judge) readProgram(b *builder) error {
	inputs, menu := []string{"task", "reference", "answer"}, m.scale.menu
	text := judgeProgram
	if m.Mode == harness.JudgePairwise {
		inputs, menu, text = []string{"task", "reference", "first", "second"}, pairMenu(), pairProgram
	}
	var err error
	if m.Program == "" {
		m.program, err = pipeline.ParseProgram("judge.yaml", []byte(strings.Replace(text, "MENU", menu.JSON(), 1)))
		if err == nil && m.Rubric != "" {
			m.program = m.program.WithInstruction(m.program.Instruction() + "\n\nJudge by this:\n" + m.Rubric)
		}
		return err
	}
	if m.Rubric != "" {
		return b.at("rubric", "rubric is for the built-in judge; a program of your own has its own words: leave one of the two out")
	}
	if m.program, err = readProgram(b.file(m.Program)); err != nil {
		return err
	}
	for _, f := range m.program.Inputs() {
		if !slices.Contains(inputs, f.Name) {
			return b.at("program", "the program %s has an input %s; a %s judge is given %s", m.program.Name(), f.Name, m.Mode, strings.Join(inputs, ", "))
		}
	}
	outputs := m.program.Outputs()
	if last := outputs[len(outputs)-1]; !sameMenu(last.Shape.Member("enum"), menu) {
		return b.at("program", "the last output of the program %s, %s, is not a choice of the verdicts: its shape must be {enum: %s}", m.program.Name(), last.Name, menu.JSON())
	}
	return nil
}

// readProgram reads a program file, or a saved functai.json.
func readProgram(file string) (*pipeline.Program, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if filepath.Base(file) == "functai.json" {
		return pipeline.ParseSaved(file, data)
	}
	return pipeline.ParseProgram(file, data)
}

func sameMenu(a, b datasets.Value) bool {
	words := func(v datasets.Value) []string {
		var list []string
		for e := range v.Elements() {
			list = append(list, e.String())
		}
		slices.Sort(list)
		return list
	}
	return slices.Equal(words(a), words(b))
}

func (m *judge) findEnvironment(b *builder) error {
	if b.Judge == nil {
		return b.Errorf("no judge can be asked here: there are no models")
	}
	var err error
	if m.env, err = b.Judge(b.ctx, Asking{m.Model, m.MaxTokens, m.Plugins}); err != nil {
		return err
	}
	m.program = m.program.WithPlugins(m.env.Plugins...)
	if err := m.env.Caller.Check(m.program); err != nil {
		return b.at("program", "the judge's program cannot be asked: %v", err)
	}
	return nil
}

func (m *judge) JudgeFacts() harness.JudgeFacts { return m.facts }
func (m *judge) Caller() *pipeline.Caller       { return m.env.Caller }

// Score is never asked: see [harness.Judge].
func (*judge) Score(context.Context, datasets.Row, *pipeline.Call) (harness.Score, error) {
	return harness.Score{}, errors.New("a judge is asked by a run alone")
}

// Verdict judges an answer, or compares it with the baseline's.
func (m *judge) Verdict(ctx context.Context, j *harness.Judging) (harness.Verdict, error) {
	answer, missing := m.answer(j.Call)
	if missing != "" {
		return noVerdict("no_answer", missing), nil
	}
	inputs := datasets.Values{"task": fenced(taskOf(j))}
	if *m.Reference {
		if right := j.Row.Labels[answerName(j.Call, m.Output)]; !right.IsZero() {
			inputs["reference"] = fenced(right.String())
		}
	}
	if m.Mode == harness.JudgePairwise {
		return m.compare(ctx, j, answer, inputs)
	}
	inputs["answer"] = fenced(answer.String())
	return m.judgings(func(draw int) (harness.Verdict, error) { return m.judgeOnce(ctx, j, inputs, draw) })
}

func (m *judge) judgeOnce(ctx context.Context, j *harness.Judging, inputs datasets.Values, draw int) (harness.Verdict, error) {
	word, reason, v, err := m.ask(ctx, j, inputs, draw)
	if err != nil || word == "" {
		return v, err
	}
	return harness.Verdict{Word: word, Score: harness.Score{Value: m.scale.scores[word], Feedback: word + reason}}, nil
}

// ask asks the program. Without a word, the verdict says why there is none.
func (m *judge) ask(ctx context.Context, j *harness.Judging, inputs datasets.Values, draw int) (word, reason string, none harness.Verdict, err error) {
	own := datasets.Values{}
	for _, f := range m.program.Inputs() {
		if v := inputs[f.Name]; !v.IsZero() {
			own[f.Name] = v
		} else if !f.Optional {
			return "", "", noVerdict("no_"+f.Name, "the judge's program needs the input "+f.Name+", and the row has none"), nil
		}
	}
	call, err := j.Ask(ctx, m.program, own, draw)
	if err != nil {
		return "", "", none, err
	}
	if f := call.Failure; f != nil {
		return "", "", noVerdict(missingWord(f), f.Error()), nil
	}
	if text, ok := call.Outputs["reason"].AsText(); ok && text != "" {
		reason = ": " + clip(text)
	}
	return call.Outputs[m.program.Answer()].String(), reason, none, nil
}

// judgings averages the verdicts of all repeats. Those that did not come are left
// out, unless none came.
func (m *judge) judgings(once func(draw int) (harness.Verdict, error)) (harness.Verdict, error) {
	var all harness.Verdict
	var none *harness.Verdict
	var words []string
	for draw := range m.Repeats {
		v, err := once(draw)
		if err != nil {
			return v, err
		}
		all.Orders.Same += v.Orders.Same
		all.Orders.First += v.Orders.First
		all.Orders.Second += v.Orders.Second
		all.Orders.Tied += v.Orders.Tied
		if v.Word == "" {
			if none == nil {
				none = &v
			}
			continue
		}
		words = append(words, v.Word)
		all.Value += v.Value
		all.Feedback = cmp.Or(all.Feedback, v.Feedback)
	}
	if words == nil {
		none.Orders = all.Orders
		return *none, nil
	}
	all.Value /= float64(len(words))
	all.Word = m.scale.mostOf(words)
	return all, nil
}

func noVerdict(word, why string) harness.Verdict {
	return harness.Verdict{Missing: word, Score: harness.Score{Missing: "no verdict, " + strings.ReplaceAll(word, "_", " ") + ": " + why}}
}

// missingWord says in a word why a call gave no verdict.
func missingWord(f *pipeline.Failure) string {
	switch f.Code {
	case "parse-truncated":
		return "truncated"
	case "parse-choice":
		return "off_menu"
	}
	return f.Class()
}
