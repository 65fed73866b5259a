package providertest

import (
	"net/http"
	"slices"
	"strings"

	"evalrun/datasets"
)

// asked is what the dialects of services that answer in parts go by.
type asked struct {
	text   string   // what the user, or a tool, said last
	told   bool     // a tool said it
	tools  []string // that may be called
	schema datasets.Value
	stops  []string
	most   int // words; 0 is no limit
}

// said is what such a dialect says.
type said struct {
	text   string
	calls  []string // the tools it calls, with {"text": what the user said}
	finish string   // stop, stopped (by a stop sequence), length, calls, refusal
}

// answer is what is said: of forbidden things nothing, else what [OpenAI] would say.
func (a *asked) answer() said {
	switch {
	case strings.Contains(a.text, "forbidden"):
		return said{finish: "refusal"}
	case len(a.tools) > 0 && !a.told:
		return said{text: "I ask.", calls: a.tools, finish: "calls"}
	}
	text := a.text
	if !a.schema.IsZero() {
		text = string(encode(fitting(a.schema, text)))
	}
	ended, finish := Ended(text, a.stops, a.most)
	if finish == "stop" && ended != text {
		finish = "stopped"
	}
	return said{text: ended, finish: finish}
}

// halves are a text in two, as services may have it.
func halves(text string) []string {
	i := strings.Index(text, " ") + 1
	return slices.DeleteFunc([]string{text[:i], text[i:]}, func(s string) bool { return s == "" })
}

// unknownMember is the first member that is none of those known; "" when all are.
func unknownMember(object datasets.Value, known ...string) string {
	for name := range object.Members() {
		if !slices.Contains(known, name) {
			return name
		}
	}
	return ""
}

// textsOf are the texts of a list.
func textsOf(v datasets.Value) (texts []string) {
	for e := range v.Elements() {
		texts = append(texts, e.String())
	}
	return texts
}

func ok(v any) (int, http.Header, []byte) { return http.StatusOK, nil, encode(v) }
