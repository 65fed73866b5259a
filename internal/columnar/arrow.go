package columnar

import (
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// ArrowType is the type of a column of an Arrow stream.
type ArrowType int

// The types of columns, each with the Go type of its values.
const (
	ArrowText  ArrowType = iota // string
	ArrowJSON                   // string, the text of one JSON value; marked with the extension type arrow.json
	ArrowInt                    // int64
	ArrowFloat                  // float64
	ArrowBool                   // bool
	ArrowTime                   // time.Time, as microseconds in UTC
	ArrowTexts                  // []string
)

// ArrowColumn describes a column of an Arrow stream. Every column may be null.
type ArrowColumn struct {
	Name string
	Type ArrowType
}

// arrowBatch is how many rows a record batch of a stream holds.
const arrowBatch = 1024

// WriteArrow writes rows as an Arrow IPC stream, uncompressed, which pyarrow,
// Polars, DuckDB and others read from a pipe. A row has a value for each column,
// of the Go type that the column's type names, or nil for null. When a row comes
// with an error, or does not fit, the stream is left without its end.
func WriteArrow(w io.Writer, columns []ArrowColumn, rows iter.Seq2[[]any, error]) error {
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = c.field()
	}
	schema := arrow.NewSchema(fields, nil)
	builder := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer builder.Release()
	out := ipc.NewWriter(w, ipc.WithSchema(schema))
	flush := func() error {
		batch := builder.NewRecord()
		defer batch.Release()
		return out.Write(batch)
	}
	held, n := 0, 0
	for row, err := range rows {
		if err != nil {
			return err
		}
		if len(row) != len(columns) {
			return fmt.Errorf("row %d has %d values for %d columns", n, len(row), len(columns))
		}
		for i, v := range row {
			if !appendArrow(builder.Field(i), columns[i].Type, v) {
				return fmt.Errorf("row %d: a %T does not fit column %s", n, v, columns[i].Name)
			}
		}
		n++
		if held++; held == arrowBatch {
			if err := flush(); err != nil {
				return err
			}
			held = 0
		}
	}
	if held > 0 || n == 0 { // the schema is written with the first batch
		if err := flush(); err != nil {
			return err
		}
	}
	return out.Close()
}

func (c ArrowColumn) field() arrow.Field {
	f := arrow.Field{Name: c.Name, Nullable: true}
	switch c.Type {
	case ArrowText:
		f.Type = arrow.BinaryTypes.String
	case ArrowJSON:
		f.Type = arrow.BinaryTypes.String
		f.Metadata = arrow.NewMetadata([]string{"ARROW:extension:name", "ARROW:extension:metadata"}, []string{"arrow.json", ""})
	case ArrowInt:
		f.Type = arrow.PrimitiveTypes.Int64
	case ArrowFloat:
		f.Type = arrow.PrimitiveTypes.Float64
	case ArrowBool:
		f.Type = arrow.FixedWidthTypes.Boolean
	case ArrowTime:
		f.Type = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	case ArrowTexts:
		f.Type = arrow.ListOf(arrow.BinaryTypes.String)
	}
	return f
}

// appendArrow reports whether the value is of the column's type.
func appendArrow(b array.Builder, typ ArrowType, value any) bool {
	if value == nil {
		b.AppendNull()
		return true
	}
	switch v := value.(type) {
	case string:
		if typ != ArrowText && typ != ArrowJSON {
			return false
		}
		b.(*array.StringBuilder).Append(v)
	case int64:
		if typ != ArrowInt {
			return false
		}
		b.(*array.Int64Builder).Append(v)
	case float64:
		if typ != ArrowFloat {
			return false
		}
		b.(*array.Float64Builder).Append(v)
	case bool:
		if typ != ArrowBool {
			return false
		}
		b.(*array.BooleanBuilder).Append(v)
	case time.Time:
		if typ != ArrowTime {
			return false
		}
		b.(*array.TimestampBuilder).Append(arrow.Timestamp(v.UnixMicro()))
	case []string:
		if typ != ArrowTexts {
			return false
		}
		list := b.(*array.ListBuilder)
		list.Append(true)
		for _, s := range v {
			list.ValueBuilder().(*array.StringBuilder).Append(s)
		}
	default:
		return false
	}
	return true
}
