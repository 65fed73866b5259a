package conf_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"evalrun/internal/conf"
)

func TestExplainJSON(t *testing.T) {
	type note struct {
		Kind string `json:"kind"`
	}
	type answer struct {
		ID       int64             `json:"id"`
		Error    *string           `json:"error,omitzero"`
		Sections []string          `json:"sections"`
		Remember *note             `json:"remember"`
		Settings map[string]string `json:"settings"`
		Open     bool              `json:"open"`
	}
	for _, c := range []struct{ text, want string }{
		{`{"secions":[]}`, `unknown key "secions"; did you mean "sections"?`},
		{`{"zzz":1}`, `unknown key "zzz"; known are id, error, sections, remember, settings, open`},
		{`{"remember":{"knd":"a"}}`, `unknown key "knd" in remember; did you mean "kind"?`},
		{`{"sections":"a"}`, `sections must be a list of texts, not text`},
		{`{"sections":["a",3]}`, `sections[1] must be text, not the number`},
		{`{"error":{}}`, `error must be text, not an object`},
		{`{"id":"1"}`, `id must be a whole number, not text`},
		{`{"id":1.5}`, `id must be a whole number, not the number 1.5`},
		{`{"settings":[1]}`, `settings must be an object, not a list`},
		{`{"settings":{"a":true}}`, `settings.a must be text, not true`},
		{`{"open":3}`, `open must be true or false, not the number`},
		{`[]`, `the value must be an object, not a list`},
	} {
		var a answer
		err := json.Unmarshal([]byte(c.text), &a, json.RejectUnknownMembers(true))
		if err == nil {
			t.Errorf("%s was read", c.text)
			continue
		}
		if got := conf.ExplainJSON(err, &a); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s; want %s", c.text, got, c.want)
		}
	}
}
