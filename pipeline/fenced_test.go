package pipeline

import (
	"strings"
	"testing"

	"evalrun/datasets"
)

func TestReadFenced(t *testing.T) {
	const good = "```tool\n{\"name\": \"look\", \"input\": {\"a\": 1}}\n```"
	for _, tt := range []struct{ text, finish, want, code string }{
		{"<result>\nx\n</result>", "stop", "", ""},
		{"```json\n{}\n```", "stop", "", ""},
		{"I could write ```tool and then what?", "stop", "", ""},
		{good, "stop", `look {"a": 1}`, ""},
		{"Let me see.\n\n  " + good + "\nOne moment.", "stop", `look {"a": 1}`, ""},
		{strings.ReplaceAll(good, "\n", "\r\n"), "stop", `look {"a": 1}`, ""},
		{strings.TrimSuffix(good, "\n```"), "stop", `look {"a": 1}`, ""},
		{"```tool\n{\"name\": \"look\"}\n```", "stop", `look {}`, ""},
		{"```tool\n{\"name\": \"look\", \"input\": {\"t\": \"```\\n```tool\"}}```", "stop", "look {\"t\": \"```\\n```tool\"}", ""},
		{"```tool\n{\"name\": \"look\", \"in", "length", "", "parse-truncated"},
		{"```tool\n{\"name\": \"look\", \"in", "stop", "", "parse-tool"},
		{"```tool\n```", "stop", "", "parse-tool"},
		{"```tool\n{name: look}\n```", "stop", "", "parse-tool"},
		{"```tool\n[1]\n```", "stop", "", "parse-tool"},
		{"```tool\n{\"name\": \"\"}\n```", "stop", "", "parse-tool"},
		{"```tool\n{\"name\": \"look\", \"input\": \"x\"}\n```", "stop", "", "parse-tool"},
		{"```tool\n{\"name\": \"look\", \"name\": \"book\"}\n```", "stop", "", "parse-tool"},
		{"```tool\n{\"name\": \"look\"} {\"name\": \"look\"}\n```", "stop", "", "parse-tool"},
		{good + "\n" + good, "stop", "", "parse-tool"},
	} {
		calls, err := readFenced(tt.text, tt.finish)
		got, code := "", ""
		if err != nil {
			code = err.(*Failure).Code
		}
		for _, c := range calls {
			got += c.Name + " " + c.Input.JSON()
		}
		if got != tt.want || code != tt.code {
			t.Errorf("%q: %q, %v; want %q, %s", tt.text, got, err, tt.want, tt.code)
		}
	}
}

// What is written as the model is to write it is read back.
func FuzzFenced(f *testing.F) {
	f.Add("look", `{"a":1}`, "Let me see.\n")
	f.Add("a\n```", "{\"t\":\"```tool\\n\"}", "```tool")
	f.Add("", `{"a": [{}]}`, "")
	f.Fuzz(func(t *testing.T, name, input, before string) {
		_, _ = readFenced(before, "stop") // anything is read without a panic
		v, err := datasets.ParseValue(input)
		if err != nil || v.Kind() != '{' || name == "" || strings.ToValidUTF8(name, "") != name || strings.ContainsAny(before, "`") {
			return
		}
		calls, err := readFenced(before+"\n"+fencedCall(ToolCall{Name: name, Input: v})+"\n", "stop")
		if err != nil || len(calls) != 1 || calls[0].Name != name || !calls[0].Input.Equal(v) {
			t.Errorf("%q %s is read as %v, %v", name, input, calls, err)
		}
	})
}
