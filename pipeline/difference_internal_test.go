package pipeline

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestCommonPrefix compares with the plainest loops that do the same.
func TestCommonPrefix(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	letters := []rune("aaaaaaéè€☃")
	text := func() string {
		var b strings.Builder
		for range r.IntN(4) {
			b.WriteString(strings.Repeat(string(letters[r.IntN(len(letters))]), r.IntN(100)))
		}
		return b.String()
	}
	for range 5000 {
		a, b := text(), text()
		if n := r.IntN(len(a) + 1); r.IntN(2) == 0 && (n == len(a) || utf8.RuneStart(a[n])) {
			b = a[:n] + b
		}
		characters, bs := 0, []rune(b)
		for i, c := range []rune(a) {
			if i == len(bs) || c != bs[i] {
				break
			}
			characters++
		}
		n := commonPrefix(a, b)
		if want := len(string(bs[:characters])); n != want {
			t.Fatalf("%q and %q begin alike for %d bytes, want %d", a, b, n, want)
		}
		tail := 0
		for tail < min(len(a), len(b))-n && a[len(a)-1-tail] == b[len(b)-1-tail] {
			tail++
		}
		if got, want := (Difference{Was: a, Is: b}).Size(), len(a)+len(b)-2*n-2*tail; got != want {
			t.Fatalf("%q and %q differ in %d bytes, want %d", a, b, got, want)
		}
	}
}
