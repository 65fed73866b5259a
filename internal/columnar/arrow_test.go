package columnar

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow/ipc"
)

var arrowColumns = []ArrowColumn{
	{"text", ArrowText},
	{"json", ArrowJSON},
	{"int", ArrowInt},
	{"float", ArrowFloat},
	{"bool", ArrowBool},
	{"time", ArrowTime},
	{"texts", ArrowTexts},
}

func TestArrowStream(t *testing.T) {
	at := time.Date(2025, 1, 2, 3, 4, 5, 678000, time.UTC)
	for _, n := range []int{0, 1, arrowBatch, 2*arrowBatch + 1} {
		rows := func(yield func([]any, error) bool) {
			for i := range n {
				row := []any{fmt.Sprint("row ", i), `{"i": 1.50}`, int64(i), 0.5, i%2 == 0, at, []string{"a", ""}}
				if i%3 == 1 {
					row = make([]any, len(arrowColumns))
				}
				if !yield(row, nil) {
					return
				}
			}
		}
		var out bytes.Buffer
		if err := WriteArrow(&out, arrowColumns, rows); err != nil {
			t.Fatal(err)
		}
		r, err := ipc.NewReader(&out)
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Schema().Field(1); !strings.Contains(f.Metadata.String(), "arrow.json") {
			t.Errorf("the JSON column is not marked: %v", f)
		}
		got := 0
		for r.Next() {
			b := r.Record()
			for i := range int(b.NumRows()) {
				var row []string
				for _, c := range b.Columns() {
					row = append(row, c.ValueStr(i))
				}
				want := fmt.Sprintf(`row %d|{"i": 1.50}|%d|0.5|%v|2025-01-02 03:04:05.000678Z|["a",""]`, got, got, got%2 == 0)
				if got%3 == 1 {
					want = "(null)" + strings.Repeat("|(null)", len(arrowColumns)-1)
				}
				if s := strings.Join(row, "|"); s != want {
					t.Fatalf("row %d\ngot  %s\nwant %s", got, s, want)
				}
				got++
			}
		}
		if r.Err() != nil || got != n {
			t.Fatalf("%d of %d rows, %v", got, n, r.Err())
		}
		r.Release()
	}
}

func TestArrowRefuses(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		row  []any
		err  error
		want string
	}{
		{nil, boom, "boom"},
		{[]any{"x"}, nil, "row 0 has 1 values for 7 columns"},
		{[]any{1, nil, nil, nil, nil, nil, nil}, nil, "a int does not fit column text"},
		{[]any{nil, nil, "x", nil, nil, nil, nil}, nil, "a string does not fit column int"},
	} {
		err := WriteArrow(&bytes.Buffer{}, arrowColumns, func(yield func([]any, error) bool) { yield(c.row, c.err) })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
