// Package canon writes JSON in its canonical form and names values by the hash
// of that form.
//
// Canonical JSON, as the call log's format defines it: object members sorted by
// code point, no white space, text outside ASCII as UTF-8, strings escaping
// only what JSON demands, integers in decimal whatever their size, every other
// number as ECMAScript's Number::toString writes it. Two values are equal when
// their canonical forms are equal bytes, so hashes made here agree with those
// of programs in other languages.
package canon

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Append appends the canonical form of the one JSON value in text to dst.
//
// Where an object names a member twice the last one counts, as in most
// decoders. An escaped lone surrogate, which has no UTF-8 form, becomes U+FFFD.
// A number too large for a float64, trailing text and anything that is not JSON
// are errors.
func Append(dst, text []byte) ([]byte, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	dst, err := appendNext(dst, dec)
	if err != nil {
		return dst, err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return dst, fmt.Errorf("text after the JSON value at byte %d", dec.InputOffset())
	}
	return dst, nil
}

type member struct {
	name string
	text []byte
}

func appendNext(dst []byte, dec *jsontext.Decoder) ([]byte, error) {
	tok, err := dec.ReadToken()
	if err != nil {
		return dst, err
	}
	switch tok.Kind() {
	case '{':
		var members []member
		for dec.PeekKind() != '}' {
			name, err := dec.ReadToken()
			if err != nil {
				return dst, err
			}
			m := member{name: name.String()}
			if m.text, err = appendNext(nil, dec); err != nil {
				return dst, err
			}
			members = append(members, m)
		}
		if _, err := dec.ReadToken(); err != nil {
			return dst, err
		}
		return appendObject(dst, members), nil
	case '[':
		dst = append(dst, '[')
		for i := 0; dec.PeekKind() != ']'; i++ {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendNext(dst, dec); err != nil {
				return dst, err
			}
		}
		if _, err := dec.ReadToken(); err != nil {
			return dst, err
		}
		return append(dst, ']'), nil
	case '"':
		return AppendString(dst, tok.String()), nil
	case '0':
		return AppendNumber(dst, tok.String())
	default:
		return append(dst, tok.String()...), nil
	}
}

// appendObject writes members sorted by code point, which for UTF-8 is byte
// order. The stable sort keeps the last of equal names last, and that one counts.
func appendObject(dst []byte, members []member) []byte {
	slices.SortStableFunc(members, func(a, b member) int {
		if a.name < b.name {
			return -1
		}
		if a.name > b.name {
			return 1
		}
		return 0
	})
	dst = append(dst, '{')
	first := true
	for i, m := range members {
		if i+1 < len(members) && members[i+1].name == m.name {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = AppendString(dst, m.name)
		dst = append(dst, ':')
		dst = append(dst, m.text...)
	}
	return append(dst, '}')
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a canonical JSON string. Bytes that are not UTF-8
// become U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(dst, s[start:i]...)
				dst = append(dst, "\uFFFD"...)
				i++
				start = i
				continue
			}
			i += size
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// AppendNumber appends the canonical form of a JSON number literal. An integer
// keeps all its digits; anything written with a fraction or an exponent is
// rounded to a float64 and written by [AppendFloat].
func AppendNumber(dst []byte, literal string) ([]byte, error) {
	integer := true
	for i := range len(literal) {
		if c := literal[i]; c == '.' || c == 'e' || c == 'E' {
			integer = false
			break
		}
	}
	if integer {
		if literal == "-0" {
			literal = "0"
		}
		return append(dst, literal...), nil
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return dst, fmt.Errorf("the number %s is too large for a float64", literal)
	}
	return AppendFloat(dst, f), nil
}

// AppendFloat appends a finite f as ECMAScript's Number::toString writes it:
// the shortest digits that read back as f, in plain decimal from 1e-6 up to
// 1e21, with an exponent elsewhere. It panics on NaN and infinities, which no
// file of ours may hold.
func AppendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		panic("canon: a number that is not finite has no JSON form")
	}
	if f == 0 {
		return append(dst, '0')
	}
	abs := math.Abs(f)
	if abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// strconv pads the exponent to two digits, ECMAScript does not.
	if n := len(dst); dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// Hash names canonical bytes: "sha256:" and the hex SHA-256 of them.
func Hash(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(sum[:])
}
