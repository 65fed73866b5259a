package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"evalrun/internal/disk"
)

// What was put is there again, in memory and in the file, whose name is gone.
func TestAside(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	var a disk.Aside
	text := func(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%d ", i), 1000*(i%7)) }
	var places []disk.Place
	for i := range 1000 {
		p, err := a.Put(text(i))
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, p)
	}
	for i, p := range places {
		got, err := a.Get(p)
		if err != nil || got != string(text(i)) {
			t.Fatalf("text %d: %d bytes, %v", i, len(got), err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
	// Where there is no room it says so.
	t.Setenv("TMPDIR", filepath.Join(dir, "none"))
	var none disk.Aside
	if _, err := none.Put(make([]byte, 2<<20)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}
