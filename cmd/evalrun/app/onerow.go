package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/rogpeppe/go-internal/diff"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/internal/conf"
	"evalrun/pipeline"
	"evalrun/replay"
	"evalrun/reports"
)

// oneRow says which row is looked at, of which candidates, and how.
type oneRow struct {
	id        string
	candidate string // "" for all
	show      bool   // show what would be sent, and ask nothing
}

// oneRow asks candidates about one row, or shows what they would send. There is no
// run of it, and nothing is written.
func (e *env) oneRow(ctx context.Context, s *spec, one oneRow) error {
	w, err := e.wire(s)
	if err != nil {
		return err
	}
	defer w.close()
	plans, err := w.plans(ctx)
	if err != nil {
		return err
	}
	var found []place
	for _, checked := range plans {
		p := checked.Plan()
		row := position(p.Rows, one.id)
		if row < 0 {
			continue
		}
		at := place{checked: checked, row: row}
		for i, cand := range p.Candidates {
			if (one.candidate == "" || cand.Name == one.candidate) && !(one.show && cand.Recorded) {
				at.candidates = append(at.candidates, i)
			}
		}
		found = append(found, at)
	}
	if found == nil {
		return noRow(one.id, plans)
	}
	if !slices.ContainsFunc(found, func(p place) bool { return p.candidates != nil }) {
		return noCandidate(one, found)
	}
	if one.show {
		return e.showRequests(ctx, found)
	}
	return e.askRow(ctx, found)
}

// place is a row of a plan, and candidates of it.
type place struct {
	checked    *harness.Checked
	row        int
	candidates []int
}

// noRow is the error for an id that no row has, with those it may have been.
func noRow(id string, plans []*harness.Checked) error {
	const most = 3
	var near, all []string
	for _, p := range plans {
		rows := p.Plan().Rows
		for i := range rows.Len() {
			have := rows.ID(i)
			if len(near) < most && len(id) > 3 && (strings.HasPrefix(have, id) || strings.HasSuffix(have, id)) && !slices.Contains(near, have) {
				near = append(near, have)
			}
			all = append(all, have)
		}
	}
	if near == nil {
		if like := conf.Suggest(id, all); like != "" {
			near = []string{like}
		}
	}
	hint := fmt.Sprintf("; there are %d rows, the first is %s", len(all), all[0])
	if len(all) == 1 {
		hint = "; the only row is " + all[0]
	}
	if near != nil {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usagef("no row that is asked has the id %q%s", id, hint)
}

// noCandidate is the error for a name that no candidate has, or only one that
// sends nothing.
func noCandidate(one oneRow, found []place) error {
	var names []string
	for _, at := range found {
		for _, cand := range at.checked.Plan().Candidates {
			if cand.Recorded && one.show {
				if cand.Name == one.candidate {
					return usagef("the candidate %q is recorded: it sends nothing", one.candidate)
				}
				continue
			}
			if !slices.Contains(names, cand.Name) {
				names = append(names, cand.Name)
			}
		}
	}
	if names == nil {
		return usagef("every candidate is recorded: none sends anything")
	}
	return usagef("there is no candidate %q%s", one.candidate, suggestion(one.candidate, names))
}

// answered is an answer as it is printed.
type answered struct {
	Evaluation string              `json:"evaluation,omitzero"`
	Candidate  string              `json:"candidate"`
	Row        string              `json:"row"`
	Repeat     int                 `json:"repeat"`
	Answer     datasets.Value      `json:"answer,omitzero"`
	Outputs    datasets.Value      `json:"outputs,omitzero"`
	Scores     map[string]*float64 `json:"scores"`
	Failed     *failedAs           `json:"failed,omitzero"`
	Transfer   string              `json:"transfer,omitzero"`
	Model      string              `json:"model,omitzero"`
	Usage      pipeline.Usage      `json:"usage"`
	Cost       *float64            `json:"cost,omitzero"`
}

type failedAs struct {
	Class   string `json:"class"`
	Code    string `json:"code,omitzero"`
	Message string `json:"message"`
}

func (e *env) askRow(ctx context.Context, found []place) error {
	out := []answered{}
	text := ""
	for _, at := range found {
		results, err := at.checked.AskRow(ctx, at.row, at.candidates...)
		if err != nil {
			return harnessError(err)
		}
		for i := range results {
			out = append(out, answerOf(&results[i]))
			text += answerText(&results[i])
		}
	}
	if e.json {
		return e.printJSON(map[string]any{"results": out})
	}
	return e.print("row " + out[0].Row + "\n" + text)
}

func answerOf(r *harness.Result) answered {
	a := answered{
		Evaluation: r.Evaluation, Candidate: r.Candidate, Row: r.Row, Repeat: r.Repeat, Answer: r.Answer, Outputs: r.Outputs,
		Scores: map[string]*float64{}, Transfer: r.Transfer, Model: r.Model, Usage: r.Usage, Cost: r.Cost,
	}
	for _, s := range r.Scores {
		a.Scores[s.Metric] = s.Value
	}
	if f := r.Failed; f != nil {
		a.Failed = &failedAs{f.Class, f.Code, f.Message}
	}
	return a
}

func answerText(r *harness.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s", title(r.Evaluation, r.Candidate))
	if r.Repeat > 0 {
		fmt.Fprintf(&b, ", answer %d", r.Repeat+1)
	}
	b.WriteString("\n")
	if !r.Answer.IsZero() {
		fmt.Fprintf(&b, "  answer: %s\n", indented(r.Answer.String(), "    "))
	}
	for _, s := range r.Scores {
		if s.Value != nil {
			fmt.Fprintf(&b, "  %s: %v\n", s.Metric, *s.Value)
		}
		if s.Feedback != "" {
			fmt.Fprintf(&b, "    %s\n", indented(s.Feedback, "    "))
		}
	}
	if f := r.Failed; f != nil {
		fmt.Fprintf(&b, "  failed, %s: %s\n", f.Class, indented(f.Message, "    "))
	}
	b.WriteString(takenText(r))
	return b.String()
}

// takenText says what an answer took; nothing where no model said.
func takenText(r *harness.Result) string {
	u := r.Usage
	if u.Input == nil || u.Output == nil {
		return ""
	}
	cost := "cost unknown"
	if r.Cost != nil {
		cost = "USD " + money(*r.Cost)
	}
	return fmt.Sprintf("  took: %s tokens in and %s out, %s\n", reports.Count(*u.Input), reports.Count(*u.Output), cost)
}

// indented puts blanks before every line that is not empty, but the first.
func indented(s, blanks string) string {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	for i := 1; i < len(lines); i++ {
		if lines[i] != "" {
			lines[i] = blanks + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}

// shown is what a candidate would send, beside what was recorded.
type shown struct {
	Evaluation  string         `json:"evaluation,omitzero"`
	Candidate   string         `json:"candidate"`
	Row         string         `json:"row"`
	Request     datasets.Value `json:"request,omitzero"`
	Recorded    datasets.Value `json:"recorded,omitzero"`    // absent when it was not kept
	Same        *bool          `json:"same,omitzero"`        // but for the model's name; absent when there is nothing to compare
	Differences []differenceAs `json:"differences,omitzero"` // of the two
	Failure     string         `json:"failure,omitzero"`     // why nothing would be sent
	was, is     *pipeline.Request
}

type differenceAs struct {
	Part     string `json:"part"`
	Place    string `json:"place"`
	Recorded string `json:"recorded"`
	Now      string `json:"now"`
}

func (e *env) showRequests(ctx context.Context, found []place) error {
	out := []*shown{}
	for _, at := range found {
		p := at.checked.Plan()
		id := p.Rows.ID(at.row)
		var was *pipeline.Request
		if p.Records != nil {
			err := replay.Requests(ctx, p.Records, map[string]bool{id: true}, func(_ string, r *pipeline.Request) error {
				was = r
				return nil
			})
			if err != nil {
				return exit(ExitData, err)
			}
		}
		for _, i := range at.candidates {
			req, failure, err := at.checked.FirstRequest(ctx, at.row, i)
			if err != nil {
				return harnessError(err)
			}
			s := &shown{Evaluation: p.Name, Candidate: p.Candidates[i].Name, Row: id, was: was, is: req}
			if failure != nil {
				s.Failure = failure.Error()
			}
			s.compare()
			out = append(out, s)
		}
	}
	if e.json {
		return e.printJSON(map[string]any{"requests": out})
	}
	for i, s := range out {
		text := s.text()
		if i > 0 {
			text = "\n" + text
		}
		if err := e.print(text); err != nil {
			return err
		}
	}
	return nil
}

// compare finds in what the two requests differ.
func (s *shown) compare() {
	if s.is != nil {
		s.Request = s.is.JSON()
	}
	if s.was == nil {
		return
	}
	s.Recorded = s.was.JSON()
	if s.is == nil {
		return
	}
	was, is := pipeline.Portray(s.was), pipeline.Portray(s.is)
	was.Compare(&is, func(d pipeline.Difference) {
		s.Differences = append(s.Differences, differenceAs{d.Part, d.Place, d.Was, d.Is})
	})
	s.Same = new(s.Differences == nil)
}

func (s *shown) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "row %s, %s\n", s.Row, title(s.Evaluation, s.Candidate))
	if s.is == nil {
		fmt.Fprintf(&b, "nothing would be sent: %s\n", s.Failure)
		return b.String()
	}
	fmt.Fprintf(&b, "model %s\n", s.is.Model)
	for _, p := range partsOf(s.is) {
		if p.text == "" {
			continue
		}
		fmt.Fprintf(&b, "%s\n    %s\n", p.name, indented(p.text, "    "))
	}
	switch {
	case s.was == nil:
		b.WriteString("the recorded request was not kept: there is nothing to compare with\n")
		return b.String()
	case s.is.Model != s.was.Model:
		fmt.Fprintf(&b, "recorded with the model %s\n", s.was.Model)
	}
	if *s.Same {
		b.WriteString("the same was sent when the call was recorded\n")
		return b.String()
	}
	b.WriteString("differs from what was recorded (-), in what would be sent (+):\n")
	b.WriteString(requestDiff(s.was, s.is))
	return b.String()
}

// requestDiff is the difference of two requests, line by line, apart from their
// models' names; "" when there is none.
func requestDiff(before, after *pipeline.Request) string {
	var b strings.Builder
	was, is := partsOf(before), partsOf(after)
	for i := range max(len(was), len(is)) {
		var old, now part
		if i < len(was) {
			old = was[i]
		}
		if i < len(is) {
			now = is[i]
		}
		if old != now {
			b.WriteString(changed(old, now))
		}
	}
	return b.String()
}

// part is one part of a request, as people read it.
type part struct{ name, text string }

// partsOf are the parts of a request: the system text, the config and the tools,
// "" for none, and then the messages.
func partsOf(req *pipeline.Request) []part {
	p := pipeline.Portray(req)
	parts := []part{{pipeline.PartSystem, p.System}, {pipeline.PartConfig, lines(p.Config)}, {pipeline.PartTools, lines(p.Tools)}}
	for i, m := range p.Messages {
		parts = append(parts, part{fmt.Sprintf("message %d (%s)", i+1, m.Role), m.Text})
	}
	return parts
}

// lines is JSON with a line for each member, so that differences are seen line by
// line.
func lines(text string) string {
	if text == "" {
		return ""
	}
	v := jsontext.Value(text)
	if v.Indent(jsontext.WithIndent("  ")) != nil {
		return text
	}
	return string(v)
}

// changed is the unified difference of a part.
func changed(old, now part) string {
	name := now.name
	if name == "" {
		name = old.name
	} else if old.name != "" && old.name != now.name {
		name = old.name + " is now " + now.name
	}
	ended := func(s string) []byte {
		if s != "" && !strings.HasSuffix(s, "\n") {
			s += "\n"
		}
		return []byte(s)
	}
	text := string(diff.Diff("recorded", ended(old.text), "now", ended(now.text)))
	// The first three lines name the files.
	for range 3 {
		_, text, _ = strings.Cut(text, "\n")
	}
	return name + "\n" + text
}
