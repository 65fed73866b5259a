package app

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// helpCommand shows the help of a command of any depth.
func (e *env) helpCommand() *cli.Command {
	return &cli.Command{
		Name: "help", Aliases: []string{"h"}, Usage: "what commands there are, or how one is used", ArgsUsage: "[COMMAND...]",
		Description: "evalrun help plugins check",
		Action: func(c *cli.Context) error {
			path := c.Args().Slice()
			commands := c.App.Commands
			for i, word := range path {
				above := strings.Join(path[:i], " ")
				if len(commands) == 0 {
					return usagef("evalrun %s has no commands of its own, so none is called %q", above, word)
				}
				next := find(commands, word)
				if next == nil {
					var known []string
					for _, cmd := range commands {
						known = append(known, cmd.Name)
					}
					return unknown(strings.TrimSpace(above+" command"), word, known, strings.TrimSpace("evalrun help "+above)+" lists them")
				}
				commands = next.Subcommands
			}
			return e.app().RunContext(c.Context, slices.Concat([]string{c.App.Name}, path, []string{"--help"}))
		},
	}
}
