package app

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write the expected output of scripts again")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"evalrun": func() {
			os.Exit(Main(context.Background(), os.Args, Stdio{os.Stdin, os.Stdout, os.Stderr}))
		},
	})
}

// TestScripts runs the stories in testdata/script, each in a folder of its own.
// $REPO is the repository.
func TestScripts(t *testing.T) {
	repo, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("REPO", repo)
			return nil
		},
	})
}
