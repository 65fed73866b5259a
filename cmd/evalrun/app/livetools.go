package app

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"evalrun/datasets"
	"evalrun/internal/conf"
	"evalrun/pipeline"
	"evalrun/pipeline/tools"
)

// toolSpec says what runs a tool: a command, a service, or a program.
type toolSpec struct {
	Command []text             `conf:"command"` // a program and its arguments; no shell reads them
	URL     text               `conf:"url"`
	Headers conf.Pairs[string] `conf:"headers"` // sent to url
	Program text               `conf:"program"`
	Model   text               `conf:"model"` // is asked by program; "" for the one of the calling program
	Timeout time.Duration      `conf:"timeout"`
}

func (t *toolSpec) DecodeConf(n conf.Node) error {
	type keys toolSpec
	if err := conf.Decode(n, (*keys)(t)); err != nil {
		return err
	}
	given := 0
	for _, key := range []string{"command", "url", "program"} {
		if !n.Member(key).IsZero() {
			given++
		}
	}
	switch {
	case given != 1:
		return n.Errorf("a tool is run by one of %s", waysToRun)
	case t.URL.s == "" && t.Program.s == "" && (len(t.Command) == 0 || t.Command[0].s == ""):
		return n.Errorf("what runs the tool is empty: give one of %s", waysToRun)
	case t.URL.s == "" && !n.Member("headers").IsZero():
		return n.Member("headers").Errorf("headers are sent to a url, and there is none")
	case t.Program.s == "" && t.Model.s != "":
		return t.Model.errorf("model is asked by a program, and there is none")
	case t.Program.s != "" && !n.Member("timeout").IsZero():
		return n.Member("timeout").Errorf("timeout is of a command or a url: a program takes the time of the call it is asked in")
	case t.Timeout == 0 && !n.Member("timeout").IsZero():
		return n.Member("timeout").Errorf("timeout is no time: leave it out for %s", tools.DefaultTimeout)
	}
	return nil
}

// waysToRun are the ways to say what runs a tool, as messages show them.
const waysToRun = "{command: [PROGRAM, ARGUMENT…]}, {url: ADDRESS} or {program: FILE}"

// specTool is what runs a tool of the spec.
type specTool struct {
	runner  pipeline.ToolRunner
	program *pipeline.Program // the one that is asked; nil when it is none
	command string            // the command, for people; "" when it is none
	content string            // hash of all that its results depend on, as far as it is known
}

// tool makes what a spec says runs a tool.
func (w *wiring) tool(t *toolSpec) (specTool, error) {
	switch {
	case t.URL.s != "":
		return t.service()
	case t.Program.s != "":
		return w.programTool(t)
	case w.env.noExec:
		return specTool{}, t.Command[0].errorf("the tool runs a command, and programs are not run here (--no-exec-plugins)")
	}
	argv, files, err := t.argv(w.spec.file)
	if err != nil {
		return specTool{}, err
	}
	words, err := datasets.ValueOf(texts(t.Command))
	return specTool{
		runner:  tools.Command{Argv: argv, Timeout: t.Timeout},
		command: strings.Join(argv, " "),
		content: datasets.Values{"command": words, "files": files.Object()}.Object().Hash(),
	}, err
}

// argv is the command as it is run: a word that is the path of a file beside the
// spec is that file. A program without a slash is looked for in PATH.
func (t *toolSpec) argv(spec string) (argv []string, files datasets.Values, err error) {
	files = datasets.Values{}
	for i, word := range t.Command {
		path := beside(spec, word.s)
		info, err := os.Stat(path)
		isPath := i > 0 || strings.ContainsRune(word.s, '/')
		switch {
		case i == 0 && isPath && err != nil:
			return nil, nil, at(word, usageFile("command", err))
		case !isPath || err != nil || !info.Mode().IsRegular():
			argv = append(argv, word.s)
			continue
		}
		hash, err := hashFile(path)
		if err != nil {
			return nil, nil, at(word, usageFile("file", err))
		}
		files[word.s] = datasets.Text(hash)
		if i == 0 && !filepath.IsAbs(path) {
			path = "." + string(filepath.Separator) + path
		}
		argv = append(argv, path)
	}
	return argv, files, nil
}

// service is a tool that is posted to. Its headers may hold keys: a run is not
// another one because a key is.
func (t *toolSpec) service() (specTool, error) {
	u, err := url.Parse(t.URL.s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return specTool{}, t.URL.errorf("url is no address that begins with http:// or https://")
	}
	header := map[string][]string{}
	names := datasets.Values{}
	for _, h := range t.Headers {
		header[h.Key] = append(header[h.Key], h.Value)
		names[h.Key] = datasets.RawValue("true")
	}
	return specTool{
		runner:  tools.HTTP{URL: t.URL.s, Header: header, Timeout: t.Timeout},
		content: datasets.Values{"url": datasets.Text(t.URL.s), "headers": names.Object()}.Object().Hash(),
	}, nil
}

// programTool is a program that is asked, by the model of the program that calls
// it or by its own.
func (w *wiring) programTool(t *toolSpec) (specTool, error) {
	program, err := loadProgram(beside(w.spec.file, t.Program.s))
	if err != nil {
		return specTool{}, at(t.Program, err)
	}
	content := datasets.Values{"program": datasets.Text(program.Version()), "definition": datasets.Text(program.Definition().Hash())}
	if t.Model.s != "" {
		m, err := w.models.find(t.Model.s)
		if err != nil {
			return specTool{}, at(t.Model, err)
		}
		if content["model"], err = datasets.ValueOf(m.ref); err != nil {
			return specTool{}, err
		}
		asks, err := askingModel(t.Model.s)
		if err != nil {
			return specTool{}, err
		}
		program = program.WithPlugins(asks)
	}
	return specTool{runner: tools.Program(program), program: program, content: content.Object().Hash()}, nil
}

// askingModel is a program's own plugin that has it ask a model.
func askingModel(name string) (*pipeline.Plugin, error) {
	return pipeline.NewPlugin("tool-model", pipeline.Version("1.0.0"),
		pipeline.Description("Asks the model that the spec names for a tool."),
		pipeline.OnBeforeCall(func(context.Context, *pipeline.CallEvent) (*pipeline.Change, error) {
			return &pipeline.Change{LM: &name}, nil
		}))
}

// sayTool tells that a tool's command is run.
func (e *env) sayTool(name string, t specTool) {
	e.notice("the tool %s runs the command %s (--no-exec-plugins refuses programs)", name, t.command)
}
