package harness

import (
	"errors"
	"strings"
	"testing"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// brokenSource cannot read its second row.
type brokenSource struct{ datasets.Rows }

func (s brokenSource) At(i int) (datasets.Row, error) {
	if i == 1 {
		return datasets.Row{}, errors.New("row r1: calls.parquet: damaged page")
	}
	return s.Rows.At(i)
}

func TestCheck(t *testing.T) {
	other := strings.ReplaceAll(strings.ReplaceAll(answerProgram, "result", "reply"), "name: answer", "name: other")
	number := strings.Replace(answerProgram, "question, shape: {type: string}", "question, shape: {type: integer}", 1)
	asksMore := strings.Replace(answerProgram, "outputs:", "  - {name: notes, shape: {type: string}}\noutputs:", 1)
	optional := strings.Replace(answerProgram, "outputs:", "  - {name: hint, shape: {type: string, default: none}, optional: true}\noutputs:", 1)

	for _, c := range []struct {
		name   string
		change func(*Plan)
		kind   error
		parts  []string
	}{
		{"fine", func(*Plan) {}, nil, nil},
		{"no candidates", func(p *Plan) { p.Candidates = nil }, ErrPlan, []string{"evaluation quiz", "no candidates"}},
		{"a candidate without a name", func(p *Plan) { p.Candidates[1].Name = "" }, ErrPlan, []string{"candidate 2 has no name"}},
		{"two of one name", func(p *Plan) { p.Candidates[1].Name = "a" }, ErrPlan, []string{"two candidates are called a"}},
		{"no program", func(p *Plan) { p.Candidates[0].Program = nil }, ErrPlan, []string{"candidate a has no program"}},
		{"nothing to ask with", func(p *Plan) { p.Candidates[0].Caller = nil }, ErrPlan, []string{"candidate a", "give it a model"}},
		{"no model", func(p *Plan) { p.Candidates[0].Caller.LM.Model = nil }, ErrPlan, []string{"candidate a has no model"}},
		{"no clock", func(p *Plan) { p.Candidates[0].Caller.Now = nil }, ErrPlan, []string{"candidate a", "clock"}},
		{"recorded and asked", func(p *Plan) { p.Candidates[0].Recorded = true }, ErrPlan, []string{"candidate a", "recorded lane"}},
		{"outputs and asked", func(p *Plan) { p.Candidates[0].Outputs = func(datasets.Row) datasets.Values { return nil } }, ErrPlan, []string{"candidate a", "recorded outputs"}},
		{"nothing recorded elsewhere", func(p *Plan) {
			p.Candidates[0] = Candidate{Name: "then", Recorded: true, Outputs: func(datasets.Row) datasets.Values { return nil }}
		}, ErrPlan, []string{"candidate then", "no row has a recorded output"}},
		{"nothing recorded", func(p *Plan) {
			p.Candidates[0] = Candidate{Name: "then", Recorded: true}
			for i := range p.Rows.(datasets.Rows) {
				p.Rows.(datasets.Rows)[i].Recorded = nil
			}
		}, ErrPlan, []string{"candidate then", "no row has a recorded output"}},
		{"another baseline", func(p *Plan) { p.Baseline = "aa" }, ErrPlan, []string{"baseline aa", "did you mean a?"}},
		{"fewer than no repeats", func(p *Plan) { p.Repeats = -1 }, ErrPlan, []string{"-1 repeats"}},
		{"two metrics of one name", func(p *Plan) { p.Metrics = []Metric{match{}, match{}} }, ErrPlan, []string{"two metrics are called match"}},
		{"a metric without a name", func(p *Plan) { p.Metrics = []Metric{metricFunc{}} }, ErrPlan, []string{"metric 1 has no name"}},
		{"another answer", func(p *Plan) { p.Candidates[1].Program = program(t, other) }, ErrPlan, []string{`candidate b answers with "reply"`, `candidate a with "result"`}},
		{
			"an input the rows lack", func(p *Plan) { p.Candidates[1].Program = program(t, asksMore) }, ErrPlan,
			[]string{"evaluation quiz: candidate b", `the input "notes"`, "row r0", "note, question", "did you mean note?"},
		},
		{"an optional input the rows lack", func(p *Plan) { p.Candidates[1].Program = program(t, optional) }, nil, nil},
		{"an input one row lacks", func(p *Plan) { delete(p.Rows.(datasets.Rows)[2].Inputs, "question") }, nil, nil},
		{"an input every row lacks", func(p *Plan) {
			for _, row := range p.Rows.(datasets.Rows) {
				delete(row.Inputs, "question")
			}
		}, ErrPlan, []string{"no row fits", `"question"`, "row r0"}},
		{"a margin that is none", func(p *Plan) { p.Stats.Margin = -1 }, ErrPlan, []string{"margin is -1"}},
		{"a price that is none", func(p *Plan) { p.Candidates[0].Caller.LM.Price = &pipeline.Price{Input: -1} }, ErrPlan, []string{"price"}},
		{"tools that nothing runs", func(p *Plan) { // the record answers them
			p.Candidates[1].Program = program(t, answerProgram+"tools: [{name: look, parameters: {type: object}}]\n")
		}, nil, nil},
		{"tools that are to run and that nothing runs", func(p *Plan) {
			p.Candidates[1].Program = program(t, answerProgram+"tools: [{name: look, parameters: {type: object}}]\n")
			p.Candidates[1].Tools.Live = []string{"look"}
		}, ErrPlan, []string{"candidate b is to run the tool look, and nothing is given to run it"}},
		{"inputs that no row fits", func(p *Plan) { p.Candidates[1].Program = program(t, number) }, ErrPlan, []string{"candidate b", "no row fits", "row r0", "question"}},
		{"inputs that a row does not fit", func(p *Plan) { p.Rows.(datasets.Rows)[1].Inputs["question"] = datasets.Int(7) }, nil, nil},
		{"no rows", func(p *Plan) { p.Rows = datasets.Rows{} }, ErrNoRows, []string{"evaluation quiz", "no rows"}},
		{"no source", func(p *Plan) { p.Rows = nil }, ErrNoRows, []string{"no rows"}},
		{"all rows left out", func(p *Plan) {
			p.Rows, p.Intake.LeftOut = datasets.Rows{}, map[string]int{"no_context": 2, "filter": 5}
		}, ErrNoRows, []string{"all 7 were left out (5 filter, 2 no_context)"}},
		{
			"rows that do not add up", func(p *Plan) { p.Intake = Intake{Input: 9, LeftOut: map[string]int{"filter": 5}} }, ErrLedger,
			[]string{"9 rows were read, 3 of them are asked and 5 left out"},
		},
		{"an id twice", func(p *Plan) { p.Rows.(datasets.Rows)[2].ID = "r0" }, ErrRows, []string{"rows 0 and 2 have the same id r0"}},
		{"no id", func(p *Plan) { p.Rows.(datasets.Rows)[1].ID = "" }, ErrRows, []string{"row 1 has no id"}},
		{"a row that cannot be read", func(p *Plan) { p.Rows = brokenSource{quiz(3)} }, ErrRows, []string{"row r1: calls.parquet: damaged page"}},
		{"a field to pair by that rows lack", func(p *Plan) { p.Pair = "questoin" }, ErrPlan, []string{`"questoin"`, "row r0", "did you mean question?"}},
		{"a key twice", func(p *Plan) { p.Pair = "note" }, ErrRows, []string{"rows r0 and r1 both have note not for the program"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := false
			model := says(func(pipeline.Site) string { asked = true; return "x" })
			p := Plan{Name: "quiz", Rows: quiz(3), Metrics: []Metric{match{}}, Candidates: []Candidate{candidate(t, "a", model), candidate(t, "b", model)}}
			c.change(&p)
			_, err := Check(p)
			if c.kind == nil {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			wantError(t, err, c.kind, c.parts...)
			if _, err := Evaluate(t.Context(), p, Options{}); !errors.Is(err, c.kind) || asked {
				t.Errorf("evaluating gives %v, asked %v; want the same refusal before anything is asked", err, asked)
			}
		})
	}
}

func TestCheckCounts(t *testing.T) {
	rows := quiz(3)
	rows[1].Weight = 2
	c, err := Check(Plan{Rows: rows, Repeats: 5, Metrics: []Metric{match{}}, Candidates: []Candidate{
		candidate(t, "a", says(right)), candidate(t, "b", says(right)),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if c.Tasks() != 30 || c.Rows().Asked != 3 || c.Rows().Input != 3 {
		t.Errorf("%d tasks, rows %+v; want 30 and 3", c.Tasks(), c.Rows())
	}
	if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0], "1 of 3 rows have a weight") {
		t.Errorf("warnings %q; want one about weights", w)
	}
}

// Whatever a candidate may be shown or a metric look at changes the fingerprint,
// and so does the order; how a value is spelled does not.
func TestFingerprint(t *testing.T) {
	base := func() datasets.Rows {
		rows := quiz(2)
		rows[0].Meta = datasets.Values{"n": datasets.RawValue(`1.0`)}
		rows[0].Context = datasets.Context{
			Earlier: []datasets.Turn{{Inputs: datasets.Values{"question": datasets.Text("before")}, Outputs: datasets.Values{"result": datasets.Text("x")}}},
			Helpers: []datasets.Helper{{Program: "inner", Sections: []string{"s"}}},
		}
		return rows
	}
	sum := func(rows datasets.Rows) string {
		f := newFingerprint()
		for i := range rows {
			f.add(&rows[i])
		}
		return f.sum()
	}
	seen := map[string]string{sum(base()): "the rows themselves"}
	for name, change := range map[string]func(datasets.Rows){
		"id":                 func(r datasets.Rows) { r[0].ID = "other" },
		"order":              func(r datasets.Rows) { r[0], r[1] = r[1], r[0] },
		"input":              func(r datasets.Rows) { r[0].Inputs["question"] = datasets.Text("other") },
		"label":              func(r datasets.Rows) { r[0].Labels["result"] = datasets.Text("other") },
		"no label":           func(r datasets.Rows) { r[0].Labels = nil },
		"recorded":           func(r datasets.Rows) { r[0].Recorded = nil },
		"meta":               func(r datasets.Rows) { r[0].Meta["n"] = datasets.Int(2) },
		"label becomes meta": func(r datasets.Rows) { r[1].Meta, r[1].Labels = r[1].Labels, nil },
		"weight":             func(r datasets.Rows) { r[0].Weight = 2 },
		"conversation":       func(r datasets.Rows) { r[0].Context.Conversation = "c" },
		"of":                 func(r datasets.Rows) { r[0].Context.Of = "c" },
		"turn":               func(r datasets.Rows) { r[0].Context.Earlier[0].Outputs["result"] = datasets.Text("y") },
		"steps":              func(r datasets.Rows) { r[0].Context.Earlier[0].Steps = []datasets.Step{datasets.RawValue(`{}`)} },
		"turns":              func(r datasets.Rows) { r[0].Context.Earlier = append(r[0].Context.Earlier, datasets.Turn{}) },
		"section":            func(r datasets.Rows) { r[0].Context.Sections = []string{"s"} },
		"two sections":       func(r datasets.Rows) { r[0].Context.Sections = []string{"s", ""} },
		"helper's place":     func(r datasets.Rows) { r[0].Context.Helpers[0].Nth = 1 },
		"helper's section":   func(r datasets.Rows) { r[0].Context.Helpers[0].Sections[0] = "t" },
		"verdict":            func(r datasets.Rows) { r[0].Verdict.Verdict = "wrong" },
		"disputed":           func(r datasets.Rows) { r[0].Verdict.Disputed = true },
	} {
		rows := base()
		change(rows)
		got := sum(rows)
		if as, ok := seen[got]; ok {
			t.Errorf("%s gives the same fingerprint as %s", name, as)
		}
		seen[got] = name
	}
	rows := base()
	rows[0].Meta["n"] = datasets.RawValue(`1`)
	if sum(rows) != sum(base()) {
		t.Error("another spelling of a number changes the fingerprint")
	}
}

// Texts that contain what separates items do not make two rows alike.
func TestFingerprintIsUnambiguous(t *testing.T) {
	sum := func(sections ...string) string {
		f := newFingerprint()
		f.add(&datasets.Row{ID: "r", Context: datasets.Context{Sections: sections}})
		return f.sum()
	}
	if sum("a\nsection 1 b") == sum("a", "b") {
		t.Error("one section that looks like two has their fingerprint")
	}
}
