package fakelog_test

import (
	"strings"
	"testing"

	"evalrun/internal/fakelog"
	"evalrun/pipeline"
)

// The calls in a log are of the interfaces of the definitions given with it.
func TestDefinitions(t *testing.T) {
	var log strings.Builder
	if err := fakelog.Write(&log, 50, 1); err != nil {
		t.Fatal(err)
	}
	for _, definition := range []string{fakelog.Triage, fakelog.Reply} {
		p, err := pipeline.ParseProgram("definition.json", []byte(definition))
		if err != nil {
			t.Fatal(err)
		}
		want := `"program":{"name":"` + p.Name() + `","kind":"ai","module":"shop","version":"sha256:`
		if !strings.Contains(log.String(), want) || !strings.Contains(log.String(), `"signature":"`+p.Signature()+`","interface":"`+p.Interface()+`"`) {
			t.Errorf("no call of %s with interface %s", p.Name(), p.Interface())
		}
	}
}
