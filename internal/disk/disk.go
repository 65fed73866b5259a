// Package disk writes files that are whole or not there.
package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write writes a file beside path and gives it that name once it is whole and on
// disk, in the place of a file that has the name. When write fails there is no
// new file. It is readable by its owner alone.
func Write(path string, write func(*os.File) error) error {
	return whole(path, os.Rename, write)
}

// WriteNew is [Write] where a file that is there is kept: the error is then
// fs.ErrExist, whoever made the file and however late.
func WriteNew(path string, write func(*os.File) error) error {
	return whole(path, nameOnce, write)
}

// Temporary is the pattern of the names that files have while they are written,
// for whoever removes what a killed process left.
func Temporary(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
}

func whole(path string, name func(from, to string) error, write func(*os.File) error) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(Temporary(path)))
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tmp.Close()
			_ = os.Remove(tmp.Name())
		}
	}()
	if err := write(tmp); err != nil {
		return err
	}
	if err := errors.Join(tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := name(tmp.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// nameOnce gives a file its name unless there is a file of that name. Where the
// file system has no hard links, which do it in one step, it looks first.
func nameOnce(tmp, path string) error {
	err := os.Link(tmp, path)
	switch {
	case err == nil:
		_ = os.Remove(tmp)
		return nil
	case errors.Is(err, fs.ErrExist):
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	return os.Rename(tmp, path)
}

// syncFolder makes a rename last through a power failure. Some systems cannot
// sync a folder; the file itself is on disk by then.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync()
	return d.Close()
}
