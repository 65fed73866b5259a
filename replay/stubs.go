package replay

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"evalrun/datasets"
	"evalrun/internal/conf"
)

// Stubs are answers to tool calls from a file that people write: JSON lines, each
//
//	{"tool": "search", "input": {"q": "opening hours"}, "output": "9 to 5"}
//
// tool and output are required. Without input the line answers every call of its
// tool that has no line of its own. An output that is a JSON string is told to the
// model as the text it is, anything else as it is written.
type Stubs struct {
	byInput map[stubKey]string
	tools   map[string]string // answers to any input
}

type stubKey struct{ tool, input string } // the input's canonical form

// stubLine is a line of the file.
type stubLine struct {
	Tool   string         `json:"tool"`
	Input  datasets.Value `json:"input,omitzero"`
	Output datasets.Value `json:"output"`
}

var stubKeys = []string{"tool", "input", "output"}

// ParseStubs reads a stub file; file names it in messages. Two lines for one tool
// and input are refused, since only one of them could ever answer.
func ParseStubs(file string, data []byte) (*Stubs, error) {
	s := &Stubs{byInput: map[stubKey]string{}, tools: map[string]string{}}
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := s.add(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
	}
	if len(s.byInput)+len(s.tools) == 0 {
		return nil, fmt.Errorf("%s: no stub in it; a stub file has a line for each answer: {\"tool\": …, \"input\": …, \"output\": …}", file)
	}
	return s, nil
}

func (s *Stubs) add(text []byte) error {
	var line stubLine
	if err := json.Unmarshal(text, &line, json.RejectUnknownMembers(true)); err != nil {
		return stubError(err)
	}
	switch {
	case line.Tool == "":
		return errors.New("tool is missing: the name of the tool that this answers")
	case line.Output.IsZero():
		return errors.New("output is missing: what the model is told")
	}
	output, isText := line.Output.AsText()
	if !isText {
		output = line.Output.JSON()
	}
	if line.Input.IsZero() {
		if _, twice := s.tools[line.Tool]; twice {
			return fmt.Errorf("a second answer of %s to any input: give each an input, or leave one out", line.Tool)
		}
		s.tools[line.Tool] = output
		return nil
	}
	key := stubKey{line.Tool, line.Input.Canonical()}
	if _, twice := s.byInput[key]; twice {
		return fmt.Errorf("a second answer of %s to %s: leave one out", line.Tool, shortInput(line.Input))
	}
	s.byInput[key] = output
	return nil
}

// stubError says what is wrong with a line.
func stubError(err error) error {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Errorf("not a JSON object on a line, at byte %d: %w", syntax.ByteOffset+1, syntax.Err)
	}
	wrong, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok:
		return err
	case wrong.JSONPointer == "":
		return errors.New("a stub is a JSON object: {\"tool\": …, \"input\": …, \"output\": …}")
	case !errors.Is(err, json.ErrUnknownName):
		return errors.New("tool is a text, the tool's name")
	}
	key := wrong.JSONPointer.LastToken()
	if near := conf.Suggest(key, stubKeys); near != "" {
		return fmt.Errorf("unknown key %q; did you mean %q?", key, near)
	}
	return fmt.Errorf("unknown key %q; there are %s", key, strings.Join(stubKeys, ", "))
}

// answer is what the file says of a tool call.
func (s *Stubs) answer(tool string, input datasets.Value) (output string, ok bool) {
	if s == nil {
		return "", false
	}
	if output, ok = s.byInput[stubKey{tool, input.Canonical()}]; !ok {
		output, ok = s.tools[tool]
	}
	return output, ok
}
