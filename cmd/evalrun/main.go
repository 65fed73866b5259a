// Command evalrun answers one question about programs that ask language models:
// is the new version really better? See the README, or `evalrun help`.
package main

import (
	"context"
	"os"

	"evalrun/cmd/evalrun/app"
)

func main() {
	os.Exit(app.Main(context.Background(), os.Args, app.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
