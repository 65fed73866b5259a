package columnar

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"
)

// A file's data pages carry checksums of their own, its footer, page indexes
// and filters do not: a changed bit there can rename a column, or hide a row
// from a look-up, without an error. So the metadata holds a checksum of all that
// follows the data, computed with the digits of its own place as zeros:
//
//	evalrun.check = crc32c:8 hex digits:16 hex digits, the offset it begins at
const (
	checkForm = "crc32c:%08x:%016x"
	checkSize = len("crc32c:") + 8 + 1 + 16
)

var noCheck = fmt.Sprintf(checkForm, 0, 0)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The bytes before a file's first page, and those after its footer.
const (
	headSize = 4
	endSize  = 8
)

var errNoCheck = errors.New("it has no checksum")

// stamp puts the checksum into a file just written. Opening the file for it
// shows that it can be read.
func stamp(f *os.File) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	file, err := parquet.OpenFile(f, size, parquet.SkipBloomFilters(true))
	if err != nil {
		return err
	}
	start := dataEnd(file)
	tail := make([]byte, size-start)
	if _, err := f.ReadAt(tail, start); err != nil {
		return err
	}
	i := findCheck(tail)
	if i < 0 {
		return errNoCheck
	}
	check := fmt.Sprintf(checkForm, crc32.Checksum(tail, castagnoli), start)
	_, err = f.WriteAt([]byte(check), start+int64(i))
	return err
}

// verify compares a file's checksum with its content. It reads no format but
// its own, so that it can come before all else.
func verify(r io.ReaderAt, size int64) error {
	n, err := footerSize(r, size)
	if err != nil {
		return err
	}
	footer := make([]byte, n)
	if err := readFull(r, footer, size-endSize-n); err != nil {
		return err
	}
	i := findCheck(footer)
	if i < 0 {
		return errNoCheck
	}
	found := string(footer[i : i+checkSize])
	var sum uint32
	var start int64
	if _, err := fmt.Sscanf(found, checkForm, &sum, &start); err != nil || start < headSize || start > size-endSize-n {
		return errors.New("its checksum is damaged")
	}
	tail := make([]byte, size-start)
	if err := readFull(r, tail, start); err != nil {
		return err
	}
	copy(tail[int64(len(tail))-endSize-n+int64(i):], noCheck)
	if fmt.Sprintf(checkForm, crc32.Checksum(tail, castagnoli), start) != found {
		return errors.New("its footer does not match its checksum")
	}
	return nil
}

// findCheck finds the checksum in a footer, or in bytes that end with one.
func findCheck(footer []byte) int {
	i := bytes.LastIndex(footer, []byte(keyCheck))
	if i < 0 {
		return -1
	}
	j := bytes.Index(footer[i:], []byte("crc32c:"))
	if j < 0 || i+j+checkSize > len(footer) {
		return -1
	}
	return i + j
}

// footerSize reads the length of a file's footer, and does not believe one that
// cannot be.
func footerSize(r io.ReaderAt, size int64) (int64, error) {
	if size < headSize+endSize {
		return 0, errors.New("it is too short for a Parquet file")
	}
	var end [endSize]byte
	if err := readFull(r, end[:], size-endSize); err != nil {
		return 0, err
	}
	if string(end[4:]) != "PAR1" {
		return 0, errors.New("it is truncated, or no Parquet file: it does not end with PAR1")
	}
	n := int64(binary.LittleEndian.Uint32(end[:4]))
	if n > size-headSize-endSize {
		return 0, errors.New("its footer is longer than the file")
	}
	return n, nil
}

// dataEnd is where the last page of data ends.
func dataEnd(f *parquet.File) int64 {
	end := int64(headSize)
	for _, g := range f.Metadata().RowGroups {
		for _, c := range g.Columns {
			start := c.MetaData.DataPageOffset
			if d := c.MetaData.DictionaryPageOffset; d > 0 {
				start = min(start, d)
			}
			end = max(end, start+c.MetaData.TotalCompressedSize)
		}
	}
	return end
}

func readFull(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}
