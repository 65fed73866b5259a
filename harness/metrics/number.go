package metrics

import (
	"context"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"evalrun/datasets"
	"evalrun/harness"
	"evalrun/pipeline"
)

// number compares numbers, within a tolerance.
type number struct {
	comparing
	Tolerance float64 `conf:"tolerance"`
	Relative  float64 `conf:"relative"` // of the right answer's size
	Find      string  `conf:"find"`     // whole, first or last

	tolerance, relative *big.Rat
}

func newNumber(b *builder) (harness.Metric, error) {
	m := &number{}
	if err := b.decode(m, &m.AsName); err != nil {
		return nil, err
	}
	for option, v := range map[string]float64{"tolerance": m.Tolerance, "relative": m.Relative} {
		if v < 0 {
			return nil, b.at(option, "%s: %v is less than 0", option, v)
		}
	}
	if err := b.oneOf("find", &m.Find, "whole", "first", "last"); err != nil {
		return nil, err
	}
	// As decimals, so that 1.01 is within 0.01 of 1.
	m.tolerance, m.relative = decimal(m.Tolerance), decimal(m.Relative)
	return m, b.compare(&m.comparing)
}

func decimal(v float64) *big.Rat {
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(v, 'g', -1, 64))
	return r
}

func (m *number) Score(_ context.Context, row datasets.Row, call *pipeline.Call) (harness.Score, error) {
	answer, right, missing := m.both(row, call)
	if missing != "" {
		return missed(missing)
	}
	want, ok := numberOf(right, "whole")
	if !ok {
		return missed("the right answer " + clip(right.String()) + " is no number")
	}
	have, ok := numberOf(answer, m.Find)
	if !ok {
		return harness.Score{Feedback: "the answer is no number; " + rightIs(right)}, nil
	}
	return verdict(m.near(have, want), "wrong: "+rightIs(right))
}

// near reports whether |have − want| ≤ max(tolerance, relative·|want|).
func (m *number) near(have, want *big.Rat) bool {
	off := new(big.Rat).Sub(have, want)
	allowed := new(big.Rat).Mul(m.relative, new(big.Rat).Abs(want))
	if allowed.Cmp(m.tolerance) < 0 {
		allowed = m.tolerance
	}
	return off.Abs(off).Cmp(allowed) <= 0
}

// numerals are numbers as people and models write them: thousands may be set
// apart by commas. Three digits of exponent are more than a float64 holds.
var (
	numeral      = `[+-]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?`
	wholeNumeral = regexp.MustCompile(`^` + numeral + `$`)
	anyNumeral   = regexp.MustCompile(numeral)
)

// maxNumeral is how long a numeral may be: arithmetic is exact.
const maxNumeral = 2000

// numberOf is a value's number, exactly: a JSON number's, a text's that is one
// numeral, or that of the first or last numeral in a text.
func numberOf(v datasets.Value, find string) (*big.Rat, bool) {
	text := strings.ReplaceAll(strings.TrimFunc(v.String(), isSpace), "\u2212", "-")
	if v.Kind() != '0' && v.Kind() != '"' {
		return nil, false
	}
	if find != "whole" {
		text = numeralIn(text, find == "last")
	}
	if len(text) > maxNumeral || !wholeNumeral.MatchString(text) {
		return nil, false
	}
	return new(big.Rat).SetString(strings.ReplaceAll(text, ",", ""))
}

// numeralIn is the first or last numeral in a text; "" when there is none. A sign
// right after a letter or a digit is a hyphen: 3-5 has the numbers 3 and 5.
func numeralIn(text string, last bool) string {
	found := anyNumeral.FindAllStringIndex(text, -1)
	if found == nil {
		return ""
	}
	at := found[0]
	if last {
		at = found[len(found)-1]
	}
	s := text[at[0]:at[1]]
	if before, _ := utf8.DecodeLastRuneInString(text[:at[0]]); unicode.IsLetter(before) || unicode.IsDigit(before) {
		s = strings.TrimLeft(s, "+-")
	}
	return s
}
