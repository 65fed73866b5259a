// Package normal says which texts count as the same. It is the rule of every
// implementation of the FunctAI contract.
package normal

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
)

// Text makes texts that count as equal the same: runs of white space become one
// space, the ends are trimmed, and case is folded in full.
func Text(s string) string {
	s = strings.Join(strings.FieldsFunc(s, IsSpace), " ")
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return Fold(s)
		}
	}
	return strings.ToLower(s)
}

// IsSpace is the contract's white space. It has the separators U+001C to U+001F,
// which Go's unicode.IsSpace has not, and it has not U+FEFF and U+200B.
func IsSpace(r rune) bool {
	switch {
	case r >= 0x09 && r <= 0x0D, r >= 0x1C && r <= 0x20, r == 0x85, r == 0xA0, r == 0x1680,
		r >= 0x2000 && r <= 0x200A, r == 0x2028, r == 0x2029, r == 0x202F, r == 0x205F, r == 0x3000:
		return true
	}
	return false
}

// Fold is Unicode's full case folding. A Caser may have state, so each use has
// its own.
func Fold(s string) string {
	return strings.Map(cherokee, cases.Fold().String(s))
}

// cherokee makes Cherokee's small letters capital. Alone among the scripts it is
// folded to capitals; x/text instead exchanges the two cases, which leaves them
// as different as before.
func cherokee(r rune) rune {
	switch {
	case r >= 0xAB70 && r <= 0xABBF:
		return r - 0xAB70 + 0x13A0
	case r >= 0x13F8 && r <= 0x13FD:
		return r - 8
	}
	return r
}
