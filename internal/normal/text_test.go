package normal

import (
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// Folding agrees with Python's, whose casefold is Unicode's full folding, on
// every character that both know.
func TestFoldAgainstPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed: its casefold is what folding is compared with")
	}
	script := filepath.Join(t.TempDir(), "fold.py")
	text := "import sys, unicodedata\n" +
		"for c in range(0x110000):\n" +
		"    s = chr(c)\n" +
		"    if not 0xd800 <= c < 0xe000 and unicodedata.category(s) != 'Cn':\n" +
		"        print('%x' % c, s.casefold().encode('utf-8').hex(), int(s.isspace()))\n"
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, script).Output()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(out)) {
		hexRune, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		hexFold, space, _ := strings.Cut(rest, " ")
		code, err := strconv.ParseUint(hexRune, 16, 32)
		want, err2 := hex.DecodeString(hexFold)
		if err != nil || err2 != nil {
			t.Fatalf("%q: %v, %v", line, err, err2)
		}
		r := rune(code)
		if !unicode.IsGraphic(r) && !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) {
			continue
		}
		n++
		if got := Fold(string(r)); got != string(want) {
			t.Errorf("%U is folded to %q; want %q", r, got, want)
		}
		if got := IsSpace(r); got != (space == "1") {
			t.Errorf("%U is white space: %v; want %v", r, got, !got)
		}
	}
	if n < 100_000 {
		t.Errorf("only %d characters were compared", n)
	}
}
