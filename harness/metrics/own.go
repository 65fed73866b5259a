package metrics

import (
	"fmt"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/internal/conf"
	"evalrun/pipeline"
)

// rowValue is a row as metrics of the user's own are given it.
func rowValue(row datasets.Row) datasets.Value {
	v := datasets.Values{
		"id": datasets.Text(row.ID), "inputs": row.Inputs.Object(), "labels": row.Labels.Object(), "meta": row.Meta.Object(), "recorded": datasets.Null,
	}
	if row.Recorded != nil {
		v["recorded"] = row.Recorded.Object()
	}
	return v.Object()
}

// callValue is a call as metrics of the user's own are given it. What is not known
// is null; error always is, since a call that failed is not scored.
func callValue(call *pipeline.Call) (datasets.Value, error) {
	steps := call.Steps
	if steps == nil {
		steps = []datasets.Step{}
	}
	list, err := datasets.ValueOf(steps)
	if err != nil {
		return list, err
	}
	v := datasets.Values{
		"outputs": call.Outputs.Object(), "answer": call.Outputs[answerName(call, "")], "steps": list,
		"usage": datasets.Null, "seconds": datasets.Null, "error": datasets.Null,
	}
	if call.ID != "" { // else it is the recorded lane's
		if v["usage"], err = datasets.ValueOf(call.Usage()); err != nil {
			return list, err
		}
		v["seconds"] = datasets.Float(call.Seconds)
	}
	return v.Object(), nil
}

// scoreKeys are the members of a score that is an object.
var scoreKeys = []string{"value", "feedback", "missing"}

// scoreOf reads what a metric of the user's own gave: a number, a boolean, null for
// none, or an object with value, feedback and missing.
func scoreOf(v datasets.Value) (harness.Score, error) {
	if v.Kind() != '{' {
		return valueOf(v, "")
	}
	var value datasets.Value
	var s harness.Score
	for key, member := range v.Members() {
		into := &s.Feedback
		switch key {
		case "value":
			value = member
			continue
		case "feedback":
		case "missing":
			into = &s.Missing
		default:
			if near := conf.Suggest(key, scoreKeys); near != "" {
				return harness.Score{}, fmt.Errorf("a score has no %q; did you mean %q?", key, near)
			}
			return harness.Score{}, fmt.Errorf("a score has value, feedback and missing, not %q", key)
		}
		if member.IsNull() {
			continue
		}
		var ok bool
		if *into, ok = member.AsText(); !ok {
			return harness.Score{}, fmt.Errorf("a score's %s is text, not %s", key, clip(member.JSON()))
		}
	}
	if s.Missing != "" {
		if !value.IsZero() && !value.IsNull() {
			return harness.Score{}, fmt.Errorf("a score has a value or says why it is missing, not both")
		}
		return s, nil
	}
	return valueOf(value, s.Feedback)
}

func valueOf(v datasets.Value, feedback string) (harness.Score, error) {
	if b, ok := v.AsBool(); ok {
		s := harness.Score{Feedback: feedback}
		if b {
			s.Value = 1
		}
		return s, nil
	}
	if f, ok := v.AsFloat(); ok {
		return harness.Score{Value: f, Feedback: feedback}, nil
	}
	if v.IsZero() || v.IsNull() {
		return harness.Score{Missing: "the metric gave no value", Feedback: feedback}, nil
	}
	return harness.Score{}, fmt.Errorf("a score is a number, a boolean, null, or an object with value, feedback and missing, not %s", clip(v.JSON()))
}
