package journal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"evalrun/internal/disk"
)

// ErrDamaged is the error of a journal that has lost something it knew: a segment
// is missing or shorter than it was, or has frames behind some that cannot be read.
// The end of a segment may be torn, which is no damage: its process was killed.
var ErrDamaged = errors.New("the journal is damaged")

// segments are the files of a journal, in order. Their numbers have no gaps.
func segments(dir string) ([]string, error) {
	names, err := segmentFiles(dir)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		switch number, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(name), ".journal")); {
		case err != nil:
			return nil, fmt.Errorf("%s: a segment's name is a number", name)
		case number != i+1:
			return nil, fmt.Errorf("%w: %s is missing: put it back", ErrDamaged, segment(dir, i+1))
		}
	}
	return names, nil
}

// segmentFiles are the files of a folder that are named as segments, in order; none
// when there is no folder.
func segmentFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".journal" {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	return names, err
}

// segment is the name of a segment, which are numbered from 1.
func segment(dir string, number int) string {
	return filepath.Join(dir, fmt.Sprintf("%06d.journal", number))
}

// Sizes are the sizes of a journal's segments, in order: none of them shrinks.
func Sizes(dir string) ([]int64, error) {
	names, err := segments(dir)
	if err != nil {
		return nil, err
	}
	var sizes []int64
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, info.Size())
	}
	return sizes, nil
}

// CheckSizes compares a journal with the sizes that it had.
func CheckSizes(dir string, had []int64) error {
	sizes, err := Sizes(dir)
	if err != nil {
		return err
	}
	for i, size := range had {
		switch {
		case i >= len(sizes):
			return fmt.Errorf("%w: %s is missing: put it back", ErrDamaged, segment(dir, i+1))
		case sizes[i] < size:
			return fmt.Errorf("%w: %s has %d bytes, and had %d: put back a copy of it", ErrDamaged, segment(dir, i+1), sizes[i], size)
		}
	}
	return nil
}

// unread is where a segment has no frame that can be read: its torn end, or, when
// there are frames behind it, damage.
func unread(f *os.File, name string, offset, size int64) error {
	next, err := nextFrame(f, offset+1, size)
	if err != nil || next < 0 {
		return err
	}
	return fmt.Errorf("%w: %s: the %d bytes from byte %d on cannot be read, and answers follow: put back a copy of it", ErrDamaged, name, next-offset, offset)
}

// nextFrame finds the first whole frame from a place on; -1 when there is none.
func nextFrame(f *os.File, from, size int64) (int64, error) {
	r := bufio.NewReaderSize(io.NewSectionReader(f, from, max(0, size-from)), 1<<16)
	for at := from; ; at++ {
		head, err := r.Peek(frameHead + 1)
		if errors.Is(err, io.EOF) {
			return -1, nil
		} else if err != nil {
			return -1, err
		}
		if head[frameHead] == '{' {
			if text, err := frameOf(f, at, size); text != nil || err != nil {
				return at, err
			}
		}
		if _, err := r.Discard(1); err != nil {
			return -1, err
		}
	}
}

// frameOf is the text of the frame at a place; nil when no whole one is there.
func frameOf(f *os.File, at, size int64) ([]byte, error) {
	var head [frameHead]byte
	if at+frameHead > size {
		return nil, nil
	}
	if _, err := f.ReadAt(head[:], at); err != nil {
		return nil, err
	}
	length := int64(binary.LittleEndian.Uint32(head[:4]))
	if length > maxFrame || at+frameHead+length > size {
		return nil, nil
	}
	text := make([]byte, length)
	if _, err := f.ReadAt(text, at+frameHead); err != nil {
		return nil, err
	}
	var e kept
	if crc32.Checksum(text, castagnoli) != binary.LittleEndian.Uint32(head[4:]) || json.Unmarshal(text, &e) != nil {
		return nil, nil
	}
	return text, nil
}

// Mend leaves out what is damaged, so that the journal can be opened again without
// what it lost. A segment that is damaged stays beside the others, with the ending
// .damaged; in the place of one that is missing is an empty one. It says how many
// bytes were left out.
func Mend(dir string) (lost int64, err error) {
	names, err := segmentFiles(dir)
	if err != nil || len(names) == 0 {
		return 0, err
	}
	newest := names[len(names)-1]
	last, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(newest), ".journal"))
	if err != nil {
		return 0, fmt.Errorf("%s: a segment's name is a number", newest)
	}
	for number := range last {
		name := segment(dir, number+1)
		if !slices.Contains(names, name) {
			if err := os.WriteFile(name, []byte(journalHead), 0o600); err != nil {
				return lost, err
			}
			continue
		}
		n, err := mend(name)
		lost += n
		if err != nil {
			return lost, err
		}
	}
	return lost, nil
}

// mend leaves out what is damaged of a segment.
func mend(name string) (lost int64, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	whole := [][2]int64{{0, int64(len(journalHead))}} // parts to keep
	for at := whole[0][1]; ; {
		text, err := frameOf(f, at, info.Size())
		if err != nil {
			return 0, err
		}
		if text != nil {
			next := at + frameHead + int64(len(text))
			whole[len(whole)-1][1], at = next, next
			continue
		}
		next, err := nextFrame(f, at+1, info.Size())
		if err != nil {
			return 0, err
		}
		if next < 0 {
			break
		}
		lost += next - at
		whole = append(whole, [2]int64{next, next})
		at = next
	}
	if lost == 0 {
		return 0, nil
	}
	if err := os.Link(name, name+".damaged"); err != nil {
		return 0, err
	}
	return lost, disk.Write(name, func(to *os.File) error {
		for _, part := range whole {
			if _, err := io.Copy(to, io.NewSectionReader(f, part[0], part[1]-part[0])); err != nil {
				return err
			}
		}
		return nil
	})
}
