package app

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write the expected output of scripts again")

func TestMain(m *testing.M) {
	commands := maps.Clone(serviceCommands)
	commands["evalrun"] = func() {
		os.Exit(Main(context.Background(), os.Args, Stdio{os.Stdin, os.Stdout, os.Stderr}, WithModel("desk", deskModel{})))
	}
	testscript.Main(m, commands)
}

// TestScripts runs the stories in testdata/script, each in a folder of its own.
// $REPO is the repository, $SERVICE the address of a service that is posted.
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
			service := httptest.NewServer(http.HandlerFunc(posted))
			env.Defer(service.Close)
			env.Setenv("SERVICE", service.URL)
			return nil
		},
	})
}

// posted is a service that says what it was posted, to who has its key.
func posted(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Key") != "open" {
		http.Error(w, "no key", http.StatusForbidden)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, "posted %s", body)
}
