package plugins

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"evalrun/datasets"
	"evalrun/pipeline"
)

// ModesPlugin and ModeEntry are the plugin and the kind under which a
// conversation's mode is kept: a host sets the mode by keeping such an entry,
// whose data is the mode's name, or null for none.
const (
	ModesPlugin = "modes"
	ModeEntry   = "mode"
)

// Modes returns the plugin "modes", which adds a section to the instruction of
// every call: the section, by the mode's name, of the mode the conversation is
// in. That is the last one kept on the branch, else initial; "" is no mode, and
// adds nothing. Outside a conversation the mode is always initial.
//
// A mode that has no section fails the call: an answer in the wrong mode would
// look like one in the right mode.
func Modes(sections map[string]string, initial string) (*pipeline.Plugin, error) {
	if len(sections) == 0 {
		return nil, errors.New("modes: there is no mode; give the section of at least one")
	}
	sections = maps.Clone(sections)
	known := strings.Join(slices.Sorted(maps.Keys(sections)), ", ")
	section := func(mode datasets.Value) (string, error) {
		name, ok := mode.AsText()
		text, has := sections[name]
		switch {
		case mode.IsNull(), ok && name == "":
			return "", nil
		case !ok || !has:
			return "", fmt.Errorf("there is no mode %s; the modes are %s", mode.JSON(), known)
		}
		return text, nil
	}
	if _, err := section(datasets.Text(initial)); err != nil {
		return nil, fmt.Errorf("modes: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		if strings.TrimSpace(name) == "" || strings.TrimSpace(sections[name]) == "" {
			return nil, fmt.Errorf("modes: the mode %q needs a name and a section that are not blank", name)
		}
	}
	return pipeline.NewPlugin(ModesPlugin, pipeline.Version("1.0.0"),
		pipeline.Description("Adds the section of the conversation's mode to every call."),
		pipeline.OnBeforeCall(func(_ context.Context, e *pipeline.CallEvent) (*pipeline.Change, error) {
			mode := datasets.Text(initial)
			if kept := e.Entries(ModeEntry); len(kept) > 0 {
				mode = kept[len(kept)-1].Data
			}
			text, err := section(mode)
			if err != nil || text == "" {
				return nil, err
			}
			return &pipeline.Change{Sections: []string{text}}, nil
		}))
}
