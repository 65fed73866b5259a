package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestREADME: what the README says its first command prints is what it prints.
func TestREADME(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "go run ./cmd/evalrun ")
	command, rest, _ := strings.Cut(rest, "\n")
	_, rest, _ = strings.Cut(rest, "\n```\n")
	want, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("the README shows no output of its first command")
	}
	args := append(strings.Fields(command), "--runs", t.TempDir())
	code, got := runMain(t, root, args...)
	if code != 0 || got != want {
		t.Errorf("evalrun %s (exit %d) prints\n%s\nthe README says\n%s", command, code, got, want)
	}
}
