package metrics

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"evalrun/datasets"
	"evalrun/harness"
)

// fenced sets a text that is judged off from whatever else the judge is told. The
// key of the two lines is a hash of the text between them, so that the text cannot
// hold it: whoever writes one would have to know its hash beforehand. The same text
// always has the same key, and requests stay what they are.
func fenced(text string) datasets.Value {
	key := fenceKey(text)
	for strings.Contains(text, key) {
		key = fenceKey(key + text)
	}
	return datasets.Text("[data " + key + " begins]\n" + text + "\n[data " + key + " ends]")
}

func fenceKey(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// taskOf is what the judged call was asked: its one input alone, or all of them by
// name; after what it was shown of its conversation.
func taskOf(j *harness.Judging) string {
	var b strings.Builder
	for _, s := range j.Row.Context.Sections {
		b.WriteString(s + "\n\n")
	}
	for _, turn := range j.Row.Context.Earlier {
		b.WriteString("Earlier in the conversation:\n" + spelled(turn.Inputs) + "answered:\n" + spelled(turn.Outputs) + "\n")
	}
	inputs := j.Row.Inputs
	if p := j.Call.Program; p != nil {
		inputs = p.Own(inputs)
	}
	if b.Len() > 0 {
		b.WriteString("Now:\n")
	}
	if len(inputs) == 1 {
		b.WriteString(inputs[inputs.Names()[0]].String())
	} else {
		b.WriteString(strings.TrimSuffix(spelled(inputs), "\n"))
	}
	return b.String()
}

// spelled are values by name, one after the other.
func spelled(values datasets.Values) string {
	var b strings.Builder
	for _, name := range values.Names() {
		b.WriteString(name + ": " + values[name].String() + "\n")
	}
	return b.String()
}
