package replay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"evalrun/datasets"
)

// Rows that are kept aside are the rows, whatever is in them.
func TestRowsAside(t *testing.T) {
	long := strings.Repeat(`a \"long\" answer `, 3000)
	log := fmt.Sprintf(`
		{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"m":1,"":null},"outputs":{"result":%[1]q},"sections":null}
		{RIGHT,"id":"r1","call":"c1","at":"@30"}
		{CALL,"id":"c2",TEAM,"started":"@02","inputs":{"m":{"a":[1.50,1.50]},"version":%[1]q},"outputs":{"result":%[1]q,"p":2},"exchanges":[{"model":"x","request_hash":"sha256:1"}]}
		{WRONG,"id":"r2","call":"c2","at":"@30","outputs":{"p":1}}
		{CALL,"id":"c3",TEAM,"started":"@03","inputs":{"m":2},"outputs":{"result":"x"},"sections":["Summary."]}
		{RIGHT,"id":"r3","call":"c3","at":"@30"}
		{CALL,"id":"c4",TEAM,"started":"@04","inputs":{"m":3},"error":{"type":"E","message":"no"}}
		{WRONG,"id":"r4","call":"c4","at":"@30","answer":"y"}`, long)
	src := sourceOf(t, log)
	var all [2][]datasets.Row
	for i, aside := range []bool{false, true} {
		r, err := Rows(t.Context(), src, Query{Program: "team", Aside: aside})
		if err != nil {
			t.Fatal(err)
		}
		for row, err := range datasets.All(r) {
			if err != nil {
				t.Fatal(err)
			}
			all[i] = append(all[i], row)
		}
	}
	if len(all[0]) != 4 || all[0][0].Inputs["m"].JSON() != "1" || !all[0][0].Inputs[""].IsNull() || all[0][1].Labels["p"].JSON() != "1" ||
		all[0][1].Sent.Hash != "sha256:1" || len(all[0][2].Context.Sections) != 1 || all[0][3].Recorded != nil {
		t.Errorf("rows %v", all[0])
	}
	if d := cmp.Diff(all[0], all[1], cmp.AllowUnexported(datasets.Value{})); d != "" {
		t.Error(d)
	}
}
