package app

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// permute moves flags in front of arguments, so that they work on either side:
// the library stops reading flags at the first argument and would take those
// behind it for arguments, in silence. After "--" everything is an argument.
func permute(app *cli.App, args []string) []string {
	if len(args) == 0 {
		return args
	}
	commands, flags := app.Commands, app.Flags
	path := args[:1:1]
	var moved, rest []string
	var after []string
	for i := 1; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			after = args[i:]
			break
		}
		if len(a) > 1 && a[0] == '-' {
			moved = append(moved, a)
			name, _, hasValue := strings.Cut(strings.TrimLeft(a, "-"), "=")
			if !hasValue && takesValue(flags, name) && i+1 < len(args) {
				i++
				moved = append(moved, args[i])
			}
			continue
		}
		if len(rest) == 0 {
			if c := find(commands, a); c != nil {
				path = append(path, a)
				commands, flags = c.Subcommands, c.Flags
				continue
			}
		}
		rest = append(rest, a)
	}
	return slices.Concat(path, moved, rest, after)
}

func find(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// takesValue reports whether the flag of that name is followed by a value. An
// unknown one is not, so that the library can refuse it by name.
func takesValue(flags []cli.Flag, name string) bool {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			_, isBool := f.(*cli.BoolFlag)
			return !isBool
		}
	}
	return false
}
