package app

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"
)

// terminal returns the width of w when it is a terminal that may be decorated.
func terminal(w io.Writer) (width int, ok bool) {
	if c, is := w.(*console); is {
		w = c.w
	}
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" || os.Getenv("CI") != "" {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	return width, err == nil && width > 0
}

// columns is how wide text for w is to be: as the terminal is, or elsewhere as
// COLUMNS says. known is false when neither says.
func columns(w io.Writer) (n int, known bool) {
	if width, ok := terminal(w); ok {
		return width, true
	}
	n, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if err != nil || n < 20 || n > 1000 {
		return 0, false
	}
	return n, true
}

// wrapped is text for standard output in lines that fit, where it is known how wide
// they may be. No line is longer, unless one word is.
func (e *env) wrapped(s string) string {
	width, known := columns(e.Out)
	if !known {
		return s
	}
	var b strings.Builder
	for line := range strings.Lines(s) {
		wrap(&b, line, width)
	}
	return b.String()
}

// wrap breaks a line at blanks. What follows the first break is indented by two
// blanks more than the line is.
func wrap(b *strings.Builder, line string, width int) {
	text := strings.TrimLeft(line, " ")
	indent := line[:len(line)-len(text)]
	at := 0
	for i, word := range strings.Split(text, " ") {
		n := utf8.RuneCountInString(strings.TrimRight(word, "\n"))
		switch {
		case i == 0:
			b.WriteString(indent)
			at = len(indent)
		case at+1+n > width:
			b.WriteString("\n  " + indent)
			at = len(indent) + 2
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
}

// A console is standard error with a line of progress at its end, which whatever
// else is written takes the place of. It is safe for concurrent use; what is
// written at once stays together.
type console struct {
	mu    sync.Mutex
	w     io.Writer
	shown int // how many columns the line of progress takes; 0 when there is none
}

// Write writes lines where the line of progress was.
func (c *console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erase()
	return c.w.Write(b)
}

// progress shows a line in the place of the one before; "" shows none.
func (c *console) progress(line string, width int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if line == "" {
		c.erase()
		return
	}
	line = fit(line, width)
	fmt.Fprintf(c.w, "\r%s", line)
	c.shown = len(line)
}

func (c *console) erase() {
	if c.shown > 0 {
		fmt.Fprintf(c.w, "\r%s\r", strings.Repeat(" ", c.shown))
		c.shown = 0
	}
}
