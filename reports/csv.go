package reports

import (
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strconv"

	"evalrun/harness"
	"evalrun/internal/canon"
)

// writeCSV writes a line for every answer: each row, candidate and repeat, in the
// order of the run. An empty cell means that there is no value.
//
// Text is written as it is, whatever it begins with: a spreadsheet that takes
// "=…" for a formula has to be told that the columns are text.
func writeCSV(w io.Writer, r *Report) error {
	if r.results == nil {
		return errors.New("csv lists a run's answers, and this report compares several runs: write it for one of them")
	}
	var metrics []string
	for _, e := range r.Evaluations {
		for _, name := range e.Metrics {
			if !slices.Contains(metrics, name) {
				metrics = append(metrics, name)
			}
		}
	}
	head := []string{"evaluation", "row", "candidate", "repeat", "answer", "outputs"}
	for _, name := range metrics {
		head = append(head, "score_"+name)
	}
	head = append(head, "failed_class", "failed_type", "failed_code", "failed_message",
		"requests", "input_tokens", "output_tokens", "cost", "seconds", "cached", "request_hash", "call")
	out := csv.NewWriter(w)
	if err := out.Write(head); err != nil {
		return err
	}
	for res, err := range r.results() {
		if err != nil {
			return err
		}
		if err := out.Write(csvLine(&res, metrics)); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func csvLine(res *harness.Result, metrics []string) []string {
	line := []string{res.Evaluation, res.Row, res.Candidate, strconv.Itoa(res.Repeat), res.Answer.String(), res.Outputs.JSON()}
	for _, name := range metrics {
		cell := ""
		for _, s := range res.Scores {
			if s.Metric == name {
				cell = csvNumber(s.Value)
			}
		}
		line = append(line, cell)
	}
	f := res.Failed
	if f == nil {
		f = &harness.Failed{}
	}
	line = append(line, f.Class, f.Type, f.Code, f.Message,
		strconv.Itoa(res.Requests), csvCount(res.Usage.Input), csvCount(res.Usage.Output), csvNumber(res.Cost))
	if res.Call == "" { // nothing was asked, so nothing took time
		return append(line, "", "", "", "")
	}
	return append(line, csvNumber(&res.Seconds), strconv.FormatBool(res.Cached), res.RequestHash, res.Call)
}

func csvNumber(v *float64) string {
	if v == nil {
		return ""
	}
	return string(canon.AppendFloat(nil, *v))
}

func csvCount(v *int64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatInt(*v, 10)
}
