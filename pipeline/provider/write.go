package provider

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"evalrun/internal/columnar"
	"evalrun/internal/disk"
)

// WriteReplies writes a replies file, in Parquet when the path ends in .parquet
// and as JSON lines when it ends in .jsonl, and replaces a file that is there.
// A row gets the hash of its request when it has none; a reply that was written
// before is left out. A row that [OpenRecorded] would refuse is refused here,
// and nothing is written.
func WriteReplies(path string, rows iter.Seq2[RecordedReply, error]) error {
	rows = servable(path, rows)
	switch ext := filepath.Ext(path); ext {
	case ".parquet":
		return columnar.Write(path, repliesSchema, func(yield func(replyRow, error) bool) {
			for r, err := range rows {
				var row replyRow
				if err == nil {
					row, err = parquetRow(r)
				}
				if !yield(row, err) {
					return
				}
			}
		})
	case ".jsonl":
		return disk.Write(path, func(f *os.File) error { return writeLines(f, rows) })
	default:
		return fmt.Errorf("%s: a replies file's name ends in .parquet or .jsonl", path)
	}
}

// servable passes on the rows that a reader of the file will serve, by the
// reader's own rules.
func servable(path string, rows iter.Seq2[RecordedReply, error]) iter.Seq2[RecordedReply, error] {
	return func(yield func(RecordedReply, error) bool) {
		m, n := emptyRecorded(path, ": reply "), 0
		for row, err := range rows {
			n++
			c, fresh := checked{}, false
			if err == nil {
				if c, fresh, err = m.add(numbered{row, n}); err != nil {
					err = fmt.Errorf("%s: reply %d: %w", path, n, err)
				}
			}
			if err != nil {
				yield(RecordedReply{}, err)
				return
			}
			row.RequestHash = "sha256:" + hex.EncodeToString(c.key.hash[:])
			row.Request, row.Response = given(row.Request), given(row.Response)
			if fresh && !yield(row, nil) {
				return
			}
		}
		if n == 0 {
			yield(RecordedReply{}, fmt.Errorf("%s: no replies to write", path))
		}
	}
}

// writeLines writes replies as JSON lines under a header.
func writeLines(w io.Writer, rows iter.Seq2[RecordedReply, error]) error {
	out := bufio.NewWriter(w)
	if _, err := fmt.Fprintf(out, "{%q: %d}\n", headerKey, repliesVersion); err != nil {
		return err
	}
	for row, err := range rows {
		if err != nil {
			return err
		}
		line, err := json.Marshal(row)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}
