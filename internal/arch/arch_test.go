// Package arch holds the architecture as a test: who may import whom, start
// goroutines, read the clock or the environment, open the network, and import
// the columnar libraries.
package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "evalrun/"

// level orders the packages: one imports only from lower levels. A package that
// is not listed has no place yet, and the test says so.
var level = map[string]int{
	"internal/canon":       10,
	"internal/conf":        10,
	"internal/normal":      10,
	"internal/par":         10,
	"internal/disk":        5,
	"internal/columnar":    10,
	"internal/proc":        10,
	"internal/star":        15,
	"internal/fakelog":     15, // simulated call logs for tests and benchmarks
	"harness/stats":        10,
	"datasets":             20,
	"pipeline":             30,
	"replay":               40,
	"replay/journal":       40,
	"replay/cache":         40,
	"replay/conversations": 40,
	"plugins":              40,
	"pipeline/provider":    40,
	"pipeline/tools":       40,
	"harness":              45,
	"harness/metrics":      50,
	"reports":              70,
	"cmd/evalrun/app":      80,
	"cmd/evalrun":          90,
	"examples/custom":      90,
	"examples/library":     90,
	"examples/bbh/prepare": 90,
	"internal/arch":        99,

	// For tests alone: whoever implements an interface runs its conformance suite.
	"pipeline/provider/providertest": 40,
}

// allowed names the packages that may do what nobody else may. An entry ending
// in /… stands for the folder and all below it.
type rule struct {
	what    string
	allowed []string
	why     string
}

var (
	goroutines  = rule{"starts a goroutine", []string{"internal/par", "internal/proc"}, "use internal/par, which keeps order, bounds and cancels"}
	clock       = rule{"reads the clock", []string{"cmd/…"}, "take the time as a value or a Now func from the caller"}
	environment = rule{"reads the environment", []string{"cmd/…"}, "take it as a value from the command"}
	chance      = rule{"draws random numbers nobody seeded", []string{"cmd/…"}, "take a seed, or an id, from the caller"}
	exit        = rule{"ends the process", []string{"cmd/evalrun", "examples/…"}, "return an error; only main exits"}
	network     = rule{"opens the network", []string{"pipeline/provider", "pipeline/provider/providertest", "pipeline/tools"}, "models' services are asked in pipeline/provider, tools' in pipeline/tools"}
	processes   = rule{"starts a process", []string{"internal/proc"}, "use internal/proc, which bounds, stops and reaps what it starts"}
	starlark    = rule{"imports Starlark", []string{"internal/star"}, "use internal/star, the one place that runs Starlark, within limits"}
	columnar    = rule{"imports a columnar library", []string{"internal/columnar"}, "use internal/columnar, the one place that knows Parquet and Arrow"}
)

// imports that only some packages may have, by path or by the folder they lie in.
var restricted = map[string]rule{
	"net/http":                           network,
	"net":                                network,
	"net/http/…":                         network,
	"os/exec":                            processes,
	"go.starlark.net/…":                  starlark,
	"github.com/parquet-go/parquet-go":   columnar,
	"github.com/parquet-go/parquet-go/…": columnar,
	"github.com/apache/arrow/go/v17/…":   columnar,
	"crypto/rand":                        chance,
	"golang.org/x/sync/errgroup":         goroutines,
}

// calls that only some packages may make, by import path and function.
var calls = map[string]rule{
	"time.Now": clock, "time.Since": clock, "time.Until": clock, "time.After": clock, "time.Tick": clock,
	"time.NewTimer": clock, "time.NewTicker": clock, "time.Sleep": clock,
	"time.AfterFunc": goroutines, "context.AfterFunc": goroutines,
	"os.Getenv": environment, "os.LookupEnv": environment, "os.Environ": environment, "os.ExpandEnv": environment,
	"os.Exit": exit, "log.Fatal": exit, "log.Fatalf": exit, "log.Fatalln": exit,
	"math/rand/v2.Int": chance, "math/rand/v2.IntN": chance, "math/rand/v2.Float64": chance, "math/rand/v2.Perm": chance,
	"math/rand/v2.Shuffle": chance, "math/rand/v2.N": chance, "math/rand/v2.Uint64": chance,
	"github.com/google/uuid.New": chance, "github.com/google/uuid.NewString": chance, "github.com/google/uuid.NewV7": chance,
}

// loaders are the files of package plugins that load plugins from files. All
// others are built-in plugins, which show that the public interface is enough:
// they import what anybody's plugin may.
var loaders = []string{"load.go", "process.go", "starlark.go"}

func builtinPlugin(pkg, file string) bool {
	return pkg == "plugins" && !slices.Contains(loaders, path.Base(filepath.ToSlash(file)))
}

func public(imported string) bool {
	ours, isOurs := strings.CutPrefix(imported, module)
	if isOurs {
		return ours == "pipeline" || ours == "datasets"
	}
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".") // the standard library
}

func (r rule) allows(pkg string) bool {
	return slices.ContainsFunc(r.allowed, func(a string) bool { return covers(a, pkg) })
}

// covers reports whether pattern, a path or a folder ending in /…, covers p.
func covers(pattern, p string) bool {
	if folder, ok := strings.CutSuffix(pattern, "/…"); ok {
		return p == folder || strings.HasPrefix(p, folder+"/")
	}
	return p == pattern
}

// check returns what file, of the package in folder pkg, does that it may not.
// Test files may import downward and sideways and start what they test; only
// the import of higher packages is refused them.
func check(fset *token.FileSet, pkg string, file *ast.File, isTest bool) []string {
	var wrong []string
	report := func(pos token.Pos, format string, args ...any) {
		p := fset.Position(pos)
		wrong = append(wrong, fmt.Sprintf("%s:%d: %s", p.Filename, p.Line, fmt.Sprintf(format, args...)))
	}
	own, placed := level[pkg]
	if !placed {
		report(file.Pos(), "package %s has no level: give it one in internal/arch", pkg)
		return wrong
	}
	names := map[string]string{} // local name → import path
	for _, imp := range file.Imports {
		p, _ := strconv.Unquote(imp.Path.Value)
		name := path.Base(p)
		if name == "v2" || name == "v3" {
			name = path.Base(path.Dir(p))
		}
		if imp.Name != nil {
			name = imp.Name.Name
		}
		names[name] = p
		if !isTest && builtinPlugin(pkg, fset.Position(imp.Pos()).Filename) && !public(p) {
			report(imp.Pos(), "a built-in plugin imports %s: it may import pipeline, datasets and the standard library alone, as anybody's plugin", p)
		}
		if ours, ok := strings.CutPrefix(p, module); ok {
			if l, ok := level[ours]; !ok {
				report(imp.Pos(), "import of %s, which has no level: give it one in internal/arch", ours)
			} else if ours != pkg && !isTest && l >= own {
				report(imp.Pos(), "%s (level %d) imports %s (level %d): a package imports only from lower levels", pkg, own, ours, l)
			}
			continue
		}
		if isTest {
			continue
		}
		for pattern, r := range restricted {
			if covers(pattern, p) && !r.allows(pkg) {
				report(imp.Pos(), "%s %s (%s): %s", pkg, r.what, p, r.why)
			}
		}
	}
	if isTest {
		return wrong
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if !goroutines.allows(pkg) {
				report(n.Pos(), "%s %s: %s", pkg, goroutines.what, goroutines.why)
			}
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if !ok {
				break
			}
			if p, ok := names[x.Name]; ok && x.Obj == nil {
				if r, ok := calls[p+"."+n.Sel.Name]; ok && !r.allows(pkg) {
					report(n.Pos(), "%s %s (%s.%s): %s", pkg, r.what, x.Name, n.Sel.Name, r.why)
				}
			} else if n.Sel.Name == "Go" && !goroutines.allows(pkg) {
				// WaitGroup.Go and its like.
				report(n.Pos(), "%s %s (%s.Go): %s", pkg, goroutines.what, x.Name, goroutines.why)
			}
		}
		return true
	})
	return wrong
}

func TestArchitecture(t *testing.T) {
	root := filepath.Join("..", "..")
	fset := token.NewFileSet()
	files := 0
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			name := d.Name()
			if p != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "runs") {
				return fs.SkipDir
			}
			// A folder with a go.mod of its own is another module.
			if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil && p != root {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(p) != ".go" {
			return nil
		}
		files++
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, p, nil, 0)
		if err != nil {
			return err
		}
		for _, w := range check(fset, filepath.ToSlash(filepath.Dir(rel)), file, strings.HasSuffix(p, "_test.go")) {
			t.Error(strings.TrimPrefix(w, root+string(filepath.Separator)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 20 {
		t.Fatalf("only %d Go files were looked at: the walk does not see the tree", files)
	}
}

// TestPlanted shows that each rule sees what it forbids.
func TestPlanted(t *testing.T) {
	for _, c := range []struct{ pkg, src, want string }{
		{"plugins", `import "evalrun/harness"`, "a package imports only from lower levels"},
		{"plugins", `import "evalrun/internal/canon"`, "a built-in plugin imports evalrun/internal/canon"},
		{"plugins", `import "evalrun/pipeline/tools"`, "a built-in plugin imports evalrun/pipeline/tools"},
		{"plugins", `import "github.com/google/go-cmp/cmp"`, "a built-in plugin imports github.com"},
		{"datasets", `import "evalrun/pipeline"`, "a package imports only from lower levels"},
		{"pipeline", `import "evalrun/replay"`, "a package imports only from lower levels"},
		{"pipeline", `import "net/http"`, "opens the network"},
		{"pipeline", `func f() { go f() }`, "starts a goroutine"},
		{"harness", `import "sync"; var wg sync.WaitGroup; func f() { wg.Go(f) }`, "starts a goroutine"},
		{"harness", `import "time"; func f() { time.AfterFunc(0, f) }`, "starts a goroutine"},
		{"harness", `import "time"; var t = time.Now()`, "reads the clock"},
		{"replay", `import "os"; var home = os.Getenv("HOME")`, "reads the environment"},
		{"harness/stats", `import "math/rand/v2"; var x = rand.IntN(2)`, "draws random numbers"},
		{"reports", `import "os"; func f() { os.Exit(1) }`, "ends the process"},
		{"reports", `import "os/exec"; var _ = exec.Command`, "starts a process"},
		{"plugins", `import "go.starlark.net/starlark"`, "imports Starlark"},
		{"replay", `import "github.com/parquet-go/parquet-go"`, "imports a columnar library"},
		{"reports", `import "github.com/apache/arrow/go/v17/arrow"`, "imports a columnar library"},
		{"nowhere", ``, "has no level"},
	} {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "planted.go", "package p\n"+c.src, 0)
		if err != nil {
			t.Fatal(err)
		}
		wrong := check(fset, c.pkg, file, false)
		if len(wrong) == 0 || !strings.Contains(strings.Join(wrong, "\n"), c.want) {
			t.Errorf("in %s, %q was let through or misread: %q, want %q", c.pkg, c.src, wrong, c.want)
		}
	}
	fset := token.NewFileSet()
	file, _ := parser.ParseFile(fset, "fine.go", `package p; import ("time"; "evalrun/datasets"); type d = time.Duration; var _ datasets.Row`, 0)
	if wrong := check(fset, "pipeline", file, false); len(wrong) > 0 {
		t.Errorf("innocent code was refused: %q", wrong)
	}
}
