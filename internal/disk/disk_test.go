package disk_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"evalrun/internal/disk"
)

func say(text string) func(*os.File) error {
	return func(f *os.File) error { _, err := f.WriteString(text); return err }
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	failed := errors.New("no more")
	steps := []struct {
		name string
		do   func() error
		err  error
		want string
	}{
		{"a failing write leaves nothing", func() error {
			return disk.Write(path, func(f *os.File) error { return errors.Join(say("half")(f), failed) })
		}, failed, ""},
		{"a new file", func() error { return disk.WriteNew(path, say("one")) }, nil, "one"},
		{"one that is there is kept", func() error { return disk.WriteNew(path, say("two")) }, fs.ErrExist, "one"},
		{"or replaced", func() error { return disk.Write(path, say("three")) }, nil, "three"},
		{"a failing write keeps it", func() error {
			return disk.Write(path, func(f *os.File) error { return errors.Join(say("half")(f), failed) })
		}, failed, "three"},
	}
	for _, s := range steps {
		if err := s.do(); !errors.Is(err, s.err) {
			t.Errorf("%s: %v", s.name, err)
		}
		got, _ := os.ReadFile(path)
		if string(got) != s.want {
			t.Errorf("%s: the file has %q", s.name, got)
		}
		if left, _ := filepath.Glob(disk.Temporary(path)); left != nil {
			t.Errorf("%s: left behind %s", s.name, left)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if err := disk.Write(filepath.Join(dir, "no", "b"), say("")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}
