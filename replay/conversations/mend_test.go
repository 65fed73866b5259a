//go:build unix

package conversations_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"evalrun/datasets"
	"evalrun/replay/conversations"
)

// Copies that writers left when they were killed over the mending of a file go when
// it is mended next; those of another conversation, and other files, stay. The mended
// file is its owner's alone.
func TestMendTidies(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	add(t, s, 0, `{"n":0}`)
	dir := filepath.Join(folder, "conversations")
	for _, name := range []string{
		".ada.jsonl.123.tmp", ".ada.jsonl.9.tmp", ".ada2.jsonl.123.tmp", ".ada.jsonl.b.jsonl.123.tmp", "ada.jsonl.1.tmp", ".ada.jsonl.1.tmp.kept",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tear(t, folder)
	add(t, s, 1, `{"n":1}`)
	want := []string{".ada.jsonl.1.tmp.kept", ".ada.jsonl.b.jsonl.123.tmp", ".ada2.jsonl.123.tmp", "ada.jsonl", "ada.jsonl.1.tmp", "ada.lock"}
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("there are %q, want %q", got, want)
	}
	if info, err := os.Stat(file(folder)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func tear(t *testing.T, folder string) {
	t.Helper()
	f, err := os.OpenFile(file(folder), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"torn`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// A write that fails halfway leaves the file as it was, in a new file: whoever was
// reading the half line in the old one finds nothing else after it.
func TestWriteFails(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	add(t, s, 0, `{"n":0}`)
	old, err := os.Open(file(folder))
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	size := func(f *os.File) int64 {
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	before := size(old)
	cramped(t, folder, "ada", 1, before+4)
	if got := size(old); got != before+4 {
		t.Errorf("the old file had %d bytes and has %d", before, got)
	}
	if got := read(t, s); len(got) != 1 {
		t.Errorf("read %v", got)
	}
	if b, err := os.ReadFile(file(folder)); err != nil || string(b) != "{\"n\":0}\n" {
		t.Errorf("the file has %q, %v", b, err)
	}
	add(t, s, 1, `{"n":1}`)
	if got := names(t, filepath.Join(folder, "conversations")); !slices.Equal(got, []string{"ada.jsonl", "ada.lock"}) {
		t.Errorf("there are %q", got)
	}
	// Where there is no room for a new one either, the next writer finds the half line.
	cramped(t, folder, "eve", 0, before-1)
	if err := s.Append(t.Context(), "eve", 0, datasets.RawValue(`{"n":0}`)); err != nil {
		t.Error(err)
	}
}

// cramped has another process add a record where no file may be larger than so many
// bytes, which must fail.
func cramped(t *testing.T, folder, id string, length int, most int64) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "EVALRUN_TEST_CRAMPED="+folder, fmt.Sprintf("EVALRUN_TEST_NAME=%s %d %d", id, length, most))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "the record was not kept") {
		t.Fatalf("%v, %s", err, out)
	}
}

func init() {
	cram = func(folder string) {
		var id string
		var length int
		var limit syscall.Rlimit
		fmt.Sscan(os.Getenv("EVALRUN_TEST_NAME"), &id, &length, &limit.Cur)
		limit.Max = limit.Cur
		s, err := conversations.Open(folder)
		if err == nil {
			err = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
		}
		if err != nil {
			panic(err)
		}
		fmt.Println(s.Append(context.Background(), id, length, datasets.RawValue(`{"much":"longer"}`)))
	}
}
