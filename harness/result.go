package harness

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
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

	// Unfinished says that there is no result, and none of the rest: nothing is
	// asked any more, and the answer is not known.
	Unfinished bool

	Pair         string // what the row is paired by when that is not its id; else ""
	Conversation string // rows of one conversation depend on each other; "" when none

	Answer  datasets.Value // the answer; no value when the call failed before one
	Outputs datasets.Value // all outputs as an object, when there are more than the answer; else no value

	Scores  []Scored  // in the order of the plan's metrics; empty when there is no answer
	Judged  []Judged  // what the plan's judges said, and took: that is in none of the numbers below
	Classes []Classed // of the plan's classifiers, in order, where the right class is known; also when there is no answer

	// Failed is why there is no answer, or not every score; nil when all is
	// there.
	Failed *Failed

	Plugins []PluginAct  // what plugins did to the call
	Tools   []ToolServed // the tool calls that were answered or could not be, in order

	// Kept is how many entries plugins would have kept in the conversation: on
	// replay they go nowhere.
	Kept int

	// Transfer says whether the answer equals the one that was rated, so that what
	// people said of that one holds of it: one of the Transfer constants; "" when
	// there is no verdict, and in the recorded lane, whose verdict is its own.
	Transfer string

	// What the call took, the calls that its tools made included; Seconds are its
	// own, in which all of that happened.
	Requests    int            // requests that a model answered
	Usage       pipeline.Usage // tokens of these; a count that is not known is nil
	Cost        *float64       // price of these tokens, each at its model's price; nil when that is not known of all
	Seconds     float64        // wall clock of the call
	Latency     *float64       // what the wire took for the tries that answered, in seconds; nil when nobody measured it
	Waited      float64        // in queues, limits and back-off before its tries, in seconds
	Retries     int            // tries that failed and were made again, probes of a service that was down included
	Model       string         // the model that served the last reply, as the provider says; "" unknown
	System      string         // fingerprint of the system that served it; "" unknown
	Spent       *float64       // of Cost, what the run itself paid: without replies that were cached; nil when nothing is known to be
	Cached      bool           // every reply was there before it was asked for: in a cache, or in another run
	From        string         // where cached replies came from: cache, run (another run), or both with a comma; "" when none was cached
	Resumed     bool           // nothing was asked in this process: every reply was cached, or in the run's own journal
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

// Classed is a classifier's reading of an answer.
type Classed struct {
	Metric    string
	Expected  string // the right class
	Predicted string // the answered one; "" when there is none
}

// ToolServed is a tool call and how it was answered.
type ToolServed struct {
	Tool  string // its name
	Match string // "exact", "canonical", "stub", "live" or "never_recorded": see the Match constants of replay

	Failed bool // it ran, and its result was an error
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

// outageClasses are failures of the service that was asked.
var outageClasses = map[string]bool{"rate_limited": true, "server": true, "timeout": true}

// Lost is how many rows have an answer that the service which was asked failed to
// give.
func (o *Outcome) Lost() int {
	n := 0
	for class, rows := range o.Failures {
		if outageClasses[class] {
			n += rows
		}
	}
	return n
}

// lostClasses are failures that tell nothing of a candidate: the world around
// it gave no answer.
var lostClasses = map[string]bool{
	"rate_limited": true, "server": true, "timeout": true, "canceled": true,
	"never_recorded": true, "tool_never_recorded": true, "diverged": true,
}

// AllLost reports whether every finished row was lost to the world around the
// candidate, so that nothing is known of it.
func (o *Outcome) AllLost() bool {
	n := 0
	for class, rows := range o.Failures {
		if lostClasses[class] {
			n += rows
		}
	}
	return n > 0 && n == o.N
}

// take fills in what the call says.
func (r *Result) take(call *pipeline.Call, answer string) {
	r.call = call
	r.Call = call.ID
	r.Seconds = call.Seconds
	r.Cached = call.Cached()
	r.Resumed = len(call.Exchanges) > 0
	priced, paid := true, true // a part of a cost is no cost
	from := map[pipeline.Origin]bool{}
	for c := range within(call) {
		for _, x := range c.Exchanges {
			r.takeTries(&x)
			r.Resumed = r.Resumed && x.Reply != nil && (x.Reply.Cached || x.Reply.From != pipeline.Asked)
			if x.Reply != nil {
				if x.Reply.Cached {
					from[x.Reply.From] = true
				} else {
					paid = paid && x.Cost != nil
					plus(&r.Spent, x.Cost)
				}
				r.Usage.Add(x.Reply.Usage, r.Requests == 0)
				priced = priced && x.Cost != nil
				plus(&r.Cost, x.Cost)
				r.Requests++
				if wire := x.Reply.Wire.Seconds(); wire > 0 {
					plus(&r.Latency, &wire)
				}
			}
		}
		r.Cached = r.Cached && (len(c.Exchanges) == 0 || c.Cached())
	}
	r.Model, r.System = servedBy(call)
	r.From = origins(from)
	if !priced {
		r.Cost = nil
	}
	if !paid {
		r.Spent = nil
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

// takeTries adds what came before an exchange's answer, or before its failure.
func (r *Result) takeTries(x *pipeline.Exchange) {
	var before []pipeline.Attempt
	switch {
	case x.Reply != nil:
		before = x.Reply.Attempts
		r.Waited += x.Reply.Waited.Seconds()
	case x.Failure != nil:
		before = x.Failure.Attempts
	}
	for _, a := range before {
		r.Waited += a.Waited.Seconds()
	}
	r.Retries += len(before)
	if len(before) > 0 && x.Reply == nil && pipeline.UnsentCode(x.Failure.Code) {
		r.Retries-- // the last one was not made again
	}
}

// asked reports whether a request of the call was answered, or sent to a service.
func (r *Result) asked() bool {
	switch {
	case r.Call == "":
		return false
	case r.Requests > 0 || r.Retries > 0:
		return true
	}
	return r.Failed != nil && sentTypes[r.Failed.Type] && !pipeline.UnsentCode(r.Failed.Code)
}

// sentTypes are the failures of requests that are told by who was asked.
var sentTypes = map[string]bool{
	pipeline.TypeRateLimit: true, pipeline.TypeServer: true, pipeline.TypeTimeout: true, pipeline.TypeRefusal: true,
}

// origins lists where replies came from, sorted, with commas.
func origins(from map[pipeline.Origin]bool) string {
	var list []string
	for o := range from {
		if o != pipeline.Asked {
			list = append(list, string(o))
		}
	}
	slices.Sort(list)
	return strings.Join(list, ",")
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

// score asks every metric; judge asks the one at a position that is a [Judge]. The
// error is one that leaves no result: see endsRun.
func (r *Result) score(ctx context.Context, metrics []Metric, row datasets.Row, call *pipeline.Call, judge func(at int) (Score, error)) error {
	var wrong []string
	class, kind := ClassJudge, TypeJudge // until another metric has no score
	r.Scores = make([]Scored, len(metrics))
	for i, m := range metrics {
		s := &r.Scores[i]
		s.Metric = m.Name()
		score, err := scoreOf(ctx, m, row, call, r, func() (Score, error) { return judge(i) })
		if ended := endsRun(ctx, err); ended != nil {
			return ended
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
			continue
		}
		if _, judged := m.(Judge); !judged {
			class, kind = ClassMetric, TypeMetric
		}
	}
	if wrong != nil {
		r.Failed = &Failed{Class: class, Type: kind, Message: strings.Join(wrong, "; ")}
	}
	return nil
}

// scoreOf asks a metric. One that panics could not score the row.
func scoreOf(ctx context.Context, m Metric, row datasets.Row, call *pipeline.Call, r *Result, judge func() (Score, error)) (s Score, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	switch m := m.(type) {
	case Effort:
		return m.ScoreEffort(row, r)
	case Judge:
		return judge()
	}
	return m.Score(ctx, row, call)
}

// usageUnknown reports whether a model answered without saying what it took.
func (r *Result) usageUnknown() bool {
	return r.Requests > 0 && (r.Usage.Input == nil || r.Usage.Output == nil)
}
