package replay

import (
	"strings"
	"testing"
)

// A row has the steps of a call that called tools, as recorded, and none of any
// other; what its record says of plugins names who shaped the results.
func TestRowSteps(t *testing.T) {
	const steps = `[{"kind":"model","outputs":{"calls":[{"id":"a","name":"look","input":{"n": 1.0}}]}},{"kind":"tool","id":"a","name":"look","output":"one"},{"kind":"model","outputs":{"team":"x"}}]`
	call := func(id, more string) string {
		return `{"functai_call":2,"id":"` + id + `","parent":null,"root":"` + id + `","program":{"name":"team","answer":"team"},"started":"2026-01-02T03:04:05.000001Z",` +
			`"content":true,"inputs":{"q":"x"},"outputs":{"team":"x"},"error":null,"saw":[]` + more + "}\n" +
			`{"functai_rating":1,"id":"r` + id + `","call":"` + id + `","at":"2026-01-02T04:00:00.000000Z","by":"ada","verdict":"right"}` + "\n"
	}
	log := call("a", `,"steps":`+steps+`,"changes":[`+
		`{"plugin":"modes","version":"1","hook":"before_call","change":{"tools":[]}},`+
		`{"plugin":"tidy","version":"1","hook":"tool_result","change":{"output":"one"}},`+
		`{"plugin":"tidy","version":"1","hook":"tool_result","change":{"output":"one"}},`+
		`{"plugin":"lang","version":"1","hook":"tool_call","change":{"inputs":{"l":"de"}}},`+
		`{"plugin":"guard","version":"","hook":"tool_call","change":{"block":""}}]`) +
		call("b", `,"steps":[{"kind":"model","outputs":{"team":"x"}}],"changes":[{"plugin":"tidy","version":"1","hook":"tool_result","change":{"output":"one"}}]`) +
		call("c", "")
	r, err := Rows(t.Context(), sourceOf(t, log), Query{Program: "team"})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ steps, shapers string }{{steps, "tidy guard"}, {"", ""}, {"", ""}} {
		row, err := r.At(i)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range row.Steps {
			got = append(got, s.JSON())
		}
		if text := strings.Join(got, ","); text != strings.TrimSuffix(strings.TrimPrefix(want.steps, "["), "]") {
			t.Errorf("row %s has the steps %s, want %s", row.ID, text, want.steps)
		}
		if got := strings.Join(ToolResultShapers(&row), " "); got != want.shapers {
			t.Errorf("row %s: results shaped by %q, want %q", row.ID, got, want.shapers)
		}
	}
}
