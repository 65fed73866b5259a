package columnar

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
	"time"
)

// pyarrow reads our streams from a pipe, with the types they are meant to have.
func TestPyarrowReadsStreams(t *testing.T) {
	python := os.Getenv("EVALRUN_PYTHON")
	if python == "" {
		python = "python3"
	}
	if err := exec.Command(python, "-c", "import pyarrow").Run(); err != nil {
		t.Skipf("there is no %s with pyarrow (EVALRUN_PYTHON names another): what it reads of our streams is not tested", python)
	}
	var out bytes.Buffer
	at := time.Date(2025, 1, 2, 3, 4, 5, 678000, time.UTC)
	err := WriteArrow(&out, arrowColumns, all([][]any{
		{"a", `{"x": 1.50}`, int64(1), 0.5, true, at, []string{"b", ""}}, make([]any, len(arrowColumns)),
	}))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-c", `
import datetime, sys, pyarrow as pa
table = pa.ipc.open_stream(sys.stdin.buffer).read_all()
types = [str(f.type) for f in table.schema]
assert types[0] == "string" and types[2:] == ["int64", "double", "bool", "timestamp[us, tz=UTC]", "list<item: string>"], types
assert "json" in types[1] or types[1] == "string", types
table = table.cast(pa.schema([f.with_type(pa.string()) if i == 1 else f for i, f in enumerate(table.schema)]))
at = datetime.datetime(2025, 1, 2, 3, 4, 5, 678, tzinfo=datetime.timezone.utc)
rows = [list(r.values()) for r in table.to_pylist()]
assert rows == [["a", '{"x": 1.50}', 1, 0.5, True, at, ["b", ""]], [None] * 7], rows
`)
	cmd.Stdin = &out
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}
