package app

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"evalrun/pipeline"
)

func (e *env) noExecFlag() cli.Flag {
	return &cli.BoolFlag{Name: "no-exec-plugins", Usage: "refuse plugins, metrics and tools that are programs of their own", Destination: &e.noExec}
}

func (e *env) pluginsCommand() *cli.Command {
	return &cli.Command{
		Name:  "plugins",
		Usage: "look at plugins",
		Subcommands: []*cli.Command{{
			Name: "check", Usage: "load plugins and print what they are; loading a program runs it", ArgsUsage: "FILE...",
			Description: "evalrun plugins check plugins/modes.star",
			Flags:       []cli.Flag{e.noExecFlag()},
			Action:      e.checkPlugins,
		}, {
			Name: "trace", Usage: "what each plugin does to one row's call, handler by handler; asks no model", ArgsUsage: "RUN ROW",
			Description: "evalrun plugins trace latest 0183e3ac-ef28-7c0b-bdac-0e12e89e2cf4 --candidate cot",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "candidate", Usage: "only this `one`"},
				&cli.StringFlag{Name: "runs", Value: "runs", Usage: "the `folder` that latest looks in"},
				e.noExecFlag(),
			},
			Action: e.tracePlugins,
		}},
	}
}

func (e *env) checkPlugins(c *cli.Context) error {
	files, err := arguments(c, 1, -1, "plugin files")
	if err != nil {
		return err
	}
	loader := e.loader(0)
	defer loader.Close()
	type result struct {
		File    string `json:"file"`
		Kind    string `json:"kind,omitzero"`
		Content string `json:"content,omitzero"`
		*pipeline.Manifest
		Warning string `json:"warning,omitzero"`
		Error   string `json:"error,omitzero"`
	}
	results := []result{}
	bad := 0
	for _, file := range files {
		r := result{File: file}
		p, info, err := loader.Load(c.Context, file)
		if err != nil {
			bad++
			r.Error = err.Error()
		} else {
			manifest := p.Describe()
			r.Kind, r.Content, r.Manifest = info.Kind, info.Hash, &manifest
			if len(manifest.Hooks) == 0 {
				r.Warning = fmt.Sprintf("%s: the plugin %s has no handlers, so it does nothing", file, manifest.Name)
			}
		}
		results = append(results, r)
	}
	if e.json {
		err = e.printJSON(map[string]any{"plugins": results, "bad": bad})
	} else {
		for _, r := range results {
			line := r.Error + "\n"
			if r.Manifest != nil {
				line = fmt.Sprintf("%s: Plugin(%q, %s: %s), api %d, %s, %s\n", r.File, r.Name, r.Version, joinHooks(r.Hooks), r.API, r.Kind, r.Content)
			}
			if err = e.print(e.wrapped(line)); err != nil {
				return err
			}
			if r.Warning != "" {
				e.warn(r.Warning)
			}
		}
	}
	if err == nil && bad > 0 {
		err = e.said(usagef("%d of %d plugins cannot be loaded", bad, len(files)))
	}
	return err
}

func joinHooks(hooks []pipeline.Hook) string {
	names := make([]string, len(hooks))
	for i, h := range hooks {
		names[i] = string(h)
	}
	return strings.Join(names, ", ")
}
