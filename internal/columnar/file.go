package columnar

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"golang.org/x/exp/mmap"
)

// File is an open file of rows. It may be read by several goroutines.
type File struct {
	path   string
	schema Schema
	file   *parquet.File
	data   io.Closer
}

// Error is why a file cannot be used, or not be read on.
type Error struct {
	Path    string
	Problem string // what is wrong, in words that follow the path
	Advice  string // what to do about it
	Err     error  // what the reading met; nil when Problem says it
}

func (e *Error) Error() string {
	s := e.Path + ": " + e.Problem
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Advice != "" {
		s += "; " + e.Advice
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

const adviceDamaged = "restore it from a copy, or import its source again"

func damaged(path string, err error) error {
	return &Error{path, "is damaged", adviceDamaged, err}
}

// Open opens a file written by [Write]. It must be of one of the schemas given,
// in that version or an earlier one; without any, every schema and version is
// accepted. Errors are of type *[Error], apart from those of the file system.
func Open(path string, accept ...Schema) (*File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{path, "is no file", "name a Parquet file", nil}
	}
	m, err := mmap.Open(path)
	if err != nil {
		return nil, err
	}
	f, err := OpenReader(path, m, int64(m.Len()), accept...)
	if err != nil {
		_ = m.Close()
		return nil, err
	}
	f.data = m
	return f, nil
}

// OpenReader is Open for a file's content, wherever it lies; path names it in
// errors. The reader stays the caller's to close.
func OpenReader(path string, r io.ReaderAt, size int64, accept ...Schema) (f *File, err error) {
	defer guard(path, &err)
	checked := verify(r, size)
	if checked != nil && !errors.Is(checked, errNoCheck) {
		return nil, damaged(path, checked)
	}
	file, err := parquet.OpenFile(r, size)
	if err != nil {
		return nil, damaged(path, err)
	}
	s, ok, err := schemaOf(file)
	switch {
	case !ok:
		return nil, &Error{
			path, "is a Parquet file, but not of evalrun: its metadata names no " + keyName,
			"make a store of its source with 'evalrun import'", nil,
		}
	case checked != nil:
		return nil, damaged(path, checked)
	case err != nil:
		return nil, damaged(path, err)
	}
	if err := accepted(path, s, accept); err != nil {
		return nil, err
	}
	return &File{path: path, schema: s, file: file}, nil
}

func schemaOf(f *parquet.File) (s Schema, ok bool, err error) {
	if s.Name, ok = f.Lookup(keyName); !ok {
		return s, false, nil
	}
	version, _ := f.Lookup(keyVersion)
	if s.Version, err = strconv.Atoi(version); err != nil || s.Version < 1 {
		return s, true, fmt.Errorf("%s is %q, which is no version", keyVersion, version)
	}
	return s, true, nil
}

func accepted(path string, s Schema, accept []Schema) error {
	if len(accept) == 0 {
		return nil
	}
	var names []string
	for _, a := range accept {
		if a.Name != s.Name {
			names = append(names, a.Name)
			continue
		}
		if s.Version > a.Version {
			return &Error{
				path, fmt.Sprintf("was written by a later evalrun: its schema is %s, and this version reads up to %d", s, a.Version),
				"update evalrun", nil,
			}
		}
		return nil
	}
	return &Error{
		path, fmt.Sprintf("holds something else: its schema is %s, not %s", s.Name, strings.Join(names, " or ")),
		"name a file of the right kind", nil,
	}
}

// Path is the file's name.
func (f *File) Path() string { return f.path }

// Schema is what the file says it holds.
func (f *File) Schema() Schema { return f.schema }

// NumRows is the number of rows.
func (f *File) NumRows() int64 { return f.file.NumRows() }

// Close releases the file. Rows that were read do not need it.
func (f *File) Close() error {
	if f.data == nil {
		return nil
	}
	return f.data.Close()
}

// guard turns a panic of the library into an error: it is damage that the
// library does not check for.
func guard(path string, err *error) {
	if p := recover(); p != nil {
		*err = damaged(path, fmt.Errorf("%v", p))
	}
}
