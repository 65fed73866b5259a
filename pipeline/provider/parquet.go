package provider

import (
	"fmt"
	"iter"

	"github.com/go-json-experiment/json"

	"evalrun/datasets"
	"evalrun/internal/columnar"
	"evalrun/pipeline"
)

// parquetMagic is what every Parquet file begins with.
const parquetMagic = "PAR1"

var repliesSchema = columnar.Schema{Name: "evalrun.replies", Version: repliesVersion}

// replyRow is a row as Parquet holds it. Only evalrun writes this form, so
// columns it does not know come from a later one of the same version and are
// passed over.
type replyRow struct {
	RequestHash string        `parquet:"request_hash"`
	Request     columnar.JSON `parquet:"request,json,optional"`
	Reply       *string       `parquet:"reply"` // may be absent, and may be empty
	Response    columnar.JSON `parquet:"response,json,optional"`
	Finish      string        `parquet:"finish,optional"`
	Usage       columnar.JSON `parquet:"usage,json,optional"`
	Model       string        `parquet:"model,optional"`
	Replicate   int64         `parquet:"replicate"`
}

// readParquet yields the replies of a Parquet file with their row numbers, from 1.
func readParquet(path string) iter.Seq2[numbered, error] {
	return func(yield func(numbered, error) bool) {
		n := 0
		for row, err := range columnar.Read[replyRow](path, repliesSchema) {
			if err != nil {
				yield(numbered{}, err)
				return
			}
			n++
			reply, err := row.reply()
			if err != nil {
				yield(numbered{}, fmt.Errorf("%s: row %d: %w", path, n, err))
				return
			}
			if !yield(numbered{reply, n}, nil) {
				return
			}
		}
	}
}

func (row *replyRow) reply() (RecordedReply, error) {
	r := RecordedReply{
		RequestHash: row.RequestHash, Reply: row.Reply, Finish: row.Finish, Model: row.Model, Replicate: int(row.Replicate),
	}
	r.Request = datasets.RawValue(string(row.Request)) // what is no JSON is refused when it is read as a request
	if len(row.Response) > 0 {
		var err error
		if r.Response, err = datasets.ParseValue([]byte(row.Response)); err != nil {
			return r, fmt.Errorf("response: %w", err)
		}
	}
	if len(row.Usage) > 0 {
		if err := json.Unmarshal([]byte(row.Usage), &r.Usage, json.RejectUnknownMembers(true)); err != nil {
			return r, fmt.Errorf("usage: %w", err)
		}
	}
	return r, nil
}

func parquetRow(r RecordedReply) (replyRow, error) {
	row := replyRow{
		RequestHash: r.RequestHash, Request: columnar.JSON(r.Request.JSON()), Reply: r.Reply, Response: columnar.JSON(r.Response.JSON()),
		Finish: r.Finish, Model: r.Model, Replicate: int64(r.Replicate),
	}
	if r.Usage != (pipeline.Usage{}) {
		usage, err := datasets.ValueOf(r.Usage)
		if err != nil {
			return row, err
		}
		row.Usage = columnar.JSON(usage.JSON())
	}
	return row, nil
}
