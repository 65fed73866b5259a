package app

import (
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/urfave/cli/v2"

	"evalrun/datasets"
	"evalrun/pipeline"
)

func (e *env) programsCommand() *cli.Command {
	return &cli.Command{
		Name:  "programs",
		Usage: "look at programs: what they are called with, what they send, their version",
		Subcommands: []*cli.Command{
			{
				Name: "show", Usage: "a program's fields, instruction, and the request it sends for its sample input", ArgsUsage: "FILE",
				Description: "evalrun programs show route.yaml\nevalrun programs show route.yaml --json",
				Action:      e.showProgram,
			},
			{
				Name: "check", Usage: "read programs and say what is wrong with them", ArgsUsage: "FILE...",
				Description: "evalrun programs check programs/*.yaml",
				Action:      e.checkPrograms,
			},
			{
				Name: "diff", Usage: "what differs between two programs, and so between what they send", ArgsUsage: "OLD NEW",
				Description: "evalrun programs diff route.yaml route-v2.yaml",
				Action:      e.diffPrograms,
			},
			{
				Name: "version", Usage: "programs' versions: equal versions send equal requests", ArgsUsage: "FILE...",
				Description: "evalrun programs version programs/*.yaml",
				Action:      e.programVersions,
			},
		},
	}
}

// programView is what `programs show --json` prints.
type programView struct {
	Name        string         `json:"name"`
	Module      string         `json:"module,omitzero"`
	Instruction string         `json:"instruction"`
	Fields      datasets.Value `json:"fields"`
	Sample      datasets.Value `json:"sample"`
	Request     datasets.Value `json:"request"`
	RequestHash string         `json:"request_hash"`
	Signature   string         `json:"signature"`
	Interface   string         `json:"interface"`
	Version     string         `json:"version"`

	examples string // the worked examples as JSON
}

func view(p *pipeline.Program) (*programView, error) {
	req, err := p.SampleRequest()
	if err != nil {
		return nil, exit(ExitUsage, err)
	}
	return &programView{
		Name: p.Name(), Module: p.Module(), Instruction: p.Instruction(), Fields: p.Fields(),
		Sample: p.Sample().Object(), Request: req.JSON(), RequestHash: req.Hash(),
		Signature: p.Signature(), Interface: p.Interface(), Version: p.Version(),
		examples: p.Definition().Member("state").Member("demos").Canonical(),
	}, nil
}

func (e *env) showProgram(c *cli.Context) error {
	args, err := arguments(c, 1, 1, "one program file")
	if err != nil {
		return err
	}
	p, err := loadProgram(args[0])
	if err != nil {
		return err
	}
	v, err := view(p)
	if err != nil {
		return err
	}
	if e.json {
		return e.printJSON(v)
	}
	return e.print(v.text())
}

// text shows a program to a person.
func (v *programView) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "name        %s\n", v.Name)
	if v.Module != "" {
		fmt.Fprintf(&b, "module      %s\n", v.Module)
	}
	fmt.Fprintf(&b, "version     %s\nsignature   %s\ninterface   %s\n", v.Version, v.Signature, v.Interface)
	b.WriteString("fields\n")
	for f := range v.Fields.Elements() {
		fmt.Fprintf(&b, "  %-7s %s  %s\n", f.Member("direction"), f.Member("name"), f.Member("shape").JSON())
	}
	b.WriteString("instruction\n" + indent(v.Instruction))
	fmt.Fprintf(&b, "sample      %s\nrequest for the sample, %s\n", v.Sample.JSON(), v.RequestHash)
	b.WriteString(requestText(v.Request))
	return b.String()
}

// requestText shows a request's texts as a model meets them.
func requestText(request datasets.Value) string {
	var b strings.Builder
	if system := request.Member("system"); !system.IsZero() {
		b.WriteString("  [system]\n" + indent(system.String()))
	}
	for m := range request.Member("messages").Elements() {
		b.WriteString("  [" + m.Member("role").String() + "]\n")
		for part := range m.Member("parts").Elements() {
			text := part.Member("text")
			if text.IsZero() {
				text = part
			}
			b.WriteString(indent(text.String()))
		}
	}
	for _, name := range []string{"config", "tools"} {
		if v := request.Member(name); !v.IsZero() {
			b.WriteString("  [" + name + "] " + v.JSON() + "\n")
		}
	}
	return b.String()
}

// indent sets a text off. A last line that ends with a newline ends with ⏎: what
// is sent depends on it.
func indent(s string) string {
	if rest, ok := strings.CutSuffix(s, "\n"); ok {
		s = rest + "⏎"
	}
	return "    " + strings.ReplaceAll(s, "\n", "\n    ") + "\n"
}

func (e *env) checkPrograms(c *cli.Context) error {
	files, err := arguments(c, 1, -1, "program files")
	if err != nil {
		return err
	}
	type result struct {
		File     string   `json:"file"`
		Version  string   `json:"version,omitzero"`
		Error    string   `json:"error,omitzero"`
		Warnings []string `json:"warnings,omitempty"`
	}
	results := []result{}
	bad := 0
	for _, file := range files {
		r := result{File: file}
		if p, err := loadProgram(file); err != nil {
			bad++
			r.Error = err.Error()
		} else {
			r.Version, r.Warnings = p.Version(), p.Warnings()
		}
		results = append(results, r)
	}
	if e.json {
		if err := e.printJSON(map[string]any{"programs": results, "bad": bad}); err != nil {
			return err
		}
	} else {
		for _, r := range results {
			line := r.File + ": ok\n"
			for _, w := range r.Warnings {
				line += r.File + ": warning: " + w + "\n"
			}
			if r.Error != "" {
				line = r.Error + "\n"
			}
			if err := e.print(line); err != nil {
				return err
			}
		}
	}
	if bad > 0 {
		return e.said(usagef("%d of %d programs cannot be used", bad, len(files)))
	}
	return nil
}

func (e *env) programVersions(c *cli.Context) error {
	files, err := arguments(c, 1, -1, "program files")
	if err != nil {
		return err
	}
	type version struct {
		File    string `json:"file"`
		Version string `json:"version"`
	}
	versions := []version{}
	for _, file := range files {
		p, err := loadProgram(file)
		if err != nil {
			return err
		}
		versions = append(versions, version{file, p.Version()})
	}
	if e.json {
		return e.printJSON(map[string]any{"versions": versions})
	}
	for _, v := range versions {
		if err := e.print(v.Version + "  " + v.File + "\n"); err != nil {
			return err
		}
	}
	return nil
}

func (e *env) diffPrograms(c *cli.Context) error {
	args, err := arguments(c, 2, 2, "two program files")
	if err != nil {
		return err
	}
	var views [2]*programView
	for i, file := range args {
		p, err := loadProgram(file)
		if err != nil {
			return err
		}
		if views[i], err = view(p); err != nil {
			return err
		}
	}
	a, b := views[0], views[1]
	text := string(diff.Diff(args[0], []byte(a.text()), args[1], []byte(b.text())))
	same := map[string]bool{
		"version": a.Version == b.Version, "interface": a.Interface == b.Interface,
		"signature": a.Signature == b.Signature, "instruction": a.Instruction == b.Instruction, "examples": a.examples == b.examples,
	}
	if e.json {
		return e.printJSON(map[string]any{"same": same, "diff": text})
	}
	for _, name := range []string{"version", "instruction", "examples", "interface", "signature"} {
		word := "differs"
		if same[name] {
			word = "same"
		}
		if err := e.print(fmt.Sprintf("%-12s %s\n", name, word)); err != nil {
			return err
		}
	}
	return e.print(text)
}
