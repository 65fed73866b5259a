package reports

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"evalrun/internal/disk"
)

// A Format is one way to write a report into a file.
type Format struct {
	Name  string // as specs and flags call it
	File  string // its file in a run's folder
	Write func(io.Writer, *Report) error
}

// Formats are the ways to write a report, report.json first.
func Formats() []Format {
	return []Format{
		{"json", JSONFile, writeJSON},
		{"md", "report.md", writeMarkdown},
		{"html", "report.html", writeHTML},
		{"csv", "report.csv", writeCSV},
		{"junit", "junit.xml", writeJUnit},
	}
}

// FindFormat returns the format of that name. The error lists those there are.
func FindFormat(name string) (Format, error) {
	var known []string
	for _, f := range Formats() {
		if f.Name == name {
			return f, nil
		}
		known = append(known, f.Name)
	}
	return Format{}, fmt.Errorf("there is no report format %q: there are %s", name, strings.Join(known, ", "))
}

// Write writes a report in those formats into a folder, each file whole or not
// at all, and returns the files' paths. It checks every name before it writes.
func Write(dir string, r *Report, formats []string) ([]string, error) {
	chosen := make([]Format, len(formats))
	for i, name := range formats {
		var err error
		if chosen[i], err = FindFormat(name); err != nil {
			return nil, err
		}
	}
	var files []string
	for _, f := range chosen {
		path := filepath.Join(dir, f.File)
		if err := writeFile(path, r, f); err != nil {
			return files, fmt.Errorf("writing %s: %w", path, err)
		}
		files = append(files, path)
	}
	return files, nil
}

// writeFile writes a report's file: a reader sees the old report or the new one.
func writeFile(path string, r *Report, f Format) error {
	return disk.Write(path, func(file *os.File) error {
		w := bufio.NewWriter(file)
		if err := f.Write(w, r); err != nil {
			return err
		}
		return w.Flush()
	})
}
