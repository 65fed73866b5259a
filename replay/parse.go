package replay

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// ParseRecord reads a call record from one line of a call log. The error is a
// *[SkipError] when the line is none, or none that this version can use.
func ParseRecord(line []byte) (*Record, error) {
	text, what, err := usable(line)
	if err != nil {
		return nil, err
	}
	if !what.call {
		return nil, &SkipError{SkipNoFormat, "a rating where a call was expected"}
	}
	return parseRecord(text, what)
}

// ParseRating reads a rating record from one line of a call log. The error is a
// *[SkipError] when the line is none, or none that this version can use.
func ParseRating(line []byte) (*Rating, error) {
	text, what, err := usable(line)
	if err != nil {
		return nil, err
	}
	if what.call {
		return nil, &SkipError{SkipNoFormat, "a call where a rating was expected"}
	}
	return parseRating(text, what)
}

// The latest formats that are read.
const (
	latestCall   = 2
	latestRating = 1
)

// lineFacts are what is known of a line before it is read.
type lineFacts struct {
	call   bool // a call record, else a rating
	format int
	twice  bool // some object in it names a member twice
}

// usable checks that a line is a JSON object of a known format, and says which.
// The text is a copy of the line.
func usable(line []byte) (text string, what lineFacts, err error) {
	if !utf8.Valid(line) {
		return "", what, &SkipError{SkipNotUTF8, ""}
	}
	text = strings.Trim(string(line), " \t\r\n")
	if !jsontext.Value(line).IsValid() {
		if !validJSON(line) {
			return "", what, &SkipError{SkipNotJSON, ""}
		}
		what.twice = true
		text = wholeCharacters(text)
	}
	if text[0] != '{' {
		return "", what, &SkipError{SkipNotObject, ""}
	}
	if what.twice {
		text = lastOnly(text)
	}
	key, value := formatOf(text)
	if key == "" {
		return "", what, &SkipError{SkipNoFormat, ""}
	}
	latest := int64(latestRating)
	if what.call = key == callKey; what.call {
		latest = latestCall
	}
	n, ok := wholeNumber(value)
	if !ok || n < 1 || n > latest {
		return "", what, &SkipError{SkipFormat, fmt.Sprintf("%s: %.40s", key, value)}
	}
	what.format = int(n)
	return text, what, nil
}

// The keys that say what a record is.
const (
	callKey   = "functai_call"
	ratingKey = "functai_rating"
)

// formatOf finds the key that says what a record is, and its value; key is ""
// when the object has none. Writers put it first, so that this reads little.
func formatOf(text string) (key, value string) {
	c := enter(text)
	for name, v, ok := c.member(); ok; name, v, ok = c.member() {
		switch name {
		case callKey:
			key, value = callKey, v
		case ratingKey:
			key, value = ratingKey, v
		default:
			continue
		}
		break
	}
	return key, value
}

// validJSON reports whether text is one JSON value, with names that occur twice
// and lone surrogates (which Python writes for text that is no Unicode) let
// through.
func validJSON(text []byte) bool {
	return jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// wholeCharacters writes U+FFFD for lone surrogates, which is what they are in
// canonical JSON, since other programs refuse a column that holds one. The text
// is valid JSON otherwise.
func wholeCharacters(text string) string {
	unit := func(i int) rune { // the escape \uXXXX at i
		if i+6 > len(text) || text[i] != '\\' || text[i+1] != 'u' {
			return -1
		}
		n, err := strconv.ParseUint(text[i+2:i+6], 16, 16)
		if err != nil {
			return -1
		}
		return rune(n)
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		n := 1
		if text[i] == '\\' {
			n = 2
			if r := unit(i); r >= 0 {
				n = 6
				if utf16.IsSurrogate(r) {
					n = 12
					if utf16.DecodeRune(r, unit(i+6)) == utf8.RuneError {
						b.WriteString(`\ufffd`)
						i += 6
						continue
					}
				}
			}
		}
		b.WriteString(text[i : i+n])
		i += n
	}
	return b.String()
}

func parseRecord(text string, what lineFacts) (*Record, error) {
	r := &Record{Format: what.format}
	if reader(what).record(r, text); r.ID == "" {
		return nil, &SkipError{SkipNoID, ""}
	}
	return r, nil
}

func parseRating(text string, what lineFacts) (*Rating, error) {
	r := &Rating{Format: what.format}
	if reader(what).rating(r, text); r.ID == "" {
		return nil, &SkipError{SkipNoID, ""}
	}
	return r, nil
}
