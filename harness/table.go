package harness

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"evalrun/datasets"
	"evalrun/harness/stats"
	"evalrun/internal/columnar"
	"evalrun/pipeline"
)

// resultsSchema is the schema of results.parquet: a line for each answer.
var resultsSchema = columnar.Schema{Name: "evalrun.results", Version: 1}

// resultLine is a [Result] at rest.
type resultLine struct {
	Evaluation string `parquet:"evaluation"`
	Row        string `parquet:"row"`
	Candidate  string `parquet:"candidate"`
	Repeat     int32  `parquet:"repeat"`

	Score  *float64    `parquet:"score,optional"` // of the first metric
	Scores []scoreLine `parquet:"scores,list"`

	Answer  *string `parquet:"answer,optional,json"`
	Outputs *string `parquet:"outputs,optional,json"`

	Error        *string  `parquet:"error,optional"` // what was wrong
	ErrorClass   *string  `parquet:"error_class,optional"`
	ErrorType    *string  `parquet:"error_type,optional"`
	ErrorCode    *string  `parquet:"error_code,optional"`
	Requests     int32    `parquet:"requests"`
	Input        *int64   `parquet:"input_tokens,optional"`
	Output       *int64   `parquet:"output_tokens,optional"`
	Total        *int64   `parquet:"total_tokens,optional"`
	CachedInput  *int64   `parquet:"cached_input_tokens,optional"`
	Reasoning    *int64   `parquet:"reasoning_tokens,optional"`
	Cost         *float64 `parquet:"cost,optional"`
	Seconds      *float64 `parquet:"seconds,optional"`
	Cached       bool     `parquet:"cached"`
	RequestHash  *string  `parquet:"request_hash,optional"`
	Call         *string  `parquet:"call,optional"`
	Pair         *string  `parquet:"pair,optional"`
	Conversation *string  `parquet:"conversation,optional"`

	Spent   *float64 `parquet:"spent,optional"`
	From    *string  `parquet:"from,optional"`
	Resumed bool     `parquet:"resumed"`

	Latency *float64 `parquet:"latency,optional"`
	Waited  float64  `parquet:"waited"`
	Retries int32    `parquet:"retries"`
	Model   *string  `parquet:"model,optional"`
	System  *string  `parquet:"system,optional"`

	Plugins  []pluginLine `parquet:"plugins,list"`
	Tools    []toolLine   `parquet:"tools,list"`
	Transfer *string      `parquet:"transfer,optional"`
	Kept     int32        `parquet:"kept"`

	Classes []classLine `parquet:"classes,list"`
	Judged  []judgeLine `parquet:"judged,list"`
}

type judgeLine struct {
	Metric      string   `parquet:"metric"`
	Rated       bool     `parquet:"rated"`
	Person      *string  `parquet:"person,optional"`
	Verdict     *string  `parquet:"verdict,optional"`
	Missing     *string  `parquet:"missing,optional"`
	Same        int32    `parquet:"same"`
	First       int32    `parquet:"first"`
	Second      int32    `parquet:"second"`
	Tied        int32    `parquet:"tied"`
	Requests    int32    `parquet:"requests"`
	Input       *int64   `parquet:"input_tokens,optional"`
	Output      *int64   `parquet:"output_tokens,optional"`
	Total       *int64   `parquet:"total_tokens,optional"`
	CachedInput *int64   `parquet:"cached_input_tokens,optional"`
	Reasoning   *int64   `parquet:"reasoning_tokens,optional"`
	Cost        *float64 `parquet:"cost,optional"`
}

func (k *Judged) line() judgeLine {
	return judgeLine{
		Metric: k.Metric, Rated: k.Rated, Person: some(k.Person), Verdict: some(k.Verdict), Missing: some(k.Missing),
		Same: int32(k.Orders.Same), First: int32(k.Orders.First), Second: int32(k.Orders.Second), Tied: int32(k.Orders.Tied),
		Requests: int32(k.Requests), Input: k.Usage.Input, Output: k.Usage.Output, Total: k.Usage.Total,
		CachedInput: k.Usage.Cached, Reasoning: k.Usage.Reasoning, Cost: k.Cost,
	}
}

func (l *judgeLine) judged() Judged {
	return Judged{
		Metric: l.Metric, Rated: l.Rated, Person: text(l.Person), Verdict: text(l.Verdict), Missing: text(l.Missing),
		Orders:   stats.Orders{Same: int(l.Same), First: int(l.First), Second: int(l.Second), Tied: int(l.Tied)},
		Requests: int(l.Requests), Cost: l.Cost,
		Usage: pipeline.Usage{Input: l.Input, Output: l.Output, Total: l.Total, Cached: l.CachedInput, Reasoning: l.Reasoning},
	}
}

type classLine struct {
	Metric    string  `parquet:"metric"`
	Expected  string  `parquet:"expected"`
	Predicted *string `parquet:"predicted,optional"`
}

type toolLine struct {
	Tool  string `parquet:"tool"`
	Match string `parquet:"match"`

	Failed bool `parquet:"failed"`
}

type pluginLine struct {
	Plugin      string `parquet:"plugin"`
	Version     string `parquet:"version"`
	Hook        string `parquet:"hook"`
	Changed     bool   `parquet:"changed"`
	Instruction bool   `parquet:"instruction"`
	Blocked     bool   `parquet:"blocked"`
	Failed      bool   `parquet:"failed"`
}

type scoreLine struct {
	Metric   string   `parquet:"metric"`
	Value    *float64 `parquet:"value,optional"`
	Feedback *string  `parquet:"feedback,optional"`
}

// line is the result at rest. Seconds, like the call's id, are there only when a
// call was made.
func (r *Result) line() resultLine {
	l := resultLine{
		Evaluation: r.Evaluation, Row: r.Row, Candidate: r.Candidate, Repeat: int32(r.Repeat),
		Answer: some(r.Answer.JSON()), Outputs: some(r.Outputs.JSON()),
		Requests: int32(r.Requests), Input: r.Usage.Input, Output: r.Usage.Output, Total: r.Usage.Total,
		CachedInput: r.Usage.Cached, Reasoning: r.Usage.Reasoning, Cost: r.Cost, Cached: r.Cached,
		Spent: r.Spent, From: some(r.From), Resumed: r.Resumed,
		RequestHash: some(r.RequestHash), Call: some(r.Call), Pair: some(r.Pair), Conversation: some(r.Conversation),
		Latency: r.Latency, Waited: r.Waited, Retries: int32(r.Retries), Model: some(r.Model), System: some(r.System), Transfer: some(r.Transfer), Kept: int32(r.Kept),
	}
	if r.Call != "" {
		l.Seconds = &r.Seconds
	}
	for i, s := range r.Scores {
		if i == 0 {
			l.Score = s.Value
		}
		l.Scores = append(l.Scores, scoreLine{s.Metric, s.Value, some(s.Feedback)})
	}
	for _, c := range r.Classes {
		l.Classes = append(l.Classes, classLine{c.Metric, c.Expected, some(c.Predicted)})
	}
	for i := range r.Judged {
		l.Judged = append(l.Judged, r.Judged[i].line())
	}
	for _, a := range r.Plugins {
		l.Plugins = append(l.Plugins, pluginLine(a))
	}
	for _, t := range r.Tools {
		l.Tools = append(l.Tools, toolLine(t))
	}
	if f := r.Failed; f != nil {
		l.Error, l.ErrorClass, l.ErrorType, l.ErrorCode = &f.Message, &f.Class, &f.Type, some(f.Code)
	}
	return l
}

// result is the result that was written as the line.
func (l *resultLine) result() (Result, error) {
	r := Result{
		Evaluation: l.Evaluation, Row: l.Row, Candidate: l.Candidate, Repeat: int(l.Repeat),
		Requests: int(l.Requests), Cost: l.Cost, Cached: l.Cached,
		Spent: l.Spent, From: text(l.From), Resumed: l.Resumed,
		Usage:       pipeline.Usage{Input: l.Input, Output: l.Output, Total: l.Total, Cached: l.CachedInput, Reasoning: l.Reasoning},
		RequestHash: text(l.RequestHash), Call: text(l.Call), Pair: text(l.Pair), Conversation: text(l.Conversation),
		Latency: l.Latency, Waited: l.Waited, Retries: int(l.Retries), Model: text(l.Model), System: text(l.System), Transfer: text(l.Transfer), Kept: int(l.Kept),
	}
	for _, v := range []struct {
		text *string
		to   *datasets.Value
	}{{l.Answer, &r.Answer}, {l.Outputs, &r.Outputs}} {
		if v.text == nil {
			continue
		}
		// A recorded answer is kept as it was, also where a number of it fits no float64.
		if !jsontext.Value(*v.text).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
			return r, fmt.Errorf("row %s, candidate %s, repeat %d: its answer is not JSON", l.Row, l.Candidate, l.Repeat)
		}
		*v.to = datasets.RawValue(*v.text)
	}
	if l.Seconds != nil {
		r.Seconds = *l.Seconds
	}
	for _, s := range l.Scores {
		r.Scores = append(r.Scores, Scored{s.Metric, s.Value, text(s.Feedback)})
	}
	for _, c := range l.Classes {
		r.Classes = append(r.Classes, Classed{c.Metric, c.Expected, text(c.Predicted)})
	}
	for i := range l.Judged {
		r.Judged = append(r.Judged, l.Judged[i].judged())
	}
	for _, a := range l.Plugins {
		r.Plugins = append(r.Plugins, PluginAct(a))
	}
	for _, t := range l.Tools {
		r.Tools = append(r.Tools, ToolServed(t))
	}
	if l.ErrorClass != nil {
		r.Failed = &Failed{Class: *l.ErrorClass, Type: text(l.ErrorType), Code: text(l.ErrorCode), Message: text(l.Error)}
	}
	return r, nil
}

// some is a text that may be missing; "" is.
func some(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
