package provider

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"evalrun/datasets"
)

// headerKey is the one key of a header line; its value is the format's version.
const headerKey = "evalrun_replies"

var (
	replyKeys = []string{"request_hash", "request", "reply", "response", "finish", "usage", "model", "replicate"}
	usageKeys = []string{"input_tokens", "output_tokens", "total_tokens", "cached_input_tokens", "reasoning_tokens"}
)

// numbered is a row with the place it has in its file: its line, or its number,
// from 1.
type numbered struct {
	RecordedReply
	at int
}

// readLines yields the replies of a file of JSON lines. A header may stand before
// any row, so that files can be joined; blank lines are passed over. People
// write such files by hand, so an unknown key is an error: a misspelled
// replicate would serve the wrong reply. An error names the line, after name.
func readLines(r io.Reader, name string) iter.Seq2[numbered, error] {
	return func(yield func(numbered, error) bool) {
		lines := bufio.NewReaderSize(r, 1<<16)
		for n := 1; ; n++ {
			line, err := lines.ReadBytes('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				yield(numbered{}, fmt.Errorf("%s: %w", name, err))
				return
			}
			if n == 1 {
				line = bytes.TrimPrefix(line, []byte("\uFEFF"))
			}
			if text := bytes.TrimRight(line, " \t\r\n"); len(bytes.TrimLeft(text, " \t")) > 0 {
				row, problem := readLine(text)
				if problem != nil {
					yield(numbered{}, fmt.Errorf("%s:%d%w", name, n, problem))
					return
				}
				if row != nil && !yield(numbered{*row, n}, nil) {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
}

// readLine reads one line; a header gives no row. Its error goes on from the
// line's number, with the column where that is known.
func readLine(line []byte) (*RecordedReply, error) {
	var row RecordedReply
	err := json.Unmarshal(line, &row, json.RejectUnknownMembers(true))
	if err == nil {
		return &row, nil
	}
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return nil, fmt.Errorf(":%d: the key %q occurs twice", syntax.ByteOffset+1, syntax.JSONPointer.LastToken())
		}
		return nil, fmt.Errorf(":%d: not a JSON object on a line: %w", syntax.ByteOffset+1, syntax.Err)
	}
	var wrong *json.SemanticError
	if !errors.As(err, &wrong) {
		return nil, fmt.Errorf(": %w", err)
	}
	key := strings.ReplaceAll(strings.TrimPrefix(string(wrong.JSONPointer), "/"), "/", ".")
	switch {
	case key == "":
		return nil, fmt.Errorf(": a row is a JSON object, not %s", kindName(wrong.JSONKind))
	case errors.Is(err, json.ErrUnknownName):
		if header := datasets.ValuesOf(datasets.RawValue(string(line))); !header[headerKey].IsZero() {
			return nil, checkHeader(header)
		}
		known := replyKeys
		if strings.HasPrefix(key, "usage.") {
			known = usageKeys
		}
		return nil, fmt.Errorf(": unknown key %q%s", key, didYouMean(wrong.JSONPointer.LastToken(), known))
	case key == "reply":
		return nil, fmt.Errorf(": reply is text, not %s; a JSON reply is given as its text, a provider's response as response", kindName(wrong.JSONKind))
	case wrong.GoType != nil && wrong.GoType.Kind() == reflect.String:
		return nil, fmt.Errorf(": %s is text, not %s", key, kindName(wrong.JSONKind))
	case wrong.GoType != nil && wrong.GoType.Kind() == reflect.Struct:
		return nil, fmt.Errorf(": %s is a JSON object, not %s", key, kindName(wrong.JSONKind))
	case wrong.JSONKind == '0':
		return nil, fmt.Errorf(": %s is a whole number below 2^63, written without a fraction", key)
	default:
		return nil, fmt.Errorf(": %s is a whole number, not %s", key, kindName(wrong.JSONKind))
	}
}

// checkHeader accepts a header of a version that is known. A header of a later
// version may hold keys nobody knows yet, so its version is looked at first.
func checkHeader(header datasets.Values) error {
	version, ok := header[headerKey].AsInt()
	switch {
	case !ok || version < 1:
		return fmt.Errorf(": %s is the format's version, a whole number from 1, not %s", headerKey, header[headerKey].JSON())
	case version > repliesVersion:
		return laterVersion(version)
	case len(header) > 1:
		return fmt.Errorf(": a header holds %s alone", headerKey)
	}
	return nil
}

func laterVersion(version int64) error {
	return fmt.Errorf(": a replies file of version %d; this evalrun reads versions up to %d: use a newer one", version, repliesVersion)
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "true or false"
	case '"':
		return "text"
	case '0':
		return "a number"
	case '[':
		return "a list"
	case '{':
		return "an object"
	}
	return "this"
}
