package harness

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strings"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// Result is one answer of one candidate to one row, scored. It holds what
// statistics and reports need, and never the call: that one is written down and
// let go, so that memory does not grow with what was asked.
type Result struct {
	Evaluation string // the plan's name
	Row        string // the row's id
	Candidate  string // the candidate's name
	Repeat     int    // from 0

	Pair         string // what the row is paired by when that is not its id; else ""
	Conversation string // rows of one conversation depend on each other; "" when none

	Answer  datasets.Value // the answer; no value when the call failed before one
	Outputs datasets.Value // all outputs as an object, when there are more than the answer; else no value

	Scores []Scored // in the order of the plan's metrics; empty when there is no answer

	// Failed is why there is no answer, or not every score; nil when all is
	// there.
	Failed *Failed

	Plugins []PluginAct  // what plugins did to the call
	Tools   []ToolServed // the tool calls that were served from a record or a file, in order

	// Transfer says that the answer equals the recorded one, so that what people
	// said of that one holds of it: "exact" or "normalized"; "" when it differs.
	Transfer string

	// What the call took, the calls that its tools made included; Seconds are its
	// own, in which all of that happened.
	Requests    int            // requests that a model answered
	Usage       pipeline.Usage // tokens of these; a count that is not known is nil
	Cost        *float64       // price of these tokens; nil when it is not known
	Seconds     float64        // wall clock of the call
	Latency     *float64       // what the wire took for the tries that answered, in seconds; nil when nobody measured it
	Model       string         // the model that served the last reply, as the provider says; "" unknown
	System      string         // fingerprint of the system that served it; "" unknown
	Cached      bool           // every reply came from a cache or a journal
	RequestHash string         // of the call's first request; "" when a plugin replaced it, or none was made
	Call        string         // the call's id; "" in the recorded lane, which makes none

	call   *pipeline.Call // on its way to Options.Observe
	record []byte         // on its way to a run's calls: see Options.record
}

// Scored is a metric's score of an answer.
type Scored struct {
	Metric   string
	Value    *float64 // nil when there is none; why is in Failed
	Feedback string   // "" for none
}

// ToolServed is a tool call that was answered without running the tool.
type ToolServed struct {
	Tool  string // its name
	Match string // how the answer was found: "exact", "canonical", "stub"
}

// Failed says why an answer failed, or why it could not be scored.
type Failed struct {
	Class   string // what reports count it under: a pipeline.Failure's class, or ClassMetric
	Type    string // a pipeline.Failure's type, or TypeMetric
	Code    string // a pipeline.Failure's code; "" when there is none
	Message string // what was wrong; of several metrics, joined by "; "
}

// An answer that a metric could not score.
const (
	ClassMetric = "metric"
	TypeMetric  = "MetricError"
)

// lostClasses are failures that tell nothing of a candidate: the world around
// it gave no answer.
var lostClasses = map[string]bool{
	"rate_limited": true, "server": true, "timeout": true, "canceled": true,
	"never_recorded": true, "tool_never_recorded": true, "diverged": true,
}

// take fills in what the call says.
func (r *Result) take(call *pipeline.Call, answer string) {
	r.call = call
	r.Call = call.ID
	r.Seconds = call.Seconds
	r.Cached = call.Cached()
	for c := range within(call) {
		for _, x := range c.Exchanges {
			if x.Reply != nil {
				r.Usage.Add(x.Reply.Usage, r.Requests == 0)
				r.Requests++
				r.Model, r.System = x.Reply.Model, x.Reply.System
				if wire := x.Reply.Wire.Seconds(); wire > 0 {
					plus(&r.Latency, &wire)
				}
			}
		}
		r.Cached = r.Cached && (len(c.Exchanges) == 0 || c.Cached())
	}
	r.Plugins = actsOf(call)
	if len(call.Exchanges) > 0 {
		r.RequestHash = call.Exchanges[0].Hash
	}
	r.takeOutputs(call.Outputs, answer)
	if f := call.Failure; f != nil {
		r.Failed = &Failed{Class: f.Class(), Type: f.Type, Code: f.Code, Message: plainMessage(f)}
	}
}

// within yields a call and then the calls made inside it, each followed by those
// inside it.
func within(call *pipeline.Call) iter.Seq[*pipeline.Call] {
	return func(yield func(*pipeline.Call) bool) { yieldWithin(call, yield) }
}

func yieldWithin(call *pipeline.Call, yield func(*pipeline.Call) bool) bool {
	if !yield(call) {
		return false
	}
	for _, inner := range call.Inside {
		if !yieldWithin(inner, yield) {
			return false
		}
	}
	return true
}

// plainMessage is the failure's text without its code, which has a place of its
// own.
func plainMessage(f *pipeline.Failure) string {
	bare := *f
	bare.Code = ""
	return bare.Error()
}

// takeOutputs keeps the answer, and all outputs when there are more. Without a
// known name the answer is the only output.
func (r *Result) takeOutputs(outputs datasets.Values, answer string) {
	if answer == "" && len(outputs) == 1 {
		for _, v := range outputs {
			r.Answer = v
		}
		return
	}
	r.Answer = outputs[answer]
	if len(outputs) > 1 || len(outputs) == 1 && r.Answer.IsZero() {
		r.Outputs = outputs.Object()
	}
}

// maxScore is the largest score whose statistics are sure to be finite.
const maxScore = 1e100

// score asks every metric. The error is ctx's: then there is no result.
func (r *Result) score(ctx context.Context, metrics []Metric, row datasets.Row, call *pipeline.Call) error {
	var wrong []string
	r.Scores = make([]Scored, len(metrics))
	for i, m := range metrics {
		s := &r.Scores[i]
		s.Metric = m.Name()
		score, err := scoreOf(ctx, m, row, call)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.Feedback = score.Feedback
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Sprintf("metric %s: %v", s.Metric, err))
		case score.Missing != "":
			wrong = append(wrong, fmt.Sprintf("metric %s: %s", s.Metric, score.Missing))
		case !(math.Abs(score.Value) <= maxScore): // true for NaN as well
			wrong = append(wrong, fmt.Sprintf("metric %s: its score %v is no number between -1e100 and 1e100", s.Metric, score.Value))
		default:
			value := score.Value + 0 // -0 + 0 is 0
			s.Value = &value
		}
	}
	if wrong != nil {
		r.Failed = &Failed{Class: ClassMetric, Type: TypeMetric, Message: strings.Join(wrong, "; ")}
	}
	return nil
}

// scoreOf asks a metric. One that panics could not score the row.
func scoreOf(ctx context.Context, m Metric, row datasets.Row, call *pipeline.Call) (s Score, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	return m.Score(ctx, row, call)
}

// price sets the cost, when tokens and their price are known.
func (r *Result) price(p *Price) {
	if p == nil || r.Requests == 0 || r.Usage.Input == nil || r.Usage.Output == nil {
		return
	}
	cost := (float64(*r.Usage.Input)*p.Input + float64(*r.Usage.Output)*p.Output) / 1e6
	r.Cost = &cost
}

// usageUnknown reports whether a model answered without saying what it took.
func (r *Result) usageUnknown() bool {
	return r.Requests > 0 && (r.Usage.Input == nil || r.Usage.Output == nil)
}
