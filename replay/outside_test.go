package replay

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// python finds an interpreter that has the modules, or skips.
func python(t *testing.T, modules ...string) string {
	t.Helper()
	path := os.Getenv("EVALRUN_PYTHON")
	if path == "" {
		path = "python3"
	}
	path, err := exec.LookPath(path)
	if err != nil {
		t.Skip("there is no python3 (or what EVALRUN_PYTHON names): what other programs read of our files is not tested")
	}
	if err := exec.Command(path, "-c", "import "+strings.Join(modules, ", ")).Run(); err != nil {
		t.Skipf("%s has not all of the modules %s: what they read of our files is not tested", path, strings.Join(modules, ", "))
	}
	return path
}

func runPython(t *testing.T, interpreter, script string, args ...string) {
	t.Helper()
	cmd := exec.Command(interpreter, append([]string{"-c", script}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The documented columns are what pyarrow and DuckDB see, in type and content.
func TestOthersReadOurFiles(t *testing.T) {
	interpreter := python(t, "pyarrow", "duckdb")
	store := imported(t, "testdata/records.jsonl", fakeLog(t, 300))
	runPython(t, interpreter, `
import glob, json, re, sys
import duckdb, pyarrow as pa, pyarrow.parquet as pq
store, docs = sys.argv[1:]

documented = {}
for name, type in re.findall(r"^\| .([a-z_.\[\]]+). \| (text|json|timestamp|int32|int64|double|boolean) \|", open(docs).read(), re.M):
    documented.setdefault(name, set()).add(type)
duck = {"text": "VARCHAR", "json": "JSON", "timestamp": "TIMESTAMP WITH TIME ZONE", "int32": "INTEGER", "int64": "BIGINT", "double": "DOUBLE", "boolean": "BOOLEAN"}
arrow = {"text": "string", "timestamp": "timestamp[us, tz=UTC]", "int32": "int32", "int64": "int64", "double": "double", "boolean": "bool"}

def columns(name, type):
    if pa.types.is_list(type):
        yield from columns(name + "[]", type.value_type)
    elif pa.types.is_struct(type):
        for f in type:
            yield from columns(name + "." + f.name, f.type)
    else:
        yield name, type

seen = 0
for kind in "calls", "ratings":
    path = glob.glob(store + "/" + kind + "-*.parquet")[0]
    file = pq.ParquetFile(path)
    meta = file.metadata.metadata
    assert meta[b"evalrun.schema"] == b"evalrun." + kind.encode() and meta[b"evalrun.version"] == b"1", meta
    assert re.fullmatch(rb"crc32c:[0-9a-f]{8}:[0-9a-f]{16}", meta[b"evalrun.check"])
    for i in range(len(file.schema)):
        c = file.schema.column(i)
        assert file.metadata.row_group(0).column(i).compression == "ZSTD", c
        name = c.path.replace(".list.element", "[]")
        type = {"JSON": "json", "STRING": "text"}.get(c.logical_type.type) or ("timestamp" if c.logical_type.type == "TIMESTAMP" else {"INT64": "int64", "INT32": "int32", "DOUBLE": "double", "BOOLEAN": "boolean"}[c.physical_type])
        assert type in documented[name], (name, type, documented[name])
        seen += 1
    for f in file.schema_arrow:
        for name, type in columns(f.name, f.type):
            want = documented[name]
            assert "json" in want or str(type) in [arrow[w] for w in want], (name, str(type), want)
    pq.read_table(path)
    for name, type, *_ in duckdb.sql("DESCRIBE SELECT * FROM '%s'" % path).fetchall():
        if name in documented:
            assert type in [duck[w] for w in documented[name]], (name, type)
assert seen > 80, seen

calls = "'" + store + "/calls-*.parquet'"
ratings = "'" + store + "/ratings-*.parquet'"
def one(query, want):
    got = duckdb.sql(query).fetchall()[0]
    assert got == want, (query, got, want)
one("SELECT count(*) FROM " + calls, (312,))
one("SELECT inputs::VARCHAR, outputs->>'label', seconds, epoch_us(started), parent, program_line FROM %s WHERE id = '0190b3c4-0000-7000-8000-000000000001'" % calls, ('{"z":"last first","a":1.50,"n":12345678901234567890}', "refund", 1.25, 1735787045123456, None, 12))
one("SELECT sections, changes[1].plugin, changes[1].change->>'instruction', saw[2].without, error_code, outputs, conversation_parent FROM %s WHERE id = '0190b3c4-0000-7000-8000-000000000002'" % calls, (["One.", "", 'Two: "quoted"'], "modes", "Be brief.", ["reasoning"], "parse-missing", None, "t1"))
one("SELECT count(*) FROM %s WHERE program_name = ''" % calls, (0,))
one("SELECT count(*) FROM %s WHERE error_type IS NULL AND outputs IS NULL AND program_module = 'shop'" % calls, (0,))
one("SELECT count(*) > 10 FROM %s r JOIN %s c ON c.id = r.call WHERE verdict = 'right'" % (ratings, calls), (True,))
# Every json column is JSON or NULL, and nothing else.
for name, types in documented.items():
    if types == {"json"} and "[]" not in name and name not in ("answer", "reasons"):
        one("SELECT count(*) FROM %s WHERE NOT json_valid(%s)" % (calls, name), (0,))
# The examples of the documentation run.
for block in re.findall(r"`+"```"+`sql\n(.*?)`+"```"+`", open(docs).read(), re.S):
    for q in filter(str.strip, block.split(";")):
        duckdb.sql(q.replace("store/", store + "/")).fetchall()
try:
    import pandas
except ImportError:
    sys.exit()
for block in re.findall(r"`+"```"+`python\n(.*?)`+"```"+`", open(docs).read(), re.S):
    exec(block.replace("store/", store + "/"))
`, store, filepath.Join("..", "docs", "formats.md"))
}
