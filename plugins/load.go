package plugins

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"evalrun/internal/canon"
	"evalrun/internal/par"
	"evalrun/pipeline"
)

// LoadOptions are what plugins from files are loaded and run with.
type LoadOptions struct {
	// Timeout is how long a file may take to load and a handler to handle one
	// event; one that takes longer is stopped. 0 means 30 seconds. The time in
	// which a person is asked does not count.
	Timeout time.Duration

	// Memory is by how many bytes the memory of the whole process may grow while a
	// Starlark file is loaded or handles one event; one that runs then is stopped.
	// 0 means 256 MiB.
	Memory uint64

	// AllowExec allows plugins that are programs of their own. Loading one runs
	// it, with this process's rights.
	AllowExec bool

	// Stderr is where plugins print, whole lines at a time: what a Starlark file
	// prints with its place, what a program writes to its standard error with the
	// plugin's name. nil drops it.
	Stderr io.Writer
}

// LoadInfo says what a plugin was loaded from.
type LoadInfo struct {
	Path string // as it was given
	Hash string // "sha256:" and the hex SHA-256 of the file's bytes
	Kind string // "starlark" or "process"
}

// Loader loads plugins from files and keeps them: the same unchanged file is the
// same plugin, an edited one another. It is safe for concurrent use. A loader
// that is no longer needed is closed.
type Loader struct {
	opts LoadOptions

	mu      sync.Mutex
	loaded  map[fileID]*loadedFile
	closing []func()
	closed  bool
}

type fileID struct{ path, hash string }

type loadedFile struct {
	plugin *pipeline.Plugin
	info   LoadInfo
}

// NewLoader makes a loader.
func NewLoader(o LoadOptions) *Loader {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Stderr != nil {
		o.Stderr = par.Writer(o.Stderr)
	}
	return &Loader{opts: o, loaded: map[fileID]*loadedFile{}}
}

// maxStarlark is how large a Starlark file may be.
const maxStarlark = 1 << 20

// Load loads a plugin's file. What it is follows from its name and mode: a name
// that ends in .star is Starlark; one that ends in .py is a program run by
// python3; any other file that may be executed is a program. Anything else, a
// file that cannot be read, and one that defines no plugin is plugin-load; a
// plugin that is itself refused keeps its own code (plugin-name, plugin-api,
// plugin-hook). The errors are *[pipeline.Failure] and say the place in the file,
// apart from the cause of ctx's end.
func (l *Loader) Load(ctx context.Context, path string) (*pipeline.Plugin, LoadInfo, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, LoadInfo{}, loadFailed("%s: the plugins' loader is closed", path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, LoadInfo{}, loadFailed("%s: %v", path, err)
	}
	info, err := os.Stat(abs)
	switch {
	case err != nil:
		return nil, LoadInfo{}, loadFailed("%s: %v", path, cause(err))
	case !info.Mode().IsRegular():
		return nil, LoadInfo{}, loadFailed("%s: it is not a file", path)
	}
	is := LoadInfo{Path: path, Kind: kindOf(path, info.Mode())}
	switch {
	case is.Kind == "":
		return nil, LoadInfo{}, loadFailed("%s: it is no plugin: a plugin is a Starlark file (.star), a Python program (.py), or another program that may be executed (chmod +x)", path)
	case is.Kind == kindProcess && !l.opts.AllowExec:
		return nil, LoadInfo{}, loadFailed("%s: it is a program, and plugins that are programs are not run here; a Starlark plugin (.star) may be", path)
	case is.Kind == kindStarlark && info.Size() > maxStarlark:
		return nil, LoadInfo{}, loadFailed("%s: %d bytes are too many; there may be %d", path, info.Size(), maxStarlark)
	}
	source, err := os.ReadFile(abs)
	if err != nil {
		return nil, LoadInfo{}, loadFailed("%s: %v", path, cause(err))
	}
	is.Hash = canon.Hash(source)
	id := fileID{abs, is.Hash}
	if known, ok := l.loaded[id]; ok {
		return known.plugin, known.info, nil
	}

	limited, cancel := l.limited(ctx, "loading it")
	defer cancel()
	var p *pipeline.Plugin
	if is.Kind == kindStarlark {
		p, err = l.loadStarlark(limited, path, source)
	} else {
		p, err = l.loadProcess(limited, path, abs)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, LoadInfo{}, context.Cause(ctx)
		}
		return nil, LoadInfo{}, err
	}
	l.loaded[id] = &loadedFile{p, is}
	return p, is, nil
}

// Close stops the programs that were started. Their plugins, and the loader, are
// of no use afterwards.
func (l *Loader) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, stop := range l.closing {
		stop()
	}
	l.closing = nil
	return nil
}

const (
	kindStarlark = "starlark"
	kindProcess  = "process"
)

func kindOf(path string, mode os.FileMode) string {
	switch ext := strings.ToLower(filepath.Ext(path)); {
	case ext == ".star":
		return kindStarlark
	case ext == ".py", mode.Perm()&0o111 != 0:
		return kindProcess
	}
	return ""
}

// limited is ctx with the time limit of one event. The cause of its end is an
// error of the plugin, not of the call.
func (l *Loader) limited(ctx context.Context, what string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, l.opts.Timeout, &tooLong{what, l.opts.Timeout})
}

// tooLong is the error of a plugin that was stopped. It is made for every event,
// and put into words only when it is needed.
type tooLong struct {
	what  string
	limit time.Duration
}

func (t *tooLong) Error() string {
	return fmt.Sprintf("stopped: %s took longer than %s", t.what, t.limit)
}

func loadFailed(format string, args ...any) *pipeline.Failure {
	return pipeline.Failf(pipeline.TypePlugin, "plugin-load", format, args...)
}

// at puts a place in front of what a refused plugin's failure says.
func at(place string, err error) error {
	f, ok := errors.AsType[*pipeline.Failure](err)
	if !ok {
		return loadFailed("%s: %v", place, err)
	}
	placed := *f
	placed.Message = place + ": " + f.Message
	return &placed
}

// cause is a file error without the absolute path, which the message has as the
// user wrote it.
func cause(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

// hookNames are the hooks as a file writes them.
func hookNames() []string {
	var names []string
	for _, h := range pipeline.Hooks() {
		names = append(names, string(h))
	}
	return names
}
